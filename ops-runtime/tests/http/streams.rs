//! Subscriptions.

use std::time::Duration;

use axum::Router;
use axum::routing::get;
use futures_util::StreamExt;
use ops_runtime::binding::HttpBinding;
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Operation, Subscribe};
use serde_json::{Value, json};

use crate::server::{Server, get_of, serve, spec};

fn client(server: &Server, timeout: Duration) -> HttpClient {
    HttpClient::new(HttpConfig::new().with_base_url(server.url()).with_timeout(timeout)).unwrap()
}

#[tokio::test]
async fn events_cut_anywhere() {
    let server = Server::start().await;
    let client = client(&server, Duration::from_secs(60));
    for size in [1, 2, 3, 5, 7, 16, 1000] {
        let mut spec = spec(OperationKind::Subscription, &format!("events{size}"), get_of(format!("/events?{size}")));
        spec.output = Schema::text(r#"{"type":"object","properties":{"say":{"type":"string"}}}"#);
        client.add([spec]).unwrap();
        let items: Vec<_> = client.stream(&format!("t.events{size}"), json!({})).await.unwrap().collect().await;
        assert_eq!(items.len(), 3, "in pieces of {size}");
        assert_eq!(items[0].as_ref().unwrap().data, json!({ "say": "grüß" }));
        assert_eq!(items[1].as_ref().unwrap_err().details()["raw"], "not json");
        let last = items[2].as_ref().unwrap();
        assert_eq!(last.data, json!({ "say": "b" }));
        assert_eq!(last.meta.as_http().unwrap().event.as_ref().unwrap().id, "1");
    }
}

#[tokio::test]
async fn the_error_of_an_event_names_its_type() {
    let text = "event: tick\ndata: {\"n\":1}\n\nevent: odd\ndata: {\"x\":1}\n\ndata: {\"x\":1}\n\n";
    let url = serve(
        Router::new().route("/mixed", get(move || async move { ([("content-type", "text/event-stream")], text) })),
    )
    .await;
    let client = HttpClient::new(HttpConfig::new().with_base_url(url)).unwrap();
    let mut spec = spec(OperationKind::Subscription, "mixed", get_of("/mixed"));
    spec.output = Schema::text(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#);
    client.add([spec]).unwrap();
    let items: Vec<_> = client.stream("t.mixed", json!({})).await.unwrap().collect().await;
    assert_eq!((items.len(), &items[0].as_ref().unwrap().data), (3, &json!({ "n": 1 })));
    let told = [1, 2].map(|at| items[at].as_ref().unwrap_err().message().to_owned());
    assert!(told[0].ends_with("(in an event of the type `odd`)"), "{told:?}");
    // Without a type of its own, there is nothing to name.
    assert!(!told[1].contains("event"), "{told:?}");
}

struct Endless;

impl Operation for Endless {
    type Input = Value;
    type Output = u64;
    const SPEC: &'static OperationSpec = &OperationSpec::subscription("t.endless")
        .with_output(Schema::text(r#"{"type":"integer"}"#))
        .with_http(HttpBinding::new("GET", "/endless"));
}

impl Subscribe for Endless {}

#[tokio::test]
async fn a_client_that_goes_away_closes_the_connection() {
    let server = Server::start().await;
    // The timeout does not count once the stream has begun: so many items take longer.
    let mut stream = client(&server, Duration::from_secs(2)).subscribe::<Endless>(json!({})).await.unwrap();
    for expected in 0..150 {
        assert_eq!(stream.next().await.unwrap().unwrap().data, expected);
    }
    drop(stream);
    tokio::time::timeout(Duration::from_secs(20), server.gone.notified()).await.unwrap();
}

#[tokio::test]
async fn a_stream_that_never_begins() {
    let server = Server::start().await;
    let client = client(&server, Duration::from_millis(200));
    client.add([spec(OperationKind::Subscription, "silent", HttpBinding::new("GET", "/silent"))]).unwrap();
    let error = client.stream("t.silent", json!({})).await.err().unwrap();
    assert_eq!(error.code().as_str(), "TIMEOUT");
}
