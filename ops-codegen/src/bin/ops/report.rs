//! Diagnostics as a compiler shows them.
//!
//! ```text
//! warning: the default `"many"` is no integer
//!   --> shop.yaml:7:52
//!    |
//!  7 |       parameters: [{ name: limit, in: query, schema: { type: integer, default: many } }]
//!    |                                                    ^
//!    = at /paths/~1pets/get/parameters/0/schema/default
//!    = the property has no default
//! ```

use std::collections::BTreeMap;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use ops_runtime::{Diagnostic, Severity};

/// So many characters of a line are shown before the place, and as many after it.
const AROUND: usize = 60;

/// Prints diagnostics, with the lines of the documents that they speak of.
#[derive(Default)]
pub(crate) struct Reporter {
    /// The lines of documents, or nothing where they are not at hand.
    texts: BTreeMap<String, Option<String>>,
    counts: BTreeMap<Severity, usize>,
}

impl Reporter {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Gives the text of a document that is no file.
    pub(crate) fn with_text(mut self, document: &str, text: Option<String>) -> Self {
        self.texts.insert(document.to_owned(), text);
        self
    }

    /// Prints a diagnostic to standard error.
    pub(crate) fn print(&mut self, diagnostic: &Diagnostic) {
        self.count(diagnostic);
        let text = self.render(diagnostic);
        // Nothing is left to tell if standard error is closed.
        let _ = anstream::stderr().lock().write_all(text.as_bytes());
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
        let mut parts: Vec<String> = parts.map(told).collect();
        if parts.is_empty() {
            parts.push("nothing to say".to_owned());
        }
        parts.insert(0, told((operations, &"operation")));
        parts.join(", ")
    }

    fn render(&mut self, diagnostic: &Diagnostic) -> String {
        let blue = AnsiColor::Blue.on_default().bold();
        let bold = Style::new().bold();
        let word = match diagnostic.severity {
            Severity::Note => "note",
            Severity::Warning => "warning",
            _ => "error",
        };
        let mut out = format!("{}: {bold}{}{bold:#}\n", label(word), clean(&diagnostic.message));
        let width = diagnostic.position.map_or(1, |(line, _)| line.to_string().len());
        let gap = " ".repeat(width);
        if let Some(document) = &diagnostic.document {
            let place = diagnostic.position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            out.push_str(&format!("{gap} {blue}-->{blue:#} {}{place}\n", clean(document)));
            if let Some((number, line, column)) = self.excerpt(document, diagnostic.position) {
                let spaces = " ".repeat(column);
                out.push_str(&format!("{gap}  {blue}|{blue:#}\n"));
                out.push_str(&format!(" {blue}{number} |{blue:#} {line}\n"));
                out.push_str(&format!("{gap}  {blue}|{blue:#} {spaces}{blue}^{blue:#}\n"));
            }
        }
        if !diagnostic.pointer.is_empty() {
            out.push_str(&format!("{gap}  {blue}={blue:#} at {}\n", clean(&diagnostic.pointer)));
        }
        if let Some(help) = &diagnostic.help {
            out.push_str(&format!("{gap}  {blue}={blue:#} {}\n", clean(help)));
        }
        out.push('\n');
        out
    }

    /// The line of a place, cut to what is around it, and how many characters stand before the place.
    fn excerpt(&mut self, document: &str, position: Option<(usize, usize)>) -> Option<(usize, String, usize)> {
        let (number, column) = position?;
        let text = self.texts.entry(document.to_owned()).or_insert_with(|| std::fs::read_to_string(document).ok());
        let line = text.as_deref()?.lines().nth(number.checked_sub(1)?)?;
        let at = column.saturating_sub(1);
        let start = at.saturating_sub(AROUND);
        let shown: String = line.chars().skip(start).take(2 * AROUND).collect();
        let more = line.chars().nth(start + 2 * AROUND).is_some();
        let (before, after) = (if start > 0 { "..." } else { "" }, if more { "..." } else { "" });
        Some((number, format!("{before}{}{after}", clean(&shown)), at - start + before.len()))
    }
}

/// The coloured word that a message begins with.
pub(crate) fn label(word: &str) -> String {
    let colour = match word {
        "error" => AnsiColor::Red,
        "warning" => AnsiColor::Yellow,
        _ => AnsiColor::Green,
    };
    let style = colour.on_default().bold();
    format!("{style}{word}{style:#}")
}

/// The text without characters that control a terminal or turn its writing around.
///
/// A document is a stranger's, and so is what a diagnostic quotes of it.
pub(crate) fn clean(text: &str) -> String {
    let is_bad = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if is_bad(c) {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_diagnostic_shows_its_line() {
        let text = "openapi: 3.1.0\npaths: { /pets: 7 }\n";
        let mut reporter = Reporter::new().with_text("shop.yaml", Some(text.to_owned()));
        let diagnostic = Diagnostic::warning("/paths/~1pets", "the path is a number, not an object")
            .with_help("it was left out")
            .with_document("shop.yaml")
            .with_position(2, 10);
        let wanted = "warning: the path is a number, not an object
  --> shop.yaml:2:10
   |
 2 | paths: { /pets: 7 }
   |          ^
   = at /paths/~1pets
   = it was left out

";
        assert_eq!(plain(&reporter.render(&diagnostic)), wanted);
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_are_not_shown() {
        let text = format!("{}\u{1b}[2J{}", "a".repeat(300), "b".repeat(300));
        let mut reporter = Reporter::new().with_text("x", Some(text));
        let shown =
            plain(&reporter.render(&Diagnostic::note("", "a\u{202e}b").with_document("x").with_position(1, 301)));
        assert!(shown.contains("...aaa") && shown.contains("bbb...\n"), "{shown}");
        assert!(shown.contains("a\u{fffd}b") && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() < 140), "{shown}");
    }
}
