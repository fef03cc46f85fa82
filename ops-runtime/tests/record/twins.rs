//! The same types with serde's derives: both must accept, refuse and write the same.
//!
//! A derived struct is also read from an array; a flattened unit keeps the twins from it.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ops_runtime::record::{from_str, from_value};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value, json};

use super::types;

#[derive(Debug, Serialize, Deserialize)]
struct Pet {
    id: i64,
    #[serde(deserialize_with = "Option::deserialize")]
    owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tag: Option<String>,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    weight: Option<Option<f64>>,
    #[serde(default = "twenty", deserialize_with = "or_twenty")]
    limit: u32,
    #[serde(default = "paid", deserialize_with = "or_paid")]
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<Box<Pet>>,
    #[serde(rename = "$type")]
    type_: Vec<Level>,
    #[serde(flatten)]
    map: (),
}

/// A property that is optional and nullable.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(d: D) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

fn twenty() -> u32 {
    20
}

fn paid() -> Status {
    Status::Paid
}

/// `null` stands for nothing where there is a default.
fn or_twenty<'de, D: Deserializer<'de>>(d: D) -> Result<u32, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_else(twenty))
}

fn or_paid<'de, D: Deserializer<'de>>(d: D) -> Result<Status, D::Error> {
    Ok(Option::deserialize(d)?.unwrap_or_else(paid))
}

#[derive(Debug, Serialize, Deserialize)]
struct Labels {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(flatten)]
    extra: BTreeMap<String, i64>,
}

#[derive(Debug, Serialize, Deserialize)]
enum Status {
    #[serde(rename = "new")]
    New,
    #[serde(rename = "paid", alias = "settled")]
    Paid,
    #[serde(untagged)]
    Other(String),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(try_from = "Value")]
struct Level(Value);

impl TryFrom<Value> for Level {
    type Error = &'static str;

