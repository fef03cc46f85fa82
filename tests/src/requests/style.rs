//! What a value must look like in a path, a query, a header or a cookie (OpenAPI 3.1, sections 4.8.12.3 and 4.8.12.4;
//! RFC 6570).
//!
//! A text is expected as bytes of which it is known whether they belong to a value, where reserved characters must be
//! escaped, or to the form, where delimiters must not. So one comparison finds a wrong value, a wrong delimiter and a
//! wrong escape.
//!
//! What the standards leave open is decided as `http/style.rs` of the runtime says: members that are `null` are not
//! there, what is nested deeper than a style can say is JSON, a list in a deep object has indices.

use std::fmt;

use serde_json::Value;

use super::document::{Parameter, Place, Style};

/// A byte that is expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Byte {
    /// Of a value: escaped if it is reserved.
    Value(u8),
    /// Of a value in which reserved characters stay as they are.
    Open(u8),
    /// A delimiter, which is never escaped.
    Delimiter(u8),
    /// Escaped or not, which means the same.
    Either(u8),
}

/// A text that is expected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Text {
    Bytes(Vec<Byte>),
    /// A name, a `=`, and JSON in whatever spelling.
    Json(Vec<Byte>, Value),
}

impl Text {
    /// The text as it reads when nothing is escaped.
    pub(super) fn plain(&self) -> String {
        let read = |bytes: &[Byte]| {
            let bytes = bytes.iter().map(|byte| match byte {
                Byte::Value(b) | Byte::Open(b) | Byte::Delimiter(b) | Byte::Either(b) => *b,
            });
            String::from_utf8_lossy(&bytes.collect::<Vec<u8>>()).into_owned()
        };
        match self {
            Self::Bytes(bytes) => read(bytes),
            Self::Json(bytes, value) => format!("{}{value}", read(bytes)),
        }
    }

    /// Whether a text that arrived is this one; in a form a `+` is a space.
    pub(super) fn is(&self, arrived: &[u8], is_form: bool) -> bool {
        match self {
            Self::Bytes(bytes) => rest(bytes, arrived, is_form).is_some_and(<[u8]>::is_empty),
            Self::Json(bytes, value) => rest(bytes, arrived, is_form).is_some_and(|rest| {
                let is_escaped = !rest.iter().any(|b| b"&#+ \"{}".contains(b));
                is_escaped && serde_json::from_slice::<Value>(&unescaped(rest)).is_ok_and(|found| found == *value)
            }),
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.plain())
    }
}

/// What is left of a text behind the bytes that are expected.
fn rest<'a>(expected: &[Byte], arrived: &'a [u8], is_form: bool) -> Option<&'a [u8]> {
    let mut left = arrived;
    for byte in expected {
        let (found, is_escaped, tail) = next(left, is_form)?;
        let fits = match *byte {
            Byte::Value(b) => found == b && (is_escaped || is_unreserved(b)),
            Byte::Open(b) => found == b && (is_escaped != b":/?@!$'()*,;".contains(&b) || is_unreserved(b)),
            Byte::Delimiter(b) => found == b && !is_escaped,
            Byte::Either(b) => found == b,
        };
        if !fits {
            return None;
        }
        left = tail;
    }
    Some(left)
}

/// The next byte of an escaped text, and whether it was escaped.
fn next(text: &[u8], is_form: bool) -> Option<(u8, bool, &[u8])> {
    match text {
        [b'%', a, b, tail @ ..] => {
            let hex = |digit: &u8| char::from(*digit).to_digit(16);
            let byte = u8::try_from(hex(a)? * 16 + hex(b)?).ok()?;
            Some((byte, true, tail))
        }
        [b'+', tail @ ..] if is_form => Some((b' ', true, tail)),
        [byte, tail @ ..] => Some((*byte, false, tail)),
        [] => None,
    }
}

/// A text without its escapes; what is no escape stays.
pub(super) fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut left = text;
    while let Some(first) = left.first() {
        match next(left, false) {
            Some((byte, _, tail)) => {
                out.push(byte);
                left = tail;
            }
            None => {
                out.push(*first);
                left = &left[1..];
            }
        }
    }
    out
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

/// The text that stands for a value that is no list and no object; for these, their JSON. A whole number has no fraction.
pub(super) fn scalar(value: &Value) -> String {
    let whole = value.as_f64().filter(|number| value.is_f64() && number.fract() == 0.0 && number.abs() < 9e18);
    match (value, whole) {
        (Value::String(text), _) => text.clone(),
        (_, Some(number)) => (number as i64).to_string(),
        (value, None) => value.to_string(),
    }
}

