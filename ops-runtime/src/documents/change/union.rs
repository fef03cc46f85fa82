//! Unions: which variant of the receiver takes a variant of the sender.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::compare::Comparer;
use super::view::{expanded, label, tag, words};

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
    pub(super) fn union(&mut self, old: Vec<Value>, new: Vec<Value>, pointer: &str) {
        let key =
            (Value::from_iter(old.iter().cloned()).to_string(), Value::from_iter(new.iter().cloned()).to_string());
        if !self.open.insert(key.clone()) {
            return;
        }
        let (old, new) = (distinct(old), distinct(new));
        self.budget = self.budget.saturating_sub(old.len() + new.len());
        let labels: HashMap<String, Value> = new.iter().map(|variant| (label(variant), variant.clone())).collect();
        let (mut lost, mut kept) = (Vec::new(), HashSet::new());
        for variant in old {
            match labels.get_key_value(&label(&variant)) {
                Some((label, same)) => {
                    self.walk(&variant, same, pointer);
                    kept.insert(label.clone());
                }
                None => lost.push(variant),
            }
        }
        let (same, found): (Vec<Value>, Vec<Value>) = new.into_iter().partition(|new| kept.contains(&label(new)));
        if !(lost.is_empty() && found.is_empty()) {
            self.unequal(lost, found, same, pointer);
        }
        self.open.remove(&key);
    }

    /// Compares variants without a counterpart; `same` are those that both sides have.
    fn unequal(&mut self, old: Vec<Value>, new: Vec<Value>, same: Vec<Value>, pointer: &str) {
        let mut room = self.budget;
        let mut all = |variants: Vec<Value>, table| {
            variants.into_iter().flat_map(|variant| expanded(variant, table, 0, &mut room)).collect::<Vec<_>>()
        };
        let (old, new) = (distinct(all(old, self.old)), distinct(all(new, self.new)));
        let (senders, mut receivers) = self.ends(old, new);
        let table = self.ends(self.old, self.new).1;
        let mut unused: BTreeSet<usize> = (0..receivers.len()).collect();
        // One that both sides have may take others as well.
        if !senders.is_empty() {
            receivers.extend(all(same, table));
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
            *found = order.into_iter().find(|at| {
                let (Some(receiver), true) = (receivers.get(*at), self.budget > 0) else { return false };
                let (old, new) = self.ends(sender, receiver);
                self.fits(old, new)
            });
            if let Some(at) = found {
                unused.remove(at);
            }
        }
        self.pair_changed(&senders, &receivers, &mut found, &mut unused);
        for (sender, found) in senders.iter().zip(&found) {
            if let Some(receiver) = found.and_then(|at| receivers.get(at)) {
                let (old, new) = self.ends(sender, receiver);
                self.walk(old, new, pointer);
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
