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

#[path = "registry/functions.rs"]
mod functions;
#[path = "registry/panics.rs"]
mod panics;
#[path = "registry/subscription_timeouts.rs"]
mod subscription_timeouts;

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
async fn an_id_that_is_not_found_names_those_that_are_near() {
    let registry = registry();
    registry.register(Registration::call::<Guarded, _, _>(|_, _| async { Ok(Reply::Value(1)) })).unwrap();
    let nested = |_: Value, context: Context| async move {
        Ok(json!(context.env().call("math.dubble", json!(1)).await.unwrap_err().message()))
    };
    registry.register(Registration::new(OperationSpec::query("demo.nested"), Handler::dynamic(nested))).unwrap();
    let (nobody, writer) = (Identity::new("nobody"), Identity::new("ann").with_scope("math:write"));
    let (owner, of_nobody, of_writer) = (registry.clone(), registry.scoped(nobody), registry.scoped(writer));
    let near = "operation not found: `math.guardet`: did you mean `math.guarded`?";
    for (message, wanted) in [
        (
            owner.call("math.dubble", json!(1)).await.unwrap_err(),
            "operation not found: `math.dubble`: did you mean `math.double`?",
        ),
        (
            owner.stream("Math.Double", json!(1)).await.map(drop).unwrap_err(),
            "operation not found: `Math.Double`: did you mean `math.double`?",
        ),
        (
            owner.call("guarded", json!(1)).await.unwrap_err(),
            "operation not found: `guarded`: did you mean `math.guarded`?",
        ),
        (owner.call("math.guardet", json!(1)).await.unwrap_err(), near),
        (of_writer.call("math.guardet", json!(1)).await.unwrap_err(), near),
        // Nobody learns of operations that they may not run.
        (of_nobody.call("math.guardet", json!(1)).await.unwrap_err(), "operation not found: `math.guardet`"),
        (owner.call("weather.today", json!(1)).await.unwrap_err(), "operation not found: `weather.today`"),
    ] {
        assert_eq!((message.message(), message.code()), (wanted, &ErrorCode::OperationNotFound));
    }
    // The error of a handler's own call may reach a caller elsewhere.
    let said = owner.call("demo.nested", json!(null)).await.unwrap().data;
    assert_eq!(said, "operation not found: `math.dubble`");
}

#[tokio::test]
async fn violations_read_alike() {
    let registry = Registry::new();
    registry.register(Registration::call::<Bounded, _, _>(|n, _| async move { Ok(Reply::Value(n)) })).unwrap();
    for (input, wanted) in [(json!(11), "expected integer to be less or equal to 10"), (json!("x"), "expected integer")]
    {
        let error = registry.call("math.bounded", input).await.unwrap_err();
        assert_eq!(error.message(), format!("the input of `math.bounded` is invalid: {wanted}"));
        assert_eq!(error.details(), &json!({ "violations": [{ "pointer": "", "message": wanted }] }));
    }
}

#[tokio::test]
async fn what_is_not_there_is_not_found() {
    let registry = Registry::new();
    let error = registry.execute::<Double>(1).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::OperationNotFound);
    assert_eq!(error.details(), &json!({ "operationId": "math.double" }));
    assert_eq!(registry.call("no.such", json!(1)).await.unwrap_err().code(), &ErrorCode::OperationNotFound);
    assert_eq!(registry.call("nodot", json!(1)).await.unwrap_err().code(), &ErrorCode::OperationNotFound);

    registry.register_spec(Double::SPEC).unwrap();
    let error = registry.execute::<Double>(1).await.unwrap_err();
    assert!(error.message().contains("no handler"), "{error}");
    registry
        .register_handler("math.double", Handler::typed::<Double, _, _>(|n, _| async move { Ok(Reply::Value(n)) }))
        .unwrap();
    assert_eq!(registry.execute::<Double>(1).await.unwrap().data, 1);
}

#[test]
fn registering_twice_is_an_error_unless_meant() {
    let registry = registry();
    assert_eq!(registry.register(double()), Err(RegistryError::Duplicate { id: "math.double".into() }));
    registry.replace(double()).unwrap();
    assert_eq!(registry.list().len(), 1);
    assert_eq!(registry.remove("math.double").unwrap().id, "math.double");
    assert!(registry.remove("math.double").is_none());
    assert!(registry.spec("math.double").is_none());
    let missing = registry.register_handler("math.double", Handler::dynamic(|v, _| async { Ok(v) }));
    assert_eq!(missing, Err(RegistryError::NotFound { id: "math.double".into() }));
}

