//! Defaults that are values of named types: constants, records, variants of unions.

use serde_json::{Map, Value};

use super::{Misfit, all, literal};
use crate::kinds::{NESTED, kinds_of};
use crate::lower::size_of;
use crate::types::{
    Default, Field, ItemId, Literal, Record, Shape, Tagged, TaggedVariant, Type, Types, Variant, is_same,
};

/// The value as one of a named type.
pub(super) fn of_shape(
    types: &Types,
    shape: &Shape,
    id: ItemId,
    value: &Value,
    depth: usize,
) -> Result<Literal, Misfit> {
    match (shape, value) {
        (Shape::Names(constants) | Shape::Values(constants), _) => {
            let is_open = || {
                let places = [&types.open, &types.beside_text];
                types.get(id).is_some_and(|item| places.iter().any(|places| places.contains(&item.pointer)))
            };
            match (types.position(id, constants, value), value) {
                (Some(at), _) => Ok(Literal::Variant(id, at)),
                (None, Value::String(text)) if is_open() => Ok(Literal::Other(id, text.clone())),
                _ => Err(Misfit::Wrong),
            }
        }
        (Shape::Record(record), Value::Object(members)) => of_record(types, record, id, members, depth),
        (Shape::Tagged(tagged), Value::Object(members)) => of_tagged(types, tagged, id, members, depth),
        (Shape::Union(variants), _) => of_union(types, variants, id, value, depth),
        _ => Err(Misfit::Wrong),
    }
}

fn of_record(
    types: &Types,
    record: &Record,
    id: ItemId,
    members: &Map<String, Value>,
    depth: usize,
) -> Result<Literal, Misfit> {
    if !record.constants.iter().all(|(name, value)| members.get(name).is_some_and(|found| is_same(found, value))) {
        return Err(Misfit::Wrong);
    }
    // `Default` of the record has the defaults of all that is left out.
    let is_plain = record.constants.is_empty() && !record.fields.iter().any(|field| field.given);
    let is_default = is_plain && members.is_empty();
    let fields = record.fields.iter().enumerate().filter_map(|(at, field)| match members.get(&field.json) {
        // It stands for absence where it is no value.
        Some(Value::Null) if !field.required && !types.takes_null(&field.type_) => None,
        Some(value) => Some(literal(types, &field.type_, value, depth + 1).map(|literal| (at, literal))),
        None => check_absent(types, field, is_default, depth).err().map(Err),
    });
    let found = all(fields)?;
    let others = members.iter().filter(|(name, _)| !record.declares(name));
    let extra = match &record.extra {
        Some((_, type_)) => {
            types.note_undeclared(others.clone().count(), 0);
            let entry = |(name, value): (&String, &Value)| Ok((name.clone(), literal(types, type_, value, depth + 1)?));
            all(others.map(entry))?
        }
        None => {
            types.note_undeclared(0, others.map(|(_, value)| 1 + properties_of(value)).sum());
            Vec::new()
        }
    };
    if found.is_empty() && extra.is_empty() && is_plain {
        return Ok(Literal::Zero);
    }
    Ok(Literal::Record { id, fields: found, extra })
}

/// Checks that a default may leave a property out: it need not be there, or its own default stands for it.
///
/// An object that stands for it is written only as `Default`, its own or that of the record around it (`is_default`):
/// otherwise, each default that leaves it out would repeat it.
fn check_absent(types: &Types, field: &Field, is_default: bool, depth: usize) -> Result<(), Misfit> {
    let cost = match &field.default {
        Default::Raw(value) => size_of(value),
        _ => 1,
    };
    let left = types.inner.get().checked_sub(cost).ok_or(Misfit::Endless)?;
    types.inner.set(left);
    match &field.default {
        Default::None | Default::Told(_) if field.required => Err(Misfit::Wrong),
        Default::None | Default::Told(_) | Default::Fits(_) => Ok(()),
        Default::Raw(value) if is_structured(types, &field.type_) => {
            let undeclared = types.undeclared.get();
            let found = literal(types, &field.type_, value, depth + 1);
            // That is no part of the value itself.
            types.undeclared.set(undeclared);
            match found {
                Err(Misfit::Endless) => Err(Misfit::Endless),
                Err(misfit) if field.required => Err(misfit),
                Ok(inner) if !is_default && inner != Literal::Zero => Err(Misfit::Repeated),
                _ => Ok(()),
            }
        }
        Default::Raw(value) => match literal(types, &field.type_, value, 0) {
            Err(misfit) if field.required => Err(misfit),
            _ => Ok(()),
        },
    }
}

