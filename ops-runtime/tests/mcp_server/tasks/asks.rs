//! Tasks that ask their clients.

use std::time::Duration;

use ops_runtime::durable::engine::{Engine, EngineLimits};
use ops_runtime::durable::{InMemory, JobId, Jobs, RetryPolicy, Worker};
use ops_runtime::mcp::{McpPeer, McpServer, McpServerOptions, TaskSupport};
use ops_runtime::{CallError, Context, Registry, operation};
use serde_json::{Map, Value, json};

use super::{code, jobs, name, registry, server, tasks, worker};
use crate::asks::form;
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

/// Asks by a form with members that the SDK's types do not have.
#[operation(namespace = "job", kind = mutation)]
async fn code_of(context: &Context) -> Result<Value, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    Ok(peer.ask("code", "elicitation/create", form()).await?["content"].take())
}

#[tokio::test]
async fn a_question_is_sent_as_its_handler_gave_it() {
    for revision in REVISIONS {
        let (jobs, registry) = (jobs(), registry());
        registry.register(CodeOf).unwrap();
        let _worker = Worker::new(jobs.clone(), registry.clone()).start();
        let tasks = tasks(&jobs).with_support("job.code_of", TaskSupport::Required);
        let mut client = Client::connect_with(McpServer::new(registry).with_tasks(tasks), revision, capable()).await;
        if revision == REVISIONS[0] {
            let task = client.begin("job_code_of", json!({})).await;
            client.send("tasks/result", json!({ "taskId": task["taskId"] })).await;
            let question = client.receive().await;
            let mut expected = form();
            expected["_meta"]["io.modelcontextprotocol/related-task"] = json!({ "taskId": task["taskId"] });
            expected["_meta"]["progressToken"] = question["params"]["_meta"]["progressToken"].clone();
            assert_eq!(question["params"], expected);
        } else {
            let call = json!({ "name": "job_code_of", "arguments": {} });
            let task = client.request("tools/call", call).await["result"].clone();
            let waiting = client.until(&task, "input_required").await;
            let expected = json!({ "code": { "method": "elicitation/create", "params": form() } });
            assert_eq!((&waiting["inputRequests"], &waiting["taskId"]), (&expected, &task["taskId"]), "{waiting}");
        }
    }
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

/// Asks all of this under one key, the model about what is for it, and gives the answers.
#[operation(namespace = "job", kind = mutation)]
async fn each(context: &Context, texts: Vec<String>) -> Result<Vec<String>, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    let mut answers = Vec::new();
    for text in texts {
        let text = text.replace("{attempt}", &context.attempt().to_string());
        let (answer, member) = if text == "model" {
            let message = json!({ "role": "user", "content": { "type": "text", "text": text } });
            let params = json!({ "messages": [message], "maxTokens": 9 });
            (peer.ask("sure", "sampling/createMessage", params).await?, "text")
        } else {
            let schema = json!({ "type": "object", "properties": {} });
            let params =
                json!({ "message": text, "requestedSchema": schema, "_meta": { "ratio": 31.245270191439438 } });
            (peer.ask("sure", "elicitation/create", params).await?, "name")
        };
        answers.push(answer["content"][member].as_str().unwrap_or("nothing").to_owned());
        if answers.last().is_some_and(|answer| answer == "fail") {
            return Err(CallError::execution("as the user said"));
        }
    }
    Ok(answers)
}

/// Begins a task that asks all of that.
async fn asking(jobs: &Jobs, texts: &[&str]) -> (Registry, Client, Value) {
    let registry = registry();
    registry.register(Each).unwrap();
    let server =
        McpServer::new(registry.clone()).with_tasks(tasks(jobs).with_support("job.each", TaskSupport::Required));
    let mut capable = capable();
    capable["sampling"] = json!({});
    let mut client = Client::connect_with(server, REVISIONS[1], capable).await;
    let call = json!({ "name": "job_each", "arguments": { "texts": texts } });
    let task = client.request("tools/call", call).await["result"].clone();
    (registry, client, task)
}

/// Answers the only question of a task, and gives its key and its message.
async fn answer(client: &mut Client, task: &Value, answer: &str) -> (String, String) {
    let waiting = client.until(task, "input_required").await;
    let requests = waiting["inputRequests"].as_object().unwrap();
    assert_eq!(requests.len(), 1, "{waiting}");
    let (key, request) = requests.iter().next().unwrap();
    let given = match request["method"].as_str().unwrap() {
        "elicitation/create" => accept(answer),
        _ => json!({ "role": "assistant", "content": { "type": "text", "text": answer }, "model": "m" }),
    };
    let update = json!({ "taskId": task["taskId"], "inputResponses": { key: given } });
    assert_eq!(client.request("tasks/update", update).await["result"], json!({ "resultType": "complete" }));
    (key.clone(), request["params"]["message"].as_str().unwrap_or("model").to_owned())
}

