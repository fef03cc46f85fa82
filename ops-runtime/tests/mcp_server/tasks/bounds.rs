//! How many tasks there may be, and for how long.

use std::collections::BTreeSet;
use std::time::Duration;

use ops_runtime::durable::engine::EngineLimits;
use ops_runtime::durable::{InMemory, JobStatus, Jobs, RetryPolicy, Worker};
use ops_runtime::mcp::{McpServer, McpServerOptions, McpTasks, TaskSupport};
use ops_runtime::{CallError, Context, ErrorCode, operation};
use serde_json::{Value, json};

use super::{Work, WorkInput, code, dropped, jobs, registry, run, server, tasks, worker};
use crate::client::{Client, REVISIONS};
use crate::http::{Ask, authenticated};

#[tokio::test]
async fn a_caller_has_a_thousand_open_tasks_and_not_one_more() {
    let jobs = jobs();
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    // Nobody runs them.
    let mut ids = BTreeSet::new();
    for number in 0..1_000 {
        let task = client.begin("job_must", json!({ "number": number })).await;
        ids.insert(task["taskId"].as_str().unwrap().to_owned());
    }
    assert_eq!(ids.len(), 1_000);
    let params = json!({ "name": "job_must", "arguments": { "number": 0 }, "task": {} });
    let refused = client.request("tools/call", params.clone()).await;
    assert_eq!(code(&refused), -32000, "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("max_open"));
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 1_000);
    // Plain calls and other callers go on.
    assert_eq!(client.call("job_greet", json!({ "name": "Ann" })).await["content"][0]["text"], "Hello, Ann!");
    let (mut listed, mut pages, mut cursor) = (BTreeSet::new(), 0, Value::Null);
    loop {
        let page = client.request("tasks/list", json!({ "cursor": cursor })).await["result"].clone();
        for task in page["tasks"].as_array().unwrap() {
            assert!(listed.insert(task["taskId"].as_str().unwrap().to_owned()), "listed twice: {task}");
        }
        pages += 1;
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!((listed == ids, pages), (true, 11));
    // When some have ended, there is room.
    for id in ids.iter().take(2) {
        let cancelled = client.of_task("tasks/cancel", &json!({ "taskId": id })).await;
        assert_eq!(cancelled["result"]["status"], "cancelled");
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let worker = worker(&jobs);
    let task = client.begin("job_must", json!({ "number": 41 })).await;
    assert_eq!(client.of_task("tasks/result", &task).await["result"]["structuredContent"], json!({ "result": 42 }));
    worker.stop().await;
}

#[tokio::test]
async fn callers_are_counted_each() {
    let jobs = jobs();
    let tasks = McpTasks::new(jobs.clone()).with_max_open(1);
    let service = authenticated(McpServer::new(registry()).with_tasks(tasks));
    let call = json!({ "name": "job_must", "arguments": { "number": 0 }, "task": {} });
    let mut answers = Vec::new();
    for who in ["Bearer ann", "Bearer bob", "Bearer ann"] {
        let session = Ask::new(&service, REVISIONS[0]).with("authorization", who).initialize().await;
        let ask = Ask::new(&service, REVISIONS[0]).with("authorization", who).with("mcp-session-id", &session);
        answers.push(ask.send("tools/call", call.clone()).await.message());
    }
    assert_eq!(answers[0]["result"]["task"]["status"], "working", "{}", answers[0]);
    assert_eq!(answers[1]["result"]["task"]["status"], "working", "{}", answers[1]);
    assert_eq!(code(&answers[2]), -32000);
}

#[tokio::test]
async fn an_ended_task_expires() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let tasks = tasks(&jobs).with_max_ttl(Duration::from_secs(4));
    let mut client = Client::connect(McpServer::new(registry()).with_tasks(tasks), REVISIONS[0]).await;
    let begin = async |client: &mut Client, tool: &str, ttl: u64| {
        let arguments = match tool {
            "job_work" => json!({ "millis": 7_000, "text": "long" }),
            "job_fail" => json!({ "code": "TIMEOUT" }),
            _ => json!({ "number": 1 }),
        };
        let params = json!({ "name": tool, "arguments": arguments, "task": { "ttl": ttl } });
        client.request("tools/call", params).await["result"]["task"].clone()
    };
    // The ttl of a task that runs is not over, however short.
    let running = begin(&mut client, "job_work", 3_000).await;
    // What the client asks for is bounded.
    let ended = begin(&mut client, "job_must", 86_400_000_000).await;
    // A failure that is kept for the operator ends all the same for the client.
    let dead = begin(&mut client, "job_fail", 3_000).await;
    client.of_task("tasks/result", &ended).await;
    assert_eq!(client.of_task("tasks/result", &dead).await["result"]["isError"], true);
    let told = client.of_task("tasks/get", &ended).await["result"].clone();
    let ttl = told["ttl"].as_u64().unwrap();
    assert!((4_000..7_000).contains(&ttl), "{told}");
    assert_eq!(client.request("tasks/list", json!({})).await["result"]["tasks"].as_array().unwrap().len(), 3);
    tokio::time::sleep(Duration::from_millis(4_200)).await;
    for task in [&ended, &dead] {
        // Two faults at once: it has ended, and is forgotten.
        for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
            let answer = client.of_task(method, task).await;
            assert_eq!(code(&answer), -32602, "{method}: {answer}");
        }
    }
    let listed = client.request("tasks/list", json!({})).await["result"]["tasks"].clone();
    assert_eq!((listed.as_array().unwrap().len(), &listed[0]["taskId"]), (1, &running["taskId"]), "{listed}");
    assert_eq!(
        client.of_task("tasks/result", &running).await["result"]["structuredContent"],
        json!({ "result": "long" })
    );
    // A dead letter is there for those who run the jobs.
    assert_eq!(jobs.stats("jobs").await.unwrap().dead, 1);
}

