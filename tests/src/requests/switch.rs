//! The boolean by which an operation chooses between one result and a stream, found in the raw document.

use serde_json::{Value, json};

use super::document::{Document, Operation, Place};
use super::schema;

/// The property by which an operation chooses between one result and a stream, if the document has one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Switch {
    None,
    Query(String),
    Body(String),
}

/// What such properties are called, case and punctuation aside.
const SWITCHES: &[&str] = &[
    "stream",
    "streaming",
    "isstream",
    "isstreaming",
    "enablestream",
    "enablestreaming",
    "usestream",
    "usestreaming",
    "streamresponse",
    "streamevents",
    "sse",
];

/// Where the document lets a caller choose between one result and a stream.
pub(super) fn switch(document: &Document<'_>, operation: &Operation) -> Switch {
    if !operation.has_twin() {
        return Switch::None;
    }
    for name in SWITCHES {
        let is_named = |own: &str| folded(own) == *name;
        let mut in_query = operation.parameters.iter().filter(|p| p.place == Place::Query && is_named(&p.name));
        if let Some(parameter) = in_query.find(|parameter| is_nullable_boolean(document, &parameter.schema)) {
            return Switch::Query(parameter.name.clone());
        }
        for content in &operation.contents {
            let mut names = Vec::new();
            property_names(document, &content.schema, 8, &mut names);
            let found = names.into_iter().filter(|own| is_named(own)).find(|own| {
                let schema = switch_schema(document, &content.schema, own, 8);
                schema.is_some_and(|(schema, _)| is_nullable_boolean(document, &schema))
            });
            if let Some(name) = found {
                return Switch::Body(name);
            }
        }
    }
    Switch::None
}

fn folded(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The schemas that a schema is made of: what it refers to, and the parts of its `allOf`, `anyOf` and `oneOf`.
fn members<'a>(document: &Document<'a>, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
    let target = schema.get("$ref").and_then(Value::as_str).and_then(super::document::pointer);
    let target = target.and_then(|pointer| document.root.pointer(&pointer));
    let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key)?.as_array());
    target.into_iter().chain(lists.flatten())
}

fn property_names<'a>(document: &Document<'a>, schema: &'a Value, depth: usize, names: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    names.extend(schema["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()));
    members(document, schema).for_each(|part| property_names(document, part, depth, names));
}

/// Whether a schema is a boolean, or a boolean or nothing.
fn is_nullable_boolean(document: &Document<'_>, schema: &Value) -> bool {
    let is_boolean = |part: &Value| match &part["type"] {
        Value::String(kind) => kind == "boolean",
        Value::Array(kinds) => kinds.contains(&json!("boolean")),
        _ => false,
    };
    let variants = ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
    let mut all = std::iter::once(schema).chain(variants);
    all.any(|part| schema::any(document, part, 8, &is_boolean))
}

/// The schema of a property of a body, and whether it is required.
pub(super) fn switch_schema(document: &Document<'_>, body: &Value, name: &str, depth: usize) -> Option<(Value, bool)> {
    let depth = depth.checked_sub(1)?;
    if let Some(switch) = body.get("properties").and_then(|properties| properties.get(name)) {
        let required = body["required"].as_array();
        return Some((switch.clone(), required.is_some_and(|required| required.contains(&json!(name)))));
    }
    members(document, body).find_map(|part| switch_schema(document, part, name, depth))
}

/// A schema without a property: what refers to others that have it is written out.
pub(super) fn without(document: &Document<'_>, schema: &Value, name: &str, depth: usize) -> Value {
    let Some(depth) = depth.checked_sub(1) else { return schema.clone() };
    let Some(node) = schema.as_object() else { return schema.clone() };
    if let Some(target) = node.get("$ref").and_then(Value::as_str).and_then(super::document::pointer)
        && let Some(target) = document.root.pointer(&target)
    {
        return without(document, target, name, depth);
    }
    let mut out = node.clone();
    if let Some(properties) = out.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove(name);
    }
    if let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|own| own != name);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        if let Some(parts) = out.get_mut(key).and_then(Value::as_array_mut) {
            parts.iter_mut().for_each(|part| *part = without(document, part, name, depth));
        }
    }
    Value::Object(out)
}
