//! The keywords of JSON Schema: which of them hold schemas, values, or words for people.
//!
//! Whoever walks through schemas asks here, so that a keyword that is added is added once. What a keyword asks of a value
//! is written where values are checked.

#[cfg(feature = "registry")]
use serde_json::{Map, Value};

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

/// What is below a keyword, of any draft from 4 on and of OpenAPI.
pub(crate) fn holds(keyword: &str) -> Holds {
    match keyword {
        "additionalItems"
        | "additionalProperties"
        | "contains"
        | "contentSchema"
        | "else"
        | "if"
        | "not"
        | "propertyNames"
        | "then"
        | "unevaluatedItems"
        | "unevaluatedProperties" => Holds::Schema,
        "allOf" | "anyOf" | "items" | "oneOf" | "prefixItems" => Holds::Schemas,
        "dependentSchemas" | "patternProperties" | "properties" => Holds::Named,
        "$defs" | "definitions" => Holds::Definitions,
        "const" | "default" | "enum" | "example" | "examples" => Holds::Value,
        _ => Holds::Other,
    }
}

/// Whether a keyword is for people, and says nothing of which values there are.
#[cfg(any(feature = "registry", feature = "mcp-schema"))]
pub(crate) fn is_comment(keyword: &str) -> bool {
    matches!(keyword, "$comment" | "deprecated" | "description" | "example" | "examples" | "externalDocs" | "title")
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
