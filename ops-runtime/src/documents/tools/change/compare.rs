//! Checks that all values of one schema are values of another, and finds where they are not.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::{Map, Value};

use super::view::{Side, definition, expanded, is_annotation, is_any, is_opaque, kind, same, values, variants, words};
use crate::Definitions;
use crate::documents::openapi::pointer;
use crate::model::text::readable;

/// How deep two schemas are compared.
const DEEPEST: usize = 64;

/// How many places are compared.
const BUDGET: usize = 20_000;

/// How many changes of one schema are reported.
const MOST: usize = 500;

/// A pointer of more bytes is not extended.
const LONGEST: usize = 2_000;

/// Formats of strings that types may be made of.
const TYPED_FORMATS: &[&str] = &["binary", "byte", "date", "date-time", "uri", "uuid"];

/// Lower limits of values, and upper ones.
const LOWER: &[&str] = &["exclusiveMinimum", "minItems", "minLength", "minProperties", "minimum"];
const UPPER: &[&str] = &["exclusiveMaximum", "maxItems", "maxLength", "maxProperties", "maximum"];

/// Constraints that can only be equal or different.
const OTHER: &[&str] = &["multipleOf", "pattern", "uniqueItems"];

type Object = Map<String, Value>;

/// A comparison of two schemas, and its findings: the place, the message, and true if it breaks.
pub(super) struct Comparison<'a> {
    side: Side,
    old: &'a Definitions,
    new: &'a Definitions,
    /// The pairs with a definition that are being compared or were.
    seen: BTreeSet<(String, String)>,
    /// Those of them that this comparison added.
    added: Vec<(String, String)>,
    depth: usize,
    budget: usize,
    found: Vec<(String, String, bool)>,
}

impl<'a> Comparison<'a> {
    pub(super) fn new(side: Side, old: &'a Definitions, new: &'a Definitions) -> Self {
        Self { side, old, new, seen: BTreeSet::new(), added: Vec::new(), depth: 0, budget: BUDGET, found: Vec::new() }
    }

    pub(super) fn finish(self) -> Vec<(String, String, bool)> {
        self.found
    }

    fn note(&mut self, pointer: &str, message: impl Into<String>, breaks: bool) {
        if self.found.len() == MOST {
            let breaks = breaks || self.found.last().is_some_and(|(_, _, breaks)| *breaks);
            self.found.push((String::new(), "and more, which is not shown".to_owned(), breaks));
            return;
        }
        if let Some((_, _, last)) = self.found.get_mut(MOST) {
            *last |= breaks;
            return;
        }
        self.found.push((pointer.to_owned(), message.into(), breaks));
    }

    /// The sender's and the receiver's, of an old and a new thing.
    fn ends<T>(&self, old: T, new: T) -> (T, T) {
        if self.side == Side::Input { (old, new) } else { (new, old) }
    }

    /// One of two messages, by the direction of values.
    fn say(&self, input: &str, output: &str) -> String {
        if self.side == Side::Input { input.to_owned() } else { output.to_owned() }
    }

    /// Compares an old and a new schema, at their common pointer.
    pub(super) fn compare(&mut self, old: &Value, new: &Value, pointer: &str) {
        let Some(budget) = self.budget.checked_sub(1).filter(|_| self.depth < DEEPEST) else {
            return self.note(pointer, "it is too large to be compared", true);
        };
        self.budget = budget;
        self.depth += 1;
        let (old_name, new_name) = (reference(old), reference(new));
        if old_name.is_none() && new_name.is_none() {
            self.resolved(old, new, pointer);
        } else if self.seen.insert((old.to_string(), new.to_string())) {
            self.added.push((old.to_string(), new.to_string()));
            let (old_table, new_table) = (self.old, self.new);
            self.compare(&target(old_table, old, old_name), &target(new_table, new, new_name), pointer);
        }
        self.depth -= 1;
    }

