//! A service for the example, which keeps what it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

type Requests = Arc<Mutex<Vec<String>>>;

/// A running server.
pub(crate) struct Server {
    /// Its base URL.
    pub(crate) url: String,
    requests: Requests,
}

impl Server {
    /// The requests since the last call: method and path, every header but `host`, an empty line, the body. The boundary of
    /// a form, which is random, is `BOUNDARY`; a length that is that of the body is `LENGTH`.
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
    let mut headers: Vec<String> = parts
        .headers
        .iter()
        .filter(|(name, _)| *name != header::HOST)
        .map(|(name, value)| format!("{name}: {}\n", String::from_utf8_lossy(value.as_bytes())))
        .collect();
    headers.sort();
    let asked = format!("{} {}", parts.method, parts.uri);
    let mut whole = format!("{asked}\n{}\n{}", headers.concat(), String::from_utf8_lossy(&body));
    let length = format!("content-length: {}\n", body.len());
    whole = whole.replacen(&length, "content-length: LENGTH\n", 1);
    if let Some((_, boundary)) = headers.concat().split_once("boundary=") {
        whole = whole.replace(boundary.lines().next().unwrap_or_default(), "BOUNDARY");
    }
    requests.lock().unwrap_or_else(PoisonError::into_inner).push(whole);

    if parts.headers.get(header::AUTHORIZATION).is_none_or(|given| given != "Bearer t-1") {
        return (StatusCode::UNAUTHORIZED, axum::Json(json!({ "message": "who are you?" }))).into_response();
    }
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    let (status, answer) = match asked.as_str() {
        "GET /contacts?tag=friend" => {
            (StatusCode::OK, json!({ "items": [contact(1, "Ann"), contact(2, "Bob")], "next": "p 2" }))
        }
        "GET /contacts?cursor=p%202&tag=friend" => (StatusCode::OK, json!({ "items": [], "next": "p3" })),
        "GET /contacts?cursor=p3&tag=friend" => (StatusCode::OK, json!({ "items": [contact(3, "Cy")], "next": null })),
        "POST /contacts" if sent["email"] == "ann@example.com" => {
            (StatusCode::CONFLICT, json!({ "message": "is taken", "existing": contact(1, "Ann") }))
        }
        "POST /contacts" => (StatusCode::CREATED, contact(4, sent["name"].as_str().unwrap_or_default())),
        "POST /contacts/1/photo" | "POST /contacts/4/photo" => {
            (StatusCode::CREATED, json!({ "url": "https://example.com/photo.png", "bytes": 4 }))
        }
        "PATCH /contacts/1" => (StatusCode::OK, contact(1, "Ann")),
        "DELETE /contacts/1" => return StatusCode::NO_CONTENT.into_response(),
        _ => (StatusCode::NOT_FOUND, json!({ "message": "no such contact" })),
    };
    (status, axum::Json(answer)).into_response()
}

fn contact(id: i64, name: &str) -> Value {
    json!({ "id": id, "name": name, "email": null, "phone": null, "tags": ["friend"] })
}
