//! Finds files in an input: strings that its schema describes as bytes.

use std::collections::HashSet;
use std::ptr;

use serde_json::Value;

use super::constraints;
use crate::{OperationSpec, pointer};

/// The schema of an input that holds files.
pub(crate) struct Files(Value);

/// How deep references and combined schemas are followed to tell if a text is a file, and how many are visited.
const DEPTH: usize = 64;
const VISITS: usize = 1_000;

/// Which texts of an input count as files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhichFiles {
    /// All that may be files, by whichever variant of a union: the content of no file is shown.
    Possible,
    /// Those that cannot be a plain text by any variant: every text that may be plain is shown.
    Certain,
}

/// A schema that a value may follow.
#[derive(Clone, Copy)]
struct Part<'s> {
    schema: &'s Value,
    /// True if the value follows it for certain, and not as one of several variants.
    is_certain: bool,
}

/// What a schema says of a value that is a string.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Nothing,
    /// No string conforms.
    NoString,
    File,
    Text,
}

impl Files {
    /// The files of an operation's input. `None` if its schema describes none, or cannot be read.
    pub(super) fn of(spec: &OperationSpec) -> Option<Self> {
        let root = spec.input.self_contained(&spec.definitions).ok()?;
        constraints::any(&root, |node| node.get("format").is_some_and(|format| format == "binary"))
            .then_some(Self(root))
    }

    /// Calls a function with each file of an input.
    pub(crate) fn each(&self, input: &mut Value, which: WhichFiles, mut show: impl FnMut(&mut Value)) {
        // A list, since an input may be nested deeper than a thread's stack allows.
        let mut pending = vec![(input, vec![Part { schema: &self.0, is_certain: true }])];
        while let Some((value, schemas)) = pending.pop() {
            let parts = self.parts(&schemas);
            match value {
                Value::String(_) => {
                    let is_file = parts.iter().any(|part| is_binary(part.schema));
                    if is_file && (which == WhichFiles::Possible || self.is_certain(&schemas)) {
                        show(value);
                    }
                }
                Value::Array(items) => {
                    for (at, item) in items.iter_mut().enumerate() {
                        pending.push((item, parts.iter().filter_map(|part| of_item(*part, at)).collect()));
                    }
                }
                Value::Object(members) => {
                    for (name, member) in members {
                        pending.push((member, parts.iter().flat_map(|part| of_member(*part, name)).collect()));
                    }
                }
                _ => {}
            }
        }
    }

