//! A model for the example, which says what it was taught, and keeps what it was asked.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

type Requests = Arc<Mutex<Vec<String>>>;

/// A running server.
pub(crate) struct Server {
    /// Its base URL.
    pub(crate) url: String,
    requests: Requests,
}

impl Server {
    /// The requests since the last call: method and path, every header but `host`, an empty line, the body.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Starts a server.
pub(crate) async fn start() -> std::io::Result<Server> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let requests = Requests::default();
    let router = Router::new().fallback(answer).with_state(requests.clone());
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(Server { url, requests })
}

async fn answer(State(requests): State<Requests>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, 1 << 20).await.unwrap_or_default();
    let mut lines: Vec<String> = parts
        .headers
        .iter()
        .filter(|(name, _)| *name != header::HOST)
        .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    lines.sort();
    let asked = format!("{} {}", parts.method, parts.uri);
    let whole = format!("{asked}\n{}\n{}", lines.concat(), String::from_utf8_lossy(&body));
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(whole);

    if parts.headers.get(header::AUTHORIZATION).is_none_or(|given| given != "Bearer k-1") {
        let problem = json!({ "code": "no_such_key", "message": "the key is not known" });
        return (StatusCode::UNAUTHORIZED, axum::Json(problem)).into_response();
    }
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    let last = sent["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    if asked != "POST /replies" || last.is_null() {
        return (StatusCode::NOT_FOUND, axum::Json(json!({ "message": "there is nothing here" }))).into_response();
    }
    if sent["stream"] != true {
        let reply = json!({
            "id": "r-9",
            "message": { "role": "assistant", "content": "At once.", "tool_calls": [] },
            "finish_reason": "stop",
        });
        return axum::Json(reply).into_response();
    }
    events(&reply_to(&last))
}

/// The events of a reply to the last message of a conversation.
fn reply_to(last: &Value) -> Vec<Value> {
    let finished = |reason: &str| {
        let usage = json!({ "input_tokens": 20, "output_tokens": 7 });
        json!({ "type": "reply.finished", "finish_reason": reason, "usage": usage })
    };
    let call = |id: &str, name: &str, arguments: &str| {
        let call = json!({ "id": id, "name": name, "arguments": arguments });
        json!({ "type": "tool.called", "call": call })
    };
    let text = |text: &str| json!({ "type": "text.delta", "text": text });
    let mut events = vec![json!({ "type": "reply.started", "id": "r-1" })];
    match (last["role"].as_str(), last["content"][0]["text"].as_str()) {
        (Some("tool"), _) if last["tool_call_id"] == "c-4" => {
            events.extend([call("c-4", "temperature", r#"{"city":"Rome"}"#)])
        }
        (Some("tool"), _) => events.extend([text("Yes: it is "), text("−4.5 °C in Oslo."), finished("stop")]),
        (_, Some("Is it hot?")) => {
            let problem = json!({ "code": null, "message": "the model is tired" });
            events.extend([text("It "), json!({ "type": "reply.failed", "problem": problem })]);
        }
        (_, Some("Is it warm?")) => {
            events.extend([call("c-3", "temperature", r#"{"city":"Os"#), finished("tool_calls")])
        }
        (_, Some("How is it everywhere?")) => events.extend([call("c-4", "temperature", "{}"), finished("tool_calls")]),
        _ => events.extend([
            text("Let me see."),
            call("c-1", "temperature", r#"{"city":"Oslo"}"#),
            call("c-2", "humidity", "{}"),
            finished("tool_calls"),
        ]),
    }
    events
}

/// A stream of events in pieces that end anywhere, within a character, too. Between them are events of a kind that is not
/// described.
fn events(events: &[Value]) -> Response {
    let ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n{ping}", event["type"].as_str().unwrap_or_default());
    let text: String = events.iter().map(event).collect();
    let pieces: Vec<Result<Vec<u8>, Infallible>> = text.as_bytes().chunks(7).map(|piece| Ok(piece.to_vec())).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream::iter(pieces))).into_response()
}
