//! Tools that run as tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ops_runtime::ErrorCode;
use ops_runtime::mcp::ElicitationAnswer;
use serde_json::json;

use crate::faults::{call, cancelled, faulty, text};
use crate::peers::{connect, everything_over_http, npm};

#[tokio::test]
async fn a_tool_that_requires_a_task_is_called_as_one() {
    let (_child, http) = everything_over_http().await;
    for config in [npm("server-everything", &["stdio"]), http] {
        let asked = Arc::new(AtomicUsize::new(0));
        let counted = asked.clone();
        let config = config.with_namespace("everything").with_elicitation(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            async { ElicitationAnswer::Accept(json!({ "interpretation": "snake" })) }
        });
        let client = connect(config.with_timeout(Duration::from_secs(20))).await;
        let input = json!({ "topic": "python", "ambiguous": true });
        let report = client.call("everything.simulate-research-query", input).await.unwrap().data;
        let text = report[0]["text"].as_str().unwrap();
        assert!(text.starts_with("# Research Report: python (snake)"), "{text}");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        client.close().await;
    }
}

#[tokio::test]
async fn a_task_that_takes_too_long() {
    let config = npm("server-everything", &["stdio"]).with_namespace("everything");
    let client = connect(config.with_total_timeout(Duration::from_millis(1_500))).await;
    let begun = Instant::now();
    let input = json!({ "topic": "rust" });
    let error = client.call("everything.simulate-research-query", input).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
    assert!(error.message().contains("with_total_timeout") && begun.elapsed() < Duration::from_secs(30), "{error}");
    client.close().await;
}

#[tokio::test]
async fn a_task_goes_on_when_requests_about_it_fail() {
    let client = connect(faulty("tasks shaky")).await;
    assert_eq!(call(&client, "job", json!({})).await, Ok(text("done")));
    client.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_say_that_it_has_cancelled_a_task_is_not_waited_for() {
    let client = connect(faulty("tasks asks rarely").with_total_timeout(Duration::from_secs(2))).await;
    let error = call(&client, "job", json!({})).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
    // It is told that nobody waits for the result, and later that nobody waits for `tasks/cancel`, which it never answers.
    cancelled(&client, 2).await;
    client.close().await;
}
