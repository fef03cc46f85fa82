//! Types of ours and of `typify` take the same JSON and write the same JSON.
//!
//! Values are made from the schemas, and then changed in one place each. What the schema accepts, both must take and
//! write alike, and what it refuses either may take: what differs must be of a kind that [`EXPECTED`] gives a reason for.
#![allow(clippy::unwrap_used)]

use std::collections::{BTreeMap, BTreeSet};

use ops_runtime::Operation;
use ops_runtime::record::{from_value, to_value};
use ops_tests::{corpus, sample};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

/// How the two may differ, and why.
const EXPECTED: &[(&str, &str)] = &[
    ("limits", "limits and patterns are not in our types: calls are checked against the schema, answers are taken"),
    ("formats", "texts of a format are texts unless types are asked for, so that an odd date costs no answer"),
    ("enums", "values that an enum does not know are kept, so that a server may add some"),
    ("variants", "a member of a tagged union whose tag no variant has is kept as it came, whatever the tag is"),
    ("closed", "properties beyond those of a closed object are passed over"),
    ("null", "`null` where a property may be absent counts as absent; theirs refuses it where the property is a list"),
    ("theirs takes more", "a value that the schema refuses; ours refuses it"),
    ("empty", "theirs does not write a list or a map that is empty"),
];

#[derive(Default)]
struct Run {
    schemas: Vec<Value>,
    definitions: usize,
    values: usize,
    accepted: usize,
    found: BTreeMap<&'static str, usize>,
    /// The kinds of differences that occur in documents other than our own.
    of_others: BTreeSet<&'static str>,
    wrong: Vec<String>,
    /// The definitions of which no value was taken by both.
    hollow: Vec<String>,
}

impl Run {
    fn compare<A: Serialize + DeserializeOwned, B: Serialize + DeserializeOwned>(
        &mut self,
        document: &str,
        name: &str,
        at: usize,
    ) {
        let schema = self.schemas[at].clone();
        let valid = |schema: &Value, value: &Value| {
            let options = jsonschema::draft202012::options().should_validate_formats(true).build(schema);
            options.unwrap_or_else(|error| panic!("{document} {name}: {error}")).is_valid(value)
        };
        self.definitions += 1;
        let before = self.accepted;
        for value in values(&schema) {
            self.values += 1;
            let ours = from_value::<A>(&value).map(|read| to_value(&read).unwrap());
            let theirs = serde_json::from_value::<B>(value.clone()).map(|read| serde_json::to_value(read).unwrap());
            let kind = match (&ours, &theirs) {
                (Err(_), Err(_)) => None,
                (Ok(ours), Ok(theirs)) => {
                    self.accepted += 1;
                    rewritten(ours, theirs, &value, valid(&schema, &value))
                }
                (Ok(_), Err(_)) => Some(looser(&schema, &value, valid)),
                (Err(_), Ok(_)) if !valid(&schema, &value) => Some("theirs takes more"),
                (Err(_), Ok(_)) => Some("a defect of ours"),
            };
            match kind {
                Some(kind) if EXPECTED.iter().any(|(expected, _)| *expected == kind) => {
                    *self.found.entry(kind).or_default() += 1;
                    if !document.starts_with("own/") {
                        self.of_others.insert(kind);
                    }
                }
                Some(kind) => self.wrong.push(format!(
                    "{document} {name}: {kind}: {value}\n  ours   {ours:?}\n  theirs {theirs:?}\n  schema {}",
                    schema["$defs"][name]
                )),
                None => {}
            }
        }
        if self.accepted == before {
            self.hollow.push(format!("{document} {name}"));
        }
    }
}

/// A value of the schema, and the same with one change each.
fn values(schema: &Value) -> Vec<Value> {
    let mut values = vec![sample::fitting(schema), sample::value(schema, schema)];
    let mut places = Vec::new();
    collect(&values[0], String::new(), &mut places);
    for place in places.iter().take(24) {
        for new in [None, Some(json!(null)), Some(json!("text")), Some(json!(7)), Some(json!([])), Some(json!({}))] {
            let mut value = values[0].clone();
            let (parent, key) = place.rsplit_once('/').unwrap_or_default();
            match (new, value.pointer_mut(if place.is_empty() { "" } else { parent })) {
                (Some(new), _) => *value.pointer_mut(place).unwrap() = new,
                (None, Some(Value::Object(members))) if !place.is_empty() => {
                    members.remove(&key.replace("~1", "/").replace("~0", "~"));
                }
                _ => continue,
            }
            values.push(value);
        }
    }
    if let Value::Object(members) = &values[0] {
        let mut members = members.clone();
        members.insert("not_declared".to_owned(), json!(1));
        values.push(members.into());
    }
    values
}

fn collect(value: &Value, place: String, into: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                collect(value, format!("{place}/{}", key.replace('~', "~0").replace('/', "~1")), into);
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate().take(1) {
                collect(value, format!("{place}/{at}"), into);
            }
        }
        _ => {}
    }
    into.push(place);
}

