//! A schema, wherever it is kept.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::Value;

use crate::Schema;

/// A schema that is borrowed from its spec, or was made for it.
#[derive(Debug, Clone)]
pub(super) enum Held<'a> {
    Borrowed(&'a Value),
    Owned(Rc<Value>),
    /// A part of a schema, by its pointer: a schema may have many parts, each referred to many times.
    Part(Rc<Value>, String),
}

/// What a pointer leads to that leads nowhere.
static NOTHING: Value = Value::Null;

impl<'a> Held<'a> {
    pub(super) fn of(schema: &'a Schema) -> Self {
        match schema.to_value() {
            Ok(Cow::Borrowed(value)) => Self::Borrowed(value),
            Ok(Cow::Owned(value)) => Self::Owned(Rc::new(value)),
            // A text that is no JSON says nothing.
            Err(_) => Self::Owned(Rc::new(Value::Bool(true))),
        }
    }

    pub(super) fn value(&self) -> &Value {
        match self {
            Self::Borrowed(value) => value,
            Self::Owned(value) => value,
            Self::Part(whole, pointer) => whole.pointer(pointer).unwrap_or(&NOTHING),
        }
    }

    /// A part of the schema; `None` if there is none at that pointer.
    pub(super) fn part(self, pointer: String) -> Option<Self> {
        match self {
            Self::Borrowed(value) => Some(Self::Borrowed(value.pointer(&pointer)?)),
            Self::Owned(value) => value.pointer(&pointer).is_some().then(|| Self::Part(value, pointer)),
            Self::Part(whole, at) => Self::Owned(whole).part(at + &pointer),
        }
    }
}
