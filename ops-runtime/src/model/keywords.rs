//! The keywords of JSON Schema: which of them hold schemas, values, or words for people.
//!
//! All code that walks through schemas uses these, so that a new keyword is added once. The code that checks values
//! defines what a keyword requires of a value.

#[cfg(feature = "registry")]
use serde_json::Map;
use serde_json::Value;

/// What is below a keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// A schema.
    Schema,
    /// A list of schemas; for `items`, a schema or a list.
    Schemas,
    /// Schemas by name.
    Named,
    /// Definitions by name, which ask for nothing until they are referred to.
    Definitions,
    /// Any JSON, in which nothing is a schema.
    Value,
    /// Something else, such as a number or names.
    Other,
}

/// What a keyword is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    /// Words for people.
    Comment,
    /// How the schema, or a part of it, is referred to.
    Name,
    /// Something beside the values that there are: a default, the direction in which a property goes.
    Aside,
    /// A restriction that depends on more of a value than a type can say.
    Restriction,
    /// Which values there are.
    Values,
}

/// What is below a keyword, of any draft from 4 on and of OpenAPI, and what it is for.
fn known(keyword: &str) -> (Holds, Says) {
    match keyword {
        "$comment" | "deprecated" | "description" | "externalDocs" | "title" => (Holds::Other, Says::Comment),
        "example" | "examples" => (Holds::Value, Says::Comment),
        "$anchor" | "$id" | "$schema" => (Holds::Other, Says::Name),
        "$defs" | "definitions" => (Holds::Definitions, Says::Name),
        "default" => (Holds::Value, Says::Aside),
        "nullable" | "readOnly" | "writeOnly" | "xml" => (Holds::Other, Says::Aside),
        "else" | "if" | "not" | "then" | "unevaluatedProperties" => (Holds::Schema, Says::Restriction),
        "dependentSchemas" => (Holds::Named, Says::Restriction),
        "dependencies" | "maxProperties" | "minProperties" => (Holds::Other, Says::Restriction),
        // The names in it are no keywords.
        "dependentRequired" => (Holds::Value, Says::Restriction),
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "propertyNames"
        | "unevaluatedItems" => (Holds::Schema, Says::Values),
        "allOf" | "anyOf" | "items" | "oneOf" | "prefixItems" => (Holds::Schemas, Says::Values),
        "patternProperties" | "properties" => (Holds::Named, Says::Values),
        "const" | "enum" => (Holds::Value, Says::Values),
        _ => (Holds::Other, Says::Values),
    }
}

/// What is below a keyword.
pub(crate) fn holds(keyword: &str) -> Holds {
    known(keyword).0
}

/// True if a keyword is for people, and does not constrain values.
#[cfg(any(feature = "openapi", feature = "registry"))]
pub(crate) fn is_comment(keyword: &str) -> bool {
    known(keyword).1 == Says::Comment
}

/// True if the Rust type of a schema's values does not depend on a keyword, be it one of an extension.
pub fn is_beside_type(keyword: &str) -> bool {
    keyword.starts_with("x-") || known(keyword).1 != Says::Values
}

/// True if a schema accepts any value; it may have a description.
#[cfg(any(feature = "http-server", feature = "openapi"))]
pub(crate) fn says_nothing(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(schema) => schema.keys().all(|key| {
            matches!(key.as_str(), "title" | "description" | "example" | "examples" | "deprecated")
                || key.starts_with("x-")
        }),
        _ => false,
    }
}

/// The parts of a schema that all its values match but null: those of `allOf`, and the only variant beside null.
///
/// What these say of a property, such as `readOnly`, is said by the whole: both are how a reference is described.
pub fn certain(schema: &Value) -> impl Iterator<Item = &Value> {
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let only = move |keyword: &str| match schema.get(keyword)?.as_array()?.as_slice() {
        [only] => Some(only),
        [only, other] if is_null(other) => Some(only),
        [other, only] if is_null(other) => Some(only),
        _ => None,
    };
    parts.chain(["anyOf", "oneOf"].into_iter().filter_map(only))
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|kind| kind == "null") || schema.get("const").is_some_and(Value::is_null)
}

