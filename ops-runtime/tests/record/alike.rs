//! Unions whose variants declare the same properties: the values of these properties tell the variants apart.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use ops_runtime::record::{from_str, from_value};
use serde_json::{Value, json};

use super::shapes::same;

#[derive(Debug, Clone, PartialEq)]
pub enum Early {
    Queued,
    Running,
    Other(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Late {
    Done,
    Failed,
    Other(String),
}

/// An open enum: any other string is a valid value, too.
#[derive(Debug, Clone, PartialEq)]
pub enum Model {
    Small,
    Other(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Choice {
    Late(Vec<Late>),
    Model(Vec<Model>),
    Early(Vec<Early>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Few {
    One,
    Two,
    Other(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum More {
    Three,
    Auto,
    Other(Value),
}

pub struct Started {
    pub state: Early,
    pub steps: Option<Vec<Early>>,
}

pub struct Ended {
    pub state: Late,
    pub steps: Option<Vec<Late>>,
}

/// Declares no property of `Started` or `Ended`.
pub struct Failure {
    pub message: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Job {
    Failure(Failure),
    Started(Started),
    Ended(Ended),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Word {
    Early(Early),
    Late(Late),
    Few(Few),
    More(More),
}

/// `Thing` is an untagged union of two tagged unions, `Pet` and `Car`.
#[derive(Debug, Clone, PartialEq)]
pub enum Pet {
    Cat(Failure),
    Other(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Car {
    Van(Failure),
    Other(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Thing {
    Pet(Pet),
    Car(Car),
}

/// A chain of steps. Each step is one of two kinds.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Early(Box<EarlyStep>),
    Late(Box<LateStep>),
}

pub struct EarlyStep {
    pub next: Option<Step>,
    pub state: Option<Early>,
}

pub struct LateStep {
    pub next: Option<Step>,
    pub state: Option<Late>,
}

/// A record that keeps undeclared properties.
pub struct Named {
    pub message: Option<String>,
    pub extra: BTreeMap<String, Early>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Stock {
    Failure(Failure),
    Counts(BTreeMap<String, i64>),
    Named(Named),
}

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Started {
        const NAME: &'static str = "Started";
        const FIELDS: &'static [&'static str] = &["state", "steps"];
        type Slots = (Required<super::Early>, Optional<Vec<super::Early>>);
        fn make((state, steps): Values<Self>) -> Self {
            Self { state, steps }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.state, &self.steps)
        }
    }
    ops_runtime::__generated::table!(super::Started);

    impl Record for super::Ended {
        const NAME: &'static str = "Ended";
        const FIELDS: &'static [&'static str] = &["state", "steps"];
        type Slots = (Required<super::Late>, Optional<Vec<super::Late>>);
        fn make((state, steps): Values<Self>) -> Self {
            Self { state, steps }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.state, &self.steps)
        }
    }
    ops_runtime::__generated::table!(super::Ended);

    impl Record for super::Failure {
        const NAME: &'static str = "Failure";
        const FIELDS: &'static [&'static str] = &["message"];
        type Slots = (Optional<String>,);
        fn make((message,): Values<Self>) -> Self {
            Self { message }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.message,)
        }
    }
    ops_runtime::__generated::table!(super::Failure);

    impl Record for super::EarlyStep {
        const NAME: &'static str = "EarlyStep";
        const FIELDS: &'static [&'static str] = &["next", "state"];
        type Slots = (Optional<super::Step>, Optional<super::Early>);
        fn make((next, state): Values<Self>) -> Self {
            Self { next, state }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.next, &self.state)
        }
    }
    ops_runtime::__generated::table!(super::EarlyStep);

    impl Record for super::LateStep {
        const NAME: &'static str = "LateStep";
        const FIELDS: &'static [&'static str] = &["next", "state"];
        type Slots = (Optional<super::Step>, Optional<super::Late>);
        fn make((next, state): Values<Self>) -> Self {
            Self { next, state }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.next, &self.state)
        }
    }
    ops_runtime::__generated::table!(super::LateStep);

    impl Record for super::Named {
        const NAME: &'static str = "Named";
        const FIELDS: &'static [&'static str] = &["message"];
        type Slots = (Optional<String>, Rest<super::Early>);
        fn make((message, extra): Values<Self>) -> Self {
            Self { message, extra }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.message, &self.extra)
        }
    }
    ops_runtime::__generated::table!(super::Named);

    ops_runtime::__generated::names!(super::Early { "queued" => Queued, "running" => Running, _ => Other });
    ops_runtime::__generated::names!(super::Late { "done" => Done, "failed" => Failed, _ => Other });
    ops_runtime::__generated::names!(super::Model { "small" => Small, _ => Other } open = true);
    ops_runtime::__generated::untagged!(super::Choice { Array => Late, Array => Model, Array => Early });
    ops_runtime::__generated::values!(super::Few { 1 => One, 2 => Two, _ => Other });
    ops_runtime::__generated::values!(super::More { 3 => Three, "auto" => Auto, _ => Other });
    ops_runtime::__generated::untagged!(super::Job {
        Object[; "message"] => Failure,
        Object["state"; "steps"] => Started,
        Object["state"; "steps"] => Ended
    });
    ops_runtime::__generated::untagged!(super::Word {
        String => Early,
        String => Late,
        Number => Few,
        String | Number => More
    });
    ops_runtime::__generated::tagged!(super::Pet["kind"] { "cat" => Cat, _ => Other });
    ops_runtime::__generated::tagged!(super::Car["kind"] { "van" => Van, _ => Other });
    ops_runtime::__generated::untagged!(super::Thing { Object["kind"] => Pet, Object["kind"] => Car });
    ops_runtime::__generated::untagged!(super::Step {
        Object[; "next", "state"] => Early,
        Object[; "next", "state"] => Late
    });
    ops_runtime::__generated::untagged!(super::Stock {
        Object[; "message"] => Failure,
        Open => Counts,
        Open[; "message"] => Named
    });
}

fn started(state: Early) -> Job {
    Job::Started(Started { state, steps: None })
}

fn ended(state: Late) -> Job {
    Job::Ended(Ended { state, steps: None })
}

#[test]
fn a_variant_that_knows_the_constants_is_meant() {
    assert_eq!(same::<Job>(&json!({"state": "running"})), started(Early::Running));
    assert_eq!(same::<Job>(&json!({"state": "failed"})), ended(Late::Failed));
    // With a constant that no variant knows, the first variant is taken.
    assert_eq!(same::<Job>(&json!({"state": "lost"})), started(Early::Other("lost".into())));
    // Unknown constants in other items of the list do not count.
    let list = json!([{"state": "lost"}, {"state": "done"}, {"state": "queued"}, {"state": "lost"}]);
    let lost = || started(Early::Other("lost".into()));
    assert_eq!(same::<Vec<Job>>(&list), [lost(), ended(Late::Done), started(Early::Queued), lost()]);
}

#[test]
fn the_variant_with_the_fewest_unknown_constants_is_meant() {
    let job = same::<Job>(&json!({"state": "done", "steps": ["failed", "lost"]}));
    let steps = vec![Late::Failed, Late::Other("lost".into())];
    assert_eq!(job, Job::Ended(Ended { state: Late::Done, steps: Some(steps) }));
    let job = same::<Job>(&json!({"state": "done", "steps": ["queued"]}));
    let (state, steps) = (Early::Other("done".into()), Some(vec![Early::Queued]));
    assert_eq!(job, Job::Started(Started { state, steps }), "of equals the first");
}

/// If a server adds a constant, the object is not read as a variant that declares fewer of its properties.
#[test]
fn a_new_constant_drops_nothing() {
    assert_eq!(same::<Job>(&json!({"state": "new"})), started(Early::Other("new".into())));
    let named = same::<Stock>(&json!({"a": "new"}));
    assert_eq!(named, Stock::Named(Named { message: None, extra: [("a".into(), Early::Other("new".into()))].into() }));
}

/// In an enum beside plain strings, no string counts as unknown.
#[test]
fn an_open_enum_knows_all_strings() {
    let choice = |text: &str| same::<Choice>(&json!([text]));
    assert_eq!(choice("small"), Choice::Model(vec![Model::Small]));
    assert_eq!(choice("done"), Choice::Late(vec![Late::Done]));
    for text in ["new", "queued"] {
        assert_eq!(choice(text), Choice::Model(vec![Model::Other(text.to_owned())]));
    }
}

#[test]
fn a_scalar_is_of_the_enum_that_knows_it() {
    assert_eq!(same::<Word>(&json!("running")), Word::Early(Early::Running));
    assert_eq!(same::<Word>(&json!("done")), Word::Late(Late::Done));
    assert_eq!(same::<Word>(&json!("auto")), Word::More(More::Auto));
    assert_eq!(same::<Word>(&json!("lost")), Word::Early(Early::Other("lost".into())));
    assert_eq!(same::<Word>(&json!(2)), Word::Few(Few::Two));
    assert_eq!(same::<Word>(&json!(3)), Word::More(More::Three));
    assert_eq!(same::<Word>(&json!(4.5)), Word::Few(Few::Other(json!(4.5))));
}

#[test]
fn an_object_is_of_the_union_that_has_its_tag() {
    let none = || Failure { message: None };
    assert_eq!(same::<Thing>(&json!({"kind": "cat"})), Thing::Pet(Pet::Cat(none())));
    assert_eq!(same::<Thing>(&json!({"kind": "van"})), Thing::Car(Car::Van(none())));
    let boat = json!({"kind": "boat"});
    assert_eq!(same::<Thing>(&boat), Thing::Pet(Pet::Other(boat)));
}

#[test]
fn of_variants_that_declare_as_much_one_that_keeps_the_rest_is_meant() {
    let failure = |text: Option<&str>| Stock::Failure(Failure { message: text.map(str::to_owned) });
    assert_eq!(same::<Stock>(&json!({"apples": 7, "pears": 3})), {
        Stock::Counts([("apples".into(), 7), ("pears".into(), 3)].into())
    });
    // If a value has no undeclared properties, the first variant is taken.
    assert_eq!(same::<Stock>(&json!({})), failure(None));
    assert_eq!(same::<Stock>(&json!({"message": "no"})), failure(Some("no")));
    let named = same::<Stock>(&json!({"message": "no", "a": "queued"}));
    assert_eq!(named, {
        Stock::Named(Named { message: Some("no".into()), extra: [("a".into(), Early::Queued)].into() })
    });
    // If the undeclared values do not fit a variant, the next one is taken.
    assert_eq!(from_str::<Stock>(r#"{"message": "no", "a": 1}"#).unwrap(), failure(Some("no")));
    assert_eq!(from_value::<Stock>(&json!({"a": true})).unwrap(), failure(None));
}

/// Without a limit, each level would be read twice for each level above it.
#[test]
fn unknown_constants_and_undeclared_properties_cost_no_exponential_time() {
    let steps = |levels: usize, state: &str| {
        format!(r#"{}{{"state": "{state}"}}{}"#, r#"{"next": "#.repeat(levels), "}".repeat(levels))
    };
    let start = Instant::now();
    for (levels, state, expected) in [
        (100, "lost", Step::Early(EarlyStep { next: None, state: Some(Early::Other("lost".into())) }.into())),
        (100, "done", Step::Late(LateStep { next: None, state: Some(Late::Done) }.into())),
        (3, "queued", Step::Early(EarlyStep { next: None, state: Some(Early::Queued) }.into())),
        (100, r#"queued", "new": "1"#, Step::Early(EarlyStep { next: None, state: Some(Early::Queued) }.into())),
    ] {
        let mut step = from_str::<Step>(&steps(levels, state)).unwrap();
        for level in 0..levels {
            let Step::Early(early) = step else { panic!("{state}: {level}: {step:?}") };
            step = early.next.unwrap();
        }
        assert_eq!(step, expected);
    }
    // Each value of a list has a limit of its own, by its size.
    let chain = format!("{}{{\"new\": 1}}{}", r#"{"next": "#.repeat(12), r#", "new": 1}"#.repeat(12));
    let list = format!("[{}]", vec![chain; 1_000].join(", "));
    assert_eq!(from_str::<Vec<Step>>(&list).unwrap().len(), 1_000);
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
}
