//! A trace goes through a server into the calls that its handlers make.

use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::serve::HttpServer;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{Context, HttpClient, HttpConfig, Registry};
use serde_json::{Value, json};

use crate::fixture::{Server, serve};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// Answers with the trace that it was called in.
static ECHO: OperationSpec =
    OperationSpec::query("t.echo").with_http(ops_runtime::binding::HttpBinding::new("GET", "/echo"));
static RELAY: OperationSpec = OperationSpec::query("t.relay");

fn trace(context: &Context) -> Value {
    let metadata = context.metadata();
    let member = |name: &str| metadata.and_then(|metadata| metadata.get(name)).cloned().unwrap_or_default();
    json!({ "parent": member("traceparent"), "state": member("tracestate") })
}

/// A server whose operation calls that of another, to which it answers what both have seen.
async fn servers(config: impl Fn(HttpConfig) -> HttpConfig) -> (Server, Server) {
    let last = Registry::new();
    let echo = Handler::dynamic(|_: Value, context: Context| async move { Ok(trace(&context)) });
    last.register(Registration::new(&ECHO, echo)).unwrap();
    let last = serve(HttpServer::new(last)).await;
    let config = config(HttpConfig::new().with_base_url(format!("http://{}", last.address)));
    let first = Registry::new();
    first.register_all(HttpClient::new(config).unwrap().bind([&ECHO]).unwrap()).unwrap();
    let relay = Handler::dynamic(|_: Value, context: Context| async move {
        let there = context.env().call("t.echo", json!({})).await?.data;
        Ok(json!({ "here": trace(&context), "there": there }))
    });
    first.register(Registration::new(&RELAY, relay)).unwrap();
    (serve(HttpServer::new(first)).await, last)
}

#[tokio::test]
async fn a_trace_reaches_the_calls_of_a_handler() {
    let (server, _last) = servers(HttpConfig::with_trace_context).await;
    let relayed = async |headers: &[&str]| server.send("GET /operations/t/relay", headers, "").await.json();
    let parent = format!("traceparent: {PARENT}");
    let seen = relayed(&[&parent, "tracestate: a=1,b=2", "tracestate: c=3"]).await;
    assert_eq!(seen["here"], json!({ "parent": PARENT, "state": "a=1,b=2,c=3" }));
    assert_eq!(seen["there"]["state"], "a=1,b=2,c=3");
    // The same trace, by a span of the client's.
    let there = seen["there"]["parent"].as_str().unwrap();
    assert_eq!((&there[..36], &there[52..]), (&PARENT[..36], "-01"));
    assert_ne!(there, PARENT);

    // What is no trace begins one at the client, without the state of another.
    let none: [&[&str]; 5] = [
        &[],
        &["traceparent: nonsense", "tracestate: a=1"],
        &["traceparent: 00-00000000000000000000000000000000-00f067aa0ba902b7-01", "tracestate: a=1"],
        &[&parent, &parent, "tracestate: a=1"],
        &["tracestate: a=1"],
    ];
    for headers in none {
        let seen = relayed(headers).await;
        assert_eq!(seen["here"], json!({ "parent": null, "state": null }), "{headers:?}");
        assert_ne!(&seen["there"]["parent"].as_str().unwrap()[..36], &PARENT[..36], "{headers:?}");
        assert_eq!(seen["there"]["state"], json!(null), "{headers:?}");
    }
}

#[tokio::test]
async fn nothing_is_sent_on_unless_the_client_is_told_to() {
    let (server, _last) = servers(|config| config).await;
    let parent = format!("traceparent: {PARENT}");
    let seen = server.send("GET /operations/t/relay", &[&parent, "authorization: Bearer s3cret"], "").await.json();
    assert_eq!(seen["here"]["parent"], PARENT);
    assert_eq!(seen["there"], json!({ "parent": null, "state": null }));
}
