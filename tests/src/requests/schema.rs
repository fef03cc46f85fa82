//! Schemas of a raw document as what a request may hold: made self-contained, so that values can be made of them and
//! another library can check these.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::document::{Document, Version, pointer};
use super::media::Media;

/// So deep is looked for `readOnly` and the like.
const DEPTH: usize = 12;

/// Keywords whose values are no schemas.
const DATA: &[&str] = &["const", "default", "enum", "example", "examples"];

/// The schema, with all that it refers to at the places where the document has it.
///
/// Properties that only answers have are required of nobody. In the older dialects `nullable` becomes a type.
///
/// Read with `Leniency::Meant`, schemas say what their authors meant: parts of an `allOf` do not forbid each other's
/// properties, a value may be of more than one variant of a `oneOf`, numbers in the `enum` of a string are text, and the
/// values in the `enum` of a list are those of its items.
pub(super) fn closed(document: &Document<'_>, schema: &Value, leniency: Leniency) -> Value {
    let mut closed = whole(document, schema);
    if leniency == Leniency::Meant {
        relent(&mut closed);
    }
    closed
}

/// How schemas are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leniency {
    /// To the letter.
    Letter,
    /// As they are meant.
    Meant,
}

fn relent(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|key, value| {
                !(["additionalProperties", "unevaluatedProperties"].contains(&key.as_str()) && *value == false)
            });
            if let Some(variants) = members.get("oneOf").filter(|_| !members.contains_key("anyOf")).cloned() {
                members.remove("oneOf");
                members.insert("anyOf".to_owned(), variants);
            }
            if members.get("type") == Some(&json!("string")) {
                let values = members.get_mut("enum").and_then(Value::as_array_mut).into_iter().flatten();
                values
                    .filter(|value| value.is_number() || value.is_boolean())
                    .for_each(|value| *value = json!(value.to_string()));
            }
            if members.get("type") == Some(&json!("array"))
                && let Some(values) = members.get("enum").filter(|values| !values[0].is_array()).cloned()
                && members.get("items").is_some_and(|items| items.get("enum").is_none() && items.get("$ref").is_none())
            {
                members.remove("enum");
                members["items"]["enum"] = values;
            }
            members.values_mut().for_each(relent);
        }
        Value::Array(items) => items.iter_mut().for_each(relent),
        _ => {}
    }
}

fn whole(document: &Document<'_>, schema: &Value) -> Value {
    let mut open = BTreeSet::new();
    let mut parts: BTreeMap<String, Value> = BTreeMap::new();
    let root = rewritten(document, schema, &mut open);
    while let Some(next) = open.pop_first() {
        if parts.contains_key(&next) {
            continue;
        }
        let part = document.root.pointer(&next).unwrap_or(&Value::Bool(true));
        let mut part = rewritten(document, part, &mut open);
        discriminate(document, &next, &mut part, &mut open);
        parts.insert(next, part);
    }
    let mut whole = json!({ "x-root": root });
    // What holds others goes before them.
    let mut parts: Vec<(String, Value)> = parts.into_iter().collect();
    parts.sort_by_key(|(pointer, _)| pointer.len());
    for (pointer, part) in parts {
        if whole.pointer(&pointer).is_none() {
            place(&mut whole, &pointer, part);
        }
    }
    whole["$ref"] = json!("#/x-root");
    whole
}

/// The schema proper of a closed one.
pub(super) fn root(closed: &Value) -> &Value {
    &closed["x-root"]
}

/// Names all that a schema with a discriminator stands for where others name it in their `allOf`.
fn discriminate(document: &Document<'_>, own: &str, part: &mut Value, open: &mut BTreeSet<String>) {
    if part["discriminator"]["propertyName"].is_null() || part.get("oneOf").is_some() || part.get("anyOf").is_some() {
        return;
    }
    let Some((place, _)) = own.rsplit_once('/') else { return };
    let refers = |schema: &Value| {
        let parts = schema["allOf"].as_array().into_iter().flatten();
        parts.filter_map(|part| part["$ref"].as_str()).filter_map(pointer).any(|pointer| pointer == own)
    };
    let given = part["discriminator"]["mapping"].as_object().cloned().unwrap_or_default();
    let mut mapping = Map::new();
    for (key, target) in &given {
        let text = target.as_str().unwrap_or_default();
        let target = pointer(text).unwrap_or_else(|| format!("{place}/{text}"));
        if document.root.pointer(&target).is_some() {
            mapping.insert(key.clone(), json!(format!("#{target}")));
        }
    }
    let others = document.root.pointer(place).and_then(Value::as_object).into_iter().flatten();
    for (name, _) in others.filter(|(_, schema)| refers(schema)) {
        let target = json!(format!("#{place}/{}", name.replace('~', "~0").replace('/', "~1")));
        if !mapping.values().any(|known| *known == target) {
            mapping.insert(name.clone(), target);
        }
    }
    open.extend(mapping.values().filter_map(Value::as_str).filter_map(pointer));
    part["discriminator"]["mapping"] = Value::Object(mapping);
}

fn place(whole: &mut Value, pointer: &str, part: Value) {
    let mut at = whole;
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let Some(members) = at.as_object_mut() else { return };
        at = members.entry(token).or_insert_with(|| Value::Object(Map::new()));
    }
    *at = part;
}

