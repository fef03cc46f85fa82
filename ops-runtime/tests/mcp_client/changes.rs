//! Servers at a URL that break off their streams, forget sessions and answer oddly, while their tools change.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use futures_util::stream;
use ops_runtime::Registry;
use ops_runtime::access::AccessControl;
use ops_runtime::mcp::{McpClient, McpServerConfig};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::peers::{LONG, connect};

/// Longer than a stream is down.
const SOON: Duration = Duration::from_secs(20);

/// A server of 2025-11-25 with sessions, or one of 2026-07-28.
#[derive(Clone, Default)]
struct Server(Arc<Inner>);

#[derive(Default)]
struct Inner {
    is_new: bool,
    /// True if it does not declare that it has tools.
    declares_nothing: bool,
    tools: Mutex<Vec<String>>,
    /// What it says of each of its tools.
    description: Mutex<&'static str>,
    /// The streams for messages of the server's own that are open.
    streams: Mutex<Vec<mpsc::UnboundedSender<String>>>,
    /// How many streams were opened.
    opened: AtomicUsize,
    /// How many streams were opened before the last call that was answered.
    opened_before: AtomicUsize,
    /// How many streams come half a second late.
    late_streams: AtomicUsize,
    /// How many streams are to be refused with 503.
    refuses: AtomicUsize,
    sessions: AtomicUsize,
    /// True if the session is forgotten at the next call.
    forgets: AtomicBool,
    /// How many sessions are forgotten.
    forgotten: AtomicUsize,
    /// How many lists of tools come a second late.
    late: AtomicUsize,
    /// How notifications are answered: the content type and the body.
    accepts: Mutex<Option<(&'static str, &'static str)>>,
    /// How many lists of tools are to be refused with 503.
    lists_nothing: AtomicUsize,
    /// True if it does not know how to list tools.
    knows_no_lists: AtomicBool,
    /// How calls are answered: with an error that names no request.
    fails: Mutex<Option<StatusCode>>,
}

impl Server {
    async fn start(inner: Inner) -> (Self, McpServerConfig) {
        let server = Self(Arc::new(inner));
        server.has(&["one"]);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, McpServerConfig::http(url).with_namespace("far"))
    }

    /// Changes the tools, without a word.
    fn has(&self, tools: &[&str]) {
        *self.0.tools.lock().unwrap() = tools.iter().map(|tool| (*tool).to_owned()).collect();
    }

    /// Says that the tools have changed, to those who listen.
    fn says(&self) {
        let note = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed" });
        for stream in &*self.0.streams.lock().unwrap() {
            let _ = stream.send(note.to_string());
        }
    }

    /// Ends all streams.
    fn breaks_off(&self) {
        self.0.streams.lock().unwrap().clear();
    }

    /// Waits until as many streams were opened in all.
    async fn opened(&self, streams: usize) {
        eventually("the stream is open", || self.0.opened.load(Ordering::SeqCst) >= streams).await;
    }

    /// A stream that begins with that event.
    fn stream(&self, first: Option<String>) -> Response<Body> {
        let (sender, events) = mpsc::unbounded_channel();
        first.into_iter().for_each(|first| sender.send(first).unwrap());
        self.0.streams.lock().unwrap().push(sender);
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        let events = stream::unfold(events, |mut events| async move {
            let event: String = events.recv().await?;
            Some((Ok::<_, std::io::Error>(format!("data: {event}\n\n")), events))
        });
        response(StatusCode::OK, &[("content-type", "text/event-stream")], Body::from_stream(events))
    }
}

