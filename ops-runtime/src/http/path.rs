//! The path of a request: a template with each `{name}` replaced by a value that cannot leave its segment.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::{Map, Value};

use super::style::{self, COMPONENT, Escape};
use super::{invalid, pointer};
use crate::model::binding::template::{Piece, is_dots, parameter, pieces};
use crate::{CallError, HttpBinding, HttpParameter, ParameterLocation, Text};

/// Characters that are escaped in the literal parts of a path; existing escapes stay (RFC 3986, section 3.3).
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
    /// The query in the template itself.
    pub(super) query: String,
    /// The query parameters in the template.
    pub(super) placed: Vec<Text>,
}

/// Fills the binding's template with the values of the input.
///
/// A fragment only distinguishes operations of one path, and is not sent.
///
/// # Errors
/// A `VALIDATION_ERROR` if a value is missing, in the path or beside another one in a pair of the query. Also if a text in a
/// list or an object would be read as something else, or if a segment would be empty, `.` or `..`: servers read these as
/// another path, and no escape prevents it.
pub(super) fn target(binding: &HttpBinding, input: &Map<String, Value>) -> Result<Target, CallError> {
    let mut target = Target { path: String::new(), query: String::new(), placed: Vec::new() };
    let mut in_query = false;
    // The properties in the path, each with the number of its segment.
    let mut places: Vec<(usize, Cow<'_, HttpParameter>)> = Vec::new();
    let mut pair = Pair::default();
    for piece in pieces(&binding.path) {
        let out = if in_query { &mut target.query } else { &mut target.path };
        match piece {
            Piece::Text(text) => out.extend(literal_text(text, in_query)),
            Piece::Brace => out.push_str("%7B"),
            Piece::Query => in_query = true,
            Piece::Pair => {
                // The first pairs may have been left out.
                let is_first = std::mem::take(&mut pair).end(out)? && out.is_empty();
                if !is_first {
                    out.push('&');
                }
                pair.start = out.len();
            }
            Piece::Parameter(name) => {
                let parameter = parameter(binding, name, in_query);
                let value = match &parameter.fixed {
                    Some(fixed) => Cow::Owned(fixed.to_value()),
                    None => Cow::Borrowed(input.get(parameter.property.as_ref()).unwrap_or(&Value::Null)),
                };
                style::refuse_torn(&parameter, &value, &pointer(&parameter.property), Escape::Component)?;
                let Some(text) = style::path(&parameter, &value) else {
                    if parameter.location == ParameterLocation::Query {
                        target.placed.push(parameter.name.clone());
                        pair.absent.get_or_insert(parameter);
                        continue;
                    }
                    return Err(invalid(&pointer(&parameter.property), format!("the path needs a value for `{name}`")));
                };
                out.push_str(&text);
                pair.is_given |= in_query;
                if parameter.location == ParameterLocation::Query {
                    target.placed.push(parameter.name.clone());
                } else if !in_query {
                    places.push((target.path.matches('/').count(), parameter));
                }
            }
        }
    }
    if in_query {
        pair.end(&mut target.query)?;
    }
    check_segments(&target.path, &places)?;
    Ok(target)
}

/// A pair of the query that is being written.
#[derive(Default)]
struct Pair<'a> {
    start: usize,
    /// The first of its parameters that has no value.
    absent: Option<Cow<'a, HttpParameter>>,
    /// True if one of its parameters has a value.
    is_given: bool,
}

impl Pair<'_> {
    /// Ends the pair. One whose parameters have no values is removed; returns true then.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if only some of them have: a value that was given must not be dropped silently.
    fn end(self, query: &mut String) -> Result<bool, CallError> {
        let Some(absent) = self.absent else { return Ok(false) };
        if self.is_given {
            let message =
                format!("the query needs a value for `{}`, because the same pair has another value", absent.name);
            return Err(invalid(&pointer(&absent.property), message));
        }
        query.truncate(self.start);
        if query.ends_with('&') {
            query.pop();
        }
        Ok(true)
    }
}

fn literal_text(text: &str, in_query: bool) -> impl Iterator<Item = &str> {
    // The query as a whole is escaped later.
    let (literal, path) = if in_query { (text, "") } else { ("", text) };
    std::iter::once(literal).chain(utf8_percent_encode(path, LITERAL))
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
