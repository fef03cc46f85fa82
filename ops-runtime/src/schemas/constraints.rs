//! Whether a schema asks for more than a Rust type made from it can say.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::{Definitions, Schema};

/// Keywords that no Rust type expresses.
const CONSTRAINTS: &[&str] = &[
    "minLength",
    "maxLength",
    "pattern",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "not",
    "if",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// Keywords that hold one schema, and those that hold several.
const ONE: &[&str] = &["items", "additionalProperties", "unevaluatedProperties"];
const MANY: &[&str] = &["properties", "patternProperties", "allOf", "anyOf", "oneOf", "prefixItems", "items"];

/// Whether the schema, or one that it reaches, has a constraint.
pub(super) fn has_any(schema: &Schema, definitions: &Definitions) -> bool {
    // What can't be read is checked, so that the call says why.
    let Ok(root) = schema.self_contained(definitions) else { return true };
    let mut seen = BTreeSet::new();
    let mut stack = vec![&root];
    while let Some(Value::Object(node)) = stack.pop() {
        if CONSTRAINTS.iter().any(|keyword| node.contains_key(*keyword)) || bounds_narrow(node) {
            return true;
        }
        stack.extend(ONE.iter().filter_map(|keyword| node.get(*keyword)).filter(|value| value.is_object()));
        for schemas in MANY.iter().filter_map(|keyword| node.get(*keyword)) {
            match schemas {
                Value::Array(schemas) => stack.extend(schemas.iter().filter(|value| value.is_object())),
                Value::Object(schemas) => stack.extend(schemas.values().filter(|value| value.is_object())),
                _ => {}
            }
        }
        if let Some(name) = node.get("$ref").and_then(Value::as_str)
            && seen.insert(name)
            && let Some(target) = name.strip_prefix('#').and_then(|pointer| root.pointer(pointer))
            && target.is_object()
        {
            stack.push(target);
        }
    }
    false
}

/// Whether `minimum` or `maximum` says more than the integer type that `format` names.
fn bounds_narrow(node: &Map<String, Value>) -> bool {
    let (minimum, maximum) = match node.get("format").and_then(Value::as_str) {
        Some("uint8") => (0.0, f64::from(u8::MAX)),
        Some("uint16") => (0.0, f64::from(u16::MAX)),
        Some("uint32") => (0.0, f64::from(u32::MAX)),
        Some("uint64" | "uint" | "uint128") => (0.0, f64::INFINITY),
        Some("int8") => (f64::from(i8::MIN), f64::from(i8::MAX)),
        Some("int16") => (f64::from(i16::MIN), f64::from(i16::MAX)),
        Some("int32") => (f64::from(i32::MIN), f64::from(i32::MAX)),
        _ => (f64::NEG_INFINITY, f64::INFINITY),
    };
    let bound = |keyword: &str| node.get(keyword).and_then(Value::as_f64);
    bound("minimum").is_some_and(|bound| bound > minimum) || bound("maximum").is_some_and(|bound| bound < maximum)
}
