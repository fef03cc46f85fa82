//! Answers of another server that are passed on: byte for byte where they conform, and mended where they do not.

use ops_runtime::binding::{Binding, HttpBinding, HttpResponse, StatusRange};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::fixture::{Server, serve};

/// A server that answers each request with the same JSON text; its address.
async fn upstream(text: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";
            let _ = stream.write_all(format!("{head}content-length: {}\r\n\r\n{text}", text.len()).as_bytes()).await;
        }
    });
    format!("http://{address}")
}

/// A server that passes on what another answers, which is to have this schema.
async fn gateway(schema: &Value, sent: &'static str) -> Server {
    let mut spec = OperationSpec::new(OperationKind::Query, "pets", "list").unwrap();
    spec.output = Schema::from(schema.clone());
    let mut binding = HttpBinding::owned("GET", "/pets");
    binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), "application/json")].into();
    spec.binding = Binding::Http(binding);
    let client = HttpClient::new(HttpConfig::new().with_base_url(upstream(sent).await)).unwrap();
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
