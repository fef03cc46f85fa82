//! Closed parts: `additionalProperties: false` in one part of an `allOf` refuses properties of another part (JSON
//! Schema, section 10.3.2.3), so that no value could have them. For repairs, the parts are merged first.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;

use super::parts::{Parts, address, each_schema, each_schema_mut};
use crate::pointer;

/// Opens closed parts beside parts with more properties. A part that refers to a definition then refers to an open copy
/// of it. The definition itself stays closed for its other users.
pub(super) fn open_parts(schema: &mut Value) {
    let Some(mut parts) = Parts::of(schema, is_closed) else { return };
    let mut wrong: HashSet<usize> = HashSet::new();
    // The definitions that are closed, or have a part that is.
    let mut closed: HashSet<String> = HashSet::new();
    each_schema(schema, &mut |schema| {
        if (schema.get("allOf").is_some() || schema.get("$ref").is_some() && schema.get("properties").is_some())
            && refuses(&mut parts, schema)
        {
            wrong.insert(address(schema));
        }
    });
    if wrong.is_empty() {
        return;
    }
    let definitions = schema.get("$defs").and_then(Value::as_object);
    for (name, definition) in definitions.into_iter().flatten() {
        if parts.all(definition).into_iter().any(is_closed) {
            closed.insert(name.clone());
        }
    }
    let mut suffix = "_open".to_owned();
    while definitions.is_some_and(|own| own.keys().any(|name| name.ends_with(&suffix))) {
        suffix.push('_');
    }
    let mut opening = Opening { closed, suffix, wanted: BTreeSet::new() };
    each_schema_mut(schema, &mut |schema| {
        if wrong.contains(&address(schema)) {
            opening.members(schema, 0);
        }
    });
    opening.copy(schema);
}

fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && schema.get("patternProperties").is_none()
}

/// True if a part of a schema is closed and does not have a property of another part.
fn refuses<'s>(parts: &mut Parts<'s>, schema: &'s Value) -> bool {
    let all = parts.all(schema);
    let properties = |part: &'s Value| part.get("properties").and_then(Value::as_object);
    let mut closed = all.iter().skip(1).filter(|part| is_closed(part)).peekable();
    if closed.peek().is_none() {
        return false;
    }
    let names: HashSet<&String> = all.iter().filter_map(|part| properties(part)).flat_map(|own| own.keys()).collect();
    closed.any(|part| parts.spend(names.len()) && properties(part).map_or(0, serde_json::Map::len) < names.len())
}

struct Opening {
    closed: HashSet<String>,
    /// The suffix of the names of copies.
    suffix: String,
    wanted: BTreeSet<String>,
}

impl Opening {
    /// Opens the parts of a schema.
    fn members(&mut self, schema: &mut Value, depth: usize) {
        let reference = schema.get_mut("$ref");
        if let Some(Value::String(reference)) = reference
            && let Some(name) = pointer::definition(reference).filter(|name| self.closed.contains(&**name))
        {
            let copy = pointer::reference(&format!("{name}{}", self.suffix));
            self.wanted.insert(name.into_owned());
            *reference = copy;
        }
        let members = schema.get_mut("allOf").and_then(Value::as_array_mut).filter(|_| depth < 64);
        for member in members.into_iter().flatten() {
            self.whole(member, depth + 1);
        }
    }

    fn whole(&mut self, schema: &mut Value, depth: usize) {
        if is_closed(schema)
            && let Some(node) = schema.as_object_mut()
        {
            node.remove("additionalProperties");
        }
        self.members(schema, depth);
    }

    /// Adds the copies, each once.
    fn copy(mut self, schema: &mut Value) {
        let Some(definitions) = schema.get_mut("$defs").and_then(Value::as_object_mut) else { return };
        let mut done = HashSet::new();
        while let Some(name) = self.wanted.pop_first() {
            if !done.insert(name.clone()) {
                continue;
            }
            if let Some(mut copy) = definitions.get(&name).cloned() {
                self.whole(&mut copy, 0);
                definitions.insert(format!("{name}{}", self.suffix), copy);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::normalise::Validator;

    #[test]
    fn a_part_allows_what_another_describes() {
        let closed = json!({ "properties": { "a": {} }, "additionalProperties": false });
        let mut schema = json!({
            "$defs": {
                "Closed": closed,
                "Around": { "allOf": [{ "$ref": "#/$defs/Closed" }], "description": "d" },
                "Circle": { "allOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Closed" }, { "properties": { "b": {} } }] },
            },
            "properties": {
                "alone": { "$ref": "#/$defs/Closed" },
                "beside": { "allOf": [{ "$ref": "#/$defs/Around" }, { "properties": { "b": { "type": "integer" } } }] },
                "within": { "allOf": [{ "allOf": [closed] }, { "properties": { "b": {} } }] },
                "same": { "allOf": [{ "$ref": "#/$defs/Around" }, { "properties": { "a": {} } }] },
                "circle": { "$ref": "#/$defs/Circle" },
            },
        });
        open_parts(&mut schema);
        let validator = Validator::new(&schema);
        assert!(validator.problems().is_empty());
        for (name, value, expected) in [
            ("alone", json!({ "a": 1 }), true),
            ("alone", json!({ "b": 1 }), false),
            ("beside", json!({ "a": 1, "b": 1 }), true),
            ("beside", json!({ "a": 1, "b": "x" }), false),
            ("within", json!({ "a": 1, "b": 1 }), true),
            ("same", json!({ "a": 1 }), true),
            ("same", json!({ "b": 1 }), false),
            ("circle", json!({ "a": 1, "b": 1 }), true),
        ] {
            assert_eq!(validator.check(&json!({ name: value })), expected, "{name}: {value}");
        }
    }
}
