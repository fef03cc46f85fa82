//! What a server asks during a call, and the time that this takes.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::join_all;
use ops_runtime::ErrorCode;
use ops_runtime::mcp::{ElicitationAnswer, ElicitationMode};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::faults::{call, faulty, text};
use crate::peers::connect;

/// Longer than a call may take here, and shorter than the user thinks.
const SOON: Duration = Duration::from_secs(30);

/// How long a server may be silent during a task, which takes 4.8 s; otherwise it says something every 0.4 s.
const SILENCE: Duration = Duration::from_secs(3);

/// A user who never answers.
async fn thinks() -> ElicitationAnswer {
    sleep(Duration::from_secs(600)).await;
    ElicitationAnswer::Cancel
}

#[tokio::test]
async fn a_question_that_the_server_cancels_stops_no_clock() {
    let config = faulty("regrets").with_timeout(Duration::from_millis(500)).with_elicitation(|_| thinks());
    let client = connect(config).await;
    let error = timeout(SOON, call(&client, "ask", json!({}))).await.expect("an end in time").unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(error.message().contains("with_timeout"), "{error}");
    client.close().await;
}

#[tokio::test]
async fn the_limit_of_the_whole_call_holds_while_the_user_thinks() {
    for faults in ["", "new"] {
        let limit = Duration::from_millis(500);
        let client = connect(faulty(faults).with_total_timeout(limit).with_elicitation(|_| thinks())).await;
        let error = timeout(SOON, call(&client, "ask", json!({}))).await.expect("an end in time").unwrap_err();
        assert_eq!(error.code(), &ErrorCode::Timeout);
        assert!(error.message().contains("with_total_timeout"), "{error}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_task_that_has_asked_is_alive_while_it_makes_progress() {
    let client = connect(faulty("tasks asks").with_timeout(SILENCE)).await;
    assert_eq!(call(&client, "job", json!({})).await, Ok(text("done")));
    client.close().await;
}

#[tokio::test]
async fn a_task_that_has_asked_is_alive_while_the_server_says_how_it_is() {
    // The second server is asked more rarely than it may be silent.
    let called = ["tasks asks quiet", "tasks asks quiet rarely"].map(|faults| async move {
        let client = connect(faulty(faults).with_timeout(SILENCE)).await;
        assert_eq!(call(&client, "job", json!({})).await, Ok(text("done")), "{faults}");
        client.close().await;
    });
    join_all(called).await;
}

#[tokio::test]
async fn a_task_that_has_ended_must_give_its_result() {
    let client = connect(faulty("tasks asks quiet lost").with_timeout(SILENCE)).await;
    let error = timeout(SOON, call(&client, "job", json!({}))).await.expect("an end in time").unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(error.message().contains("with_timeout"), "{error}");
    client.close().await;
}

#[tokio::test]
async fn a_page_that_must_be_visited_before_a_call_is_shown_to_the_user() {
    let config = faulty("").with_elicitation(|question| async move {
        let page = ElicitationMode::Url("https://login.example/".to_owned());
        assert_eq!((question.message.as_str(), &question.mode), ("Log in", &page));
        ElicitationAnswer::Accept(Value::Null)
    });
    let client = connect(config).await;
    assert_eq!(call(&client, "login", json!({})).await, Ok(text("logged in")));
    client.close().await;

    // Also before a task.
    let config = faulty("tasks guards").with_elicitation(|_| async { ElicitationAnswer::Accept(Value::Null) });
    let client = connect(config).await;
    assert_eq!(call(&client, "job", json!({})).await, Ok(text("done")));
    client.close().await;

    // Without a user, or if the user does not want to, the error is that of the call.
    for config in [faulty(""), faulty("").with_elicitation(|_| async { ElicitationAnswer::Decline })] {
        let client = connect(config).await;
        let error = call(&client, "login", json!({})).await.unwrap_err();
        assert_eq!(error.details()["code"], -32042, "{error}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_page_is_shown_once_in_a_call_and_as_the_server_names_it() {
    let shown = Arc::new(Mutex::new(Vec::new()));
    let kept = shown.clone();
    let config = faulty("tasks guards forgets").with_env("SECRET", "s3cret-of-ann").with_elicitation(move |question| {
        kept.lock().unwrap().push(question.mode);
        async { ElicitationAnswer::Accept(Value::Null) }
    });
    let client = connect(config).await;
    for (tool, times) in [("login", 1), ("job", 2)] {
        // The user accepted too early, and the error is that of the call, without the secret.
        let error = call(&client, tool, json!({})).await.unwrap_err();
        assert_eq!(error.details()["code"], -32042, "{tool}: {error}");
        assert!(!error.details().to_string().contains("s3cret-of-ann"), "{error:?}");
        let page = ElicitationMode::Url("https://login.example/s3cret-of-ann".to_owned());
        assert_eq!(*shown.lock().unwrap(), vec![page; times], "{tool}");
    }
    client.close().await;
}
