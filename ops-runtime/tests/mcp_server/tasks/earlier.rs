//! The tasks of 2025-11-25.

use std::time::Duration;

use ops_runtime::access::Identity;
use ops_runtime::durable::{Jobs, RetryPolicy, Worker};
use ops_runtime::mcp::{McpServer, McpTasks};
use ops_runtime::registry::Progress;
use ops_runtime::{CallError, Context, operation};
use serde_json::{Value, json};

use super::{code, dropped, jobs, registry, run, server, tasks, worker};
use crate::client::{Client, REVISIONS};

const RELATED: &str = "io.modelcontextprotocol/related-task";

/// What a server with tasks says.
fn declared() -> Value {
    json!({ "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } })
}

#[tokio::test]
async fn what_is_declared() {
    let jobs = jobs();
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    assert_eq!(client.server_capabilities["tasks"], declared());
    assert!(client.server_capabilities.get("extensions").is_none(), "{}", client.server_capabilities);
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let support = |name: &str| {
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        tool["execution"]["taskSupport"].as_str().unwrap().to_owned()
    };
    assert_eq!((tools.len(), listed["result"].get("resultType")), (11, None), "{listed}");
    assert_eq!([support("job_work"), support("job_greet"), support("job_must")], ["optional", "forbidden", "required"]);

    // An earlier revision has no tasks, and ignores what is said of them.
    let mut client = Client::connect(server(&jobs), "2025-06-18").await;
    assert!(client.server_capabilities.get("tasks").is_none());
    let listed = client.request("tools/list", json!({})).await;
    assert!(listed["result"]["tools"][0].get("execution").is_none(), "{listed}");
    let params = json!({ "name": "job_greet", "arguments": { "name": "Ann" }, "task": {} });
    let answer = client.request("tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Ann!", "{answer}");
    for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"] {
        let answer = client.request(method, json!({ "taskId": "jobs.0.0123456789abcdef0123456789abcdef" })).await;
        assert_eq!(code(&answer), -32601, "{method}: {answer}");
        assert_eq!(answer["error"]["message"], method);
    }
    assert_eq!(code(&client.request("tools/call", json!({ "name": "job_must", "arguments": {} })).await), -32601);

    // Without jobs there are none either.
    let mut client = Client::connect(ops_runtime::mcp::McpServer::new(registry()), REVISIONS[0]).await;
    assert!(client.server_capabilities.get("tasks").is_none());
    let params = json!({ "name": "job_greet", "arguments": { "name": "Bob" }, "task": {} });
    let answer = client.request("tools/call", params).await;
    assert_eq!(answer["result"]["content"][0]["text"], "Hello, Bob!", "{answer}");
}

#[tokio::test]
async fn a_task_gives_what_the_call_would_have_given() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    for (tool, arguments, status) in [
        ("job_work", json!({ "millis": 1, "text": "done" }), "completed"),
        ("job_whoami", json!({}), "completed"),
        ("job_work", json!({ "millis": "soon" }), "failed"),
        ("job_fail", json!({ "code": "SOLD_OUT" }), "failed"),
        ("job_ask", json!({}), "failed"),
    ] {
        let task = client.begin(tool, arguments.clone()).await;
        let mut result = client.of_task("tasks/result", &task).await["result"].clone();
        assert_eq!(result["_meta"][RELATED], json!({ "taskId": task["taskId"] }), "{result}");
        result["_meta"].as_object_mut().unwrap().remove(RELATED);
        let mut plain = client.call(tool, arguments).await;
        // Who runs it is not the client's own process.
        if tool == "job_ask" {
            assert_eq!(result["_meta"]["ops/error"]["code"], "UNSUPPORTED", "{result}");
        }
        let meta = plain.as_object_mut().unwrap().entry("_meta").or_insert_with(|| json!({}));
        assert!(meta.is_object());
        assert_eq!(result, plain, "{tool}");
        let told = client.of_task("tasks/get", &task).await["result"].clone();
        assert_eq!(told["status"], status, "{told}");
        assert_eq!(told["createdAt"], task["createdAt"]);
        assert!(told["lastUpdatedAt"].as_str() >= told["createdAt"].as_str(), "{told}");
        let ttl = told["ttl"].as_u64().unwrap();
        assert!((60_000..70_000).contains(&ttl), "{ttl}");
        assert_eq!((&task["ttl"], &task["pollInterval"]), (&Value::Null, &json!(50)));
    }
    // What is not for callers stays in the log.
    let task = client.begin("job_leak", json!({})).await;
    let result = client.of_task("tasks/result", &task).await;
    assert_eq!(result["result"]["isError"], true, "{result}");
    let shown = format!("{result}{}", client.of_task("tasks/get", &task).await);
    assert!(!shown.contains("hunter2") && shown.contains(task["taskId"].as_str().unwrap()), "{shown}");
    // Its end was told, once each. The last may still be on their way.
    let is_end = |told: &&Value| told["method"] == "notifications/tasks/status";
    while client.notifications.iter().filter(is_end).count() < 5 {
        let told = client.receive().await;
        client.notifications.push(told);
    }
    let told = client.notifications.iter().filter(is_end);
    let ends: Vec<_> = told.map(|told| told["params"]["status"].as_str().unwrap()).collect();
    assert!(ends.len() >= 5 && ends.iter().all(|end| ["completed", "failed"].contains(end)), "{ends:?}");
}

