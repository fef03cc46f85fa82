//! Why nothing was generated.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ops_runtime::Diagnostic;

/// Why nothing was generated.
///
/// Shown as a compiler shows its errors: what, where, and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Nothing could be made of a document.
    Document {
        /// What is wrong with it.
        diagnostics: Vec<Diagnostic>,
    },
    /// The settings make no sense, such as a namespace with a dot.
    Settings(String),
}

impl Error {
    pub(crate) fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Document { diagnostics } => {
                for (i, diagnostic) in diagnostics.iter().enumerate() {
                    let gap = if i == 0 { "" } else { "\n" };
                    write!(f, "{gap}{diagnostic}")?;
                }
                Ok(())
            }
            Self::Settings(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