#[test]
fn registering_all_is_all_or_nothing() {
    let registry = Registry::new();
    assert!(registry.register_all([double(), double()]).is_err());
    assert!(registry.list().is_empty());
}

#[test]
fn a_handler_must_fit_its_operation() {
    let registry = Registry::new();
    let stream = Handler::dynamic_stream(|v, _| async { Ok(futures_util::stream::iter([Ok(v)])) });
    let error = registry.register(Registration::new(Double::SPEC, stream)).unwrap_err();
    assert_eq!(error, RegistryError::KindMismatch { id: "math.double".into() });
    static BAD: OperationSpec = OperationSpec::query("no-dot");
    assert!(matches!(registry.register_spec(&BAD), Err(RegistryError::InvalidId(_))));
    let error = registry.register(double().requires::<String>()).unwrap_err();
    assert!(error.to_string().contains("String"), "{error}");
    Registry::builder().with_state(String::new()).build().register(double().requires::<String>()).unwrap();
}

#[tokio::test]
async fn wrong_input_lists_every_violation() {
    let registry = Registry::new();
    static SPEC: OperationSpec = OperationSpec::query("demo.two").with_input(Schema::text(
        r#"{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string","maxLength":2}},"required":["a","b"]}"#,
    ));
    registry.register(Registration::new(&SPEC, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    let error = registry.call("demo.two", json!({ "a": "x", "b": "long" })).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    let violations = error.details()["violations"].as_array().unwrap();
    let pointers: Vec<_> = violations.iter().map(|v| v["pointer"].as_str().unwrap()).collect();
    assert_eq!(pointers, ["/a", "/b"], "{error}");
}

#[tokio::test]
async fn a_typed_input_is_checked_against_constraints_beyond_its_type() {
    let registry = Registry::new();
    registry.register(Registration::call::<Bounded, _, _>(|n, _| async move { Ok(Reply::Value(n + 1)) })).unwrap();
    assert_eq!(registry.execute::<Bounded>(11).await.unwrap_err().code(), &ErrorCode::ValidationError);
    // A typed local result relies on its type, unless the policy is strict.
    assert_eq!(registry.execute::<Bounded>(10).await.unwrap().data, 11);
    let strict = CallOptions::new().with_policy(OutputPolicy::Strict);
    let error = registry.execute_with::<Bounded>(10, strict).await.unwrap_err();
    assert_eq!((error.code(), &error.details()["raw"]), (&ErrorCode::ValidationError, &json!(11)));
}

#[tokio::test]
async fn a_result_that_does_not_match_is_repaired_and_said_so() {
    let registry = Registry::new();
    static SPEC: OperationSpec = OperationSpec::query("demo.dirty").with_output(Schema::text(
        r#"{"type":"object","properties":{"id":{"type":"integer"},"n":{"type":"integer","default":3}},"required":["id"]}"#,
    ));
    let dirty = || async { Ok(json!({ "id": "x", "more": true })) };
    registry.register(Registration::new(&SPEC, Handler::dynamic(move |_, _| dirty()))).unwrap();
    for (policy, id) in [(OutputPolicy::Repair, json!("x")), (OutputPolicy::Cast, json!(0))] {
        let options = CallOptions::new().with_policy(policy);
        let envelope = registry.call_with("demo.dirty", Value::Null, options).await.unwrap();
        assert_eq!(envelope.data, json!({ "id": id, "n": 3 }));
        let told = envelope.warnings.iter().map(|warning| (warning.pointer.as_str(), &*warning.found));
        assert_eq!(told.collect::<Vec<_>>(), [("/id", "string"), ("/more", "boolean")]);
    }
    let strict = CallOptions::new().with_policy(OutputPolicy::Strict);
    let error = registry.call_with("demo.dirty", Value::Null, strict).await.unwrap_err();
    assert_eq!(error.details()["raw"], json!({ "id": "x", "more": true }));
}

#[tokio::test]
async fn a_result_that_conforms_is_not_repaired_into_one_that_does_not() {
    let item = json!({ "type": "object", "properties": { "a": { "type": "integer" } } });
    let cases = [
        // A default that asks for more, an undeclared property that is counted on.
        (json!({ "properties": { "a": { "default": 1 }, "b": {} }, "dependentRequired": { "a": ["b"] } }), json!({})),
        (json!({ "properties": { "a": {} }, "not": { "maxProperties": 1 } }), json!({ "a": 1, "x": 2 })),
        (
            json!({ "type": "array", "items": item, "contains": { "propertyNames": { "const": "x" }, "minProperties": 1 } }),
            json!([{ "a": 1 }, { "x": 2 }]),
        ),
    ];
    for (schema, value) in cases {
        let spec = OperationSpec::query("demo.kept").with_output(Schema::from(schema.clone()));
        let registry = Registry::new();
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
        for policy in [OutputPolicy::Repair, OutputPolicy::Cast, OutputPolicy::Strict] {
            let options = CallOptions::new().with_policy(policy);
            let envelope = registry.call_with("demo.kept", value.clone(), options).await.unwrap();
            assert_eq!((envelope.data, envelope.warnings.len()), (value.clone(), 0), "{policy:?} {schema}");
        }
    }
}

#[tokio::test]
async fn a_result_is_checked_however_deep_its_schema_is() {
    // Repairing reads combinations to a depth of 100; what lies deeper is left to the check by the standard.
    let chain = |length: usize| {
        let link = |at: usize| {
            let next = json!({ "$ref": format!("#/$defs/S{}", at + 1) });
            (format!("S{at}"), json!({ "allOf": [next, next] }))
        };
        let last = (format!("S{length}"), json!({ "anyOf": [{ "type": "integer" }, { "const": null }] }));
        (0..length).map(link).chain([last]).collect::<Vec<_>>()
    };
    let own = |chain: Vec<(String, Value)>| {
        let table: serde_json::Map<String, Value> = chain.into_iter().collect();
        OperationSpec::query("demo.deep").with_output(Schema::from(json!({ "$ref": "#/$defs/S0", "$defs": table })))
    };
    let shared = |chain: Vec<(String, Value)>| {
        let table = chain.into_iter().map(|(name, schema)| Definition::from_value(name, schema)).collect();
        let mut spec = OperationSpec::query("demo.deep").with_output(Schema::from(json!({ "$ref": "#/$defs/S0" })));
        spec.definitions = Definitions::new(table);
        spec
    };
    for spec in [own(chain(10)), own(chain(70)), shared(chain(10)), shared(chain(70))] {
        let registry = Registry::new();
        registry.register(Registration::new(spec, Handler::dynamic(|value, _| async { Ok(value) }))).unwrap();
        for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
            let options = CallOptions::new().with_policy(policy);
            let fits = registry.call_with("demo.deep", json!(7), options.clone()).await.unwrap();
            assert_eq!((fits.data, fits.warnings.len()), (json!(7), 0), "{policy:?}");
            // Asked again, too, when everything is compiled.
            for _ in 0..2 {
                let told = match registry.call_with("demo.deep", json!("x"), options.clone()).await {
                    Ok(envelope) => envelope.warnings.iter().map(|warning| warning.found.to_string()).collect(),
                    Err(error) => vec![error.code().to_string()],
                };
                // Repairing tells a value of another kind only where its own reading knows the kind.
                let is_error = matches!(told.as_slice(), [code] if code == "VALIDATION_ERROR");
                let is_warning = told.iter().any(|found| found == "string") && policy == OutputPolicy::Repair;
                assert!(is_error || is_warning, "{policy:?}: {told:?}");
            }
        }
    }
}

#[tokio::test]
async fn access_is_checked_for_everybody_but_the_owner() {
    let registry = Registry::new();
    registry.register(Registration::call::<Guarded, _, _>(|_, _| async { Ok(Reply::Value(1)) })).unwrap();
    registry.execute::<Guarded>(json!({})).await.unwrap();

    let ann = Identity::new("ann").with_scope("math:write");
    registry.scoped(ann.clone()).execute::<Guarded>(json!({})).await.unwrap();
    let bob = registry.scoped(Identity::new("bob"));
    let error = bob.call("math.guarded", json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::AccessDenied);
    assert_eq!(error.details(), &json!({ "requiredScopes": ["math:write"] }));
    assert!(bob.list().is_empty());
    // Options can't widen a scope.
    let options = CallOptions::new().with_identity(ann);
    assert!(bob.execute_with::<Guarded>(json!({}), options.clone()).await.is_err());
    registry.execute_with::<Guarded>(json!({}), options).await.unwrap();
}

#[tokio::test]
async fn nested_calls_are_trusted_and_inherit() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Guarded, _, _>(|_, context: Context| async move {
            assert!(context.is_trusted());
            assert!(context.parent_request_id().is_some());
            assert_eq!(context.identity().map(|i| i.id.as_str()), Some("bob"));
            assert!(context.deadline().is_some());
            Ok(Reply::Value(1))
        }))
        .unwrap();
    registry
        .register(Registration::call::<Outer, _, _>(|_, context: Context| async move {
            let data = context.env().execute::<Guarded>(json!({})).await?.data;
            let filtered = context.env_of(["other"]);
            assert!(filtered.list().is_empty());
            let refused = filtered.call("math.guarded", json!({})).await.unwrap_err();
            assert_eq!(refused.code(), &ErrorCode::OperationNotFound);
            Ok(Reply::Value(json!(data)))
        }))
        .unwrap();
    let bob = registry.scoped(Identity::new("bob"));
    let options = CallOptions::new().with_timeout(Duration::from_secs(5));
    assert_eq!(bob.execute_with::<Outer>(json!({}), options).await.unwrap().data, json!(1));
}

