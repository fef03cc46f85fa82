//! Attacks, sent byte by byte: endless bodies, smuggled requests, tricks with paths, pages of other origins.

use std::time::Duration;

use ops_runtime::Registry;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody, HttpParameter};
use ops_runtime::operation;
use ops_runtime::serve::{BearerTokens, HttpServer, HttpServerOptions};
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::access::secured;
use crate::fixture::{Answer, Server, registry, serve};

static STORE: OperationSpec = OperationSpec::mutation("files.store").with_http(
    HttpBinding::new("PUT", "/files/{name}")
        .with_parameters(const { &[HttpParameter::path("name")] })
        .with_bodies(const { &[HttpBody::new("application/json")] }),
);
static FORM: OperationSpec = OperationSpec::mutation("files.form").with_http(
    HttpBinding::new("POST", "/forms").with_bodies(const { &[HttpBody::new("application/x-www-form-urlencoded")] }),
);

/// What the fixture has, and operations with bodies at paths of their own.
fn with_files() -> Registry {
    let registry = registry();
    for spec in [&STORE, &FORM] {
        registry.register(Registration::new(spec, Handler::dynamic(|input: Value, _| async { Ok(input) }))).unwrap();
    }
    registry
}

/// Ways to send a body: by id, to a subscription, to a path.
const BODIES: [&str; 4] = ["POST /operations/math/add", "POST /operations/math/count", "PUT /files/a", "POST /forms"];

fn content_type(line: &str) -> &'static str {
    if line.ends_with("forms") { "application/x-www-form-urlencoded" } else { "application/json" }
}

/// Fails if a response tells what is inside of the server.
fn assert_quiet(answer: &Answer) {
    assert_ne!(answer.status, 500, "{answer:?}");
    for inside in ["::", ".rs", "/root", "/work", "panicked", "thread '", "hyper", "tokio", "serde_json", "ops_runtime"]
    {
        assert!(!answer.body.contains(inside), "{inside} in {answer:?}");
    }
    assert_eq!((answer.header("server"), answer.header("x-powered-by")), (None, None), "{answer:?}");
}

/// Sends a head, and then pieces until the server has enough: its response, and how many bytes it was sent.
async fn flood(server: &Server, head: &str, piece: &[u8], most: usize) -> (String, usize) {
    let stream = TcpStream::connect(server.address).await.unwrap();
    let (mut read, mut write) = stream.into_split();
    let answer = tokio::spawn(async move {
        let mut answer = Vec::new();
        let mut buffer = [0; 4_096];
        // What the server does not read ends the connection with an error, after its response.
        while let Ok(count) = read.read(&mut buffer).await {
            if count == 0 {
                break;
            }
            answer.extend_from_slice(&buffer[..count]);
        }
        String::from_utf8_lossy(&answer).into_owned()
    });
    write.write_all(head.as_bytes()).await.unwrap();
    let mut sent = 0;
    while sent < most && !answer.is_finished() && write.write_all(piece).await.is_ok() {
        sent += piece.len();
    }
    (tokio::time::timeout(Duration::from_secs(20), answer).await.unwrap().unwrap(), sent)
}

#[tokio::test]
async fn a_body_of_a_gigabyte_is_refused_early() {
    const GIGABYTE: usize = 1 << 30;
    let server = serve(HttpServer::new(with_files())).await;
    let spaces = format!("{:x}\r\n{}\r\n", 1 << 16, " ".repeat(1 << 16));
    for line in BODIES {
        let head = format!("{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {}\r\n", content_type(line));
        // It says so: nothing is read. It does not: it is read as far as a body may go.
        let known = format!("{head}content-length: {GIGABYTE}\r\n\r\n");
        let (answer, sent) = flood(&server, &known, &spaces.as_bytes()[..1 << 16], GIGABYTE).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{line}: {answer}");
        assert!(sent < 64 << 20, "{line}: {sent} bytes");
        let chunked = format!("{head}transfer-encoding: chunked\r\n\r\n");
        let (answer, sent) = flood(&server, &chunked, spaces.as_bytes(), GIGABYTE).await;
        assert!(answer.starts_with("HTTP/1.1 413"), "{line}: {answer}");
        assert!(sent < 64 << 20, "{line}: {sent} bytes");
    }
    // Chunks of one byte with long extensions count for the connection, and end in time.
    let extended = format!("1;{}\r\n \r\n", "x".repeat(8_000));
    let head = "POST /operations/math/add HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n";
    let (answer, sent) = flood(&server, head, extended.as_bytes(), GIGABYTE).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    assert!(sent < 64 << 20, "{sent} bytes");
}

