//! Schemas that say what they do not mean.
#![cfg(feature = "openapi")]

use ops_runtime::openapi::{self, ReadOptions};
use serde_json::{Value, json};

fn read(version: &str, schemas: &Value) -> (Value, Vec<String>) {
    let document = json!({ "openapi": version, "paths": {}, "components": { "schemas": schemas } });
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let definitions = api.definitions.as_slice().iter();
    let schemas = definitions.map(|d| (d.name.to_string(), d.schema.to_value().unwrap().into_owned())).collect();
    (schemas, diagnostics.iter().map(|d| format!("{} {}", d.pointer, d.message)).collect())
}

#[test]
fn values_that_the_type_refuses_are_read_as_they_are_meant() {
    let list = json!({ "type": "array", "enum": ["a", "b"], "items": { "type": "string" } });
    for (schema, expected, message) in [
        (
            json!({ "type": "string", "const": 2.0 }),
            json!({ "type": "string", "const": "2.0" }),
            "`const` of a string holds other values than text",
        ),
        (
            json!({ "type": "string", "const": true, "nullable": true }),
            json!({ "anyOf": [{ "type": "string", "const": "true" }, { "type": "null" }] }),
            "`const` of a string holds other values than text",
        ),
        (
            json!({ "type": "integer", "const": "-2" }),
            json!({ "type": "integer", "const": -2 }),
            "`const` of the type `integer` holds text",
        ),
        (
            json!({ "type": "string", "enum": [1, "b", true] }),
            json!({ "type": "string", "enum": ["1", "b", "true"] }),
            "`enum` of a string holds other values than text",
        ),
        (
            json!({ "type": "integer", "enum": ["1", "-2", "1.5", "x", 3] }),
            json!({ "type": "integer", "enum": [1, -2, "1.5", "x", 3] }),
            "`enum` of the type `integer` holds text",
        ),
        (
            json!({ "type": "boolean", "enum": ["true"], "nullable": true }),
            json!({ "type": ["boolean", "null"], "enum": [true, null] }),
            "`enum` of the type `boolean` holds text",
        ),
        (
            list.clone(),
            json!({ "type": "array", "items": { "type": "string", "enum": ["a", "b"] } }),
            "`enum` of a list holds no list",
        ),
        (
            json!({ "type": "array", "nullable": true, "enum": ["a"] }),
            json!({ "type": ["array", "null"], "items": { "enum": ["a"] } }),
            "`enum` of a list holds no list",
        ),
        (
            json!({ "type": "array", "enum": ["a"], "items": { "enum": ["b"] } }),
            json!({ "type": "array", "items": { "enum": ["b"] } }),
            "`enum` of a list holds no list",
        ),
    ] {
        let (schemas, diagnostics) = read("3.0.3", &json!({ "X": schema }));
        assert_eq!(schemas["X"], expected);
        let [told] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
        let keyword = message.split('`').nth(1).unwrap();
        assert_eq!(told, &format!("/components/schemas/X/{keyword} {message}"));
    }
    // What fits stays: lists, and values of a schema that names several types.
    for schema in [
        json!({ "type": "array", "enum": [["a"], ["b"]], "items": { "type": "string" } }),
        json!({ "type": ["string", "integer"], "enum": [1, "b"] }),
        json!({ "type": "array", "enum": [] }),
        json!({ "type": ["string", "integer"], "const": 1 }),
        json!({ "type": "string", "const": "1" }),
    ] {
        let (schemas, diagnostics) = read("3.1.0", &json!({ "X": schema }));
        assert_eq!((&schemas["X"], diagnostics), (&schema, Vec::new()));
    }
}