fn response(status: StatusCode, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

/// True as often as is left.
fn once(left: &AtomicUsize) -> bool {
    left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
}

async fn serve(State(server): State<Server>, method: Method, headers: HeaderMap, body: Bytes) -> Response<Body> {
    let inner = &server.0;
    let json_type = ("content-type", "application/json");
    let session = headers.get("mcp-session-id").and_then(|id| id.to_str().ok()?.strip_prefix("session-")?.parse().ok());
    if session.is_some_and(|session: usize| session < inner.forgotten.load(Ordering::SeqCst)) {
        return response(StatusCode::NOT_FOUND, &[], "");
    }
    if method == Method::GET {
        if once(&inner.late_streams) {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        let is_refused = once(&inner.refuses);
        return if is_refused { response(StatusCode::SERVICE_UNAVAILABLE, &[], "") } else { server.stream(None) };
    }
    if method != Method::POST {
        return response(StatusCode::ACCEPTED, &[], "");
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let id = message["id"].clone();
    let answer = |mut result: Value, headers: &[(&str, &str)]| {
        if inner.is_new {
            let more = json!({ "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
            result.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        }
        let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        response(StatusCode::OK, &[&[json_type], headers].concat(), body.to_string())
    };
    let (info, mut capabilities) =
        (json!({ "name": "far", "version": "1" }), json!({ "tools": { "listChanged": true } }));
    if inner.declares_nothing {
        capabilities = json!({});
    }
    match message["method"].as_str().unwrap() {
        "server/discover" if inner.is_new => {
            let meta = json!({ "io.modelcontextprotocol/serverInfo": info });
            answer(json!({ "supportedVersions": ["2026-07-28"], "capabilities": capabilities, "_meta": meta }), &[])
        }
        "server/discover" => response(StatusCode::NOT_FOUND, &[], ""),
        "initialize" => {
            let session = format!("session-{}", inner.sessions.fetch_add(1, Ordering::SeqCst));
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
            answer(result, &[("mcp-session-id", &session)])
        }
        "subscriptions/listen" => {
            let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
            let params = json!({ "_meta": meta, "notifications": { "toolsListChanged": true } });
            let method = "notifications/subscriptions/acknowledged";
            server.stream(Some(json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string()))
        }
        "tools/list" if once(&inner.lists_nothing) => response(StatusCode::SERVICE_UNAVAILABLE, &[], ""),
        "tools/list" if inner.knows_no_lists.load(Ordering::SeqCst) => {
            let error = json!({ "code": -32601, "message": "no such method" });
            let body = json!({ "jsonrpc": "2.0", "id": id, "error": error });
            response(StatusCode::OK, &[json_type], body.to_string())
        }
        // It is never answered.
        "tools/call" if message["params"]["name"] == "slow" => std::future::pending().await,
        "tools/list" => {
            let tools = inner.tools.lock().unwrap().clone();
            let description = *inner.description.lock().unwrap();
            let tool = |name: &String| json!({ "name": name, "description": description, "inputSchema": { "type": "object" } });
            let listed = answer(json!({ "tools": tools.iter().map(tool).collect::<Vec<_>>() }), &[]);
            if once(&inner.late) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            listed
        }
        "tools/call" if headers.contains_key("mcp-session-id") && inner.forgets.swap(false, Ordering::SeqCst) => {
            response(StatusCode::NOT_FOUND, &[], "")
        }
        "tools/call" => {
            inner.opened_before.store(inner.opened.load(Ordering::SeqCst), Ordering::SeqCst);
            match *inner.fails.lock().unwrap() {
                None => answer(json!({ "content": [{ "type": "text", "text": "done" }] }), &[]),
                Some(status) => {
                    let error = json!({ "code": -32600, "message": "too large" });
                    let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
                    response(status, &[json_type], body.to_string())
                }
            }
        }
        _ => match *inner.accepts.lock().unwrap() {
            None => response(StatusCode::ACCEPTED, &[], ""),
            Some((kind, body)) => response(StatusCode::OK, &[("content-type", kind)], body),
        },
    }
}

async fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let waiting = async {
        while !is() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(SOON, waiting).await.unwrap_or_else(|_| panic!("never: {what}"));
}

/// Waits until the client has those tools.
async fn has(client: &McpClient, tools: &[&str]) {
    let names = || client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    eventually(&format!("{tools:?}"), || names() == tools).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_is_opened_again_and_the_tools_are_listed() {
    for is_new in [false, true] {
        let (server, config) = Server::start(Inner { is_new, ..Inner::default() }).await;
        let client = connect(config).await;
        server.opened(1).await;
        server.has(&["one", "two"]);
        server.breaks_off();
        server.opened(2).await;
        has(&client, &["one", "two"]).await;
        // It is as good as the first.
        server.has(&["three"]);
        if is_new {
            server.breaks_off();
        } else {
            server.says();
        }
        has(&client, &["three"]).await;
        client.close().await;
    }
}

#[tokio::test]
async fn tools_that_are_not_listed_at_once_are_listed_later() {
    for is_new in [false, true] {
        let (server, config) = Server::start(Inner { is_new, ..Inner::default() }).await;
        let client = connect(config).await;
        server.opened(1).await;
        server.has(&["two"]);
        server.0.lists_nothing.store(2, Ordering::SeqCst);
        server.breaks_off();
        has(&client, &["two"]).await;
        assert_eq!(server.0.lists_nothing.load(Ordering::SeqCst), 0);
        client.close().await;
    }
}

#[tokio::test]
async fn a_list_that_fails_is_not_an_empty_one() {
    let (server, config) = Server::start(Inner { declares_nothing: true, ..Inner::default() }).await;
    server.0.lists_nothing.store(1, Ordering::SeqCst);
    let error = McpClient::connect(config.clone()).await.unwrap_err();
    assert!(error.message().contains("503"), "{error}");
    let client = connect(config.clone()).await;
    has(&client, &["one"]).await;
    client.close().await;
    // A server without tools need not know how to list them.
    server.0.knows_no_lists.store(true, Ordering::SeqCst);
    let client = connect(config).await;
    has(&client, &[]).await;
    client.close().await;
}

#[tokio::test]
async fn a_call_that_takes_long_delays_no_other_in_a_new_session() {
    let (server, config) = Server::start(Inner::default()).await;
    server.has(&["one", "slow"]);
    // In all that time a session may begin, but not wait for calls in the one before.
    let client = connect(config.with_connect_timeout(Duration::from_secs(600))).await;
    let slow = tokio::spawn({
        let client = client.clone();
        async move { client.call("far.slow", json!({})).await }
    });
    eventually("the call is under way", || client.in_flight() == 1).await;
    server.opened(1).await;
    server.0.forgets.store(true, Ordering::SeqCst);
    let done = timeout(LONG, client.call("far.one", json!({}))).await.expect("an answer in time").unwrap();
    assert_eq!(done.data[0]["text"], "done");
    slow.await.unwrap().unwrap_err();
    client.close().await;
}

#[tokio::test]
async fn a_stream_that_is_refused_at_first_is_opened_later() {
    let (server, config) = Server::start(Inner { refuses: AtomicUsize::new(3), ..Inner::default() }).await;
    let client = connect(config).await;
    server.opened(1).await;
    server.has(&["two"]);
    server.says();
    has(&client, &["two"]).await;
    client.close().await;
}

#[tokio::test]
async fn a_server_that_has_forgotten_the_session_is_asked_for_its_tools() {
    let (server, config) = Server::start(Inner::default()).await;
    let client = connect(config).await;
    server.has(&["one", "two"]);
    server.0.forgets.store(true, Ordering::SeqCst);
    assert_eq!(client.call("far.one", json!({})).await.unwrap().data[0]["text"], "done");
    assert_eq!(server.0.sessions.load(Ordering::SeqCst), 2);
    has(&client, &["one", "two"]).await;
    client.close().await;
}

/// Without its stream, a server may lose what it asks during the call.
#[tokio::test]
async fn the_first_call_of_every_session_waits_for_the_stream_of_the_session() {
    let (server, config) = Server::start(Inner { late_streams: AtomicUsize::new(1), ..Inner::default() }).await;
    let client = connect(config).await;
    for sessions in 1..=2 {
        client.call("far.one", json!({})).await.unwrap();
        let seen = [&server.0.sessions, &server.0.opened_before].map(|count| count.load(Ordering::SeqCst));
        assert_eq!(seen, [sessions, sessions]);
        server.0.late_streams.store(1, Ordering::SeqCst);
        server.0.forgets.store(true, Ordering::SeqCst);
    }
    client.close().await;
}

#[tokio::test]
async fn a_session_that_is_forgotten_is_noticed_without_a_call() {
    let (server, config) = Server::start(Inner::default()).await;
    let client = connect(config).await;
    server.opened(1).await;
    server.has(&["two"]);
    server.0.forgotten.store(1, Ordering::SeqCst);
    server.breaks_off();
    has(&client, &["two"]).await;
    assert_eq!(server.0.sessions.load(Ordering::SeqCst), 2);
    // The new session has a stream as well.
    server.opened(2).await;
    server.has(&["three"]);
    server.says();
    has(&client, &["three"]).await;
    client.close().await;
}

#[tokio::test]
async fn an_older_list_does_not_take_the_place_of_a_newer_one() {
    let (server, config) = Server::start(Inner::default()).await;
    let (client, registry) = (connect(config).await, Registry::new());
    client.register_all(&registry).unwrap();
    server.0.late.store(1, Ordering::SeqCst);
    let older = tokio::spawn({
        let client = client.clone();
        async move { client.refresh().await }
    });
    eventually("the list is made", || server.0.late.load(Ordering::SeqCst) == 0).await;
    server.has(&["two"]);
    client.refresh().await.unwrap();
    older.await.unwrap().unwrap();
    has(&client, &["two"]).await;
    let ids: Vec<_> = registry.list().iter().map(|spec| spec.id.to_string()).collect();
    assert_eq!(ids, ["far.two"]);
    client.close().await;
}

#[tokio::test]
async fn what_the_program_has_changed_stays_when_the_tools_are_listed_again() {
    let (server, config) = Server::start(Inner::default()).await;
    server.has(&["one", "two", "three"]);
    let (client, registry) = (connect(config).await, Registry::new());
    let access = AccessControl::NONE.with_scopes(&["admin"]);
    let one = client.operations().into_iter().filter(|spec| spec.id == "far.one").map(|spec| {
        let mut spec = (*spec).clone();
        spec.access = access.clone();
        spec
    });
    registry.register_all(client.bind(one).unwrap()).unwrap();
    client.register_all(&registry).unwrap();
    registry.remove("far.two").unwrap();
    for (tools, description, expected) in [
        (&["one", "two", "three"][..], "", &["far.one", "far.three"][..]),
        (&["one", "two", "three"], "newer", &["far.one", "far.three"]),
        // A rule of the program outlives the tool, which may come back.
        (&["two", "three", "four"], "newer", &["far.four", "far.one", "far.three"]),
        (&["one", "three"], "newer", &["far.one", "far.three"]),
        // One that comes back is a new tool.
        (&["one", "two", "three"], "newest", &["far.one", "far.three", "far.two"]),
    ] {
        server.has(tools);
        *server.0.description.lock().unwrap() = description;
        client.refresh().await.unwrap();
        let ids: Vec<_> = registry.list().iter().map(|spec| spec.id.to_string()).collect();
        assert_eq!(ids, expected, "{tools:?}");
        let [one, three] = ["far.one", "far.three"].map(|id| registry.spec(id).unwrap());
        assert_eq!((&one.access, &*one.description), (&access, ""), "{tools:?}");
        assert_eq!((&three.access, &*three.description), (&AccessControl::NONE, description), "{tools:?}");
    }
    client.close().await;
}

#[tokio::test]
async fn tools_that_change_together_are_one_change_of_the_registry() {
    let (server, config) = Server::start(Inner::default()).await;
    server.has(&["one", "two", "three"]);
    let (client, registry) = (connect(config).await, Registry::new());
    client.register_all(&registry).unwrap();
    server.opened(1).await;
    let before = registry.version();
    server.has(&["three", "four", "five"]);
    server.says();
    let after = timeout(SOON, registry.changed(before)).await.unwrap();
    let ids: Vec<_> = registry.list().iter().map(|spec| spec.id.to_string()).collect();
    assert_eq!((after, ids), (before + 1, ["far.five", "far.four", "far.three"].map(str::to_owned).to_vec()));
    // The same list again changes nothing.
    server.says();
    assert!(timeout(Duration::from_secs(2), registry.changed(after)).await.is_err());
    client.close().await;
}

#[tokio::test]
async fn whatever_success_a_notification_has_is_good() {
    for accepts in [
        ("application/json", "{}"),
        ("application/json", r#"{"jsonrpc":"2.0","id":null,"result":{}}"#),
        ("text/plain", "ok"),
        ("text/event-stream", ""),
    ] {
        let (server, config) = Server::start(Inner { accepts: Mutex::new(Some(accepts)), ..Inner::default() }).await;
        let client = McpClient::connect(config).await.unwrap_or_else(|error| panic!("{accepts:?}: {error}"));
        assert_eq!(client.call("far.one", json!({})).await.unwrap().data[0]["text"], "done");
        assert_eq!(server.0.sessions.load(Ordering::SeqCst), 1);
        client.close().await;
    }
}

#[tokio::test]
async fn an_error_that_names_no_request_is_that_of_the_call() {
    for is_new in [true, false] {
        for status in [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK] {
            let (server, config) = Server::start(Inner { is_new, ..Inner::default() }).await;
            let client = connect(config).await;
            server.opened(1).await;
            *server.0.fails.lock().unwrap() = Some(status);
            let error = timeout(SOON, client.call("far.one", json!({}))).await.expect("an end in time").unwrap_err();
            let told = error.details()["statusCode"].as_u64();
            assert_eq!(told, (!status.is_success()).then_some(status.as_u16().into()), "{error:?}");
            // Who listens still does.
            server.has(&["two"]);
            server.breaks_off();
            has(&client, &["two"]).await;
            client.close().await;
        }
    }
}
