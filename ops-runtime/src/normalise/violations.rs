//! Lists all faults of a value, with their places.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::budget::ended;
use super::check::Checker;
use super::equal::distinct;
use super::node::{Additional, ArrayRules, At, FRACTION, Intersect, Kind, Node, ObjectRules, Typed, Types, Union};
use super::path::Path;
use super::report::{Report, Violations};
use super::tagged::Tagged;
use crate::model::cut::{MAX_NAME, cut};

/// Lists violations; the order and, in the compatible reading, the words are the original's.
pub(super) struct Lister<'c, 'a> {
    checker: &'c Checker<'a>,
    /// The value as a whole.
    whole: Option<&'c Value>,
    report: Report,
    /// True if one violation is enough.
    stops: bool,
    /// The visited nodes, by the addresses of schema and node: several schemas may lead to one.
    listed: HashSet<(usize, usize)>,
}

impl<'c, 'a> Lister<'c, 'a> {
    pub(super) fn list(checker: &'c Checker<'a>, at: At<'a>, whole: Option<&'c Value>, limit: usize) -> Violations {
        let (report, listed) = (Report::new(limit), HashSet::new());
        let mut lister = Lister { checker, whole, report, stops: limit == 1, listed };
        if !lister.stops {
            // Each level is checked before its parts are listed, and nothing but this tells the size of the value.
            whole.into_iter().for_each(|whole| checker.budget.count(whole));
            checker.budget.remember();
        }
        checker.keeping(|| lister.visit(at, whole, &Path::ROOT, 0));
        if lister.report.count() == 0 && !lister.stops && whole.is_some() {
            // A schema that leads back to itself, for the same value.
            lister.report.say(&Path::ROOT, || format!("Expected {}", describe(at.node)));
        }
        if checker.budget.has_ended() { lister.report.ended(ended()) } else { lister.report.finish() }
    }

    fn say(&mut self, path: &Path<'_>, message: &'static str) {
        self.report.say(path, || message);
    }

    /// Goes on after the steps ran out, if the value is large enough for more steps.
    fn goes_on(&self) -> bool {
        !self.checker.budget.is_dry() || self.checker.budget.refill(self.whole)
    }

    /// What is found out about the value; `None` if the steps ran out.
    fn found<T>(&self, find: impl Fn() -> T) -> Option<T> {
        self.checker.found(self.whole, find)
    }

    fn visit(&mut self, at: At<'a>, value: Option<&Value>, path: &Path<'_>, depth: u32) {
        if self.stops && self.report.count() > 0 || !self.goes_on() {
            return;
        }
        if !self.checker.enter(depth) {
            if !self.checker.budget.is_dry() {
                self.say(path, "Expected less nesting");
            }
            return;
        }
        if let (Kind::Union(_) | Kind::Intersect(_) | Kind::Typed(_), Some(value)) = (&at.node.kind, value) {
            let is_scalar = matches!(at.node.kind, Kind::Typed(_)) && !value.is_array() && !value.is_object();
            // The original lists a fault as often as it finds it.
            let key = (std::ptr::from_ref(at.node).addr(), std::ptr::from_ref(value).addr());
            if !is_scalar && !self.checker.compat && !self.listed.insert(key) {
                return;
            }
        }
        match &at.node.kind {
            Kind::Any => {}
            Kind::Never => self.say(path, "Never"),
            Kind::Plain(types) => {
                if !value.is_some_and(|value| types.admits(value)) {
                    self.report.say(path, || format!("Expected {}", types.describe()));
                }
            }
            Kind::Typed(typed) => match value.filter(|value| typed.types.admits(value)) {
                Some(value) => self.typed(at, typed, value, path, depth),
                None => {
                    let tuple = typed.array.as_ref().is_some_and(|rules| rules.exact);
                    self.report.say(path, || match tuple {
                        true => "Expected tuple".to_owned(),
                        false => format!("Expected {}", typed.types.describe()),
                    });
                }
            },
            Kind::Literals(values) => {
                let is_other = |value| self.found(|| !self.checker.is_one_of(values, value)).unwrap_or(false);
                if value.is_none_or(is_other) {
                    let compat = self.checker.compat;
                    self.report.say(path, || literals(values, compat));
                }
            }
            Kind::Union(union) => self.union(at, union, value, path, depth),
            Kind::Intersect(all) => self.intersect(at, all, value, path, depth),
            Kind::Ref(_) => match self.checker.follow(at) {
                Some(at) => self.visit(at, value, path, depth + 1),
                None if self.checker.compat => self.say(path, "Expected a schema"),
                None => {}
            },
        }
    }