#[tokio::test]
async fn numbers_are_exact() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let task = client.begin("job_exact", json!({})).await;
    let result = client.of_task("tasks/result", &task).await;
    assert_eq!(result["result"]["content"][0]["text"], "31.245270191439438", "{result}");
}

#[tokio::test]
async fn a_task_is_polled_until_it_is_done() {
    let jobs = jobs();
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let task = client.begin("job_work", json!({ "millis": 3_000, "text": "late" })).await;
    // Nobody has it yet.
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "working");
    let worker = worker(&jobs);
    let asked = client.send("tasks/result", json!({ "taskId": task["taskId"] })).await;
    // The connection is free meanwhile.
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "working");
    let listed = client.request("tasks/list", json!({})).await;
    assert_eq!(listed["result"]["tasks"][0]["taskId"], task["taskId"], "{listed}");
    let result = client.answer(asked).await;
    assert_eq!(result["result"]["structuredContent"], json!({ "result": "late" }), "{result}");
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "completed");
    // It can be read again.
    assert_eq!(client.of_task("tasks/result", &task).await["result"], result["result"]);
    worker.stop().await;
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let task = client.begin("job_work", json!({ "millis": 60_000, "text": "cancelled" })).await;
    let asked = client.send("tasks/result", json!({ "taskId": task["taskId"] })).await;
    run(&jobs, "jobs", 1).await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let cancelled = client.of_task("tasks/cancel", &task).await;
    assert_eq!(cancelled["result"]["status"], "cancelled", "{cancelled}");
    // Who waits for it hears of it, and the handler is dropped.
    assert_eq!(code(&client.answer(asked).await), -32000);
    dropped("cancelled").await;
    // It stays cancelled.
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "cancelled");
    let again = client.of_task("tasks/cancel", &task).await;
    assert_eq!(code(&again), -32602, "{again}");
    assert!(again["error"]["message"].as_str().unwrap().contains("cancelled"));
    assert_eq!(code(&client.of_task("tasks/result", &task).await), -32000);
    // So does one that is done.
    let task = client.begin("job_must", json!({ "number": 1 })).await;
    client.of_task("tasks/result", &task).await;
    let refused = client.of_task("tasks/cancel", &task).await;
    assert_eq!(code(&refused), -32602, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("completed"));
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "completed");
}