/// A caller that is not in the registry runs calls of a handler as the registry does.
#[tokio::test]
async fn calls_through_another_caller_inherit() {
    let other = Registry::new();
    other
        .register(Registration::call::<Guarded, _, _>(|_, context: Context| async move {
            assert!(context.is_trusted() && context.parent_request_id().is_some() && context.deadline().is_some());
            assert!(context.cancel_token().is_some());
            assert_eq!(context.metadata().unwrap()["tenant"], "t-7");
            Ok(Reply::Value(i64::from(context.identity().is_some_and(|identity| identity.id == "bob"))))
        }))
        .unwrap();
    let registry = Registry::builder().with_state(other).build();
    registry
        .register(Registration::call::<Outer, _, _>(|_, context: Context| async move {
            let other = context.state::<Registry>()?;
            let through = context.through(other);
            let mut seen = vec![json!(through.execute::<Guarded>(json!({})).await?.data)];
            seen.push(through.call("math.guarded", json!({})).await?.data);
            // An identity that is named, or that of a scope, has the call checked.
            let ann = CallOptions::new().with_identity(Identity::new("ann"));
            let named = ops_runtime::Caller::execute_with::<Guarded>(&through, json!({}), ann).await;
            let scoped = other.scoped(Identity::new("cat"));
            let scoped = context.through(&scoped).execute::<Guarded>(json!({})).await;
            for error in [named.unwrap_err(), scoped.unwrap_err()] {
                seen.push(json!(error.code().as_str()));
            }
            Ok(Reply::Value(json!(seen)))
        }))
        .unwrap();
    let options = CallOptions::new()
        .with_identity(Identity::new("bob"))
        .with_timeout(Duration::from_secs(5))
        .with_cancel(CancelToken::new())
        .with_metadata("tenant", "t-7");
    let seen = registry.execute_with::<Outer>(json!({}), options).await.unwrap().data;
    assert_eq!(seen, json!([1, 1, "ACCESS_DENIED", "ACCESS_DENIED"]));
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

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_handler_that_outlives_its_deadline_is_dropped() {
    let registry = Registry::new();
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    registry
        .register(Registration::call::<Slow, _, _>(move |_, _| {
            let flag = Flag(flag.clone());
            async move {
                std::future::pending::<()>().await;
                drop(flag);
                Ok(Reply::Value(0))
            }
        }))
        .unwrap();
    let started = Instant::now();
    let error = registry.execute::<Slow>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(dropped.load(Ordering::SeqCst));
    let cancel = CancelToken::new();
    let call = registry.execute_with::<Slow>(json!({}), CallOptions::new().with_cancel(cancel.clone()));
    cancel.cancel();
    assert_eq!(call.await.unwrap_err().code(), &ErrorCode::Aborted);
}

#[tokio::test]
async fn a_call_after_its_deadline_or_its_end_is_not_begun() {
    let registry = registry();
    let runs = Arc::new(AtomicUsize::new(0));
    let (counted, of_stream, of_id) = (runs.clone(), runs.clone(), runs.clone());
    let double = move |n: i64, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Reply::Value(2 * n)) }
    };
    registry.replace(Registration::call::<Double, _, _>(double)).unwrap();
    let count = move |_, _| {
        of_stream.fetch_add(1, Ordering::SeqCst);
        async { Ok(futures_util::stream::empty()) }
    };
    registry.register(Registration::subscription::<Count, _, _, _>(count)).unwrap();
    let handler = Handler::dynamic(move |input: Value, _| {
        of_id.fetch_add(1, Ordering::SeqCst);
        async move { Ok(input) }
    });
    registry.register(Registration::new(OperationSpec::query("any.echo"), handler)).unwrap();
    let cancelled = CancelToken::new();
    cancelled.cancel();
    for (options, code) in [
        (CallOptions::new().with_deadline(Instant::now()), ErrorCode::Timeout),
        (CallOptions::new().with_timeout(Duration::ZERO), ErrorCode::Timeout),
        (CallOptions::new().with_cancel(cancelled), ErrorCode::Aborted),
    ] {
        let error = registry.execute_with::<Double>(1, options.clone()).await.unwrap_err();
        assert_eq!((error.code(), error.operation()), (&code, Some("math.double")));
        assert_eq!(registry.call_with("any.echo", json!(1), options.clone()).await.unwrap_err().code(), &code);
        assert_eq!(registry.subscribe_with::<Count>(1_u32, options).await.err().unwrap().code(), &code);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[test]
fn a_deadline_without_tokio_fails_the_call() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Slow, _, _>(|_, _| async {
            std::future::pending::<()>().await;
            Ok(Reply::Value(0))
        }))
        .unwrap();
    let result = futures_util::FutureExt::now_or_never(registry.execute::<Slow>(json!({})));
    assert!(result.unwrap().is_err());
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
async fn a_call_that_has_ended_before_its_first_poll_does_not_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let registry = Registry::new();
    registry
        .register(Registration::call::<Double, _, _>(move |n, _| {
            let runs = counted.clone();
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(Reply::Value(2 * n))
            }
        }))
        .unwrap();
    let cancel = CancelToken::new();
    let options = CallOptions::new().with_cancel(cancel.clone());
    let typed = registry.execute_with::<Double>(1, options.clone());
    let dynamic = registry.call_with("math.double", json!(1), options);
    cancel.cancel();
    assert_eq!(typed.await.unwrap_err().code(), &ErrorCode::Aborted);
    assert_eq!(dynamic.await.unwrap_err().code(), &ErrorCode::Aborted);
    let options = CallOptions::new().with_timeout(Duration::from_millis(10));
    let (typed, dynamic) =
        (registry.execute_with::<Double>(1, options.clone()), registry.call_with("math.double", json!(1), options));
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(typed.await.unwrap_err().code(), &ErrorCode::Timeout);
    assert_eq!(dynamic.await.unwrap_err().code(), &ErrorCode::Timeout);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    // A deadline that is yet to come, and a token that is not cancelled, change nothing.
    let options = CallOptions::new().with_timeout(Duration::from_secs(60)).with_cancel(CancelToken::new());
    assert_eq!(registry.execute_with::<Double>(1, options).await.unwrap().data, 2);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
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