/// True if a value of the type may be an object of a named type.
fn is_structured(types: &Types, type_: &Type) -> bool {
    match types.resolve(type_) {
        Type::Option(inner) | Type::List(inner) | Type::Map(inner) => is_structured(types, inner),
        Type::Tuple(places) => places.iter().any(|place| is_structured(types, place)),
        Type::Named(id) | Type::Boxed(id) => {
            !matches!(types.get(*id).map(|item| &item.shape), Some(Shape::Names(_) | Shape::Values(_)))
        }
        _ => false,
    }
}

fn of_tagged(
    types: &Types,
    tagged: &Tagged,
    id: ItemId,
    members: &Map<String, Value>,
    depth: usize,
) -> Result<Literal, Misfit> {
    let tag = members.get(&tagged.property).ok_or(Misfit::Wrong)?;
    let mut variants = tagged.variants.iter().enumerate();
    let (at, found) = variants.find(|(_, variant)| has_tag(variant, tag)).ok_or(Misfit::Wrong)?;
    let mut members = members.clone();
    if !declares(types, &found.variant.type_, &tagged.property, &members, 0) {
        // It is written from the first tag of the variant.
        if !found.tags.first().is_some_and(|first| is_same(first, tag)) {
            return Err(Misfit::Wrong);
        }
        members.shift_remove(&tagged.property);
    }
    let value = literal(types, &found.variant.type_, &Value::Object(members), depth + 1)?;
    Ok(Literal::Union(id, at, Box::new(value)))
}

fn has_tag(variant: &TaggedVariant, tag: &Value) -> bool {
    variant.tags.iter().any(|known| is_same(known, tag))
}

/// True if the type is a record with that property, or a union of which the variant that the object is has it.
fn declares(types: &Types, type_: &Type, property: &str, members: &Map<String, Value>, depth: usize) -> bool {
    let (Type::Named(id) | Type::Boxed(id)) = types.resolve(type_) else { return false };
    match types.get(*id).map(|item| &item.shape) {
        Some(Shape::Record(record)) => record.declares(property),
        Some(Shape::Tagged(tagged)) => {
            let tag = members.get(&tagged.property);
            let is_meant = |variant: &&TaggedVariant| tag.is_some_and(|tag| has_tag(variant, tag));
            let variant = tagged.variants.iter().find(is_meant).filter(|_| depth < NESTED);
            let is_declared =
                |variant: &TaggedVariant| declares(types, &variant.variant.type_, property, members, depth + 1);
            tagged.property == property || variant.is_some_and(is_declared)
        }
        _ => false,
    }
}

