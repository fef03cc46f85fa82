//! What a reader of documents has to say: where, what, and what was done instead.
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

/// How many diagnostics of one severity are kept of a document; one more says how many there are beyond.
#[cfg(feature = "openapi")]
pub(crate) const MOST: usize = 1_000;

/// How many bytes a pointer has at most; the end of a longer one is `/...`.
#[cfg(feature = "openapi")]
pub(crate) const MOST_POINTER: usize = 2_000;

/// How a diagnostic begins that stands for others.
#[cfg(feature = "openapi")]
const COUNT: &str = "there are ";

/// How many characters a message or a help has at most.
const MOST_WORDS: usize = 1_000;

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Severity {
    /// Something was read in a way that its author may not have meant; nothing is missing.
    Note,
    /// Something was left out or made less precise.
    Warning,
    /// Nothing could be made of the document.
    Error,
}

/// A message about a place in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where, as a JSON pointer into the document (RFC 6901); empty for the whole document. One of more than 2,000 bytes
    /// ends with `/...`.
    pub pointer: String,
    /// What was found, in a line of at most 1,000 characters.
    pub message: String,
    /// What was done instead, or what to do, in a line of at most 1,000 characters.
    pub help: Option<String>,
    /// The document, as its `Source` names it.
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

    /// Something was read in a way that its author may not have meant.
    pub fn note(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, pointer, message)
    }

    /// Something was left out or made less precise.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, pointer, message)
    }

    /// Nothing could be made of the document.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, pointer, message)
    }

    /// Says what was done instead, or what to do.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(words(help.into()));
        self
    }

    /// Names the document.
    #[must_use]
    pub fn with_document(mut self, document: impl Into<String>) -> Self {
        self.document = Some(document.into());
        self
    }

    /// Says how many diagnostics of a severity are not kept; `None` if all are.
    #[cfg(feature = "openapi")]
    pub(crate) fn more(severity: Severity, count: usize) -> Option<Self> {
        let more = count.checked_sub(MOST).filter(|more| *more > 0)?;
        Some(Self::new(severity, "", format!("{COUNT}{more} more, which are not shown")))
    }

    /// Whether it says how many others there are, and nothing about a place.
    #[cfg(feature = "openapi")]
    pub(crate) fn is_count(&self) -> bool {
        self.pointer.is_empty() && self.message.starts_with(COUNT)
    }

    /// Keeps the first 1,000 of each severity, and says how many there are more.
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

    /// Gives line and column, from 1.
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

/// Words of a document and about it, as one line that no terminal obeys.
fn words(text: String) -> String {
    match shown(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(words) => words,
    }
}

/// The text as it may be shown: the fields of a diagnostic may be set by anyone.
fn shown(text: &str) -> Cow<'_, str> {
    if is_harmless(text) && (text.len() <= MOST_WORDS || text.chars().count() <= MOST_WORDS) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(readable(text, MOST_WORDS))
}

impl std::error::Error for Diagnostic {}
