//! Finding operations by what they do: a question in plain words gives the operations that answer it, best first.
//!
//! ```
//! use ops_runtime::search::SearchIndex;
//! use ops_runtime::spec::OperationSpec;
//!
//! let specs = [
//!     OperationSpec::mutation("pay.PostRefunds").with_title("Create a refund"),
//!     OperationSpec::query("pay.GetRefunds").with_title("List all refunds"),
//!     OperationSpec::mutation("code.pulls/merge").with_title("Merge a pull request"),
//! ];
//! let index = SearchIndex::new(&specs);
//! assert_eq!(index.search("give a customer their money back", 5)[0].id, "pay.PostRefunds");
//! assert_eq!(index.search("merge my PR", 1)[0].id, "code.pulls/merge");
//! ```
//!
//! The index is in memory. It reads names, titles, descriptions, tags, paths and the names of parameters, to a bounded
//! length of each, so that building it takes time in proportion to the number of operations. Words are compared by their
//! stems (English), and scripts without spaces, such as Chinese, by pairs of characters. A table of synonyms leads from everyday words to those of APIs. What has other words is found by what
//! it means: each text has a vector, the sum of learned vectors of its words, and texts that mean the same lie near each other.
//!
//! An index does not change. When operations come and go, make another: 10,000 take less than a second.

mod action;
mod features;
mod index;
mod meaning;
mod question;
mod rank;
mod spread;
mod synonyms;
mod text;
mod weights;
mod words;

use std::ops::Deref;

use crate::spec::{OperationSpec, Text};

use self::index::{Builder, Index};
use self::question::Question;

/// An index of operations, which finds them by words.
#[derive(Debug, Default)]
pub struct SearchIndex {
    index: Index,
}

/// An operation that was found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The id of the operation.
    pub id: Text,
    /// How well the operation matches. Higher is better; scores of different searches cannot be compared.
    pub score: f32,
}

impl SearchIndex {
    /// Makes an index of these operations.
    pub fn new<S: Deref<Target = OperationSpec>>(specs: impl IntoIterator<Item = S>) -> Self {
        // Made here, so that the first search does not wait for it.
        synonyms::table();
        meaning::pieces();
        let mut builder = Builder::new();
        for spec in specs {
            builder.add(&spec);
        }
        Self { index: builder.finish() }
    }

    /// Finds the operations that match the words best: at most `limit`, the best first.
    ///
    /// Operations with the same score are in the order in which the index got them. A question without a word that the
    /// index knows finds nothing.
    pub fn search(&self, words: &str, limit: usize) -> Vec<Hit> {
        let question = Question::read(&self.index, words);
        let found = rank::rank(&self.index, &question, limit);
        let hit = |(at, score): (usize, f32)| Some(Hit { id: self.index.operations.get(at)?.id.clone(), score });
        found.into_iter().filter_map(hit).collect()
    }

    /// The number of operations.
    pub fn len(&self) -> usize {
        self.index.operations.len()
    }

    /// True if there are no operations.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
