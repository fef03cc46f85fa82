//! Uploads and downloads that are streamed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::extract::{DefaultBodyLimit, Multipart, Request};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::{get, post, put};
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Bodies, BoxFuture, Endpoint, Handler, Payload, Registration, Reply};
use ops_runtime::binding::{HttpBinding, HttpBody, HttpParameter, HttpResponse, StatusRange};
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{Body, Call, CallError, CallOptions, Context, ErrorCode, Operation, Registry, ResponseEnvelope};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::server::serve;

const PIECE: usize = 64 * 1024;

/// A stream of so many pieces that says how many of them were not dropped yet, at most.
struct Pieces {
    alive: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
}

struct Piece(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Pieces {
    fn new() -> Self {
        Self { alive: Arc::default(), most: Arc::default() }
    }

    fn body(&self, count: usize) -> Body {
        let (alive, most) = (self.alive.clone(), self.most.clone());
        Body::stream(stream::iter(0..count).map(move |_| {
            most.fetch_max(alive.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            Ok(Bytes::from_owner(Piece(vec![7; PIECE], alive.clone())))
        }))
    }
}

async fn count(request: Request) -> Json<Value> {
    let (parts, body) = request.into_parts();
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let (length, kind) = (header("content-length"), header("content-type"));
    let mut data = body.into_data_stream();
    let mut bytes = 0;
    while let Some(piece) = data.next().await {
        bytes += piece.unwrap().len();
    }
    Json(json!({ "length": length, "type": kind, "bytes": bytes }))
}

async fn parts(mut parts: Multipart) -> Json<Value> {
    let mut found = Vec::new();
    while let Some(part) = parts.next_field().await.unwrap() {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let (name, file, kind) = (text(part.name()), text(part.file_name()), text(part.content_type()));
        let data = part.bytes().await.unwrap();
        let data = if data.len() > 100 { data.len().to_string() } else { String::from_utf8_lossy(&data).into_owned() };
        found.push(json!([name, file, kind, data]));
    }
    Json(Value::Array(found))
}

async fn big() -> impl IntoResponse {
    let pieces = stream::iter(0..1024).map(|_| Ok::<_, std::io::Error>(Bytes::from(vec![1_u8; PIECE])));
    let headers = [("content-type", "image/png"), ("content-disposition", "attachment; filename=\"../../a b.png\"")];
    (headers, axum::body::Body::from_stream(pieces))
}

async fn client() -> HttpClient {
    let app = Router::new()
        .route("/count", put(count).get(count))
        .route("/parts", post(parts).layer(DefaultBodyLimit::disable()))
        .route("/big", get(big))
        .route("/gone", get(|| async { (StatusCode::GONE, "it is gone") }))
        .route("/nothing", get(|| async {}))
        .route("/small", get(|| async { ([("content-type", "image/png")], "small") }));
    let url = serve(app).await;
    HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap()
}

#[derive(Serialize, Deserialize)]
struct Upload {
    body: Body,
}

struct Put;

impl Operation for Put {
    type Input = Upload;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.put").with_http(
        HttpBinding::new("PUT", "/count")
            .with_bodies(const { &[HttpBody::new("image/*"), HttpBody::new("application/octet-stream")] }),
    );
}

impl Call for Put {}

#[tokio::test]
async fn an_upload_is_never_in_memory_as_a_whole() {
    let client = client().await;
    let pieces = Pieces::new();
    let body = pieces.body(1024);
    let seen = client.execute::<Put>(Upload { body }).await.unwrap().data;
    assert_eq!(seen, json!({ "length": null, "type": "application/octet-stream", "bytes": 1024 * PIECE }));
    let most = pieces.most.load(Ordering::SeqCst);
    assert!(most < 64, "{most} pieces were in memory at a time");

    let body = pieces.body(16).with_length(16 * PIECE as u64).with_content_type("image/gif");
    let seen = client.execute::<Put>(Upload { body }).await.unwrap().data;
    assert_eq!(seen, json!({ "length": (16 * PIECE).to_string(), "type": "image/gif", "bytes": 16 * PIECE }));

    let seen = client.execute::<Put>(Upload { body: "hi".into() }).await.unwrap().data;
    assert_eq!((&seen["length"], &seen["bytes"]), (&json!("2"), &json!(2)));

    // A clone of a stream is the same stream.
    let body = pieces.body(1);
    client.execute::<Put>(Upload { body: body.clone() }).await.unwrap();
    let error = client.execute::<Put>(Upload { body }).await.unwrap_err();
    assert!(error.message().contains("read already"), "{error}");
}

#[tokio::test]
async fn nothing_has_a_length_too() {
    let client = client().await;
    let path = std::env::temp_dir().join(format!("ops-empty-{}.bin", std::process::id()));
    std::fs::write(&path, "").unwrap();
    for body in [Body::from(""), Body::file(&path), Body::stream(stream::empty()).with_length(0)] {
        let seen = client.execute::<Put>(Upload { body }).await.unwrap().data;
        assert_eq!(seen, json!({ "length": "0", "type": "application/octet-stream", "bytes": 0 }));
    }
    std::fs::remove_file(&path).unwrap();
}

struct Search;

impl Operation for Search {
    type Input = Upload;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::query("t.search").with_http(
        HttpBinding::new("GET", "/count").with_bodies(const { &[HttpBody::new("application/octet-stream")] }),
    );
}

impl Call for Search {}

#[tokio::test]
async fn a_body_of_unknown_length_is_sent_with_get_too() {
    let client = client().await;
    for (body, length) in [(Pieces::new().body(2), None), (Pieces::new().body(2).with_length(131_072), Some("131072"))]
    {
        let seen = client.execute::<Search>(Upload { body }).await.unwrap().data;
        assert_eq!((&seen["length"], &seen["bytes"]), (&json!(length), &json!(2 * PIECE)));
    }
}

#[tokio::test]
async fn files() {
    let client = client().await;
    let path = std::env::temp_dir().join(format!("ops-upload-{}.bin", std::process::id()));
    std::fs::write(&path, vec![3; 300_000]).unwrap();
    let seen = client.execute::<Put>(Upload { body: Body::file(&path) }).await.unwrap().data;
    assert_eq!((&seen["length"], &seen["bytes"]), (&json!("300000"), &json!(300_000)));
    std::fs::remove_file(&path).unwrap();
    let error = client.execute::<Put>(Upload { body: Body::file(&path) }).await.unwrap_err();
    assert!(error.message().contains("ops-upload"), "{error}");
}

#[tokio::test]
async fn a_file_can_be_sent_again_but_a_stream_cannot() {
    let app = Router::new()
        .route("/count", put(|| async { (StatusCode::TEMPORARY_REDIRECT, [("location", "/there")]) }))
        .route("/there", put(count));
    let client = HttpClient::new(HttpConfig::new().with_base_url(serve(app).await)).unwrap();
    let path = std::env::temp_dir().join(format!("ops-again-{}.bin", std::process::id()));
    std::fs::write(&path, "again").unwrap();
    let seen = client.execute::<Put>(Upload { body: Body::file(&path) }).await.unwrap().data;
    assert_eq!((&seen["length"], &seen["bytes"]), (&json!("5"), &json!(5)));
    std::fs::remove_file(&path).unwrap();
    let error = client.execute::<Put>(Upload { body: Pieces::new().body(1) }).await.unwrap_err();
    assert!(error.message().contains("redirected a body that is a stream"), "{error}");
    let error =
        client.execute::<Put>(Upload { body: Body::stream(stream::once(async { Err(std::io::Error::other("dry")) })) });
    assert!(error.await.unwrap_err().message().contains("dry"));
}

#[derive(Serialize, Deserialize)]
struct Form {
    title: String,
    tags: Vec<String>,
    about: Value,
    files: Vec<Body>,
}

#[derive(Serialize, Deserialize)]
struct FormInput {
    body: Form,
}

struct Send;

impl Operation for Send {
    type Input = FormInput;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.send")
        .with_input(Schema::text(
            r##"{"type":"object","properties":{"body":{"type":"object","properties":{
                "title":{"type":"string","minLength":1},
                "files":{"type":"array","items":{"type":"string","format":"binary"}}}}}}"##,
        ))
        .with_http(HttpBinding::new("POST", "/parts").with_bodies(const { &[HttpBody::new("multipart/form-data")] }));
}