#[tokio::test]
async fn what_is_no_task() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let as_task =
        |name: &str, task: Value| json!({ "name": name, "arguments": { "name": "x", "number": 1 }, "task": task });
    for (params, expected) in [
        (as_task("job_greet", json!({})), -32601),
        (json!({ "name": "job_must", "arguments": { "number": 1 } }), -32601),
        (as_task("job_nothing", json!({})), -32602),
        (as_task("job_must", json!({ "ttl": "long" })), -32602),
        (as_task("job_must", json!({ "ttl": -1 })), -32602),
        (json!({ "name": 7, "task": {} }), -32602),
        (json!({ "task": {} }), -32602),
    ] {
        let answer = client.request("tools/call", params.clone()).await;
        assert_eq!(code(&answer), expected, "{params}: {answer}");
    }
    let own = client.begin("job_must", json!({ "number": 1 })).await;
    // A job that is no task of anybody's.
    let other = jobs.submit_by_id("job.must", json!({ "number": 1 }), Default::default()).await.unwrap();
    other.result().await.unwrap();
    for id in [
        json!(other.id().as_str()),
        json!("jobs.0.0123456789abcdef0123456789abcdef"),
        json!("unheard-of.0.0123456789abcdef0123456789abcdef"),
        json!("786512e2-9e0d-44bd-8f29-789f320fe840"),
        json!(format!("{} ", own["taskId"].as_str().unwrap())),
        json!(""),
        json!("x".repeat(10_000)),
        json!(7),
        Value::Null,
    ] {
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let answer = client.request(method, json!({ "taskId": id })).await;
            assert_eq!(code(&answer), -32602, "{method}: {answer}");
            assert!(answer["error"]["message"].as_str().unwrap().len() < 300);
        }
    }
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        assert_eq!(code(&client.request(method, json!({})).await), -32602, "{method}");
    }
    for cursor in [json!("after:x"), json!(7), json!("jobs.0.0123456789abcdef0123456789abcdef"), json!("")] {
        let answer = client.request("tasks/list", json!({ "cursor": cursor })).await;
        assert_eq!(code(&answer), -32602, "{answer}");
    }
    // Not in this revision, and not at all.
    for method in ["tasks/update", "tasks/nothing", "ops/2025-11-25/tasks/nothing"] {
        assert_eq!(code(&client.request(method, json!({ "taskId": own["taskId"] })).await), -32601, "{method}");
    }
}

#[tokio::test]
async fn tasks_belong_to_their_callers() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let as_who = |who: &str, scope: &str| server(&jobs).with_identity(Identity::new(who).with_scope(scope));
    let mut ann = Client::connect(as_who("ann", "job:guard"), REVISIONS[0]).await;
    let mut bob = Client::connect(as_who("bob", "none"), REVISIONS[0]).await;
    let task = ann.begin("job_whoami", json!({})).await;
    let guarded = ann.begin("job_guard", json!({})).await;
    let running = ann.begin("job_work", json!({ "millis": 60_000, "text": "x" })).await;
    assert_eq!(ann.of_task("tasks/result", &task).await["result"]["content"][0]["text"], "ann");
    assert_eq!(ann.of_task("tasks/result", &guarded).await["result"]["content"][0]["text"], "guarded");
    let refused = bob.request("tools/call", json!({ "name": "job_guard", "arguments": {}, "task": {} })).await;
    assert_eq!(code(&refused), -32602, "{refused}");
    // Another's task, ended or not, is as unknown as one that never was.
    let never = json!({ "taskId": "jobs.0.0123456789abcdef0123456789abcdef" });
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        let unknown = bob.of_task(method, &never).await;
        for other in [&task, &guarded, &running] {
            let answer = bob.of_task(method, other).await;
            let (told, id) = (answer["error"]["message"].as_str().unwrap(), other["taskId"].as_str().unwrap());
            let expected = unknown["error"]["message"].as_str().unwrap();
            assert_eq!(told.replace(id, ""), expected.replace(never["taskId"].as_str().unwrap(), ""));
            assert_eq!(code(&answer), -32602);
        }
    }
    assert_eq!(bob.request("tasks/list", json!({})).await["result"]["tasks"], json!([]));
    assert_eq!(ann.request("tasks/list", json!({})).await["result"]["tasks"].as_array().unwrap().len(), 3);
    // The owner of the process is yet another caller.
    let mut owner = Client::connect(server(&jobs), REVISIONS[0]).await;
    assert_eq!(code(&owner.of_task("tasks/get", &task).await), -32602);
    let own = owner.begin("job_whoami", json!({})).await;
    assert_eq!(owner.of_task("tasks/result", &own).await["result"]["content"][0]["text"], "null");
    assert_eq!(code(&ann.of_task("tasks/get", &own).await), -32602);
    // Another connection of hers goes on, but not without the right to call the tool.
    let mut again = Client::connect(as_who("ann", "none"), REVISIONS[0]).await;
    assert_eq!(again.of_task("tasks/get", &task).await["result"]["status"], "completed");
    assert_eq!(code(&again.of_task("tasks/result", &guarded).await), -32602);
    assert_eq!(again.of_task("tasks/cancel", &running).await["result"]["status"], "cancelled");
    assert_eq!(ann.of_task("tasks/get", &running).await["result"]["status"], "cancelled");
}

