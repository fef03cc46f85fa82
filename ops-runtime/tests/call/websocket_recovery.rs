//! What a client of a hub does when it cannot go on as before: other hubs, expired tokens, specs that it does not know.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::call::websocket::{Hub, Listening, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, PeerAuth, Remote};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, ErrorCode, Registry};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use crate::harness::{ann, eventually, limited};
use crate::log::Log;
use crate::operations::{COUNT, Count, CountInput, registry};
use crate::proxy::Proxy;
use crate::websocket::{config, hub, spoke};
use crate::websocket_faults::{Raw, spec};

/// How long a client waits for what does not come; enough for what does, on a busy machine.
const SOON: Duration = Duration::from_secs(3);

fn handler() -> CallHandler {
    CallHandler::new(registry(&Default::default()))
}

async fn through(proxy: &Proxy, config: WebSocketConfig) -> WebSocketClient {
    WebSocketClient::connect(&format!("ws://{}/", proxy.address()), config).await.unwrap()
}

/// After a restart of the hub, the subscriber may be there before the spoke that it subscribes to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_waits_for_its_spoke() {
    limited(async {
        let forwarding = async || -> Listening { hub().with_forwarding().listen("127.0.0.1:0").await.unwrap() };
        let (before, after) = (forwarding().await, forwarding().await);
        let first = spoke(&before.url(), handler()).await;
        let proxy = Proxy::start(before.address()).await;
        let client = through(&proxy, config("ann").with_resubscription()).await;
        let remote = client.remote();
        eventually("the operations are announced", || remote.list().len() == COUNT).await;
        let mut items = remote.subscribe::<Count>(CountInput { to: 10_000 }).await.unwrap();
        assert_eq!(items.next().await.unwrap().unwrap().data, 0);
        proxy.redirect(after.address());
        proxy.cut();
        let mut next = items.next().await.unwrap();
        while next.is_ok() {
            next = items.next().await.unwrap();
        }
        let gap = next.unwrap_err();
        assert_eq!((gap.code(), &gap.details()["resubscribed"]), (&ErrorCode::Aborted, &json!(true)));
        eventually("there is a connection again", || client.is_connected()).await;
        assert!(remote.list().is_empty());
        tokio::time::sleep(Duration::from_millis(200)).await;
        let second = spoke(&after.url(), handler()).await;
        for n in 0..300 {
            assert_eq!(items.next().await.unwrap().unwrap().data, n);
        }
        drop((items, first, second));
        eventually("no request is pending", || remote.in_flight() == 0).await;
    })
    .await;
}

/// A subscription ends if the hub does not announce its operation again within the connect timeout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_ends_if_its_spoke_does_not_come() {
    limited(async {
        let forwarding = async || -> Listening { hub().with_forwarding().listen("127.0.0.1:0").await.unwrap() };
        let (before, after) = (forwarding().await, forwarding().await);
        let _spoke = spoke(&before.url(), handler()).await;
        let proxy = Proxy::start(before.address()).await;
        let config = config("ann").with_resubscription().with_connect_timeout(SOON);
        let client = through(&proxy, config).await;
        let remote = client.remote();
        eventually("the operations are announced", || remote.list().len() == COUNT).await;
        let items = remote.stream("test.silent_after", json!({ "items": 0 })).await.unwrap();
        proxy.redirect(after.address());
        proxy.cut();
        let mut items: Vec<_> = items.collect().await;
        assert_eq!(*items.pop().unwrap().unwrap_err().code(), ErrorCode::OperationNotFound);
        assert_eq!(*items.pop().unwrap().unwrap_err().code(), ErrorCode::Aborted);
        assert!(items.is_empty());
    })
    .await;
}

