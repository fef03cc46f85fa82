//! The patterns of schemas that are walked through as they are written.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use serde_json::Value;

use super::super::budget::Budget;
use super::size::Allowance;
use super::{Found, Pattern};

/// Patterns by their sources, which have the room of one schema together.
#[derive(Debug)]
pub(crate) struct Patterns(HashMap<Box<str>, Pattern>);

impl Patterns {
    /// Reads patterns. One that cannot be read, or for which there is no room, is in no text.
    pub(crate) fn new(sources: &[String]) -> Self {
        let (mut patterns, room) = (HashMap::new(), Allowance::default());
        for source in sources {
            if patterns.contains_key(source.as_str()) {
                continue;
            }
            let pattern = Pattern::new(source, false);
            if pattern.admit(&room).is_none() {
                patterns.insert(source.as_str().into(), pattern);
            }
        }
        Self(patterns)
    }

    /// Searches for one value, in proportion to its size.
    pub(crate) fn searches(&self, value: &Value) -> Searches<'_> {
        let budget = Budget::new();
        if !self.0.is_empty() {
            budget.count(value);
            // All steps at once, since results are remembered from the start.
            budget.remember();
        }
        Searches { patterns: self, budget, last: RefCell::default(), has_ended: Cell::new(false) }
    }
}

/// Searches of patterns that share the budget of one value. What is looked for beyond it is not found.
///
/// Several schemas may ask for the same pattern in one text. So that it is searched once, all that is asked about a text is
/// asked before the next text.
pub(crate) struct Searches<'p> {
    patterns: &'p Patterns,
    budget: Budget,
    /// The last text, and the results for it by the addresses of the patterns.
    last: RefCell<(String, HashMap<usize, bool>)>,
    has_ended: Cell<bool>,
}

impl Searches<'_> {
    /// True if the pattern with this source is in a text.
    pub(crate) fn is_in(&self, source: &str, text: &str) -> bool {
        let Some(pattern) = self.patterns.0.get(source) else { return false };
        let mut last = self.last.borrow_mut();
        let (of, known) = &mut *last;
        if *of != *text {
            text.clone_into(of);
            known.clear();
        }
        *known.entry(std::ptr::from_ref(pattern).addr()).or_insert_with(|| self.search(pattern, text))
    }

    fn search(&self, pattern: &Pattern, text: &str) -> bool {
        let found = pattern.look(text, &self.budget);
        if matches!(found, Found::Ended | Found::TooLong) {
            self.has_ended.set(true);
        }
        found == Found::Yes
    }

    /// True if a search was ended, so that a pattern may be in a text in which it was not found.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.get()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pattern_is_searched_once_in_a_text() {
        let patterns = Patterns::new(&["^a".to_owned(), "b$".to_owned()]);
        let searches = patterns.searches(&json!({}));
        for (text, steps) in [("ab", 2), ("ab", 2), ("a", 4), ("ab", 6)] {
            let found = ["^a", "b$", "^a", "^c"].map(|source| searches.is_in(source, text));
            assert_eq!(found, [true, text == "ab", true, false], "{text}");
            assert_eq!(searches.budget.steps(), steps, "{text}");
        }
        assert!(!searches.has_ended());
    }

    #[test]
    fn a_search_that_is_ended_is_told() {
        let patterns = Patterns::new(&["^a".to_owned()]);
        let searches = patterns.searches(&json!({}));
        searches.budget.spend(u64::MAX);
        assert!(!searches.is_in("^a", "a") && searches.has_ended());
    }
}
