//! A typed and a dynamic call of the same operation give the same data. Where a value breaks a constraint or an enum, only
//! the dynamic one warns; where a value does not fit at all, the typed one fails.

use bytes::Bytes;
use ops_runtime::adapter::{BoxFuture, Endpoint, Handler, Payload, PayloadStream, Registration};
use ops_runtime::envelope::HttpMeta;
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context, ErrorCode, Registry, ResponseEnvelope};
use serde_json::{Value, json};

/// The operations of our own pet shop.
pub mod petshop {
    ops_runtime::include_operations!("petshop");
}

/// Answers every call with the same JSON text.
struct Fixed(String);

impl Endpoint for Fixed {
    fn call(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let payload = Payload::Json(Bytes::from(self.0.clone()));
        Box::pin(async { Ok(ResponseEnvelope::http(payload, HttpMeta::new(200, "application/json"))) })
    }

    fn subscribe(
        &self,
        _: &OperationSpec,
        _: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        Box::pin(async { Err(CallError::execution("no subscriptions here")) })
    }
}

/// A registry that answers every call with this.
fn answering(answer: &Value) -> Registry {
    let registry = Registry::new();
    let spec = petshop::operations().iter().find(|spec| spec.name() == "showPetById").unwrap();
    registry.register(Registration::new(*spec, Handler::endpoint(Fixed(answer.to_string())))).unwrap();
    registry
}

/// What a typed and a dynamic call make of an answer.
async fn both(answer: &Value) -> (ResponseEnvelope<Value>, ResponseEnvelope<Value>) {
    let registry = answering(answer);
    let typed = registry.execute::<petshop::ShowPetById>(petshop::ShowPetByIdInput { pet_id: 7 }).await.unwrap();
    let dynamic = registry.call("petshop.showPetById", json!({ "petId": 7 })).await.unwrap();
    (typed.map(|pet| serde_json::to_value(pet).unwrap()), dynamic)
}

fn pet(change: Value) -> Value {
    let mut pet = json!({ "id": 7, "name": "Rex", "kind": "dog" });
    pet.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    pet
}

#[tokio::test]
async fn they_give_the_same() {
    let cases = [
        ("as described", json!({})),
        ("an undeclared property", json!({ "more": [1, 2] })),
        ("a nullable null", json!({ "nickname": null, "home": null })),
        ("a map beside properties", json!({ "home": { "lat": 1.5, "street": "Main" } })),
        ("recursion", json!({ "parents": [pet(json!({})), pet(json!({ "more": 1 }))] })),
        ("a tagged union", json!({ "toys": [{ "toy": "ball", "diameter": 2.5 }, { "length": 3, "toy": "bone" }] })),
        ("an integer written as a float", json!({ "id": 7.0 })),
        ("a scalar written otherwise", json!({ "id": "7" })),
        ("one written otherwise deep inside", json!({ "parents": [pet(json!({ "name": 1 }))] })),
        ("one object for a list", json!({ "parents": pet(json!({})) })),
        ("null where it may be left out, but not null", json!({ "parents": null, "age": null })),
    ];
    for (what, change) in cases {
        let (typed, dynamic) = both(&pet(change)).await;
        assert_eq!(normal(&typed.data), normal(&dynamic.data), "{what}");
    }
}

#[tokio::test]
async fn they_differ_where_a_constraint_or_an_enum_is_broken() {
    // Both keep what came; by id there is a warning.
    let cases = [
        ("an enum's unknown value", json!({ "kind": "newt" })),
        ("a bound", json!({ "age": -1.0 })),
        ("a length", json!({ "name": "" })),
    ];
    for (what, answer) in cases {
        let (typed, dynamic) = both(&pet(answer.clone())).await;
        assert_eq!(normal(&typed.data), normal(&pet(answer.clone())), "{what}");
        assert_eq!(normal(&dynamic.data), normal(&pet(answer)), "{what}");
        assert_eq!((typed.warnings.len(), dynamic.warnings.len()), (0, 1), "{what}");
    }
}

#[tokio::test]
async fn what_does_not_fit_is_an_error_of_a_type_and_kept_by_id() {
    let cases = [
        ("a scalar of the wrong type", json!({ "id": "seven" }), "/id"),
        ("a wrong type deep inside", json!({ "parents": [pet(json!({ "name": [] }))] }), "/parents/0/name"),
        ("an object that is none", json!({ "home": { "lat": "north" } }), "/home/lat"),
        ("a list that is none", json!({ "parents": "none" }), "/parents"),
    ];
    for (what, change, place) in cases {
        let answer = pet(change);
        let registry = answering(&answer);
        let error =
            registry.execute::<petshop::ShowPetById>(petshop::ShowPetByIdInput { pet_id: 7 }).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError, "{what}");
        assert_eq!((&error.details()["raw"], &error.details()["violations"][0]["pointer"]), (&answer, &json!(place)));
        let dynamic = registry.call("petshop.showPetById", json!({ "petId": 7 })).await.unwrap();
        assert_eq!(dynamic.data.pointer(place), answer.pointer(place), "{what}");
        assert_eq!(dynamic.warnings.iter().map(|warning| &*warning.pointer).collect::<Vec<_>>(), [place], "{what}");
    }
}

/// With every number a float, for 0 and 0.0 are the same.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.iter().map(normal).collect(),
        Value::Object(object) => object.iter().map(|(key, value)| (key.clone(), normal(value))).collect(),
        other => other.clone(),
    }
}

/// A document that is read at run time gives the operations that were generated from it: a type is run by either, and
/// none of them is taken for another version.
#[tokio::test]
async fn what_is_met_at_run_time_is_what_was_generated() {
    let mut options = ops_runtime::openapi::ReadOptions::new();
    options.namespace = Some("petshop".to_owned());
    let source = ops_runtime::openapi::FileSource::default();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openapi/petshop.yaml");
    let (api, _) = ops_runtime::openapi::load(path, &source, &options).unwrap();
    let registry = Registry::new();
    let pet = pet(json!({})).to_string();
    let handler = Handler::endpoint(Fixed(pet));
    let count = api.operations.len();
    registry.register_all(api.operations.into_iter().map(|spec| Registration::new(spec, handler.clone()))).unwrap();
    assert_eq!(petshop::operations().len(), count);
    for spec in petshop::operations() {
        let error = registry.register(Registration::new(*spec, handler.clone())).unwrap_err();
        assert_eq!(error, ops_runtime::registry::RegistryError::Duplicate { id: spec.id.clone().into_owned() });
    }
    let typed = registry.execute::<petshop::ShowPetById>(petshop::ShowPetByIdInput { pet_id: 7 }).await.unwrap();
    assert_eq!(typed.data.name, "Rex");
}
