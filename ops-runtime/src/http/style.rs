//! Parameter styles: how a value is written in a path, a query, a header or a cookie.
//!
//! The rules are those of OpenAPI 3.1, section 4.8.12.3 and 4.8.12.4, which follow RFC 6570. Cases that they leave
//! undefined are decided here: items and properties that are `null` are left out; values nested deeper than a style
//! allows are written as JSON; a list in a deep object gets indices; exploded cookies are pairs of their own.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use super::{invalid, pointer};
use crate::model::binding::MAX_DEPTH;
use crate::model::parameters::end_of_part;
use crate::normalise::integer;
use crate::{CallError, HttpParameter, ParameterLocation, ParameterStyle};

/// Everything but the unreserved characters of RFC 3986.
pub(super) const COMPONENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Escaped even if reserved characters are allowed: characters that would end the value or the query.
///
/// A plus sign is escaped because most servers read it as a space.
const RESERVED: &AsciiSet = &COMPONENT
    .remove(b':')
    .remove(b'/')
    .remove(b'?')
    .remove(b'[')
    .remove(b']')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// Characters that no cookie can contain (RFC 6265, section 4.1.1).
const COOKIE: &AsciiSet = &percent_encoding::CONTROLS.add(b' ').add(b'"').add(b',').add(b';').add(b'\\');

/// What is escaped in a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Escape {
    /// Nothing, in headers and in parts of multipart bodies.
    None,
    Component,
    Reserved,
    /// Only characters that would end a cookie, or are not allowed in one.
    Cookie,
}

impl Escape {
    /// What is escaped in a query or a form.
    pub(super) fn in_query(parameter: &HttpParameter) -> Self {
        if parameter.allow_reserved { Self::Reserved } else { Self::Component }
    }

    fn apply(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::None => Cow::Borrowed(text),
            Self::Component => utf8_percent_encode(text, COMPONENT).into(),
            Self::Reserved => reserved(text),
            Self::Cookie => utf8_percent_encode(text, COOKIE).into(),
        }
    }
}

/// Escapes characters that a query cannot contain, and keeps reserved characters and escapes (RFC 6570, section 3.2.3).
fn reserved(text: &str) -> Cow<'_, str> {
    let is_escape =
        |rest: &str| matches!(rest.as_bytes(), [b'%', a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit());
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, after) = rest.split_at(at);
        out.extend(utf8_percent_encode(before, RESERVED));
        out.push_str(if is_escape(after) { "%" } else { "%25" });
        rest = after.strip_prefix('%').unwrap_or_default();
    }
    if out.is_empty() {
        return utf8_percent_encode(rest, RESERVED).into();
    }
    out.extend(utf8_percent_encode(rest, RESERVED));
    Cow::Owned(out)
}

/// The text of a path parameter; `None` for an undefined value.
pub(super) fn path(parameter: &HttpParameter, value: &Value) -> Option<String> {
    let (first, separator) = parameter.style.in_path();
    let named = parameter.style == ParameterStyle::Matrix;
    // Reserved characters are never allowed here: a slash would make another path.
    let pieces = Writer { parameter, named, escape: Escape::Component }.pieces(value);
    (!pieces.is_empty()).then(|| format!("{first}{}", pieces.join(separator)))
}

/// The pairs `name=value` that a query parameter adds to the query.
pub(super) fn query(parameter: &HttpParameter, value: &Value) -> Vec<String> {
    Writer { parameter, named: true, escape: Escape::in_query(parameter) }.pieces(value)
}

/// The query string of a parameter that is the whole query; only the text inside its pairs is escaped.
///
/// An object is the fields of a form, JSON is one text, and a string is the query string itself.
pub(super) fn query_string(parameter: &HttpParameter, value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        value if parameter.style == ParameterStyle::Json => {
            Some(Escape::Component.apply(&value.to_string()).into_owned())
        }
        Value::Object(members) => {
            let pairs = members.iter().flat_map(|(name, value)| {
                let field = form_field(name, value);
                query(&field, value)
            });
            Some(pairs.collect::<Vec<_>>().join("&")).filter(|text| !text.is_empty())
        }
        Value::String(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        value => Some(Escape::Component.apply(&plain(value)).into_owned()),
    }
}

/// The value of a header; `None` for an undefined value.
pub(super) fn header(parameter: &HttpParameter, value: &Value) -> Option<String> {
    let pieces = Writer { parameter, named: false, escape: Escape::None }.pieces(value);
    (!pieces.is_empty()).then(|| pieces.join(","))
}

