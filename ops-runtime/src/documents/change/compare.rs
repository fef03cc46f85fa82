//! The comparison itself: from schemas to findings, definition by definition.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::Finding;
use super::merge::{Parts, Union, parts};
use super::view::{Side, definition, is_any, kind, not_null, reference, resolve, rest, same, values, variants, words};
use crate::model::text::readable;
use crate::{Definitions, pointer};

/// How deep two schemas are compared without following references.
const DEEPEST: usize = 64;

/// How many definitions are compared inside of each other to choose the variants of unions.
const NESTED: usize = 4;

/// How many changes of one schema are reported.
#[cfg(feature = "mcp-schema")]
const MOST: usize = 500;

/// A pointer of more bytes is not extended.
const LONGEST: usize = 2_000;

pub(super) type Object = Map<String, Value>;

/// What the comparison of two schemas gives.
#[derive(Debug, Clone)]
pub(in crate::documents) enum Entry {
    Found(Finding),
    /// All that a pair of definitions gives, at a place that refers to both.
    Inner {
        #[cfg_attr(not(feature = "mcp-schema"), allow(dead_code, reason = "only a list of tools tells every place"))]
        pointer: String,
        pair: usize,
    },
}

/// Two definitions that are compared.
struct Pair {
    old: String,
    new: String,
    state: State,
}

enum State {
    Waiting,
    /// Being compared.
    Busy,
    Done {
        entries: Vec<Entry>,
        fits: Option<bool>,
    },
}

/// Compares schemas of two tables of definitions, in one direction.
pub(in crate::documents) struct Comparer<'a> {
    pub(super) side: Side,
    /// The mark of properties that only the other direction has: `readOnly` or `writeOnly`.
    pub(super) absent: Option<&'static str>,
    pub(super) old: &'a Definitions,
    pub(super) new: &'a Definitions,
    pairs: Vec<Pair>,
    numbers: HashMap<(String, String), usize>,
    depth: usize,
    nested: usize,
    /// True if both tables are the same.
    is_same: bool,
    /// The texts of schemas with parts, and of unions, that are being compared: one inside of itself gives nothing new.
    pub(super) open: HashSet<(String, String)>,
    /// How many places may still be compared.
    pub(super) budget: usize,
    found: Vec<Entry>,
}

impl<'a> Comparer<'a> {
    /// A comparison that visits at most so many places; beyond, schemas count as changed.
    pub(in crate::documents) fn new(side: Side, old: &'a Definitions, new: &'a Definitions, budget: usize) -> Self {
        Self {
            side,
            absent: None,
            old,
            new,
            pairs: Vec::new(),
            numbers: HashMap::new(),
            depth: 0,
            nested: 0,
            is_same: old == new,
            open: HashSet::new(),
            budget,
            found: Vec::new(),
        }
    }

    /// Leaves out properties with this mark.
    pub(in crate::documents) fn without(mut self, mark: &'static str) -> Self {
        self.absent = Some(mark);
        self
    }

    /// Compares an old and a new schema, at their common pointer.
    pub(in crate::documents) fn compare(&mut self, old: &Value, new: &Value, pointer: &str) -> Vec<Entry> {
        let outer = std::mem::take(&mut self.found);
        self.walk(old, new, pointer);
        std::mem::replace(&mut self.found, outer)
    }

    /// A property that an old and a new schema both have, in the words of the old one. It and its items are what they refer to,
    /// apart from `null`.
    pub(in crate::documents) fn property(&self, old: &Value, new: &Value, name: &str) -> Option<Value> {
        resolve(self.new, new).get("properties")?.get(name)?;
        let old = resolve(self.old, old);
        let mut property = not_null(old.get("properties")?.get(name)?, self.old);
        if let Some(items) = property.get_mut("items") {
            *items = not_null(items, self.old);
        }
        Some(property)
    }

    /// What a pair of definitions gives, and their names.
    pub(in crate::documents) fn pair(&mut self, pair: usize) -> (&str, &str, &[Entry]) {
        self.ensure(pair);
        match self.pairs.get(pair) {
            Some(Pair { old, new, state: State::Done { entries, .. } }) => (old, new, entries),
            Some(Pair { old, new, .. }) => (old, new, &[]),
            None => ("", "", &[]),
        }
    }

