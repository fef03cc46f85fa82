//! Event streams in the place of other responses.

use super::*;
use crate::OutputPolicy;

/// A stream of events where none is described, in pieces of 10 bytes.
fn events(pieces: usize, breaks_off: bool) -> Response<ResponseBody> {
    let data = (0..pieces).map(|_| Ok(Frame::data(Bytes::from_static(b"data: 12\n\n"))));
    let end = breaks_off.then(|| Err(std::io::Error::other("reset")));
    let body = StreamBody::new(stream::iter(data.chain(end).collect::<Vec<_>>()));
    let mut response = Response::new(ResponseBody::new(body));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    response
}

#[tokio::test]
async fn events_where_text_is_described_are_whole_or_an_error() {
    let run = |response: Response<ResponseBody>, types: &[&'static str], output: &'static str| {
        read(response, &Described::new(&spec(types, output)), 10_000).now_or_never().unwrap()
    };
    const TEXT: &str = r#"{"type":"string"}"#;
    const BYTES: &str = r#"{"type":"string","format":"binary"}"#;
    let whole = "data: 12\n\n".repeat(1_000);
    let not_only_json: [&[&'static str]; 4] = [&["*/*"], &["text/plain"], &["application/*+json"], &[]];
    for types in not_only_json {
        assert_eq!(run(events(1_000, false), types, TEXT).unwrap().data, Payload::Value(json!(whole)), "{types:?}");
        let error = run(events(1, true), types, TEXT).unwrap_err();
        assert!(error.message().starts_with("the response broke off"), "{error}");
        let error = run(events(1_001, false), types, TEXT).unwrap_err();
        assert_eq!(error.message(), "the response is larger than 10000 bytes: raise `with_max_response`");
    }
    for (types, output) in [("*/*", BYTES), ("application/zip", "{}")] {
        let found = run(events(1, false), &[types], output).unwrap().data;
        assert_eq!(found, Payload::Value(json!("ZGF0YTogMTIKCg==")), "{types}");
    }
    // In the place of JSON it is refused, whatever its length, and the beginning is shown.
    let told = "the response is not what the operation gives: expected application/json, found text/event-stream";
    for (pieces, breaks_off) in [(1_000, false), (1, true)] {
        let error = run(events(pieces, breaks_off), &["application/json"], TEXT).unwrap_err();
        assert_eq!((error.code().as_str(), error.message()), ("VALIDATION_ERROR", told));
        let raw = &whole[..4_096.min(10 * pieces)];
        assert_eq!((&error.details()["raw"], &error.details()["truncated"]), (&json!(raw), &json!(true)));
    }
    let called = |body: &'static [u8], policy| {
        let service = Fake(move |_| respond(200, &[("content-type", "text/event-stream")], body));
        let client = HttpClient::new(HttpConfig::new().with_policy(policy).with_service(service)).unwrap();
        client.add([spec(&["application/json"], TEXT)]).unwrap();
        async move { client.call("t.x", json!({})).await }
    };
    const LONG: &[u8] = &[b'x'; 17_000];
    for (body, policy) in [(&b"data: 12\n\n"[..], OutputPolicy::Repair), (LONG, OutputPolicy::Cast)] {
        let error = called(body, policy).await.unwrap_err();
        assert_eq!(error.message(), told);
        let raw = std::str::from_utf8(&body[..body.len().min(4_096)]).unwrap();
        assert_eq!(error.details()["raw"], json!(raw));
    }
    // `Cast` takes what it gets, as long as it is all of it.
    let found = called(b"data: 12\n\n", OutputPolicy::Cast).await.unwrap();
    assert_eq!(found.data, json!("data: 12\n\n"));
}

/// A stream of events without an end.
fn endless() -> Response<ResponseBody> {
    let first = stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"data: 12\n\n")))]);
    let mut response = Response::new(ResponseBody::new(StreamBody::new(first.chain(stream::pending()))));
    response.headers_mut().insert("content-type", http::HeaderValue::from_static("text/event-stream"));
    response
}

#[tokio::test(start_paused = true)]
async fn events_that_cannot_be_the_data_hold_no_call() {
    const OBJECT: &str = r#"{"type":"object"}"#;
    let either: &str = r#"{"oneOf":[{"type":"string"},{"type":"object"}]}"#;
    let mut by_status = spec(&[], either);
    let Binding::Http(binding) = &mut by_status.binding else { unreachable!() };
    let response = |status, at| HttpResponse::new(StatusRange::Exact(status), "*/*").with_variant(at);
    binding.responses = vec![response(202, 0), response(200, 1)].into();
    let mut empty = spec(&[], r#"{"type":"null"}"#);
    let Binding::Http(binding) = &mut empty.binding else { unreachable!() };
    binding.responses = vec![HttpResponse::empty(StatusRange::Exact(200))].into();
    for spec in [spec(&["*/*"], OBJECT), spec(&["text/event-stream"], OBJECT), by_status, empty.clone()] {
        let start = tokio::time::Instant::now();
        let found = read(endless(), &Described::new(&spec), 100).await.unwrap();
        assert_eq!(found.data, Payload::Value(json!("data: 12\n\n")), "{spec:?}");
        assert_eq!(start.elapsed().as_secs(), 1, "{spec:?}");
    }
    // What no body is described for is dropped.
    let client = HttpClient::new(HttpConfig::new().with_service(Fake(|_| endless()))).unwrap();
    client.add([empty]).unwrap();
    let found = client.call("t.x", json!({})).await.unwrap();
    assert_eq!((&found.data, found.warnings.len()), (&Value::Null, 1));
    assert_eq!(found.warnings[0].found, "a body of type `text/event-stream`, which was skipped");
}
