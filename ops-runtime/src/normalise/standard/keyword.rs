//! The compiled form: schemas by number, each a list of keywords.

use crate::normalise::node::{Literals, Types};
use crate::normalise::number::NumberRules;
use crate::normalise::pattern::Pattern;
use crate::normalise::text::StringRules;

/// How many schemas may be followed inside each other, for a value and its parts together.
pub(super) const MAX_DEPTH: u32 = 448;

/// The number of a schema.
pub(super) type Id = u32;

/// The numbers of the boolean schemas.
pub(super) const ANY: Id = 0;
pub(super) const NEVER: Id = 1;

#[derive(Debug)]
pub(super) enum Schema {
    Any,
    Never,
    Rules(Box<Rules>),
}

#[derive(Debug, Default)]
pub(super) struct Rules {
    /// The cheapest first, and those that depend on the results of others last.
    pub(super) keywords: Vec<Keyword>,
    /// The resource that it belongs to.
    pub(super) resource: u32,
    /// True if several keywords lead here, so that the same value may be checked against it more than once.
    pub(super) is_shared: bool,
    /// True if it may lead back to itself without going into the value.
    pub(super) is_cyclic: bool,
}

#[derive(Debug)]
pub(super) enum Keyword {
    Types(Types),
    /// `const` and `enum`.
    Literals(Literals),
    Number(NumberRules),
    Text(StringRules),
    Array {
        min: Option<u64>,
        max: Option<u64>,
        unique: bool,
    },
    Object {
        min: Option<u64>,
        max: Option<u64>,
    },
    Required(Vec<Box<str>>),
    /// Properties that require others.
    DependentRequired(Vec<(Box<str>, Vec<Box<str>>)>),
    Properties(Box<Properties>),
    Items {
        prefix: Vec<Id>,
        rest: Option<Id>,
    },
    Contains {
        item: Id,
        min: u64,
        max: Option<u64>,
    },
    Names(Id),
    All(Vec<Id>),
    Any(Union),
    One(Union),
    Not(Id),
    If {
        condition: Id,
        then: Id,
        otherwise: Id,
    },
    DependentSchemas(Vec<(Box<str>, Id)>),
    Ref(Id),
    /// The number of a name, and its target if no resource on the way has it.
    DynamicRef {
        name: u32,
        otherwise: Id,
    },
    UnevaluatedItems(Id),
    UnevaluatedProperties(Id),
}

/// Sorts schemas by name, for lookups. Equal names keep their order.
pub(super) fn by_name(named: &mut [(Box<str>, Id)]) {
    named.sort_by(|(a, _), (b, _)| a.cmp(b));
}

/// `properties`, `patternProperties` and `additionalProperties`.
#[derive(Debug, Default)]
pub(super) struct Properties {
    /// Ordered by name.
    pub(super) named: Vec<(Box<str>, Id)>,
    pub(super) patterns: Vec<(Pattern, Id)>,
    pub(super) additional: Option<Id>,
}

impl Properties {
    pub(super) fn find(&self, name: &str) -> Option<Id> {
        let found = self.named.binary_search_by(|(known, _)| (**known).cmp(name)).ok()?;
        self.named.get(found).map(|(_, id)| *id)
    }
}

/// The schemas of an `anyOf` or `oneOf`.
#[derive(Debug)]
pub(super) struct Union {
    pub(super) variants: Vec<Id>,
    /// A property that has a constant in each variant of objects.
    pub(super) tag: Option<Tag>,
}

#[derive(Debug)]
pub(super) struct Tag {
    pub(super) property: Box<str>,
    /// The variants by the constant, ordered by it.
    pub(super) variants: Vec<(Box<str>, Id)>,
}

impl Tag {
    /// The variants of a constant.
    pub(super) fn of(&self, text: &str) -> &[(Box<str>, Id)] {
        let start = self.variants.partition_point(|(known, _)| **known < *text);
        let length = self.variants.iter().skip(start).take_while(|(known, _)| **known == *text).count();
        self.variants.get(start..start + length).unwrap_or_default()
    }
}

impl Keyword {
    /// Calls a function with every schema inside, and true if it is for the same value.
    pub(super) fn each(&mut self, mut run: impl FnMut(&mut Id, bool)) {
        match self {
            Keyword::Properties(properties) => {
                properties.named.iter_mut().for_each(|(_, id)| run(id, false));
                properties.patterns.iter_mut().for_each(|(_, id)| run(id, false));
                properties.additional.iter_mut().for_each(|id| run(id, false));
            }
            Keyword::Items { prefix, rest } => prefix.iter_mut().chain(rest).for_each(|id| run(id, false)),
            Keyword::Contains { item: id, .. }
            | Keyword::Names(id)
            | Keyword::UnevaluatedItems(id)
            | Keyword::UnevaluatedProperties(id) => run(id, false),
            Keyword::All(ids) => ids.iter_mut().for_each(|id| run(id, true)),
            Keyword::Any(union) | Keyword::One(union) => union.variants.iter_mut().for_each(|id| run(id, true)),
            Keyword::Not(id) | Keyword::Ref(id) | Keyword::DynamicRef { otherwise: id, .. } => run(id, true),
            Keyword::If { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().for_each(|id| run(id, true));
            }
            Keyword::DependentSchemas(schemas) => schemas.iter_mut().for_each(|(_, id)| run(id, true)),
            Keyword::Types(_)
            | Keyword::Literals(_)
            | Keyword::Number(_)
            | Keyword::Text(_)
            | Keyword::Array { .. }
            | Keyword::Object { .. }
            | Keyword::Required(_)
            | Keyword::DependentRequired(_) => {}
        }
    }
}
