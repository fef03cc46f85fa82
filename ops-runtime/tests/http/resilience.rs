//! Retries, limits, streams that go on, and pages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use ops_runtime::binding::{HttpBinding, HttpBody, HttpParameter, HttpResponse, StatusRange};
use ops_runtime::http::pages::{link_parameter, pages, pages_up_to};
use ops_runtime::http::{HttpClient, HttpConfig, Reconnect, Retry};
use ops_runtime::registry::Execute;
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Call, CallOptions, Operation, ResponseEnvelope};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::script::{Script, ok, unavailable};
use crate::server::{closed_port, get_of, serve, spec, unanswered};

pub(crate) fn later() -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "1")]).into_response()
}

fn half() -> Response {
    ([("content-type", "application/json")], "{\"a\"").into_response()
}

fn in_half_a_minute() -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "30")]).into_response()
}

fn much_later() -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [("retry-after", "3600")]).into_response()
}

fn retry() -> Retry {
    Retry::new().with_first_delay(Duration::from_millis(1))
}

pub(crate) async fn call(url: &str, method: &'static str, config: HttpConfig) -> Result<Value, ops_runtime::CallError> {
    let client = HttpClient::new(config.with_base_url(url)).unwrap();
    client.add([spec(OperationKind::Mutation, "x", HttpBinding::new(method, "/x"))]).unwrap();
    client.call("t.x", json!({})).await.map(ResponseEnvelope::into_data)
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    let (script, url) = Script::start(&[unavailable, unavailable, ok]).await;
    assert_eq!(call(&url, "GET", HttpConfig::new().with_retries(retry())).await.unwrap(), "fine");
    assert_eq!(script.count(), 3);

    let (script, url) = Script::start(&[unavailable]).await;
    let error = call(&url, "DELETE", HttpConfig::new().with_retries(retry())).await.unwrap_err();
    assert_eq!((error.message(), script.count()), ("HTTP 503: Service Unavailable", 4));

    let (script, url) = Script::start(&[unavailable, ok]).await;
    assert_eq!(call(&url, "QUERY", HttpConfig::new().with_retries(retry())).await.unwrap(), "fine");
    assert_eq!(script.count(), 2);

    let (script, url) = Script::start(&[unavailable, ok]).await;
    assert!(call(&url, "POST", HttpConfig::new().with_retries(retry())).await.is_err());
    assert_eq!(script.count(), 1);
    let config = HttpConfig::new().with_retries(retry()).with_header("Idempotency-Key", "k");
    let (script, url) = Script::start(&[unavailable, ok]).await;
    assert_eq!(call(&url, "POST", config).await.unwrap(), "fine");
    assert_eq!(script.count(), 2);

    let (script, url) = Script::start(&[unavailable, ok]).await;
    assert!(call(&url, "GET", HttpConfig::new()).await.is_err());
    assert_eq!(script.count(), 1);

    // The error of a success that cannot be read says it, too.
    let (_script, url) = Script::start(&[unavailable, half]).await;
    let error = call(&url, "GET", HttpConfig::new().with_retries(retry())).await.unwrap_err();
    assert_eq!((&error.details()["statusCode"], &error.details()["retries"]), (&json!(200), &json!(1)), "{error}");
}

