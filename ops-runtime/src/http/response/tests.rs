//! Reading bodies, by the server's content type and the document's description.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use http::Response;
use http_body::Frame;
use http_body_util::{Full, StreamBody};
use serde_json::{Value, json};

mod events;

use super::read;
use crate::http::engine::ResponseBody;
use crate::http::fake::{Fake, respond};
use crate::http::media::Described;
use crate::http::{HttpClient, HttpConfig};
use crate::{
    Binding, Call, CallError, Definition, HttpBinding, HttpResponse, Operation, OperationSpec, Payload,
    ResponseEnvelope, Schema, StatusRange,
};

fn spec(types: &[&'static str], output: &'static str) -> OperationSpec {
    let mut binding = HttpBinding::new("GET", "/").with_server("http://h.test");
    binding.responses = types.iter().map(|t| HttpResponse::new(StatusRange::Exact(200), t)).collect();
    let mut spec = OperationSpec::query("t.x").with_output(Schema::text(output));
    spec.binding = Binding::Http(binding);
    spec
}

fn described(types: &[&'static str]) -> Described {
    Described::new(&spec(types, "{}"))
}

fn run(
    response: Response<Full<Bytes>>,
    types: &[&'static str],
    limit: usize,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let response = response.map(ResponseBody::new);
    read(response, &described(types), limit).now_or_never().unwrap()
}

#[test]
fn payloads() {
    let json = |text: &'static str| Payload::Json(text.into());
    let text = |text: &str| Payload::Value(json!(text));
    let null = || Payload::Value(Value::Null);
    const JSON: &str = "application/json";
    const BYTES: &str = "application/octet-stream";
    let table: &[(&str, &[&str], &[u8], Payload)] = &[
        ("application/json", &[], b"{\"a\": 1}", json("{\"a\": 1}")),
        ("application/json", &[], b"not json", json("not json")),
        ("application/hal+json; charset=utf-8", &[JSON], b"[1]", json("[1]")),
        ("application/json", &[], b"\xEF\xBB\xBF1", json("1")),
        ("application/json; charset=iso-8859-1", &[], b"\"\xE9\"", json("\"é\"")),
        ("application/json", &["text/plain"], b"\"a\"", json("\"a\"")),
        ("text/plain", &[], b"1", text("1")),
        ("text/plain", &[JSON], b"{\"a\":1}", json("{\"a\":1}")),
        ("text/plain", &[JSON], b"hello", text("hello")),
        ("text/plain; charset=latin1", &[JSON], b"[\"\xE9\"]", json("[\"é\"]")),
        ("text/plain", &[JSON], b"\xEF\xBB\xBF[1]", json("[1]")),
        ("text/plain; charset=latin1", &[], b"\xE9", text("é")),
        ("text/plain", &[], b"a\xFFb", text("a\u{fffd}b")),
        ("text/html", &[JSON], b"1", text("1")),
        ("image/svg+xml", &[], b"<svg/>", text("<svg/>")),
        ("image/png", &[], b"\x00\xFF", text("AP8=")),
        ("image/png", &["text/plain"], b"abc", text("YWJj")),
        (BYTES, &[], b"abc", text("YWJj")),
        (BYTES, &[JSON], b"[1]", json("[1]")),
        (BYTES, &[JSON], b"abc", text("YWJj")),
        (BYTES, &["text/csv"], b"a,b", text("a,b")),
        ("text/csv", &[BYTES], b"a,b", text("YSxi")),
        (JSON, &["application/zip"], b"{}", text("e30=")),
        (JSON, &["application/zip", JSON], b"{}", json("{}")),
        ("", &[], b"{}", json("{}")),
        ("", &[], b"abc", text("abc")),
        ("", &["text/plain"], b"1", text("1")),
        ("", &[], b"\xFF", text("/w==")),
        (JSON, &[JSON], b"", null()),
        ("", &[], b"", null()),
        ("text/plain", &["text/plain"], b"", text("")),
        (BYTES, &[BYTES], b"", text("")),
    ];
    for (content_type, types, body, expected) in table {
        let headers: &[_] = if content_type.is_empty() { &[] } else { &[("content-type", *content_type)] };
        let found = run(respond(200, headers, body), types, 100).unwrap();
        assert_eq!(found.data, *expected, "{content_type:?} where {types:?}");
    }
    assert_eq!(run(respond(204, &[], b""), &["text/plain"], 100).unwrap().data, null());
}

#[test]
fn bytes_by_the_schema_stay_as_they_came() {
    const BYTES: &str = r#"{"type":"string","format":"binary"}"#;
    const NAMED: &str = r##"{"allOf":[{"$ref":"#/$defs/File"}]}"##;
    static DEFINITIONS: &[Definition] = &[Definition::new("File", BYTES)];
    let table: &[(&'static str, &'static str, &str, &'static [u8], &str)] = &[
        ("text/csv", BYTES, "text/csv", b"\xE9", "6Q=="),
        ("text/csv", NAMED, "text/csv", b"\xE9", "6Q=="),
        ("text/csv", BYTES, "text/csv; charset=iso-8859-1", b"\xE9", "6Q=="),
        ("text/csv", BYTES, "text/csv", b"DONE", "RE9ORQ=="),
        ("text/csv", r#"{"type":"string"}"#, "text/csv", b"DONE", "DONE"),
        ("*/*", BYTES, "text/plain", b"true", "dHJ1ZQ=="),
        ("*/*", BYTES, "application/json", b"true", "dHJ1ZQ=="),
        ("text/csv", BYTES, "text/csv", b"", ""),
    ];
    for (described, output, came, body, expected) in table {
        let spec = spec(&[*described], output).with_definitions(DEFINITIONS);
        let response = respond(200, &[("content-type", *came)], body).map(ResponseBody::new);
        let found = read(response, &Described::new(&spec), 100).now_or_never().unwrap().unwrap();
        assert_eq!(found.data, Payload::Value(json!(expected)), "{came} where {described} is {output}");
    }
    // JSON stays JSON, where it is described.
    let json = Described::new(&spec(&["application/json"], BYTES));
    let response = respond(200, &[("content-type", "application/json")], b"\"YQ==\"").map(ResponseBody::new);
    let found = read(response, &json, 100).now_or_never().unwrap().unwrap();
    assert_eq!(found.data, Payload::Json("\"YQ==\"".into()));

    // Of several successes, each has its own schema.
    let either: &str = r#"{"oneOf":[{"type":"string","format":"binary"},{"type":"string"}]}"#;
    let mut several = spec(&[], either);
    let Binding::Http(binding) = &mut several.binding else { unreachable!() };
    let response = |status, at| HttpResponse::new(StatusRange::Exact(status), "text/csv").with_variant(at);
    binding.responses = vec![response(200, 0), response(202, 1)].into();
    let described = Described::new(&several);
    assert_eq!([200, 202].map(|status| described.is_bytes(status)), [true, false]);
}

#[test]
fn text_stays_as_it_came() {
    const JSON: &str = "application/json";
    const PLAIN: &str = "text/plain";
    const TEXT: &str = r#"{"type":"string"}"#;
    const NAMED: &str = r##"{"$ref":"#/$defs/Name"}"##;
    static DEFINITIONS: &[Definition] = &[Definition::new("Name", r#"{"type":["string","null"]}"#)];
    let json = |text: &'static str| Payload::Json(text.into());
    let text = |text: &str| Payload::Value(json!(text));
    let table: &[(&str, &[&'static str], &'static str, &'static str, Payload)] = &[
        (PLAIN, &[JSON], TEXT, "1.10", text("1.10")),
        (PLAIN, &[JSON], NAMED, "1e5", text("1e5")),
        (PLAIN, &[JSON, PLAIN], TEXT, "1234567890123456789012345", text("1234567890123456789012345")),
        (PLAIN, &[JSON], TEXT, r#"{"a":1}"#, text(r#"{"a":1}"#)),
        ("", &[JSON], TEXT, "12.50", text("12.50")),
        ("", &[], TEXT, "12.50", text("12.50")),
        ("application/octet-stream", &[JSON], TEXT, "1.10", text("1.10")),
        ("application/octet-stream", &[JSON], TEXT, r#""a""#, json(r#""a""#)),
        // Bytes that are described are bytes, and no text.
        ("application/octet-stream", &[JSON, "application/octet-stream"], TEXT, "1.10", text("MS4xMA==")),
        // A string in JSON is one, unless that very type is described.
        (PLAIN, &[JSON], TEXT, r#""a""#, json(r#""a""#)),
        (PLAIN, &[JSON], NAMED, "null", json("null")),
        (PLAIN, &[JSON, PLAIN], TEXT, r#""a""#, text(r#""a""#)),
        (PLAIN, &[JSON, PLAIN], NAMED, "null", text("null")),
        // Any other output may be what the JSON is.
        (PLAIN, &[JSON], r#"{"type":["string","number"]}"#, "1.10", json("1.10")),
        (PLAIN, &[JSON, PLAIN], r#"{"type":"object"}"#, r#"{"a":1}"#, json(r#"{"a":1}"#)),
    ];
    for (came, types, output, body, expected) in table {
        let spec = spec(types, output).with_definitions(DEFINITIONS);
        let headers: &[_] = if came.is_empty() { &[] } else { &[("content-type", *came)] };
        let response = respond(200, headers, body.as_bytes()).map(ResponseBody::new);
        let found = read(response, &Described::new(&spec), 100).now_or_never().unwrap().unwrap();
        assert_eq!(found.data, *expected, "{body} as {came:?} where {types:?} are {output}");
    }

    // Of several successes, each has its own schema.
    let mut several = spec(&[], r#"{"oneOf":[{"type":"string"},{"type":"number"}]}"#);
    let Binding::Http(binding) = &mut several.binding else { unreachable!() };
    let response = |status, at| HttpResponse::new(StatusRange::Exact(status), JSON).with_variant(at);
    binding.responses = vec![response(200, 0), response(202, 1)].into();
    let described = Described::new(&several);
    let data = [200, 202].map(|status| {
        let response = respond(status, &[("content-type", PLAIN)], b"1.10").map(ResponseBody::new);
        read(response, &described, 100).now_or_never().unwrap().unwrap().data
    });
    assert_eq!(data, [text("1.10"), json("1.10")]);

    // The alternative of a status is named at one of its content types only.
    let mut several = spec(&[], r#"{"oneOf":[{"type":"string"},{"type":"object"}]}"#);
    let Binding::Http(binding) = &mut several.binding else { unreachable!() };
    let plain = HttpResponse::new(StatusRange::Exact(200), PLAIN);
    binding.responses = vec![response(200, 0), plain, response(202, 1)].into();
    let response = respond(200, &[("content-type", PLAIN)], b"1.10").map(ResponseBody::new);
    let found = read(response, &Described::new(&several), 100).now_or_never().unwrap().unwrap();
    assert_eq!(found.data, text("1.10"));
}

#[test]
fn an_output_is_parsed_once_for_all_responses() {
    static PARSED: AtomicUsize = AtomicUsize::new(0);
    fn output() -> Value {
        PARSED.fetch_add(1, Ordering::Relaxed);
        json!({ "type": "string", "format": "binary" })
    }
    let of = |types: &[&'static str]| Described::new(&spec(types, "{}").with_output(Schema::make(output)));
    assert!(!of(&["application/json", "image/png"]).is_bytes(200));
    assert_eq!(PARSED.load(Ordering::Relaxed), 0);
    assert!(of(&["*/*", "text/csv", "text/plain"]).is_bytes(200));
    assert_eq!(PARSED.load(Ordering::Relaxed), 1);
}

#[test]
fn a_page_is_no_file_by_id_either() {
    let call = |came: &'static str| {
        let service = Fake(move |_| respond(200, &[("content-type", came)], b"<p>log in</p>"));
        let client = HttpClient::new(HttpConfig::new().with_service(service)).unwrap();
        client.add([spec(&["text/csv"], r#"{"type":"string","format":"binary"}"#)]).unwrap();
        client.call("t.x", json!({})).now_or_never().unwrap()
    };
    assert_eq!(call("text/csv").unwrap().data, json!("PHA+bG9nIGluPC9wPg=="));
    assert_eq!(call("text/html").unwrap_err().details()["raw"], json!("<p>log in</p>"));
}

#[test]
fn what_is_compressed_is_no_data() {
    const JSON: &str = "application/json";
    const BYTES: &str = "application/octet-stream";
    const CODED: &[u8] = b"\x1f\x8b";
    let headers = |kind| [("content-type", kind), ("content-encoding", "GZIP")];
    const EVENTS: &str = "text/event-stream";
    let unread: [(&str, &[&str]); 8] = [
        ("text/plain", &[]),
        (JSON, &[JSON]),
        ("text/csv", &["text/csv"]),
        (BYTES, &[JSON]),
        ("image/png", &[JSON]),
        (EVENTS, &[]),
        (EVENTS, &[JSON]),
        (EVENTS, &[BYTES]),
    ];
    for (kind, types) in unread {
        let error = run(respond(200, &headers(kind), CODED), types, 100).unwrap_err();
        let told = error.message();
        assert!(told.contains("compressed (`gzip`)") && told.contains("`HttpConfig::with_compression`"), "{told}");
    }
    // Bytes stay as they came.
    let bytes: [(&str, &[&str]); 3] = [("image/png", &[]), ("text/csv", &[BYTES]), (BYTES, &[])];
    for (kind, types) in bytes {
        let found = run(respond(200, &headers(kind), CODED), types, 100).unwrap();
        assert_eq!(found.data, Payload::Value(json!("H4s=")), "{kind}");
    }
    assert_eq!(run(respond(200, &headers(JSON), b""), &[JSON], 100).unwrap().data, Payload::Value(Value::Null));
    let error = run(respond(503, &headers(JSON), CODED), &[JSON], 100).unwrap_err();
    assert_eq!((error.status(), &error.details()["body"]), (Some(503), &Value::Null));
    assert!(error.message().starts_with("HTTP 503: Service Unavailable, and the response is compressed"), "{error}");
}

#[test]
fn facts() {
    let headers = [
        ("Content-Type", "text/plain;  charset=utf-8"),
        ("X-A", "1"),
        ("x-a", "2"),
        ("Set-Cookie", "a=1"),
        ("set-cookie", "b=2, c"),
    ];
    let envelope = run(respond(203, &headers, b"x"), &[], 100).unwrap();
    let meta = envelope.meta.as_http().unwrap();
    assert_eq!((meta.status_code, meta.content_type.as_str()), (203, "text/plain;  charset=utf-8"));
    assert_eq!(meta.headers.len(), 2);
    assert_eq!(meta.headers["x-a"], "1, 2");
    assert_eq!(meta.set_cookie, ["a=1", "b=2, c"]);
}

#[test]
fn errors() {
    let problem = br#"{"title":"gone fishing"}"#;
    let json = [("content-type", "application/problem+json"), ("retry-after", "9"), ("set-cookie", "s=1")];
    let error = run(respond(503, &json, problem), &[], 100).unwrap_err();
    assert_eq!((error.code().as_str(), error.message()), ("EXECUTION_ERROR", "HTTP 503: Service Unavailable"));
    assert_eq!(
        *error.details(),
        json!({
            "statusCode": 503,
            "headers": { "content-type": "application/problem+json", "retry-after": "9" },
            "contentType": "application/problem+json",
            "body": { "title": "gone fishing" },
        })
    );
    assert_eq!(error.body::<BTreeMap<String, String>>().unwrap()["title"], "gone fishing");
    assert!(error.body::<Vec<u8>>().is_err());
    assert_eq!(error.status(), Some(503));

    let table: &[(u16, &str, &[u8], &str, Value)] = &[
        (404, "text/plain", b"no such pet", "HTTP 404: Not Found", json!("no such pet")),
        (404, "text/plain", b" {\"a\":1}", "HTTP 404: Not Found", json!({ "a": 1 })),
        (404, "text/html", b"{\"a\":1}", "HTTP 404: Not Found", json!("{\"a\":1}")),
        (499, "application/json", b"{oops", "HTTP 499", json!("{oops")),
        (302, "", b"", "HTTP 302: Found", json!(null)),
        (500, "application/json", &[b'1'; 101], "HTTP 500: Internal Server Error", json!("1".repeat(100))),
    ];
    for (status, content_type, body, message, expected) in table {
        let error = run(respond(*status, &[("content-type", *content_type)], body), &[], 100).unwrap_err();
        assert_eq!(error.message(), *message);
        assert_eq!(error.details()["body"], *expected);
        assert_eq!(error.details().get("truncated").is_some(), body.len() > 100);
    }
}

#[test]
fn a_limit_holds_for_bodies_of_unknown_length() {
    let body = |pieces: usize| {
        let pieces = (0..pieces).map(|_| Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"12345"))));
        let body = StreamBody::new(stream::iter(pieces.collect::<Vec<_>>()));
        let response = Response::new(ResponseBody::new(body));
        read(response, &Described::default(), 20).now_or_never().unwrap()
    };
    assert_eq!(body(4).unwrap().data, Payload::Json("12345123451234512345".into()));
    assert_eq!(body(5).unwrap_err().message(), "the response is larger than 20 bytes: raise `with_max_response`");
    assert!(run(respond(200, &[], b"123456"), &[], 5).is_err());
}

#[tokio::test(start_paused = true)]
async fn an_error_that_drips_keeps_its_status() {
    let drips = stream::repeat(()).then(|()| async {
        tokio::time::sleep(Duration::from_millis(900)).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"x")))
    });
    let mut response = Response::new(ResponseBody::new(StreamBody::new(drips)));
    *response.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
    let described = Described::default();
    let read = tokio::time::timeout(Duration::from_secs(60), read(response, &described, 1_000)).await;
    let error = read.expect("the body ends").unwrap_err();
    assert_eq!((error.status(), &error.details()["truncated"]), (Some(503), &json!(true)));
    assert_eq!(error.details()["body"], "x".repeat(11));
}

#[tokio::test(start_paused = true)]
async fn the_body_of_an_error_may_come_late() {
    let late = stream::once(async {
        tokio::time::sleep(Duration::from_secs(9)).await;
        Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"{\"code\":\"SOLD_OUT\"}")))
    });
    let mut response = Response::new(ResponseBody::new(StreamBody::new(late)));
    *response.status_mut() = http::StatusCode::CONFLICT;
    let error = read(response, &Described::default(), 1_000).await.unwrap_err();
    assert_eq!((error.status(), &error.details()["body"]), (Some(409), &json!({ "code": "SOLD_OUT" })));
    assert!(error.details().get("truncated").is_none());
}

/// The alternative of the output that decoding gets.
#[derive(serde::Serialize)]
struct Told(Option<u16>);

impl<'de> serde_core::Deserialize<'de> for Told {
    fn deserialize<D: serde_core::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        serde_core::de::IgnoredAny::deserialize(d)?;
        Ok(Self(crate::record::take_variant()))
    }
}

struct ByStatus;

impl Operation for ByStatus {
    type Input = Value;
    type Output = Told;
    const SPEC: &'static OperationSpec = &OperationSpec::query("t.by").with_http(
        HttpBinding::new("GET", "/").with_server("http://h.test").with_responses(
            const {
                &[
                    HttpResponse::new(StatusRange::Exact(200), "application/json").with_variant(0),
                    HttpResponse::new(StatusRange::Exact(202), "application/json").with_variant(1),
                ]
            },
        ),
    );
}

impl Call for ByStatus {}

#[test]
fn the_status_says_which_alternative_an_answer_is() {
    for (status, expected) in [(200, Some(0)), (202, Some(1)), (203, None)] {
        let service = Fake(move |_| respond(status, &[("content-type", "application/json")], b"{}"));
        let client = HttpClient::new(HttpConfig::new().with_service(service)).unwrap();
        let told = client.execute::<ByStatus>(json!({})).now_or_never().unwrap().unwrap().data;
        assert_eq!(told.0, expected, "{status}");
    }
}

#[test]
fn names_of_downloads() {
    let table = [
        ("attachment; filename=\"a b.txt\"", Some("a b.txt")),
        ("attachment; filename=a.txt; filename*=UTF-8''%c3%a4.txt", Some("ä.txt")),
        ("attachment; FILENAME=\"../../etc/passwd\"", Some("passwd")),
        ("attachment; filename*=utf-8'en'..%2F..%5Cx", Some("x")),
        ("attachment; filename=\"a;b.txt\"", Some("a;b.txt")),
        ("attachment; filename=\"..\"", None),
        ("attachment; filename=\"\"", None),
        ("inline", None),
    ];
    for (header, expected) in table {
        assert_eq!(super::file_name(header.as_bytes()).as_deref(), expected, "{header}");
    }
}
