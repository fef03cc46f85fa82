//! A server that answers as it was told, and keeps what it was asked.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;

use crate::server::serve;

pub(crate) type Answer = fn() -> Response;

/// Answers in turn, the last for ever, and keeps what it was asked.
#[derive(Clone, Default)]
pub(crate) struct Script {
    answers: Arc<Mutex<Vec<Answer>>>,
    asked: Arc<Mutex<Vec<http::request::Parts>>>,
}

impl Script {
    pub(crate) async fn start(answers: &[Answer]) -> (Self, String) {
        let script = Self::default();
        script.answers.lock().unwrap().extend(answers.iter().rev());
        let app = Router::new().fallback(any(Self::answer)).with_state(script.clone());
        (script, serve(app).await)
    }

    async fn answer(State(script): State<Self>, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        axum::body::to_bytes(body, usize::MAX).await.unwrap();
        script.asked.lock().unwrap().push(parts);
        let mut answers = script.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().copied() };
        answer.unwrap()()
    }

    pub(crate) fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    pub(crate) fn header(&self, at: usize, name: &str) -> Option<String> {
        self.headers(at, name).into_iter().next()
    }

    /// All headers of a name.
    pub(crate) fn headers(&self, at: usize, name: &str) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked[at].headers.get_all(name).iter().map(|value| value.to_str().unwrap().to_owned()).collect()
    }
}

pub(crate) fn ok() -> Response {
    "fine".into_response()
}

pub(crate) fn unavailable() -> Response {
    StatusCode::SERVICE_UNAVAILABLE.into_response()
}
