//! Decides if a schema has constraints that a Rust type made from it cannot express.

use std::collections::{BTreeSet, HashSet};
use std::{iter, ptr};

use serde_json::{Map, Value};

use crate::model::keywords::applied;
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
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "not",
    "if",
    "exclusiveMinimum",
    "exclusiveMaximum",
];

/// Keywords that [`Reading::Default`](crate::normalise::Reading::Default) does not check, or may read otherwise.
const UNREAD: &[&str] = &[
    "not",
    "if",
    "contains",
    "minContains",
    "maxContains",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "propertyNames",
    "unevaluatedProperties",
    "unevaluatedItems",
    "$dynamicRef",
    "$recursiveRef",
    "$anchor",
    "$id",
];

/// How many references may lead to references.
const CHAIN: usize = 16;

/// Keywords that allow no other properties if they are false.
const CLOSE: &[&str] = &["additionalProperties", "unevaluatedProperties"];

/// The constraints of a schema beyond its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beyond {
    /// Nothing.
    Nothing,
    /// It has no other properties: a value of the type has none, but JSON that is read into it may.
    Closed,
    /// Values that a type made from it can hold and that it does not list: others of an enum, say.
    Unlisted,
    /// Constraints, which a value of the type may break.
    Constraints,
}

/// The constraints of the schema, and of those that it reaches, beyond its type.
pub(super) fn beyond(schema: &Schema, definitions: &Definitions) -> Beyond {
    // An unreadable schema is checked, so that the call reports why.
    let Ok(root) = schema.self_contained(definitions) else { return Beyond::Constraints };
    let mut beyond = Beyond::Nothing;
    let constrained = any(&root, |node| {
        if CLOSE.iter().any(|keyword| node.get(*keyword) == Some(&Value::Bool(false))) {
            beyond = Beyond::Closed;
        }
        CONSTRAINTS.iter().any(|keyword| node.contains_key(*keyword)) || bounds_differ(node)
    });
    if constrained || schema.is_made() && is_extended(&root) {
        return Beyond::Constraints;
    }
    match beyond {
        beyond if schema.is_made() || !is_narrower(&root) => beyond,
        Beyond::Closed => Beyond::Constraints,
        _ => Beyond::Unlisted,
    }
}

/// True if a Rust type that is made from a schema may hold more than the schema allows: other values than those of an enum,
/// an object that is none of several alternatives, or any name in a map.
fn is_narrower(root: &Value) -> bool {
    let mut tags = HashSet::new();
    any(root, |node| {
        tags.extend(tags_of(node).map(address));
        let lists = match node.get("enum").and_then(Value::as_array) {
            Some(values) if values.len() > 1 => true,
            values => (values.is_some() || node.contains_key("const")) && !tags.contains(&address(node)),
        };
        let has_patterns = node.get("patternProperties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
        lists || has_patterns || variants_of(node).any(|variant| reached(root, variant).any(requires_undeclared))
    })
}

/// The schemas of the properties that an object must have. One that has only one value is no field of the object's type.
fn tags_of(node: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let required = node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let properties = node.get("properties").and_then(Value::as_object);
    required.filter_map(move |name| properties?.get(name)?.as_object())
}

/// The schemas of the variants of a union.
fn variants_of(node: &Map<String, Value>) -> impl Iterator<Item = &Map<String, Value>> {
    let unions = ["anyOf", "oneOf"].into_iter().filter_map(move |keyword| node.get(keyword)?.as_array());
    unions.flatten().filter_map(Value::as_object)
}

fn address(node: &Map<String, Value>) -> usize {
    ptr::from_ref(node).addr()
}

/// A schema, and those that references lead to from it.
fn reached<'s>(root: &'s Value, node: &'s Map<String, Value>) -> impl Iterator<Item = &'s Map<String, Value>> {
    let next = move |node: &&'s Map<String, Value>| target(root, node.get("$ref")?.as_str()?)?.as_object();
    iter::successors(Some(node), next).take(CHAIN)
}

/// The schema that a reference of a self-contained schema leads to.
fn target<'s>(root: &'s Value, reference: &str) -> Option<&'s Value> {
    root.pointer(reference.strip_prefix('#')?).filter(|target| target.is_object())
}

/// True if a schema that a Rust type makes has been given keywords that ask for more than the type: by `extend`, say.
///
/// The values of a type that is an enum are listed in a definition or in the variants of a union, and the tag of a variant is one of
/// its properties. What a type requires, it declares beside that.
fn is_extended(root: &Value) -> bool {
    let mut variants = HashSet::new();
    any(root, |node| {
        variants.extend(variants_of(node).map(address));
        let may_have_tag = variants.contains(&address(node));
        let lists = |part: &Value| part.get("enum").is_some() || !may_have_tag && part.get("const").is_some();
        requires_undeclared(node) || parts(node).any(lists)
    })
}

