//! One fault does not change what lies beside it: random values under random schemas, with and without random faults.
#![cfg(feature = "registry")]

#[path = "../../tests/src/seeded.rs"]
mod seeded;

use ops_runtime::normalise::{Change, CompiledDefinitions, CompiledSchema, Problem, Reading, Validator, Violation};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const NAMES: [&str; 6] = ["a", "b", "c", "d/e", "~f", "g"];

/// A schema of which values can be made, so that it is known where they are right.
#[derive(Debug, Clone)]
enum Shape {
    Integer,
    Text,
    Flag,
    Names,
    List(Box<Shape>),
    Map(Box<Shape>),
    /// Required or not, and a default.
    Record(Vec<(Shape, Presence)>),
    /// A record in two parts.
    Parts(Vec<(Shape, Presence)>),
    /// Two records told apart by a constant.
    Tagged(Box<Shape>, Box<Shape>),
    /// Two records told apart by what they require.
    Untagged(Box<Shape>, Box<Shape>),
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Presence {
    Required,
    Optional,
    Defaulted,
}

fn shape() -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![Just(Shape::Integer), Just(Shape::Text), Just(Shape::Flag), Just(Shape::Names)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let presence = prop_oneof![Just(Presence::Required), Just(Presence::Optional), Just(Presence::Defaulted)];
        let fields = prop::collection::vec((inner.clone(), presence), 1..5);
        let boxed = inner.clone().prop_map(Box::new);
        prop_oneof![
            3 => fields.clone().prop_map(Shape::Record),
            1 => fields.prop_map(Shape::Parts),
            2 => boxed.clone().prop_map(Shape::List),
            1 => boxed.clone().prop_map(Shape::Map),
            1 => (boxed.clone(), boxed.clone()).prop_map(|(a, b)| Shape::Tagged(a, b)),
            1 => (boxed.clone(), boxed).prop_map(|(a, b)| Shape::Untagged(a, b)),
        ]
    })
}

