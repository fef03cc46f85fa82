//! The content type that is chosen by the value, where the input names none.

use super::*;
use crate::{Definition, Definitions};

const JSON: &str = "application/json";
const PARTS: &str = "multipart/form-data";

/// The content type in which a value goes, of JSON and another.
fn chosen(json: &Value, (kind, other): (&'static str, &Value), definitions: &Value, value: &Value) -> String {
    let mut binding = HttpBinding::new("POST", "/");
    binding.bodies = vec![HttpBody::new(JSON).with_variant(0), HttpBody::new(kind).with_variant(1)].into();
    let titled = |title: &str, schema: &Value| match schema {
        Value::Object(schema) if schema.contains_key("$ref") => json!({ "title": title, "$ref": schema["$ref"] }),
        schema => {
            let mut schema = schema.clone();
            schema["title"] = json!(title);
            schema
        }
    };
    let title = if kind == FORM { "Form" } else { "Multipart" };
    let mut spec = OperationSpec::mutation("t.t");
    spec.input = json!({ "properties": { "body": { "oneOf": [titled("Json", json), titled(title, other)] } } }).into();
    let definitions = definitions.as_object().unwrap();
    let definition = |(name, schema): (&String, &Value)| Definition::from_value(name.clone(), schema.clone());
    spec.definitions = Definitions::new(definitions.iter().map(definition).collect());
    let (sent, _) = sent_by(&spec, &binding, value);
    sent.split(';').next().unwrap().to_owned()
}

#[test]
fn json_that_takes_the_value_is_preferred() {
    let form = |names: &[&str]| {
        let properties: Map<String, Value> = names.iter().map(|name| ((*name).to_owned(), json!({}))).collect();
        json!({ "type": "object", "properties": properties })
    };
    let (ac, abc) = (form(&["a", "c"]), form(&["a", "b", "c"]));
    let properties = |schemas: Value| json!({ "type": "object", "required": ["id", "a"], "properties": schemas });
    let id = json!({ "Id": { "readOnly": true }, "Ids": { "allOf": [{ "$ref": "#/$defs/Id" }] } });
    let none = json!({});
    let table = [
        (properties(json!({ "id": { "$ref": "#/$defs/Id" }, "a": {} })), &ac, &id, json!({ "a": "1" })),
        (properties(json!({ "id": { "$ref": "#/$defs/Ids" }, "a": {} })), &ac, &id, json!({ "a": "1" })),
        (
            properties(json!({ "id": { "anyOf": [{ "$ref": "#/$defs/Id" }, { "type": "null" }] }, "a": {} })),
            &ac,
            &id,
            json!({ "a": "1" }),
        ),
        (
            json!({ "properties": { "a": {} }, "if": { "required": ["a"] }, "then": { "properties": { "b": {} } } }),
            &abc,
            &none,
            json!({ "a": 1, "b": 1 }),
        ),
        (
            json!({
                "properties": { "a": {} }, "unevaluatedProperties": false,
                "if": { "required": ["a"] }, "then": { "properties": { "b": {} } },
            }),
            &abc,
            &none,
            json!({ "a": 1, "b": 1 }),
        ),
        (
            json!({
                "properties": { "a": {} }, "unevaluatedProperties": false,
                "dependentSchemas": { "a": { "properties": { "b": {} } } },
            }),
            &abc,
            &none,
            json!({ "a": 1, "b": 1 }),
        ),
        // It is not known if the condition is met: the branch that takes the value may hold.
        (
            json!({
                "properties": { "a": {} }, "if": { "properties": { "a": { "minLength": 3 } } },
                "then": { "required": ["z"] }, "else": {},
            }),
            &abc,
            &none,
            json!({ "a": "xy", "b": 1 }),
        ),
        (json!({ "properties": { "a": {} }, "unevaluatedProperties": true }), &abc, &none, json!({ "a": 1, "b": 1 })),
        (json!({ "patternProperties": { "^b": {} }, "additionalProperties": false }), &abc, &none, json!({ "b": 1 })),
        (json!({ "type": "object", "nullable": true }), &abc, &none, json!(null)),
    ];
    for (json, form, definitions, value) in table {
        assert_eq!(chosen(&json, (FORM, form), definitions, &value), JSON, "{json} of {value}");
    }
    let json = json!({ "type": "object", "properties": { "a": {}, "o": { "type": "object" } } });
    let parts = json!({ "type": "object", "additionalProperties": true });
    let value = json!({ "a": 1, "extra": 1, "o": { "x": 1 } });
    assert_eq!(chosen(&json, (PARTS, &parts), &none, &value), JSON);
}

#[test]
fn a_value_that_json_refuses_goes_as_a_form() {
    let form = json!({ "type": "object", "properties": { "a": {}, "b": {} } });
    let sealed = json!({ "Sealed": { "properties": { "a": {} }, "additionalProperties": false } });
    let table = [
        (json!({ "required": ["id"], "properties": { "id": { "readOnly": false } } }), json!({ "b": 1 })),
        (json!({ "$ref": "#/$defs/Sealed" }), json!({ "a": 1, "b": 1 })),
        (json!({ "oneOf": [{ "$ref": "#/$defs/Sealed" }, { "type": "string" }] }), json!({ "b": 1 })),
        (json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false }), json!({ "b": 1 })),
        (json!({ "if": { "required": ["b"] }, "then": { "required": ["a"] } }), json!({ "b": 1 })),
        (json!({ "if": { "required": ["b"] }, "else": { "required": ["b"] } }), json!({ "a": 1 })),
        (
            json!({
                "if": { "properties": { "a": { "const": "x" } } }, "then": { "required": ["c"] },
                "else": { "required": ["b"] },
            }),
            json!({ "a": "y" }),
        ),
        (json!({ "dependentSchemas": { "a": { "required": ["b"] } } }), json!({ "a": 1 })),
        (json!({ "dependentRequired": { "a": ["b"] } }), json!({ "a": 1 })),
        (json!({ "not": { "required": ["a"] } }), json!({ "a": 1 })),
        (json!({ "properties": { "a": false } }), json!({ "a": 1 })),
    ];
    for (json, value) in table {
        assert_eq!(chosen(&json, (FORM, &form), &sealed, &value), FORM, "{json} of {value}");
    }
}