/// The pairs `name=value` that a cookie parameter adds to the `Cookie` header.
pub(super) fn cookie(parameter: &HttpParameter, value: &Value) -> Vec<String> {
    let escape = if parameter.allow_reserved { Escape::Cookie } else { Escape::Component };
    Writer { parameter, named: true, escape }.pieces(value)
}

/// The name of a cookie: unchanged if it can be one (a token of RFC 9110, section 5.6.2), else escaped.
pub(super) fn cookie_name(name: &str) -> Cow<'_, str> {
    if fits_cookie(name, b"=()<>@:/[]?{}") { Cow::Borrowed(name) } else { Escape::Component.apply(name) }
}

/// The value of a cookie that holds credentials: unchanged if it can be one, else escaped.
pub(super) fn cookie_value(value: &str) -> Cow<'_, str> {
    if fits_cookie(value, b"") { Cow::Borrowed(value) } else { Escape::Component.apply(value) }
}

/// True if a cookie can contain a text (RFC 6265, section 4.1.1) that must not have some other characters either.
fn fits_cookie(text: &str, others: &[u8]) -> bool {
    text.bytes().all(|b| b.is_ascii_graphic() && !b"\",;\\".contains(&b) && !others.contains(&b))
}

/// The parameter for a form field without a further description. Objects, and lists of objects or lists, are written
/// with brackets, as most parsers of forms read them. Documents seldom say so, though OpenAPI has JSON as the default.
pub(super) fn form_field(name: &str, value: &Value) -> HttpParameter {
    let nested = match value {
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        value => value.is_object(),
    };
    let style = if nested { ParameterStyle::DeepObject } else { ParameterStyle::Form };
    let name: crate::Text = Cow::Owned(name.to_owned());
    let location = ParameterLocation::Query;
    HttpParameter { property: name.clone(), name, location, style, explode: true, allow_reserved: false, fixed: None }
}

/// Refuses a text in a list or an object that a server would read as something else, because it would arrive with the
/// delimiter of the texts in it. `at` is the pointer to the value, and `escape` is how its texts are written.
///
/// A nested value is JSON. It is not refused, because only a server that expects JSON can read it.
///
/// # Errors
/// A `VALIDATION_ERROR` with the place of the text.
pub(super) fn refuse_torn(parameter: &HttpParameter, value: &Value, at: &str, escape: Escape) -> Result<(), CallError> {
    use ParameterStyle::{DeepObject, Json, Label};
    let (name, style) = (&parameter.name, parameter.style);
    let is_header = parameter.location == ParameterLocation::Header;
    let (delimiter, written) = match style {
        DeepObject | Json => return Ok(()),
        // In a header, exploded items and properties are one text, too.
        _ if is_header => (",", ","),
        // No dot is ever escaped.
        Label if parameter.explode => (".", "."),
        _ if parameter.explode => return Ok(()),
        _ if escape == Escape::None => (style.plain_delimiter(), style.plain_delimiter()),
        _ => (style.plain_delimiter(), style.delimiter()),
    };
    let is_torn = |text: &str| match is_header {
        // In a header, a quoted string is one text, whatever it holds (RFC 9110, section 5.6.4).
        true => end_of_part(text, ',') < text.len(),
        false => escape.apply(text).to_ascii_uppercase().contains(written),
    };
    let refuse = |key: &str, message: String| Err(invalid(&format!("{at}{}", pointer(key)), message));
    let check = |key: &str, text: &str| {
        if is_torn(text) {
            let otherwise = match escape {
                Escape::None if is_header => " outside of quotation marks",
                Escape::Reserved if delimiter == "," => ": write `%2C` instead",
                _ => "",
            };
            let message =
                format!("`{name}` has {delimiter:?} between its texts, so none of them can contain it{otherwise}");
            return refuse(key, message);
        }
        if is_header && end_of_part(&format!("{text},"), ',') > text.len() {
            let message = format!("`{name}` has a quoted string without an end, so the next text would be part of it");
            return refuse(key, message);
        }
        // Blanks at the ends are no part of the text (RFC 9110, section 5.6.1).
        if is_header && text.trim_matches([' ', '\t']).len() < text.len() {
            return refuse(key, format!("the header `{name}` cannot carry blanks at the ends of a text in it"));
        }
        Ok(())
    };
    let check_value = |key: &str, value: &Value| match value {
        Value::Null | Value::Array(_) | Value::Object(_) => Ok(()),
        value => check(key, &as_text(value)),
    };
    match value {
        Value::Array(items) => {
            items.iter().enumerate().try_for_each(|(index, item)| check_value(&index.to_string(), item))
        }
        Value::Object(members) => defined(members).try_for_each(|(key, value)| {
            if is_header && parameter.explode && key.contains('=') {
                return refuse(key, format!("`{name}` has `=` behind its names, so none of them can contain it"));
            }
            check(key, key)?;
            check_value(key, value)
        }),
        _ => Ok(()),
    }
}

