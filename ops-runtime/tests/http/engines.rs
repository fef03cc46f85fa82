//! A `reqwest` client of the user's in the place of the built-in engine.

use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use ops_runtime::http::{Auth, HttpClient, HttpConfig, HttpEngine};
use ops_runtime::spec::OperationKind;
use ops_runtime::{CallError, ResponseEnvelope};
use reqwest::redirect::Policy;
use serde_json::{Value, json};

use crate::server::{Server, get_of, serve, spec};

/// A builder of clients; the built-in engine installs the cryptography that any of them needs.
fn builder() -> reqwest::ClientBuilder {
    HttpEngine::new().unwrap();
    reqwest::Client::builder()
}

async fn call(config: HttpConfig, path: String) -> Result<Value, CallError> {
    let client = HttpClient::new(config)?;
    client.add([spec(OperationKind::Query, "x", get_of(path))]).unwrap();
    client.call("t.x", json!({})).await.map(ResponseEnvelope::into_data)
}

#[tokio::test]
async fn its_proxy_and_headers_are_used() {
    // A proxy gets the whole URL (RFC 9112, section 3.2.2).
    let proxy = Router::new().fallback(any(|request: Request| async move {
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        axum::Json(json!([request.uri().to_string(), header("x-own"), header("authorization")]))
    }));
    let proxy = reqwest::Proxy::all(serve(proxy).await).unwrap();
    let own = reqwest::header::HeaderMap::from_iter([("x-own".parse().unwrap(), "1".parse().unwrap())]);
    let client = builder().redirect(Policy::none()).proxy(proxy).default_headers(own).build().unwrap();
    let config = HttpConfig::new().with_base_url("http://nowhere.test/v1").with_auth(Auth::bearer("t"));
    let found = call(config.with_client(client), "/x?a=1".to_owned()).await.unwrap();
    assert_eq!(found, json!(["http://nowhere.test/v1/x?a=1", "1", "Bearer t"]));
}

#[tokio::test]
async fn redirects_are_followed_by_our_rules() {
    let (one, other) = (Server::start().await, Server::start().await);
    let path = || format!("/to?302,{}/echo/y", other.url());
    let config = |policy: Policy| {
        let client = builder().redirect(policy).build().unwrap();
        HttpConfig::new().with_base_url(one.url()).with_header("X-Key", "hush").with_client(client)
    };
    let found = call(config(Policy::none()), path()).await.unwrap();
    assert_eq!((&found["uri"], found["headers"].get("x-key")), (&json!("/echo/y"), None));
    // A client that follows them itself is not trusted with a second request.
    let error = call(config(Policy::default()), path()).await.unwrap_err();
    assert!(error.message().contains("redirect(reqwest::redirect::Policy::none())"), "{error}");
    assert!(!format!("{error:?}").contains("hush"));
    // Without a redirect, its policy does not matter.
    assert_eq!(call(config(Policy::default()), "/echo/z".to_owned()).await.unwrap()["uri"], "/echo/z");
}