fn record(fields: &[(Shape, Presence)]) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for ((shape, presence), name) in fields.iter().zip(NAMES) {
        let mut schema = schema(shape);
        if let (Presence::Defaulted, Value::Object(schema)) = (presence, &mut schema) {
            schema.insert("default".to_owned(), valid(shape, &mut 7));
        }
        if *presence == Presence::Required {
            required.push(name);
        }
        properties.insert(name.to_owned(), schema);
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn schema(shape: &Shape) -> Value {
    let variant = |tag: &str, value: &Shape| {
        let properties = json!({ "kind": { "const": tag }, "value": schema(value) });
        json!({ "type": "object", "properties": properties, "required": ["kind", "value"] })
    };
    let only = |name: &str, value: &Shape| json!({ "type": "object", "properties": { name: schema(value), "n": { "default": 1 } }, "required": [name] });
    match shape {
        Shape::Integer => json!({ "type": "integer" }),
        Shape::Text => json!({ "type": "string" }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Names => json!({ "type": "string", "enum": ["x", "y"] }),
        Shape::List(item) => json!({ "type": "array", "items": schema(item) }),
        Shape::Map(value) => json!({ "type": "object", "additionalProperties": schema(value) }),
        Shape::Record(fields) => record(fields),
        Shape::Parts(fields) => {
            let parts = json!([record(fields), { "type": "object", "properties": { "part": { "type": "integer" } } }]);
            json!({ "allOf": parts })
        }
        Shape::Tagged(a, b) => json!({ "oneOf": [variant("one", a), variant("two", b)] }),
        Shape::Untagged(a, b) => json!({ "anyOf": [only("left", a), only("right", b)] }),
    }
}

/// The next of some numbers that look random.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

/// A value that conforms, with what a server adds and leaves out.
fn valid(shape: &Shape, seed: &mut u64) -> Value {
    let fields = |fields: &[(Shape, Presence)], seed: &mut u64| {
        let mut map = Map::new();
        for ((shape, presence), name) in fields.iter().zip(NAMES) {
            if *presence == Presence::Required || !next(seed).is_multiple_of(3) {
                map.insert(name.to_owned(), valid(shape, seed));
            }
        }
        if next(seed).is_multiple_of(4) {
            map.insert("undeclared".to_owned(), json!([1]));
        }
        map
    };
    match shape {
        Shape::Integer => json!(next(seed) % 9),
        Shape::Text => json!(format!("t{}", next(seed) % 9)),
        Shape::Flag => json!(next(seed).is_multiple_of(2)),
        Shape::Names => json!(["x", "y"][(next(seed) % 2) as usize]),
        Shape::List(item) => (0..next(seed) % 4).map(|_| valid(item, seed)).collect(),
        Shape::Map(value) => (0..next(seed) % 3).map(|i| (NAMES[i as usize].to_owned(), valid(value, seed))).collect(),
        Shape::Record(list) => Value::Object(fields(list, seed)),
        Shape::Parts(list) => {
            let mut map = fields(list, seed);
            map.insert("part".to_owned(), json!(1));
            Value::Object(map)
        }
        Shape::Tagged(a, b) => match next(seed) % 2 {
            0 => json!({ "kind": "one", "value": valid(a, seed) }),
            _ => json!({ "value": valid(b, seed), "kind": "two" }),
        },
        Shape::Untagged(a, b) => match next(seed) % 2 {
            0 => json!({ "left": valid(a, seed) }),
            _ => json!({ "right": valid(b, seed) }),
        },
    }
}

/// A place where something can be put that cannot be meant.
#[derive(Debug, Clone)]
struct Site {
    pointer: String,
    fault: Fault,
    /// The outermost union told apart by shape around it: with a fault inside, it may not be told which variant is meant.
    union: Option<String>,
}

#[derive(Debug, Clone)]
enum Fault {
    Wrong(Value),
    Missing,
}

fn sites(shape: &Shape, value: &Value, pointer: &str, union: Option<&str>, found: &mut Vec<Site>) {
    // A list of lists of such, which nothing here is, nor is made of it.
    let wrong = |shape: &Shape| match shape {
        Shape::List(_) => json!("fault"),
        Shape::Integer | Shape::Text | Shape::Flag | Shape::Names => json!([["fault"]]),
        _ => json!("fault"),
    };
    let takes = matches!(shape, Shape::List(item) if takes_text(item));
    let owned = union.map(str::to_owned);
    if !pointer.is_empty() && !takes {
        let fault = Fault::Wrong(wrong(shape));
        found.push(Site { pointer: pointer.to_owned(), fault, union: owned.clone() });
    }
    let at = |name: &str| format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
    match (shape, value) {
        (Shape::List(item), Value::Array(items)) => {
            for (i, value) in items.iter().enumerate() {
                sites(item, value, &at(&i.to_string()), union, found);
            }
        }
        (Shape::Map(inner), Value::Object(map)) => {
            map.iter().for_each(|(name, value)| sites(inner, value, &at(name), union, found));
        }
        (Shape::Record(fields) | Shape::Parts(fields), Value::Object(map)) => {
            for ((shape, presence), name) in fields.iter().zip(NAMES) {
                let Some(value) = map.get(name) else { continue };
                sites(shape, value, &at(name), union, found);
                if *presence == Presence::Required {
                    found.push(Site { pointer: at(name), fault: Fault::Missing, union: owned.clone() });
                }
            }
        }
        (Shape::Tagged(a, b), Value::Object(map)) => {
            let inner = if map["kind"] == "one" { a } else { b };
            sites(inner, &map["value"], &at("value"), union, found);
        }
        (Shape::Untagged(a, b), Value::Object(map)) => {
            let (name, inner) = if map.contains_key("left") { ("left", a) } else { ("right", b) };
            sites(inner, &map[name], &at(name), Some(union.unwrap_or(pointer)), found);
        }
        _ => {}
    }
}

/// Whether a text can stand in a list of this.
fn takes_text(shape: &Shape) -> bool {
    match shape {
        Shape::Text | Shape::Names => true,
        Shape::List(item) => takes_text(item),
        _ => false,
    }
}

fn is_within(pointer: &str, outer: &str) -> bool {
    pointer.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Every place of a value, with what is there if nothing lies inside it.
fn places(value: &Value, pointer: String, found: &mut Vec<(String, Value)>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (name, value) in map {
                places(value, format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1")), found);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for (i, value) in items.iter().enumerate() {
                places(value, format!("{pointer}/{i}"), found);
            }
        }
        value => found.push((pointer, value.clone())),
    }
}

fn insert(value: &mut Value, site: &Site) {
    match &site.fault {
        Fault::Wrong(wrong) => {
            if let Some(place) = value.pointer_mut(&site.pointer) {
                *place = wrong.clone();
            }
        }
        Fault::Missing => {
            let (parent, name) = site.pointer.rsplit_once('/').unwrap_or_default();
            if let Some(Value::Object(map)) = value.pointer_mut(parent) {
                map.remove(&name.replace("~1", "/").replace("~0", "~"));
            }
        }
    }
}

/// Some sites, none inside another.
fn choose(sites: &[Site], count: usize, seed: &mut u64) -> Vec<Site> {
    let mut chosen: Vec<Site> = Vec::new();
    for _ in 0..count * 4 {
        let Some(site) = sites.get((next(seed) as usize).checked_rem(sites.len()).unwrap_or(0)) else { break };
        let apart =
            |other: &Site| !is_within(&site.pointer, &other.pointer) && !is_within(&other.pointer, &site.pointer);
        if chosen.len() < count && chosen.iter().all(apart) {
            chosen.push(site.clone());
        }
    }
    chosen
}

proptest! {
    #![proptest_config(seeded::config(2000))]

    #[test]
    fn what_lies_beside_a_fault_is_as_without_it(
        shape in shape(),
        seed in any::<u64>(),
        count in prop_oneof![Just(1usize), Just(2), Just(3), Just(10)],
    ) {
        let mut seed = seed;
        let schema = schema(&shape);
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        let right = valid(&shape, &mut seed);
        let (clean, told) = compiled.repair(right.clone());
        prop_assert!(told.iter().all(|told| told.change == Change::Removed), "{right} under {schema}: {told:?}");
        let mut all = Vec::new();
        sites(&shape, &right, "", None, &mut all);
        let faults = choose(&all, count, &mut seed);
        let mut wrong = right.clone();
        faults.iter().for_each(|fault| insert(&mut wrong, fault));
        let (repaired, told) = compiled.repair(wrong.clone());

        for fault in &faults {
            // Told at its place, or at the union of which it is then not known what it is.
            let is_told = told.iter().any(|told| {
                told.change == Change::Kept
                    && (told.pointer == fault.pointer
                        || fault.union.as_ref().is_some_and(|union| {
                            is_within(&told.pointer, union) && is_within(&fault.pointer, &told.pointer)
                        }))
            });
            // Inside a union, a missing or wrong part may leave a value that another variant is nearest to.
            let in_union = fault.union.as_ref().is_some_and(|union| {
                told.iter().any(|told| told.change == Change::Kept && is_within(&told.pointer, union))
            });
            prop_assert!(is_told || in_union, "{fault:?} is not told: {told:?}\n{wrong} under {schema}");
        }
        prop_assert!(told.iter().all(|told| told.change != Change::MadeUp && told.change != Change::Converted), "{told:?}");

        beside(&faults, &wrong, &clean, &repaired, false)?;
    }

    /// The original's repairs, too, change nothing but the faults: only what a union of unknown variant holds may go.
    #[test]
    fn what_lies_beside_a_made_up_value_is_as_without_it(
        shape in shape(),
        seed in any::<u64>(),
        count in prop_oneof![Just(1usize), Just(2), Just(3), Just(10)],
    ) {
        let mut seed = seed;
        let compiled = CompiledSchema::new(&schema(&shape), Reading::Default);
        let right = valid(&shape, &mut seed);
        let (clean, _) = compiled.normalise(right.clone());
        let mut all = Vec::new();
        sites(&shape, &right, "", None, &mut all);
        let faults = choose(&all, count, &mut seed);
        let mut wrong = right.clone();
        faults.iter().for_each(|fault| insert(&mut wrong, fault));
        let (made, told) = compiled.normalise(wrong.clone());
        prop_assert!(compiled.check(&made) || told.iter().any(|told| told.change == Change::Kept), "{made}: {told:?}");
        prop_assert!(faults.is_empty() || told.iter().any(|told| told.change != Change::Removed), "{told:?}");
        beside(&faults, &wrong, &clean, &made, true)?;
    }
}

/// Checks that a value with faults became what it became without them, but for the faults.
fn beside(
    faults: &[Site],
    wrong: &Value,
    clean: &Value,
    repaired: &Value,
    unions_are_open: bool,
) -> Result<(), TestCaseError> {
    let unions: Vec<&String> = faults.iter().filter_map(|fault| fault.union.as_ref()).collect();
    let is_beside = |pointer: &str| {
        let is_at_a_fault =
            faults.iter().any(|fault| is_within(pointer, &fault.pointer) || is_within(&fault.pointer, pointer));
        let is_in_an_open_union = unions_are_open && unions.iter().any(|union| is_within(pointer, union));
        !is_at_a_fault && !is_in_an_open_union
    };
    let mut expected = Vec::new();
    places(clean, String::new(), &mut expected);
    for (pointer, value) in expected.iter().filter(|(pointer, _)| is_beside(pointer)) {
        let found = repaired.pointer(pointer);
        // Where it is not known which variant a value is, it is as it came.
        let as_it_came = unions.iter().any(|union| is_within(pointer, union)) && found == wrong.pointer(pointer);
        prop_assert!(
            found == Some(value) || as_it_came,
            "{pointer}: {found:?} in place of {value}\n{wrong}\n{repaired}\n{faults:?}"
        );
    }
    let mut left = Vec::new();
    places(repaired, String::new(), &mut left);
    for (pointer, value) in left.iter().filter(|(pointer, _)| is_beside(pointer)) {
        let as_it_came = unions.iter().any(|union| is_within(pointer, union)) && wrong.pointer(pointer) == Some(value);
        prop_assert!(
            clean.pointer(pointer) == Some(value) || as_it_came,
            "{pointer}: {value} was added\n{wrong}\n{repaired}\n{faults:?}"
        );
    }
    Ok(())
}

/// What many schemas take over is told once, in a few words.
#[test]
fn problems_are_told_once() {
    let reference = format!("#/$defs/{}", "x".repeat(50_000));
    let base = json!({ "properties": { "a": { "$ref": reference }, "b": { "pattern": "(" } }, "title": "base" });
    let take = |index: usize| json!({ "allOf": [{ "$ref": "#/$defs/Base" }, { "properties": { "a": { "title": index.to_string() } } }] });
    let parts: serde_json::Map<String, Value> = (0..1000).map(|index| (format!("p{index}"), take(index))).collect();
    let told = |problems: &[Problem]| {
        assert!(problems.iter().all(|problem| problem.subject.len() < 300));
        let of = |what: &str| problems.iter().filter(|problem| problem.message.contains(what)).count();
        assert_eq!((of("leads nowhere"), of("cannot be read"), problems.len()), (1, 1, 2));
    };
    let whole = json!({ "properties": parts, "$defs": { "Base": base } });
    told(CompiledSchema::new(&whole, Reading::Default).problems());
    told(Validator::new(&whole).problems());

    // Each of these definitions takes over the same.
    let source = move |name: &str| if name == "Base" { Some(base.clone()) } else { parts.get(name).cloned() };
    let definitions = CompiledDefinitions::new(Reading::Default, source);
    let all: Vec<Value> = (0..50).map(|index| json!({ "$ref": format!("#/$defs/p{index}") })).collect();
    CompiledSchema::with_definitions(&json!({ "prefixItems": all }), &definitions).check(&json!(vec![json!({}); 50]));
    told(&definitions.problems());
}

/// No pattern is said not to match where the steps ran out before it was looked for.
#[test]
fn no_faults_are_made_up_in_long_lists() {
    let person = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "pattern": r"^[\p{L} ]{1,30}$"}, "age": {"type": "integer"}}
    });
    let schema = json!({"type": "array", "items": person});
    for length in [1, 12, 30] {
        let mut people = vec![json!({"name": "\u{e9}".repeat(length), "age": 7}); 9_000];
        people[0]["age"] = json!("seven");
        let people = Value::Array(people);
        let told = |violations: Vec<Violation>| violations.iter().map(ToString::to_string).collect::<Vec<_>>();
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        assert_eq!(told(compiled.violations(&people)), ["/0/age: Expected integer"], "{length}");
        assert_eq!(told(Validator::new(&schema).violations(&people)), ["/0/age: Expected integer"], "{length}");
    }
}

