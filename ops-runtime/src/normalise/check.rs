//! Checks if a value conforms, without saying why not.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use serde_json::{Map, Value};

use super::budget::Budget;
use super::definitions::{CompiledDefinitions, Reading};
use super::equal::{copy, distinct, equal, weight};
use super::node::{
    Additional, ArrayRules, At, Intersect, Kind, Literals, Node, ObjectRules, Target, Typed, Types, Union,
};
use super::tagged::Tagged;
use super::text::of_text;

/// How deep a value is followed, combined schemas included. JSON is parsed to 128 levels.
pub(super) const MAX_DEPTH: u32 = 288;
/// How many references may lead to references.
const MAX_HOPS: u32 = 32;
/// How many combinations may lie inside each other where schemas are only compared, not followed into a value.
pub(super) const MAX_COMBINED: u32 = 8;
/// How many variants of a union, or members of an intersection, are looked at for one step: most take less than one.
pub(super) const SCHEMAS_PER_STEP: usize = 8;
/// How many results are remembered at a time, and how many at most keep their room for the next value.
const MAX_REMEMBERED: usize = 1 << 20;
const FEW_REMEMBERED: usize = 1 << 10;

/// Results by the addresses of schema and node. Callers cannot choose these, so a hasher without a key is safe.
type Known = HashMap<(usize, usize), bool, BuildHasherDefault<DefaultHasher>>;

/// The shared state of working on one value.
pub(super) struct Checker<'a> {
    pub(super) definitions: &'a CompiledDefinitions,
    pub(super) compat: bool,
    pub(super) budget: Budget,
    /// Known results, by the addresses of schema and node, while the value does not change.
    known: RefCell<Known>,
    /// True while the value does not change, so that known results are kept.
    keeps: Cell<bool>,
    /// The depth of the outermost schema that a result takes for granted because it is still being checked.
    granted: Cell<u32>,
    /// True if a limit was reached, or the original would have thrown: a `false` may then mean nothing.
    pub(super) gave_up: Cell<bool>,
    /// How much may still be created or filled in from defaults.
    creations: Cell<usize>,
    fillings: Cell<usize>,
}

impl<'a> Checker<'a> {
    pub(super) fn new(definitions: &'a CompiledDefinitions) -> Self {
        Checker {
            definitions,
            compat: definitions.reading() == Reading::Compat,
            budget: Budget::new(),
            known: RefCell::default(),
            keeps: Cell::new(false),
            granted: Cell::new(u32::MAX),
            gave_up: Cell::new(false),
            creations: Cell::new(1 << 18),
            fillings: Cell::new(1 << 23),
        }
    }

    /// Takes one step down or sideways; `false` if the limits forbid it.
    pub(super) fn enter(&self, depth: u32) -> bool {
        let enter = depth < MAX_DEPTH && self.budget.spend(1);
        if !enter {
            self.gave_up.set(true);
        }
        enter
    }

    /// Spends on a created value; `None` if too much has been created already.
    pub(super) fn afford(&self, size: usize) -> Option<()> {
        self.creations.set(self.creations.get().checked_sub(size)?);
        Some(())
    }

    /// A copy of a default to be filled in, if there is room for it.
    pub(super) fn filling(&self, default: &Value) -> Option<Value> {
        self.fillings.set(self.fillings.get().checked_sub(weight(default))?);
        copy(default)
    }

    /// Checks a value; `false`, too, if the check was ended.
    pub(super) fn check(&self, at: At<'a>, value: &Value, depth: u32) -> bool {
        let before = self.gave_up.get();
        loop {
            let conforms = self.part(at, value, depth, None);
            if self.budget.remembers() {
                self.granted.set(u32::MAX);
                self.forget();
            }
            if !self.budget.is_dry() {
                return conforms;
            }
            if !self.budget.refill(Some(value)) {
                return false;
            }
            self.gave_up.set(before);
        }
    }

    /// What is found out about a value, once more if the steps ran out on the way: then the result means nothing. `None`
    /// if there are no more steps.
    pub(super) fn found<T>(&self, value: Option<&Value>, find: impl Fn() -> T) -> Option<T> {
        loop {
            let found = find();
            if !self.budget.is_dry() {
                return Some(found);
            }
            if !self.budget.refill(value) {
                return None;
            }
        }
    }

