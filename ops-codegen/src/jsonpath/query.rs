//! What a query is made of.

use regex_lite::Regex;
use serde_json::Value;

/// A query that is none: what is wrong, and behind how many characters.
#[derive(Debug, PartialEq)]
pub(crate) struct Malformed {
    pub(crate) message: String,
    pub(crate) at: usize,
}

#[derive(Debug)]
pub(super) struct Segment {
    /// True for `..`: the selectors hold for the node and all nodes below.
    pub(super) descends: bool,
    pub(super) selectors: Vec<Selector>,
}

#[derive(Debug)]
pub(super) enum Selector {
    Name(String),
    Wildcard,
    Index(i64),
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    Filter(Expression),
}

#[derive(Debug)]
pub(super) enum Expression {
    Or(Vec<Expression>),
    And(Vec<Expression>),
    Not(Box<Expression>),
    Compare(Operand, Operator, Operand),
    Exists(Path),
    Matches { text: Operand, by: Pattern, is_whole: bool },
}

/// A value, or nothing.
#[derive(Debug)]
pub(super) enum Operand {
    Literal(Value),
    /// The one node of a path.
    Path(Path),
    Length(Box<Operand>),
    Count(Path),
    Value(Path),
}

#[derive(Debug)]
pub(super) struct Path {
    /// True for `@`, false for `$`.
    pub(super) is_relative: bool,
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug)]
pub(super) enum Pattern {
    Known(Regex),
    /// The value is the text of the regular expression.
    Found(Operand),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Operator {
    Equal,
    Unequal,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Path {
    /// True if the path can select only one node.
    pub(super) fn is_singular(&self) -> bool {
        let is_one = |segment: &Segment| {
            !segment.descends && matches!(segment.selectors[..], [Selector::Name(_) | Selector::Index(_)])
        };
        self.segments.iter().all(is_one)
    }
}
