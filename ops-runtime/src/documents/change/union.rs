//! Unions: which variant of the receiver takes a variant of the sender.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::compare::Comparer;
use super::merge::Union;
use super::tags::Tags;
use super::view::{Side, expanded, kind, kind_of, label, resolve, tag, values, words};
use crate::Definitions;

/// The variants without those that stand there twice, as null does in unions of what may be null.
fn distinct(mut variants: Vec<Value>) -> Vec<Value> {
    let mut known = HashSet::new();
    variants.retain(|variant| known.insert(label(variant)));
    variants
}

impl Comparer<'_> {
    /// Finds a variant of the receiver for each variant of the sender.
    ///
    /// Variants of one name are taken for one variant, also if they differ; others are matched if they fit.
    pub(super) fn union(&mut self, old_union: &Union, new_union: &Union, pointer: &str) {
        let text = |union: &Union| Value::from_iter(union.variants.iter().cloned()).to_string();
        let key = (text(old_union), text(new_union));
        if !self.open.insert(key.clone()) {
            return;
        }
        let (old, new) = (distinct(old_union.variants.clone()), distinct(new_union.variants.clone()));
        self.budget = self.budget.saturating_sub(old.len() + new.len());
        let labels: HashMap<String, Value> = new.iter().map(|variant| (label(variant), variant.clone())).collect();
        let (mut lost, mut kept) = (Vec::new(), HashSet::new());
        let mut pairs = Vec::new();
        for variant in old {
            match labels.get_key_value(&label(&variant)) {
                Some((label, same)) => {
                    self.walk(&variant, same, pointer);
                    kept.insert(label.clone());
                    pairs.push((label.clone(), label.clone()));
                }
                None => lost.push(variant),
            }
        }
        let (same, found): (Vec<Value>, Vec<Value>) = new.into_iter().partition(|new| kept.contains(&label(new)));
        if !(lost.is_empty() && found.is_empty()) {
            let tags = self.both_tags(old_union, new_union).map(|(old, new)| self.ends(old, new));
            self.unequal(lost, found, same, tags, &mut pairs, pointer);
        }
        self.tags(old_union, new_union, &pairs, pointer);
        self.exclusion(old_union, new_union, pointer);
        self.open.remove(&key);
    }

    /// Compares how many variants may fit one value.
    fn exclusion(&mut self, old: &Union, new: &Union, pointer: &str) {
        let is_one = match (old.is_exclusive, new.is_exclusive) {
            (Some(was), Some(is)) if was != is => is,
            _ => return,
        };
        // No value fits two of such variants anyway.
        if new.discriminator.is_some() || are_apart(&new.variants, self.new) {
            return;
        }
        let message = if is_one {
            self.say("what fits several of its variants is not taken any more", "what comes fits only one variant now")
        } else {
            self.say("what fits several of its variants is taken now", "what comes may fit several of its variants now")
        };
        self.note(pointer, message, is_one && self.side == Side::Input);
    }

    /// Compares variants without a counterpart; `same` are those that both sides have, and the tags are those of the sender
    /// and the receiver. Adds the labels of counterparts that are found to the pairs.
    fn unequal(
        &mut self,
        old: Vec<Value>,
        new: Vec<Value>,
        same: Vec<Value>,
        tags: Option<(Tags, Tags)>,
        pairs: &mut Vec<(String, String)>,
        pointer: &str,
    ) {
        let mut room = self.budget;
        let mut all = |variants: Vec<Value>, table| {
            variants.into_iter().flat_map(|variant| expanded(variant, table, 0, &mut room)).collect::<Vec<_>>()
        };
        let (old, new) = (distinct(all(old, self.old)), distinct(all(new, self.new)));
        let (senders, mut receivers) = self.ends(old, new);
        let table = self.ends(self.old, self.new).1;
        let own = receivers.len();
        let mut unused: BTreeSet<usize> = (0..own).collect();
        // One that both sides have may take others as well. The labels are those of the union's own variants.
        let mut outer: Vec<String> = Vec::new();
        for variant in same.into_iter().filter(|_| !senders.is_empty()) {
            let label = label(&variant);
            receivers.extend(all(vec![variant], table));
            outer.resize(receivers.len() - own, label);
        }
        self.budget = self.budget.saturating_sub(senders.len() + receivers.len());
        let mut labels: HashMap<String, usize> = HashMap::new();
        for (at, receiver) in receivers.iter().enumerate() {
            labels.entry(label(receiver)).or_insert(at);
        }
        let mut found: Vec<Option<usize>> = senders.iter().map(|sender| labels.get(&label(sender)).copied()).collect();
        found.iter().flatten().for_each(|at| _ = unused.remove(at));
        for (sender, found) in senders.iter().zip(&mut found).filter(|(_, found)| found.is_none()) {
            // Those that nothing was found for come first.
            let order: Vec<usize> = unused.iter().copied().chain(0..receivers.len()).collect();
            let sent = tags.as_ref().and_then(|(from, to)| Some((from.variants.get(&label(sender))?, to)));
            *found = order.into_iter().find(|at| {
                let (Some(receiver), true) = (receivers.get(*at), self.budget > 0) else { return false };
                // It takes others only if their values select it.
                if let Some(label) = at.checked_sub(own).and_then(|at| outer.get(at))
                    && sent.is_some_and(|(sent, tags)| !sent.select(tags, label))
                {
                    return false;
                }
                let (old, new) = self.ends(sender, receiver);
                self.fits(old, new)
            });
            if let Some(at) = found {
                unused.remove(at);
            }
        }
        self.pair_changed(&senders, &receivers, &mut found, &mut unused);
        for (sender, found) in senders.iter().zip(&found) {
            let Some((at, receiver)) = found.and_then(|at| Some((at, receivers.get(at)?))) else { continue };
            if at < own {
                let (old, new) = self.ends(sender, receiver);
                pairs.push((label(old), label(new)));
                self.walk(old, new, pointer);
            } else if label(sender) != label(receiver) {
                // The receiver has a counterpart already, which it is compared with.
                let message = self.say("is taken as another variant now", "can come now");
                self.note(pointer, format!("{} {message}", words(sender)), false);
            }
        }
        for (variant, _) in senders.iter().zip(&found).filter(|(_, found)| found.is_none()) {
            let message = self.say("is not taken any more", "can come now");
            self.note(pointer, format!("{} {message}", words(variant)), true);
        }
        for variant in unused.into_iter().filter_map(|at| receivers.get(at)) {
            let message = self.say("is taken now", "does not come any more");
            self.note(pointer, format!("{} {message}", words(variant)), false);
        }
    }

    /// Takes variants that are left for changed ones: with one tag or kind, or the only ones that are left.
    fn pair_changed(
        &mut self,
        senders: &[Value],
        receivers: &[Value],
        found: &mut [Option<usize>],
        unused: &mut BTreeSet<usize>,
    ) {
        let (sent, taken) = self.ends(self.old, self.new);
        let mut tags: HashMap<String, Vec<usize>> = HashMap::new();
        for at in unused.iter().rev() {
            let receiver = receivers.get(*at).and_then(|receiver| tag(receiver, taken));
            receiver.into_iter().for_each(|tag| tags.entry(tag).or_default().push(*at));
        }
        for (sender, found) in senders.iter().zip(found.iter_mut()).filter(|(_, found)| found.is_none()) {
            if let Some(at) = tag(sender, sent).and_then(|tag| tags.get_mut(&tag)).and_then(Vec::pop) {
                *found = Some(at);
                unused.remove(&at);
            }
        }
        let mut lost = found.iter_mut().filter(|found| found.is_none());
        if let (Some(only), None, 1) = (lost.next(), lost.next(), unused.len()) {
            *only = unused.pop_first();
        }
    }
}

