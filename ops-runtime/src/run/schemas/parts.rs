//! The parts that make up a schema: references and `allOf`.

use std::collections::HashSet;

use serde_json::Value;

use crate::model::keywords::{Holds, certain, holds};
use crate::pointer;

/// How deep schemas are searched.
const DEPTH: usize = 256;

/// Finds the parts of the schemas of a document with its own definitions.
pub(super) struct Parts<'s> {
    root: &'s Value,
    /// How many more parts may be visited: each counts once for every schema that leads to it.
    left: usize,
}

impl<'s> Parts<'s> {
    /// `None` unless the condition holds for an object anywhere in the document.
    pub(super) fn of(root: &'s Value, holds: impl Fn(&Value) -> bool) -> Option<Self> {
        let (mut size, mut is_there) = (0, false);
        let mut open = vec![root];
        while let Some(value) = open.pop() {
            match value {
                Value::Object(object) => {
                    size += 1;
                    is_there |= holds(value);
                    open.extend(object.values());
                }
                Value::Array(items) => open.extend(items),
                _ => {}
            }
        }
        is_there.then_some(Self { root, left: 16 * size + 4096 })
    }

    /// A schema with all that it refers to and is combined with; only some of that if the work exceeds the document's
    /// size.
    pub(super) fn all(&mut self, schema: &'s Value) -> Vec<&'s Value> {
        self.reached(schema, |part| part.get("allOf").and_then(Value::as_array).into_iter().flatten().collect())
    }

    /// The same, and the only variant beside null: what a property is marked with may be said there, too.
    pub(super) fn marking(&mut self, schema: &'s Value) -> Vec<&'s Value> {
        self.reached(schema, |part| certain(part).collect())
    }

    fn reached(&mut self, schema: &'s Value, members: fn(&'s Value) -> Vec<&'s Value>) -> Vec<&'s Value> {
        let mut parts = vec![schema];
        let mut seen = HashSet::new();
        let mut at = 0;
        while let Some(part) = parts.get(at).copied() {
            at += 1;
            for next in self.target(part).into_iter().chain(members(part)) {
                if !self.spend(1) {
                    return parts;
                }
                if address(next) != address(schema) && seen.insert(address(next)) {
                    parts.push(next);
                }
            }
        }
        parts
    }

    /// Like [`all`](Self::all), if each part costs more than one step; only the schema itself if there is not enough room.
    pub(super) fn with_room(&mut self, schema: &'s Value, cost: impl Fn(&Value) -> usize) -> Vec<&'s Value> {
        let mut parts = self.all(schema);
        if !self.spend(parts.iter().map(|part| cost(part)).sum()) {
            parts.truncate(1);
        }
        parts
    }

    /// Counts work; `false` if the limit is reached.
    pub(super) fn spend(&mut self, steps: usize) -> bool {
        let has_room = self.left >= steps;
        self.left = self.left.saturating_sub(steps);
        has_room
    }

    /// The definition that a schema refers to.
    fn target(&self, schema: &Value) -> Option<&'s Value> {
        let name = pointer::definition(schema.get("$ref")?.as_str()?)?;
        self.root.get("$defs")?.get(&*name)
    }
}

/// Identifies a schema while none is added or removed.
pub(super) fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

/// Calls a function with each schema that is an object, this one and its subschemas.
pub(super) fn each_schema<'s>(schema: &'s Value, run: &mut dyn FnMut(&'s Value)) {
    each(schema, run, DEPTH);
}

fn each<'s>(schema: &'s Value, run: &mut dyn FnMut(&'s Value), depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match schema {
        Value::Object(node) => {
            run(schema);
            for (keyword, value) in node {
                match (holds(keyword), value) {
                    (Holds::Value, _) => {}
                    (Holds::Named | Holds::Definitions, Value::Object(schemas)) => {
                        schemas.values().for_each(|schema| each(schema, run, depth));
                    }
                    (_, value) => each(value, run, depth),
                }
            }
        }
        Value::Array(schemas) => schemas.iter().for_each(|schema| each(schema, run, depth)),
        _ => {}
    }
}

/// Like [`each_schema`], for a function that changes schemas.
pub(super) fn each_schema_mut(schema: &mut Value, run: &mut dyn FnMut(&mut Value)) {
    each_mut(schema, run, DEPTH);
}

fn each_mut(schema: &mut Value, run: &mut dyn FnMut(&mut Value), depth: usize) {
    let Some(depth) = depth.checked_sub(1) else { return };
    if schema.is_object() {
        run(schema);
    }
    match schema {
        Value::Object(node) => {
            for (keyword, value) in node.iter_mut() {
                match (holds(keyword), value) {
                    (Holds::Value, _) => {}
                    (Holds::Named | Holds::Definitions, Value::Object(schemas)) => {
                        schemas.values_mut().for_each(|schema| each_mut(schema, run, depth));
                    }
                    (_, value) => each_mut(value, run, depth),
                }
            }
        }
        Value::Array(schemas) => schemas.iter_mut().for_each(|schema| each_mut(schema, run, depth)),
        _ => {}
    }
}
