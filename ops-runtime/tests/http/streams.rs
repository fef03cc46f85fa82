//! Subscriptions.

use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::binding::HttpBinding;
use ops_runtime::http::{HttpClient, HttpConfig};
use ops_runtime::spec::{OperationKind, OperationSpec, Schema};
use ops_runtime::{Operation, Subscribe};
use serde_json::{Value, json};

use crate::server::{Server, get_of, spec};

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
