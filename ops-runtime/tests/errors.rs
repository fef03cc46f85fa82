//! What errors say: the operation, the code once, and the place without an empty pointer.
#![cfg(feature = "registry")]

use std::error::Error;

use futures_util::StreamExt;
use ops_runtime::adapter::{Handler, Registration, Reply};
use ops_runtime::spec::{ErrorDefinition, OperationKind, OperationSpec, Schema};
use ops_runtime::{Call, CallError, Context, ErrorCode, Operation, Registry, Subscribe};
use serde_json::{Value, json};

struct Order;
impl Operation for Order {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &OperationSpec::mutation("shop.order")
        .with_input(Schema::text(r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}}"#))
        .with_errors(const { &[ErrorDefinition::new("Busy")] });
}
impl Call for Order {}

struct Watch;
impl Operation for Watch {
    type Input = Value;
    type Output = u32;
    const SPEC: &'static OperationSpec = &OperationSpec::subscription("shop.watch");
}
impl Subscribe for Watch {}

fn registry() -> Registry {
    let registry = Registry::new();
    let order = |input: Value, _: Context| async move {
        Err::<Reply<Value>, _>(CallError::from(if input["a"] == 1 { "Busy: later" } else { "Busy" }))
    };
    registry.register(Registration::call::<Order, _, _>(order)).unwrap();
    let watch = |input: Value, _: Context| async move {
        if input == json!(0) {
            return Err(CallError::from("closed"));
        }
        Ok(futures_util::stream::iter([Ok(Reply::Value(1)), Err(CallError::new("Cut", "too long"))]))
    };
    registry.register(Registration::subscription::<Watch, _, _, _>(watch)).unwrap();
    let spec = OperationSpec::new(OperationKind::Mutation, "desk", "order").unwrap();
    let nested = Handler::dynamic(|input, context: Context| async move {
        Ok(context.env().call("shop.order", input).await?.into_data())
    });
    registry.register(Registration::new(spec, nested)).unwrap();
    registry
}

#[tokio::test]
async fn errors_name_the_operation_and_their_code_once() {
    let registry = registry();
    let typed = registry.execute::<Order>(json!({ "a": 1 })).await.unwrap_err();
    let by_id = registry.call("shop.order", json!({ "a": 1 })).await.unwrap_err();
    for error in [&typed, &by_id] {
        assert_eq!((error.code().as_str(), error.message()), ("Busy", "Busy: later"), "the message is the handler's");
        assert_eq!(error.to_string(), "shop.order: Busy: later");
        assert_eq!(error.operation(), Some("shop.order"));
        assert!(format!("{error:?}").contains("shop.order"), "{error:?}");
    }
    assert_eq!(registry.call("shop.order", json!({ "a": 2 })).await.unwrap_err().to_string(), "shop.order: Busy");
    // The operation is no part of the error's value or of its JSON.
    let plain = CallError::new("Busy", "Busy: later");
    assert_eq!(typed, plain);
    assert_eq!(serde_json::to_value(&typed).unwrap(), json!({ "code": "Busy", "message": "Busy: later" }));
    // Of a nested call, the operation that failed.
    let nested = registry.call("desk.order", json!({ "a": 1 })).await.unwrap_err();
    assert_eq!(nested.to_string(), "shop.order: Busy: later");
    let none = registry.call("shop.none", json!({})).await.unwrap_err();
    assert_eq!(none.to_string(), "OPERATION_NOT_FOUND: operation not found: `shop.none`");
    assert_eq!(none.operation(), Some("shop.none"));
}

#[tokio::test]
async fn errors_of_subscriptions_name_the_operation() {
    let registry = registry();
    let last = |items: Vec<Result<_, CallError>>| items.into_iter().find_map(Result::err).unwrap().to_string();
    let typed = registry.subscribe::<Watch>(json!(1)).await.unwrap();
    assert_eq!(last(typed.map(|item| item.map(drop)).collect().await), "shop.watch: Cut: too long");
    let by_id = registry.stream("shop.watch", json!(1)).await.unwrap();
    assert_eq!(last(by_id.map(|item| item.map(drop)).collect().await), "shop.watch: Cut: too long");
    for error in [
        registry.subscribe::<Watch>(json!(0)).await.err().unwrap(),
        registry.stream("shop.watch", json!(0)).await.err().unwrap(),
    ] {
        assert_eq!(error.to_string(), "shop.watch: EXECUTION_ERROR: closed");
    }
}

