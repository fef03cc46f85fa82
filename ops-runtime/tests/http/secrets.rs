//! What a server says again of what it was sent: it stays in the data of a success, and is in no error.

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::StreamExt;
use ops_runtime::CallOptions;
use ops_runtime::binding::{SecurityKind, SecurityRequirement, SecurityScheme};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, Reconnect};
use ops_runtime::spec::{OperationKind, Schema};
use serde_json::{Value, json};

use crate::server::{Server, get_of, serve, spec};

/// A header of the request.
fn header(request: &Request, name: &str) -> String {
    request.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
}

/// Refuses a request, and says with what it came.
async fn refuse(request: Request) -> Response {
    let told = json!({ "sent": [header(&request, "authorization"), header(&request, "x-one")], "why": "no such pet" });
    let headers = [("content-type", "application/json".to_owned()), ("x-kept", "all else".to_owned())];
    (StatusCode::FORBIDDEN, headers, told.to_string()).into_response()
}

/// A stream of an item that is not JSON, and then none.
async fn stream(request: Request) -> Response {
    if !header(&request, "last-event-id").is_empty() {
        return refuse(request).await;
    }
    let told = format!("retry: 5\nid: 1\ndata: {}\n\n", header(&request, "authorization"));
    ([("content-type", "text/event-stream")], told).into_response()
}

#[tokio::test]
async fn the_data_of_a_success_stay_as_they_came() {
    let server = Server::start().await;
    let config = HttpConfig::new().with_base_url(server.url()).with_auth(Auth::bearer("t0k3n-of-ann"));
    let client = HttpClient::new(config).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/echo/x"))]).unwrap();
    let answer = client.call("t.x", json!({})).await.unwrap();
    assert_eq!(answer.data["headers"]["authorization"], "Bearer t0k3n-of-ann");
}

#[tokio::test]
async fn an_error_keeps_all_but_the_secrets() {
    let url = serve(Router::new().route("/x", get(refuse))).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url("http://unused.test")).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/x"))]).unwrap();
    let url = url.replace("http://", "http://ann:passw0rd@");
    let options = CallOptions::new().with_base_url(url).with_header("X-One", "of-this-call");
    let error = client.call_with("t.x", json!({}), options).await.unwrap_err();
    assert_eq!(error.message(), "HTTP 403: Forbidden");
    let details = error.details();
    assert_eq!(details["body"], json!({ "sent": ["Basic ***", "***"], "why": "no such pet" }));
    assert_eq!((&details["statusCode"], &details["headers"]["x-kept"]), (&json!(403), &json!("all else")));
}

#[tokio::test]
async fn the_key_in_a_url_of_the_call_is_hidden() {
    let missing = |request: Request| async move {
        (StatusCode::NOT_FOUND, axum::Json(json!({ "path": request.uri().to_string() })))
    };
    let url = serve(Router::new().fallback(missing)).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url("http://unused.test")).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/pets/7"))]).unwrap();
    for (base, path) in
        [("/v1?key=S3CRET-1", "/v1/pets/7?key=***"), ("/hooks/T0123456789abcdef?page=1", "/hooks/***/pets/7?page=1")]
    {
        let options = CallOptions::new().with_base_url(format!("{url}{base}"));
        let error = client.call_with("t.x", json!({}), options).await.unwrap_err();
        assert_eq!(error.details()["body"], json!({ "path": path }));
    }
}

#[tokio::test]
async fn a_key_is_hidden_where_it_was_not_sent() {
    async fn refuse(request: Request) -> Response {
        assert_eq!(header(&request, "x-api-key"), "");
        (StatusCode::FORBIDDEN, "not for k3y-of-ann, nor for t0k3n-of-ann").into_response()
    }
    let url = serve(Router::new().route("/x", get(refuse))).await;
    let config = HttpConfig::new().with_base_url(url).with_auth(Auth::bearer("t0k3n-of-ann"));
    let client = HttpClient::new(config.with_credentials("key", Auth::api_key("k3y-of-ann"))).unwrap();
    let mut binding = get_of("/x");
    // The operation needs no credentials.
    binding.security = vec![SecurityRequirement::default()].into();
    client.add([spec(OperationKind::Query, "x", binding)]).unwrap();
    let error = client.call("t.x", json!({})).await.unwrap_err();
    assert_eq!(error.details()["body"], "not for ***, nor for ***");
}

#[tokio::test]
async fn each_pair_of_a_key_that_is_cookies_is_hidden() {
    async fn refuse(request: Request) -> Response {
        (StatusCode::FORBIDDEN, format!("{}: not for s3ss10n", header(&request, "cookie"))).into_response()
    }
    let url = serve(Router::new().route("/x", get(refuse))).await;
    let auth = Auth::api_key("sid=s3ss10n;csrf=t0k3n").with_header("Cookie");
    let client = HttpClient::new(HttpConfig::new().with_base_url(url).with_auth(auth)).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/x"))]).unwrap();
    let error = client.call("t.x", json!({})).await.unwrap_err();
    assert_eq!(error.details()["body"], "***; ***: not for ***");
}

#[tokio::test]
async fn the_errors_of_a_stream_hold_none() {
    let url = serve(Router::new().route("/x", get(stream))).await;
    let config = HttpConfig::new().with_base_url(url).with_auth(Auth::bearer("t0k3n-of-ann"));
    let client = HttpClient::new(config.with_reconnect(Reconnect::new())).unwrap();
    let mut subscription = spec(OperationKind::Subscription, "x", get_of("/x"));
    subscription.output = Schema::text(r#"{"type":"object"}"#);
    client.add([subscription]).unwrap();
    let items: Vec<_> = client.stream("t.x", json!({})).await.unwrap().collect().await;
    let errors: Vec<&Value> = items.iter().map(|item| item.as_ref().unwrap_err().details()).collect();
    assert_eq!(errors[0]["raw"], "Bearer ***");
    assert_eq!(errors[1]["body"]["sent"], json!(["Bearer ***", ""]));
    assert_eq!(errors.len(), 2);
}

#[tokio::test]
async fn a_key_in_the_place_of_a_user_is_hidden() {
    async fn refuse(request: Request) -> Response {
        let sent = header(&request, "authorization");
        (StatusCode::FORBIDDEN, format!("{sent}: `sk_live_1` may not")).into_response()
    }
    let url = serve(Router::new().route("/x", get(refuse))).await;
    let config = || HttpConfig::new().with_base_url(&url);
    let in_url = HttpConfig::new().with_base_url(url.replace("http://", "http://sk_live_1@"));
    let secret = config().with_credentials("s", Auth::secret("sk_live_1"));
    for config in [config().with_auth(Auth::basic("sk_live_1", "")), in_url, secret] {
        let client = HttpClient::new(config).unwrap();
        let mut binding = get_of("/x");
        let mut requirement = SecurityRequirement::default();
        requirement.schemes = vec![SecurityScheme::owned("s", SecurityKind::Basic)].into();
        binding.security = vec![requirement].into();
        client.add([spec(OperationKind::Query, "x", binding)]).unwrap();
        let error = client.call("t.x", json!({})).await.unwrap_err();
        assert_eq!(error.details()["body"], "Basic ***: `***` may not");
    }
}
