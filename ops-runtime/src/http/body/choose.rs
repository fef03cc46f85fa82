//! Chooses one of several content types for a body, if each has its own schema and the input names none.

mod judge;

use serde_json::{Map, Value};

use self::judge::{Judge, Verdict};
use crate::model::media::Media;
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
    let verdict = |body: &&HttpBody| match alternative(body, binding, alternatives) {
        Some(schema) if body.property == first.property => judge.verdict(schema, value),
        _ => Verdict::Unknown,
    };
    let first = bodies.iter().map(verdict).enumerate().find(|(_, verdict)| *verdict != Verdict::Refused);
    if let Some((at, Verdict::Taken)) = first {
        bodies.rotate_left(at);
    }
    bodies
}

/// The schema of a body among those of all bodies, which are named after the kind of their content.
fn alternative<'s>(body: &HttpBody, binding: &HttpBinding, all: &'s [Value]) -> Option<&'s Value> {
    let kind = Media::of(&body.content_type);
    let is_of_kind = |schema: &&Value| {
        let title = schema.get("title").and_then(Value::as_str).unwrap_or_default();
        let title = title.trim_end_matches(|c: char| c == '_' || c.is_ascii_digit());
        title == word(kind) || title == "Lines" && kind.is_lines()
    };
    let mut own = all.iter().filter(is_of_kind);
    let alike: Vec<&HttpBody> = binding.bodies.iter().filter(|other| Media::of(&other.content_type) == kind).collect();
    let at = alike.iter().position(|other| std::ptr::eq(*other, body))?;
    match own.clone().count() {
        1 => own.next(),
        count if count == alike.len() => own.nth(at),
        // Some of them share a schema, so it is unclear which is meant.
        _ => None,
    }
}

/// The word after which the reader of documents names the schema of a body.
fn word(kind: Media) -> &'static str {
    match kind {
        Media::Json => "Json",
        Media::Form => "Form",
        Media::Multipart => "Multipart",
        Media::Text | Media::Events | Media::Lines | Media::Sequence => "Text",
        Media::Bytes | Media::Other => "Bytes",
    }
}