fn rewritten(document: &Document<'_>, schema: &Value, open: &mut BTreeSet<String>) -> Value {
    let Some(node) = schema.as_object() else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in node {
        let value = match (key.as_str(), value) {
            ("$ref", Value::String(reference)) => match target(document, reference) {
                Some(pointer) if document.root.pointer(&pointer).is_some() => {
                    let text = format!("#{pointer}");
                    open.insert(pointer);
                    json!(text)
                }
                // A reference that leads nowhere says nothing.
                _ => continue,
            },
            ("$dynamicRef", Value::String(reference)) if !node.contains_key("$ref") => {
                if let Some(pointer) = document.pointer(reference) {
                    out.insert("$ref".to_owned(), json!(format!("#{pointer}")));
                    open.insert(pointer);
                }
                continue;
            }
            // Anchors of the document mean nothing here.
            ("$id" | "$anchor" | "$dynamicAnchor" | "$dynamicRef" | "$schema" | "id", Value::String(_)) => continue,
            (
                "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
                Value::Object(members),
            ) => {
                // What is no schema says nothing.
                let members = members.iter().filter(|(_, schema)| schema.is_object() || schema.is_boolean());
                members.map(|(name, schema)| (name.clone(), rewritten(document, schema, open))).collect()
            }
            (key, value) if DATA.contains(&key) || key.starts_with("x-") => value.clone(),
            (_, Value::Object(_)) => rewritten(document, value, open),
            (_, Value::Array(list)) => list.iter().map(|value| rewritten(document, value, open)).collect(),
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    relax(document, schema, &mut out);
    if document.version < Version::V31 {
        modernise(&mut out);
    }
    Value::Object(out)
}

/// The pointer to the schema that a reference means. Some documents name a response or a request body for the schema in it.
fn target(document: &Document<'_>, reference: &str) -> Option<String> {
    const OF_SCHEMAS: [&str; 8] = ["$ref", "allOf", "anyOf", "enum", "items", "oneOf", "properties", "type"];
    let pointer = document.pointer(reference)?;
    let node = document.root.pointer(&pointer)?;
    if OF_SCHEMAS.iter().any(|key| node.get(*key).is_some()) {
        return Some(pointer);
    }
    if node["schema"].is_object() {
        return Some(format!("{pointer}/schema"));
    }
    let contents = node["content"].as_object().into_iter().flatten();
    let contents = contents.filter(|(kind, media)| kind.contains('/') && media["schema"].is_object());
    let kind = contents.map(|(kind, _)| kind).min_by_key(|kind| Media::of(kind) != Media::Json);
    match kind {
        Some(kind) => Some(format!("{pointer}/content/{}/schema", kind.replace('~', "~0").replace('/', "~1"))),
        None => Some(pointer),
    }
}

/// Takes from `required` what only answers have.
fn relax(document: &Document<'_>, schema: &Value, out: &mut Map<String, Value>) {
    let Some(required) = out.get_mut("required").and_then(Value::as_array_mut) else { return };
    required.retain(|name| {
        let is_hidden = |part: &Value| {
            let property = name.as_str().and_then(|name| part.get("properties")?.get(name));
            property.is_some_and(|property| is_read_only(document, property))
        };
        !any(document, schema, DEPTH, &is_hidden)
    });
}

/// Whether a schema says that only answers have it.
pub(super) fn is_read_only(document: &Document<'_>, schema: &Value) -> bool {
    any(document, schema, DEPTH, &|part| part["readOnly"] == true)
}

/// Whether something holds of a schema, of what it refers to or of a part of its `allOf`.
pub(super) fn any(document: &Document<'_>, schema: &Value, depth: usize, holds: &dyn Fn(&Value) -> bool) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    if holds(schema) {
        return true;
    }
    let target = schema.get("$ref").and_then(Value::as_str).and_then(|text| target(document, text));
    let target = target.and_then(|pointer| document.root.pointer(&pointer));
    let parts = schema.get("allOf").and_then(Value::as_array);
    target.into_iter().chain(parts.into_iter().flatten()).any(|part| any(document, part, depth, holds))
}

/// Says in the words of 2020-12 what the older dialects say in others.
fn modernise(out: &mut Map<String, Value>) {
    for (bound, exclusive) in [("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")] {
        match out.get(exclusive) {
            Some(Value::Bool(true)) => {
                let bound = out.remove(bound);
                out.remove(exclusive);
                bound.map(|bound| out.insert(exclusive.to_owned(), bound));
            }
            Some(Value::Bool(false)) => _ = out.remove(exclusive),
            _ => {}
        }
    }
    // A file is text in an input. Only Swagger 2.0 has the type, but documents of 3.0 have it, too.
    if out.get("type") == Some(&json!("file")) {
        out.insert("type".to_owned(), json!("string"));
    }
    if out.get("nullable") == Some(&Value::Bool(true)) {
        if let Some(Value::String(kind)) = out.get("type").cloned() {
            out.insert("type".to_owned(), json!([kind, "null"]));
        }
        if let Some(values) = out.get_mut("enum").and_then(Value::as_array_mut).filter(|v| !v.contains(&Value::Null)) {
            values.push(Value::Null);
        }
    }
}
