//! Arrays and tuples: the right number of items, each fixed by itself.

use serde_json::Value;

use super::{Fixer, Mode, Strip, path_of_created};
use crate::normalise::check::MAX_DEPTH;
use crate::normalise::equal::{copy, discard, distinct, repeated, weight};
use crate::normalise::node::{ArrayRules, At, Kind, Rest};
use crate::normalise::path::Path;
use crate::normalise::text::MAX_CREATED;

impl<'a> Fixer<'_, 'a> {
    pub(super) fn array(
        &mut self,
        at: At<'a>,
        rules: &'a ArrayRules,
        items: &mut Vec<Value>,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        if !rules.unique || self.is_by_type() {
            return self.items(at, rules, items, path, strip, depth);
        }
        if self.mode == Mode::Cast {
            return self.conforms(at, items, depth) || self.unique(at, rules, items, path, strip, depth);
        }
        let (came, mark) = (self.came(at, rules, items, depth), self.mark());
        let conform = match self.mode {
            Mode::Repair => self.items(at, rules, items, path, strip, depth),
            _ => self.within(Mode::Clean, |fixer| fixer.items(at, rules, items, path, strip, depth)),
        };
        let are_distinct = self.are_distinct(items);
        if conform && are_distinct == Some(true) {
            return true;
        }
        // What is removed or filled in may be all that tells two items apart.
        if let Some(mut came) = came.filter(|_| are_distinct == Some(false))
            && self.conforms(at, &mut came, depth)
        {
            came.iter_mut().zip(&*items).for_each(|(came, cleaned)| take_numbers(came, cleaned));
            std::mem::replace(items, came).into_iter().for_each(discard);
            self.rollback(mark);
            return true;
        }
        match self.mode {
            Mode::Normalise => self.unique(at, rules, items, path, strip, depth),
            Mode::Repair if are_distinct == Some(false) => self.keep_array(path, "array elements to be unique"),
            _ => false,
        }
    }

    /// A copy of items that may become equal to each other. The original looks at them as they are afterwards.
    fn came(&self, at: At<'a>, rules: &'a ArrayRules, items: &[Value], depth: u32) -> Option<Vec<Value>> {
        let stays = |fixer: &Self| fixer.items_stay(at, rules, items, depth);
        let steps = || items.iter().map(weight).sum::<usize>() as u64 / 4;
        let pays = || self.found(|fixer| fixer.checker.budget.spend(steps())) == Some(true);
        if self.compat() || self.found(stays) == Some(true) || !pays() {
            return None;
        }
        items.iter().map(copy).collect()
    }

    fn items_stay(&self, at: At<'a>, rules: &'a ArrayRules, items: &[Value], depth: u32) -> bool {
        let stays = |(index, item)| rules.item(index).is_none_or(|node| self.stays(at.to(node), item, depth + 1));
        items.iter().enumerate().all(stays)
    }

    /// True if a value plainly has all that its schema declares, and nothing else: then nothing is removed or filled in.
    fn stays(&self, at: At<'a>, value: &Value, depth: u32) -> bool {
        if !value.is_object() && !value.is_array() {
            return true;
        }
        let Some(at) = self.checker.follow(at).filter(|_| depth < MAX_DEPTH) else { return false };
        let Kind::Typed(typed) = &at.node.kind else { return matches!(at.node.kind, Kind::Any | Kind::Plain(_)) };
        match value {
            Value::Array(items) => {
                let pays = self.checker.budget.spend(1 + items.len() as u64 / 4);
                pays && typed.array.as_ref().is_none_or(|rules| self.items_stay(at, rules, items, depth))
            }
            Value::Object(map) => {
                let Some(rules) = &typed.object else { return true };
                let (mut cursor, mut wanted) = (0, 0);
                let stays = |(name, value): (&String, &Value)| {
                    let Some(property) = rules.find(name, &mut cursor) else { return false };
                    wanted += usize::from(property.wanted());
                    self.stays(at.to(&property.node), value, depth + 1)
                };
                let pays = self.checker.budget.spend(1 + map.len() as u64 / 4);
                pays && rules.patterns.is_empty() && map.iter().all(stays) && wanted == rules.wanted
            }
            _ => true,
        }
    }

    /// True if no item equals another. `None` if the steps ran out.
    fn are_distinct(&self, items: &[Value]) -> Option<bool> {
        self.found(|fixer| distinct(items, &fixer.checker.budget))
    }

    /// Items of which some are wrong or repeated: repeated scalars are removed; if that is not enough, nothing changes.
    fn unique(
        &mut self,
        at: At<'a>,
        rules: &'a ArrayRules,
        items: &mut Vec<Value>,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        let received: Option<Vec<Value>> = items.iter().map(copy).collect();
        let Some(received) = received else {
            return self.keep_array(path, "array elements to be unique");
        };
        let mark = self.mark();
        self.items(at, rules, items, path, strip, depth);
        let again = repeated(items, true);
        let mut index = 0;
        items.retain(|_| {
            index += 1;
            again.binary_search(&(index - 1)).is_err()
        });
        if !self.conforms(at, items, depth) {
            *items = received;
            self.rollback(mark);
            return self.keep_array(path, "array elements to be unique");
        }
        if !again.is_empty() {
            self.record(path, "array elements to be unique".to_owned(), "array");
        }
        false
    }

    fn keep_array(&mut self, path: &Path<'_>, expected: &str) -> bool {
        self.throws += 1;
        self.remain(path, expected.to_owned(), "array")
    }

    /// True if the array conforms in its current state.
    fn conforms(&self, at: At<'a>, items: &mut Vec<Value>, depth: u32) -> bool {
        let whole = Value::Array(std::mem::take(items));
        let conforms = self.checker.check(at, &whole, depth);
        if let Value::Array(whole) = whole {
            *items = whole;
        }
        conforms
    }

    fn items(
        &mut self,
        at: At<'a>,
        rules: &'a ArrayRules,
        items: &mut Vec<Value>,
        path: &Path<'_>,
        strip: Strip<'a>,
        depth: u32,
    ) -> bool {
        // Another member of an intersection may declare more of each item.
        let strip = if let Strip::All = strip { Strip::All } else { Strip::None };
        let (mut ok, counts) = (true, self.counts_items(rules));
        let limit = rules.limit().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        if items.len() > limit && counts {
            ok = false;
            let expected = format!("array length to be less or equal to {limit}");
            match self.mode {
                Mode::Clean => {}
                Mode::Repair => {
                    self.remain(path, expected, "array");
                }
                _ => {
                    items.drain(limit..).for_each(discard);
                    self.record(path, expected, "array");
                }
            }
        }
        for (index, item) in items.iter_mut().enumerate() {
            if let Some(node) = rules.item(index) {
                ok &= self.fix(at.to(node), item, &path.index(index), strip, depth + 1);
            }
        }
        let min = if rules.exact { rules.prefix.len() as u64 } else { rules.min.unwrap_or(0) };
        let min = usize::try_from(min).unwrap_or(usize::MAX);
        if items.len() < min && counts {
            ok = false;
            match self.mode {
                Mode::Clean => {}
                Mode::Repair => {
                    self.remain(path, format!("array length to be greater or equal to {min}"), "array");
                }
                // A schema may ask for more items than it allows.
                _ => self.pad(at, rules, items, min.min(limit), min, path, depth),
            }
        }
        ok
    }

    /// Adds items until there are enough, or no more can be made.
    #[allow(clippy::too_many_arguments)]
    fn pad(
        &mut self,
        at: At<'a>,
        rules: &'a ArrayRules,
        items: &mut Vec<Value>,
        length: usize,
        min: usize,
        path: &Path<'_>,
        depth: u32,
    ) {
        let expected = format!("array length to be greater or equal to {min}");
        let mark = self.mark();
        let mut made = Vec::new();
        if length == items.len() {
            self.remain(path, expected, "array");
            return;
        }
        if length > MAX_CREATED || self.checker.afford(length).is_none() {
            self.keep_array(path, &expected);
            return;
        }
        for index in items.len()..length {
            let item = match (rules.item(index), &rules.rest) {
                (Some(node), _) if rules.exact || index < rules.prefix.len() => {
                    let node = at.to(node);
                    match self.fix_absent(node, depth + 1) {
                        None if self.checker.admits_absence(node, 0) => Some(Value::Null),
                        item => item,
                    }
                }
                (Some(node), _) => {
                    // The original inserts null and casts it.
                    let mut item = Value::Null;
                    let throws = self.throws;
                    self.fix(at.to(node), &mut item, path_of_created(), Strip::None, depth + 1);
                    (self.throws == throws).then_some(item)
                }
                (None, Rest::Never) => None,
                (None, _) => Some(Value::Null),
            };
            self.rollback(mark);
            let Some(item) = item else {
                self.keep_array(path, &expected);
                return;
            };
            made.push(item);
        }
        items.append(&mut made);
        self.record(path, expected, "array");
    }
}

/// Takes over how the numbers of a value were written.
fn take_numbers(came: &mut Value, cleaned: &Value) {
    match (came, cleaned) {
        (Value::Number(came), Value::Number(cleaned)) => came.clone_from(cleaned),
        (Value::Array(came), Value::Array(cleaned)) => {
            came.iter_mut().zip(cleaned).for_each(|(came, cleaned)| take_numbers(came, cleaned));
        }
        (Value::Object(came), Value::Object(cleaned)) => {
            let both = came.iter_mut().filter_map(|(name, came)| Some((came, cleaned.get(name)?)));
            both.for_each(|(came, cleaned)| take_numbers(came, cleaned));
        }
        _ => {}
    }
}
