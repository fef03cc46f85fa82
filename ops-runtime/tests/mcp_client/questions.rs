//! What a server at a URL asks during a call.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::http::StatusCode;
use ops_runtime::mcp::{Elicitation, ElicitationAnswer, ElicitationMode, McpServerConfig};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::http::{Fault, Server, connect, work};
use crate::peers::LONG;

#[tokio::test]
async fn an_answer_to_a_question_may_be_accepted_late() {
    let (server, url) = Server::start().await;
    let config = McpServerConfig::http(url).with_elicitation(|_| async { ElicitationAnswer::Decline });
    let client = connect(config).await;
    server.then(Fault::Ask);
    assert_eq!(work(&client).await.unwrap(), "asked");
    client.close().await;
}

#[tokio::test]
async fn an_answer_that_is_accepted_late_holds_up_nothing_else() {
    let (server, url) = Server::start().await;
    let config = McpServerConfig::http(url).with_elicitation(|_| async { ElicitationAnswer::Decline });
    let client = connect(config).await;
    server.then(Fault::Ask);
    let asked = tokio::spawn({
        let client = client.clone();
        async move { work(&client).await }
    });
    let seen = async |what: &str, times: usize| {
        let mut pauses = 0;
        while server.count(what) < times {
            sleep(Duration::from_millis(10)).await;
            pauses += 1;
        }
        pauses
    };
    timeout(LONG, seen("response", 1)).await.expect("an answer to the question");
    // The caller of another call goes away.
    server.then(Fault::Silence);
    let other = tokio::spawn({
        let client = client.clone();
        async move { work(&client).await }
    });
    let called = timeout(LONG, seen("tools/call", 2)).await.expect("another call");
    other.abort();
    let told = timeout(LONG, seen("notifications/cancelled", 1)).await.expect("the server is told");
    // In each pause, all that runs here has its turn, on a busy machine, too. What is held up takes far more of them.
    assert!(called + told < 250, "{called} and {told} pauses");
    assert_eq!(asked.await.unwrap().unwrap(), "asked");
    client.close().await;
}

#[tokio::test]
async fn an_answer_that_is_refused_is_not_the_end_of_a_call() {
    let (server, url) = Server::start().await;
    server.refuses.store(true, Ordering::Relaxed);
    let config = McpServerConfig::http(url).with_elicitation(|_| async { ElicitationAnswer::Decline });
    let client = connect(config).await;
    server.then(Fault::Ask);
    assert_eq!(work(&client).await.unwrap(), "asked");
    assert_eq!(server.count("response"), 1);
    client.close().await;
}

