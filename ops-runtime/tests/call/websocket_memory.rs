//! What the peers of a hub may hold of its memory together, and by what they send for others.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ops_runtime::Registry;
use ops_runtime::call::CallHandler;
use ops_runtime::call::websocket::Hub;
use serde_json::{Value, json};

use crate::harness::{LONG, eventually, limited};
use crate::operations::Probe;
use crate::websocket_bounds::operations;
use crate::websocket_faults::{Raw, spec};

const MIB: usize = 1 << 20;

/// What a spoke sends ahead of a subscriber counts, whatever part of an item it is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_of_a_forwarded_item_counts() {
    limited(async {
        let hub = Hub::new(CallHandler::new(Registry::new()).with_max_bytes(MIB, 256 * MIB));
        let hub = hub.with_anonymous_serving().with_forwarding();
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        let mut spoke = Raw::connect(&server.url(), "anybody").await;
        spoke.say(json!({ "type": "link.announce", "payload": { "add": [spec("items", "subscription")] } })).await;
        eventually("it is served", || hub.remote().list().len() == 1).await;
        let large = "x".repeat(200 << 10);
        let payload = |kind: &str, id: &Value| match kind {
            "call.error" => json!({ "requestId": id, "code": "NO", "message": "no", "details": large, "more": true }),
            _ => {
                let meta = json!({ "source": "local", "operationId": large, "timestamp": 0 });
                json!({ "requestId": id, "output": { "data": 0, "meta": meta } })
            }
        };
        for (n, kind) in ["call.error", "call.responded"].into_iter().enumerate() {
            let mut reader = Raw::connect(&server.url(), "anybody").await;
            let id = n.to_string();
            reader.request(&id, "raw.items", json!({})).await;
            let asked = spoke.hear_type("call.requested").await["payload"]["requestId"].clone();
            // More than the hub passes on without credit, by a few that it has to keep.
            for _ in 0..75 {
                spoke.say(json!({ "type": kind, "id": asked, "payload": payload(kind, &asked) })).await;
            }
            // What was sent of the one before may be aborted, too.
            let aborted = async { while spoke.hear_type("call.aborted").await["payload"]["requestId"] != asked {} };
            tokio::time::timeout(Duration::from_secs(20), aborted).await.expect("all of it is kept");
            let credit = json!({ "requestId": id, "items": 64 });
            reader.say(json!({ "type": "link.credit", "id": id, "payload": credit })).await;
            let last = loop {
                let frame = reader.hear(&id).await;
                if frame["type"] == "call.error" && frame["payload"]["more"] != true {
                    break frame;
                }
            };
            assert_eq!(last["payload"]["details"], json!({ "limit": MIB }), "{last}");
        }
    })
    .await;
}

/// A peer that is not read because all memory is in use is read when others release some.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_is_read_when_others_release_memory() {
    limited(async {
        let probe = Arc::new(Probe::default());
        let handler = CallHandler::new(operations(&probe)).with_max_bytes(16 * MIB, 4 * MIB);
        let hub = Hub::new(handler).with_anonymous_serving();
        let server = hub.listen("127.0.0.1:0").await.unwrap();
        // What it announces is kept, and is more than each may hold in any case.
        let mut peer = Raw::connect(&server.url(), "anybody").await;
        let mut large = spec("op", "query");
        large["description"] = "x".repeat(600 << 10).into();
        peer.say(json!({ "type": "link.announce", "payload": { "add": [large] } })).await;
        eventually("it is served", || hub.remote().list().len() == 1).await;
        // Others hold the rest, and a little more.
        let mut others = Vec::new();
        for n in 0..9 {
            let mut other = Raw::connect(&server.url(), "anybody").await;
            let filler = "x".repeat(if n == 0 { 3 * MIB } else { 100 << 10 });
            other.request("held", "slow.text", json!({ "bytes": 1, "milliseconds": LONG, "filler": filler })).await;
            eventually("it runs", || hub.running() == n + 1).await;
            others.push(other);
        }
        peer.request("later", "test.add", json!({ "a": 1, "b": 1 })).await;
        let early = tokio::time::timeout(Duration::from_millis(500), peer.hear("later")).await;
        assert!(early.is_err(), "it is read though there is no memory");
        let begun = Instant::now();
        probe.let_go();
        assert_eq!(peer.hear("later").await["payload"]["output"]["data"], 2);
        assert!(begun.elapsed() < Duration::from_secs(3), "it took {:?}", begun.elapsed());
    })
    .await;
}
