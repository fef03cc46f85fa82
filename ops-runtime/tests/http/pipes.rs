//! Pipes that are given as files: what was read of one does not come again, so it is sent once.

use std::io::{PipeReader, Write};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::put;
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, Retry, TokenRequest};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Body, Call, CallError, CallOptions, Operation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::server::serve;

#[derive(Serialize, Deserialize)]
struct Upload {
    body: Body,
}

struct Put;

impl Operation for Put {
    type Input = Upload;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.put")
        .with_http(HttpBinding::new("PUT", "/x").with_bodies(const { &[HttpBody::new("application/octet-stream")] }));
}

impl Call for Put {}

/// The end of a pipe that holds some bytes, and the body that it is.
fn pipe() -> (PipeReader, Body) {
    let (end, mut start) = std::io::pipe().unwrap();
    start.write_all(b"once").unwrap();
    let path = format!("/dev/fd/{}", end.as_raw_fd());
    (end, Body::file(path))
}

/// Answers the first request in its own way, and takes all others; keeps what it was sent.
async fn start(first: fn() -> Response) -> (Arc<Mutex<Vec<Bytes>>>, String) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let log = sent.clone();
    let take = move |body: Bytes| {
        let mut log = log.lock().unwrap();
        log.push(body);
        let answer = if log.len() == 1 { first() } else { "1".into_response() };
        async { answer }
    };
    (sent, serve(Router::new().route("/x", put(take))).await)
}

async fn send(config: HttpConfig) -> Result<Value, CallError> {
    let (_end, body) = pipe();
    Ok(HttpClient::new(config)?.execute::<Put>(Upload { body }).await?.data)
}

#[tokio::test]
async fn a_pipe_is_sent_once() {
    let fine: fn() -> Response = || "1".into_response();
    let (sent, url) = start(fine).await;
    send(HttpConfig::new().with_base_url(url)).await.unwrap();
    assert_eq!(*sent.lock().unwrap(), ["once"]);

    let tokens = AtomicUsize::new(0);
    let source = Auth::token_source(move |_: TokenRequest| {
        let number = tokens.fetch_add(1, Ordering::SeqCst);
        async move { Ok(format!("t{number}").into()) }
    });
    let refused: fn() -> Response = || StatusCode::UNAUTHORIZED.into_response();
    let busy: fn() -> Response = || StatusCode::SERVICE_UNAVAILABLE.into_response();
    for (first, status) in [(refused, 401), (busy, 503)] {
        let (sent, url) = start(first).await;
        let config = HttpConfig::new().with_base_url(url).with_auth(source.clone()).with_retries(Retry::new());
        let error = send(config).await.unwrap_err();
        // The caller may send another pipe.
        assert_eq!((error.status(), error.is_retryable()), (Some(status), status == 503));
        assert_eq!(*sent.lock().unwrap(), ["once"]);
    }

    let (sent, url) = start(|| (StatusCode::TEMPORARY_REDIRECT, [("location", "/x")]).into_response()).await;
    let error = send(HttpConfig::new().with_base_url(url)).await.unwrap_err();
    assert!(error.message().contains("a stream or a pipe, which can be sent once only"), "{error}");
    assert_eq!(*sent.lock().unwrap(), ["once"]);
}

/// Files below `/proc` have a size of 0, whatever they hold.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_file_whose_size_is_0_is_sent_whole() {
    let (sent, url) = start(|| "1".into_response()).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    client.execute::<Put>(Upload { body: Body::file("/proc/version") }).await.unwrap();
    assert_eq!(*sent.lock().unwrap(), [std::fs::read("/proc/version").unwrap()]);
}

#[tokio::test]
async fn a_file_that_is_gone_is_no_broken_connection() {
    for retries in [None, Some(Retry::new())] {
        let (_, url) = start(|| "1".into_response()).await;
        let path = std::env::temp_dir().join(format!("ops-gone-{}-{}", std::process::id(), retries.is_some()));
        std::fs::write(&path, "hello").unwrap();
        let file = path.clone();
        // It was there when its length was found.
        let config = HttpConfig::new().with_base_url(url).with_before(move |_| {
            let _ = std::fs::remove_file(&file);
            Ok(())
        });
        let client = HttpClient::new(config).unwrap();
        let options = CallOptions::new().with_retries(retries);
        let error = client.execute_with::<Put>(Upload { body: Body::file(path) }, options).await.unwrap_err();
        assert!(!error.is_retryable() && error.message().starts_with("the request to "), "{error}");
    }
}