impl Call for Send {}

#[tokio::test]
async fn multipart_is_what_a_server_reads() {
    let client = client().await;
    let pieces = Pieces::new();
    let files = vec![
        Body::from("plain").with_file_name("a \"b\".txt").with_content_type("text/plain"),
        pieces.body(1024).with_file_name("big.bin"),
        Body::from("x"),
    ];
    let body = Form { title: "ä".to_owned(), tags: vec!["p".into(), "q".into()], about: json!({ "n": 1 }), files };
    let seen = client.execute::<Send>(FormInput { body }).await.unwrap().data;
    let octets = "application/octet-stream";
    let expected = json!([
        ["title", null, null, "ä"],
        ["tags", null, null, "p"],
        ["tags", null, null, "q"],
        ["about", null, "application/json", "{\"n\":1}"],
        ["files", "a %22b%22.txt", "text/plain", "plain"],
        ["files", "big.bin", octets, (1024 * PIECE).to_string()],
        ["files", "files", octets, "x"],
    ]);
    assert_eq!(seen, expected);
    assert!(pieces.most.load(Ordering::SeqCst) < 64);

    // Without types, bytes are base64.
    client.add([Send::SPEC]).unwrap();
    let input = json!({ "body": { "title": "t", "files": ["aGk="] } });
    let seen = client.call("t.send", input).await.unwrap().data;
    assert_eq!(seen, json!([["title", null, null, "t"], ["files", "files", octets, "hi"]]));
    let input = json!({ "body": { "title": "t", "files": ["?"] } });
    let error = client.call("t.send", input).await.unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/body/files");
}

