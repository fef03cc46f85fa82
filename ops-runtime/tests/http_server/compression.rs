//! Compressed responses: which are, and for whom.

use std::io::Read;

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpParameter};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Registry, ResponseEnvelope, operation};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::fixture::{Server, registry, serve};

static TEXT: OperationSpec = OperationSpec::query("t.text");

fn with_text() -> Registry {
    let registry = registry();
    let text = Handler::dynamic(|input: Value, _| async move {
        Ok(json!("x".repeat(input["length"].as_u64().unwrap_or_default() as usize)))
    });
    registry.register(Registration::new(&TEXT, text)).unwrap();
    registry
}

/// The head of a response in lower case, and the bytes of its body.
async fn get(server: &Server, path: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
    (String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase(), bytes[end + 4..].to_vec())
}

#[tokio::test]
async fn long_text_is_compressed_for_who_accepts_it() {
    let server = serve(HttpServer::new(with_text()).with_compression()).await;
    let path = |length: usize| format!("/operations/t/text?input=%7B%22length%22%3A{length}%7D");
    let table = [
        (100_000, "accept-encoding: gzip\r\n", true),
        (100_000, "accept-encoding: br, zstd;q=1, gzip;q=0.1\r\n", true),
        (1_022, "accept-encoding: gzip\r\n", true),
        (1_021, "accept-encoding: gzip\r\n", false),
        (100_000, "", false),
        (100_000, "accept-encoding: br\r\n", false),
        (100_000, "accept-encoding: gzip;q=0\r\n", false),
        (100_000, "accept-encoding: identity\r\n", false),
        (100_000, "accept-encoding: identity, gzip;q=0.5\r\n", false),
        (100_000, "accept-encoding: *\r\n", true),
        // A client that accepts nothing gets the response of the operation, which has run.
        (100_000, "accept-encoding: br, identity;q=0\r\n", false),
        (100_000, "accept-encoding: *;q=0\r\n", false),
        (1_021, "accept-encoding: *;q=0\r\n", false),
    ];
    for (length, headers, is_compressed) in table {
        let (head, body) = get(&server, &path(length), headers).await;
        assert!(head.starts_with("http/1.0 200"), "{length} {headers}: {head}");
        assert_eq!(head.contains("content-encoding: gzip"), is_compressed, "{length} {headers}: {head}");
        assert_eq!(head.contains("vary: accept-encoding"), length > 1_021, "{head}");
        let text = format!("\"{}\"", "x".repeat(length));
        if is_compressed {
            assert!(body.len() < length, "{}", body.len());
            let mut decoded = String::new();
            flate2::read::GzDecoder::new(body.as_slice()).read_to_string(&mut decoded).unwrap();
            assert_eq!(decoded, text);
        } else {
            assert_eq!(body, text.as_bytes());
            assert!(head.contains(&format!("content-length: {}", text.len())), "{head}");
        }
    }
    // A failure is text like any other, and so is a short one.
    let (head, _) = get(&server, "/nothing", "accept-encoding: gzip\r\n").await;
    assert!(head.starts_with("http/1.0 404") && !head.contains("content-encoding"), "{head}");
    let plain = serve(HttpServer::new(with_text())).await;
    let (head, _) = get(&plain, &path(100_000), "accept-encoding: gzip\r\n").await;
    assert!(!head.contains("content-encoding") && !head.contains("vary: accept-encoding"), "{head}");
}

/// An event is sent when it is there.
#[tokio::test]
async fn streams_are_not_compressed() {
    let server = serve(HttpServer::new(with_text()).with_compression()).await;
    for accept in ["text/event-stream", "application/x-ndjson"] {
        let path = "/operations/math/count?input=%7B%22to%22%3A2000%7D";
        let (head, body) = get(&server, path, &format!("accept: {accept}\r\naccept-encoding: gzip\r\n")).await;
        assert!(!head.contains("content-encoding"), "{head}");
        assert!(String::from_utf8(body).unwrap().contains("2000\\n"), "{accept}");
    }
}

/// Two texts of bytes that differ do not share a strong tag.
#[tokio::test]
async fn a_compressed_text_has_a_weak_tag() {
    let server = serve(HttpServer::new(with_text()).with_compression()).await;
    let tag = |head: &str| head.lines().find_map(|line| line.strip_prefix("etag: ").map(str::to_owned)).unwrap();
    let (plain, _) = get(&server, "/openapi.json", "").await;
    let (compressed, _) = get(&server, "/openapi.json", "accept-encoding: gzip\r\n").await;
    assert!(compressed.contains("content-encoding: gzip"), "{compressed}");
    assert_eq!(tag(&compressed), format!("W/{}", tag(&plain)).to_ascii_lowercase());
    let headers = format!("accept-encoding: gzip\r\nif-none-match: {}\r\n", tag(&compressed).replacen("w/", "W/", 1));
    let (known, body) = get(&server, "/openapi.json", &headers).await;
    assert!(known.starts_with("http/1.0 304") && body.is_empty(), "{known}");
    assert!(known.contains("vary: accept-encoding"), "{known}");
}

/// What a client accepts reaches the operation as it was sent.
#[tokio::test]
async fn an_operation_sees_what_its_client_accepts() {
    let binding =
        HttpBinding::new("GET", "/accepts").with_parameters(const { &[HttpParameter::header("accept-encoding")] });
    let mut spec = OperationSpec::query("t.accepts").with_http(binding);
    spec.input = json!({ "type": "object", "properties": { "accept-encoding": { "type": "string" } } }).into();
    let registry = with_text();
    let echo = Handler::dynamic(|input: Value, _| async move { Ok(input) });
    registry.register(Registration::new(spec, echo)).unwrap();
    let server = serve(HttpServer::new(registry).with_compression()).await;
    let (head, body) = get(&server, "/accepts", "accept-encoding: br, identity;q=0\r\n").await;
    assert!(String::from_utf8(body).unwrap().contains("br, identity;q=0"), "{head}");
}

/// Gives a long text, and 304 to a caller that has its tag.
#[operation(namespace = "t", http = "GET /tagged")]
async fn tagged(#[input(header = "If-None-Match")] etag: Option<String>) -> ResponseEnvelope<Option<String>> {
    let own = "\"7\"";
    match etag {
        Some(etag) if etag.trim_start_matches("W/") == own => ResponseEnvelope::http(None, HttpMeta::new(304, "")),
        _ => {
            let meta = HttpMeta::new(200, "application/json").with_header("etag", own);
            ResponseEnvelope::http(Some("x".repeat(2_000)), meta)
        }
    }
}

/// The tag comes back as it was sent: a handler has to know it with the prefix, too.
#[tokio::test]
async fn a_handler_knows_its_tag_without_the_prefix() {
    let registry = with_text();
    registry.register(Tagged).unwrap();
    let server = serve(HttpServer::new(registry).with_compression()).await;
    for (headers, tag) in [("", "etag: \"7\""), ("accept-encoding: gzip\r\n", "etag: w/\"7\"")] {
        let (head, _) = get(&server, "/tagged", headers).await;
        assert!(head.starts_with("http/1.0 200") && head.lines().any(|line| line == tag), "{head}");
        let sent = tag.replacen("etag: w", "etag: W", 1).replacen("etag", "if-none-match", 1);
        let (head, body) = get(&server, "/tagged", &format!("{headers}{sent}\r\n")).await;
        assert!(head.starts_with("http/1.0 304") && body.is_empty(), "{head}");
    }
}