/// True if no value fits two of the variants, as far as their kinds, values and constant properties tell.
fn are_apart(variants: &[Value], definitions: &Definitions) -> bool {
    // The kinds that variants take as a whole, those of single values, and these values.
    let (mut whole, mut partial, mut known) = (HashSet::new(), HashSet::new(), HashSet::new());
    // The properties that each object so far requires and that are constants there, with the values of these constants.
    let mut tags: Option<HashMap<String, HashSet<String>>> = None;
    for variant in variants {
        let resolved = resolve(definitions, variant);
        let Some(node) = resolved.as_object() else { return false };
        if let Some(values) = values(node) {
            partial.extend(values.iter().map(|value| of_numbers(kind_of(value)).to_owned()));
            if !values.iter().all(|value| known.insert(constant(value))) {
                return false;
            }
            continue;
        }
        let kind = kind(node);
        // A schema with a list of kinds takes values of each.
        if kind == "any" || node.get("type").is_some_and(Value::is_array) {
            return false;
        }
        let is_first = whole.insert(of_numbers(kind).to_owned());
        if kind == "object" {
            let own = constants(node);
            let left = match tags.take() {
                None => own,
                Some(mut tags) => {
                    let others = own.into_iter().filter_map(|(name, values)| {
                        let mut seen = tags.remove(&name)?;
                        values.into_iter().all(|value| seen.insert(value)).then_some((name, seen))
                    });
                    others.collect()
                }
            };
            if !is_first && left.is_empty() {
                return false;
            }
            tags = Some(left);
        } else if !is_first {
            return false;
        }
    }
    whole.is_disjoint(&partial)
}

/// The properties that an object requires and that have only certain values, with these values.
fn constants(node: &Map<String, Value>) -> HashMap<String, HashSet<String>> {
    let properties = node.get("properties").and_then(Value::as_object);
    let required = node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let constants = required.filter_map(|name| {
        let values = values(properties?.get(name)?.as_object()?)?;
        Some((name.to_owned(), values.iter().map(constant).collect()))
    });
    constants.collect()
}

/// A value as text that equal values share, as `1` and `1.0` are.
fn constant(value: &Value) -> String {
    value.as_f64().map_or_else(|| value.to_string(), |number| number.to_string())
}

/// The kind, where an integer is a number.
fn of_numbers(kind: &str) -> &str {
    if kind == "integer" { "number" } else { kind }
}
