//! What a server says about a request, in words that can be compared: a code, and the places that it names.

use std::collections::BTreeSet;

use ops_runtime::CallError;
use serde_json::Value;

/// Texts beyond this length are cut.
const LONGEST: usize = 80;

/// The server gave no answer in time.
pub(super) const LATE: &str = "TIMEOUT";
/// The server died of the request, and does not start again.
pub(super) const DEAD: &str = "DEAD";
/// The server's answer has no headers, and its log does not say that the request passed.
pub(super) const SILENT: &str = "SILENT";

/// The server closed the connection without an answer, and wrote this before it died.
pub(super) fn gone(cause: &str) -> String {
    joined("DISCONNECTED", vec![line(cause)])
}

/// What the server says about a request: the name of its own error, or `sl-violations` for what stands in that header,
/// and behind it `code at place` for each violation, in the order of the alphabet.
///
/// Without a violation, the server's own words for what went wrong follow the name of the error.
pub(super) fn by_server(error: &str, detail: &str, violations: &[Value]) -> String {
    let code = if error.is_empty() { "sl-violations" } else { error };
    let words = if violations.is_empty() { vec![line(detail)] } else { places(violations) };
    joined(code, words)
}

/// What we say ourselves: the code of an error, and the places of its violations.
pub(super) fn by_us(stage: &str, error: &CallError) -> String {
    let violations = error.details()["violations"].as_array().map(Vec::as_slice).unwrap_or_default();
    let at = |violation: &Value| {
        let expected = violation["expected"].as_str().or_else(|| violation["message"].as_str()).unwrap_or_default();
        format!(
            "{} at {}",
            line(expected),
            violation["pointer"].as_str().filter(|at| !at.is_empty()).unwrap_or("the input")
        )
    };
    let mut words: Vec<String> = violations.iter().map(at).collect();
    if words.is_empty() {
        words.push(line(error.message()));
    }
    joined(&format!("{stage} {}", error.code()), words)
}

fn joined(code: &str, words: Vec<String>) -> String {
    let words: BTreeSet<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    match words.is_empty() {
        true => code.to_owned(),
        false => format!("{code}: {}", words.into_iter().collect::<Vec<_>>().join(", ")),
    }
}

/// `code at place` for each violation; those that are warnings only say nothing about why a request is refused, if there
/// is another.
fn places(violations: &[Value]) -> Vec<String> {
    let is_error = |violation: &&Value| violation["severity"] != "Warning";
    let errors: Vec<&Value> = violations.iter().filter(is_error).collect();
    let told = if errors.is_empty() { violations.iter().collect() } else { errors };
    let code = |one: &Value| one["code"].as_str().or_else(|| one["message"].as_str()).map_or_else(String::new, line);
    let place =
        |one: &Value| Some(pointer(one)).filter(|at| !at.is_empty()).unwrap_or_else(|| "the request".to_owned());
    told.iter().map(|one| format!("{} at {}", code(one), place(one))).collect()
}

/// The place of a violation as a JSON pointer into the request.
pub(super) fn pointer(violation: &Value) -> String {
    path(violation).iter().map(|part| format!("/{}", part.replace('~', "~0").replace('/', "~1"))).collect()
}

/// The place of a violation: `["body", "name"]`.
pub(super) fn path(violation: &Value) -> Vec<String> {
    let text = |part: &Value| part.as_str().map_or_else(|| part.to_string(), str::to_owned);
    let path: Vec<String> = violation["location"].as_array().into_iter().flatten().map(text).collect();
    match path.split_first() {
        Some((first, rest)) if first == "request" => rest.to_vec(),
        _ => path,
    }
}

/// The first line of a text, cut, without what separates the columns of a list and without what it says in parentheses:
/// values, and places in files.
fn line(text: &str) -> String {
    let mut depth = 0_usize;
    let outside = |c: &char| {
        depth = if *c == '(' { depth + 1 } else { depth };
        let is_outside = depth == 0;
        depth = if *c == ')' { depth.saturating_sub(1) } else { depth };
        is_outside
    };
    let words: String = text.lines().next().unwrap_or_default().chars().filter(outside).collect();
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}...", words.get(..end).unwrap_or(&words)),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use ops_runtime::ErrorCode;
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_said_has_a_code_and_places() {
        let said = |error: &str, violations: Value| {
            by_server(error, " a (b (c)) |  detail\nand more", violations.as_array().unwrap())
        };
        let violation =
            |place: Value, code: &str, severity: &str| json!({ "location": place, "code": code, "severity": severity });
        let (one, other) = (
            violation(json!(["request", "body", "a/b", 0]), "type", "Error"),
            violation(json!(["query"]), "required", "Error"),
        );
        assert_eq!(
            said("UNPROCESSABLE_ENTITY", json!([one, other, one])),
            "UNPROCESSABLE_ENTITY: required at /query, type at /body/a~1b/0"
        );
        let warning = violation(json!(["query", "old"]), "deprecated", "Warning");
        assert_eq!(said("", json!([warning, other])), "sl-violations: required at /query");
        let (nameless, whole) = (json!({ "location": ["request"], "message": "no | such (thing)" }), json!([]));
        assert_eq!(said("", json!([nameless])), "sl-violations: no / such at the request");
        assert_eq!(said("", whole), "sl-violations: a / detail");
        assert_eq!(said("", json!([warning])), "sl-violations: deprecated at /query/old");
        assert_eq!(said("UNKNOWN", json!([])), "UNKNOWN: a / detail");
        let details = json!({ "violations": [{ "pointer": "/body/a", "expected": "a string" }] });
        let error = CallError::new(ErrorCode::ValidationError, "no").with_details(details);
        assert_eq!(by_us("NOT_SENT", &error), "NOT_SENT VALIDATION_ERROR: a string at /body/a");
        assert_eq!(by_us("X", &CallError::new(ErrorCode::ExecutionError, "no")), "X EXECUTION_ERROR: no");
    }
}