struct Writer<'a> {
    parameter: &'a HttpParameter,
    /// True if a piece starts with the parameter's name.
    named: bool,
    escape: Escape,
}

impl Writer<'_> {
    /// The escaped pieces of a value, to be joined by the style's separator.
    fn pieces(&self, value: &Value) -> Vec<String> {
        use ParameterStyle::{DeepObject, Json};
        match (value, self.parameter.style) {
            (Value::Null, _) => Vec::new(),
            (value, Json) => vec![self.pair(&self.escape.apply(&value.to_string()))],
            (Value::Array(_) | Value::Object(_), DeepObject) => self.deep(value),
            (Value::Array(items), _) => {
                let items = items.iter().filter(|item| !item.is_null()).map(|item| self.scalar(item));
                if self.parameter.explode { items.map(|item| self.pair(&item)).collect() } else { self.joined(items) }
            }
            (Value::Object(members), _) if self.parameter.explode => {
                defined(members).map(|(k, v)| self.assigned(k, &self.scalar(v))).collect()
            }
            (Value::Object(members), _) => {
                self.joined(defined(members).flat_map(|(k, v)| [self.escape.apply(k).into_owned(), self.scalar(v)]))
            }
            (scalar, _) => vec![self.pair(&self.scalar(scalar))],
        }
    }

    fn joined(&self, parts: impl Iterator<Item = String>) -> Vec<String> {
        let delimiter = self.parameter.style.delimiter();
        let parts: Vec<_> = parts.collect();
        if parts.is_empty() { Vec::new() } else { vec![self.pair(&parts.join(delimiter))] }
    }

    fn pair(&self, value: &str) -> String {
        if !self.named {
            return value.to_owned();
        }
        self.assigned(&self.parameter.name, value)
    }

    /// A name and its value; in the style `matrix` an empty value leaves only the name (RFC 6570, section 3.2.7).
    fn assigned(&self, name: &str, value: &str) -> String {
        let name = self.name(name);
        if value.is_empty() && self.parameter.style == ParameterStyle::Matrix {
            return name.into_owned();
        }
        format!("{name}={value}")
    }

    /// A name, in which reserved characters are never allowed. Servers do not decode the names of cookies.
    fn name<'n>(&self, name: &'n str) -> Cow<'n, str> {
        match self.escape {
            Escape::None => Cow::Borrowed(name),
            Escape::Cookie => cookie_name(name),
            Escape::Component | Escape::Reserved => Escape::Component.apply(name),
        }
    }

    fn scalar(&self, value: &Value) -> String {
        self.escape.apply(&as_text(value)).into_owned()
    }

    /// `name[key][key]=value` for every value inside.
    fn deep(&self, value: &Value) -> Vec<String> {
        let mut pieces = Vec::new();
        self.deep_into(&self.name(&self.parameter.name), value, MAX_DEPTH, &mut pieces);
        pieces
    }

    fn deep_into(&self, name: &str, value: &Value, depth: usize, pieces: &mut Vec<String>) {
        match value {
            Value::Null => {}
            Value::Object(members) if depth > 0 => {
                for (key, value) in members {
                    self.deep_into(&format!("{name}%5B{}%5D", self.name(key)), value, depth - 1, pieces);
                }
            }
            Value::Array(items) if depth > 0 => {
                for (index, value) in items.iter().enumerate() {
                    self.deep_into(&format!("{name}%5B{index}%5D"), value, depth - 1, pieces);
                }
            }
            value => pieces.push(format!("{name}={}", self.scalar(value))),
        }
    }
}

/// A number, a boolean or null as text. A whole number has no fraction, since many servers do not accept `20.0` as an
/// integer.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Number(number) => integer(number).as_ref().unwrap_or(number).to_string(),
        value => value.to_string(),
    }
}

/// The text that stands for a value, without escapes.
fn as_text(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        value => Cow::Owned(plain(value)),
    }
}

pub(super) fn defined(members: &Map<String, Value>) -> impl Iterator<Item = (&String, &Value)> {
    members.iter().filter(|(_, value)| !value.is_null())
}

#[cfg(test)]
mod tests;
