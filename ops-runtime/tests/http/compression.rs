//! Compressed responses: asked for or not, decoded, and within the limits.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::routing::{any, get};
use futures_util::{StreamExt, TryStreamExt, stream};
use ops_runtime::binding::{HttpResponse, StatusRange};
use ops_runtime::http::{Compression, HttpClient, HttpConfig, HttpEngine};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{Body as Download, Call, CallError, Operation, ResponseEnvelope};
use serde_json::{Value, json};
use std::convert::Infallible;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::server::{get_of, serve, spec};

/// 50 MB of zeros, which take less than 50 KB on the wire.
async fn bomb() -> Body {
    let pieces = stream::iter(0..50).map(|_| Ok::<_, Infallible>(Bytes::from_static(&[b'0'; 1_000_000])));
    Body::from_stream(pieces)
}

/// A server that compresses all that it may.
async fn server() -> String {
    let accepted = |request: Request| async move {
        let accepted = request.headers().get("accept-encoding").map(|value| value.to_str().unwrap().to_owned());
        axum::Json(json!({ "accepted": accepted, "fill": "x".repeat(1_000) }))
    };
    let events = || async { ([("content-type", "text/event-stream")], "data: {\"n\":1}\n\ndata: {\"n\":2}\n\n") };
    let app = Router::new()
        .route("/accepted", any(accepted))
        .route("/refused", any(|| async { (StatusCode::CONFLICT, axum::Json(json!({ "by": "ann".repeat(99) }))) }))
        .route("/events", get(events))
        .route("/bomb", get(bomb))
        .route("/refused-bomb", get(|| async { (StatusCode::CONFLICT, bomb().await) }))
        .layer(CompressionLayer::new().compress_when(SizeAbove::new(1)));
    serve(app).await
}

async fn call(config: HttpConfig, path: &'static str) -> Result<ResponseEnvelope<Value>, CallError> {
    let client = HttpClient::new(config)?;
    client.add([spec(OperationKind::Query, "x", get_of(path))]).unwrap();
    client.call("t.x", json!({})).await
}

#[tokio::test]
async fn responses_are_compressed_if_that_was_asked_for() {
    let url = server().await;
    let config = || HttpConfig::new().with_base_url(&*url);
    let plain = call(config(), "/accepted").await.unwrap();
    assert_eq!(plain.data["accepted"], Value::Null);
    for (codings, accepted) in [
        (&[Compression::Gzip][..], "gzip"),
        (&[Compression::Brotli], "br"),
        (&[Compression::Zstd], "zstd"),
        (&Compression::ALL, "zstd,gzip,br"),
    ] {
        let envelope = call(config().with_compression(codings.iter().copied()), "/accepted").await.unwrap();
        let mut found: Vec<_> = envelope.data["accepted"].as_str().unwrap().split([',', ' ']).collect();
        let mut expected: Vec<_> = accepted.split(',').collect();
        found.retain(|text| !text.is_empty());
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected);
        assert_eq!(envelope.data["fill"], plain.data["fill"]);
        let headers = &envelope.meta.as_http().unwrap().headers;
        assert!(!headers.contains_key("content-encoding") && !headers.contains_key("content-length"), "{headers:?}");
    }
    let error = call(config().with_compression(Compression::ALL), "/refused").await.unwrap_err();
    assert_eq!(error.details()["body"]["by"], "ann".repeat(99));
}

#[tokio::test]
async fn a_range_is_of_bytes_that_are_not_compressed() {
    let url = server().await;
    let config = HttpConfig::new().with_base_url(&*url).with_header("Range", "bytes=1000-");
    let decoding = config.clone().with_compression(Compression::ALL);
    for (config, expected) in [
        (config, Value::Null),
        (decoding.clone(), json!("identity")),
        // What the program itself asks for stays.
        (decoding.with_header("Accept-Encoding", "gzip"), json!("gzip")),
    ] {
        assert_eq!(call(config, "/accepted").await.unwrap().data["accepted"], expected);
    }
}

#[tokio::test]
async fn limits_count_what_was_decoded() {
    let url = server().await;
    for coding in Compression::ALL {
        let config = || HttpConfig::new().with_base_url(&*url).with_compression([coding]).with_max_response(100_000);
        let error = call(config(), "/bomb").await.unwrap_err();
        assert!(error.message().contains("larger than 100000 bytes"), "{coding:?}: {error}");
        let error = call(config(), "/refused-bomb").await.unwrap_err();
        assert_eq!(
            (&error.details()["truncated"], error.details()["body"].as_str().unwrap().len()),
            (&json!(true), 100_000)
        );
    }
}

struct Bomb;

impl Operation for Bomb {
    type Input = Value;
    type Output = Download;
    const SPEC: &'static OperationSpec = &OperationSpec::query("t.bomb").with_http(
        ops_runtime::binding::HttpBinding::new("GET", "/bomb")
            .with_responses(const { &[HttpResponse::new(StatusRange::Exact(200), "application/octet-stream")] }),
    );
}

impl Call for Bomb {}

#[tokio::test]
async fn streams_are_decoded_piece_by_piece() {
    let url = server().await;
    for coding in Compression::ALL {
        let client = HttpClient::new(HttpConfig::new().with_base_url(&*url).with_compression([coding])).unwrap();
        let body = client.execute::<Bomb>(json!({})).await.unwrap().data;
        let (total, most) = body
            .into_stream()
            .try_fold((0, 0), |(total, most): (usize, usize), piece| async move {
                Ok((total + piece.len(), most.max(piece.len())))
            })
            .await
            .unwrap();
        assert_eq!(total, 50_000_000);
        assert!(most <= 1 << 20, "{coding:?}: a piece of {most} bytes");

        client.add([spec(OperationKind::Subscription, "events", get_of("/events"))]).unwrap();
        let items: Vec<_> =
            client.stream("t.events", json!({})).await.unwrap().map(|item| item.unwrap().data).collect().await;
        assert_eq!(items, [json!({ "n": 1 }), json!({ "n": 2 })]);
    }
}

#[tokio::test]
async fn an_engine_of_the_users_decodes_itself() {
    let config = HttpConfig::new().with_base_url("http://h.test").with_compression([Compression::Gzip]);
    let error = HttpClient::new(config.with_service(HttpEngine::new().unwrap())).unwrap_err();
    assert_eq!(error.details()["violations"][0]["pointer"], "/compression");
}
