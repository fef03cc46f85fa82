//! `JSONPath` (RFC 9535): queries that select places in a document, with a bound on their cost.
//!
//! Queries and documents may be hostile: `$..*..*` visits a node as often as it has ancestors. Parsers and evaluators of
//! others have no such bound.

mod evaluate;
mod filter;
mod parse;

use serde_json::Value;

pub(crate) use self::evaluate::Steps;
use self::filter::Expression;

/// A query from the root of a document.
#[derive(Debug)]
pub(crate) struct Query(Vec<Segment>);

/// A query that is none: what is wrong, and behind how many characters.
#[derive(Debug, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) message: String,
    pub(crate) at: usize,
}

#[derive(Debug)]
struct Segment {
    /// True for `..`: the selectors hold for the node and all nodes below.
    descends: bool,
    selectors: Vec<Selector>,
}

#[derive(Debug)]
enum Selector {
    Name(String),
    Wildcard,
    Index(i64),
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    Filter(Expression),
}

impl Query {
    /// Parses a query, such as `$.paths.*[?@.deprecated]`.
    pub(crate) fn parse(text: &str) -> Result<Self, Malformed> {
        parse::query(text).map(Self)
    }

    /// The JSON pointers of the selected nodes, in the order of the standard; a node may be there several times.
    ///
    /// `None` if that takes more steps than are left.
    pub(crate) fn select(&self, root: &Value, steps: &mut Steps) -> Option<Vec<String>> {
        evaluate::select(&self.0, root, steps)
    }
}

#[cfg(test)]
mod tests;
