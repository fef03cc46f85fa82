//! Diagnostics of a reader of documents: the place, the finding, and what was done instead.
//!
//! ```
//! use ops_runtime::spec::{Diagnostic, Severity};
//!
//! let diagnostic = Diagnostic::warning("/paths/~1pets/get", "no `operationId`").with_help("called `get_pets`");
//! assert_eq!(diagnostic.to_string(), "warning: no `operationId`\n  at /paths/~1pets/get\n  = called `get_pets`");
//! assert_eq!(diagnostic.severity, Severity::Warning);
//! ```

use std::borrow::Cow;
use std::fmt;

use crate::model::text::{is_harmless, readable};

/// How many diagnostics of one severity are kept for a document; one more gives the number of the rest.
#[cfg(feature = "openapi")]
pub(crate) const MOST: usize = 1_000;

/// The maximum size of a pointer in bytes; a longer one ends with `/...`.
#[cfg(feature = "openapi")]
pub(crate) const MOST_POINTER: usize = 2_000;

/// The start of a diagnostic that stands for others.
#[cfg(feature = "openapi")]
const COUNT: &str = "there are ";

/// The maximum number of characters in a message or a help.
const MOST_WORDS: usize = 1_000;

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Something was read in a way that its author may not have meant, or has no effect.
    Note,
    /// Something was left out or made less precise.
    Warning,
    /// The document could not be read.
    Error,
}

/// A message about a place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The severity.
    pub severity: Severity,
    /// The place, as a JSON pointer into the document (RFC 6901); empty for the whole document. One of more than 2,000
    /// bytes ends with `/...`.
    pub pointer: String,
    /// The finding, in a line of at most 1,000 characters.
    pub message: String,
    /// What was done instead, or what to do, in a line of at most 1,000 characters.
    pub help: Option<String>,
    /// The document, by the name that its `Source` has for it.
    pub document: Option<String>,
    /// Line and column in the document, from 1.
    pub position: Option<(usize, usize)>,
}

impl Diagnostic {
    /// A message of the given severity about the place at a JSON pointer.
    pub fn new(severity: Severity, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            pointer: pointer.into(),
            message: words(message.into()),
            help: None,
            document: None,
            position: None,
        }
    }

    /// Makes a note: something was read in a way that its author may not have meant.
    pub fn note(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, pointer, message)
    }

    /// Makes a warning: something was left out or made less precise.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, pointer, message)
    }

    /// Makes an error: the document could not be read.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, pointer, message)
    }

    /// Sets what was done instead, or what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(words(help.into()));
        self
    }

    /// Sets the document.
    #[must_use]
    pub fn with_document(mut self, document: impl Into<String>) -> Self {
        self.document = Some(document.into());
        self
    }

    /// A diagnostic with the number of those of a severity that were not kept; `None` if all were kept.
    #[cfg(feature = "openapi")]
    pub(crate) fn more(severity: Severity, count: usize) -> Option<Self> {
        let more = count.checked_sub(MOST).filter(|more| *more > 0)?;
        Some(Self::new(severity, "", format!("{COUNT}{more} more, which are not shown")))
    }

    /// True if it only counts other diagnostics, without a place.
    #[cfg(feature = "openapi")]
    pub(crate) fn is_count(&self) -> bool {
        self.pointer.is_empty() && self.message.starts_with(COUNT)
    }

    /// Keeps the first 1,000 of each severity, and adds how many more there are.
    #[cfg(feature = "openapi")]
    pub fn bound(list: &mut Vec<Self>) {
        let mut counts = [0_usize; 3];
        list.retain(|diagnostic| {
            let Some(count) = counts.get_mut(diagnostic.severity as usize) else { return false };
            *count += 1;
            *count <= MOST
        });
        let severities = [Severity::Note, Severity::Warning, Severity::Error].into_iter().zip(counts);
        list.extend(severities.filter_map(|(severity, count)| Self::more(severity, count)));
    }

    /// Sets line and column, from 1.
    #[must_use]
    pub fn with_position(mut self, line: usize, column: usize) -> Self {
        self.position = Some((line, column));
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        };
        write!(f, "{severity}: {}\n  at ", shown(&self.message))?;
        if let Some(document) = &self.document {
            f.write_str(&shown(document))?;
            if let Some((line, column)) = self.position {
                write!(f, ":{line}:{column}")?;
            }
            if !self.pointer.is_empty() {
                f.write_str(" ")?;
            }
        }
        if self.pointer.is_empty() && self.document.is_none() {
            f.write_str("(the whole document)")?;
        } else {
            f.write_str(&shown(&self.pointer))?;
        }
        match &self.help {
            Some(help) => write!(f, "\n  = {}", shown(help)),
            None => Ok(()),
        }
    }
}

/// Text from or about a document, as one line without control characters.
fn words(text: String) -> String {
    match shown(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(words) => words,
    }
}

/// The text in a form that is safe to show, since anyone may set the fields of a diagnostic.
fn shown(text: &str) -> Cow<'_, str> {
    if is_harmless(text) && (text.len() <= MOST_WORDS || text.chars().count() <= MOST_WORDS) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(readable(text, MOST_WORDS))
}

impl std::error::Error for Diagnostic {}
