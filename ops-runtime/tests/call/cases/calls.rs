//! Queries and mutations.

use std::time::Duration;

use futures_util::future::join_all;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::binding::{HttpBinding, HttpBody};
use ops_runtime::call::CallHandler;
use ops_runtime::envelope::ResponseMeta;
use ops_runtime::spec::{OperationSpec, Schema};
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry};
use serde_json::{Value, json};

use crate::harness::{Harness, Set, ann, eventually};
use crate::operations::{
    About, AboutInput, AboutNested, AboutNestedInput, Add, AddInput, Echo, EchoInput, Outer, OuterInput,
};

pub(crate) async fn dynamic_and_typed<H: Harness>() {
    let set = Set::<H>::start().await;
    let typed = set.remote.execute::<Add>(AddInput { a: 40, b: 2 }).await.unwrap();
    assert_eq!(typed.data, 42);
    assert!(matches!(&typed.meta, ResponseMeta::Local(meta) if meta.operation_id == "test.add" && meta.timestamp > 0));
    let dynamic = set.remote.call("test.add", json!({ "a": 40, "b": 2 })).await.unwrap();
    assert_eq!(dynamic.data, 42);
    assert_eq!(set.remote.list().len(), crate::operations::COUNT);
    for value in [json!(null), json!([]), json!({ "ü": [1.5, "\u{0}\"\\", { "a": null }] })] {
        let input = EchoInput { value: value.clone() };
        assert_eq!(set.remote.execute::<Echo>(input).await.unwrap().data, value);
    }
    set.settled().await;
}

async fn error_of<H: Harness>(set: &Set<H>, id: &str, input: Value) -> CallError {
    set.remote.call(id, input).await.unwrap_err()
}

pub(crate) async fn every_error_code<H: Harness>() {
    let set = Set::<H>::start().await;
    let codes = [
        ErrorCode::OperationNotFound,
        ErrorCode::AccessDenied,
        ErrorCode::ValidationError,
        ErrorCode::Timeout,
        ErrorCode::Aborted,
        ErrorCode::ExecutionError,
        ErrorCode::ToolError,
        ErrorCode::UnknownError,
        ErrorCode::Domain("OUT_OF_STOCK".into()),
    ];
    for code in codes {
        let error = error_of(&set, "test.fail", json!({ "code": code.as_str(), "message": "no" })).await;
        let expected = CallError::new(code, "no").with_details(json!({ "left": 0 }));
        assert_eq!(error, expected);
    }
    assert_eq!(*error_of(&set, "test.sealed", json!({})).await.code(), ErrorCode::AccessDenied);
    assert_eq!(*error_of(&set, "test.panics", json!({})).await.code(), ErrorCode::UnknownError);
    let error = error_of(&set, "test.add", json!({ "a": "many" })).await;
    assert_eq!(*error.code(), ErrorCode::ValidationError);
    assert!(!error.details()["violations"].as_array().unwrap().is_empty(), "{error:?}");
    set.settled().await;
}

pub(crate) async fn errors_that_are_declared<H: Harness>() {
    let set = Set::<H>::start().await;
    let error = error_of(&set, "test.declares", json!({})).await;
    assert_eq!(*error.code(), ErrorCode::Domain("OUT_OF_STOCK".into()));
    assert_eq!(error.message(), "OUT_OF_STOCK: no pets left");
}

pub(crate) async fn an_error_of_a_tool_is_an_answer<H: Harness>() {
    let set = Set::<H>::start().await;
    let envelope = set.remote.call("test.tool", json!({})).await.unwrap();
    let meta = envelope.meta.as_mcp().unwrap();
    assert!(meta.is_error);
    assert_eq!(envelope.data[0]["text"], "no such city");
    set.settled().await;
}

pub(crate) async fn envelopes_pass_as_they_are<H: Harness>() {
    let sent = json!({
        "data": { "tick": 1 },
        "meta": {
            "source": "http", "statusCode": 207, "headers": { "x-a": "b" }, "contentType": "application/json",
            "setCookie": ["a=b"],
        },
    });
    let mut shown = sent.clone();
    if H::NAME != "in-process" {
        // What another server said beside the data is not for callers in other processes.
        shown["meta"]["headers"] = json!({});
        shown["meta"].as_object_mut().unwrap().remove("setCookie");
    }
    for (shows_all, expected) in [(false, &shown), (true, &sent)] {
        let harness = H::start().await;
        let mut handler = CallHandler::new(crate::operations::registry(&Default::default()));
        if shows_all {
            handler = handler.with_upstream_shown();
        }
        let worker = harness.worker(handler).await;
        let remote = harness.caller().await;
        eventually("the operations are announced", || remote.list().len() >= crate::operations::COUNT).await;
        // A hub passes on what it gets, as a caller in another process gets it.
        if shows_all && H::NAME.contains("through") {
            continue;
        }
        let envelope = remote.call("test.passes", sent.clone()).await.unwrap();
        assert_eq!(&serde_json::to_value(&envelope).unwrap(), expected);
        drop(worker);
    }
}

pub(crate) async fn repairs_are_told<H: Harness>() {
    let set = Set::<H>::start().await;
    let envelope = set.remote.call("test.shabby", json!({})).await.unwrap();
    assert_eq!(envelope.data, json!({ "n": "many" }), "nothing is made up");
    // Each once: by the worker, or by its caller.
    let told: Vec<&str> = envelope.warnings.iter().map(|warning| &*warning.pointer).collect();
    assert_eq!(told, ["/n", "/extra"], "{:?}", envelope.warnings);
}

