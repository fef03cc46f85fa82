//! Every form that a generator prints: the types as they are, the impls in a module beside them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A record with every flavour of field.
pub struct Pet {
    /// Required.
    pub id: i64,
    /// Required, and null is a value.
    pub owner: Option<String>,
    /// Optional.
    pub tag: Option<String>,
    /// Optional, and null is a value.
    pub weight: Option<Option<f64>>,
    /// Optional with a default.
    pub limit: u32,
    /// Optional with a default that has to be built.
    pub status: Status,
    /// Optional and recursive.
    pub parent: Option<Box<Pet>>,
    /// Required, with a name that is no identifier.
    pub type_: Vec<Level>,
}

/// A record that keeps what it does not declare.
pub struct Labels {
    pub name: Option<String>,
    pub extra: BTreeMap<String, i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Status {
    New,
    Paid,
    Other(String),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Level {
    One,
    Auto,
    Off,
    Half,
    Other(Value),
}

/// Declares its tag.
pub struct Push {
    pub kind: String,
    pub commits: Vec<String>,
}

/// Does not declare its tag.
pub struct Issue {
    pub title: String,
    pub pet: Option<Pet>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    Push(Push),
    Issue(Box<Issue>),
    Map(BTreeMap<String, i64>),
    Labels(Labels),
    Raw(Value),
    Other(Value),
}

/// Tags that are no strings.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    Yes(Labels),
    No(Labels),
    Third(Labels),
    Other(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Id {
    Number(i64),
    Text(String),
    Push(Push),
    List(Vec<Id>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Circle(Circle),
    Square(Square),
    Group(Vec<Shape>),
    Points(Vec<f64>),
    Nothing(()),
}

pub struct Circle {
    pub radius: f64,
    pub name: Option<String>,
}

pub struct Square {
    pub side: f64,
    pub inner: Option<Box<Shape>>,
}

/// Nothing but what it does not declare.
pub struct Open {
    pub extra: BTreeMap<String, Tree>,
}

pub struct Empty {}

/// Names that JSON writes with escapes.
pub struct Quoted {
    pub quote: i64,
    pub slash: i64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Tree(pub Vec<Tree>);

/// A tagged union with another one inside, told apart by the same property, and one by another.
#[derive(Debug, Clone, PartialEq)]
pub enum Outer {
    Event(Event),
    Answer(Box<Answer>),
    Empty(Empty),
    Other(Value),
}

/// A tagged union with another one inside, one of whose variants declares the tags of both.
#[derive(Debug, Clone, PartialEq)]
pub enum Ledger {
    Payment(Payment),
    Empty(Empty),
    Other(Value),
}

#[derive(Debug, Clone, PartialEq)]
pub enum Payment {
    Card(Card),
    Bank(Labels),
    Map(BTreeMap<String, i64>),
    Other(Value),
}

pub struct Card {
    pub category: String,
    pub number: String,
}

/// An untagged union with a tagged one inside, and a variant that takes whatever is left.
#[derive(Debug, Clone, PartialEq)]
pub enum Any {
    Outer(Outer),
    Scalar(Level),
    Rest(Value),
}

/// A tagged union with a box around what keeps undeclared properties.
#[derive(Debug, Clone, PartialEq)]
pub enum Boxed {
    Labels(Box<Labels>),
    Other(Value),
}

/// A map, and a tuple.
pub type Prices = BTreeMap<String, (String, f64)>;

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Pet {
        const NAME: &'static str = "Pet";
        const FIELDS: &'static [&'static str] = &["id", "owner", "tag", "weight", "limit", "status", "parent", "$type"];
        type Slots = (
            Required<i64>,
            Required<Option<String>>,
            Optional<String>,
            Nullable<Option<f64>>,
            Defaulted<u32>,
            Defaulted<super::Status>,
            Optional<Box<super::Pet>>,
            Required<Vec<super::Level>>,
        );
        fn make((id, owner, tag, weight, limit, status, parent, type_): Values<Self>) -> Self {
            Self {
                id,
                owner,
                tag,
                weight,
                limit: limit.unwrap_or(20),
                status: status.unwrap_or_else(|| "paid".into()),
                parent,
                type_,
            }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.id, &self.owner, &self.tag, &self.weight, &self.limit, &self.status, &self.parent, &self.type_)
        }
    }
    ops_runtime::__generated::table!(super::Pet);

    impl Record for super::Labels {
        const NAME: &'static str = "Labels";
        const FIELDS: &'static [&'static str] = &["name"];
        type Slots = (Optional<String>, Rest<i64>);
        fn make((name, extra): Values<Self>) -> Self {
            Self { name, extra }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.name, &self.extra)
        }
    }
    ops_runtime::__generated::table!(super::Labels, Default, ());

