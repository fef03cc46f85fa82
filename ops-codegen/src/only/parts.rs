//! Decides which parts of the types `only_used` keeps: the types of fields, and the variants of tagged unions.

use std::collections::HashSet;

use crate::kinds::{Kind, NESTED, SHAPES, budget, kinds};
use crate::types::{Default, Field, ItemId, Literal, Shape, TaggedVariant, Type, Types, Variant};

/// The parts of the types that are kept although the crate does not name them.
#[derive(Default)]
pub(super) struct Parts {
    /// The fields that keep their types, by their items and positions.
    fields: HashSet<(ItemId, usize)>,
    /// The tagged unions that keep all variants.
    unions: HashSet<ItemId>,
    /// The items that keep the types of all fields and all variants.
    whole: HashSet<ItemId>,
    /// What comparing the variants of unions may still cost.
    budget: usize,
}

/// What the crate names.
pub(super) struct Named<'u> {
    pub(super) used: &'u HashSet<String>,
    pub(super) type_names: Vec<String>,
}

impl Named<'_> {
    fn has_type(&self, id: ItemId) -> bool {
        self.type_names.get(id).is_some_and(|name| self.used.contains(name))
    }

    /// True if the crate names every type that this type names.
    fn has_all_of(&self, type_: &Type) -> bool {
        named_by(type_).iter().all(|id| self.has_type(*id))
    }
}

impl Parts {
    /// The parts that defaults of fields use, since defaults are written as code, and the parts that tell the variants of
    /// reachable unions apart.
    pub(super) fn of(types: &Types, roots: &[Type], named: &Named<'_>) -> Self {
        let mut parts = Self { budget: budget(types), ..Self::default() };
        for item in &types.items {
            let Shape::Record(record) = &item.shape else { continue };
            for field in &record.fields {
                if let Default::Fits(literal) = &field.default {
                    parts.add_literal(literal);
                }
            }
        }
        // Parts that are added may reach more unions.
        let mut told: HashSet<ItemId> = HashSet::new();
        loop {
            let reached = parts.reached(types, roots, named);
            let new: Vec<ItemId> = reached.into_iter().filter(|id| told.insert(*id)).collect();
            if new.is_empty() {
                return parts;
            }
            for id in new {
                if let Some(Shape::Union(variants)) = shape(types, id) {
                    parts.tell_apart(types, variants);
                }
            }
        }
    }

    /// True if a field keeps its type.
    pub(super) fn has_field(&self, place: (ItemId, usize), is_sent: bool, field: &Field, named: &Named<'_>) -> bool {
        let is_made = is_sent && (field.given || field.required);
        let is_plain = !matches!(field.default, Default::None | Default::Told(_));
        let is_named = is_made || is_plain || named.used.contains(&field.ident) || named.has_all_of(&field.type_);
        is_named || self.fields.contains(&place) || self.whole.contains(&place.0)
    }

    /// True if a tagged union has a variant.
    pub(super) fn has_variant(&self, id: ItemId, tagged: &TaggedVariant, named: &Named<'_>) -> bool {
        let is_type_named = item(&tagged.variant.type_).is_some_and(|id| named.has_type(id));
        let is_named = is_type_named || named.used.contains(&tagged.variant.ident);
        is_named || self.unions.contains(&id) || self.whole.contains(&id)
    }

    /// The items that the roots reach through the parts that are kept.
    fn reached(&self, types: &Types, roots: &[Type], named: &Named<'_>) -> HashSet<ItemId> {
        let (mut reached, mut open) = (HashSet::new(), Vec::new());
        roots.iter().for_each(|type_| type_.named(&mut open));
        while let Some(id) = open.pop() {
            let Some(item) = types.get(id).filter(|_| reached.insert(id)) else { continue };
            match &item.shape {
                Shape::Record(record) => {
                    let fields = record.fields.iter().enumerate();
                    let there = fields.filter(|(at, field)| self.has_field((id, *at), item.sent, field, named));
                    there.for_each(|(_, field)| field.type_.named(&mut open));
                    record.extra.iter().for_each(|(_, type_)| type_.named(&mut open));
                }
                Shape::Tagged(tagged) => {
                    let there = tagged.variants.iter().filter(|tagged| self.has_variant(id, tagged, named));
                    there.for_each(|tagged| tagged.variant.type_.named(&mut open));
                }
                other => other.types().into_iter().for_each(|type_| type_.named(&mut open)),
            }
        }
        reached
    }

