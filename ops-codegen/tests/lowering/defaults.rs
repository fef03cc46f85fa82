//! Defaults as values of their types, and enums that accept other values than their constants.

use serde_json::{Value, json};

use super::{fields, generate};

fn to(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Responses lack the properties that only requests have, so their absence does not mean the default.
#[test]
fn the_default_of_what_only_requests_have_is_told() {
    let user = json!({ "type": "object", "properties": {
        "retries": { "type": "integer", "default": 3 },
        "password": { "type": "string", "writeOnly": true, "default": "changeme" },
        "pin": { "$ref": "#/$defs/Pin" },
    } });
    let definitions = vec![("Pin", json!({ "type": "integer", "writeOnly": true, "default": 0 }))];
    assert_eq!(fields(definitions, user), ["retries: i64", "password: Option<String>", "pin: Option<Pin>"]);
}

/// If an enum stands beside plain strings, its constants are only the known values.
#[test]
fn a_default_that_is_no_constant_is_one_of_the_strings_beside() {
    let modes = || json!({ "type": "string", "enum": ["fast", "slow"] });
    let open = || json!({ "anyOf": [{ "type": "string" }, modes()] });
    let named = || json!({ "anyOf": [{ "$ref": "#/$defs/Speed" }, { "type": "string" }] });
    let with = |mut schema: Value, default: Value| {
        schema["default"] = default;
        schema
    };
    let job = json!({ "type": "object", "properties": {
        "a": with(open(), json!("best")),
        "b": with(json!({ "allOf": [{ "$ref": "#/$defs/Mode" }] }), json!("best")),
        "c": with(json!({ "type": "array", "items": open() }), json!(["slow", "best"])),
        "d": with(named(), json!("best")),
        "e": with(modes(), json!("best")),
        "f": with(open(), json!(1)),
    } });
    let definitions = || vec![("Mode", open()), ("Speed", modes())];
    assert_eq!(
        fields(definitions(), job.clone()),
        [
            "a: OpOutputA",
            "b: Mode",
            "c: Vec<OpOutputCItem>",
            "d: Speed",
            "e: Option<OpOutputE>",
            "f: Option<OpOutputF>"
        ]
    );
    let generated = generate(definitions(), job);
    for expected in [
        "a.unwrap_or_else(|| super::OpOutputA::Other(\"best\".to_owned()))",
        "b.unwrap_or_else(|| super::Mode::Other(\"best\".to_owned()))",
        "vec![super::OpOutputCItem::Slow, super::OpOutputCItem::Other(\"best\".to_owned())]",
        "d.unwrap_or_else(|| super::Speed::Other(\"best\".to_owned()))",
    ] {
        assert!(generated.source.contains(expected), "{expected}: {}", generated.source);
    }
    let told: Vec<String> =
        generated.diagnostics.iter().map(|told| format!("{} {}", told.pointer, told.message)).collect();
    let misfit = |name: &str, default: &str| {
        format!("/operations/test.op/output/properties/{name} the default {default} does not fit the type")
    };
    assert_eq!(told, [misfit("e", "\"best\""), misfit("f", "1")]);
}

/// An enum accepts other strings as defaults only if plain strings stand beside it, by its own name or an alias.
#[test]
fn an_enum_is_open_if_strings_stand_beside_it() {
    let modes = || json!({ "type": "string", "enum": ["fast", "slow"] });
    let beside = |schema: Value| json!({ "anyOf": [schema, { "type": "string" }], "default": "best" });
    let holder = |schema: Value| json!({ "type": "object", "properties": { "mode": schema } });
    let mut closed = modes();
    closed["default"] = "best".into();
    let definitions = vec![
        ("Alias", to("Speed")),
        ("Speed", modes()),
        ("Told", json!({ "allOf": [to("Pace")], "description": "How fast." })),
        ("Pace", modes()),
        // The two enums are alike, except that the second stands beside plain strings.
        ("First", holder(closed)),
        ("Second", holder(beside(modes()))),
    ];
    let output = json!({ "type": "object", "properties": {
        "a": beside(to("Alias")), "b": beside(to("Told")), "first": to("First"), "second": to("Second"),
    } });
    let generated = generate(definitions, output);
    for expected in [
        "    pub a: Alias,",
        "    pub b: Told,",
        "a.unwrap_or_else(|| super::Speed::Other(\"best\".to_owned()))",
        "b.unwrap_or_else(|| super::Pace::Other(\"best\".to_owned()))",
        "    pub mode: Option<FirstMode>,",
        "    pub mode: SecondMode,",
        "mode.unwrap_or_else(|| super::SecondMode::Other(\"best\".to_owned()))",
    ] {
        assert!(generated.source.contains(expected), "{expected}: {}", generated.source);
    }
    let is_open = |name: &str| {
        let (_, rest) = generated.source.split_once(&format!("ops::names!(super::{name} {{")).unwrap();
        rest.split_once(");").unwrap().0.ends_with("open = true")
    };
    assert_eq!(["Speed", "Pace", "FirstMode", "SecondMode"].map(is_open), [false, false, false, true]);
    let told: Vec<&str> = generated.diagnostics.iter().map(|told| &*told.pointer).collect();
    assert_eq!(told, ["/$defs/First/properties/mode"]);
}

/// An absent property is read as the same variant as its default would be if it were sent.
#[test]
fn a_default_is_the_variant_that_a_reader_takes() {
    let text = json!({ "type": "string" });
    let definitions = vec![
        ("Note", json!({ "type": "object", "properties": { "message": text } })),
        ("Stock", json!({ "type": "object", "additionalProperties": { "type": "integer" } })),
        ("Mode", json!({ "anyOf": [text, { "enum": ["fast", "slow"] }] })),
        ("Level", json!({ "enum": ["low", "high"] })),
    ];
    let with = |names: [&str; 2], default: Value| json!({ "anyOf": names.map(to), "default": default });
    let output = json!({ "type": "object", "properties": {
        "a": with(["Note", "Stock"], json!({ "apples": 7 })),
        "b": with(["Note", "Stock"], json!({ "message": "no" })),
        // `Note` ignores undeclared properties, so it accepts this value.
        "c": with(["Note", "Stock"], json!({ "apples": "7" })),
        "d": with(["Mode", "Level"], json!("low")),
        "e": with(["Level", "Mode"], json!("low")),
        "f": with(["Level", "Mode"], json!("best")),
    } });
    let source = generate(definitions, output).source;
    for expected in [
        "a: a.unwrap_or_else(|| super::NoteOrStock::Stock([(\"apples\".to_owned(), 7)].into_iter().collect()))",
        "b: b.unwrap_or_else(|| super::NoteOrStock::Note(super::Note { message: Some(\"no\".to_owned()) }))",
        "c: c.unwrap_or_else(|| super::NoteOrStock::Note(Default::default()))",
        "d: d.unwrap_or_else(|| super::ModeOrLevel::Mode(super::Mode::Other(\"low\".to_owned())))",
        "e: e.unwrap_or(super::LevelOrMode::Level(super::Level::Low))",
        "f: f.unwrap_or_else(|| super::LevelOrMode::Mode(super::Mode::Other(\"best\".to_owned())))",
    ] {
        assert!(source.contains(expected), "{expected}: {source}");
    }
}

/// An enum that stands beside plain strings somewhere accepts any string as its default. But a variant whose enum has the
/// string as a constant comes first.
#[test]
fn a_default_is_the_variant_that_knows_its_constants() {
    let states = |names: [&str; 2]| json!({ "type": "string", "enum": names });
    let holder =
        |name: &str| json!({ "type": "object", "properties": { "states": { "type": "array", "items": to(name) } } });
    let definitions = vec![
        ("Early", states(["queued", "running"])),
        ("Late", states(["done", "failed"])),
        ("Begun", holder("Early")),
        ("Ended", holder("Late")),
    ];
    let variants = ["Begun", "Ended"].map(to);
    let of = |states: Value| json!({ "anyOf": variants, "default": { "states": states } });
    let output = json!({ "type": "object", "properties": {
        "filter": { "anyOf": [to("Early"), { "type": "string" }] },
        "known": of(json!(["done"])),
        "unknown": of(json!(["lost"])),
    } });
    let source = generate(definitions, output).source;
    for expected in [
        "super::BegunOrEnded::Ended(super::Ended { states: Some(vec![super::Late::Done]) })",
        "super::BegunOrEnded::Begun(super::Begun { states: Some(vec![super::Early::Other(\"lost\".to_owned())]) })",
    ] {
        assert!(source.contains(expected), "{expected}: {source}");
    }
}
