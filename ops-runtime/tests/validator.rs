//! The validator beside another one, on the official test suite and on schemas at random.
#![cfg(feature = "registry")]

#[path = "../../tests/src/seeded.rs"]
mod seeded;

use std::path::PathBuf;

use ops_runtime::normalise::{Change, CompiledSchema, Reading, Validator};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// What of the suite is not read: documents elsewhere, and vocabularies that a metaschema turns off.
const OTHER_DOCUMENTS: [&str; 3] = ["localhost:1234", "json-schema.org/draft", "$vocabulary"];

#[test]
fn the_official_suite_passes() {
    let folder = std::env::var("OPS_SCHEMA_SUITE").map_or_else(
        |_| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.suite/draft2020-12")),
        PathBuf::from,
    );
    let files = std::fs::read_dir(&folder).expect("the suite is missing: run tests/peers/install");
    let (mut run, mut wrong) = (0, Vec::new());
    for file in files.map(|file| file.unwrap().path()).filter(|path| path.extension().is_some_and(|end| end == "json"))
    {
        let groups: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        for group in &groups {
            let mut schema = group["schema"].clone();
            if let Some(map) = schema.as_object_mut() {
                map.remove("$schema");
            }
            let is_own = schema.pointer("/$id").and_then(Value::as_str).is_some_and(|id| id.contains("localhost:1234"));
            let text = schema.to_string();
            let validator = Validator::new(&schema);
            let has_own_vocabulary = group["schema"]["$schema"].as_str().is_some_and(|name| name.contains("localhost"));
            if has_own_vocabulary {
                continue;
            }
            if OTHER_DOCUMENTS.iter().any(|other| text.contains(other)) && !(is_own && validator.problems().is_empty())
            {
                continue;
            }
            for test in group["tests"].as_array().unwrap() {
                run += 1;
                let (fits, violations) = (validator.check(&test["data"]), validator.violations(&test["data"]));
                let name = format!("{} / {}", group["description"], test["description"]);
                assert_eq!(fits, violations.is_empty(), "{name}: {violations:?}");
                if json!(fits) != test["valid"] {
                    wrong.push(format!("{}: {name}", file.file_name().unwrap().display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {run}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(run > 1000, "only {run} tests were found");
}

const NAMES: [&str; 5] = ["a", "b", "kind", "x/y", "~"];

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3i64..12).prop_map(Value::from),
        prop_oneof![Just(1.0), Just(0.5), Just(-2.0)].prop_map(Value::from),
        "[abc]{0,3}|é|😀😀|kind".prop_map(Value::from),
    ]
}

fn object(value: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec((prop::sample::select(&NAMES[..]), value), 0..4)
        .prop_map(|fields| Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 24, 4, |inner| {
        prop_oneof![prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from), object(inner)]
    })
}

fn pair((keyword, value): (&'static str, Value)) -> (String, Value) {
    (keyword.to_owned(), value)
}

/// A schema of keywords at random, which may refer to these.
fn schema(references: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let types = prop_oneof![
        prop::sample::select(&["string", "integer", "number", "boolean", "null", "array", "object"][..])
            .prop_map(Value::from),
        Just(json!(["string", "null"])),
        Just(json!(["object", "array", "integer"])),
    ];
    let to = if references.is_empty() { &["#/$defs/Leaf"][..] } else { references };
    let leaf = prop_oneof![
        types.clone().prop_map(|types| json!({ "type": types })),
        any::<bool>().prop_map(Value::from),
        scalar().prop_map(|value| json!({ "const": value })),
        prop::collection::hash_set("[abc]{1,2}", 1..4).prop_map(|values| json!({ "enum": values })),
        prop::sample::select(to).prop_map(|to| json!({ "$ref": to })),
    ];
    leaf.prop_recursive(4, 32, 4, move |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4).prop_map(Value::from);
        let names = prop::collection::btree_set(prop::sample::select(&NAMES[..]), 0..3).prop_map(|names| json!(names));
        let keyword = prop_oneof![
            (Just("type"), types.clone()).prop_map(pair),
            (prop::sample::select(&["allOf", "anyOf", "oneOf", "prefixItems"][..]), list).prop_map(pair),
            (prop::sample::select(&["properties", "patternProperties", "dependentSchemas"][..]), object(inner.clone()))
                .prop_map(pair),
            (
                prop::sample::select(
                    &[
                        "items",
                        "additionalProperties",
                        "not",
                        "if",
                        "then",
                        "else",
                        "contains",
                        "propertyNames",
                        "unevaluatedProperties",
                        "unevaluatedItems",
                    ][..]
                ),
                inner.clone()
            )
                .prop_map(pair),
            (Just("required"), names.clone()).prop_map(pair),
            (Just("dependentRequired"), names.prop_map(|names| json!({ "a": names }))).prop_map(pair),
            (Just("uniqueItems"), any::<bool>().prop_map(Value::from)).prop_map(pair),
            (
                prop::sample::select(
                    &[
                        "minimum",
                        "maximum",
                        "minLength",
                        "maxLength",
                        "minItems",
                        "maxItems",
                        "minProperties",
                        "maxProperties",
                        "exclusiveMaximum",
                        "exclusiveMinimum",
                        "minContains",
                        "maxContains",
                    ][..]
                ),
                (0i64..4).prop_map(Value::from)
            )
                .prop_map(pair),
            (Just("multipleOf"), (1i64..4).prop_map(Value::from)).prop_map(pair),
            (Just("pattern"), prop::sample::select(&["a", "(?=b)b", "^.$", "kind"][..]).prop_map(Value::from))
                .prop_map(pair),
        ];
        prop::collection::vec(keyword, 1..5).prop_map(|keywords| Value::Object(keywords.into_iter().collect()))
    })
}

/// A document whose references lead back to where they are only by way of a part of the value.
fn document() -> impl Strategy<Value = Value> {
    let leaf = schema(&[]);
    let outer = schema(&["#/$defs/A", "#/$defs/B"]);
    (outer, schema(&["#/$defs/B"]), schema(&["#/$defs/Leaf"]), leaf).prop_map(|(root, a, b, _)| {
        let inner = json!({ "type": ["object", "array", "string"], "properties": { "a": { "$ref": "#/$defs/A" } },
            "items": { "$ref": "#/$defs/B" } });
        let mut map = match root {
            Value::Object(map) => map,
            other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
        };
        map.insert("$defs".to_owned(), json!({ "A": a, "B": b, "Leaf": inner }));
        Value::Object(map)
    })
}

proptest! {
    #![proptest_config(seeded::config(2048))]

    #[test]
    fn another_validator_says_the_same(schema in document(), values in prop::collection::vec(value(), 8)) {
        let Ok(other) = jsonschema::options().with_draft(jsonschema::Draft::Draft202012).build(&schema) else {
            return Err(TestCaseError::reject("no schema"));
        };
        let ours = Validator::new(&schema);
        prop_assert!(ours.problems().is_empty());
        for value in values {
            let (fits, violations) = (ours.check(&value), ours.violations(&value));
            prop_assert_eq!(fits, other.is_valid(&value), "{} under {}", value, schema);
            prop_assert_eq!(fits, violations.is_empty(), "{} under {}: {:?}", value, schema, violations);
            let (steps, most) = ours.steps(&value);
            prop_assert!(steps <= most);
        }
    }
}

/// Schemas that meet again and again, and how deep a value of them is nested.
fn meeting_again(nesting: usize) -> (Vec<Value>, Value) {
    let union = |keyword: &str| {
        json!({ "$ref": "#/$defs/U", "$defs": {
        "U": { keyword: [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }, { "type": "integer" }] },
        "A": { "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/$defs/U" } } },
        "B": { "type": "object", "required": ["a"], "properties": { "a": { "$ref": "#/$defs/U" }, "b": {} } },
    } })
    };
    let chain: Map<String, Value> = (0..6)
        .map(|index| {
            let next = json!({ "$ref": format!("#/$defs/S{}", (index + 1) % 6) });
            let all = if index < 5 { json!([next, next]) } else { json!([{ "properties": { "a": next } }]) };
            (format!("S{index}"), json!({ "allOf": all }))
        })
        .collect();
    let twice = json!({ "$ref": "#/$defs/N", "$defs": { "N": {
        "properties": { "a": { "$ref": "#/$defs/N" } }, "patternProperties": { "a": { "$ref": "#/$defs/N" } },
        "if": { "properties": { "a": { "$ref": "#/$defs/N" } } }, "unevaluatedProperties": false,
    } } });
    let schemas = vec![union("anyOf"), union("oneOf"), json!({ "$ref": "#/$defs/S0", "$defs": chain }), twice];
    (schemas, (0..nesting).fold(json!(1), |inner, _| json!({ "a": inner })))
}

