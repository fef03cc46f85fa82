//! Diagnostics in the style of a compiler.
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
//!
//! For the errors of this crate and for the command `ops`; not part of the interface.

use std::borrow::Cow;
use std::collections::BTreeMap;

use ops_runtime::spec::{Diagnostic, Severity};

/// How many diagnostics of a list are shown; a line gives the number of the rest.
pub const SHOWN: usize = 20;

/// How many characters of a line are shown before the place, and how many after it.
const AROUND: usize = 60;

/// Colours: each function colours a text.
#[derive(Debug, Clone, Copy)]
pub struct Paint {
    /// The word at the start of a diagnostic.
    pub label: fn(&str) -> String,
    /// The message.
    pub message: fn(&str) -> String,
    /// The frame around the line of the document.
    pub frame: fn(&str) -> String,
}

impl Default for Paint {
    fn default() -> Self {
        Self { label: str::to_owned, message: str::to_owned, frame: str::to_owned }
    }
}

/// Shows diagnostics with the lines of their documents.
#[derive(Debug, Default)]
pub struct Renderer {
    /// The texts of documents; `None` if they are not available.
    texts: BTreeMap<String, Option<Text>>,
    paint: Paint,
}

impl Renderer {
    /// A renderer with these colours.
    #[must_use]
    pub fn with_paint(mut self, paint: Paint) -> Self {
        self.paint = paint;
        self
    }

    /// Gives the text of a document that is no file.
    #[must_use]
    pub fn with_text(mut self, document: &str, text: Option<String>) -> Self {
        self.texts.insert(document.to_owned(), text.map(Text::new));
        self
    }

    /// The diagnostic in several lines, the last of them empty.
    pub fn render(&mut self, diagnostic: &Diagnostic) -> String {
        let Paint { label, message, frame } = self.paint;
        let mut out = format!("{}: {}\n", label(word(diagnostic.severity)), message(&line(&diagnostic.message)));
        let width = diagnostic.position.map_or(1, |(line, _)| line.to_string().len());
        let gap = " ".repeat(width);
        // One that is not there is named by the message, and has no places.
        let is_named = |document: &String| diagnostic.message.starts_with(&format!("cannot read `{document}`"));
        if let Some(document) = diagnostic.document.as_ref().filter(|document| !is_named(document)) {
            let place = diagnostic.position.map(|(line, column)| format!(":{line}:{column}")).unwrap_or_default();
            out.push_str(&format!("{gap} {} {}{place}\n", frame("-->"), line(document)));
            if let Some((number, line, column)) = self.excerpt(document, diagnostic.position) {
                let spaces = " ".repeat(column);
                out.push_str(&format!("{gap}  {}\n", frame("|")));
                out.push_str(&format!(" {} {line}\n", frame(&format!("{number} |"))));
                out.push_str(&format!("{gap}  {} {spaces}{}\n", frame("|"), frame("^")));
            }
        }
        if !diagnostic.pointer.is_empty() {
            out.push_str(&format!("{gap}  {} at {}\n", frame("="), line(&diagnostic.pointer)));
        }
        if let Some(help) = &diagnostic.help {
            out.push_str(&format!("{gap}  {} {}\n", frame("="), line(help)));
        }
        out.push('\n');
        out
    }

    /// The first diagnostics of a list, and the number of the rest.
    pub fn render_list(&mut self, diagnostics: &[Diagnostic]) -> String {
        let mut out: String = diagnostics.iter().take(SHOWN).map(|diagnostic| self.render(diagnostic)).collect();
        if let Some(more) = more(diagnostics.len()) {
            out.push_str(&format!("{more}\n"));
        }
        out
    }

