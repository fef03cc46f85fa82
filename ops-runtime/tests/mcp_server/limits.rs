//! What clients over HTTP may have in work, and what gets in all the same.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{Request, Response, StatusCode};
use futures_util::StreamExt;
use ops_runtime::adapter::Handler;
use ops_runtime::content::ContentBlock;
use ops_runtime::mcp::{McpBody, McpPeer, McpServer, McpServerOptions, McpService};
use ops_runtime::spec::OperationKind;
use ops_runtime::{Context, Registry, operation};
use serde_json::{Value, json};
use tower_service::Service;

use crate::client::{PATIENCE, REVISIONS};
use crate::http::Ask;
use crate::streams::{endless, soon, with};

/// The messages of a response, as they come.
struct Events {
    body: BodyDataStream,
    text: String,
}

impl Events {
    fn of(response: Response<McpBody>) -> Self {
        Self { body: Body::new(response.into_body()).into_data_stream(), text: String::new() }
    }

    async fn next(&mut self) -> Value {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let data =
                    event.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim).collect::<String>();
                self.text = rest.to_owned();
                if !data.is_empty() {
                    return serde_json::from_str(&data).unwrap();
                }
            }
            let bytes = tokio::time::timeout(PATIENCE, self.body.next()).await.expect("in time").expect("a message");
            self.text.push_str(std::str::from_utf8(&bytes.unwrap()).unwrap());
        }
    }
}

/// Sends until it is let in: a request takes its room for as long as its handler's task has not ended, which may be after its
/// answer.
async fn let_in(ask: impl Fn() -> Ask, method: &str, params: Value) -> Response<McpBody> {
    let sending = async {
        loop {
            let response = ask().open(method, params.clone()).await;
            if response.status() == StatusCode::OK {
                return response;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, sending).await.expect("in time")
}

/// A server whose tool asks the client.
fn asking(options: McpServerOptions) -> McpService {
    let handler = Handler::dynamic(|_, context: Context| async move {
        let peer = McpPeer::of(&context).unwrap();
        let schema = json!({ "type": "object", "properties": {} });
        let params = json!({ "message": "sure?", "requestedSchema": schema });
        Ok(peer.ask("sure", "elicitation/create", params).await?["action"].clone())
    });
    with(OperationKind::Query, handler).with_options(options).into_service()
}

#[tokio::test]
async fn what_calls_wait_for_gets_in_beyond_the_limits() {
    for (options, refused) in [
        (McpServerOptions::default().with_max_session_requests(1), StatusCode::TOO_MANY_REQUESTS),
        (McpServerOptions::default().with_max_requests(1), StatusCode::SERVICE_UNAVAILABLE),
    ] {
        let service = asking(options);
        let session = Ask::new(&service, REVISIONS[0]).initialize_with(json!({ "elicitation": {} })).await;
        let ask = || Ask::new(&service, REVISIONS[0]).with("mcp-session-id", &session);
        let call = json!({ "name": "demo_run", "arguments": {} });
        let mut events = Events::of(let_in(ask, "tools/call", call).await);
        let asked = events.next().await;
        assert_eq!(asked["method"], "elicitation/create", "{asked}");
        let more = ask().send("tools/list", json!({})).await;
        assert_eq!(more.status, refused, "{}", more.text);
        assert_eq!(ask().respond(&asked["id"], json!({ "action": "decline" })).await, StatusCode::ACCEPTED);
        let answer = events.next().await;
        assert_eq!(answer["result"]["content"][0]["text"], "decline", "{answer}");
    }
}

#[tokio::test]
async fn a_call_can_be_cancelled_and_a_session_ended_beyond_the_limits() {
    let (server, begun, dropped) = endless(false);
    let mut service = server.with_options(McpServerOptions::default().with_max_session_requests(1)).into_service();
    let session = Ask::new(&service, REVISIONS[0]).initialize().await;
    let in_session = service.clone();
    let ask = || Ask::new(&in_session, REVISIONS[0]).with("mcp-session-id", &session);
    let call = json!({ "name": "demo_run", "arguments": {} });
    let first = let_in(ask, "tools/call", call.clone()).await;
    soon(&begun).await;
    assert_eq!(ask().send("tools/list", json!({})).await.status, StatusCode::TOO_MANY_REQUESTS);
    let cancelled = ask().send("notifications/cancelled", json!({ "requestId": 1 })).await;
    assert_eq!(cancelled.status, StatusCode::ACCEPTED, "{}", cancelled.text);
    soon(&dropped).await;
    drop(first);
    let _second = let_in(ask, "tools/call", call).await;
    soon(&begun).await;
    // Another stream of the server's messages is one too many, and the end of the session is not.
    for (method, status) in [("GET", StatusCode::TOO_MANY_REQUESTS), ("DELETE", StatusCode::ACCEPTED)] {
        let request = Request::builder()
            .method(method)
            .uri("/mcp")
            .header("host", "localhost")
            .header("accept", "text/event-stream")
            .header("mcp-protocol-version", REVISIONS[0])
            .header("mcp-session-id", &session);
        let answer = service.call(request.body(Body::empty()).unwrap()).await.unwrap();
        assert_eq!(answer.status(), status, "{method}");
    }
    assert_eq!(ask().send("tools/list", json!({})).await.status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn who_only_listens_takes_no_room_of_requests() {
    let options = McpServerOptions::default().with_max_requests(1).with_max_streams(1);
    let service = with(OperationKind::Query, Handler::dynamic(|input, _| async move { Ok(input) }))
        .with_options(options)
        .into_service();
    let ask = || Ask::new(&service, REVISIONS[1]);
    let listen = json!({ "notifications": { "toolsListChanged": true } });
    let mut listening = Events::of(let_in(ask, "subscriptions/listen", listen.clone()).await);
    assert_eq!(listening.next().await["method"], "notifications/subscriptions/acknowledged");
    // Requests have their room.
    for _ in 0..3 {
        drop(let_in(ask, "tools/list", json!({})).await);
    }
    let more = told_why_not(ask, listen.clone()).await;
    assert!(more.contains("max_streams"), "{more}");
    drop(listening);
    let mut listening = Events::of(let_in(ask, "subscriptions/listen", listen).await);
    assert_eq!(listening.next().await["method"], "notifications/subscriptions/acknowledged");
}

/// What a client is told that can't listen, though there is room for its request.
async fn told_why_not(ask: impl Fn() -> Ask, listen: Value) -> String {
    let sending = async {
        loop {
            let refused = ask().send("subscriptions/listen", listen.clone()).await;
            assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE, "{}", refused.text);
            if !refused.text.contains("max_requests") {
                return refused.text;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, sending).await.expect("in time")
}

/// A picture of the screen.
#[operation(namespace = "media", kind = query)]
async fn screenshot() -> Vec<ContentBlock> {
    vec![ContentBlock::image("A".repeat(10_000), "image/png")]
}

#[tokio::test]
async fn pictures_that_wait_to_be_read_count() {
    let registry = Registry::new();
    registry.register(Screenshot).unwrap();
    let options = McpServerOptions::default().with_max_unread_bytes(10_000);
    let service = McpServer::new(registry).with_options(options).into_service();
    let ask = || Ask::new(&service, REVISIONS[1]);
    let unread = ask().open("tools/call", json!({ "name": "media_screenshot", "arguments": {} })).await;
    assert_eq!(unread.status(), StatusCode::OK);
    let refused = ask().send("tools/list", json!({})).await;
    assert!(refused.text.contains("max_unread_bytes"), "{}: {}", refused.status, refused.text);
    drop(unread);
    drop(let_in(ask, "tools/list", json!({})).await);
}
