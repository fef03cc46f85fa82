//! What documents say, as it is shown to people and models: short, and in the order in which it is.

use crate::OperationSpec;
use crate::model::text::{is_control, is_joiner};

/// How long the summary of an operation may be in a list, in characters.
const SUMMARY: usize = 120;

/// How long the name of something may be, in characters.
const NAME: usize = 300;

/// A name that a document gives something, in one line: what would end the line or the name, or is not seen, is escaped.
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

/// What an operation does, in one line.
pub(super) fn summary(spec: &OperationSpec) -> String {
    let first = || spec.description.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let summary = spec.title.as_deref().filter(|title| !title.is_empty()).unwrap_or_else(first);
    let mut cut: String = summary.chars().filter(|c| !is_deceptive(*c)).take(SUMMARY).collect();
    if summary.chars().count() > SUMMARY {
        cut.push_str("...");
    }
    cut
}

/// True for a character that is not seen, or has those around it shown in another order (Unicode Standard Annex 9).
fn is_deceptive(c: char) -> bool {
    is_control(c) && !is_joiner(c)
}

/// A text of one or more lines as it is: what is not seen in it, or changes the order of what is, is escaped.
pub(super) fn in_order(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_deceptive(c) { shown.extend(c.escape_unicode()) } else { shown.push(c) }
    }
    shown
}
