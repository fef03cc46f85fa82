//! Decides if a part of a body is bytes or text, by the schema of the operation's input.

mod texts;

use std::cell::Cell;

use serde_json::Value;

use crate::http::media::is_json;
use crate::model::keywords;
use crate::pointer;
use crate::{Definitions, OperationSpec};

pub(super) use texts::{all_texts, texts_of};

/// How deep references and combined schemas are followed.
const DEPTH: usize = 16;

/// Limit of the visited schemas.
const ROOM: usize = 1_000;

/// True if the document describes the property `name` of the body as bytes: a string with the format `binary`.
pub(super) fn is_binary(spec: &OperationSpec, property: &str, name: &str) -> bool {
    is_part(spec, property, name, &|walker, part| walker.binary(part, DEPTH))
}

/// True if the document describes the property `name` of the body as text that holds JSON.
pub(super) fn is_json_text(spec: &OperationSpec, property: &str, name: &str) -> bool {
    is_part(spec, property, name, &|walker, part| walker.json_text(part, DEPTH))
}

/// True if a condition holds for the schema of the property `name` of the body: the declared one, or else that of all
/// other properties, unless the name may match a pattern.
fn is_part(spec: &OperationSpec, property: &str, name: &str, holds: &dyn Fn(&Walker<'_>, &Value) -> bool) -> bool {
    let Ok(input) = spec.input.to_value() else { return false };
    let is_declared = Walker::new(&spec.definitions).any_of_body(&input, property, &|body| own(body, name).is_some());
    // Patterns are not evaluated here, and a text that matches one must not be taken for bytes.
    let has_patterns = |body: &Value| body.as_object().is_some_and(keywords::has_patterns);
    if !is_declared && Walker::new(&spec.definitions).any_of_body(&input, property, &has_patterns) {
        return false;
    }
    let walker = Walker::new(&spec.definitions);
    walker.any_of_body(&input, property, &|body| match is_declared {
        true => own(body, name).is_some_and(|part| holds(&walker, part)),
        false => body.as_object().is_some_and(|body| keywords::undeclared(body).any(|part| holds(&walker, part))),
    })
}

/// The schema of a declared property.
fn own<'s>(body: &'s Value, name: &str) -> Option<&'s Value> {
    body.get("properties")?.get(name)
}

/// True if the document describes a body as bytes, or as a list of them.
pub(super) fn is_all_binary(spec: &OperationSpec, property: &str) -> bool {
    let Ok(input) = spec.input.to_value() else { return false };
    let walker = Walker::new(&spec.definitions);
    walker.any_of_body(&input, property, &|body| walker.binary(body, DEPTH))
}

/// The schema of the body in that of the input: of a property, or if it has no name, of the whole.
fn of_body<'s>(input: &'s Value, property: &str) -> Option<&'s Value> {
    if property.is_empty() { Some(input) } else { input.get("properties")?.get(property) }
}

struct Walker<'a> {
    definitions: &'a Definitions,
    room: Cell<usize>,
}

impl<'a> Walker<'a> {
    fn new(definitions: &'a Definitions) -> Self {
        Self { definitions, room: Cell::new(ROOM) }
    }

    /// True if a condition holds for a schema of the body.
    fn any_of_body(&self, input: &Value, property: &str, holds: &dyn Fn(&Value) -> bool) -> bool {
        self.any(input, DEPTH, &|schema| of_body(schema, property).is_some_and(|body| self.any(body, DEPTH, holds)))
    }

    fn binary(&self, schema: &Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        self.any(schema, depth, &|schema| {
            schema.get("format").is_some_and(|format| format == "binary")
                || schema.get("items").is_some_and(|items| self.binary(items, depth))
        })
    }

    fn json_text(&self, schema: &Value, depth: usize) -> bool {
        let Some(depth) = depth.checked_sub(1) else { return false };
        self.any(schema, depth, &|schema| {
            schema.get("contentMediaType").and_then(Value::as_str).is_some_and(is_json)
                || schema.get("items").is_some_and(|items| self.json_text(items, depth))
        })
    }

    /// True if a condition holds for a schema, or for one that it refers to or is composed of.
    fn any(&self, schema: &Value, depth: usize, holds: &dyn Fn(&Value) -> bool) -> bool {
        let (Some(depth), Some(room)) = (depth.checked_sub(1), self.room.get().checked_sub(1)) else { return false };
        self.room.set(room);
        if holds(schema) {
            return true;
        }
        if self.target(schema, |target| self.any(target, depth, holds)) == Some(true) {
            return true;
        }
        let parts = ["allOf", "anyOf", "oneOf"].iter().filter_map(|keyword| schema.get(*keyword)?.as_array());
        parts.flatten().any(|part| self.any(part, depth, holds))
    }

    /// What a function says of the schema that another one refers to.
    fn target<T>(&self, schema: &Value, of: impl FnOnce(&Value) -> T) -> Option<T> {
        let reference = schema.get("$ref")?.as_str()?;
        let name = pointer::definition(reference).unwrap_or(reference.into());
        let definition = self.definitions.get(&name)?.schema.to_value().ok()?;
        definition.pointer(pointer::within_definition(reference)).map(of)
    }
}
