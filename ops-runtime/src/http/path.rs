//! The path of a request: a template with each `{name}` replaced by a value that cannot leave its segment.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::{AsciiSet, utf8_percent_encode};
use serde_json::{Map, Value};

use super::style::{self, COMPONENT, Escape};
use super::{invalid, pointer};
use crate::model::binding::template::{Piece, is_dots, parameter, pieces};
use crate::{CallError, HttpBinding, HttpParameter, OperationSpec, ParameterLocation, Text};

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
    /// The query parameters that are written in the template's own query.
    pub(super) placed: Vec<Text>,
}

/// Fills the binding's template with the values of the input.
///
/// A fragment only distinguishes operations of one path, and is not sent.
///
/// # Errors
/// A `VALIDATION_ERROR` if a value is missing, in the path or beside another one in a pair of the query. Also if a text in a
/// list or an object would be read as something else, or if a segment would be empty, `.` or `..`: servers read these as
/// another path, and no escape prevents it. For a function, also if a text before the next parameter of its segment would end
/// too early. Our server ends it at the first separator, but other servers may end it at the last one.
pub(super) fn target(
    spec: &OperationSpec,
    binding: &HttpBinding,
    input: &Map<String, Value>,
) -> Result<Target, CallError> {
    let mut target = Target { path: String::new(), query: String::new(), placed: Vec::new() };
    let mut in_query = false;
    // The properties in the path, each with the number of its segment.
    let mut places: Vec<(usize, Cow<'_, HttpParameter>)> = Vec::new();
    let mut pair = Pair::default();
    // The text before this place, with the name of its parameter.
    let mut last: Option<(Range<usize>, &str)> = None;
    for piece in pieces(&binding.path) {
        let out = if in_query { &mut target.query } else { &mut target.path };
        match piece {
            Piece::Text(text) => out.extend(literal_text(text, in_query)),
            Piece::Brace => out.push_str("%7B"),
            Piece::Query => (in_query, last) = (true, None),
            Piece::Pair => {
                last = None;
                // The first pairs may have been left out.
                let is_first = std::mem::take(&mut pair).end(out)? && out.is_empty();
                if !is_first {
                    out.push('&');
                }
                pair.start = out.len();
            }
            Piece::Parameter(name) => {
                if let Some((text, earlier)) = last.take().filter(|_| spec.input.is_made()) {
                    refuse_cut(out, &text, || parameter(binding, earlier, in_query))?;
                }
                let parameter = parameter(binding, name, in_query);
                let value = match &parameter.fixed {
                    Some(fixed) => Cow::Owned(fixed.to_value()),
                    None => Cow::Borrowed(input.get(parameter.property.as_ref()).unwrap_or(&Value::Null)),
                };
                style::refuse_torn(&parameter, &value, &pointer(&parameter.property), Escape::Component)?;
                let Some(text) = style::path(&parameter, &value) else {
                    if parameter.location == ParameterLocation::Query {
                        pair.absent.get_or_insert(parameter);
                        continue;
                    }
                    return Err(invalid(&pointer(&parameter.property), format!("the path needs a value for `{name}`")));
                };
                let start = out.len();
                out.push_str(&text);
                last = Some((start..out.len(), name));
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

/// Refuses a text that a server would end before its end, because what separates it from the next parameter is in it, too.
///
/// If nothing separates them, only the server knows where the first of them ends.
fn refuse_cut<'a>(
    out: &str,
    text: &Range<usize>,
    parameter: impl FnOnce() -> Cow<'a, HttpParameter>,
) -> Result<(), CallError> {
    let separator = out.get(text.end..).unwrap_or_default();
    if separator.is_empty() || separator.contains('/') {
        return Ok(());
    }
    // A server takes no text for empty, so it looks behind the first character.
    let behind = text.start + 1;
    let found = out.get(behind..).and_then(|rest| rest.find(separator)).map(|at| behind + at);
    if found == Some(text.end) {
        return Ok(());
    }
    let parameter = parameter();
    let name = &parameter.name;
    let message = match text.is_empty() {
        true => format!("the text of `{name}` cannot be empty before {separator:?}"),
        false => format!(
            "a server would end the text of `{name}` at the first {separator:?} behind its first character, which is not its end"
        ),
    };
    Err(invalid(&pointer(&parameter.property), message))
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Schema;

    fn filled(spec: &OperationSpec, template: &'static str, input: &Value) -> Result<String, String> {
        let filled = target(spec, &HttpBinding::new("GET", template), input.as_object().unwrap());
        let refused = |error: CallError| error.details()["violations"][0]["pointer"].as_str().unwrap().to_owned();
        filled.map(|target| format!("{}?{}", target.path, target.query)).map_err(refused)
    }

    #[test]
    fn a_text_ends_where_the_next_parameter_begins() {
        let function = OperationSpec::query("t.t").with_input(Schema::make(|| json!({})));
        for (template, input, expected) in [
            ("/{a}-{b}", json!({ "a": "2024-01", "b": "x" }), Err("/a")),
            ("/{a}-{b}", json!({ "a": "2024", "b": "01-02" }), Ok("/2024-01-02?")),
            ("/{a}-{b}", json!({ "a": -5, "b": 3 }), Ok("/-5-3?")),
            ("/{a}.{b}", json!({ "a": 1.5, "b": 2 }), Err("/a")),
            ("/{a}...{b}", json!({ "a": "v1.0", "b": "v1.1" }), Ok("/v1.0...v1.1?")),
            ("/{a}...{b}", json!({ "a": "v1.", "b": "v2" }), Err("/a")),
            ("/{a}.{b}.{c}", json!({ "a": 1, "b": "2.3", "c": 4 }), Err("/b")),
            ("/{a}-{b}.json", json!({ "a": 1, "b": "2.json" }), Ok("/1-2.json.json?")),
            ("/{a},{b}", json!({ "a": [1, 2], "b": 3 }), Err("/a")),
            ("/{a}:{b}", json!({ "a": "x:y", "b": "z" }), Ok("/x%3Ay:z?")),
            ("/{a}2{b}", json!({ "a": " ", "b": 1 }), Err("/a")),
            ("/{a}-{b}", json!({ "a": "", "b": "-c" }), Err("/a")),
            // Only the server knows.
            ("/{a}{b}", json!({ "a": "12", "b": "3" }), Ok("/123?")),
            ("/{a}/{b}", json!({ "a": "b", "b": "b" }), Ok("/b/b?")),
            ("/x?range={a}-{b}&c={c}", json!({ "a": "1-2", "b": 3, "c": 4 }), Err("/a")),
            ("/x?range={a}-{b}&c={c}", json!({ "a": 1, "b": "2&c=", "c": 4 }), Ok("/x?range=1-2%26c%3D&c=4")),
        ] {
            let filled = filled(&function, template, &input);
            assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{template} with {input}");
        }
    }

    /// Another server may end it at the last separator, as the author of such a path means it.
    #[test]
    fn a_text_for_another_server_may_contain_the_separator() {
        let document = OperationSpec::query("t.t").with_input(Schema::from(json!({})));
        let template = "/reverseGeocode/{position}.{ext}";
        let input = json!({ "position": "37.8328,-122.27669", "ext": "json" });
        assert_eq!(filled(&document, template, &input).unwrap(), "/reverseGeocode/37.8328%2C-122.27669.json?");
        let function = OperationSpec::query("t.t").with_input(Schema::make(|| json!({})));
        assert_eq!(filled(&function, template, &input).unwrap_err(), "/position");
    }

    /// A query parameter whose pair is left out may be written as a pair of its own.
    #[test]
    fn a_pair_without_values_is_not_placed() {
        let mut binding = HttpBinding::owned("GET", "/x?range={from}-{to}");
        binding.parameters = vec![HttpParameter::query("from"), HttpParameter::query("to")].into();
        let placed = |input: Value| {
            let spec = OperationSpec::query("t.t");
            target(&spec, &binding, input.as_object().unwrap()).unwrap().placed
        };
        assert_eq!(placed(json!({ "from": 1, "to": 2 })), ["from", "to"]);
        assert_eq!(placed(json!({})), [""; 0]);
    }
}
