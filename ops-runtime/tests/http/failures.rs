//! Errors, timeouts, limits and redirects.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use ops_runtime::binding::{HttpBinding, HttpParameter, HttpResponse, StatusRange};
use ops_runtime::http::{Auth, HttpClient, HttpConfig};
use ops_runtime::registry::OutputPolicy;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Body, Call, CallError, CallOptions, Operation};
use serde_json::{Value, json};

use crate::server::{Server, closed_port, get_of, serve, spec};

fn get(name: &str) -> ops_runtime::spec::OperationSpec {
    spec(OperationKind::Query, name, get_of(format!("/{name}")))
}

async fn call(config: HttpConfig, name: &str) -> Result<Value, CallError> {
    let client = HttpClient::new(config).unwrap();
    client.add([get(name)]).unwrap();
    client.call(&format!("t.{name}"), json!({})).await.map(ops_runtime::ResponseEnvelope::into_data)
}

#[tokio::test]
async fn a_status_that_is_no_success() {
    let server = Server::start().await;
    let config = HttpConfig::new().with_base_url(server.url());
    let error = call(config.clone(), "conflict").await.unwrap_err();
    assert_eq!(error.to_string(), "t.conflict: HTTP 409: Conflict");
    assert_eq!((error.status(), &error.details()["contentType"]), (Some(409), &json!("application/json")));
    assert_eq!(error.body::<Value>().unwrap(), json!({ "by": "ann" }));

    let error = call(config, "missing").await.unwrap_err();
    assert_eq!((error.message(), &error.details()["body"]), ("HTTP 404: Not Found", &Value::Null));
}

#[tokio::test]
async fn a_server_that_never_answers() {
    let server = Server::start().await;
    let config = HttpConfig::new().with_base_url(server.url());
    let start = Instant::now();
    for name in ["silent", "halfway"] {
        let error = call(config.clone().with_timeout(Duration::from_millis(80)), name).await.unwrap_err();
        assert_eq!(error.code().as_str(), "TIMEOUT", "{error}");
        assert_eq!(error.details()["timeout"], 80);
    }
    let client = HttpClient::new(config).unwrap();
    client.add([get("silent")]).unwrap();
    let options = CallOptions::new().with_timeout(Duration::from_millis(80));
    let error = client.call_with("t.silent", json!({}), options).await.unwrap_err();
    assert_eq!(error.code().as_str(), "TIMEOUT");
    assert!(start.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn an_operation_without_a_request_is_refused() {
    let client = HttpClient::new(HttpConfig::new().with_base_url("http://127.0.0.1:9")).unwrap();
    let told = "`till.quote` has no HTTP request: call it on a `Registry` in which it is registered, or give it \
                `http = \"METHOD /path\"`";
    assert!(client.bind([OperationSpec::query("till.quote")]).is_err_and(|error| error.message() == told));
    client.add([OperationSpec::query("till.quote")]).unwrap();
    assert_eq!(client.call("till.quote", json!({})).await.unwrap_err().message(), told);
}

#[tokio::test]
async fn a_response_without_end() {
    let server = Server::start().await;
    let config = HttpConfig::new().with_base_url(server.url()).with_max_response(100_000);
    let error = call(config, "large").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "t.large: EXECUTION_ERROR: the response is larger than 100000 bytes: raise `with_max_response`"
    );
}

#[tokio::test]
async fn nobody_there() {
    let (_closed, address) = closed_port();
    let url = format!("http://{address}/?secret=hush");
    let error = call(HttpConfig::new().with_base_url(url), "x").await.unwrap_err();
    assert_eq!(error.code().as_str(), "EXECUTION_ERROR");
    let told = format!("the request to http://{address} failed: ");
    assert!(error.message().starts_with(&told) && !error.message().contains("hush"), "{error}");
}

#[tokio::test]
async fn redirects_keep_credentials_home() {
    let (home, abroad) = (Server::start().await, Server::start().await);
    let config = HttpConfig::new()
        .with_base_url(home.url())
        .with_auth(Auth::api_key("k3y"))
        .with_header("Authorization", "Basic abc")
        .with_header("Cookie", "sid=1")
        .with_header("X-Other", "v");
    let client = HttpClient::new(config).unwrap();
    let private = ["authorization", "cookie", "x-api-key", "x-other"];
    let port = home.address.port();
    let table = [
        ("stays".to_owned(), "/echo/x".to_owned(), 4),
        ("port".to_owned(), format!("{}/echo/x", abroad.url()), 0),
        ("host".to_owned(), format!("http://localhost:{port}/echo/x"), 0),
    ];
    for (name, to, kept) in table {
        client.add([spec(OperationKind::Query, &name, get_of(format!("/to?302,{to}")))]).unwrap();
        let seen = client.call(&format!("t.{name}"), json!({})).await.unwrap().data;
        assert_eq!(seen["uri"], "/echo/x");
        let found = private.iter().filter(|header| seen["headers"].get(**header).is_some()).count();
        assert_eq!(found, kept, "{name}: {}", seen["headers"]);
    }
}

#[tokio::test]
async fn an_error_says_which_server_sent_it() {
    let (home, abroad) = (Server::start().await, Server::start().await);
    let client = HttpClient::new(HttpConfig::new().with_base_url(home.url())).unwrap();
    for (name, to, told) in [
        ("home", "/conflict".to_owned(), "HTTP 409: Conflict".to_owned()),
        (
            "abroad",
            format!("{}/conflict", abroad.url()),
            format!("HTTP 409: Conflict: from `{}`, to which the server redirected", abroad.url()),
        ),
    ] {
        client.add([spec(OperationKind::Query, name, get_of(format!("/to?307,{to}")))]).unwrap();
        let error = client.call(&format!("t.{name}"), json!({})).await.unwrap_err();
        assert_eq!((error.message(), error.status()), (&*told, Some(409)));
    }
}

#[tokio::test]
async fn nothing_is_not_null() {
    let app = Router::new()
        .route("/nothing", axum::routing::get(|| async { [("content-type", "application/json")] }))
        .route("/null", axum::routing::get(|| async { ([("content-type", "application/json")], "null") }));
    let url = serve(app).await;
    for (name, found) in [("nothing", "nothing"), ("null", "null")] {
        for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
            let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_policy(policy)).unwrap();
            let described = const { &[HttpResponse::new(StatusRange::Exact(200), "application/json")] };
            let mut spec = spec(OperationKind::Query, name, get_of(format!("/{name}")).with_responses(described));
            spec.output = Schema::from(json!({ "type": "object", "required": ["a"] }));
            client.add([spec]).unwrap();
            let error = client.call(&format!("t.{name}"), json!({})).await.unwrap_err();
            assert_eq!(error.details()["violations"][0]["found"], found, "{error}");
            assert!(error.message().ends_with(&format!(", found {found}")), "{error}");
        }
    }
}

