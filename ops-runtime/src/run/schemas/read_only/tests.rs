//! What is removed from requests, and what stays.

use serde_json::json;

use super::*;
use crate::{Definition, HttpBinding, HttpBody, Schema};

fn spec(body: Value, definitions: &[(&'static str, Value)]) -> OperationSpec {
    let http = HttpBinding::new("POST", "/").with_bodies(const { &[HttpBody::new("application/json")] });
    let mut spec = OperationSpec::mutation("t.t").with_http(http);
    let properties = json!({ "id": { "readOnly": true }, "body": body });
    spec.input = Schema::from(json!({ "type": "object", "properties": properties }));
    spec.definitions = Definitions::new(
        definitions.iter().map(|(name, schema)| Definition::from_value(*name, schema.clone())).collect(),
    );
    spec
}

fn left(body: Value, definitions: &[(&'static str, Value)], value: Value) -> Value {
    let mut input = json!({ "id": 1, "body": value });
    assert!(ReadOnly::of(&spec(body, definitions)).unwrap().remove(&mut input), "all of it was searched");
    assert_eq!(input["id"], 1, "a parameter stays");
    input["body"].take()
}

#[test]
fn properties_are_removed_at_any_depth() {
    let pet = json!({ "type": "object", "properties": {
        "id": { "readOnly": true, "type": "integer" },
        "made": { "$ref": "#/$defs/When" },
        "by": { "allOf": [{ "$ref": "#/$defs/When" }] },
        "seen": { "anyOf": [{ "$ref": "#/$defs/When" }, { "type": "null" }] },
        "name": { "type": "string" },
        "young": { "type": "array", "items": { "$ref": "#/$defs/a~1Pet" } },
        "by_name": { "additionalProperties": { "$ref": "#/$defs/a~1Pet" } },
        "pair": { "prefixItems": [{ "$ref": "#/$defs/a~1Pet" }], "items": {} },
    } });
    let definitions = [("a/Pet", pet), ("When", json!({ "type": "string", "readOnly": true }))];
    let value = json!({
        "name": "Rex", "id": 1, "made": "m", "by": "b", "seen": "s", "other": { "id": 2 },
        "young": [{ "id": 3, "name": "Max", "young": [{ "id": 4 }] }],
        "by_name": { "id": { "id": 5, "name": "n" } },
        "pair": [{ "id": 6 }, { "id": 7 }],
    });
    let expected = json!({
        "name": "Rex", "other": { "id": 2 }, "young": [{ "name": "Max", "young": [{}] }],
        "by_name": { "id": { "name": "n" } }, "pair": [{}, { "id": 7 }],
    });
    let left = left(json!({ "$ref": "#/$defs/a~1Pet" }), &definitions, value);
    assert_eq!(left.to_string(), expected.to_string(), "in the order in which it came");
}

#[test]
fn what_may_be_sent_stays() {
    let variant = |kind: &str, read_only: bool| {
        json!({ "type": "object", "required": ["kind"], "properties": {
        "kind": { "const": kind }, "id": { "readOnly": read_only },
    } })
    };
    let union = json!({ "oneOf": [variant("a", true), variant("b", false), { "type": "null" }] });
    let table = [
        (union.clone(), json!({ "kind": "a", "id": 1 }), json!({ "kind": "a" })),
        (union.clone(), json!({ "kind": "b", "id": 1 }), json!({ "kind": "b", "id": 1 })),
        (union.clone(), json!({ "kind": "c", "id": 1 }), json!({ "kind": "c", "id": 1 })),
        (union, json!(null), json!(null)),
        // One part that says so is enough where all parts hold.
        (
            json!({ "allOf": [{ "properties": { "id": { "readOnly": true } } }, { "properties": { "id": {} } }] }),
            json!({ "id": 1, "a": 2 }),
            json!({ "a": 2 }),
        ),
        (json!({ "properties": { "a": { "readOnly": true } } }), json!("text"), json!("text")),
        (json!({ "properties": { "a": { "readOnly": true } } }), json!([{ "a": 1 }]), json!([{ "a": 1 }])),
    ];
    for (schema, value, expected) in table {
        assert_eq!(left(schema.clone(), &[], value.clone()), expected, "{value} by {schema}");
    }
}

#[test]
fn schemas_that_extend_each_other_say_what_they_say() {
    // A family in a circle: a pet is one of its children, each of which is a pet.
    let names: Vec<&'static str> =
        (b'a'..=b't').map(|at| &*Box::leak(format!("Child-{}", char::from(at)).into_boxed_str())).collect();
    let reference = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
    let variants: Vec<Value> = names.iter().map(|name| reference(name)).collect();
    let mut definitions: Vec<(&'static str, Value)> = names
        .iter()
        .map(|name| {
            let own =
                json!({ "properties": { "kind": { "const": name }, "age": { "readOnly": name.ends_with('b') } } });
            (*name, json!({ "allOf": [reference("Pet"), own], "required": ["kind"] }))
        })
        .collect();
    definitions.push((
        "Pet",
        json!({ "oneOf": variants, "properties": { "id": { "readOnly": true }, "mother": reference("Pet") } }),
    ));
    let value = |kind: &str, mother: Value| json!({ "kind": kind, "id": 1, "age": 2, "mother": mother });
    let left = left(reference("Pet"), &definitions, value("Child-a", value("Child-b", json!(null))));
    assert_eq!(left, json!({ "kind": "Child-a", "age": 2, "mother": { "kind": "Child-b", "mother": null } }));
}

#[test]
fn an_operation_without_any_pays_nothing() {
    let circle = [("Circle", json!({ "properties": { "next": { "$ref": "#/$defs/Circle" } } }))];
    assert!(ReadOnly::of(&spec(json!({ "$ref": "#/$defs/Circle" }), &circle)).is_none());
    assert!(ReadOnly::of(&OperationSpec::query("t.local")).is_none());
    let circle = [(
        "Circle",
        json!({ "allOf": [{ "$ref": "#/$defs/Circle" }], "readOnly": true, "properties": { "a": { "$ref": "#/$defs/Circle" }, "b": {} } }),
    )];
    assert_eq!(
        left(json!({ "$ref": "#/$defs/Circle" }), &circle, json!({ "a": { "b": 1 }, "b": 1 })),
        json!({ "b": 1 })
    );
}

#[test]
fn properties_are_found_by_patterns_and_conditions() {
    let pet = json!({ "properties": { "id": { "readOnly": true }, "name": {} } });
    let by_kind = json!({
        "if": { "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
        "then": { "properties": { "id": { "readOnly": true } } },
        "else": { "properties": { "made": { "readOnly": true } } },
    });
    let table = [
        (
            json!({ "patternProperties": { "^x-": pet, "^y-": {} }, "additionalProperties": pet }),
            json!({ "x-rex": { "id": 1, "name": "Rex" }, "y-rex": { "id": 1 }, "rex": { "id": 1 } }),
            json!({ "x-rex": { "name": "Rex" }, "y-rex": { "id": 1 }, "rex": {} }),
        ),
        (json!({ "patternProperties": { "^_": { "readOnly": true } } }), json!({ "_a": 1, "a": 2 }), json!({ "a": 2 })),
        // What no engine reads is in no name.
        (json!({ "patternProperties": { "(": { "readOnly": true } } }), json!({ "(": 1 }), json!({ "(": 1 })),
        (
            json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": pet }),
            json!({ "a": { "id": 1 }, "b": { "id": 1 } }),
            json!({ "a": { "id": 1 }, "b": {} }),
        ),
        (by_kind.clone(), json!({ "kind": "a", "id": 1, "made": 2 }), json!({ "kind": "a", "made": 2 })),
        (by_kind, json!({ "kind": "b", "id": 1, "made": 2 }), json!({ "kind": "b", "id": 1 })),
        (json!({ "dependentSchemas": { "card": pet } }), json!({ "card": 1, "id": 1 }), json!({ "card": 1 })),
        (json!({ "dependentSchemas": { "card": pet } }), json!({ "id": 1 }), json!({ "id": 1 })),
    ];
    for (schema, value, expected) in table {
        assert_eq!(left(schema.clone(), &[], value.clone()), expected, "{value} by {schema}");
    }
}

#[test]
fn conditions_decide_only_if_they_are_read_whole() {
    let value = json!({ "kind": 1, "draft": true, "price": 5, "made": 2 });
    let (unpriced, unmade) =
        (json!({ "kind": 1, "draft": true, "made": 2 }), json!({ "kind": 1, "draft": true, "price": 5 }));
    let table = [
        (json!({ "not": { "required": ["draft"] } }), &value),
        (json!({ "anyOf": [{ "properties": { "kind": { "const": 2 } } }] }), &value),
        (json!({ "properties": { "draft": { "type": "string" } } }), &value),
        (json!({ "required": ["draft"], "minProperties": 9 }), &value),
        // What is read is not met, so the rest does not matter.
        (json!({ "required": ["sold"], "minProperties": 1 }), &unmade),
        (json!({ "allOf": [{ "properties": { "kind": { "enum": [2, 3] } } }] }), &unmade),
        (json!({ "properties": { "kind": { "type": "number", "const": 1.0 }, "sold": true } }), &unpriced),
        (json!({ "title": "Draft", "type": "object", "required": ["draft"] }), &unpriced),
        (json!(true), &unpriced),
    ];
    for (condition, expected) in table {
        let schema = json!({
            "if": condition,
            "then": { "properties": { "price": { "readOnly": true } } },
            "else": { "properties": { "made": { "readOnly": true } } },
        });
        assert_eq!(&left(schema, &[], value.clone()), expected, "{condition}");
    }
    // Nor do they say that the value is no variant.
    let unread = json!({ "not": { "required": ["draft"] } });
    let free = json!({ "properties": { "price": {} }, "if": unread, "then": { "required": ["sold"] } });
    let union = json!({ "oneOf": [free, { "properties": { "price": { "readOnly": true } } }] });
    assert_eq!(left(union, &[], value.clone()), value);
}

#[test]
fn patterns_are_searched_in_all_names_of_a_large_body() {
    let mut patterns: Map<String, Value> = (0..60).map(|at| (format!("^k{at}_"), json!({}))).collect();
    patterns.insert("^id".to_owned(), json!({ "readOnly": true }));
    let body = json!({ "patternProperties": patterns });
    let many: Map<String, Value> = (0..1_500).map(|at| (format!("id{at}"), json!(at))).collect();
    assert_eq!(left(body.clone(), &[], many.into()), json!({}));
    // Far more text of names than values is not searched to its end, and that is told.
    let mut input = json!({ "id": 1, "body": { ("x".repeat(640_000)): 1 } });
    assert!(!ReadOnly::of(&spec(body, &[])).unwrap().remove(&mut input));
}
