//! Values of an `enum` that contradict the schema's own `type`: taken literally, it would accept nothing.

use serde_json::{Map, Value, json};

use super::document::Node;
use super::reader::Reader;

/// The name and the description of each value of an `enum`, in the order of the values.
const NAMES: &str = "x-enum-varnames";
const DESCRIPTIONS: &str = "x-enum-descriptions";

/// The members that belong to the values of an `enum`.
const WORDS: [&str; 3] = ["enum", NAMES, DESCRIPTIONS];

/// What documents call these words.
const GIVEN: [(&str, &str); 4] =
    [(NAMES, NAMES), ("x-enumNames", NAMES), (DESCRIPTIONS, DESCRIPTIONS), ("x-enumDescriptions", DESCRIPTIONS)];

impl<'a> Reader<'a> {
    /// Reads an `enum` as it is meant: numbers and booleans of a string are text, text of a number is the number that it spells,
    /// and the values of a list are those of its items.
    pub(super) fn enumeration(&mut self, at: &Node<'a>, out: &mut Map<String, Value>) {
        let Some(node) = at.get("enum") else { return };
        self.words_of_values(at, &node, out);
        let kind = only_type(out.get("type")).map(str::to_owned);
        let Some(Value::Array(values)) = out.get_mut("enum") else { return };
        match kind.as_deref() {
            Some("string") => {
                let mut changed = false;
                for value in values.iter_mut().filter(|value| value.is_number() || value.is_boolean()) {
                    // YAML reads `1` and `on` as other types.
                    *value = Value::String(value.to_string());
                    changed = true;
                }
                if changed {
                    self.warn(&node, "`enum` of a string holds other values than text", "they are taken as text");
                }
            }
            Some(kind @ ("integer" | "number" | "boolean")) => {
                let mut changed = false;
                for value in values.iter_mut() {
                    if let Some(meant) = value.as_str().and_then(|text| scalar(text, kind)) {
                        *value = meant;
                        changed = true;
                    }
                }
                if changed {
                    let message = format!("`enum` of the type `{kind}` holds text");
                    self.warn(&node, message, "it is taken for what it spells");
                }
            }
            Some("array") if !values.is_empty() && !values.iter().any(Value::is_array) => {
                let items = out.entry("items").or_insert_with(|| json!({})).as_object();
                let takes =
                    items.is_some_and(|items| !["$ref", "const", "enum"].iter().any(|key| items.contains_key(*key)));
                self.warn(
                    &node,
                    "`enum` of a list holds no list",
                    if takes { "it is that of the items" } else { "it was left out" },
                );
                for word in WORDS {
                    let Some(values) = out.shift_remove(word) else { continue };
                    if let (true, Some(Value::Object(items))) = (takes, out.get_mut("items")) {
                        items.insert(word.to_owned(), values);
                    }
                }
            }
            _ => {}
        }
    }
}

impl<'a> Reader<'a> {
    /// Keeps the names and descriptions of the values of an `enum`, each if there is one for every value.
    fn words_of_values(&mut self, at: &Node<'a>, values: &Node<'a>, out: &mut Map<String, Value>) {
        let Some(values) = values.value.as_array().filter(|_| out.contains_key("enum")) else { return };
        for (given, name) in GIVEN {
            let Some(node) = at.get(given).filter(|_| !out.contains_key(name)) else { continue };
            let words = match node.value {
                Value::Array(words) if words.len() == values.len() && words.iter().all(Value::is_string) => {
                    node.value.clone()
                }
                // By value; not all of them need have one.
                Value::Object(words) if words.values().all(Value::is_string) => {
                    let key = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let word = |value| words.get(&key(value)).and_then(Value::as_str).unwrap_or_default();
                    values.iter().map(word).collect()
                }
                _ => {
                    let message = format!("`{given}` has no text for each value of `enum`");
                    self.warn(&node, message, "it was left out");
                    continue;
                }
            };
            out.insert(name.to_owned(), words);
        }
    }
}

/// The value of a type that a text spells.
fn scalar(text: &str, kind: &str) -> Option<Value> {
    let value: Value = serde_json::from_str(text).ok()?;
    let fits = match kind {
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        _ => value.is_boolean(),
    };
    fits.then_some(value)
}

/// The type of the values, apart from null.
fn only_type(types: Option<&Value>) -> Option<&str> {
    match types {
        Some(Value::String(one)) => Some(one),
        Some(Value::Array(several)) => {
            let mut kinds = several.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.next().filter(|_| kinds.next().is_none())
        }
        _ => None,
    }
}