struct Remove;

impl Operation for Remove {
    type Input = Value;
    type Output = ();
    const SPEC: &'static OperationSpec =
        &OperationSpec::mutation("t.remove").with_output(Schema::text(r#"{"type":"null"}"#)).with_http(
            HttpBinding::new("DELETE", "/{kind}")
                .with_parameters(const { &[HttpParameter::path("kind")] })
                .with_responses(const { &[HttpResponse::empty(StatusRange::Exact(204))] }),
        );
}

impl Call for Remove {}

#[tokio::test]
async fn a_success_of_which_no_body_is_described_may_have_one() {
    let answer = |kind: &'static str, text: &'static str| {
        axum::routing::delete(move || async move { ([("content-type", kind)], text) })
    };
    let app = Router::new()
        .route("/object", answer("application/json", r#"{"ok":true}"#))
        .route("/true", answer("application/json", "true"))
        .route("/null", answer("application/json", "null"))
        .route("/text", answer("text/plain", "done"))
        .route("/html", answer("text/html", "<p>log in</p>"));
    let client = HttpClient::new(HttpConfig::new().with_base_url(serve(app).await)).unwrap();
    client.add([Remove::SPEC]).unwrap();
    for (kind, found) in [
        ("object", Some("a body of type `application/json`, which was skipped")),
        ("true", Some("a body of type `application/json`, which was skipped")),
        ("text", Some("a body of type `text/plain`, which was skipped")),
        ("null", None),
    ] {
        let input = json!({ "kind": kind });
        let warnings = client.execute::<Remove>(input.clone()).await.unwrap().warnings;
        assert_eq!(warnings.first().map(|warning| warning.found.as_ref()), found, "{kind}");
        let by_id = client.call("t.remove", input.clone()).await.unwrap();
        assert_eq!((by_id.data, by_id.warnings), (Value::Null, warnings), "{kind}");
        let strict = CallOptions::new().with_policy(OutputPolicy::Strict);
        assert_eq!(client.execute_with::<Remove>(input, strict).await.is_err(), found.is_some(), "{kind}");
    }
    let error = client.execute::<Remove>(json!({ "kind": "html" })).await.unwrap_err();
    assert_eq!((error.code().as_str(), &error.details()["raw"]), ("VALIDATION_ERROR", &json!("<p>log in</p>")));
}

struct Download;

impl Operation for Download {
    type Input = Value;
    type Output = Body;
    const SPEC: &'static OperationSpec = &OperationSpec::query("t.download").with_http(
        HttpBinding::new("GET", "/pieces")
            .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/octet-stream")] }),
    );
}

impl Call for Download {}

#[tokio::test]
async fn a_download_may_take_longer_than_a_call_but_not_be_silent() {
    // Three pieces, and then silence. Together they take longer than the call may.
    let pieces = || async {
        let pieces = stream::iter(0..3).then(|_| async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            Ok::<_, std::io::Error>(Bytes::from_static(b"x"))
        });
        axum::body::Body::from_stream(pieces.chain(stream::pending()))
    };
    let url = serve(Router::new().route("/pieces", axum::routing::get(pieces))).await;
    let config = HttpConfig::new().with_base_url(url).with_timeout(Duration::from_secs(2));
    let client = HttpClient::new(config.with_idle_timeout(Duration::from_secs(2))).unwrap();
    let body = client.execute::<Download>(json!({})).await.unwrap().data;
    let start = Instant::now();
    let mut pieces = body.into_stream();
    let mut read = 0;
    let error = loop {
        match pieces.next().await.unwrap() {
            Ok(piece) => read += piece.len(),
            Err(error) => break error,
        }
    };
    assert_eq!(read, 3);
    assert!(error.to_string().contains("raise `with_idle_timeout`"), "{error}");
    assert!(start.elapsed() > Duration::from_secs(2) && start.elapsed() < Duration::from_secs(60));
}

#[tokio::test]
async fn an_error_whose_body_does_not_end_keeps_its_status() {
    let body = |stalls: bool| {
        let begun = stream::iter([Ok(Bytes::from_static(b"{\"why\":"))]);
        let broken = stream::once(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(std::io::Error::other("broken"))
        });
        let rest = if stalls { stream::pending().left_stream() } else { broken.right_stream() };
        axum::body::Body::from_stream(begun.chain(rest))
    };
    let answer = move |stalls| move || async move { (axum::http::StatusCode::CONFLICT, body(stalls)) };
    let app = Router::new().route("/stalls", axum::routing::get(answer(true)));
    let url = serve(app.route("/breaks", axum::routing::get(answer(false)))).await;
    for name in ["stalls", "breaks"] {
        let start = Instant::now();
        let error = call(HttpConfig::new().with_base_url(&url), name).await.unwrap_err();
        assert_eq!((error.status(), &error.details()["body"]), (Some(409), &json!("{\"why\":")), "{name}: {error}");
        assert_eq!(error.details()["truncated"], true);
        assert!(start.elapsed() < Duration::from_secs(20));
    }
}