#[tokio::test]
async fn a_task_whose_workers_die_has_an_error_of_the_protocol() {
    let jobs = Jobs::new(InMemory::new().with_limits(EngineLimits::DEFAULT.with_lease(Duration::from_secs(1))))
        .with_retry("*", RetryPolicy::once());
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let task = client.begin("job_work", json!({ "millis": 60_000, "text": "never" })).await;
    let dies = worker(&jobs);
    run(&jobs, "jobs", 1).await;
    drop(dies);
    let _worker = worker(&jobs);
    let result = client.of_task("tasks/result", &task).await;
    assert_eq!(code(&result), -32603, "{result}");
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "failed");
}

/// Works for a while, in a step.
#[operation(namespace = "job", kind = mutation)]
async fn nest(context: &Context, millis: u64, text: String) -> Result<String, CallError> {
    Ok(context.once::<Work>("work", WorkInput { millis, text }).await?.data)
}

/// The task itself came to an end: by the error of its step, which is an answer.
#[tokio::test]
async fn a_task_whose_step_has_lost_its_workers_has_an_answer() {
    // The task itself must not lose its lease, since it has one attempt.
    let jobs = Jobs::new(InMemory::new().with_limits(EngineLimits::DEFAULT.with_lease(Duration::from_secs(4))))
        .with_retry("*", RetryPolicy::once())
        .with_queue("job.work", "doomed");
    let registry = registry();
    registry.register(Nest).unwrap();
    let server = McpServer::new(registry.clone()).with_tasks(tasks(&jobs));
    let mut client = Client::connect(server, REVISIONS[0]).await;
    let worker = |queue| Worker::new(jobs.clone(), registry.clone()).with_queues([queue]).start();
    let (_worker, dies) = (worker("jobs"), worker("doomed"));
    let task = client.begin("job_nest", json!({ "millis": 60_000, "text": "lost" })).await;
    run(&jobs, "doomed", 1).await;
    drop(dies);
    let _other = worker("doomed");
    let result = client.of_task("tasks/result", &task).await;
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert_eq!(client.of_task("tasks/get", &task).await["result"]["status"], "failed");
}

/// The error of what a handler calls has the same code, and is an answer.
#[tokio::test]
async fn a_handler_may_say_that_it_was_aborted() {
    let jobs = jobs();
    let _worker = worker(&jobs);
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let task = client.begin("job_fail", json!({ "code": "ABORTED" })).await;
    let result = client.of_task("tasks/result", &task).await;
    assert_eq!(result["result"]["isError"], true, "{result}");
    assert!(result["result"]["content"].to_string().contains("there is none"), "{result}");
}

#[tokio::test]
async fn what_is_too_big_is_refused() {
    let jobs = jobs();
    let mut client = Client::connect(server(&jobs), REVISIONS[0]).await;
    let text = "x".repeat(600 * 1024);
    let params = json!({ "name": "job_work", "arguments": { "millis": 0, "text": text }, "task": {} });
    let refused = client.request("tools/call", params).await;
    assert_eq!(code(&refused), -32602, "{}", refused["error"]["message"]);
    assert!(refused["error"]["message"].as_str().unwrap().contains("bytes"));
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 0);
}

