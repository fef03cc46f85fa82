//! Token endpoints that are slow, or busy for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{any, post};
use axum::{Json, Router};
use ops_runtime::binding::HttpBinding;
use ops_runtime::http::{ClientCredentials, HttpClient, HttpConfig, Retry};
use ops_runtime::spec::OperationKind;
use serde_json::json;

use crate::server::{serve, spec};

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
    let answer = client(&url, HttpConfig::new().with_retries(retries(3))).call("t.x", json!({})).await.unwrap();
    assert_eq!((answer.meta.as_http().unwrap().retries, asked.load(Ordering::SeqCst)), (Some(2), 3));

    for (config, times) in [(HttpConfig::new(), 1), (HttpConfig::new().with_retries(retries(1)), 2)] {
        let (asked, url) = start(Duration::ZERO, 9).await;
        let error = client(&url, config).call("t.x", json!({})).await.unwrap_err();
        assert_eq!(error.message(), "the token endpoint answered HTTP 503");
        assert!(error.is_retryable() && error.status().is_none(), "{error:?}");
        assert_eq!((error.header("Retry-After"), asked.load(Ordering::SeqCst)), (Some("0"), times));
    }
}
