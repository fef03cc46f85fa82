//! What may be looked at beside the schemas that types are made of, so that the work for an API is proportional to its size.

use std::cell::Cell;

use serde_json::Value;

/// So many values of schemas may be looked at for any API: to find where a property is described, what a variant is, or what a
/// reference leads to.
const LEAST: usize = 50_000;

/// So many more for each schema that is read.
const EACH: usize = 100;

/// A text counts as another value for each of so many bytes.
const TEXT: usize = 64;

/// How many more values may be looked at.
#[derive(Debug)]
pub(super) struct Budget(Cell<usize>);

impl Default for Budget {
    fn default() -> Self {
        Self(Cell::new(LEAST))
    }
}

impl Budget {
    /// Raises the budget for schemas that were read.
    pub(super) fn earn(&self, schemas: usize) {
        self.0.set(self.0.get().saturating_add(schemas.saturating_mul(EACH)));
    }

    /// True if so many more values may be looked at. If not, fewer still may be.
    pub(super) fn looks(&self, count: usize) -> bool {
        let left = self.0.get().checked_sub(count);
        if let Some(left) = left {
            self.0.set(left);
        }
        left.is_some()
    }

    /// True if a type may be made of the whole schema once more, which counts each of its values.
    pub(super) fn affords(&self, schema: &Value) -> bool {
        // An explicit stack: a schema may be nested deeper than the thread's stack allows.
        let mut stack = vec![schema];
        while let Some(value) = stack.pop() {
            let count = match value {
                Value::String(text) => 1 + text.len() / TEXT,
                Value::Array(items) => 1 + items.len(),
                Value::Object(members) => 1 + members.len(),
                _ => 1,
            };
            if !self.looks(count) {
                return false;
            }
            match value {
                Value::Array(items) => stack.extend(items),
                Value::Object(members) => stack.extend(members.values()),
                _ => {}
            }
        }
        true
    }
}
