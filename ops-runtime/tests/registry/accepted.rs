//! What a type accepts though the schema does not: a call by type gives it as it came, whatever else is wrong in the result.

use std::fmt::Debug;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::*;

#[derive(Debug, PartialEq)]
pub(crate) enum Kind {
    Cat,
    Dog,
    Other(String),
}

ops_runtime::__generated::names!(Kind { "cat" => Cat, "dog" => Dog, _ => Other });

#[derive(Debug, PartialEq)]
pub(crate) enum Size {
    Small,
    Large,
    Other(String),
}

ops_runtime::__generated::names!(Size { "s" => Small, "l" => Large, _ => Other });

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Pet {
    id: i64,
    kind: Kind,
    name: String,
    note: Option<String>,
    #[serde(default = "small")]
    size: Size,
}

fn small() -> Size {
    Size::Small
}

macro_rules! pet {
    () => {
        r#"{"type":"object","required":["id","kind","name"],"properties":{
            "id":{"type":"integer","minimum":1,"maximum":10},"kind":{"type":"string","enum":["cat","dog"]},
            "name":{"type":"string","maxLength":5},"note":{"type":"string"},
            "size":{"type":"string","enum":["s","l"],"default":"s"}}}"#
    };
}

operation!(ShowPet: Value => Pet, Call, OperationSpec::query("pets.show").with_output(Schema::text(pet!())));
operation!(ListPets: Value => Vec<Pet>, Call, OperationSpec::query("pets.list").with_output(Schema::text(
    concat!(r#"{"type":"array","items":"#, pet!(), "}"),
)));

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Object {
    Pet,
}

/// Has a property that can have one value only, as generated types have it.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Listed {
    object: Object,
    id: i64,
    kind: Kind,
}

operation!(ListObjects: Value => Vec<Listed>, Call, OperationSpec::query("pets.objects").with_output(Schema::text(
    r#"{"type":"array","items":{"type":"object","required":["object","id","kind"],"properties":{
        "object":{"const":"pet"},"id":{"type":"integer","minimum":1,"maximum":10},
        "kind":{"type":"string","enum":["cat","dog"]}}}}"#,
)));

/// A type that accepts less than a generated one.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Closed {
    Cat,
    Dog,
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ClosedPet {
    id: i64,
    kind: Closed,
}

operation!(ShowClosed: Value => ClosedPet, Call, OperationSpec::query("pets.closed").with_output(Schema::text(pet!())));

/// Gives its input, as text.
pub(crate) struct Echo;

impl Endpoint for Echo {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        _: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let envelope = ResponseEnvelope::local(Payload::Json(Bytes::from(input.to_string())), spec.id.clone());
        Box::pin(async move { Ok(envelope) })
    }
}

/// The data and the places of the warnings, or the places of an error's violations.
type Outcome<T> = Result<(T, Vec<String>), Vec<String>>;

/// What a call by type gives. A result that is a value and one that is text give the same.
async fn read<Op: Call<Input = Value>>(policy: OutputPolicy, result: &Value) -> Outcome<Op::Output>
where
    Op::Output: Debug + PartialEq,
{
    let mut outcomes: Vec<Outcome<Op::Output>> = Vec::new();
    for handler in [Handler::dynamic(|value, _| async { Ok(value) }), Handler::endpoint(Echo)] {
        let registry = Registry::builder().with_policy(policy).build();
        registry.register(Registration::new(Op::SPEC, handler)).unwrap();
        let outcome = match registry.execute::<Op>(result.clone()).await {
            Ok(envelope) => Ok((envelope.data, envelope.warnings.into_iter().map(|told| told.pointer).collect())),
            Err(error) => {
                let violations = error.details()["violations"].as_array().unwrap().clone();
                Err(violations.iter().map(|told| told["pointer"].as_str().unwrap().to_owned()).collect())
            }
        };
        outcomes.push(outcome);
    }
    let text = outcomes.pop().unwrap();
    assert_eq!(outcomes.pop().unwrap(), text, "{result}");
    text
}

fn pet(id: i64, kind: Kind, name: &str, size: Size) -> Pet {
    Pet { id, kind, name: name.to_owned(), note: None, size }
}

fn fish(id: i64) -> Pet {
    pet(id, Kind::Other("fish".to_owned()), "n", Size::Other("xl".to_owned()))
}

