//! Passes over all types: cycles, tags, constants.

use std::collections::{HashMap, HashSet};

use ops_runtime::spec::Diagnostic;
use serde_json::Value;

use super::alias::{break_aliases, shorten_aliases};
use super::default::{drop_misfits, fit_defaults};
use super::depth::limit;
use super::direction::{fit_directions, without_null};
use super::null::lift_nulls;
use super::order::{order, reached, settle};
use super::recursion::{groups, insert_pointers, on_cycle};
use super::roots::Roots;
use super::share::{name_unions, share};
use crate::names::upper_camel;
use crate::types::{Default, Field, Item, Shape, TaggedVariant, Type, Types, Variant};

/// Brings the types to the form that is rendered.
pub(crate) fn finish(types: &mut Types, roots: &mut Roots, diagnostics: &mut Vec<Diagnostic>) {
    settle(types);
    break_aliases(types, diagnostics);
    shorten_aliases(types);
    follow_names(types);
    lift_nulls(types, roots);
    break_unions(types, diagnostics);
    untag(types);
    fit_directions(types, roots);
    take_constants(types);
    part_tags(types);
    order(types, roots);
    share(types, roots);
    name_unions(types);
    insert_pointers(types);
    limit(types, roots, diagnostics);
    drop_misfits(types, diagnostics);
    order(types, roots);
    fit_defaults(types);
    let sent = reached(types, roots.operations.iter().map(|root| &root.input));
    types.items.iter_mut().zip(sent).for_each(|(item, sent)| item.sent = sent);
}

/// Marks an enum as standing beside plain strings if an alias of it is marked.
fn follow_names(types: &mut Types) {
    let is_beside = |item: &&Item| types.beside_text.contains(&item.pointer);
    let named = types.items.iter().filter(is_beside).filter_map(|item| {
        let Shape::Alias(type_) = &item.shape else { return None };
        let Type::Named(id) = without_null(types, type_.clone()) else { return None };
        Some(types.get(id)?.pointer.clone())
    });
    let named: Vec<String> = named.collect();
    types.beside_text.extend(named);
}

/// Reading a union that is a variant of itself would never end.
fn break_unions(types: &mut Types, diagnostics: &mut Vec<Diagnostic>) {
    let mut edges: Vec<Vec<usize>> = Vec::new();
    for item in &mut types.items {
        let transparent = matches!(item.shape, Shape::Union(_) | Shape::Tagged(_) | Shape::Alias(_));
        let held = item.shape.types_mut().into_iter().filter(|_| transparent).flat_map(direct);
        edges.push(held.collect());
    }
    let groups = groups(&edges);
    for (id, item) in types.items.iter_mut().enumerate() {
        let leads_back = |type_: &mut Type| direct(type_).iter().any(|to| on_cycle(&groups, &edges, id, *to));
        let before = item.shape.types().len();
        match &mut item.shape {
            Shape::Union(variants) => variants.retain_mut(|variant| !leads_back(&mut variant.type_)),
            Shape::Tagged(tagged) => tagged.variants.retain_mut(|v| !leads_back(&mut v.variant.type_)),
            _ => continue,
        }
        if item.shape.types().len() < before {
            let message = "the union is a variant of itself";
            diagnostics.push(Diagnostic::note(&item.pointer, message).with_help("the variant is left out"));
        }
        if item.shape.types().is_empty() {
            item.shape = Shape::Alias(Type::Value);
        }
    }
}

/// The named types that a value of the type may itself be.
fn direct(type_: &mut Type) -> Vec<usize> {
    match type_ {
        Type::Named(id) => vec![*id],
        Type::Option(inner) => direct(inner),
        _ => Vec::new(),
    }
}

/// Only objects have a tag: any other union is distinguished by shape.
fn untag(types: &mut Types) {
    // A type that becomes a plain union may be a variant of others.
    let mut parents: HashMap<usize, Vec<usize>> = HashMap::new();
    let mut queue: Vec<usize> = Vec::new();
    for (id, item) in types.items.iter().enumerate() {
        let Shape::Tagged(tagged) = &item.shape else { continue };
        queue.push(id);
        for variant in &tagged.variants {
            if let Type::Named(inner) = types.resolve(&variant.variant.type_) {
                parents.entry(*inner).or_default().push(id);
            }
        }
    }
    while let Some(id) = queue.pop() {
        let record = |type_: &Type| match types.resolve(type_) {
            Type::Map(_) | Type::Value => true,
            Type::Custom(custom) => custom.kinds.iter().all(|kind| kind.name == "Object"),
            Type::Named(id) => {
                matches!(types.get(*id).map(|item| &item.shape), Some(Shape::Record(_) | Shape::Tagged(_)))
            }
            _ => false,
        };
        let wrong = |item: &Item| match &item.shape {
            Shape::Tagged(tagged) => !tagged.variants.iter().all(|v| record(&v.variant.type_)),
            _ => false,
        };
        if !types.get(id).is_some_and(wrong) {
            continue;
        }
        queue.extend(parents.get(&id).into_iter().flatten());
        if let Some(item) = types.items.get_mut(id) {
            let shape = std::mem::replace(&mut item.shape, Shape::Pending);
            if let Shape::Tagged(tagged) = shape {
                item.shape = Shape::Union(tagged.variants.into_iter().map(|v| v.variant).collect());
            }
        }
    }
}

