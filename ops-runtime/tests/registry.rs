//! The registry and the pipeline: what a call does, and what it does when something is wrong.
#![cfg(feature = "registry")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ops_runtime::access::{AccessControl, Identity};
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, PayloadStream, Registration, Reply};
use ops_runtime::binding::HttpBinding;
use ops_runtime::envelope::ResponseMeta;
use ops_runtime::registry::{CancelToken, OutputPolicy, RegistryError};
use ops_runtime::spec::{Definition, Definitions, ErrorDefinition, OperationSpec, Schema};
use ops_runtime::{Call, CallError, CallOptions, Context, ErrorCode, Operation, Registry, ResponseEnvelope, Subscribe};
use serde_json::{Value, json};

macro_rules! operation {
    ($name:ident: $input:ty => $output:ty, $kind:ident, $spec:expr) => {
        pub(crate) struct $name;
        impl Operation for $name {
            type Input = $input;
            type Output = $output;
            const SPEC: &'static OperationSpec = &$spec;
        }
        impl $kind for $name {}
    };
}

operation!(Double: i64 => i64, Call, OperationSpec::query("math.double")
    .with_input(Schema::text(r#"{"type":"integer"}"#))
    .with_output(Schema::text(r#"{"type":"integer"}"#)));
operation!(Unit: Value => (), Call, OperationSpec::mutation("math.unit"));
operation!(Count: u32 => u32, Subscribe, OperationSpec::subscription("math.count"));
operation!(Guarded: Value => i64, Call, OperationSpec::mutation("math.guarded")
    .with_access(AccessControl::NONE.with_scopes(&["math:write"])));
operation!(Outer: Value => Value, Call, OperationSpec::query("outer.run"));
operation!(Bounded: i64 => i64, Call, OperationSpec::query("math.bounded")
    .with_input(Schema::text(r#"{"type":"integer","maximum":10}"#))
    .with_output(Schema::text(r#"{"type":"integer","maximum":10}"#)));
operation!(Failing: Value => i64, Call, OperationSpec::query("math.failing")
    .with_errors(const { &[ErrorDefinition::new("NotFound").with_http_status(404)] }));
operation!(Slow: Value => i64, Call, OperationSpec::query("math.slow").with_timeout(Duration::from_millis(20)));

#[path = "registry/accepted.rs"]
mod accepted;
#[path = "registry/callers.rs"]
mod callers;
#[path = "registry/checks.rs"]
mod checks;
#[path = "registry/deadlines.rs"]
mod deadlines;
#[path = "registry/doubts.rs"]
mod doubts;
#[path = "registry/functions.rs"]
mod functions;
#[path = "registry/invented.rs"]
mod invented;
#[path = "registry/listing.rs"]
mod listing;
#[path = "registry/panics.rs"]
mod panics;
#[path = "registry/subscription_timeouts.rs"]
mod subscription_timeouts;
#[path = "registry/versions.rs"]
mod versions;

fn double() -> Registration {
    Registration::call::<Double, _, _>(|n, _| async move { Ok(Reply::Value(2 * n)) })
}

fn registry() -> Registry {
    let registry = Registry::new();
    registry.register(double()).unwrap();
    registry
}

#[tokio::test]
async fn a_call_by_type_and_by_id_gives_the_same() {
    let registry = registry();
    let typed = registry.execute::<Double>(21).await.unwrap();
    let dynamic = registry.call("math.double", json!(21)).await.unwrap();
    assert_eq!((typed.data, dynamic.data), (42, json!(42)));
    let ResponseMeta::Local(meta) = typed.meta else { panic!("not local") };
    assert_eq!(meta.operation_id, "math.double");
    assert!(meta.timestamp > 1_700_000_000_000);
}

#[tokio::test]
async fn unit_is_null() {
    let registry = Registry::new();
    registry.register(Registration::call::<Unit, _, _>(|_, _| async { Ok(Reply::Value(())) })).unwrap();
    let envelope = registry.call("math.unit", json!({})).await.unwrap();
    assert_eq!(serde_json::to_value(&envelope).unwrap()["data"], Value::Null);
    registry.execute::<Unit>(json!({})).await.unwrap();
}

#[tokio::test]
async fn an_envelope_of_the_handler_passes() {
    let registry = Registry::new();
    let own = || ResponseEnvelope::http(3, ops_runtime::envelope::HttpMeta::new(201, "application/json"));
    registry.register(Registration::call::<Double, _, _>(move |_, _| async move { Ok(own().into()) })).unwrap();
    assert_eq!(registry.execute::<Double>(0).await.unwrap(), own());
    assert_eq!(registry.call("math.double", json!(0)).await.unwrap(), own().map(Value::from));

    let envelope =
        json!({ "data": 1, "meta": { "source": "http", "statusCode": 200, "headers": {}, "contentType": "" } });
    static SPEC: OperationSpec = OperationSpec::query("demo.own");
    registry.register(Registration::new(&SPEC, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    let passed = registry.call("demo.own", envelope.clone()).await.unwrap();
    assert_eq!(serde_json::to_value(&passed).unwrap(), envelope);

    // What reading as an envelope would lose a member of is data, to its last member; of a stream, too.
    static STREAM: OperationSpec = OperationSpec::subscription("demo.stream");
    let stream = |v, _| async { Ok(futures_util::stream::iter([Ok(v)])) };
    registry.register(Registration::new(&STREAM, Handler::dynamic_stream(stream))).unwrap();
    let with = |pointer: &str, name: &str, value: Value| {
        let mut envelope = envelope.clone();
        envelope.pointer_mut(pointer).unwrap()[name] = value;
        envelope
    };
    for data in [
        with("", "page", json!(2)),
        with("/meta", "page", json!(2)),
        with("/meta", "statusCode", json!(70_000)),
        with("", "warnings", json!([{ "pointer": "", "expected": "", "found": "", "value": 7 }])),
        with("/meta", "headers", json!({ "set-cookie": ["a", "b"] })),
    ] {
        let wrapped = registry.call("demo.own", data.clone()).await.unwrap();
        assert_eq!((wrapped.meta.source(), &wrapped.data), ("local", &data));
        let mut items = registry.stream("demo.stream", data.clone()).await.unwrap();
        assert_eq!(items.next().await.unwrap().unwrap().data, data);
    }
}

#[tokio::test]
async fn a_declared_code_is_taken_from_the_message() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Failing, _, _>(|_, _| async { Err(CallError::from("NotFound: no such pet")) }))
        .unwrap();
    let error = registry.execute::<Failing>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Domain("NotFound".into()));
}

#[tokio::test]
async fn a_subscription_gives_an_envelope_an_item() {
    let registry = Registry::new();
    let running = Arc::new(AtomicUsize::new(0));
    let count = running.clone();
    registry
        .register(Registration::subscription::<Count, _, _, _>(move |n, _| {
            let count = count.clone();
            async move {
                Ok(futures_util::stream::iter(0..n).map(move |i| {
                    count.fetch_add(1, Ordering::SeqCst);
                    if i == 2 { Err(CallError::execution("two")) } else { Ok(Reply::Value(i)) }
                }))
            }
        }))
        .unwrap();
    let items: Vec<_> = registry.subscribe::<Count>(4_u32).await.unwrap().collect().await;
    assert_eq!(items.len(), 4);
    assert_eq!(items[1].as_ref().unwrap().data, 1);
    assert!(items[2].is_err());
    assert_eq!(items[3].as_ref().unwrap().data, 3);
    let items: Vec<_> = registry.stream("math.count", json!(2)).await.unwrap().collect().await;
    assert_eq!(items[1].as_ref().unwrap().data, json!(1));
    let wrong = registry.call("math.count", json!(2)).await.unwrap_err();
    assert!(wrong.message().contains("subscribe"), "{wrong}");
}

#[tokio::test]
async fn state_is_reached_through_the_context() {
    let registry = Registry::builder().with_state(7_i64).build();
    registry
        .register(Registration::call::<Double, _, _>(|n, context: Context| async move {
            Ok(Reply::Value(n * context.state::<i64>()?))
        }))
        .unwrap();
    assert_eq!(registry.execute::<Double>(6).await.unwrap().data, 42);
    let bare = Registry::new();
    bare.register(Registration::call::<Double, _, _>(|_, context: Context| async move {
        Ok(Reply::Value(*context.state::<i64>()?))
    }))
    .unwrap();
    let error = bare.execute::<Double>(6).await.unwrap_err();
    assert!(error.message().contains("type `i64`: build it with `.with_state(..)`"), "{error}");
    let error = Registry::new().register(double().requires::<i64>()).unwrap_err();
    assert!(matches!(error, RegistryError::MissingState { .. }), "{error:?}");
    assert!(error.to_string().ends_with("build the registry with `.with_state(..)`"), "{error}");
}

#[tokio::test]
async fn input_is_read_as_its_author_means_it() {
    let registry = Registry::new();
    static SPEC: OperationSpec = OperationSpec::query("demo.sloppy").with_input(Schema::text(
        r#"{"type":"object","properties":{
            "both":{"oneOf":[{"type":"integer"},{"type":"number"}]},
            "none":{"type":"string","nullable":true},
            "pair":{"type":"array","items":[{"type":"string"},{"type":"integer"}]}}}"#,
    ));
    registry.register(Registration::new(&SPEC, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    let fine = json!({ "both": 1, "none": null, "pair": ["a", 1] });
    registry.call("demo.sloppy", fine).await.unwrap();
    let error = registry.call("demo.sloppy", json!({ "pair": [1, "a"] })).await.unwrap_err();
    assert_eq!(error.details()["violations"].as_array().map(Vec::len), Some(2), "{error}");
}