    fn try_from(value: Value) -> Result<Self, Self::Error> {
        match value {
            // The literal 1, which is compared as a number and written as it is declared.
            Value::Number(number) if number.as_f64() == Some(1.0) => Ok(Self(json!(1))),
            Value::String(_) | Value::Number(_) | Value::Bool(_) => Ok(Self(value)),
            _ => Err("no scalar"),
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Push {
    kind: String,
    commits: Vec<String>,
    #[serde(flatten)]
    map: (),
}

#[derive(Debug, Serialize, Deserialize)]
struct Issue {
    title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pet: Option<Pet>,
    #[serde(flatten)]
    map: (),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Event {
    Issue(Box<Issue>),
    Map(BTreeMap<String, i64>),
    Labels(Labels),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
    Push(Push),
    List(Vec<Id>),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Shape {
    Circle {
        radius: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        #[serde(flatten)]
        map: (),
    },
    Square {
        side: f64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        inner: Option<Box<Shape>>,
        #[serde(flatten)]
        map: (),
    },
    Group(Vec<Shape>),
    Points(Vec<f64>),
    Nothing(()),
}

/// Decodes `json` as both, from text and from a value, and compares what they make of it.
fn agree<T, D>(json: &Value) -> Result<(), TestCaseError>
where
    T: DeserializeOwned + Serialize + PartialEq + Debug,
    D: DeserializeOwned + Serialize + Debug,
{
    let (ours, theirs) = (from_str::<T>(&json.to_string()), serde_json::from_str::<D>(&json.to_string()));
    prop_assert_eq!(&ours, &from_value::<T>(json));
    match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => {
            let written = serde_json::to_value(&ours).unwrap();
            prop_assert_eq!(&written, &serde_json::to_value(&theirs).unwrap());
            prop_assert_eq!(from_value::<T>(&written).unwrap(), ours);
        }
        (Err(ours), Err(_)) => prop_assert!(json.pointer(&ours.pointer).is_some(), "{}", ours),
        (ours, theirs) => prop_assert!(false, "{:?} but {:?}", ours, theirs),
    }
    Ok(())
}

/// Any JSON value, small.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-3..3i64).prop_map(Value::from),
        (-4000..4000i32).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[a-c\"\\\\/~é\n]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![vec(inner.clone(), 0..4).prop_map(Value::from), object(btree_map("[a-c/~:]{1,3}", inner, 0..4))]
    })
}

fn object(entries: impl Strategy<Value = BTreeMap<String, Value>>) -> impl Strategy<Value = Value> {
    entries.prop_map(|entries| Value::Object(Map::from_iter(entries)))
}

/// An object with some of these properties, a few of them wrong, and some that are not declared.
fn record(fields: Vec<(&'static str, BoxedStrategy<Value>)>) -> impl Strategy<Value = Value> {
    let field = |(name, value): (&'static str, BoxedStrategy<Value>)| {
        let value = prop_oneof![1 => Just(None), 1 => any_json().prop_map(Some), 14 => value.prop_map(Some)];
        value.prop_map(move |value| value.map(|value| (name.to_owned(), value)))
    };
    let fields: Vec<_> = fields.into_iter().map(field).collect();
    let rest = prop_oneof![6 => Just(BTreeMap::new()), 1 => btree_map("[a-z/~:]{1,4}", any_json(), 0..3)];
    (fields, rest)
        .prop_map(|(fields, rest)| {
            let entries = fields.into_iter().flatten().chain(rest);
            entries.collect::<Vec<_>>()
        })
        .prop_shuffle()
        .prop_map(|entries| Value::Object(Map::from_iter(entries)))
}

fn text() -> BoxedStrategy<Value> {
    prop_oneof!["[a-c\"\\\\é]{0,3}", "new|paid|settled"].prop_map(Value::from).boxed()
}

fn integer() -> BoxedStrategy<Value> {
    (0..100i64).prop_map(Value::from).boxed()
}

fn number() -> BoxedStrategy<Value> {
    prop_oneof![integer(), (-80..80i32).prop_map(|n| Value::from(f64::from(n) / 8.0))].boxed()
}

fn or_null(value: BoxedStrategy<Value>) -> BoxedStrategy<Value> {
    prop_oneof![value, Just(Value::Null)].boxed()
}

fn list(value: impl Strategy<Value = Value> + 'static) -> BoxedStrategy<Value> {
    vec(value, 0..3).prop_map(Value::from).boxed()
}

fn pet() -> BoxedStrategy<Value> {
    let fields = |parent| {
        record(vec![
            ("id", integer()),
            ("owner", or_null(text())),
            ("tag", text()),
            ("weight", or_null(number())),
            ("limit", integer()),
            ("status", text()),
            ("parent", parent),
            ("$type", list(prop_oneof![4 => text(), 4 => number(), 1 => any_json()])),
        ])
    };
    let least = json!({"id": 1, "owner": null, "$type": []});
    fields(fields(Just(least).boxed()).boxed()).boxed()
}

fn event() -> impl Strategy<Value = Value> {
    prop_oneof![
        record(vec![("kind", Just(json!("issue")).boxed()), ("title", text()), ("pet", pet())]),
        record(vec![("kind", Just(json!("map")).boxed()), ("a", integer()), ("m", integer())]),
        record(vec![("kind", Just(json!("labels")).boxed()), ("name", text()), ("m", integer())]),
    ]
}

fn id() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![integer(), text(), record(vec![("kind", text()), ("commits", list(text()))])];
    leaf.prop_recursive(3, 8, 3, |inner| prop_oneof![8 => list(inner), 1 => any_json()]).boxed()
}

fn shape() -> BoxedStrategy<Value> {
    let circle = record(vec![("radius", number()), ("name", text())]);
    let leaf = prop_oneof![circle, list(number()), Just(Value::Null)];
    leaf.prop_recursive(3, 8, 3, |inner| {
        prop_oneof![list(inner.clone()), record(vec![("side", number()), ("inner", inner.boxed())]), any_json()]
    })
    .boxed()
}

proptest! {
    #![proptest_config(crate::seeded::config(400))]

    #[test]
    fn records_agree(json in pet()) {
        agree::<types::Pet, Pet>(&json)?;
    }

    #[test]
    fn records_with_more_properties_agree(json in record(vec![("name", text()), ("a", integer()), ("bb", integer())])) {
        agree::<types::Labels, Labels>(&json)?;
    }

    #[test]
    fn tagged_unions_agree(json in event()) {
        prop_assume!(matches!(json["kind"].as_str(), Some("issue" | "map" | "labels")));
        agree::<types::Event, Event>(&json)?;
    }

    #[test]
    fn any_tag_is_kept(json in record(vec![("kind", any_json().boxed()), ("commits", list(text()))])) {
        prop_assume!(json.get("kind").is_some_and(|kind| !matches!(kind.as_str(), Some("issue" | "map" | "labels" | "raw"))));
        let event = from_value::<types::Event>(&json).unwrap();
        prop_assert_eq!(event, types::Event::Other(json));
    }

    #[test]
    fn unions_by_kind_agree(json in id()) {
        agree::<types::Id, Id>(&json)?;
    }

    #[test]
    fn unions_by_property_agree(json in shape()) {
        agree::<types::Shape, Shape>(&json)?;
    }

    #[test]
    fn enums_agree(json in prop_oneof![text(), any_json()]) {
        agree::<types::Status, Status>(&json)?;
    }

    #[test]
    fn tuples_and_maps_agree(json in object(btree_map("[ab]{1,2}", prop_oneof![
        5 => (text(), number()).prop_map(|(a, b)| json!([a, b])), 1 => list(any_json())
    ], 0..4))) {
        agree::<types::Prices, BTreeMap<String, (String, f64)>>(&json)?;
    }

    #[test]
    fn any_text_is_read_or_refused(text in prop_oneof![
        r#"[\[\]{}",:01.eu\\ -]{0,12}"#,
        pet().prop_map(|json| json.to_string()),
    ], cut in any::<prop::sample::Index>()) {
        let mut bytes = text.into_bytes();
        if !bytes.is_empty() {
            let at = cut.index(bytes.len());
            bytes[at] ^= 4;
        }
        if let Err(error) = ops_runtime::record::from_slice::<types::Pet>(&bytes) {
            prop_assert!(!error.message.is_empty());
        }
        prop_assert_eq!(
            ops_runtime::record::from_slice::<types::Event>(&bytes).is_ok_and(|event| matches!(event, types::Event::Other(_))),
            serde_json::from_slice::<Value>(&bytes).is_ok_and(|json| json.is_object()),
        );
    }
}
