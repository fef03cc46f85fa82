//! Arrays and tuples: the right number of items, each fixed by itself.

use serde_json::Value;

use super::{Fixer, Mode, Strip, path_of_created};
use crate::normalise::equal::{copy, discard, distinct, repeated};
use crate::normalise::node::{ArrayRules, At, Rest};
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
        if !rules.unique {
            return self.items(at, rules, items, path, strip, depth);
        }
        if self.mode == Mode::Repair {
            let conform = self.items(at, rules, items, path, strip, depth);
            return match self.are_distinct(items) {
                Some(true) => conform,
                Some(false) => self.keep_array(path, "array elements to be unique"),
                None => false,
            };
        }
        if self.mode != Mode::Cast {
            let conform = self.within(Mode::Clean, |fixer| fixer.items(at, rules, items, path, strip, depth));
            let conform = conform && self.are_distinct(items) == Some(true);
            if conform || self.mode == Mode::Clean {
                return conform;
            }
        } else if self.conforms(at, items, depth) {
            return true;
        }
        self.unique(at, rules, items, path, strip, depth)
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
        let mut ok = true;
        let limit = rules.limit().and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        if items.len() > limit {
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
        if items.len() < min {
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
