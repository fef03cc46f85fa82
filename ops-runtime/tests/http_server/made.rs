//! Responses that functions make themselves: their status, their headers and their cookies; and errors of calls as those of
//! routes of the program's own.

use axum::Router;
use axum::routing::get;
use futures_util::{Stream, stream};
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, Registration};
use ops_runtime::binding::{Binding, HttpBinding, HttpResponse, StatusRange};
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{
    Body, Call, CallError, Context, ErrorResponse, HttpClient, HttpConfig, Operation, Registry, ResponseEnvelope,
    operation,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::serve;

/// An answer of each kind.
fn answer(how: &str) -> ResponseEnvelope<Value> {
    let meta = |status, kind: &str| HttpMeta::new(status, kind).with_header("x-how", how);
    let (data, meta) = match how {
        "created" => (json!({ "id": 7 }), meta(201, "application/json").with_header("Location", "/pets/7")),
        "unchanged" => (json!("left out"), meta(304, "").with_header("etag", "\"7\"")),
        "nothing" => (json!(null), meta(204, "application/json")),
        "moved" => (json!(null), meta(303, "").with_header("location", "/there")),
        "gone" => (json!({ "since": 1 }), meta(410, "application/json")),
        "null" => (json!(null), meta(200, "")),
        "page" => (json!("<p>"), meta(200, "text/html; charset=utf-8")),
        "hal" => (json!({ "_links": {} }), meta(200, "application/hal+json")),
        "framing" => {
            let framing = ["connection", "content-length", "transfer-encoding", "content-type", "upgrade"];
            let meta = framing.iter().fold(meta(200, ""), |meta, name| meta.with_header(*name, "7"));
            (json!(1), meta.with_header("not a name", "x").with_header("x-value", "a\nb"))
        }
        "cookies" => {
            let mut meta = meta(200, "").with_header("set-cookie", "c=3");
            meta.set_cookie = vec!["a=1; HttpOnly".to_owned(), "b=2".to_owned()];
            (json!(1), meta)
        }
        _ => (json!(1), meta(how.parse().unwrap_or(99), "application/json")),
    };
    ResponseEnvelope::http(data, meta)
}

#[operation(namespace = "shop", http = "GET /made")]
async fn made(how: String) -> ResponseEnvelope<Value> {
    answer(&how)
}

/// As `made`, with an input whose schema says more than its type.
#[operation(namespace = "shop", http = "GET /tight")]
async fn tight(#[schemars(length(max = 20))] how: String) -> Result<ResponseEnvelope<Value>, CallError> {
    Ok(answer(&how))
}

#[operation(namespace = "shop", http = "POST /pets", status = 201)]
async fn add_pet(name: String) -> String {
    name
}

#[operation(namespace = "shop", http = "PUT /pets", status = 202)]
async fn put_pets() {}

#[operation(namespace = "shop", http = "GET /part")]
async fn part() -> ResponseEnvelope<Body> {
    ResponseEnvelope::http("bc".into(), HttpMeta::new(206, "text/csv").with_header("content-range", "bytes 1-2/4"))
}

/// Finds nothing.
#[operation(namespace = "shop", http = "POST /found")]
async fn found(context: &Context, status: u16) -> Option<String> {
    context.set_response_status(status);
    None
}

/// Has nothing to give.
#[operation(namespace = "shop", http = "POST /done")]
async fn done(context: &Context, status: u16) {
    context.set_response_status(status);
}

/// What a handler says of its response by its context, and how it ends.
#[operation(namespace = "shop", http = "GET /said", errors(Sold = 409))]
async fn said(context: &Context, how: String) -> Result<Value, CallError> {
    context.set_response_header("X-How", "before");
    context.set_response_header("x-how", &how);
    context.set_response_header("etag", "\"7\"");
    context.set_response_header("content-length", "7");
    context.set_response_header("not a name", "7");
    context.add_response_cookie("a=1; HttpOnly");
    context.add_response_cookie("b=2");
    let status = match how.as_str() {
        "created" => 201,
        "unchanged" => 304,
        "nothing" => 204,
        "odd" => 99,
        "sold" => return Err(CallError::new("Sold", "it is sold")),
        "described" => return Err(ErrorResponse::new(409, json!({ "by": 7 })).into()),
        // That call has no response, and this one is not its.
        "nested" => return context.env().call("shop.said", json!({ "how": "created" })).await.map(|made| made.data),
        _ => return Ok(json!(how)),
    };
    context.set_response_status(status);
    Ok(json!(how))
}

/// Sets headers before the stream begins.
#[operation(namespace = "shop", http = "GET /counted")]
async fn counted(context: &Context) -> Result<impl Stream<Item = u32>, CallError> {
    context.set_response_header("x-total", "2");
    context.set_response_status(201);
    Ok(stream::iter([1, 2]))
}

/// Says something of a stream that does not begin.
#[operation(namespace = "shop", http = "GET /uncounted")]
async fn uncounted(context: &Context) -> Result<impl Stream<Item = u32>, CallError> {
    context.set_response_header("x-total", "0");
    context.set_response_header("etag", "\"7\"");
    let none: Option<stream::Iter<std::vec::IntoIter<u32>>> = None;
    none.ok_or_else(|| ErrorResponse::new(409, json!({ "by": 7 })).into())
}

/// Passes on what another server answers.
#[operation(namespace = "shop", http = "GET /passed")]
async fn passed(context: &Context) -> Result<ResponseEnvelope<Value>, CallError> {
    context.env().call("shop.upstream", json!({})).await
}

/// As `passed`, by the type of the operation.
#[operation(namespace = "shop", http = "GET /passed-by-type")]
async fn passed_by_type(context: &Context) -> Result<ResponseEnvelope<Value>, CallError> {
    context.env().execute::<Get>(json!({})).await
}

/// The operation of another server.
struct Get;

impl Operation for Get {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &GET;
}

impl Call for Get {}

const GET: OperationSpec = OperationSpec::query("shop.upstream").with_http(
    HttpBinding::new("GET", "/upstream")
        .with_responses(const { &[HttpResponse::new(StatusRange::Exact(203), "application/json")] }),
);

/// Threads may share a server.
const _: fn() = || {
    fn shared<T: Send + Sync>() {}
    shared::<HttpServer>();
};

/// An adapter that says more than its callers may know.
struct Upstream;

impl Endpoint for Upstream {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let meta = HttpMeta::new(203, "application/json").with_header("x-secret", "1");
        Box::pin(async { Ok(ResponseEnvelope::http(Payload::Value(json!(7)), meta)) })
    }
}