/// A caller in another process knows nothing of the binding, and so not that a part of the input is the body of a request.
pub(crate) async fn bodies_of_requests<H: Harness>() {
    let properties = json!({ "id": { "type": "integer", "readOnly": true }, "name": { "type": "string" } });
    let pet = json!({ "type": "object", "required": ["id", "name"], "properties": properties });
    let input = json!({ "type": "object", "required": ["body"], "properties": { "body": pet } });
    let http = HttpBinding::new("POST", "/pets").with_bodies(const { &[HttpBody::new("application/json")] });
    let spec = OperationSpec::mutation("pets.add").with_input(Schema::from(input)).with_http(http);
    let registry = Registry::new();
    registry.register(Registration::new(spec, Handler::dynamic(|input, _| async move { Ok(input) }))).unwrap();
    let harness = H::start().await;
    let worker = harness.worker(CallHandler::new(registry)).await;
    let remote = harness.caller().await;
    eventually("the operation is announced", || !remote.list().is_empty()).await;
    let input = json!({ "body": { "name": "Tom" } });
    assert_eq!(remote.call("pets.add", input.clone()).await.unwrap().data, input);
    let error = remote.call("pets.add", json!({ "body": {} })).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::ValidationError);
    drop(worker);
}

pub(crate) async fn nested_calls<H: Harness>() {
    let set = Set::<H>::start().await;
    let outer = set.remote.execute::<Outer>(OuterInput { milliseconds: 1 }).await.unwrap();
    assert_eq!(outer.data, "outer of nested");
    let about = set.remote.execute::<AboutNested>(AboutNestedInput {}).await.unwrap().data;
    assert_eq!(about["nested"]["parentRequestId"], about["requestId"]);
    assert_ne!(about["nested"]["requestId"], about["requestId"]);
    set.settled().await;
}

pub(crate) async fn identity_counts_where_it_may<H: Harness>() {
    let set = Set::<H>::start().await;
    let mallory = Identity::new("mallory").with_scope("vault:open");
    for claimed in [None, Some(ann()), Some(mallory)] {
        let options = claimed.iter().cloned().fold(CallOptions::new(), CallOptions::with_identity);
        let about = set.remote.execute_with::<About>(AboutInput {}, options.clone()).await.unwrap().data;
        let expected = H::identity_of(claimed);
        assert_eq!(about["identity"], serde_json::to_value(&expected).unwrap());
        let secret = set.remote.call_with("test.secret", json!({}), options).await;
        match expected {
            Some(identity) if identity.scopes.iter().any(|scope| scope == "vault:open") => {
                assert_eq!(secret.unwrap().data, "gold");
            }
            _ => assert_eq!(*secret.unwrap_err().code(), ErrorCode::AccessDenied),
        }
    }
    set.settled().await;
}

pub(crate) async fn metadata_and_trace_travel<H: Harness>() {
    let set = Set::<H>::start().await;
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let mut options = CallOptions::new();
    options.metadata.insert("traceparent".to_owned(), parent.into());
    options.metadata.insert("tenant".to_owned(), json!({ "id": 7 }));
    let about = set.remote.execute_with::<About>(AboutInput {}, options).await.unwrap().data;
    assert_eq!(about["metadata"]["tenant"], json!({ "id": 7 }));
    let trace = about["metadata"]["traceparent"].as_str().unwrap();
    assert!(trace.starts_with("00-4bf92f3577b34da6a3ce929d0e0e4736-"), "{trace}");
}

pub(crate) async fn nobody_serves_it<H: Harness>() {
    let set = Set::<H>::start().await;
    let started = std::time::Instant::now();
    let options = || CallOptions::new().with_timeout(Duration::from_secs(100));
    let error = set.remote.call_with("test.lost", json!({}), options()).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::OperationNotFound, "{error}");
    assert_eq!((&error.details()["operationId"], error.is_retryable()), (&json!("test.lost"), false));
    let error = set.remote.stream_with("lost.stream", json!({}), options()).await.err().unwrap();
    assert_eq!(*error.code(), ErrorCode::OperationNotFound);
    assert!(started.elapsed() < Duration::from_secs(50), "it waited for the deadline");
    set.settled().await;
}

pub(crate) async fn a_thousand_at_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let calls = (0..1_000).map(|n| {
        let remote = set.remote.clone();
        tokio::spawn(async move { remote.execute::<Add>(AddInput { a: n, b: 1 }).await.unwrap().data })
    });
    for (n, sum) in join_all(calls).await.into_iter().enumerate() {
        assert_eq!(sum.unwrap(), n as i64 + 1);
    }
    set.settled().await;
}

pub(crate) async fn big_payloads<H: Harness>() {
    let set = Set::<H>::start().await;
    // What is around the value has room, too.
    let limit = set.remote.info().max_message.unwrap_or(8 << 20);
    for size in [0, 100_000, limit - 4_000] {
        let text = "x".repeat(size);
        let data = set.remote.call("test.echo", json!({ "value": &text })).await.unwrap().data;
        assert!(data == text, "{size} bytes");
    }
    if let Some(limit) = set.remote.info().max_message {
        let text = "x".repeat(limit + 1);
        let error = set.remote.call("test.echo", json!({ "value": text })).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
        assert_eq!(error.details()["limit"], limit, "{error:?}");
        assert!(error.details()["size"].as_u64().unwrap() > limit as u64);
        // An answer that is too large.
        let error = set.remote.call("test.big", json!({ "bytes": limit + 1 })).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
        assert_eq!(error.details()["limit"], limit, "{error:?}");
        // And others go on.
        assert_eq!(set.remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
    }
    set.settled().await;
}