#[tokio::test]
async fn the_server_says_when() {
    let (script, url) = Script::start(&[later, ok]).await;
    let start = Instant::now();
    assert_eq!(call(&url, "GET", HttpConfig::new().with_retries(retry())).await.unwrap(), "fine");
    assert!(start.elapsed() >= Duration::from_millis(990));
    assert_eq!(script.count(), 2);

    let (script, url) = Script::start(&[much_later, ok]).await;
    let error = call(&url, "GET", HttpConfig::new().with_retries(retry())).await.unwrap_err();
    assert_eq!((error.details()["headers"]["retry-after"].clone(), script.count()), (json!("3600"), 1));
    // Of a client that waits for no more than half a second, a second is too much.
    let (script, url) = Script::start(&[later, ok]).await;
    let config = HttpConfig::new().with_retries(retry().with_max_retry_after(Duration::from_millis(500)));
    assert_eq!(call(&url, "GET", config).await.unwrap_err().message(), "HTTP 429: Too Many Requests");
    assert_eq!(script.count(), 1);

    // A deadline that would pass meanwhile: the answer that there is counts, and at once.
    let (script, url) = Script::start(&[in_half_a_minute, ok]).await;
    let start = Instant::now();
    let config = HttpConfig::new().with_retries(retry()).with_timeout(Duration::from_secs(20));
    assert_eq!(call(&url, "GET", config).await.unwrap_err().message(), "HTTP 429: Too Many Requests");
    let client = HttpClient::new(HttpConfig::new().with_base_url(url).with_retries(retry())).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/x"))]).unwrap();
    assert!(client.call_with("t.x", json!({}), CallOptions::new().with_timeout(Duration::from_secs(20))).await.is_ok());
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    assert_eq!(script.count(), 2);
}

#[tokio::test]
async fn an_attempt_that_takes_too_long_is_given_up() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let app = Router::new().fallback(any(move || {
        let first = count.fetch_add(1, Ordering::SeqCst) == 0;
        async move {
            if first {
                tokio::time::sleep(Duration::from_secs(60)).await;
            }
            "fine"
        }
    }));
    let url = serve(app).await;
    let config = HttpConfig::new().with_retries(retry().with_attempt_timeout(Duration::from_secs(2)));
    assert_eq!(call(&url, "GET", config).await.unwrap(), "fine");
    assert_eq!(asked.load(Ordering::SeqCst), 2);

    // The last one has the limit, too. A request that is not safe to repeat has only that of the call.
    let once =
        || HttpConfig::new().with_retries(retry().with_attempt_timeout(Duration::from_millis(200)).with_max_retries(0));
    let error = unanswered(async |url: String| call(&url, "GET", once()).await.unwrap_err()).await;
    let told = "the server did not answer within 200ms: raise `Retry::with_attempt_timeout`";
    assert_eq!((error.code().as_str(), error.message(), error.is_retryable()), ("TIMEOUT", told, true));
    let within = || once().with_timeout(Duration::from_millis(500));
    let error = unanswered(async |url: String| call(&url, "POST", within()).await.unwrap_err()).await;
    assert_eq!(error.message(), "the server did not answer within 500ms: raise `with_timeout`");
}

#[tokio::test]
async fn a_connection_that_cannot_be_made_is_tried_again() {
    let (socket, address) = closed_port();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(60)).await;
        let listener = socket.listen(128).unwrap();
        axum::serve(listener, Router::new().fallback(any(|| async { "here" }))).await
    });
    let retry = Retry::new().with_first_delay(Duration::from_millis(200)).with_max_retries(20);
    let config = HttpConfig::new().with_retries(retry);
    assert_eq!(call(&format!("http://{address}"), "GET", config).await.unwrap(), "here");
    late.abort();
}

#[tokio::test]
async fn only_so_many_requests_are_under_way() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let shared = (now.clone(), most.clone(), Arc::new(Barrier::new(3)));
    let app = Router::new().fallback(any(move || {
        let (now, most, met) = shared.clone();
        async move {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            // Each waits for two others, and then for a fourth, which must not come.
            met.wait().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            now.fetch_sub(1, Ordering::SeqCst);
        }
    }));
    let config = HttpConfig::new().with_base_url(serve(app).await).with_max_in_flight(3);
    let client = HttpClient::new(config).unwrap();
    client.add([spec(OperationKind::Query, "x", get_of("/x"))]).unwrap();
    let calls = futures_util::future::join_all((0..12).map(|_| client.call("t.x", json!({}))));
    let calls = tokio::time::timeout(Duration::from_secs(60), calls).await.unwrap();
    assert!(calls.iter().all(Result::is_ok));
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