    /// Runs a function during which the value does not change.
    pub(super) fn keeping<T>(&self, run: impl FnOnce() -> T) -> T {
        let outer = self.keeps.replace(true);
        let result = run();
        self.keeps.set(outer);
        self.forget();
        result
    }

    /// Forgets known results: the value may change, and freed addresses may be reused.
    fn forget(&self) {
        if self.keeps.get() {
            return;
        }
        let mut known = self.known.borrow_mut();
        if known.len() > FEW_REMEMBERED {
            *known = Known::default();
        } else {
            known.clear();
        }
    }

    /// Runs the check of a schema and a value once, and remembers the result.
    #[inline(never)]
    fn once(&self, at: At<'a>, value: &Value, depth: u32, check: impl FnOnce() -> bool) -> bool {
        let key = (std::ptr::from_ref(at.node).addr(), std::ptr::from_ref(value).addr());
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let conforms = check();
        if self.granted.get() >= depth {
            self.granted.set(u32::MAX);
            if !self.budget.is_dry() {
                let mut known = self.known.borrow_mut();
                if known.len() >= MAX_REMEMBERED {
                    known.clear();
                }
                known.insert(key, conforms);
            }
        }
        conforms
    }

    /// Checks a value against a schema that is part of those in `trail`.
    fn part(&self, at: At<'a>, value: &Value, depth: u32, trail: Option<&Trail<'_>>) -> bool {
        match &at.node.kind {
            Kind::Any => true,
            Kind::Never => false,
            Kind::Plain(types) => types.admits(value),
            Kind::Typed(typed) if self.budget.remembers() && (value.is_array() || value.is_object()) => {
                self.once(at, value, depth, || self.typed(at, typed, value, depth))
            }
            Kind::Typed(typed) => self.typed(at, typed, value, depth),
            Kind::Literals(values) => self.is_one_of(values, value),
            Kind::Union(_) | Kind::Intersect(_) => self.combined(at, value, depth, trail),
            Kind::Ref(_) => match self.follow(at) {
                Some(at) => self.part(at, value, depth, trail),
                None => self.lost(),
            },
        }
    }

    fn combined(&self, at: At<'a>, value: &Value, depth: u32, trail: Option<&Trail<'_>>) -> bool {
        if let Some(level) = Trail::level(trail, at.node) {
            self.granted.set(self.granted.get().min(level));
            // A union does not conform by being one of its own variants; an intersection does.
            return matches!(at.node.kind, Kind::Intersect(_));
        }
        let check = || match &at.node.kind {
            Kind::Union(union) => self.union(at, union, value, depth, trail),
            Kind::Intersect(all) => self.intersect(at, all, value, depth, trail),
            _ => true,
        };
        self.enter(depth) && if self.budget.remembers() { self.once(at, value, depth, check) } else { check() }
    }

    pub(super) fn is_one_of(&self, values: &Literals, value: &Value) -> bool {
        match value {
            Value::String(text) => self.budget.spend(of_text(text)) && values.has_text(text),
            // To the original, two objects are never the same.
            Value::Array(_) | Value::Object(_) if self.compat => false,
            value => self.budget.spend(values.len() as u64 / 8) && values.iter().any(|other| equal(other, value)),
        }
    }

    /// The result for a reference to nowhere: the default reading accepts any value.
    fn lost(&self) -> bool {
        self.gave_up.set(self.gave_up.get() || self.compat);
        !self.compat
    }