    fn add_literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Record { id, fields, extra } => {
                self.fields.extend(fields.iter().map(|(at, _)| (*id, *at)));
                fields.iter().for_each(|(_, inner)| self.add_literal(inner));
                extra.iter().for_each(|(_, inner)| self.add_literal(inner));
            }
            Literal::Union(id, _, inner) => {
                self.unions.insert(*id);
                self.add_literal(inner);
            }
            Literal::List(items) | Literal::Tuple(items) => items.iter().for_each(|inner| self.add_literal(inner)),
            Literal::Map(members) => members.iter().for_each(|(_, inner)| self.add_literal(inner)),
            Literal::Some(inner) => self.add_literal(inner),
            _ => {}
        }
    }

    /// Adds the parts that tell the variants of an untagged union apart. A value is read as the first variant that accepts it:
    /// without its parts, a variant would accept more values, and take those of other variants. Once the budget is spent, all
    /// parts are added.
    fn tell_apart(&mut self, types: &Types, variants: &[Variant]) {
        let mut alternatives = Vec::new();
        if self.budget > 0 {
            for (number, variant) in variants.iter().enumerate() {
                add_alternatives(types, &variant.type_, number, &[], &mut alternatives);
            }
            let (count, names) = (alternatives.len(), alternatives.iter().map(|one| one.names.len()).sum::<usize>());
            self.budget = self.budget.saturating_sub(names + count * count / 2);
        }
        if self.budget == 0 {
            variants.iter().for_each(|variant| self.add_whole(types, &variant.type_));
            return;
        }
        let mut rest = alternatives.as_mut_slice();
        while let Some((one, others)) = std::mem::take(&mut rest).split_first_mut() {
            for other in &mut *others {
                let is_added = one.is_added() && other.is_added();
                if !is_added && one.variant != other.variant && one.may_be(other) {
                    self.add_shared(types, one, other);
                    self.add_shared(types, other, one);
                }
            }
            rest = others;
        }
    }

    /// Adds the parts of `one` that decide if a value is `one` or `other`: all properties that both have.
    fn add_shared(&mut self, types: &Types, one: &mut Alternative<'_>, other: &Alternative<'_>) {
        if !std::mem::replace(&mut one.is_like_another, true) {
            let tagged = one.within.iter().filter(|id| matches!(shape(types, **id), Some(Shape::Tagged(_))));
            self.unions.extend(tagged);
            match item(one.type_).and_then(|id| shape(types, id)) {
                Some(Shape::Record(record)) => {
                    record.extra.iter().for_each(|(_, type_)| self.add_whole(types, type_));
                }
                _ => self.add_whole(types, one.type_),
            }
        }
        one.own.retain(|(place, field)| {
            let is_shared = other.has(&field.json);
            if is_shared {
                self.fields.insert(*place);
                self.add_whole(types, &field.type_);
            }
            !is_shared
        });
    }

    /// Adds everything that a type reaches: a value that lies deep in a variant may decide that the variant does not fit.
    fn add_whole(&mut self, types: &Types, type_: &Type) {
        let mut open = named_by(type_);
        while let Some(id) = open.pop() {
            if self.whole.insert(id) {
                let inner = types.get(id).into_iter().flat_map(|item| item.shape.types());
                inner.for_each(|type_| type_.named(&mut open));
            }
        }
    }
}

/// A type that a variant of a union can be, and one shape of its values. A variant that is a union is several types.
struct Alternative<'t> {
    variant: usize,
    /// The types around it, such as unions in the union.
    within: Vec<ItemId>,
    type_: &'t Type,
    kind: Kind,
    /// The names of the properties in the shape.
    names: HashSet<String>,
    /// True once another alternative was found that may accept the same values.
    is_like_another: bool,
    /// The fields, with their places, whose types can be left out as far as is known: no other alternative with the same
    /// values was found to have a property of that name.
    own: Vec<((ItemId, usize), &'t Field)>,
}

/// Appends the alternatives of a variant of a union.
fn add_alternatives<'t>(
    types: &'t Types,
    type_: &'t Type,
    variant: usize,
    within: &[ItemId],
    found: &mut Vec<Alternative<'t>>,
) {
    if found.len() >= SHAPES {
        return;
    }
    let type_ = types.resolve(type_);
    let inner = match (type_, item(type_).and_then(|id| shape(types, id))) {
        (Type::Option(inner), _) => vec![&**inner],
        (_, Some(shape @ (Shape::Alias(_) | Shape::Newtype(_) | Shape::Union(_) | Shape::Tagged(_)))) => shape.types(),
        _ => Vec::new(),
    };
    if inner.is_empty() || within.len() > NESTED {
        let alternative = |kind| Alternative::new(types, type_, variant, within, kind);
        found.extend(kinds(types, type_).into_iter().map(alternative));
        return;
    }
    let within: Vec<ItemId> = within.iter().copied().chain(item(type_)).collect();
    for type_ in inner {
        add_alternatives(types, type_, variant, &within, found);
    }
}

/// The item of a type that is a named type.
fn item(type_: &Type) -> Option<ItemId> {
    if let Type::Named(id) | Type::Boxed(id) = type_ { Some(*id) } else { None }
}

fn shape(types: &Types, id: ItemId) -> Option<&Shape> {
    types.get(id).map(|item| &item.shape)
}

/// The types that a type names.
fn named_by(type_: &Type) -> Vec<ItemId> {
    let mut found = Vec::new();
    type_.named(&mut found);
    found
}

impl<'t> Alternative<'t> {
    fn new(types: &'t Types, type_: &'t Type, variant: usize, within: &[ItemId], kind: Kind) -> Self {
        let mut own = Vec::new();
        if let Some(id) = item(type_)
            && let Some(Shape::Record(record)) = shape(types, id)
        {
            let fields = record.fields.iter().enumerate().map(|(at, field)| ((id, at), field));
            own.extend(fields.filter(|(_, field)| !named_by(&field.type_).is_empty()));
        }
        let names = kind.needs.iter().chain(&kind.knows).cloned().collect();
        Self { variant, within: within.to_vec(), type_, kind, names, is_like_another: false, own }
    }

    /// True if a comparison with another alternative can add nothing more for this one.
    fn is_added(&self) -> bool {
        self.is_like_another && self.own.is_empty()
    }

    fn is_any(&self) -> bool {
        self.kind.name == "Any"
    }

    /// True if its values may have a property of this name.
    fn has(&self, name: &str) -> bool {
        self.is_any() || self.kind.keeps || self.names.contains(name)
    }

    /// True if a list or an object may be a value of both. Of an object, only the names of its properties are compared.
    fn may_be(&self, other: &Self) -> bool {
        let has_parts = |one: &Self| matches!(one.kind.name, "Array" | "Object" | "Any");
        let is_like = self.kind.name == other.kind.name || self.is_any() || other.is_any();
        let has_all = |one: &Self, other: &Self| other.kind.needs.iter().all(|name| one.has(name));
        has_parts(self) && has_parts(other) && is_like && has_all(self, other) && has_all(other, self)
    }
}
