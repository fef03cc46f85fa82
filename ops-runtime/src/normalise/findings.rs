//! What is found in values and schemas: repairs, violations, and what could not be understood.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use crate::model::cut::{MAX_NAME, cut};

/// A change that repairing made to a value, or a fault that it left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repair {
    /// The place, as a JSON pointer.
    pub pointer: String,
    /// What the schema asks for, in a few words.
    pub expected: String,
    /// The kind of value found: `null`, `boolean`, `number`, `integer`, `string`, `array`, `object` or `absent`.
    pub found: Cow<'static, str>,
    /// The change that was made.
    pub change: Change,
}

/// What is expected in the place of a member that is not described.
pub(crate) const UNDECLARED: &str = "no such property";

/// The change to a part of a value that does not conform.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// An undeclared property that the schema does not allow was removed; reported once for all items of a list.
    Removed,
    /// The same value is written as the schema asks.
    Converted,
    /// A value was made up, or something dropped, as the original does.
    MadeUp,
    /// Nothing: the value stays as it was received, or absent.
    Kept,
}

/// The place in a message; nothing for the value as a whole.
fn write_place(out: &mut fmt::Formatter<'_>, pointer: &str) -> fmt::Result {
    if pointer.is_empty() { Ok(()) } else { write!(out, "{pointer}: ") }
}

impl fmt::Display for Repair {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Repair { pointer, expected, found, change } = self;
        let kept = if *change == Change::Kept { ", kept" } else { "" };
        write_place(out, pointer)?;
        write!(out, "expected {expected}, found {found}{kept}")
    }
}

/// One fault of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The place, as a JSON pointer.
    pub pointer: String,
    /// What was expected there.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_place(out, &self.pointer)?;
        out.write_str(&self.message)
    }
}

/// A part of a schema that could not be understood, and is therefore not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The reference or the pattern it is about; empty if it is the schema as a whole.
    pub subject: String,
    /// What is wrong with it.
    pub message: &'static str,
}

impl Problem {
    const NOWHERE: &'static str = "is a reference that leads nowhere, so anything conforms";

    pub(super) fn nowhere(reference: &str) -> Self {
        Problem { subject: cut(reference, MAX_NAME).into_owned(), message: Self::NOWHERE }
    }

    /// True if it is a reference that leads nowhere.
    pub(super) fn is_nowhere(&self) -> bool {
        self.message == Self::NOWHERE
    }

    pub(super) fn pattern(source: &str) -> Self {
        let message = "is a pattern that cannot be read, so no text is checked by it";
        Problem { subject: cut(source, MAX_NAME).into_owned(), message }
    }

    pub(super) fn too_large_pattern(source: &str) -> Self {
        let message = "is a pattern that is too large, so no text is checked by it";
        Problem { subject: cut(source, MAX_NAME).into_owned(), message }
    }

    pub(super) fn large_pattern(source: &str) -> Self {
        let message = "is one of too many large patterns, so no text is checked by it";
        Problem { subject: cut(source, MAX_NAME).into_owned(), message }
    }

    pub(super) fn too_many_names(reference: &str) -> Self {
        let message = "is one of too many names for dynamic references, so it is followed like any other reference";
        Problem { subject: cut(reference, MAX_NAME).into_owned(), message }
    }

    const TOO_DEEP: &'static str = "is nested too deeply, so what lies deeper is not checked";

    pub(super) fn too_deep() -> Self {
        Problem { subject: String::new(), message: Self::TOO_DEEP }
    }

    const TOO_MANY: &'static str = "combines too many schemas, so the rest is not checked";

    pub(super) fn too_many() -> Self {
        Problem { subject: String::new(), message: Self::TOO_MANY }
    }

    /// True if not all of the schema is read.
    pub(super) fn is_cut(&self) -> bool {
        [Self::TOO_DEEP, Self::TOO_MANY].contains(&self.message)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.subject.as_str() {
            "" => write!(out, "the schema {}", self.message),
            subject => write!(out, "`{subject}` {}", self.message),
        }
    }
}

/// How many problems of a schema, or of a table of definitions, are listed.
const MAX_PROBLEMS: usize = 1 << 15;

/// The problems of schemas, each of them once: what is combined with many schemas has them in each.
#[derive(Debug, Default)]
pub(super) struct Problems {
    list: Vec<Problem>,
    known: HashSet<(String, &'static str)>,
    messages: HashSet<&'static str>,
}

impl Problems {
    /// Adds a problem that is not known yet. Of many, the first with each message is kept: it may decide what is checked.
    pub(super) fn add(&mut self, problem: Problem) {
        let has_room = self.list.len() < MAX_PROBLEMS || !self.messages.contains(problem.message);
        if has_room && self.known.insert((problem.subject.clone(), problem.message)) {
            self.messages.insert(problem.message);
            self.list.push(problem);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn list(&self) -> &[Problem] {
        &self.list
    }

    pub(super) fn into_list(self) -> Vec<Problem> {
        self.list
    }
}
