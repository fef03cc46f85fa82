//! What is of WebSocket only: handshakes, lost connections, and peers that do not play by the rules.

use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ops_runtime::call::websocket::{Hub, Listening, WebSocketClient, WebSocketConfig};
use ops_runtime::call::{CallHandler, Remote};
use ops_runtime::{CallOptions, ErrorCode};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::harness::{LONG, ann, eventually, limited, stopped};
use crate::operations::{Add, AddInput, Count, CountInput, Probe, Wait, WaitInput, registry};
use crate::proxy::Proxy;
use crate::websocket::{config, hub as bare_hub};

/// A peer that is silent for three of them is given up: enough for one that has to wait for a processor.
const HEARTBEAT: Duration = Duration::from_secs(1);

/// A hub that serves the test operations.
struct Served {
    hub: Hub,
    server: Listening,
    probe: Arc<Probe>,
}

async fn serve() -> Served {
    let probe = Arc::new(Probe::default());
    let hub = Hub::new(CallHandler::new(registry(&probe)).with_max_running(500))
        .with_max_message(256 << 10)
        .with_heartbeat(HEARTBEAT)
        .with_authenticator(|request| async move {
            match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
                Some("Bearer ann") => Ok(ops_runtime::call::PeerAuth::authenticated(ann())),
                Some("Bearer nobody") => Ok(ops_runtime::call::PeerAuth::anonymous()),
                _ => Err(axum::http::StatusCode::UNAUTHORIZED),
            }
        });
    Served { server: hub.listen("127.0.0.1:0").await.unwrap(), hub, probe }
}

impl Served {
    async fn settled(&self) {
        eventually("no task is left", || self.hub.running() == 0).await;
        eventually("no handler is left", || self.probe.alive() == 0).await;
    }
}

/// A peer that says what it is told to.
pub(crate) struct Raw(pub(crate) WebSocketStream<MaybeTlsStream<TcpStream>>);

impl Raw {
    pub(crate) async fn connect(url: &str, token: &str) -> Self {
        let mut request = url.into_client_request().unwrap();
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse().unwrap());
        Self(connect_async(request).await.unwrap().0)
    }

    pub(crate) async fn say(&mut self, text: impl ToString) {
        self.0.send(Message::text(text.to_string())).await.unwrap();
    }

    pub(crate) async fn request(&mut self, id: &str, operation: &str, input: Value) {
        self.say(json!({
            "type": "call.requested", "id": id,
            "payload": { "requestId": id, "operationId": operation, "input": input },
        }))
        .await;
    }

    /// The next message about a request.
    pub(crate) async fn hear(&mut self, id: &str) -> Value {
        loop {
            let message = self.0.next().await.expect("the hub closed the connection").unwrap();
            if let Message::Text(text) = message {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["id"] == id {
                    return frame;
                }
            }
        }
    }

    /// The next message of that type.
    pub(crate) async fn hear_type(&mut self, kind: &str) -> Value {
        loop {
            let message = self.0.next().await.expect("the hub closed the connection").unwrap();
            if let Message::Text(text) = message {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["type"] == kind {
                    return frame;
                }
            }
        }
    }

    /// The code with which the hub closes the connection.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        while let Some(Ok(message)) = self.0.next().await {
            if let Message::Close(frame) = message {
                return frame.map(|frame| frame.code.into());
            }
        }
        None
    }

    /// The request that comes next.
    async fn asked(&mut self) -> Value {
        loop {
            let message = self.0.next().await.unwrap().unwrap();
            if let Message::Text(text) = message {
                let frame: Value = serde_json::from_str(&text).unwrap();
                if frame["type"] == "call.requested" {
                    return frame["payload"].clone();
                }
            }
        }
    }
}

fn answer(id: &Value, data: Value) -> Value {
    let meta = json!({ "source": "local", "operationId": "raw.op", "timestamp": 1 });
    json!({
        "type": "call.responded", "id": id,
        "payload": { "requestId": id, "output": { "data": data, "meta": meta } },
    })
}