#[tokio::test]
async fn compressed_bodies_are_not_unpacked() {
    let server = serve(HttpServer::new(with_files())).await;
    for line in BODIES {
        for encoding in ["gzip", "x-gzip", "deflate", "br", "zstd", "gzip, gzip", "identity, gzip", "GZIP", ""] {
            let headers = [&*format!("content-type: {}", content_type(line)), &format!("content-encoding: {encoding}")];
            let answer = server.send(line, &headers, "\u{1f}\u{8b}bomb").await;
            assert_eq!(answer.problem()["status"], 415, "{line} {encoding}");
            assert_quiet(&answer);
        }
        let twice = ["content-encoding: identity", "content-encoding: gzip"];
        let answer =
            server.send(line, &[&*format!("content-type: {}", content_type(line)), twice[0], twice[1]], "x").await;
        assert_eq!(answer.status, 415, "{line}: {answer:?}");
    }
}

#[tokio::test]
async fn deep_values_are_refused_wherever_they_come() {
    let server = serve(HttpServer::new(with_files())).await;
    let deep = "[".repeat(100_000);
    let closed = format!("{deep}{}", "]".repeat(100_000));
    for line in BODIES {
        for body in [&deep, &closed, &"{\"a\":".repeat(100_000)] {
            let answer = server.send(line, &[&format!("content-type: {}", content_type(line))], body).await;
            // A form has no depth: it is one name.
            assert!(matches!(answer.status, 400 | 413 | 422) || line == "POST /forms", "{line}: {answer:?}");
            assert_quiet(&answer);
        }
    }
    let brackets = format!("/forms?a{}=1", "[a]".repeat(5_000));
    assert_quiet(&server.send(&format!("POST {brackets}"), &[], "").await);
    let form = format!("a{}=1", "[a]".repeat(100_000));
    let headers = ["content-type: application/x-www-form-urlencoded"];
    assert_quiet(&server.send("POST /forms", &headers, &form).await);
}

