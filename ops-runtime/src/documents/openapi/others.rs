//! Content types of responses that no output has: told once for all operations, as there may be some in each.

use std::collections::{BTreeSet, HashSet};

use super::document::Node;
use super::short::short;

/// How many content types are named beside the first.
const MAX_TYPES: usize = 4;

/// The content types of successes that no output has.
#[derive(Default)]
pub(super) struct Others<'a> {
    /// The keys of the places that were looked at.
    seen: HashSet<usize>,
    first: Option<(Node<'a>, &'a str)>,
    count: usize,
    types: BTreeSet<&'a str>,
}

impl<'a> Others<'a> {
    /// True once for each place: a response that operations share is looked at once.
    pub(super) fn is_new(&mut self, node: &Node<'a>) -> bool {
        self.seen.insert(node.key())
    }

    /// Counts a content type.
    pub(super) fn add(&mut self, node: &Node<'a>, content_type: &'a str) {
        self.count += 1;
        let (_, first) = self.first.get_or_insert_with(|| (node.clone(), content_type));
        if *first != content_type && self.types.len() < MAX_TYPES {
            self.types.insert(content_type);
        }
    }

    /// The place of the first, and what is told of all of them; `None` if there are none.
    pub(super) fn told(self) -> Option<(Node<'a>, String)> {
        let (node, first) = self.first?;
        let types = [first].into_iter().chain(self.types).map(|name| format!("`{}`", short(name)));
        let types = types.collect::<Vec<_>>().join(", ");
        let message = match self.count {
            1 => format!("a response has a second content type, {types}, that the output does not have"),
            n => format!("{n} responses have further content types, such as {types}, that the outputs do not have"),
        };
        Some((node, message))
    }
}