pub(crate) fn spec(name: &str, kind: &str) -> Value {
    json!({
        "name": name, "namespace": "raw", "version": "1.0.0", "type": kind, "description": "", "inputSchema": {},
        "outputSchema": {}, "accessControl": { "requiredScopes": [] },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_handshake() {
    let served = serve().await;
    let url = served.server.url();
    for config in [WebSocketConfig::new(), config("mallory")] {
        let error = WebSocketClient::connect(&url, config).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::AccessDenied, "{error}");
    }
    let error = WebSocketClient::connect("ws://127.0.0.1:1/", WebSocketConfig::new()).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::ExecutionError);
    let client = WebSocketClient::connect(&url, config("ann")).await.unwrap();
    assert_eq!(client.remote().call("test.secret", json!({})).await.unwrap().data, "gold");
    assert_eq!(served.hub.peers()[0].identity(), Some(&ann()));
    client.stop().await;
    eventually("the hub has no spoke", || served.hub.peers().is_empty()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_none() {
    limited(async {
        let served = serve().await;
        let mut raw = Raw::connect(&served.server.url(), "ann").await;
        let truncated = &json!({ "type": "call.requested", "id": "t", "payload": { "requestId": "t" } }).to_string()[..50];
        for junk in [
            "", "{", "null", "[]", "7", truncated, "\u{0}", r#"{"type":"call.requested"}"#,
            r#"{"type":"call.paused","id":"1","payload":{"requestId":"1"}}"#, r#"{"type":"link.sing","payload":[]}"#,
            r#"{"type":"link.announce","payload":{"add":7}}"#,
        ] {
            raw.say(junk).await;
        }
        raw.say("[".repeat(100_000)).await;
        raw.0.send(Message::binary(vec![0xff, 0xfe])).await.unwrap();
        // Late, or of nobody's request.
        for kind in ["call.aborted", "call.completed", "link.drained"] {
            raw.say(json!({ "type": kind, "id": "nobody", "payload": { "requestId": "nobody" } })).await;
        }
        raw.say(answer(&json!("nobody"), json!(1))).await;
        raw.say(json!({ "type": "link.credit", "id": "x", "payload": { "requestId": "x", "items": 4_294_967_295_u32 } })).await;
        // One that says which request it is about gets an answer.
        raw.say(r#"{"type":"call.requested","id":"m","payload":{"requestId":"m"}}"#).await;
        let error = raw.hear("m").await;
        assert_eq!((&error["type"], &error["payload"]["code"]), (&json!("call.error"), &json!("VALIDATION_ERROR")));
        // From a newer version, with members that are not known.
        raw.say(
            r#"{"v":2,"type":"call.requested","payload":{"requestId":"n","operationId":"test.add","input":{"a":1,"b":2},"new":[]},"id":"n"}"#,
        )
        .await;
        assert_eq!(raw.hear("n").await["payload"]["output"]["data"], 3);
        served.settled().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_do_not_count() {
    limited(async {
        let served = serve().await;
        let mut raw = Raw::connect(&served.server.url(), "nobody").await;
        let claim = json!({ "id": "root", "scopes": ["vault:open"] });
        raw.say(json!({
            "type": "call.requested", "id": "1",
            "payload": { "requestId": "1", "operationId": "test.secret", "input": {}, "identity": claim },
        }))
        .await;
        assert_eq!(raw.hear("1").await["payload"]["code"], "ACCESS_DENIED");
        // Nor may a stranger serve.
        raw.say(json!({ "type": "link.announce", "payload": { "add": [spec("op", "query")] } })).await;
        raw.request("2", "test.about", json!({})).await;
        assert_eq!(raw.hear("2").await["payload"]["output"]["data"]["identity"], Value::Null);
        assert!(served.hub.remote().list().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_comes_twice() {
    limited(async {
        let served = serve().await;
        let mut raw = Raw::connect(&served.server.url(), "ann").await;
        for _ in 0..3 {
            raw.request("1", "test.wait", json!({ "key": "twice", "milliseconds": 300 })).await;
        }
        assert_eq!(raw.hear("1").await["type"], "call.responded");
        raw.request("2", "test.add", json!({ "a": 1, "b": 1 })).await;
        // The next is the answer to the next: there is no second to the first.
        loop {
            let Message::Text(text) = raw.0.next().await.unwrap().unwrap() else { continue };
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap()["id"], "2");
            break;
        }
        assert_eq!(served.probe.starts()["twice"], 1);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_that_are_too_large() {
    limited(async {
        let served = serve().await;
        let other = WebSocketClient::connect(&served.server.url(), config("ann")).await.unwrap();
        let mut raw = Raw::connect(&served.server.url(), "ann").await;
        raw.say(" ".repeat((256 << 10) + 1)).await;
        assert_eq!(raw.closed().await, Some(1009));
        // Others go on.
        assert_eq!(other.remote().execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_floods() {
    limited(async {
        let served = serve().await;
        let mut raw = Raw::connect(&served.server.url(), "ann").await;
        // More than are run at a time: those beyond fail, at once.
        for n in 0..600 {
            raw.request(&n.to_string(), "test.wait", json!({ "key": n.to_string(), "milliseconds": 60_000 })).await;
        }
        let error = raw.hear("500").await;
        assert_eq!(error["payload"]["code"], "EXECUTION_ERROR", "{error}");
        assert!(served.hub.running() <= 500);
        // Others go on.
        let other = WebSocketClient::connect(&served.server.url(), config("ann")).await.unwrap();
        assert_eq!(other.remote().execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        drop(raw);
        served.settled().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read() {
    limited(async {
        let served = serve().await;
        let mut raw = Raw::connect(&served.server.url(), "ann").await;
        // Answers of 200 KB that nobody reads: the hub stops to take requests, and gives the client up.
        for n in 0.. {
            let request = json!({
                "type": "call.requested", "id": n.to_string(),
                "payload": { "requestId": n.to_string(), "operationId": "test.big", "input": { "bytes": 200_000 } },
            });
            let sent = tokio::time::timeout(Duration::from_secs(20), raw.0.send(Message::text(request.to_string())));
            match sent.await {
                Ok(Ok(())) if n < 1_000_000 => {}
                Ok(Ok(())) => panic!("the hub takes it all"),
                Ok(Err(_)) | Err(_) => break,
            }
        }
        eventually("the client is given up", || served.hub.peers().is_empty()).await;
        served.settled().await;
    })
    .await;
}

/// A hub, and a worker that says what it is told to.
async fn raw_worker(kind: &str) -> (Hub, Listening, Remote, Raw) {
    let hub = bare_hub();
    let server = hub.listen("127.0.0.1:0").await.unwrap();
    let mut raw = Raw::connect(&server.url(), "worker").await;
    raw.say(json!({ "type": "link.announce", "payload": { "add": [spec("op", kind)] } })).await;
    let remote = hub.remote();
    eventually("it is announced", || remote.list().len() == 1).await;
    (hub, server, remote, raw)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_answers_badly() {
    limited(async {
        let (_hub, _server, remote, mut raw) = raw_worker("query").await;
        let call = || {
            let remote = remote.clone();
            tokio::spawn(async move { remote.call("raw.op", json!({})).await })
        };
        // No envelope.
        let waiting = call();
        let id = raw.asked().await["requestId"].clone();
        raw.say(json!({ "type": "call.responded", "id": id, "payload": { "requestId": id, "output": 7 } })).await;
        assert_eq!(*waiting.await.unwrap().unwrap_err().code(), ErrorCode::ExecutionError);
        // Twice: the first counts.
        let waiting = call();
        let id = raw.asked().await["requestId"].clone();
        raw.say(answer(&id, json!("first"))).await;
        raw.say(answer(&id, json!("second"))).await;
        raw.say(json!({ "type": "call.error", "id": id, "payload": { "requestId": id, "code": "X", "message": "" } }))
            .await;
        assert_eq!(waiting.await.unwrap().unwrap().data, "first");
        // Completed, and never answered.
        let waiting = call();
        let id = raw.asked().await["requestId"].clone();
        raw.say(json!({ "type": "call.completed", "id": id, "payload": { "requestId": id } })).await;
        assert_eq!(*waiting.await.unwrap().unwrap_err().code(), ErrorCode::Aborted);
        // Given up by the worker.
        let waiting = call();
        let id = raw.asked().await["requestId"].clone();
        raw.say(json!({ "type": "call.aborted", "id": id, "payload": { "requestId": id } })).await;
        assert_eq!(*waiting.await.unwrap().unwrap_err().code(), ErrorCode::Aborted);
        assert_eq!(remote.in_flight(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_minds_no_window() {
    limited(async {
        let (_hub, _server, remote, mut raw) = raw_worker("subscription").await;
        let items = remote.stream("raw.op", json!({})).await.unwrap();
        let id = raw.asked().await["requestId"].clone();
        for n in 0..1_000 {
            raw.say(answer(&id, json!(n))).await;
        }
        assert_eq!(raw.hear(id.as_str().unwrap()).await["type"], "call.aborted");
        eventually("it is over", || remote.in_flight() == 0).await;
        let mut items: Vec<_> = items.collect().await;
        assert!(items.len() < 200, "{} items were kept", items.len());
        assert_eq!(*items.pop().unwrap().unwrap_err().code(), ErrorCode::ExecutionError);
    })
    .await;
}

/// A client behind a network that can be disturbed.
async fn behind_proxy(served: &Served, config: WebSocketConfig) -> (Proxy, WebSocketClient) {
    let proxy = Proxy::start(served.server.address()).await;
    let config = config.with_heartbeat(HEARTBEAT);
    let client = WebSocketClient::connect(&format!("ws://{}/", proxy.address()), config).await.unwrap();
    (proxy, client)
}

fn waiting(remote: &Remote) -> tokio::task::JoinHandle<ErrorCode> {
    let (remote, input) = (remote.clone(), WaitInput { key: "w".to_owned(), milliseconds: 600_000 });
    tokio::spawn(async move { remote.execute::<Wait>(input).await.unwrap_err().code().clone() })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_breaks() {
    limited(async {
        let served = serve().await;
        let (proxy, client) = behind_proxy(&served, config("ann")).await;
        let remote = client.remote();
        for _ in 0..3 {
            let calls: Vec<_> = (0..50).map(|_| waiting(&remote)).collect();
            let mut items = remote.stream("test.silent_after", json!({ "items": 1 })).await.unwrap();
            assert_eq!(items.next().await.unwrap().unwrap().data, 0);
            eventually("all run", || served.probe.alive() == 51).await;
            proxy.cut();
            for call in calls {
                assert_eq!(call.await.unwrap(), ErrorCode::Aborted);
            }
            assert_eq!(*items.next().await.unwrap().unwrap_err().code(), ErrorCode::Aborted);
            assert!(items.next().await.is_none());
            assert_eq!(remote.in_flight(), 0);
            served.settled().await;
            // What begins now waits for the next connection, also by an id that was never called.
            assert_eq!(remote.call("test.echo", json!({ "value": 1 })).await.unwrap().data, 1);
            assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_network_that_stalls() {
    limited(async {
        let served = serve().await;
        let (proxy, client) = behind_proxy(&served, config("ann")).await;
        let remote = client.remote();
        let call = waiting(&remote);
        eventually("it runs", || served.probe.alive() == 1).await;
        proxy.stall();
        // Both sides notice: nothing is heard of the other.
        assert_eq!(call.await.unwrap(), ErrorCode::Aborted);
        served.settled().await;
        assert_eq!(remote.in_flight(), 0);
        let options = CallOptions::new().with_timeout(Duration::from_millis(300));
        let error = remote.execute_with::<Add>(AddInput { a: 1, b: 1 }, options).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Timeout);
        // In this order, so that no connection is made in between which is then cut.
        proxy.cut();
        proxy.resume();
        eventually("there is a connection again", || client.is_connected()).await;
        assert_eq!(remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_that_are_resubscribed() {
    limited(async {
        let served = serve().await;
        let (proxy, client) = behind_proxy(&served, config("ann").with_resubscription()).await;
        let mut items = client.remote().subscribe::<Count>(CountInput { to: 10_000 }).await.unwrap();
        for n in 0..100 {
            assert_eq!(items.next().await.unwrap().unwrap().data, n);
        }
        for _ in 0..2 {
            proxy.cut();
            // What had come before is not lost, then the gap is told, then it starts again.
            let mut next = items.next().await.unwrap();
            while next.is_ok() {
                next = items.next().await.unwrap();
            }
            let gap = next.unwrap_err();
            assert_eq!((gap.code(), &gap.details()["resubscribed"]), (&ErrorCode::Aborted, &json!(true)));
            for n in 0..300 {
                assert_eq!(items.next().await.unwrap().unwrap().data, n);
            }
        }
        drop(items);
        served.settled().await;
        assert_eq!(client.remote().in_flight(), 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops() {
    limited(async {
        let served = serve().await;
        let (proxy, client) = behind_proxy(&served, config("ann")).await;
        let remote = client.remote();
        let input = WaitInput { key: "last".to_owned(), milliseconds: LONG };
        let calling = remote.clone();
        let call = tokio::spawn(async move { calling.execute::<Wait>(input).await.unwrap().data });
        eventually("it runs", || served.probe.alive() == 1).await;
        stopped(&served.probe, served.server.stop()).await;
        assert_eq!(call.await.unwrap(), "last");
        eventually("the connection is closed", || !client.is_connected()).await;
        // A call waits for the hub, and does not wait for ever.
        let options = CallOptions::new().with_timeout(Duration::from_millis(200));
        let error = remote.execute_with::<Add>(AddInput { a: 1, b: 1 }, options).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Timeout);
        drop(proxy);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_spoke_of_many_is_called() {
    limited(async {
        let hub = bare_hub();
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let mut spokes = Vec::new();
        for _ in 0..3 {
            let probe = Arc::new(Probe::default());
            let config = config("ann").with_handler(CallHandler::new(registry(&probe)));
            spokes.push((WebSocketClient::connect(&server.url(), config).await.unwrap(), probe));
        }
        eventually("all are there", || hub.peers().iter().all(|peer| !peer.remote().list().is_empty())).await;
        for peer in hub.peers() {
            let input = WaitInput { key: "here".to_owned(), milliseconds: 0 };
            peer.remote().execute::<Wait>(input).await.unwrap();
        }
        assert!(spokes.iter().all(|(_, probe)| probe.starts()["here"] == 1));
    })
    .await;
}