#[test]
fn steps_grow_with_the_value_only() {
    let steps = |nesting: usize| -> Vec<u64> {
        let (schemas, value) = meeting_again(nesting);
        schemas.iter().map(|schema| Validator::new(schema).steps(&value).0).collect()
    };
    let (small, large) = (steps(40), steps(80));
    for (small, large) in small.iter().zip(&large) {
        // The steps before anything is remembered are the same for both.
        assert!(*large < 150_000 && large.saturating_sub(65_536) <= 3 * small, "{small}, {large}");
    }
    let (schemas, value) = meeting_again(60);
    for schema in &schemas {
        assert!(Validator::new(schema).violations(&value).iter().all(|violation| !violation.message.contains("ended")));
    }
}

#[test]
fn our_own_reading_is_bounded_too() {
    let (schemas, value) = meeting_again(60);
    let wide = Value::Array(vec![value.clone(); 200]);
    for schema in &schemas {
        for reading in [Reading::Default, Reading::Compat] {
            let list = json!({ "type": "array", "items": schema, "$defs": schema["$defs"] });
            for (schema, value) in [(schema, &value), (&list, &wide)] {
                let compiled = CompiledSchema::new(schema, reading);
                let (listing, repairing, most) = compiled.steps(value);
                assert!(listing <= most && repairing <= most, "{listing}, {repairing}, {most}");
            }
        }
    }
}

