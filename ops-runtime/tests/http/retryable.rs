//! Which errors say that a request can be repeated.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Endpoint, Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpParameter};
use ops_runtime::http::{Auth, HttpClient, HttpConfig, Retry};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, CallOptions, Registry};
use serde_json::json;

use crate::resilience::{call, later};
use crate::script::{Answer, Script, ok, unavailable};
use crate::server::{closed_port, serve, spec, unanswered};

#[tokio::test]
async fn what_may_have_been_carried_out_is_not_retryable() {
    fn failed() -> Response {
        StatusCode::BAD_GATEWAY.into_response()
    }
    fn full() -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response()
    }
    fn too_early() -> Response {
        StatusCode::TOO_EARLY.into_response()
    }
    fn broken() -> Response {
        let data = stream::iter([Ok(Bytes::from("x")), Err(std::io::Error::other("cut"))]);
        let data = data.then(|piece| async {
            // What was sent must be on its way before the connection breaks.
            tokio::time::sleep(Duration::from_millis(if piece.is_ok() { 0 } else { 50 })).await;
            piece
        });
        Body::from_stream(data).into_response()
    }
    let key = || HttpConfig::new().with_header("Idempotency-Key", "k");
    let table: [(Answer, bool); 6] =
        [(failed, false), (unavailable, false), (broken, false), (full, true), (later, true), (too_early, true)];
    for (answer, expected) in table {
        let (_script, url) = Script::start(&[answer]).await;
        let error = call(&url, "POST", HttpConfig::new()).await.unwrap_err();
        assert_eq!(error.is_retryable(), expected, "{error}");
        assert!(call(&url, "POST", key()).await.unwrap_err().is_retryable(), "{error}");
        assert!(call(&url, "PUT", HttpConfig::new()).await.unwrap_err().is_retryable(), "{error}");
    }

    // In time the server says nothing: by the client's timeout, and by that of the call.
    let short = Duration::from_millis(100);
    let at = |url: &str, config: HttpConfig, method| {
        let client = HttpClient::new(config.with_base_url(url)).unwrap();
        client.add([spec(OperationKind::Mutation, "x", HttpBinding::new(method, "/x"))]).unwrap();
        client
    };
    for (method, expected) in [("POST", false), ("PUT", true)] {
        let own = async |url: String| {
            let client = at(&url, HttpConfig::new().with_timeout(short), method);
            client.call("t.x", json!({})).await.unwrap_err()
        };
        let of_call = async |url: String| {
            let options = CallOptions::new().with_timeout(short);
            at(&url, HttpConfig::new(), method).call_with("t.x", json!({}), options).await.unwrap_err()
        };
        for error in [unanswered(own).await, unanswered(of_call).await] {
            assert_eq!((error.code().as_str(), error.is_retryable()), ("TIMEOUT", expected), "{method}: {error}");
        }
    }

    // What the client says of an operation holds for a call that is not to be retried, too.
    let url = serve(Router::new().fallback(any(std::future::pending::<()>))).await;
    let client = |config, method| at(&url, config, method);
    let named = HttpConfig::new().with_retries(Retry::new().with_idempotent("t.x"));
    let once = CallOptions::new().with_retries(None).with_timeout(short);
    let error = client(named, "POST").call_with("t.x", json!({}), once).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.is_retryable()), ("TIMEOUT", true), "{error}");

    // A request that waits for another, or that a hook refuses, was not sent.
    let busy = client(HttpConfig::new().with_max_in_flight(1), "POST");
    let within = |time| CallOptions::new().with_timeout(time);
    let (sent, waiting) = tokio::join!(busy.call_with("t.x", json!({}), within(Duration::from_secs(2))), async {
        tokio::time::sleep(short).await;
        busy.call_with("t.x", json!({}), within(short)).await
    });
    let found = [sent, waiting].map(Result::unwrap_err).map(|error| (error.to_string(), error.is_retryable()));
    let told = "t.x: TIMEOUT: the deadline passed before the operation was done".to_owned();
    assert_eq!(found, [(told.clone(), false), (told, true)]);
    let refusing = HttpConfig::new().with_before(|_| Err(CallError::new("TIMEOUT", "not now")));
    let error = client(refusing, "POST").call("t.x", json!({})).await.unwrap_err();
    assert_eq!((error.message(), error.is_retryable()), ("not now", true));

    // Without a connection, nothing was carried out.
    let (_closed, address) = closed_port();
    let error = call(&format!("http://{address}"), "POST", HttpConfig::new()).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
}