    fn typed(&mut self, at: At<'a>, typed: &'a Typed, value: &Value, path: &Path<'_>, depth: u32) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => {
                if let Some(rules) = &typed.number {
                    let name = if typed.types.has(FRACTION) { "number" } else { "integer" };
                    rules.violations(number, name, |message| self.report.say(path, || message));
                }
            }
            Value::String(text) => {
                if let Some(rules) = &typed.string {
                    let messages = self.found(|| rules.violations(text, &self.checker.budget)).unwrap_or_default();
                    messages.into_iter().for_each(|message| self.report.say(path, || message));
                }
            }
            Value::Array(items) => {
                if let Some(rules) = &typed.array {
                    self.array(at, rules, items, path, depth);
                }
            }
            Value::Object(map) => {
                if let Some(rules) = &typed.object {
                    self.object(at, rules, map, path, depth);
                }
            }
        }
    }

    fn array(&mut self, at: At<'a>, rules: &'a ArrayRules, items: &[Value], path: &Path<'_>, depth: u32) {
        let length = items.len() as u64;
        if rules.exact && length != rules.prefix.len() as u64 {
            self.report.say(path, || format!("Expected tuple to have {} elements", rules.prefix.len()));
            return;
        }
        if let Some(min) = rules.min.filter(|min| length < *min) {
            self.report.say(path, || format!("Expected array length to be greater or equal to {min}"));
        }
        if let Some(max) = rules.limit().filter(|max| length > *max) {
            self.report.say(path, || format!("Expected array length to be less or equal to {max}"));
        }
        for (index, item) in items.iter().enumerate() {
            if let Some(node) = rules.item(index) {
                self.visit(at.to(node), Some(item), &path.index(index), depth + 1);
            }
        }
        if rules.unique && self.found(|| distinct(items, &self.checker.budget)) == Some(false) {
            self.say(path, "Expected array elements to be unique");
        }
    }

    fn object(&mut self, at: At<'a>, rules: &'a ObjectRules, map: &Map<String, Value>, path: &Path<'_>, depth: u32) {
        let count = map.len() as u64;
        if let Some(min) = rules.min.filter(|min| count < *min) {
            self.report.say(path, || format!("Expected object to have at least {min} properties"));
        }
        if let Some(max) = rules.max.filter(|max| count > *max) {
            self.report.say(path, || format!("Expected object to have no more than {max} properties"));
        }
        // Every property of the schema is looked for, however small the object is.
        if !self.checker.budget.spend(rules.properties.len() as u64 / 4) && !self.goes_on() {
            return;
        }
        let required = rules.properties.iter().filter(|property| property.required).map(|property| &property.name);
        for name in required.chain(&rules.ghosts) {
            if !map.contains_key(&**name) {
                self.say(&path.key(name), "Expected required property");
            }
        }
        self.unlisted(at, rules, map, path, depth);
        for property in &rules.properties {
            let value = map.get(&*property.name);
            // The original reports an absent property a second time, because it has the wrong type.
            if value.is_some() || self.checker.compat && property.required && !self.absence(at.to(&property.node)) {
                self.visit(at.to(&property.node), value, &path.key(&property.name), depth + 1);
            }
        }
    }

    fn absence(&self, at: At<'a>) -> bool {
        self.checker.admits_absence(at, 0)
    }

    fn unlisted(&mut self, at: At<'a>, rules: &'a ObjectRules, map: &Map<String, Value>, path: &Path<'_>, depth: u32) {
        for (name, value) in map {
            let mut listed = rules.find(name, &mut 0).is_some();
            let by_pattern = || rules.listed(name, &self.checker.budget).collect::<Vec<_>>();
            let Some(by_pattern) = self.found(by_pattern) else { return };
            for node in by_pattern {
                listed = true;
                self.visit(at.to(node), Some(value), &path.key(name), depth + 1);
            }
            match &rules.additional {
                _ if listed => {}
                Additional::Unspecified | Additional::True => {}
                Additional::False => self.say(&path.key(name), "Unexpected property"),
                Additional::Each(node) => self.visit(at.to(node), Some(value), &path.key(name), depth + 1),
                Additional::Broken => self.say(&path.key(name), "Expected a schema"),
            }
        }
    }

    fn union(&mut self, at: At<'a>, union: &'a Union, value: Option<&Value>, path: &Path<'_>, depth: u32) {
        let Some(value) = value else {
            if !self.absence(at) {
                self.say(path, "Expected union value");
            }
            return;
        };
        if self.checker.check(at, value, depth) || self.checker.budget.is_dry() {
            return;
        }
        // If it is clear which variant is meant, list its faults.
        let meant = match self.checker.tagged(at, union, value) {
            Tagged::Variant(node) | Tagged::Default(node) => Some(node),
            _ if self.checker.compat => None,
            _ => {
                let shape = self.checker.shape(at, union);
                let mut able =
                    union.variants.iter().zip(&shape.types).filter(|(_, types)| types.meets(Types::of(value)));
                able.next().filter(|_| able.next().is_none()).map(|(node, _)| node)
            }
        };
        match meant.filter(|_| union.types.admits(value)) {
            Some(node) => self.visit(at.to(node), Some(value), path, depth + 1),
            None if self.checker.compat => self.say(path, "Expected union value"),
            None => match self.checker.wrong_tag(at, union, value) {
                Some(tag) => self.report.say(&path.key(&tag.property), || format!("Expected {}", tag.expectation())),
                None => self.say(path, "Expected a variant of the union"),
            },
        }
    }

    fn intersect(&mut self, at: At<'a>, all: &'a Intersect, value: Option<&Value>, path: &Path<'_>, depth: u32) {
        let before = self.report.count();
        for member in &all.members {
            self.visit(at.to(member), value, path, depth + 1);
        }
        let failed = self.report.count() > before;
        if failed && self.checker.compat {
            self.say(path, "Expected all values to match");
        }
        if let Some(value) = value.filter(|_| all.sealed && !failed) {
            for name in self.found(|| self.checker.unsealed(at, all, value)).unwrap_or_default() {
                self.say(&path.key(name), "Unexpected property");
            }
        }
    }
}

