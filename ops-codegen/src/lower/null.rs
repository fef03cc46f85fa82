//! Moves `null` from the variants of a union to the union itself.

use std::collections::HashMap;

use super::direction::without_null;
use super::roots::Roots;
use crate::types::{ItemId, Shape, Type, Types};

/// If a variant of a union is an `Option`, makes each use of the union an `Option`, and the variant a plain type.
///
/// All other types that may be `null` already are an `Option` at each use. Properties that requests may set to `null` rely on
/// this.
pub(super) fn lift_nulls(types: &mut Types, roots: &mut Roots) {
    // For each type, the unions that have it as a variant.
    let mut parents: HashMap<ItemId, Vec<ItemId>> = HashMap::new();
    let mut queue: Vec<ItemId> = Vec::new();
    for (id, item) in types.items.iter().enumerate().filter(|(_, item)| is_union(&item.shape)) {
        for variant in item.shape.types() {
            match types.resolve(variant) {
                Type::Option(_) => queue.push(id),
                Type::Named(inner) => parents.entry(*inner).or_default().push(id),
                _ => {}
            }
        }
    }
    let mut lifted = vec![false; types.items.len()];
    while let Some(id) = queue.pop() {
        if let Some(lifted) = lifted.get_mut(id).filter(|lifted| !**lifted) {
            *lifted = true;
            queue.extend(parents.get(&id).into_iter().flatten());
        }
    }
    let all = types.items.iter_mut().flat_map(|item| item.shape.types_mut()).chain(roots.types_mut());
    all.for_each(|type_| make_nullable(type_, &lifted));
    for id in (0..lifted.len()).filter(|id| lifted.get(*id) == Some(&true)) {
        let Some(item) = types.get(id) else { continue };
        let bare: Vec<Type> =
            item.shape.types().into_iter().map(|variant| without_null(types, variant.clone())).collect();
        let variants = types.items.get_mut(id).into_iter().flat_map(|item| item.shape.types_mut());
        variants.zip(bare).for_each(|(variant, bare)| *variant = bare);
    }
}

/// True for a union, except one of the successes of an operation: there, the status tells which variant a `null` is.
fn is_union(shape: &Shape) -> bool {
    match shape {
        Shape::Union(variants) => variants.iter().all(|variant| variant.successes.is_empty()),
        Shape::Tagged(tagged) => tagged.variants.iter().all(|tagged| tagged.variant.successes.is_empty()),
        _ => false,
    }
}

/// Makes each use of a lifted union in a type an `Option`.
fn make_nullable(type_: &mut Type, lifted: &[bool]) {
    match type_ {
        Type::Named(id) if lifted.get(*id) == Some(&true) => {
            *type_ = std::mem::replace(type_, Type::Value).nullable();
        }
        Type::List(inner) | Type::Map(inner) | Type::Option(inner) => make_nullable(inner, lifted),
        Type::Tuple(items) => items.iter_mut().for_each(|item| make_nullable(item, lifted)),
        _ => {}
    }
}
