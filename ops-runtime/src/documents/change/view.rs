//! Schemas as a comparison sees them: one kind of value at a time.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::model::keywords::{Holds, certain, holds, is_comment};
use crate::model::text::readable;
use crate::{Definitions, Schema, pointer};

/// The direction of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::documents) enum Side {
    /// From a caller that knows the old schema to a server that checks by the new one.
    Input,
    /// From a server that knows the new schema to a type of the old one.
    Output,
}

/// The schema as JSON; one that is not JSON accepts anything.
pub(in crate::documents) fn value(schema: &Schema) -> Cow<'_, Value> {
    schema.to_value().unwrap_or(Cow::Owned(Value::Bool(true)))
}

/// The definition that a `$ref` names.
pub(super) fn definition<'d>(definitions: &'d Definitions, name: &str) -> Option<Cow<'d, Value>> {
    Some(value(&definitions.get(name)?.schema))
}

/// The name of the definition that a schema is, if it says nothing else; also as the only part of `allOf`.
pub(super) fn reference(schema: &Value) -> Option<Cow<'_, str>> {
    let node = schema.as_object()?;
    let is_alone = |wanted: &str| node.keys().all(|key| key == wanted || is_annotation(key));
    if let Some(name) = node.get("$ref").and_then(Value::as_str) {
        return is_alone("$ref").then(|| pointer::definition(name))?;
    }
    let parts = node.get("allOf").and_then(Value::as_array).filter(|_| is_alone("allOf"))?;
    let mut parts = parts.iter().filter(|part| !is_any(part));
    match (parts.next(), parts.next()) {
        (Some(only), None) if only.get("$ref").is_some() => reference(only),
        _ => None,
    }
}

/// The schema, or that of the definition that it is. A reference to nowhere, or in a circle, accepts anything.
pub(super) fn resolve<'v>(definitions: &'v Definitions, schema: &'v Value) -> Cow<'v, Value> {
    let mut resolved = Cow::Borrowed(schema);
    for _ in 0..HOPS {
        let Some(name) = reference(&resolved).map(Cow::into_owned) else { return resolved };
        match definition(definitions, &name) {
            Some(target) => resolved = target,
            None => break,
        }
    }
    if reference(&resolved).is_none() { resolved } else { Cow::Owned(Value::Bool(true)) }
}

/// True if a property has a mark such as `readOnly`, by itself or by a schema that it refers to, null aside.
pub(super) fn is_marked(schema: &Value, mark: &str, definitions: &Definitions) -> bool {
    let says = |schema: &Value| schema.get(mark) == Some(&Value::Bool(true));
    let resolved = resolve(definitions, schema);
    let mut parts = certain(&resolved).take(HOPS);
    says(schema) || says(&resolved) || parts.any(|part| says(part) || says(&resolve(definitions, part)))
}

/// How many values there are in a schema.
pub(in crate::documents) fn weight(schema: &Value) -> usize {
    let mut count = 0;
    let mut open = vec![schema];
    while let Some(value) = open.pop() {
        count += 1;
        match value {
            Value::Object(node) => open.extend(node.values()),
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    count
}

/// How many references in a row are followed.
const HOPS: usize = 16;

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
    "patternProperties",
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
    // Of extensions there are the names and descriptions of the values of an `enum`.
    is_comment(key)
        || matches!(key, "default" | "discriminator" | "readOnly" | "writeOnly")
        || key.starts_with("x-enum-")
}

/// True if a schema accepts everything.
pub(super) fn is_any(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(node) => node.keys().all(|key| is_annotation(key)),
        _ => true,
    }
}

pub(super) fn is_known(key: &str) -> bool {
    KNOWN.contains(&key)
}