#[tokio::test]
async fn a_question_comes_as_the_server_sent_it() {
    let (server, url) = Server::start().await;
    let shown: Arc<Mutex<Vec<Elicitation>>> = Arc::default();
    let told = shown.clone();
    let config = McpServerConfig::http(url).with_elicitation(move |question| {
        told.lock().unwrap().push(question);
        async { ElicitationAnswer::Decline }
    });
    let client = connect(config).await;
    let code = json!({ "type": "string", "pattern": "^[0-9]{6}$" });
    let schema = json!({ "type": "object", "properties": { "code": code }, "additionalProperties": false });
    let params = json!({ "message": "Code?", "requestedSchema": schema, "x-more": [1.5], "_meta": { "x-own": 7 } });
    let question = json!({ "jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params });
    server.then(Fault::Event(format!("data: {question}\n\n").leak()));
    assert_eq!(work(&client).await.unwrap(), "streamed");
    let asked = async {
        while shown.lock().unwrap().is_empty() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(LONG, asked).await.expect("the user is asked");
    let question = shown.lock().unwrap().remove(0);
    assert_eq!((Value::Object(question.params), question.mode), (params, ElicitationMode::Form(schema)));
    client.close().await;
}

/// Tells when it is dropped.
struct Tell(Arc<AtomicBool>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The first question of a session, as an event.
fn question(message: &str) -> &'static str {
    let params = json!({ "message": message, "requestedSchema": { "type": "object", "properties": {} } });
    let question = json!({ "jsonrpc": "2.0", "id": 0, "method": "elicitation/create", "params": params });
    format!("data: {question}\n\n").leak()
}

#[tokio::test]
async fn a_question_of_a_lost_session_is_withdrawn() {
    let (server, url) = Server::start().await;
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let withdrawn = Arc::new(AtomicBool::new(false));
    let (told, tell) = (shown.clone(), withdrawn.clone());
    let config = McpServerConfig::http(url).with_elicitation(move |question: Elicitation| {
        told.lock().unwrap().push(question.message.clone());
        let tell = tell.clone();
        async move {
            if question.message == "Delete the draft?" {
                let _tell = Tell(tell);
                std::future::pending::<()>().await;
            }
            ElicitationAnswer::Decline
        }
    });
    let client = connect(config).await;
    let eventually = async |what: &dyn Fn() -> bool| {
        while !what() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    server.then(Fault::Drop(question("Delete the draft?")));
    let error = work(&client).await.unwrap_err();
    assert_eq!(error.details()["interrupted"], true, "{error:?}");
    timeout(LONG, eventually(&|| shown.lock().unwrap().len() == 1)).await.expect("the user is asked");
    assert!(!withdrawn.load(Ordering::Relaxed));

    // The server has forgotten the session. In the next one, it counts its questions anew.
    server.then(Fault::Status(StatusCode::NOT_FOUND, &[], ""));
    server.then(Fault::Event(question("Transfer 1000?")));
    assert_eq!(work(&client).await.unwrap(), "streamed");
    timeout(LONG, eventually(&|| !server.replies.lock().unwrap().is_empty())).await.expect("an answer");
    assert!(withdrawn.load(Ordering::Relaxed), "nobody is asked for the old session");
    assert_eq!(*shown.lock().unwrap(), ["Delete the draft?", "Transfer 1000?"]);
    let decline = json!({ "jsonrpc": "2.0", "id": 0, "result": { "action": "decline" } });
    assert_eq!(*server.replies.lock().unwrap(), [decline]);
    assert_eq!(server.count("response session-2"), 1);
    client.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_answer_of_a_function_that_blocks_is_no_answer_to_the_next_session() {
    let (server, url) = Server::start().await;
    let shown: Arc<Mutex<Vec<String>>> = Arc::default();
    let ended = Arc::new(AtomicBool::new(false));
    let (told, end) = (shown.clone(), ended.clone());
    let config = McpServerConfig::http(url).with_elicitation(move |question: Elicitation| {
        told.lock().unwrap().push(question.message.clone());
        let (told, end) = (told.clone(), end.clone());
        async move {
            if question.message == "Delete the draft?" {
                // It holds its thread until the next session has asked.
                let limit = Instant::now() + LONG;
                while told.lock().unwrap().len() < 2 && Instant::now() < limit {
                    std::thread::sleep(Duration::from_millis(10));
                }
                end.store(true, Ordering::Relaxed);
                return ElicitationAnswer::Accept(json!({}));
            }
            while !end.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(10)).await;
            }
            // The other answer would be sent meanwhile.
            sleep(Duration::from_millis(300)).await;
            ElicitationAnswer::Decline
        }
    });
    let client = connect(config).await;
    let eventually = async |what: &dyn Fn() -> bool| {
        while !what() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    server.then(Fault::Drop(question("Delete the draft?")));
    work(&client).await.unwrap_err();
    timeout(LONG, eventually(&|| shown.lock().unwrap().len() == 1)).await.expect("the user is asked");
    server.then(Fault::Status(StatusCode::NOT_FOUND, &[], ""));
    server.then(Fault::Event(question("Transfer 1000?")));
    assert_eq!(work(&client).await.unwrap(), "streamed");
    timeout(LONG, eventually(&|| !server.replies.lock().unwrap().is_empty())).await.expect("an answer");
    assert_eq!(*shown.lock().unwrap(), ["Delete the draft?", "Transfer 1000?"]);
    let decline = json!({ "jsonrpc": "2.0", "id": 0, "result": { "action": "decline" } });
    assert_eq!(*server.replies.lock().unwrap(), [decline]);
    client.close().await;
}
