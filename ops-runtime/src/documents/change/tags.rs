//! Discriminators: which values of a property select the variants of a union.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::compare::{Comparer, shown};
use super::merge::{Union, parts};
use super::view::{Side, label, reference, resolve, values, words};
use crate::model::text::readable;
use crate::{Definitions, pointer};

/// How deep unions inside of variants are looked into.
const NESTED: usize = 4;

/// What selects the variants of a union.
pub(super) struct Tags {
    property: String,
    /// The values that select each variant, by its label.
    pub(super) variants: HashMap<String, Selected>,
    /// The label of the variant that each value selects, by the text of the value.
    values: HashMap<String, String>,
    /// The label of the variant that anything else is.
    default: Option<String>,
}

/// The values that select a variant.
pub(super) struct Selected {
    values: Vec<Value>,
    /// True if the properties of the variant say them.
    is_own: bool,
    /// The variant in a few words.
    words: String,
}

impl Tags {
    /// The values of a discriminator: those of its mapping, else those that a variant's property can have, else the name
    /// of the variant's definition. `None` if they do not tell the variants from each other.
    fn of(union: &Union, definitions: &Definitions, budget: &mut usize) -> Option<Self> {
        let discriminator = union.discriminator.as_ref()?;
        let property = discriminator.get("propertyName")?.as_str()?;
        let mapping = discriminator.get("mapping").and_then(Value::as_object);
        let mut mapped: HashMap<String, Vec<Value>> = HashMap::new();
        for (value, target) in mapping.into_iter().flatten() {
            if let Some(name) = target.as_str().and_then(pointer::definition) {
                mapped.entry(name.into_owned()).or_default().push(value.as_str().into());
            }
        }
        let default = discriminator.get("defaultMapping").and_then(Value::as_str).and_then(pointer::definition);
        let mut tags =
            Self { property: property.to_owned(), variants: HashMap::new(), values: HashMap::new(), default: None };
        for variant in union.variants.iter().filter(|variant| variant.get("type") != Some(&"null".into())) {
            let label = label(variant);
            if tags.variants.contains_key(&label) {
                continue;
            }
            let name = reference(variant);
            if default.is_some() && name == default {
                tags.default = Some(label.clone());
            }
            let of_mapping = name.as_deref().and_then(|name| mapped.remove(name));
            let (values, is_own) = match of_mapping {
                Some(values) => (values, false),
                None => match constants(variant, property, definitions, budget, 0) {
                    Some(values) => (values, true),
                    None => (vec![name.as_deref()?.into()], false),
                },
            };
            for value in &values {
                let other = tags.values.insert(value.to_string(), label.clone());
                if other.is_some_and(|other| other != label) {
                    return None;
                }
            }
            tags.variants.insert(label, Selected { values, is_own, words: words(variant) });
        }
        Some(tags)
    }

    /// The label of the variant that a value selects.
    fn selected(&self, value: &Value) -> Option<&str> {
        self.values.get(&value.to_string()).or(self.default.as_ref()).map(String::as_str)
    }
}

impl Selected {
    /// True if each of the values selects the variant with this label.
    pub(super) fn select(&self, receiver: &Tags, label: &str) -> bool {
        self.values.iter().all(|value| receiver.selected(value) == Some(label))
    }
}

/// True if the properties of all variants say the values of a discriminator themselves, and are always there.
fn are_said(union: &Union, property: &str, definitions: &Definitions, budget: &mut usize) -> bool {
    let bare = Union { discriminator: Some(json!({ "propertyName": property })), ..union.clone() };
    let (said, all) = (Tags::of(&bare, definitions, budget), Tags::of(union, definitions, budget));
    let (Some(said), Some(all)) = (said, all) else { return false };
    said.variants.iter().all(|(label, selected)| selected.is_own && selected.select(&all, label))
        && union
            .variants
            .iter()
            .filter(|variant| variant.get("type") != Some(&"null".into()))
            .all(|variant| requires(variant, property, definitions, budget, 0))
}

/// True if a schema requires a property.
fn requires(schema: &Value, property: &str, definitions: &Definitions, budget: &mut usize, depth: usize) -> bool {
    let Some(left) = budget.checked_sub(1) else { return false };
    *budget = left;
    let resolved = resolve(definitions, schema);
    let Some(merged) = resolved.as_object().and_then(|own| parts(own, definitions, budget)) else { return false };
    let mut names = merged.node.get("required").and_then(Value::as_array).into_iter().flatten();
    if names.any(|required| required == property) {
        return true;
    }
    let inner = merged.unions.first().filter(|_| depth < NESTED);
    inner.is_some_and(|inner| {
        inner.variants.iter().all(|variant| requires(variant, property, definitions, budget, depth + 1))
    })
}

