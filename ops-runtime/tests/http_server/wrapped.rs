//! Functions whose only parameter of the body is the body itself, and requests with an object around it.

use std::collections::HashMap;

use ops_runtime::serve::HttpServer;
use ops_runtime::{CallError, Registry, operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fixture::serve;

#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
struct Line {
    code: String,
}

#[operation(namespace = "bills", http = "POST /bills/{customer}/lines")]
async fn all(customer: u64, lines: Vec<Line>) -> usize {
    let _ = customer;
    lines.len()
}

#[operation(namespace = "bills", http = "POST /bills/{customer}/line", errors(CLOSED = 422))]
async fn one(customer: u64, line: Line) -> Result<String, CallError> {
    match customer {
        0 => Err(CallError::new("CLOSED", "it is closed")),
        _ => Ok(line.code),
    }
}

#[operation(namespace = "bills", http = "POST /bills/{customer}/counts")]
async fn count_all(customer: u64, counts: HashMap<String, u32>) -> usize {
    let _ = customer;
    counts.len()
}

#[tokio::test]
async fn an_object_around_the_body_is_told_as_such() {
    let registry = Registry::new();
    registry.register(All).unwrap();
    registry.register(One).unwrap();
    registry.register(CountAll).unwrap();
    let server = serve(HttpServer::new(registry)).await;

    let around = |name: &str| {
        let message = format!("the body itself is `{name}`: send the value without an object around it");
        json!({ "pointer": format!("/{name}"), "message": message })
    };
    let violations = async |path: &str, body: &str| {
        let answer = server.post(path, body).await;
        assert_eq!(answer.status, 422, "{answer:?}");
        answer.problem()["violations"].clone()
    };
    assert_eq!(violations("/bills/1/lines", r#"{"lines":[{"code":"a"}]}"#).await, json!([around("lines")]));
    let lacking = json!({ "pointer": "/line/code", "message": "expected required property" });
    assert_eq!(violations("/bills/1/line", r#"{"line":{"code":"a"}}"#).await, json!([around("line"), lacking]));

    // Another object is no attempt to name the parameter.
    let other = violations("/bills/1/lines", r#"{"rows":[]}"#).await;
    assert_eq!((&other[0]["pointer"], &other[1]), (&json!("/lines"), &Value::Null));
    assert_eq!(violations("/bills/1/line", "{}").await, json!([lacking]));

    // Nor is an object whose keys may be any.
    let other = violations("/bills/1/counts", r#"{"counts":"x","a":1}"#).await;
    assert_eq!((&other[0]["pointer"], &other[1]), (&json!("/counts/counts"), &Value::Null));

    // What the body holds beside its own properties is ignored, and a failure of the function is its own.
    let beside = r#"{"code":"a","line":1}"#;
    assert_eq!(server.post("/bills/1/line", beside).await.json(), json!("a"));
    assert_eq!(server.post("/bills/0/line", beside).await.problem()["code"], "CLOSED");
}
