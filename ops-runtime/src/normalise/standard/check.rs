//! Checks if a value conforms.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};

use serde_json::{Map, Value};

use super::Validator;
use super::keyword::{Id, Keyword, MAX_DEPTH, Properties, Rules, Schema, Union};
use crate::normalise::budget::Budget;
use crate::normalise::equal::distinct;
use crate::normalise::node::Literals;
use crate::normalise::text::of_text;

/// How many results are remembered at a time.
const MAX_REMEMBERED: usize = 1 << 20;
/// How many scopes for looking up names may be distinguished.
const MAX_SCOPES: usize = 1 << 12;

/// The number of a scope: the targets of dynamic names, by the resources on the way.
pub(super) type Scope = u32;

/// The targets of dynamic names, by the numbers of the names.
type Targets = Vec<(u32, Id)>;

/// Callers cannot choose numbers and addresses, so a hasher without a key is safe.
type Hasher = BuildHasherDefault<DefaultHasher>;

/// A node of a value under a schema.
type Key = (Id, Scope, usize);

/// The check of one value.
pub(super) struct Run<'a> {
    pub(super) validator: &'a Validator,
    pub(super) budget: &'a Budget,
    known: RefCell<HashMap<Key, bool, Hasher>>,
    /// The schemas on the way to the current one that may lead back to themselves.
    open: RefCell<Vec<Key>>,
    /// The lowest position in `open` that a result depends on; it is then provisional.
    depends: Cell<usize>,
    is_too_deep: Cell<bool>,
    scopes: RefCell<Vec<Targets>>,
    scope_ids: RefCell<HashMap<Targets, Scope, Hasher>>,
}

