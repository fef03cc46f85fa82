//! Requests that take too much, come too slowly, or are not what they look like.

use std::sync::Arc;
use std::time::Duration;

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::serve::{HttpServer, HttpServerOptions};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::fixture::{registry, serve};

const HEAD: &str =
    "POST /operations/math/add HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n";

#[tokio::test]
async fn bodies_have_a_limit() {
    let options = HttpServerOptions::new().with_max_body(1_000);
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    let huge = format!("{HEAD}content-length: 1000000000\r\n\r\n{{");
    assert_eq!(server.raw(huge.as_bytes()).await.problem()["status"], 413);
    let chunked = format!("{HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n", 2_000, " ".repeat(2_000));
    assert_eq!(server.raw(chunked.as_bytes()).await.status, 413);
    let fits = format!(
        "{HEAD}transfer-encoding: chunked\r\n\r\n7\r\n{{\"a\":1}}\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        993,
        " ".repeat(993)
    );
    assert_eq!(server.raw(fits.as_bytes()).await.body, "2");
    // A compressed body is not what it says it is.
    let gzip = server
        .send("POST /operations/math/add", &["content-type: application/json", "content-encoding: gzip"], "\u{1f}x")
        .await;
    assert_eq!(gzip.status, 415);
}

#[tokio::test]
async fn many_values_and_deep_ones_are_refused() {
    let options = HttpServerOptions::new().with_max_bodies(1 << 20);
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    let many = format!("[{}0]", "0,".repeat(100_000));
    assert_eq!(server.post("/operations/math/add", &many).await.status, 413);
    // Of what is in a string, nothing becomes a value.
    let text = format!("{{\"how\":\"{}\"}}", "0,\\\"".repeat(100_000));
    assert_eq!(server.post("/operations/math/fail", &text).await.status, 500);
    let behind = format!("[\"\\\\\",{}0]", "0,".repeat(100_000));
    assert_eq!(server.post("/operations/math/add", &behind).await.status, 413);
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let default = serve(HttpServer::new(registry())).await;
    let answer = default.post("/operations/math/add", &deep).await;
    assert_eq!(answer.problem()["status"], 400);
    let query = format!("/operations/math/add?input={}", "%5B".repeat(5_000));
    assert_eq!(default.get(&query).await.status, 400);
}

/// A client sends a request again that comes at a busy time.
#[tokio::test]
async fn what_never_fits_is_too_large_and_not_too_early() {
    let options = HttpServerOptions::new().with_max_body(4 << 20).with_max_bodies(1 << 20);
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    // Text and values each fit, but not both.
    let both = format!("[{}10]", "10,".repeat(4_079));
    let stated = format!("{HEAD}content-length: 1048577\r\n\r\n{{");
    let long = " ".repeat((1 << 20) + 1);
    let chunked = format!("{HEAD}transfer-encoding: chunked\r\n\r\n{:x}\r\n{long}\r\n0\r\n\r\n", long.len());
    for (answer, detail) in [
        (server.post("/operations/math/add", &both).await, "the request has too many values"),
        (server.raw(stated.as_bytes()).await, "the body is longer than 1048576 bytes"),
        (server.raw(chunked.as_bytes()).await, "the body is longer than 1048576 bytes"),
    ] {
        assert_eq!((answer.status, answer.header("retry-after")), (413, None), "{answer:?}");
        assert_eq!(answer.problem()["detail"], detail);
    }
    // What the server holds of those is given back.
    let fits = format!("{{\"a\":1{}}}", " ".repeat((1 << 20) - 7));
    assert_eq!(server.post("/operations/math/add", &fits).await.body, "2");
}

