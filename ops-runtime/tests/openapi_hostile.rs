//! Documents that are small and would take long if each part of them were read as often as it is meant.
#![cfg(feature = "openapi")]

use std::time::{Duration, Instant};

use ops_runtime::openapi::{self, ReadOptions};
use serde_json::{Map, Value, json};

fn many(count: usize, part: impl Fn(usize) -> (String, Value)) -> Map<String, Value> {
    (0..count).map(part).collect()
}

#[track_caller]
fn is_read_quickly(document: &Value) {
    let start = Instant::now();
    openapi::read(document, &ReadOptions::new()).unwrap();
    // Long enough for a slow machine, and short beside what each of these takes without a bound.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
}

fn schemas(schemas: Map<String, Value>, paths: Map<String, Value>) -> Value {
    json!({ "openapi": "3.2.0", "paths": paths, "components": { "schemas": schemas } })
}

#[test]
fn families() {
    let to = |at: usize| json!({ "$ref": format!("#/components/schemas/S{at}") });
    let tag = json!({ "propertyName": "a" });
    let chain = many(1000, |at| (format!("S{at}"), json!({ "discriminator": tag, "allOf": [to(at + 1)] })));
    is_read_quickly(&schemas(chain, Map::new()));
    let wide = many(2000, |at| (format!("S{at}"), json!({ "discriminator": tag, "allOf": [to(0)] })));
    is_read_quickly(&schemas(wide, Map::new()));
    // One schema extends many bases, and is named many times.
    let mut bases = many(10_000, |at| (format!("S{at}"), json!({ "discriminator": tag })));
    let all: Vec<Value> = (0..10_000).map(to).collect();
    let circle = "#/components/schemas/Circle";
    bases.insert("Circle".to_owned(), json!({ "$ref": circle, "allOf": all }));
    bases.insert("Child".to_owned(), json!({ "allOf": vec![json!({ "$ref": circle }); 15_000] }));
    let mut document = schemas(bases, Map::new());
    is_read_quickly(&document);
    document["openapi"] = json!("3.0.4");
    is_read_quickly(&document);
}

/// A short reference may lead to a long name, and one long name may be that of a descendant of many.
#[test]
fn names_of_definitions_are_cut() {
    let long = "n".repeat(20_000);
    let to = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
    let base = json!({ "type": "object", "discriminator": { "propertyName": "a" } });
    let mut all = many(150, |at| (format!("S{at}"), json!({ "allOf": [to("A")] })));
    all.extend(many(150, |at| (format!("B{at}"), base.clone())));
    let parts: Vec<Value> = (0..150).map(|at| to(&format!("B{at}"))).collect();
    all.insert("Heir".to_owned(), json!({ "x-ms-discriminator-value": long, "allOf": parts }));
    all.insert("A".to_owned(), to(&long));
    let mapping = many(150, |at| (format!("v{at}"), json!("A")));
    let mapped = json!({ "type": "object", "discriminator": { "propertyName": "a", "mapping": mapping } });
    all.insert(long, mapped);
    all.insert("n".repeat(500), json!({ "type": "string" }));
    let (api, diagnostics) = openapi::read(&schemas(all, Map::new()), &ReadOptions::new()).unwrap();
    let told: Vec<_> = diagnostics.iter().map(|told| told.message.as_str()).collect();
    assert!(told.contains(&"the name of a schema has more than 500 bytes"), "{told:.300?}");
    let bytes: usize = api.definitions.as_slice().iter().map(|d| d.schema.to_value().unwrap().to_string().len()).sum();
    assert!(bytes < 1_000_000, "{bytes}");
    // A name that is kept is no other's.
    let kept = api.definitions.get(&"n".repeat(500)).unwrap().schema.to_value().unwrap().into_owned();
    assert_eq!(kept, json!({ "type": "string" }));
}

#[test]
fn parts_that_are_looked_into() {
    let leaf = json!({ "properties": { "a": {} } });
    let tree = (0..5).fold(leaf, |inner, _| json!({ "allOf": vec![inner; 8] }));
    let to = json!({ "$ref": "#/components/schemas/Tree" });
    let closed = json!({ "properties": { "a": {} }, "additionalProperties": false, "allOf": [to] });
    let mut all = many(4000, |at| (format!("S{at}"), closed.clone()));
    all.insert("Tree".to_owned(), tree);
    is_read_quickly(&schemas(all, Map::new()));
}

#[test]
fn events() {
    let to = |at: usize| json!({ "$ref": format!("#/components/schemas/S{at}") });
    let data = json!({ "contentMediaType": "application/json", "contentSchema": {} });
    let union = |at: usize| json!({ "oneOf": [to(at), to(at), to(at)], "properties": { "data": data, "event": {} } });
    let answer = json!({ "content": { "text/event-stream": { "itemSchema": to(0) } } });
    let paths = many(50, |at| (format!("/{at}"), json!({ "get": { "responses": { "200": answer } } })));
    is_read_quickly(&schemas(many(40, |at| (format!("S{at}"), union(at + 1))), paths));
}

