//! Schemas of any dialect, rewritten for a validator that knows only draft 2020-12.
//!
//! Specs come from documents and tools as well as from code, so they are read as in
//! [`Reading::Default`](crate::normalise::Reading::Default): `nullable` counts, `oneOf` is satisfied by any variant,
//! and tuples and bounds of older drafts are understood.

use crate::model::keywords::{Holds, holds};
use serde_json::{Map, Value, json};

/// Rewrites a schema and its subschemas.
pub(super) fn canonical(mut schema: Value) -> Value {
    rewrite(&mut schema, 0);
    schema
}

fn rewrite(schema: &mut Value, depth: usize) {
    // Deeper schemas were not parsed, and are not read.
    if depth > 256 {
        return;
    }
    let node = match schema {
        Value::Object(node) => node,
        Value::Array(schemas) => return schemas.iter_mut().for_each(|schema| rewrite(schema, depth + 1)),
        _ => return,
    };
    for (keyword, value) in node.iter_mut() {
        match (holds(keyword), value) {
            (Holds::Value, _) => {}
            (Holds::Named | Holds::Definitions, Value::Object(schemas)) => {
                schemas.values_mut().for_each(|schema| rewrite(schema, depth + 1));
            }
            (_, value) => rewrite(value, depth + 1),
        }
    }
    node.remove("$schema");
    reference(node);
    tuple(node);
    bound(node, "exclusiveMinimum", "minimum");
    bound(node, "exclusiveMaximum", "maximum");
    one_of(node);
    if node.remove("nullable") == Some(Value::Bool(true)) {
        nullable(schema);
    }
}

/// Escapes characters that are invalid in a URI: names of definitions are any text.
fn reference(node: &mut Map<String, Value>) {
    let Some(Value::String(reference)) = node.get_mut("$ref") else { return };
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?#%".contains(&byte);
    if reference.starts_with("#/") && !reference.bytes().all(legal) {
        let escape = |byte: u8| if legal(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
        *reference = reference.bytes().map(escape).collect();
    }
}

/// `items` with a list, of draft 7 and before.
fn tuple(node: &mut Map<String, Value>) {
    if node.get("items").is_some_and(Value::is_array)
        && let Some(items) = node.remove("items")
    {
        node.entry("prefixItems").or_insert(items);
        if let Some(rest) = node.remove("additionalItems") {
            node.insert("items".to_owned(), rest);
        }
    }
}

/// A boolean that makes the bound beside it exclusive, of draft 4.
fn bound(node: &mut Map<String, Value>, exclusive: &str, inclusive: &str) {
    if let Some(Value::Bool(excludes)) = node.get(exclusive) {
        let excludes = *excludes;
        node.remove(exclusive);
        if excludes && let Some(limit) = node.remove(inclusive) {
            node.insert(exclusive.to_owned(), limit);
        }
    }
}

fn one_of(node: &mut Map<String, Value>) {
    if let Some(variants) = node.remove("oneOf") {
        let (keyword, value) = if node.contains_key("anyOf") {
            let mut all = node.remove("allOf").unwrap_or_else(|| json!([]));
            if let Value::Array(all) = &mut all {
                all.push(json!({ "anyOf": variants }));
            }
            ("allOf", all)
        } else {
            ("anyOf", variants)
        };
        node.insert(keyword.to_owned(), value);
    }
}

fn nullable(schema: &mut Value) {
    let whole = schema.take();
    *schema = json!({ "anyOf": [{ "type": "null" }, whole] });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects_become_one() {
        let cases = [
            (
                json!({ "type": "string", "nullable": true }),
                json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }),
            ),
            (json!({ "type": "string", "nullable": false }), json!({ "type": "string" })),
            (json!({ "oneOf": [true, {}] }), json!({ "anyOf": [true, {}] })),
            (json!({ "oneOf": [{}], "anyOf": [true] }), json!({ "anyOf": [true], "allOf": [{ "anyOf": [{}] }] })),
            (json!({ "items": [true], "additionalItems": false }), json!({ "prefixItems": [true], "items": false })),
            (json!({ "minimum": 1, "exclusiveMinimum": true }), json!({ "exclusiveMinimum": 1 })),
            (json!({ "maximum": 1, "exclusiveMaximum": false }), json!({ "maximum": 1 })),
            (json!({ "$ref": "#/$defs/a b" }), json!({ "$ref": "#/$defs/a%20b" })),
            // A property is no keyword, and a value no schema.
            (
                json!({ "properties": { "nullable": { "oneOf": [] } } }),
                json!({ "properties": { "nullable": { "anyOf": [] } } }),
            ),
            (json!({ "const": { "nullable": true } }), json!({ "const": { "nullable": true } })),
        ];
        for (schema, expected) in cases {
            assert_eq!(canonical(schema.clone()), expected, "{schema}");
        }
    }
}
