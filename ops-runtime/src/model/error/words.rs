//! The message in the body of an HTTP error, in one line.
//!
//! There is a standard (RFC 9457: `title`, `detail`), and there are habits: `message`, `error.message`,
//! `error_description`, lists of `errors`, and lists of `detail` with the place of each. The text in these members is
//! shown, cut, and never as markup.

use serde_json::{Map, Value, json};

use crate::model::text::readable;

/// The maximum number of characters of one text, and of all together.
const MAX_TEXT: usize = 200;
const MAX_WORDS: usize = 400;

/// How many errors of a list are shown.
const MAX_ERRORS: usize = 3;

/// How deep errors may be nested.
const DEPTH: usize = 6;

/// The members with the kind of problem. Names are in lower case and without `_`, as [`plain`] gives them.
const KINDS: [&str; 2] = ["title", "error"];

/// The members with the message, the most precise first.
const SAID: [&str; 8] =
    ["detail", "message", "msg", "errormessage", "errordescription", "description", "reason", "faultstring"];

/// The members that hold further errors, or the only one.
const NESTED: [&str; 6] = ["error", "errors", "violations", "detail", "details", "fault"];

/// The members that name the place of an error.
const PLACES: [&str; 7] = ["loc", "field", "path", "param", "property", "pointer", "instancepath"];

/// The message in the body of an HTTP error; `told` is what was already said about the status.
pub(super) fn of_body(body: &Value, content_type: &str, told: &str) -> Option<String> {
    let content_type = content_type.to_ascii_lowercase();
    let is_markup = ["html", "xml"].iter().any(|kind| content_type.contains(kind));
    let mut said = Vec::new();
    match body {
        Value::String(_) if is_markup => {}
        body => of_value(body, told, DEPTH, &mut said),
    }
    let words = readable(&said.join(": "), MAX_WORDS);
    (!words.is_empty()).then_some(words)
}

/// Adds a text, unless it is markup or repeats another.
fn add(said: &mut Vec<String>, text: &str, told: &str) {
    if text.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}').starts_with('<') {
        return;
    }
    let text = readable(text, MAX_TEXT);
    let lower = text.to_lowercase();
    if text.is_empty() || told.to_lowercase().split(": ").any(|known| known == lower) {
        return;
    }
    match said.last_mut().map(|last| (last.to_lowercase(), last)) {
        Some((known, _)) if known.starts_with(&lower) => {}
        // It repeats the other text, and goes on.
        Some((known, last)) if lower.starts_with(&known) => *last = text,
        _ => said.push(text),
    }
}

fn of_value(value: &Value, told: &str, depth: usize, said: &mut Vec<String>) {
    let Some(depth) = depth.checked_sub(1) else { return };
    match value {
        Value::String(text) => add(said, text, told),
        Value::Array(items) => of_list(items, told, depth, said),
        Value::Object(object) => of_object(object, told, depth, said),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The first errors of a list, and the number of the rest.
fn of_list(items: &[Value], told: &str, depth: usize, said: &mut Vec<String>) {
    let mut texts = Vec::new();
    for item in items.iter().take(MAX_ERRORS) {
        let mut one = Vec::new();
        of_value(item, told, depth, &mut one);
        if !one.is_empty() {
            texts.push(one.join(": "));
        }
    }
    if texts.is_empty() {
        return;
    }
    if items.len() > MAX_ERRORS {
        texts.push(format!("and {} more", items.len() - MAX_ERRORS));
    }
    said.push(texts.join("; "));
}

fn of_object(object: &Map<String, Value>, told: &str, depth: usize, said: &mut Vec<String>) {
    let member = |wanted: &str| object.iter().find(|(name, _)| plain(name) == wanted).map(|(_, value)| value);
    let text = |wanted: &&str| member(wanted).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let mut here = Vec::new();
    for text in [KINDS.iter().find_map(text), SAID.iter().find_map(text)].into_iter().flatten() {
        add(&mut here, text, told);
    }
    for nested in NESTED {
        match member(nested) {
            Some(Value::Array(items)) => of_list(items, told, depth, &mut here),
            Some(Value::Object(inner)) => match by_field(inner) {
                Some(errors) => of_list(&errors, told, depth, &mut here),
                None => of_object_within(inner, told, depth, &mut here),
            },
            _ => {}
        }
    }
    let place = PLACES.iter().find_map(|name| member(name)).and_then(place);
    if let Some(place) = place.filter(|_| !here.is_empty()) {
        here.insert(0, readable(&place, MAX_TEXT));
    }
    said.append(&mut here);
}

fn of_object_within(object: &Map<String, Value>, told: &str, depth: usize, said: &mut Vec<String>) {
    if let Some(depth) = depth.checked_sub(1) {
        of_object(object, told, depth, said);
    }
}

/// Errors by field, `{ "name": ["is required"] }`, as a list with their places.
fn by_field(object: &Map<String, Value>) -> Option<Vec<Value>> {
    let is_list = |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_string));
    if object.is_empty() || !object.values().all(is_list) {
        return None;
    }
    let one = |(field, list): (&String, &Value)| {
        let texts: Vec<&str> = list.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        json!({ "field": field, "message": texts.join(", ") })
    };
    Some(object.iter().map(one).collect())
}

