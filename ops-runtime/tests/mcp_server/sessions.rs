//! How many sessions there are over HTTP, and which of them end for others.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use futures_util::future::join_all;
use ops_runtime::adapter::Handler;
use ops_runtime::mcp::{McpServerOptions, McpService};
use ops_runtime::spec::OperationKind;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};

use crate::client::{PATIENCE, REVISIONS};
use crate::http::Ask;
use crate::streams::with;

/// A service whose tool adds a permit to the first semaphore, and ends when the second is closed.
fn waiting(options: McpServerOptions) -> (McpService, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let signals = (begun.clone(), open.clone());
    let handler = Handler::dynamic(move |_: Value, _| {
        let (begun, open) = signals.clone();
        async move {
            begun.add_permits(1);
            let _ = open.acquire().await;
            Ok(json!({}))
        }
    });
    (with(OperationKind::Query, handler).with_options(options).into_service(), begun, open)
}

/// Asks until the answer has this status.
async fn until(status: StatusCode, ask: impl Fn() -> Ask) {
    let asking = async {
        while ask().send("tools/list", json!({})).await.status != status {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asking).await.expect("that status in time");
}

#[tokio::test]
async fn a_session_ends_for_a_new_one_unless_all_are_in_use() {
    let (service, begun, open) = waiting(McpServerOptions::default().with_max_sessions(2));
    let ask = || Ask::new(&service, REVISIONS[0]);
    let of = |session: &str| ask().with("mcp-session-id", session);
    let (first, second) = (ask().initialize().await, ask().initialize().await);
    until(StatusCode::OK, || of(&second)).await;
    // The first one only began.
    let third = ask().initialize().await;
    until(StatusCode::NOT_FOUND, || of(&first)).await;
    let call = json!({ "name": "demo_run", "arguments": {} });
    let calls = [&second, &third].map(|session| of(session).send("tools/call", call.clone()));
    let mut running = Box::pin(join_all(calls));
    tokio::select! {
        answers = &mut running => panic!("{}", answers[0].text),
        permits = timeout(PATIENCE, begun.acquire_many(2)) => permits.expect("both begin in time").unwrap().forget(),
    }
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": info });
    let refused = ask().send("initialize", params).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text);
    assert!(refused.text.contains("max_sessions"), "{}", refused.text);
    open.close();
    assert!(running.await.iter().all(|answer| answer.status == StatusCode::OK));
}