#[tokio::test]
async fn slow_clients_end_and_hold_nobody_up() {
    // The heads of those that are honest, or slow with their bodies, have to come in time.
    let options = HttpServerOptions::new()
        .with_head_timeout(Duration::from_secs(3))
        .with_read_timeout(Duration::from_millis(500));
    let server = serve(HttpServer::new(with_files()).with_options(options)).await;
    let drip = async |head: String| {
        let stream = TcpStream::connect(server.address).await.unwrap();
        let (mut read, mut write) = stream.into_split();
        let writing = tokio::spawn(async move {
            write.write_all(head.as_bytes()).await.unwrap();
            // It never stops, so that a limit of silence would never end it.
            while write.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let mut answer = Vec::new();
        let read = tokio::time::timeout(Duration::from_secs(30), read.read_to_end(&mut answer)).await;
        assert!(read.is_ok(), "it did not end");
        writing.abort();
        String::from_utf8_lossy(&answer).into_owned()
    };
    let body = |line: &str| {
        let kind = content_type(line);
        format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: 100000\r\nconnection: close\r\n\r\n"
        )
    };
    let slow = BODIES.iter().cycle().take(40).map(|line| drip(body(line)));
    let heads = (0..40).map(|_| drip("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: ".to_owned()));
    let honest = async {
        for _ in 0..20 {
            assert_eq!(server.post("/operations/math/add", r#"{"a":1}"#).await.body, "2");
        }
    };
    let (bodies, heads, ()) =
        tokio::join!(futures_util::future::join_all(slow), futures_util::future::join_all(heads), honest);
    assert!(bodies.iter().all(|answer| answer.starts_with("HTTP/1.1 408")), "{bodies:?}");
    assert!(heads.iter().all(|answer| answer.is_empty() || answer.starts_with("HTTP/1.1 408")), "{heads:?}");
}

/// A text of this many bytes.
#[operation(namespace = "texts", kind = query)]
async fn text(bytes: usize) -> String {
    "x".repeat(bytes)
}

/// Asks for a large text, reads a little of it, nothing for a while, and then the rest: how much of it there was, and how long
/// it was said to be.
async fn pause(options: HttpServerOptions, pause: Duration) -> (usize, usize) {
    const BYTES: usize = 32 << 20;
    let registry = Registry::new();
    registry.register(Text).unwrap();
    let server = serve(HttpServer::new(registry).with_options(options)).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let target = format!("/operations/texts/text?input=%7B%22bytes%22%3A{BYTES}%7D");
    let request = format!("GET {target} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 64 << 10];
    stream.read_exact(&mut answer).await.unwrap();
    tokio::time::sleep(pause).await;
    // A connection that was cut ends, or breaks.
    let _ = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut answer)).await.unwrap();
    let head = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
    let text = String::from_utf8_lossy(&answer[..head]).into_owned();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap().parse().unwrap();
    assert!(length > BYTES, "{length}");
    (answer.len() - head - 4, length)
}

#[tokio::test]
async fn a_response_that_is_read_slowly_is_bound_by_the_stall_timeout_alone() {
    let options = HttpServerOptions::new().with_head_timeout(Duration::from_secs(2));
    let (came, length) = pause(options, Duration::from_secs(4)).await;
    assert_eq!(came, length);
    let options = HttpServerOptions::new().with_stall_timeout(Duration::from_millis(300));
    let (came, length) = pause(options, Duration::from_millis(1_500)).await;
    assert!(came < length, "{came} of {length} bytes");
}

/// What proxies and servers may understand differently is refused, or is one request with one response.
#[tokio::test]
async fn no_request_hides_another() {
    let serving = |head: Duration| {
        serve(HttpServer::new(registry()).with_options(HttpServerOptions::new().with_head_timeout(head)))
    };
    let server = serving(Duration::from_millis(300)).await;
    const HIDDEN: &str = "GET /operations/math/add?input=%7B%22a%22%3A41%7D HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let post = |headers: &str, body: &str| {
        format!(
            "POST /operations/math/add HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{headers}\r\n{body}"
        )
    };
    let length = HIDDEN.len();
    let refused = [
        post("content-length: 0\r\ncontent-length: 7\r\n", HIDDEN),
        post("content-length: 0, 7\r\n", HIDDEN),
        post("content-length: +0\r\n", HIDDEN),
        post("content-length: -1\r\n", HIDDEN),
        post("content-length: 0x0\r\n", HIDDEN),
        post("content-length: 99999999999999999999\r\n", HIDDEN),
        post("content-length : 0\r\n", HIDDEN),
        post("content-length\t: 0\r\n", HIDDEN),
        post(" content-length: 0\r\n", HIDDEN),
        post("x: y\r\n content-length: 0\r\n", HIDDEN),
        post("transfer-encoding: xchunked\r\n", HIDDEN),
        post("transfer-encoding: chunked, identity\r\n", HIDDEN),
        post("transfer-encoding: identity\r\n", HIDDEN),
        post("transfer-encoding: chunked\r\n", &format!("-1\r\n{HIDDEN}")),
        post("transfer-encoding: chunked\r\n", &format!("0x0\r\n\r\n{HIDDEN}")),
        post("transfer-encoding: chunked\r\n", &format!("fffffffffffffffff\r\n{HIDDEN}")),
        post("transfer-encoding: chunked\r\n", &format!("1\r\n{{}}\r\n0\r\n\r\n{HIDDEN}")),
        post("x: a\0b\r\n", HIDDEN),
        post("x\0: a\r\n", HIDDEN),
        format!(
            "POST /operations/math/add HTTP/1.0\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}"
        ),
        format!("GET  /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n{HIDDEN}"),
        format!("GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n{HIDDEN}"),
        format!("GET /heal thz HTTP/1.1\r\nhost: localhost\r\n\r\n{HIDDEN}"),
        format!("GET /healthz\r\n{HIDDEN}"),
    ];
    for request in &refused {
        let text = server.text(request.as_bytes()).await;
        assert!(text.matches("HTTP/1.").count() <= 1, "{request:?}: {text}");
        assert!(
            text.is_empty() || text.starts_with("HTTP/1.1 4") || text.starts_with("HTTP/1.0 4"),
            "{request:?}: {text}"
        );
    }
    // Of a length and chunks, the chunks count, and the connection ends (RFC 9112, section 6.3).
    let both = [
        post(&format!("content-length: {length}\r\ntransfer-encoding: chunked\r\n"), &format!("0\r\n\r\n{HIDDEN}")),
        post("transfer-encoding: chunked\r\ncontent-length: 5\r\n", &format!("0\r\n\r\n{HIDDEN}")),
    ];
    for request in &both {
        let text = server.text(request.as_bytes()).await;
        assert!(text.matches("HTTP/1.").count() <= 1, "{request:?}: {text}");
    }
    // A body is no request. This one has a response, so its head has to come in time.
    let server = serving(Duration::from_secs(3)).await;
    let inside = server.text(post(&format!("content-length: {length}\r\n"), HIDDEN).as_bytes()).await;
    assert_eq!(inside.matches("HTTP/1.1 ").count(), 1, "{inside}");
    assert!(inside.starts_with("HTTP/1.1 400"), "{inside}");
}

#[tokio::test]
async fn paths_lead_to_one_operation_or_to_none() {
    let tokens = BearerTokens::new().with_token("reader", ops_runtime::access::Identity::new("bob"));
    let server = serve(HttpServer::new(secured()).with_authenticator(tokens)).await;
    let paths = [
        ("/operations/users/../users/me", 404),
        ("/operations/math/../users/me", 404),
        ("/operations/./users/me", 404),
        ("/operations/%2e%2e/operations/users/me", 404),
        ("/operations/users%2fme", 404),
        ("/operations/users%2Fme", 404),
        ("/operations/users/me%00", 404),
        ("/operations/users/me%0a", 404),
        ("/operations/users/me%20", 404),
        ("/operations/users/me/", 404),
        ("/operations/users/me;a=b", 404),
        ("/operations/users/me.json", 404),
        ("/operations/users/ME", 404),
        ("/operations/users.me/", 404),
        ("/operations//users/me", 404),
        ("//operations/users/me", 404),
        ("/operations/users//me", 404),
        ("/operations/users%5cme", 404),
        ("/operations/users/m%u0065", 404),
        ("/operations/users/m%65", 401),
        ("/%6fperations/users/me", 404),
        ("/OPERATIONS/users/me", 404),
        ("/pets/", 404),
        ("/pets/.", 404),
        ("/pets/events/..", 404),
        ("/pets%2fevents", 404),
        ("/pets%00", 404),
        ("/PETS", 404),
        ("//pets", 404),
        ("/%70ets", 401),
        ("/pets?", 401),
        ("/pets/%65vents", 401),
        ("http://localhost/pets", 401),
        ("http://localhost/operations/users/me", 401),
    ];
    for (path, status) in paths {
        for method in ["GET", "POST", "HEAD"] {
            let answer = server.send(&format!("{method} {path}"), &["content-type: application/json"], "").await;
            let is_elsewhere = method == "POST" && !path.contains("operations") && status == 401;
            assert_eq!(answer.status, if is_elsewhere { 405 } else { status }, "{method} {path}");
            assert_quiet(&answer);
        }
    }
    // A parameter is one segment, whatever is in it.
    let files = serve(HttpServer::new(with_files())).await;
    let json = "content-type: application/json";
    for (path, name) in
        [("a%2f..%2f..%2fetc", "a/../../etc"), ("%00", "\0"), ("a;b", "a;b"), ("%252e", "%2e"), ("...", "...")]
    {
        let answer = files.send(&format!("PUT /files/{path}"), &[json], "1").await;
        assert_eq!(answer.json(), json!({ "name": name, "body": 1 }), "{path}");
    }
    for path in ["..", "%2e%2e", ".%2E", ".", "%2e", "a/b", "%ff"] {
        let answer = files.send(&format!("PUT /files/{path}"), &[json], "1").await;
        assert!(matches!(answer.status, 404 | 422), "{path}: {answer:?}");
        assert_quiet(&answer);
    }
}

#[tokio::test]
async fn names_that_are_not_this_machine() {
    let server = serve(HttpServer::new(registry())).await;
    let port = server.address.port();
    let hosts: [(&str, u16); 14] = [
        ("host: localhost", 200),
        ("host: [::1]", 200),
        ("host: LOCALHOST:1", 200),
        ("host: evil.example", 403),
        ("host: localhost.evil.example", 403),
        ("host: evil.example\r\nx-forwarded-host: localhost", 403),
        ("host: evil.example\r\nforwarded: host=localhost", 403),
        ("host: evil.example#localhost", 403),
        ("host: evil.example, localhost", 403),
        ("host: 127.0.0.2", 403),
        ("host: 0.0.0.0", 403),
        ("host:", 403),
        ("host: localhost\r\nhost: localhost", 400),
        ("x: y", 400),
    ];
    for (headers, status) in hosts {
        let request = format!("GET /healthz HTTP/1.1\r\n{headers}\r\nconnection: close\r\n\r\n");
        let answer = server.raw(request.as_bytes()).await;
        assert_eq!(answer.status, status, "{headers}");
        assert_quiet(&answer);
    }
    // The host of the request line does not stand for another in the header.
    let absolute =
        format!("GET http://localhost:{port}/healthz HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n");
    assert_eq!(server.raw(absolute.as_bytes()).await.status, 403);
}

#[tokio::test]
async fn pages_of_others() {
    let closed = serve(HttpServer::new(secured())).await;
    let open = serve(HttpServer::new(secured()).with_origins(["https://app.example"])).await;
    let preflight = |origin: &str, path: &str| {
        format!(
            "OPTIONS {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\norigin: {origin}\r\naccess-control-request-method: POST\r\naccess-control-request-headers: authorization, content-type\r\n\r\n"
        )
    };
    for path in ["/pets", "/pets/events", "/operations/users/me", "/operations/math/count", "/nothing"] {
        let refused = closed.raw(preflight("https://app.example", path).as_bytes()).await;
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None), "{path}");
        // A preflight has no credentials, and tells nothing about the path.
        let allowed = open.raw(preflight("https://app.example", path).as_bytes()).await;
        assert_eq!((allowed.status, allowed.body.as_str()), (200, ""), "{path}");
        assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"));
        assert_eq!(allowed.header("access-control-allow-credentials"), None);
        for origin in ["https://evil.example", "http://app.example", "https://app.example.evil.example", "null", "*"] {
            let other = open.raw(preflight(origin, path).as_bytes()).await;
            assert_eq!(other.header("access-control-allow-origin"), None, "{origin} {path}");
        }
    }
    let sent = |origin: &str| format!("origin: {origin}");
    let allowed = open.send("GET /healthz", &[&sent("https://app.example")], "").await;
    assert_eq!(allowed.header("access-control-allow-origin"), Some("https://app.example"));
    assert!(allowed.header("vary").is_some_and(|vary| vary.to_ascii_lowercase().contains("origin")), "{allowed:?}");
    for (server, origin) in [(&open, "https://evil.example"), (&open, "null"), (&closed, "https://app.example")] {
        let headers = [&*sent(origin), "content-type: application/json"];
        let refused = server.send("POST /operations/math/fail", &headers, "{}").await;
        assert_eq!((refused.status, refused.header("access-control-allow-origin")), (403, None), "{origin}");
        assert_quiet(&refused);
    }
}
