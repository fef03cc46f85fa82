//! Subscriptions: events, lines, failures in the middle, and the end.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpResponse, StatusRange};
use ops_runtime::envelope::{EventMeta, HttpMeta};
use ops_runtime::openapi::{self, ReadOptions};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::serve::{HttpServer, HttpServerOptions};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{CallError, HttpClient, HttpConfig, Registry, ResponseEnvelope, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::fixture::{Server, registry, serve};

#[tokio::test]
async fn events_have_ids_and_an_end() {
    let server = serve(HttpServer::new(registry())).await;
    let answer = server.get("/operations/math/count?input=%7B%22to%22%3A2%7D").await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert_eq!(answer.body, "id: 1\ndata: \"1\\n\"\n\nid: 2\ndata: \"2\\n\"\n\ndata: [DONE]\n\n");
    let again = server.send(
        "POST /operations/math/count",
        &["content-type: application/json", "last-event-id: 7"],
        r#"{"to":1}"#,
    );
    assert_eq!(again.await.body, "id: 8\ndata: \"1 after 7\"\n\ndata: [DONE]\n\n");
    let path = "GET /operations/math/count?input=%7B%22to%22%3A1%7D";
    let other = server.send(path, &["last-event-id: größe-7"], "").await;
    assert_eq!(other.body, "data: \"1 after größe-7\"\n\ndata: [DONE]\n\n");
}

#[tokio::test]
async fn a_field_of_an_event_that_is_null_is_left_out() {
    let mut response = HttpResponse::new(StatusRange::Exact(200), "text/event-stream");
    response.whole_event = true;
    let mut binding = HttpBinding::owned("GET", "/watch");
    binding.responses = vec![response].into();
    let mut spec = OperationSpec::new(ops_runtime::spec::OperationKind::Subscription, "t", "watch").unwrap();
    spec.binding = ops_runtime::binding::Binding::Http(binding);
    let handler = Handler::dynamic_stream(|_: Value, _| async {
        let item = json!({ "event": null, "id": null, "retry": null, "data": "x" });
        Ok(futures_util::stream::iter([Ok(item), Ok(json!({ "event": "y", "data": null }))]))
    });
    let registry = Registry::new();
    registry.register(Registration::new(spec, handler)).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    assert_eq!(server.get("/watch").await.body, "id: 1\ndata: x\n\nevent: y\nid: 2\ndata: null\n\n: [DONE]\n\n");
}

#[tokio::test]
async fn a_failed_item_does_not_end_a_stream() {
    let server = serve(HttpServer::new(registry())).await;
    let lines = server
        .send("GET /operations/math/count?input=%7B%22to%22%3A14%7D", &["accept: application/x-ndjson"], "")
        .await;
    assert_eq!(lines.header("content-type"), Some("application/x-ndjson"));
    let lines: Vec<Value> = lines.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 14);
    assert_eq!(
        (&lines[11], &lines[12]["error"]["code"], &lines[13]),
        (&json!("12\n"), &json!("UNLUCKY"), &json!("14\n"))
    );
    let events = server.get("/operations/math/count?input=%7B%22to%22%3A14%7D").await;
    assert!(events.body.contains("event: error\ndata: {\"type\":\"about:blank\""), "{}", events.body);
    assert!(events.body.contains("id: 13\ndata: \"14\\n\"\n\n"), "{}", events.body);
    // What fails before the first item is a problem.
    let invalid = server.get("/operations/math/count?input=%7B%7D").await;
    assert_eq!((invalid.status, &invalid.problem()["violations"][0]["pointer"]), (422, &json!("/to")));
}

/// The operations of the fixture, and `t.silent`, a subscription without an item or an end.
fn with_silent() -> Registry {
    static SILENT: OperationSpec = OperationSpec::subscription("t.silent");
    let registry = registry();
    let silent =
        Handler::dynamic_stream(|_: Value, _| async { Ok(futures_util::stream::pending::<Result<Value, _>>()) });
    registry.register(Registration::new(&SILENT, silent)).unwrap();
    registry
}

/// Opens a silent stream, and reads so many comments of it.
async fn listen(server: &Server, comments: usize) -> TcpStream {
    listen_to(server, "*/*", b":\n\n", comments).await
}

