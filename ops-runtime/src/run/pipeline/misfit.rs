//! Errors of responses that do not match the operation's output; they keep the response.

use bytes::Bytes;
use serde_core::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::{Map, Value, json};

use crate::model::cut::start;
use crate::model::media::essence;
use crate::model::text::readable;
use crate::normalise::NO_MORE;
use crate::record::{self, DecodeError};
use crate::run::payload::Payload;
use crate::run::schemas::{Schemas, Told};
use crate::{Body, CallError, ErrorCode, OperationKind, OperationSpec, OutputPolicy, ResponseMeta, Warning};

/// How many bytes are kept of a response of another kind; one that only does not match is kept whole.
const MAX_FOREIGN: usize = 64 * 1024;

/// Limit of the violations that an error lists; it also has the number of the others.
const MAX_LISTED: usize = 100;

/// Limit of an event's type in an error, in characters.
const MAX_EVENT: usize = 100;

/// The error of a response of another kind than the operation's output: a page of HTML, a list instead of an object.
pub(super) fn foreign(meta: &ResponseMeta, expected: &str, found: &str, raw: Payload) -> CallError {
    let (raw, cut) = cut(raw_value(raw), MAX_FOREIGN);
    misplaced(meta, expected, found, raw, cut)
}

/// The error of a body of another content type than the described ones.
pub(super) fn foreign_body(
    spec: &OperationSpec,
    meta: &ResponseMeta,
    expected: &str,
    found: &str,
    data: Payload,
) -> CallError {
    match &data {
        // Only its beginning has arrived.
        Payload::Body(body) if body.as_bytes().is_none() => {
            misplaced(meta, expected, &format!("{found}, which is too long to show, or broke off"), Value::Null, true)
        }
        _ => foreign(meta, expected, found, unencoded(spec, meta, data)),
    }
}

/// The error of a response of another kind than the operation's output; `cut` is true if `raw` is not all of it.
pub(crate) fn misplaced(meta: &ResponseMeta, expected: &str, found: &str, raw: Value, cut: bool) -> CallError {
    let message = format!("the response is not what the operation gives: expected {expected}, found {found}");
    let violations = vec![json!({ "pointer": "", "expected": expected, "found": found })];
    error(meta, message, violations, raw, cut)
}

/// The error of a response that does not match its schema, under a policy that allows no difference.
pub(super) fn strict(meta: &ResponseMeta, told: &[Told], raw: Payload) -> CallError {
    let told: Vec<&Told> = told.iter().collect();
    let message = format!("the response does not match its schema: {}", summary(None, &told));
    error(meta, message, list(None, &told), raw_value(raw), false)
}

/// The error of a result that is returned unrepaired to a caller that relies on the schema; it contains the value.
pub(super) fn unfit(meta: &ResponseMeta, told: &[Told], value: Value) -> CallError {
    let told: Vec<&Told> = told.iter().collect();
    let message = format!("the result does not match its schema: {}", summary(None, &told));
    let error = error(meta, message, list(None, &told), Value::Null, false);
    let details = json!({ "violations": error.violations(), "value": value });
    meta.told(error.with_details(details))
}

/// The error of a response that cannot be read into the operation's type.
pub(super) fn mismatch(meta: &ResponseMeta, decode: &DecodeError, told: &[Told], raw: Payload) -> CallError {
    // Some violations of the schema, such as an unknown enum value, do not keep a response from its type.
    let mut kept: Vec<(Nearness, &Told)> = told
        .iter()
        .filter(|told| told.is_kept())
        .map(|told| (nearness(&decode.pointer, &told.warning), told))
        .collect();
    kept.sort_by_key(|(nearness, _)| *nearness);
    // A value of another type at the place says more than the type's first mismatch. If there is none, the schema allows
    // what the type does not take, or has a rule that is not the cause.
    let is_told = kept.first().is_some_and(|(nearness, _)| *nearness < Nearness::Rule);
    let cause = if is_told { None } else { Some(decode) };
    let kept: Vec<&Told> = kept.into_iter().map(|(_, told)| told).collect();
    let message = format!("the response does not fit its type: {}", summary(cause, &kept));
    error(meta, message, list(cause, &kept), raw_value(raw), false)
}

/// The reasons, for the error, why a result does not fit its type: what the type does not accept (`kept`). If none of that is
/// the cause, what the schema does not accept at the place of the error.
pub(super) fn causes(mut kept: Vec<Told>, by_schema: Vec<Told>, decode: &DecodeError) -> Vec<Told> {
    let is_cause = |told: &Told| told.is_kept() && nearness(&decode.pointer, &told.warning) <= Nearness::Rule;
    if !kept.iter().any(is_cause) {
        kept.extend(by_schema.into_iter().filter(is_cause));
    }
    kept
}

