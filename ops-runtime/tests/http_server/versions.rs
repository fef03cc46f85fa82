//! Versions of an API side by side: below prefixes, and by a header.

use axum::Router;
use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode};
use axum::response::IntoResponse;
use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::HttpBinding;
use ops_runtime::serve::{BearerTokens, HttpServer};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};
use tower_service::Service;

use crate::fixture::Server;

static SHOW: OperationSpec = OperationSpec::query("pets.show").with_http(HttpBinding::new("GET", "/pets"));

fn version(number: u64) -> HttpServer {
    let registry = Registry::new();
    let show = Handler::dynamic(move |_: Value, _| async move { Ok(json!({ "version": number })) });
    registry.register(Registration::new(&SHOW, show)).unwrap();
    HttpServer::new(registry)
}

async fn listen(app: Router) -> Server {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    Server { address, stop: Default::default(), running: None }
}

#[tokio::test]
async fn by_prefix() {
    let tokens = BearerTokens::new().with_token("s3cret", Identity::new("ann"));
    let one = version(1).with_metrics(AccessControl::NONE).into_router();
    let server =
        listen(Router::new().nest("/v1", one).nest("/v2", version(2).with_authenticator(tokens).into_router())).await;
    for (path, status, found) in [
        ("/v1/pets", 200, Some(1)),
        ("/v2/pets", 200, Some(2)),
        ("/v1/operations/pets/show", 200, Some(1)),
        ("/v2/operations/pets/show", 200, Some(2)),
        ("/v2/healthz", 200, None),
        ("/v1/metrics", 200, None),
        ("/v2/metrics", 404, None),
        ("/pets", 404, None),
        ("/v3/pets", 404, None),
        ("/v1/../v2/pets", 404, None),
        ("/v1/v2/pets", 404, None),
        // axum takes the slash for a part of the prefix; what may be called is checked behind it.
        ("/v1//pets", 200, Some(1)),
    ] {
        let answer = server.get(path).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        if let Some(found) = found {
            assert_eq!(answer.json(), json!({ "version": found }), "{path}");
        }
    }
    // Each has credentials and counts of its own.
    let wrong = ["authorization: Bearer wrong"];
    assert_eq!(server.send("GET /v1/pets", &wrong, "").await.status, 200);
    assert_eq!(server.send("GET /v2/pets", &wrong, "").await.status, 401);
    let counts = server.get("/v1/metrics").await.body;
    assert!(counts.contains("ops_http_requests_total{operation=\"pets.show\",status=\"200\"} 4\n"), "{counts}");
    let url = format!("http://{}/v2", server.address);
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let caller = Registry::new();
    caller.register_all(client.bind([&SHOW]).unwrap()).unwrap();
    assert_eq!(caller.call("pets.show", json!({})).await.unwrap().data, json!({ "version": 2 }));
}

#[tokio::test]
async fn by_header() {
    let (one, two) = (version(1).into_router(), version(2).into_router());
    let server = listen(Router::new().fallback(async move |request: Request| {
        let mut version = match request.headers().get("api-version").map(HeaderValue::as_bytes) {
            None | Some(b"1") => one.clone(),
            Some(b"2") => two.clone(),
            Some(_) => return StatusCode::BAD_REQUEST.into_response(),
        };
        version.call(request).await.into_response()
    }))
    .await;
    for (headers, found) in [(&[][..], 1), (&["api-version: 1"], 1), (&["Api-Version: 2"], 2)] {
        for path in ["/pets", "/operations/pets/show"] {
            let answer = server.send(&format!("GET {path}"), headers, "").await;
            assert_eq!(answer.json(), json!({ "version": found }), "{headers:?}");
        }
    }
    assert_eq!(server.send("GET /pets", &["api-version: 3"], "").await.status, 400);
}