/// Names of a document may be as long as it; what is told of it is not.
#[test]
fn names_in_messages_are_cut() {
    let long = "n".repeat(50_000);
    let parameter = |more: Value| {
        let mut parameter = json!({ "name": long, "in": "query", "schema": {} });
        parameter.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        parameter
    };
    let flow = json!({ "clientCredentials": { "tokenUrl": long } });
    let media = |name: &str| json!({ name: { "schema": { "type": "string" } } });
    let document = json!({
        "openapi": "3.2.0",
        "info": { "version": "1" },
        "servers": [{ "url": format!("{long}.example.com/{{{long}}}") }],
        "security": [{ &long: [] }],
        "paths": { "/a": {
            "post": {
                "operationId": "a",
                "parameters": [
                    parameter(json!({})),
                    parameter(json!({ "in": "header" })),
                    parameter(json!({ "in": "cookie", "style": long })),
                    parameter(json!({ "in": long })),
                    parameter(json!({ "in": "path", "schema": { "type": "object" } })),
                    parameter(json!({ "in": "query", "name": "c", "content": media(&format!("{long}/x")) })),
                ],
                "requestBody": { "content": { "multipart/form-data": {
                    "schema": { "type": "string" }, "encoding": { &long: { "headers": { "X": {} } } },
                } } },
                "responses": { &long: {}, "200": { "content": {
                    "application/json": {}, &long: {}, format!("{long}/x"): { "schema": false },
                } } },
            },
            &long: {},
        } },
        "components": {
            "securitySchemes": {
                format!("a{long}"): {},
                format!("b{long}"): { "type": "http" },
                format!("c{long}"): { "type": "apiKey" },
                format!("d{long}"): { "type": "oauth2", "flows": flow },
            },
            "schemas": {
                "A": { "type": long, "required": [long], "additionalProperties": false, &long: deep(30) },
                "B": { "$dynamicRef": format!("#{long}"), "$ref": format!("{long}.yaml") },
                &long: { "$ref": format!("#/components/schemas/{long}") },
            },
        },
    });
    let swagger = json!({
        "swagger": "2.0", "info": { "version": "1" }, "host": format!("http://{long}"),
        "paths": { "/a": { "post": { "produces": [long], "responses": { "200": { "schema": {} } }, "parameters": [
            { "name": "a", "in": "query", "type": "array", "collectionFormat": long },
        ] } } },
    });
    for (document, least) in [(document, 20), (swagger, 3)] {
        let (_, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
        assert!(diagnostics.len() >= least, "{diagnostics:#?}");
        for told in diagnostics {
            let help = told.help.unwrap_or_default();
            assert!(told.message.len() + help.len() < 1_000, "{} bytes: {:.300}", told.message.len(), told.message);
        }
    }
    let error = openapi::read(&json!({ "openapi": long }), &ReadOptions::new()).unwrap_err();
    assert!(error.message.len() < 300, "{:.300}", error.message);
}

fn deep(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[test]
fn lists() {
    let path = |operation: Value| json!({ "openapi": "3.1.0", "paths": { "/": { "post": operation } } });
    let types = many(2000, |at| (format!("a/b{at}+json"), json!({ "schema": { "const": at } })));
    is_read_quickly(&path(json!({ "requestBody": { "content": types } })));
    let parts = many(5000, |at| (format!("p{at}"), json!({ "contentMediaType": "image/png" })));
    let encoding = many(5000, |at| (format!("p{at}"), json!({ "style": "form" })));
    let body = json!({ "schema": { "properties": parts }, "encoding": encoding });
    is_read_quickly(&path(json!({ "requestBody": { "content": { "multipart/form-data": body } } })));
    let schemes = many(1000, |at| (format!("s{at}"), json!([])));
    let paths = many(1000, |at| (format!("/{at}"), json!({ "get": {} })));
    is_read_quickly(&json!({ "openapi": "3.1.0", "paths": paths, "security": [schemes] }));
    let parameters: Vec<Value> = (0..1000).map(|at| json!({ "name": format!("p{at}"), "in": "path" })).collect();
    let long: String = (0..1000).map(|at| format!("/{{p_{at}}}")).collect();
    is_read_quickly(&json!({ "openapi": "3.1.0", "paths": { long: { "get": { "parameters": parameters } } } }));
}

/// The base of a reference is relative to all `$id`s around it.
#[test]
fn identifiers_inside_of_each_other() {
    let references = many(10_000, |at| (format!("p{at}"), json!({ "$ref": "#/components/schemas/Leaf" })));
    let mut schema = json!({ "properties": references });
    for _ in 0..240 {
        let mut around = json!({ "$id": "d/x" });
        around["allOf"] = Value::Array(vec![schema]);
        schema = around;
    }
    let mut all = many(1, |_| ("Leaf".to_owned(), json!({ "type": "string" })));
    all.insert("Root".to_owned(), schema);
    is_read_quickly(&schemas(all, Map::new()));
}