#[test]
fn what_is_not_read_to_its_end_says_so() {
    // Every variant of a wide union is tried against every item.
    let variants: Vec<Value> = (0..4000).map(|index| json!({ "required": [format!("a{index}")] })).collect();
    let schema = json!({ "type": "array", "items": { "anyOf": variants } });
    let value = Value::Array(vec![json!({ "x": 1 }); 4000]);
    let violations = Validator::new(&schema).violations(&value);
    assert_eq!(violations[0].pointer, "");
    assert!(violations[0].message.contains("512 steps per node, the check was ended"), "{violations:?}");
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    assert!(compiled.violations(&value)[0].message.contains("the check was ended"));
    let (kept, told) = compiled.repair(value.clone());
    assert_eq!(kept, value);
    assert_eq!(
        told[0].to_string(),
        "expected a value that can be checked in 512 steps per node, the check was ended, found array, kept"
    );
    // Variants that refuse every value take time, too.
    let (schema, value) = after_many(vec![json!(false); 8000], json!({ "type": "integer" }), json!(0), 2000);
    for violations in
        [Validator::new(&schema).violations(&value), CompiledSchema::new(&schema, Reading::Default).violations(&value)]
    {
        assert!(violations[0].message.contains("the check was ended"), "{violations:?}");
    }
}

/// A list of values of a union, each of which conforms to the last variant.
fn after_many(mut variants: Vec<Value>, last: Value, item: Value, length: usize) -> (Value, Value) {
    variants.push(last);
    (json!({ "type": "array", "items": { "anyOf": variants } }), json!(vec![item; length]))
}

