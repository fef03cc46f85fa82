//! The shapes of JSON values that types accept: these distinguish the variants of a union.

use std::collections::HashSet;

use serde_json::Value;

use crate::types::{Field, Shape, Tagged, Type, Types};

/// A union inside a union is merged into it, and looked into, up to this depth.
pub(crate) const NESTED: usize = 8;

/// A shape of a JSON value that a type takes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    pub(crate) needs: Vec<String>,
    pub(crate) knows: Vec<String>,
    /// True if an object's undeclared properties are kept.
    pub(crate) keeps: bool,
}

impl Kind {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, needs: Vec::new(), knows: Vec::new(), keeps: false }
    }
}

/// How many shapes are used to distinguish a variant of a union.
pub(crate) const SHAPES: usize = 1_000;

/// How many of these may be those of one union that is distinguished by a property.
const OF_TAGGED: usize = 100;

/// What the shapes of all unions of a module may cost, in names of properties and in comparisons: so much, and so much for each
/// field and variant. A large union that is a variant of many others has its shapes in each of these.
const BUDGET: (usize, usize) = (100_000, 16);

/// What the shapes of all unions of a module may cost.
pub(crate) fn budget(types: &Types) -> usize {
    let parts: usize = types.items.iter().map(|item| item.shape.types().len()).sum();
    parts.saturating_mul(BUDGET.1).saturating_add(BUDGET.0)
}

/// What may still be looked at.
struct Room {
    shapes: usize,
    names: usize,
}

/// The shapes of JSON values that a type takes.
pub(crate) fn kinds(types: &Types, type_: &Type) -> Vec<Kind> {
    kinds_of(types, type_, &mut { usize::MAX })
}

/// The same, if the shapes have at most so many names of properties; these are subtracted. If they have more, nothing is left, and
/// the type is always tried, as one with too many shapes is. Of a union that a property distinguishes, that property remains.
pub(crate) fn kinds_of(types: &Types, type_: &Type, names: &mut usize) -> Vec<Kind> {
    let mut room = Room { shapes: SHAPES, names: *names };
    let found = kinds_within(types, type_, 0, &mut room);
    *names = room.names;
    if room.shapes == 0 { vec![Kind::new("Any")] } else { found }
}

fn kinds_within(types: &Types, type_: &Type, depth: usize, room: &mut Room) -> Vec<Kind> {
    room.shapes = room.shapes.saturating_sub(1);
    if depth > NESTED || room.shapes == 0 {
        return vec![Kind::new("Any")];
    }
    let mut found = match types.resolve(type_) {
        Type::Unit => vec![Kind::new("Null")],
        Type::Bool => vec![Kind::new("Boolean")],
        Type::I32 | Type::I64 | Type::U32 | Type::U64 => vec![Kind::new("Integer")],
        Type::F64 => vec![Kind::new("Number")],
        Type::String | Type::Format(_) | Type::Body => vec![Kind::new("String")],
        Type::Block | Type::Value => vec![Kind::new("Any")],
        Type::Custom(custom) => custom.kinds.clone(),
        Type::List(_) | Type::Tuple(_) => vec![Kind::new("Array")],
        Type::Map(_) => vec![Kind { keeps: true, ..Kind::new("Object") }],
        Type::Option(inner) => {
            let mut inner = kinds_within(types, inner, depth + 1, room);
            inner.push(Kind::new("Null"));
            inner
        }
        Type::Named(id) | Type::Boxed(id) => {
            // Many variants lead to the same unions: what had too many shapes once has them again.
            let (place, had) = ((*id, depth), room.shapes);
            if types.endless.borrow().get(&place).is_some_and(|least| had <= *least) {
                room.shapes = 0;
                return vec![Kind::new("Any")];
            }
            let found = types.get(*id).map_or_else(Vec::new, |item| of_shape(types, &item.shape, depth, room));
            // What has too many names may have few shapes.
            if room.shapes == 0 && room.names > 0 {
                types.endless.borrow_mut().insert(place, had);
            }
            found
        }
    };
    let mut once: HashSet<Kind> = HashSet::new();
    found.retain(|kind| once.insert(kind.clone()));
    found
}

fn of_shape(types: &Types, shape: &Shape, depth: usize, room: &mut Room) -> Vec<Kind> {
    match shape {
        Shape::Pending => vec![Kind::new("Any")],
        Shape::Alias(type_) | Shape::Newtype(type_) => kinds_within(types, type_, depth + 1, room),
        Shape::Names(_) => vec![Kind::new("String")],
        Shape::Values(constants) => constants
            .iter()
            .map(|constant| match &constant.value {
                Value::String(_) => Kind::new("String"),
                Value::Bool(_) => Kind::new("Boolean"),
                value if value.is_i64() => Kind::new("Integer"),
                _ => Kind::new("Number"),
            })
            .collect(),
        Shape::Record(record) => {
            let Some(left) = room.names.checked_sub(record.fields.len() + record.constants.len()) else {
                *room = Room { shapes: 0, names: 0 };
                return vec![Kind::new("Any")];
            };
            room.names = left;
            let (needs, knows): (Vec<_>, Vec<_>) = record.fields.iter().partition(|field| field.required);
            let names = |fields: Vec<&Field>| fields.iter().map(|field| field.json.clone()).collect();
            let mut needs: Vec<String> = names(needs);
            needs.extend(record.constants.iter().map(|(name, _)| name.clone()));
            vec![Kind { name: "Object", needs, knows: names(knows), keeps: record.extra.is_some() }]
        }
        Shape::Tagged(tagged) => of_tagged(types, tagged, depth, room),
        Shape::Union(variants) => {
            let mut found = Vec::new();
            for variant in variants {
                // Of too many, none is used.
                if room.shapes == 0 {
                    break;
                }
                found.extend(kinds_within(types, &variant.type_, depth + 1, room));
            }
            found
        }
    }
}

/// The shapes of a union that is distinguished by a property: that of any object with the property, and those of the variants,
/// which tell how much of an object the union keeps.
fn of_tagged(types: &Types, tagged: &Tagged, depth: usize, room: &mut Room) -> Vec<Kind> {
    let object = |is_optional: bool, mut needs: Vec<String>, mut knows: Vec<String>| {
        let is_tag = |name: &String| *name == tagged.property;
        if !needs.iter().any(is_tag) {
            knows.retain(|name| !is_tag(name));
            let names = if is_optional { &mut knows } else { &mut needs };
            names.push(tagged.property.clone());
        }
        // It is unknown here if the variant that the tag selects keeps undeclared properties, so `keeps` stays false.
        Kind { needs, knows, ..Kind::new("Object") }
    };
    let is_optional = tagged.variants.iter().any(|variant| variant.is_default);
    let any = object(is_optional, Vec::new(), Vec::new());
    let (mut found, mut left) = (vec![any.clone()], Room { shapes: OF_TAGGED, names: room.names });
    for variant in &tagged.variants {
        let kinds = kinds_within(types, &variant.variant.type_, depth + 1, &mut left);
        let objects = kinds.into_iter().filter(|kind| matches!(kind.name, "Object" | "Any"));
        found.extend(objects.map(|kind| object(variant.is_default, kind.needs, kind.knows)));
    }
    *room = Room { shapes: room.shapes.saturating_sub(OF_TAGGED - left.shapes), names: left.names };
    // Of too many, none: the property alone tells such a union.
    if left.shapes == 0 { vec![any] } else { found }
}
