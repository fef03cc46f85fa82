//! Every form that a generator prints: the types as they are, the impls in a module beside them.

use std::collections::BTreeMap;

use serde_json::Value;

/// A record with every flavour of field.
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq, Default)]
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
#[derive(Debug, Clone, PartialEq)]
pub struct Push {
    pub kind: String,
    pub commits: Vec<String>,
}

/// Does not declare its tag.
#[derive(Debug, Clone, PartialEq)]
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

#[derive(Debug, Clone, PartialEq)]
pub struct Circle {
    pub radius: f64,
    pub name: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Square {
    pub side: f64,
    pub inner: Option<Box<Shape>>,
}

/// Nothing but what it does not declare.
#[derive(Debug, Clone, PartialEq)]
pub struct Open {
    pub extra: BTreeMap<String, Tree>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Empty {}

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

/// An untagged union with a tagged one inside, and a variant that takes whatever is left.
#[derive(Debug, Clone, PartialEq)]
pub enum Any {
    Outer(Outer),
    Scalar(Level),
    Rest(Value),
}

/// A map, and a tuple.
pub type Prices = BTreeMap<String, (String, f64)>;

mod impls {
    use ops_runtime::record::prelude::*;

    impl Record for super::Pet {
        const NAME: &'static str = "Pet";
        const FIELDS: &'static [&'static str] = &["id", "owner", "tag", "weight", "limit", "status", "parent", "$type"];
        fn index(name: &str) -> usize {
            match name {
                "id" => 0,
                "owner" => 1,
                "tag" => 2,
                "weight" => 3,
                "limit" => 4,
                "status" => 5,
                "parent" => 6,
                "$type" => 7,
                _ => 8,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None, None, None, None, None, None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    2 => m.put(&mut s.2),
                    3 => m.put(&mut s.3),
                    4 => m.put(&mut s.4),
                    5 => m.put(&mut s.5),
                    6 => m.put(&mut s.6),
                    7 => m.put(&mut s.7),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(id), Some(owner), tag, weight, limit, status, parent, Some(type_)) => Ok(Self {
                    id,
                    owner,
                    tag,
                    weight,
                    limit: limit.unwrap_or(20),
                    status: status.unwrap_or_else(|| "paid".into()),
                    parent,
                    type_,
                }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none()), (7, s.7.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "id", &self.id)?;
            put(m, "owner", &self.owner)?;
            put_some(m, "tag", &self.tag)?;
            put_some(m, "weight", &self.weight)?;
            put(m, "limit", &self.limit)?;
            put(m, "status", &self.status)?;
            put_some(m, "parent", &self.parent)?;
            put(m, "$type", &self.type_)
        }
    }
    ops_runtime::record!(super::Pet);

    impl Record for super::Labels {
        const NAME: &'static str = "Labels";
        const FIELDS: &'static [&'static str] = &["name"];
        fn index(name: &str) -> usize {
            match name {
                "name" => 0,
                _ => 1,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None,);
            let mut extra = Default::default();
            while let Some(i) = m.next_or(&mut extra)? {
                match i {
                    0 => m.put(&mut s.0),
                    _ => m.skip(),
                }?
            }
            let (name,) = s;
            Ok(Self { name, extra })
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put_some(m, "name", &self.name)?;
            put_extra::<Self, _, _>(m, &self.extra)
        }
    }
    ops_runtime::record!(super::Labels);