/// Schemas that take next to nothing count, too, as there may be any number of them for each node.
#[test]
fn schemas_that_take_little_count_as_steps() {
    let never = |count: usize| after_many(vec![json!(false); count], json!({ "type": "integer" }), json!(0), 40);
    let short = |count: usize| {
        let strings = (0..count).map(|at| json!({ "type": "string", "minLength": 2 + at })).collect();
        after_many(strings, json!({ "type": "string" }), json!("a"), 40)
    };
    let long = |bytes: usize| {
        let all: Vec<Value> = (1..=40).map(|least| json!({ "minLength": least })).collect();
        (json!({ "allOf": all }), json!("x".repeat(bytes)))
    };
    for (few, many) in [(never(100), never(800)), (short(100), short(800)), (long(1 << 10), long(1 << 16))] {
        let steps = |(schema, value): &(Value, Value)| {
            let (listing, repairing, _) = CompiledSchema::new(schema, Reading::Default).steps(value);
            [Validator::new(schema).steps(value).0, listing, repairing]
        };
        for (few, many) in steps(&few).into_iter().zip(steps(&many)) {
            assert!(few > 0 && many >= 3 * few, "{few}, {many}");
        }
    }
    // One for the whole, and for each of 40 members one for the list, and one for each item.
    let all = Validator::new(&json!({ "allOf": vec![json!({ "items": {} }); 40] }));
    assert_eq!(all.steps(&json!(vec![0; 1000])).0, 1 + 40 * 1001);
}

/// Trying variants does not count a value twice, so no more steps are spent than are said.
#[test]
fn trying_variants_grants_no_more_steps() {
    let strings: Vec<Value> = (0..400).map(|at| json!({ "type": "string", "minLength": 2 + at })).collect();
    let schema = json!({ "type": "array", "items": { "anyOf": strings } });
    let (listing, repairing, most) = CompiledSchema::new(&schema, Reading::Default).steps(&json!(vec!["a"; 2000]));
    assert_eq!(most, (1 << 18) + 512 * 2001);
    assert!(listing <= most && repairing <= most, "{listing}, {repairing}, {most}");
}

/// Large values of schemas that people write do not run out of steps.
#[test]
fn large_values_are_checked_to_their_end() {
    let codes: Vec<Value> = (0..400).map(|code| json!({ "const": format!("code-{code}") })).collect();
    let scalars = json!([
        { "type": "integer", "minimum": 1 },
        { "type": "string", "maxLength": 9 },
        { "type": "string", "pattern": "^x" },
        { "type": "boolean" },
        { "enum": [null, 0] },
    ]);
    for (items, item, length) in
        [(json!({ "oneOf": codes }), json!("code-399"), 10_000), (json!({ "anyOf": scalars }), json!(null), 200_000)]
    {
        let schema = json!({ "type": "array", "items": items });
        let value = json!(vec![item; length]);
        assert!(Validator::new(&schema).check(&value));
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        assert!(compiled.check(&value));
        let (repaired, told) = compiled.repair(value.clone());
        assert!(repaired == value && told.is_empty(), "{told:?}");
    }
}

/// A part of a value that takes more steps than it is allowed.
fn endless() -> (Value, Value) {
    let variants: Vec<Value> = (0..4000).map(|index| json!({ "required": [format!("a{index}")] })).collect();
    (json!({ "type": "array", "items": { "anyOf": variants } }), Value::Array(vec![json!({ "x": 1 }); 4000]))
}

#[test]
fn what_the_steps_do_not_reach_stays() {
    let (endless, value) = endless();
    // `null` that may be `null`, beside a part that is given up, and what might be another variant's.
    let text = json!({ "type": ["string", "null"] });
    let schema = json!({ "type": "object", "properties": { "a": endless, "b": text, "c": { "anyOf": [text, { "type": "array" }] } } });
    let value = json!({ "a": value, "b": null, "c": null });
    let (kept, told) = CompiledSchema::new(&schema, Reading::Default).repair(value.clone());
    assert_eq!(kept, value);
    assert!(told[0].expected.contains("the check was ended"), "{told:?}");
    assert!(told.iter().all(|told| told.change == Change::Kept), "{told:?}");
}