/// The place of an error: a name, a pointer, or a list of steps.
fn place(value: &Value) -> Option<String> {
    let step = |step: &Value| match step {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    };
    match value {
        Value::Array(steps) if !steps.is_empty() => {
            steps.iter().map(step).collect::<Option<Vec<_>>>().map(|steps| steps.join("."))
        }
        Value::String(_) => step(value),
        _ => None,
    }
}

/// The name of a member, independent of its notation: `error_description`, `errorDescription`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn said(body: Value, wanted: &str) {
        let words = of_body(&body, "application/json", "HTTP 422: Unprocessable Entity");
        assert_eq!(words.as_deref().unwrap_or_default(), wanted, "{body}");
    }

    #[test]
    fn words_of_many_servers() {
        // RFC 9457; a title that repeats the status is left out.
        said(json!({ "title": "unprocessable entity", "detail": "too late" }), "too late");
        said(json!({ "type": "x", "title": "No credit", "detail": "30 of 50" }), "No credit: 30 of 50");
        said(json!({ "title": "No credit", "status": 403 }), "No credit");
        said(
            json!({ "title": "Invalid", "errors": [{ "detail": "must be positive", "pointer": "#/age" }] }),
            "Invalid: #/age: must be positive",
        );
        said(json!({ "title": "Not paid", "detail": "Not paid: 30 of 50" }), "Not paid: 30 of 50");
        // That of our own server.
        let violations = ["/to/name", "/to/zip", "/depot", "/grams"]
            .map(|pointer| json!({ "pointer": pointer, "message": "is too short" }));
        said(
            json!({ "title": "Unprocessable Entity", "detail": "the input has 4 violations", "violations": violations }),
            "the input has 4 violations: /to/name: is too short; /to/zip: is too short; /depot: is too short; and 1 more",
        );
        said(json!({ "message": "Not here" }), "Not here");
        said(json!({ "Message": "Not here" }), "Not here");
        said(json!({ "error": "bad_request" }), "bad_request");
        said(json!({ "error": { "message": "no such model", "type": "x", "param": "model" } }), "model: no such model");
        said(json!({ "error": "invalid_grant", "error_description": "expired" }), "invalid_grant: expired");
        said(
            json!({ "message": "Validation failed", "errors": [{ "field": "name", "message": "is missing" }, "odd"] }),
            "Validation failed: name: is missing; odd",
        );
        said(json!({ "errors": [{ "message": "a" }, { "message": "b" }, "c", "d", "e"] }), "a; b; c; and 2 more");
        said(
            json!({ "errors": { "name": ["is blank", "is short"], "age": ["is odd"] } }),
            "name: is blank, is short; age: is odd",
        );
        said(
            json!({ "detail": [{ "loc": ["body", "name", 0], "msg": "field required", "type": "missing" }] }),
            "body.name.0: field required",
        );
        said(json!(["first", "second"]), "first; second");
        said(json!("plain words"), "plain words");
        said(json!({ "fault": { "faultstring": "over quota" } }), "over quota");
    }

    #[test]
    fn nothing_is_said_of_what_is_not_words() {
        for body in [
            json!(null),
            json!(7),
            json!({}),
            json!([]),
            json!({ "why": { "deep": 1 } }),
            json!({ "message": "" }),
            json!({ "message": "<html><body>no</body></html>" }),
            json!("<!doctype html><p>no"),
            json!(" \n\u{feff}<?xml version='1.0'?><Error/>"),
            json!({ "errors": [1, 2, 3, 4, 5] }),
            json!({ "error": "Unprocessable Entity" }),
        ] {
            said(body, "");
        }
        assert_eq!(of_body(&json!("login"), "text/html; charset=utf-8", ""), None);
    }

    #[test]
    fn words_are_cut_and_harmless() {
        let long = of_body(&json!({ "message": "x".repeat(5000) }), "", "").unwrap();
        assert_eq!(long, format!("{}...", "x".repeat(MAX_TEXT)));
        let errors: Vec<_> = ["a", "b", "c", "d"].map(|c| json!({ "message": c.repeat(5000) })).into();
        assert!(of_body(&json!({ "errors": errors }), "", "").unwrap().chars().count() <= MAX_WORDS + 3);
        assert_eq!(of_body(&json!("a\u{1b}[31m\nb\u{202e}"), "", "").unwrap(), "a\\u{1b}[31m b\\u{202e}");
        let mut deep = json!({ "message": "bottom" });
        for _ in 0..100 {
            deep = json!({ "error": deep });
        }
        assert_eq!(of_body(&deep, "", ""), None);
    }
}
