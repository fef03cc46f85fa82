//! Tags of unions in unions without a tag: what selected a variant is written again, so it is not lost.

use ops_runtime::record::{from_str, from_value};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shapes::same;

pub struct Husky {
    pub sled: Option<bool>,
}

/// Declares the tags of `Pet` and of `Dog`, and one property more.
pub struct Flat {
    pub breed: Option<String>,
    pub pet: Option<String>,
    pub sled: Option<bool>,
    pub tail: Option<i64>,
}

/// Told apart by `breed`.
#[derive(Debug, Clone, PartialEq)]
pub enum Dog {
    Husky(Husky),
    Other(Value),
}

/// Told apart by `pet`.
#[derive(Debug, Clone, PartialEq)]
pub enum Pet {
    Dog(Dog),
    Other(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Either {
    Pet(Pet),
    Flat(Flat),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Lists {
    Pets(Vec<Pet>),
    Flats(Vec<Flat>),
}

/// A type of the user's that passes over its tag.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bird {
    pub wings: i64,
}

/// A type of the user's that declares the tag of `Nest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Winged {
    pub kind: String,
    pub wings: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Nest {
    Bird(Bird),
    Other(Value),
}

/// Told apart by `nest`, around a union of a type of the user's.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    Nest(Nest),
    Other(Value),
}

/// Declares the tags of `Tree` and of `Nest`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Branch {
    pub nest: String,
    pub kind: String,
    pub wings: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Trees {
    Tagged(Vec<Tree>),
    Plain(Vec<Branch>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Nests {
    Tagged(Vec<Nest>),
    Plain(Vec<Winged>),
}

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Husky {
        const NAME: &'static str = "Husky";
        const FIELDS: &'static [&'static str] = &["sled"];
        type Slots = (Optional<bool>,);
        fn make((sled,): Values<Self>) -> Self {
            Self { sled }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.sled,)
        }
    }
    ops_runtime::__generated::table!(super::Husky);

    impl Record for super::Flat {
        const NAME: &'static str = "Flat";
        const FIELDS: &'static [&'static str] = &["breed", "pet", "sled", "tail"];
        type Slots = (Optional<String>, Optional<String>, Optional<bool>, Optional<i64>);
        fn make((breed, pet, sled, tail): Values<Self>) -> Self {
            Self { breed, pet, sled, tail }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.breed, &self.pet, &self.sled, &self.tail)
        }
    }
    ops_runtime::__generated::table!(super::Flat);

    ops_runtime::__generated::tagged!(super::Dog["breed"] { "husky" => Husky, _ => Other });
    ops_runtime::__generated::tagged!(super::Pet["pet"] { "dog" => Dog, _ => Other });
    ops_runtime::__generated::tagged!(super::Nest["kind"] { "bird" => Bird(_), _ => Other });
    ops_runtime::__generated::untagged!(super::Either {
        Object["pet"] | Object["pet", "breed"; "sled"] => Pet,
        Object[; "breed", "pet", "sled", "tail"] => Flat
    });
    ops_runtime::__generated::untagged!(super::Lists { Array => Pets, Array => Flats });
    ops_runtime::__generated::untagged!(super::Nests { Array => Tagged, Array => Plain });
    ops_runtime::__generated::tagged!(super::Tree["nest"] { "yes" => Nest, _ => Other });
    ops_runtime::__generated::untagged!(super::Trees { Array => Tagged, Array => Plain });
}

#[test]
fn a_tag_of_a_union_around_is_not_dropped() {
    let husky = || Pet::Dog(Dog::Husky(Husky { sled: Some(true) }));
    for value in [
        json!({"pet": "dog", "breed": "husky", "sled": true}),
        json!({"sled": true, "breed": "husky", "pet": "dog"}),
        json!({"breed": "husky", "pet": "dog", "sled": true}),
    ] {
        assert_eq!(same::<Either>(&value), Either::Pet(husky()));
        assert_eq!(same::<Lists>(&json!([value])), Lists::Pets(vec![husky()]));
    }
    let tail = json!({"pet": "dog", "breed": "husky", "tail": 1});
    let flat = Flat { breed: Some("husky".into()), pet: Some("dog".into()), sled: None, tail: Some(1) };
    assert_eq!(same::<Lists>(&json!([tail])), Lists::Flats(vec![flat]));
}

#[test]
fn a_tag_that_a_type_of_the_users_passes_over_is_not_dropped() {
    let nests = same::<Nests>(&json!([{"kind": "bird", "wings": 2}]));
    assert_eq!(nests, Nests::Tagged(vec![Nest::Bird(Bird { wings: 2 })]));
    for value in [
        json!({"nest": "yes", "kind": "bird", "wings": 2}),
        json!({"wings": 2, "kind": "bird", "nest": "yes"}),
        json!({"kind": "bird", "nest": "yes", "wings": 2}),
    ] {
        let trees = Trees::Tagged(vec![Tree::Nest(Nest::Bird(Bird { wings: 2 }))]);
        assert_eq!(same::<Trees>(&json!([value])), trees, "{value}");
    }
}

/// The whole object is kept, as one unknown tag: the other variant would drop a property.
#[test]
fn an_object_of_an_unknown_tag_loses_less_than_a_property() {
    let value = json!([{"pet": "cat", "sled": true, "new": 1}]);
    let pets = Lists::Pets(vec![Pet::Other(json!({"pet": "cat", "sled": true, "new": 1}))]);
    assert_eq!(from_value::<Lists>(&value).unwrap(), pets);
    assert_eq!(from_str::<Lists>(&value.to_string()).unwrap(), pets);
}