/// The schemas of the members and items of a value.
fn parts(node: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    let named = ["properties", "patternProperties"].iter().filter_map(move |keyword| node.get(*keyword)?.as_object());
    let single = ["additionalProperties", "items"].iter().filter_map(move |keyword| node.get(*keyword));
    let listed = node.get("prefixItems").and_then(Value::as_array);
    named.flat_map(Map::values).chain(single).chain(listed.into_iter().flatten())
}

/// True if a schema requires a property that it does not declare, as alternatives do of which each requires another one.
fn requires_undeclared(node: &Map<String, Value>) -> bool {
    let required = node.get("required").and_then(Value::as_array);
    let declared = node.get("properties").and_then(Value::as_object);
    let is_declared = |name: &str| declared.is_some_and(|declared| declared.contains_key(name));
    required.into_iter().flatten().filter_map(Value::as_str).any(|name| !is_declared(name))
}

/// True if the schema, or one that it reaches, has a keyword that our own reading does not check, or lists objects or lists: it
/// does not check what stands beside them.
pub(super) fn is_beyond_our_reading(schema: &Schema, definitions: &Definitions) -> bool {
    let Ok(root) = schema.self_contained(definitions) else { return true };
    let is_nested = |value: &Value| value.is_object() || value.is_array();
    any(&root, |node| {
        UNREAD.iter().any(|keyword| node.contains_key(*keyword))
            || node.get("const").is_some_and(is_nested)
            || node.get("enum").and_then(Value::as_array).is_some_and(|values| values.iter().any(is_nested))
    })
}

/// True if the schema, or one that it reaches, has a discriminator with a mapping.
pub(super) fn has_mapping(schema: &Schema, definitions: &Definitions) -> bool {
    let Ok(root) = schema.self_contained(definitions) else { return true };
    let mapping = |node: &Map<String, Value>| node.get("discriminator")?.get("mapping")?.as_object().map(Map::len);
    any(&root, |node| mapping(node).is_some_and(|names| names > 0))
}

/// True if a condition holds for a node of a self-contained schema that its root reaches.
pub(super) fn any(root: &Value, mut holds: impl FnMut(&Map<String, Value>) -> bool) -> bool {
    let mut seen = BTreeSet::new();
    let mut stack = vec![root];
    while let Some(Value::Object(node)) = stack.pop() {
        if holds(node) {
            return true;
        }
        stack.extend(applied(node).filter(|schema| schema.is_object()));
        if let Some(name) = node.get("$ref").and_then(Value::as_str)
            && seen.insert(name)
            && let Some(target) = target(root, name)
        {
            stack.push(target);
        }
    }
    false
}

