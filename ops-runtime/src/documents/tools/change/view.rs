//! Schemas as a comparison sees them: one kind of value at a time.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::model::keywords::{Holds, holds, is_comment};
use crate::model::text::readable;
use crate::{Definitions, Schema, pointer};

/// The direction of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// From a caller that knows the old schema to a server that checks by the new one.
    Input,
    /// From a server that knows the new schema to a type of the old one.
    Output,
}

/// The schema as JSON; one that is not JSON accepts anything.
pub(super) fn value(schema: &Schema) -> Value {
    schema.to_value().map_or(Value::Bool(true), std::borrow::Cow::into_owned)
}

/// The definition that a `$ref` names.
pub(super) fn definition(definitions: &Definitions, reference: &str) -> Option<Value> {
    let name = pointer::definition(reference)?;
    Some(value(&definitions.get(&name)?.schema))
}

/// Members that are compared one by one, or that do not constrain values.
const KNOWN: &[&str] = &[
    "additionalProperties",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maxProperties",
    "maximum",
    "minItems",
    "minLength",
    "minProperties",
    "minimum",
    "multipleOf",
    "pattern",
    "prefixItems",
    "properties",
    "required",
    "type",
    "uniqueItems",
];

/// Members that types ignore.
const UNTYPED: &[&str] = &[
    "contains",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "if",
    "maxContains",
    "minContains",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// How many variants a message names.
const SHOWN: usize = 10;

/// How deep unions inside each other are followed.
const NESTED: usize = 8;

pub(super) fn is_annotation(key: &str) -> bool {
    is_comment(key) || matches!(key, "default" | "discriminator" | "readOnly" | "writeOnly")
}

/// True if a schema accepts everything.
pub(super) fn is_any(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(node) => node.keys().all(|key| is_annotation(key)),
        _ => true,
    }
}

/// True if the schema has members that can only be equal or different.
pub(super) fn is_opaque(node: &Map<String, Value>, side: Side) -> bool {
    let is_seen =
        |key: &str| KNOWN.contains(&key) || is_annotation(key) || side == Side::Output && UNTYPED.contains(&key);
    !node.keys().all(|key| is_seen(key))
}

/// True if two schemas have the same text, and so do the schemas that they refer to.
pub(super) fn same(
    old: &Map<String, Value>,
    new: &Map<String, Value>,
    old_table: &Definitions,
    new_table: &Definitions,
    budget: &mut usize,
) -> bool {
    let mut seen = BTreeSet::new();
    let mut pairs = vec![(Value::Object(old.clone()), Value::Object(new.clone()))];
    while let Some((old, new)) = pairs.pop() {
        if plain(&old) != plain(&new) {
            return false;
        }
        let mut stack = vec![&old];
        while let Some(value) = stack.pop() {
            // A schema that is too large to compare counts as changed.
            *budget = budget.saturating_sub(1);
            if *budget == 0 {
                return false;
            }
            match value {
                Value::Object(node) => {
                    if let Some(name) = node.get("$ref").and_then(Value::as_str)
                        && seen.insert(name.to_owned())
                    {
                        match (definition(old_table, name), definition(new_table, name)) {
                            (Some(old), Some(new)) => pairs.push((old, new)),
                            (None, None) => {}
                            _ => return false,
                        }
                    }
                    stack.extend(node.values());
                }
                Value::Array(items) => stack.extend(items),
                _ => {}
            }
        }
    }
    true
}