/// It would change that twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_that_may_change_something_is_not_repeated() {
    limited(async {
        let (registry, counts) = (Registry::new(), [0, 1].map(|_| Arc::new(AtomicUsize::new(0))));
        // The binding is not announced, and what its method says is.
        let run = OperationSpec::subscription("ai.run").with_http(HttpBinding::new("POST", "/runs"));
        for (spec, count) in [run, OperationSpec::subscription("ai.follow")].into_iter().zip(&counts) {
            let count = count.clone();
            let handler = Handler::dynamic_stream(move |_, _| {
                count.fetch_add(1, Ordering::SeqCst);
                async { Ok(stream::iter([Ok(json!(1))]).chain(stream::pending())) }
            });
            registry.register(Registration::new(spec, handler)).unwrap();
        }
        let server = Hub::new(CallHandler::new(registry)).listen("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(server.address()).await;
        let remote = through(&proxy, WebSocketConfig::new().with_resubscription()).await.remote();
        let mut run = remote.stream("ai.run", json!({})).await.unwrap();
        let mut follow = remote.stream("ai.follow", json!({})).await.unwrap();
        assert_eq!(run.next().await.unwrap().unwrap().data, 1);
        assert_eq!(follow.next().await.unwrap().unwrap().data, 1);
        proxy.cut();
        let error = run.next().await.unwrap().unwrap_err();
        assert_eq!((error.code(), &error.details()["resubscribed"]), (&ErrorCode::Aborted, &Value::Null));
        assert!(run.next().await.is_none());
        let gap = follow.next().await.unwrap().unwrap_err();
        assert_eq!((gap.code(), &gap.details()["resubscribed"]), (&ErrorCode::Aborted, &json!(true)));
        assert_eq!(follow.next().await.unwrap().unwrap().data, 1);
        assert_eq!(counts.map(|count| count.load(Ordering::SeqCst)), [1, 2]);
    })
    .await;
}

#[tokio::test]
async fn a_call_says_why_there_is_no_connection() {
    limited(async {
        let (log, _guard) = Log::start();
        let closed = Hub::new(CallHandler::new(Registry::new()))
            .with_authenticator(|_| async { Err(axum::http::StatusCode::UNAUTHORIZED) });
        let (server, refusing) =
            (hub().listen("127.0.0.1:0").await.unwrap(), closed.listen("127.0.0.1:0").await.unwrap());
        let proxy = Proxy::start(server.address()).await;
        let client = through(&proxy, config("ann").with_connect_timeout(Duration::from_secs(2))).await;
        proxy.redirect(refusing.address());
        proxy.cut();
        eventually("the connection is lost", || !client.is_connected()).await;
        let error = client.remote().call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::AccessDenied, "{error}");
        let why = "there is no connection to the hub: the hub refuses: HTTP 401";
        assert!(error.message().starts_with(why), "{error}");
        // It has tried again and again.
        let told = log.with("the hub refuses: HTTP 401");
        assert_eq!(told.len(), 1, "{told:?}");
    })
    .await;
}

/// Why an earlier connection was refused says nothing about a hub that accepts, and is silent.
#[tokio::test]
async fn a_hub_that_says_nothing_does_not_count_as_one_that_refuses() {
    limited(async {
        tokio::join!(from_refusal_to_silence(true), from_refusal_to_silence(false));
    })
    .await;
}

