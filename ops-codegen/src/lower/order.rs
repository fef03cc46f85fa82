//! The order of items, as the operations reach them: additions at a document's end change no earlier names.

use super::roots::Roots;
use crate::types::{ItemId, Shape, Type, Types};

/// Sorts the items in the order in which the roots reach them, and drops unreached ones.
pub(crate) fn order(types: &mut Types, roots: &mut Roots) {
    let mut position: Vec<Option<ItemId>> = vec![None; types.items.len()];
    let mut order: Vec<ItemId> = Vec::new();
    for type_ in roots.types_mut() {
        reach(types, type_, &mut position, &mut order);
    }
    types.renumbered();
    let mut items: Vec<Option<crate::types::Item>> = std::mem::take(&mut types.items).into_iter().map(Some).collect();
    types.items = order.iter().filter_map(|id| items.get_mut(*id).and_then(Option::take)).collect();
    let all = types.items.iter_mut().flat_map(|item| item.shape.types_mut()).chain(roots.types_mut());
    for type_ in all {
        renumber(type_, &position);
    }
}

/// Appends the items that a type reaches and that are not in the order yet: each before those of its fields.
fn reach(types: &Types, type_: &Type, position: &mut [Option<ItemId>], order: &mut Vec<ItemId>) {
    let mut stack = Vec::new();
    type_.named(&mut stack);
    stack.reverse();
    while let Some(id) = stack.pop() {
        let Some(slot) = position.get_mut(id).filter(|slot| slot.is_none()) else { continue };
        *slot = Some(order.len());
        order.push(id);
        let mut named = Vec::new();
        for type_ in types.get(id).into_iter().flat_map(|item| item.shape.types()) {
            type_.named(&mut named);
        }
        stack.extend(named.into_iter().rev());
    }
}

/// Renames the items that a type names; those without a new number keep theirs.
pub(super) fn renumber(type_: &mut Type, position: &[Option<ItemId>]) {
    match type_ {
        Type::Named(id) | Type::Boxed(id) => *id = position.get(*id).copied().flatten().unwrap_or(*id),
        Type::List(inner) | Type::Map(inner) | Type::Option(inner) => renumber(inner, position),
        Type::Tuple(items) => items.iter_mut().for_each(|item| renumber(item, position)),
        _ => {}
    }
}

/// The items that a set of types reaches.
pub(crate) fn reached<'t>(types: &Types, roots: impl IntoIterator<Item = &'t Type>) -> Vec<bool> {
    let mut position: Vec<Option<ItemId>> = vec![None; types.items.len()];
    let mut order = Vec::new();
    for type_ in roots {
        reach(types, type_, &mut position, &mut order);
    }
    position.iter().map(Option::is_some).collect()
}

/// Items whose definitions were not found accept everything.
pub(crate) fn settle(types: &mut Types) {
    for item in &mut types.items {
        if matches!(item.shape, Shape::Pending) {
            item.shape = Shape::Alias(Type::Value);
        }
    }
}