#[test]
fn a_part_that_json_refuses_goes_as_a_form() {
    let of = |kind: &str| json!({ "type": "object", "required": ["n"], "properties": { "n": { "type": kind } } });
    let table = [
        (json!({ "n": 1 }), JSON),
        (json!({ "n": "x" }), FORM),
        // Each schema refuses it: it may be a value that the document does not know.
        (json!({ "n": true }), JSON),
    ];
    for (value, expected) in table {
        assert_eq!(chosen(&of("integer"), (FORM, &of("string")), &json!({}), &value), expected, "{value}");
    }
}

#[test]
fn only_kinds_of_parts_are_compared() {
    let of = |name: &str, part: Value| json!({ "type": "object", "properties": { name: part } });
    let definitions = json!({
        "Base": { "properties": { "id": { "readOnly": true }, "name": {} } },
        "Closed": { "properties": { "a": {} }, "additionalProperties": false },
    });
    let listed = json!({ "type": "string", "enum": ["on", "off"] });
    let more = json!({ "allOf": [{ "$ref": "#/$defs/Closed" }, { "properties": { "b": {} } }] });
    let base = json!({ "allOf": [{ "$ref": "#/$defs/Base" }], "required": ["id", "name"] });
    let object = || json!({ "type": "object" });
    let table = [
        // The remote may know more values than the document.
        (of("state", listed.clone()), of("state", json!({ "type": "string" })), json!({ "state": "new" })),
        (of("state", json!({ "const": "on" })), of("state", json!({ "type": "string" })), json!({ "state": "new" })),
        // Another part of the schema describes the member, or only responses have it.
        (of("pet", more), of("pet", object()), json!({ "pet": { "a": 1, "b": 1 } })),
        (of("pet", base), of("pet", object()), json!({ "pet": { "name": 1 } })),
    ];
    for (json, form, value) in table {
        assert_eq!(chosen(&json, (FORM, &form), &definitions, &value), JSON, "{json} of {value}");
    }
    let list = of("state", json!({ "type": "array" }));
    assert_eq!(chosen(&list, (FORM, &of("state", listed)), &definitions, &json!({ "state": "new" })), FORM);
}