macro_rules! downloads {
    ($($name:ident $path:literal $kind:literal)*) => {$(
        struct $name;
        impl Operation for $name {
            type Input = Value;
            type Output = Body;
            const SPEC: &'static OperationSpec = &OperationSpec::query(concat!("t.", $path))
                .with_output(Schema::text(r#"{"type":"string","format":"binary"}"#))
                .with_http(HttpBinding::new("GET", concat!("/", $path)).with_responses(
                    const { &[HttpResponse::new(StatusRange::Exact(200), $kind)] },
                ));
        }
        impl Call for $name {}
    )*};
}

downloads! {
    Busy "busy" "image/png"
    Login "login" "image/png"
    Vague "vague" "image/png"
    Picture "picture" "image/png"
    Big "big" "image/png"
    Vendors "vendors" "application/vnd.acme.v2"
    Sheet "sheet" "application/vnd.oasis.opendocument.spreadsheet"
    Gate "gate" "application/vnd.acme.v2"
}

#[tokio::test]
async fn what_comes_in_the_place_of_a_file_is_an_error() {
    let answer = |kind: &'static str, text: &'static str| {
        axum::routing::get(move || async move { ([("content-type", kind)], text) })
    };
    let large = "[".repeat(1 << 20);
    let app = axum::Router::new()
        .route("/busy", answer("application/problem+json", r#"{"error":"busy"}"#))
        .route("/login", answer("text/html; charset=utf-8", "<p>log in</p>"))
        .route("/vague", answer("text/plain", "x"))
        .route("/picture", answer("image/webp", "x"))
        .route("/vendors", answer("application/json", r#"{"a":1}"#))
        .route("/sheet", answer("application/json", r#"{"error":"busy"}"#))
        .route("/gate", answer("text/html", "<p>log in</p>"))
        .route("/big", axum::routing::get(move || async move { ([("content-type", "application/json")], large) }));
    let client = HttpClient::new(HttpConfig::new().with_base_url(serve(app).await)).unwrap();
    client.add([Busy::SPEC, Login::SPEC, Vague::SPEC, Picture::SPEC, Vendors::SPEC]).unwrap();
    for (typed, id, raw, kind) in [
        (client.execute::<Busy>(json!({})).await.unwrap_err(), "t.busy", json!({ "error": "busy" }), "problem+json"),
        (client.execute::<Login>(json!({})).await.unwrap_err(), "t.login", json!("<p>log in</p>"), "text/html"),
    ] {
        let by_id = client.call(id, json!({})).await.unwrap_err();
        for error in [typed, by_id] {
            assert_eq!(error.code().as_str(), "VALIDATION_ERROR", "{error}");
            assert_eq!(error.details()["raw"], raw, "{error}");
            assert!(error.message().contains("expected image/png, found") && error.message().contains(kind), "{error}");
        }
    }
    let error = client.execute::<Big>(json!({})).await.unwrap_err();
    assert_eq!((error.code().as_str(), &error.details()["truncated"]), ("VALIDATION_ERROR", &json!(true)));
    assert!(error.message().ends_with("found application/json, which is too long to show, or broke off"), "{error}");
    assert_eq!(client.execute::<Vague>(json!({})).await.unwrap().data.bytes(9).await.unwrap(), "x");
    assert_eq!(client.execute::<Picture>(json!({})).await.unwrap().data.bytes(9).await.unwrap(), "x");
    assert_eq!(client.call("t.picture", json!({})).await.unwrap().data, "eA==");
    // A type of a vendor's own may be JSON, but not if it is known to be a document's, and no page.
    assert_eq!(client.execute::<Vendors>(json!({})).await.unwrap().data.bytes(9).await.unwrap(), r#"{"a":1}"#);
    client.call("t.vendors", json!({})).await.unwrap();
    assert_eq!(client.execute::<Sheet>(json!({})).await.unwrap_err().code().as_str(), "VALIDATION_ERROR");
    assert_eq!(client.execute::<Gate>(json!({})).await.unwrap_err().code().as_str(), "VALIDATION_ERROR");
    // Under a policy that takes anything, it is bytes.
    let cast = CallOptions::new().with_policy(OutputPolicy::Cast);
    let body = client.execute_with::<Big>(json!({}), cast.clone()).await.unwrap().data;
    assert_eq!(body.bytes(2 << 20).await.unwrap().len(), 1 << 20);
    let body = client.execute_with::<Busy>(json!({}), cast).await.unwrap().data;
    assert_eq!(body.bytes(99).await.unwrap(), r#"{"error":"busy"}"#);
}

struct Label;

impl Operation for Label {
    type Input = Value;
    type Output = String;
    const SPEC: &'static OperationSpec =
        &OperationSpec::query("t.label").with_output(Schema::text(r#"{"type":"string"}"#)).with_http(
            HttpBinding::new("GET", "/{kind}")
                .with_parameters(const { &[HttpParameter::path("kind")] })
                .with_responses(
                    const {
                        &[
                            HttpResponse::new(StatusRange::Exact(200), "text/plain"),
                            HttpResponse::new(StatusRange::Exact(200), "image/png"),
                            HttpResponse::new(StatusRange::Exact(200), "application/octet-stream"),
                        ]
                    },
                ),
        );
}

impl Call for Label {}

#[tokio::test]
async fn described_bytes_are_no_text_of_the_output() {
    let answer = |kind: &'static str| axum::routing::get(move || async move { ([("content-type", kind)], "^XA") });
    let app = Router::new()
        .route("/text", answer("text/plain"))
        .route("/png", answer("image/png"))
        .route("/octets", answer("application/octet-stream"));
    let client = HttpClient::new(HttpConfig::new().with_base_url(serve(app).await)).unwrap();
    client.add([Label::SPEC]).unwrap();
    assert_eq!(client.execute::<Label>(json!({ "kind": "text" })).await.unwrap().data, "^XA");
    for (kind, found) in [("png", "image/png"), ("octets", "application/octet-stream")] {
        let input = json!({ "kind": kind });
        let told = format!("the response is not what the operation gives: expected text/plain, found {found}");
        let typed = client.execute::<Label>(input.clone()).await.unwrap_err();
        let by_id = client.call("t.label", input.clone()).await.unwrap_err();
        for error in [typed, by_id] {
            assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", &*told));
            assert_eq!(error.details()["raw"], "^XA");
        }
        let cast = CallOptions::new().with_policy(OutputPolicy::Cast);
        assert_eq!(client.execute_with::<Label>(input, cast).await.unwrap().data, "XlhB");
    }
}

struct Paper;

impl Operation for Paper {
    type Input = Value;
    type Output = Body;
    const SPEC: &'static OperationSpec = &OperationSpec::query("t.paper")
        .with_output(Schema::text(r#"{"type":"string","format":"binary"}"#))
        .with_http(HttpBinding::new("GET", "/paper").with_responses(
            const {
                &[
                    HttpResponse::new(StatusRange::Exact(200), "application/json"),
                    HttpResponse::new(StatusRange::Exact(200), "application/pdf"),
                ]
            },
        ));
}

impl Call for Paper {}

#[tokio::test]
async fn json_that_is_described_as_bytes_may_be_another_file() {
    let paper = || async { ([("content-type", "application/pdf")], "%PDF") };
    let url = serve(Router::new().route("/paper", axum::routing::get(paper))).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    client.add([Paper::SPEC]).unwrap();
    let body = client.execute::<Paper>(json!({})).await.unwrap().data;
    assert_eq!(body.bytes(9).await.unwrap(), "%PDF");
    assert_eq!(client.call("t.paper", json!({})).await.unwrap().data, "JVBERg==");
}

#[tokio::test]
async fn a_download_that_breaks_off_leaves_the_file_that_is_there() {
    let pieces = || async {
        let data = stream::iter([Ok(Bytes::from_static(b"half")), Err(std::io::Error::other("cut"))]);
        let data = data.then(|piece| async {
            // What was sent must be on its way before the connection breaks.
            tokio::time::sleep(Duration::from_millis(if piece.is_ok() { 0 } else { 50 })).await;
            piece
        });
        axum::body::Body::from_stream(data)
    };
    let url = serve(Router::new().route("/pieces", axum::routing::get(pieces))).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let body = client.execute::<Download>(json!({})).await.unwrap().data;
    let path = std::env::temp_dir().join(format!("ops-broken-{}.bin", std::process::id()));
    std::fs::write(&path, "kept").unwrap();
    let error = CallError::from(body.save(&path).await.unwrap_err());
    let told = format!("the file `{}` was not saved: the response broke off: ", path.display());
    assert!(error.message().starts_with(&told), "{error}");
    assert_eq!((error.operation(), error.is_retryable()), (Some("t.download"), true));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "kept");
    std::fs::remove_file(path).unwrap();
}

#[tokio::test]
async fn a_call_may_take_longer_than_the_client_lets_others() {
    let slow = || async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        "done"
    };
    let url = serve(Router::new().route("/slow", axum::routing::get(slow))).await;
    let client =
        HttpClient::new(HttpConfig::new().with_base_url(url).with_timeout(Duration::from_millis(100))).unwrap();
    client.add([get("slow")]).unwrap();
    let error = client.call("t.slow", json!({})).await.unwrap_err();
    assert_eq!(error.message(), "the server did not answer within 100ms: raise `with_timeout`");
    let longer = CallOptions::new().with_timeout(Duration::from_secs(60));
    assert_eq!(client.call_with("t.slow", json!({}), longer).await.unwrap().data, "done");
    let longest = CallOptions::new().with_timeout(Duration::MAX);
    assert_eq!(client.call_with("t.slow", json!({}), longest).await.unwrap().data, "done");
    // A shorter one is that of the call, too.
    let shorter = CallOptions::new().with_timeout(Duration::from_millis(20));
    let error = client.call_with("t.slow", json!({}), shorter).await.unwrap_err();
    assert_eq!(error.message(), "the deadline passed before the operation was done");
}

#[tokio::test]
async fn a_short_call_keeps_the_status_of_an_error_that_drips() {
    let drip = || async {
        let drips = stream::repeat(()).then(|()| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok::<_, Infallible>("x")
        });
        (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "7")], axum::body::Body::from_stream(drips))
    };
    let url = serve(Router::new().route("/x", axum::routing::get(drip))).await;
    let config = HttpConfig::new().with_base_url(url).with_timeout(Duration::from_secs(5));
    let client = HttpClient::new(config).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/x"))]).unwrap();
    let error = client.call("t.x", json!({})).await.unwrap_err();
    assert_eq!((error.status(), error.header("retry-after")), (Some(503), Some("7")), "{error}");
    assert_eq!(error.details()["truncated"], json!(true));
}
