//! The extension of 2026-07-28.

use std::time::Duration;

use ops_runtime::Registry;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::durable::Worker;
use ops_runtime::mcp::{McpServer, TaskSupport};
use serde_json::{Value, json};

use super::{code, dropped, jobs, registry, run, server, tasks, worker};
use crate::client::{Client, REVISIONS};
use crate::fixture::echo;

const EXTENSION: &str = "io.modelcontextprotocol/tasks";

fn capable() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

async fn call(client: &mut Client, tool: &str, arguments: Value) -> Value {
    client.request("tools/call", json!({ "name": tool, "arguments": arguments })).await["result"].clone()
}

#[tokio::test]
async fn a_call_that_takes_long_becomes_a_task() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    assert_eq!(client.server_capabilities["extensions"], capable()["extensions"]);
    assert!(client.server_capabilities.get("tasks").is_none());
    // What is there in time is the answer.
    let patient = tasks(&jobs).with_inline_timeout(Duration::from_secs(30));
    let patient = McpServer::new(registry()).with_tasks(patient);
    let mut patient = Client::connect_with(patient, REVISIONS[1], capable()).await;
    let soon = call(&mut patient, "job_work", json!({ "millis": 0, "text": "soon" })).await;
    assert_eq!((&soon["resultType"], &soon["structuredContent"]), (&json!("complete"), &json!("soon")), "{soon}");
    let failed = call(&mut patient, "job_fail", json!({ "code": "SOLD_OUT" })).await;
    assert_eq!((&failed["isError"], &failed["_meta"]["ops/error"]["code"]), (&json!(true), &json!("SOLD_OUT")));
    let task = call(&mut client, "job_work", json!({ "millis": 2_000, "text": "late" })).await;
    assert_eq!(task["resultType"], "task", "{task}");
    for (member, expected) in [("status", json!("working")), ("ttlMs", Value::Null), ("pollIntervalMs", json!(50))] {
        assert_eq!(task[member], expected, "{task}");
    }
    assert!(["ttl", "pollInterval", "task", "requestState"].iter().all(|member| task.get(*member).is_none()), "{task}");
    let got = client.of_task("tasks/get", &task).await["result"].clone();
    assert_eq!((&got["status"], &got["resultType"]), (&json!("working"), &json!("complete")), "{got}");
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["structuredContent"], "late", "{done}");
    assert!(done["result"].get("_meta").is_none() && done["ttlMs"].is_u64(), "{done}");
    // A tool that is always a task is one at once, even if it is fast; a failure of it is a result.
    let task = call(&mut client, "job_must", json!({ "number": "x" })).await;
    assert_eq!(task["resultType"], "task", "{task}");
    let done = client.until(&task, "completed").await;
    assert_eq!((&done["result"]["isError"], done.get("error")), (&json!(true), None), "{done}");
}

/// A call whose result is not found was carried out all the same. So no error tells the client to call again: it gets the
/// task, and can ask for the result.
#[tokio::test]
async fn a_call_whose_result_is_not_found_is_a_task() {
    let (jobs, served, worked) = (jobs(), registry(), Registry::new());
    let removed = served.clone();
    let handler = Handler::dynamic(move |_, _| {
        removed.remove("job.work").unwrap();
        async { Ok(json!("done")) }
    });
    worked.register(Registration::new(served.spec("job.work").unwrap(), handler)).unwrap();
    let _worker = Worker::new(jobs.clone(), worked).start();
    let tasks = tasks(&jobs).with_inline_timeout(Duration::from_secs(30));
    let server = McpServer::new(served).with_tasks(tasks);
    let mut client = Client::connect_with(server, REVISIONS[1], capable()).await;
    let task = call(&mut client, "job_work", json!({ "millis": 0, "text": "x" })).await;
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 0, "it has ended");
}

/// A task gives what the call itself would give, also if that is an error because the schema does not allow the result.
#[tokio::test]
async fn a_result_is_what_the_schema_promises() {
    let member = |kind: &str| {
        let members = json!({ "retries": { "type": kind } });
        json!({ "type": "object", "properties": members, "required": ["retries"] })
    };
    let registry = registry();
    registry.register(echo("job.echo", member("string"), member("integer"))).unwrap();
    let jobs = jobs();
    let _worker = Worker::new(jobs.clone(), registry.clone()).start();
    let with_tasks = || {
        let tasks = tasks(&jobs).with_support("job.echo", TaskSupport::Required);
        McpServer::new(registry.clone()).with_tasks(tasks)
    };
    let mut plain = Client::connect_with(McpServer::new(registry.clone()), REVISIONS[1], json!({})).await;
    let mut client = Client::connect_with(with_tasks(), REVISIONS[1], capable()).await;
    let mut earlier = Client::connect(with_tasks(), REVISIONS[0]).await;
    for (retries, is_error) in [("007", true), ("7", false)] {
        let arguments = json!({ "retries": retries });
        let expected = call(&mut plain, "job_echo", arguments.clone()).await;
        assert_eq!(expected["isError"], is_error, "{expected}");
        let task = call(&mut client, "job_echo", arguments.clone()).await;
        let done = client.until(&task, "completed").await;
        let task = earlier.begin("job_echo", arguments).await;
        let told = earlier.until(&task, if is_error { "failed" } else { "completed" }).await;
        let result = earlier.of_task("tasks/result", &task).await;
        for result in [&done["result"], &result["result"]] {
            for member in ["isError", "structuredContent"] {
                assert_eq!(result[member], expected[member], "{member}: {result}");
            }
            let code = |result: &Value| result["_meta"]["ops/error"]["code"].clone();
            assert_eq!(code(result), code(&expected), "{result}");
        }
        let message = if is_error { "It failed. The result says more." } else { "It is done." };
        assert_eq!(told["statusMessage"], message, "{told}");
    }
}

