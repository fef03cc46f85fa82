//! Chooses one of several content types for a body, if each has its own schema and the input names none.

mod judge;

use serde_json::{Map, Value};

use self::judge::{Judge, Verdict};
use crate::{HttpBinding, HttpBody, OperationSpec};

/// The endpoint's bodies in the order of the document, in which JSON comes first.
///
/// A body whose schema refuses the value is moved behind the first one whose schema accepts it. If that cannot be
/// decided, the order stays.
pub(super) fn by_value<'b>(
    spec: &OperationSpec,
    binding: &'b HttpBinding,
    members: &Map<String, Value>,
) -> Vec<&'b HttpBody> {
    let mut bodies: Vec<&HttpBody> = binding.bodies.iter().collect();
    let [first, _, ..] = bodies.as_slice() else { return bodies };
    let Some(value) = members.get(first.property.as_ref()) else { return bodies };
    let Ok(input) = spec.input.to_value() else { return bodies };
    let described = input.get("properties").and_then(|properties| properties.get(first.property.as_ref()));
    let Some(Value::Array(alternatives)) = described.and_then(|schema| schema.get("oneOf")) else { return bodies };
    let judge = Judge::new(&spec.definitions, value, bodies.len());
    let verdict = |body: &&HttpBody| match binding.alternative(body, alternatives) {
        Some(schema) if body.property == first.property => judge.verdict(schema, value),
        _ => Verdict::Unknown,
    };
    let first = bodies.iter().map(verdict).enumerate().find(|(_, verdict)| *verdict != Verdict::Refused);
    if let Some((at, Verdict::Taken)) = first {
        bodies.rotate_left(at);
    }
    bodies
}