/// The user says yes to what was shown, and to nothing else.
#[tokio::test]
async fn an_answer_counts_for_its_own_question() {
    let jobs = jobs();
    let texts = ["delete a", "delete b", "delete b", "model", "delete a"];
    let (registry, mut client, task) = asking(&jobs, &texts).await;
    let _worker = Worker::new(jobs.clone(), registry).start();
    for (number, text) in texts.into_iter().enumerate() {
        let key = if number == 0 { "sure".to_owned() } else { format!("sure#{}", number + 1) };
        assert_eq!(answer(&mut client, &task, &number.to_string()).await, (key, text.to_owned()));
    }
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["structuredContent"], json!(["0", "1", "2", "3", "4"]), "{done}");
}

/// A repeated attempt gets the answers to what it asks again, in their order; what it asks in other words is asked.
#[tokio::test]
async fn a_repeated_attempt_gets_the_answers_to_the_same_questions() {
    let jobs = Jobs::in_memory().with_retry("*", RetryPolicy::new(3).with_backoff(Duration::ZERO, Duration::ZERO));
    let texts = ["delete b", "delete b", "delete {attempt}", "delete c"];
    let (registry, mut client, task) = asking(&jobs, &texts).await;
    let first = Worker::new(jobs.clone(), registry.clone()).start();
    for (key, text, said) in [
        ("sure", "delete b", "1"),
        ("sure#2", "delete b", "2"),
        ("sure#3", "delete 1", "3"),
        ("sure#4", "delete c", "fail"),
    ] {
        assert_eq!(answer(&mut client, &task, said).await, (key.to_owned(), text.to_owned()));
    }
    // The second attempt; its worker gives it back while it asks, and another goes on.
    let waiting = client.until(&task, "input_required").await;
    assert_eq!(waiting["inputRequests"]["sure#5"]["params"]["message"], "delete 2", "{waiting}");
    first.stop_now().await;
    let _second = Worker::new(jobs.clone(), registry).start();
    assert_eq!(answer(&mut client, &task, "4").await, ("sure#5".to_owned(), "delete 2".to_owned()));
    // What was answered is asked no more, even if the answer was no.
    assert_eq!(answer(&mut client, &task, "5").await, ("sure#6".to_owned(), "delete 3".to_owned()));
    let done = client.until(&task, "completed").await;
    assert_eq!(done["result"]["_meta"]["ops/error"]["code"], "EXECUTION_ERROR", "{done}");
}

/// A handler that no longer waits for an answer, and asks the same again, does not ask its client twice.
#[tokio::test]
async fn a_question_that_is_left_is_taken_again() {
    let jobs = jobs();
    let registry = registry();
    registry.register(Impatient).unwrap();
    let _worker = Worker::new(jobs.clone(), registry.clone()).start();
    let server = McpServer::new(registry).with_tasks(tasks(&jobs).with_support("job.impatient", TaskSupport::Required));
    let mut client = Client::connect_with(server, REVISIONS[1], capable()).await;
    let call = json!({ "name": "job_impatient", "arguments": {} });
    let task = client.request("tools/call", call).await["result"].clone();
    client.until(&task, "input_required").await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(answer(&mut client, &task, "Ann").await, ("first".to_owned(), "first".to_owned()));
    assert_eq!(client.until(&task, "completed").await["result"]["structuredContent"], json!("Ann"));
}

/// Asks again and again, and waits a little each time.
#[operation(namespace = "job", kind = mutation)]
async fn impatient(context: &Context) -> Result<String, CallError> {
    let peer = McpPeer::of(context).ok_or_else(|| CallError::new("NO_CLIENT", "nobody to ask"))?;
    loop {
        if let Ok(answered) = tokio::time::timeout(Duration::from_millis(100), name(&peer, "first")).await {
            return answered;
        }
    }
}

/// What the user has said is kept as long as the task, and not longer.
#[tokio::test]
async fn answers_are_gone_with_their_task() {
    let engine = InMemory::new();
    let jobs = Jobs::new(engine.clone()).with_retry("*", RetryPolicy::once());
    let _worker = worker(&jobs);
    let tasks = tasks(&jobs).with_timeout(Duration::from_secs(3)).with_max_ttl(Duration::from_secs(2));
    let mut client = Client::connect_with(McpServer::new(registry()).with_tasks(tasks), REVISIONS[1], capable()).await;
    let task = client.request("tools/call", json!({ "name": "job_insist", "arguments": {} })).await["result"].clone();
    answer(&mut client, &task, "Ann").await;
    client.until(&task, "completed").await;
    let id: JobId = task["taskId"].as_str().unwrap().parse().unwrap();
    let kept = async || {
        let [question, answer] = ["mcp/ask/0", "mcp/answer/0"].map(|name| engine.step(&id, name));
        (question.await.unwrap().is_some(), answer.await.unwrap().is_some())
    };
    assert_eq!(kept().await, (true, true));
    tokio::time::sleep(Duration::from_millis(5_100)).await;
    assert_eq!(kept().await, (false, false));
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