fn literals(values: &[Value], compat: bool) -> String {
    match values {
        [Value::String(text)] => format!("Expected '{}'", cut(text, MAX_NAME)),
        [value] if compat => format!("Expected {}", interpolated(value, 0)),
        [value] => format!("Expected {}", cut(&value.to_string(), MAX_NAME)),
        _ if compat => "Expected union value".to_owned(),
        values => format!("Expected {}", one_of(values)),
    }
}

/// The first few of the values that are allowed.
pub(super) fn one_of(values: &[Value]) -> String {
    const SHOWN: usize = 8;
    if let [value] = values {
        return match value {
            Value::String(text) => format!("'{}'", cut(text, MAX_NAME)),
            value => cut(&value.to_string(), MAX_NAME).into_owned(),
        };
    }
    let mut text = String::from("one of ");
    for (index, value) in values.iter().take(SHOWN).enumerate() {
        if index > 0 {
            text.push_str(", ");
        }
        match value {
            Value::String(value) => text.push_str(&format!("'{}'", value.chars().take(40).collect::<String>())),
            Value::Array(_) => text.push_str("[..]"),
            Value::Object(_) => text.push_str("{..}"),
            value => text.push_str(&value.to_string()),
        }
    }
    if values.len() > SHOWN {
        text.push_str(", ..");
    }
    text
}

/// A value as JavaScript interpolates it into a text.
fn interpolated(value: &Value, depth: u32) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null if depth > 0 => String::new(),
        Value::Array(items) if depth < 32 => {
            items.iter().map(|item| interpolated(item, depth + 1)).collect::<Vec<_>>().join(",")
        }
        Value::Array(_) | Value::Object(_) => "[object Object]".to_owned(),
        scalar => scalar.to_string(),
    }
}

impl<'a> Checker<'a> {
    /// The expectation of a node, in a few words and without the value.
    pub(super) fn expectation(&self, at: At<'a>, value: Option<&Value>) -> String {
        let at = self.follow(at).unwrap_or(at);
        if let (Kind::Typed(typed), Some(value)) = (&at.node.kind, value)
            && typed.types.admits(value)
            && !value.is_object()
            && let Some(violation) = Lister::list(self, at, Some(value), 1).list.into_iter().next()
            && violation.pointer.is_empty()
            && let Some(expected) = violation.message.strip_prefix("Expected ")
        {
            return expected.to_owned();
        }
        match &at.node.kind {
            // A variant that is a reference is of the types of its target.
            Kind::Union(union) => {
                let types = &self.shape(at, union).types;
                let types = types.iter().fold(Types::NONE, |all, types| all.or(*types)).and(union.types);
                // If the value is of such a type, its type is not what is wrong.
                if !self.compat && value.is_some_and(|value| types.admits(value)) {
                    return format!("a value of one of {} schemas", union.variants.len());
                }
                types.describe()
            }
            Kind::Intersect(_) if !self.compat && value.is_some_and(|value| at.node.types().admits(value)) => {
                "a value of all its schemas".to_owned()
            }
            _ => describe(at.node),
        }
    }
}

fn describe(node: &Node) -> String {
    match &node.kind {
        Kind::Literals(values) if values.is_empty() => "nothing".to_owned(),
        Kind::Literals(values) => one_of(values),
        Kind::Any => "any value".to_owned(),
        Kind::Ref(_) => "a schema".to_owned(),
        _ => node.types().describe(),
    }
}