struct Echo;

impl Operation for Echo {
    type Input = Upload;
    type Output = Body;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.local");
}

impl Call for Echo {}

#[tokio::test]
async fn a_stream_needs_a_binding_that_streams() {
    let registry = Registry::new();
    let handler = Handler::dynamic(|input: Value, _| async move { Ok(input["body"].clone()) });
    registry.register(Registration::new(Echo::SPEC, handler)).unwrap();
    let body = registry.execute::<Echo>(Upload { body: "hi".into() }).await.unwrap().data;
    assert_eq!(body, Body::from("hi"));
    let error = registry.execute::<Echo>(Upload { body: Pieces::new().body(1) }).await.unwrap_err();
    assert!(error.message().contains("a binding that streams"), "{error}");
}

macro_rules! downloads {
    ($($name:ident $path:literal)*) => {$(
        struct $name;
        impl Operation for $name {
            type Input = Value;
            type Output = Body;
            const SPEC: &'static OperationSpec = &OperationSpec::query(concat!("t.", $path))
                .with_output(Schema::text(r#"{"type":"string","format":"binary"}"#))
                .with_http(HttpBinding::new("GET", concat!("/", $path)).with_responses(
                    const { &[HttpResponse::new(StatusRange::Exact(200), "image/png")] },
                ));
        }
        impl Call for $name {}
    )*};
}

downloads! { Big "big" Gone "gone" Nothing "nothing" Small "small" }

#[tokio::test]
async fn downloads_are_streamed() {
    let client = client().await;
    let reply = client.execute::<Big>(json!({})).await.unwrap();
    assert_eq!(reply.meta.as_http().unwrap().status_code, 200);
    let body = reply.into_data();
    assert!(body.is_stream() && body.as_bytes().is_none());
    assert_eq!((body.file_name(), body.content_type()), (Some("a b.png"), Some("image/png")));
    let path = std::env::temp_dir().join(format!("ops-download-{}.bin", std::process::id()));
    // More than a response may have that is read at once.
    assert_eq!(body.save(&path).await.unwrap(), 1024 * PIECE as u64);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1024 * PIECE as u64);
    std::fs::remove_file(path).unwrap();

    let body = client.execute::<Big>(json!({})).await.unwrap().into_data();
    assert!(body.bytes(1000).await.unwrap_err().to_string().contains("1000 bytes"));
    let nothing = client.execute::<Nothing>(json!({})).await.unwrap().into_data();
    assert_eq!(nothing.bytes(1).await.unwrap(), "");
    let error = client.execute::<Gone>(json!({})).await.unwrap_err();
    assert_eq!((error.message(), &error.details()["body"]), ("HTTP 410: Gone", &json!("it is gone")));

    // Without types, bytes are base64.
    client.add([Nothing::SPEC]).unwrap();
    let text = client.call("t.nothing", json!({})).await.unwrap().data;
    assert_eq!(text, "");
}

#[tokio::test]
async fn a_body_in_a_parameter_is_base64() {
    #[derive(Serialize, Deserialize)]
    struct Input {
        body: Body,
        x: Body,
    }
    struct Both;
    impl Operation for Both {
        type Input = Input;
        type Output = Value;
        const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.both").with_http(
            HttpBinding::new("PUT", "/count")
                .with_parameters(const { &[HttpParameter::query("x")] })
                .with_bodies(const { &[HttpBody::new("application/json")] }),
        );
    }
    impl Call for Both {}
    let client = client().await;
    let seen = client.execute::<Both>(Input { body: "hi".into(), x: "?>".into() }).await.unwrap().data;
    assert_eq!((&seen["type"], &seen["bytes"]), (&json!("application/json"), &json!(6)));
    let stream = Pieces::new().body(1);
    let error = client.execute::<Both>(Input { body: stream, x: "".into() }).await.unwrap_err();
    assert!(error.message().contains("has no JSON"), "{error}");
    let place = |error: &CallError| (error.code().clone(), error.details()["violations"][0]["pointer"].clone());
    assert_eq!(place(&error), (ErrorCode::ValidationError, json!("/body")));
    let error = client.execute::<Both>(Input { body: "".into(), x: Body::file("x.png") }).await.unwrap_err();
    assert_eq!(place(&error), (ErrorCode::ValidationError, json!("/x")));
    let told = "a file has no JSON, in which bytes are base64: read it first, `Body::from(std::fs::read(..)?)`";
    assert_eq!(error.message(), told);
}

