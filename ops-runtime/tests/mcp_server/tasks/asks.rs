//! Tasks that ask their clients.

use std::time::Duration;

use ops_runtime::durable::engine::EngineLimits;
use ops_runtime::durable::{InMemory, Jobs, RetryPolicy, Worker};
use ops_runtime::mcp::{McpPeer, McpServer, McpServerOptions, TaskSupport};
use ops_runtime::{CallError, Context, operation};
use serde_json::{Map, Value, json};

use super::{code, jobs, name, registry, server, tasks, worker};
use crate::client::{Client, REVISIONS};

fn accept(name: &str) -> Value {
    json!({ "action": "accept", "content": { "name": name } })
}

/// What a client of either revision says that it can do.
fn capable() -> Value {
    json!({ "elicitation": {}, "extensions": { "io.modelcontextprotocol/tasks": {} } })
}

#[tokio::test]
async fn in_2025_11_25_questions_come_while_the_result_is_waited_for() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect_with(server(&jobs), REVISIONS[0], capable()).await;
    let task = client.begin("job_ask", json!({})).await;
    let told = client.until(&task, "input_required").await;
    assert!(told["lastUpdatedAt"].as_str() >= task["createdAt"].as_str(), "{told}");
    assert!(client.notifications.iter().all(|told| told.get("id").is_none()), "nothing is asked before");
    let asked = client.send("tasks/result", json!({ "taskId": task["taskId"] })).await;
    let mut questions = Vec::new();
    while questions.len() < 2 {
        let question = client.receive().await;
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let related = &question["params"]["_meta"]["io.modelcontextprotocol/related-task"];
        assert_eq!(related["taskId"], task["taskId"], "{question}");
        questions.push(question);
    }
    questions.sort_by_key(|question| question["params"]["message"].to_string());
    client.respond(&questions[0]["id"], accept("Ann")).await;
    // One is answered, and the other is not.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "input_required");
    client.respond(&questions[1]["id"], accept("Bob")).await;
    let result = client.answer(asked).await;
    assert_eq!(result["result"]["structuredContent"], json!({ "result": ["Ann", "Bob"] }), "{result}");
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "completed");
    assert!(client.notifications.iter().all(|told| told.get("id").is_none()), "nothing is asked twice");
}

#[tokio::test]
async fn in_2026_07_28_questions_are_polled() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    let task = client.request("tools/call", json!({ "name": "job_ask", "arguments": {} })).await["result"].clone();
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")), "{task}");
    let mut waiting = client.until(&task, "input_required").await;
    while waiting["inputRequests"].as_object().unwrap().len() < 2 {
        waiting = client.until(&task, "input_required").await;
    }
    assert_eq!(waiting["inputRequests"]["first"]["params"]["message"], "first", "{waiting}");
    let answers = json!({ "first": accept("Ann"), "second": { "no": "answer" }, "third": accept("Eve") });
    let update = json!({ "taskId": task["taskId"], "inputResponses": answers });
    assert_eq!(client.request("tasks/update", update).await["result"], json!({ "resultType": "complete" }));
    let waiting = client.of_task("tasks/get", &task).await["result"].clone();
    assert_eq!(waiting["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["second"], "{waiting}");
    // What is answered stays answered.
    let answers = json!({ "first": accept("Eve"), "second": accept("Bob") });
    client.request("tasks/update", json!({ "taskId": task["taskId"], "inputResponses": answers })).await;
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["structuredContent"], json!(["Ann", "Bob"]), "{done}");
    // Late answers are nothing.
    let update = json!({ "taskId": task["taskId"], "inputResponses": { "first": accept("Eve") } });
    assert_eq!(client.request("tasks/update", update).await["result"], json!({ "resultType": "complete" }));
    assert_eq!(client.of_task("tasks/get", &task).await["result"], done);
}

#[tokio::test]
async fn an_answer_that_is_too_big_is_refused() {
    let engine = InMemory::new().with_limits(EngineLimits::DEFAULT.with_max_result(4_000));
    let jobs = Jobs::new(engine).with_retry("*", RetryPolicy::once());
    let _worker = worker(&jobs);
    let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    let task = client.request("tools/call", json!({ "name": "job_ask", "arguments": {} })).await["result"].clone();
    client.until(&task, "input_required").await;
    let long = accept(&"x".repeat(5_000));
    let update = json!({ "taskId": task["taskId"], "inputResponses": { "first": long, "second": long } });
    let refused = client.request("tasks/update", update).await;
    assert_eq!(code(&refused), -32602, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("keeps up to 4000"), "{refused}");
}