#[tokio::test]
async fn the_whole_input_has_no_place_and_long_lists_are_cut() {
    let registry = registry();
    let error = registry.call("shop.order", json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    assert!(error.message().starts_with("the input of `shop.order` is invalid: "), "{error}");
    assert!(!error.to_string().contains(": :") && error.message().contains('a'), "{error}");
    assert_eq!(error.to_string(), format!("VALIDATION_ERROR: {}", error.message()), "the operation is named once");
    let error = registry.call("shop.order", json!({ "a": "x" })).await.unwrap_err();
    assert!(error.message().contains("is invalid: /a: "), "{error}");

    let properties: serde_json::Map<String, Value> =
        (0..9).map(|at| (format!("p{at}"), json!({ "type": "integer" }))).collect();
    let mut spec = OperationSpec::new(OperationKind::Query, "shop", "many").unwrap();
    spec.input = Schema::from(json!({ "type": "object", "properties": properties }));
    registry.register(Registration::new(spec, Handler::dynamic(|input, _| async move { Ok(input) }))).unwrap();
    let wrong: serde_json::Map<String, Value> = (0..9).map(|at| (format!("p{at}"), json!("x"))).collect();
    let error = registry.call("shop.many", Value::Object(wrong)).await.unwrap_err();
    assert!(error.message().ends_with("; and 4 more"), "{error}");
    assert_eq!(error.details()["violations"].as_array().unwrap().len(), 9, "the details have them all");
}

/// An error with a source.
#[derive(Debug)]
struct Outer(CallError);

impl std::fmt::Display for Outer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the order failed")
    }
}

impl Error for Outer {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn an_error_in_a_box_comes_out_as_it_went_in() {
    let inner = CallError::execution("HTTP 404: Not Found")
        .with_details(json!({ "statusCode": 404, "contentType": "application/json", "body": { "message": "secret" } }))
        .with_operation("far.away");
    assert_eq!(inner.to_string(), "far.away: HTTP 404: Not Found: secret");
    let boxed: Box<dyn Error> = inner.clone().into();
    let shared: Box<dyn Error + Send + Sync> = inner.clone().into();
    let held = std::io::Error::other(inner.clone());
    let converted = [
        CallError::from(boxed),
        CallError::from(shared),
        CallError::from_error(inner.clone()),
        CallError::from_error(held),
    ];
    for error in converted {
        assert_eq!((&error, error.status(), error.operation()), (&inner, Some(404), Some("far.away")));
    }
    // As the source of another error it gives its words, and none of its server's.
    let boxed: Box<dyn Error> = Outer(inner.clone()).into();
    for error in [CallError::from(boxed), CallError::from_error(Outer(inner))] {
        assert_eq!(error.message(), "the order failed: EXECUTION_ERROR: HTTP 404: Not Found");
        assert!(error.details().is_null());
    }
    let hostile = CallError::execution("x").with_operation("a.\u{1b}[2J\nb");
    assert_eq!(hostile.to_string(), "a.\\u{1b}[2J b: EXECUTION_ERROR: x");
}

/// A helper that builds a registry, with the error type of functions.
#[test]
fn the_error_of_a_registration_converts_to_one_of_a_call() {
    fn without_its_spec() -> Result<Registry, CallError> {
        let registry = registry();
        registry.register_handler("shop.gone", Handler::dynamic(|_, _| async { Ok(json!(1)) }))?;
        Ok(registry)
    }
    let expected = CallError::execution("`shop.gone` is not registered: register its spec first");
    assert_eq!(without_its_spec().unwrap_err(), expected);
}
