//! The scenarios of the conformance suite for the extension of 2026-07-28.

use std::time::Duration;

use ops_runtime::durable::{RetryPolicy, Worker};
use ops_runtime::mcp::{McpPeer, McpServer, McpTasks, TaskSupport};
use ops_runtime::{CallError, Context, Registry, operation};
use serde_json::json;

use crate::client::REVISIONS;
use crate::conformance::{check, serve};

/// Not run through is `tasks-mrtr-composition`, whose tool asks before it becomes a task: ours becomes one, and asks then.
/// `tasks-status-notifications` skips itself.
const SCENARIOS: &[&str] = &[
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
];

#[operation(namespace = "t", kind = query)]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

#[operation(namespace = "t", kind = query)]
async fn slow_compute(seconds: u64, label: Option<String>) -> String {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    label.unwrap_or_default()
}

#[operation(namespace = "t", kind = mutation)]
async fn failing_job() -> Result<String, CallError> {
    tokio::time::sleep(Duration::from_secs(1)).await;
    Err(CallError::new("FAILED", "it always does"))
}

async fn confirmed(context: &Context, key: &str) -> Result<String, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    let schema = json!({ "type": "object", "properties": { "confirm": { "type": "boolean" } } });
    Ok(peer.ask(key, "elicitation/create", json!({ "message": key, "requestedSchema": schema })).await?.to_string())
}

#[operation(namespace = "t", kind = mutation)]
async fn confirm_delete(context: &Context, filename: String) -> Result<String, CallError> {
    Ok(format!("{filename}: {}", confirmed(context, "sure").await?))
}

#[operation(namespace = "t", kind = mutation)]
async fn multi_input(context: &Context) -> Result<String, CallError> {
    let (one, two) = tokio::try_join!(confirmed(context, "one"), confirmed(context, "two"))?;
    Ok(format!("{one} {two}"))
}

/// Runs until its worker is no more.
#[operation(namespace = "t", kind = mutation)]
async fn protocol_error_job() -> String {
    std::future::pending().await
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Greet).unwrap();
    registry.register(SlowCompute).unwrap();
    registry.register(FailingJob).unwrap();
    registry.register(ConfirmDelete).unwrap();
    registry.register(MultiInput).unwrap();
    registry.register(ProtocolErrorJob).unwrap();
    registry
}

#[tokio::test]
async fn tasks_conform() {
    use ops_runtime::durable::engine::EngineLimits;
    use ops_runtime::durable::{InMemory, Jobs};

    // A call waits far shorter for its result than a dead worker keeps it, else the death would be told before the task is.
    let engine = InMemory::new().with_limits(EngineLimits::DEFAULT.with_lease(Duration::from_secs(3)));
    let jobs = Jobs::new(engine).with_retry("*", RetryPolicy::once()).with_queue("t.protocol_error_job", "doomed");
    let _worker = Worker::new(jobs.clone(), registry()).with_queues(["jobs"]).start();
    let doomed = jobs.clone();
    tokio::spawn(async move {
        // Workers that die while they run, which is how a call ends without a result.
        loop {
            let worker = Worker::new(doomed.clone(), registry()).with_queues(["doomed"]).start();
            tokio::time::sleep(Duration::from_millis(300)).await;
            drop(worker);
        }
    });
    let tasks = McpTasks::new(jobs)
        .with_poll_interval(Duration::from_millis(100))
        .with_inline_timeout(Duration::from_millis(100))
        .with_support("t.greet", TaskSupport::Forbidden)
        .with_support("t.failing_job", TaskSupport::Required);
    let names = |spec: &ops_runtime::spec::OperationSpec| spec.name().to_owned();
    let server = McpServer::new(registry()).with_names(names).with_tasks(tasks);
    check(REVISIONS[1], SCENARIOS, &serve(server).await).await;
}