#[tokio::test]
async fn a_repeated_attempt_does_not_ask_again() {
    let jobs = ops_runtime::durable::Jobs::in_memory();
    let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    let task = client.request("tools/call", json!({ "name": "job_ask", "arguments": {} })).await["result"].clone();
    let first = worker(&jobs);
    client.until(&task, "input_required").await;
    let update = json!({ "taskId": task["taskId"], "inputResponses": { "first": accept("Ann") } });
    client.request("tasks/update", update).await;
    // The worker gives the job back, and another takes it.
    first.stop_now().await;
    let _second = worker(&jobs);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let waiting = client.of_task("tasks/get", &task).await["result"].clone();
    assert_eq!(waiting["inputRequests"].as_object().unwrap().keys().collect::<Vec<_>>(), ["second"], "{waiting}");
    let update = json!({ "taskId": task["taskId"], "inputResponses": { "second": accept("Bob") } });
    client.request("tasks/update", update).await;
    assert_eq!(client.until(&task, "completed").await["result"]["structuredContent"], json!(["Ann", "Bob"]));
}

#[tokio::test]
async fn a_client_that_does_not_answer() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let options = McpServerOptions::new("test", "1").with_ask_timeout(Duration::from_secs(2));
    let impatient = McpServer::new(registry()).with_options(options).with_tasks(tasks(&jobs));
    let mut client = Client::connect_with(impatient, REVISIONS[1], capable()).await;
    let task = client.request("tools/call", json!({ "name": "job_ask", "arguments": {} })).await["result"].clone();
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["_meta"]["ops/error"]["code"], "TIMEOUT", "{done}");
    // An answer to a task that was cancelled while it asked: two faults at once.
    let mut client = Client::connect_with(server(&jobs), REVISIONS[1], capable()).await;
    let task = client.request("tools/call", json!({ "name": "job_ask", "arguments": {} })).await["result"].clone();
    client.until(&task, "input_required").await;
    client.of_task("tasks/cancel", &task).await;
    let update = json!({ "taskId": task["taskId"], "inputResponses": { "first": accept("Ann") } });
    assert_eq!(client.request("tasks/update", update).await["result"], json!({ "resultType": "complete" }));
    let told = client.of_task("tasks/get", &task).await["result"].clone();
    assert_eq!((&told["status"], told.get("inputRequests")), (&json!("cancelled"), None), "{told}");
}

/// Begins a task that asks, on a server that waits so long for answers.
async fn insisting(jobs: &Jobs, revision: &'static str, wait: u64, arguments: Value) -> (Client, Value) {
    let options = McpServerOptions::new("test", "1").with_ask_timeout(Duration::from_millis(wait));
    let server = McpServer::new(registry()).with_options(options).with_tasks(tasks(jobs));
    let mut client = Client::connect_with(server, revision, capable()).await;
    let task = match revision == REVISIONS[0] {
        true => client.begin("job_insist", arguments).await,
        false => {
            let call = json!({ "name": "job_insist", "arguments": arguments });
            client.request("tools/call", call).await["result"].clone()
        }
    };
    (client, task)
}

/// A question that nobody waits for any more is none that the client is asked.
#[tokio::test]
async fn a_question_whose_time_is_over() {
    for revision in REVISIONS {
        let jobs = jobs();
        let _worker = worker(&jobs);
        let (mut client, task) = insisting(&jobs, revision, 2_000, json!({ "millis": 3_000 })).await;
        client.until(&task, "input_required").await;
        let working = client.until(&task, "working").await;
        assert_eq!(working.get("inputRequests"), None, "{working}");
        client.until(&task, "completed").await;
    }
}

