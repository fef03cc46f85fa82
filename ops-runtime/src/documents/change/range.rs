//! Formats and limits: the types that they select, and the values that they allow.

use serde_json::Value;

use super::compare::Object;
use super::view::Side;

/// Formats of strings that types may be made of.
const TYPED_FORMATS: &[&str] = &["binary", "byte", "date", "date-time", "uri", "uuid"];

/// Formats that only say how text is shown.
const SHOWN_FORMATS: &[&str] = &["html", "markdown", "multiline", "password", "textarea"];

/// Integers from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Range(i128, i128);

impl Range {
    pub(super) fn contains(self, other: Self) -> bool {
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
pub(super) fn of_type(node: &Object) -> Range {
    let limit = |keys: [&str; 2]| keys.into_iter().find_map(|key| node.get(key).and_then(Value::as_f64));
    let is_positive = limit(["minimum", "exclusiveMinimum"]).is_some_and(|limit| limit >= 0.0);
    let is_beyond = limit(["maximum", "exclusiveMaximum"]).is_some_and(|limit| limit > 9.3e18);
    match format(node) {
        Some("int32" | "int16" | "int8" | "uint8" | "uint16") => I32,
        Some("uint32") => U32,
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
pub(super) fn format_breaks(side: Side, kind: &str, old: &Object, new: &Object) -> bool {
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
pub(super) fn text_format_breaks(side: Side, old: Option<&str>, new: Option<&str>) -> bool {
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