/// A required property with a single possible value is no field: there is nothing to set or to read.
fn take_constants(types: &mut Types) {
    let only = |types: &Types, field: &Field| -> Option<Value> {
        let Type::Named(id) = &field.type_ else { return None };
        let item = types.get(*id)?;
        // The document's authors chose the name of a definition to be seen.
        let is_definition = item.pointer.strip_prefix("/$defs/").is_some_and(|name| !name.contains('/'));
        match &item.shape {
            Shape::Names(constants) | Shape::Values(constants) if field.required && !is_definition => {
                match constants.as_slice() {
                    [one] if matches!(&field.default, Default::Raw(other) | Default::Told(other) if *other != one.value) => {
                        None
                    }
                    [one] => Some(one.value.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    };
    for id in 0..types.items.len() {
        let Some(Shape::Record(record)) = types.get(id).map(|item| &item.shape) else { continue };
        let values: Vec<Option<Value>> = record.fields.iter().map(|field| only(types, field)).collect();
        let Some(Shape::Record(record)) = types.items.get_mut(id).map(|item| &mut item.shape) else { continue };
        let fields = std::mem::take(&mut record.fields);
        for (field, value) in fields.into_iter().zip(values) {
            match value {
                Some(value) => record.constants.push((field.json, value)),
                None => record.fields.push(field),
            }
        }
    }
}

/// How many variants are looked at for the tags that objects do not tell: so many, and so many for each type.
const STEPS: (usize, usize) = (100_000, 64);

/// Makes each tag a variant where the object has no field for it: a variant of several is sent with the first. Beyond
/// [`STEPS`], tags stay together.
fn part_tags(types: &mut Types) {
    // Unions that reach each other cost their product.
    let mut left = types.items.len().saturating_mul(STEPS.1).saturating_add(STEPS.0);
    for id in 0..types.items.len() {
        let Some(Shape::Tagged(tagged)) = types.get(id).map(|item| &item.shape) else { continue };
        // The unions of which this is known: variants share what they reach.
        let mut told = HashSet::new();
        let mut is_untold = |variant: &TaggedVariant| {
            variant.tags.len() > 1 && !tells(types, &variant.variant.type_, &tagged.property, &mut told, &mut left)
        };
        let untold: Vec<bool> = tagged.variants.iter().map(&mut is_untold).collect();
        let Some(Shape::Tagged(tagged)) = types.items.get_mut(id).map(|item| &mut item.shape) else { continue };
        for (variant, is_untold) in std::mem::take(&mut tagged.variants).into_iter().zip(untold) {
            if is_untold {
                tagged.variants.extend(parts(variant));
            } else {
                tagged.variants.push(variant);
            }
        }
    }
}

/// The variant once for each of its tags, and named after it. The first one has its text, which may be long.
fn parts(variant: TaggedVariant) -> impl Iterator<Item = TaggedVariant> {
    let TaggedVariant { tags, is_default, variant: Variant { mut docs, type_, successes, .. } } = variant;
    tags.into_iter().enumerate().map(move |(at, tag)| {
        let ident = upper_camel(&tag.as_str().map_or_else(|| tag.to_string(), str::to_owned));
        let variant = Variant { ident, docs: docs.take(), type_: type_.clone(), successes: successes.clone() };
        TaggedVariant { tags: vec![tag], is_default: is_default && at == 0, variant }
    })
}

/// True if each value of the type has the property: it is a record that declares it, or a union of such.
///
/// `told` are unions of which this is known; `left` is how many variants may still be looked at.
fn tells(types: &Types, type_: &Type, property: &str, told: &mut HashSet<usize>, left: &mut usize) -> bool {
    let mut open = vec![type_];
    while let Some(type_) = open.pop() {
        match left.checked_sub(1) {
            Some(fewer) => *left = fewer,
            None => return true,
        }
        let is_told = match types.resolve(type_) {
            Type::Custom(custom) => {
                custom.kinds.iter().all(|kind| kind.needs.iter().chain(&kind.knows).any(|name| name == property))
            }
            Type::Named(id) => match types.get(*id).map(|item| &item.shape) {
                Some(Shape::Record(record)) => record.declares(property),
                Some(Shape::Tagged(tagged)) => {
                    if tagged.property != property && told.insert(*id) {
                        open.extend(tagged.variants.iter().map(|variant| &variant.variant.type_));
                    }
                    true
                }
                _ => false,
            },
            _ => false,
        };
        if !is_told {
            // Of those that were begun, none is known.
            told.clear();
            return false;
        }
    }
    true
}