/// True if `minimum` or `maximum` is another than that of the integer type of `format`: narrower, or wider, which selects
/// a larger type.
fn bounds_differ(node: &Map<String, Value>) -> bool {
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
    let differs = |keyword: &str, own: f64| bound(keyword).is_some_and(|bound| bound != own);
    differs("minimum", minimum) || differs("maximum", maximum)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_a_schema_asks_for_beyond_its_type() {
        let of = |schema| beyond(&Schema::from(schema), &Definitions::default());
        let nested = |schema| json!({ "type": "object", "properties": { "a": { "items": schema } } });
        assert_eq!(of(nested(json!({ "type": "integer", "format": "uint8", "minimum": 0 }))), Beyond::Nothing);
        // A limit that is too large for the format makes the type larger than both.
        let large = json!({ "type": "integer", "format": "int32", "maximum": 4_294_967_295_u32 });
        assert_eq!(of(nested(large)), Beyond::Constraints);
        assert_eq!(of(nested(json!({ "type": "object", "additionalProperties": false }))), Beyond::Closed);
        assert_eq!(of(nested(json!({ "type": "string", "pattern": "^a" }))), Beyond::Constraints);
        let both = json!({ "additionalProperties": false, "properties": { "a": { "minimum": 1 } } });
        assert_eq!(of(both), Beyond::Constraints);
        assert_eq!(of(nested(json!({ "dependencies": { "a": ["b"] } }))), Beyond::Constraints);
        // A type that is made from a schema holds other values of an enum, too.
        let listed = json!({ "type": "string", "enum": ["a", "b"] });
        assert_eq!(of(nested(listed.clone())), Beyond::Unlisted);
        assert_eq!(of(json!({ "anyOf": [{ "required": ["a"] }, { "required": ["b"] }] })), Beyond::Unlisted);
        assert_eq!(of(json!({ "patternProperties": { "^a": {} } })), Beyond::Unlisted);
        let closed = json!({ "properties": { "a": listed }, "additionalProperties": false });
        assert_eq!(of(closed), Beyond::Constraints);
        let tag = json!({ "type": "object", "properties": { "kind": { "enum": ["a"] } }, "required": ["kind"] });
        assert_eq!(of(json!({ "oneOf": [tag, { "type": "null" }] })), Beyond::Nothing);
        let tag = |required: Value, kind: Value| {
            let definitions = json!({ "Kind": { "const": "a" } });
            json!({ "properties": { "kind": kind }, "required": required, "$defs": definitions })
        };
        assert_eq!(of(tag(json!(["kind"]), json!({ "const": "a" }))), Beyond::Nothing);
        // What may be absent is a field, and so is what the document has a name for.
        assert_eq!(of(tag(json!([]), json!({ "const": "a" }))), Beyond::Unlisted);
        assert_eq!(of(tag(json!([]), json!({ "enum": ["a"] }))), Beyond::Unlisted);
        assert_eq!(of(tag(json!(["kind"]), json!({ "$ref": "#/$defs/Kind" }))), Beyond::Unlisted);
        let needs = |name: &str| json!({ "required": [name] });
        let alternatives = json!([{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }]);
        let named = json!({ "anyOf": alternatives, "$defs": { "A": { "$ref": "#/$defs/B" }, "B": needs("b") } });
        assert_eq!(of(named), Beyond::Unlisted);
    }

    #[test]
    fn what_our_own_reading_leaves_out() {
        let is_beyond = |schema| is_beyond_our_reading(&Schema::from(schema), &Definitions::default());
        assert!(is_beyond(json!({ "items": { "not": {} } })));
        assert!(is_beyond(json!({ "properties": { "a": { "const": { "k": 1 } } } })));
        assert!(is_beyond(json!({ "items": { "enum": ["all", ["a"]] } })));
        assert!(!is_beyond(json!({ "items": { "enum": ["a", 1, null] }, "default": [["a"]] })));
    }

    #[test]
    fn which_schemas_list_the_names_of_variants() {
        let has = |schema| has_mapping(&Schema::from(schema), &Definitions::default());
        let pets = |mapping| {
            let discriminator = json!({ "propertyName": "kind", "mapping": mapping });
            let pet = json!({ "oneOf": [{ "$ref": "#/$defs/Cat" }], "discriminator": discriminator });
            json!({ "items": { "$ref": "#/$defs/Pet" }, "$defs": { "Pet": pet, "Cat": { "type": "object" } } })
        };
        assert!(has(pets(json!({ "c": "#/$defs/Cat" }))));
        assert!(!has(pets(json!({}))));
        assert!(!has(json!({ "oneOf": [{}, {}], "discriminator": { "propertyName": "kind" } })));
        assert!(!has(json!({ "properties": { "discriminator": { "mapping": { "c": "Cat" } } } })));
    }

    #[test]
    fn what_is_added_to_the_schema_of_a_type() {
        let of = |make: fn() -> Value| beyond(&Schema::make(make), &Definitions::default());
        // As they are made of enums, of tagged unions, and of optional and flattened ones.
        let types: [fn() -> Value; 3] = [
            || json!({ "type": "string", "enum": ["a", "b"] }),
            || {
                json!({
                    "$defs": {
                        "Level": { "type": "string", "enum": ["a", "b"] },
                        "Shape": { "oneOf": [
                            { "type": "object", "properties": { "kind": { "type": "string", "const": "a" } }, "required": ["kind"] },
                            { "type": "string", "const": "b" },
                            { "type": "string", "enum": ["c", "d"] },
                        ] },
                    },
                    "properties": {
                        "level": { "anyOf": [{ "$ref": "#/$defs/Level" }, { "type": "null" }] },
                        "shapes": { "type": "array", "items": { "$ref": "#/$defs/Shape" } },
                    },
                    "required": ["shapes"],
                })
            },
            || {
                json!({
                    "properties": { "a": {} },
                    "required": ["a"],
                    "anyOf": [{ "type": "object", "properties": { "b": {} }, "required": ["b"] }, { "type": "object" }],
                })
            },
        ];
        for make in types {
            assert_eq!(of(make), Beyond::Nothing, "{}", make());
        }
        let extended: [fn() -> Value; 4] = [
            || json!({ "properties": { "level": { "type": "string", "enum": ["a", "b"] } } }),
            || json!({ "properties": { "levels": { "items": { "type": "string", "enum": ["a", "b"] } } } }),
            || json!({ "properties": { "version": { "type": "integer", "const": 2 } } }),
            || {
                json!({
                    "properties": { "a": {}, "b": {} },
                    "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
                })
            },
        ];
        for make in extended {
            assert_eq!(of(make), Beyond::Constraints, "{}", make());
        }
    }
}