/// Passes its calls on, by their ids, to another registry.
struct PassedOn(Registry);

impl Endpoint for PassedOn {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (registry, id) = (self.0.clone(), spec.id.clone());
        let mut options = CallOptions::new();
        if let Some(bodies) = context.extension::<Bodies>() {
            options = options.with_extension(bodies.clone());
        }
        Box::pin(async move { Ok(registry.call_with(&id, input, options).await?.map(Payload::Value)) })
    }

    fn streams_bodies(&self) -> bool {
        true
    }
}

#[tokio::test]
async fn bodies_that_are_passed_on_by_id() {
    let outer = |inner: Registry| {
        let outer = Registry::new();
        for spec in [Put::SPEC, Small::SPEC] {
            outer.register(Registration::new(spec, Handler::endpoint(PassedOn(inner.clone())))).unwrap();
        }
        outer
    };
    // To a handler that takes them as they are.
    let remote = Registry::new();
    remote.register_all(client().await.bind([Put::SPEC, Small::SPEC]).unwrap()).unwrap();
    let body = || Pieces::new().body(2).with_content_type("image/gif");
    let seen = outer(remote.clone()).execute::<Put>(Upload { body: body() }).await.unwrap().data;
    assert_eq!(seen, json!({ "length": null, "type": "image/gif", "bytes": 2 * PIECE }));
    let typed = Registry::new();
    let count = |input: Upload, _| async move { Ok(Reply::Value(json!(input.body.bytes(10 * PIECE).await?.len()))) };
    typed.register(Registration::call::<Put, _, _>(count)).unwrap();
    assert_eq!(outer(typed).execute::<Put>(Upload { body: body() }).await.unwrap().data, 2 * PIECE);
    // What a call by id gives is JSON.
    let small = outer(remote).execute::<Small>(json!({})).await.unwrap().data;
    assert_eq!(small.as_bytes(), Some(&b"small"[..]));

    // To one that takes JSON, and in no case to those that it calls.
    let json = Registry::new();
    let given = |input: Value, context: Context| async move {
        Ok(json!([input["body"], context.env().call("t.inner", json!(null)).await?.data]))
    };
    let inner = |_, context: Context| async move { Ok(json!(context.extension::<Bodies>().is_some())) };
    json.register(Registration::new(Put::SPEC, Handler::dynamic(given))).unwrap();
    json.register(Registration::new(OperationSpec::query("t.inner"), Handler::dynamic(inner))).unwrap();
    let outer = outer(json);
    assert_eq!(outer.execute::<Put>(Upload { body: "hi".into() }).await.unwrap().data, json!(["aGk=", false]));
    let error = outer.execute::<Put>(Upload { body: body() }).await.unwrap_err();
    assert!(error.message().contains("a stream has no JSON"), "{error}");
}

