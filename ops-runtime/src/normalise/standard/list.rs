//! Lists all faults of a value, with their places.

use std::collections::HashSet;

use serde_json::Value;

use super::check::{Run, Scope, address};
use super::keyword::{Id, Keyword, Rules, Union};
use super::{TOO_DEEP, ended};
use crate::model::cut::{MAX_NAME, cut};
use crate::normalise::equal::distinct;
use crate::normalise::node::{FRACTION, Types};
use crate::normalise::path::Path;
use crate::normalise::report::{MAX_TOLD, Report, Violations};
use crate::normalise::violations::one_of;

/// Lists the violations of a value that does not conform.
pub(super) fn list(run: &Run<'_>, value: &Value) -> Violations {
    let mut lister = Lister { run, report: Report::new(MAX_TOLD), listed: HashSet::new() };
    if !run.budget.has_ended() {
        // Every schema was checked against the value once, and is again level by level.
        run.budget.count(value);
        run.budget.remember();
        lister.visit(run.validator.root, value, &Path::ROOT, 0, 0);
    }
    if run.budget.is_dry() {
        return lister.report.ended(ended());
    }
    if run.is_too_deep() {
        return lister.report.ended(TOO_DEEP.to_owned());
    }
    if lister.report.count() == 0 {
        // A schema that leads back to itself, for the same value.
        lister.report.say(&Path::ROOT, || "Expected a value that the schema describes");
    }
    lister.report.finish()
}

struct Lister<'r, 'a> {
    run: &'r Run<'a>,
    report: Report,
    /// The parts that were visited, even if several ways lead to them.
    listed: HashSet<(Id, Scope, usize)>,
}

