//! The failures of a command, and their exit statuses.

use std::io::{self, Write};
use std::process::ExitCode;

use ops_codegen::Error;
use ops_runtime::spec::{Diagnostic, Severity};
use ops_runtime::{CallError, ErrorCode};

use crate::missing::meant;
use crate::report::{Reporter, clean};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The work failed.
    Failed(String),
    /// It failed with a text of another server, which is shown unchanged.
    Answered(String),
    /// The command was not understood.
    Usage(String),
    /// A document could not be read.
    Unreadable(Vec<Diagnostic>),
    /// A document that should be compared, or the configuration, could not be read.
    Trouble(Vec<Diagnostic>),
    /// The work is done, except for so many files that could not be read and were reported; and any other failure.
    Incomplete(usize, Option<Box<Failure>>),
    /// The reader of our output has gone, which is not a failure; the work was only for that reader.
    Gone,
}

impl Failure {
    /// Output could not be written.
    pub(crate) fn output(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::Gone,
            _ => Self::Failed(format!("the output cannot be written: {error}")),
        }
    }

    /// Success if the reader of our output has gone: the exit status still shows the result of the work.
    pub(crate) fn unless_gone(self) -> Result<(), Self> {
        if matches!(self, Self::Gone) { Ok(()) } else { Err(self) }
    }

    /// An error of the generator, while reading or generating.
    pub(crate) fn generating(error: Error) -> Self {
        match error {
            Error::Document { diagnostics } if are_settings(&diagnostics) => Self::Trouble(diagnostics),
            Error::Document { diagnostics } => Self::Unreadable(diagnostics),
            Error::Settings(message) => Self::of_settings(message),
            Error::Io { .. } => Self::Unreadable(vec![Diagnostic::error("", error.to_string())]),
            other => Self::Failed(other.to_string()),
        }
    }

    /// Settings that do not fit the documents, one a line.
    fn of_settings(message: String) -> Self {
        match message.contains('\n') {
            true => Self::Trouble(message.lines().map(|fault| Diagnostic::error("", fault)).collect()),
            false => Self::Usage(message),
        }
    }

    /// An error of the configuration.
    pub(crate) fn config(error: Error) -> Self {
        match error {
            Error::Document { diagnostics } => Self::Trouble(diagnostics),
            other => Self::Usage(other.to_string()),
        }
    }

    /// An error of the runtime, while a document was read and bound.
    pub(crate) fn importing(error: &CallError, location: &str) -> Self {
        Self::importing_as(error, location, location)
    }

    /// The same of a document that was read by another location than the one that the user knows.
    pub(crate) fn importing_as(error: &CallError, location: &str, shown: &str) -> Self {
        match error.code() {
            ErrorCode::ValidationError => Self::Usage(error.message().to_owned()),
            _ => Self::Unreadable(vec![unread(error, location, shown)]),
        }
    }

    /// The end of work during which so many files could not be read, which were reported, and any other failure.
    pub(crate) fn of_unreadable(unreadable: usize, failed: Option<String>) -> Result<(), Self> {
        match (unreadable, failed) {
            (0, None) => Ok(()),
            (0, Some(message)) => Err(Self::Failed(message)),
            (unreadable, failed) => {
                Err(Self::Incomplete(unreadable, failed.map(|message| Box::new(Self::Failed(message)))))
            }
        }
    }

    /// The same failure, beside so many files that could not be read, which were reported.
    pub(crate) fn beside(self, unreadable: usize) -> Self {
        match self {
            failed @ (Self::Usage(_) | Self::Failed(_) | Self::Answered(_)) if unreadable > 0 => {
                Self::Incomplete(unreadable, Some(Box::new(failed)))
            }
            other => other,
        }
    }

    /// The same failure, after another that may be its cause.
    pub(crate) fn after(self, cause: Option<String>) -> Self {
        match (self, cause) {
            (Self::Usage(message), Some(cause)) => Self::Usage(format!("{cause}\n{message}")),
            (other, _) => other,
        }
    }

    /// The same failure with advice: on a line of its own, or as the help of diagnostics.
    pub(crate) fn with_advice(self, advice: &str) -> Self {
        let add = |message: String| format!("{message}\n{advice}");
        match self {
            Self::Usage(message) => Self::Usage(add(message)),
            Self::Failed(message) => Self::Failed(add(message)),
            Self::Answered(message) => Self::Answered(add(message)),
            Self::Unreadable(mut diagnostics) => {
                for diagnostic in &mut diagnostics {
                    diagnostic.help.get_or_insert_with(|| advice.to_owned());
                }
                Self::Unreadable(diagnostics)
            }
            other => other,
        }
    }

    /// The failure of a comparison, for which 1 and 2 mean what they do for `diff`.
    pub(crate) fn trouble(self) -> Self {
        match self {
            Self::Unreadable(diagnostics) => Self::Trouble(diagnostics),
            Self::Failed(message) => Self::Usage(message),
            other => other,
        }
    }

    /// The message of a failure that has no diagnostics, for users of a command; that of another server is unchanged.
    fn message(self, command: &str) -> String {
        match self {
            Self::Answered(message) => message,
            Self::Failed(message) | Self::Usage(message) => crate::advice::of_command(command, &message),
            _ => String::new(),
        }
    }

    /// Reports the failure of a command, by its name, and returns the exit status.
    pub(crate) fn report(self, command: &str) -> ExitCode {
        let (message, status) = match self {
            Self::Gone => return ExitCode::SUCCESS,
            Self::Unreadable(diagnostics) => {
                print_list(diagnostics, command);
                return ExitCode::from(3);
            }
            Self::Trouble(diagnostics) => {
                print_list(diagnostics, command);
                return ExitCode::from(2);
            }
            Self::Incomplete(unreadable, failed) => {
                let files = if unreadable == 1 { "a file".to_owned() } else { format!("{unreadable} files") };
                let message = format!("nothing was made of {files}: see above");
                let failed = failed.map(|failed| failed.message(command));
                (failed.map_or(message.clone(), |failed| format!("{message}\n{failed}")), 3)
            }
            Self::Usage(_) => (self.message(command), 2),
            Self::Failed(_) | Self::Answered(_) => (self.message(command), 1),
        };
        // If standard error is closed, there is no way to report it.
        let _ = writeln!(anstream::stderr().lock(), "{}: {}", crate::report::label("error"), clean(&message));
        ExitCode::from(status)
    }
}

