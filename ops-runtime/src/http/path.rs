//! The path of a request: a template with each `{name}` replaced by a value that cannot leave its segment.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::{Map, Value};

use super::style::{self, COMPONENT};
use super::{invalid, pointer};
use crate::{CallError, HttpBinding, HttpParameter, ParameterLocation, Text};

/// What must be escaped in the literal parts of a path; escapes that are there stay (RFC 3986, section 3.3).
const LITERAL: &AsciiSet = &COMPONENT
    .remove(b'%')
    .remove(b'/')
    .remove(b':')
    .remove(b'@')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=');

/// The result of filling a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Target {
    /// The path, escaped.
    pub(super) path: String,
    /// The query that is written in the template itself.
    pub(super) query: String,
    /// The query parameters that stand in the template.
    pub(super) placed: Vec<Text>,
}

/// Fills the binding's template with the values of the input.
///
/// A fragment only tells operations of one path apart, and is not sent.
///
/// # Errors
/// A `VALIDATION_ERROR` if a value is missing, or if a segment would be empty, `.` or `..`: servers read these as
/// another path, and no escape prevents it.
pub(super) fn target(binding: &HttpBinding, input: &Map<String, Value>) -> Result<Target, CallError> {
    let mut target = Target { path: String::new(), query: String::new(), placed: Vec::new() };
    let mut in_query = false;
    // The properties that stand in the path, each with the number of its segment.
    let mut places: Vec<(usize, Cow<'_, HttpParameter>)> = Vec::new();
    let mut rest = binding.path.as_ref();
    // The start of the query pair that is being written, and true if a part of it has no value.
    let (mut start, mut is_absent) = (0, false);
    while let Some(at) = rest.find(['{', '?', '#', '&']) {
        let (literal, tail) = rest.split_at(at);
        let out = if in_query { &mut target.query } else { &mut target.path };
        out.extend(literal_text(literal, in_query));
        if let Some(tail) = tail.strip_prefix('&') {
            // The first pairs may have been left out.
            let is_first = in_query && end_pair(out, start, &mut is_absent) && out.is_empty();
            if !is_first {
                out.push('&');
            }
            start = if in_query { out.len() } else { 0 };
            rest = tail;
        } else if tail.starts_with('#') {
            rest = "";
        } else if let Some(tail) = tail.strip_prefix('?') {
            if in_query {
                out.push('?');
            }
            in_query = true;
            rest = tail;
        } else if let Some((name, tail)) = tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) {
            let parameter = parameter(binding, name, in_query);
            let value = input.get(parameter.property.as_ref()).unwrap_or(&Value::Null);
            let Some(text) = style::path(&parameter, value) else {
                if parameter.location == ParameterLocation::Query {
                    is_absent = true;
                    target.placed.push(parameter.name.clone());
                    rest = tail;
                    continue;
                }
                return Err(invalid(&pointer(&parameter.property), format!("the path needs a value for `{name}`")));
            };
            out.push_str(&text);
            if parameter.location == ParameterLocation::Query {
                target.placed.push(parameter.name.clone());
            } else if !in_query {
                places.push((target.path.matches('/').count(), parameter));
            }
            rest = tail;
        } else {
            out.push_str("%7B");
            rest = tail.strip_prefix('{').unwrap_or_default();
        }
    }
    let out = if in_query { &mut target.query } else { &mut target.path };
    out.extend(literal_text(rest, in_query));
    if in_query {
        end_pair(out, start, &mut is_absent);
    }
    check_segments(&target.path, &places)?;
    Ok(target)
}

/// Ends a pair of the query. A pair whose parameter has no value is removed; returns true then.
fn end_pair(query: &mut String, start: usize, is_absent: &mut bool) -> bool {
    if *is_absent {
        query.truncate(start);
        if query.ends_with('&') {
            query.pop();
        }
    }
    std::mem::take(is_absent)
}

fn literal_text(text: &str, in_query: bool) -> impl Iterator<Item = &str> {
    // The query as a whole is escaped later on.
    let (literal, path) = if in_query { (text, "") } else { ("", text) };
    std::iter::once(literal).chain(utf8_percent_encode(path, LITERAL))
}

/// The path parameter of that name, or in a query the query parameter. One that the document does not describe is
/// plain.
fn parameter<'a>(binding: &'a HttpBinding, name: &str, in_query: bool) -> Cow<'a, HttpParameter> {
    let of = |location| binding.parameters.iter().find(|p| p.location == location && p.name == name);
    let described = of(ParameterLocation::Path);
    let described = described.or_else(|| of(ParameterLocation::Query).filter(|_| in_query));
    let plain = || Cow::Owned(HttpParameter::of(ParameterLocation::Path, name.to_owned()));
    described.map_or_else(plain, Cow::Borrowed)
}

fn check_segments(path: &str, places: &[(usize, Cow<'_, HttpParameter>)]) -> Result<(), CallError> {
    for (number, segment) in path.split('/').enumerate() {
        let place = places.iter().find(|(at, _)| *at == number);
        let problem = match place {
            _ if is_dots(segment) => "`.` or `..`",
            Some(_) if segment.is_empty() => "empty",
            _ => continue,
        };
        return Err(match place {
            Some((_, parameter)) => {
                let message = format!("the path segment of `{}` would be {problem}", parameter.name);
                invalid(&pointer(&parameter.property), message)
            }
            None => CallError::execution(format!("a segment of the operation's path is {problem}")),
        });
    }
    Ok(())
}

/// True if URL parsers read the segment as `.` or `..` (WHATWG URL, section 4.4).
fn is_dots(segment: &str) -> bool {
    matches!(segment.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | "..")
}