fn cat(id: i64, name: &str) -> Pet {
    pet(id, Kind::Cat, name, Size::Small)
}

fn places(places: &[&str]) -> Vec<String> {
    places.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn a_cast_makes_up_only_what_the_type_does_not_accept() {
    for (result, data, told) in [
        (json!({ "id": 1, "kind": "fish", "name": "n", "size": "xl" }), fish(1), places(&[])),
        (json!({ "id": "1", "kind": "fish", "name": "n", "size": "xl" }), fish(1), places(&["/id"])),
        (json!({ "id": 99, "kind": "cat", "name": "too long name" }), cat(99, "too long name"), places(&[])),
        (json!({ "id": 99, "kind": "cat", "name": 5, "note": null }), cat(99, ""), places(&["/name"])),
    ] {
        assert_eq!(read::<ShowPet>(OutputPolicy::Cast, &result).await, Ok((data, told)), "{result}");
    }
}

#[tokio::test]
async fn a_repair_tells_only_what_the_type_does_not_accept() {
    for (result, data, told) in [
        (json!({ "id": 1, "kind": "cat", "name": "n", "note": null }), cat(1, "n"), places(&[])),
        (json!({ "id": "1", "kind": "cat", "name": "n", "note": null }), cat(1, "n"), places(&["/id"])),
        (json!({ "id": "1", "kind": "fish", "name": "n", "size": "xl" }), fish(1), places(&["/id"])),
        (json!({ "id": "99", "kind": "cat", "name": "too long name" }), cat(99, "too long name"), places(&["/id"])),
    ] {
        assert_eq!(read::<ShowPet>(OutputPolicy::Repair, &result).await, Ok((data, told)), "{result}");
    }
}

#[tokio::test]
async fn the_other_items_of_a_list_stay_as_they_came() {
    let list = |last: Value| {
        json!([
            { "id": 1, "kind": "fish", "name": "n", "size": "xl" },
            { "id": 99, "kind": "cat", "name": "too long name" },
            { "id": 1, "kind": "cat", "name": "n", "note": null },
            last,
        ])
    };
    let read_as =
        |last, told: &[&str]| Ok((vec![fish(1), cat(99, "too long name"), cat(1, "n"), cat(last, "n")], places(told)));
    let fits = list(json!({ "id": 2, "kind": "cat", "name": "n" }));
    let text = list(json!({ "id": "3", "kind": "cat", "name": "n" }));
    for (policy, id) in [(OutputPolicy::Repair, 3), (OutputPolicy::Cast, 1)] {
        assert_eq!(read::<ListPets>(policy, &fits).await, read_as(2, &[]), "{policy:?}");
        assert_eq!(read::<ListPets>(policy, &text).await, read_as(id, &["/3/id"]), "{policy:?}");
    }
    // An error lists what the type does not accept.
    let lacks = list(json!({ "id": 1, "kind": "cat" }));
    assert_eq!(read::<ListPets>(OutputPolicy::Repair, &lacks).await, Err(places(&["/3/name"])));
}

#[tokio::test]
async fn a_constant_that_a_type_demands_does_not_change_the_other_items() {
    let result = json!([{ "object": "dog", "id": 1, "kind": "cat" }, { "object": "pet", "id": 99, "kind": "fish" }]);
    let data = vec![
        Listed { object: Object::Pet, id: 1, kind: Kind::Cat },
        Listed { object: Object::Pet, id: 99, kind: Kind::Other("fish".to_owned()) },
    ];
    let cast = read::<ListObjects>(OutputPolicy::Cast, &result).await;
    assert_eq!(cast, Ok((data, places(&["/0/object"]))));
    assert_eq!(read::<ListObjects>(OutputPolicy::Repair, &result).await, Err(places(&["/0/object"])));
}

/// If the type cannot read what the schema forbids, the schema decides.
#[tokio::test]
async fn a_type_that_accepts_less_is_given_what_the_schema_accepts() {
    let result = json!({ "id": 99, "kind": "fish", "name": "n" });
    let made_up = ClosedPet { id: 1, kind: Closed::Cat };
    let cast = read::<ShowClosed>(OutputPolicy::Cast, &result).await;
    assert_eq!(cast, Ok((made_up, places(&["/id", "/kind"]))));
    // The bound is no reason for the error.
    assert_eq!(read::<ShowClosed>(OutputPolicy::Repair, &result).await, Err(places(&["/kind"])));
}
