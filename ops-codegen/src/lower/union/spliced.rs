//! The members of a union, with those of unions in it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::Value;

use crate::lower::view::is_annotation;

/// The members of a list, those that are only unions replaced by the members of those unions.
#[derive(Default)]
pub(super) struct Spliced {
    /// Each with the positions in the list that it comes from.
    pub(super) schemas: Vec<(Value, Vec<usize>)>,
    known: HashMap<Value, usize>,
}

impl Spliced {
    pub(super) fn add(&mut self, schema: &Value, origin: usize, depth: usize) {
        let inner = schema.as_object().and_then(|object| {
            let mut keys = object.keys().filter(|key| !is_annotation(key) || *key == "nullable");
            match (keys.next().map(String::as_str), keys.next()) {
                (Some(key @ ("oneOf" | "anyOf")), None) => object.get(key).and_then(Value::as_array),
                _ => None,
            }
        });
        if let (Some(inner), Some(depth)) = (inner, depth.checked_sub(1)) {
            inner.iter().for_each(|schema| self.add(schema, origin, depth));
            return;
        }
        match self.known.entry(schema.clone()) {
            Entry::Vacant(entry) => {
                entry.insert(self.schemas.len());
                self.schemas.push((schema.clone(), vec![origin]));
            }
            Entry::Occupied(entry) => {
                let origins = self.schemas.get_mut(*entry.get()).map(|(_, origins)| origins);
                if let Some(origins) = origins.filter(|origins| origins.last() != Some(&origin)) {
                    origins.push(origin);
                }
            }
        }
    }
}