/// What is compiled and dropped leaves room for the patterns of other schemas over the same definitions.
#[test]
fn patterns_of_schemas_that_are_gone_take_nothing() {
    let none = CompiledDefinitions::none(Reading::Default);
    for index in 0..200 {
        let schema = CompiledSchema::with_definitions(&json!({"type": "string", "pattern": "^.{1,1000}$"}), &none);
        assert_eq!(schema.problems(), [], "{index}");
        assert!(index < 199 || !schema.check(&json!("")) && schema.check(&json!("a")));
    }
}

/// A pattern that no engine compiles asks nothing of a text, under `not` either, and is named.
#[test]
fn patterns_that_are_too_large_ask_nothing() {
    let pattern = json!({"pattern": "^(a{1000}){1000}$"});
    let told = ["`^(a{1000}){1000}$` is a pattern that is too large, so no text is checked by it"];
    for schema in [json!({"not": pattern}), pattern.clone()] {
        let validator = Validator::new(&schema);
        assert!(validator.check(&json!("b")), "{schema}");
        assert_eq!(validator.problems().iter().map(ToString::to_string).collect::<Vec<_>>(), told);
    }
    let compiled = CompiledSchema::new(&pattern, Reading::Default);
    assert!(compiled.check(&json!("b")));
    assert_eq!(compiled.problems().iter().map(ToString::to_string).collect::<Vec<_>>(), told);
    // They take nothing from those that can be compiled.
    let mut parts: Vec<Value> =
        (1000..1064).map(|times| json!({"pattern": format!("^(a{{1000}}){{{times}}}$")})).collect();
    parts.push(json!({"pattern": r"^\p{L}{20}$"}));
    let validator = Validator::new(&json!({"allOf": parts}));
    assert_eq!(validator.problems().len(), 64);
    assert_eq!(validator.violations(&json!("b")).len(), 1);
}

