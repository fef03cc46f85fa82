//! When it is not the fault of a request that it was not accepted: the only place where that is decided, but for the
//! list in `tests/wire.txt`.
//!
//! What is excused is not accepted: it counts against the share that must be. It only needs no line in the list.
//!
//! - The server says in its log that the request passed its checks, says nothing of it, and then fails at its own answer
//!   in one of the ways of [`OWN_FAULTS`].
//! - All that it says about the request are warnings: something is deprecated, or a security scheme is unknown to it.
//! - A list or an object in a form is text to it unless the document has an `encoding` with a `style` for the field, and
//!   all that it says is that fields that were sent as lists or objects are text.
//! - The document tells operations apart by what follows a `#` in the path, which nobody sends, and it finds no such path
//!   or no such method.

use std::collections::BTreeSet;

use serde_json::Value;

use super::said;

/// How the server fails at an answer to a request that has passed: the name of its error, words of its own, and why that
/// says nothing about the request.
const OWN_FAULTS: [(&str, &str, &str); 6] = [
    ("NO_COMPLEX_OBJECT_TEXT", "", "the server took it, and cannot write what is not JSON"),
    ("UNKNOWN", "Cannot find serializer for", "the server took it, and knows no such content type to answer in"),
    ("UNKNOWN", "but schema is not defined", "the server took it, and makes no answer without a schema"),
    ("UNKNOWN", "/json-schema-faker/", "the server took it, and fails to make an example of its answer"),
    (
        "UNKNOWN",
        "missing items for {",
        "the server took it, and makes no example of a list that names its items one by one",
    ),
    ("UNKNOWN", "Maximum call stack size exceeded", "the server took it, and makes no end of an example of its answer"),
];

/// What is known about a request that the server did not accept.
pub(super) struct Refusal<'a> {
    /// The name of the server's own error, or nothing.
    pub(super) error: &'a str,
    /// Its title and its detail: what went wrong, in the server's words.
    pub(super) detail: &'a str,
    /// What the server says about the request, each with a `location`, a `code` and a `severity`.
    pub(super) violations: &'a [Value],
    /// What the server wrote into its log meanwhile.
    pub(super) log: &'a str,
    /// The fields of a form that were sent as lists or objects, in a style that the document does not say.
    pub(super) fields: &'a BTreeSet<String>,
    /// Whether another operation has the same path but for a fragment.
    pub(super) has_fragment: bool,
}