/// Why ours takes a value that theirs does not: the first kind of keyword without which the schema accepts it.
fn looser(schema: &Value, value: &Value, valid: impl Fn(&Value, &Value) -> bool) -> &'static str {
    const LIMITS: &[&str] = &[
        "pattern",
        "minLength",
        "maxLength",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
    ];
    const CLOSED: &[&str] = &["additionalProperties", "unevaluatedProperties"];
    let kinds = [
        ("limits", LIMITS),
        ("formats", &["format"]),
        ("enums", &["enum", "const"]),
        ("closed", CLOSED),
        ("variants", &["oneOf", "anyOf"]),
    ];
    let full = without_nulls(value);
    if full != *value && valid(schema, &full) {
        return "null";
    }
    if valid(schema, value) {
        // The validator may know less of formats and numbers than a type does.
        return if without(schema, &["format"]) == *schema { "a defect of theirs" } else { "formats" };
    }
    let one = kinds.iter().find(|(_, keywords)| valid(&without(schema, keywords), value));
    let all: Vec<&str> = kinds.iter().flat_map(|(_, keywords)| keywords.iter().copied()).collect();
    match one {
        Some((kind, _)) => kind,
        None if valid(&without(schema, &all), &full) => "ours takes more",
        None => "ours takes what no reason explains",
    }
}

/// The schema without some keywords; properties may be called like them.
fn without(schema: &Value, keywords: &[&str]) -> Value {
    match schema {
        Value::Object(members) => members
            .iter()
            .filter(|(key, value)| {
                let closes = value.is_boolean() || !key.ends_with("Properties");
                !(keywords.contains(&key.as_str()) && closes) || value.get("type").is_some()
            })
            .map(|(key, value)| (key.clone(), without(value, keywords)))
            .collect(),
        Value::Array(items) => items.iter().map(|item| without(item, keywords)).collect(),
        other => other.clone(),
    }
}

fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(key, value)| (key.clone(), without_nulls(value)))
            .collect(),
        Value::Array(items) => items.iter().map(without_nulls).collect(),
        other => other.clone(),
    }
}

/// How what the two write differs, if it does.
fn rewritten(ours: &Value, theirs: &Value, value: &Value, is_valid: bool) -> Option<&'static str> {
    if same(ours, theirs) {
        return None;
    }
    let (ours, theirs) = (without_empty(ours), without_empty(theirs));
    if same(&ours, &theirs) {
        return Some("empty");
    }
    if same(&only(&ours, value), &only(&theirs, value)) {
        return Some("with other members");
    }
    Some(if is_valid { "written differently" } else { "refused, and written differently" })
}

/// Equal as JSON: `1` is `1.0`.
fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len() && one.iter().all(|(key, value)| other.get(key).is_some_and(|v| same(value, v)))
        }
        _ => one == other,
    }
}

fn without_empty(value: &Value) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| (key.clone(), without_empty(value)))
            .filter(|(_, value)| !(value.is_null() || *value == json!([]) || *value == json!({})))
            .collect(),
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

/// What of a value stands in another: its members, and theirs.
fn only(value: &Value, of: &Value) -> Value {
    match (value, of) {
        (Value::Object(members), Value::Object(of)) => {
            members.iter().filter_map(|(key, value)| Some((key.clone(), only(value, of.get(key)?)))).collect()
        }
        (Value::Array(items), Value::Array(of)) => items.iter().zip(of).map(|(item, of)| only(item, of)).collect(),
        (other, _) => other.clone(),
    }
}

/// Definitions of which no value is compared: values as deep as these ask for are made of no schema.
const HOLLOW: [&str; 2] = ["own/deep.json Deep_a_a", "own/deep.json Deep_a_a_2"];

/// Kinds of which the documents of the corpus, a fixed list, have no value.
const NOT_IN_CORPUS: [&str; 1] = ["limits"];

#[test]
fn both_take_and_write_the_same() {
    let schemas = serde_json::from_str(include_str!(concat!(env!("OUT_DIR"), "/schemas.json"))).unwrap();
    let mut run = Run { schemas, ..Run::default() };
    cases(&mut run);
    println!("{}", corpus::directory("OPS_SPECS", "openapi").display());
    println!("{} definitions, {} values, {} taken by both", run.definitions, run.values, run.accepted);
    for (document, why) in NOTHING {
        println!("{document}: nothing to compare: {why}");
    }
    for (kind, reason) in EXPECTED {
        println!("{kind}: {} ({reason})", run.found.get(kind).unwrap_or(&0));
    }
    if IS_CORPUS {
        let kinds = EXPECTED.iter().map(|(kind, _)| *kind);
        let idle: Vec<&str> = kinds.filter(|kind| !run.of_others.contains(kind)).collect();
        assert_eq!(idle, NOT_IN_CORPUS, "what is expected and does not occur");
    }
    assert!(run.definitions > 0 && run.accepted > 0, "nothing was compared");
    println!("{} definitions of which no value is taken by both: {}", run.hollow.len(), run.hollow.join(", "));
    // Among the known documents, only our own may have such definitions (`HOLLOW`). In others, some schemas may accept no value.
    let few = if IS_KNOWN { 0 } else { 1 + run.definitions / 8 };
    let others = run.hollow.iter().filter(|hollow| !HOLLOW.contains(&hollow.as_str())).count();
    assert!(others <= few, "nothing of these is compared: {}", run.hollow.join(", "));
    let is_explained = |(_, why): &&(&str, &str)| why.starts_with("no definitions");
    let unexplained: Vec<_> = NOTHING.iter().filter(|nothing| !is_explained(nothing)).collect();
    assert!(unexplained.is_empty(), "documents that could not be read: {unexplained:?}");
    assert!(run.wrong.is_empty(), "{} differ:\n{}", run.wrong.len(), run.wrong.join("\n"));
}
