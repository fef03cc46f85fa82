//! Formats and limits: the types that they select, and the values that they allow.

use serde_json::Value;

use super::compare::{Comparer, Object};
use super::view::{Side, kind};
use crate::model::text::readable;

/// Lower limits of values, and upper ones.
const LOWER: &[&str] = &["exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"];
const UPPER: &[&str] = &["exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"];

/// Constraints that are equal or different, but for `multipleOf`.
const OTHER: &[&str] = &["multipleOf", "pattern", "uniqueItems"];

/// Formats of strings that types may be made of.
const TYPED_FORMATS: &[&str] = &["binary", "byte", "date", "date-time", "uri", "uuid"];

/// Formats that only say how text is shown.
const SHOWN_FORMATS: &[&str] = &["html", "markdown", "multiline", "password", "textarea"];

/// Integers from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Range(i128, i128);

impl Range {
    fn contains(self, other: Self) -> bool {
        self.0 <= other.0 && self.1 >= other.1
    }
}

const I32: Range = Range(i32::MIN as i128, i32::MAX as i128);
const I64: Range = Range(i64::MIN as i128, i64::MAX as i128);
const U32: Range = Range(0, u32::MAX as i128);
const U64: Range = Range(0, u64::MAX as i128);

fn format(node: &Object) -> Option<&str> {
    node.get("format").and_then(Value::as_str)
}

/// What the type of an integer holds, as the generator chooses it.
fn of_type(node: &Object) -> Range {
    let limit = |key: &str| node.get(key).and_then(Value::as_f64);
    let is_positive = ["minimum", "exclusiveMinimum"].into_iter().filter_map(limit).any(|limit| limit >= 0.0);
    let is_beyond = ["maximum", "exclusiveMaximum"].into_iter().filter_map(limit).any(|limit| limit > 9.3e18);
    // A type that the limits exceed does not hold all values.
    let within = |least: f64, most: f64| {
        limit("minimum").is_none_or(|limit| limit >= least)
            && limit("exclusiveMinimum").is_none_or(|limit| limit >= least - 1.0)
            && limit("maximum").is_none_or(|limit| limit <= most)
            && limit("exclusiveMaximum").is_none_or(|limit| limit <= most + 1.0)
    };
    match format(node) {
        Some("int32" | "int16" | "int8" | "uint8" | "uint16") if within(f64::from(i32::MIN), f64::from(i32::MAX)) => {
            I32
        }
        Some("uint32") if within(0.0, f64::from(u32::MAX)) => U32,
        Some("uint64" | "uint") => U64,
        _ if is_positive && is_beyond => U64,
        _ => I64,
    }
}

/// What a server takes for an integer of a format.
fn of_values(node: &Object) -> Range {
    match format(node) {
        Some("int8") => Range(-128, 127),
        Some("int16") => Range(-32_768, 32_767),
        Some("int32") => I32,
        Some("uint8") => Range(0, 255),
        Some("uint16") => Range(0, 65_535),
        Some("uint32") => U32,
        Some("uint64" | "uint") => U64,
        _ => I64,
    }
}

/// True if a number of another format may not be taken.
fn format_breaks(side: Side, kind: &str, old: &Object, new: &Object) -> bool {
    let whole = |node: &Object| matches!(format(node), Some("int32" | "int64"));
    match (side, kind) {
        (Side::Input, "integer") => !of_values(new).contains(of_values(old)),
        (Side::Output, "integer") => !of_type(old).contains(of_type(new)),
        (Side::Input, _) if whole(new) => !whole(old) || !of_values(new).contains(of_values(old)),
        (Side::Input, _) => format(new) == Some("float") && !whole(old),
        (Side::Output, _) if whole(old) => !whole(new) || !of_values(old).contains(of_values(new)),
        (Side::Output, _) => false,
    }
}

/// True if text of another format may not be taken.
fn text_format_breaks(side: Side, old: Option<&str>, new: Option<&str>) -> bool {
    let is_bytes = |format: Option<&str>| format == Some("binary");
    let is_typed = |format: &str| TYPED_FORMATS.contains(&format);
    // Bytes are sent and read in another way than text.
    if is_bytes(old) != is_bytes(new) {
        return true;
    }
    match side {
        Side::Input => new.is_some_and(|new| !SHOWN_FORMATS.contains(&new)),
        // A type without a format accepts any text.
        Side::Output => old.is_some_and(is_typed),
    }
}

impl Comparer<'_> {
    /// Compares the limits of values of the kind that is sent.
    pub(super) fn limits(&mut self, old: &Object, new: &Object, sent: &str, pointer: &str) {
        let are_integers = kind(old) == "integer" && kind(new) == "integer";
        let widens = are_integers && !of_type(old).contains(of_type(new));
        let limits = LOWER.iter().map(|key| (*key, true)).chain(UPPER.iter().map(|key| (*key, false)));
        for (key, is_lower) in limits.filter(|(key, _)| limits_kind(key, sent)) {
            let (old, new) = (old.get(key).and_then(Value::as_f64), new.get(key).and_then(Value::as_f64));
            // A length or a number of items is at least 0 anyway.
            let is_count = matches!(key, "minItems" | "minLength" | "minProperties");
            let least = |limit: Option<f64>| limit.or(is_count.then_some(0.0));
            let message = match new {
                _ if least(old) == least(new) => continue,
                Some(new) => format!("`{key}` is {new} now"),
                None => format!("there is no `{key}` any more"),
            };
            let narrows = match (old, new) {
                (Some(old), Some(new)) if is_lower => new > old,
                (Some(old), Some(new)) => new < old,
                (old, _) => old.is_none(),
            };
            // Limits of integers may select their types.
            self.note(pointer, message, if self.side == Side::Input { narrows } else { widens });
        }
        let others = OTHER.iter().filter(|key| limits_kind(key, sent));
        for key in others.filter(|key| old.get(**key) != new.get(**key)) {
            let demands = new.get(*key).is_some_and(|limit| *limit != Value::Bool(false)) && !divides(key, old, new);
            self.note(pointer, format!("`{key}` changed"), self.side == Side::Input && demands);
        }
    }

    /// Compares the formats of values of the kind that is sent.
    pub(super) fn format(&mut self, old: &Object, new: &Object, sent: &str, pointer: &str) {
        let text = |node: &'_ Object| node.get("format").and_then(Value::as_str).map(str::to_owned);
        if text(old) == text(new) {
            return;
        }
        let breaks = match sent {
            "integer" | "number" => format_breaks(self.side, sent, old, new),
            _ => text_format_breaks(self.side, text(old).as_deref(), text(new).as_deref()),
        };
        let message = match text(new) {
            Some(new) => format!("its format is `{}` now", readable(&new, 100)),
            None => "it has no format any more".to_owned(),
        };
        self.note(pointer, message, breaks);
    }
}

/// True if a limit is about values of a kind.
fn limits_kind(key: &str, kind: &str) -> bool {
    let about = match key {
        "maxLength" | "minLength" | "pattern" => &["string"][..],
        "maxItems" | "minItems" | "uniqueItems" => &["array"],
        "maxProperties" | "minProperties" => &["object"],
        _ => &["integer", "number"],
    };
    kind == "any" || about.contains(&kind)
}

/// True if a multiple of the old number is one of the new.
fn divides(key: &str, old: &Object, new: &Object) -> bool {
    let number = |node: &Object| node.get(key).and_then(Value::as_f64).filter(|number| *number > 0.0);
    match (number(old), number(new)) {
        (Some(old), Some(new)) => crate::model::decimal::is_multiple(old, new),
        _ => false,
    }
}
