//! How a program ended.

use std::borrow::Cow;
use std::fmt;

use serde_json::Value;

use crate::ErrorCode;
use crate::program::journal::Journal;

/// Limit of a shown name and of a shown code of an error, in characters.
const SHORT: usize = 200;

/// Limits of a shown message, of shown details and of a shown stack of an error, in characters.
const LONG: usize = 4_000;

/// The report of a run.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// How the run ended.
    pub outcome: Outcome,
    /// The console output of the program. If it was resumed, its output from the start is included.
    pub logs: Vec<Log>,
    /// Number of calls of the program, including `search` and `describe`. If it was resumed, its calls from the start
    /// count, too.
    pub calls: usize,
    /// Warnings about the outcome, such as that console output was left out.
    pub warnings: Vec<String>,
    /// True if it went on in this run from where its journal ended: it began a call, or got a result that the journal
    /// did not have.
    #[cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "gateways alone keep what has not gone on"))]
    pub(crate) has_gone_on: bool,
    /// True if its journal had a call without a result when the run began: a program that waits has one.
    #[cfg_attr(not(feature = "gateway"), allow(dead_code, reason = "gateways alone keep what has not gone on"))]
    pub(crate) had_pending: bool,
}

/// The outcome of a run.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// It returned a value; `null` if it returned nothing.
    Done(Value),
    /// It waits for approval of calls. With the answers in the journal, it can be resumed.
    Waiting(Waiting),
    /// It failed, or it reached a limit.
    Failed(Failure),
}

/// The calls that a program waits for.
#[derive(Debug)]
#[non_exhaustive]
pub struct Waiting {
    /// The calls that need approval, in the order in which the program made them.
    pub asks: Vec<Ask>,
    /// The record so far, to which the answers are added.
    pub journal: Journal,
}

/// A call that waits for approval.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Ask {
    /// The key of this call. An answer with this key applies to this operation with this input only.
    pub key: String,
    /// The id of the operation.
    pub id: String,
    /// Its input.
    pub input: Value,
}

/// A line that a program wrote to the console.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Log {
    /// `log`, `info`, `warn` or `error`.
    pub level: String,
    /// The text.
    pub text: String,
}

/// Why a program failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// It threw an error.
    Thrown,
    /// It is not valid JavaScript.
    Syntax,
    /// It waits for a promise that is never settled.
    Stuck,
    /// It reached [`Limits::time`](super::Limits::time).
    Time,
    /// It reached [`Limits::cpu`](super::Limits::cpu).
    Cpu,
    /// It reached [`Limits::memory`](super::Limits::memory) or [`Limits::total_memory`](super::Limits::total_memory).
    Memory,
    /// Its function calls, or its values, are nested too deeply.
    Depth,
    /// It reached [`Limits::calls`](super::Limits::calls).
    Calls,
    /// It reached [`Limits::traffic`](super::Limits::traffic).
    Traffic,
    /// It reached [`Limits::output`](super::Limits::output).
    Output,
    /// It reached [`Limits::source`](super::Limits::source).
    Source,
    /// Its journal belongs to another program or another place, or the program behaves differently than recorded.
    Differs,
    /// The journal could not be read or saved.
    Journal,
    /// The journal is too large for its store: the program has to read less. It cannot go on with this journal.
    TooLarge,
    /// The engine failed.
    Engine,
}

/// Why a program failed, and where.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Failure {
    /// The reason.
    pub reason: Reason,
    /// What is wrong, and what to do.
    pub message: String,
    /// The `code` of the error that was thrown, such as `VALIDATION_ERROR`.
    pub code: Option<String>,
    /// The `details` of the error that was thrown, or of the errors that it stands for: JSON, which may be shortened.
    /// `None` for a `VALIDATION_ERROR`, whose message has them.
    pub details: Option<String>,
    /// The line of the program, from 1.
    pub line: Option<u32>,
    /// The column of the line, from 1.
    pub column: Option<u32>,
    /// The active functions of the program, a line each; empty for limits.
    pub stack: String,
}

impl Failure {
    pub(super) fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            code: None,
            details: None,
            line: None,
            column: None,
            stack: String::new(),
        }
    }

    /// The failure of a limit: what was reached, and the method that sets the limit.
    pub(super) fn limit(reason: Reason, reached: impl fmt::Display, method: &str) -> Self {
        Self::new(reason, format!("the program {reached} (`Limits::{method}`)"))
    }

    pub(super) fn out_of_memory() -> Self {
        let reached = "needs more memory than it may have: keep less at a time";
        Self::limit(Reason::Memory, reached, "with_memory` or `with_total_memory")
    }

    /// The error that the program threw, as the script reports it; each text is shortened, since people and models read
    /// it.
    pub(super) fn thrown(told: &Value) -> Self {
        let given = |name: &str| told.get(name).and_then(Value::as_str);
        let text = |name: &str, most: usize| cut(given(name).unwrap_or_default(), most);
        let (name, message) = (text("name", SHORT), text("message", LONG));
        let reason = match (&*name, &*message) {
            ("InternalError", "out of memory") => Reason::Memory,
            ("SyntaxError", _) => Reason::Syntax,
            _ => Reason::Thrown,
        };
        let stack = text("stack", LONG);
        let stack: Vec<&str> = stack.lines().map(str::trim).collect();
        let place = stack.first().and_then(|line| place(line));
        let message = if reason == Reason::Memory {
            Self::out_of_memory().message
        } else if name.is_empty() || name == "Error" || name == "CallError" {
            message.into_owned()
        } else {
            format!("{name}: {message}")
        };
        Self {
            reason,
            message,
            code: given("code").map(|code| cut(code, SHORT).into_owned()),
            details: given("details")
                .filter(|_| given("code") != Some(ErrorCode::ValidationError.as_str()))
                .map(|details| cut(details, LONG).into_owned()),
            line: place.map(|(line, _)| line),
            column: place.map(|(_, column)| column),
            stack: stack.join("\n"),
        }
    }
}

impl Failure {
    /// The same; an error at the end of the source is placed in its last line.
    pub(super) fn in_lines(mut self, lines: usize) -> Self {
        let last = u32::try_from(lines).unwrap_or(u32::MAX).max(1);
        if self.line.is_some_and(|line| line > last) {
            (self.line, self.column) = (Some(last), None);
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(code) = self.code.as_deref().filter(|code| !code.is_empty()) {
            write!(f, " [{code}]")?;
        }
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, ", at line {line}, column {column}"),
            (Some(line), None) => write!(f, ", at line {line}"),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}

/// A text of at most that many characters, or the marked beginning of a longer one.
fn cut(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => Cow::Owned(format!("{}...", text.split_at(end).0)),
        None => Cow::Borrowed(text),
    }
}

/// The line and the column in a line of a stack.
fn place(line: &str) -> Option<(u32, u32)> {
    let (_, after) = line.split_once("program.js:")?;
    let mut numbers = after.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().unwrap_or(1)))
}
