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

/// Decoding compares what the variants drop at any depth, so their defaults do, too.
#[test]
fn a_default_is_the_variant_that_drops_the_least() {
    let record = |name: &str, schema: Value| json!({ "type": "object", "properties": { "id": { "type": "integer" }, name: schema } });
    let text = || json!({ "type": "string" });
    let page =
        |item: &str| json!({ "type": "object", "properties": { "users": { "type": "array", "items": to(item) } } });
    let definitions = vec![
        ("Brief", record("note", text())),
        ("Owner", record("name", text())),
        ("Full", record("owner", to("Owner"))),
        ("BriefPage", page("Brief")),
        ("FullPage", page("Full")),
    ];
    let of = |user: Value| json!({ "anyOf": [to("BriefPage"), to("FullPage")], "default": { "users": [user] } });
    let output = json!({ "type": "object", "properties": {
        "brief": of(json!({ "id": 1, "note": "n", "owner": {} })),
        "equal": of(json!({ "id": 1, "x": 2 })),
        // The owner drops two properties, which is less than the owner.
        "full": of(json!({ "id": 1, "owner": { "name": "n", "x": 2, "y": 3 } })),
        "lists": {
            "anyOf": [{ "type": "array", "items": to("Brief") }, { "type": "array", "items": to("Owner") }],
            "default": [{ "id": 1 }, { "name": "n" }],
        },
    } });
    let source = generate(definitions, output).source;
    for expected in [
        "brief: brief.unwrap_or_else(|| super::BriefPageOrFullPage::BriefPage(",
        "equal: equal.unwrap_or_else(|| super::BriefPageOrFullPage::BriefPage(",
        "full: full.unwrap_or_else(|| super::BriefPageOrFullPage::FullPage(",
        "name: Some(\"n\".to_owned())",
        "lists: lists.unwrap_or_else(|| super::BriefListOrOwnerList::List2(",
    ] {
        assert!(source.contains(expected), "{expected}: {source}");
    }
}

/// Decoding prefers declared properties to kept ones at any depth, and counts properties, whatever their sizes.
#[test]
fn a_default_is_the_variant_that_declares_most_inside() {
    let record = |name: &str, type_: Value| json!({ "type": "object", "properties": { name: type_ } });
    let holder = |type_: Value| json!({ "type": "object", "required": ["a"], "properties": { "a": type_ } });
    let mut counted = holder(to("Cat"));
    counted["additionalProperties"] = json!({ "type": "integer" });
    let definitions = vec![
        ("Cat", record("claws", json!({ "type": "string" }))),
        ("Dog", record("bark", json!({}))),
        ("Loose", holder(json!({}))),
        ("Typed", holder(to("Cat"))),
        ("Counted", counted),
        ("Owned", holder(to("Dog"))),
    ];
    let with = |names: [&str; 2], default: Value| json!({ "anyOf": names.map(to), "default": default });
    let list = |name: &str| json!({ "type": "array", "items": to(name) });
    let output = json!({ "type": "object", "properties": {
        "typed": with(["Loose", "Typed"], json!({ "a": { "claws": "x", "new": 1 } })),
        "loose": with(["Typed", "Loose"], json!({ "a": { "new": 1 } })),
        "counted": with(["Counted", "Owned"], json!({ "a": { "bark": "x" }, "x": 1 })),
        "lists": {
            "anyOf": [list("Cat"), list("Dog")],
            "default": [{ "bark": ["x"], "claws": "x" }],
        },
    } });
    let source = generate(definitions, output).source;
    for expected in [
        "typed: typed.unwrap_or_else(|| super::LooseOrTyped::Typed(",
        "loose: loose.unwrap_or_else(|| super::TypedOrLoose::Loose(",
        "counted: counted.unwrap_or_else(|| super::CountedOrOwned::Counted(",
        "lists: lists.unwrap_or_else(|| super::CatListOrDogList::List(",
    ] {
        assert!(source.contains(expected), "{expected}: {source}");
    }
}