#[tokio::test]
async fn progress_goes_on() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let params = json!({ "name": "job_report", "arguments": {}, "task": {}, "_meta": { "progressToken": "p" } });
    let task = client.request("tools/call", params).await["result"]["task"].clone();
    client.until(&task, "completed").await;
    let mut told = Vec::new();
    while told.last().is_none_or(|last: &Value| last["method"] != "notifications/tasks/status") {
        told.push(client.notification().await);
    }
    let (end, progress) = told.split_last().unwrap();
    assert_eq!((&end["params"]["status"], &end["params"]["taskId"]), (&json!("completed"), &task["taskId"]));
    let steps: Vec<_> = progress.iter().map(|told| told["params"]["progress"].as_f64().unwrap()).collect();
    // What was reported before anybody listened is lost.
    assert!(steps.ends_with(&[2.0, 3.0]) && steps.len() <= 3, "{steps:?}");
    for told in progress {
        assert_eq!(told["params"]["progressToken"], "p");
        assert_eq!(told["params"]["_meta"][RELATED]["taskId"], task["taskId"], "{told}");
    }
}

/// Reports three steps, then four, then five, and fails but for the third attempt.
#[operation(namespace = "job", kind = mutation)]
async fn climb(context: &Context) -> Result<u32, CallError> {
    let attempt = context.attempt();
    for step in 1..=2 + attempt {
        tokio::time::sleep(Duration::from_millis(60)).await;
        context.report(Progress::new(f64::from(step)));
    }
    if attempt < 3 { Err(CallError::execution("again")) } else { Ok(attempt) }
}

/// The progress of a repeated attempt goes on where that of the one before has ended.
#[tokio::test]
async fn progress_never_goes_back() {
    let jobs = Jobs::in_memory().with_retry("*", RetryPolicy::new(3).with_backoff(Duration::ZERO, Duration::ZERO));
    let registry = registry();
    registry.register(Climb).unwrap();
    let _worker = Worker::new(jobs.clone(), registry.clone()).start();
    let mut client = Client::connect(McpServer::new(registry).with_tasks(tasks(&jobs)), REVISIONS[0]).await;
    let params = json!({ "name": "job_climb", "arguments": {}, "task": {}, "_meta": { "progressToken": "p" } });
    let task = client.request("tools/call", params).await["result"]["task"].clone();
    client.until(&task, "completed").await;
    let mut told = Vec::new();
    loop {
        let next = client.notification().await;
        if next["method"] == "notifications/tasks/status" {
            break;
        }
        told.push(next["params"]["progress"].as_f64().unwrap());
    }
    // What was reported before anybody listened is lost.
    assert!(told.ends_with(&[3.0, 4.0, 5.0]), "{told:?}");
    assert!(told.windows(2).all(|pair| pair[0] < pair[1]), "{told:?}");
}

#[tokio::test]
async fn jobs_alone_are_enough() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let server = ops_runtime::mcp::McpServer::new(registry()).with_tasks(jobs.clone());
    let mut client = Client::connect(server, REVISIONS[0]).await;
    let task = client.begin("job_greet", json!({ "name": "Ann" })).await;
    assert_eq!(client.of_task("tasks/result", &task).await["result"]["content"][0]["text"], "Hello, Ann!");
    assert!(format!("{:?}", McpTasks::new(jobs)).contains("in-process"));
}