/// The client decides if a call is a task, and gets no more time by that, unless the server gives it.
#[tokio::test]
async fn a_task_has_the_timeout_of_calls() {
    let minute = Duration::from_secs(60);
    for revision in REVISIONS {
        for (own, millis, code) in [(None, 3_600_000, json!("TIMEOUT")), (Some(minute), 1_500, Value::Null)] {
            let jobs = jobs();
            let _worker = worker(&jobs);
            let mut tasks = tasks(&jobs).with_support("job.work", TaskSupport::Required);
            if let Some(own) = own {
                tasks = tasks.with_timeout(own);
            }
            let options = McpServerOptions::new("test", "1").with_timeout(Duration::from_secs(1));
            let server = McpServer::new(registry()).with_options(options).with_tasks(tasks);
            let capable = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
            let mut client = Client::connect_with(server, revision, capable).await;
            let text = format!("timeout {revision}");
            let arguments = json!({ "millis": millis, "text": text });
            let result = if revision == REVISIONS[0] {
                let task = client.begin("job_work", arguments).await;
                client.of_task("tasks/result", &task).await["result"].clone()
            } else {
                let call = json!({ "name": "job_work", "arguments": arguments });
                let task = client.request("tools/call", call).await["result"].clone();
                client.until(&task, "completed").await["result"].clone()
            };
            assert_eq!(result["_meta"]["ops/error"]["code"], code, "{result}");
            match own {
                None => dropped(&text).await,
                Some(_) => assert_eq!(result["content"][0]["text"], text, "{result}"),
            }
        }
    }
}

/// Nor does one stay whose next attempt would come too late: it fails with the error of its last one.
#[tokio::test]
async fn a_task_without_time_for_another_attempt_is_no_dead_letter() {
    let hour = Duration::from_secs(3_600);
    for (attempts, dead) in [(2, 0), (1, 1)] {
        let retry = RetryPolicy::new(attempts).with_backoff(hour, hour);
        let jobs = Jobs::in_memory().with_retry("*", retry);
        let _worker = worker(&jobs);
        let tasks = tasks(&jobs).with_timeout(Duration::from_secs(60));
        let mut client = Client::connect(McpServer::new(registry()).with_tasks(tasks), REVISIONS[0]).await;
        let task = client.begin("job_fail", json!({ "code": "EXECUTION_ERROR" })).await;
        let result = client.of_task("tasks/result", &task).await["result"].clone();
        assert_eq!(result["_meta"]["ops/error"]["code"], "EXECUTION_ERROR", "{result}");
        assert_eq!(jobs.stats("jobs").await.unwrap().dead, dead, "{attempts}");
        let job = jobs.job_by_id(task["taskId"].as_str().unwrap().parse().unwrap());
        let (JobStatus::Failed(error) | JobStatus::Dead(error)) = job.status().await.unwrap() else {
            panic!("{result}")
        };
        assert_eq!((error.code(), error.message()), (&ErrorCode::ExecutionError, "there is none"));
    }
}

/// A task that took too long is kept for its time, and not until an operator removes it: a client may begin any number.
#[tokio::test]
async fn a_task_out_of_time_is_no_dead_letter() {
    // Its worker ends it, or who waits for it if there is none.
    for has_worker in [true, false] {
        let jobs = jobs();
        let _worker = has_worker.then(|| worker(&jobs));
        let tasks = tasks(&jobs).with_max_ttl(Duration::from_secs(4)).with_timeout(Duration::from_secs(1));
        let mut client = Client::connect(McpServer::new(registry()).with_tasks(tasks), REVISIONS[0]).await;
        let arguments = json!({ "millis": 3_600_000, "text": format!("out of time {has_worker}") });
        let task = client.begin("job_work", arguments).await;
        let result = client.of_task("tasks/result", &task).await["result"].clone();
        assert_eq!(result["_meta"]["ops/error"]["code"], "TIMEOUT", "{result}");
        assert_eq!(jobs.stats("jobs").await.unwrap().dead, 0);
        let job = jobs.job_by_id(task["taskId"].as_str().unwrap().parse().unwrap());
        let status = job.status().await.unwrap();
        assert!(matches!(&status, JobStatus::Failed(error) if *error.code() == ErrorCode::Timeout), "{status:?}");
        tokio::time::sleep(Duration::from_millis(4_200)).await;
        assert_eq!(job.status().await.unwrap_err().code().as_str(), "JOB_NOT_FOUND");
    }
}
