//! What a reader of documents has to say: where, what, and what was done instead.
//!
//! ```
//! use ops_runtime::{Diagnostic, Severity};
//!
//! let diagnostic = Diagnostic::warning("/paths/~1pets/get", "no `operationId`").with_help("called `get_pets`");
//! assert_eq!(diagnostic.to_string(), "warning: no `operationId`\n  at /paths/~1pets/get\n  = called `get_pets`");
//! assert_eq!(diagnostic.severity, Severity::Warning);
//! ```

use std::fmt;

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
    /// Where, as a JSON pointer into the document (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// What was found.
    pub message: String,
    /// What was done instead, or what to do.
    pub help: Option<String>,
    /// The document, as its `Source` names it.
    pub document: Option<String>,
    /// Line and column in the document, from 1.
    pub position: Option<(usize, usize)>,
}

impl Diagnostic {
    /// A message of the given severity about the place at a JSON pointer.
    pub fn new(severity: Severity, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity, pointer: pointer.into(), message: message.into(), help: None, document: None, position: None }
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
        self.help = Some(help.into());
        self
    }

    /// Names the document.
    #[must_use]
    pub fn with_document(mut self, document: impl Into<String>) -> Self {
        self.document = Some(document.into());
        self
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
        write!(f, "{severity}: {}\n  at ", self.message)?;
        if let Some(document) = &self.document {
            write!(f, "{document}")?;
            if let Some((line, column)) = self.position {
                write!(f, ":{line}:{column}")?;
            }
            if !self.pointer.is_empty() {
                f.write_str(" ")?;
            }
        }
        write!(
            f,
            "{}",
            if self.pointer.is_empty() && self.document.is_none() { "(the whole document)" } else { &self.pointer }
        )?;
        match &self.help {
            Some(help) => write!(f, "\n  = {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Diagnostic {}
