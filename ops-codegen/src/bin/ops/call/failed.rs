//! The messages of failed calls.

use std::fmt::Write as _;

use ops_runtime::spec::pointer;
use ops_runtime::{CallError, ErrorCode};
use serde_json::Value;

use crate::failure::Failure;
use crate::report::cut;
use crate::shell::is_option;

/// How many characters of the received value are shown.
const SHOWN: usize = 4000;

/// How many of a page of HTML, which says little in much.
const MARKUP: usize = 400;

/// How many violations are shown.
const VIOLATIONS: usize = 10;

/// The failure for an error of a call: of the command if its input does not fit, or else of the work.
pub(super) fn failed(error: &CallError) -> Failure {
    match error.code() {
        ErrorCode::ValidationError if !is_of_output(error) => Failure::Usage(message(error)),
        _ if is_theirs(error) => Failure::Answered(message(error)),
        _ => Failure::Failed(message(error)),
    }
}

/// True if a result, and not an input, does not match its schema.
pub(crate) fn is_of_output(error: &CallError) -> bool {
    let has = |key: &str| error.details().get(key).is_some();
    has("raw") || has("value") || error.message().starts_with("the output")
}

/// The error, with what the server sent.
pub(super) fn message(error: &CallError) -> String {
    let mut text = error.to_string();
    let details = error.details();
    if is_of_output(error) {
        violations(&mut text, details.get("violations").and_then(Value::as_array));
    }
    for key in ["body", "raw", "value"] {
        match details.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(body)) if is_markup(body) => _ = write!(text, "\n{}", cut(body.trim(), MARKUP)),
            // A short body is in the message already.
            Some(Value::String(body)) if text.contains(body.trim()) => {}
            Some(Value::String(body)) => _ = write!(text, "\n{}", cut(body, SHOWN)),
            Some(body) => _ = write!(text, "\n{}", cut(&format!("{body:#}"), SHOWN)),
        }
    }
    let text = named(text, details);
    if is_theirs(error) { text } else { crate::advice::of_command("call", &text) }
}

/// True if the error says what another server has said, which stays as it is.
fn is_theirs(error: &CallError) -> bool {
    ["body", "raw"].iter().any(|key| error.details().get(key).is_some())
}

/// The text with required properties that are missing, and those that are bytes, said by the names that the command takes.
fn named(mut text: String, details: &Value) -> String {
    let mut missing: Vec<&Value> = details.get("violations").and_then(Value::as_array).into_iter().flatten().collect();
    // A pointer may end as another does.
    missing.sort_by_key(|violation| std::cmp::Reverse(violation.get("pointer").and_then(Value::as_str).map(str::len)));
    for violation in missing {
        let word = |key: &str| violation.get(key).and_then(Value::as_str);
        let (Some(pointer), Some(message)) = (word("pointer"), word("message")) else { continue };
        if message.eq_ignore_ascii_case("expected required property") {
            let names = pointer.split('/').skip(1).map(pointer::unescaped).collect::<Vec<_>>();
            text = text.replace(&format!("{pointer}: {message}"), &format!("`{}` is missing", names.join(".")));
        } else if message.ends_with("written from a string of base64") {
            let names = pointer.split('/').skip(1).map(pointer::unescaped).collect::<Vec<_>>().join(".");
            if is_option(&names) {
                continue;
            }
            text = text.replace(message, &format!("{message}: pass a file by `{names}=@FILE`"));
        }
    }
    text
}

fn violations(text: &mut String, violations: Option<&Vec<Value>>) {
    let violations = violations.map(Vec::as_slice).unwrap_or_default();
    let word = |violation: &Value, key: &str| violation.get(key).and_then(Value::as_str).map(str::to_owned);
    for violation in violations.iter().take(VIOLATIONS) {
        let place = word(violation, "pointer").filter(|pointer| !pointer.is_empty());
        let place = place.unwrap_or_else(|| "the data".to_owned());
        if let Some(message) = word(violation, "message") {
            _ = write!(text, "\n{place}: {message}");
        } else if let (Some(expected), Some(found)) = (word(violation, "expected"), word(violation, "found")) {
            _ = write!(text, "\n{place} was {found}, not {expected}");
        }
    }
    if violations.len() > VIOLATIONS {
        _ = write!(text, "\nand {} more", violations.len() - VIOLATIONS);
    }
}

fn is_markup(text: &str) -> bool {
    text.trim_start().starts_with('<')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_missing_property_is_named_whole() {
        let missing = |pointer: &str| json!({ "pointer": pointer, "message": "expected required property" });
        let message = "/id: expected required property; /body/id: expected required property";
        let error = CallError::new("VALIDATION_ERROR", message)
            .with_details(json!({ "violations": [missing("/id"), missing("/body/id")] }));
        let named = named(message.to_owned(), error.details());
        assert_eq!(named, "`id` is missing; `body.id` is missing");
    }

    #[test]
    fn bytes_are_passed_as_files() {
        let message = "the part `photo` is bytes, which are written from a string of base64";
        let violation = json!({ "pointer": "/body/photo", "message": message });
        let error = CallError::new("VALIDATION_ERROR", message).with_details(json!({ "violations": [violation] }));
        assert_eq!(super::message(&error), format!("VALIDATION_ERROR: {message}: pass a file by `body.photo=@FILE`"));
        // Written so, this one would be an option.
        let violation = json!({ "pointer": "/--output", "message": message });
        let error = CallError::new("VALIDATION_ERROR", message).with_details(json!({ "violations": [violation] }));
        assert_eq!(super::message(&error), format!("VALIDATION_ERROR: {message}"));
    }

    #[test]
    fn what_another_server_says_is_not_ours_to_change() {
        let details = json!({ "statusCode": 429, "body": { "detail": "quota of cats: raise `with_cats` in your plan, or write" } });
        let told = message(&CallError::execution("HTTP 429").with_details(details));
        assert!(told.contains("raise `with_cats` in your plan"), "{told}");
    }

    #[test]
    fn what_came_is_shown_once_and_cut() {
        let http = |body: Value| {
            let details = json!({ "statusCode": 400, "contentType": "text/plain", "body": body });
            message(&CallError::execution("HTTP 400: Bad Request").with_details(details).with_operation("a.b"))
        };
        assert_eq!(http(json!("no such pet")), "a.b: HTTP 400: Bad Request: no such pet");
        assert_eq!(http(json!("<p>no</p>")), "a.b: HTTP 400: Bad Request\n<p>no</p>");
        assert_eq!(http(json!({ "x": 1 })), "a.b: HTTP 400: Bad Request\n{\n  \"x\": 1\n}");
        assert!(http(json!({ "x": "y".repeat(50_000) })).len() < 5000);
        let list: Vec<Value> = (0..12).map(|_| json!({ "pointer": "", "expected": "a", "found": "b" })).collect();
        let error = CallError::new("VALIDATION_ERROR", "the output of `a.b` does not match its schema")
            .with_details(json!({ "violations": list, "value": 7 }));
        let text = message(&error);
        assert!(text.contains("\nthe data was b, not a\n") && text.contains("\nand 2 more\n7"), "{text}");
        assert!(matches!(failed(&error), Failure::Failed(_)));
    }
}