/// Opens a silent stream of a type, and reads what fills the silence so many times.
async fn listen_to(server: &Server, accept: &str, silence: &[u8], times: usize) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /operations/t/silent HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while read.windows(silence.len()).filter(|window| *window == silence).count() < times {
        let mut buffer = [0; 1024];
        let count = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut buffer)).await.unwrap().unwrap();
        assert_ne!(count, 0);
        read.extend_from_slice(&buffer[..count]);
    }
    stream
}

#[tokio::test]
async fn open_streams_have_a_limit() {
    let options = HttpServerOptions::new().with_max_streams(1).with_keep_alive(Duration::from_millis(50));
    let server = serve(HttpServer::new(with_silent()).with_options(options)).await;
    let open = listen(&server, 1).await;
    let one = "/operations/math/count?input=%7B%22to%22%3A1%7D";
    let refused = server.get(one).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{refused:?}");
    assert_eq!(refused.problem()["detail"], "too many streams are open");
    // Nobody has to wait who asks for no stream.
    assert_eq!(server.post("/operations/math/add", r#"{"a":1}"#).await.status, 200);
    drop(open);
    let again = async {
        while server.get(one).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("the place of the one that ended");
}

#[tokio::test]
async fn silence_is_filled_and_a_shutdown_ends_streams() {
    let options = HttpServerOptions::new().with_keep_alive(Duration::from_millis(50));
    let mut server = serve(HttpServer::new(with_silent()).with_options(options)).await;
    let mut stream = listen(&server, 3).await;
    server.stop.cancel();
    let mut rest = Vec::new();
    tokio::time::timeout(Duration::from_secs(10), stream.read_to_end(&mut rest)).await.unwrap().unwrap();
    tokio::time::timeout(Duration::from_secs(10), server.running.take().unwrap()).await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_shutdown_says_that_a_stream_is_not_whole() {
    let options = HttpServerOptions::new().with_keep_alive(Duration::from_millis(50));
    for (accept, silence, before) in [
        ("text/event-stream", ":\n\n", "event: error\ndata: "),
        // An empty line is a chunk of its own.
        ("application/x-ndjson", "\r\n1\r\n\n\r\n", "{\"error\":"),
    ] {
        let mut server = serve(HttpServer::new(with_silent()).with_options(options.clone())).await;
        let mut stream = listen_to(&server, accept, silence.as_bytes(), 1).await;
        server.stop.cancel();
        let mut rest = String::new();
        tokio::time::timeout(Duration::from_secs(10), stream.read_to_string(&mut rest)).await.unwrap().unwrap();
        let failure = rest.split_once(before).unwrap_or_else(|| panic!("no failure in {rest}")).1;
        let problem = serde_json::Deserializer::from_str(failure).into_iter::<Value>().next().unwrap().unwrap();
        assert_eq!((&problem["status"], &problem["code"]), (&json!(503), &json!("ABORTED")), "{accept}");
        assert!(!rest.contains("[DONE]"), "{rest}");
        tokio::time::timeout(Duration::from_secs(10), server.running.take().unwrap()).await.unwrap().unwrap().unwrap();
    }
}

#[tokio::test]
async fn what_fills_the_silence_is_no_item() {
    for (content_type, millis, silence) in [
        ("text/event-stream", 20, Some(":\n\n")),
        ("application/x-ndjson", 20, Some("{\"n\":7}\n\n")),
        ("application/json-seq", 20, Some("{\"n\":7}\n\u{1e}\u{1e}")),
        ("text/event-stream", 0, None),
        ("application/x-ndjson", 0, None),
        ("application/json-seq", 0, None),
    ] {
        let mut binding = HttpBinding::owned("GET", "/watch");
        binding.responses = vec![HttpResponse::owned(StatusRange::Exact(200), content_type)].into();
        let mut spec = OperationSpec::new(OperationKind::Subscription, "t", "watch").unwrap();
        spec.binding = ops_runtime::binding::Binding::Http(binding);
        let handler = Handler::dynamic_stream(|_: Value, _| async {
            let late = futures_util::stream::once(async {
                tokio::time::sleep(Duration::from_millis(200)).await;
                Ok::<_, CallError>(json!({ "n": 8 }))
            });
            Ok(futures_util::stream::iter([Ok(json!({ "n": 7 }))]).chain(late))
        });
        let registry = Registry::new();
        registry.register(Registration::new(spec.clone(), handler)).unwrap();
        let options = HttpServerOptions::new().with_keep_alive(Duration::from_millis(millis));
        let server = serve(HttpServer::new(registry).with_options(options)).await;
        let sent = server.get("/watch").await.body;
        let plain = match content_type {
            "text/event-stream" => "id: 1\ndata: {\"n\":7}\n\nid: 2\ndata: {\"n\":8}\n\n: [DONE]\n\n",
            "application/x-ndjson" => "{\"n\":7}\n{\"n\":8}\n",
            _ => "\u{1e}{\"n\":7}\n\u{1e}{\"n\":8}\n",
        };
        match silence {
            Some(silence) => assert!(sent.contains(silence), "{sent:?}"),
            None => assert_eq!(sent, plain),
        }
        let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
        let caller = Registry::new();
        caller.register_all(client.bind([spec]).unwrap()).unwrap();
        let items: Vec<_> = caller.stream("t.watch", json!({})).await.unwrap().collect().await;
        let items: Vec<Value> = items.into_iter().map(|item| item.unwrap().data).collect();
        assert_eq!(items, [json!({ "n": 7 }), json!({ "n": 8 })], "{content_type}");
    }
}

#[tokio::test]
async fn an_item_that_does_not_fit_is_no_fault_of_the_input() {
    let output = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    for (policy, unfit) in [
        // Of another type, not mended, and not to be mended.
        (OutputPolicy::Repair, json!("secret")),
        (OutputPolicy::Repair, json!({ "n": "secret" })),
        (OutputPolicy::Strict, json!({ "n": "1", "of": "secret" })),
    ] {
        let spec = OperationSpec::new(OperationKind::Subscription, "t", "watch").unwrap();
        let own = unfit.clone();
        let handler = Handler::dynamic_stream(move |_: Value, _| {
            let item = own.clone();
            async move { Ok(futures_util::stream::iter([Ok::<_, CallError>(item), Ok(json!({ "n": 2 }))])) }
        });
        let registry = Registry::builder().with_policy(policy).build();
        registry.register(Registration::new(spec.with_output(Schema::from(output.clone())), handler)).unwrap();
        let server = serve(HttpServer::new(registry)).await;
        let lines = server.send("GET /operations/t/watch", &["accept: application/x-ndjson"], "").await;
        assert_eq!(lines.status, 200);
        let items: Vec<Value> = lines.body.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let [problem, fit] = items.as_slice() else { panic!("{unfit}: {}", lines.body) };
        let mut problem = problem["error"].clone();
        assert!(problem.as_object_mut().unwrap().remove("request").is_some());
        let expected = json!({
            "type": "about:blank",
            "title": "Internal Server Error",
            "status": 500,
            "detail": "the operation failed: its result does not match its schema",
            "code": "VALIDATION_ERROR",
        });
        assert_eq!((problem, fit), (expected, &json!({ "n": 2 })), "{unfit}");
    }
}

/// An item whose schema says more than its type.
#[derive(Serialize, Deserialize, JsonSchema)]
struct Tick {
    #[schemars(range(max = 10))]
    n: u32,
}

#[operation(namespace = "t")]
async fn ticks() -> impl Stream<Item = Tick> {
    futures_util::stream::iter([Tick { n: 10 }, Tick { n: 11 }])
}

#[tokio::test]
async fn the_type_of_an_item_stands_for_its_schema() {
    let registry = Registry::new();
    registry.register(Ticks).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let lines = server.send("GET /operations/t/ticks", &["accept: application/x-ndjson"], "").await;
    assert_eq!((lines.status, lines.body.as_str()), (200, "{\"n\":10}\n{\"n\":11}\n"));
}

#[tokio::test]
async fn a_stream_has_the_status_that_is_described_for_it() {
    for (range, status) in [
        (StatusRange::Exact(202), 202),
        (StatusRange::Exact(200), 200),
        (StatusRange::Class(2), 200),
        (StatusRange::Default, 200),
    ] {
        let mut binding = HttpBinding::owned("GET", "/watch");
        let beside = HttpResponse::owned(StatusRange::Exact(200), "application/json");
        binding.responses = vec![HttpResponse::owned(range, "text/event-stream"), beside].into();
        let spec = OperationSpec::new(OperationKind::Subscription, "t", "watch").unwrap().with_http(binding);
        let handler = Handler::dynamic_stream(|_: Value, _| async {
            Ok(futures_util::stream::iter([Ok::<_, CallError>(json!(7))]))
        });
        let registry = Registry::new();
        registry.register(Registration::new(spec, handler)).unwrap();
        let answer = serve(HttpServer::new(registry)).await.get("/watch").await;
        assert_eq!((answer.status, answer.body.as_str()), (status, "id: 1\ndata: 7\n\n: [DONE]\n\n"), "{range:?}");
    }
}

#[tokio::test]
async fn the_kind_of_stream_that_a_client_wants_most_is_sent() {
    let server = serve(HttpServer::new(registry())).await;
    for (accept, kind) in [
        ("application/x-ndjson, text/event-stream;q=0.1", "application/x-ndjson"),
        ("application/jsonl;q=0.2, application/x-ndjson;q=0, text/event-stream;q=0.1", "application/x-ndjson"),
        ("application/x-ndjson;q=0.5, text/event-stream", "text/event-stream"),
        ("application/x-ndjson, text/event-stream", "text/event-stream"),
        ("application/x-ndjson;q=0.1, */*", "application/x-ndjson"),
        ("*/*", "text/event-stream"),
    ] {
        let path = "GET /operations/math/count?input=%7B%22to%22%3A1%7D";
        let answer = server.send(path, &[&format!("accept: {accept}")], "").await;
        assert_eq!(answer.header("content-type"), Some(kind), "{accept}");
    }
}

#[tokio::test]
async fn a_shutdown_waits_for_requests_in_flight() {
    static SLOW: OperationSpec = OperationSpec::query("t.slow");
    let registry = Registry::new();
    let begun = Arc::new(Notify::new());
    let told = begun.clone();
    let slow = Handler::dynamic(move |_: Value, _| {
        let begun = told.clone();
        async move {
            begun.notify_one();
            tokio::time::sleep(Duration::from_millis(300)).await;
            Ok(json!("done"))
        }
    });
    registry.register(Registration::new(&SLOW, slow)).unwrap();
    let mut server = serve(HttpServer::new(registry)).await;
    let running = server.running.take().unwrap();
    let stop = server.stop.clone();
    let (answer, ended) = tokio::join!(server.get("/operations/t/slow"), async move {
        tokio::time::timeout(Duration::from_secs(20), begun.notified()).await.unwrap();
        stop.cancel();
        tokio::time::timeout(Duration::from_secs(10), running).await.unwrap().unwrap()
    });
    assert_eq!((answer.body.as_str(), ended.is_ok()), ("\"done\"", true));
    assert!(tokio::net::TcpStream::connect(server.address).await.is_err());
}

/// Each kind of stream that a binding can describe arrives at our client item by item.
#[tokio::test]
async fn bound_subscriptions_arrive_at_the_client() {
    let kinds = [
        ("text/event-stream", false, json!({ "a": 1 })),
        ("application/x-ndjson", false, json!("x\ny")),
        ("application/json-seq", false, json!([1, "\u{1e}"])),
        ("text/event-stream", true, json!({ "event": "added", "data": "one\ntwo", "id": "e7" })),
        ("text/event-stream", true, json!({ "event": "removed", "data": null, "id": "e8" })),
    ];
    for (at, (content_type, is_whole, item)) in kinds.into_iter().enumerate() {
        let mut response = HttpResponse::owned(StatusRange::Exact(200), content_type.to_owned());
        response.whole_event = is_whole;
        let mut binding = HttpBinding::owned("GET", format!("/watch/{at}"));
        binding.responses = vec![response].into();
        let mut spec = OperationSpec::new(ops_runtime::spec::OperationKind::Subscription, "t", "watch").unwrap();
        spec.binding = ops_runtime::binding::Binding::Http(binding);
        let (registry, own) = (Registry::new(), item.clone());
        let handler = Handler::dynamic_stream(move |_: Value, _| {
            let item = own.clone();
            async move { Ok(futures_util::stream::iter([Ok(item.clone()), Ok(item)])) }
        });
        registry.register(Registration::new(spec.clone(), handler)).unwrap();
        let server = serve(HttpServer::new(registry)).await;
        let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
        let caller = Registry::new();
        caller.register_all(client.bind([spec]).unwrap()).unwrap();
        let items: Vec<_> = caller.stream("t.watch", json!({})).await.unwrap().collect().await;
        let items: Vec<Value> = items.into_iter().map(|item| item.unwrap().data).collect();
        assert_eq!(items, [item.clone(), item], "{content_type}");
    }
}

/// A reader of the server's document learns if a stream may change something. A `GET` by id never starts such a stream.
#[tokio::test]
async fn a_stream_that_may_change_something_is_known_as_such() {
    const EVENTS: &[HttpResponse] = &[HttpResponse::new(StatusRange::Exact(200), "text/event-stream")];
    const fn at(method: &'static str, path: &'static str) -> HttpBinding {
        HttpBinding::new(method, path).with_responses(EVENTS)
    }
    static ASK: OperationSpec =
        OperationSpec::subscription("ai.ask").with_http(at("POST", "/questions")).with_changes(false);
    static FOLLOW: OperationSpec = OperationSpec::subscription("ai.follow");
    static PURGE: OperationSpec =
        OperationSpec::subscription("ai.purge").with_http(at("GET", "/purge")).with_changes(true);
    static RUN: OperationSpec = OperationSpec::subscription("ai.run").with_http(at("POST", "/runs"));
    let registry = Registry::new();
    for spec in [&ASK, &FOLLOW, &PURGE, &RUN] {
        let handler = Handler::dynamic_stream(|_: Value, _| async { Ok(futures_util::stream::iter([Ok(json!(1))])) });
        registry.register(Registration::new(spec, handler)).unwrap();
    }
    let server = serve(HttpServer::new(registry)).await;
    let document = server.get("/openapi.json").await.json();
    for (path, method, changes) in [
        ("/questions", "post", Some(false)),
        ("/operations/ai/follow", "post", Some(false)),
        ("/purge", "get", Some(true)),
        ("/runs", "post", None),
    ] {
        let operation = &document["paths"][path][method];
        assert_eq!(operation["x-ops-kind"], "subscription", "{path}");
        assert_eq!(operation.get("x-ops-changes").map(|changes| changes.as_bool().unwrap()), changes, "{path}");
    }
    let (api, _) = openapi::read(&document, &ReadOptions::new().with_namespace("ai")).unwrap();
    let mut read: Vec<_> = api.operations.iter().map(|spec| (spec.id.as_ref(), spec.may_change())).collect();
    read.sort_unstable();
    assert_eq!(read, [("ai.ask", false), ("ai.follow", false), ("ai.purge", true), ("ai.run", true)]);
    for (name, status) in [("ask", 200), ("follow", 200), ("purge", 405), ("run", 405)] {
        let answer = server.get(&format!("/operations/ai/{name}?input=%7B%7D")).await;
        assert_eq!(answer.status, status, "{name}: {answer:?}");
        let path = format!("POST /operations/ai/{name}");
        assert_eq!(server.send(&path, &["content-type: application/json"], "{}").await.status, 200, "{name}");
    }
}

/// Sets an id where a client can continue.
#[operation(namespace = "t", http = "GET /pages")]
async fn pages() -> impl Stream<Item = ResponseEnvelope<u32>> {
    futures_util::stream::iter(["", "cursor-A", "", "100", ""].map(|id| {
        let mut meta = HttpMeta::new(200, "");
        meta.event = Some(EventMeta::new("message", id));
        ResponseEnvelope::http(7, meta)
    }))
}

const PAGES: &str = "id: 1\ndata: 7\n\nid: cursor-A\ndata: 7\n\ndata: 7\n\nid: 100\ndata: 7\n\ndata: 7\n\n: [DONE]\n\n";

/// A client that reconnects names the last id, which the handler knows.
#[tokio::test]
async fn no_number_comes_after_an_id_of_a_handler() {
    let registry = Registry::new();
    registry.register(Pages).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    assert_eq!(server.get("/pages").await.body, PAGES);
    assert_eq!(server.get("/operations/t/pages").await.body, PAGES.replace(": [", "data: ["));
    // Before its first id, the numbers continue. An id that is not a number was the handler's own.
    for (last, first) in [("7", "id: 8\n"), ("", "id: 1\n"), ("cursor-A", "")] {
        let later = server.send("GET /pages", &[&format!("last-event-id: {last}")], "").await;
        assert_eq!(later.body, PAGES.replacen("id: 1\n", first, 1), "{last}");
    }
}

#[tokio::test]
async fn a_function_gives_lines_at_its_path() {
    let registry = Registry::new();
    registry.register(Pages).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let (events, lines) = (("text/event-stream", PAGES), ("application/x-ndjson", "7\n7\n7\n7\n7\n"));
    for (accept, (kind, body)) in [
        ("*/*", events),
        ("application/x-ndjson", lines),
        ("application/x-ndjson, text/event-stream", events),
        ("application/x-ndjson, text/event-stream;q=0.1", lines),
    ] {
        let answer = server.send("GET /pages", &[&format!("accept: {accept}")], "").await;
        assert_eq!((answer.header("content-type"), answer.body.as_str()), (Some(kind), body), "{accept}");
    }
    let document = server.get("/openapi.json").await.json();
    let content = &document["paths"]["/pages"]["get"]["responses"]["200"]["content"];
    let item = json!({ "type": "integer", "format": "uint32", "minimum": 0 });
    assert_eq!(content["text/event-stream"]["schema"], item);
    assert_eq!(content["application/x-ndjson"]["schema"], json!({ "type": "array", "items": item }));
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let items: Vec<_> = client.subscribe::<Pages>(PagesInput {}).await.unwrap().collect().await;
    assert_eq!(items.into_iter().map(|item| item.unwrap().data).collect::<Vec<_>>(), [7; 5]);
}

#[operation(namespace = "shop", http = "GET /items", errors(TooMany = 409))]
async fn items(limit: u32) -> Result<Vec<u32>, CallError> {
    Ok((0..limit).collect())
}

#[operation(namespace = "shop", http = "GET /items", errors(Gone = 410))]
async fn items_stream(since: Option<u32>) -> Result<impl Stream<Item = u32>, CallError> {
    Ok(futures_util::stream::iter(since))
}

#[operation(namespace = "shop", http = "GET /orders")]
async fn orders(limit: u32) -> Vec<u32> {
    (0..limit).collect()
}

#[operation(namespace = "shop", http = "GET /orders")]
async fn orders_stream(limit: u32) -> impl Stream<Item = u32> {
    futures_util::stream::iter(0..limit)
}

/// The document has the requests of every operation: one for a result and a stream only if they take the same.
#[tokio::test]
async fn a_result_and_a_stream_with_other_inputs_are_two_operations() {
    let registry = Registry::new();
    registry.register_all([Registration::from(Items), ItemsStream.into(), Orders.into(), OrdersStream.into()]).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let document = server.get("/openapi.json").await.json();
    let told = |path: &str| {
        let operation = &document["paths"][path]["get"];
        let parameters = operation["parameters"].as_array().unwrap().iter();
        let parameters: Vec<&str> = parameters.map(|own| own["name"].as_str().unwrap()).collect();
        let responses: Vec<&str> = operation["responses"].as_object().unwrap().keys().map(String::as_str).collect();
        let content = operation["responses"]["200"]["content"].as_object().unwrap();
        (parameters, responses, content.keys().map(String::as_str).collect::<Vec<_>>())
    };
    let (json, streams) = ("application/json", ["text/event-stream", "application/x-ndjson"]);
    assert_eq!(told("/items"), (vec!["limit"], vec!["200", "409", "default"], vec![json]));
    assert_eq!(told("/items#items_stream"), (vec!["since"], vec!["200", "410", "default"], streams.to_vec()));
    assert_eq!(told("/orders"), (vec!["limit"], vec!["200", "default"], vec![json, streams[0], streams[1]]));
    assert_eq!(document["paths"].as_object().unwrap().len(), 3, "{document}");
    let (api, _) = openapi::read(&document, &ReadOptions::new().with_namespace("shop")).unwrap();
    let mut ids: Vec<&str> = api.operations.iter().map(|spec| spec.id.as_ref()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["shop.items", "shop.items_stream", "shop.orders", "shop.orders_stream"]);
}
