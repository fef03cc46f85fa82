//! A server for the example, which keeps what it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::StatusCode;
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
    /// The requests so far: method, path and query, body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
    let asked = format!("{} {}", parts.method, parts.uri);
    let id = {
        let mut requests = requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.push(format!("{asked} {}", String::from_utf8_lossy(&body)));
        format!("req-{}", requests.iter().filter(|request| request.starts_with("GET /payments/")).count())
    };
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    let payment = |amount: &Value| json!({ "id": "tr_1", "status": "open", "amount": amount });
    let euros = json!({ "currency": "EUR", "value": "10.00" });
    let (status, answer) = match asked.as_str() {
        "POST /payments" if sent["amount"]["value"] == "free" => {
            (StatusCode::UNPROCESSABLE_ENTITY, json!({ "title": "not an amount", "field": "amount" }))
        }
        "POST /payments" => (StatusCode::CREATED, payment(&sent["amount"])),
        "GET /payments" => (StatusCode::OK, json!({ "payments": [payment(&euros)] })),
        "GET /payments/tr_1" => (StatusCode::OK, payment(&euros)),
        "GET /payments/tr_gone" => return StatusCode::GONE.into_response(),
        "GET /payments/tr_odd" => (StatusCode::IM_A_TEAPOT, json!("short and stout")),
        _ => (StatusCode::NOT_FOUND, json!({ "title": "no such payment" })),
    };
    (status, [("x-request-id", id)], axum::Json(answer)).into_response()
}