/// Text that is written as a value.
pub(super) fn value_bytes(text: &str, is_open: bool) -> Vec<Byte> {
    text.bytes().map(if is_open { Byte::Open } else { Byte::Value }).collect()
}

/// Text that is a part of the form.
pub(super) fn delimiter(text: &str) -> Vec<Byte> {
    text.bytes().map(Byte::Delimiter).collect()
}

/// The text in a path, without a name for the styles that have none.
pub(super) fn path(parameter: &Parameter, value: &Value) -> Vec<Byte> {
    let (first, between) = match parameter.style {
        Style::Label => (".", "."),
        Style::Matrix => (";", ";"),
        _ => ("", ","),
    };
    let pieces = pieces(parameter, value).into_iter().map(|piece| match piece {
        Text::Bytes(bytes) => bytes,
        Text::Json(mut bytes, value) => {
            bytes.extend(value_bytes(&value.to_string(), false));
            bytes
        }
    });
    let mut text = delimiter(first);
    for (number, piece) in pieces.enumerate() {
        text.extend(if number > 0 { delimiter(between) } else { Vec::new() });
        text.extend(piece);
    }
    text
}

/// The texts that a value is written as, to be joined by what the place and the style say.
pub(super) fn pieces(parameter: &Parameter, value: &Value) -> Vec<Text> {
    let is_named =
        parameter.style == Style::Matrix || !matches!(parameter.place, Place::Path | Place::Header | Place::Template);
    // In an open cookie everything is as it reads.
    let is_cookie = parameter.place == Place::Cookie && parameter.is_open;
    let text = |value: &Value| match is_cookie {
        true => delimiter(&scalar(value)),
        false => value_bytes(&scalar(value), parameter.is_open),
    };
    let named =
        |value: Vec<Byte>| Text::Bytes(if is_named { assigned(parameter, &parameter.name, value) } else { value });
    let there = |value: &&Value| !value.is_null();
    match value {
        Value::Null => Vec::new(),
        value if parameter.style == Style::Json => {
            let name = if is_named { assigned(parameter, &parameter.name, Vec::new()) } else { Vec::new() };
            vec![Text::Json(name, value.clone())]
        }
        Value::Array(_) | Value::Object(_) if parameter.style == Style::DeepObject => {
            let mut pieces = Vec::new();
            deep(parameter, value_bytes(&parameter.name, false), value, &mut pieces);
            pieces
        }
        Value::Array(items) => {
            let items = items.iter().filter(there).map(text);
            if parameter.explode {
                items.map(named).collect()
            } else {
                joined(parameter, items).into_iter().map(named).collect()
            }
        }
        Value::Object(members) => {
            let members = members.iter().filter(|(_, value)| !value.is_null());
            if parameter.explode {
                return members.map(|(name, value)| Text::Bytes(assigned(parameter, name, text(value)))).collect();
            }
            let parts = members.flat_map(|(name, value)| [value_bytes(name, parameter.is_open), text(value)]);
            joined(parameter, parts).into_iter().map(named).collect()
        }
        value => vec![named(text(value))],
    }
}

/// A name and a value; in the style `matrix` an empty value leaves the name alone.
fn assigned(parameter: &Parameter, name: &str, value: Vec<Byte>) -> Vec<Byte> {
    // In a header nothing is escaped, but there everything is compared as it reads.
    let mut text = value_bytes(name, false);
    if value.is_empty() && parameter.style == Style::Matrix {
        return text;
    }
    text.push(Byte::Delimiter(b'='));
    text.extend(value);
    text
}

fn joined(parameter: &Parameter, parts: impl Iterator<Item = Vec<Byte>>) -> Option<Vec<Byte>> {
    let between = match parameter.style {
        Style::SpaceDelimited => Byte::Either(b' '),
        Style::PipeDelimited => Byte::Either(b'|'),
        _ => Byte::Delimiter(b','),
    };
    parts.reduce(|mut text, part| {
        text.push(between);
        text.extend(part);
        text
    })
}

/// `name[key][key]=value` for every value inside.
fn deep(parameter: &Parameter, name: Vec<Byte>, value: &Value, pieces: &mut Vec<Text>) {
    let below = |key: &str| {
        let mut name = name.clone();
        name.push(Byte::Either(b'['));
        name.extend(value_bytes(key, false));
        name.push(Byte::Either(b']'));
        name
    };
    match value {
        Value::Null => {}
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| deep(parameter, below(key), value, pieces));
        }
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.for_each(|(index, value)| deep(parameter, below(&index.to_string()), value, pieces));
        }
        value => {
            let mut text = name;
            text.push(Byte::Delimiter(b'='));
            text.extend(value_bytes(&scalar(value), parameter.is_open));
            pieces.push(Text::Bytes(text));
        }
    }
}
