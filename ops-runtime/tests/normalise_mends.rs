//! Texts that are mended: they become what mending their values gives, and all that needs no change stays as it was written.
#![cfg(feature = "registry")]
#![allow(clippy::unwrap_used)]

use ops_runtime::normalise::{CompiledSchema, Reading};
use serde_json::{Value, json};

fn compiled(schema: &Value) -> CompiledSchema {
    CompiledSchema::new(schema, Reading::Default)
}

/// A list of orders with parts of all kinds.
fn orders() -> CompiledSchema {
    compiled(&json!({
        "type": "object",
        "required": ["orders"],
        "properties": {
            "orders": {"type": "array", "items": {"$ref": "#/$defs/Order"}},
            "next": {"type": "string"},
            "shape": {"oneOf": [
                {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "dot"}, "x": {"type": "integer"}}},
                {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "line"}, "to": {"$ref": "#/$defs/Order"}}}
            ]}
        },
        "$defs": {"Order": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "integer"},
                "paid": {"type": "boolean"},
                "note": {"type": "string"},
                "status": {"type": "string", "default": "new"},
                "parent": {"$ref": "#/$defs/Order"}
            }
        }}
    }))
}

const STATUS: &str = r#""status":"x""#;

/// Each text, and what is written in its place.
#[test]
fn only_what_needs_a_change_is_written_anew() {
    let schema = orders();
    for (text, mended) in [
        // Cut out at the beginning, in the middle, at the end, alone, several in a row.
        (r#"{"_a": [1, {}], "orders": [ ]}"#, r#"{"orders": [ ]}"#),
        (r#"{"orders": [ ] , "_a": 1}"#, r#"{"orders": [ ]}"#),
        (
            r#"{"_a":1, "_b" : {"c": "}"} ,"orders":[], "_c":"\"", "_d":null , "next" : "1.50" ,"_e":-1.5e3 }"#,
            r#"{"orders":[] , "next" : "1.50" }"#,
        ),
        (r#"{"orders": [{"_": 1, "id": 1, "status":"x"}]}"#, r#"{"orders": [{"id": 1, "status":"x"}]}"#),
        // Converted; the neighbours keep their spaces and their way of writing.
        (
            r#"{"orders": [ {"id": "7" , "status":"\u0078", "paid": "true"} ]}"#,
            r#"{"orders": [ {"id": 7 , "status":"\u0078", "paid": true} ]}"#,
        ),
        (
            r#"{"orders":[{"id":7.0,"status":"x"},{"id": 8,"status": "x"}]}"#,
            r#"{"orders":[{"id":7,"status":"x"},{"id": 8,"status": "x"}]}"#,
        ),
        // An integer of more digits than 64 bits hold stays as it is.
        (
            r#"{"orders":[{"id":18446744073709551617,"status":"x", "_":1}]}"#,
            r#"{"orders":[{"id":18446744073709551617,"status":"x"}]}"#,
        ),
        // Null for absence, by a reference, too; beside other changes.
        (r#"{"orders":[], "next": null}"#, r#"{"orders":[]}"#),
        (
            r#"{ "next":null,"_":0, "orders":[{"parent":null,"id":"1","status":"x","note":null}]}"#,
            r#"{"orders":[{"id":1,"status":"x"}]}"#,
        ),
        // A default is filled in, and null makes place for it: the object is written anew.
        (
            r#"{"orders": [{"id" : 1}, {"id" : 2, "status" : "x"}]}"#,
            r#"{"orders": [{"id":1,"status":"new"}, {"id" : 2, "status" : "x"}]}"#,
        ),
        (r#"{"orders": [{"status":null, "id" : 1}]}"#, r#"{"orders": [{"id":1,"status":"new"}]}"#),
        // What was mended inside is mended once more with what is around it.
        (
            r#"{"orders": [{"parent": {"id": "1", "_": 1, "status": "x"}, "id" : "2"}]}"#,
            r#"{"orders": [{"parent":{"id":1,"status":"x"},"id":2,"status":"new"}]}"#,
        ),
        // Names that come twice, or are escaped.
        (r#"{"orders": [{"id": 1, "id": "2", "status": "x"}]}"#, r#"{"orders": [{"id":2,"status":"x"}]}"#),
        (r#"{"orders": [{"\u0069d": "2", "status": "x"}]}"#, r#"{"orders": [{"id":2,"status":"x"}]}"#),
        (
            r#"{"orders": [{"id": 2, "note": null, "note": "x", "status": "x"}]}"#,
            r#"{"orders": [{"id":2,"note":"x","status":"x"}]}"#,
        ),
        // Variants of a union, found by the tag wherever it is.
        (
            r#"{"orders": [], "shape": {"x": "1", "_": 1, "kind": "dot"}}"#,
            r#"{"orders": [], "shape": {"x": 1, "kind": "dot"}}"#,
        ),
        (
            r#"{"orders": [], "shape": {"kind": "line", "to": {"id": "1", "status": "x"}}}"#,
            r#"{"orders": [], "shape": {"kind": "line", "to": {"id": 1, "status": "x"}}}"#,
        ),
        // What cannot be mended stays.
        (
            r#"{"orders": [{"id": "one", "status": "x", "_": 1}, {"status": "x"}], "shape": {"kind": "disk"}}"#,
            r#"{"orders": [{"id": "one", "status": "x"}, {"status":"x"}], "shape": {"kind":"disk"}}"#,
        ),
    ] {
        let (found, repairs) = schema.repair_text(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(found, mended, "{text}");
        let (value, told) = schema.repair(serde_json::from_str(text).unwrap());
        assert_eq!(serde_json::from_str::<Value>(mended).unwrap().to_string(), value.to_string());
        assert_eq!(repairs, told, "{text}");
    }
}

#[test]
fn what_needs_no_change_stays_the_same_text() {
    let text = format!(r#"{{"orders": [{{"id": 1, {STATUS}}}]}}"#);
    let schema = orders();
    for (mended, repairs) in [schema.repair_text(&text).unwrap(), schema.normalise_text(&text).unwrap()] {
        assert!(matches!(mended, std::borrow::Cow::Borrowed(_)) && repairs.is_empty(), "{mended}");
    }
}

/// Another value at the root, an object of which nothing would be left, and what is no JSON, beside a change or not.
#[test]
fn what_takes_a_value_is_not_mended() {
    let schema = orders();
    for text in [
        "[]",
        "null",
        r#""{}""#,
        "{}",
        r#"{"error": 1}"#,
        r#"{"orders": "x", "_": 1}"#.replace("\"orders\"", "\"order\"").as_str(),
    ] {
        assert!(schema.repair_text(text).is_none(), "{text}");
    }
    let whole =
        r#"{"_a": [1, {"b": "\n"}], "orders": [{"id": "7", "note": null, "status": "x", "_": 1.5}, {"id": 1}]}"#;
    assert!(schema.repair_text(whole).is_some());
    for end in 0..whole.len() {
        let text = &whole[..end];
        assert!(schema.repair_text(text).is_none() && schema.normalise_text(text).is_none(), "{text}");
    }
    for (at, byte) in whole.bytes().enumerate() {
        for other in ["", "\"", "}", "]", "{", ",", ":", "\\", "\u{1}", "1", "nul", "x"] {
            let text = format!("{}{other}{}", &whole[..at], &whole[at + 1..]);
            let mended = schema
                .repair_text(&text)
                .map(|(text, told)| (serde_json::from_str::<Value>(&text).unwrap().to_string(), told));
            let Ok(value) = serde_json::from_str::<Value>(&text) else {
                assert!(mended.is_none(), "{byte} at {at}: {text} is no JSON, and became {mended:?}");
                continue;
            };
            let (value, told) = schema.repair(value);
            assert!(mended.is_none_or(|mended| mended == (value.to_string(), told)), "{text}");
        }
    }
}

/// Levels that are mended one around the other are not read again and again.
#[test]
fn work_is_bounded() {
    let schema = compiled(
        &json!({"type": "object", "required": ["in"], "properties": {"in": {"$ref": "#"}, "n": {"type": "integer", "default": 1}}}),
    );
    let text = |depth: usize, inner: &str| {
        format!(r#"{{"n":1,"in":{}{inner}{}}}"#, r#"{"in":"#.repeat(depth), "}".repeat(depth))
    };
    let schema = |text: &str| schema.repair_text(text).map(|(text, _)| text.into_owned());
    assert!(schema(&text(3, "{}")).is_some());
    // 100 kB at the bottom would be read once for each level.
    assert!(schema(&text(100, &format!(r#"{{"n":"{}"}}"#, "x".repeat(100_000)))).is_none());
    // Deeper than JSON is read.
    assert!(schema(&text(200, "{}")).is_none());
}