#[tokio::test]
async fn a_handlers_status_and_headers_are_sent_as_set() {
    let registry = Registry::new();
    registry.register_all([Registration::from(Made), Tight.into()]).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let json = Some("application/json");
    for (how, status, kind, header, body) in [
        ("created", 201, json, Some(("location", "/pets/7")), r#"{"id":7}"#),
        ("unchanged", 304, None, Some(("etag", "\"7\"")), ""),
        ("nothing", 204, None, None, ""),
        ("moved", 303, None, Some(("location", "/there")), ""),
        ("gone", 410, json, None, r#"{"since":1}"#),
        ("null", 200, json, None, "null"),
        ("page", 200, Some("text/html; charset=utf-8"), Some(("content-security-policy", "sandbox")), "<p>"),
        ("hal", 200, Some("application/hal+json"), None, r#"{"_links":{}}"#),
        ("framing", 200, json, None, "1"),
        ("cookies", 200, json, None, "1"),
    ] {
        for path in ["made", "tight"] {
            let answer = server.get(&format!("/{path}?how={how}")).await;
            assert_eq!((answer.status, answer.header("content-type")), (status, kind), "{path} {how}: {answer:?}");
            assert_eq!((answer.body.as_str(), answer.header("x-how")), (body, Some(how)), "{path}: {answer:?}");
            // Caches keep what the client accepts apart.
            assert_eq!(answer.header("vary"), Some("accept"), "{path} {how}");
            if let Some((name, value)) = header {
                assert_eq!(answer.header(name), Some(value), "{path} {how}");
            }
            for name in ["upgrade", "x-value", "transfer-encoding"] {
                assert_eq!(answer.header(name), None, "{path} {how}");
            }
            let cookies: Vec<&str> =
                answer.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| &**value).collect();
            let set: &[&str] = if how == "cookies" { &["c=3", "a=1; HttpOnly", "b=2"] } else { &[] };
            assert_eq!(cookies, set, "{path} {how}");
        }
        let by_id = server.post("/operations/shop/made", &json!({ "how": how }).to_string()).await;
        assert_eq!((by_id.status, by_id.header("x-how")), (status, Some(how)), "{by_id:?}");
    }
    // No status that can be sent.
    assert_eq!(server.get("/made?how=odd").await.status, 200);
    for (status, sent) in [(101, 200), (150, 200), (600, 200), (999, 200), (299, 299), (599, 599)] {
        for path in ["made", "tight"] {
            let answer = server.get(&format!("/{path}?how={status}")).await;
            assert_eq!((answer.status, answer.body.as_str()), (sent, "1"), "{status}: {answer:?}");
        }
    }
    // An envelope is a result of its own; what is set beside it is sent with it.
    let envelope = server.send("GET /made?how=gone", &["accept: application/vnd.ops.envelope+json"], "").await;
    assert_eq!((envelope.status, envelope.header("x-how")), (200, Some("gone")), "{envelope:?}");
    assert_eq!(envelope.json()["meta"]["statusCode"], 410);
}

/// A status that is no success is not replaced by one, with the `null` that came with it.
#[tokio::test]
async fn a_status_that_a_function_of_another_process_sets() {
    let (transport, registry, front) = (InProcess::new(), Registry::new(), Registry::new());
    registry.register(Made).unwrap();
    let worker = transport.serve(CallHandler::new(registry));
    front.register_all(transport.remote().bind([Made::SPEC]).unwrap()).unwrap();
    let server = serve(HttpServer::new(front)).await;
    assert_eq!(server.get("/made?how=created").await.json(), json!({ "id": 7 }));
    let unchanged = server.get("/made?how=unchanged").await;
    assert_eq!((unchanged.status, unchanged.body.as_str()), (304, ""));
    for (how, status) in [("moved", 303), ("gone", 410)] {
        let refused = server.get(&format!("/made?how={how}")).await;
        assert_eq!(refused.status, 502, "{refused:?}");
        let detail = format!("the operation failed: the process that runs it responded with the status {status}");
        assert_eq!(refused.problem()["detail"], detail);
    }
    worker.stop().await;
}

#[tokio::test]
async fn what_a_handler_says_by_its_context_is_sent_with_results_and_errors() {
    let registry = Registry::new();
    registry.register_all([Registration::from(Said), Counted.into(), Uncounted.into()]).unwrap();
    let server = serve(HttpServer::new(registry.clone())).await;
    let etag = Some("\"7\"");
    for (how, status, body, etag) in [
        ("plain", 200, "\"plain\"", etag),
        ("created", 201, "\"created\"", etag),
        ("unchanged", 304, "", etag),
        ("nothing", 204, "", etag),
        ("odd", 200, "\"odd\"", etag),
        ("nested", 200, "\"created\"", etag),
        // It describes no problem.
        ("described", 409, "{\"by\":7}", None),
    ] {
        let answer = server.get(&format!("/said?how={how}")).await;
        assert_eq!((answer.status, answer.body.as_str()), (status, body), "{how}: {answer:?}");
        assert_eq!((answer.header("x-how"), answer.header("etag")), (Some(how), etag), "{how}: {answer:?}");
        assert_eq!(answer.headers.iter().filter(|(name, _)| name == "set-cookie").count(), 2, "{how}: {answer:?}");
        assert_ne!(answer.header("content-length"), Some("7").filter(|_| body.len() != 7), "{how}: {answer:?}");
    }
    let sold = server.get("/said?how=sold").await;
    assert_eq!((sold.status, &sold.problem()["code"]), (409, &json!("Sold")), "{sold:?}");
    assert_eq!((sold.header("x-how"), sold.header("etag")), (Some("sold"), None), "{sold:?}");
    // Not those of a call that is refused before its handler runs, nor of the next one.
    let refused = server.get("/said").await;
    assert_eq!(
        (refused.status, refused.header("x-how"), refused.header("set-cookie")),
        (422, None, None),
        "{refused:?}"
    );

    let by_id = server.post("/operations/shop/said", r#"{"how":"created"}"#).await;
    assert_eq!((by_id.status, by_id.header("x-how"), by_id.header("etag")), (201, Some("created"), None), "{by_id:?}");
    let counted = server.get("/counted").await;
    assert_eq!((counted.status, counted.header("x-total")), (200, Some("2")), "{counted:?}");
    assert!(counted.body.contains("data: 2"), "{counted:?}");
    let uncounted = server.get("/uncounted").await;
    assert_eq!((uncounted.status, uncounted.json()), (409, json!({ "by": 7 })), "{uncounted:?}");
    assert_eq!((uncounted.header("x-total"), uncounted.header("etag")), (Some("0"), None), "{uncounted:?}");

    // In this process there is no response.
    let local = registry.execute::<Said>(SaidInput { how: "created".into() }).await.unwrap();
    assert_eq!((local.data, local.meta.as_http()), (json!("created"), None));
}

#[tokio::test]
async fn a_success_that_is_not_described_has_the_form_of_the_one_that_is() {
    let ok = |kind: &'static str| HttpResponse::new(StatusRange::Exact(200), kind);
    let problem = HttpResponse::new(StatusRange::Default, "application/problem+json");
    let empty = HttpResponse::empty(StatusRange::Exact(204));
    let registry = Registry::new();
    for (number, responses) in
        [vec![ok("text/plain"), problem.clone()], vec![problem.clone(), empty, ok("application/json")], vec![problem]]
            .into_iter()
            .enumerate()
    {
        let mut spec = OperationSpec::new(OperationKind::Query, "shop", &format!("status{number}")).unwrap();
        let mut binding = HttpBinding::owned("GET", format!("/status/{number}"));
        binding.responses = responses.into();
        spec.binding = Binding::Http(binding);
        let handler = Handler::dynamic(|_: Value, context: Context| async move {
            context.set_response_status(202);
            Ok(json!("done"))
        });
        registry.register(Registration::new(spec, handler)).unwrap();
    }
    let server = serve(HttpServer::new(registry)).await;
    for (number, kind, body) in [
        (0, "text/plain", "done"),
        (1, "application/json", "\"done\""),
        // There is nothing else that it could be.
        (2, "application/problem+json", "\"done\""),
    ] {
        let answer = server.get(&format!("/status/{number}")).await;
        assert_eq!((answer.status, answer.header("content-type")), (202, Some(kind)), "{answer:?}");
        assert_eq!(answer.body, body, "{number}");
    }
}

#[tokio::test]
async fn a_success_without_a_value_is_null() {
    let registry = Registry::new();
    registry.register_all([Registration::from(Found), Done.into()]).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let null = (Some("application/json"), "null");
    for (path, status, expected) in [
        ("/found", 200, null),
        ("/found", 202, null),
        ("/operations/shop/found", 202, null),
        ("/operations/shop/done", 202, null),
        // The operation gives no data.
        ("/done", 202, (None, "")),
        ("/found", 204, (None, "")),
        ("/found", 303, (None, "")),
        ("/operations/shop/found", 303, (None, "")),
    ] {
        let answer = server.post(path, &json!({ "status": status }).to_string()).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert_eq!((answer.header("content-type"), answer.body.as_str()), expected, "{path} {status}");
    }
}

#[tokio::test]
async fn a_declared_success_is_the_status_of_the_response_and_of_the_document() {
    let registry = Registry::new();
    registry.register_all([Registration::from(AddPet), PutPets.into(), Part.into()]).unwrap();
    let server = serve(HttpServer::new(registry)).await;
    let answer = server.post("/pets", r#"{"name":"Rex"}"#).await;
    assert_eq!((answer.status, answer.body.as_str()), (201, "\"Rex\""));
    let answer = server.send("PUT /pets", &[], "").await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    let document = server.get("/openapi.json").await.json();
    let responses = |method: &str| document["paths"]["/pets"][method]["responses"].clone();
    assert!(responses("post")["201"]["content"].is_object() && responses("post").get("200").is_none(), "{document}");
    assert!(responses("put")["202"].is_object() && responses("put")["202"].get("content").is_none(), "{document}");

    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{}", server.address))).unwrap();
    let added = client.execute::<AddPet>(AddPetInput { name: "Rex".into() }).await.unwrap();
    assert_eq!((added.data.as_str(), added.meta.as_http().unwrap().status_code), ("Rex", 201));

    let part = server.get("/part").await;
    assert_eq!((part.status, part.body.as_str(), part.header("content-type")), (206, "bc", Some("text/csv")));
    assert_eq!((part.header("content-range"), part.header("content-length")), (Some("bytes 1-2/4"), Some("2")));
}

#[tokio::test]
async fn what_other_servers_said_is_not_passed_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 203 Odd\r\ncontent-type: application/json\r\nconnection: close\r\nx-secret: 1\r\n";
            let _ = stream.write_all(format!("{head}set-cookie: a=1\r\ncontent-length: 1\r\n\r\n7").as_bytes()).await;
        }
    });
    let client = HttpClient::new(HttpConfig::new().with_base_url(format!("http://{address}"))).unwrap();
    let over_http = client.bind([GET]).unwrap();
    let adapted = vec![Registration::new(GET, Handler::endpoint(Upstream))];
    for registrations in [over_http, adapted] {
        let registry = Registry::new();
        registry.register_all(registrations).unwrap();
        registry.register_all([Registration::from(Passed), PassedByType.into()]).unwrap();
        let server = serve(HttpServer::new(registry)).await;
        for path in ["/upstream", "/passed", "/passed-by-type"] {
            let answer = server.get(path).await;
            assert_eq!((answer.status, answer.body.as_str()), (203, "7"), "{path}: {answer:?}");
            assert_eq!((answer.header("x-secret"), answer.header("set-cookie")), (None, None), "{path}");
        }
    }
}

