//! Schemas of any dialect, rewritten for a validator that knows only draft 2020-12.
//!
//! Specs come from documents and tools as well as from code, so they are read as in
//! [`Reading::Default`](crate::normalise::Reading::Default): `nullable` counts, `oneOf` is satisfied by any variant,
//! and tuples, bounds and dependencies of older drafts are understood.

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
    dependencies(node);
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
        nullable(node);
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

/// `dependencies`, of draft 7 and before: names, and schemas. Where a newer keyword is there, too, that counts.
fn dependencies(node: &mut Map<String, Value>) {
    let Some(Value::Object(dependencies)) = node.remove("dependencies") else { return };
    let (names, schemas): (Map<_, _>, Map<_, _>) = dependencies.into_iter().partition(|(_, value)| value.is_array());
    for (keyword, members) in [("dependentRequired", names), ("dependentSchemas", schemas)] {
        if !members.is_empty() {
            node.entry(keyword).or_insert(Value::Object(members));
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

/// The keywords that may refuse null. All others ask something of objects, lists, texts or numbers.
const ABOUT_NULL: &[&str] =
    &["type", "enum", "const", "not", "if", "then", "else", "allOf", "anyOf", "$ref", "$dynamicRef", "$recursiveRef"];

/// Accepts null as well. What references lead to, such as definitions, properties and variants, stays where it is.
///
/// References into other keywords, such as an `allOf`, lead nowhere afterwards; then our own reading checks the values.
fn nullable(node: &mut Map<String, Value>) {
    let mut own = ABOUT_NULL.iter().filter(|keyword| node.contains_key(**keyword));
    if let (Some(&"anyOf"), None) = (own.next(), own.next())
        && let Some(Value::Array(variants)) = node.get_mut("anyOf")
    {
        variants.push(json!({ "type": "null" }));
        return;
    }
    let mut other = Map::new();
    for keyword in ABOUT_NULL {
        other.extend(node.remove_entry(*keyword));
    }
    if !other.is_empty() {
        node.insert("anyOf".to_owned(), json!([{ "type": "null" }, other]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::normalise::Validator;

    #[test]
    fn references_lead_to_what_is_in_nullable_schemas() {
        let text = json!({ "type": "string", "not": { "const": "x" } });
        let validator = Validator::new(&canonical(json!({
            "nullable": true,
            "type": "object",
            "properties": {
                "a": { "$ref": "#/$defs/A" },
                "list": { "nullable": true, "type": "array", "items": text },
                "item": { "$ref": "#/properties/list/items" },
                "either": { "nullable": true, "anyOf": [text, { "type": "integer" }] },
                "first": { "$ref": "#/properties/either/anyOf/0" },
            },
            "$defs": { "A": text },
        })));
        assert!(!validator.leads_nowhere());
        for (value, conforms) in [
            (json!(null), true),
            (json!([]), false),
            (json!({ "a": "y", "list": null, "item": "y" }), true),
            (json!({ "a": "x" }), false),
            (json!({ "list": ["x"] }), false),
            (json!({ "list": "x" }), false),
            (json!({ "item": "x" }), false),
            (json!({ "either": null, "first": "y" }), true),
            (json!({ "either": 1, "first": null }), false),
            (json!({ "either": "x" }), false),
        ] {
            assert_eq!(validator.check(&value), conforms, "{value}");
        }
    }

    #[test]
    fn dialects_become_one() {
        let cases = [
            (
                json!({ "type": "string", "nullable": true }),
                json!({ "anyOf": [{ "type": "null" }, { "type": "string" }] }),
            ),
            (json!({ "type": "string", "nullable": false }), json!({ "type": "string" })),
            (json!({ "nullable": true, "maxLength": 2 }), json!({ "maxLength": 2 })),
            (
                json!({ "nullable": true, "$ref": "#/$defs/A", "$defs": { "A": {} }, "properties": { "a": {} } }),
                json!({
                    "$defs": { "A": {} }, "properties": { "a": {} },
                    "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/A" }],
                }),
            ),
            (json!({ "oneOf": [true, {}] }), json!({ "anyOf": [true, {}] })),
            (json!({ "oneOf": [{}], "anyOf": [true] }), json!({ "anyOf": [true], "allOf": [{ "anyOf": [{}] }] })),
            (json!({ "items": [true], "additionalItems": false }), json!({ "prefixItems": [true], "items": false })),
            (json!({ "minimum": 1, "exclusiveMinimum": true }), json!({ "exclusiveMinimum": 1 })),
            (json!({ "maximum": 1, "exclusiveMaximum": false }), json!({ "maximum": 1 })),
            (json!({ "$ref": "#/$defs/a b" }), json!({ "$ref": "#/$defs/a%20b" })),
            (
                json!({ "dependencies": { "a": ["b"], "oneOf": { "nullable": true, "type": "string" }, "c": false } }),
                json!({
                    "dependentRequired": { "a": ["b"] },
                    "dependentSchemas": { "c": false, "oneOf": { "anyOf": [{ "type": "null" }, { "type": "string" }] } },
                }),
            ),
            (
                json!({ "dependencies": { "a": ["b"] }, "dependentRequired": { "oneOf": ["c"] } }),
                json!({ "dependentRequired": { "oneOf": ["c"] } }),
            ),
            (
                json!({ "dependentRequired": { "$schema": ["b"], "items": ["a"], "nullable": ["a"], "oneOf": ["a"] } }),
                json!({ "dependentRequired": { "$schema": ["b"], "items": ["a"], "nullable": ["a"], "oneOf": ["a"] } }),
            ),
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
