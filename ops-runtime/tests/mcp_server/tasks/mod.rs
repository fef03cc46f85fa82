//! Tool calls that are tasks.

mod asks;
mod bounds;
mod conformance;
mod earlier;
mod extension;
mod http;
#[cfg(feature = "mcp-http")]
mod our_client;
#[cfg(feature = "jetstream")]
mod restarts;
mod sdk;

use std::sync::Mutex;
use std::time::Duration;

use ops_runtime::durable::{Jobs, RetryPolicy, Worker, WorkerHandle};
use ops_runtime::mcp::{McpPeer, McpServer, McpTasks, TaskSupport};
use ops_runtime::registry::Progress;
use ops_runtime::{CallError, Context, Registry, operation};
use serde_json::{Value, json};

use crate::client::Client;

/// Works for a while.
#[operation(namespace = "job", kind = query)]
async fn work(millis: u64, text: String) -> String {
    let mut running = Running { text: text.clone(), is_done: false };
    tokio::time::sleep(Duration::from_millis(millis)).await;
    running.is_done = true;
    text
}

/// The texts of the handlers that were dropped where they stood.
static DROPPED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Running {
    text: String,
    is_done: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_done {
            DROPPED.lock().unwrap().push(std::mem::take(&mut self.text));
        }
    }
}

/// How often the tests ask for what has to come, 20 ms apart: for half a minute at least.
const ASKS: usize = 1_500;

/// Waits until the handler with that text is dropped.
async fn dropped(text: &str) {
    for _ in 0..ASKS {
        if DROPPED.lock().unwrap().iter().any(|dropped| dropped == text) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the handler `{text}` still runs");
}

/// Fails, in a way that its caller may know.
#[operation(namespace = "job", kind = mutation)]
async fn fail(code: String) -> Result<String, CallError> {
    Err(CallError::new(code, "there is none").with_details(json!({ "left": 0 })))
}

/// Fails with a secret.
#[operation(namespace = "job", kind = mutation)]
async fn leak() -> Result<String, CallError> {
    Err(CallError::execution("the password is hunter2"))
}

/// Says hello, and is no task.
#[operation(namespace = "job", kind = query)]
async fn greet(name: String) -> String {
    format!("Hello, {name}!")
}

/// Gives a number that readers which are a little faster miss by one in the last place.
#[operation(namespace = "job", kind = query)]
async fn exact() -> f64 {
    31.245270191439438
}

/// Is always a task.
#[operation(namespace = "job", kind = mutation)]
async fn must(number: i64) -> i64 {
    number + 1
}

/// Is for few.
#[operation(namespace = "job", kind = mutation, scopes("job:guard"))]
async fn guard() -> String {
    "guarded".to_owned()
}

/// Tells how far it is.
#[operation(namespace = "job", kind = query)]
async fn report(context: &Context) -> u32 {
    for step in 1..=3_u32 {
        tokio::time::sleep(Duration::from_millis(60)).await;
        context.report(Progress::new(f64::from(step)).with_total(3.0));
    }
    3
}

/// Says who calls.
#[operation(namespace = "job", kind = query)]
async fn whoami(context: &Context) -> Option<String> {
    context.identity().map(|identity| identity.id.clone())
}

/// Asks two questions at once, and says what was answered.
#[operation(namespace = "job", kind = mutation)]
async fn ask(context: &Context) -> Result<Vec<String>, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    let (first, second) = tokio::try_join!(name(&peer, "first"), name(&peer, "second"))?;
    Ok(vec![first, second])
}

/// Asks a question. If nobody answers in time, it works on for a while, or fails.
#[operation(namespace = "job", kind = mutation)]
async fn insist(context: &Context, millis: Option<u64>) -> Result<String, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    let answered = name(&peer, "first").await;
    let (Some(millis), Err(_)) = (millis, &answered) else { return answered };
    tokio::time::sleep(Duration::from_millis(millis)).await;
    Ok("nobody".to_owned())
}

async fn name(peer: &McpPeer, key: &str) -> Result<String, CallError> {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let answer = peer.ask(key, "elicitation/create", json!({ "message": key, "requestedSchema": schema })).await?;
    Ok(answer["content"]["name"].as_str().unwrap_or("nobody").to_owned())
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(Work).unwrap();
    registry.register(Fail).unwrap();
    registry.register(Leak).unwrap();
    registry.register(Greet).unwrap();
    registry.register(Exact).unwrap();
    registry.register(Must).unwrap();
    registry.register(Guard).unwrap();
    registry.register(Report).unwrap();
    registry.register(Whoami).unwrap();
    registry.register(Ask).unwrap();
    registry.register(Insist).unwrap();
    registry
}

fn jobs() -> Jobs {
    Jobs::in_memory().with_retry("*", RetryPolicy::once())
}

fn tasks(jobs: &Jobs) -> McpTasks {
    let tasks = McpTasks::new(jobs.clone()).with_poll_interval(Duration::from_millis(50));
    let tasks = tasks.with_support("job.greet", TaskSupport::Forbidden).with_support("job.must", TaskSupport::Required);
    tasks.with_inline_timeout(Duration::from_millis(100))
}

fn server(jobs: &Jobs) -> McpServer {
    McpServer::new(registry()).with_tasks(tasks(jobs))
}

fn worker(jobs: &Jobs) -> WorkerHandle {
    Worker::new(jobs.clone(), registry()).start()
}

/// Waits until so many jobs of the queue run.
async fn run(jobs: &Jobs, queue: &str, many: u64) {
    for _ in 0..ASKS {
        if jobs.stats(queue).await.unwrap().running == many {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("there are not {many} jobs of `{queue}` that run");
}

impl Client {
    /// Calls a tool as a task of 2025-11-25, and gives the task.
    async fn begin(&mut self, tool: &str, arguments: Value) -> Value {
        let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": 60_000 } });
        let answer = self.request("tools/call", params).await;
        let task = answer["result"]["task"].clone();
        assert_eq!(task["status"], "working", "{answer}");
        task
    }

    /// Asks something of a task.
    async fn of_task(&mut self, method: &str, task: &Value) -> Value {
        let params = json!({ "taskId": task["taskId"] });
        self.request(method, params).await
    }

    /// Asks about a task until it is in that state.
    async fn until(&mut self, task: &Value, status: &str) -> Value {
        for _ in 0..ASKS {
            let answer = self.of_task("tasks/get", task).await;
            if answer["result"]["status"] == status {
                return answer["result"].clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("it never was {status}: {}", self.of_task("tasks/get", task).await);
    }
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_else(|| panic!("no error: {answer}"))
}
