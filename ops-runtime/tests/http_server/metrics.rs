//! What `GET /metrics` says, and to whom.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::adapter::{Endpoint, Handler, Payload, PayloadFuture, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody, HttpResponse, StatusRange};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::serve::{BearerTokens, HttpServer};
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{CallError, Context, Registry, ResponseEnvelope};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::access::secured;
use crate::fixture::{Server, registry, serve};

async fn lines(server: &Server) -> Vec<String> {
    let answer = server.get("/metrics").await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    answer.body.lines().map(str::to_owned).collect()
}

/// The value of a series.
fn value(lines: &[String], series: &str) -> Option<f64> {
    lines.iter().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

#[tokio::test]
async fn requests_are_counted_by_operation_and_status() {
    let server = serve(HttpServer::new(secured()).with_metrics(AccessControl::NONE)).await;
    for _ in 0..3 {
        server.post("/operations/math/add", r#"{"a":1}"#).await;
    }
    server.post("/operations/math/add", "{}").await;
    server.get("/pets").await;
    server.get("/pets/events").await;
    server.post("/operations/math/fail", r#"{"how":"panic"}"#).await;
    // What leads to no operation has no label of its own, whatever it is called.
    for path in ["/a", "/b", "/operations/x/y", "/operations/math/add/z", "/%22%0Aevil%201"] {
        assert_eq!(server.get(path).await.status, 404, "{path}");
    }
    let lines = lines(&server).await;
    let counted = |operation: &str, status: u16| {
        value(&lines, &format!("ops_http_requests_total{{operation=\"{operation}\",status=\"{status}\"}} "))
    };
    assert_eq!((counted("math.add", 200), counted("math.add", 422)), (Some(3.0), Some(1.0)));
    assert_eq!((counted("pets.list", 401), counted("pets.watch", 401)), (Some(1.0), Some(1.0)));
    assert_eq!((counted("math.fail", 500), counted("", 404)), (Some(1.0), Some(5.0)));
    let duration = "ops_http_request_duration_seconds";
    for (series, expected) in [("count", 4.0), ("bucket", 4.0)] {
        let labels = if series == "bucket" { "operation=\"math.add\",le=\"+Inf\"" } else { "operation=\"math.add\"" };
        assert_eq!(value(&lines, &format!("{duration}_{series}{{{labels}}} ")), Some(expected));
    }
    assert!(value(&lines, &format!("{duration}_sum{{operation=\"math.add\"}} ")).unwrap() > 0.0);
    // The request for the text itself is in flight.
    assert_eq!(value(&lines, "ops_http_requests_in_flight "), Some(1.0));
    assert_eq!(value(&lines, "ops_http_streams_open "), Some(0.0));
    // Each line is a comment or a series, and each kind is named once, before its series.
    let mut kinds: Vec<&str> = Vec::new();
    for line in &lines {
        match line.strip_prefix("# TYPE ") {
            Some(kind) => kinds.push(kind.split(' ').next().unwrap()),
            None if line.starts_with("# HELP ") => {}
            None => {
                assert!(line.starts_with(kinds.last().unwrap()), "{line}");
                assert!(line.rsplit_once(' ').unwrap().1.parse::<f64>().is_ok(), "{line}");
            }
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
}

/// An API that notes which of its operations were refused.
struct Replies(Arc<Mutex<Vec<String>>>);

impl Endpoint for Replies {
    fn call(&self, _: &OperationSpec, _: Value, _: Context) -> PayloadFuture {
        let meta = HttpMeta::new(200, "application/json");
        Box::pin(async { Ok(ResponseEnvelope::http(Payload::Value(json!(7)), meta)) })
    }

    fn refused(&self, spec: &OperationSpec, _: &Value, _: &Context, _: &CallError) {
        self.0.lock().unwrap().push(spec.id.to_string());
    }
}

/// Of a result and a stream at one path, a request is a call of one.
#[tokio::test]
async fn what_nobody_called_is_neither_counted_nor_refused() {
    const INPUT: Schema = Schema::text(r#"{"type":"object","properties":{"body":{"type":"object"}}}"#);
    const BINDING: HttpBinding =
        HttpBinding::new("POST", "/replies").with_bodies(const { &[HttpBody::new("application/json")] });
    static RESULT: OperationSpec = OperationSpec::mutation("ai.reply")
        .with_input(INPUT)
        .with_http(BINDING.with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/json")] }))
        .with_access(AccessControl::NONE.with_scopes(&["reply"]));
    static STREAM: OperationSpec = OperationSpec::subscription("ai.reply_stream")
        .with_input(INPUT)
        .with_http(BINDING.with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "text/event-stream")] }))
        .with_access(AccessControl::NONE.with_scopes(&["stream"]));
    let (registry, refused) = (Registry::new(), Arc::default());
    for spec in [&RESULT, &STREAM] {
        registry.register(Registration::new(spec, Handler::endpoint(Replies(Arc::clone(&refused))))).unwrap();
    }
    let tokens = BearerTokens::new()
        .with_token("ann", Identity::new("ann").with_scope("reply"))
        .with_token("bob", Identity::new("bob"));
    let server = HttpServer::new(registry).with_authenticator(tokens).with_metrics(AccessControl::NONE);
    let server = serve(server).await;
    let table: [(&str, &str, &str, u16, &[&str]); 5] = [
        ("ann", "application/json", "{}", 200, &[]),
        // What the caller may run is the one that is meant.
        ("ann", "text/event-stream", "{}", 200, &[]),
        ("ann", "application/json", "{", 400, &[]),
        ("bob", "application/json", "{}", 403, &["ai.reply"]),
        ("bob", "text/event-stream", "{}", 403, &["ai.reply", "ai.reply_stream"]),
    ];
    for (token, accept, body, status, expected) in table {
        let (token, accept) = (format!("authorization: Bearer {token}"), format!("accept: {accept}"));
        let answer = server.send("POST /replies", &[&token, &accept, "content-type: application/json"], body).await;
        assert_eq!(answer.status, status, "{token} {accept}: {answer:?}");
        assert_eq!(*refused.lock().unwrap(), expected, "{token} {accept}");
    }
    let lines = lines(&server).await;
    let mut counted: Vec<&str> =
        lines.iter().filter_map(|line| line.strip_prefix("ops_http_requests_total{operation=")).collect();
    counted.sort_unstable();
    let expected = [
        r#""ai.reply",status="200"} 2"#,
        r#""ai.reply",status="400"} 1"#,
        r#""ai.reply",status="403"} 1"#,
        r#""ai.reply_stream",status="403"} 1"#,
    ];
    assert_eq!(counted, expected);
}

#[tokio::test]
async fn streams_and_clients_that_go_away() {
    let server = serve(HttpServer::new(registry()).with_metrics(AccessControl::NONE)).await;
    let open = async |request: &str| {
        let mut stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    };
    let body = r#"{"to":1000000000}"#;
    let length = body.len();
    let mut stream = open(&format!(
        "POST /operations/math/count HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
    .await;
    stream.read_exact(&mut [0; 100]).await.unwrap();
    assert_eq!(value(&lines(&server).await, "ops_http_streams_open "), Some(1.0));
    drop(stream);
    let body = r#"{"how":"slow"}"#;
    let length = body.len();
    let slow = open(&format!(
        "POST /operations/math/fail HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    ))
    .await;
    let until = async |series: &str, expected: f64| {
        for _ in 0..2_000 {
            if value(&lines(&server).await, series) == Some(expected) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("{series} is not {expected}: {:?}", lines(&server).await);
    };
    until("ops_http_streams_open ", 0.0).await;
    until("ops_http_requests_in_flight ", 2.0).await;
    drop(slow);
    until("ops_http_requests_in_flight ", 1.0).await;
    until("ops_http_requests_total{operation=\"math.fail\",status=\"499\"} ", 1.0).await;
}

#[tokio::test]
async fn who_may_read_them() {
    let off = serve(HttpServer::new(registry())).await;
    assert_eq!(off.get("/metrics").await.status, 404);
    let tokens = || {
        BearerTokens::new()
            .with_token("scraper", Identity::new("prometheus").with_scope("metrics:read"))
            .with_token("ann", Identity::new("ann"))
    };
    let server = HttpServer::new(registry())
        .with_authenticator(tokens())
        .with_metrics(AccessControl::NONE.with_scopes(&["metrics:read"]));
    let server = serve(server).await;
    let table: [(&[&str], u16); 4] = [
        (&[], 401),
        (&["authorization: Bearer wrong"], 401),
        (&["authorization: Bearer ann"], 403),
        (&["authorization: Bearer scraper"], 200),
    ];
    for (headers, status) in table {
        for method in ["GET", "HEAD"] {
            let answer = server.send(&format!("{method} /metrics"), headers, "").await;
            assert_eq!(answer.status, status, "{method} {headers:?}");
            assert_eq!(answer.body.contains("ops_http"), status == 200 && method == "GET");
        }
    }
    assert_eq!(server.post("/metrics", "{}").await.status, 405);
    // Rules that no identity satisfies hold without an authenticator, too.
    let alone = HttpServer::new(registry()).with_metrics(AccessControl::NONE.with_scopes(&["metrics:read"]));
    assert_eq!(serve(alone).await.get("/metrics").await.status, 401);
}

#[cfg(feature = "durable")]
#[tokio::test]
async fn queues_of_jobs() {
    use ops_runtime::durable::{Jobs, SubmitOptions};

    let jobs = Jobs::in_memory().with_queue("slow.*", "slow");
    for id in ["math.add", "math.add", "slow.math"] {
        jobs.submit_by_id(id, serde_json::json!({}), SubmitOptions::new()).await.unwrap();
    }
    tokio::time::sleep(Duration::from_millis(50)).await;
    let server = serve(HttpServer::new(registry()).with_metrics(AccessControl::NONE).with_jobs(jobs)).await;
    let lines = lines(&server).await;
    for (queue, open) in [("jobs", 2.0), ("slow", 1.0)] {
        let gauge = |name: &str| value(&lines, &format!("ops_jobs_{name}{{queue=\"{queue}\"}} ")).unwrap();
        assert_eq!((gauge("open"), gauge("dead")), (open, 0.0));
        assert!((0.05..60.0).contains(&gauge("oldest_age_seconds")), "{lines:?}");
    }
    assert_eq!(lines.iter().filter(|line| line.starts_with("# TYPE ops_jobs_")).count(), 3);
}
