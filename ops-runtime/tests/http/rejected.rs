//! Tokens that a server rejects where the request cannot be sent again, and those that it does not reject.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::stream;
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::http::{Auth, ClientCredentials, HttpClient, HttpConfig, Secret, TokenRequest};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Body, Call, CallError, Operation};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::server::{get_of, serve, spec};

#[derive(Serialize, Deserialize)]
struct Upload {
    body: Body,
}

struct Send;

impl Operation for Send {
    type Input = Upload;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.send")
        .with_http(HttpBinding::new("POST", "/x").with_bodies(const { &[HttpBody::new("application/octet-stream")] }));
}

impl Call for Send {}

/// A token endpoint, and what it guards: only the tokens after the first so many are good.
async fn guarded(revoked: Arc<AtomicUsize>) -> String {
    let given = Arc::new(AtomicUsize::new(0));
    let token = move || {
        let number = given.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Json(json!({ "access_token": format!("t{number}"), "token_type": "bearer" })) }
    };
    let guard = move |request: Request| {
        let token = request.headers()["authorization"].to_str().unwrap().strip_prefix("Bearer t").map(str::to_owned);
        let is_good = token.as_ref().unwrap().parse::<usize>().unwrap() > revoked.load(Ordering::SeqCst);
        async move {
            axum::body::to_bytes(request.into_body(), usize::MAX).await.unwrap();
            if is_good { Json(token).into_response() } else { StatusCode::UNAUTHORIZED.into_response() }
        }
    };
    serve(Router::new().route("/token", post(token)).route("/x", any(guard))).await
}

async fn send(client: &HttpClient) -> Result<Value, CallError> {
    let body = Body::stream(stream::iter([Ok(Bytes::from_static(b"once"))]));
    client.execute::<Send>(Upload { body }).await.map(|sent| sent.data)
}

#[tokio::test]
async fn a_token_is_given_up_though_the_body_cannot_be_sent_again() {
    let revoked = Arc::new(AtomicUsize::new(0));
    let url = guarded(revoked.clone()).await;
    let credentials = ClientCredentials::new("id", "secret").with_token_url(format!("{url}/token"));
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_auth(credentials)).unwrap();
    assert_eq!(send(&client).await.unwrap(), "1");
    revoked.store(1, Ordering::SeqCst);
    assert_eq!(send(&client).await.unwrap_err().status(), Some(401));
    assert_eq!(send(&client).await.unwrap(), "2");
}

/// A source of the tokens `t1`, and after a rejection `t2`, and what it was told.
fn source() -> (Auth, Arc<Mutex<Vec<bool>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let source = Auth::token_source(move |request: TokenRequest| {
        let mut log = log.lock().unwrap();
        log.push(request.rejected);
        let token = if log.contains(&true) { "t2" } else { "t1" };
        async move { Ok(token.into()) }
    });
    (source, asked)
}

#[tokio::test]
async fn a_source_is_told_of_the_rejection_with_the_next_call() {
    let url = guarded(Arc::new(AtomicUsize::new(1))).await;
    let (source, asked) = source();
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_auth(source)).unwrap();
    assert_eq!(send(&client).await.unwrap_err().status(), Some(401));
    assert_eq!(send(&client).await.unwrap(), "2");
    assert_eq!(send(&client).await.unwrap(), "2");
    assert_eq!(*asked.lock().unwrap(), [false, true, false]);
}

#[tokio::test]
async fn calls_that_are_refused_at_once_renew_a_token_once() {
    let both = Arc::new(Barrier::new(2));
    let guard = move |request: Request| {
        let both = both.clone();
        let token = request.headers()["authorization"].to_str().unwrap().to_owned();
        async move {
            if token == "Bearer t2" {
                return "fine".into_response();
            }
            if token == "Bearer t1" {
                // Both calls have sent the old token before either is refused.
                both.wait().await;
            }
            StatusCode::UNAUTHORIZED.into_response()
        }
    };
    let url = serve(Router::new().route("/x", any(guard))).await;
    let renewed = Arc::new(AtomicUsize::new(0));
    let (kept, count) = (Arc::new(tokio::sync::Mutex::new(Secret::from("t1"))), renewed.clone());
    let source = Auth::token_source(move |request: TokenRequest| {
        let (kept, count) = (kept.clone(), count.clone());
        async move {
            let mut token = kept.lock().await;
            if request.rejected_token.as_ref() == Some(&*token) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                *token = format!("t{}", 2 + count.fetch_add(1, Ordering::Relaxed)).into();
            }
            Ok(token.clone())
        }
    });
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_auth(source)).unwrap();
    client.add([spec(ops_runtime::spec::OperationKind::Query, "x", get_of("/x"))]).unwrap();
    let (one, other) = tokio::join!(client.call("t.x", json!({})), client.call("t.x", json!({})));
    assert_eq!((one.unwrap().data, other.unwrap().data), (json!("fine"), json!("fine")));
    assert_eq!(renewed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn new_tokens_are_kept_though_the_server_rejects_them_too() {
    let given = Arc::new(AtomicUsize::new(0));
    let counted = given.clone();
    let token = move || {
        let number = counted.fetch_add(1, Ordering::SeqCst) + 1;
        async move { Json(json!({ "access_token": format!("t{number}"), "token_type": "bearer" })) }
    };
    let refuse = || async { StatusCode::UNAUTHORIZED };
    let app = Router::new().route("/token", post(token)).route("/x", any(refuse)).route("/y", any(|| async { "1" }));
    let url = serve(app).await;
    let credentials = ClientCredentials::new("id", "secret").with_token_url(format!("{url}/token"));
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_auth(credentials)).unwrap();
    let operation =
        |name: &'static str, path: &'static str| spec(ops_runtime::spec::OperationKind::Query, name, get_of(path));
    client.add([operation("x", "/x"), operation("y", "/y")]).unwrap();
    for calls in 1..4 {
        assert_eq!(client.call("t.x", json!({})).await.unwrap_err().status(), Some(401));
        assert_eq!(client.call("t.y", json!({})).await.unwrap().data, json!("1"));
        assert_eq!(given.load(Ordering::SeqCst), calls + 1);
    }
}

#[tokio::test]
async fn another_origin_rejects_no_token() {
    async fn refuse() -> Response {
        StatusCode::UNAUTHORIZED.into_response()
    }
    let abroad = serve(Router::new().route("/x", any(refuse))).await;
    let to = format!("{abroad}/x");
    let app = Router::new().route("/x", any(|| async { (StatusCode::FOUND, [("location", to)]) }));
    let (source, asked) = source();
    let client = HttpClient::new(HttpConfig::new().with_base_url(serve(app).await).with_auth(source)).unwrap();
    client.add([spec(ops_runtime::spec::OperationKind::Query, "x", get_of("/x"))]).unwrap();
    for _ in 0..2 {
        assert_eq!(client.call("t.x", json!({})).await.unwrap_err().status(), Some(401));
    }
    assert_eq!(*asked.lock().unwrap(), [false, false]);
}
