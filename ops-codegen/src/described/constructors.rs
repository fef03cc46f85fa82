//! Constructors that take their values in another order than in an earlier version of an API.

use std::collections::HashMap;

use ops_runtime::spec::Api;

use super::lowered;
use crate::lower::reached;
use crate::types::{Item, ItemId, Shape};

/// A constructor that takes the values that it took, but in another order.
#[derive(Debug)]
pub struct Reordered {
    /// The old name of its type.
    pub type_: String,
    /// The place of its schema: `/$defs/NAME/...` in the old definition, else in the old operation, such as `/input`.
    pub pointer: String,
    /// The ids of the old operations whose inputs have the type.
    pub operations: Vec<String>,
    /// The names of the values in JSON, in the new order.
    pub order: Vec<String>,
}

/// The constructors of an API that take their values in another order in a new version of it.
///
/// A program that passes two values of one type still compiles, and swaps them. If `new` takes other values than before, the
/// change of the schema is listed instead. Types are matched by their names, as a program names them.
pub fn reordered(old: &Api, new: &Api) -> Vec<Reordered> {
    let (old, new) = (lowered(old), lowered(new));
    let items = new.types.items.iter();
    let orders: HashMap<&str, Vec<&str>> = items.map(|item| (item.name.as_str(), taken(item))).collect();
    let changed = |(id, item): (ItemId, &Item)| -> Option<(ItemId, Reordered)> {
        let (was, order) = (taken(item), orders.get(item.name.as_str())?);
        if was == *order || sorted(&was) != sorted(order) {
            return None;
        }
        let order = order.iter().map(|name| (*name).to_owned()).collect();
        let (type_, pointer) = (item.name.clone(), relative(&item.pointer));
        Some((id, Reordered { type_, pointer, operations: Vec::new(), order }))
    };
    let mut found: Vec<(ItemId, Reordered)> = old.types.items.iter().enumerate().filter_map(changed).collect();
    if found.is_empty() {
        return Vec::new();
    }
    for operation in &old.operations {
        let reached = reached(&old.types, [&operation.input]);
        for (_, change) in found.iter_mut().filter(|(id, _)| reached.get(*id) == Some(&true)) {
            change.operations.push(operation.spec.id.to_string());
        }
    }
    found.into_iter().map(|(_, change)| change).collect()
}

/// What `new` takes, in its order; nothing if the type has no `new`.
fn taken(item: &Item) -> Vec<&str> {
    match &item.shape {
        Shape::Record(record) if item.sent => {
            record.fields.iter().filter(|field| field.is_set()).map(|field| field.json.as_str()).collect()
        }
        _ => Vec::new(),
    }
}

fn sorted<'n>(names: &[&'n str]) -> Vec<&'n str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

/// A place in an operation without the operation.
fn relative(place: &str) -> String {
    let inside = place.strip_prefix("/operations/").map(|place| place.split_once('/').map_or("", |(_, inside)| inside));
    inside.map_or_else(|| place.to_owned(), |inside| format!("/{inside}"))
}