/// Each default of a large union is compared with the properties of all variants.
#[test]
fn defaults_of_large_unions_cost_no_more_than_the_document() {
    let records: Vec<String> = (0..100).map(|at| format!("V{at}")).collect();
    let record = |at: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..20).map(|property| (format!("p{at}_{property}"), json!({ "type": "string" }))).collect();
        json!({ "type": "object", "properties": properties })
    };
    let mut definitions: Vec<(&str, Value)> =
        records.iter().enumerate().map(|(at, name)| (name.as_str(), record(at))).collect();
    definitions.push(("Large", json!({ "oneOf": records.iter().map(|name| to(name)).collect::<Vec<_>>() })));
    let defaults = |count: usize| {
        let property =
            |at: usize| (format!("d{at}"), json!({ "allOf": [to("Large")], "default": { "p1_1": at.to_string() } }));
        let properties: serde_json::Map<String, Value> = (0..count).map(property).collect();
        generate(definitions.clone(), json!({ "type": "object", "properties": properties }))
    };
    let dropped = |made: &ops_codegen::Generated| {
        let reason = "holds a value of unions that are too large together, which is not written as code";
        made.diagnostics.iter().filter(|told| told.message.contains(reason)).count()
    };
    let few = defaults(20);
    assert_eq!(dropped(&few), 0);
    assert!(few.source.contains("d19: d19.unwrap_or_else(|| super::Large::V1("), "{}", few.source);
    let many = defaults(300);
    assert!((1..300).contains(&dropped(&many)), "{}", dropped(&many));
    for expected in ["    pub d0: Large,", "    pub d299: Option<Large>,"] {
        assert!(many.source.contains(expected), "{expected}");
    }
    // The defaults take nothing from what tells the variants apart.
    assert!(!many.source.contains("Any =>"));
}

/// What a default leaves out may have a default of its own, which may be an object.
#[test]
fn a_default_may_leave_out_an_object_that_has_a_default() {
    let with = |name: &str, default: Value| json!({ "$ref": format!("#/$defs/{name}"), "default": default });
    let object = |name: &str, schema: Value| json!({ "type": "object", "properties": { name: schema } });
    let inner = json!({ "type": "object", "default": {}, "properties": { "x": { "type": "integer", "default": 1 } } });
    let mut outer = object("inner", inner);
    outer["properties"]["size"] = json!({ "type": "integer" });
    let definitions = || {
        vec![
            ("Outer", outer.clone()),
            ("Set", object("outer", with("Outer", json!({ "size": 4 })))),
            // Each would be a part of its own default.
            ("Node", object("child", with("Node", json!({})))),
            ("Left", object("right", with("Right", json!({})))),
            ("Right", object("left", with("Left", json!({})))),
        ]
    };
    let output = json!({ "type": "object", "properties": {
        "empty": with("Outer", json!({})),
        "some": with("Outer", json!({ "size": 3 })),
        "list": { "type": "array", "items": to("Outer"), "default": [{}] },
        "set": with("Set", json!({})),
        "node": with("Node", json!({})),
        "left": with("Left", json!({})),
    } });
    assert_eq!(
        fields(definitions(), output.clone()),
        ["empty: Outer", "some: Outer", "list: Vec<Outer>", "set: Set", "node: Option<Node>", "left: Option<Left>",]
    );
    let generated = generate(definitions(), output);
    for expected in [
        "empty: empty.unwrap_or_default()",
        "some: some.unwrap_or_else(|| super::Outer { inner: Default::default(), size: Some(3) })",
        "list: list.unwrap_or_else(|| vec![Default::default()])",
        "outer: outer.unwrap_or_else(|| super::Outer { inner: Default::default(), size: Some(4) })",
        "inner: inner.unwrap_or_default()",
        "left: left.unwrap_or_default()",
    ] {
        assert!(generated.source.contains(expected), "{expected}: {}", generated.source);
    }
    let told: Vec<String> =
        generated.diagnostics.iter().map(|told| format!("{} {}", told.pointer, told.message)).collect();
    let endless = |at: &str| format!("{at} the default {{}} holds itself, or too many objects or levels");
    let output = "/operations/test.op/output/properties";
    assert_eq!(
        told,
        [
            endless(&format!("{output}/node")),
            endless(&format!("{output}/left")),
            endless("/$defs/Node/properties/child"),
            endless("/$defs/Left/properties/right"),
        ]
    );
}

/// In each default that leaves it out, an object with members would be written once more.
#[test]
fn a_default_does_not_repeat_those_of_objects_inside() {
    let definitions = vec![(
        "Outer",
        json!({ "type": "object", "properties": {
            "inner": { "type": "object", "properties": { "x": { "type": "integer" } }, "default": { "x": 1 } },
            "size": { "type": "integer" },
        } }),
    )];
    let output = json!({ "type": "object", "properties": {
        "empty": { "$ref": "#/$defs/Outer", "default": {} },
        "some": { "$ref": "#/$defs/Outer", "default": { "size": 3 } },
    } });
    assert_eq!(fields(definitions.clone(), output.clone()), ["empty: Outer", "some: Option<Outer>"]);
    let told = generate(definitions, output).diagnostics;
    let told: Vec<(&str, &str)> = told.iter().map(|told| (&*told.pointer, &*told.message)).collect();
    let message = "the default {\"size\":3} holds the default of an object inside, which is not written as code";
    assert_eq!(told, [("/operations/test.op/output/properties/some", message)]);
}