#[tokio::test]
async fn errors_of_calls_are_responses_of_own_routes() {
    async fn fail(axum::extract::Path(how): axum::extract::Path<String>) -> Result<String, CallError> {
        Err(match how.as_str() {
            "timeout" => CallError::new("TIMEOUT", "too late"),
            "own" => CallError::new("Sold", "it is sold").with_details(json!({ "by": "ann" })),
            "input" => CallError::new("VALIDATION_ERROR", "no such day"),
            "nested" => CallError::new("VALIDATION_ERROR", "secret").with_operation(Made::SPEC.id.clone()),
            "upstream" => CallError::execution("HTTP 404: Not Found")
                .with_details(json!({ "statusCode": 404, "body": "secret", "headers": { "x": "secret" } })),
            "response" => ErrorResponse::new(409, json!({ "by": 7 })).into(),
            _ => CallError::execution("secret"),
        })
    }
    let routes = Router::new().route("/fail/{how}", get(fail));
    let server = serve(HttpServer::new(Registry::new()).with_routes(routes)).await;
    for (how, status, code) in [
        ("timeout", 504, "TIMEOUT"),
        ("own", 400, "Sold"),
        ("input", 422, "VALIDATION_ERROR"),
        ("nested", 500, "VALIDATION_ERROR"),
        ("upstream", 502, "EXECUTION_ERROR"),
        ("other", 500, "EXECUTION_ERROR"),
    ] {
        let answer = server.get(&format!("/fail/{how}")).await;
        assert_eq!((answer.status, &answer.problem()["code"]), (status, &json!(code)), "{how}: {answer:?}");
        assert!(!answer.body.contains("secret"), "{how}: {answer:?}");
    }
    let answer = server.get("/fail/response").await;
    assert_eq!((answer.status, answer.json()), (409, json!({ "by": 7 })));
}

#[test]
fn own_routes_with_a_fallback_are_refused_where_they_are_given() {
    let with = |routes: Router| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| HttpServer::new(Registry::new()).with_routes(routes)))
    };
    assert!(with(Router::new().route("/hello", get(async || "hello"))).is_ok());
    assert!(with(Router::new().fallback(async || "nothing there")).is_err());
}