#[tokio::test]
async fn slow_requests_end() {
    let slow = Duration::from_millis(300);
    let options = HttpServerOptions::new().with_head_timeout(slow);
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    // The head never ends: hyper closes the connection.
    assert!(matches!(server.raw(b"POST /operations/math/add HTTP/1.1\r\nhost: ").await.status, 0 | 408));
    let options = HttpServerOptions::new().with_read_timeout(slow);
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    let body = format!("{HEAD}content-length: 7\r\n\r\n{{\"a\"");
    assert_eq!(server.raw(body.as_bytes()).await.problem()["status"], 408);
}

#[tokio::test]
async fn heads_have_a_limit() {
    let server = serve(HttpServer::new(registry())).await;
    let many: String = (0..10_000).map(|n| format!("x-{n}: 1\r\n")).collect();
    assert_eq!(server.raw(format!("{HEAD}{many}\r\n").as_bytes()).await.status, 431);
    for length in [66_000, 100_000, 1_000_000] {
        let long = format!("{HEAD}x: {}\r\n\r\n", "a".repeat(length));
        assert_eq!(server.raw(long.as_bytes()).await.status, 431, "{length}");
    }
}

#[tokio::test]
async fn smuggled_and_doubled_headers() {
    let server = serve(HttpServer::new(registry())).await;
    let both =
        format!("{HEAD}content-length: 7\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n");
    let answer = server.raw(both.as_bytes()).await;
    // Whichever it is read by, it is one request, whose body is not JSON.
    assert!(answer.status == 400 || answer.status == 422, "{answer:?}");
    assert!(!answer.body.contains("\"ok\""));
    let twice = format!("{HEAD}content-length: 7\r\ncontent-length: 8\r\n\r\n{{\"a\":1}}");
    assert_eq!(server.raw(twice.as_bytes()).await.status, 400);
    let hosts = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close\r\n\r\n";
    for (request, detail) in [
        (hosts, "the header `Host` came twice, or is not ASCII: send it once, with the server's name"),
        (
            "GET /healthz HTTP/1.1\r\nconnection: close\r\n\r\n",
            "the request does not name the server: send the header `Host` with the server's name",
        ),
        (
            "GET /healthz HTTP/1.1\r\nhost: localhost\r\norigin: null\r\norigin: null\r\nconnection: close\r\n\r\n",
            "the header `Origin` came twice, or is not ASCII: send it once, with the page's origin",
        ),
    ] {
        let answer = server.raw(request.as_bytes()).await;
        assert_eq!((answer.status, &answer.problem()["detail"]), (400, &json!(detail)));
    }
}

#[tokio::test]
async fn requests_in_flight_have_a_limit() {
    static HELD: OperationSpec = OperationSpec::query("t.held");
    let (begun, end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let signals = (begun.clone(), end.clone());
    let held = Handler::dynamic(move |_: Value, _| {
        let (begun, end) = signals.clone();
        async move {
            begun.notify_one();
            end.notified().await;
            Ok(json!("done"))
        }
    });
    let operations = registry();
    operations.register(Registration::new(&HELD, held)).unwrap();
    let options = HttpServerOptions::new().with_max_requests(1);
    let server = serve(HttpServer::new(operations).with_options(options.clone())).await;
    let (held, other) = tokio::join!(server.get("/operations/t/held"), async {
        begun.notified().await;
        let other = server.post("/operations/math/add", r#"{"a":1}"#).await;
        end.notify_one();
        other
    });
    assert_eq!((held.status, other.status, other.header("retry-after")), (200, 503, Some("1")));
    assert_eq!(server.post("/operations/math/add", r#"{"a":1}"#).await.status, 200);
    // One that is given up is not in flight any more either.
    let options = options.with_timeout(Some(Duration::from_millis(100)));
    let server = serve(HttpServer::new(registry()).with_options(options)).await;
    assert_eq!(server.post("/operations/math/fail", r#"{"how":"slow"}"#).await.status, 504);
    // The next one is let in, though a slow machine may not answer it in time.
    let status = server.post("/operations/math/add", r#"{"a":1}"#).await.status;
    assert!(matches!(status, 200 | 504), "{status}");
}