/// The members that can only be equal or different.
pub(super) fn rest(node: &Map<String, Value>, side: Side) -> Map<String, Value> {
    let is_seen = |key: &str| is_known(key) || is_annotation(key) || side == Side::Output && UNTYPED.contains(&key);
    node.iter().filter(|(key, _)| !is_seen(key)).map(|(key, value)| (key.clone(), value.clone())).collect()
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
                    if let Some(name) = node.get("$ref").and_then(Value::as_str).and_then(pointer::definition)
                        && seen.insert(name.clone().into_owned())
                    {
                        match (definition(old_table, &name), definition(new_table, &name)) {
                            (Some(old), Some(new)) => pairs.push((old.into_owned(), new.into_owned())),
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
    let inner = match resolve(definitions, &variant).as_ref() {
        Value::Object(node) if depth < NESTED && *room > 0 => {
            union(node).map(<[Value]>::to_vec).or_else(|| variants(node))
        }
        _ => None,
    };
    match inner.filter(|inner| inner.len() > 1) {
        Some(inner) => inner.into_iter().flat_map(|inner| expanded(inner, definitions, depth + 1, room)).collect(),
        None => vec![variant],
    }
}

/// The variants of a `oneOf` that a variant is, or refers to. `None` if it has a discriminator, which selects one of them.
pub(super) fn exclusive(variant: &Value, definitions: &Definitions) -> Option<Vec<Value>> {
    let resolved = resolve(definitions, variant);
    let node = resolved.as_object().filter(|node| node.contains_key("oneOf") && !node.contains_key("discriminator"))?;
    union(node).filter(|inner| inner.len() > 1).map(<[Value]>::to_vec)
}

/// The variants of a schema that is nothing but a union.
fn union(node: &Map<String, Value>) -> Option<&[Value]> {
    let is_alone = |wanted: &str| node.keys().all(|key| key == wanted || is_annotation(key));
    let key = ["anyOf", "oneOf"].into_iter().find(|key| node.contains_key(*key) && is_alone(key))?;
    node.get(key).and_then(Value::as_array).map(Vec::as_slice)
}

/// What tells a variant from others: its name, or else its text without words for people.
pub(super) fn label(variant: &Value) -> String {
    reference(variant).map_or_else(|| plain(variant).to_string(), |name| format!("#{name}"))
}

/// The kind of a variant, and the properties that have one value.
///
/// `None` if it is an object that no property tells from others.
pub(super) fn tag(variant: &Value, definitions: &Definitions) -> Option<String> {
    let resolved = resolve(definitions, variant);
    let node = resolved.as_object()?;
    let mut tag = kind(node).to_owned();
    if tag != "object" && tag != "any" {
        return Some(tag);
    }
    let properties = node.get("properties").and_then(Value::as_object)?;
    let constants = properties.iter().filter_map(|(name, property)| match values(property.as_object()?) {
        Some([value]) => Some(format!(" {name}={value}")),
        _ => None,
    });
    let plain = tag.len();
    tag.extend(constants);
    (tag.len() > plain).then_some(tag)
}

/// What a schema refers to, without the `null` that it may be, too.
pub(in crate::documents) fn not_null(schema: &Value, definitions: &Definitions) -> Value {
    let mut schema = resolve(definitions, schema).into_owned();
    for union in ["anyOf", "oneOf"] {
        let variants = schema.get(union).and_then(Value::as_array).into_iter().flatten();
        let mut others = variants.filter(|variant| variant.get("type").is_none_or(|kind| kind != "null"));
        if let (Some(one), None) = (others.next(), others.next()) {
            return resolve(definitions, one).into_owned();
        }
    }
    if let Some(kind) = schema.get_mut("type")
        && let Some(kinds) = kind.as_array_mut()
    {
        kinds.retain(|kind| kind != "null");
        if let ([_], Some(one)) = (kinds.as_slice(), kinds.first().cloned()) {
            *kind = one;
        }
    }
    schema
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

/// The kind of a value, as `type` names it.
pub(super) fn kind_of(value: &Value) -> &'static str {
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

/// The variants of a schema that is no union by its kinds; `None` if it has one kind.
pub(super) fn variants(node: &Map<String, Value>) -> Option<Vec<Value>> {
    let kinds: Vec<&str> = match (node.get("type"), values(node)) {
        (Some(Value::Array(kinds)), _) => kinds.iter().filter_map(Value::as_str).collect(),
        // Values of several kinds.
        (None, Some(values)) => {
            let mut seen = BTreeSet::new();
            values.iter().map(kind_of).filter(|kind| seen.insert(*kind)).collect()
        }
        _ => return None,
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
    Some(variants)
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
    let several = union(node).map(<[Value]>::to_vec).or_else(|| variants(node));
    match several.filter(|several| several.len() > 1) {
        Some(several) => several.iter().take(SHOWN).map(words).collect::<Vec<_>>().join(" or "),
        None => match kind(node) {
            "any" => "anything".to_owned(),
            kind => kind.to_owned(),
        },
    }
}
