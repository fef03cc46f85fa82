//! What a hub does with peers that read slowly, send too much, or do not let it stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use futures_util::{SinkExt, StreamExt};
use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::CallHandler;
use ops_runtime::call::websocket::{Hub, Listening, WebSocketClient, WebSocketConfig};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio_tungstenite::MaybeTlsStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::harness::{LONG, eventually, limited};
use crate::operations::{Probe, registry};
use crate::websocket_faults::Raw;

const MIB: usize = 1 << 20;

/// The test operations, and `slow.text`, which gives a text of so many bytes after a while, or when the test lets it go.
pub(crate) fn operations(probe: &Arc<Probe>) -> Registry {
    let (registry, probe) = (registry(probe), probe.clone());
    let handler = Handler::dynamic(move |input: Value, _| {
        let probe = probe.clone();
        async move {
            probe.wait(input["milliseconds"].as_u64().unwrap()).await;
            Ok(json!("x".repeat(usize::try_from(input["bytes"].as_u64().unwrap()).unwrap())))
        }
    });
    let spec = OperationSpec::new(OperationKind::Query, "slow", "text").unwrap();
    registry.register(Registration::new(spec, handler)).unwrap();
    registry
}

async fn listen(hub: Hub) -> (Hub, Listening) {
    let server = hub.listen("127.0.0.1:0").await.unwrap();
    (hub, server)
}

/// Asks for so many answers of so many bytes, all of which come at once.
async fn ask_for(raw: &mut Raw, hub: &Hub, probe: &Probe, answers: usize, bytes: usize) {
    for n in 0..answers {
        raw.request(&n.to_string(), "slow.text", json!({ "bytes": bytes, "milliseconds": LONG })).await;
    }
    eventually("all of them run", || hub.running() == answers).await;
    probe.let_go();
}

/// Waits until a hub runs no more requests, even if their responses are not read.
async fn done(hub: &Hub) {
    eventually("none of them runs any more", || hub.running() == 0).await;
}

