//! Booleans that choose between a result and a stream: operations set them, so no input has them, and the document has
//! them again.

use serde_json::{Value, json};

use super::components::Components;
use super::request::fixed;
use super::response::Given;
use crate::{HttpBody, HttpParameter, OperationSpec};

/// How deep references and combined schemas are followed.
const DEPTH: usize = 16;

/// True if every request has a fixed parameter: the operation with one result sends it, too.
pub(super) fn needs(given: &Given<'_>, parameter: &HttpParameter) -> bool {
    let has = |spec: &OperationSpec| {
        spec.http()
            .is_some_and(|http| http.parameters.iter().any(|own| own.name == parameter.name && own.fixed.is_some()))
    };
    parameter.fixed.is_some() && given.specs().all(has)
}

/// The schema of a fixed parameter of two operations at one path: either of their values.
pub(super) fn choice(given: &Given<'_>) -> Option<Value> {
    (given.plain.is_some() && given.stream.is_some()).then(|| json!({ "type": "boolean" }))
}

/// Puts the fixed properties of the bodies back into their schemas.
pub(super) fn restore(given: &Given<'_>, body: &mut Value, components: &mut Components) {
    let Some(spec) = given.stream.or(given.plain) else { return };
    let bodies = |spec: &OperationSpec| spec.http().map(|http| http.bodies.clone()).unwrap_or_default();
    let twins = given.plain.filter(|_| given.stream.is_some()).map(bodies);
    for own in bodies(spec).iter() {
        let twin = twins.as_ref().and_then(|all| all.iter().find(|twin| twin.content_type == own.content_type));
        let schema =
            body.pointer_mut("/content").and_then(|content| content.get_mut(&*own.content_type)?.get_mut("schema"));
        if let Some(schema) = schema {
            restore_all(own, twin, given, schema, components);
        }
    }
}

fn restore_all(
    own: &HttpBody,
    twin: Option<&HttpBody>,
    given: &Given<'_>,
    schema: &mut Value,
    components: &mut Components,
) {
    for entry in own.fixed.iter() {
        let Some(value) = &entry.value else { continue };
        let property = choice(given).unwrap_or_else(|| fixed(value));
        let is_sent =
            |twin: &HttpBody| twin.fixed.iter().any(|other| other.name == entry.name && other.value.is_some());
        let is_needed = twin.is_none_or(is_sent);
        insert(schema, &entry.name, &property, is_needed, components, DEPTH);
    }
}

/// Adds a property to a schema of objects, or to each of its alternatives.
fn insert(
    schema: &mut Value,
    name: &str,
    property: &Value,
    is_needed: bool,
    components: &mut Components,
    depth: usize,
) -> bool {
    let Some(depth) = depth.checked_sub(1) else { return false };
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str).map(str::to_owned) {
        let Some(mut target) = components.target(&reference).map(std::mem::take) else { return false };
        let done = insert(&mut target, name, property, is_needed, components, depth);
        if let Some(place) = components.target(&reference) {
            *place = target;
        }
        return done;
    }
    let Some(members) = schema.as_object_mut() else { return false };
    if let Some(properties) = members.get_mut("properties").and_then(Value::as_object_mut) {
        if properties.contains_key(name) {
            return true;
        }
        properties.insert(name.to_owned(), property.clone());
        if is_needed {
            let required = members.entry("required").or_insert_with(|| Value::Array(Vec::new()));
            if let Some(required) = required.as_array_mut() {
                required.push(name.into());
            }
        }
        return true;
    }
    if let Some(parts) = members.get_mut("allOf").and_then(Value::as_array_mut) {
        // One of the parts has it: one of this schema only, rather than one that others may share.
        let mut of = |shared: bool| {
            let mut parts = parts.iter_mut().filter(|part| part.get("$ref").is_some() == shared);
            parts.any(|part| insert(part, name, property, is_needed, components, depth))
        };
        return of(false) || of(true);
    }
    let mut is_done = false;
    for key in ["oneOf", "anyOf"] {
        for part in members.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
            is_done |= insert(part, name, property, is_needed, components, depth);
        }
    }
    is_done
}
