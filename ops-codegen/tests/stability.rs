//! The same document gives the same bytes, and a longer one gives the same names.
#![allow(clippy::unwrap_used)]

use std::process::Command;

use ops_codegen::Generator;
use ops_runtime::openapi::{ReadOptions, read};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn source(document: &Value) -> String {
    let (api, _) = read(document, &ReadOptions::new()).unwrap();
    Generator::new().generate(&api).source
}

fn document() -> Value {
    serde_json::from_str(include_str!("golden/unions.json")).unwrap()
}

/// What the module declares, but for the lines that list it.
fn declarations(source: &str) -> Vec<&str> {
    source.lines().filter(|line| line.starts_with("pub ") || line.starts_with("    pub ")).collect()
}

#[test]
fn what_is_appended_changes_no_name() {
    let mut document = document();
    let before = source(&document);
    let answer = |name: &str| {
        let schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        json!({ "200": { "description": "x", "content": { "application/json": { "schema": schema } } } })
    };
    // Names that were given to hoisted types, to inputs and to operations, now wanted by definitions and operations.
    for name in ["ByConstGone", "AllInput", "All", "push", "PUSH", "all_input_body"] {
        document["components"]["schemas"][name] =
            json!({ "type": "object", "properties": { "of": { "type": "string" }, name: { "enum": ["a"] } } });
        document["paths"][format!("/{name}")] = json!({ "get": { "operationId": name, "responses": answer(name) } });
    }
    document["paths"]["/later"] = json!({ "get": { "operationId": "by const", "responses": answer("ByConst") } });
    let after = source(&document);
    let (before, after) = (declarations(&before), declarations(&after));
    assert!(after.len() > before.len() + 12);
    let mut rest = after.iter();
    for line in before {
        assert!(rest.any(|other| *other == line), "`{line}` is gone or out of order");
    }
}

/// The enum of an operation's errors is named with the operation, not after all schemas.
#[test]
fn the_errors_of_an_operation_keep_their_name() {
    let content =
        |schema: Value| json!({ "description": "x", "content": { "application/json": { "schema": schema } } });
    let text = || content(json!({ "type": "object", "properties": { "text": { "type": "string" } } }));
    let show = json!({ "operationId": "showPet", "responses": { "200": text(), "404": text() } });
    let mut document = json!({ "openapi": "3.1.0", "paths": { "/pet": { "get": show } } });
    assert!(source(&document).contains("pub enum ShowPetError {"));
    document["components"]["schemas"]["ShowPetError"] = json!({ "type": "object", "properties": { "why": {} } });
    let later = content(json!({ "$ref": "#/components/schemas/ShowPetError" }));
    document["paths"]["/why"] = json!({ "get": { "operationId": "why", "responses": { "200": later } } });
    let source = source(&document);
    assert!(source.contains("pub enum ShowPetError {") && source.contains("pub struct ShowPetError2 {"), "{source}");
}

/// What is made of the name of an operation has no `_` of its own, of which rustc would warn.
#[test]
fn no_underscore_is_in_a_name() {
    let json = |schema: Value| json!({ "application/json": { "schema": schema } });
    let of = |name: &str| {
        json!({
            "operationId": name,
            "requestBody": { "required": true, "content": json(json!({ "$ref": "#/components/schemas/SelfInput" })) },
            "responses": { "404": { "description": "x", "content": json(json!({ "type": "object" })) } },
        })
    };
    let input = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let document = json!({
        "openapi": "3.1.0",
        "paths": { "/ok": { "post": of("ok") }, "/self": { "post": of("self") } },
        "components": { "schemas": { "SelfInput": input } },
    });
    let source = source(&document);
    for line in [
        "pub struct Ok_;",
        "pub struct OkInput {",
        "pub enum OkError {",
        "pub struct Self_;",
        "pub struct SelfRequest {",
    ] {
        assert!(source.contains(line), "no `{line}` in {source}");
    }
    assert!(!source.contains("Ok_E") && !source.contains("Self_R"), "{source}");
}

#[test]
fn an_operation_is_named_before_the_schemas_that_it_reaches_alone() {
    for (ids, expected) in [
        (["getPet", "pet"], ["pub struct GetPet;", "pub struct Pet {", "pub struct Pet2;"]),
        (["pet", "getPet"], ["pub struct Pet;", "pub struct Pet2 {", "pub struct GetPet;"]),
    ] {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
        let mut document = json!({ "openapi": "3.1.0", "paths": {}, "components": { "schemas": { "Pet": schema } } });
        for id in ids {
            let schema = json!({ "$ref": "#/components/schemas/Pet" });
            let response = json!({ "description": "x", "content": { "application/json": { "schema": schema } } });
            let get = json!({ "operationId": id, "responses": { "200": response } });
            document["paths"][format!("/{id}")] = json!({ "get": get });
        }
        let source = source(&document);
        for line in expected {
            assert!(source.contains(line), "{ids:?}: no `{line}` in {source}");
        }
    }
}

#[test]
fn two_processes_print_the_same() {
    if std::env::var_os("OPS_PRINT").is_some() {
        print!("<<{}>>", source(&document()));
        return;
    }
    let print = || {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let command = command.args(["two_processes_print_the_same", "--exact", "--nocapture"]).env("OPS_PRINT", "1");
        let output = String::from_utf8(command.output().unwrap().stdout).unwrap();
        let start = output.find("<<").unwrap();
        output[start + 2..output.rfind(">>").unwrap()].to_owned()
    };
    let first = print();
    assert!(first.contains("pub enum ByConst"));
    assert!(first == print() && first == source(&document()));
}

