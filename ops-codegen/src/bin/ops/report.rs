//! Output to standard error: diagnostics, and their number.

use std::collections::BTreeMap;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use ops_codegen::report::{Paint, Renderer};
pub(crate) use ops_codegen::report::{clean, json, line};
use ops_runtime::spec::{Diagnostic, Severity};

use crate::failure::Failure;

/// Prints diagnostics, with the lines of their documents.
pub(crate) struct Reporter {
    renderer: Renderer,
    counts: BTreeMap<Severity, usize>,
}

impl Default for Reporter {
    fn default() -> Self {
        let paint = Paint { label, message: bold, frame };
        Self { renderer: Renderer::default().with_paint(paint), counts: BTreeMap::new() }
    }
}

impl Reporter {
    /// Gives the text of a document that is no file.
    pub(crate) fn with_text(mut self, document: &str, text: Option<String>) -> Self {
        self.renderer = self.renderer.with_text(document, text);
        self
    }

    /// Prints a diagnostic to standard error.
    pub(crate) fn print(&mut self, diagnostic: &Diagnostic) {
        self.count(diagnostic);
        write(&self.renderer.render(diagnostic));
    }

    /// Prints the first diagnostics of a list, and the number of the rest.
    pub(crate) fn print_list(&mut self, diagnostics: &[Diagnostic]) {
        diagnostics.iter().for_each(|diagnostic| self.count(diagnostic));
        write(&self.renderer.render_list(diagnostics));
    }

    /// Counts a diagnostic that is not shown.
    pub(crate) fn count(&mut self, diagnostic: &Diagnostic) {
        *self.counts.entry(diagnostic.severity).or_default() += 1;
    }

    /// How many operations and diagnostics there were: `7 operations, 2 warnings, 1 note`.
    pub(crate) fn total(&self, operations: usize) -> String {
        let count = |severity: &Severity| self.counts.get(severity).copied().unwrap_or(0);
        let parts = [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")];
        let parts = parts.iter().map(|(severity, word)| (count(severity), word)).filter(|(count, _)| *count > 0);
        let told = |(count, word): (usize, &&str)| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
        std::iter::once(told((operations, &"operation"))).chain(parts.map(told)).collect::<Vec<_>>().join(", ")
    }
}

fn write(text: &str) {
    // If standard error is closed, there is no way to report it.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
}

fn bold(text: &str) -> String {
    let style = Style::new().bold();
    format!("{style}{text}{style:#}")
}

fn frame(text: &str) -> String {
    let style = AnsiColor::Blue.on_default().bold();
    format!("{style}{text}{style:#}")
}

/// Prints to standard output. If its reader has gone, nothing is printed, and the work goes on.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    written.map_err(Failure::output).or_else(Failure::unless_gone)
}

/// A text of at most so many characters; a longer one is cut, and marked.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The coloured word at the start of a message.
pub(crate) fn label(word: &str) -> String {
    let colour = match word {
        "error" => AnsiColor::Red,
        "warning" => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    let style = colour.on_default().bold();
    format!("{style}{word}{style:#}")
}