#[tokio::test]
async fn a_subscription_that_is_not_opened_in_time_may_have_been_carried_out() {
    let short = Duration::from_millis(100);
    for (method, expected) in [("POST", false), ("GET", true)] {
        let opened = async |url: String| {
            let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
            let watch = spec(OperationKind::Subscription, "watch", HttpBinding::new(method, "/x"));
            client.add([watch.with_timeout(short)]).unwrap();
            client.stream("t.watch", json!({})).await.err().unwrap()
        };
        let error = unanswered(opened).await;
        assert_eq!((error.code().as_str(), error.is_retryable()), ("TIMEOUT", expected), "{method}: {error}");
    }

    // One that waits for another request, or for a token, was not sent.
    let url = serve(Router::new().fallback(any(std::future::pending::<()>))).await;
    let watch = || spec(OperationKind::Subscription, "watch", HttpBinding::new("POST", "/x"));
    let open = async |client: &HttpClient, time| {
        let options = CallOptions::new().with_timeout(time);
        let error = client.stream_with("t.watch", json!({}), options).await.err().unwrap();
        (error.code().as_str().to_owned(), error.is_retryable())
    };
    let busy = HttpClient::new(HttpConfig::new().with_base_url(&url).with_max_in_flight(1)).unwrap();
    busy.add([watch()]).unwrap();
    let (sent, waiting) = tokio::join!(open(&busy, Duration::from_secs(2)), async {
        tokio::time::sleep(short).await;
        open(&busy, short).await
    });
    assert_eq!([sent, waiting], [("TIMEOUT".to_owned(), false), ("TIMEOUT".to_owned(), true)]);
    let no_token = Auth::token_source(|_| async { std::future::pending().await });
    let asking = HttpClient::new(HttpConfig::new().with_base_url(&url).with_auth(no_token)).unwrap();
    asking.add([watch()]).unwrap();
    assert_eq!(open(&asking, short).await, ("TIMEOUT".to_owned(), true));
}

fn busy() -> Response {
    StatusCode::TOO_MANY_REQUESTS.into_response()
}

/// The next call has another key, so a server that carried out this one would carry it out again.
#[tokio::test]
async fn a_key_that_the_client_makes_is_for_its_own_retries_only() {
    let client = |url: &str| {
        let retry = Retry::new().with_first_delay(Duration::from_millis(1)).with_max_retries(1);
        let config = HttpConfig::new().with_base_url(url).with_retries(retry).with_idempotency_keys();
        let client = HttpClient::new(config).unwrap();
        let binding = |method| {
            HttpBinding::new(method, "/x").with_parameters(const { &[HttpParameter::header("Idempotency-Key")] })
        };
        client.add([spec(OperationKind::Mutation, "x", binding("POST"))]).unwrap();
        client.add([spec(OperationKind::Mutation, "put", binding("PUT"))]).unwrap();
        client.add([spec(OperationKind::Subscription, "watch", binding("POST"))]).unwrap();
        client
    };
    let own = || CallOptions::new().with_idempotency_key("k-1");

    // If both tries are refused, nothing was carried out; if only the second is, the first may have been.
    let table: [(&[Answer], bool); 3] = [(&[unavailable], false), (&[unavailable, busy], false), (&[busy], true)];
    for (answers, expected) in table {
        let (script, url) = Script::start(answers).await;
        let error = client(&url).call("t.x", json!({})).await.unwrap_err();
        assert_eq!((error.is_retryable(), script.count()), (expected, 2), "{error}");
        let key = |at| script.header(at, "idempotency-key");
        assert!(key(0).is_some() && key(0) == key(1));
    }
    let (_script, url) = Script::start(&[unavailable]).await;
    let failing = client(&url);
    let by_own = failing.call_with("t.x", json!({}), own()).await.unwrap_err();
    let by_input = failing.call("t.x", json!({ "Idempotency-Key": "k-1" })).await.unwrap_err();
    let by_method = failing.call("t.put", json!({})).await.unwrap_err();
    assert_eq!([by_own, by_input, by_method].map(|error| error.is_retryable()), [true; 3]);
    let watched = failing.stream("t.watch", json!({})).await.err().unwrap();
    assert_eq!((watched.status(), watched.is_retryable()), (Some(503), false));

    // In time the server says nothing.
    for (options, expected) in [(CallOptions::new(), false), (own(), true)] {
        // The time begins when it is set.
        let short = || options.clone().with_timeout(Duration::from_millis(100));
        let called = async |url: String| client(&url).call_with("t.x", json!({}), short()).await.unwrap_err();
        let watched = async |url: String| client(&url).stream_with("t.watch", json!({}), short()).await.err().unwrap();
        for error in [unanswered(called).await, unanswered(watched).await] {
            assert_eq!((error.code().as_str(), error.is_retryable()), ("TIMEOUT", expected), "{error}");
        }
    }
}

