//! The errors of generating.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use ops_runtime::spec::Diagnostic;

use crate::report::{Renderer, SHOWN, more};

/// The reason why nothing was generated.
///
/// `Display` is like a compiler's errors: what, where, and what to do. `Debug` also has the lines of the documents,
/// because the `main` of a build script prints an error with `Debug`; the command `ops` does so, too. Only the first
/// entries of a long list are shown.
#[non_exhaustive]
pub enum Error {
    /// A file could not be read or written.
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A document could not be used; or settings could not be applied, and diagnostics of documents and overlays may
    /// explain why.
    Document {
        /// The errors, and possible explanations.
        diagnostics: Vec<Diagnostic>,
    },
    /// The settings are invalid, such as a namespace with a dot.
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
                for (i, diagnostic) in diagnostics.iter().take(SHOWN).enumerate() {
                    let gap = if i == 0 { "" } else { "\n" };
                    write!(f, "{gap}{diagnostic}")?;
                }
                more(diagnostics.len()).map_or(Ok(()), |more| write!(f, "\n{more}"))
            }
            Self::Settings(message) => f.write_str(message),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Document { diagnostics } => f.write_str(Renderer::default().render_list(diagnostics).trim_end()),
            other => write!(f, "{other}"),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_is_what_the_command_prints() {
        let diagnostic = Diagnostic::error("/paths", "odd").with_help("left out").with_document("no/such.yaml");
        let error = Error::Document { diagnostics: vec![diagnostic; SHOWN + 2] };
        let text = format!("{error:?}");
        assert!(
            text.starts_with("error: odd\n  --> no/such.yaml\n   = at /paths\n   = left out\n\nerror: odd\n"),
            "{text}"
        );
        assert!(text.ends_with("\n\nand 2 more") && error.to_string().ends_with("\nand 2 more"), "{text}");
        assert_eq!(format!("{:?}", Error::Settings("no `x`".to_owned())), "no `x`");
        let error = Error::io(Path::new("a"), io::Error::other("gone"));
        assert_eq!(format!("{error:?}"), "a: gone");
    }
}