pub(super) fn address(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'a> Run<'a> {
    pub(super) fn new(validator: &'a Validator, budget: &'a Budget) -> Self {
        Run {
            validator,
            budget,
            known: RefCell::default(),
            open: RefCell::default(),
            depends: Cell::new(usize::MAX),
            is_too_deep: Cell::new(false),
            scopes: RefCell::default(),
            scope_ids: RefCell::default(),
        }
    }

    /// Checks the whole value; `false`, too, if the check was ended.
    pub(super) fn whole(&self, value: &Value) -> bool {
        loop {
            let conforms = self.check(self.validator.root, value, 0, 0);
            if !self.budget.is_dry() {
                return conforms && !self.is_too_deep.get();
            }
            self.open.borrow_mut().clear();
            self.depends.set(usize::MAX);
            if !self.budget.refill(Some(value)) {
                return false;
            }
        }
    }

    pub(super) fn is_too_deep(&self) -> bool {
        self.is_too_deep.get()
    }

    /// True if no schema may be followed any further: a value that is too deep anywhere is refused as a whole.
    pub(super) fn is_deep(&self, depth: u32) -> bool {
        if depth >= MAX_DEPTH {
            self.is_too_deep.set(true);
        }
        self.is_too_deep.get()
    }

    /// The keywords of a schema, or its result for every value.
    pub(super) fn rules(&self, id: Id) -> Result<&'a Rules, bool> {
        match self.validator.schemas.get(id as usize) {
            Some(Schema::Rules(rules)) => Ok(rules),
            Some(Schema::Never) => Err(false),
            Some(Schema::Any) | None => Err(true),
        }
    }

    pub(super) fn check(&self, id: Id, value: &Value, scope: Scope, depth: u32) -> bool {
        // Boolean schemas count, too: there may be any number of them for one node.
        if !self.budget.spend(1) {
            return false;
        }
        let rules = match self.rules(id) {
            Ok(rules) => rules,
            Err(all) => return all,
        };
        if self.is_deep(depth) {
            return false;
        }
        let scope = if self.validator.anchors.is_empty() { scope } else { self.inside(rules, scope) };
        if rules.is_cyclic || rules.is_shared && self.budget.remembers() {
            self.check_once(id, rules, value, scope, depth)
        } else {
            self.keywords(rules, value, scope, depth)
        }
    }

    fn keywords(&self, rules: &'a Rules, value: &Value, scope: Scope, depth: u32) -> bool {
        rules.keywords.iter().all(|keyword| match keyword {
            // The most frequent keyword.
            Keyword::Types(types) => types.admits(value),
            keyword => self.keyword(keyword, rules, value, scope, depth),
        })
    }

    /// The same, if the result may be known already, or be needed again while it is determined.
    #[inline(never)]
    fn check_once(&self, id: Id, rules: &'a Rules, value: &Value, scope: Scope, depth: u32) -> bool {
        let key = (id, scope, address(value));
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let position = self.open.borrow().len();
        if rules.is_cyclic {
            if let Some(at) = self.open.borrow().iter().rposition(|open| *open == key) {
                self.depends.set(self.depends.get().min(at));
                // A union does not conform by being one of its own variants. Any other schema does.
                return !matches!(rules.keywords.as_slice(), [Keyword::Any(_) | Keyword::One(_)]);
            }
            self.open.borrow_mut().push(key);
        }
        let conforms = self.keywords(rules, value, scope, depth);
        self.open.borrow_mut().truncate(position);
        if self.depends.get() >= position {
            self.depends.set(usize::MAX);
            if self.budget.remembers() && !self.budget.is_dry() && !self.is_too_deep.get() {
                let mut known = self.known.borrow_mut();
                if known.len() >= MAX_REMEMBERED {
                    known.clear();
                }
                known.insert(key, conforms);
            }
        }
        conforms
    }

    /// True if a keyword of a schema holds. Split to keep the stack small, since this goes as deep as the value.
    pub(super) fn keyword(
        &self,
        keyword: &'a Keyword,
        rules: &'a Rules,
        value: &Value,
        scope: Scope,
        depth: u32,
    ) -> bool {
        match keyword {
            Keyword::Types(types) => types.admits(value),
            Keyword::Properties(properties) => match value {
                Value::Object(map) => self.properties(properties, map, scope, depth),
                _ => true,
            },
            Keyword::Items { prefix, rest } => match value {
                Value::Array(items) => self.items(prefix, *rest, items, scope, depth),
                _ => true,
            },
            Keyword::Ref(id) => self.check(*id, value, scope, depth + 1),
            Keyword::All(ids) => self.all(ids, value, scope, depth),
            Keyword::Any(union) => self.count(union, value, scope, depth, 1) == 1,
            Keyword::One(union) => self.count(union, value, scope, depth, 2) == 1,
            Keyword::Not(_) | Keyword::If { .. } | Keyword::DependentSchemas(_) | Keyword::DynamicRef { .. } => {
                self.of_same(keyword, value, scope, depth)
            }
            Keyword::Contains { .. }
            | Keyword::Names(_)
            | Keyword::UnevaluatedItems(_)
            | Keyword::UnevaluatedProperties(_) => self.of_parts(keyword, rules, value, scope, depth),
            _ => self.of_value(keyword, value),
        }
    }

    /// The keywords that hold no schemas.
    #[inline(never)]
    fn of_value(&self, keyword: &Keyword, value: &Value) -> bool {
        match (keyword, value) {
            (Keyword::Literals(literals), value) => self.is_one_of(literals, value),
            (Keyword::Number(rules), Value::Number(number)) => rules.check(number),
            (Keyword::Text(rules), Value::String(text)) => rules.check(text, self.budget),
            (Keyword::Array { min, max, unique }, Value::Array(items)) => {
                let length = items.len() as u64;
                min.is_none_or(|min| length >= min)
                    && max.is_none_or(|max| length <= max)
                    && (!unique || self.budget.spend(length) && distinct(items, self.budget))
            }
            (Keyword::Object { min, max }, Value::Object(map)) => {
                let count = map.len() as u64;
                min.is_none_or(|min| count >= min) && max.is_none_or(|max| count <= max)
            }
            (Keyword::Required(names), Value::Object(map)) => {
                self.budget.spend(names.len() as u64 / 8) && names.iter().all(|name| map.contains_key(&**name))
            }
            (Keyword::DependentRequired(dependent), Value::Object(map)) => {
                self.budget.spend(dependent.len() as u64)
                    && dependent
                        .iter()
                        .filter(|(name, _)| map.contains_key(&**name))
                        .all(|(_, names)| names.iter().all(|name| map.contains_key(&**name)))
            }
            _ => true,
        }
    }

    /// The rarer keywords about parts of the value.
    #[inline(never)]
    fn of_parts(&self, keyword: &'a Keyword, rules: &'a Rules, value: &Value, scope: Scope, depth: u32) -> bool {
        match (keyword, value) {
            (Keyword::Contains { item, min, max }, Value::Array(items)) => {
                let enough = max.map_or(*min, |max| max.saturating_add(1).max(*min));
                let matching = items.iter().filter(|value| self.check(*item, value, scope, depth + 1));
                let count = matching.take(usize::try_from(enough).unwrap_or(usize::MAX)).count() as u64;
                count >= *min && max.is_none_or(|max| count <= max)
            }
            (Keyword::Names(id), Value::Object(map)) => map.keys().all(|name| self.name(*id, name, scope, depth)),
            (Keyword::UnevaluatedItems(id), Value::Array(items)) => {
                let mut parts = self.unevaluated_items(rules, value, items, scope, depth);
                parts.all(|(_, item)| self.check(*id, item, scope, depth + 1))
            }
            (Keyword::UnevaluatedProperties(id), Value::Object(map)) => {
                let mut parts = self.unevaluated_properties(rules, value, map, scope, depth);
                parts.all(|(_, value)| self.check(*id, value, scope, depth + 1))
            }
            _ => true,
        }
    }

    /// The rarer keywords that hold schemas for the same value.
    #[inline(never)]
    fn of_same(&self, keyword: &Keyword, value: &Value, scope: Scope, depth: u32) -> bool {
        let next = match (keyword, value) {
            (Keyword::Not(id), _) => return !self.check(*id, value, scope, depth + 1),
            (Keyword::If { condition, then, otherwise }, _) => {
                if self.check(*condition, value, scope, depth + 1) {
                    *then
                } else {
                    *otherwise
                }
            }
            (Keyword::DynamicRef { name, otherwise }, _) => self.found(*name, *otherwise, scope),
            (Keyword::DependentSchemas(schemas), Value::Object(map)) => {
                for (_, id) in schemas.iter().filter(|(name, _)| map.contains_key(&**name)) {
                    if !self.check(*id, value, scope, depth + 1) {
                        return false;
                    }
                }
                return self.budget.spend(schemas.len() as u64);
            }
            _ => return true,
        };
        self.check(next, value, scope, depth + 1)
    }

    fn all(&self, ids: &[Id], value: &Value, scope: Scope, depth: u32) -> bool {
        for id in ids {
            if !self.check(*id, value, scope, depth + 1) {
                return false;
            }
        }
        true
    }

    fn items(&self, prefix: &[Id], rest: Option<Id>, items: &[Value], scope: Scope, depth: u32) -> bool {
        for (index, item) in items.iter().enumerate() {
            let Some(id) = prefix.get(index).copied().or(rest) else { break };
            if !self.check(id, item, scope, depth + 1) {
                return false;
            }
        }
        true
    }

    /// How many variants of a union a value belongs to, counted up to `enough`.
    fn count(&self, union: &Union, value: &Value, scope: Scope, depth: u32, enough: u32) -> u32 {
        let mut count = 0;
        let named = union.named(value);
        let length = named.map_or(union.variants.len(), <[_]>::len);
        for index in 0..length {
            let id = match named {
                Some(named) => named.get(index).map(|(_, id)| *id),
                None => union.variants.get(index).copied(),
            };
            count += u32::from(id.is_some_and(|id| self.check(id, value, scope, depth + 1)));
            if count == enough {
                break;
            }
        }
        count
    }

    fn is_one_of(&self, literals: &Literals, value: &Value) -> bool {
        match value {
            Value::String(text) => self.budget.spend(of_text(text)) && literals.has_text(text),
            value => {
                self.budget.spend(literals.len() as u64 / 8)
                    && literals.iter().any(|literal| crate::normalise::equal::equal(literal, value))
            }
        }
    }

    fn properties(&self, properties: &'a Properties, map: &Map<String, Value>, scope: Scope, depth: u32) -> bool {
        let Properties { named, patterns, additional } = properties;
        if patterns.is_empty() && additional.is_none() && named.len() < map.len() / 4 {
            for (name, id) in named {
                if let Some(value) = map.get(&**name)
                    && !self.check(*id, value, scope, depth + 1)
                {
                    return false;
                }
            }
            return true;
        }
        if !self.budget.spend(map.len() as u64 / 4) {
            return false;
        }
        for (name, value) in map {
            let listed = properties.find(name);
            if let Some(id) = listed
                && !self.check(id, value, scope, depth + 1)
            {
                return false;
            }
            if (!patterns.is_empty() || listed.is_none() && additional.is_some())
                && !self.unlisted(properties, listed.is_some(), (name, value), scope, depth)
            {
                return false;
            }
        }
        true
    }

    fn unlisted(
        &self,
        properties: &Properties,
        mut listed: bool,
        (name, value): (&str, &Value),
        scope: Scope,
        depth: u32,
    ) -> bool {
        for (pattern, id) in &properties.patterns {
            if pattern.is_in(name, self.budget) {
                listed = true;
                if !self.check(*id, value, scope, depth + 1) {
                    return false;
                }
            }
        }
        listed || properties.additional.is_none_or(|id| self.check(id, value, scope, depth + 1))
    }

    /// The schemas of a property.
    pub(super) fn of_property(&self, properties: &Properties, name: &str) -> Vec<Id> {
        let mut ids: Vec<Id> = properties.find(name).into_iter().collect();
        let patterns = properties.patterns.iter().filter(|(pattern, _)| pattern.is_in(name, self.budget));
        ids.extend(patterns.map(|(_, id)| *id));
        if ids.is_empty() {
            ids.extend(properties.additional);
        }
        ids
    }

    /// Checks the name of a property. It is not part of the value, so no result is kept.
    pub(super) fn name(&self, id: Id, name: &str, scope: Scope, depth: u32) -> bool {
        if !self.budget.spend(of_text(name)) {
            return false;
        }
        let outer = self.known.take();
        let conforms = self.check(id, &Value::String(name.to_owned()), scope, depth + 1);
        self.known.replace(outer);
        conforms
    }

    /// The scope inside a schema: for each name, the outermost resource that has it counts.
    pub(super) fn inside(&self, rules: &Rules, scope: Scope) -> Scope {
        let Some(anchors) = self.validator.anchors.get(rules.resource as usize) else { return scope };
        let mut scopes = self.scopes.borrow_mut();
        if scopes.is_empty() {
            scopes.push(Targets::new());
        }
        let Some(outer) = scopes.get(scope as usize) else { return scope };
        let mut inner = outer.clone();
        let is_new = |(name, _): &&(u32, Id)| target(outer, *name).is_none();
        inner.extend(anchors.iter().filter(is_new));
        if inner.len() == outer.len() {
            return scope;
        }
        inner.sort_unstable();
        let mut ids = self.scope_ids.borrow_mut();
        if let Some(known) = ids.get(&inner) {
            return *known;
        }
        let Ok(next) = Scope::try_from(scopes.len()) else { return scope };
        if scopes.len() >= MAX_SCOPES {
            self.is_too_deep.set(true);
            return scope;
        }
        scopes.push(inner.clone());
        ids.insert(inner, next);
        next
    }

    /// The target of a dynamic reference.
    pub(super) fn found(&self, name: u32, otherwise: Id, scope: Scope) -> Id {
        let scopes = self.scopes.borrow();
        scopes.get(scope as usize).and_then(|targets| target(targets, name)).unwrap_or(otherwise)
    }
}

fn target(targets: &Targets, name: u32) -> Option<Id> {
    let at = targets.binary_search_by_key(&name, |(name, _)| *name).ok()?;
    targets.get(at).map(|(_, id)| *id)
}

impl Union {
    /// The variants that a value names; `None` if it names none.
    pub(super) fn named(&self, value: &Value) -> Option<&[(Box<str>, Id)]> {
        let tag = self.tag.as_ref()?;
        Some(tag.of(value.as_object()?.get(&*tag.property)?.as_str()?))
    }
}