#[tokio::test]
async fn an_alias_is_another_operation() {
    let registry = Registry::new();
    static OPEN: OperationSpec = OperationSpec::mutation("math.open");
    let run = || Handler::typed::<Guarded, _, _>(|_, _| async { Ok(Reply::Value(1)) });
    registry.register(Registration::new(Guarded::SPEC, run())).unwrap();
    registry.register(Registration::new(&OPEN, run())).unwrap();
    // By its type the operation is the one with its own id and rules, whatever else runs the same code.
    let bob = registry.scoped(Identity::new("bob"));
    assert_eq!(bob.execute::<Guarded>(json!({})).await.unwrap_err().code(), &ErrorCode::AccessDenied);
    assert_eq!(bob.call("math.open", json!({})).await.unwrap().data, json!(1));
    registry.remove("math.open").unwrap();
    registry.execute::<Guarded>(json!({})).await.unwrap();
}

#[tokio::test]
async fn a_busy_handler_does_not_escape_its_deadline() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Slow, _, _>(|_, _| async {
            let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
            loop {
                // Uses up tokio's budget each time that it is polled.
                send.send(1).unwrap();
                receive.recv().await;
            }
        }))
        .unwrap();
    let error = registry.execute::<Slow>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
}

#[tokio::test]
async fn whoever_waits_is_told_of_a_change() {
    let registry = registry();
    let version = registry.version();
    // What fails changes nothing.
    registry.register(double()).unwrap_err();
    assert!(registry.remove("math.no_such").is_none());
    assert_eq!(registry.version(), version);
    let waiting = tokio::spawn({
        let registry = registry.clone();
        async move { registry.changed(version).await }
    });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    registry.remove("math.double").unwrap();
    assert_eq!(waiting.await.unwrap(), registry.version());
    // A change that was before is not missed.
    assert!(registry.changed(version).await > version);
}