#[tokio::test]
async fn what_was_redirected_may_have_been_carried_out() {
    fn made() -> Response {
        (StatusCode::SEE_OTHER, [("location", "/order")]).into_response()
    }
    fn not_yet() -> Response {
        (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response()
    }
    let table: [(Answer, u16); 2] = [(busy, 429), (not_yet, 503)];
    for (answer, status) in table {
        for (method, expected) in [("POST", false), ("PUT", true)] {
            let (script, url) = Script::start(&[made, answer]).await;
            let error = call(&url, method, HttpConfig::new()).await.unwrap_err();
            assert_eq!((error.status(), script.count()), (Some(status), 2));
            assert_eq!(error.is_retryable(), expected, "{method}: {error}");
        }
    }
}

#[tokio::test]
async fn an_error_in_a_stream_says_that_the_server_has_begun() {
    fn failing() -> Response {
        let events = "data: 1\n\nevent: error\ndata: {\"type\":\"about:blank\",\"title\":\"Too Many Requests\",\
                      \"status\":429,\"detail\":\"busy\",\"code\":\"Busy\",\"request\":\"r-1\"}\n\n";
        ([("content-type", "text/event-stream")], events).into_response()
    }
    for (method, expected) in [("POST", false), ("GET", true)] {
        let (_script, url) = Script::start(&[failing]).await;
        let client = HttpClient::new(HttpConfig::new().with_base_url(&url)).unwrap();
        client.add([spec(OperationKind::Subscription, "watch", HttpBinding::new(method, "/x"))]).unwrap();
        let mut items: Vec<_> = client.stream("t.watch", json!({})).await.unwrap().collect().await;
        let error = items.pop().unwrap().unwrap_err();
        assert_eq!(items.into_iter().map(|item| item.unwrap().data).collect::<Vec<_>>(), [json!(1)]);
        assert_eq!((error.message(), error.status()), ("busy", Some(429)));
        assert_eq!(error.is_retryable(), expected, "{method}: {error}");
    }
}

/// The timeout of a subscription is over with its first item, for what its handler opens then with its context.
#[tokio::test]
async fn what_a_handler_opens_after_its_first_item_has_its_own_time() {
    let events = || async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        ([("content-type", "text/event-stream")], "data: 1\n\n")
    };
    let url = serve(Router::new().fallback(any(events))).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url)).unwrap();
    let short = Duration::from_millis(100);
    let handler = Handler::dynamic_stream(move |_, context| {
        let client = client.clone();
        let later = async move {
            tokio::time::sleep(short * 2).await;
            let watch = spec(OperationKind::Subscription, "watch", HttpBinding::new("POST", "/x"));
            Endpoint::subscribe(&client, &watch, json!({}), context).await.map(|_| json!("opened"))
        };
        async move { Ok(stream::iter([Ok(json!("first"))]).chain(stream::once(later))) }
    });
    let registry = Registry::new();
    let own = OperationSpec::subscription("own.watch").with_timeout(short);
    registry.register(Registration::new(own, handler)).unwrap();
    let items: Vec<_> = registry.stream("own.watch", json!({})).await.unwrap().collect().await;
    let items: Vec<_> = items.into_iter().map(|item| item.unwrap().data).collect();
    assert_eq!(items, [json!("first"), json!("opened")]);
}

#[tokio::test]
async fn a_timeout_counts_from_the_first_poll() {
    let (script, url) = Script::start(&[ok]).await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(&url)).unwrap();
    let short = Duration::from_millis(300);
    for (id, name, method) in [("t.get", "get", "GET"), ("t.post", "post", "POST")] {
        client.add([spec(OperationKind::Mutation, name, HttpBinding::new(method, "/x")).with_timeout(short)]).unwrap();
        let call = client.call(id, json!({}));
        tokio::time::sleep(short * 2).await;
        assert_eq!(call.await.unwrap().data, "fine", "{method}");
    }
    assert_eq!(script.count(), 2);
}
