//! Digests of definitions: equal closures become one component.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::pointer;

/// A definition by itself.
pub(super) struct Digested {
    digest: [u8; 32],
    /// The names of the definitions that it refers to.
    pub(super) references: Vec<String>,
    has_read_only: bool,
}

/// A definition with all that it reaches: equal ones have the same meaning.
///
/// It is a digest. The schemas themselves would be held, and compared, once for each definition that reaches them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Closure {
    digest: [u8; 32],
    /// True if a part is `readOnly`.
    pub(super) has_read_only: bool,
}

impl Digested {
    pub(super) fn of(schema: &Value) -> Self {
        let mut references = Vec::new();
        each_reference(schema, &mut |target| references.push(target.to_owned()));
        let mut digest = Sha(Sha256::new());
        digest.value(schema);
        Self { digest: digest.end(), references, has_read_only: has_read_only(schema) }
    }
}

impl Closure {
    /// The closure of these definitions, by their names.
    pub(super) fn of(all: &BTreeMap<String, Arc<Digested>>) -> Self {
        let mut digest = Sha(Sha256::new());
        for (name, definition) in all {
            digest.text(b'"', name);
            digest.0.update(definition.digest);
        }
        Self { digest: digest.end(), has_read_only: all.values().any(|definition| definition.has_read_only) }
    }
}

/// A digest to which values are added, so that only equal ones have the same.
struct Sha(Sha256);

impl Sha {
    /// Adds a value, in which the order of members does not count. Numbers are equal if they are written alike.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => self.text(b'w', value),
            Value::Number(number) => self.text(b'0', number),
            Value::String(text) => self.text(b'"', text),
            Value::Array(items) => {
                self.text(b'[', items.len());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Object(members) => {
                self.text(b'{', members.len());
                let sorted: BTreeMap<&String, &Value> = members.iter().collect();
                for (name, member) in sorted {
                    self.text(b'"', name);
                    self.value(member);
                }
            }
        }
    }

    /// Adds a text after its kind and its length.
    fn text(&mut self, kind: u8, text: impl fmt::Display) {
        let text = text.to_string();
        self.0.update([kind]);
        self.0.update(text.len().to_le_bytes());
        self.0.update(text);
    }

    fn end(self) -> [u8; 32] {
        self.0.finalize().into()
    }
}

/// True if a part of a schema is `readOnly`.
fn has_read_only(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.contains_key("readOnly") || members.values().any(has_read_only),
        Value::Array(parts) => parts.iter().any(has_read_only),
        _ => false,
    }
}

/// Calls a function with the name of each definition that a schema refers to.
fn each_reference(schema: &Value, found: &mut dyn FnMut(&str)) {
    match schema {
        Value::Object(members) => members.iter().for_each(|(key, value)| match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(own)) => {
                own.values().for_each(|part| each_reference(part, found));
            }
            ("enum" | "const" | "default" | "example" | "examples", _) => {}
            ("$ref", Value::String(target)) => {
                if let Some(name) = pointer::definition(target) {
                    found(&name);
                }
            }
            _ => each_reference(value, found),
        }),
        Value::Array(parts) => parts.iter().for_each(|part| each_reference(part, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_equal_definitions_have_one_digest() {
        let closure =
            |schema: Value| Closure::of(&BTreeMap::from([("Part".to_owned(), Arc::new(Digested::of(&schema)))]));
        let all = [
            json!({ "const": -1 }),
            json!({ "const": u64::MAX }),
            json!({ "const": 1.0 }),
            json!({ "const": 4_607_182_418_800_017_408_u64 }),
            json!({ "const": 1 }),
            json!({ "const": "1" }),
            json!({ "const": null }),
            json!({ "const": "null" }),
            json!({ "const": [1, 2] }),
            json!({ "const": [[1], 2] }),
            json!({ "const": [12] }),
            json!({ "const": {} }),
            json!({ "const": [] }),
            json!({ "type": "string", "title": "a" }),
            json!({ "type": "a", "title": "string" }),
        ];
        for (at, one) in all.iter().enumerate() {
            for (other_at, other) in all.iter().enumerate() {
                assert_eq!(closure(one.clone()) == closure(other.clone()), at == other_at, "{one} {other}");
            }
        }
        assert!(closure(json!({ "a": 1, "b": 2 })) == closure(json!({ "b": 2, "a": 1 })));
    }
}
