//! Answers of another server that are passed on: byte for byte where they conform, and mended where they do not.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{Binding, HttpBinding, HttpResponse, StatusRange};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::{Server, serve};

/// A server that answers each request with the same body; its address.
async fn upstream(content_type: &'static str, body: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\nconnection: close\r\n");
            let head = format!("{head}content-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&[head.as_bytes(), body].concat()).await;
        }
    });
    format!("http://{address}")
}

/// An operation whose success is of this type and has this schema.
fn list(content_type: &'static str, schema: &Value) -> OperationSpec {
    let mut spec = OperationSpec::new(OperationKind::Query, "pets", "list").unwrap();
    spec.output = Schema::from(schema.clone());
    let mut binding = HttpBinding::owned("GET", "/pets");
    binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), content_type)].into();
    spec.binding = Binding::Http(binding);
    spec
}

/// A server that passes on what another answers, which is to have this schema.
async fn gateway(schema: &Value, sent: &'static str) -> Server {
    let url = upstream("application/json", sent.as_bytes()).await;
    passing_on(list("application/json", schema), url).await
}

/// A server that passes on what another answers.
async fn passing_on(spec: OperationSpec, url: String) -> Server {
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let registry = Registry::new();
    registry.register_all(client.bind([spec]).unwrap()).unwrap();
    serve(HttpServer::new(registry)).await
}

#[tokio::test]
async fn text_stays_text() {
    let schema = json!({"type": "object", "required": ["pets"], "properties": {
        "pets": {"type": "array", "items": {"type": "object", "required": ["id"], "properties": {
            "id": {"type": "integer"}, "price": {"type": "number"}, "name": {"type": "string"}
        }}},
        "next": {"type": "string"}
    }});
    for (sent, received, warnings) in [
        // As it came: spaces, escapes, the notation of numbers, the order.
        (
            r#"{ "next" :"\u0041", "pets":[{"price":1.50, "id":1}] }"#,
            r#"{ "next" :"\u0041", "pets":[{"price":1.50, "id":1}] }"#,
            json!(null),
        ),
        // Three faults at once: only their places change.
        (
            r#"{ "next" :null, "pets":[{"price":1.50, "_links": {}, "id":"1"}, {"id" : 2e0, "price":1E2 }] }"#,
            r#"{"pets":[{"price":1.50, "id":1}, {"id" : 2, "price":1E2 }] }"#,
            json!([
                {"pointer": "/next", "expected": "string", "found": "null"},
                {"pointer": "/pets/0/id", "expected": "integer", "found": "string"},
                {"pointer": "/pets/0/_links", "expected": "no such property", "found": "object"},
            ]),
        ),
    ] {
        let server = gateway(&schema, sent).await;
        let answer = server.get("/pets").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, received), "{answer:?}");
        let envelope = server.send("GET /pets", &["accept: application/vnd.ops.envelope+json"], "").await;
        assert!(envelope.body.contains(received), "{envelope:?}");
        assert_eq!(envelope.json()["warnings"], warnings, "{sent}");
    }
    // What can't be mended is no answer of a server that promises this schema.
    let answer = gateway(&schema, r#"{"pets": [{"id": "one", "x": 1}]}"#).await.get("/pets").await;
    assert_eq!(answer.status, 500, "{answer:?}");
    assert_eq!(answer.problem()["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn bytes_by_the_schema_stay_bytes() {
    let schema = json!({ "type": "string", "format": "binary" });
    // "caf\u{e9}" in Latin-1, which is no UTF-8.
    let (sent, received) = (b"caf\xE9", "caf\u{fffd}");
    for (described, came) in [
        ("text/csv", "text/csv; charset=iso-8859-1"),
        ("text/*", "text/plain"),
        ("application/xml", "application/xml"),
        ("*/*", "application/vnd.shop"),
    ] {
        let server = passing_on(list(described, &schema), upstream(came, sent).await).await;
        let answer = server.get("/pets").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(came)), "{described}");
        assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("4"), received), "{described}");
        // By the envelope, they are a value.
        let envelope = server.send("GET /pets", &["accept: application/vnd.ops.envelope+json"], "").await;
        assert!(envelope.body.contains("\"Y2Fm6Q==\""), "{envelope:?}");
    }
    // A handler gives them as a value, too.
    for (described, told) in [("text/csv", "text/csv"), ("*/*", "application/octet-stream")] {
        let handler = Handler::dynamic(|_: Value, _| async { Ok(json!("Y2Fm6Q==")) });
        let registry = Registry::new();
        registry.register(Registration::new(list(described, &schema), handler)).unwrap();
        let answer = serve(HttpServer::new(registry)).await.get("/pets").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some(told)), "{answer:?}");
        assert_eq!((answer.header("content-length"), answer.body.as_str()), (Some("4"), received), "{answer:?}");
    }
}
