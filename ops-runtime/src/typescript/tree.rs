//! Types as a tree, between schemas and TypeScript.

use std::collections::{HashMap, HashSet};

/// A type.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Type {
    Unknown,
    Never,
    Null,
    Boolean,
    Number,
    String,
    /// A value, as TypeScript writes it.
    Literal(String),
    Array(Box<Type>),
    /// Items, of which so many must be there, and the rest.
    Tuple(Vec<Type>, usize, Option<Box<Type>>),
    Object(Object),
    Union(Vec<Type>),
    Intersection(Vec<Type>),
    /// A type that has a name, by its number.
    Named(usize),
}

/// An object's properties, in the order of the schema.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Object {
    pub(super) properties: Vec<Property>,
    /// The type of all others; `None` if the schema says nothing of others, or allows none.
    pub(super) others: Option<Box<Type>>,
    /// True if that is the type of some of the others, by their names, and the rest may be anything.
    pub(super) is_open: bool,
}

/// A property of an object.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Property {
    pub(super) name: String,
    pub(super) is_optional: bool,
    pub(super) type_: Type,
    pub(super) doc: Doc,
}

/// What is said beside a type.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Doc {
    pub(super) text: String,
    /// Tags such as `@default`, with what stands behind them.
    pub(super) tags: Vec<(&'static str, String)>,
}

impl Doc {
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty() && self.tags.is_empty()
    }
}

/// A union has so many members at most, once intersections of unions are multiplied out: the compiler refuses 100,000.
pub(super) const MAX_UNION: usize = 10_000;

/// A type, or a property, counts as so many values of a schema if it is copied.
pub(super) const WEIGHT: usize = 4;

impl Type {
    /// The object that the schema says nothing of.
    pub(super) fn bare_object() -> Self {
        Self::Object(Object { others: Some(Box::new(Self::Unknown)), ..Object::default() })
    }

    fn is_bare_object(&self) -> bool {
        matches!(self, Self::Object(object)
            if object.properties.is_empty() && object.others.as_deref() == Some(&Self::Unknown))
    }

    /// True if nothing is known but that some properties are there, or others instead.
    pub(super) fn is_untyped(&self) -> bool {
        match self {
            Self::Union(parts) => parts.iter().all(Self::is_untyped_object),
            other => other.is_untyped_object(),
        }
    }

    /// True if nothing is known but that some properties are there.
    fn is_untyped_object(&self) -> bool {
        matches!(self, Self::Object(object)
            if object.others.is_none() && object.properties.iter().all(|it| it.type_ == Self::Unknown && !it.is_optional))
    }

    /// A union of these, each once.
    pub(super) fn union(types: impl IntoIterator<Item = Self>) -> Self {
        let mut members: Vec<Self> = Vec::new();
        let mut literals = HashSet::new();
        for type_ in types {
            let parts = match type_ {
                Self::Union(parts) => parts,
                other => vec![other],
            };
            for part in parts {
                let is_new = match &part {
                    Self::Never => false,
                    Self::Unknown => return Self::Unknown,
                    Self::Literal(text) => literals.insert(text.clone()),
                    // Long unions are of literals; others are compared one by one up to a length.
                    part => members.len() > 1000 || !members.contains(part),
                };
                if is_new {
                    members.push(part);
                }
            }
        }
        if members.contains(&Self::String) {
            members.retain(|member| !matches!(member, Self::Literal(text) if text.starts_with('"')));
        }
        match members.len() {
            0 => Self::Never,
            1 => members.pop().unwrap_or(Self::Never),
            _ => Self::Union(members),
        }
    }

