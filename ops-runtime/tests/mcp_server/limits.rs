//! The limits of a server over HTTP: requests of a session, sessions, and results that wait to be read.

use std::sync::Arc;

use axum::http::StatusCode;
use futures_util::future::join_all;
use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::mcp::{McpServer, McpServerOptions, McpService};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{Duration, sleep, timeout};

use crate::client::{PATIENCE, REVISIONS};
use crate::fixture::server;
use crate::http::{Answer, Ask};

/// A service whose tool `demo_wait` adds a permit to the first semaphore, and ends when the second is closed.
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
    let registry = Registry::new();
    registry.register(Registration::new(OperationSpec::query("demo.wait"), handler)).unwrap();
    (McpServer::new(registry).with_options(options).into_service(), begun, open)
}

fn call() -> Value {
    json!({ "name": "demo_wait", "arguments": {} })
}

/// Asks until the answer has this status, and gives it.
async fn until(status: StatusCode, ask: impl Fn() -> Ask) -> Answer {
    let asking = async {
        loop {
            let answer = ask().send("tools/list", json!({})).await;
            if answer.status == status {
                return answer;
            }
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asking).await.expect("that status in time")
}

#[tokio::test]
async fn a_session_has_so_many_requests_at_a_time() {
    let (service, begun, open) = waiting(McpServerOptions::default().with_max_session_requests(1));
    let (own, other) = (ask(&service).initialize().await, ask(&service).initialize().await);
    let asking = || ask(&service).with("mcp-session-id", &own);
    let mut running = Box::pin(asking().send("tools/call", call()));
    tokio::select! {
        answer = &mut running => panic!("{}", answer.text),
        permit = timeout(PATIENCE, begun.acquire()) => permit.expect("it begins in time").unwrap().forget(),
    }
    let refused = asking().send("tools/list", json!({})).await;
    assert_eq!(refused.status, StatusCode::TOO_MANY_REQUESTS, "{}", refused.text);
    assert!(refused.text.contains("max_session_requests"), "{}", refused.text);
    let answer = ask(&service).with("mcp-session-id", &other).send("tools/list", json!({})).await;
    assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
    open.close();
    assert_eq!(running.await.status, StatusCode::OK);
    until(StatusCode::OK, asking).await;
}

#[tokio::test]
async fn a_session_ends_for_a_new_one_unless_all_are_in_use() {
    let (service, begun, open) = waiting(McpServerOptions::default().with_max_sessions(2));
    let of = |session: &str| ask(&service).with("mcp-session-id", session);
    let (first, second) = (ask(&service).initialize().await, ask(&service).initialize().await);
    until(StatusCode::OK, || of(&second)).await;
    // The first one only began.
    let third = ask(&service).initialize().await;
    until(StatusCode::NOT_FOUND, || of(&first)).await;
    let mut running = Box::pin(join_all([&second, &third].map(|session| of(session).send("tools/call", call()))));
    tokio::select! {
        answers = &mut running => panic!("{}", answers[0].text),
        permits = timeout(PATIENCE, begun.acquire_many(2)) => permits.expect("both begin in time").unwrap().forget(),
    }
    let refused = ask(&service).begin().await;
    assert_eq!(
        (refused.status, &refused.headers["retry-after"]),
        (StatusCode::SERVICE_UNAVAILABLE, &"1".parse().unwrap())
    );
    assert!(refused.text.contains("max_sessions"), "{}", refused.text);
    open.close();
    assert!(running.await.iter().all(|answer| answer.status == StatusCode::OK));
}

#[tokio::test]
async fn results_that_wait_to_be_read_are_bounded() {
    let service = server().with_options(McpServerOptions::default().with_max_unread_bytes(1_000)).into_service();
    let asking = || Ask::new(&service, REVISIONS[1]);
    until(StatusCode::OK, asking).await;
    let echo = json!({ "name": "odd_anything", "arguments": { "x": "x".repeat(1_000) } });
    let unread = asking().unread("tools/call", echo).await;
    assert_eq!(unread.status(), StatusCode::OK);
    let refused = until(StatusCode::SERVICE_UNAVAILABLE, asking).await;
    assert!(refused.text.contains("max_unread_bytes"), "{}", refused.text);
    drop(unread);
    until(StatusCode::OK, asking).await;
}

fn ask(service: &McpService) -> Ask {
    Ask::new(service, REVISIONS[0])
}
