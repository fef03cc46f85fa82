//! Unions whose variants differ only below the first level: the variant that drops the least of a value is meant.

use std::collections::BTreeMap;
use std::fmt::Debug;

use ops_runtime::record::{from_str, from_value, to_value};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::shapes::same;

pub struct Cat {
    pub claws: Option<i64>,
    pub name: Option<String>,
}

pub struct Dog {
    pub bark: Option<Bark>,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Bark {
    Loud,
    Other(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Pets {
    Cats(Vec<Cat>),
    Dogs(Vec<Dog>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum ByName {
    Cats(BTreeMap<String, Cat>),
    Dogs(BTreeMap<String, Dog>),
}

/// Declares less of each user than `Full`.
pub struct Summary {
    pub id: i64,
}

pub struct Full {
    pub id: i64,
    pub pet: Cat,
}

pub struct SummaryPage {
    pub users: Vec<Summary>,
}

pub struct FullPage {
    pub users: Vec<Full>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Page {
    Summary(SummaryPage),
    Full(FullPage),
}

/// Keeps all that is in it.
pub struct Loose {
    pub data: Value,
}

pub struct Typed {
    pub data: Cat,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Envelope {
    Loose(Loose),
    Typed(Typed),
}

/// The variants that keep all of a list come last.
#[derive(Debug, Clone, PartialEq)]
pub enum CatsFirst {
    Cats(Vec<Cat>),
    Maps(Vec<BTreeMap<String, Value>>),
    Any(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum CatsLast {
    Any(Value),
    Cats(Vec<Cat>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum NamedOrAny {
    Cats(BTreeMap<String, Cat>),
    Any(Value),
}

/// Variants that declare as much, of which only one keeps the rest.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    Counted(Counted),
    Owned(Owned),
}

pub struct Counted {
    pub pet: Cat,
    pub extra: BTreeMap<String, i64>,
}

pub struct Owned {
    pub pet: Dog,
}

/// Unions in a union.
#[derive(Debug, Clone, PartialEq)]
pub enum Any {
    Pets(BTreeMap<String, Pets>),
    Pages(BTreeMap<String, Page>),
}

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Cat {
        const NAME: &'static str = "Cat";
        const FIELDS: &'static [&'static str] = &["claws", "name"];
        type Slots = (Optional<i64>, Optional<String>);
        fn make((claws, name): Values<Self>) -> Self {
            Self { claws, name }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.claws, &self.name)
        }
    }
    ops_runtime::__generated::table!(super::Cat);

    impl Record for super::Dog {
        const NAME: &'static str = "Dog";
        const FIELDS: &'static [&'static str] = &["bark", "name"];
        type Slots = (Optional<super::Bark>, Optional<String>);
        fn make((bark, name): Values<Self>) -> Self {
            Self { bark, name }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.bark, &self.name)
        }
    }
    ops_runtime::__generated::table!(super::Dog);

    impl Record for super::Summary {
        const NAME: &'static str = "Summary";
        const FIELDS: &'static [&'static str] = &["id"];
        type Slots = (Required<i64>,);
        fn make((id,): Values<Self>) -> Self {
            Self { id }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id,)
        }
    }
    ops_runtime::__generated::table!(super::Summary);

    impl Record for super::Full {
        const NAME: &'static str = "Full";
        const FIELDS: &'static [&'static str] = &["id", "pet"];
        type Slots = (Required<i64>, Required<super::Cat>);
        fn make((id, pet): Values<Self>) -> Self {
            Self { id, pet }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.pet)
        }
    }
    ops_runtime::__generated::table!(super::Full);

    impl Record for super::SummaryPage {
        const NAME: &'static str = "SummaryPage";
        const FIELDS: &'static [&'static str] = &["users"];
        type Slots = (Required<Vec<super::Summary>>,);
        fn make((users,): Values<Self>) -> Self {
            Self { users }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.users,)
        }
    }
    ops_runtime::__generated::table!(super::SummaryPage);

    impl Record for super::FullPage {
        const NAME: &'static str = "FullPage";
        const FIELDS: &'static [&'static str] = &["users"];
        type Slots = (Required<Vec<super::Full>>,);
        fn make((users,): Values<Self>) -> Self {
            Self { users }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.users,)
        }
    }
    ops_runtime::__generated::table!(super::FullPage);

    impl Record for super::Loose {
        const NAME: &'static str = "Loose";
        const FIELDS: &'static [&'static str] = &["data"];
        type Slots = (Required<serde_json::Value>,);
        fn make((data,): Values<Self>) -> Self {
            Self { data }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.data,)
        }
    }
    ops_runtime::__generated::table!(super::Loose);

    impl Record for super::Typed {
        const NAME: &'static str = "Typed";
        const FIELDS: &'static [&'static str] = &["data"];
        type Slots = (Required<super::Cat>,);
        fn make((data,): Values<Self>) -> Self {
            Self { data }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.data,)
        }
    }
    ops_runtime::__generated::table!(super::Typed);

    impl Record for super::Counted {
        const NAME: &'static str = "Counted";
        const FIELDS: &'static [&'static str] = &["pet"];
        type Slots = (Required<super::Cat>, Rest<i64>);
        fn make((pet, extra): Values<Self>) -> Self {
            Self { pet, extra }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.pet, &self.extra)
        }
    }
    ops_runtime::__generated::table!(super::Counted);

    impl Record for super::Owned {
        const NAME: &'static str = "Owned";
        const FIELDS: &'static [&'static str] = &["pet"];
        type Slots = (Required<super::Dog>,);
        fn make((pet,): Values<Self>) -> Self {
            Self { pet }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.pet,)
        }
    }
    ops_runtime::__generated::table!(super::Owned);

    ops_runtime::__generated::untagged!(super::Envelope { Object["data"] => Loose, Object["data"] => Typed });
    ops_runtime::__generated::untagged!(super::CatsFirst { Array => Cats, Array => Maps, Any => Any });
    ops_runtime::__generated::untagged!(super::CatsLast { Any => Any, Array => Cats });
    ops_runtime::__generated::untagged!(super::NamedOrAny { Open => Cats, Any => Any });
    ops_runtime::__generated::untagged!(super::Kept { Open["pet"] => Counted, Object["pet"] => Owned });
    ops_runtime::__generated::names!(super::Bark { "loud" => Loud, _ => Other });
    ops_runtime::__generated::untagged!(super::Pets { Array => Cats, Array => Dogs });
    ops_runtime::__generated::untagged!(super::ByName { Open => Cats, Open => Dogs });
    ops_runtime::__generated::untagged!(super::Page { Object["users"] => Summary, Object["users"] => Full });
    ops_runtime::__generated::untagged!(super::Any { Open => Pets, Open => Pages });
}