/// Reads so many answers, with a pause after each.
async fn read_answers(raw: &mut Raw, answers: usize, pause: Duration) {
    let mut read = 0;
    while read < answers {
        let message = raw.0.next().await.expect("the hub closed the connection").unwrap();
        let text = match message {
            Message::Text(text) => text,
            Message::Close(frame) => panic!("the hub closes the connection after {read} answers: {frame:?}"),
            _ => continue,
        };
        if text.starts_with(r#"{"type":"link."#) {
            continue;
        }
        assert!(text.starts_with(r#"{"type":"call.responded""#), "{}", &text[..text.len().min(300)]);
        read += 1;
        tokio::time::sleep(pause).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_are_kept_up_to_the_limit() {
    limited(async {
        let probe = Arc::new(Probe::default());
        let (hub, server) = listen(Hub::new(CallHandler::new(operations(&probe)))).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        ask_for(&mut raw, &hub, &probe, 40, MIB).await;
        done(&hub).await;
        read_answers(&mut raw, 40, Duration::ZERO).await;
        server.stop().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_reads_slowly_is_waited_for() {
    limited(async {
        let probe = Arc::new(Probe::default());
        let hub = Hub::new(CallHandler::new(operations(&probe))).with_heartbeat(Duration::from_millis(1_500));
        let (hub, server) = listen(hub).await;
        // Little is kept by the network, behind which the peer's own words wait.
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(64 << 10).unwrap();
        let stream = MaybeTlsStream::Plain(socket.connect(server.address()).await.unwrap());
        let mut raw = Raw(tokio_tungstenite::client_async(server.url(), stream).await.unwrap().0);
        ask_for(&mut raw, &hub, &probe, 200, MIB / 5).await;
        // All of it takes longer than a peer may be silent.
        read_answers(&mut raw, 200, Duration::from_millis(50)).await;
        raw.request("after", "test.add", json!({ "a": 1, "b": 1 })).await;
        assert_eq!(raw.hear("after").await["payload"]["output"]["data"], 2);
    })
    .await;
}

/// Each of two peers that both have much to send reads what the other sends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_peers_that_both_send_much() {
    limited(async {
        // All requests run before the first of them is answered.
        let together = Arc::new(Barrier::new(32));
        let served = || {
            let together = together.clone();
            let handler = Handler::dynamic(move |_: Value, _| {
                let together = together.clone();
                async move {
                    together.wait().await;
                    Ok(json!("x".repeat(MIB * 3 / 2)))
                }
            });
            let registry = Registry::new();
            let spec = OperationSpec::new(OperationKind::Query, "large", "text").unwrap();
            registry.register(Registration::new(spec, handler)).unwrap();
            CallHandler::new(registry)
        };
        let (hub, server) = listen(Hub::new(served()).with_anonymous_serving()).await;
        let config = WebSocketConfig::new().with_handler(served());
        let spoke = WebSocketClient::connect(&server.url(), config).await.unwrap();
        let (down, up) = (hub.remote(), spoke.remote());
        eventually("both serve it", || down.list().len() == 1 && up.list().len() == 1).await;
        let remotes = (0..16).flat_map(|_| [down.clone(), up.clone()]);
        let calls = remotes.map(|remote| tokio::spawn(async move { remote.call("large.text", json!({})).await }));
        for answer in join_all(calls).await {
            assert_eq!(answer.unwrap().unwrap().data.as_str().unwrap().len(), MIB * 3 / 2);
        }
        spoke.stop().await;
        server.stop().await;
    })
    .await;
}

/// What a peer sends that reads nothing is no sign that it ever will.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_only_sends_is_disconnected() {
    limited(async {
        let probe = Arc::new(Probe::default());
        let hub = Hub::new(CallHandler::new(operations(&probe))).with_heartbeat(Duration::from_secs(2));
        let (hub, server) = listen(hub).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        ask_for(&mut raw, &hub, &probe, 40, MIB).await;
        done(&hub).await;
        for n in 0.. {
            let payload =
                json!({ "requestId": format!("more {n}"), "operationId": "test.add", "input": { "a": 1, "b": 1 } });
            let text = json!({ "type": "call.requested", "payload": payload }).to_string();
            let sent = tokio::time::timeout(Duration::from_secs(30), raw.0.send(Message::text(text))).await;
            if hub.peers().is_empty() || !matches!(sent, Ok(Ok(()))) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        eventually("it is given up", || hub.peers().is_empty()).await;
    })
    .await;
}

/// The limit of a peer that announces none is the usual one, whatever that of the hub is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_that_announces_no_limit() {
    limited(async {
        for own in [64 << 10, 16 * MIB] {
            let hub = Hub::new(CallHandler::new(registry(&Arc::default()))).with_max_message(own);
            let (_hub, server) = listen(hub).await;
            let mut raw = Raw::connect(&server.url(), "anybody").await;
            raw.say(json!({ "type": "link.announce", "payload": {} })).await;
            raw.request("fits", "test.big", json!({ "bytes": MIB })).await;
            assert_eq!(raw.hear("fits").await["type"], "call.responded");
            raw.request("large", "test.big", json!({ "bytes": 5 * MIB })).await;
            assert_eq!(raw.hear("large").await["payload"]["details"]["limit"], 4 * MIB);
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_gives_what_it_has() {
    limited(async {
        let probe = Arc::new(Probe::default());
        let (hub, server) = listen(Hub::new(CallHandler::new(operations(&probe)))).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        raw.say(json!({ "type": "link.drained", "payload": {} })).await;
        ask_for(&mut raw, &hub, &probe, 30, MIB).await;
        done(&hub).await;
        let stopping = tokio::spawn(server.stop());
        tokio::time::sleep(Duration::from_millis(300)).await;
        read_answers(&mut raw, 30, Duration::ZERO).await;
        assert_eq!(raw.closed().await, Some(1000));
        stopping.await.unwrap();
        assert!(hub.peers().is_empty());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_stops_admits_nobody() {
    limited(async {
        let probe = Arc::new(Probe::default());
        let (hub, server) = listen(Hub::new(CallHandler::new(operations(&probe)))).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        raw.request("long", "test.wait", json!({ "key": "k", "milliseconds": LONG })).await;
        eventually("it runs", || hub.running() == 1).await;
        let url = server.url();
        let stopping = tokio::spawn(server.stop());
        raw.hear_type("link.drain").await;
        raw.say(json!({ "type": "link.drained", "payload": {} })).await;
        let error = WebSocketClient::connect(&url, WebSocketConfig::new()).await.unwrap_err();
        assert!(error.message().contains("503"), "{error}");
        probe.let_go();
        assert_eq!(raw.hear("long").await["type"], "call.responded");
        stopping.await.unwrap();
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_stops_though_a_peer_goes_on_asking() {
    limited(async {
        let (hub, server) = listen(Hub::new(CallHandler::new(operations(&Arc::default())))).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        let wait = json!({ "key": "k", "milliseconds": 300 });
        raw.request("first", "test.wait", wait.clone()).await;
        eventually("it runs", || hub.running() == 1).await;
        let begun = Instant::now();
        let stopping = tokio::spawn(server.stop());
        // It says that it sends no more requests, and does.
        raw.say(json!({ "type": "link.drained", "payload": {} })).await;
        let mut n = 0;
        while !stopping.is_finished() {
            assert!(begun.elapsed() < Duration::from_secs(30), "the hub does not stop");
            let frame = json!({
                "type": "call.requested", "id": n.to_string(),
                "payload": { "requestId": n.to_string(), "operationId": "test.wait", "input": wait },
            });
            let sent = raw.0.send(Message::text(frame.to_string())).await;
            if sent.is_err() {
                break;
            }
            n += 1;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        stopping.await.unwrap();
        // What ran was finished.
        assert_eq!(raw.hear("first").await["type"], "call.responded");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_beyond_the_limit_of_its_peer_fails_alone() {
    limited(async {
        let handler = CallHandler::new(operations(&Arc::default())).with_max_bytes(MIB, 256 * MIB);
        let (hub, server) = listen(Hub::new(handler)).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        raw.request("held", "test.wait", json!({ "key": "k".repeat(MIB * 2 / 5), "milliseconds": 60_000 })).await;
        eventually("it runs", || hub.running() == 1).await;
        raw.request("large", "test.echo", json!({ "value": "x".repeat(3 * MIB) })).await;
        let error = raw.hear("large").await;
        assert_eq!((&error["type"], &error["payload"]["details"]["limit"]), (&json!("call.error"), &json!(MIB)));
        raw.request("small", "test.add", json!({ "a": 1, "b": 1 })).await;
        assert_eq!(raw.hear("small").await["payload"]["output"]["data"], 2);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_that_are_refused() {
    limited(async {
        let handler = CallHandler::new(operations(&Arc::default())).with_max_running(1);
        let (hub, server) = listen(Hub::new(handler)).await;
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        // An id that nobody means well with is no request's.
        raw.request(&"i".repeat(2_000), "test.wait", json!({ "key": "k", "milliseconds": 60_000 })).await;
        raw.request("one", "test.wait", json!({ "key": "k", "milliseconds": 60_000 })).await;
        raw.request("two", "test.wait", json!({ "key": "k", "milliseconds": 60_000 })).await;
        let error = raw.hear("two").await;
        assert_eq!(hub.running(), 1);
        assert_eq!(error["payload"]["details"], json!({ "limit": 1 }), "{error}");
        assert!(error["payload"]["message"].as_str().unwrap().contains("with_max_running"), "{error}");
        raw.say(json!({ "type": "call.aborted", "id": "one", "payload": { "requestId": "one" } })).await;
        eventually("it is given up", || hub.running() == 0).await;
        // A subscription, which has a window, to what is none.
        raw.say(json!({
            "type": "call.requested", "id": "items",
            "payload": { "requestId": "items", "operationId": "test.add", "input": { "a": 1, "b": 1 }, "windowBytes": 9 },
        }))
        .await;
        let error = raw.hear("items").await;
        assert_eq!((&error["type"], &error["payload"]["code"]), (&json!("call.error"), &json!("EXECUTION_ERROR")));
        // A call, which takes one result, of what gives many.
        raw.say(json!({
            "type": "call.requested", "id": "result",
            "payload": { "requestId": "result", "operationId": "test.count", "input": { "to": 1 }, "oneResult": true },
        }))
        .await;
        let error = raw.hear("result").await;
        assert_eq!(error["payload"]["message"], "`test.count` is a subscription: use `subscribe` or `stream`", "{error}");
    })
    .await;
}

/// A part of a message.
fn fragment(kind: Data, payload: Vec<u8>) -> Message {
    Message::Frame(Frame::message(payload, OpCode::Data(kind), false))
}

/// Pings between the parts of a message do not hide them from the budget.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_in_part_counts_whatever_comes_between_its_parts() {
    limited(async {
        let handler = CallHandler::new(operations(&Arc::default())).with_max_bytes(8 * MIB, 8 * MIB);
        let (hub, server) = listen(Hub::new(handler)).await;
        let mut parts = Vec::new();
        for n in 0..4 {
            let mut raw = Raw::connect(&server.url(), "anybody").await;
            raw.0.send(fragment(Data::Text, vec![b'x'; 30 << 10])).await.unwrap();
            for _ in 0..99 {
                let sent = raw.0.send(Message::Ping(vec![0; 100].into())).await;
                // The last of them may be disconnected.
                if sent.is_err() || raw.0.send(fragment(Data::Continue, vec![b'x'; 30 << 10])).await.is_err() {
                    assert!(n > 1);
                    break;
                }
            }
            parts.push(raw);
        }
        // Of four that hold 3 MB of 8 each, one is in the way.
        eventually("one is disconnected", || hub.peers().len() < 4).await;
    })
    .await;
}

/// What a hub has read of subscriptions that it passes on counts as held by whoever does not read it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_that_are_passed_on_count() {
    limited(async {
        let hub = Hub::new(CallHandler::new(Registry::new()).with_max_bytes(4 * MIB, 256 * MIB));
        let (hub, server) = listen(hub.with_anonymous_serving().with_forwarding()).await;
        let probe = Arc::new(Probe::default());
        let registry = registry(&probe);
        let spec = OperationSpec::new(OperationKind::Subscription, "endless", "texts").unwrap();
        let made = Arc::new(AtomicUsize::new(0));
        let items = made.clone();
        let handler = Handler::dynamic_stream(move |_: Value, _| {
            let items = items.clone();
            async move {
                Ok(futures_util::stream::iter(0..).map(move |_: u64| {
                    items.fetch_add(1, Ordering::Relaxed);
                    Ok(json!("x".repeat(100_000)))
                }))
            }
        });
        registry.register(Registration::new(spec, handler)).unwrap();
        let config = WebSocketConfig::new().with_handler(CallHandler::new(registry));
        let spoke = WebSocketClient::connect(&server.url(), config).await.unwrap();
        let ask = |id: String, window: usize| {
            let payload =
                json!({ "requestId": id, "operationId": "endless.texts", "input": {}, "windowBytes": window });
            json!({ "type": "call.requested", "id": id, "payload": payload })
        };
        // One that gives no credit has little ahead of it, and of that little in the hub.
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        eventually("it is served", || hub.remote().list().iter().any(|spec| spec.id == "endless.texts")).await;
        raw.say(ask("one".to_owned(), 8 * MIB)).await;
        for _ in 0..64 {
            assert_eq!(raw.hear("one").await["type"], "call.responded");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let ahead = made.load(Ordering::Relaxed) - 64;
        assert!(ahead <= 8, "{ahead} items wait in the hub");
        // Sixty of them, with an item each, hold more than it may.
        let mut refused = None;
        for n in 0..60 {
            raw.say(ask(n.to_string(), 1)).await;
            // Whoever does not read what it asked for is not read.
            let heard = raw.hear(&n.to_string()).await;
            if heard["type"] == "call.error" {
                refused = Some(heard);
            }
        }
        eventually("some are refused", || hub.remote().in_flight() < 61).await;
        for n in 0..60 {
            let payload = json!({ "requestId": n.to_string(), "items": 3 });
            raw.say(json!({ "type": "link.credit", "id": n.to_string(), "payload": payload })).await;
        }
        let error = match refused {
            Some(error) => error,
            None => raw.hear_type("call.error").await,
        };
        assert_eq!(error["payload"]["details"], json!({ "limit": 4 * MIB }), "{error}");
        drop(raw);
        // Another has all of its own.
        let mut raw = Raw::connect(&server.url(), "anybody").await;
        raw.say(ask("other".to_owned(), 1)).await;
        assert_eq!(raw.hear("other").await["type"], "call.responded");
        drop(raw);
        eventually("nothing is left", || hub.running() == 0 && spoke.remote().in_flight() == 0).await;
        spoke.stop().await;
    })
    .await;
}

/// Either side announces what it serves in messages that the other takes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_are_announced_to_whoever_takes_small_messages() {
    limited(async {
        // 300 KiB of specs, one of which has 130.
        let served = || {
            let registry = Registry::new();
            for n in 0..60 {
                let mut spec = OperationSpec::new(OperationKind::Query, "described", format!("n{n}").as_str()).unwrap();
                let bytes = if n == 7 { 130 << 10 } else { 3 << 10 };
                spec.input = Schema::from(json!({ "description": "x".repeat(bytes) }));
                let handler = Handler::dynamic(|input: Value, _| async move { Ok(input) });
                registry.register(Registration::new(spec, handler)).unwrap();
            }
            CallHandler::new(registry)
        };
        let (_hub, server) = listen(Hub::new(served())).await;
        let config = WebSocketConfig::new().with_max_message(64 << 10);
        let spoke = WebSocketClient::connect(&server.url(), config).await.unwrap();
        assert_eq!(spoke.remote().list().len(), 60);
        assert_eq!(spoke.remote().call("described.n7", json!(7)).await.unwrap().data, 7);
        spoke.stop().await;
        let hub = Hub::new(CallHandler::new(Registry::new())).with_max_message(100 << 10).with_anonymous_serving();
        let (hub, server) = listen(hub).await;
        let config = WebSocketConfig::new().with_handler(served());
        let spoke = WebSocketClient::connect(&server.url(), config).await.unwrap();
        eventually("all of them are known", || hub.remote().list().len() == 60).await;
        spoke.stop().await;
    })
    .await;
}
