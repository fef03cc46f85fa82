//! How many sessions there are over HTTP, and which of them end for others.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, Response, StatusCode};
use futures_util::StreamExt;
use futures_util::future::join_all;
use ops_runtime::Context;
use ops_runtime::adapter::Handler;
use ops_runtime::mcp::{McpBody, McpServer, McpServerOptions, McpService};
use ops_runtime::registry::{CancelToken, Progress};
use ops_runtime::spec::OperationKind;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tower_service::Service;

use crate::client::{PATIENCE, REVISIONS};
use crate::fixture::{echo, registry};
use crate::http::Ask;
use crate::streams::with;

/// A service whose tool reports its progress, adds a permit to the first semaphore, and ends when the second is closed.
fn waiting(options: McpServerOptions) -> (McpService, Arc<Semaphore>, Arc<Semaphore>) {
    let (begun, open) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let signals = (begun.clone(), open.clone());
    let handler = Handler::dynamic(move |_: Value, context: Context| {
        let (begun, open) = signals.clone();
        async move {
            context.report(Progress::new(1.0));
            begun.add_permits(1);
            let _ = open.acquire().await;
            Ok(json!({}))
        }
    });
    (with(OperationKind::Query, handler).with_options(options).into_service(), begun, open)
}

/// Asks until the answer has this status.
async fn until(status: StatusCode, ask: impl Fn() -> Ask) {
    let asking = async {
        while ask().send("tools/list", json!({})).await.status != status {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(PATIENCE, asking).await.expect("that status in time");
}

#[tokio::test]
async fn a_session_ends_for_a_new_one_unless_all_are_in_use() {
    let (service, begun, open) = waiting(McpServerOptions::default().with_max_sessions(2));
    let ask = || Ask::new(&service, REVISIONS[0]);
    let of = |session: &str| ask().with("mcp-session-id", session);
    let (first, second) = (ask().initialize().await, ask().initialize().await);
    until(StatusCode::OK, || of(&second)).await;
    // The first one only began.
    let third = ask().initialize().await;
    until(StatusCode::NOT_FOUND, || of(&first)).await;
    let call = json!({ "name": "demo_run", "arguments": {} });
    let calls = [&second, &third].map(|session| of(session).send("tools/call", call.clone()));
    let mut running = Box::pin(join_all(calls));
    tokio::select! {
        answers = &mut running => panic!("{}", answers[0].text),
        permits = timeout(PATIENCE, begun.acquire_many(2)) => permits.expect("both begin in time").unwrap().forget(),
    }
    let info = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": REVISIONS[0], "capabilities": {}, "clientInfo": info });
    let refused = ask().send("initialize", params).await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text);
    assert!(refused.text.contains("max_sessions"), "{}", refused.text);
    open.close();
    assert!(running.await.iter().all(|answer| answer.status == StatusCode::OK));
}

/// The call may have been carried out, so its client must not be told to send it again.
#[tokio::test]
async fn a_call_that_a_shutdown_ends_is_not_one_without_room() {
    let (service, begun, open) = waiting(McpServerOptions::default().with_max_sessions(1));
    let cancel = CancelToken::new();
    let service = service.with_cancel(cancel.clone());
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let call = json!({ "name": "demo_run", "arguments": {} });
    let in_session = Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session).open("tools/call", call.clone());
    let _in_session = in_session.await;
    let mut alone = Box::pin(Ask::new(&service, REVISIONS[1]).send("tools/call", call));
    tokio::select! {
        answer = &mut alone => panic!("{}", answer.text),
        permits = timeout(PATIENCE, begun.acquire_many(2)) => permits.expect("both begin in time").unwrap().forget(),
    }
    cancel.cancel();
    let answer = alone.await;
    assert_eq!(answer.status, StatusCode::INTERNAL_SERVER_ERROR, "{}", answer.text);
    open.close();
}

#[tokio::test]
async fn an_id_that_another_request_has_is_refused() {
    let (service, begun, open) = waiting(McpServerOptions::default());
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
    let call = json!({ "name": "demo_run", "arguments": {} });
    let first = ask().open("tools/call", call.clone()).await;
    timeout(PATIENCE, begun.acquire()).await.expect("in time").unwrap().forget();
    let refused = ask().send("tools/call", call).await;
    assert_eq!(refused.status, StatusCode::BAD_REQUEST, "{}", refused.text);
    let message = refused.message();
    assert_eq!((&message["error"]["code"], &message["id"]), (&json!(-32600), &json!(1)), "{message}");
    open.close();
    assert!(read_until(first, "\"result\"").await.contains("\"id\":1"));
}

/// Reads a stream until this has come, and breaks the connection.
async fn read_until(response: Response<McpBody>, expected: &str) -> String {
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = Body::new(response.into_body()).into_data_stream();
    let mut text = String::new();
    while !text.contains(expected) {
        let bytes = timeout(PATIENCE, body.next()).await.expect("in time").expect("more of the stream");
        text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
    }
    text
}