    impl Record for super::Push {
        const NAME: &'static str = "Push";
        const FIELDS: &'static [&'static str] = &["kind", "commits"];
        fn index(name: &str) -> usize {
            match name {
                "kind" => 0,
                "commits" => 1,
                _ => 2,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(kind), Some(commits)) => Ok(Self { kind, commits }),
                s => Err(m.missing(&[(0, s.0.is_none()), (1, s.1.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "kind", &self.kind)?;
            put(m, "commits", &self.commits)
        }
    }
    ops_runtime::record!(super::Push);

    impl Record for super::Issue {
        const NAME: &'static str = "Issue";
        const FIELDS: &'static [&'static str] = &["title", "pet"];
        fn index(name: &str) -> usize {
            match name {
                "title" => 0,
                "pet" => 1,
                _ => 2,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(title), pet) => Ok(Self { title, pet }),
                s => Err(m.missing(&[(0, s.0.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "title", &self.title)?;
            put_some(m, "pet", &self.pet)
        }
    }
    ops_runtime::record!(super::Issue);

    impl Record for super::Circle {
        const NAME: &'static str = "Circle";
        const FIELDS: &'static [&'static str] = &["radius", "name"];
        fn index(name: &str) -> usize {
            match name {
                "radius" => 0,
                "name" => 1,
                _ => 2,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(radius), name) => Ok(Self { radius, name }),
                s => Err(m.missing(&[(0, s.0.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "radius", &self.radius)?;
            put_some(m, "name", &self.name)
        }
    }
    ops_runtime::record!(super::Circle);

    impl Record for super::Square {
        const NAME: &'static str = "Square";
        const FIELDS: &'static [&'static str] = &["side", "inner"];
        fn index(name: &str) -> usize {
            match name {
                "side" => 0,
                "inner" => 1,
                _ => 2,
            }
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut s = (None, None);
            while let Some(i) = m.next()? {
                match i {
                    0 => m.put(&mut s.0),
                    1 => m.put(&mut s.1),
                    _ => m.skip(),
                }?
            }
            match s {
                (Some(side), inner) => Ok(Self { side, inner }),
                s => Err(m.missing(&[(0, s.0.is_none())])),
            }
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put(m, "side", &self.side)?;
            put_some(m, "inner", &self.inner)
        }
    }
    ops_runtime::record!(super::Square);

    impl Record for super::Open {
        const NAME: &'static str = "Open";
        const FIELDS: &'static [&'static str] = &[];
        fn index(_: &str) -> usize {
            0
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            let mut extra = Default::default();
            while m.next_or(&mut extra)?.is_some() {
                m.skip()?
            }
            Ok(Self { extra })
        }
        fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
            put_extra::<Self, _, _>(m, &self.extra)
        }
    }
    ops_runtime::record!(super::Open);

    impl Record for super::Empty {
        const NAME: &'static str = "Empty";
        const FIELDS: &'static [&'static str] = &[];
        fn index(_: &str) -> usize {
            0
        }
        #[inline]
        fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
            while m.next()?.is_some() {
                m.skip()?
            }
            Ok(Self {})
        }
        fn write<M: SerializeMap>(&self, _: &mut M) -> Result<(), M::Error> {
            Ok(())
        }
    }
    ops_runtime::record!(super::Empty);

    ops_runtime::newtype!(super::Tree);
    ops_runtime::tagged!(super::Outer["kind"] {
        "push" | "map" | "issue" => Event,
        "answer" => Answer,
        "empty" => Empty,
        _ => Other
    });
    ops_runtime::untagged!(super::Any { Object["kind"] => Outer, String | Number | Boolean => Scalar, Any => Rest });

    ops_runtime::names!(super::Status { "new" => New, "paid" | "settled" => Paid, _ => Other });
    ops_runtime::values!(super::Level { 1 => One, "auto" => Auto, false => Off, 0.5 => Half, _ => Other });
    ops_runtime::tagged!(super::Event["kind"] {
        "push" | "force-push" => Push,
        "issue" => Issue,
        "map" => Map,
        "labels" => Labels,
        "raw" => Raw,
        _ => Other
    });
    ops_runtime::tagged!(super::Answer["ok"] { true => Yes, false => No, -3 => Third, _ => Other });
    ops_runtime::untagged!(super::Id { Integer => Number, String => Text, Object["kind"; "commits"] => Push, Array => List });
    ops_runtime::untagged!(super::Shape {
        Object["radius"; "name"] => Circle,
        Object["side"; "inner"] => Square,
        Array => Group,
        Array => Points,
        Null => Nothing
    });
}