/// A client that did not answer one attempt is asked by the next.
#[tokio::test]
async fn the_next_attempt_asks_again() {
    for revision in REVISIONS {
        let retry = RetryPolicy::new(3).with_backoff(Duration::from_millis(300), Duration::from_millis(300));
        let jobs = Jobs::in_memory().with_retry("*", retry);
        let _worker = worker(&jobs);
        let (mut client, task) = insisting(&jobs, revision, 3_000, json!({})).await;
        if revision == REVISIONS[0] {
            let asked = client.send("tasks/result", json!({ "taskId": task["taskId"] })).await;
            let mut questions = Vec::new();
            while questions.len() < 2 {
                let told = client.receive().await;
                questions.extend((told["method"] == "elicitation/create").then_some(told));
            }
            assert_eq!(questions[0]["params"]["message"], questions[1]["params"]["message"]);
            client.respond(&questions[1]["id"], accept("Ann")).await;
            let result = client.answer(asked).await;
            assert_eq!(result["result"]["structuredContent"], json!({ "result": "Ann" }), "{result}");
        } else {
            // The key of the first question is not used again: a late answer to it is no answer to this one.
            let key = loop {
                let waiting = client.until(&task, "input_required").await;
                let keys: Vec<&String> = waiting["inputRequests"].as_object().into_iter().flat_map(Map::keys).collect();
                match keys.as_slice() {
                    [key] if key.starts_with("first#") => break (*key).clone(),
                    _ => tokio::time::sleep(Duration::from_millis(20)).await,
                }
            };
            let mut answers = json!({ "first": accept("Eve") });
            answers[&key] = accept("Ann");
            client.request("tasks/update", json!({ "taskId": task["taskId"], "inputResponses": answers })).await;
            let done = client.until(&task, "completed").await;
            assert_eq!(done["result"]["structuredContent"], json!("Ann"), "{done}");
        }
    }
}

#[tokio::test]
async fn who_can_not_be_asked() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let task = client.begin("job_ask", json!({})).await;
    let result = client.of_task("tasks/result", &task).await["result"].clone();
    assert_eq!(result["_meta"]["ops/error"]["code"], "UNSUPPORTED", "{result}");
    // A job that is no task has no client, whatever its metadata say.
    let options = ops_runtime::durable::SubmitOptions::new()
        .with_metadata("io.modelcontextprotocol/task", json!({ "asks": ["elicitation"], "patience": 1 }))
        .with_retry(RetryPolicy::once());
    let job = jobs.submit_by_id("job.ask", json!({}), options).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().code().as_str(), "NO_CLIENT");
    assert_eq!(code(&client.of_task("tasks/get", &json!({ "taskId": job.id().as_str() })).await), -32602);
}

/// Deletes, unless the client can be asked and says no.
#[operation(namespace = "job", kind = mutation)]
async fn delete(context: &Context) -> Result<String, CallError> {
    if let Some(peer) = McpPeer::of(context).filter(|peer| peer.supports("elicitation"))
        && name(&peer, "sure").await? != "yes"
    {
        return Ok("nothing was deleted".to_owned());
    }
    Ok("all is gone".to_owned())
}

/// Deletes by another operation, which is a step or not.
#[operation(namespace = "job", kind = mutation)]
async fn clean(context: &Context, step: bool) -> Result<String, CallError> {
    let deleted = match step {
        true => context.once::<Delete>("delete", DeleteInput {}).await?,
        false => context.env().execute::<Delete>(DeleteInput {}).await?,
    };
    Ok(deleted.data)
}

/// A step cannot ask. So what asks before it deletes does not delete in a step, and deletes nothing in a nested call if the
/// client says no.
#[tokio::test]
async fn a_step_does_not_go_on_unasked() {
    for revision in REVISIONS {
        for (step, expected, code) in
            [(true, Value::Null, json!("UNSUPPORTED")), (false, json!("nothing was deleted"), Value::Null)]
        {
            let (jobs, registry) = (jobs(), registry());
            registry.register(Delete).unwrap();
            registry.register(Clean).unwrap();
            let _worker = Worker::new(jobs.clone(), registry.clone()).start();
            let tasks = tasks(&jobs).with_support("job.clean", TaskSupport::Required);
            let mut client =
                Client::connect_with(McpServer::new(registry).with_tasks(tasks), revision, capable()).await;
            let (call, no) = (json!({ "name": "job_clean", "arguments": { "step": step } }), accept("no"));
            let result = if revision == REVISIONS[0] {
                let task = client.begin("job_clean", call["arguments"].clone()).await;
                let asked = client.send("tasks/result", json!({ "taskId": task["taskId"] })).await;
                if !step {
                    let question = client.receive().await;
                    assert_eq!(question["params"]["message"], "sure", "{question}");
                    client.respond(&question["id"], no).await;
                }
                client.answer(asked).await["result"].clone()
            } else {
                let task = client.request("tools/call", call).await["result"].clone();
                if !step {
                    client.until(&task, "input_required").await;
                    let update = json!({ "taskId": task["taskId"], "inputResponses": { "sure": no } });
                    client.request("tasks/update", update).await;
                }
                client.until(&task, "completed").await["result"].clone()
            };
            let data = result["structuredContent"].get("result").unwrap_or(&result["structuredContent"]);
            assert_eq!((data, &result["_meta"]["ops/error"]["code"]), (&expected, &code), "{result}");
        }
    }
}