/// Taken literally, such a variant accepts anything, which leaves the others without a meaning.
#[test]
fn a_variant_that_is_only_nullable_is_null() {
    let to = |place: &str| json!({ "$ref": format!("{place}Other") });
    let (given, expected) = (to("#/components/schemas/"), to("#/$defs/"));
    for (schema, expected) in [
        (json!({ "anyOf": [given, { "nullable": true }] }), json!({ "anyOf": [expected, { "type": "null" }] })),
        (
            json!({ "oneOf": [given, { "nullable": true, "description": "None.", "x-y": 1 }], "nullable": true }),
            json!({ "oneOf": [expected, { "type": "null", "description": "None." }] }),
        ),
        (
            json!({ "type": "array", "items": { "anyOf": [given, { "nullable": true }] } }),
            json!({ "type": "array", "items": { "anyOf": [expected, { "type": "null" }] } }),
        ),
        // These do mean any value.
        (json!({ "anyOf": [given, {}] }), json!({ "anyOf": [expected, {}] })),
        (json!({ "anyOf": [{ "nullable": true }] }), json!({ "anyOf": [{}] })),
        (
            json!({ "oneOf": [{ "nullable": true, "title": "A" }, { "nullable": true, "title": "B" }] }),
            json!({ "oneOf": [{ "title": "A" }, { "title": "B" }] }),
        ),
        (json!({ "allOf": [given, { "nullable": true }] }), json!({ "allOf": [expected, {}] })),
    ] {
        let (schemas, diagnostics) = read("3.0.3", &json!({ "X": schema, "Other": { "type": "object" } }));
        assert_eq!((&schemas["X"], diagnostics), (&expected, Vec::new()), "{schema}");
    }
}

/// In YAML, the name of the type needs quotes, which people forget.
#[test]
fn a_type_that_is_null_is_meant_as_its_name() {
    let text = "
openapi: 3.1.0
paths: {}
components:
  schemas:
    Pet:
      properties:
        nickname: {type: [string, null]}
        parent: {anyOf: [{$ref: '#/components/schemas/Pet'}, {type: null, description: None.}]}
        only: {type: [null]}
        unsaid:
          type:
";
    let document = openapi::parse(text).unwrap();
    let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let pet = api.definitions.get("Pet").unwrap().schema.to_value().unwrap();
    assert_eq!(
        pet["properties"],
        json!({
            "nickname": { "type": ["string", "null"] },
            "parent": { "anyOf": [{ "$ref": "#/$defs/Pet" }, { "type": "null", "description": "None." }] },
            "only": { "type": "null" },
            "unsaid": {},
        })
    );
    let at = "/components/schemas/Pet/properties";
    let mut told: Vec<_> = diagnostics.iter().map(|told| format!("{} {}", told.pointer, told.message)).collect();
    told.sort();
    assert_eq!(
        told,
        [
            format!("{at}/nickname/type `type` has null, which is not text"),
            format!("{at}/only/type `type` has null, which is not text"),
            format!("{at}/parent/anyOf/1/type `type` has null, which is not text"),
            format!("{at}/unsaid/type `null` is not a type of JSON"),
        ]
    );
}

/// Two parameters of one name get others; what the document calls so keeps its own.
#[test]
fn a_made_up_name_of_a_parameter_is_no_other_parameter() {
    let parameter = |name: &str, place: &str| json!({ "name": name, "in": place, "required": true, "schema": {} });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/users/{id}/{id_header}": { "get": { "operationId": "orders", "responses": {}, "parameters": [
            parameter("id", "path"), parameter("id", "query"), parameter("id_query", "query"), parameter("id", "header"),
        ] } } },
    });
    let (api, _) = openapi::read(&document, &ReadOptions::new()).unwrap();
    let parameters = api.operations[0].http().unwrap().parameters.iter();
    let found: Vec<_> = parameters.map(|p| (&*p.property, &*p.name)).collect();
    assert_eq!(
        found,
        [
            ("id", "id"),
            ("id_query_2", "id"),
            ("id_query", "id_query"),
            ("id_header_2", "id"),
            ("id_header", "id_header"),
        ]
    );
}
