//! Reading the data of events, and other responses to a subscription.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{BoxStream, empty, once, pending};
use futures_util::{FutureExt, StreamExt};
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use serde_json::{Value, json};
use tower_service::Service;

use crate::http::data::{self, Data};
use crate::http::fake::{Fake, respond};
use crate::http::{HttpClient, HttpConfig, Reconnect, RequestBody};
use crate::{CallError, Definition, Definitions, HttpBinding, OperationSpec, ResponseEnvelope, Schema};

fn spec(schema: &'static str) -> OperationSpec {
    static DEFINITIONS: &[Definition] = &[
        Definition::new("Again", r##"{"$ref":"#/$defs/Again"}"##),
        Definition::new("Whole", r#"{"properties":{"text":{"type":"string"}}}"#),
        Definition::new("a/b", r#"{"type":"string"}"#),
    ];
    OperationSpec::subscription("t.events")
        .with_output(Schema::text(schema))
        .with_definitions(DEFINITIONS)
        .with_http(HttpBinding::new("GET", "/events").with_server("http://h.test"))
}

#[test]
fn what_a_schema_calls_for() {
    let table = [
        ("true", Data::Any),
        ("{}", Data::Any),
        (r#"{"description":"x"}"#, Data::Any),
        (r#"{"type":"string"}"#, Data::Text),
        (r#"{"type":["string","null"]}"#, Data::Text),
        (r#"{"type":["string","integer"]}"#, Data::Any),
        (r#"{"type":"object"}"#, Data::Json),
        (r#"{"type":"integer"}"#, Data::Json),
        (r#"{"properties":{}}"#, Data::Json),
        (r#"{"enum":["a","b"]}"#, Data::Text),
        (r#"{"enum":["a",1]}"#, Data::Any),
        (r#"{"anyOf":[{"type":"string"},{"type":"null"}]}"#, Data::Text),
        (r#"{"oneOf":[{"type":"object"},{"type":"array"}]}"#, Data::Json),
        (r#"{"oneOf":[{"type":"object"},{"type":"string"}]}"#, Data::Any),
        (r#"{"allOf":[{},{"type":"object"}]}"#, Data::Json),
        (r##"{"$ref":"#/$defs/a~1b"}"##, Data::Text),
        (r##"{"$ref":"#/$defs/Again"}"##, Data::Any),
        (r##"{"$ref":"#/$defs/Missing"}"##, Data::Any),
        (r##"{"$ref":"#/$defs/Whole"}"##, Data::Json),
        (r##"{"$ref":"#/$defs/Whole/properties/text"}"##, Data::Text),
        (r##"{"$ref":"#/$defs/Whole/properties/missing"}"##, Data::Any),
    ];
    for (text, expected) in table {
        assert_eq!(data::data(&spec(text)), expected, "{text}");
    }
}

#[test]
fn each_definition_is_looked_at_once() {
    // Each leads to all others, in more ways than anybody has time for.
    let all: Vec<String> = (0..40).map(|n| format!(r##"{{"$ref":"#/$defs/D{n:02}"}}"##)).collect();
    let parts = all.join(",");
    let definitions = (0..40).map(|n| {
        let text = format!(r#"{{"anyOf":[{parts}],"properties":{{"data":{{"type":"object"}}}}}}"#);
        Definition::from_value(format!("D{n:02}"), serde_json::from_str(&text).unwrap())
    });
    let mut spec = spec(r##"{"$ref":"#/$defs/D00"}"##);
    spec.definitions = Definitions::new(definitions.collect());
    assert_eq!((data::data(&spec), data::data_of_whole(&spec)), (Data::Any, Data::Json));
}

fn items(
    schema: &'static str,
    status: u16,
    headers: &'static [(&str, &str)],
    body: &'static [u8],
) -> Result<Vec<Result<ResponseEnvelope<Value>, CallError>>, CallError> {
    let service = Fake(move |_| respond(status, headers, body));
    let client = HttpClient::new(HttpConfig::new().with_service(service).with_max_line(40)).unwrap();
    client.add([spec(schema)]).unwrap();
    let stream = client.stream("t.events", json!({})).now_or_never().unwrap()?;
    Ok(stream.collect::<Vec<_>>().now_or_never().unwrap())
}

fn data(items: Vec<Result<ResponseEnvelope<Value>, CallError>>) -> Vec<Value> {
    items.into_iter().map(|item| item.map_or_else(|error| json!({ "error": error.details() }), |e| e.data)).collect()
}

const SSE: &[(&str, &str)] = &[("content-type", "text/event-stream; charset=utf-8"), ("x-a", "1")];

#[test]
fn items_of_a_stream() {
    let stream =
        b"id: 4\nevent: add\ndata: {\"n\":1}\n\ndata\n\ndata: oops\n\ndata: {\"n\":2}\n\ndata: [DONE]\n\ndata: {}\n\n";
    let found = items(r#"{"type":"object"}"#, 200, SSE, stream).unwrap();
    let first = found[0].as_ref().unwrap();
    let meta = first.meta.as_http().unwrap();
    let event = meta.event.as_ref().unwrap();
    assert_eq!((event.kind.as_str(), event.id.as_str()), ("add", "4"));
    assert_eq!((meta.status_code, meta.content_type.as_str()), (200, "text/event-stream"));
    assert_eq!(meta.headers["x-a"], "1");
    assert_eq!(found[1].as_ref().unwrap_err().details()["raw"], "oops");
    assert_eq!(found[2].as_ref().unwrap().meta.as_http().unwrap().event.as_ref().unwrap().kind, "message");
    assert_eq!(found.len(), 3);

    let any = items("true", 200, SSE, stream).unwrap();
    assert_eq!(data(any), [json!({ "n": 1 }), json!("oops"), json!({ "n": 2 })]);
    let text = items(r#"{"type":"string"}"#, 200, SSE, b"data: 1\n\ndata: \"a\"\n\ndata: \"\n\ndata:\n\n").unwrap();
    assert_eq!(data(text), [json!("1"), json!("a"), json!("\""), json!("")]);
}

#[test]
fn a_stream_that_cannot_be_read_on_ends_with_an_error() {
    let long = b"data: 1\n\ndata: 6789012345678901234567890123456789012345\n\ndata: 2\n\n";
    let found = items("true", 200, SSE, long).unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].as_ref().unwrap().data, 1);
    let told = "a line of the event stream is longer than 40 bytes: raise `with_max_line`";
    assert_eq!(found[1].as_ref().unwrap_err().message(), told);
}

#[test]
fn other_answers() {
    let json = &[("content-type", "application/json")];
    assert_eq!(data(items("true", 200, json, b"{\"a\":1}").unwrap()), [json!({ "a": 1 })]);
    assert_eq!(items("true", 204, &[], b"").unwrap().len(), 0);
    assert_eq!(items("true", 200, json, b"").unwrap().len(), 0);

    let error = items("true", 200, &[("content-type", "text/html")], b"<p>log in</p>").unwrap_err();
    assert!(error.message().contains("`text/html`"), "{error}");
    assert_eq!(error.details()["body"], "<p>log in</p>");
    let error = items("true", 429, SSE, b"slow down").unwrap_err();
    assert_eq!((error.message(), &error.details()["body"]), ("HTTP 429: Too Many Requests", &json!("slow down")));
}

#[test]
fn a_compressed_stream_is_an_error() {
    const EVENTS: &[(&str, &str)] = &[("content-type", "text/event-stream"), ("content-encoding", "gzip")];
    const LINES: &[(&str, &str)] = &[("content-type", "application/x-ndjson"), ("content-encoding", "gzip")];
    for headers in [EVENTS, LINES] {
        let error = items("true", 200, headers, b"\x1f\x8b").unwrap_err();
        assert!(error.message().contains("compressed (`gzip`)"), "{error}");
    }
}

type Pieces = BoxStream<'static, Result<Frame<Bytes>, Infallible>>;

/// Answers each request with the event stream that a function makes for its number, and counts them.
#[derive(Clone)]
struct Streams<F>(F, Arc<AtomicUsize>);

impl<F: Fn(usize) -> Pieces> Service<Request<RequestBody>> for Streams<F> {
    type Response = Response<StreamBody<Pieces>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<RequestBody>) -> Self::Future {
        let body = StreamBody::new((self.0)(self.1.fetch_add(1, Ordering::SeqCst)));
        ready(Ok(Response::builder().header("content-type", "text/event-stream").body(body).unwrap()))
    }
}

/// The items of a subscription that is reopened, and how many connections it had.
async fn reopened(
    pieces: impl Fn(usize) -> Pieces + Clone + Send + 'static,
) -> (Vec<Result<ResponseEnvelope<Value>, CallError>>, usize) {
    let count = Arc::new(AtomicUsize::new(0));
    let service = Streams(pieces, count.clone());
    let client = HttpClient::new(HttpConfig::new().with_service(service).with_reconnect(Reconnect::new())).unwrap();
    client.add([spec("true")]).unwrap();
    let items: Vec<_> = client.stream("t.events", json!({})).await.unwrap().collect().await;
    (items, count.load(Ordering::SeqCst))
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_goes_on() {
    // After half a minute, each connection ends, as load balancers do it, or breaks and nobody says so.
    let ends: [fn() -> Pieces; 2] = [|| empty().boxed(), || pending().boxed()];
    for end in ends {
        let quiet = move |number: usize| {
            let first = once(async move {
                tokio::time::sleep(Duration::from_secs(30)).await;
                let text = if number == 20 { "data: 1\n\ndata: [DONE]\n\n" } else { ": still here\n\n" };
                Ok::<_, Infallible>(Frame::data(Bytes::from_static(text.as_bytes())))
            });
            first.chain(end()).boxed()
        };
        let (items, count) = reopened(quiet).await;
        assert_eq!((data(items), count), (vec![json!(1)], 21));
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_says_that_it_is_over_is_not_opened_again() {
    let texts = ["data: 1\n\n: [DONE]\n\n", "data: 1\n\ndata: [DONE]\n\n"];
    let ends: [fn() -> Pieces; 2] = [|| empty().boxed(), || pending().boxed()];
    for (text, end) in texts.into_iter().flat_map(|text| ends.map(|end| (text, end))) {
        let said = move |_: usize| {
            let piece = Ok::<_, Infallible>(Frame::data(Bytes::from_static(text.as_bytes())));
            once(std::future::ready(piece)).chain(end()).boxed()
        };
        let (items, count) = reopened(said).await;
        assert_eq!((data(items), count), (vec![json!(1)], 1), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_given_up() {
    let (items, count) = reopened(|_| pending().boxed()).await;
    let codes: Vec<_> = items.iter().map(|item| item.as_ref().unwrap_err().code().as_str()).collect();
    assert_eq!((codes, count), (vec!["TIMEOUT"], 6));
}

/// Counts a connection as open until it is dropped.
struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_connection_is_closed_before_another_is_opened() {
    let (open, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let silent = move |_: usize| -> Pieces {
        seen.fetch_max(open.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let connection = Open(open.clone());
        let pieces = pending::<Result<Frame<Bytes>, Infallible>>().map(move |piece| {
            let _open = &connection;
            piece
        });
        pieces.boxed()
    };
    let (_, count) = reopened(silent).await;
    assert_eq!((count, most.load(Ordering::SeqCst)), (6, 1));
}
