//! Schemas and the types that they become.
#![allow(clippy::unwrap_used)]

use ops_codegen::{Generated, Generator};
use ops_runtime::spec::{Api, Definition, Definitions, OperationSpec};
use serde_json::{Value, json};

fn generate(definitions: Vec<(&str, Value)>, output: Value) -> Generated {
    let definitions = definitions.into_iter().map(|(name, schema)| Definition::from_value(name.to_owned(), schema));
    let mut operation = OperationSpec::query("test.op");
    operation.output = output.into();
    Generator::new().generate(&Api::new(Definitions::new(definitions.collect()), vec![operation]))
}

/// The output type of an operation with this schema.
fn output(schema: Value) -> String {
    let source = generate(vec![("Pet", json!({ "type": "object", "properties": { "id": {} } }))], schema).source;
    let line = source.lines().find_map(|line| line.trim().strip_prefix("type Output = ")).unwrap();
    line.trim_end_matches(';').to_owned()
}

#[test]
fn schemas_become_types() {
    let pet = json!({ "$ref": "#/$defs/Pet" });
    for (schema, expected) in [
        (json!(true), "ops::Value"),
        (json!({}), "ops::Value"),
        (json!({ "description": "any" }), "ops::Value"),
        (json!({ "type": "null" }), "()"),
        (json!({ "type": "string" }), "String"),
        (json!({ "type": "string", "format": "date-time" }), "String"),
        (json!({ "type": "boolean" }), "bool"),
        (json!({ "type": "number", "format": "float" }), "f64"),
        (json!({ "type": "integer" }), "i64"),
        (json!({ "type": "integer", "format": "int32" }), "i32"),
        (json!({ "type": "integer", "format": "uint64" }), "u64"),
        (json!({ "type": "integer", "minimum": 0 }), "i64"),
        (json!({ "type": "integer", "minimum": 0, "maximum": 18_446_744_073_709_551_615_u64 }), "u64"),
        (json!({ "type": "integer", "minimum": -9.223_372_036_854_776e18 }), "i64"),
        (json!({ "type": ["integer", "number"] }), "f64"),
        (json!({ "type": ["string", "null"] }), "Option<String>"),
        (json!({ "type": "string", "nullable": true }), "Option<String>"),
        (json!({ "type": "array" }), "Vec<ops::Value>"),
        (json!({ "items": { "type": "string" } }), "Vec<String>"),
        (json!({ "prefixItems": [{ "type": "string" }, { "type": "integer" }] }), "(String, i64)"),
        (json!({ "prefixItems": [{ "type": "string" }], "items": false }), "(String,)"),
        (json!({ "prefixItems": [{ "type": "string" }], "items": { "type": "string" } }), "Vec<ops::Value>"),
        (json!({ "prefixItems": [{ "type": "string" }], "minItems": 0 }), "Vec<ops::Value>"),
        (json!({ "type": "object" }), "::std::collections::BTreeMap<String, ops::Value>"),
        (json!({ "additionalProperties": { "type": "integer" } }), "::std::collections::BTreeMap<String, i64>"),
        (json!({ "type": "object", "additionalProperties": false }), "OpOutput"),
        (json!({ "properties": { "a": {} } }), "OpOutput"),
        (json!({ "enum": ["a", "b"] }), "OpOutput"),
        (json!({ "enum": ["a", null] }), "Option<OpOutput>"),
        (json!({ "enum": [null] }), "()"),
        (json!({ "enum": [[1], {}] }), "ops::Value"),
        (json!({ "const": 1 }), "OpOutput"),
        (pet.clone(), "Pet"),
        (json!({ "$ref": "#/$defs/Pet", "description": "x" }), "Pet"),
        (json!({ "$ref": "#/$defs/Pet", "nullable": true }), "Option<Pet>"),
        (json!({ "$ref": "#/$defs/None" }), "ops::Value"),
        (json!({ "allOf": [pet] }), "Pet"),
        (json!({ "allOf": [pet, { "description": "x" }] }), "Pet"),
        (json!({ "allOf": [pet, { "properties": { "b": {} } }] }), "OpOutput"),
        (json!({ "allOf": [{ "type": "number" }, { "type": "integer" }] }), "i64"),
        (json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] }), "ops::Value"),
        (json!({ "oneOf": [pet] }), "Pet"),
        (json!({ "oneOf": [pet, { "type": "null" }] }), "Option<Pet>"),
        (json!({ "anyOf": [pet, pet] }), "Pet"),
        (json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] }), "OpOutput"),
        (json!({ "anyOf": [{ "type": "string", "format": "uri" }, { "type": "string" }] }), "String"),
        (json!({ "type": "string", "anyOf": [{ "maxLength": 1 }, { "pattern": "x" }] }), "String"),
        (json!({ "type": "string", "not": { "enum": ["a"] }, "if": {}, "then": {} }), "String"),
        (json!({ "type": "fish" }), "ops::Value"),
        (json!({ "type": "array", "items": { "type": "array", "items": pet } }), "Vec<Vec<Pet>>"),
    ] {
        assert_eq!(output(schema.clone()), expected, "{schema}");
    }
}

