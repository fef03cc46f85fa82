//! A server that keeps what arrives.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use bytes::Bytes;
use tokio::net::TcpListener;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arrived {
    /// The method.
    pub method: String,
    /// The path, escaped as it came.
    pub path: String,
    /// The query, escaped as it came; `None` if there is no `?`.
    pub query: Option<String>,
    /// The headers in their order, names in lower case.
    pub headers: Vec<(String, Bytes)>,
    /// The body.
    pub body: Bytes,
}

impl Arrived {
    /// The values of a header.
    pub fn header<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Bytes> {
        self.headers.iter().filter(move |(own, _)| own == name).map(|(_, value)| value)
    }
}

/// A server on the loopback interface that answers 404 to everything, and keeps it.
#[derive(Debug)]
pub struct Recorder {
    url: String,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Recorder {
    /// Starts a server, which ends when this is dropped.
    ///
    /// # Errors
    /// If no port can be had.
    pub async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let arrived: Arc<Mutex<Vec<Arrived>>> = Arc::default();
        let kept = arrived.clone();
        let app = Router::new().fallback(move |request: Request| {
            let kept = kept.clone();
            async move {
                let (head, body) = request.into_parts();
                let headers = head.headers.iter();
                let request = Arrived {
                    method: head.method.to_string(),
                    path: head.uri.path().to_owned(),
                    query: head.uri.query().map(str::to_owned),
                    headers: headers
                        .map(|(name, value)| (name.to_string(), Bytes::copy_from_slice(value.as_bytes())))
                        .collect(),
                    body: to_bytes(body, usize::MAX).await.unwrap_or_default(),
                };
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                StatusCode::NOT_FOUND
            }
        });
        let task = tokio::spawn(async move { _ = axum::serve(listener, app).await });
        Ok(Self { url, arrived, task })
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What has arrived since this was last asked.
    pub fn take(&self) -> Vec<Arrived> {
        std::mem::take(&mut *self.arrived.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.task.abort();
    }
}
