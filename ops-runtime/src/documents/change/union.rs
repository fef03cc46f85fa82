//! Unions: which variant of the receiver takes a variant of the sender.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::apart::{are_apart, may_take_what_others_take, members};
use super::compare::Comparer;
use super::merge::Union;
use super::tags::Tags;
use super::view::{Side, expanded, label, tag, words};

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
        let mut more = HashSet::new();
        if !(lost.is_empty() && found.is_empty()) {
            let tags = self.both_tags(old_union, new_union).map(|(old, new)| self.ends(old, new));
            more = self.unequal(lost, found, same, tags, &mut pairs, pointer);
        }
        self.tags(old_union, new_union, &pairs, pointer);
        self.exclusion(old_union, new_union, &more, &kept, pointer);
        self.open.remove(&key);
    }

    /// Compares how many variants may fit one value. `more` has the labels of the receiver's variants without a counterpart, and
    /// `kept` those of the variants that both sides have.
    fn exclusion(&mut self, old: &Union, new: &Union, more: &HashSet<String>, kept: &HashSet<String>, pointer: &str) {
        // With a discriminator, a value fits only the variant that it selects.
        if new.discriminator.is_some() {
            return;
        }
        let (is_one, may_fit_two) = match (old.is_exclusive, new.is_exclusive) {
            (Some(was), Some(is)) if was != is => (is, !are_apart(&members(new, self.new, &mut self.budget))),
            // A value that fitted one variant may fit a new one, too. A value that fits only new variants is new itself.
            (Some(true), Some(true)) if self.side == Side::Input && !more.is_empty() => {
                (true, may_take_what_others_take(&members(new, self.new, &mut self.budget), more, kept))
            }
            _ => return,
        };
        if !may_fit_two {
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
    /// and the receiver. Adds the labels of counterparts that are found to the pairs. Returns the labels of the receiver's
    /// variants without a counterpart.
    fn unequal(
        &mut self,
        old: Vec<Value>,
        new: Vec<Value>,
        same: Vec<Value>,
        tags: Option<(Tags, Tags)>,
        pairs: &mut Vec<(String, String)>,
        pointer: &str,
    ) -> HashSet<String> {
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
        let unused: Vec<&Value> = unused.iter().filter_map(|at| receivers.get(*at)).collect();
        for variant in &unused {
            let message = self.say("is taken now", "does not come any more");
            self.note(pointer, format!("{} {message}", words(variant)), false);
        }
        unused.into_iter().map(label).collect()
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