/// A default that is not written as code is not replaced by a variant that decoding would not choose.
#[test]
fn a_default_is_no_worse_variant_than_the_one_that_it_is() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    let mut style = object(json!({ "w": { "type": "integer" } }));
    style["default"] = json!({ "w": 1 });
    let definitions = || {
        vec![
            ("Circle", object(json!({ "style": style.clone(), "r": { "type": "integer" } }))),
            ("Square", object(json!({ "side": { "type": "integer" } }))),
        ]
    };
    let one =
        |first: &str, second: &str, default: Value| json!({ "oneOf": [to(first), to(second)], "default": default });
    let output = object(json!({
        "first": one("Circle", "Square", json!({ "r": 3 })),
        "second": one("Square", "Circle", json!({ "r": 3 })),
        "square": one("Circle", "Square", json!({ "side": 2 })),
    }));
    assert_eq!(
        fields(definitions(), output.clone()),
        ["first: Option<CircleOrSquare>", "second: Option<SquareOrCircle>", "square: CircleOrSquare"]
    );
    let generated = generate(definitions(), output);
    let expected = "square: square.unwrap_or_else(|| super::CircleOrSquare::Square(super::Square { side: Some(2) }))";
    assert!(generated.source.contains(expected), "{}", generated.source);
    let told: Vec<(&str, &str)> = generated.diagnostics.iter().map(|told| (&*told.pointer, &*told.message)).collect();
    let message = "the default {\"r\":3} holds the default of an object inside, which is not written as code";
    let output = "/operations/test.op/output/properties";
    let (first, second) = (format!("{output}/first"), format!("{output}/second"));
    assert_eq!(told, [(&*first, message), (&*second, message)]);
}

/// Each of many sections may have `{}` as its default.
#[test]
fn a_default_may_leave_out_many_objects() {
    let section =
        json!({ "type": "object", "default": {}, "properties": { "x": { "type": "integer", "default": 1 } } });
    let sections: serde_json::Map<String, Value> = (0..200).map(|at| (format!("s{at}"), section.clone())).collect();
    let definitions = vec![("Settings", json!({ "type": "object", "properties": sections }))];
    let output = json!({ "type": "object", "properties": {
        "settings": { "$ref": "#/$defs/Settings", "default": {} },
    } });
    assert_eq!(fields(definitions.clone(), output.clone()), ["settings: Settings"]);
    let told = generate(definitions, output).diagnostics;
    assert!(told.is_empty(), "{told:?}");
}

/// `1.0` is the constant `1`, as when it is read.
#[test]
fn a_default_is_a_constant_by_its_value() {
    let many: Vec<u32> = (0..40).collect();
    let marked = |mark: u32| {
        let properties = json!({ "v": { "const": mark }, "s": { "type": "string" } });
        json!({ "type": "object", "properties": properties, "required": ["v"] })
    };
    let mut record = marked(1);
    record["default"] = json!({ "v": 1.0, "s": "q" });
    let output = json!({ "type": "object", "properties": {
        "few": { "enum": [1, 2], "default": 1.0 },
        "many": { "enum": many, "default": 7.0 },
        "other": { "enum": [1, 2], "default": 1.5 },
        "record": record,
        "tagged": { "oneOf": [to("One"), to("Two")], "default": { "v": 2.0, "s": "q" } },
    } });
    let source = generate(vec![("One", marked(1)), ("Two", marked(2))], output).source;
    for expected in [
        "few: few.unwrap_or(super::OpOutputFew::N1)",
        "many: many.unwrap_or(super::OpOutputMany::N7)",
        "    pub other: Option<OpOutputOther>,",
        "    pub record: OpOutputRecord,",
        "record: record.unwrap_or_else(|| super::OpOutputRecord { s: Some(\"q\".to_owned()) })",
        "    pub tagged: OpOutputTagged,",
        "tagged: tagged.unwrap_or_else(|| super::OpOutputTagged::Two(super::Two { s: Some(\"q\".to_owned()) }))",
    ] {
        assert!(source.contains(expected), "{expected}: {source}");
    }
}
