//! Texts of documents as they are shown to people and models: short, and without deceptive characters.

use crate::OperationSpec;
use crate::model::text::{is_control, is_joiner};

/// Limit of the summary of an operation in a list, in characters.
const SUMMARY: usize = 120;

/// Limit of a name, in characters.
const NAME: usize = 300;

/// A name from a document, in one line: characters that would end the line or the name, or are invisible, are escaped.
pub(super) fn name(name: &str) -> String {
    let mut shown = String::with_capacity(name.len().min(NAME));
    for (count, c) in name.chars().enumerate() {
        if count == NAME {
            shown.push_str("...");
            break;
        }
        if is_control(c) || c == '`' { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}

/// The summary of an operation, in one line.
pub(super) fn summary(spec: &OperationSpec) -> String {
    let first = || spec.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let summary = spec.title.as_deref().filter(|title| !title.is_empty()).unwrap_or_else(first);
    let mut cut: String = summary.chars().filter(|c| !is_deceptive(*c)).take(SUMMARY).collect();
    if summary.chars().count() > SUMMARY {
        cut.push_str("...");
    }
    cut
}

/// True for a character that is invisible, or changes the order in which others are shown (Unicode Standard Annex 9).
fn is_deceptive(c: char) -> bool {
    is_control(c) && !is_joiner(c)
}

/// A text of one or more lines; characters that are invisible or change the order of others are escaped.
pub(super) fn in_order(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_deceptive(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}