/// Leads a client to a hub that refuses, and then to one that says nothing, and perhaps closes the connection.
async fn from_refusal_to_silence(closes: bool) {
    let closed = Hub::new(CallHandler::new(Registry::new()))
        .with_authenticator(|_| async { Err(axum::http::StatusCode::UNAUTHORIZED) });
    let (server, refusing) = (hub().listen("127.0.0.1:0").await.unwrap(), closed.listen("127.0.0.1:0").await.unwrap());
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = silent.local_addr().unwrap();
    let accepting = tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((stream, _)) = silent.accept().await {
            let accepted = tokio_tungstenite::accept_async(stream).await;
            if !closes {
                open.push(accepted);
            }
        }
    });
    let proxy = Proxy::start(server.address()).await;
    let client = through(&proxy, config("ann").with_connect_timeout(SOON)).await;
    proxy.redirect(refusing.address());
    proxy.cut();
    eventually("the connection is lost", || !client.is_connected()).await;
    let error = client.remote().call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::AccessDenied, "{error}");
    proxy.redirect(address);
    for n in 0.. {
        let error = client.remote().call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap_err();
        if *error.code() == ErrorCode::Aborted {
            let why = "there is no connection to the hub: the hub did not say what it serves";
            assert_eq!(error.message(), why);
            break;
        }
        assert!(n < 30, "it is still said that the hub refuses: {error}");
    }
    accepting.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_handshake_has_a_token_of_its_own() {
    limited(async {
        let used = Arc::new(Mutex::new(HashSet::new()));
        let known = used.clone();
        let hub = Hub::new(handler()).with_authenticator(move |request| {
            let token = request.headers.get("authorization").and_then(|value| value.to_str().ok()).map(str::to_owned);
            let is_new =
                token.is_some_and(|token| token.starts_with("Bearer t") && known.lock().unwrap().insert(token));
            async move {
                if is_new { Ok(PeerAuth::authenticated(ann())) } else { Err(axum::http::StatusCode::UNAUTHORIZED) }
            }
        });
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let proxy = Proxy::start(server.address()).await;
        let next = AtomicUsize::new(0);
        let config = WebSocketConfig::new().with_token_source(move || {
            let token = format!("t{}", next.fetch_add(1, Ordering::SeqCst));
            async move { Ok(token) }
        });
        let client = through(&proxy, config).await;
        for n in 1..4 {
            eventually("a token was used", || used.lock().unwrap().len() >= n && client.is_connected()).await;
            let sum = client.remote().call("test.add", json!({ "a": 1, "b": 2 })).await.unwrap();
            assert_eq!(sum.data, 3);
            proxy.cut();
        }
        let fails = WebSocketConfig::new().with_token_source(|| async { Err(CallError::new("LOGIN", "no login")) });
        let error = WebSocketClient::connect(&server.url(), fails).await.unwrap_err();
        assert_eq!(error.code().as_str(), "LOGIN");
        let broken = WebSocketConfig::new().with_token_source(|| async { Ok("a\nb".to_owned()) });
        let error = WebSocketClient::connect(&server.url(), broken).await.unwrap_err();
        assert!(error.message().contains("with_token_source"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn credentials_in_the_url_are_sent() {
    limited(async {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noting = seen.clone();
        let hub = Hub::new(handler()).with_authenticator(move |request| {
            noting.lock().unwrap().push(request.headers["authorization"].to_str().unwrap().to_owned());
            async { Ok(PeerAuth::anonymous()) }
        });
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let url = format!("ws://ann:s%40c@{}/", server.address());
        let fresh = WebSocketConfig::new().with_token_source(|| async { Ok("fresh".to_owned()) });
        for config in [WebSocketConfig::new(), config("t0ken"), fresh] {
            WebSocketClient::connect(&url, config).await.unwrap();
        }
        assert_eq!(*seen.lock().unwrap(), ["Basic YW5uOnNAYw==", "Bearer t0ken", "Bearer fresh"]);
    })
    .await;
}

#[tokio::test]
async fn a_spec_that_can_not_be_read_is_left_out() {
    limited(async {
        let (log, _guard) = Log::start();
        let hub = hub();
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let mut raw = Raw::connect(&server.url(), "worker").await;
        let partial = json!({ "namespace": "py", "name": "b", "type": "query" });
        let add = json!([spec("one", "query"), partial, 7, spec("two", "query")]);
        raw.say(json!({ "type": "link.announce", "payload": { "add": add } })).await;
        let remote = hub.remote();
        eventually("the others are served", || remote.list().len() == 2).await;
        let told = log.with("left out");
        assert!(told.len() == 1 && told[0].contains("py.b"), "{told:?}");
        // A spec that is replaced by one that can't be read counts no more, and the log says it once for each peer.
        raw.say(json!({ "type": "link.announce", "payload": { "add": [spec("one", "someday")] } })).await;
        eventually("the other is served", || remote.list().len() == 1).await;
        assert_eq!(remote.list()[0].id, "raw.two");
        assert_eq!(log.with("left out").len(), 1);
        // What is no announcement at all is still a fault, and the log says why.
        raw.say(r#"{"type":"link.announce","payload":{"add":7}}"#).await;
        eventually("it is logged", || log.with("link.announce").iter().any(|line| line.contains("a list of specs")))
            .await;
    })
    .await;
}

/// A spoke without requests can go on with another hub at once. One that serves stays as long as others may need it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_keeps_no_idle_spoke() {
    limited(async {
        let hub = Hub::new(handler()).with_anonymous_serving();
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let mut busy = Raw::connect(&server.url(), "busy").await;
        let mut serving = Raw::connect(&server.url(), "serving").await;
        let mut idle = Raw::connect(&server.url(), "idle").await;
        busy.request("long", "test.wait", json!({ "key": "k", "milliseconds": 600_000 })).await;
        serving.say(json!({ "type": "link.announce", "payload": { "add": [spec("op", "query")] } })).await;
        let remote = hub.remote();
        eventually("all are there", || hub.peers().len() == 3 && hub.running() == 1 && remote.list().len() == 1).await;
        let stopping = tokio::spawn(server.stop());
        for raw in [&mut busy, &mut idle] {
            raw.hear_type("link.drain").await;
            raw.say(json!({ "type": "link.drained", "payload": {} })).await;
        }
        assert_eq!(idle.closed().await, Some(1000));
        let calling = remote.clone();
        let call = tokio::spawn(async move { calling.call("raw.op", json!({})).await });
        serving.hear_type("call.requested").await;
        call.abort();
        assert!(!stopping.is_finished());
        busy.say(json!({ "type": "call.aborted", "id": "long", "payload": { "requestId": "long" } })).await;
        assert_eq!(busy.closed().await, Some(1000));
        serving.hear_type("link.drain").await;
        serving.say(json!({ "type": "link.drained", "payload": {} })).await;
        assert_eq!(serving.closed().await, Some(1000));
        stopping.await.unwrap();
    })
    .await;
}

/// A request without an end does not keep the hub open for new ones of the spokes that serve.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_takes_requests_of_spokes_that_serve_for_up_to_10_s() {
    limited(async {
        let hub = Hub::new(handler()).with_anonymous_serving();
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let mut busy = Raw::connect(&server.url(), "busy").await;
        let mut serving = Raw::connect(&server.url(), "serving").await;
        busy.request("long", "test.wait", json!({ "key": "k", "milliseconds": 600_000 })).await;
        serving.say(json!({ "type": "link.announce", "payload": { "add": [spec("op", "query")] } })).await;
        let remote = hub.remote();
        eventually("all are there", || hub.running() == 1 && remote.list().len() == 1).await;
        let stopping = tokio::spawn(server.stop());
        busy.hear_type("link.drain").await;
        busy.say(json!({ "type": "link.drained", "payload": {} })).await;
        serving.hear_type("link.drain").await;
        serving.say(json!({ "type": "link.drained", "payload": {} })).await;
        assert_eq!(hub.running(), 1);
        busy.say(json!({ "type": "call.aborted", "id": "long", "payload": { "requestId": "long" } })).await;
        for raw in [&mut busy, &mut serving] {
            assert_eq!(raw.closed().await, Some(1000));
        }
        stopping.await.unwrap();
    })
    .await;
}

/// The next frame of a hub.
async fn next(raw: &mut Raw) -> Value {
    loop {
        if let Message::Text(text) = raw.0.next().await.unwrap().unwrap() {
            return serde_json::from_str(&text).unwrap();
        }
    }
}

/// If a client lost the operations first, its calls would fail that can wait for the next hub.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_says_so_before_it_withdraws_its_operations() {
    limited(async {
        let server = Hub::new(handler()).listen("127.0.0.1:0").await.unwrap();
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        raw.say(json!({ "type": "link.announce", "payload": {} })).await;
        let mut announced = 0;
        while announced < COUNT {
            announced += next(&mut raw).await["payload"]["add"].as_array().map_or(0, Vec::len);
        }
        let stopping = tokio::spawn(server.stop());
        assert_eq!(next(&mut raw).await["type"], "link.drain");
        assert_eq!(next(&mut raw).await["payload"]["remove"].as_array().map(Vec::len), Some(COUNT));
        raw.say(json!({ "type": "link.drained", "payload": {} })).await;
        assert_eq!(raw.closed().await, Some(1000));
        stopping.await.unwrap();
    })
    .await;
}

/// An operation that calls `test.add` through the hub when it is told to.
fn nested(remote: Arc<OnceLock<Remote>>, begun: Arc<Notify>, go: Arc<Notify>) -> Registration {
    let handler = Handler::dynamic(move |_: Value, _| {
        let (remote, begun, go) = (remote.clone(), begun.clone(), go.clone());
        async move {
            begun.notify_one();
            go.notified().await;
            Ok(remote.get().unwrap().call("test.add", json!({ "a": 40, "b": 2 })).await?.data)
        }
    });
    Registration::new(OperationSpec::new(OperationKind::Query, "raw", "nested").unwrap(), handler)
}

/// A spoke that runs a request of another one can call through a hub that stops.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_takes_the_calls_that_its_requests_need() {
    limited(async {
        let server = hub().with_forwarding().listen("127.0.0.1:0").await.unwrap();
        let _adding = spoke(&server.url(), handler()).await;
        let (remote, begun, go) = (Arc::new(OnceLock::new()), Arc::new(Notify::new()), Arc::new(Notify::new()));
        let registry = Registry::new();
        registry.register(nested(remote.clone(), begun.clone(), go.clone())).unwrap();
        let nesting = spoke(&server.url(), CallHandler::new(registry)).await;
        let client = WebSocketClient::connect(&server.url(), config("ann")).await.unwrap();
        remote.set(nesting.remote()).unwrap();
        let knows = |client: &WebSocketClient, id: &str| client.remote().list().iter().any(|spec| spec.id == id);
        eventually("each knows the others", || knows(&client, "raw.nested") && knows(&nesting, "test.add")).await;
        let calling = client.remote();
        let call = tokio::spawn(async move { calling.call("raw.nested", json!({})).await });
        begun.notified().await;
        let stopping = tokio::spawn(server.stop());
        // Time for what the hub says when it begins to stop.
        tokio::time::sleep(Duration::from_millis(500)).await;
        go.notify_one();
        assert_eq!(call.await.unwrap().unwrap().data, 42);
        stopping.await.unwrap();
    })
    .await;
}

/// An operation that blocks its thread for a while, and counts how often it has begun and ended.
fn blocking(counts: Arc<[AtomicUsize; 2]>) -> CallHandler {
    let handler = Handler::dynamic(move |input: Value, _| {
        let counts = counts.clone();
        async move {
            counts[0].fetch_add(1, Ordering::SeqCst);
            // As a handler that computes for long, but on a thread that nobody else waits for.
            tokio::task::block_in_place(|| std::thread::sleep(Duration::from_millis(800)));
            counts[1].fetch_add(1, Ordering::SeqCst);
            Ok(input)
        }
    });
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Query, "slow", "block").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    CallHandler::new(registry)
}

/// Accepts a client, as a hub that serves nothing.
async fn accept(listener: &TcpListener) -> WebSocketStream<TcpStream> {
    let (stream, _) = listener.accept().await.unwrap();
    let mut client = tokio_tungstenite::accept_async(stream).await.unwrap();
    client.send(Message::text(r#"{"type":"link.announce","payload":{}}"#)).await.unwrap();
    client
}

/// A hub in another language may count the requests of each connection from one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_response_is_not_sent_over_the_next_connection() {
    limited(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("ws://{}/", listener.local_addr().unwrap());
        let counts: Arc<[AtomicUsize; 2]> = Arc::default();
        let seen = counts.clone();
        let hub = tokio::spawn(async move {
            let mut first = accept(&listener).await;
            let payload = json!({ "requestId": "1", "operationId": "slow.block", "input": {} });
            let request = json!({ "type": "call.requested", "id": "1", "payload": payload });
            first.send(Message::text(request.to_string())).await.unwrap();
            eventually("it runs", || seen[0].load(Ordering::SeqCst) == 1).await;
            drop(first);
            let (mut second, mut heard) = (accept(&listener).await, String::new());
            assert_eq!(seen[1].load(Ordering::SeqCst), 0, "it has ended before");
            let reading = async {
                while let Some(Ok(message)) = second.next().await {
                    heard.push_str(&message.into_text().unwrap_or_default());
                }
            };
            tokio::time::timeout(Duration::from_secs(2), reading).await.unwrap_err();
            heard
        });
        let soon = Duration::from_millis(10);
        let config = WebSocketConfig::new().with_handler(blocking(counts.clone())).with_backoff(soon, soon);
        let _client = WebSocketClient::connect(&url, config).await.unwrap();
        let heard = hub.await.unwrap();
        assert_eq!(counts[1].load(Ordering::SeqCst), 1);
        assert!(heard.contains("link.announce") && !heard.contains("call.responded"), "{heard}");
    })
    .await;
}
