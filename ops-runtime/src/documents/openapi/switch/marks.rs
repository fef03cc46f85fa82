//! References to narrowed definitions, which have no names until all of them are known: marks stand for them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::documents::openapi::pointer;
use crate::pointer::{DEFINITIONS, unescaped};

/// The prefix of a reference to a narrowed definition until that has its name.
pub(super) const ON: &str = "switch:on:";
pub(super) const OFF: &str = "switch:off:";

/// The prefix of references to definitions.
pub(super) const REFERENCE: &str = DEFINITIONS;

/// A definition that was narrowed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    pub(super) name: String,
    pub(super) property: String,
    pub(super) on: bool,
}

impl Key {
    /// What stands for a reference to it until it has its name.
    pub(super) fn mark(&self) -> String {
        let mut property = String::new();
        pointer::push(&mut property, &self.property);
        format!("{}{property}/{}", if self.on { ON } else { OFF }, self.name)
    }

    fn of_mark(text: &str) -> Option<Self> {
        let (on, rest) = text.strip_prefix(ON).map(|rest| (true, rest)).or_else(|| {
            let rest = text.strip_prefix(OFF)?;
            Some((false, rest))
        })?;
        let (property, name) = rest.strip_prefix('/')?.split_once('/')?;
        Some(Self { name: name.to_owned(), property: unescaped(property).into_owned(), on })
    }
}

/// All texts of a schema that may be references, in `$ref` and in discriminators.
fn each<'v>(schema: &'v Value, take: &mut dyn FnMut(&'v str)) {
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Array(items) => stack.extend(items),
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref" | "defaultMapping", Value::String(text)) => take(text),
                        ("mapping", Value::Object(mapping)) => {
                            mapping.values().filter_map(Value::as_str).for_each(&mut *take);
                            stack.push(value);
                        }
                        _ => stack.push(value),
                    }
                }
            }
            _ => {}
        }
    }
}

/// Adds the names of the original definitions that a schema refers to.
pub(super) fn references(schema: &Value, names: &mut Vec<String>) {
    each(schema, &mut |text| names.extend(text.strip_prefix(REFERENCE).map(|name| unescaped(name).into_owned())));
}

/// The narrowed definitions that a schema refers to.
pub(super) fn marks(schema: &Value) -> Vec<Key> {
    let mut found = Vec::new();
    each(schema, &mut |text| found.extend(Key::of_mark(text)));
    found
}

/// Replaces the marks of narrowed definitions by their names.
pub(super) fn rename(schema: &mut Value, names: &BTreeMap<Key, String>) {
    let named = |value: &mut Value| {
        let name = value.as_str().and_then(Key::of_mark).and_then(|key| names.get(&key));
        if let Some(name) = name {
            *value = pointer::definition_reference(name);
        }
    };
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        match value {
            Value::Array(items) => stack.extend(items),
            Value::Object(members) => {
                for (key, value) in members {
                    match (key.as_str(), value) {
                        ("$ref" | "defaultMapping", value @ Value::String(_)) => named(value),
                        ("mapping", Value::Object(mapping)) => {
                            mapping.values_mut().for_each(named);
                            stack.extend(mapping.values_mut());
                        }
                        (_, value) => stack.push(value),
                    }
                }
            }
            _ => {}
        }
    }
}
