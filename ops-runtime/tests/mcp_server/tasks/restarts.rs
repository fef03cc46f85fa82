//! Tasks on NATS `JetStream`: the worker is another process, and both it and the server start anew.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ops_runtime::access::Identity;
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::{Jobs, RetryPolicy, Worker};
use ops_runtime::mcp::McpServer;
use serde_json::json;

use super::{code, registry, run, tasks};
use crate::client::{Client, REVISIONS};
use crate::servers::Servers;

const URL: &str = "OPS_TASKS_NATS";

fn config() -> JetStreamConfig {
    JetStreamConfig::new().with_prefix("tasks").with_lease(Duration::from_secs(4)).with_lanes(4)
}

fn on(engine: JetStream) -> Jobs {
    Jobs::new(engine).with_retry("*", RetryPolicy::new(3).with_backoff(Duration::ZERO, Duration::ZERO))
}

/// Not a test, but the other process of one.
#[tokio::test]
#[ignore = "another test runs it, in a process of its own"]
async fn works_for_another_test() {
    let Ok(url) = std::env::var(URL) else { return };
    let engine = JetStream::connect(&url, config().with_replicas(1)).await.unwrap();
    let _worker = Worker::new(on(engine), registry()).start();
    std::future::pending::<()>().await;
}

struct Process(Child);

impl Process {
    fn start(servers: &Servers) -> Self {
        let name = "tasks::restarts::works_for_another_test";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact", "--ignored"]).env(URL, servers.url());
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // As a crash would.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_task_that_may_have_begun() {
    let mut servers = Servers::start(1, "2m").await;
    let jobs = on(servers.engine(config().with_request_timeout(Duration::from_secs(2))).await);
    let mut client = Client::connect(McpServer::new(registry()).with_tasks(tasks(&jobs)), REVISIONS[0]).await;
    client.begin("job_must", json!({ "number": 1 })).await;
    servers.kill(0);
    let params = json!({ "name": "job_must", "arguments": { "number": 1 }, "task": {} });
    let failed = client.request("tools/call", params).await;
    assert_eq!(code(&failed), -32603, "{failed}");
    assert!(failed["error"]["message"].as_str().unwrap().contains("may have begun"), "{failed}");
}

#[tokio::test]
async fn a_task_survives_its_server_and_its_worker() {
    let servers = Servers::start(1, "2m").await;
    let connect = async |who: &str, revision| {
        let jobs = on(servers.engine(config()).await);
        let server = McpServer::new(registry()).with_tasks(tasks(&jobs)).with_identity(Identity::new(who));
        let capabilities = json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } });
        Client::connect_with(server, revision, capabilities).await
    };
    let worker = Process::start(&servers);
    let mut client = connect("ann", REVISIONS[0]).await;
    let jobs = on(servers.engine(config()).await);
    let (slow, asks) = (json!({ "millis": 10_000, "text": "survived" }), json!({}));
    let asking = client.begin("job_ask", asks).await;
    let doomed = client.begin("job_work", json!({ "millis": 60_000, "text": "doomed" })).await;
    client.until(&asking, "input_required").await;
    // Last, since it ends by itself: it still runs when its worker dies.
    let slow = client.begin("job_work", slow).await;
    run(&jobs, "jobs", 3).await;
    // The server dies, and so does the worker, in the middle of all three.
    drop(client);
    drop(worker);
    let mut client = connect("ann", REVISIONS[0]).await;
    assert_eq!(client.of_task("tasks/get", &slow).await["result"]["status"], "working");
    let _worker = Process::start(&servers);
    let cancelled = client.of_task("tasks/cancel", &doomed).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    let result = client.of_task("tasks/result", &slow).await;
    assert_eq!(result["result"]["structuredContent"], json!({ "result": "survived" }), "{result}");
    // What was asked is still asked, and a client of the other revision answers it.
    let mut other = connect("ann", REVISIONS[1]).await;
    let accept = json!({ "action": "accept", "content": { "name": "Ann" } });
    let update = json!({ "taskId": asking["taskId"], "inputResponses": { "first": accept, "second": accept } });
    while other.of_task("tasks/get", &asking).await["result"]["inputRequests"]
        .as_object()
        .is_none_or(|all| all.len() < 2)
    {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(other.request("tasks/update", update).await["result"], json!({ "resultType": "complete" }));
    let done = other.until(&asking, "completed").await;
    assert_eq!(done["result"]["structuredContent"], json!(["Ann", "Ann"]), "{done}");
    let listed = client.request("tasks/list", json!({})).await["result"]["tasks"].clone();
    let mut states: Vec<_> = listed.as_array().unwrap().iter().map(|task| task["status"].as_str().unwrap()).collect();
    states.sort_unstable();
    assert_eq!(states, ["cancelled", "completed", "completed"]);
    // Others see none of it.
    let mut bob = connect("bob", REVISIONS[0]).await;
    assert_eq!(bob.request("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    assert_eq!(code(&bob.of_task("tasks/get", &slow).await), -32602);
    // A caller whose queue has never been used has none, and that is no error.
    let jobs = Jobs::new(servers.engine(JetStreamConfig::new().with_prefix("fresh")).await);
    let mut fresh = Client::connect(McpServer::new(registry()).with_tasks(jobs), REVISIONS[0]).await;
    assert_eq!(fresh.request("tasks/list", json!({})).await["result"], json!({ "tasks": [] }));
    assert_eq!(code(&fresh.of_task("tasks/get", &slow).await), -32602);
}
