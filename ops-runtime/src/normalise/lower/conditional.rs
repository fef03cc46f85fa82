//! What single schemas declare under a condition.

use serde_json::{Map, Value};

use crate::normalise::reference::Raw;

/// Keywords that ask for something only if something holds of the value, or of one of its items.
const CONDITIONS: [&str; 7] =
    ["contains", "dependencies", "dependentRequired", "dependentSchemas", "else", "if", "then"];

/// Keywords by which a schema may declare parts of a value.
const DECLARING: [&str; 15] = [
    "$dynamicRef",
    "$recursiveRef",
    "$ref",
    "additionalItems",
    "additionalProperties",
    "allOf",
    "anyOf",
    "items",
    "oneOf",
    "patternProperties",
    "prefixItems",
    "properties",
    "required",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// True if a schema has a condition, so that it means more than its reference.
pub(super) fn has_conditions(map: &Map<String, Value>) -> bool {
    CONDITIONS.iter().any(|keyword| map.contains_key(*keyword))
}

/// What is declared under the conditions of one schema.
#[derive(Default)]
pub(super) struct Conditional<'s> {
    pub(super) properties: Vec<(&'s str, Option<Raw<'s>>)>,
    pub(super) items: Vec<Raw<'s>>,
    pub(super) hides: bool,
}

impl<'s> Conditional<'s> {
    /// Notes what the conditions of a schema name, and returns the schemas that apply under them.
    pub(super) fn conditions(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>) -> Vec<Raw<'s>> {
        let mut below = Vec::new();
        for (keyword, schema) in map {
            match (keyword.as_str(), schema) {
                ("if" | "then" | "else", schema) => below.push(raw.to(schema).under_condition()),
                ("dependentRequired" | "dependentSchemas" | "dependencies", Value::Object(named)) => {
                    for schema in named.values() {
                        match schema {
                            Value::Array(names) => self.names(names),
                            schema => below.push(raw.to(schema).under_condition()),
                        }
                    }
                }
                ("contains", schema) => self.item(raw.to(schema)),
                _ => {}
            }
        }
        below
    }

    /// Notes the parts of a value that a schema under a condition declares.
    pub(super) fn declared(&mut self, raw: Raw<'s>, map: &'s Map<String, Value>) {
        for (name, schema) in map.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let schema = raw.to(schema).under_condition();
            self.properties.push((name, Some(schema).filter(|schema| declares(*schema))));
        }
        if let Some(names) = map.get("required").and_then(Value::as_array) {
            self.names(names);
        }
        let mut others = ["additionalProperties", "unevaluatedProperties"].iter().filter_map(|key| map.get(*key));
        self.hides |= map.contains_key("patternProperties") || others.any(|other| *other != Value::Bool(false));
        for keyword in ["additionalItems", "items", "prefixItems", "unevaluatedItems"] {
            match map.get(keyword) {
                Some(Value::Array(items)) => items.iter().for_each(|item| self.item(raw.to(item))),
                item => item.into_iter().for_each(|item| self.item(raw.to(item))),
            }
        }
    }

    fn names(&mut self, names: &'s [Value]) {
        self.properties.extend(names.iter().filter_map(Value::as_str).map(|name| (name, None)));
    }

    /// Any item may be the one that is meant.
    fn item(&mut self, schema: Raw<'s>) {
        self.items.extend(Some(schema.under_condition()).filter(|schema| declares(*schema)));
    }
}

/// True if a schema may declare parts of a value.
fn declares(raw: Raw<'_>) -> bool {
    let Value::Object(map) = raw.schema else { return false };
    has_conditions(map) || DECLARING.iter().any(|keyword| map.contains_key(*keyword))
}
