//! `unevaluatedProperties` and `unevaluatedItems`: the parts of a value that no other keyword evaluated.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::check::{Run, Scope};
use super::keyword::{Id, Keyword, Rules};

/// The evaluated parts, by position, and the schemas that were visited.
struct Evaluated {
    parts: Vec<bool>,
    is_all: bool,
    asked: HashSet<(Id, Scope)>,
}

impl Evaluated {
    fn new(count: usize) -> Self {
        Evaluated { parts: vec![false; count], is_all: false, asked: HashSet::new() }
    }

    fn all(&mut self) {
        if !std::mem::replace(&mut self.is_all, true) {
            self.parts.fill(true);
        }
    }
}

impl<'a> Run<'a> {
    /// The properties that no other keyword of a schema evaluated.
    pub(super) fn unevaluated_properties<'v>(
        &self,
        rules: &'a Rules,
        value: &Value,
        map: &'v Map<String, Value>,
        scope: Scope,
        depth: u32,
    ) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        let mut evaluated = Evaluated::new(map.len());
        self.collect(rules, value, scope, depth, true, &mut evaluated);
        map.iter().zip(evaluated.parts).filter(|(_, seen)| !seen).map(|(part, _)| part)
    }

    /// The items that no other keyword of a schema evaluated.
    pub(super) fn unevaluated_items<'v>(
        &self,
        rules: &'a Rules,
        value: &Value,
        items: &'v [Value],
        scope: Scope,
        depth: u32,
    ) -> impl Iterator<Item = (usize, &'v Value)> + use<'v> {
        let mut evaluated = Evaluated::new(items.len());
        self.collect(rules, value, scope, depth, true, &mut evaluated);
        items.iter().enumerate().zip(evaluated.parts).filter(|(_, seen)| !seen).map(|(part, _)| part)
    }

    /// Collects the parts that a schema evaluates, if it holds for a value.
    fn of(&self, id: Id, value: &Value, scope: Scope, depth: u32, evaluated: &mut Evaluated) {
        if !self.budget.spend(1) {
            return;
        }
        let Ok(rules) = self.rules(id) else { return };
        let scope = self.inside(rules, scope);
        if !self.is_deep(depth) && evaluated.asked.insert((id, scope)) {
            self.collect(rules, value, scope, depth + 1, false, evaluated);
        }
    }

    fn collect(&self, rules: &'a Rules, value: &Value, scope: Scope, depth: u32, own: bool, evaluated: &mut Evaluated) {
        for keyword in &rules.keywords {
            match value {
                Value::Object(map) => self.properties_of(keyword, map, own, evaluated),
                Value::Array(items) => self.items_of(keyword, items, scope, depth, own, evaluated),
                _ => {}
            }
            let holds = |id: Id| self.check(id, value, scope, depth + 1);
            match keyword {
                Keyword::All(ids) => ids.iter().for_each(|id| self.of(*id, value, scope, depth, evaluated)),
                Keyword::Any(union) | Keyword::One(union) => {
                    for id in union.variants.iter().filter(|id| holds(**id)) {
                        self.of(*id, value, scope, depth, evaluated);
                    }
                }
                Keyword::If { condition, then, otherwise } => {
                    if holds(*condition) {
                        self.of(*condition, value, scope, depth, evaluated);
                        self.of(*then, value, scope, depth, evaluated);
                    } else {
                        self.of(*otherwise, value, scope, depth, evaluated);
                    }
                }
                Keyword::DependentSchemas(schemas) => {
                    let has = |name: &str| value.as_object().is_some_and(|map| map.contains_key(name));
                    for (_, id) in schemas.iter().filter(|(name, _)| has(name)) {
                        self.of(*id, value, scope, depth, evaluated);
                    }
                }
                Keyword::Ref(id) => self.of(*id, value, scope, depth, evaluated),
                Keyword::DynamicRef { name, otherwise } => {
                    self.of(self.found(*name, *otherwise, scope), value, scope, depth, evaluated);
                }
                _ => {}
            }
        }
    }

    fn properties_of(&self, keyword: &Keyword, map: &Map<String, Value>, own: bool, evaluated: &mut Evaluated) {
        match keyword {
            Keyword::Properties(properties) if properties.additional.is_some() => evaluated.all(),
            Keyword::Properties(properties) => {
                self.budget.spend(map.len() as u64 / 4);
                for (name, seen) in map.keys().zip(&mut evaluated.parts).filter(|(_, seen)| !**seen) {
                    *seen = properties.find(name).is_some()
                        || properties.patterns.iter().any(|(pattern, _)| pattern.is_in(name, self.budget));
                }
            }
            Keyword::UnevaluatedProperties(_) if !own => evaluated.all(),
            _ => {}
        }
    }

    fn items_of(
        &self,
        keyword: &'a Keyword,
        items: &[Value],
        scope: Scope,
        depth: u32,
        own: bool,
        evaluated: &mut Evaluated,
    ) {
        match keyword {
            Keyword::Items { rest: Some(_), .. } => evaluated.all(),
            Keyword::Items { prefix, rest: None } => {
                self.budget.spend(prefix.len().min(items.len()) as u64 / 8);
                evaluated.parts.iter_mut().take(prefix.len()).for_each(|seen| *seen = true);
            }
            Keyword::Contains { item, .. } => {
                for (value, seen) in items.iter().zip(&mut evaluated.parts).filter(|(_, seen)| !**seen) {
                    *seen = self.check(*item, value, scope, depth + 1);
                }
            }
            Keyword::UnevaluatedItems(_) if !own => evaluated.all(),
            _ => {}
        }
    }
}