    /// All findings, those of definitions at the first place that refers to them.
    #[cfg(feature = "mcp-schema")]
    pub(in crate::documents) fn findings(&mut self, entries: Vec<Entry>) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        let mut open = vec![(String::new(), entries.into_iter())];
        while let Some((start, entries)) = open.last_mut() {
            match entries.next() {
                None => drop(open.pop()),
                Some(Entry::Found(mut finding)) if found.len() < MOST => {
                    finding.pointer = joined(start, &finding.pointer);
                    found.push(finding);
                }
                Some(Entry::Found(finding)) => {
                    if found.len() == MOST {
                        let message = "and more, which is not shown".to_owned();
                        found.push(Finding { pointer: String::new(), message, breaks: false, is_gone: false });
                    }
                    if let Some(last) = found.last_mut() {
                        last.breaks |= finding.breaks;
                    }
                }
                Some(Entry::Inner { pointer, pair }) if seen.insert(pair) => {
                    let start = joined(start, &pointer);
                    let entries = self.pair(pair).2.to_vec();
                    open.push((start, entries.into_iter()));
                }
                Some(Entry::Inner { .. }) => {}
            }
        }
        found
    }

    /// True if the receiver takes all that the sender sends.
    pub(in crate::documents) fn fits(&mut self, old: &Value, new: &Value) -> bool {
        let entries = self.compare(old, new, "");
        let mut open: Vec<usize> = Vec::new();
        if !harmless(&entries, &mut open) {
            return false;
        }
        let (mut seen, mut complete) = (HashSet::new(), true);
        while let Some(pair) = open.pop() {
            if !seen.insert(pair) {
                continue;
            }
            self.budget = self.budget.saturating_sub(1);
            self.ensure(pair);
            match self.pairs.get(pair).map(|pair| &pair.state) {
                Some(State::Done { fits: Some(true), .. }) => {}
                Some(State::Done { fits: Some(false), .. }) => return false,
                Some(State::Done { entries, fits: None }) => {
                    if !harmless(entries, &mut open) {
                        self.judge(pair, false);
                        return false;
                    }
                }
                // What is being compared is assumed to fit: its findings are reported where it is.
                _ => complete = false,
            }
        }
        if complete {
            seen.into_iter().for_each(|pair| self.judge(pair, true));
        }
        true
    }

    fn judge(&mut self, pair: usize, verdict: bool) {
        if let Some(Pair { state: State::Done { fits, .. }, .. }) = self.pairs.get_mut(pair) {
            *fits = Some(verdict);
        }
    }

    /// Compares a pair of definitions, if that is still to be done.
    fn ensure(&mut self, number: usize) {
        let is_deep = self.nested == NESTED;
        let Some(pair) = self.pairs.get_mut(number).filter(|pair| matches!(pair.state, State::Waiting) && !is_deep)
        else {
            return;
        };
        pair.state = State::Busy;
        let (old, new) = (pair.old.clone(), pair.new.clone());
        let (old_table, new_table) = (self.old, self.new);
        let (depth, open) = (std::mem::take(&mut self.depth), std::mem::take(&mut self.open));
        self.nested += 1;
        // A reference to nowhere was reported when the description was read, and accepts anything.
        let any = || Cow::Owned(Value::Bool(true));
        let (old, new) = (definition(old_table, &old), definition(new_table, &new));
        let entries = self.compare(&old.unwrap_or_else(any), &new.unwrap_or_else(any), "");
        self.nested -= 1;
        (self.depth, self.open) = (depth, open);
        if let Some(pair) = self.pairs.get_mut(number) {
            pair.state = State::Done { entries, fits: None };
        }
    }

    pub(super) fn note(&mut self, pointer: &str, message: impl Into<String>, breaks: bool) {
        let (pointer, message) = (pointer.to_owned(), message.into());
        self.found.push(Entry::Found(Finding { pointer, message, breaks, is_gone: false }));
    }

    /// Notes that a property is gone.
    pub(super) fn note_gone(&mut self, pointer: &str, breaks: bool) {
        let (pointer, message) = (pointer.to_owned(), "the property is gone".to_owned());
        self.found.push(Entry::Found(Finding { pointer, message, breaks, is_gone: true }));
    }

    /// The sender's and the receiver's, of an old and a new thing.
    pub(super) fn ends<T>(&self, old: T, new: T) -> (T, T) {
        if self.side == Side::Input { (old, new) } else { (new, old) }
    }

    /// One of two messages, by the direction of values.
    pub(super) fn say(&self, input: &str, output: &str) -> String {
        if self.side == Side::Input { input.to_owned() } else { output.to_owned() }
    }

    pub(super) fn walk(&mut self, old: &Value, new: &Value, pointer: &str) {
        if self.is_same && old == new {
            return;
        }
        let Some(budget) = self.budget.checked_sub(1).filter(|_| self.depth < DEEPEST) else {
            return self.note(pointer, "it is too large to be compared", true);
        };
        self.budget = budget;
        self.depth += 1;
        let (old_table, new_table) = (self.old, self.new);
        match (reference(old), reference(new)) {
            (Some(old_name), Some(new_name)) => {
                self.default(old, new, pointer);
                let pair = self.number(&old_name, &new_name);
                self.found.push(Entry::Inner { pointer: pointer.to_owned(), pair });
            }
            (None, None) => self.resolved(old, new, pointer),
            _ => self.resolved(&resolve(old_table, old), &resolve(new_table, new), pointer),
        }
        self.depth -= 1;
    }

    fn number(&mut self, old: &str, new: &str) -> usize {
        let next = self.pairs.len();
        let number = *self.numbers.entry((old.to_owned(), new.to_owned())).or_insert(next);
        if number == next {
            self.pairs.push(Pair { old: old.to_owned(), new: new.to_owned(), state: State::Waiting });
        }
        number
    }

    fn default(&mut self, old: &Value, new: &Value, pointer: &str) {
        if old.get("default") != new.get("default") {
            self.note(pointer, "its default changed", false);
        }
    }

    fn resolved(&mut self, old: &Value, new: &Value, pointer: &str) {
        let (Value::Object(old_node), Value::Object(new_node)) = (old, new) else {
            return self.other(old, new, pointer);
        };
        if is_any(old) || is_any(new) {
            return self.other(old, new, pointer);
        }
        self.default(old, new, pointer);
        let is_made_of = |node: &Object| node.contains_key("allOf") || node.contains_key("$ref");
        if !is_made_of(old_node) && !is_made_of(new_node) {
            return self.taken_apart(old_node, new_node, pointer);
        }
        let key = (old.to_string(), new.to_string());
        if self.open.insert(key.clone()) {
            self.taken_apart(old_node, new_node, pointer);
            self.open.remove(&key);
        }
    }

    fn taken_apart(&mut self, old_node: &Object, new_node: &Object, pointer: &str) {
        let (old, new) = (parts(old_node, self.old, &mut self.budget), parts(new_node, self.new, &mut self.budget));
        let (Some(old), Some(new)) = (old, new) else {
            return self.note(pointer, "it is too large to be compared", true);
        };
        if old.is_mixed() || new.is_mixed() {
            return self.mixed(&old, &new, pointer);
        }
        self.either(&old, &new, pointer);
    }

    /// Compares schemas that are unions or have no union.
    fn either(&mut self, old: &Parts<'_>, new: &Parts<'_>, pointer: &str) {
        let of = |parts: &Parts<'_>| match parts.unions.first() {
            Some(union) => Some(union.clone()),
            None => variants(&parts.node).map(Union::of),
        };
        match (of(old), of(new)) {
            (None, None) => self.single(&old.node, &new.node, pointer),
            (old_union, new_union) => {
                let alone = |parts: &Parts<'_>| Union::of(vec![Value::Object(parts.node.clone().into_owned())]);
                let old = old_union.unwrap_or_else(|| alone(old));
                let new = new_union.unwrap_or_else(|| alone(new));
                self.union(&old, &new, pointer);
            }
        }
    }

    /// Compares schemas that have unions beside other members: each part for itself.
    fn mixed(&mut self, old: &Parts<'_>, new: &Parts<'_>, pointer: &str) {
        if !(old.node.is_empty() && new.node.is_empty()) {
            self.either(&old.without_unions(), &new.without_unions(), pointer);
        }
        for (old, new) in old.unions.iter().zip(&new.unions) {
            self.union(old, new, pointer);
        }
        if old.unions.len() != new.unions.len() {
            let (sent, taken) = self.ends(old.unions.len(), new.unions.len());
            self.note(pointer, "it changed in a way that cannot be compared", taken > sent);
        }
    }

    /// Compares schemas if one accepts everything or nothing.
    fn other(&mut self, old: &Value, new: &Value, pointer: &str) {
        let (sender, receiver) = self.ends(old, new);
        let (is_nothing, takes_all) = (*sender == Value::Bool(false), is_any(receiver));
        if old != new && !(is_any(old) && is_any(new)) {
            self.note(pointer, became(old, new), !(is_nothing || takes_all));
        }
    }

    /// Compares schemas of one kind each.
    fn single(&mut self, old: &Object, new: &Object, pointer: &str) {
        let (old_rest, new_rest) = (rest(old, self.side), rest(new, self.side));
        if !same(&old_rest, &new_rest, self.old, self.new, &mut self.budget) {
            let (_, taken) = self.ends(&old_rest, &new_rest);
            self.note(pointer, "it changed in a way that cannot be compared", !taken.is_empty());
        }
        let (old_kind, new_kind) = (kind(old), kind(new));
        let (sent, taken) = self.ends(old_kind, new_kind);
        let is_same = sent == taken;
        if !is_same {
            let widens = matches!((sent, taken), ("integer", "number") | (_, "any"));
            self.note(pointer, format!("it was {old_kind} and is {new_kind} now"), !widens);
            if !widens {
                return;
            }
        }
        // A wider kind may restrict the values of the kind that is sent.
        self.values(old, new, pointer);
        self.limits(old, new, sent, pointer);
        self.format(old, new, sent, pointer);
        match sent {
            "object" if is_same => self.object(old, new, pointer),
            "array" if is_same => self.array(old, new, pointer),
            _ => {}
        }
    }

    fn values(&mut self, old: &Object, new: &Object, pointer: &str) {
        let (sent, taken) = self.ends(values(old), values(new));
        // A type of one value accepts no other; an enum keeps unknown values.
        let is_strict = |taken: &[Value]| self.side == Side::Input || taken.len() == 1;
        match (sent, taken) {
            (None, Some(taken)) => {
                let breaks = is_strict(taken);
                let message = self.say("it takes only some values now", "it can have any value now");
                self.note(pointer, message, breaks);
            }
            (Some(_), None) => {
                let message = self.say("it takes any value now", "it has only some values now");
                self.note(pointer, message, false);
            }
            (Some(sent), Some(taken)) => {
                let breaks = is_strict(taken);
                let texts = |values: &[Value]| values.iter().map(ToString::to_string).collect::<HashSet<_>>();
                let (all_sent, all_taken) = (texts(sent), texts(taken));
                for value in sent.iter().filter(|value| !all_taken.contains(&value.to_string())) {
                    let message = self.say("is not taken any more", "can come now");
                    self.note(pointer, format!("the value {} {message}", shown(value)), breaks);
                }
                for value in taken.iter().filter(|value| !all_sent.contains(&value.to_string())) {
                    let message = self.say("is taken now", "does not come any more");
                    self.note(pointer, format!("the value {} {message}", shown(value)), false);
                }
            }
            (None, None) => {}
        }
    }
}

/// True if no entry breaks; collects the pairs of definitions on which that depends.
fn harmless(entries: &[Entry], open: &mut Vec<usize>) -> bool {
    entries.iter().all(|entry| match entry {
        Entry::Found(finding) => !finding.breaks,
        Entry::Inner { pair, .. } => {
            open.push(*pair);
            true
        }
    })
}

/// A value in a message.
pub(super) fn shown(value: &Value) -> String {
    readable(&value.to_string(), 200)
}

#[cfg(feature = "mcp-schema")]
fn joined(start: &str, pointer: &str) -> String {
    if start.len() + pointer.len() > LONGEST { elided(start) } else { format!("{start}{pointer}") }
}

/// The place of a member below a keyword.
pub(super) fn inside(at: &str, key: &str, name: &str) -> String {
    if at.len() + name.len() > LONGEST {
        return elided(at);
    }
    let mut place = format!("{at}/{key}");
    pointer::push(&mut place, name);
    place
}

fn elided(at: &str) -> String {
    if at.ends_with("/...") { at.to_owned() } else { format!("{at}/...") }
}

fn became(old: &Value, new: &Value) -> String {
    format!("it was {} and is {} now", words(old), words(new))
}