fn cat(claws: Option<i64>, name: Option<&str>) -> Cat {
    Cat { claws, name: name.map(str::to_owned) }
}

fn dog(bark: Option<Bark>, name: Option<&str>) -> Dog {
    Dog { bark, name: name.map(str::to_owned) }
}

#[test]
fn lists_and_maps_are_of_the_records_that_declare_their_properties() {
    assert_eq!(same::<Pets>(&json!([{"claws": 1}])), Pets::Cats(vec![cat(Some(1), None)]));
    assert_eq!(same::<Pets>(&json!([{"bark": "loud"}])), Pets::Dogs(vec![dog(Some(Bark::Loud), None)]));
    let [named, loud] = [dog(None, Some("n")), dog(Some(Bark::Loud), None)];
    assert_eq!(same::<Pets>(&json!([{"name": "n"}, {"bark": "loud"}])), Pets::Dogs(vec![named, loud.clone()]));
    assert_eq!(same::<Pets>(&json!([])), Pets::Cats(Vec::new()), "of equals the first");
    let by_name = same::<ByName>(&json!({"a": {"bark": "loud"}}));
    assert_eq!(by_name, ByName::Dogs([("a".to_owned(), loud)].into()));
}

#[test]
fn what_no_variant_declares_chooses_none() {
    let pets = |value: Value| {
        let pets: Pets = from_value(&value).unwrap();
        assert_eq!(from_str::<Pets>(&value.to_string()).unwrap(), pets, "{value}");
        pets
    };
    assert_eq!(pets(json!([{"name": "n", "new": 1}])), Pets::Cats(vec![cat(None, Some("n"))]), "of equals the first");
    assert_eq!(pets(json!([{"bark": "loud", "new": 1}])), Pets::Dogs(vec![dog(Some(Bark::Loud), None)]));
    assert_eq!(pets(json!([{"claws": 1, "new": 1}])), Pets::Cats(vec![cat(Some(1), None)]));
}

/// An unknown constant is kept, and an undeclared property is not.
#[test]
fn an_unknown_constant_is_less_of_a_loss() {
    let barks = Bark::Other("new".to_owned());
    assert_eq!(same::<Pets>(&json!([{"bark": "new"}])), Pets::Dogs(vec![dog(Some(barks), None)]));
}

#[test]
fn the_contents_of_an_envelope_tell_it() {
    let full = |pet: Cat| Page::Full(FullPage { users: vec![Full { id: 1, pet }] });
    let page = same::<Page>(&json!({"users": [{"id": 1, "pet": {"name": "n"}}]}));
    assert_eq!(page, full(cat(None, Some("n"))));
    let page = same::<Page>(&json!({"users": [{"id": 1}]}));
    assert_eq!(page, Page::Summary(SummaryPage { users: vec![Summary { id: 1 }] }));
    // Two properties of the pet are dropped, which is less than the pet.
    let value = json!({"users": [{"id": 1, "pet": {"name": "n", "x": 1, "y": 2}}]});
    assert_eq!(from_value::<Page>(&value).unwrap(), full(cat(None, Some("n"))));
    // If the likelier variant does not fit, the other one takes the value all the same.
    let value = json!({"users": [{"id": 1, "pet": {"name": 7}}]});
    let page: Page = from_value(&value).unwrap();
    assert_eq!(to_value(&page).unwrap(), json!({"users": [{"id": 1}]}));
}

