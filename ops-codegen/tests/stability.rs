//! The same document gives the same bytes, and a longer one gives the same names.
#![allow(clippy::unwrap_used)]

#[path = "../../tests/src/seeded.rs"]
mod seeded;

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

/// The first of these blocks that is gone, or out of order.
fn gone<'b>(before: &'b [String], after: &[String]) -> Option<&'b String> {
    let mut rest = after.iter();
    before.iter().find(|block| !rest.any(|other| other == *block))
}

fn two_operations(definitions: &[(&str, Value)]) -> Value {
    let mut document = json!({ "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "paths": {} });
    for (name, schema) in definitions {
        document["components"]["schemas"][*name] = schema.clone();
    }
    for at in 0..2 {
        let schema = json!({ "$ref": format!("#/components/schemas/S{at}") });
        let response = json!({ "description": "x", "content": { "application/json": { "schema": schema } } });
        document["paths"][format!("/op{at}")] =
            json!({ "get": { "operationId": format!("op{at}"), "responses": { "200": response } } });
    }
    document
}

/// A schema that is merged with the one around it is inside itself, at every level again.
#[test]
fn what_is_appended_does_not_change_a_schema_without_end() {
    let definitions = json!({
        "S0": { "type": "object", "properties": { "name": { "allOf": [
            { "$ref": "#/components/schemas/S3" },
            { "title": "Pet kind", "allOf": [{ "$ref": "#/components/schemas/S0" }] },
        ] } } },
        "S3": { "oneOf": [
            { "type": "object", "properties": { "items": { "type": "string" } } },
            { "type": "object", "additionalProperties": { "type": "string" } },
        ] },
    });
    let mut document = json!({ "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "paths": {} });
    document["components"]["schemas"] = definitions;
    let of = |inner: Value| json!({ "type": "object", "properties": { "kind": inner } });
    let operation = (None, json!({ "type": "string" }), of(of(json!({ "$ref": "#/components/schemas/S0" }))));
    add_path(&mut document, "/op0", &operation);
    let before = blocks(&source(&document));
    for block in [
        "pub struct S0 {    pub name: Option<S0Name>,",
        "pub enum S0Name {    WithItems(S0NameWithItems),    Variant(S0NameVariant),",
        "pub struct S0NameWithItems {    pub name: Option<Box<S0Name>>,    pub items: Option<String>,",
    ] {
        assert!(before.iter().any(|other| other == block), "no `{block}` in {before:#?}");
    }
    add_path(&mut document, "/again", &operation);
    let pet = json!({ "type": "object", "additionalProperties": of(json!({ "type": "string" })) });
    document["components"]["schemas"]["Pet"] = pet;
    add_path(
        &mut document,
        "/of0",
        &(None, json!({ "$ref": "#/components/schemas/Pet" }), json!({ "type": "integer" })),
    );
    let after = blocks(&source(&document));
    assert_eq!(gone(&before, &after), None, "{after:#?}");
}

/// Where the schemas become too many does not depend on what comes later.
#[test]
fn what_is_appended_does_not_change_where_the_schemas_are_too_many() {
    let object = |count: usize| {
        let properties: Map<String, Value> =
            (0..count).map(|at| (format!("p{at}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties })
    };
    // Each heir has all properties of its base.
    let heir =
        |at: usize| json!({ "allOf": [{ "$ref": "#/components/schemas/Base" }, { "required": [format!("p{at}")] }] });
    let heirs: Map<String, Value> = (0..60).map(|at| (format!("h{at}"), heir(at))).collect();
    let mut definitions = vec![
        ("S0", json!({ "type": "object", "properties": heirs })),
        ("Base", object(6000)),
        ("S1", json!({ "type": "object", "properties": { "last": { "type": "string" } } })),
    ];
    let told = |document: &Value| -> Vec<String> {
        let (api, _) = read(document, &ReadOptions::new()).unwrap();
        let told = Generator::new().generate(&api).diagnostics.into_iter();
        told.filter(|told| told.message == "the document's schemas are too many").map(|told| told.pointer).collect()
    };
    let document = two_operations(&definitions);
    let (before, ends) = (blocks(&source(&document)), told(&document));
    // The first heirs have all properties, and the last ones none.
    let has_end = |heir: &str| ends.iter().any(|at| at.starts_with(&format!("/$defs/S0/properties/{heir}")));
    assert!(!has_end("h0") && !has_end("h5/") && has_end("h50") && has_end("h59"), "{ends:#?}");
    // So large that more heirs would be typed if its size counted from the beginning.
    definitions[2].1["properties"]["more"] = object(20_000);
    let document = two_operations(&definitions);
    let after = blocks(&source(&document));
    assert_eq!(told(&document), ends);
    // The last schema itself has one property more.
    let earlier: Vec<String> = before.into_iter().filter(|block| !block.starts_with("pub struct S1 {")).collect();
    assert_eq!(gone(&earlier, &after), None);
}

/// What is sent has its defaults in its documentation alone, so it is no longer like what is only received.
#[test]
fn a_nested_type_that_is_sent_from_now_on_is_one_of_its_own() {
    let config = || {
        let size = json!({ "type": "integer", "default": 3 });
        json!({ "type": "object", "properties": { "config": { "type": "object", "properties": { "size": size } } } })
    };
    let mut document = two_operations(&[("S0", config()), ("S1", config())]);
    let declares = |document: &Value, block: &str| blocks(&source(document)).iter().any(|other| other == block);
    assert!(declares(&document, "pub struct S0 {    pub config: Option<S0Config>,"));
    assert!(declares(&document, "pub struct S1 {    pub config: Option<S0Config>,"));
    let sent = json!({ "$ref": "#/components/schemas/S1" });
    add_path(&mut document, "/sent", &(None, sent, json!({ "type": "string" })));
    for block in [
        "pub struct S0 {    pub config: Option<S0Config>,",
        "pub struct S0Config {    pub size: i64,",
        "pub struct S1 {    pub config: Option<S1Config>,",
        "pub struct S1Config {    pub size: Option<i64>,",
    ] {
        assert!(declares(&document, block), "{block}");
    }
}

/// What is received, too, has the properties that no request sends.
#[test]
fn a_nested_type_that_is_received_from_now_on_is_one_of_its_own() {
    let config = || {
        let properties = json!({ "size": { "type": "integer", "readOnly": true }, "unit": { "type": "string" } });
        json!({ "type": "object", "properties": { "config": { "type": "object", "properties": properties } } })
    };
    let mut document = json!({ "openapi": "3.1.0", "info": { "title": "x", "version": "1" }, "paths": {} });
    for name in ["S0", "S1"] {
        document["components"]["schemas"][name] = config();
        let sent = json!({ "$ref": format!("#/components/schemas/{name}") });
        add_path(&mut document, &format!("/send{name}"), &(None, sent, json!({ "type": "string" })));
    }
    let declares = |document: &Value, block: &str| blocks(&source(document)).iter().any(|other| other == block);
    for block in [
        "pub struct S0 {    pub config: Option<S0Config>,",
        "pub struct S1 {    pub config: Option<S0Config>,",
        "pub struct S0Config {    pub unit: Option<String>,",
    ] {
        assert!(declares(&document, block), "{block}");
    }
    let received = json!({ "$ref": "#/components/schemas/S1" });
    add_path(&mut document, "/received", &(None, json!({ "type": "string" }), received));
    for block in [
        "pub struct S0 {    pub config: Option<S0Config>,",
        "pub struct S0Config {    pub unit: Option<String>,",
        "pub struct S1 {    pub config: Option<S1Config>,",
        "pub struct S1Config {    pub size: Option<i64>,    pub unit: Option<String>,",
    ] {
        assert!(declares(&document, block), "{block}");
    }
}

proptest! {
    #![proptest_config(seeded::config(96))]

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
        let gone = gone(&before, &after);
        prop_assert!(gone.is_none(), "{gone:?} is gone or out of order in {after:#?}");
    }
}