    fn resolved(&mut self, old: &Value, new: &Value, pointer: &str) {
        let (Value::Object(old_node), Value::Object(new_node)) = (old, new) else {
            return self.other(old, new, pointer);
        };
        if is_any(old) || is_any(new) {
            return self.other(old, new, pointer);
        }
        if old_node.get("default") != new_node.get("default") {
            self.note(pointer, "its default changed", false);
        }
        let (old_variants, new_variants) = (variants(old_node), variants(new_node));
        if old_variants == std::slice::from_ref(old) && new_variants == std::slice::from_ref(new) {
            return self.single(old_node, new_node, pointer);
        }
        let mut room = self.budget;
        let mut all = |variants: Vec<Value>, table| {
            variants.into_iter().flat_map(|variant| expanded(variant, table, 0, &mut room)).collect::<Vec<_>>()
        };
        let (old_variants, new_variants) = (all(old_variants, self.old), all(new_variants, self.new));
        self.union(old_variants, new_variants, pointer);
    }

    /// Compares schemas if one accepts everything or nothing.
    fn other(&mut self, old: &Value, new: &Value, pointer: &str) {
        let (sender, receiver) = self.ends(old, new);
        let (is_nothing, takes_all) = (*sender == Value::Bool(false), is_any(receiver));
        if old != new && !(is_any(old) && is_any(new)) {
            self.note(pointer, became(old, new), !(is_nothing || takes_all));
        }
    }

    /// Finds a variant of the receiver for each variant of the sender.
    fn union(&mut self, old: Vec<Value>, new: Vec<Value>, pointer: &str) {
        let (senders, receivers) = self.ends(&old, &new);
        let mut unused: BTreeSet<usize> = (0..receivers.len()).collect();
        let mut same: HashMap<String, usize> = HashMap::new();
        for (at, receiver) in receivers.iter().enumerate() {
            same.entry(receiver.to_string()).or_insert(at);
        }
        let (mut pairs, mut lost) = (Vec::new(), Vec::new());
        for sender in senders {
            // Equal variants are matched first, so that no change is invented.
            let alike = same.get(&sender.to_string()).copied();
            let alike = alike.filter(|at| receivers.get(*at).is_some_and(|receiver| self.fits(sender, receiver)));
            let mut all = receivers.iter().enumerate();
            let found = alike.or_else(|| {
                all.find_map(|(at, receiver)| {
                    // Without a budget nothing is known to fit.
                    (self.budget == 0 || self.fits(sender, receiver)).then_some(at)
                })
                .filter(|_| self.budget > 0)
            });
            match found.and_then(|at| receivers.get(at).map(|receiver| (at, receiver))) {
                Some((at, receiver)) => {
                    unused.remove(&at);
                    pairs.push((sender, receiver));
                }
                None => lost.push(sender),
            }
        }
        let unused: Vec<&Value> = unused.into_iter().filter_map(|at| receivers.get(at)).collect();
        let (lost, unused) = match (lost.as_slice(), unused.as_slice()) {
            // One variant left on each side: it has changed.
            ([sender], [receiver]) => {
                pairs.push((sender, receiver));
                (Vec::new(), Vec::new())
            }
            _ => (lost, unused),
        };
        for (sender, receiver) in pairs {
            let (old, new) = self.ends(sender, receiver);
            self.compare(old, new, pointer);
        }
        for variant in lost {
            let message = self.say("is not taken any more", "can come now");
            self.note(pointer, format!("{} {message}", words(variant)), true);
        }
        for variant in unused {
            let message = self.say("is taken now", "does not come any more");
            self.note(pointer, format!("{} {message}", words(variant)), false);
        }
    }

    /// True if the receiver accepts all that the sender sends.
    fn fits(&mut self, sender: &Value, receiver: &Value) -> bool {
        let seen = std::mem::take(&mut self.seen);
        let mut trial = Comparison { seen, added: Vec::new(), found: Vec::new(), ..*self };
        let (old, new) = self.ends(sender, receiver);
        trial.compare(old, new, "");
        self.budget = trial.budget;
        for pair in &trial.added {
            trial.seen.remove(pair);
        }
        self.seen = trial.seen;
        trial.found.iter().all(|(_, _, breaks)| !breaks)
    }