    /// The line of a place, cut around it, and how many characters stand before the place.
    fn excerpt(&mut self, document: &str, position: Option<(usize, usize)>) -> Option<(usize, String, usize)> {
        let (number, column) = position?;
        let read = || std::fs::read_to_string(document).ok().map(Text::new);
        let text = self.texts.entry(document.to_owned()).or_insert_with(read);
        let at = column.saturating_sub(1);
        let start = at.saturating_sub(AROUND);
        let mut rest = text.as_mut()?.rest(number.checked_sub(1)?, start)?.chars();
        let shown: String = rest.by_ref().take(2 * AROUND).collect();
        let more = rest.next().is_some();
        let (before, after) = (if start > 0 { "..." } else { "" }, if more { "..." } else { "" });
        Some((number, format!("{before}{}{after}", clean(&shown).replace('\n', " ")), at - start + before.len()))
    }
}

/// How many characters of a long line are counted at once.
const STRIDE: usize = 4_096;

/// A text, and the starts of its lines, which are found once for all diagnostics.
#[derive(Debug)]
struct Text {
    text: String,
    starts: Vec<usize>,
    /// For visited lines, where each further [`STRIDE`] characters begin.
    marks: BTreeMap<usize, Vec<usize>>,
}

impl Text {
    fn new(text: String) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Self { text, starts, marks: BTreeMap::new() }
    }

    /// The rest of a line from a character on.
    fn rest(&mut self, number: usize, column: usize) -> Option<&str> {
        let start = *self.starts.get(number)?;
        let end = self.starts.get(number + 1).map_or(self.text.len(), |next| next - 1);
        let line = self.text.get(start..end)?;
        let line = line.strip_suffix('\r').unwrap_or(line);
        let marks = self.marks.entry(number).or_insert_with(|| {
            line.char_indices().enumerate().filter(|(count, _)| count % STRIDE == 0).map(|(_, (at, _))| at).collect()
        });
        let rest = line.get(marks.get(column / STRIDE).copied().unwrap_or(line.len())..)?;
        let at = rest.char_indices().nth(column % STRIDE).map_or(rest.len(), |(at, _)| at);
        rest.get(at..)
    }
}

/// A line with the number of diagnostics of a list of that length that are not shown.
pub(crate) fn more(length: usize) -> Option<String> {
    let more = length.checked_sub(SHOWN).filter(|more| *more > 0)?;
    Some(format!("and {more} more"))
}

/// The word for a severity.
fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Note => "note",
        Severity::Warning => "warning",
        _ => "error",
    }
}

/// A text as one line without characters that control a terminal.
pub fn line(text: &str) -> String {
    clean(text).replace('\n', " ")
}

/// The same JSON, with characters that control a terminal escaped in its strings.
pub fn json(text: &str) -> Cow<'_, str> {
    let is_bad = |c: char| is_bad(c) && !matches!(c, '\t' | '\r');
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        if is_bad(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// True if a character controls a terminal or the direction of text; callers that show lines handle line breaks.
fn is_bad(c: char) -> bool {
    (c.is_control() && c != '\n')
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text without characters that control a terminal or the direction of text.
///
/// A document is not trusted, nor is what a diagnostic quotes from it.
pub fn clean(text: &str) -> String {
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

    #[test]
    fn a_diagnostic_shows_its_line() {
        let text = "openapi: 3.1.0\npaths: { /pets: 7 }\n";
        let mut renderer = Renderer::default().with_text("shop.yaml", Some(text.to_owned()));
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
        assert_eq!(renderer.render(&diagnostic), wanted);
    }

    #[test]
    fn long_lines_are_cut_and_control_characters_are_not_shown() {
        let text = format!("{}\u{1b}[2J{}", "a".repeat(300), "b".repeat(300));
        let mut renderer = Renderer::default().with_text("x", Some(text));
        let shown = renderer.render(&Diagnostic::note("", "a\u{202e}b").with_document("x").with_position(1, 301));
        assert!(shown.contains("...aaa") && shown.contains("bbb...\n"), "{shown}");
        assert!(shown.contains("a\\u{202e}b") && !shown.contains('\u{1b}'), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() < 140), "{shown}");
    }

    #[test]
    fn long_lists_are_cut() {
        let list = |length| vec![Diagnostic::error("", "odd"); length];
        assert!(!Renderer::default().render_list(&list(SHOWN)).contains("more"));
        assert!(Renderer::default().render_list(&list(SHOWN + 3)).ends_with("\n\nand 3 more\n"));
    }
}
