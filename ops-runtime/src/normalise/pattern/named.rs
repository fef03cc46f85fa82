//! The patterns of schemas that are walked through as they are written.

use std::collections::HashMap;

use serde_json::Value;

use super::super::budget::Budget;
use super::Pattern;
use super::size::Allowance;

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
        }
        Searches { patterns: self, budget }
    }
}

/// Searches of patterns that share the budget of one value. What is looked for beyond it is not found.
pub(crate) struct Searches<'p> {
    patterns: &'p Patterns,
    budget: Budget,
}

impl Searches<'_> {
    /// True if the pattern with this source is in a text.
    pub(crate) fn is_in(&self, source: &str, text: &str) -> bool {
        self.patterns.0.get(source).is_some_and(|pattern| pattern.is_in(text, &self.budget))
    }
}