#[test]
fn a_description_that_is_too_large_to_tell_refuses_nothing() {
    let form = json!({ "type": "object", "properties": { "a": {}, "b": {} } });
    let chain = |length: usize, last: Value| {
        let mut definitions = json!({ "D0": last });
        for at in 1..=length {
            definitions[format!("D{at}")] = json!({ "allOf": [{ "$ref": format!("#/$defs/D{}", at - 1) }] });
        }
        definitions
    };
    let end = |length: usize| json!({ "$ref": format!("#/$defs/D{length}") });
    let takes = json!({ "type": "object", "properties": { "a": {} } });
    let refuses = json!({ "type": "object", "required": ["z"] });
    for (length, last, expected) in
        [(9, &takes, JSON), (9, &refuses, FORM), (100, &takes, JSON), (100, &refuses, JSON), (2000, &takes, JSON)]
    {
        let found = chosen(&end(length), (FORM, &form), &chain(length, last.clone()), &json!({ "a": 1 }));
        assert_eq!(found, expected, "{length} of {last}");
    }
    let round = json!({ "D": { "allOf": [{ "$ref": "#/$defs/D" }, { "$ref": "#/$defs/D" }] } });
    assert_eq!(chosen(&json!({ "$ref": "#/$defs/D" }), (FORM, &form), &round, &json!({ "a": 1 })), JSON);

    // Of many variants the last one takes the value.
    for count in [20, 260, 600] {
        let mut definitions = json!({});
        for at in 0..count {
            definitions[format!("D{at}")] = json!({ "type": "object", "required": [format!("r{at}")] });
        }
        let variants: Vec<Value> = (0..count).map(|at| json!({ "$ref": format!("#/$defs/D{at}") })).collect();
        let json = json!({ "oneOf": variants });
        let value = json!({ format!("r{}", count - 1): 1 });
        assert_eq!(chosen(&json, (FORM, &form), &definitions, &value), JSON, "{count}");
        let found = chosen(&json, (FORM, &form), &definitions, &json!({ "a": 1 }));
        assert_eq!(found, if count == 20 { FORM } else { JSON }, "{count}");
    }
    assert_eq!(chosen(&json!({ "$ref": "#/$defs/Gone" }), (FORM, &form), &json!({}), &json!({ "a": 1 })), JSON);
}

#[test]
fn a_large_value_is_not_looked_at_without_end() {
    let value: Value = (0..50_000).map(|at| (format!("m{at}"), json!(at))).collect::<Map<_, _>>().into();
    let sealed = |at: usize| json!({ "properties": { format!("p{at}"): {} }, "additionalProperties": false });
    let form = json!({ "type": "object", "additionalProperties": true });
    let nested = |depth: usize| (0..depth).fold(sealed(0), |inner, _| json!({ "allOf": [inner, sealed(1)] }));
    // So few looks tell that JSON does not take it; so many are too many to tell.
    for (count, expected) in [(8, FORM), (400, JSON)] {
        let json = json!({ "oneOf": (0..count).map(sealed).collect::<Vec<_>>() });
        assert_eq!(chosen(&json, (FORM, &form), &json!({}), &value), expected, "{count}");
    }
    assert_eq!(chosen(&nested(20), (FORM, &form), &json!({}), &value), FORM);
    // All of a small value is looked at.
    let json = json!({ "oneOf": (0..400).map(sealed).collect::<Vec<_>>() });
    assert_eq!(chosen(&json, (FORM, &form), &json!({}), &json!({ "a": 1, "b": 2 })), FORM);
}
