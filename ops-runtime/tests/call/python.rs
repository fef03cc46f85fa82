//! A program of another language takes part: it calls and serves, by what the documentation says.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::call::CallHandler;
use ops_runtime::call::websocket::Hub;
use ops_runtime::{CallOptions, ErrorCode};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;

use crate::harness::{eventually, limited};
use crate::operations::{Probe, registry};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_in_python() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let python = format!("{root}/tests/peers/.venv/bin/python");
    assert!(std::path::Path::new(&python).exists(), "no Python environment: run tests/peers/install");
    let probe = Arc::new(Probe::default());
    let hub = Hub::new(CallHandler::new(registry(&probe))).with_anonymous_serving();
    let server = hub.listen("127.0.0.1:0").await.unwrap();
    let mut child = Command::new(python)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/call/peer.py"))
        .arg(server.url())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    limited(async {
        // It calls us, and says so if all was well.
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        for expected in ["call", "error", "subscription", "abort", "unknown"] {
            assert_eq!(lines.next_line().await.unwrap().as_deref(), Some(expected));
        }
        eventually("it left nothing behind", || probe.alive() == 0 && hub.running() == 0).await;

        // We call it.
        let remote = hub.remote();
        assert_eq!(remote.list().len(), 3);
        let greeting = remote.call("py.greet", json!({ "name": "Ann" })).await.unwrap();
        assert_eq!(greeting.data, "hello, Ann");
        let error = remote.call("py.greet", json!({ "name": "" })).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Domain("NO_NAME".into()));
        // It minds the window.
        let ticks = remote.stream("py.ticks", json!({ "to": 500 })).await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let ticks: Vec<_> = ticks.map(|tick| tick.unwrap().data).collect().await;
        assert!(ticks.into_iter().eq((0..500).map(|n| json!(n))));
        // And stops what nobody waits for.
        let options = CallOptions::new().with_timeout(Duration::from_secs(1));
        let error = remote.call_with("py.greet", json!({ "name": "slowly" }), options).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Timeout);
        assert_eq!(remote.call("py.stop", json!({})).await.unwrap().data, json!({ "stopped": ["py.greet"] }));
        assert!(child.wait().await.unwrap().success());
        eventually("the hub has no spoke", || hub.peers().is_empty()).await;
    })
    .await;
}