struct Bounded;

impl Operation for Bounded {
    type Input = Upload;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.bounded").with_input(Schema::text(
        r#"{"type":"object","properties":{"body":{"anyOf":[{"type":"null"},
            {"type":"string","format":"binary","minLength":2,"maxLength":5,"pattern":"^[a-f]+$"}]}}}"#,
    ));
}

impl Call for Bounded {}

#[tokio::test]
async fn a_schema_bounds_the_bytes_of_a_body() {
    let registry = Registry::new();
    let length = |input: Upload, _| async move { Ok(Reply::Value(json!(input.body.length().await?))) };
    registry.register(Registration::call::<Bounded, _, _>(length)).unwrap();
    let path = std::env::temp_dir().join(format!("ops-bounded-{}.bin", std::process::id()));
    let file = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Body::file(&path)
    };
    let endless = || Body::stream(stream::pending());
    let table = [
        (Body::from("12345"), Ok(json!(5))),
        (Body::from("123456"), Err("/body: expected no more than 5 bytes")),
        (Body::from("1"), Err("/body: expected no fewer than 2 bytes")),
        (endless(), Ok(json!(null))),
        (endless().with_length(5), Ok(json!(5))),
        (endless().with_length(6), Err("/body: expected no more than 5 bytes")),
    ];
    let found = async |body: Body| {
        let found = registry.execute::<Bounded>(Upload { body }).await;
        found.map(|envelope| envelope.data).map_err(|error| error.message().to_owned())
    };
    let check = |found: Result<Value, String>, expected: Result<Value, &str>| match (found, expected) {
        (Err(found), Err(expected)) => assert!(found.ends_with(expected), "{found}"),
        (found, expected) => assert_eq!(found.ok(), expected.ok()),
    };
    for (body, expected) in table {
        check(found(body).await, expected);
    }
    check(found(file("12345")).await, Ok(json!(5)));
    check(found(file("123456")).await, Err("/body: expected no more than 5 bytes"));
    check(found(file("")).await, Err("/body: expected no fewer than 2 bytes"));
    // Its size is 0, whatever it holds.
    if cfg!(target_os = "linux") {
        check(found(Body::file("/proc/version")).await, Ok(json!(null)));
    }
    std::fs::remove_file(&path).unwrap();
    // By id, bytes are base64, and as many as they stand for.
    for (text, expected) in [
        ("MTIzNDU=", Ok(json!(5))),
        ("MTIzNDU2", Err("/body: expected no more than 5 bytes")),
        ("MQ==", Err("/body: expected no fewer than 2 bytes")),
        ("no base64", Err("/body: expected no more than 5 bytes")),
    ] {
        let found = registry.call("t.bounded", json!({ "body": text })).await;
        check(found.map(|envelope| envelope.data).map_err(|error| error.message().to_owned()), expected);
    }
}