fn events(text: &'static str) -> Response {
    ([("content-type", "text/event-stream")], text).into_response()
}

fn first() -> Response {
    events("retry: 5\nid: 1\ndata: 1\n\nid: 2\ndata: 2\n\ndata: lost")
}

fn broken() -> Response {
    let data = stream::iter([Ok(Bytes::from("data: 3\n\n")), Err(std::io::Error::other("cut"))]);
    let data = data.then(|piece| async {
        // What was sent must be on its way before the connection breaks.
        tokio::time::sleep(Duration::from_millis(if piece.is_ok() { 0 } else { 50 })).await;
        piece
    });
    ([("content-type", "text/event-stream")], Body::from_stream(data)).into_response()
}

fn last() -> Response {
    events("id: 4\ndata: 4\n\ndata: [DONE]\n\n")
}

fn no_more() -> Response {
    StatusCode::NO_CONTENT.into_response()
}

fn forbidden() -> Response {
    StatusCode::FORBIDDEN.into_response()
}

async fn items(url: &str, method: &'static str, reconnect: bool) -> Vec<Result<Value, String>> {
    let mut config = HttpConfig::new().with_base_url(url);
    if reconnect {
        let delay = Duration::from_millis(5);
        config =
            config.with_reconnect(Reconnect::new().with_max_attempts(3).with_first_delay(delay).with_max_delay(delay));
    }
    let client = HttpClient::new(config).unwrap();
    client.add([spec(OperationKind::Subscription, "x", HttpBinding::new(method, "/x"))]).unwrap();
    let stream = client.stream("t.x", json!({})).await.unwrap();
    stream.map(|item| item.map(|e| e.data).map_err(|e| e.message().to_owned())).collect().await
}

#[tokio::test]
async fn streams_go_on_where_they_ended() {
    let all: Vec<_> = [1, 2, 3, 4].map(|n| Ok(json!(n))).into();
    let (script, url) = Script::start(&[first, unavailable, broken, last]).await;
    assert_eq!(items(&url, "GET", true).await, all);
    assert_eq!(
        (0..4).map(|at| script.header(at, "last-event-id")).collect::<Vec<_>>(),
        [None, Some("2".to_owned()), Some("2".to_owned()), Some("2".to_owned()),]
    );

    let (_, url) = Script::start(&[first, last]).await;
    assert_eq!(items(&url, "QUERY", true).await, [1, 2, 4].map(|n| Ok(json!(n))));

    let (script, url) = Script::start(&[first, last]).await;
    assert_eq!(items(&url, "GET", false).await, all[..2]);
    assert_eq!(items(&url, "POST", true).await, all[3..]);
    assert_eq!(script.count(), 2);
}

#[tokio::test]
async fn a_stream_is_opened_again_when_the_server_says() {
    let (script, url) = Script::start(&[first, later, last]).await;
    let reconnect = Reconnect::new().with_first_delay(Duration::from_millis(5)).with_min_delay(Duration::ZERO);
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_reconnect(reconnect)).unwrap();
    client.add([spec(OperationKind::Subscription, "x", HttpBinding::new("GET", "/x"))]).unwrap();
    let start = Instant::now();
    let items: Vec<_> = client.stream("t.x", json!({})).await.unwrap().map(|item| item.unwrap().data).collect().await;
    assert_eq!((items, script.count()), (vec![json!(1), json!(2), json!(4)], 3));
    assert!(start.elapsed() >= Duration::from_millis(990), "{:?}", start.elapsed());
}

