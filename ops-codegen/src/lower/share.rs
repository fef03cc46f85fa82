//! Types that documents repeat: nested schemas that are alike become one type.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::order::renumber;
use super::roots::Roots;
use crate::types::{Item, ItemId, Shape, Type, Types};

/// Shares a type among places with equal schemas that are properties of the same name.
///
/// The type is named after the first place that the operations reach, so that additions at a document's end change no
/// name. Definitions, and inputs and outputs of operations, have names of their own, and are not shared.
///
/// Types are compared as their directions have made them, since a default counts only in what is received, and `readOnly` only
/// in what is sent. So an added operation may part two types that were alike: one that receives what was only sent, sends what was
/// only received, or sends explicit nulls. If they stayed one type, the other would change, too, although nothing uses it otherwise.
pub(crate) fn share(types: &mut Types, roots: &mut Roots) {
    let mut own: Vec<bool> = types.items.iter().map(|item| place(item).is_none()).collect();
    let operations = roots.operations.iter().flat_map(|root| [&root.input, &root.output]);
    for type_ in operations.chain(&roots.webhooks) {
        if let Type::Named(id) = type_
            && let Some(own) = own.get_mut(*id)
        {
            *own = true;
        }
    }
    // Types become alike when the types that they name have become one: from the inside out.
    loop {
        let mut target: Vec<Option<ItemId>> = vec![None; types.items.len()];
        let mut known: HashMap<String, ItemId> = HashMap::new();
        let mut shared = Vec::new();
        for (id, item) in types.items.iter().enumerate() {
            if own.get(id) != Some(&false) {
                continue;
            }
            match known.entry(key(types, item)) {
                Entry::Vacant(entry) => {
                    entry.insert(id);
                }
                Entry::Occupied(entry) => {
                    let first = *entry.get();
                    shared.push((first, id));
                    if let Some(target) = target.get_mut(id) {
                        *target = Some(first);
                    }
                }
            }
        }
        if shared.is_empty() {
            return;
        }
        for (first, other) in shared {
            // The description of one place does not fit all of them.
            if types.get(first).map(|item| &item.docs) != types.get(other).map(|item| &item.docs)
                && let Some(item) = types.items.get_mut(first)
            {
                item.docs = None;
            }
            if let Some(own) = own.get_mut(other) {
                *own = true;
            }
        }
        let all = types.items.iter_mut().flat_map(|item| item.shape.types_mut()).chain(roots.types_mut());
        all.for_each(|type_| renumber(type_, &target));
    }
}

/// The place of an item that may be shared, as far as it identifies the item: the end of its pointer.
fn place(item: &Item) -> Option<&str> {
    if matches!(item.shape, Shape::Alias(_) | Shape::Newtype(_) | Shape::Pending) {
        return None;
    }
    if let Some(at) = item.pointer.rfind("/properties/") {
        return item.pointer.get(at..);
    }
    // Errors are often alike; other types that are no properties belong to their definition or operation.
    item.pointer
        .starts_with("/operations/")
        .then(|| item.pointer.rfind("/errors"))?
        .and_then(|at| item.pointer.get(at..))
}

/// Two items with the same key are alike.
fn key(types: &Types, item: &Item) -> String {
    // A union of a few types is named after them, at any place.
    let place = if matches!(item.shape, Shape::Union(_)) { "" } else { place(item).unwrap_or_default() };
    format!("{place} {} {:?}", types.open.contains(&item.pointer), item.shape)
}

/// Names a union of a few types after them, as in `StringOrFile`, the same at any place.
pub(crate) fn name_unions(types: &mut Types) {
    let names: Vec<Option<String>> = types
        .items
        .iter()
        .map(|item| match &item.shape {
            Shape::Union(variants) if place(item).is_some() && variants.len() <= 3 => {
                let names: Option<Vec<String>> =
                    variants.iter().map(|variant| plain_name(types, &variant.type_)).collect();
                names.map(|names| names.join("Or"))
            }
            _ => None,
        })
        .collect();
    for (item, name) in types.items.iter_mut().zip(names) {
        if let Some(name) = name {
            item.name = name;
        }
    }
}

/// The name of a type, if it does not depend on its place.
fn plain_name(types: &Types, type_: &Type) -> Option<String> {
    Some(match type_ {
        Type::Bool => "Boolean".to_owned(),
        Type::I32 | Type::I64 | Type::U32 | Type::U64 => "Integer".to_owned(),
        Type::F64 => "Number".to_owned(),
        Type::String => "String".to_owned(),
        Type::Format(format) => format.type_name().to_owned(),
        Type::Custom(custom) => custom.name.clone(),
        Type::Body => "Bytes".to_owned(),
        Type::Block => "Block".to_owned(),
        Type::List(inner) => format!("{}List", plain_name(types, inner)?),
        Type::Map(inner) => format!("{}Map", plain_name(types, inner)?),
        Type::Named(id) | Type::Boxed(id) => {
            let item = types.get(*id)?;
            let definition = item.pointer.strip_prefix("/$defs/").is_some_and(|name| !name.contains('/'));
            definition.then(|| item.name.clone())?
        }
        Type::Unit | Type::Value | Type::Tuple(_) | Type::Option(_) => return None,
    })
}