/// Two versions of an API in one namespace: the same ids, other operations.
mod v1 {
    use super::*;

    operation!(GetPet: Value => Value, Call, OperationSpec::query("pets.get").with_version("1.0.0")
        .with_input(Schema::text(r#"{"type":"object","properties":{"id":{"type":"integer"}}}"#))
        .with_http(HttpBinding::new("GET", "/v1/pets/{id}")));
    operation!(Add: i64 => i64, Call, OperationSpec::query("pets.add"));
    operation!(Watch: Value => Value, Subscribe, OperationSpec::subscription("pets.watch")
        .with_http(HttpBinding::new("GET", "/v1/pets/events")));
}

mod v2 {
    use super::*;

    operation!(GetPet: Value => Value, Call, OperationSpec::query("pets.get").with_version("2.0.0")
        .with_input(Schema::text(r#"{"type":"object","properties":{"key":{"type":"integer"}}}"#))
        .with_http(HttpBinding::new("GET", "/v2/pets/{key}")));
    operation!(Add: String => String, Call, OperationSpec::query("pets.add")
        .with_input(Schema::text(r#"{"type":"string"}"#)));
    operation!(Watch: Value => Value, Subscribe, OperationSpec::subscription("pets.watch")
        .with_http(HttpBinding::new("GET", "/v2/pets/events")));
}

/// Answers with the path of the spec that it was told to run.
struct Path;

impl Endpoint for Path {
    fn call(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let path = json!(spec.http().map(|http| http.path.clone()));
        Box::pin(async { Ok(ResponseEnvelope::local(Payload::Value(path), "")) })
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let path = json!(spec.http().map(|http| http.path.clone()));
        let item = Ok(ResponseEnvelope::local(Payload::Value(path), ""));
        Box::pin(async { Ok(futures_util::stream::iter([item]).boxed()) })
    }
}

fn bound(specs: &[&'static OperationSpec]) -> Vec<Registration> {
    specs.iter().map(|spec| Registration::new(*spec, Handler::endpoint(Path))).collect()
}

#[tokio::test]
async fn a_type_of_another_version_is_not_run_by_the_spec_of_the_first() {
    let registry = Registry::new();
    registry.register_all(bound(&[v1::GetPet::SPEC, v1::Watch::SPEC])).unwrap();
    assert_eq!(registry.execute::<v1::GetPet>(json!({})).await.unwrap().data, "/v1/pets/{id}");
    // Twice: what was compared is remembered.
    for _ in 0..2 {
        let error = registry.execute::<v2::GetPet>(json!({})).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::OperationNotFound);
        let message = error.message();
        for part in ["1.0.0", "`GET /v1/pets/{id}`", "v2::GetPet`", "2.0.0", "`GET /v2/pets/{key}`", "the path"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        let differences = ["the path", "the input schema at /properties/id"];
        assert_eq!(error.details()["differences"], json!(differences));
        assert_eq!(error.details()["operationId"], "pets.get");
    }
    let error = registry.subscribe::<v2::Watch>(json!({})).await.err().unwrap();
    assert!(error.message().contains("/v1/pets/events") && error.message().contains("/v2/pets/events"), "{error}");
    // Nor by any other caller of the registry; who may not call it at all is told nothing of it.
    let options = CallOptions::new().with_identity(Identity::new("ann"));
    assert!(registry.execute_with::<v2::GetPet>(json!({}), options).await.is_err());
    assert!(registry.scoped(Identity::new("ann")).execute::<v2::GetPet>(json!({})).await.is_err());
    let mut guarded = v1::GetPet::SPEC.clone();
    guarded.access = AccessControl::NONE.with_scopes(&["pets"]);
    registry.replace(Registration::new(guarded, Handler::endpoint(Path))).unwrap();
    let error = registry.scoped(Identity::new("ann")).execute::<v2::GetPet>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::AccessDenied);
    // Rules are not what an operation is.
    assert_eq!(registry.execute::<v1::GetPet>(json!({})).await.unwrap().data, "/v1/pets/{id}");
}

#[tokio::test]
async fn types_of_this_process_with_one_id_are_told_apart() {
    let registry = Registry::new();
    registry.register(Registration::call::<v1::Add, _, _>(|n, _| async move { Ok(Reply::Value(n + 1)) })).unwrap();
    let error = registry.execute::<v2::Add>("1".to_owned()).await.unwrap_err();
    assert!(error.message().contains("v1::Add`") && error.message().contains("v2::Add`"), "{error}");
    let error =
        registry.register(Registration::call::<v2::Add, _, _>(|n, _| async move { Ok(Reply::Value(n)) })).unwrap_err();
    assert!(error.to_string().contains("v1::Add`") && error.to_string().contains("v2::Add`"), "{error}");
    // Code for one version under the description of the other.
    let typed = || Handler::typed::<v1::GetPet, _, _>(|_, _| async { Ok(Reply::Value(json!(1))) });
    let error = registry.register(Registration::new(v2::GetPet::SPEC, typed())).unwrap_err();
    assert!(matches!(error, RegistryError::Differs { .. }), "{error}");
    registry.register_spec(v2::GetPet::SPEC).unwrap();
    assert!(matches!(registry.register_handler("pets.get", typed()), Err(RegistryError::Differs { .. })));
}

#[test]
fn two_versions_in_one_namespace_are_an_error_that_names_both() {
    let registry = Registry::new();
    registry.register_all(bound(&[v1::GetPet::SPEC])).unwrap();
    // All or nothing, and the first two of a list as those of two lists.
    let both = [v1::Watch::SPEC, v1::Add::SPEC, v2::Watch::SPEC];
    for error in [
        registry.register_all(bound(&[v1::Watch::SPEC, v2::GetPet::SPEC])).unwrap_err(),
        registry.register_spec(v2::GetPet::SPEC).unwrap_err(),
        registry.register_all(bound(&both)).unwrap_err(),
    ] {
        let RegistryError::Differs { registered, other, differences, .. } = &error else { panic!("{error}") };
        assert!(registered.contains("`GET /v1/pets/") && other.contains("`GET /v2/pets/"), "{error}");
        assert_eq!(differences[0], "the path");
    }
    assert_eq!(registry.list().len(), 1);
    // The same again, described otherwise, is there already.
    let mut again = v1::GetPet::SPEC.clone();
    (again.description, again.version) = ("Gets a pet.".into(), "1.0.1".into());
    let again = registry.register(Registration::new(again, Handler::endpoint(Path)));
    assert_eq!(again, Err(RegistryError::DuplicateClient { id: "pets.get".into() }));
    // Another server of the API, rather than a mistake.
    assert!(again.unwrap_err().to_string().contains("use a registry for each, or"));
    // What is meant to be another is put in its place.
    registry.replace(bound(&[v2::GetPet::SPEC]).remove(0)).unwrap();
}

#[tokio::test]
async fn a_spec_met_at_run_time_stands_for_a_type_that_means_the_same() {
    let met = |spec: &OperationSpec| -> OperationSpec {
        ops_runtime::record::from_value(&serde_json::to_value(spec).unwrap()).unwrap()
    };
    let registry = Registry::new();
    registry.register(Registration::new(met(v1::GetPet::SPEC), Handler::endpoint(Path))).unwrap();
    assert_eq!(registry.execute::<v1::GetPet>(json!({})).await.unwrap().data, "/v1/pets/{id}");
    assert!(registry.execute::<v2::GetPet>(json!({})).await.is_err());
    // Code that takes any JSON and says nothing of it runs no spec.
    let spec = OperationSpec::new(ops_runtime::spec::OperationKind::Mutation, "pets", "add").unwrap();
    registry.register(Registration::new(spec, Handler::dynamic(|v, _| async { Ok(v) }))).unwrap();
    assert_eq!(registry.execute::<v2::Add>("x".to_owned()).await.unwrap().data, "x");
}