/// How near a violation is to the place at which a type could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Nearness {
    /// At the place, of a value of another type.
    There,
    /// A property that is missing there.
    Missing,
    /// Inside of it.
    Inside,
    /// At the place, of a value of the right type. A rule, such as a bound, may not be why the type does not take the value.
    Rule,
    /// At a value that holds it.
    Around,
    Elsewhere,
    /// It stands for others.
    More,
}

fn nearness(place: &str, warning: &Warning) -> Nearness {
    if warning.expected == NO_MORE {
        return Nearness::More;
    }
    match warning.pointer.strip_prefix(place) {
        // `integer to be a multiple of 7`.
        Some("") if warning.expected.starts_with(&*warning.found) => Nearness::Rule,
        Some("") if warning.found == "integer" && warning.expected.starts_with("number") => Nearness::Rule,
        Some("") => Nearness::There,
        // Of missing properties, the place is the object.
        Some(below) if warning.found == "absent" && below.rfind('/') == Some(0) => Nearness::Missing,
        Some(below) if below.starts_with('/') => Nearness::Inside,
        _ if is_inside(place, &warning.pointer) => Nearness::Around,
        _ => Nearness::Elsewhere,
    }
}

/// True if a place is inside that of another pointer.
fn is_inside(place: &str, pointer: &str) -> bool {
    place.strip_prefix(pointer).is_some_and(|below| below.starts_with('/'))
}

/// The error of a response that is not JSON, or not one that a value can hold.
pub(super) fn no_json(meta: &ResponseMeta, decode: &DecodeError, raw: Payload) -> CallError {
    let position = raw.text().and_then(|text| serde_json::from_slice::<IgnoredAny>(text).err());
    let position = position.map(|error| format!(" at line {} column {}", error.line(), error.column()));
    let fault = match decode.message.as_str() {
        _ if position.is_some() => "is not JSON",
        "number out of range" => "has a number beyond the range of a double",
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            "has a text with half of a character"
        }
        _ => "is not JSON",
    };
    let message = format!("the response {fault}: {decode}{}", position.unwrap_or_default());
    let (raw, cut) = cut(raw_value(raw), MAX_FOREIGN);
    error(meta, message, list(Some(decode), &[]), raw, cut)
}

fn error(meta: &ResponseMeta, message: String, violations: Vec<Value>, raw: Value, cut: bool) -> CallError {
    let message = match meta.event_type() {
        Some(event) => format!("{message} (in an event of the type `{}`)", readable(event, MAX_EVENT)),
        None => message,
    };
    let mut details = meta.details();
    details.insert("violations".to_owned(), violations.into());
    details.insert("raw".to_owned(), raw);
    if cut {
        details.insert("truncated".to_owned(), true.into());
    }
    meta.told(CallError::new(ErrorCode::ValidationError, message).with_details(Value::Object(details)))
}

/// The cause, or else the first violation, and the number of the others.
fn summary(cause: Option<&DecodeError>, told: &[&Told]) -> String {
    let (first, others) = match (cause, told) {
        (Some(cause), told) => (cause.to_string(), told),
        (None, [first, others @ ..]) => (first.warning.to_string(), others),
        (None, []) => return "it differs".to_owned(),
    };
    let more: usize = others.iter().map(|told| told.stands_for).sum();
    let more = if more > 0 { format!(" (and {more} more)") } else { String::new() };
    format!("{first}{more}")
}

fn list(cause: Option<&DecodeError>, told: &[&Told]) -> Vec<Value> {
    let kept = || told.iter().filter(|told| told.is_kept());
    let single = kept().filter(|told| told.stands_for == 1).map(|told| json!(told.warning));
    let cause = cause.map(|cause| json!({ "pointer": cause.pointer, "message": cause.message }));
    let all = usize::from(cause.is_some()) + kept().map(|told| told.stands_for).sum::<usize>();
    let mut listed: Vec<Value> = cause.into_iter().chain(single).take(MAX_LISTED).collect();
    let more = all.saturating_sub(listed.len());
    if more > 0 {
        listed.push(json!({ "pointer": "", "message": format!("and {more} more") }));
    }
    listed
}

/// The response, as JSON if it is JSON, else as text.
fn raw_value(raw: Payload) -> Value {
    let parsed = |text: &[u8]| {
        serde_json::from_slice(text).unwrap_or_else(|_| Value::String(String::from_utf8_lossy(text).into_owned()))
    };
    match raw {
        Payload::Value(value) => value,
        Payload::Json(bytes) => parsed(&bytes),
        Payload::Raw(text) => parsed(text.get().as_bytes()),
        Payload::Body(body) => serde_json::to_value(body).unwrap_or_default(),
    }
}