#[test]
fn a_variant_that_was_not_tried_to_its_end_is_not_chosen() {
    let (endless, list) = endless();
    let variant = |name: &str, a: Value| json!({ "type": "object", "required": [name, "need"], "properties": { (name): {}, "a": a, "need": {} } });
    for variants in [
        json!([variant("first", endless.clone()), variant("second", json!({}))]),
        json!([variant("second", json!({})), variant("first", endless)]),
    ] {
        let value = json!({ "second": 1, "more": 2, "a": list });
        let (kept, told) = CompiledSchema::new(&json!({ "oneOf": variants }), Reading::Default).repair(value.clone());
        assert_eq!(kept, value);
        assert!(told[0].expected.contains("the check was ended"), "{told:?}");
    }
}

#[test]
fn no_value_is_taken_for_wrong_where_the_first_steps_end() {
    let numbers: Vec<Value> = (0..1000).map(Value::from).collect();
    let schema = json!({ "type": "array", "items": { "enum": numbers } });
    let value = Value::Array(vec![json!(999); 4000]);
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    for (kept, told) in [compiled.repair(value.clone()), compiled.normalise(value.clone())] {
        assert_eq!((kept == value, told), (true, vec![]));
    }
}

/// Each of many schemas takes over the parts of one, so that together they would have the square of what is written.
#[test]
fn what_schemas_take_over_of_each_other_is_bounded() {
    let names: Vec<String> = (0..20_000).map(|index| format!("p{index}")).collect();
    let all: Map<String, Value> = names.iter().map(|name| (name.clone(), json!(true))).collect();
    let values: Vec<Value> = names.iter().map(|name| json!(name)).collect();
    for large in [
        json!({ "properties": all }),
        json!({ "required": names }),
        json!({ "enum": values }),
        json!({ "const": values }),
        json!({ "prefixItems": vec![true; 20_000] }),
        json!({ "anyOf": vec![true; 20_000] }),
        json!({ "if": { "properties": all } }),
    ] {
        let take = |index: usize| json!({ "allOf": [{ "$ref": "#/$defs/Large" }, { "title": index.to_string() }] });
        let properties: Map<String, Value> = (0..400).map(|index| (format!("q{index}"), take(index))).collect();
        let schema = json!({ "properties": properties, "$defs": { "Large": large } });
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        let problems: Vec<_> = compiled.problems().iter().map(ToString::to_string).collect();
        assert_eq!(problems, ["the schema combines too many schemas, so the rest is not checked"]);
        // What is not read removes nothing.
        let value: Map<String, Value> = (0..400).map(|index| (format!("q{index}"), json!({ "other": 1 }))).collect();
        let last = compiled.repair(Value::Object(value)).0;
        assert_eq!(last["q399"], json!({ "other": 1 }));
    }
    // Lists of items, and values, are combined one with each other.
    let items = vec![json!({ "items": { "type": "integer" } }); 3000];
    let items = json!({ "allOf": [{ "prefixItems": vec![true; 3000] }, { "allOf": items }] });
    let enums = json!({ "allOf": vec![json!({ "enum": values }); 40] });
    for schema in [items, enums] {
        assert_eq!(CompiledSchema::new(&schema, Reading::Default).problems().len(), 1);
    }
}

