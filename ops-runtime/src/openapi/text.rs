//! Texts as JSON values: JSON by content, else YAML.

use serde_json::Value;

use super::yaml;
use crate::Diagnostic;

/// How deep the values of a document may be nested; what is deeper is left out.
///
/// A schema takes two levels for each level of the value that it describes.
pub(super) const MAX_DEPTH: usize = 512;

/// Line and column, from 1.
pub(super) type Position = (usize, usize);

/// The value of a JSON or YAML text, and whether it was JSON; what is left out of it is named in `diagnostics`.
pub(super) fn parse(text: &str, diagnostics: &mut Vec<Diagnostic>) -> Result<(Value, bool), Diagnostic> {
    if !text.trim_start().starts_with(['{', '[']) {
        return Ok((yaml::parse(text, diagnostics)?, false));
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok((value, true)),
        Err(error) => error,
    };
    // YAML is a superset of JSON: this reads JSON that is nested deeper than `serde_json` goes, and what people write
    // by hand and call JSON, with comments and commas at the end.
    let value = yaml::parse(text, diagnostics).map_err(|_| {
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or_default();
        Diagnostic::error("", format!("not JSON: {message}")).with_position(error.line(), error.column())
    })?;
    Ok((value, false))
}

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
    fn json_deeper_than_its_parser_goes_is_read() {
        let text = format!("{}1{}", "{\"a\":".repeat(300), "}".repeat(300));
        let mut value = &parse(&text, &mut Vec::new()).unwrap().0;
        for _ in 0..300 {
            value = &value["a"];
        }
        assert_eq!(value, 1);
    }
}
