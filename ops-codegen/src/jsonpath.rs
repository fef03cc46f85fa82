//! `JSONPath` (RFC 9535): queries that select places in a document, with a bound on their cost.
//!
//! Queries and documents may be hostile: `$..*..*` visits a node as often as it has ancestors. Parsers and evaluators of
//! others have no such bound.

mod evaluate;
mod filter;
mod parse;
mod query;

use serde_json::Value;

pub(crate) use self::evaluate::Steps;
pub(crate) use self::query::Malformed;
use self::query::Segment;

/// A query from the root of a document.
#[derive(Debug)]
pub(crate) struct Query(Vec<Segment>);

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