/// The schema without texts for people; it is no deeper than its reader allows.
fn plain(schema: &Value) -> Value {
    let all = |node: &Map<String, Value>| node.iter().map(|(name, schema)| (name.clone(), plain(schema))).collect();
    match schema {
        Value::Object(node) => {
            let kept = node.iter().filter(|(key, _)| !is_annotation(key));
            let kept = kept.map(|(key, value)| {
                let value = match (holds(key), value) {
                    (Holds::Value, value) => value.clone(),
                    (Holds::Named, Value::Object(named)) => Value::Object(all(named)),
                    (_, value) => plain(value),
                };
                (key.clone(), value)
            });
            Value::Object(kept.collect())
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        other => other.clone(),
    }
}

/// The variants of the union that a variant refers to, or the variant itself.
///
/// Variants for which there is no room stay as they are.
pub(super) fn expanded(variant: Value, definitions: &Definitions, depth: usize, room: &mut usize) -> Vec<Value> {
    *room = room.saturating_sub(1);
    let named = variant.get("$ref").and_then(Value::as_str).and_then(|name| definition(definitions, name));
    let inner = match named.as_ref().unwrap_or(&variant) {
        Value::Object(node) if depth < NESTED && *room > 0 => variants(node),
        _ => Vec::new(),
    };
    if inner.len() < 2 {
        return vec![variant];
    }
    inner.into_iter().flat_map(|variant| expanded(variant, definitions, depth + 1, room)).collect()
}

/// The kind of values that a schema of one kind describes.
pub(super) fn kind(node: &Map<String, Value>) -> &str {
    let has = |keys: &[&str]| keys.iter().any(|key| node.contains_key(*key));
    match node.get("type") {
        Some(Value::String(kind)) => kind,
        _ if has(&["properties", "required", "additionalProperties"]) => "object",
        _ if has(&["items", "prefixItems"]) => "array",
        _ => match values(node).and_then(|values| values.first()) {
            Some(value) => kind_of(value),
            None => "any",
        },
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The only values that a schema accepts, if it names them.
pub(super) fn values(node: &Map<String, Value>) -> Option<&[Value]> {
    match (node.get("const"), node.get("enum")) {
        (Some(value), _) => Some(std::slice::from_ref(value)),
        (None, Some(Value::Array(values))) => Some(values),
        _ => None,
    }
}

/// The variants of a schema, each of one kind if the schema names kinds.
pub(super) fn variants(node: &Map<String, Value>) -> Vec<Value> {
    for key in ["anyOf", "oneOf"] {
        if let Some(Value::Array(members)) = node.get(key)
            && node.keys().all(|other| other == key || is_annotation(other))
        {
            return members.clone();
        }
    }
    let kinds: Vec<&str> = match (node.get("type"), values(node)) {
        (Some(Value::Array(kinds)), _) => kinds.iter().filter_map(Value::as_str).collect(),
        // Values of several kinds.
        (None, Some(values)) => {
            let mut seen = BTreeSet::new();
            values.iter().map(kind_of).filter(|kind| seen.insert(*kind)).collect()
        }
        _ => return vec![Value::Object(node.clone())],
    };
    let mut variants: Vec<Value> = Vec::new();
    for kind in kinds {
        let mut variant = node.clone();
        variant.insert("type".to_owned(), kind.into());
        if let Some(Value::Array(values)) = variant.get_mut("enum") {
            values.retain(|value| kind_of(value) == kind || kind == "number" && value.is_number());
            if values.is_empty() {
                continue;
            }
        }
        let variant = Value::Object(variant);
        if !variants.contains(&variant) {
            variants.push(variant);
        }
    }
    variants
}

/// A schema in a few words, for messages.
pub(super) fn words(schema: &Value) -> String {
    let node = match schema {
        Value::Object(node) => node,
        Value::Bool(false) => return "nothing".to_owned(),
        _ => return "anything".to_owned(),
    };
    if let Some(name) = node.get("$ref").and_then(Value::as_str).and_then(|text| text.rsplit('/').next()) {
        return format!("`{}`", readable(name, 100));
    }
    if let Some([value]) = values(node) {
        return format!("`{}`", readable(&value.to_string(), 40));
    }
    match variants(node).as_slice() {
        [_] => match kind(node) {
            "any" => "anything".to_owned(),
            kind => kind.to_owned(),
        },
        several => several.iter().take(SHOWN).map(words).collect::<Vec<_>>().join(" or "),
    }
}
