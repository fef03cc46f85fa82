//! Values of an `enum` or a `const` that contradict the schema's own `type`: taken literally, it would accept nothing.

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
    /// and the values of a list are those of its items. A `const` is read as an `enum` of one value.
    pub(super) fn enumeration(&mut self, at: &Node<'a>, out: &mut Map<String, Value>) {
        let kind = only_type(out.get("type")).map(str::to_owned);
        if let (Some(node), Some(value)) = (at.get("const"), out.get_mut("const")) {
            self.mean(&node, "const", kind.as_deref(), std::slice::from_mut(value));
        }
        let Some(node) = at.get("enum") else { return };
        self.words_of_values(at, &node, out);
        let Some(Value::Array(values)) = out.get_mut("enum") else { return };
        match kind.as_deref() {
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
            kind => self.mean(&node, "enum", kind, values),
        }
    }

    /// Makes the values of a keyword those of the type that are meant.
    fn mean(&mut self, node: &Node<'a>, keyword: &str, kind: Option<&str>, values: &mut [Value]) {
        let mut changed = false;
        for value in values {
            let meant = match (kind, &*value) {
                // YAML reads `1` and `on` as other types.
                (Some("string"), Value::Number(_) | Value::Bool(_)) => Some(Value::String(value.to_string())),
                (Some(kind @ ("integer" | "number" | "boolean")), Value::String(text)) => scalar(text, kind),
                _ => None,
            };
            if let Some(meant) = meant {
                *value = meant;
                changed = true;
            }
        }
        match kind {
            _ if !changed => {}
            Some("string") => {
                let message = format!("`{keyword}` of a string holds other values than text");
                self.warn(node, message, "they are taken as text");
            }
            kind => {
                let message = format!("`{keyword}` of the type `{}` holds text", kind.unwrap_or_default());
                self.warn(node, message, "it is taken for what it spells");
            }
        }
    }

    /// Keeps the names and descriptions of the values of an `enum`, each if there is one for every value.
    fn words_of_values(&mut self, at: &Node<'a>, values: &Node<'a>, out: &mut Map<String, Value>) {
        let Some(values) = values.value.as_array().filter(|_| out.contains_key("enum")) else { return };
        let named = values.iter().filter(|value| !value.is_null()).count();
        for (given, name) in GIVEN {
            let Some(node) = at.get(given).filter(|_| !out.contains_key(name)) else { continue };
            let words = match node.value {
                Value::Array(words) if words.len() == values.len() && words.iter().all(Value::is_string) => {
                    node.value.clone()
                }
                // `null` need not have a name.
                Value::Array(words) if words.len() == named && words.iter().all(Value::is_string) => {
                    let mut words = words.iter().cloned();
                    let word = |value: &Value| if value.is_null() { Some("".into()) } else { words.next() };
                    values.iter().filter_map(word).collect()
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