    /// Compares schemas of one kind each.
    fn single(&mut self, old: &Object, new: &Object, pointer: &str) {
        if is_opaque(old, self.side) || is_opaque(new, self.side) {
            if !same(old, new, self.old, self.new, &mut self.budget) {
                self.note(pointer, "it changed in a way that cannot be compared", true);
            }
            return;
        }
        let (old_kind, new_kind) = (kind(old), kind(new));
        if old_kind != new_kind {
            let ends = self.ends(old_kind, new_kind);
            let widens = matches!(ends, ("integer", "number") | (_, "any"));
            return self.note(pointer, format!("it was {old_kind} and is {new_kind} now"), !widens);
        }
        self.values(old, new, pointer);
        self.limits(old, new, old_kind, pointer);
        self.format(old, new, old_kind, pointer);
        match old_kind {
            "object" => self.object(old, new, pointer),
            "array" => self.array(old, new, pointer),
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

    fn limits(&mut self, old: &Object, new: &Object, kind: &str, pointer: &str) {
        for (key, is_lower) in LOWER.iter().map(|key| (*key, true)).chain(UPPER.iter().map(|key| (*key, false))) {
            let (old, new) = (old.get(key).and_then(Value::as_f64), new.get(key).and_then(Value::as_f64));
            let message = match new {
                _ if old == new => continue,
                Some(new) => format!("`{key}` is {new} now"),
                None => format!("there is no `{key}` any more"),
            };
            let narrows = match (old, new) {
                (Some(old), Some(new)) if is_lower => new > old,
                (Some(old), Some(new)) => new < old,
                (old, _) => old.is_none(),
            };
            // Limits of integers select their types.
            let breaks = if self.side == Side::Input { narrows } else { kind == "integer" && !narrows };
            self.note(pointer, message, breaks);
        }
        for key in OTHER.iter().filter(|key| old.get(**key) != new.get(**key)) {
            let demands = new.get(*key).is_some_and(|limit| *limit != Value::Bool(false));
            self.note(pointer, format!("`{key}` changed"), self.side == Side::Input && demands);
        }
    }

    fn format(&mut self, old: &Object, new: &Object, kind: &str, pointer: &str) {
        let text = |node: &'_ Object| node.get("format").and_then(Value::as_str).map(str::to_owned);
        let (old, new) = (text(old), text(new));
        if old == new {
            return;
        }
        let breaks = match (self.side, &old) {
            (Side::Input, _) => new.is_some(),
            (Side::Output, Some(old)) => kind != "string" || TYPED_FORMATS.contains(&old.as_str()),
            // A type without a format accepts any text; a number with a format is still a number.
            (Side::Output, None) => false,
        };
        let message = match new {
            Some(new) => format!("its format is `{new}` now"),
            None => "it has no format any more".to_owned(),
        };
        self.note(pointer, message, breaks);
    }

    fn object(&mut self, old: &Object, new: &Object, at: &str) {
        let none = Object::new();
        let properties = |node: &'_ Object| node.get("properties").and_then(Value::as_object).cloned();
        let (old_properties, new_properties) = (properties(old), properties(new));
        let (old_properties, new_properties) =
            (old_properties.as_ref().unwrap_or(&none), new_properties.as_ref().unwrap_or(&none));
        let (demanded, demands) = (required(old), required(new));
        for (name, property) in old_properties {
            let place = inside(at, "properties", name);
            let (was, is) = (demanded.contains(name.as_str()), demands.contains(name.as_str()));
            match new_properties.get(name) {
                Some(new) => {
                    self.compare(property, new, &place);
                    if !was && is {
                        let message = self.say("it is required now", "it is always there now");
                        self.note(&place, message, self.side == Side::Input);
                    } else if was && !is {
                        let message = self.say("it is not required any more", "it may be absent now");
                        self.note(&place, message, self.side == Side::Output);
                    }
                }
                None => self.note(&place, "the property is gone", self.side == Side::Input || was),
            }
        }
        for (name, property) in new_properties.iter().filter(|(name, _)| !old_properties.contains_key(*name)) {
            let place = inside(at, "properties", name);
            let is_required = demands.contains(name.as_str());
            let message = if is_required { "the property is new, and required" } else { "the property is new" };
            self.note(&place, message, self.side == Side::Input && is_required);
            // A type that keeps other properties takes it as one of them.
            if let (Side::Output, Some(others)) = (self.side, others(old)) {
                self.compare(others, property, &place);
            }
        }
        let is_known = |name: &&&str| old_properties.contains_key(**name) || new_properties.contains_key(**name);
        for name in demands.difference(&demanded).filter(|name| !is_known(name)) {
            self.note(&inside(at, "properties", name), "it is required now", self.side == Side::Input);
        }
        self.others(old, new, at);
    }

    /// The properties that are not declared.
    fn others(&mut self, old: &Object, new: &Object, at: &str) {
        let key = "additionalProperties";
        let place = format!("{at}/{key}");
        let any = Value::Bool(true);
        let (sent, taken) = self.ends(old.get(key), new.get(key));
        match (sent, taken) {
            _ if old.get(key) == new.get(key) => {}
            // Undeclared properties are not sent, and no type keeps them.
            (None | Some(Value::Bool(false)), Some(Value::Bool(false))) | (_, None) => {}
            (None, Some(_)) if self.side == Side::Input => {}
            (Some(Value::Bool(false)), Some(_)) => {}
            (_, Some(Value::Bool(false))) if self.side == Side::Output => {}
            (sent, Some(taken)) => {
                let sent = sent.unwrap_or(&any);
                let (old, new) = self.ends(sent, taken);
                self.compare(old, new, &place);
            }
        }
    }

    fn array(&mut self, old: &Object, new: &Object, at: &str) {
        let any = Value::Bool(true);
        let list = |node: &'_ Object| node.get("prefixItems").and_then(Value::as_array).cloned().unwrap_or_default();
        let (old_list, new_list) = (list(old), list(new));
        if old_list.len() == new_list.len() {
            for (number, (old, new)) in old_list.iter().zip(&new_list).enumerate() {
                self.compare(old, new, &inside(at, "prefixItems", &number.to_string()));
            }
        } else {
            let message = format!("it has {} items of their own now, not {}", new_list.len(), old_list.len());
            self.note(at, message, true);
        }
        let (old, new) = (old.get("items").unwrap_or(&any), new.get("items").unwrap_or(&any));
        self.compare(old, new, &format!("{at}/items"));
    }
}

/// The definition that a schema refers to, if it has no other members.
fn reference(schema: &Value) -> Option<&str> {
    let node = schema.as_object()?;
    let name = node.get("$ref").and_then(Value::as_str)?;
    node.keys().all(|key| key == "$ref" || is_annotation(key)).then_some(name)
}

fn target<'v>(definitions: &Definitions, schema: &'v Value, name: Option<&str>) -> Cow<'v, Value> {
    match name {
        // A reference to nowhere was reported when the list was read, and accepts anything.
        Some(name) => Cow::Owned(definition(definitions, name).unwrap_or(Value::Bool(true))),
        None => Cow::Borrowed(schema),
    }
}

/// The schema of other properties; `None` if it accepts everything.
fn others(node: &Object) -> Option<&Value> {
    node.get("additionalProperties").filter(|schema| schema.is_object() && !is_any(schema))
}

fn required(node: &Object) -> BTreeSet<&str> {
    node.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// A value in a message.
fn shown(value: &Value) -> String {
    readable(&value.to_string(), 200)
}

fn inside(at: &str, key: &str, name: &str) -> String {
    if at.len() + name.len() > LONGEST {
        return if at.ends_with("/...") { at.to_owned() } else { format!("{at}/...") };
    }
    let mut place = format!("{at}/{key}");
    pointer::push(&mut place, name);
    place
}

fn became(old: &Value, new: &Value) -> String {
    format!("it was {} and is {} now", words(old), words(new))
}