/// A pattern that no engine compiles is as neutral as one that cannot be read, for the repair of values, too.
#[test]
fn patterns_that_cannot_be_compiled_are_neutral() {
    for source in [r"(a)\2", r"(?<=(a)\1+)b"] {
        let told = format!("`{source}` is a pattern that cannot be read, so no text is checked by it");
        let validator = Validator::new(&json!({ "not": { "pattern": source } }));
        assert!(validator.check(&json!("aab")), "{source}");
        assert_eq!(validator.problems()[0].to_string(), told);

        let schema = json!({ "type": "object", "patternProperties": { (source): { "type": "integer" } } });
        let compiled = CompiledSchema::new(&schema, Reading::Default);
        let value = json!({ "zip": "12345", "name": "a" });
        assert_eq!(compiled.repair(value.clone()), (value, vec![]));
        assert_eq!(compiled.problems()[0].to_string(), told);
    }
}

/// Words are those of JavaScript beside what only the engine that backtracks reads, and what it looks behind for may be of
/// any length.
#[test]
fn patterns_that_look_around_are_checked() {
    for (pattern, fitting, other) in [
        (r"^(?!.*\b(DROP|DELETE)\b).*$", "SELECT x", "DROP TABLE x"),
        (r"^(?=.*\bfoo\b)(?!.*\bbar\b)", "a foo", "bar foo"),
        (r"(?<=(?:^|ab+))c", "abbc", "bc"),
    ] {
        let schema = json!({ "type": "string", "pattern": pattern });
        let validator = Validator::new(&schema);
        assert_eq!(validator.problems(), [], "{pattern}");
        assert_eq!([fitting, other].map(|text| validator.check(&json!(text))), [true, false], "{pattern}");
        let denied = Validator::new(&json!({ "not": schema }));
        assert_eq!([fitting, other].map(|text| denied.check(&json!(text))), [false, true], "{pattern}");
    }
}
