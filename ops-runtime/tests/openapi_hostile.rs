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
