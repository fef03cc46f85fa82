//! Parsing of documents, as JSON or else as YAML.

use serde_json::Value;

use super::{repeated, yaml};
use crate::Diagnostic;

/// How deep the values of a document may be nested; deeper ones are left out.
///
/// A schema takes two levels for each level of the value that it describes.
pub(super) const MAX_DEPTH: usize = 512;

/// Line and column, from 1.
pub(super) type Position = (usize, usize);

/// The value of a JSON or YAML text, and true if it was JSON; `diagnostics` name what is left out of it.
pub(super) fn parse(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Result<(Value, bool), Diagnostic> {
    if !text.trim_start().starts_with(['{', '[']) {
        let value = yaml::parse(text, diagnostics).map_err(|error| of_markup(text).unwrap_or(error))?;
        return Ok((value, false));
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => {
            repeated::keys(text, diagnostics);
            return Ok((value, true));
        }
        Err(error) => error,
    };
    let is_deep = error.is_syntax() && error.to_string().starts_with("recursion limit");
    if let Some(shallow) = Some(text).filter(|_| is_deep).and_then(shallow) {
        let before = diagnostics.len();
        let value = yaml::parse(&shallow, diagnostics)?;
        // Their positions are those of another text.
        diagnostics.iter_mut().skip(before).for_each(|diagnostic| diagnostic.position = None);
        return Ok((value, true));
    }
    // YAML is a superset of JSON: this reads JSON that is nested deeper than `serde_json` goes, and handwritten JSON
    // with comments and trailing commas.
    let value = yaml::parse(text, diagnostics).map_err(|_| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        Diagnostic::error("", format!("not JSON: {message}")).with_position(error.line(), error.column())
    })?;
    Ok((value, false))
}

/// The error for HTML or XML, such as the page of a login or the one that shows a document; `None` for any other text.
pub(super) fn of_markup(text: &str) -> Option<Diagnostic> {
    let inside = text.trim_start().strip_prefix('<')?;
    let is_markup = inside.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?'));
    let error = Diagnostic::error("", "not an OpenAPI document: it is a page of HTML, or other XML");
    is_markup.then(|| error.with_help("name the document that the page shows"))
}

/// The JSON without values nested too deep for any parser; `None` if there are none.
///
/// Values a little too deep stay, so that the reader reports their place.
fn shallow(text: &str) -> Option<String> {
    const KEPT: usize = MAX_DEPTH + 1;
    let mut out = String::new();
    let (mut start, mut depth) = (0, 0_usize);
    let mut bytes = text.bytes().enumerate();
    while let Some((at, byte)) = bytes.next() {
        match byte {
            b'"' => {
                let mut escaped = false;
                bytes.find(|(_, byte)| {
                    let is_end = *byte == b'"' && !escaped;
                    escaped = *byte == b'\\' && !escaped;
                    is_end
                });
            }
            b'{' | b'[' => {
                depth += 1;
                if depth == KEPT {
                    out.push_str(text.get(start..=at)?);
                }
            }
            b'}' | b']' => {
                if depth == KEPT {
                    start = at;
                }
                depth = depth.checked_sub(1)?;
            }
            _ => {}
        }
    }
    if depth > 0 || start == 0 {
        return None;
    }
    out.push_str(text.get(start..)?);
    Some(out)
}

/// The longest name that is made of other texts, in bytes.
pub(super) const LONGEST: usize = 500;

/// The text with every run of other characters than letters and digits replaced by `_`.
pub(super) fn word(text: &str) -> String {
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// About how many bytes a value has as JSON.
pub(super) fn weight(value: &Value) -> usize {
    let mut bytes = 0;
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        bytes += match value {
            Value::String(text) => text.len() + 3,
            Value::Number(_) => 8,
            _ => 4,
        };
        match value {
            Value::Array(items) => stack.extend(items),
            Value::Object(map) => {
                bytes += map.keys().map(|key| key.len() + 4).sum::<usize>();
                stack.extend(map.values());
            }
            _ => {}
        }
    }
    bytes
}

/// How deep a value of a schema may be that is kept as it is.
pub(super) const MAX_VALUE: usize = 20;

/// How deep a value is nested: 0 for a scalar.
pub(super) fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    // An explicit stack: the value may be nested deeper than the thread's stack allows.
    let mut stack = vec![(value, 0)];
    while let Some((value, level)) = stack.pop() {
        deepest = deepest.max(level);
        match value {
            Value::Array(items) => stack.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => stack.extend(map.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    deepest
}

/// What kind of value this is, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_yaml_are_told_apart_by_content() {
        for text in ["{\"a\": [1, 2]}", "a: [1, 2]", "{a: [1, 2]}", "{\"a\": [1, 2,],} # list"] {
            assert_eq!(parse(text, &mut Vec::new()).unwrap().0, json!({ "a": [1, 2] }), "{text}");
        }
    }

    #[test]
    fn syntax_errors_say_where() {
        let error = parse("{\n  \"a\": 1\n  \"b\": 2\n", &mut Vec::new()).unwrap_err();
        assert_eq!((error.message.as_str(), error.position), ("not JSON: expected `,` or `}`", Some((3, 3))));
        let error = parse("a: 1\nb: [\n", &mut Vec::new()).unwrap_err();
        assert!(error.message.starts_with("not YAML: ") && error.position.is_some(), "{error}");
    }

    #[test]
    fn repeated_keys_are_told_of_json_as_of_yaml() {
        let texts =
            [("{\n  \"a\": {\n  \"b\": {},\n  \"b\": [\n1] } }", true), ("a:\n  c: 1\n  b: {}\n  b:\n  - 1\n", false)];
        for (text, is_json) in texts {
            let mut diagnostics = Vec::new();
            let (value, found) = parse(text, &mut diagnostics).unwrap();
            assert_eq!((&value["a"]["b"], found), (&json!([1]), is_json));
            let [told] = diagnostics.as_slice() else { panic!("{diagnostics:?}") };
            assert_eq!((told.pointer.as_str(), told.help.as_deref()), ("/a/b", Some("the last was taken")));
            assert_eq!(told.message, "the key `b` stands here more than once");
            let pointers = ["/a/b"].into_iter().collect();
            let place = super::super::position::positions(text, is_json, &pointers).get("/a/b").copied();
            assert_eq!((told.position.or(place), place), (Some((4, 3)), Some((4, 3))), "{text}");
        }
    }

    #[test]
    fn what_is_too_deep_costs_itself() {
        let text = format!("{{\"a\": {}{}, \"b\": \"[[\"}}", "[".repeat(100_000), "]".repeat(100_000));
        let mut diagnostics = Vec::new();
        let (value, _) = parse(&text, &mut diagnostics).unwrap();
        assert_eq!((&value["b"], diagnostics.len()), (&json!("[["), 1));
        assert!(diagnostics[0].pointer.starts_with("/a/0/0"), "{:?}", diagnostics[0]);
        assert!(parse(&"[".repeat(100_000), &mut diagnostics).is_err());
    }

    #[test]
    fn json_deeper_than_its_parser_goes_is_read() {
        let text = format!("{}1{}", "{\"a\":".repeat(300), "}".repeat(300));
        let mut value = &parse(&text, &mut Vec::new()).unwrap().0;
        for _ in 0..300 {
            value = &value["a"];
        }
        assert_eq!(value, 1);
    }
}
