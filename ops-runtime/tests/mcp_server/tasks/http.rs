//! Tasks over HTTP: sessions, single requests, callers, and a server that starts anew.

use ops_runtime::durable::Jobs;
use ops_runtime::mcp::McpService;
use serde_json::{Value, json};

use super::{code, jobs, server, worker};
use crate::client::REVISIONS;
use crate::http::{Ask, authenticated};
use crate::sessions::{come_back, last_id, rest};

/// A request of a session of its own.
async fn ask(service: &McpService, who: Option<&str>, method: &str, params: Value) -> Value {
    let ask = || {
        let ask = Ask::new(service, REVISIONS[0]);
        match who {
            Some(who) => ask.with("authorization", who),
            None => ask,
        }
    };
    let session = ask().initialize().await;
    ask().with("mcp-session-id", &session).send("notifications/initialized", json!({})).await;
    ask().with("mcp-session-id", &session).send(method, params).await.message()
}

/// A request that stands alone.
async fn single(service: &McpService, who: &str, method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    Ask::new(service, REVISIONS[1]).with("authorization", who).send(method, params).await.message()
}

fn work(millis: u64) -> Value {
    json!({ "name": "job_work", "arguments": { "millis": millis, "text": "done" }, "task": {} })
}

#[tokio::test]
async fn a_task_outlives_its_session_and_its_server() {
    let jobs = jobs();
    let begun = {
        let service = authenticated(server(&jobs));
        ask(&service, Some("Bearer ann"), "tools/call", work(50)).await["result"]["task"].clone()
    };
    let task = json!({ "taskId": begun["taskId"] });
    let _worker = worker(&jobs);
    let service = authenticated(server(&jobs));
    let result = ask(&service, Some("Bearer ann"), "tasks/result", task.clone()).await;
    assert_eq!(result["result"]["structuredContent"], json!({ "result": "done" }), "{result}");
    assert_eq!(
        ask(&service, Some("Bearer ann"), "tasks/list", json!({})).await["result"]["tasks"][0]["taskId"],
        begun["taskId"]
    );
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let answer = ask(&service, Some("Bearer bob"), method, task.clone()).await;
        assert_eq!(code(&answer), -32602, "{method}: {answer}");
    }
    assert_eq!(ask(&service, Some("Bearer bob"), "tasks/list", json!({})).await["result"]["tasks"], json!([]));
    // The other revision reads the same task.
    let got = single(&service, "Bearer ann", "tasks/get", task.clone()).await;
    assert_eq!(got["result"]["result"]["structuredContent"], json!("done"), "{got}");
    assert_eq!(code(&single(&service, "Bearer bob", "tasks/get", task).await), -32602);
}

#[tokio::test]
async fn callers_without_a_name_know_their_tasks_by_their_ids() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let service = server(&jobs).into_service();
    let declared = {
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({ "protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": info });
        Ask::new(&service, REVISIONS[0]).send("initialize", params).await.message()
    };
    let tasks = &declared["result"]["capabilities"]["tasks"];
    assert_eq!(*tasks, json!({ "cancel": {}, "requests": { "tools": { "call": {} } } }), "{declared}");
    let begun = ask(&service, None, "tools/call", work(10)).await["result"]["task"].clone();
    let task = json!({ "taskId": begun["taskId"] });
    assert_eq!(ask(&service, None, "tasks/result", task.clone()).await["result"]["content"][0]["text"], "done");
    assert_eq!(code(&ask(&service, None, "tasks/list", json!({})).await), -32601);
    // They have no name when their job runs, either, and may not call what needs one.
    let whoami = json!({ "name": "job_whoami", "arguments": {}, "task": {} });
    let begun = ask(&service, None, "tools/call", whoami).await["result"]["task"].clone();
    let result = ask(&service, None, "tasks/result", json!({ "taskId": begun["taskId"] })).await;
    assert_eq!(result["result"]["content"][0]["text"], "null", "{result}");
    let guard = json!({ "name": "job_guard", "arguments": {}, "task": {} });
    assert_eq!(code(&ask(&service, None, "tools/call", guard).await), -32602);
    // Who has a name has other tasks, and so has the owner of a process.
    let named = authenticated(server(&jobs));
    assert_eq!(code(&ask(&named, Some("Bearer ann"), "tasks/get", task.clone()).await), -32602);
    let mut owner = crate::client::Client::connect(server(&jobs), REVISIONS[0]).await;
    assert_eq!(code(&owner.request("tasks/get", task).await), -32602);
}

#[tokio::test]
async fn a_client_that_comes_back_learns_of_its_task() {
    let jobs = jobs();
    let service = server(&jobs).into_service();
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
    ask().send("notifications/initialized", json!({})).await;
    let read = rest(ask().open("tools/call", work(10)).await).await;
    let first = read.lines().find_map(|line| line.strip_prefix("id:")).expect("an event with an id").trim();
    let again = rest(come_back(&service, &session, Some(first)).await).await;
    assert!(again.contains("\"taskId\"") && again.contains("\"id\":1"), "{again}");
    assert_eq!(last_id(&again), last_id(&read));
}

/// A worker that knows stricter rules than the server that submitted does not run the job of a nameless caller.
#[tokio::test]
async fn rules_are_checked_where_the_job_runs() {
    use ops_runtime::Registry;
    use ops_runtime::access::AccessControl;
    use ops_runtime::adapter::{Handler, Registration};
    use ops_runtime::durable::{RetryPolicy, Worker};
    use ops_runtime::mcp::McpServer;
    use ops_runtime::spec::{OperationKind, OperationSpec};

    let registry = |scope: Option<&'static [&'static str]>| {
        let registry = Registry::new();
        let mut spec = OperationSpec::new(OperationKind::Mutation, "job", "open").unwrap();
        if let Some(scope) = scope {
            spec.access = AccessControl::NONE.with_scopes(scope);
        }
        registry.register(Registration::new(spec, Handler::dynamic(|_, _| async { Ok(json!("ran")) }))).unwrap();
        registry
    };
    let jobs = Jobs::in_memory().with_retry("*", RetryPolicy::once());
    let _worker = Worker::new(jobs.clone(), registry(Some(&["job:open"]))).start();
    let service = McpServer::new(registry(None)).with_tasks(jobs.clone()).into_service();
    let call = json!({ "name": "job_open", "arguments": {}, "task": {} });
    let begun = ask(&service, None, "tools/call", call).await["result"]["task"].clone();
    let result = ask(&service, None, "tasks/result", json!({ "taskId": begun["taskId"] })).await;
    assert_eq!(result["result"]["_meta"]["ops/error"]["code"], "ACCESS_DENIED", "{result}");
}