    /// The node behind any references.
    pub(super) fn follow(&self, at: At<'a>) -> Option<At<'a>> {
        let mut at = at;
        for _ in 0..MAX_HOPS {
            at = match at.node.kind {
                Kind::Ref(Target::Local(id)) => at.to(at.unit.locals.get(id as usize)?),
                Kind::Ref(Target::Shared(id)) => self.definitions.unit(id)?.root(),
                Kind::Ref(Target::Missing) => return None,
                _ => return Some(at),
            };
        }
        None
    }

    fn typed(&self, at: At<'a>, typed: &'a Typed, value: &Value, depth: u32) -> bool {
        typed.types.admits(value)
            && match value {
                Value::Null | Value::Bool(_) => true,
                Value::Number(number) => {
                    typed.number.as_ref().is_none_or(|rules| self.budget.spend(rules.steps()) && rules.check(number))
                }
                Value::String(text) => typed.string.as_ref().is_none_or(|rules| rules.check(text, &self.budget)),
                Value::Array(items) => typed.array.as_ref().is_none_or(|rules| self.array(at, rules, items, depth)),
                Value::Object(map) => typed.object.as_ref().is_none_or(|rules| self.object(at, rules, map, depth)),
            }
    }

    fn array(&self, at: At<'a>, rules: &'a ArrayRules, items: &[Value], depth: u32) -> bool {
        let length = items.len() as u64;
        if rules.exact && length != rules.prefix.len() as u64
            || rules.min.is_some_and(|min| length < min)
            || rules.limit().is_some_and(|limit| length > limit)
            || !self.enter(depth)
            || !self.budget.spend(length / 4)
        {
            return false;
        }
        let conform = items
            .iter()
            .enumerate()
            .all(|(index, item)| rules.item(index).is_none_or(|node| self.part(at.to(node), item, depth + 1, None)));
        conform && (!rules.unique || distinct(items, &self.budget))
    }

    fn object(&self, at: At<'a>, rules: &'a ObjectRules, map: &Map<String, Value>, depth: u32) -> bool {
        if !rules.counts(map) || !self.enter(depth) || !self.budget.spend(map.len() as u64 / 4) {
            return false;
        }
        let mut required = 0;
        let mut cursor = 0;
        for (name, value) in map {
            let property = rules.find(name, &mut cursor);
            if let Some(property) = property {
                if !self.part(at.to(&property.node), value, depth + 1, None) {
                    return false;
                }
                required += usize::from(property.required);
            }
            let settled = property.is_some() && rules.patterns.is_empty();
            if !settled && !self.unlisted(at, rules, (name, value), property.is_some(), map.len(), depth) {
                return false;
            }
        }
        required == rules.required || self.compat && self.excused(at, rules, map)
    }

    /// Checks a property by the rules for names, and for those without rules.
    fn unlisted(
        &self,
        at: At<'a>,
        rules: &'a ObjectRules,
        (name, value): (&str, &Value),
        mut listed: bool,
        count: usize,
        depth: u32,
    ) -> bool {
        for (pattern, node) in &rules.patterns {
            if pattern.is_in(name, &self.budget) {
                listed = true;
                if !self.part(at.to(node), value, depth + 1, None) {
                    return false;
                }
            }
        }
        listed
            || match &rules.additional {
                Additional::Unspecified | Additional::True => true,
                Additional::False => rules.counts_keys && count == rules.properties.len(),
                Additional::Each(node) => self.part(at.to(node), value, depth + 1, None),
                Additional::Broken => self.lost(),
            }
    }

    /// True if the original lets every absent required property be absent.
    fn excused(&self, at: At<'a>, rules: &'a ObjectRules, map: &Map<String, Value>) -> bool {
        rules
            .properties
            .iter()
            .filter(|property| property.required && !map.contains_key(&*property.name))
            .all(|property| !matches!(property.node.kind, Kind::Any) && self.admits_absence(at.to(&property.node), 0))
    }

    /// True if absence itself conforms in the original.
    pub(super) fn admits_absence(&self, at: At<'a>, depth: u32) -> bool {
        if !self.budget.spend(1) {
            return false;
        }
        match &at.node.kind {
            Kind::Any => true,
            Kind::Union(union) => {
                depth < MAX_COMBINED
                    && union.types.is_all()
                    && union.variants.iter().any(|node| self.admits_absence(at.to(node), depth + 1))
            }
            Kind::Intersect(all) => {
                depth < MAX_COMBINED && all.members.iter().all(|node| self.admits_absence(at.to(node), depth + 1))
            }
            Kind::Ref(_) => self.follow(at).is_some_and(|at| self.admits_absence(at, depth + 1)),
            _ => false,
        }
    }

    fn union(&self, at: At<'a>, union: &'a Union, value: &Value, depth: u32, parent: Option<&Trail<'_>>) -> bool {
        if !union.types.admits(value) {
            return false;
        }
        let trail = Some(&Trail { node: at.node, depth, parent });
        let check = |node| self.part(at.to(node), value, depth + 1, trail);
        match self.tagged(at, union, value) {
            Tagged::Variant(node) | Tagged::Default(node) => check(node),
            Tagged::Unknown => false,
            Tagged::Undescribed(_) | Tagged::No => {
                for few in union.variants.chunks(SCHEMAS_PER_STEP) {
                    if !self.budget.spend(1) {
                        return false;
                    }
                    if few.iter().any(check) {
                        return true;
                    }
                }
                false
            }
        }
    }

    /// The kinds of value that might conform, including those behind references.
    pub(super) fn types(&self, at: At<'a>, depth: u32) -> Types {
        let affords = || depth < MAX_COMBINED && self.budget.spend(1);
        let Some(at) = self.follow(at).filter(|_| affords()) else { return Types::ALL };
        match &at.node.kind {
            Kind::Union(union) => {
                let variants = union.variants.iter().map(|node| self.types(at.to(node), depth + 1));
                variants.fold(Types::NONE, Types::or).and(union.types)
            }
            Kind::Intersect(all) => {
                all.members.iter().fold(Types::ALL, |types, node| types.and(self.types(at.to(node), depth + 1)))
            }
            _ => at.node.types(),
        }
    }

    /// The variants that a value may belong to: all, unless the union was narrowed to some types.
    pub(super) fn possible(&self, at: At<'a>, union: &'a Union) -> impl Iterator<Item = &'a Node> + use<'a> {
        let types = if self.compat { None } else { Some(&self.shape(at, union).types) };
        let can_be =
            move |index| types.and_then(|types| types.get(index)).is_none_or(|of: &Types| of.meets(union.types));
        union.variants.iter().enumerate().filter(move |(index, _)| can_be(*index)).map(|(_, node)| node)
    }

    fn intersect(&self, at: At<'a>, all: &'a Intersect, value: &Value, depth: u32, parent: Option<&Trail<'_>>) -> bool {
        // The original reads the properties of any value.
        if all.sealed && value.is_null() {
            return self.lost();
        }
        let trail = Some(&Trail { node: at.node, depth, parent });
        let check = |node| self.part(at.to(node), value, depth + 1, trail);
        for few in all.members.chunks(SCHEMAS_PER_STEP) {
            if !self.budget.spend(1) || !few.iter().all(check) {
                return false;
            }
        }
        !all.sealed || self.unsealed(at, all, value).is_empty()
    }

    /// The properties that no member of a sealed intersection knows.
    pub(super) fn unsealed<'v>(&self, at: At<'a>, all: &'a Intersect, value: &'v Value) -> Vec<&'v str> {
        let Value::Object(map) = value else { return Vec::new() };
        let known = |name: &str| all.members.iter().any(|node| self.lists(at.to(node), name, 0));
        map.keys().map(String::as_str).filter(|name| !known(name)).collect()
    }

    /// True if a schema lists a property in every case.
    fn lists(&self, at: At<'a>, name: &str, depth: u32) -> bool {
        depth < MAX_COMBINED
            && self.budget.spend(1)
            && match &at.node.kind {
                Kind::Typed(typed) => typed.object.as_ref().is_some_and(|rules| rules.find(name, &mut 0).is_some()),
                Kind::Intersect(all) => all.members.iter().any(|node| self.lists(at.to(node), name, depth + 1)),
                Kind::Union(union) => union.variants.iter().all(|node| self.lists(at.to(node), name, depth + 1)),
                Kind::Ref(_) => self.follow(at).is_some_and(|at| self.lists(at, name, depth + 1)),
                _ => false,
            }
    }
}

/// The combined schemas that are being checked against one value, innermost first.
struct Trail<'t> {
    node: &'t Node,
    depth: u32,
    parent: Option<&'t Trail<'t>>,
}

impl Trail<'_> {
    /// The depth at which a node is being checked already.
    fn level(mut trail: Option<&Self>, node: &Node) -> Option<u32> {
        while let Some(at) = trail {
            if std::ptr::eq(at.node, node) {
                return Some(at.depth);
            }
            trail = at.parent;
        }
        None
    }
}
