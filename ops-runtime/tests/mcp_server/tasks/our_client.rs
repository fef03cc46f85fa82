//! Our own client with our own server, in both revisions.

use std::time::Duration;

use ops_runtime::durable::Jobs;
use ops_runtime::mcp::{ElicitationAnswer, McpClient, McpServerConfig};
use ops_runtime::{CallOptions, ErrorCode};
use serde_json::{Value, json};

use super::{dropped, jobs, server, worker};
use crate::conformance::serve;

async fn client(jobs: &Jobs) -> McpClient {
    let url = serve(server(jobs)).await;
    let config = McpServerConfig::http(url)
        .with_namespace("s")
        .with_elicitation(|request| async move { ElicitationAnswer::Accept(json!({ "name": request.message })) });
    McpClient::connect(config.with_timeout(Duration::from_secs(20))).await.unwrap()
}

#[tokio::test]
async fn a_call_that_is_answered_by_a_task() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let client = client(&jobs).await;
    assert_eq!(client.server_info().protocol_version, "2026-07-28");
    let call = async |tool: &str, input: Value| client.call(&format!("s.{tool}"), input).await;
    assert_eq!(call("job_work", json!({ "millis": 400, "text": "late" })).await.unwrap().data, "late");
    assert_eq!(call("job_must", json!({ "number": 41 })).await.unwrap().data, 42);
    assert_eq!(call("job_ask", json!({})).await.unwrap().data, json!(["first", "second"]));
    let failed = call("job_fail", json!({ "code": "SOLD_OUT" })).await.unwrap();
    assert!(failed.meta.as_mcp().unwrap().is_error && failed.data[0]["text"].as_str().unwrap().starts_with("SOLD_OUT"));
    client.close().await;
}

#[tokio::test]
async fn who_waits_no_longer_cancels_the_task() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let client = client(&jobs).await;
    let input = json!({ "millis": 60_000, "text": "given up" });
    let options = CallOptions::new().with_timeout(Duration::from_secs(4));
    let error = client.call_with("s.job_work", input, options).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
    dropped("given up").await;
    client.close().await;
}
