//! What the schema of the operation's input says of a part of a body, or of a parameter: if it is bytes or text, and more.

mod texts;

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::http::invalid;
use crate::http::media::is_json;
use crate::model::keywords;
use crate::pointer;
use crate::{CallError, Definitions, OperationSpec};

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

/// Refuses an empty list or object, or `null`, which is not written in a request, if the server would use a default in its place.
///
/// `name` is a property of the body. If `property` is empty, it is a property of the input.
///
/// # Errors
/// A `VALIDATION_ERROR` if the document describes a default that is another value.
pub(in crate::http) fn refuse_replaced(
    spec: &OperationSpec,
    property: &str,
    name: &str,
    value: &Value,
) -> Result<(), CallError> {
    if !is_part(spec, property, name, &|walker, part| walker.replaces(part, value)) {
        return Ok(());
    }
    let mut place = String::new();
    if !property.is_empty() {
        pointer::push(&mut place, property);
    }
    pointer::push(&mut place, name);
    let what = if value.is_null() { "`null` for" } else { "an empty" };
    let message = format!(
        "{what} `{name}` is not written in the request, so the server would use its default: leave it out for the default, \
         or give it a value"
    );
    Err(invalid(&place, message))
}

/// What the document says of a property of the input that may be an object.
pub(in crate::http) struct Object {
    /// The names of the declared properties.
    pub(in crate::http) names: BTreeSet<String>,
    /// True if it may have other properties beside the declared ones.
    pub(in crate::http) has_others: bool,
    /// True if the property can only be an object or `null`.
    pub(in crate::http) is_all: bool,
}

/// What the document says of these properties of the input.
pub(in crate::http) fn objects<'p>(spec: &OperationSpec, properties: impl Iterator<Item = &'p str>) -> Vec<Object> {
    let input = spec.input.to_value().unwrap_or_default();
    let object = |property: &str| {
        let (names, types) = (RefCell::new(BTreeSet::<String>::new()), RefCell::new(BTreeSet::<String>::new()));
        let has_others = Cell::new(false);
        Walker::new(spec, &input).any_of_body(&input, property, &|schema| {
            let mut others = schema.as_object().into_iter().flat_map(keywords::undeclared);
            has_others.set(has_others.get() || others.any(|others| *others != Value::Bool(false)));
            let own = schema.get("properties").and_then(Value::as_object);
            names.borrow_mut().extend(own.into_iter().flat_map(Map::keys).cloned());
            let of_keywords = (own.is_some() || schema.get("additionalProperties").is_some()).then_some("object");
            let mut types = types.borrow_mut();
            match schema.get("type") {
                Some(Value::Array(several)) => {
                    types.extend(several.iter().filter_map(Value::as_str).map(str::to_owned))
                }
                Some(one) => types.extend(one.as_str().map(str::to_owned)),
                None => types.extend(of_keywords.map(str::to_owned)),
            }
            false
        });
        let types = types.into_inner();
        let is_all = types.contains("object") && types.iter().all(|own| own == "object" || own == "null");
        Object { names: names.into_inner(), has_others: has_others.get(), is_all }
    };
    properties.map(object).collect()
}

/// True if a condition holds for the schema of the property `name` of the body: the declared one, or else that of all
/// other properties, unless the name may match a pattern.
fn is_part(spec: &OperationSpec, property: &str, name: &str, holds: &dyn Fn(&Walker<'_>, &Value) -> bool) -> bool {
    let Ok(input) = spec.input.to_value() else { return false };
    let is_declared = Walker::new(spec, &input).any_of_body(&input, property, &|body| own(body, name).is_some());
    // Patterns are not evaluated here, and a text that matches one must not be taken for bytes.
    let has_patterns = |body: &Value| body.as_object().is_some_and(keywords::has_patterns);
    if !is_declared && Walker::new(spec, &input).any_of_body(&input, property, &has_patterns) {
        return false;
    }
    let walker = Walker::new(spec, &input);
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
    let walker = Walker::new(spec, &input);
    walker.any_of_body(&input, property, &|body| walker.binary(body, DEPTH))
}

/// The schema of the body in that of the input: of a property, or if it has no name, of the whole.
fn of_body<'s>(input: &'s Value, property: &str) -> Option<&'s Value> {
    if property.is_empty() { Some(input) } else { input.get("properties")?.get(property) }
}

struct Walker<'a> {
    /// The definitions inside the schema of the input, which come first.
    own: Option<&'a Value>,
    definitions: &'a Definitions,
    room: Cell<usize>,
}

impl<'a> Walker<'a> {
    fn new(spec: &'a OperationSpec, input: &'a Value) -> Self {
        Self { own: input.get("$defs"), definitions: &spec.definitions, room: Cell::new(ROOM) }
    }

    /// True if a condition holds for a schema of the body.
    fn any_of_body(&self, input: &Value, property: &str, holds: &dyn Fn(&Value) -> bool) -> bool {
        self.any(input, DEPTH, &|schema| of_body(schema, property).is_some_and(|body| self.any(body, DEPTH, holds)))
    }

    /// True if a schema has a default that is not what the value is anyway: an empty list or object, or `null`.
    fn replaces(&self, schema: &Value, value: &Value) -> bool {
        // An object without members gets the defaults of its properties.
        let is_own = |name: &str, member: &Value| {
            let declares = |part: &Value| own(part, name).is_some_and(|own| own.get("default") == Some(member));
            member.is_null() || self.any(schema, DEPTH, &declares)
        };
        self.any(schema, DEPTH, &|part| match part.get("default") {
            None | Some(Value::Null) => false,
            // What is empty is another value than `null`.
            Some(_) if value.is_null() => true,
            Some(Value::Array(items)) => !items.iter().all(Value::is_null),
            Some(Value::Object(members)) => !members.iter().all(|(name, value)| is_own(name, value)),
            Some(Value::String(text)) => !text.is_empty(),
            Some(_) => true,
        })
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
        let within = pointer::within_definition(reference);
        if let Some(own) = self.own.and_then(|own| own.get(&*name)) {
            return own.pointer(within).map(of);
        }
        let definition = self.definitions.get(&name)?.schema.to_value().ok()?;
        definition.pointer(within).map(of)
    }
}
