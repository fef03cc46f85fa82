//! Servers at a URL that misbehave.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, Response, StatusCode};
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use ops_runtime::ErrorCode;
use ops_runtime::mcp::{McpClient, McpServerConfig};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use crate::peers::LONG;

/// What the next call of a tool meets.
#[derive(Clone)]
pub(crate) enum Fault {
    Status(StatusCode, &'static [(&'static str, &'static str)], &'static str),
    /// A stream that ends before the answer, after these events.
    Drop(&'static str),
    /// The answer as an event of the stream that takes over, or of this one.
    Event(&'static str),
    /// Never an answer.
    Silence,
    /// A connection that breaks off before the response, or in the middle of it.
    Reset,
    Half,
    /// A body that is longer than it may be.
    Huge,
    Redirect(String),
    /// A question first, whose answer the server is slow to accept.
    Ask,
}

/// Longer than rmcp itself waits until an answer is accepted.
const SLOW: Duration = Duration::from_secs(6);

#[derive(Clone, Default)]
pub(crate) struct Server {
    faults: Arc<Mutex<VecDeque<Fault>>>,
    /// The methods that came, with the session they came in.
    seen: Arc<Mutex<Vec<String>>>,
    sessions: Arc<Mutex<u32>>,
    /// The headers of the requests.
    headers: Arc<Mutex<Vec<HeaderMap>>>,
    /// Told when the answer to a question is accepted.
    accepted: Arc<Mutex<Option<oneshot::Sender<()>>>>,
    /// The answers to questions.
    pub(crate) replies: Arc<Mutex<Vec<Value>>>,
    /// True if it refuses them.
    pub(crate) refuses: Arc<AtomicBool>,
    /// What the next `initialize` meets.
    pub(crate) beginning: Arc<Mutex<Option<Fault>>>,
    /// What `server/discover` meets.
    discovery: Arc<Mutex<Option<Fault>>>,
    /// True if it has only the newest revision, and does not answer the first `server/discover`.
    is_new: Arc<AtomicBool>,
}

impl Server {
    pub(crate) async fn start() -> (Self, String) {
        let server = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(server.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (server, url)
    }

    pub(crate) fn then(&self, fault: Fault) {
        self.faults.lock().unwrap().push_back(fault);
    }

    pub(crate) fn count(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| seen.starts_with(what)).count()
    }
}

pub(crate) fn response(status: StatusCode, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    response.body(body.into()).unwrap()
}

fn answer(id: &Value, result: &Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string()
}

pub(crate) async fn serve(
    State(server): State<Server>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response<Body> {
    server.headers.lock().unwrap().push(headers.clone());
    let session = headers.get("mcp-session-id").map_or("none", |session| session.to_str().unwrap()).to_owned();
    let json = [("content-type", "application/json")];
    if method != Method::POST {
        let resumes = headers.get("last-event-id").map(|id| id.to_str().unwrap().to_owned());
        server.seen.lock().unwrap().push(format!("{method} {}", resumes.as_deref().unwrap_or_default()));
        return match resumes {
            // The id of the event is that of the request.
            Some(id) => {
                let event = format!("data: {}\n\n", answer(&id.parse().unwrap(), &text("resumed")));
                response(StatusCode::OK, &[("content-type", "text/event-stream")], event)
            }
            None => response(StatusCode::METHOD_NOT_ALLOWED, &[], ""),
        };
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let (id, called) = (&message["id"], message["method"].as_str().unwrap_or("response"));
    server.seen.lock().unwrap().push(format!("{called} {session}"));
    match called {
        "initialize" if server.is_new.load(Ordering::Relaxed) => {
            let error =
                json!({ "code": -32022, "message": "no initialize here", "data": { "supported": ["2026-07-28"] } });
            response(StatusCode::BAD_REQUEST, &json, json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string())
        }
        "initialize" => {
            // A fault may panic, and must not poison the lock.
            let fault = server.beginning.lock().unwrap().take();
            if let Some(fault) = fault {
                return meet(&server, fault, id);
            }
            let number = {
                let mut sessions = server.sessions.lock().unwrap();
                *sessions += 1;
                *sessions
            };
            let capabilities = json!({ "tools": {} });
            let info = json!({ "name": "faulty-http", "version": "1" });
            let result = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info });
            let headers = [json[0], ("mcp-session-id", &format!("session-{number}"))];
            response(StatusCode::OK, &headers, answer(id, &result))
        }
        "tools/list" => {
            let tool = json!({ "name": "work", "inputSchema": { "type": "object" }, "x-note": "kept" });
            let mut list = json!({ "tools": [tool] });
            if server.is_new.load(Ordering::Relaxed) {
                list = json!({ "tools": [tool], "resultType": "complete", "ttlMs": 0, "cacheScope": "private" });
            }
            response(StatusCode::OK, &json, answer(id, &list))
        }
        "tools/call" => {
            let fault = server.faults.lock().unwrap().pop_front();
            match fault {
                None => response(StatusCode::OK, &json, answer(id, &text("worked"))),
                Some(fault) => meet(&server, fault, id),
            }
        }
        "response" => {
            server.replies.lock().unwrap().push(message.clone());
            let accepted = server.accepted.lock().unwrap().take();
            if server.refuses.load(Ordering::Relaxed) {
                // The call is answered all the same.
                tokio::spawn(async move {
                    sleep(Duration::from_millis(300)).await;
                    accepted.map(|accepted| accepted.send(()))
                });
                let error = json!({ "code": -32600, "message": "no such question" });
                let refusal = json!({ "jsonrpc": "2.0", "id": id, "error": error });
                return response(StatusCode::BAD_REQUEST, &json, refusal.to_string());
            }
            sleep(SLOW).await;
            if let Some(accepted) = accepted {
                let _ = accepted.send(());
            }
            response(StatusCode::ACCEPTED, &[], "")
        }
        "server/discover" if server.is_new.load(Ordering::Relaxed) => {
            if server.count("server/discover") == 1 {
                return meet(&server, Fault::Silence, id);
            }
            let info = json!({ "io.modelcontextprotocol/serverInfo": { "name": "faulty-http", "version": "1" } });
            let result = json!({
                "resultType": "complete",
                "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} },
                "_meta": info,
                "ttlMs": 0,
                "cacheScope": "private",
            });
            response(StatusCode::OK, &json, answer(id, &result))
        }
        "server/discover" => {
            if let Some(fault) = server.discovery.lock().unwrap().clone() {
                return meet(&server, fault, id);
            }
            let error = json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": "no session" } });
            response(StatusCode::BAD_REQUEST, &json, error.to_string())
        }
        _ => response(StatusCode::ACCEPTED, &[], ""),
    }
}

fn meet(server: &Server, fault: Fault, id: &Value) -> Response<Body> {
    let events = [("content-type", "text/event-stream")];
    match fault {
        Fault::Status(status, headers, body) => response(status, headers, body.replace("ID", &id.to_string())),
        Fault::Drop(before) => response(StatusCode::OK, &events, before.replace("ID", &id.to_string())),
        Fault::Event(before) => {
            let event = format!("{}data: {}\n\n", before.replace("ID", &id.to_string()), answer(id, &text("streamed")));
            // Byte by byte, so that nothing relies on where a piece ends.
            let bytes: Vec<_> =
                event.into_bytes().into_iter().map(|byte| Ok::<_, std::io::Error>(vec![byte])).collect();
            response(StatusCode::OK, &events, Body::from_stream(stream::iter(bytes)))
        }
        Fault::Silence => {
            response(StatusCode::OK, &events, Body::from_stream(stream::pending::<std::io::Result<Bytes>>()))
        }
        // The task of the connection ends.
        Fault::Reset => std::panic::resume_unwind(Box::new("no response")),
        Fault::Half => {
            let pieces = [Ok("{\"jsonrpc\": \"2.0\", "), Err(std::io::Error::other("the rest is lost"))];
            response(StatusCode::OK, &[("content-type", "application/json")], Body::from_stream(stream::iter(pieces)))
        }
        Fault::Huge => {
            let piece = Bytes::from(vec![b' '; 1 << 20]);
            let pieces = stream::iter((0..100).map(move |_| Ok::<_, std::io::Error>(piece.clone())));
            response(StatusCode::OK, &[("content-type", "application/json")], Body::from_stream(pieces))
        }
        Fault::Ask => {
            let (sender, accepted) = oneshot::channel();
            *server.accepted.lock().unwrap() = Some(sender);
            let params = json!({ "message": "Which?", "requestedSchema": { "type": "object", "properties": {} } });
            // Its id is that of the call: each side counts for itself.
            let question = json!({ "jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": params });
            let asked = futures_util::future::ready(Ok(format!("data: {question}\n\n")));
            let answer = format!("data: {}\n\n", answer(id, &text("asked")));
            // If the client has given its answer up, so does the server.
            let answered = async move { accepted.await.map(|()| answer).map_err(std::io::Error::other) };
            response(StatusCode::OK, &events, Body::from_stream(stream::once(asked).chain(stream::once(answered))))
        }
        Fault::Redirect(url) => response(StatusCode::TEMPORARY_REDIRECT, &[("location", &url)], ""),
    }
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

pub(crate) async fn connect(config: McpServerConfig) -> McpClient {
    crate::peers::connect(config.with_namespace("far")).await
}

pub(crate) async fn work(client: &McpClient) -> Result<String, ops_runtime::CallError> {
    let answer = timeout(LONG, client.call("far.work", json!({}))).await.expect("an end in time")?;
    Ok(answer.data[0]["text"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_session_is_kept_and_ended() {
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    assert_eq!(client.server_info().name, "faulty-http");
    assert_eq!(client.tools()[0]["x-note"], "kept");
    assert_eq!(work(&client).await.unwrap(), "worked");
    client.close().await;
    let seen = server.seen.lock().unwrap().clone();
    assert_eq!(seen[..3], ["server/discover none", "initialize none", "notifications/initialized session-1"]);
    assert!(seen.contains(&"tools/call session-1".to_owned()), "{seen:?}");
    assert!(seen.last().unwrap().starts_with("DELETE"), "{seen:?}");
}

#[tokio::test]
async fn a_refusal_has_its_status_and_is_not_repeated() {
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    const CHALLENGED: &[(&str, &str)] = &[("content-type", "application/json"), ("www-authenticate", "Bearer")];
    const ANSWER: &str = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"no"}}"#;
    const LINES: &[(&str, &str)] = &[("www-authenticate", "Basic"), ("www-authenticate", "Bearer scope=\"a\"")];
    for (status, headers, body, message, details) in [
        (401, &[][..], "go away", "HTTP 401: Unauthorized", json!({ "body": "go away" })),
        (401, LINES, "it has expired", "HTTP 401: Unauthorized", json!({ "body": "it has expired" })),
        (403, LINES, "", "HTTP 403: Forbidden", json!({ "body": "" })),
        (401, CHALLENGED, ANSWER, "HTTP 401: Unauthorized", json!({})),
        (429, &[("retry-after", "7")], "slow down", "try again after 7", json!({ "body": "slow down" })),
        (500, JSON, r#"{"oops":1}"#, "HTTP 500: Internal Server Error", json!({ "body": { "oops": 1 } })),
        (502, &[], "<html>", "HTTP 502: Bad Gateway", json!({ "body": "<html>" })),
    ] {
        let before = server.count("tools/call");
        server.then(Fault::Status(StatusCode::from_u16(status).unwrap(), headers, body));
        let error = work(&client).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ExecutionError);
        assert!(error.message().starts_with("the MCP server `far`: ") && error.message().contains(message), "{error}");
        assert_eq!(error.details()["statusCode"], status, "{error:?}");
        if let Some(body) = details.get("body") {
            assert_eq!(error.details()["body"], *body);
        }
        for (name, _) in headers {
            let lines = headers.iter().filter(|(own, _)| own == name).map(|(_, value)| *value);
            assert_eq!(error.details()["headers"][name], lines.collect::<Vec<_>>().join(", "));
        }
        assert_eq!(server.count("tools/call"), before + 1, "{status}");
        assert_eq!(work(&client).await.unwrap(), "worked", "after {status}");
    }
    // With another status, a challenge means nothing.
    server.then(Fault::Status(StatusCode::BAD_REQUEST, CHALLENGED, ANSWER));
    let error = work(&client).await.unwrap_err();
    assert_eq!(*error.details(), json!({ "server": "far", "code": -32001, "message": "no" }));
    assert_eq!(client.in_flight(), 0);
    client.close().await;
}

#[tokio::test]
async fn an_expired_session_is_replaced() {
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    // The server has not begun what it refuses so, and says that the client must begin again.
    server.then(Fault::Status(StatusCode::NOT_FOUND, &[], ""));
    assert_eq!(work(&client).await.unwrap(), "worked");
    assert_eq!((server.count("tools/call session-1"), server.count("tools/call session-2")), (1, 1));
    // One that is refused in the new session, too, fails.
    server.then(Fault::Status(StatusCode::NOT_FOUND, &[], ""));
    server.then(Fault::Status(StatusCode::NOT_FOUND, &[], ""));
    let error = work(&client).await.unwrap_err();
    assert_eq!(error.details()["statusCode"], 404, "{error:?}");
    assert_eq!(client.in_flight(), 0);
    client.close().await;
}

#[tokio::test]
async fn a_stream_that_breaks_off_fails_the_call_or_is_resumed() {
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    server.then(Fault::Drop(": nothing yet\n\n"));
    let error = work(&client).await.unwrap_err();
    assert_eq!(error.details()["interrupted"], true, "{error:?}");
    assert!(error.message().contains("not repeated"), "{error}");
    assert_eq!(server.count("tools/call"), 1);
    // With the id of an event it goes on where it broke off.
    server.then(Fault::Drop("id: ID\nretry: 10\ndata:\n\n"));
    assert_eq!(work(&client).await.unwrap(), "resumed");
    server.then(Fault::Drop("retry: 10\nid: ID\n\n"));
    assert_eq!(work(&client).await.unwrap(), "resumed");
    assert_eq!((server.count("tools/call"), client.in_flight()), (3, 0));
    client.close().await;
}

#[tokio::test]
async fn a_call_that_may_have_been_carried_out_is_told_from_others() {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    const NOT_JSON: &[(&str, &str)] = &[("content-type", "text/html")];
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url).with_max_message(1 << 20)).await;
    let said = |kind, body| Fault::Status(StatusCode::OK, kind, body);
    for (fault, is_unsure) in [
        (Fault::Reset, true),
        (Fault::Half, true),
        (Fault::Huge, true),
        (said(NOT_JSON, "<html>"), true),
        (said(JSON, "{"), true),
        (said(JSON, r#"{"jsonrpc":"2.0","id":99999,"result":{}}"#), true),
        (Fault::Redirect("http://127.0.0.1:9/mcp".to_owned()), false),
    ] {
        let calls = server.count("tools/call");
        server.then(fault);
        let error = work(&client).await.unwrap_err();
        let details = if is_unsure { json!({ "server": "far", "interrupted": true }) } else { Value::Null };
        assert_eq!(*error.details(), details, "{error}");
        assert_eq!(error.message().ends_with("so it is not repeated"), is_unsure, "{error}");
        assert_eq!(server.count("tools/call"), calls + 1, "{error}");
    }
    assert_eq!((work(&client).await.unwrap().as_str(), client.in_flight()), ("worked", 0));
    client.close().await;
}

#[tokio::test]
async fn events_are_read_whatever_comes_before_the_answer() {
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    for before in [
        "",
        ": a comment\n\nevent: ping\ndata: {}\n\n",
        "data: no JSON\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"id\":99999,\"result\":{}}\n\n",
        "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":ID,\"progress\":1}}\n\n",
    ] {
        server.then(Fault::Event(before));
        assert_eq!(work(&client).await.unwrap(), "streamed", "{before}");
    }
    client.close().await;
}

#[tokio::test]
async fn a_batch_holds_the_answer() {
    const BATCH: &str = r#"[{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":ID,"progress":1}},{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"in a batch"}]}}]"#;
    const ALONE: &str = r#"[{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"in a batch"}]}}]"#;
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream")];
    let (server, url) = Server::start().await;
    let client = connect(McpServerConfig::http(url)).await;
    for batch in [BATCH, ALONE] {
        server.then(Fault::Status(StatusCode::OK, JSON, batch));
        assert_eq!(work(&client).await.unwrap(), "in a batch", "{batch}");
        let event: &'static str = format!("data: {batch}\n\n").leak();
        server.then(Fault::Status(StatusCode::OK, EVENTS, event));
        assert_eq!(work(&client).await.unwrap(), "in a batch", "{event}");
    }
    assert_eq!((server.count("tools/call"), client.in_flight()), (4, 0));
    client.close().await;
}

#[tokio::test]
async fn no_header_is_sent_twice() {
    let (server, url) = Server::start().await;
    let config = McpServerConfig::http(url)
        .with_header("Content-Type", "application/json")
        .with_header("Accept", "application/json, text/event-stream")
        .with_header("Authorization", "Bearer of-the-file")
        .with_header("X-Own", "kept")
        .with_bearer("t0ken");
    let client = connect(config).await;
    assert_eq!(work(&client).await.unwrap(), "worked");
    client.close().await;
    for headers in server.headers.lock().unwrap().iter() {
        let twice: Vec<_> = headers.keys().filter(|name| headers.get_all(*name).iter().count() > 1).collect();
        assert!(twice.is_empty(), "{twice:?} of {headers:?}");
        assert_eq!(headers["authorization"], "Bearer t0ken");
        assert_eq!(headers["x-own"], "kept");
    }
}

#[tokio::test]
async fn a_server_of_the_newest_revision_may_be_slow_at_first() {
    let (server, url) = Server::start().await;
    server.is_new.store(true, Ordering::Relaxed);
    let client = connect(McpServerConfig::http(url)).await;
    assert_eq!(client.server_info().protocol_version, "2026-07-28");
    assert_eq!((server.count("server/discover"), server.count("initialize")), (2, 1));
    assert_eq!(work(&client).await.unwrap(), "worked");
    client.close().await;
}

#[tokio::test]
async fn a_server_that_does_not_answer_what_it_does_not_know_is_an_old_one() {
    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];
    let faults = [
        Fault::Status(StatusCode::ACCEPTED, &[], ""),
        Fault::Status(StatusCode::OK, JSON, ""),
        Fault::Drop(": nothing\n\n"),
        Fault::Silence,
    ];
    let connected = faults.map(|fault| async move {
        let (server, url) = Server::start().await;
        *server.discovery.lock().unwrap() = Some(fault);
        let client = connect(McpServerConfig::http(url)).await;
        assert_eq!((client.server_info().protocol_version.as_str(), server.count("initialize")), ("2025-11-25", 1));
        assert_eq!(work(&client).await.unwrap(), "worked");
        client.close().await;
    });
    join_all(connected).await;
}

#[tokio::test]
async fn an_answer_has_limits_of_time_and_size() {
    let (server, url) = Server::start().await;
    let limits = McpServerConfig::http(url).with_timeout(Duration::from_secs(3)).with_max_message(1 << 20);
    let client = connect(limits).await;
    server.then(Fault::Silence);
    assert_eq!(work(&client).await.unwrap_err().code(), &ErrorCode::Timeout);
    server.then(Fault::Huge);
    let error = work(&client).await.unwrap_err();
    assert!(error.message().contains("1048576 bytes"), "{error}");
    assert_eq!(work(&client).await.unwrap(), "worked");
    assert_eq!(client.in_flight(), 0);
    client.close().await;
}

#[tokio::test]
async fn a_url_without_a_server_is_an_error() {
    let unused = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let url = format!("http://{unused}/secret-path");
    let error = McpClient::connect(McpServerConfig::http(url)).await.unwrap_err();
    assert!(error.message().starts_with(&format!("cannot connect to the MCP server `{unused}`")), "{error}");
    assert!(!error.message().contains("secret-path"), "{error}");
    let error = McpClient::connect(McpServerConfig::http("ftp://x")).await.unwrap_err();
    assert!(error.message().contains("http"), "{error}");
}
