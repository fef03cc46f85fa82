//! Finds files in an input: strings that its schema describes as bytes.

use std::collections::HashSet;
use std::ptr;

use serde_json::Value;

use super::constraints;
use crate::{OperationSpec, pointer};

/// The schema of an input that holds files.
pub(crate) struct Files(Value);

impl Files {
    /// The files of an operation's input. `None` if its schema describes none, or cannot be read.
    pub(super) fn of(spec: &OperationSpec) -> Option<Self> {
        let root = spec.input.self_contained(&spec.definitions).ok()?;
        constraints::any(&root, |node| node.get("format").is_some_and(|format| format == "binary"))
            .then_some(Self(root))
    }

    /// Calls a function with each file of an input, in whichever variant of a union it is one.
    pub(crate) fn each(&self, input: &mut Value, mut show: impl FnMut(&mut Value)) {
        // A list, since an input may be nested deeper than a thread's stack allows.
        let mut pending = vec![(input, vec![&self.0])];
        while let Some((value, schemas)) = pending.pop() {
            let parts = self.parts(schemas);
            match value {
                Value::String(_) if parts.iter().any(|part| is_binary(part)) => show(value),
                Value::Array(items) => {
                    for (at, item) in items.iter_mut().enumerate() {
                        pending.push((item, parts.iter().copied().filter_map(|part| of_item(part, at)).collect()));
                    }
                }
                Value::Object(members) => {
                    for (name, member) in members {
                        pending.push((member, parts.iter().copied().flat_map(|part| of_member(part, name)).collect()));
                    }
                }
                _ => {}
            }
        }
    }

    /// The schemas that a value of these may follow, each once.
    fn parts<'s>(&'s self, schemas: Vec<&'s Value>) -> Vec<&'s Value> {
        let (mut pending, mut seen, mut parts) = (schemas, HashSet::new(), Vec::new());
        while let Some(schema) = pending.pop() {
            if !schema.is_object() || !seen.insert(ptr::from_ref(schema)) {
                continue;
            }
            parts.push(schema);
            pending.extend(schema.get("$ref").and_then(|reference| self.target(reference.as_str()?)));
            let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array());
            pending.extend(lists.flatten());
            pending.extend(["if", "then", "else"].iter().filter_map(|keyword| schema.get(*keyword)));
            pending.extend(
                schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten().map(|(_, s)| s),
            );
        }
        parts
    }

    fn target(&self, reference: &str) -> Option<&Value> {
        let name = pointer::definition(reference)?;
        let definition = self.0.get("$defs")?.get(&*name)?;
        let below = reference.strip_prefix(pointer::DEFINITIONS).and_then(|path| path.find('/').map(|at| &path[at..]));
        definition.pointer(below.unwrap_or_default())
    }
}

fn is_binary(schema: &Value) -> bool {
    schema.get("format").is_some_and(|format| format == "binary")
}

/// The schema of an item.
fn of_item(schema: &Value, at: usize) -> Option<&Value> {
    schema.get("prefixItems").and_then(|list| list.get(at)).or_else(|| schema.get("items"))
}

/// The schemas of a member: its name may match any pattern.
fn of_member<'s>(schema: &'s Value, name: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    let rest = own.is_none().then_some(["additionalProperties", "unevaluatedProperties"]);
    let rest = rest.into_iter().flatten().filter_map(move |keyword| schema.get(keyword));
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    own.into_iter().chain(rest).chain(patterns.map(|(_, schema)| schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Definition, Definitions};

    fn shown(schema: Value, definitions: Vec<Definition>, mut input: Value) -> Option<Value> {
        let mut spec = OperationSpec::mutation("t.t");
        (spec.input, spec.definitions) = (schema.into(), Definitions::new(definitions));
        Files::of(&spec)?.each(&mut input, |file| *file = json!("FILE"));
        Some(input)
    }

    #[test]
    fn strings_that_are_described_as_bytes() {
        let file = json!({ "type": "string", "format": "binary" });
        let text = json!({ "type": "string" });
        let defined = vec![
            Definition::from_value("File", file.clone()),
            Definition::from_value(
                "Any/thing",
                json!({
                    "properties": { "deep": { "anyOf": [{ "type": "null" }, { "$ref": "#/$defs/File" }] } },
                }),
            ),
        ];
        let table = [
            (
                json!({ "properties": { "a": file, "b": text } }),
                json!({ "a": "x", "b": "x" }),
                json!({ "a": "FILE", "b": "x" }),
            ),
            (
                json!({ "allOf": [{ "properties": { "a": { "items": file } } }, { "properties": { "a": {} } }] }),
                json!({ "a": ["x", "x", 1, null] }),
                json!({ "a": ["FILE", "FILE", 1, null] }),
            ),
            (
                json!({ "properties": { "a": { "prefixItems": [file], "items": text } } }),
                json!({ "a": ["x", "x"], "c": "x" }),
                json!({ "a": ["FILE", "x"], "c": "x" }),
            ),
            (json!({ "additionalProperties": file }), json!({ "a": "x" }), json!({ "a": "FILE" })),
            (
                json!({ "patternProperties": { "^a": file }, "properties": { "b": text } }),
                json!({ "b": "x" }),
                json!({ "b": "FILE" }),
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/Any~1thing" } } }),
                json!({ "a": { "deep": "x" }, "deep": "x" }),
                json!({ "a": { "deep": "FILE" }, "deep": "x" }),
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/Any~1thing/properties/deep" } } }),
                json!({ "a": "x" }),
                json!({ "a": "FILE" }),
            ),
        ];
        for (schema, input, expected) in table {
            assert_eq!(shown(schema.clone(), defined.clone(), input), Some(expected), "{schema}");
        }
        assert_eq!(shown(json!({ "properties": { "a": text } }), defined, json!({ "a": "x" })), None);
    }

    #[test]
    fn schemas_that_lead_to_themselves_end() {
        let tree = json!({
            "anyOf": [{ "$ref": "#/$defs/Tree" }, { "format": "binary" }], "items": { "$ref": "#/$defs/Tree" },
        });
        let schema = json!({ "$ref": "#/$defs/Tree" });
        let deep = |end: &str| (0..100).fold(json!(end), |inner, _| json!([inner, 1]));
        let found = shown(schema, vec![Definition::from_value("Tree", tree)], deep("x"));
        assert_eq!(found, Some(deep("FILE")));
    }
}
