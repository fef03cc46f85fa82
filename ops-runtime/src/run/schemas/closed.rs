//! Closed parts: `additionalProperties: false` in one part of an `allOf` refuses properties of another part (JSON
//! Schema, section 10.3.2.3), so that no value could have them. For repairs, the parts are merged first.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::parts::{Parts, address, each_schema, each_schema_mut};
use crate::pointer;

/// Opens closed parts beside parts with more properties. If all parts are closed, the whole is closed instead.
///
/// A part that refers to a definition then refers to an open copy of it. The definition itself stays closed for its
/// other users.
pub(super) fn open_parts(schema: &mut Value) {
    let Some(mut parts) = Parts::of(schema, is_closed) else { return };
    // The schemas with such parts, by their position: true if they are closed as a whole.
    let mut wrong: HashMap<usize, bool> = HashMap::new();
    let (mut whole, mut inner) = (HashSet::new(), HashSet::new());
    let mut position = 0;
    each_schema(schema, &mut |schema| {
        if (schema.get("allOf").is_some() || schema.get("$ref").is_some() && schema.get("properties").is_some())
            && let Some(are_closed) = refusal(&mut parts, schema)
        {
            // One that is itself a part is closed by the whole.
            let closes = are_closed && !inner.contains(&address(schema)) && schema.get(UNEVALUATED).is_none();
            wrong.insert(position, closes);
            whole.extend(closes.then(|| address(schema)));
            add_members(schema, &mut inner);
        }
        position += 1;
    });
    if wrong.is_empty() {
        return;
    }
    let definitions = schema.get("$defs").and_then(Value::as_object);
    // The definitions that are closed, or have a part that is; and those that are closed as a whole.
    let (mut closed, mut sealed) = (HashSet::new(), HashSet::new());
    for (name, definition) in definitions.into_iter().flatten() {
        if parts.all(definition).into_iter().any(is_closed) {
            closed.insert(name.clone());
        }
        sealed.extend(whole.contains(&address(definition)).then(|| name.clone()));
    }
    let mut suffix = "_open".to_owned();
    while definitions.is_some_and(|own| own.keys().any(|name| name.ends_with(&suffix))) {
        suffix.push('_');
    }
    let mut opening = Opening { closed, sealed, suffix, wanted: BTreeSet::new() };
    // Addresses change with the keywords, positions do not.
    let mut position = 0;
    each_schema_mut(schema, &mut |schema| {
        if let Some(closes) = wrong.get(&position) {
            opening.members(schema, 0);
            if *closes && let Some(node) = schema.as_object_mut() {
                node.insert(UNEVALUATED.to_owned(), Value::Bool(false));
            }
        }
        position += 1;
    });
    opening.copy(schema);
}

const UNEVALUATED: &str = "unevaluatedProperties";

/// Adds the parts that stand in the `allOf` of a schema.
fn add_members(schema: &Value, members: &mut HashSet<usize>) {
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        let own = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
        open.extend(own.filter(|member| members.insert(address(member))));
    }
}

fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false)) && schema.get("patternProperties").is_none()
}

/// `None` unless a part of a schema is closed and does not have a property of another part. If so, true if all parts with
/// properties are closed.
fn refusal<'s>(parts: &mut Parts<'s>, schema: &'s Value) -> Option<bool> {
    let all = parts.all(schema);
    let properties = |part: &'s Value| part.get("properties").and_then(Value::as_object).filter(|own| !own.is_empty());
    let mut closed = all.iter().skip(1).filter(|part| is_closed(part)).peekable();
    closed.peek()?;
    let names: HashSet<&String> = all.iter().filter_map(|part| properties(part)).flat_map(|own| own.keys()).collect();
    let refuses =
        closed.any(|part| parts.spend(names.len()) && properties(part).map_or(0, serde_json::Map::len) < names.len());
    let mut with_properties = all.iter().filter(|part| properties(part).is_some());
    // Without room, not all parts were found.
    refuses.then(|| parts.spend(1) && with_properties.all(|part| is_closed(part)))
}

struct Opening {
    closed: HashSet<String>,
    sealed: HashSet<String>,
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
            // The order stays.
            node.retain(|keyword, _| keyword != "additionalProperties");
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
                if let Some(node) = copy.as_object_mut().filter(|_| self.sealed.contains(&name)) {
                    node.remove(UNEVALUATED);
                }
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
        let other = json!({ "properties": { "b": {} }, "additionalProperties": false });
        let mut schema = json!({
            "$defs": {
                "Closed": closed,
                "Around": { "allOf": [{ "$ref": "#/$defs/Closed" }], "description": "d" },
                "Both": { "allOf": [closed, other] },
                "Circle": { "allOf": [{ "$ref": "#/$defs/Circle" }, { "$ref": "#/$defs/Closed" }, { "properties": { "b": {} } }] },
            },
            "properties": {
                "alone": { "$ref": "#/$defs/Closed" },
                "beside": { "allOf": [{ "$ref": "#/$defs/Around" }, { "properties": { "b": { "type": "integer" } } }] },
                "within": { "allOf": [{ "allOf": [closed] }, { "properties": { "b": {} } }] },
                "same": { "allOf": [{ "$ref": "#/$defs/Around" }, { "properties": { "a": {} } }] },
                "circle": { "$ref": "#/$defs/Circle" },
                "both": { "$ref": "#/$defs/Both" },
                "each": { "allOf": [{ "$ref": "#/$defs/Both" }, { "properties": { "c": {} }, "additionalProperties": false }] },
                "more": { "allOf": [{ "$ref": "#/$defs/Both" }, { "properties": { "c": {} } }] },
                "inline": { "allOf": [{ "allOf": [closed, other] }, { "properties": { "c": {} } }] },
                "either": { "allOf": [closed, other], "anyOf": [{ "properties": { "c": {} }, "required": ["c"] }, {}] },
                "behind": { "allOf": [closed, other], "not": { "allOf": [{ "allOf": [closed, other], "required": ["a"] }] } },
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
            // All parts are closed, so that the whole is.
            ("both", json!({ "a": 1, "b": 1 }), true),
            ("both", json!({ "a": 1, "b": 1, "bb": 1 }), false),
            ("each", json!({ "a": 1, "b": 1, "c": 1 }), true),
            ("each", json!({ "a": 1, "d": 1 }), false),
            ("more", json!({ "a": 1, "b": 1, "c": 1 }), true),
            ("more", json!({ "d": 1 }), true),
            ("inline", json!({ "a": 1, "b": 1, "c": 1 }), true),
            ("inline", json!({ "d": 1 }), true),
            ("either", json!({ "a": 1, "c": 1 }), true),
            ("either", json!({ "a": 1, "d": 1 }), false),
            ("behind", json!({ "b": 1 }), true),
            ("behind", json!({ "a": 1, "b": 1 }), false),
        ] {
            assert_eq!(validator.check(&json!({ name: value })), expected, "{name}: {value}");
        }
    }
}
