//! Texts that pass without a value being made of them: they are what normalising gives, and nothing else passes.
#![cfg(feature = "registry")]
#![allow(clippy::unwrap_used)]

use ops_runtime::normalise::{CompiledSchema, Reading};
use serde_json::{Value, json};

fn compiled(schema: &Value) -> CompiledSchema {
    CompiledSchema::new(schema, Reading::Default)
}

/// An order with parts of all kinds.
fn order() -> Value {
    json!({
        "type": "object",
        "required": ["id", "lines", "payer"],
        "properties": {
            "id": {"type": "integer", "minimum": 1},
            "status": {"enum": ["new", "paid", 3, null]},
            "note": {"type": ["string", "null"], "maxLength": 5},
            "total": {"type": "number"},
            "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/Line"}},
            "parent": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
            "payer": {"oneOf": [
                {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "person"}, "born": {"type": "integer"}}},
                {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "firm"}, "seat": {"type": "string"}}}
            ]},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "any": {},
            "either": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^x"}]},
            "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": false}
        },
        "$defs": {"Line": {
            "type": "object", "required": ["sku"],
            "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}, "gift": {"$ref": "#/$defs/Line"}}
        }}
    })
}

#[test]
fn what_conforms_passes() {
    let schema = compiled(&order());
    let least = r#"{"id": 7, "lines": [{"sku": "a"}], "payer": {"kind": "firm"}}"#;
    for text in [
        least.to_owned(),
        least.replace("7", "9223372036854775808"),
        least.replace(r#"{"sku": "a"}"#, r#"{"sku": "\\\"\u00e9\ud83d\ude00", "gift": {"sku": "é", "count": -3}}"#),
        least.replace(r#""firm""#, r#""person", "born": 0"#),
        least.replace(r#"{"kind": "firm"}"#, r#"{"seat": "Bonn, {\"x\": 1}", "kind" : "firm"}"#),
        least.replacen('{', r#"{"status": 3, "note": null, "total": 1e2, "parent": null,"#, 1),
        least.replacen('{', r#"{"status": "paid", "note": "\n234é", "total": -0,"#, 1),
        least.replacen('{', &format!(r#"{{"status": null, "parent": {least},"#), 1),
        least.replacen(
            '{',
            r#"{"labels": {"a": "b", "c": ""}, "any": [1, {"x": [true, null, "\u0000"]}, 1.5e300],"#,
            1,
        ),
        least.replacen('{', r#"{"either": "xy", "pair": [1, "2"],"#, 1),
        least.replacen('{', r#"{"either": -7, "pair": [],"#, 1),
        format!(" \n\t{}\r\n ", least.replace([' '], "\n ")),
    ] {
        assert!(schema.passes(text.as_bytes()), "{text}");
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(schema.repair(value.clone()), (value, vec![]), "{text}");
    }
}

#[test]
fn what_needs_a_change_or_a_second_look_does_not_pass() {
    let schema = compiled(&order());
    let least = r#"{"id": 7, "lines": [{"sku": "a"}], "payer": {"kind": "firm"}}"#;
    for (from, to) in [
        // It does not conform.
        ("7", "\"7\""),
        ("7", "0"),
        ("7", "7.5"),
        ("7", "null"),
        ("\"a\"", "1"),
        ("{\"sku\": \"a\"}", ""),
        ("\"sku\"", "\"name\""),
        ("firm", "club"),
        ("{", "{\"note\": \"123456\","),
        ("{", "{\"status\": \"lost\","),
        ("{", "{\"labels\": {\"a\": 1},"),
        ("{", "{\"pair\": [1, \"2\", 3],"),
        ("{", "{\"either\": \"y\","),
        ("{", "{\"parent\": {},"),
        // It would be changed.
        ("7", "7.0"),
        ("7", "7e0"),
        ("{", "{\"more\": 1,"),
        ("\"sku\"", "\"more\": [], \"sku\""),
        ("{", "{\"total\": null,"),
        // Names come twice, also where nothing is declared, or are written in another way.
        ("{", "{\"id\": 8,"),
        ("{", "{\"any\": {\"x\": 1, \"y\": {}, \"x\": 2},"),
        ("{", "{\"labels\": {\"x\": \"\", \"x\": \"\"},"),
        ("\"id\"", "\"\\u0069d\""),
        // It is no JSON, or none that a value could hold.
        ("7", "07"),
        ("7", "-"),
        ("7,", "7"),
        ("]", ",]"),
        ("{", "{,"),
        ("}}", "}"),
        ("}}", "}}}"),
        ("}}", "}} x"),
        ("\"a\"", "\"\\ud800\""),
        ("\"a\"", "\"\\udc00\""),
        ("\"a\"", "\"\\ud800\\u0041\""),
        ("\"a\"", "\"\\x\""),
        ("\"a\"", "\"\u{1}\""),
        ("{", "{\"any\": 1e400,"),
        ("{", "{\"any\": \"\\udfff\","),
        ("{", "{\"any\": tru,"),
    ] {
        let text = least.replacen(from, to, 1);
        assert_ne!(text, least);
        assert!(!schema.passes(text.as_bytes()), "{text}");
    }
    let mut text = least.as_bytes().to_vec();
    text[30] = 0xFF;
    assert!(!schema.passes(&text));
    for end in 0..least.len() {
        assert!(!schema.passes(&least.as_bytes()[..end]), "{end}");
    }
}

#[test]
fn defaults_that_are_lacking_need_a_value() {
    let schema = compiled(&json!({
        "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"type": "string", "default": 1}, "c": {"$ref": "#/$defs/C"}},
        "$defs": {"A": {"type": "integer", "default": 3}, "C": {"type": "integer"}}
    }));
    assert!(!schema.passes(b"{}"));
    // The default of `b` does not fit, and is none.
    assert!(schema.passes(br#"{"a": 1}"#));
}

#[test]
fn depth_and_work_are_bounded() {
    let nested = |open: &str, close: &str, depth: usize| format!("{}{}", open.repeat(depth), close.repeat(depth));
    let anything = compiled(&json!({"type": ["array", "object"]}));
    assert!(anything.passes(nested("[", "]", 127).as_bytes()));
    assert!(!anything.passes(nested("[", "]", 128).as_bytes()));
    assert!(!anything.passes("[".repeat(1_000_000).as_bytes()));
    let lists = compiled(&json!({"type": "array", "items": {"$ref": "#"}}));
    assert!(lists.passes(nested("[", "]", 127).as_bytes()));
    assert!(!lists.passes(nested("[", "]", 128).as_bytes()));
    // The tag is the last property on each level, so that each level would be read again for each above it.
    let tagged = compiled(&json!({"oneOf": [
        {"type": "object", "required": ["kind"], "properties": {"in": {"$ref": "#"}, "kind": {"const": "a"}}},
        {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "b"}}}
    ]}));
    let text = |depth| format!("{}{{\"kind\":\"b\"}}{}", "{\"in\":".repeat(depth), ",\"kind\":\"a\"}".repeat(depth));
    assert!(tagged.passes(text(4).as_bytes()));
    assert!(tagged.passes(text(20).as_bytes()));
    assert!(!tagged.passes(text(126).replace("\"b\"", &format!("\"b{}\"", "x".repeat(100_000))).as_bytes()));
    // A union of itself.
    let endless = compiled(&json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}, {"type": "string"}]}));
    endless.passes(b"1");
    endless.passes(br#""a""#);
    // Any number of names, none of which comes twice.
    let many = |last: &str| {
        let members: Vec<String> = (0..100).map(|n| format!("\"{n}\":{{\"{n}\":1}}")).collect();
        format!("{{{},\"{last}\":1}}", members.join(","))
    };
    assert!(anything.passes(many("100").as_bytes()));
    for twice in ["0", "47", "48", "99"] {
        assert!(!anything.passes(many(twice).as_bytes()), "{twice}");
    }
}

#[test]
fn long_texts_with_patterns_pass() {
    let list = |pattern: &str| compiled(&json!({"type": "array", "items": {"type": "string", "pattern": pattern}}));
    let ids: Vec<String> = (0..100_000).map(|n| format!("{n:08x}-0000-4000-8000-000000000000")).collect();
    let text = serde_json::to_vec(&ids).unwrap();
    assert!(list("^[0-9a-f]{8}-").passes(&text));
    let names = serde_json::to_string(&vec!["Fran\u{e7}oise d Aubign\u{e9}"; 3_000]).unwrap();
    let of_names = list(r"^[\p{L} ]{1,30}$");
    assert!(of_names.passes(names.as_bytes()));
    assert_eq!(of_names.repair_text(&names), Some((names.as_str().into(), vec![])));
}