/// A value whose text is no longer than the limit, and true if something was cut off.
fn cut(value: Value, limit: usize) -> (Value, bool) {
    let text = match &value {
        Value::String(text) if text.len() > limit => text.clone(),
        Value::Array(_) | Value::Object(_) => value.to_string(),
        _ => return (value, false),
    };
    if text.len() <= limit {
        return (value, false);
    }
    (Value::String(start(&text, limit).to_owned()), true)
}

/// The content types that are described for a response, and the actual one, if they cannot be the same.
pub(super) fn foreign_type(spec: &OperationSpec, meta: &ResponseMeta, data: &Payload) -> Option<(String, String)> {
    let streams = spec.kind == OperationKind::Subscription;
    // Costs nothing for nearly all responses.
    if !streams && matches!(data, Payload::Json(_) | Payload::Raw(_)) {
        return None;
    }
    if *data == Payload::Value(Value::Null) {
        return None;
    }
    let is_bytes = match data {
        Payload::Body(_) => true,
        // In base64, as a value.
        Payload::Value(Value::String(_)) => spec.describes_bytes(meta),
        _ => false,
    };
    spec.foreign_type(meta, is_bytes)
}

/// A response that came instead of bytes, as text or JSON, if it is held as bytes.
fn unencoded(spec: &OperationSpec, meta: &ResponseMeta, data: Payload) -> Payload {
    let body = match data {
        Payload::Value(value @ Value::String(_)) if spec.describes_bytes(meta) => {
            serde_json::from_value::<Body>(value).unwrap_or_default()
        }
        Payload::Body(body) => body,
        data => return data,
    };
    body.as_bytes().map_or(Payload::Value(Value::Null), |bytes| Payload::Json(Bytes::copy_from_slice(bytes)))
}

/// The warning for a body of a success for which none is described. A page of HTML is not a success.
pub(super) fn skipped(spec: &OperationSpec, policy: OutputPolicy, meta: &ResponseMeta, data: &Payload) -> Option<Told> {
    let content_type = meta.content_type().filter(|_| policy != OutputPolicy::Strict)?;
    let is_nothing = match data {
        Payload::Value(value) => value.is_null(),
        data => data.text().is_some_and(|text| text.trim_ascii() == b"null"),
    };
    if is_nothing || !spec.gives_nothing() {
        return None;
    }
    let came = essence(content_type);
    let found = match came.as_str() {
        kind if kind.contains("html") => return None,
        "" => "a body, which was skipped".to_owned(),
        kind => format!("a body of type `{kind}`, which was skipped"),
    };
    Some(Told::kept(Warning::new("", "no body", found)))
}

/// True if a response is an object that has nothing in common with the schema, in which everything is optional; `meant`
/// is the variant of a union that the response's status selects.
pub(super) fn has_nothing_of(schemas: &Schemas, data: &Payload, meant: Option<u16>) -> bool {
    let text = data.text().filter(|_| schemas.output_is_union());
    if let Some(value) = text.and_then(|text| record::parse(text).ok()) {
        return schemas.output_has_nothing_of(&value, meant);
    }
    let foreign = match data {
        Payload::Json(bytes) => Keys(schemas).deserialize_any(&mut serde_json::Deserializer::from_slice(bytes)),
        Payload::Raw(text) => Keys(schemas).deserialize_any(&mut serde_json::Deserializer::from_str(text.get())),
        Payload::Value(value) => return schemas.output_has_nothing_of(value, meant),
        Payload::Body(_) => return false,
    };
    foreign.unwrap_or(false)
}

/// Checks the keys of an object until one is declared and has a value; the first one usually is and has.
struct Keys<'a>(&'a Schemas);

/// A value that ends the reading early, which is an error for serde.
enum End {}

impl<'de> Deserialize<'de> for End {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("declared"))
    }
}

impl Keys<'_> {
    fn deserialize_any<'de, D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        // Of the values, only `null` matters.
        let mut object = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let has_value = match self.0.output_declares(&key) {
                true => map.next_value::<Option<End>>()?.is_some(),
                false => map.next_value::<Option<IgnoredAny>>()?.is_some(),
            };
            object.insert(key, if has_value { Value::Bool(true) } else { Value::Null });
        }
        Ok(self.0.output_has_nothing_of(&Value::Object(object), None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_listed_is_counted() {
        let told = Told::kept(Warning::new("/a", "number", "string"));
        let more = Told { stands_for: 60, ..Told::kept(Warning::new("", NO_MORE, "60 more")) };
        let listed = list(None, &[&told, &more]);
        assert_eq!(listed, [json!(told.warning), json!({ "pointer": "", "message": "and 60 more" })]);
        assert_eq!(list(None, &[&told]), [json!(told.warning)]);
        let told: Vec<&Told> = vec![&told; MAX_LISTED + 7];
        assert_eq!(list(None, &told).last(), Some(&json!({ "pointer": "", "message": "and 7 more" })));
    }
}