#[test]
fn what_cannot_be_typed_is_said() {
    for (schema, message) in [
        (json!({ "allOf": [{ "type": "string" }, { "type": "integer" }] }), "no value is both string and integer"),
        (json!({ "$ref": "#/$defs/None" }), "`#/$defs/None` refers to no definition"),
        (json!({ "type": "fish" }), "`fish` is no type of JSON Schema"),
        (json!({ "enum": [[1]] }), "`enum` holds values that are not scalars"),
    ] {
        let diagnostics = generate(Vec::new(), schema).diagnostics;
        assert!(diagnostics.iter().any(|diagnostic| diagnostic.message == message), "{message}: {diagnostics:?}");
    }
}

#[test]
fn hostile_schemas_cost_no_stack_and_little_time() {
    // A chain of aliases, of bases and of fields.
    let number = 3000;
    let name = |i: usize| format!("N{i}");
    let link = |i: usize| json!({ "$ref": format!("#/$defs/N{}", (i + 1) % number) });
    let chains: [&dyn Fn(usize) -> Value; 5] = [
        &link,
        &|i| json!({ "allOf": [link(i), { "properties": { name(i): {} } }] }),
        &|i| json!({ "type": "object", "properties": { "next": link(i) }, "required": ["next"] }),
        &|i| json!({ "anyOf": [link(i), { "type": "string" }] }),
        &|i| json!({ "type": "array", "items": link(i) }),
    ];
    for chain in chains {
        let names: Vec<String> = (0..number).map(name).collect();
        let definitions = names.iter().enumerate().map(|(i, name)| (name.as_str(), chain(i))).collect();
        generate(definitions, link(0));
    }
    // Each definition is twice the one before.
    let double = |i: usize| {
        let next = json!({ "$ref": format!("#/$defs/N{}", i + 1) });
        json!({ "allOf": [next, { "properties": { "x": next } }, { "oneOf": [next, { "required": [name(i)] }] }] })
    };
    let names: Vec<String> = (0..60).map(name).collect();
    let definitions = names.iter().enumerate().map(|(i, name)| (name.as_str(), double(i))).collect();
    generate(definitions, json!({ "$ref": "#/$defs/N0" }));
    // Deeper than anybody can print.
    let mut deep = json!({ "type": "string" });
    for _ in 0..2000 {
        deep = Value::Object([("items".to_owned(), deep)].into_iter().collect());
    }
    assert_eq!(output(deep), "ops::Value");
    // As deep as it can be.
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "items": deep });
    }
    let source = generate(Vec::new(), deep).source;
    assert!(source.contains("Vec<ops::Value>") && source.matches("Vec<").count() < 42, "rustc refuses more");
}
