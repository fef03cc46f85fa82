//! A typed and a dynamic call of the same operation give the same data, but where a value breaks a constraint or an
//! enum: those stay in a type as they came.

use bytes::Bytes;
use ops_runtime::{
    BoxFuture, CallError, Context, Endpoint, Handler, HttpMeta, OperationSpec, Payload, PayloadStream, Registration,
    Registry, ResponseEnvelope,
};
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

/// What a typed and a dynamic call make of an answer.
async fn both(answer: &Value) -> (ResponseEnvelope<Value>, ResponseEnvelope<Value>) {
    let registry = Registry::new();
    let spec = petshop::operations().iter().find(|spec| spec.name() == "showPetById").unwrap();
    registry.register(Registration::new(*spec, Handler::endpoint(Fixed(answer.to_string())))).unwrap();
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
        ("a scalar of the wrong type", json!({ "id": "seven" })),
        ("a wrong type deep inside", json!({ "parents": [pet(json!({ "name": 1 }))] })),
        ("an object that is none", json!({ "home": { "lat": "north" } })),
        ("a list that is none", json!({ "parents": "none" })),
        ("null where it may be left out, but not null", json!({ "parents": null, "age": null })),
    ];
    for (what, change) in cases {
        let (typed, dynamic) = both(&pet(change)).await;
        assert_eq!(normal(&typed.data), normal(&dynamic.data), "{what}");
    }
}

#[tokio::test]
async fn they_differ_where_a_constraint_or_an_enum_is_broken() {
    // What is asked, what a type keeps, what a schema makes of it; only the latter is a repair, with a warning.
    let cases = [
        ("an enum's unknown value", json!({ "kind": "newt" }), json!({ "kind": "newt" }), json!({ "kind": "no" })),
        ("a bound", json!({ "age": -1.0 }), json!({ "age": -1.0 }), json!({ "age": 1.0 })),
        ("a length", json!({ "name": "" }), json!({ "name": "" }), json!({ "name": " " })),
    ];
    for (what, answer, kept, repaired) in cases {
        let (typed, dynamic) = both(&pet(answer)).await;
        assert_eq!(typed.data, pet(kept), "{what}");
        assert!(typed.warnings.is_empty(), "{what}");
        assert_eq!(normal(&dynamic.data), normal(&pet(repaired)), "{what}");
        assert!(!dynamic.warnings.is_empty(), "{what}");
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