    impl Record for super::Push {
        const NAME: &'static str = "Push";
        const FIELDS: &'static [&'static str] = &["kind", "commits"];
        type Slots = (Required<String>, Required<Vec<String>>);
        fn make((kind, commits): Values<Self>) -> Self {
            Self { kind, commits }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.kind, &self.commits)
        }
    }
    ops_runtime::__generated::table!(super::Push);

    impl Record for super::Issue {
        const NAME: &'static str = "Issue";
        const FIELDS: &'static [&'static str] = &["title", "pet"];
        type Slots = (Required<String>, Optional<super::Pet>);
        fn make((title, pet): Values<Self>) -> Self {
            Self { title, pet }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.title, &self.pet)
        }
    }
    ops_runtime::__generated::table!(super::Issue);

    impl Record for super::Circle {
        const NAME: &'static str = "Circle";
        const FIELDS: &'static [&'static str] = &["radius", "name"];
        type Slots = (Required<f64>, Optional<String>);
        fn make((radius, name): Values<Self>) -> Self {
            Self { radius, name }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.radius, &self.name)
        }
    }
    ops_runtime::__generated::table!(super::Circle);

    impl Record for super::Square {
        const NAME: &'static str = "Square";
        const FIELDS: &'static [&'static str] = &["side", "inner"];
        type Slots = (Required<f64>, Optional<Box<super::Shape>>);
        fn make((side, inner): Values<Self>) -> Self {
            Self { side, inner }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.side, &self.inner)
        }
    }
    ops_runtime::__generated::table!(super::Square);

    impl Record for super::Open {
        const NAME: &'static str = "Open";
        const FIELDS: &'static [&'static str] = &[];
        type Slots = (Rest<super::Tree>,);
        fn make((extra,): Values<Self>) -> Self {
            Self { extra }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.extra,)
        }
    }
    ops_runtime::__generated::table!(super::Open);

    impl Record for super::Empty {
        const NAME: &'static str = "Empty";
        const FIELDS: &'static [&'static str] = &[];
        type Slots = ();
        fn make((): Values<Self>) -> Self {
            Self {}
        }
        fn fields(&self) -> Fields<'_, Self> {}
    }
    ops_runtime::__generated::table!(super::Empty);

    impl Record for super::Quoted {
        const NAME: &'static str = "Quoted";
        const FIELDS: &'static [&'static str] = &["a\"b", "c\\d"];
        type Slots = (Required<i64>, Required<i64>);
        fn make((quote, slash): Values<Self>) -> Self {
            Self { quote, slash }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.quote, &self.slash)
        }
    }
    ops_runtime::__generated::table!(super::Quoted);

    impl Record for super::Card {
        const NAME: &'static str = "Card";
        const FIELDS: &'static [&'static str] = &["category", "number", "method"];
        const CONSTANTS: &'static [Literal<'static>] = &[Literal::Text("card")];
        type Slots = (Required<String>, Required<String>);
        fn make((category, number): Values<Self>) -> Self {
            Self { category, number }
        }
        fn fields(&self) -> Fields<'_, Self> {
            (&self.category, &self.number)
        }
    }
    ops_runtime::__generated::table!(super::Card);

    ops_runtime::__generated::newtype!(super::Tree);
    ops_runtime::__generated::tagged!(super::Ledger["category"] {
        "payment" | "transfer" => Payment,
        "empty" => Empty,
        _ => Other
    });
    ops_runtime::__generated::tagged!(super::Payment["method"] { "card" => Card, "bank" => Bank, "map" => Map, _ => Other });
    ops_runtime::__generated::tagged!(super::Outer["kind"] {
        "push" | "map" | "issue" => Event,
        "answer" => Answer,
        "empty" => Empty,
        _ => Other
    });
    ops_runtime::__generated::tagged!(super::Boxed["kind"] { "labels" => Labels, _ => Other });
    ops_runtime::__generated::untagged!(super::Any { Object["kind"] => Outer, String | Number | Boolean => Scalar, Any => Rest });

    ops_runtime::__generated::names!(super::Status { "new" => New, "paid" | "settled" => Paid, _ => Other });
    ops_runtime::__generated::values!(super::Level { 1 => One, "auto" => Auto, false => Off, 0.5 => Half, _ => Other });
    ops_runtime::__generated::tagged!(super::Event["kind"] {
        "push" | "force-push" => Push,
        "issue" => Issue,
        "map" => Map,
        "labels" => Labels,
        "raw" => Raw,
        _ => Other
    });
    ops_runtime::__generated::tagged!(super::Answer["ok"] { true => Yes, false => No, -3 => Third, _ => Other });
    ops_runtime::__generated::untagged!(super::Id { Integer => Number, String => Text, Object["kind"; "commits"] => Push, Array => List });
    ops_runtime::__generated::untagged!(super::Shape {
        Object["radius"; "name"] => Circle,
        Object["side"; "inner"] => Square,
        Array => Group,
        Array => Points,
        Null => Nothing
    });
}