/// The id of the last event.
pub(crate) fn last_id(text: &str) -> &str {
    text.lines().filter_map(|line| line.strip_prefix("id:")).next_back().expect("an event with an id").trim()
}

/// Comes back to a session, after an event.
pub(crate) async fn come_back(service: &McpService, session: &str, last_event: Option<&str>) -> Response<McpBody> {
    let mut request = Request::get("/mcp")
        .header("host", "localhost")
        .header("accept", "text/event-stream")
        .header("mcp-protocol-version", REVISIONS[0])
        .header("mcp-session-id", session);
    if let Some(last_event) = last_event {
        request = request.header("last-event-id", last_event);
    }
    service.clone().call(request.body(Body::empty()).unwrap()).await.unwrap()
}

/// The rest of a stream.
pub(crate) async fn rest(response: Response<McpBody>) -> String {
    let read = axum::body::to_bytes(Body::new(response.into_body()), usize::MAX);
    String::from_utf8(timeout(PATIENCE, read).await.expect("in time").unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_client_that_comes_back_gets_what_it_has_not_read() {
    for ends_meanwhile in [false, true] {
        let (service, _begun, open) = waiting(McpServerOptions::default());
        let session = Ask::new(&service, REVISIONS[0]).initialize().await;
        let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
        let call = json!({ "name": "demo_run", "arguments": {}, "_meta": { "progressToken": 7 } });
        let read = read_until(ask().open("tools/call", call).await, "notifications/progress").await;
        let last = last_id(&read);
        let resumed = if ends_meanwhile {
            open.close();
            // The id is free when the call has ended.
            until(StatusCode::OK, ask).await;
            come_back(&service, &session, Some(last)).await
        } else {
            let resumed = come_back(&service, &session, Some(last)).await;
            open.close();
            resumed
        };
        let text = rest(resumed).await;
        assert!(text.contains("\"result\"") && text.contains("\"id\":1"), "{ends_meanwhile}: {text}");
        assert!(!text.contains("notifications/progress"), "{ends_meanwhile}: {text}");
        // Who has the answer has all.
        let nothing = rest(come_back(&service, &session, Some(last_id(&text))).await).await;
        assert!(!nothing.contains("jsonrpc"), "{nothing}");
    }
}

#[tokio::test]
async fn answers_that_are_sent_again_count_until_they_are_read() {
    let handler = Handler::dynamic(|_, _| async { Ok(json!("x".repeat(300_000))) });
    let options = McpServerOptions::default().with_max_unread_bytes(1_000_000);
    let service = with(OperationKind::Mutation, handler).with_options(options).into_service();
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
    let read = rest(ask().open("tools/call", json!({ "name": "demo_run", "arguments": {} })).await).await;
    let first = read.lines().find_map(|line| line.strip_prefix("id:")).expect("an event with an id").trim();
    let mut unread = Vec::new();
    let refused = loop {
        let again = come_back(&service, &session, Some(first)).await;
        if again.status() != StatusCode::OK {
            break again;
        }
        unread.push(again);
        assert!(unread.len() < 10, "there is no bound");
    };
    assert_eq!((refused.status(), unread.is_empty()), (StatusCode::SERVICE_UNAVAILABLE, false));
    assert!(rest(refused).await.contains("max_unread_bytes"));
    drop(unread);
    let again = rest(come_back(&service, &session, Some(first)).await).await;
    assert!(again.contains("\"result\"") && last_id(&again) == last_id(&read));
}

/// What can be asked for again is not kept.
#[tokio::test]
async fn only_answers_to_calls_are_sent_again() {
    let service = McpServer::new(registry()).into_service();
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
    let read = rest(ask().open("tools/list", json!({})).await).await;
    let first = read.lines().find_map(|line| line.strip_prefix("id:")).expect("an event with an id").trim();
    let again = rest(come_back(&service, &session, Some(first)).await).await;
    assert!(read.contains("\"result\"") && !again.contains("jsonrpc"), "{again}");
}

#[tokio::test]
async fn the_server_s_own_messages_are_sent_once() {
    let registry = registry();
    let service = McpServer::new(registry.clone()).into_service();
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
    assert_eq!(ask().send("notifications/initialized", json!({})).await.status, StatusCode::ACCEPTED);
    until(StatusCode::OK, ask).await;
    let changed = "notifications/tools/list_changed";
    for (name, last_event, index) in [("new.one", None, "0"), ("new.two", None, "1"), ("new.three", Some("1"), "2")] {
        let listening = come_back(&service, &session, last_event).await;
        registry.register(echo(name, json!({}), json!({}))).unwrap();
        let text = read_until(listening, changed).await;
        assert_eq!((last_id(&text), text.matches(changed).count()), (index, 1), "{name}: {text}");
    }
}
