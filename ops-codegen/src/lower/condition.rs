//! Properties that a schema declares under a condition: below `if`, `then`, `else` and `dependentSchemas`.

use serde_json::{Map, Value};

/// The member of a view that holds the properties, each with the schemas that one of the conditions asks of it.
///
/// No keyword has a space in its name.
pub(super) const CONDITIONAL: &str = "conditional properties";

/// With how many of the last schemas of a property another is compared.
const LOOKED_AT: usize = 8;

/// The keywords below which properties are declared under a condition.
pub(super) const KEYWORDS: [&str; 5] = ["if", "then", "else", "dependentSchemas", "dependencies"];

/// True if a schema may declare properties under a condition.
pub(super) fn has_conditions(schema: &Map<String, Value>) -> bool {
    KEYWORDS.iter().any(|keyword| schema.contains_key(*keyword))
}

/// True if a schema, or a part of its `allOf`, may declare properties under a condition.
pub(super) fn is_conditional(schema: &Map<String, Value>) -> bool {
    let parts = schema.get("allOf").and_then(Value::as_array);
    has_conditions(schema) || parts.into_iter().flatten().filter_map(Value::as_object).any(has_conditions)
}

pub(super) fn into_object(value: Value) -> Option<Map<String, Value>> {
    if let Value::Object(object) = value { Some(object) } else { None }
}

/// Merges the properties of two views that are declared under conditions.
pub(super) fn merge(ours: &mut Value, theirs: Value) {
    for (name, found) in into_object(theirs).into_iter().flatten() {
        add(ours, name, found);
    }
}

/// Adds a property; of several conditions, any may be the one that holds.
pub(super) fn add(all: &mut Value, name: String, found: Value) {
    let Some(all) = all.as_object_mut() else { return };
    match all.get_mut(&name) {
        None => {
            all.insert(name, found);
        }
        Some(known) if *known == found || found == Value::Bool(true) => {}
        Some(known) if *known == Value::Bool(true) => *known = found,
        Some(known) => {
            // An earlier combination gets one more part, so that many parts are a long list and not a deep one.
            if let Some(object) = known.as_object_mut().filter(|object| object.len() == 1)
                && let Some(Value::Array(parts)) = object.get_mut("anyOf")
            {
                // Equal ones mostly stand beside each other; others are found by a hash, when the list is lowered.
                if !parts.iter().rev().take(LOOKED_AT).any(|part| *part == found) {
                    parts.push(found);
                }
                return;
            }
            let any = Value::Array(vec![known.take(), found]);
            *known = Value::Object([("anyOf".to_owned(), any)].into_iter().collect());
        }
    }
}
