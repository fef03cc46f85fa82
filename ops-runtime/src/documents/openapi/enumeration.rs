//! Values of an `enum` that contradict the schema's own `type`: taken literally, it would accept nothing.

use serde_json::{Map, Value, json};

use super::document::Node;
use super::reader::Reader;

/// The members that belong to the values of an `enum`.
const WORDS: [&str; 3] = ["enum", "x-enum-varnames", "x-enumNames"];

impl<'a> Reader<'a> {
    /// Reads an `enum` as it is meant: numbers and booleans of a string are text, the values of a list are those of its items.
    pub(super) fn enumeration(&mut self, at: &Node<'a>, out: &mut Map<String, Value>) {
        let Some(node) = at.get("enum") else { return };
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