#[tokio::test]
async fn a_stream_goes_on_behind_what_came_wherever_it_began() {
    let (script, url) = Script::start(&[first, last]).await;
    let delay = Duration::from_millis(5);
    let reconnect = Reconnect::new().with_max_attempts(3).with_first_delay(delay).with_max_delay(delay);
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url).with_reconnect(reconnect)).unwrap();
    client.add([spec(OperationKind::Subscription, "x", HttpBinding::new("GET", "/x"))]).unwrap();
    let options = CallOptions::new().with_header("Last-Event-ID", "0");
    let stream = client.stream_with("t.x", json!({}), options).await.unwrap();
    let items: Vec<_> = stream.map(|item| item.unwrap().data).collect().await;
    assert_eq!(items, [json!(1), json!(2), json!(4)]);
    assert_eq!([0, 1].map(|at| script.header(at, "last-event-id")), [Some("0".to_owned()), Some("2".to_owned())]);
}

#[tokio::test]
async fn an_id_that_is_taken_back_is_not_sent_again() {
    fn taken_back() -> Response {
        events("data: 3\n\nid:\ndata: 4\n\n")
    }
    fn unsendable() -> Response {
        events("id: 5\ndata: 5\n\nid: \u{1}\ndata: 6\n\n")
    }
    let (script, url) = Script::start(&[first, taken_back, unsendable, last]).await;
    let all: Vec<_> = [1, 2, 3, 4, 5, 6, 4].map(|n| Ok(json!(n))).into();
    assert_eq!(items(&url, "GET", true).await, all);
    let sent: Vec<_> = (0..4).map(|at| script.header(at, "last-event-id")).collect();
    assert_eq!(sent, [None, Some("2".to_owned()), None, None]);
}

#[tokio::test]
async fn an_error_whose_body_never_comes_ends_a_stream() {
    fn silent() -> Response {
        let mut response =
            axum::body::Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>()).into_response();
        *response.status_mut() = StatusCode::FORBIDDEN;
        response
    }
    let (script, url) = Script::start(&[first, silent]).await;
    let reconnect = Reconnect::new().with_max_attempts(1).with_first_delay(Duration::from_millis(5));
    let config = HttpConfig::new().with_base_url(&url).with_reconnect(reconnect);
    let client = HttpClient::new(config.with_idle_timeout(Duration::from_millis(200))).unwrap();
    client.add([spec(OperationKind::Subscription, "x", HttpBinding::new("GET", "/x"))]).unwrap();
    let stream = client.stream("t.x", json!({})).await.unwrap();
    let items: Vec<_> = tokio::time::timeout(Duration::from_secs(20), stream.collect()).await.unwrap();
    assert_eq!((items.len(), script.count()), (3, 2));
    assert!(items[2].is_err(), "{items:?}");
}

#[tokio::test]
async fn streams_do_not_go_on_for_ever() {
    let (script, url) = Script::start(&[first, no_more]).await;
    assert_eq!(items(&url, "GET", true).await, [Ok(json!(1)), Ok(json!(2))]);
    assert_eq!(script.count(), 2);

    let (script, url) = Script::start(&[first, forbidden]).await;
    assert_eq!(items(&url, "GET", true).await[2], Err("HTTP 403: Forbidden".to_owned()));
    assert_eq!(script.count(), 2);

    let (script, url) =
        Script::start(&[first, || ([("content-type", "text/html")], "<p>log in</p>").into_response()]).await;
    let told = "the server answered a subscription with `text/html`, not with an event stream";
    assert_eq!(items(&url, "GET", true).await[2], Err(told.to_owned()));
    assert_eq!(script.count(), 2);

    // Nobody said that the stream is complete.
    let (script, url) = Script::start(&[first, || events("")]).await;
    let found = items(&url, "GET", true).await;
    let told = found[2].as_ref().unwrap_err();
    assert!(told.contains("3 tries in a row") && told.contains("`Reconnect::with_max_attempts`"), "{told}");
    assert_eq!((found.len(), script.count()), (3, 4));

    let (script, url) = Script::start(&[first, unavailable]).await;
    assert_eq!(items(&url, "GET", true).await[2], Err("HTTP 503: Service Unavailable".to_owned()));
    assert_eq!(script.count(), 4);
}

