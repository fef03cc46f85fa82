//! JSON pointers (RFC 6901), and `$ref`s that hold one.

use std::borrow::Cow;
use std::rc::Rc;

use serde_json::{Value, json};

/// A pointer that shares what is above it with its neighbours, so that a long name is held once.
#[derive(Debug, Clone, Default)]
pub(super) struct Path<'a>(Option<Rc<Step<'a>>>);

#[derive(Debug)]
struct Step<'a> {
    above: Path<'a>,
    token: Token<'a>,
    /// Identifies the place: see [`Node::key`](super::document::Node::key).
    key: usize,
}

/// One step of a pointer: the name of a member, or the number of an item.
#[derive(Debug, Clone)]
pub(super) enum Token<'a> {
    Name(Cow<'a, str>),
    Number(usize),
}

impl<'a> Path<'a> {
    /// The pointer to a place below this one.
    pub(super) fn child(&self, token: Token<'a>, key: usize) -> Self {
        Self(Some(Rc::new(Step { above: self.clone(), token, key })))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// True if the place with this key is on the path, or is its end.
    pub(super) fn passes(&self, key: usize) -> bool {
        let mut path = self;
        while let Some(step) = &path.0 {
            if step.key == key {
                return true;
            }
            path = &step.above;
        }
        false
    }

    /// The steps from the root.
    pub(super) fn tokens(&self) -> Vec<Token<'a>> {
        let mut tokens = Vec::new();
        let mut path = self;
        while let Some(step) = &path.0 {
            tokens.push(step.token.clone());
            path = &step.above;
        }
        tokens.reverse();
        tokens
    }

    /// The pointer as text.
    #[cfg(test)]
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        self.tokens().iter().for_each(|token| push(&mut text, &token.name()));
        text
    }

    /// The pointer as text for a message, cut before it exceeds `limit` bytes.
    pub(super) fn short(&self, limit: usize) -> String {
        let mut text = String::new();
        for token in self.tokens() {
            let name = token.name();
            if text.len() + name.len() > limit {
                text.push_str("/...");
                break;
            }
            push(&mut text, &name);
        }
        text
    }
}

impl Token<'_> {
    /// The step as a pointer names it, unescaped.
    pub(super) fn name(&self) -> Cow<'_, str> {
        match self {
            Self::Name(name) => Cow::Borrowed(name),
            Self::Number(number) => Cow::Owned(number.to_string()),
        }
    }
}

pub(super) use crate::pointer::percent_decoded;
pub(crate) use crate::pointer::{push, tokens};

/// True if a reference that is not found from the root is looked up in the schemas around it.
pub(super) fn may_lead_around(reference: &str) -> bool {
    reference.starts_with("#/$defs/") || reference.starts_with("#/definitions/")
}

/// The value of a `$ref` to a definition.
pub(super) fn definition_reference(name: &str) -> Value {
    Value::String(crate::pointer::reference(name))
}

/// A schema that is a `$ref` to a definition.
pub(super) fn reference_to(name: &str) -> Value {
    json!({ "$ref": definition_reference(name) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_escaped_and_unescaped() {
        let mut pointer = String::new();
        for token in ["paths", "/pets/{id}", "a~b", ""] {
            push(&mut pointer, token);
        }
        assert_eq!(pointer, "/paths/~1pets~1{id}/a~0b/");
        assert_eq!(tokens(&pointer).collect::<Vec<_>>(), ["paths", "/pets/{id}", "a~b", ""]);
        assert_eq!(tokens("").count(), 0);
        assert_eq!(tokens("/~01").collect::<Vec<_>>(), ["~1"]);
    }
}