/// The only values that a property of a schema can have, if the schema names them.
fn constants(
    schema: &Value,
    property: &str,
    definitions: &Definitions,
    budget: &mut usize,
    depth: usize,
) -> Option<Vec<Value>> {
    *budget = budget.checked_sub(1)?;
    let resolved = resolve(definitions, schema);
    let merged = parts(resolved.as_object()?, definitions, budget)?;
    if let Some(own) = merged.node.get("properties").and_then(|properties| properties.get(property)) {
        let own = resolve(definitions, own);
        let own = own.as_object().and_then(|own| parts(own, definitions, budget));
        if let Some(values) = own.as_ref().and_then(|own| values(&own.node)) {
            return Some(values.to_vec());
        }
    }
    let inner = merged.unions.first().filter(|_| depth < NESTED)?;
    let mut all = Vec::new();
    for variant in &inner.variants {
        all.extend(constants(variant, property, definitions, budget, depth + 1)?);
    }
    Some(all)
}

impl Comparer<'_> {
    /// What selects the variants of the old and of the new union; `None` if no property does in one of them.
    pub(super) fn both_tags(&mut self, old: &Union, new: &Union) -> Option<(Tags, Tags)> {
        new.discriminator.as_ref()?;
        let (old_table, new_table) = (self.old, self.new);
        let old = Tags::of(old, old_table, &mut self.budget)?;
        Some((old, Tags::of(new, new_table, &mut self.budget)?))
    }

    /// Compares what selects the variants of two unions; the pairs are the labels of variants that are counterparts.
    pub(super) fn tags(&mut self, old: &Union, new: &Union, pairs: &[(String, String)], pointer: &str) {
        let is_same = old.discriminator == new.discriminator && pairs.iter().all(|(old, new)| old == new);
        if is_same {
            return;
        }
        if old.discriminator.is_some() != new.discriminator.is_some() {
            return self.tags_of_one(old, new, pointer);
        }
        let Some((old, new)) = self.both_tags(old, new) else { return };
        if old.property != new.property {
            let (old, new) = (readable(&old.property, 100), readable(&new.property, 100));
            return self.note(pointer, format!("`{new}` selects its variants now, not `{old}`"), true);
        }
        let property = readable(&new.property, 100);
        let (sender, receiver) = self.ends(&old, &new);
        for (old, new) in pairs {
            let (from, to) = self.ends(old, new);
            let (Some(sent), Some(taken)) = (sender.variants.get(from), receiver.variants.get(to)) else { continue };
            // A change of its property is a change of the variant.
            if !(sent.is_own && taken.is_own) {
                self.selected(sent, taken, to, receiver, pointer);
            }
            if sender.default.as_ref() == Some(from) && receiver.default.as_ref() != Some(to) {
                let message = self.say("is not taken any more without", "can come now without");
                self.note(pointer, format!("{} {message} a value of `{property}` that is known", sent.words), true);
            }
        }
    }

    /// Compares unions of which one has a discriminator.
    fn tags_of_one(&mut self, old: &Union, new: &Union, pointer: &str) {
        let comes = new.discriminator.is_some();
        let (union, table) = if comes { (new, self.new) } else { (old, self.old) };
        let property = union.discriminator.as_ref().and_then(|own| own.get("propertyName")).and_then(Value::as_str);
        // Where one side has no variants to select, those that come or go are told.
        let Some(property) = property.filter(|_| old.variants.len() > 1 && new.variants.len() > 1) else { return };
        // The receiver selects a variant by a value that the sender need not send.
        let is_needed = (self.side == Side::Input) == comes;
        let breaks = is_needed && !are_said(union, property, table, &mut self.budget);
        let message = if comes { "selects its variants now" } else { "does not select its variants any more" };
        self.note(pointer, format!("`{}` {message}", readable(property, 100)), breaks);
    }

    /// Compares the values that select a variant of the sender and its counterpart, which has the label `to`.
    fn selected(&mut self, sent: &Selected, taken: &Selected, to: &str, receiver: &Tags, pointer: &str) {
        let property = readable(&receiver.property, 100);
        for value in sent.values.iter().filter(|value| receiver.selected(value) != Some(to)) {
            let message = self.say("is not taken any more with", "can come now with");
            self.note(pointer, format!("{} {message} {} as `{property}`", sent.words, shown(value)), true);
        }
        for value in taken.values.iter().filter(|value| !sent.values.contains(value)) {
            let message = self.say("is taken now with", "does not come any more with");
            self.note(pointer, format!("{} {message} {} as `{property}`", taken.words, shown(value)), false);
        }
    }
}