#[tokio::test]
async fn a_task_is_cancelled() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    let task = call(&mut client, "job_work", json!({ "millis": 60_000, "text": "extension" })).await;
    let ack = json!({ "resultType": "complete" });
    assert_eq!(client.of_task("tasks/cancel", &task).await["result"], ack);
    let told = client.until(&task, "cancelled").await;
    assert!(told.get("result").is_none() && told.get("error").is_none(), "{told}");
    dropped("extension").await;
    assert_eq!(client.of_task("tasks/cancel", &task).await["result"], ack, "it is no error to do so twice");
    // A call that is cancelled before it has become a task.
    let tasks = tasks(&jobs).with_inline_timeout(Duration::from_secs(60));
    let server = McpServer::new(registry()).with_tasks(tasks);
    let mut client = Client::connect_with(server, REVISIONS[1], capable()).await;
    let arguments = json!({ "millis": 60_000, "text": "patient" });
    let id = client.send("tools/call", json!({ "name": "job_work", "arguments": arguments })).await;
    run(&jobs, "jobs", 1).await;
    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
    dropped("patient").await;
}

#[tokio::test]
async fn who_does_not_declare_the_extension() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut able = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    let task = call(&mut able, "job_work", json!({ "millis": 60_000, "text": "x" })).await;
    // That of 2025-11-25 does not count.
    for capabilities in [json!({}), json!({ "tasks": { "requests": {} }, "elicitation": {} })] {
        let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capabilities).await;
        let plain = call(&mut client, "job_work", json!({ "millis": 300, "text": "plain" })).await;
        assert_eq!((&plain["resultType"], &plain["structuredContent"]), (&json!("complete"), &json!("plain")));
        let params = json!({ "name": "job_must", "arguments": { "number": 1 } });
        let refused = client.request("tools/call", params).await;
        assert_eq!(code(&refused), -32021, "{refused}");
        assert_eq!(refused["error"]["data"]["requiredCapabilities"]["extensions"], capable()["extensions"]);
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let params = json!({ "taskId": task["taskId"], "inputResponses": {} });
            assert_eq!(code(&client.request(method, params).await), -32021, "{method}");
        }
    }
    // The wish of a client of 2025-11-25 is ignored, and so are its methods.
    let params = json!({ "name": "job_greet", "arguments": { "name": "Ann" }, "task": { "ttl": 1 } });
    let plain = able.request("tools/call", params).await["result"].clone();
    assert_eq!(plain["resultType"], "complete", "{plain}");
    for method in ["tasks/result", "tasks/list", "ops/2025-11-25/tasks/get"] {
        assert_eq!(code(&able.of_task(method, &task).await), -32601, "{method}");
    }
    let listed = able.request("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].as_array().unwrap().iter().all(|tool| tool.get("execution").is_none()));
    // A session of 2025-11-25 has no extension, whatever it declares.
    let mut earlier = Client::connect_with(server(&jobs), REVISIONS[0], capable()).await;
    let plain = earlier.call("job_work", json!({ "millis": 200, "text": "plain" })).await;
    assert_eq!(plain["structuredContent"], json!({ "result": "plain" }), "{plain}");
    // The task of the one is the task of the other: they are the same caller's.
    assert_eq!(earlier.of_task("tasks/get", &task).await["result"]["status"], "working");
    assert_eq!(earlier.of_task("tasks/cancel", &task).await["result"]["status"], "cancelled");
}

#[tokio::test]
async fn tasks_belong_to_their_callers() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let as_who = |who: &str| server(&jobs).with_identity(Identity::new(who));
    let mut ann = Client::connect_with(as_who("ann"), REVISIONS[1], capable()).await;
    let mut bob = Client::connect_with(as_who("bob"), REVISIONS[1], capable()).await;
    let task = call(&mut ann, "job_work", json!({ "millis": 60_000, "text": "hers" })).await;
    for id in [task["taskId"].clone(), json!("jobs.0.0123456789abcdef0123456789abcdef"), json!("x"), json!("")] {
        for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
            let answer = bob.request(method, json!({ "taskId": id, "inputResponses": {} })).await;
            assert_eq!(code(&answer), -32602, "{method} {id}: {answer}");
        }
    }
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        assert_eq!(code(&ann.request(method, json!({})).await), -32602, "{method}");
    }
    assert_eq!(ann.of_task("tasks/get", &task).await["result"]["status"], "working");
    // Who may not call a tool is told so, and begins nothing.
    let refused = call(&mut bob, "job_guard", json!({})).await;
    assert_eq!(refused["_meta"]["ops/error"]["code"], "ACCESS_DENIED", "{refused}");
}