/// A pattern that cannot be read asks for nothing, wherever it stands.
#[test]
fn patterns_that_cannot_be_read_are_neutral() {
    let unread = json!({ "pattern": "(" });
    for schema in [
        unread.clone(),
        json!({ "patternProperties": { "(": false } }),
        json!({ "patternProperties": { "(": false }, "additionalProperties": false }),
        json!({ "patternProperties": { "(": false }, "unevaluatedProperties": false }),
        json!({ "not": unread }),
        json!({ "not": { "properties": { "a": { "allOf": [unread] } } } }),
        json!({ "if": unread, "then": false }),
        json!({ "if": unread, "else": false }),
        json!({ "if": unread, "then": { "properties": { "a": true } }, "else": { "type": "null" } }),
        json!({ "oneOf": [unread, { "$ref": "#/$defs/unread" }], "$defs": { "unread": unread } }),
        json!({ "contains": unread, "maxContains": 1 }),
        json!({ "propertyNames": unread }),
    ] {
        let validator = Validator::new(&schema);
        assert_eq!(
            validator.problems()[0].to_string(),
            "`(` is a pattern that cannot be read, so no text is checked by it"
        );
        for value in [json!({ "a": "x" }), json!(["x", "y"]), json!("x")] {
            let is_meant = schema["else"]["type"] != "null" || value.is_object();
            assert!(!is_meant || validator.check(&value), "{value} by {schema}");
        }
    }
    let both = json!({ "if": unread, "then": { "required": ["a"] }, "else": { "required": ["b"] } });
    assert!(!Validator::new(&both).check(&json!({ "c": 1 })), "one of both must hold");
    assert!(!Validator::new(&json!({ "not": { "pattern": "^a" } })).check(&json!("a")));

    let schema =
        json!({ "properties": { "a": { "pattern": "[z-a]" } }, "patternProperties": { "(": { "type": "null" } } });
    let compiled = CompiledSchema::new(&schema, Reading::Default);
    assert_eq!(compiled.problems().len(), 2, "{:?}", compiled.problems());
    let value = json!({ "a": "x", "b": 1 });
    assert_eq!(compiled.repair(value.clone()), (value, vec![]));
}

/// What is kept for names of dynamic references does not grow with their number times that of resources.
#[test]
fn names_of_dynamic_references_are_bounded() {
    let name =
        |at: usize| (format!("d{at}"), json!({ "$dynamicRef": format!("#n{at}"), "$dynamicAnchor": format!("n{at}") }));
    let resource = |at: usize| (format!("r{at}"), json!({ "$id": format!("http://r/{at}"), "$dynamicAnchor": "n0" }));
    let definitions: Map<String, Value> = (0..20_000).map(name).chain((0..20_000).map(resource)).collect();
    let all: Vec<Value> = (0..20_000).map(|at| json!({ "$ref": format!("#/$defs/d{at}") })).collect();
    let validator = Validator::new(&json!({ "anyOf": all, "$defs": definitions }));
    assert_eq!(validator.problems().len(), 20_000 - 64);
    let told = validator.problems()[0].to_string();
    assert!(
        told.ends_with("` is one of too many names for dynamic references, so it is followed like any other reference"),
        "{told}"
    );
}

/// Each of many references may lead to each of many resources, and what is kept of that grows with the schema only.
#[test]
fn references_to_one_dynamic_name_share_its_targets() {
    let resource = |at: usize| (format!("r{at}"), json!({ "$id": format!("http://r/{at}"), "$dynamicAnchor": "n" }));
    let reference = |at: usize| (format!("d{at}"), json!({ "title": at.to_string(), "$dynamicRef": "#n" }));
    let definitions: Map<String, Value> = (0..30_000).map(resource).chain((0..30_000).map(reference)).collect();
    let all: Vec<Value> = (0..30_000).map(|at| json!({ "$ref": format!("#/$defs/d{at}") })).collect();
    let validator = Validator::new(&json!({
        "$dynamicAnchor": "n", "type": ["array", "integer"], "prefixItems": all, "$defs": definitions,
    }));
    assert_eq!(validator.problems(), []);
    assert!(validator.check(&json!([7, [8, 9]])));
    assert!(!validator.check(&json!([7, [8, "x"]])));
    // A name that leads back to itself ends all the same.
    let back = json!({ "$ref": "#/$defs/a", "$dynamicAnchor": "n", "$defs": {
        "a": { "$dynamicRef": "#n" }, "b": { "$id": "http://b", "$dynamicAnchor": "n", "anyOf": [{ "$dynamicRef": "#n" }] },
    } });
    assert!(Validator::new(&back).check(&json!(1)));
}