#[tokio::test]
async fn json_lines_come_one_by_one() {
    fn lines() -> Response {
        let pieces = ["{\"a\":1}\n{\"a\"", ":2}\r\n\noops\n", "{\"a\":3}"];
        let pieces =
            stream::iter(pieces.map(|piece| Ok::<_, std::io::Error>(Bytes::from(piece)))).then(|piece| async {
                tokio::task::yield_now().await;
                piece
            });
        ([("content-type", "application/x-ndjson; charset=utf-8")], Body::from_stream(pieces)).into_response()
    }
    let (script, url) = Script::start(&[lines]).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let mut binding = HttpBinding::new("GET", "/x");
    binding.responses = vec![HttpResponse::new(StatusRange::Exact(200), "application/x-ndjson")].into();
    client.add([spec(OperationKind::Subscription, "x", binding)]).unwrap();
    let items: Vec<_> = client.stream("t.x", json!({})).await.unwrap().collect().await;
    assert_eq!(items.len(), 4);
    assert_eq!(items[1].as_ref().unwrap().data, json!({ "a": 2 }));
    assert_eq!(items[2].as_ref().unwrap_err().details()["raw"], "oops");
    assert_eq!(items[3].as_ref().unwrap().data, json!({ "a": 3 }));
    assert_eq!(script.header(0, "accept").unwrap(), "application/x-ndjson");
}