    /// An intersection of these. Objects that are written out become one.
    pub(super) fn intersection(types: impl IntoIterator<Item = Self>) -> Self {
        let mut members: Vec<Self> = Vec::new();
        // The object among them, and where each of its properties is.
        let mut object_at = None;
        let mut places: HashMap<String, usize> = HashMap::new();
        for type_ in types {
            let parts = match type_ {
                Self::Intersection(parts) => parts,
                other => vec![other],
            };
            for part in parts {
                match part {
                    Self::Unknown => {}
                    Self::Never => return Self::Never,
                    Self::Object(object) if object.others.is_none() => {
                        let at = *object_at.get_or_insert_with(|| {
                            members.push(Self::Object(Object::default()));
                            members.len() - 1
                        });
                        if let Some(Self::Object(written)) = members.get_mut(at) {
                            written.merge(object, &mut places);
                        }
                    }
                    part if members.len() > 1000 || !members.contains(&part) => members.push(part),
                    _ => {}
                }
            }
        }
        if members.len() > 1 {
            let is_literals = |member: &Self| match member {
                Self::Literal(_) => true,
                Self::Union(parts) => parts.iter().all(|part| matches!(part, Self::Literal(_))),
                _ => false,
            };
            // Keywords for objects mean nothing to values of other types.
            if members
                .iter()
                .any(|member| matches!(member, Self::Array(_) | Self::Tuple(..) | Self::String | Self::Number))
            {
                members.retain(|member| !member.is_untyped_object());
            }
            let has_literals = members.iter().any(is_literals);
            let is_said = |member: &Self| {
                member.is_bare_object() || has_literals && matches!(member, Self::String | Self::Number | Self::Boolean)
            };
            if members.iter().any(|member| !is_said(member)) {
                members.retain(|member| !is_said(member));
            }
        }
        // What would be too large a union is left out from its end.
        let mut size = 1_usize;
        members.retain(|member| {
            let next = size.saturating_mul(member.size(0));
            let fits = next <= MAX_UNION || size == 1;
            if fits {
                size = next;
            }
            fits
        });
        match members.len() {
            0 => Self::Unknown,
            1 => members.pop().unwrap_or(Self::Unknown),
            _ => Self::Intersection(members),
        }
    }

    /// How many members a union of it has.
    pub(super) fn size(&self, depth: usize) -> usize {
        match self {
            Self::Union(parts) if depth < 32 => {
                parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.size(depth + 1)))
            }
            Self::Intersection(parts) if depth < 32 => {
                parts.iter().fold(1, |product: usize, part| product.saturating_mul(part.size(depth + 1)))
            }
            Self::Boolean => 2,
            _ => 1,
        }
    }

    /// How many looks of the budget it takes to make it once more: some for each type and property, and more for long texts.
    pub(super) fn weight(&self) -> usize {
        let text = |text: &str| text.len() / 16;
        let parts: usize = match self {
            Self::Literal(literal) => text(literal),
            Self::Array(item) => item.weight(),
            Self::Tuple(items, _, rest) => items.iter().chain(rest.as_deref()).map(Self::weight).sum(),
            Self::Object(object) => {
                let of_property = |property: &Property| {
                    let tags: usize = property.doc.tags.iter().map(|(_, said)| 1 + text(said)).sum();
                    WEIGHT + text(&property.name) + text(&property.doc.text) + tags + property.type_.weight()
                };
                let others = object.others.as_ref().map_or(0, |others| others.weight());
                others + object.properties.iter().map(of_property).sum::<usize>()
            }
            Self::Union(parts) | Self::Intersection(parts) => parts.iter().map(Self::weight).sum(),
            _ => 0,
        };
        WEIGHT + parts
    }

    /// The named types that it is made of, not those inside objects and lists.
    pub(super) fn direct(&self, found: &mut Vec<usize>) {
        match self {
            Self::Named(number) => found.push(*number),
            Self::Union(parts) | Self::Intersection(parts) => parts.iter().for_each(|part| part.direct(found)),
            _ => {}
        }
    }

    /// The type without some named types that it is made of: what is left accepts at least as much.
    pub(super) fn without(self, gone: &dyn Fn(usize) -> bool, own: usize) -> Self {
        match self {
            Self::Named(number) if gone(number) => Self::Unknown,
            // A union with itself is that union.
            Self::Union(parts) => Self::union(
                parts.into_iter().filter(|part| *part != Self::Named(own)).map(|part| part.without(gone, own)),
            ),
            Self::Intersection(parts) => Self::intersection(parts.into_iter().map(|part| part.without(gone, own))),
            other => other,
        }
    }
}

impl Object {
    /// Adds what another object says; `places` tells where each property is.
    fn merge(&mut self, other: Self, places: &mut HashMap<String, usize>) {
        for property in other.properties {
            match places.get(&property.name).and_then(|at| self.properties.get_mut(*at)) {
                Some(own) => {
                    own.is_optional &= property.is_optional;
                    let type_ = std::mem::replace(&mut own.type_, Type::Unknown);
                    own.type_ = Type::intersection([type_, property.type_]);
                    if own.doc.is_empty() {
                        own.doc = property.doc;
                    }
                }
                None => {
                    places.insert(property.name.clone(), self.properties.len());
                    self.properties.push(property);
                }
            }
        }
    }
}