/// The value as the variant that decoding would choose: the one that declares most of its members. Among those that declare as
/// many, it is the one that keeps most of the other members. If these are equal, too, the same counts at any depth: it is the one
/// with the fewest undeclared members, and then the one that drops the fewest of these. The last count is that of unknown constants.
fn of_union(types: &Types, variants: &[Variant], id: ItemId, value: &Value, depth: usize) -> Result<Literal, Misfit> {
    let before = types.undeclared.get();
    let [undeclared, dropped] = before;
    let mut best: Option<((usize, usize), [usize; 3], Literal)> = None;
    let mut misfit = Misfit::Wrong;
    // What decoding would choose, but is not written as code: only a better one may stand in its place.
    let mut barred: Option<((usize, usize), Misfit)> = None;
    for (at, variant) in variants.iter().enumerate() {
        let score = score(types, &variant.type_, value);
        if types.names.get() == 0 {
            break;
        }
        let Some(score) = score else { continue };
        let may_be_better = |(most, loss, _): &(_, [usize; 3], _)| score > *most || score == *most && *loss != [0; 3];
        if !best.as_ref().is_none_or(may_be_better) {
            continue;
        }
        match literal(types, &variant.type_, value, depth + 1) {
            Ok(found) => {
                let [all, lost] = types.undeclared.get();
                let loss = [all - undeclared, lost - dropped, unknown(types, &found)];
                if best.as_ref().is_none_or(|(most, least, _)| score > *most || loss < *least) {
                    best = Some((score, loss, Literal::Union(id, at, Box::new(found))));
                }
            }
            Err(why @ (Misfit::Endless | Misfit::Repeated)) => barred = barred.max(Some((score, why))),
            Err(why) => misfit = misfit.min(why),
        }
        types.undeclared.set(before);
    }
    // Some variants were not compared, or those of unions inside.
    if types.names.get() == 0 {
        return Err(Misfit::Unwritten("a value of unions that are too large together"));
    }
    let (score, [more, lost, _], found) = best.ok_or(barred.map_or(misfit, |(_, why)| why))?;
    if let Some((most, why)) = barred
        && most >= score
    {
        return Err(why);
    }
    types.undeclared.set([undeclared + more, dropped + lost]);
    Ok(found)
}

/// How many properties all objects in a value have.
pub(super) fn properties_of(value: &Value) -> usize {
    match value {
        Value::Object(members) => members.values().map(|member| 1 + properties_of(member)).sum(),
        Value::Array(items) => items.iter().map(properties_of).sum(),
        _ => 0,
    }
}

/// The number of strings in a value that decoding would count as unknown constants.
fn unknown(types: &Types, literal: &Literal) -> usize {
    match literal {
        Literal::Other(id, _) => usize::from(types.get(*id).is_some_and(|item| !types.open.contains(&item.pointer))),
        Literal::List(items) | Literal::Tuple(items) => items.iter().map(|item| unknown(types, item)).sum(),
        Literal::Map(members) => members.iter().map(|(_, member)| unknown(types, member)).sum(),
        Literal::Some(inner) | Literal::Union(_, _, inner) => unknown(types, inner),
        Literal::Record { fields, extra, .. } => {
            let fields = fields.iter().map(|(_, field)| field);
            fields.chain(extra.iter().map(|(_, member)| member)).map(|member| unknown(types, member)).sum()
        }
        _ => 0,
    }
}

/// How many members of a value a type declares, and how many other members it keeps. `None` if the type does not accept the
/// value.
fn score(types: &Types, type_: &Type, value: &Value) -> Option<(usize, usize)> {
    let kind = match value {
        Value::Null => "Null",
        Value::Bool(_) => "Boolean",
        Value::Number(number) if number.is_i64() || number.is_u64() => "Integer",
        Value::Number(_) => "Number",
        Value::String(_) => "String",
        Value::Array(_) => "Array",
        Value::Object(_) => "Object",
    };
    let has = |name: &&String| value.get(name.as_str()).is_some();
    let mut names = types.names.get();
    let shapes = kinds_of(types, type_, &mut names);
    types.names.set(names.saturating_sub(shapes.len()));
    let shapes = shapes
        .into_iter()
        .filter(|shape| shape.name == kind || shape.name == "Any" || shape.name == "Number" && kind == "Integer");
    let fitting = shapes.filter(|shape| kind != "Object" || shape.needs.iter().all(|name| has(&name)));
    let members = value.as_object().map_or(0, Map::len);
    let counts = fitting.map(|shape| {
        let declared = shape.needs.iter().chain(&shape.knows).filter(has).count();
        let keeps = shape.keeps || shape.name == "Any";
        (declared, if keeps { members.saturating_sub(declared) } else { 0 })
    });
    counts.max()
}
