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
    let first = *bodies.iter().find(|body| body.variant.is_some()).unwrap_or(first);
    let Some(value) = members.get(first.property.as_ref()) else { return bodies };
    let Ok(input) = spec.input.to_value() else { return bodies };
    let described = input.get("properties").and_then(|properties| properties.get(first.property.as_ref()));
    let Some(all) = described else { return bodies };
    let judge = Judge::new(&spec.definitions, value, bodies.len());
    let own = |body: &HttpBody| binding.alternative(body, all).filter(|_| body.property == first.property);
    let verdict = |body: &HttpBody| own(body).map_or(Verdict::Unknown, |schema| judge.verdict(schema, value));
    let judged = bodies.iter().map(|&body| (body, verdict(body))).enumerate();
    let possible: Vec<(usize, (&HttpBody, Verdict))> =
        judged.filter(|(_, (_, verdict))| *verdict != Verdict::Refused).collect();
    let refuses = |body: &HttpBody| own(body).is_some_and(|schema| judge.refuses(schema, value));
    let fitting = possible.iter().find(|(_, (body, _))| possible.len() == 1 || !refuses(body));
    let fitting = fitting.filter(|(_, (_, verdict))| *verdict == Verdict::Taken);
    // If every possible body refuses some part of the value, the document may not know that part: the first of them is used.
    if let Some((at, (_, Verdict::Taken))) = fitting.or(possible.first()) {
        bodies.rotate_left(*at);
    }
    bodies
}
