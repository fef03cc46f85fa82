//! When it is not the fault of a request that it was not accepted: the only place where that is decided, but for the
//! list in `tests/wire.txt`.
//!
//! What is excused is not accepted: it counts against the share that must be. It only needs no line in the list.
//!
//! - The server says in its log that the request passed its checks, and then fails at an answer: it writes neither events
//!   nor lines nor text of what is no string, makes no value of some schemas, and checks its own headers.
//! - All that it says about the request are warnings: something is deprecated, or a security scheme is unknown to it.
//! - A list or an object in a form is text to it unless the document has an `encoding` with a `style` for the field, and
//!   all that it says is that such a field is text.
//! - The document tells operations apart by what follows a `#` in the path, which nobody sends.

use serde_json::Value;

/// What is known about a request that the server did not accept.
pub(super) struct Refusal<'a> {
    /// The name of the server's own error, or nothing.
    pub(super) error: &'a str,
    /// Its title: what went wrong, in a few words.
    pub(super) title: &'a str,
    /// What the server says about the request, each with a `location`, a `code` and a `severity`.
    pub(super) violations: &'a [Value],
    /// What the server wrote into its log meanwhile.
    pub(super) log: &'a str,
    /// Whether the body is a form: `application/x-www-form-urlencoded` or `multipart/form-data`.
    pub(super) is_form: bool,
    /// Whether another operation has the same path but for a fragment.
    pub(super) has_fragment: bool,
}

/// Why a request is excused, if it is.
pub(super) fn of(refusal: &Refusal<'_>) -> Option<&'static str> {
    let Refusal { error, title, violations, log, is_form, has_fragment } = refusal;
    if has_passed(log) && violations.is_empty() {
        return Some(match *error {
            "NO_COMPLEX_OBJECT_TEXT" => "the server took it, and cannot write what is not JSON",
            _ if title.contains("Cannot find serializer") => {
                "the server took it, and knows no such content type to answer in"
            }
            _ => "the server took it, and fails at its own answer",
        });
    }
    if *has_fragment && error.ends_with("_MATCHED_ERROR") {
        return Some("the server looks for what follows a # in its path");
    }
    if violations.is_empty() {
        return None;
    }
    if violations.iter().all(|violation| violation["severity"] == "Warning") {
        return Some("a warning only: deprecated, or a security scheme that the server does not know");
    }
    if *is_form && violations.iter().all(|violation| violation["severity"] == "Warning" || is_undecoded(violation)) {
        return Some("the server does not decode lists and objects of a form");
    }
    None
}

/// Whether the server's log says that the request passed its checks.
pub(super) fn has_passed(log: &str) -> bool {
    log.contains("The request passed the validation rules")
}

/// Whether a field of the body, and nothing inside one, is said to be no list and no object.
fn is_undecoded(violation: &Value) -> bool {
    let path: Vec<&str> = violation["location"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let path = path.strip_prefix(&["request"]).unwrap_or(&path);
    let message = violation["message"].as_str().unwrap_or_default();
    let wanted = message.rsplit_once(" must be ").map_or("", |(_, wanted)| wanted);
    matches!(path, ["body", _])
        && violation["code"] == "type"
        && wanted.split(',').any(|w| w == "array" || w == "object")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn excuse(error: &str, violations: &Value, log: &str, is_form: bool, has_fragment: bool) -> bool {
        let violations = violations.as_array().map_or(&[][..], Vec::as_slice);
        of(&Refusal { error, title: "", violations, log, is_form, has_fragment }).is_some()
    }

    #[test]
    fn what_is_excused() {
        let passed = "[VALIDATOR] success The request passed the validation rules. Looking for the best response";
        let none = json!([]);
        let list = json!([{ "location": ["body", "tags"], "code": "type", "severity": "Error", "message": "x must be array" }]);
        let inside = json!([{ "location": ["body", "tags", "0"], "code": "type", "severity": "Error", "message": "x must be array" }]);
        let number = json!([{ "location": ["request", "body", "age"], "code": "type", "severity": "Error", "message": "x must be integer" }]);
        let warning = json!([{ "location": ["request", "query", "old"], "code": "deprecated", "severity": "Warning" }]);
        assert!(excuse("UNKNOWN", &none, passed, false, false));
        assert!(!excuse("UNKNOWN", &none, "", false, false));
        assert!(!excuse("UNPROCESSABLE_ENTITY", &number, passed, false, false));
        assert!(excuse("UNPROCESSABLE_ENTITY", &list, "", true, false));
        assert!(!excuse("UNPROCESSABLE_ENTITY", &list, "", false, false));
        assert!(!excuse("UNPROCESSABLE_ENTITY", &inside, "", true, false));
        assert!(!excuse("", &number, "", true, false));
        assert!(excuse("", &warning, "", false, false));
        assert!(excuse("NO_PATH_MATCHED_ERROR", &none, "", false, true));
        assert!(!excuse("NO_PATH_MATCHED_ERROR", &none, "", false, false));
        assert!(!excuse("UNAUTHORIZED", &none, "", false, true));
    }
}