#[tokio::test]
async fn an_item_can_be_the_whole_event() {
    fn whole() -> Response {
        events("event: add\nid: 7\nretry: 9\ndata: {\"n\":1}\n\ndata: text\n\n")
    }
    let (_script, url) = Script::start(&[whole]).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let mut binding = HttpBinding::new("GET", "/x");
    let response = HttpResponse::new(StatusRange::Exact(200), "text/event-stream");
    binding.responses = vec![response.with_whole_event()].into();
    let mut subscription = spec(OperationKind::Subscription, "x", binding);
    subscription.output = Schema::text(r#"{"type":"object","properties":{"data":{}},"additionalProperties":true}"#);
    client.add([subscription]).unwrap();
    let items: Vec<_> = client.stream("t.x", json!({})).await.unwrap().map(|item| item.unwrap().data).collect().await;
    assert_eq!(items[0], json!({ "event": "add", "data": { "n": 1 }, "id": "7", "retry": 9 }));
    assert_eq!(items[1], json!({ "event": "message", "data": "text", "id": "7" }));
}

struct List;

impl Operation for List {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::query("t.list")
        .with_http(HttpBinding::new("GET", "/list").with_parameters(const { &[HttpParameter::query("page")] }));
}

impl Call for List {}

#[tokio::test]
async fn lists_page_by_page() {
    async fn page(request: Request) -> Response {
        let query = request.uri().query().unwrap_or("page=1");
        let page: u32 = query.strip_prefix("page=").unwrap().parse().unwrap();
        let items = axum::Json(json!([page, page + 100]));
        if page == 3 {
            return items.into_response();
        }
        ([("link", format!("</list?page={}>; rel=\"next\"", page + 1))], items).into_response()
    }
    let url = serve(Router::new().route("/list", any(page))).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let by_link = |page: &ResponseEnvelope<Value>| Some(json!({ "page": link_parameter(page, "page")? }));
    let all: Vec<_> = pages::<List, _, _>(&client, json!({}), by_link).map(|page| page.unwrap().data).collect().await;
    assert_eq!(all, [json!([1, 101]), json!([2, 102]), json!([3, 103])]);

    let capped: Vec<_> = pages_up_to::<List, _, _>(&client, json!({}), by_link, 2).collect().await;
    assert_eq!(capped.len(), 3);
    assert!(capped[2].as_ref().unwrap_err().message().contains("more than 2 pages"));

    let same = |_: &ResponseEnvelope<Value>| Some(json!({ "page": 1 }));
    let stuck: Vec<_> = pages::<List, _, _>(&client, json!({ "page": 1 }), same).collect().await;
    assert_eq!(stuck.len(), 2);
    assert!(stuck[1].as_ref().unwrap_err().message().contains("leads to itself"));
}

struct Similar;

#[derive(Clone, serde::Serialize, serde::Deserialize)]
struct Sample {
    page: u32,
    body: ops_runtime::Body,
}

impl Operation for Similar {
    type Input = Sample;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("t.similar").with_http(
        HttpBinding::new("POST", "/similar")
            .with_parameters(const { &[HttpParameter::query("page")] })
            .with_bodies(const { &[HttpBody::new("application/octet-stream")] }),
    );
}

impl Call for Similar {}

#[tokio::test]
async fn a_list_that_leads_to_itself_by_the_same_body_ends() {
    for (body, requests) in [("cat", 1), ("dog", 2)] {
        let (script, url) = Script::start(&[ok]).await;
        let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
        // Another body is another page.
        let next = move |input: &mut Sample, _: &ResponseEnvelope<Value>| {
            input.body = body.into();
            true
        };
        let first = Sample { page: 1, body: "cat".into() };
        let pages: Vec<_> = Execute::<_, Similar>::new(&client, first).pages(next).take(5).collect().await;
        assert_eq!((pages.len(), script.count()), (requests + 1, requests), "{body}");
        let told = "a page of the list leads to itself: the input of the page after it is the same";
        assert_eq!(pages[requests].as_ref().unwrap_err().message(), told);
    }
}

#[tokio::test]
async fn a_method_gives_pages() {
    async fn page(request: Request) -> Response {
        let tenant = request.headers().get("x-tenant").map(|value| value.to_str().unwrap().to_owned());
        match request.uri().query() {
            None => axum::Json(json!({ "tenant": tenant, "next": 2 })).into_response(),
            Some("page=2") => axum::Json(json!({ "tenant": tenant, "next": 3 })).into_response(),
            _ => StatusCode::BAD_GATEWAY.into_response(),
        }
    }
    let url = serve(Router::new().route("/list", any(page))).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let list = |input| Execute::<_, List>::new(&client, input);
    let cursor = |input: &mut Value, page: &ResponseEnvelope<Value>| {
        input["page"] = page.data["next"].clone();
        page.data["next"] != 3
    };

    // The options go with each page.
    let options = CallOptions::new().with_header("X-Tenant", "t-7");
    let mut pages = list(json!({})).with_options(options).pages(cursor);
    assert_eq!(pages.next().await.unwrap().unwrap().data, json!({ "tenant": "t-7", "next": 2 }));
    assert_eq!(pages.next().await.unwrap().unwrap().data, json!({ "tenant": "t-7", "next": 3 }));
    assert!(pages.next().await.is_none());

    // A failed call is the last item, and so is a page that leads to itself.
    let failed: Vec<_> = list(json!({ "page": 3 })).pages(|_, _| true).collect().await;
    assert_eq!(failed.iter().map(|page| page.as_ref().unwrap_err().status()).collect::<Vec<_>>(), [Some(502)]);
    let stuck: Vec<_> = list(json!({})).pages(|_, _| true).collect().await;
    assert_eq!(stuck[0].as_ref().unwrap().data, json!({ "tenant": null, "next": 2 }));
    assert!(stuck[1].as_ref().unwrap_err().message().contains("leads to itself"));
    assert_eq!(stuck.len(), 2);
    // The error says of which list, and what leads there.
    let again = |input: &mut Value, _: &ResponseEnvelope<Value>| {
        input["page"] = json!(2);
        true
    };
    let stuck: Vec<_> = list(json!({})).pages(again).collect().await;
    let error = stuck[2].as_ref().unwrap_err();
    assert_eq!((stuck.len(), error.operation()), (3, Some("t.list")));
    assert!(error.message().ends_with("has the same `page`, 2"), "{error}");
}