/// The diagnostic in the error of a document, which was read by that location.
pub(crate) fn unread(error: &CallError, location: &str, shown: &str) -> Diagnostic {
    // The message is a whole diagnostic if the document was read and is not valid.
    let message = error.message();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    // Its place and its help go where those are shown.
    let (message, place) = message.rsplit_once(&format!("\n  at {location}")).unwrap_or((message, ""));
    let (place, help) = place.split_once("\n  = ").unwrap_or((place, ""));
    let (position, pointer) = place.split_once(' ').unwrap_or((place, ""));
    let mut told = Diagnostic::error(pointer, message).with_document(shown);
    let position = position.strip_prefix(':').and_then(|position| position.split_once(':'));
    if let Some((line, column)) = position.and_then(|(l, c)| Some((l.parse().ok()?, c.parse().ok()?))) {
        told = told.with_position(line, column);
    }
    if help.is_empty() { told } else { told.with_help(help) }
}

/// True if all errors concern settings, which are in no document.
fn are_settings(diagnostics: &[Diagnostic]) -> bool {
    let mut errors = diagnostics.iter().filter(|diagnostic| diagnostic.severity >= Severity::Error).peekable();
    errors.peek().is_some() && errors.all(|diagnostic| diagnostic.document.is_none())
}

fn print_list(mut diagnostics: Vec<Diagnostic>, command: &str) {
    for diagnostic in &mut diagnostics {
        diagnostic.message = crate::advice::of_command(command, &diagnostic.message);
        let is_missing =
            diagnostic.message.starts_with("cannot read ") || diagnostic.message.contains(" is not a file");
        if diagnostic.help.is_none() && is_missing {
            diagnostic.help = diagnostic.document.as_deref().and_then(meant);
        }
    }
    // The lines of streams, which cannot be read again.
    let texts = crate::stream::texts().into_iter();
    let mut reporter = texts.fold(Reporter::default(), |all, (label, text)| all.with_text(&label, Some(text)));
    reporter.print_list(&diagnostics);
}