impl<'a> Lister<'_, 'a> {
    fn visit(&mut self, id: Id, value: &Value, path: &Path<'_>, scope: Scope, depth: u32) {
        let rules = match self.run.rules(id) {
            Ok(rules) => rules,
            Err(true) => return,
            Err(false) => return self.report.say(path, || "Unexpected value"),
        };
        if self.run.budget.is_dry() || self.run.check(id, value, scope, depth) || self.run.is_too_deep() {
            return;
        }
        let scope = self.run.inside(rules, scope);
        if !self.listed.insert((id, scope, address(value))) {
            return;
        }
        for keyword in &rules.keywords {
            if !self.run.budget.is_dry() && !self.run.keyword(keyword, rules, value, scope, depth) {
                self.explain(keyword, rules, value, path, scope, depth);
            }
        }
    }

    fn explain(
        &mut self,
        keyword: &'a Keyword,
        rules: &'a Rules,
        value: &Value,
        path: &Path<'_>,
        scope: Scope,
        depth: u32,
    ) {
        match (keyword, value) {
            (Keyword::Types(types), _) => self.report.say(path, || format!("Expected {}", types.describe())),
            (Keyword::Literals(literals), _) => self.report.say(path, || format!("Expected {}", one_of(literals))),
            (Keyword::Number(numbers), Value::Number(number)) => {
                let of_integers = |keyword: &Keyword| matches!(keyword, Keyword::Types(types) if !types.has(FRACTION));
                let name = if rules.keywords.iter().any(of_integers) { "integer" } else { "number" };
                numbers.violations(number, name, |message| self.report.say(path, || message));
            }
            (Keyword::Text(texts), Value::String(text)) => {
                let messages = texts.violations(text, self.run.budget);
                messages.into_iter().for_each(|message| self.report.say(path, || message));
            }
            (Keyword::Array { min, max, unique }, Value::Array(items)) => {
                let length = items.len() as u64;
                if let Some(min) = min.filter(|min| length < *min) {
                    self.report.say(path, || format!("Expected array length to be greater or equal to {min}"));
                }
                if let Some(max) = max.filter(|max| length > *max) {
                    self.report.say(path, || format!("Expected array length to be less or equal to {max}"));
                }
                if *unique && !distinct(items, self.run.budget) && !self.run.budget.is_dry() {
                    self.report.say(path, || "Expected array elements to be unique");
                }
            }
            (Keyword::Object { min, max }, Value::Object(map)) => {
                let count = map.len() as u64;
                if let Some(min) = min.filter(|min| count < *min) {
                    self.report.say(path, || format!("Expected object to have at least {min} properties"));
                }
                if let Some(max) = max.filter(|max| count > *max) {
                    self.report.say(path, || format!("Expected object to have no more than {max} properties"));
                }
            }
            (Keyword::Required(names), Value::Object(map)) => {
                for name in names.iter().filter(|name| !map.contains_key(&***name)) {
                    self.report.say(&path.key(name), || "Expected required property");
                }
            }
            (Keyword::DependentRequired(dependent), Value::Object(map)) => {
                for (name, others) in dependent.iter().filter(|(name, _)| map.contains_key(&**name)) {
                    for other in others.iter().filter(|other| !map.contains_key(&***other)) {
                        let message = || format!("Expected required property beside `{}`", cut(name, MAX_NAME));
                        self.report.say(&path.key(other), message);
                    }
                }
            }
            _ => self.explain_parts(keyword, rules, value, path, scope, depth),
        }
    }

    /// Explains the keywords about parts of the value.
    fn explain_parts(
        &mut self,
        keyword: &'a Keyword,
        rules: &'a Rules,
        value: &Value,
        path: &Path<'_>,
        scope: Scope,
        depth: u32,
    ) {
        match (keyword, value) {
            (Keyword::Properties(properties), Value::Object(map)) => {
                for (name, value) in map {
                    let ids = self.run.of_property(properties, name);
                    ids.into_iter().for_each(|id| self.part(id, value, &path.key(name), scope, depth));
                }
            }
            (Keyword::Items { prefix, rest }, Value::Array(items)) => {
                let ids = prefix.iter().copied().map(Some).chain(std::iter::repeat(*rest));
                for ((index, item), id) in items.iter().enumerate().zip(ids) {
                    let Some(id) = id else { break };
                    self.part(id, item, &path.index(index), scope, depth);
                }
            }
            (Keyword::Contains { item, min, max }, Value::Array(items)) => {
                let found = items.iter().filter(|value| self.run.check(*item, value, scope, depth + 1)).count();
                self.report.say(path, || match max {
                    Some(max) if found as u64 > *max => {
                        format!("Expected at most {max} items that `contains` describes, found {found}")
                    }
                    _ => format!("Expected at least {min} items that `contains` describes, found {found}"),
                });
            }
            (Keyword::Names(id), Value::Object(map)) => {
                for name in map.keys().filter(|name| !self.run.name(*id, name, scope, depth)) {
                    self.report.say(&path.key(name), || "Unexpected name of a property");
                }
            }
            (Keyword::UnevaluatedItems(id), Value::Array(items)) => {
                for (index, item) in self.run.unevaluated_items(rules, value, items, scope, depth) {
                    self.part(*id, item, &path.index(index), scope, depth);
                }
            }
            (Keyword::UnevaluatedProperties(id), Value::Object(map)) => {
                for (name, value) in self.run.unevaluated_properties(rules, value, map, scope, depth) {
                    self.part(*id, value, &path.key(name), scope, depth);
                }
            }
            _ => self.explain_combined(keyword, value, path, scope, depth),
        }
    }

    /// Explains a part that may not be allowed at all.
    fn part(&mut self, id: Id, value: &Value, path: &Path<'_>, scope: Scope, depth: u32) {
        match self.run.rules(id) {
            Err(false) => {
                self.report.say(path, || if path.is_key() { "Unexpected property" } else { "Unexpected item" })
            }
            _ => self.visit(id, value, path, scope, depth + 1),
        }
    }

    /// Explains the keywords that hold schemas for the same value.
    fn explain_combined(&mut self, keyword: &'a Keyword, value: &Value, path: &Path<'_>, scope: Scope, depth: u32) {
        let run = self.run;
        let mut same = |id: Id| self.visit(id, value, path, scope, depth + 1);
        match keyword {
            Keyword::All(ids) => ids.iter().for_each(|id| same(*id)),
            Keyword::Any(union) => self.explain_union(union, value, path, scope, depth),
            Keyword::One(union) => {
                let check = |id: &&Id| run.check(**id, value, scope, depth + 1);
                match union.variants.iter().filter(check).count() {
                    0 => self.explain_union(union, value, path, scope, depth),
                    found => {
                        let all = union.variants.len();
                        let message = || format!("Expected a value of exactly one of {all} schemas, it is of {found}");
                        self.report.say(path, message);
                    }
                }
            }
            Keyword::Not(_) => self.report.say(path, || "Expected a value that the schema in `not` does not describe"),
            Keyword::If { condition, then, otherwise } => {
                let holds = run.check(*condition, value, scope, depth + 1);
                same(if holds { *then } else { *otherwise });
            }
            Keyword::DependentSchemas(schemas) => {
                let has = |name: &str| value.as_object().is_some_and(|map| map.contains_key(name));
                schemas.iter().filter(|(name, _)| has(name)).for_each(|(_, id)| same(*id));
            }
            Keyword::Ref(id) => same(*id),
            Keyword::DynamicRef { name, otherwise } => same(run.found(*name, *otherwise, scope)),
            _ => {}
        }
    }

    /// Explains a union without a conforming variant: by the faults of the variant that is meant, if that is clear.
    fn explain_union(&mut self, union: &'a Union, value: &Value, path: &Path<'_>, scope: Scope, depth: u32) {
        let meant = match union.named(value) {
            Some([]) => {
                let Some(tag) = &union.tag else { return };
                let mut known: Vec<&str> = tag.variants.iter().map(|(text, _)| &**text).collect();
                known.dedup();
                let known: Vec<Value> = known.into_iter().take(9).map(Value::from).collect();
                return self.report.say(&path.key(&tag.property), || format!("Expected {}", one_of(&known)));
            }
            Some([(_, id), others @ ..]) if others.iter().all(|(_, other)| other == id) => Some(*id),
            Some(named @ [(text, _), ..]) => {
                let (count, text) = (named.len(), cut(text, MAX_NAME));
                let message = || format!("Expected a value of one of the {count} schemas that are named '{text}'");
                return self.report.say(path, message);
            }
            None => {
                let mut able = union.variants.iter().filter(|id| self.types(**id).meets(Types::of(value)));
                able.next().filter(|_| able.next().is_none()).copied()
            }
        };
        match meant {
            Some(id) => self.visit(id, value, path, scope, depth + 1),
            None => self.report.say(path, || format!("Expected a value of one of {} schemas", union.variants.len())),
        }
    }

    /// The types that a schema itself names.
    fn types(&self, id: Id) -> Types {
        let Ok(rules) = self.run.rules(id) else { return Types::ALL };
        let types = rules.keywords.iter().map(|keyword| match keyword {
            Keyword::Types(types) => *types,
            Keyword::Literals(literals) => literals.types(),
            _ => Types::ALL,
        });
        types.fold(Types::ALL, Types::and)
    }
}