/// Why a request is excused, if it is.
pub(super) fn of(refusal: &Refusal<'_>) -> Option<&'static str> {
    let Refusal { error, detail, violations, log, fields, has_fragment } = refusal;
    if violations.is_empty() {
        let is_this = |(name, words, _): &&(&str, &str, &str)| name == error && detail.contains(words);
        let own_fault = OWN_FAULTS.iter().find(is_this).filter(|_| has_passed(log));
        let is_unknown = ["NO_PATH_MATCHED_ERROR", "NO_METHOD_MATCHED_ERROR"].contains(error);
        return match own_fault {
            Some((_, _, why)) => Some(why),
            None if *has_fragment && is_unknown => Some("the server looks for what follows a # in its path"),
            None => None,
        };
    }
    if violations.iter().all(is_warning) {
        return Some("a warning only: deprecated, or a security scheme that the server does not know");
    }
    if violations.iter().all(|violation| is_warning(violation) || is_undecoded(violation, fields)) {
        return Some("the server does not decode lists and objects of a form");
    }
    None
}

/// Whether the server's log says that the request passed its checks.
pub(super) fn has_passed(log: &str) -> bool {
    log.contains("The request passed the validation rules")
}

/// Whether it is said that something is deprecated, or that the server does not know a security scheme, and no more.
fn is_warning(violation: &Value) -> bool {
    let message = violation["message"].as_str().unwrap_or_default();
    let is_known = match violation["code"].as_str() {
        Some(code) => code == "deprecated",
        None => message.starts_with("We currently do not support this type of security scheme"),
    };
    is_known && violation["severity"] == "Warning"
}

/// Whether one of these fields of the body, and nothing inside one, is said to be no list and no object.
fn is_undecoded(violation: &Value, fields: &BTreeSet<String>) -> bool {
    let path = said::path(violation);
    let message = violation["message"].as_str().unwrap_or_default();
    let wanted = message.rsplit_once(" must be ").map_or("", |(_, wanted)| wanted);
    matches!(&path[..], [place, field] if place == "body" && fields.contains(field))
        && violation["code"] == "type"
        && wanted.split(',').any(|w| w == "array" || w == "object")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Whether it is excused that the server says this; `tags` was sent as a list in a form.
    fn excuse((error, detail): (&str, &str), violations: &[&Value], log: &str, has_fragment: bool) -> bool {
        let violations: Vec<Value> = violations.iter().map(|one| (*one).clone()).collect();
        let fields = &BTreeSet::from(["tags".to_owned()]);
        of(&Refusal { error, detail, violations: &violations, log, fields, has_fragment }).is_some()
    }

    fn violation(location: &[&str], code: &str, severity: &str, message: &str) -> Value {
        json!({ "location": location, "code": code, "severity": severity, "message": message })
    }

    #[test]
    fn faults_of_the_server_are_excused_where_the_request_has_passed() {
        let recursion = "RangeError: Maximum call stack size exceeded\n at retrieveSourceMapURL (micri/dist/x.js:1:2)";
        let passed = "[VALIDATOR] success The request passed the validation rules. Looking for the best response";
        let faults = [
            ("NO_COMPLEX_OBJECT_TEXT", "Cannot serialise complex objects as text"),
            ("UNKNOWN", "Cannot find serializer for application/zip"),
            ("UNKNOWN", "Tried to force a dynamic response for: text/event-stream but schema is not defined."),
            ("UNKNOWN", "missing items for {\n  \"type\": \"array\" }"),
            ("UNKNOWN", recursion),
            ("UNKNOWN", "TypeError: x\n at clean (node_modules/json-schema-faker/dist/main.cjs:1:2)"),
        ];
        let number = violation(&["request", "body", "age"], "type", "Error", "x must be integer");
        for fault in faults {
            assert!(excuse(fault, &[], passed, false), "{fault:?}");
            assert!(!excuse(fault, &[], "", false), "{fault:?}");
            assert!(!excuse(fault, &[&number], passed, false), "{fault:?}");
        }
        for other in [("UNKNOWN", "TypeError: x"), ("UNAUTHORIZED", ""), ("NOT_ACCEPTABLE", ""), ("VIOLATIONS", "")] {
            assert!(!excuse(other, &[], passed, true), "{other:?}");
        }
    }

    #[test]
    fn violations_are_excused_where_all_of_them_are() {
        let bad = ("UNPROCESSABLE_ENTITY", "Invalid request");
        let list = violation(&["body", "tags"], "type", "Error", "x must be array");
        let old = violation(&["request", "query", "old"], "deprecated", "Warning", "deprecated");
        let words = "We currently do not support this type of security scheme: http/oauth";
        let mut scheme = violation(&["request"], "", "Warning", words);
        scheme.as_object_mut().unwrap().remove("code");
        for good in [vec![&list], vec![&old], vec![&scheme], vec![&old, &list, &scheme]] {
            assert!(excuse(bad, &good, "", false) && excuse(("", ""), &good, "", false), "{good:?}");
        }
        for other in [
            violation(&["body", "tags", "0"], "type", "Error", "x must be array"),
            violation(&["query", "tags"], "type", "Error", "x must be array"),
            violation(&["body", "names"], "type", "Error", "x must be array"),
            violation(&["body", "tags"], "type", "Error", "x must be string"),
            violation(&["body", "tags"], "minItems", "Error", "x must be array"),
            violation(&["body"], "type", "Error", "x must be object"),
            violation(&["query", "old"], "deprecated", "Error", "deprecated"),
            violation(&["query", "old"], "unknown", "Warning", "x"),
        ] {
            assert!(!excuse(bad, &[&other], "", false), "{other}");
            assert!(!excuse(bad, &[&list, &other, &old], "", false), "{other}");
        }
    }

    #[test]
    fn a_path_is_not_found_for_its_fragment_alone() {
        for error in ["NO_PATH_MATCHED_ERROR", "NO_METHOD_MATCHED_ERROR"] {
            assert!(excuse((error, ""), &[], "", true) && !excuse((error, ""), &[], "", false), "{error}");
        }
        assert!(!excuse(("NO_SERVER_MATCHED_ERROR", ""), &[], "", true));
    }
}
