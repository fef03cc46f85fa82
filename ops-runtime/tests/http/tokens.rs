//! Token endpoints that are slow, or busy for a while.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{any, post};
use axum::{Json, Router};
use ops_runtime::binding::HttpBinding;
use ops_runtime::http::{Auth, ClientCredentials, HttpClient, HttpConfig, Retry, TokenRequest};
use ops_runtime::spec::OperationKind;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::server::{get_of, serve, spec};

/// A token endpoint that is slow, and busy for the first so many requests, and an API behind it.
async fn start(slow: Duration, busy: usize) -> (Arc<AtomicUsize>, String) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let token = move || {
        let is_busy = counted.fetch_add(1, Ordering::SeqCst) < busy;
        async move {
            tokio::time::sleep(slow).await;
            match is_busy {
                true => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "0")]).into_response(),
                false => Json(json!({ "access_token": "t1", "token_type": "bearer" })).into_response(),
            }
        }
    };
    let app = Router::new().route("/token", post(token)).route("/x", any(|| async { "fine" }));
    (asked, serve(app).await)
}

fn client(url: &str, config: HttpConfig) -> HttpClient {
    let credentials = ClientCredentials::new("id", "secret").with_token_url(format!("{url}/token"));
    let client = HttpClient::new(config.with_base_url(url).with_auth(credentials)).unwrap();
    client.add([spec(OperationKind::Mutation, "x", HttpBinding::new("POST", "/x"))]).unwrap();
    client
}

#[tokio::test]
async fn calls_that_have_little_time_get_a_slow_token_in_the_end() {
    let (asked, url) = start(Duration::from_secs(1), 0).await;
    let client = client(&url, HttpConfig::new().with_timeout(Duration::from_millis(300)));
    let mut results = Vec::new();
    while results.len() < 100 && results.last() != Some(&Ok(())) {
        let result = client.call("t.x", json!({})).await;
        results.push(result.map(drop).map_err(|error| error.code().as_str().to_owned()));
    }
    assert_eq!(results.first(), Some(&Err("TIMEOUT".to_owned())));
    assert_eq!((results.last(), asked.load(Ordering::SeqCst)), (Some(&Ok(())), 1));
}

#[tokio::test]
async fn a_token_is_asked_for_again_as_retries_say() {
    let retries = |most| Retry::new().with_max_retries(most).with_first_delay(Duration::from_millis(1));
    let (asked, url) = start(Duration::ZERO, 2).await;
    // No request was sent that could be carried out twice.
    let attempts = Arc::new(Mutex::new(Vec::new()));
    let seen = attempts.clone();
    let config = HttpConfig::new().with_retries(retries(3)).with_before(move |request| {
        seen.lock().unwrap().push(request.attempt);
        Ok(())
    });
    let answer = client(&url, config).call("t.x", json!({})).await.unwrap();
    assert_eq!((answer.meta.as_http().unwrap().retries, asked.load(Ordering::SeqCst)), (None, 3));
    assert_eq!(*attempts.lock().unwrap(), [1]);

    for (config, times) in [(HttpConfig::new(), 1), (HttpConfig::new().with_retries(retries(1)), 2)] {
        let (asked, url) = start(Duration::ZERO, 9).await;
        let error = client(&url, config).call("t.x", json!({})).await.unwrap_err();
        assert_eq!(error.message(), "the token endpoint answered HTTP 503");
        assert!(error.is_retryable() && error.status().is_none(), "{error:?}");
        assert_eq!(error.details().get("retries"), (times > 1).then(|| json!(1)).as_ref());
        assert_eq!((error.header("Retry-After"), asked.load(Ordering::SeqCst)), (Some("0"), times));
    }
}

#[tokio::test]
async fn a_function_may_ask_for_a_token_by_a_call() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let token = move || {
        let is_first = counted.fetch_add(1, Ordering::SeqCst) == 0;
        async move { if is_first { StatusCode::BAD_GATEWAY.into_response() } else { "t1".into_response() } }
    };
    let app = Router::new().route("/token", post(token)).route("/x", any(|| async { "fine" }));
    let url = serve(app).await;
    let issuer = HttpClient::new(HttpConfig::new().with_base_url(&url)).unwrap();
    issuer.add([spec(OperationKind::Mutation, "token", HttpBinding::new("POST", "/token"))]).unwrap();
    let source = Auth::token_source(move |_: TokenRequest| {
        let issuer = issuer.clone();
        async move {
            let answer = issuer.call("t.token", json!({})).await;
            answer.map(|answer| answer.data.as_str().unwrap_or_default().into())
        }
    });
    let retry = Retry::new().with_first_delay(Duration::from_millis(1));
    let config = HttpConfig::new().with_base_url(&url).with_auth(source).with_retries(retry);
    let client = HttpClient::new(config).unwrap();
    client.add([spec(OperationKind::Mutation, "x", HttpBinding::new("POST", "/x"))]).unwrap();
    assert_eq!(client.call("t.x", json!({})).await.unwrap().data, "fine");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn who_waits_for_a_new_token_holds_up_no_other_call() {
    let app = Router::new().route("/x", any(|| async { (StatusCode::UNAUTHORIZED, "revoked") }));
    let url = serve(app.route("/y", any(|| async { "fine" }))).await;
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), end.clone());
    let source = Auth::token_source(move |request: TokenRequest| {
        let (begun, end) = signals.clone();
        async move {
            if request.rejected {
                begun.notify_one();
                end.notified().await;
            }
            Ok("t1".into())
        }
    });
    let config = HttpConfig::new().with_base_url(url).with_auth(source).with_max_in_flight(1);
    let client = HttpClient::new(config).unwrap();
    let operation = |name: &str, path: &'static str| spec(OperationKind::Query, name, get_of(path));
    client.add([operation("x", "/x"), operation("y", "/y")]).unwrap();
    let (refused, other) = tokio::join!(client.call("t.x", json!({})), async {
        begun.notified().await;
        let other = timeout(Duration::from_secs(20), client.call("t.y", json!({}))).await;
        end.notify_one();
        other
    });
    assert_eq!(other.unwrap().unwrap().data, json!("fine"));
    // The token is the same as before, so the response to it counts.
    let error = refused.unwrap_err();
    assert_eq!((error.status(), &error.details()["body"]), (Some(401), &json!("revoked")));
}
