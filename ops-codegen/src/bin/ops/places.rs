//! The place in `ops.toml` of a setting that matches no document.

use std::path::Path;

use ops_runtime::spec::Diagnostic;

use crate::failure::Failure;

/// The failure of settings with their places in the file; any other unchanged.
pub(crate) fn placed(failure: Failure, path: &Path) -> Failure {
    let faults = match failure {
        Failure::Usage(message) => vec![Diagnostic::error("", message)],
        Failure::Trouble(faults) => faults,
        other => return other,
    };
    let (text, label) = (std::fs::read_to_string(path).unwrap_or_default(), path.display().to_string());
    let place = |fault: Diagnostic| {
        if fault.document.is_some() {
            return fault;
        }
        let message = fault.message.strip_prefix(&format!("{label}: ")).unwrap_or(&fault.message);
        let placed = Diagnostic::error("", message).with_document(&label);
        // The names that the message quotes.
        match message.split('`').skip(1).step_by(2).find_map(|name| position(&text, name)) {
            Some((line, column)) => placed.with_position(line, column),
            None => placed,
        }
    };
    Failure::Trouble(faults.into_iter().map(place).collect())
}

/// The line and column of the one text or key of that name; `None` if there are several, of which any may be meant.
fn position(text: &str, name: &str) -> Option<(usize, usize)> {
    if name.is_empty() {
        return None;
    }
    let is_it = |at: usize| {
        let (Some(before), Some(after)) = (text.get(..at), text.get(at + name.len()..)) else { return false };
        let last = before.chars().next_back();
        let is_text = last.is_some_and(|c| matches!(c, '"' | '\'')) && after.starts_with(['"', '\'']);
        let is_free = last.is_none_or(|c| c.is_whitespace() || matches!(c, '{' | ','));
        is_text || is_free && after.trim_start_matches(' ').starts_with('=')
    };
    let mut found = text.match_indices(name).map(|(at, _)| at).filter(|at| is_it(*at));
    let (at, None) = (found.next()?, found.next()) else { return None };
    let before = text.get(..at)?;
    let line = before.rsplit('\n').next().unwrap_or_default();
    Some((before.matches('\n').count() + 1, line.chars().count() + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_a_place_if_it_is_there_once() {
        let text = "[documents.shop]\ninclude = [\"order\", \"pets\"]\nrename = { Nope = \"X\", Y = \"pets\" }\n";
        for (name, place) in [
            ("order", Some((2, 13))),
            ("Nope", Some((3, 12))),
            ("X", Some((3, 20))),
            ("pets", None),
            ("shop", None),
            ("orde", None),
            ("", None),
        ] {
            assert_eq!(position(text, name), place, "{name}");
        }
    }
}