/// The schemas of the properties that the schema of an object does not declare.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn undeclared(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    ["additionalProperties", "unevaluatedProperties"].into_iter().filter_map(move |keyword| schema.get(keyword))
}

/// True if the schema of an object describes properties by patterns of their names.
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) fn has_patterns(schema: &Map<String, Value>) -> bool {
    schema.get("patternProperties").and_then(Value::as_object).is_some_and(|patterns| !patterns.is_empty())
}

/// The schemas right inside a schema that its values have to do with: not its definitions.
#[cfg(feature = "registry")]
pub(crate) fn applied(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    inside(schema, |holds| holds != Holds::Definitions)
}

/// The schemas right inside a schema, its definitions among them.
#[cfg(feature = "registry")]
pub(crate) fn all(schema: &Map<String, Value>) -> impl Iterator<Item = &Value> {
    inside(schema, |_| true)
}

#[cfg(feature = "registry")]
fn inside(schema: &Map<String, Value>, wanted: fn(Holds) -> bool) -> impl Iterator<Item = &Value> {
    schema.iter().flat_map(move |(keyword, value)| {
        let holds = holds(keyword);
        let (one, many, named) = match (holds, value) {
            _ if !wanted(holds) => (None, None, None),
            (Holds::Schema | Holds::Schemas, Value::Object(_) | Value::Bool(_)) => (Some(value), None, None),
            (Holds::Schemas, Value::Array(schemas)) => (None, Some(schemas), None),
            (Holds::Named | Holds::Definitions, Value::Object(schemas)) => (None, None, Some(schemas)),
            _ => (None, None, None),
        };
        one.into_iter().chain(many.into_iter().flatten()).chain(named.into_iter().flat_map(Map::values))
    })
}

#[cfg(all(test, feature = "registry"))]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn types_do_not_depend_on_all_keywords() {
        for keyword in ["title", "examples", "$id", "definitions", "default", "xml", "not", "minProperties", "x-any"] {
            assert!(is_beside_type(keyword), "{keyword}");
        }
        for keyword in ["type", "const", "items", "properties", "propertyNames", "minLength", "unknown", "X-any"] {
            assert!(!is_beside_type(keyword), "{keyword}");
        }
        assert!(is_comment("title") && !is_comment("default") && !is_comment("x-any"));
    }

    #[test]
    fn what_may_be_null_is_certain_otherwise() {
        let of = |schema: Value| certain(&schema).cloned().collect::<Vec<Value>>();
        let nothing = json!({ "type": "null" });
        assert_eq!(of(json!({ "allOf": [1, 2], "anyOf": [3, nothing], "oneOf": [nothing, 4] })), [1, 2, 3, 4]);
        assert_eq!(of(json!({ "anyOf": [1], "oneOf": [2, 3] })), [1]);
        assert_eq!(of(json!({ "anyOf": [1, { "const": null }], "oneOf": [1, 2, nothing] })), [1]);
        assert!(of(json!({ "anyOf": [], "allOf": 1 })).is_empty() && of(json!(true)).is_empty());
    }

    #[test]
    fn schemas_are_found_where_they_are() {
        let schema = json!({
            "$defs": { "A": 1 }, "properties": { "a": 2 }, "items": [{ "at": 3 }], "additionalItems": { "at": 4 },
            "not": true, "const": { "not": 5 }, "required": ["a"], "allOf": 6,
        });
        let of = |found: Vec<&Value>| Value::from_iter(found.into_iter().cloned());
        let object = schema.as_object().unwrap();
        assert_eq!(of(applied(object).collect()), json!([2, { "at": 3 }, { "at": 4 }, true]));
        assert_eq!(of(all(object).collect()), json!([1, 2, { "at": 3 }, { "at": 4 }, true]));
    }
}