#[test]
fn output_names_the_runtime_as_it_is_told() {
    let (api, _) = read(&document(), &ReadOptions::new()).unwrap();
    let source = Generator::new().with_runtime("crate::facade::ops").unwrap().generate(&api).source;
    assert!(source.contains("use crate::facade::ops::__generated as ops;") && !source.contains("ops_runtime"));
    // What means something else inside the module, where it is written a second time, is refused, too.
    for bad in ["", "a b", "x; fn main() {}", "Vec<u8>", "::", "super::ops", "self::ops", "crate::type"] {
        let error = Generator::new().with_runtime(bad).unwrap_err().to_string();
        assert!(error.ends_with("is no path to the runtime: begin with `crate::` or the name of a crate"), "{error}");
    }
}

/// Names that many places want, or that others are made into.
const NAMES: &[&str] =
    &["Pet", "pet", "PetKind", "pet_kind", "Op0", "Op0Input", "Op1Output", "op1_output", "Item", "N1"];

/// Schemas of few words, so that many are alike; references lead to the definitions of the first document.
fn schema() -> impl Strategy<Value = Value> {
    let property = prop::sample::select(&["kind", "name", "items", "Pet", "value"][..]);
    let leaf = prop_oneof![
        prop::sample::select(&["string", "integer", "number", "boolean"][..]).prop_map(|kind| json!({ "type": kind })),
        prop::sample::select(&[["a", "b"], ["b", "c"], ["kind", "Pet"]][..]).prop_map(|names| json!({ "enum": names })),
        (0..4).prop_map(|at| json!({ "$ref": format!("#/components/schemas/S{at}") })),
    ];
    leaf.prop_recursive(3, 12, 3, move |inner| {
        let properties = prop::collection::vec((property.clone(), inner.clone()), 1..4);
        prop_oneof![
            4 => (properties, any::<bool>()).prop_map(|(properties, is_required)| {
                let required: Vec<&str> = properties.iter().map(|(name, _)| *name).filter(|_| is_required).collect();
                let properties: Map<String, Value> =
                    properties.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
                json!({ "type": "object", "properties": properties, "required": required })
            }),
            1 => inner.clone().prop_map(|items| json!({ "type": "array", "items": items })),
            1 => inner.clone().prop_map(|values| json!({ "type": "object", "additionalProperties": values })),
            2 => (prop::sample::select(&["oneOf", "anyOf", "allOf"][..]), prop::collection::vec(inner.clone(), 2..4))
                .prop_map(|(keyword, members)| json!({ keyword: members })),
            1 => inner.prop_map(|schema| json!({ "title": "Pet kind", "allOf": [schema] })),
        ]
    })
}

/// An operation that takes one schema and gives another.
fn operation() -> impl Strategy<Value = (Option<&'static str>, Value, Value)> {
    (prop::option::of(prop::sample::select(NAMES)), schema(), schema())
}

fn add_path(document: &mut Value, path: &str, (name, input, output): &(Option<&str>, Value, Value)) {
    let content = |schema: &Value| json!({ "application/json": { "schema": schema } });
    let mut operation = json!({
        "parameters": [{ "name": "pet kind", "in": "query", "schema": { "enum": ["a", "b"] } }],
        "requestBody": { "content": content(input) },
        "responses": { "200": { "description": "x", "content": content(output) } },
    });
    if let Some(name) = name {
        operation["operationId"] = json!(name);
    }
    document["paths"][path] = json!({ "post": operation });
}

/// What the module declares, each with all that stands inside: fields, variants and their types.
fn blocks(source: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = source.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        if line.starts_with("pub struct ") || line.starts_with("pub enum ") || line.starts_with("pub type ") {
            let mut block = line.to_owned();
            if line.ends_with('{') {
                for line in lines.by_ref().take_while(|line| *line != "}") {
                    block.push_str(line);
                }
            }
            blocks.push(block);
        }
    }
    blocks
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is appended, a path or a schema, alike to what is there or not: all that was declared still is.
    #[test]
    fn nothing_appended_changes_what_was_declared(
        definitions in prop::collection::vec(schema(), 4),
        operations in prop::collection::vec(operation(), 1..4),
        appended in prop::collection::vec((prop::option::of(prop::sample::select(NAMES)), operation()), 1..4),
    ) {
        let mut document = json!({ "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "paths": {} });
        for (at, schema) in definitions.iter().enumerate() {
            document["components"]["schemas"][format!("S{at}")] = schema.clone();
        }
        for (at, operation) in operations.iter().enumerate() {
            add_path(&mut document, &format!("/op{at}"), operation);
        }
        let before = blocks(&source(&document));
        prop_assert!(!before.is_empty());
        for (at, (name, operation)) in appended.iter().enumerate() {
            // The same once more, under another path: all of its types are there already.
            if at == 0 {
                add_path(&mut document, "/again", &operations[0]);
            }
            add_path(&mut document, &format!("/later{at}"), operation);
            if let Some(name) = name {
                let (_, schema, other) = operation;
                document["components"]["schemas"][*name] = schema.clone();
                let reference = json!({ "$ref": format!("#/components/schemas/{name}") });
                add_path(&mut document, &format!("/of{at}"), &(None, reference, other.clone()));
            }
        }
        let after = blocks(&source(&document));
        let mut rest = after.iter();
        for block in &before {
            prop_assert!(rest.any(|other| other == block), "`{block}` is gone or out of order in {after:#?}");
        }
    }
}