    /// The schemas that a value of these may follow, each once, or twice if it is also a variant.
    fn parts<'s>(&'s self, schemas: &[Part<'s>]) -> Vec<Part<'s>> {
        let (mut pending, mut seen, mut parts) = (schemas.to_vec(), HashSet::new(), Vec::new());
        while let Some(part) = pending.pop() {
            let Part { schema, is_certain } = part;
            if !schema.is_object() || !seen.insert((ptr::from_ref(schema), is_certain)) {
                continue;
            }
            parts.push(part);
            pending.extend(self.joined(schema).map(|schema| Part { schema, is_certain }));
            let variants = ["anyOf", "oneOf"].into_iter().flat_map(|keyword| list(schema, keyword));
            let conditional = ["if", "then", "else"].into_iter().filter_map(|keyword| schema.get(keyword));
            let dependent = schema.get("dependentSchemas").and_then(Value::as_object).into_iter().flatten();
            let possible = variants.chain(conditional).chain(dependent.map(|(_, schema)| schema));
            pending.extend(possible.map(|schema| Part { schema, is_certain: false }));
        }
        parts
    }

    /// True if a string that these schemas describe is a file, whichever of them it follows.
    fn is_certain(&self, schemas: &[Part<'_>]) -> bool {
        let mut left = VISITS;
        let (mut is_text, mut is_file) = (false, false);
        for part in schemas {
            match self.says(part.schema, DEPTH, &mut left) {
                Says::File if part.is_certain => return true,
                Says::File => is_file = true,
                Says::Text => is_text = true,
                Says::Nothing => is_text |= !part.is_certain,
                Says::NoString => {}
            }
        }
        is_file && !is_text
    }

    fn says(&self, schema: &Value, depth: usize, left: &mut usize) -> Says {
        // A text is shown if it is not known to be a file.
        let (Some(depth), Some(rest)) = (depth.checked_sub(1), left.checked_sub(1)) else { return Says::Text };
        *left = rest;
        let mut said = vec![of_itself(schema)];
        said.extend(self.joined(schema).map(|part| self.says(part, depth, left)));
        for variants in ["anyOf", "oneOf"].into_iter().filter_map(|keyword| schema.get(keyword)?.as_array()) {
            let mut strings: Vec<Says> = variants.iter().map(|variant| self.says(variant, depth, left)).collect();
            strings.retain(|says| *says != Says::NoString);
            said.push(match strings.as_slice() {
                [] => Says::NoString,
                strings if strings.iter().all(|says| *says == Says::File) => Says::File,
                _ => Says::Text,
            });
        }
        let strongest = [Says::NoString, Says::File, Says::Text].into_iter().find(|says| said.contains(says));
        strongest.unwrap_or(Says::Nothing)
    }

    /// The schemas that a value follows as well: what a schema refers to, and the parts of `allOf`.
    fn joined<'s>(&'s self, schema: &'s Value) -> impl Iterator<Item = &'s Value> {
        let target = schema.get("$ref").and_then(|reference| self.target(reference.as_str()?));
        target.into_iter().chain(list(schema, "allOf"))
    }

    fn target(&self, reference: &str) -> Option<&Value> {
        let name = pointer::definition(reference)?;
        let definition = self.0.get("$defs")?.get(&*name)?;
        definition.pointer(pointer::within_definition(reference))
    }
}

fn is_binary(schema: &Value) -> bool {
    schema.get("format").is_some_and(|format| format == "binary")
}

/// What a schema says of a string by its format, its type and its values.
fn of_itself(schema: &Value) -> Says {
    if is_binary(schema) {
        return Says::File;
    }
    let may_be_string = match (schema, schema.get("type"), schema.get("const"), schema.get("enum")) {
        (Value::Bool(false), ..) => Some(false),
        (_, Some(Value::Array(names)), ..) => Some(names.iter().any(|name| name == "string")),
        (_, Some(name), ..) => Some(name == "string"),
        (_, None, Some(value), _) => Some(value.is_string()),
        (_, None, None, Some(Value::Array(values))) => Some(values.iter().any(Value::is_string)),
        _ => None,
    };
    match may_be_string {
        Some(true) => Says::Text,
        Some(false) => Says::NoString,
        None => Says::Nothing,
    }
}

fn list<'s>(schema: &'s Value, keyword: &str) -> impl Iterator<Item = &'s Value> + use<'s> {
    schema.get(keyword).and_then(Value::as_array).into_iter().flatten()
}

/// The schema of an item.
fn of_item(part: Part<'_>, at: usize) -> Option<Part<'_>> {
    let Part { schema, is_certain } = part;
    let item = schema.get("prefixItems").and_then(|list| list.get(at)).or_else(|| schema.get("items"))?;
    Some(Part { schema: item, is_certain })
}

/// The schemas of a member: its name may match any pattern.
fn of_member<'s>(part: Part<'s>, name: &str) -> impl Iterator<Item = Part<'s>> + use<'s> {
    let Part { schema, is_certain } = part;
    let own = schema.get("properties").and_then(|properties| properties.get(name));
    let rest = own.is_none().then_some(["additionalProperties", "unevaluatedProperties"]);
    let rest = rest.into_iter().flatten().filter_map(move |keyword| schema.get(keyword));
    let patterns = schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten();
    let possible = rest.chain(patterns.map(|(_, schema)| schema)).map(|schema| Part { schema, is_certain: false });
    own.into_iter().map(move |schema| Part { schema, is_certain }).chain(possible)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Definition, Definitions};

    fn shown_as(which: WhichFiles, schema: Value, definitions: Vec<Definition>, mut input: Value) -> Option<Value> {
        let mut spec = OperationSpec::mutation("t.t");
        (spec.input, spec.definitions) = (schema.into(), Definitions::new(definitions));
        Files::of(&spec)?.each(&mut input, which, |file| *file = json!("FILE"));
        Some(input)
    }

    fn shown(schema: Value, definitions: Vec<Definition>, input: Value) -> Option<Value> {
        shown_as(WhichFiles::Possible, schema, definitions, input)
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
    fn a_text_that_may_be_no_file_is_no_certain_one() {
        let file = json!({ "type": "string", "format": "binary" });
        let both = json!([{ "properties": { "a": file } }, { "properties": { "a": {} } }]);
        let mut table = vec![(json!({ "allOf": both }), true), (json!({ "anyOf": both }), false)];
        for (schema, is_certain) in [
            (file.clone(), true),
            (json!({ "anyOf": [file, { "type": "null" }] }), true),
            (json!({ "allOf": [file, { "description": "The picture" }] }), true),
            (json!({ "anyOf": [{ "type": "string" }, file] }), false),
            (json!({ "oneOf": [file, { "type": ["null", "string"], "format": "uri" }] }), false),
            (json!({ "type": "string", "if": { "minLength": 9 }, "then": file }), false),
            (json!({ "anyOf": [{ "pattern": "^a" }, file] }), false),
            (json!({ "anyOf": [{ "enum": ["auto"] }, file] }), false),
            (json!({ "anyOf": [{ "enum": [null, 1] }, file] }), true),
            (json!({ "oneOf": [{}, file] }), false),
            (json!({ "allOf": [{ "type": "string" }, { "format": "binary" }] }), true),
        ] {
            table.push((json!({ "properties": { "a": schema } }), is_certain));
        }
        for (schema, is_certain) in table {
            let shown = |which| shown_as(which, schema.clone(), Vec::new(), json!({ "a": "x" }));
            assert_eq!(shown(WhichFiles::Possible), Some(json!({ "a": "FILE" })), "{schema}");
            let expected = if is_certain { "FILE" } else { "x" };
            assert_eq!(shown(WhichFiles::Certain), Some(json!({ "a": expected })), "{schema}");
        }
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