/// Otherwise, a property that a server adds would make typed values any JSON.
#[test]
fn a_variant_that_declares_properties_inside_comes_before_one_that_keeps_all() {
    fn read<T: DeserializeOwned + PartialEq + Debug>(value: &Value) -> T {
        let read = from_value(value).unwrap();
        assert_eq!(from_str::<T>(&value.to_string()).unwrap(), read, "{value}");
        read
    }
    let claws = || cat(Some(1), None);
    for inner in [json!({"claws": 1}), json!({"claws": 1, "new": [{"deep": 2}]})] {
        let list = json!([inner]);
        assert_eq!(read::<CatsFirst>(&list), CatsFirst::Cats(vec![claws()]));
        assert_eq!(read::<CatsLast>(&list), CatsLast::Cats(vec![claws()]));
        let named = NamedOrAny::Cats([("a".to_owned(), claws())].into());
        assert_eq!(read::<NamedOrAny>(&json!({"a": inner})), named);
        assert_eq!(read::<Envelope>(&json!({"data": inner})), Envelope::Typed(Typed { data: claws() }));
    }
    // What declares nothing of a value does not take it from one that keeps it.
    let bark = json!([{"bark": 1}]);
    assert_eq!(same::<CatsFirst>(&bark), CatsFirst::Maps(vec![[("bark".to_owned(), json!(1))].into()]));
    assert_eq!(same::<CatsLast>(&bark), CatsLast::Any(bark.clone()));
    let envelope = same::<Envelope>(&json!({"data": {"bark": 1}}));
    assert_eq!(envelope, Envelope::Loose(Loose { data: json!({"bark": 1}) }));
    assert_eq!(same::<NamedOrAny>(&json!({"a": {"bark": 1}})), NamedOrAny::Any(json!({"a": {"bark": 1}})));
    assert_eq!(same::<CatsFirst>(&json!([1])), CatsFirst::Any(json!([1])));
}

/// What a variant keeps of the object itself counts before what it drops inside.
#[test]
fn a_variant_that_keeps_the_rest_is_not_left_for_one_that_drops_it() {
    let value = json!({"pet": {"bark": "loud"}, "x": 1});
    let counted = Counted { pet: cat(None, None), extra: [("x".to_owned(), 1)].into() };
    assert_eq!(from_value::<Kept>(&value).unwrap(), Kept::Counted(counted));
    let owned = Owned { pet: dog(Some(Bark::Loud), None) };
    assert_eq!(same::<Kept>(&json!({"pet": {"bark": "loud"}})), Kept::Owned(owned));
}

/// Properties count, not their sizes.
#[test]
fn a_long_text_chooses_no_variant() {
    for length in [1, 1000] {
        let value = json!([{"bark": "x".repeat(length), "claws": 1}]);
        assert_eq!(from_value::<Pets>(&value).unwrap(), Pets::Cats(vec![cat(Some(1), None)]));
    }
}

/// What the variants of an inner union drop counts only if they are chosen.
#[test]
fn a_union_in_a_union_drops_what_its_variant_drops() {
    let any = same::<Any>(&json!({"a": [{"bark": "loud"}]}));
    let dogs = Pets::Dogs(vec![dog(Some(Bark::Loud), None)]);
    assert_eq!(any, Any::Pets([("a".to_owned(), dogs)].into()));
    let any = same::<Any>(&json!({"a": {"users": [{"id": 1, "pet": {"claws": 2}}]}}));
    let users = vec![Full { id: 1, pet: cat(Some(2), None) }];
    assert_eq!(any, Any::Pages([("a".to_owned(), Page::Full(FullPage { users }))].into()));
}

/// A type of the user's that passes over what it does not declare.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bird {
    #[serde(skip_serializing_if = "Option::is_none")]
    wings: Option<i64>,
}

#[derive(Debug, PartialEq)]
enum Flock {
    Birds(Vec<Bird>),
    Cats(Vec<Cat>),
}

ops_runtime::__generated::untagged!(Flock { Array => Birds, Array => Cats });

#[test]
fn a_type_of_the_users_drops_properties_too() {
    assert_eq!(same::<Flock>(&json!([{"wings": 2}])), Flock::Birds(vec![Bird { wings: Some(2) }]));
    assert_eq!(same::<Flock>(&json!([{"claws": 1}])), Flock::Cats(vec![cat(Some(1), None)]));
}