#[test]
fn the_stack_of_a_worker_is_enough() {
    let deep = |nesting: usize, leaf: Value| (0..nesting).fold(leaf, |inner, _| json!({ "a": inner }));
    let lists = |nesting: usize, leaf: Value| (0..nesting).fold(leaf, |inner, _| json!([inner]));
    let schemas = [
        json!({ "properties": { "a": { "$ref": "#" } }, "type": ["object", "integer"] }),
        json!({ "items": { "$ref": "#" }, "contains": true, "unevaluatedItems": false, "type": ["array", "integer"] }),
        json!({ "anyOf": [{ "required": ["b"] }, { "patternProperties": { "a": { "$ref": "#" } } }],
            "unevaluatedProperties": { "$ref": "#" }, "type": ["object", "integer"] }),
        json!({ "allOf": [{ "if": true, "then": { "oneOf": [{ "additionalProperties": { "$ref": "#" } }] } }],
            "unevaluatedProperties": false, "type": ["object", "integer"] }),
    ];
    for schema in schemas {
        // Three quarters of what a thread gets.
        let thread = std::thread::Builder::new().stack_size(3 << 19).spawn(move || {
            for nesting in [80, 600] {
                for (leaf, fits) in [(json!(1), true), (json!("x"), false)] {
                    for value in [deep(nesting, leaf.clone()), lists(nesting, leaf)] {
                        let validator = Validator::new(&schema);
                        let violations = validator.violations(&value);
                        assert_eq!(violations.is_empty(), validator.check(&value));
                        let is_meant = value.is_array() == schema.get("items").is_some();
                        assert!(!is_meant || nesting > 80 || violations.is_empty() == fits, "{schema}: {violations:?}");
                        let compiled = CompiledSchema::new(&schema, Reading::Default);
                        compiled.violations(&value);
                        compiled.repair(value);
                    }
                }
            }
        });
        thread.unwrap().join().unwrap();
    }
}

#[test]
fn a_schema_that_is_itself_still_says_that_a_value_is_wrong() {
    let schema = json!({ "oneOf": [{ "enum": [{}] }, { "$ref": "#" }] });
    let validator = Validator::new(&schema);
    assert!(!validator.check(&json!("x")));
    assert_eq!(validator.violations(&json!("x")).len(), 1);
}

/// What a tag says counts once for each variant, however often the variant or its enum says it.
#[test]
fn tags_count_by_variants() {
    let call = json!({ "properties": { "kind": { "enum": ["call", "tool", "call"] }, "id": { "type": "integer" } } });
    let message = json!({ "properties": { "kind": { "const": "message" }, "text": { "type": "string" } } });
    let other = json!({ "properties": { "kind": { "const": "message" }, "text": { "type": "integer" } } });
    let violations = |union: Value, value: Value| -> Vec<String> {
        Validator::new(&union).violations(&value).iter().map(ToString::to_string).collect()
    };
    for kind in ["call", "tool"] {
        let union = json!({ "oneOf": [call, message] });
        assert_eq!(violations(union, json!({ "kind": kind, "id": 1 })), [""; 0]);
    }
    let twice = json!({ "anyOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }, call], "$defs": { "a": message } });
    assert_eq!(violations(twice.clone(), json!({ "kind": "message", "text": 1 })), ["/text: Expected string"]);
    let two = json!({ "oneOf": [call, message, other] });
    assert_eq!(
        violations(two.clone(), json!({ "kind": "message", "text": true })),
        ["Expected a value of one of the 2 schemas that are named 'message'"]
    );
    for union in [twice, two] {
        assert_eq!(violations(union, json!({ "kind": "x" })), ["/kind: Expected one of 'call', 'message', 'tool'"]);
    }
    // A value that two variants describe is of both.
    let both = json!({ "oneOf": [{ "$ref": "#/$defs/a" }, { "$ref": "#/$defs/a" }, call], "$defs": { "a": message } });
    assert_eq!(
        violations(both, json!({ "kind": "message" })),
        ["Expected a value of exactly one of 3 schemas, it is of 2"]
    );
    let union = CompiledSchema::new(&json!({ "oneOf": [call, message] }), Reading::Default);
    assert_eq!(union.violations(&json!({ "kind": "tool", "id": "x" }))[0].pointer, "/id");
}
