//! Texts that regular expressions match.

use regex_syntax::hir::{Class, Hir, HirKind};

/// Longer texts are not made: a short expression may require a huge one.
const LONGEST: usize = 10_000;

/// A text that a regular expression matches, of at least this many characters if possible; `None` if the expression
/// cannot be parsed, for example because of a look-ahead.
pub(super) fn text_of(pattern: &str, least: usize) -> Option<String> {
    // JavaScript allows this escape, and the parser may not.
    let hir = regex_syntax::parse(&pattern.replace("\\/", "/")).ok()?;
    let mut extra = 0;
    loop {
        let mut text = String::new();
        write(&hir, extra, &mut text);
        let is_enough = text.chars().count() >= least && !text.is_empty();
        if is_enough || extra >= least.max(1) {
            return Some(text);
        }
        extra = (extra * 2).max(1).min(least.max(1));
    }
}

/// Writes a text, with so many more repetitions than required.
fn write(hir: &Hir, extra: usize, text: &mut String) {
    if text.len() > LONGEST {
        return;
    }
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.push_str(&String::from_utf8_lossy(&literal.0)),
        HirKind::Class(class) => text.extend(character(class)),
        HirKind::Capture(capture) => write(&capture.sub, extra, text),
        HirKind::Concat(parts) => parts.iter().for_each(|part| write(part, extra, text)),
        HirKind::Alternation(parts) => parts.first().into_iter().for_each(|part| write(part, extra, text)),
        HirKind::Repetition(repetition) => {
            let least = usize::try_from(repetition.min).unwrap_or(LONGEST);
            let most = repetition.max.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
            for _ in 0..least.saturating_add(extra).min(most) {
                let before = text.len();
                write(&repetition.sub, 0, text);
                // If one repetition adds nothing, none does.
                if text.len() == before || text.len() > LONGEST {
                    return;
                }
            }
        }
    }
}

/// A character of a class, if possible a plain one.
fn character(class: &Class) -> Option<char> {
    let ranges: Vec<(char, char)> = match class {
        Class::Unicode(class) => class.ranges().iter().map(|range| (range.start(), range.end())).collect(),
        Class::Bytes(class) => class.ranges().iter().map(|range| (range.start().into(), range.end().into())).collect(),
    };
    let has = |c: &char| ranges.iter().any(|(start, end)| start <= c && c <= end);
    let plain = ('a'..='z').chain('1'..='9').chain('A'..='Z').chain(['0', '-', '_', '.']);
    plain.into_iter().find(has).or_else(|| ranges.first().map(|(start, _)| *start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_match() {
        for (pattern, least, expected) in [
            ("^evt_", 0, "evt_"),
            ("^evt_[a-z]+$", 8, "evt_aaaaa"),
            (r"^(0|[1-9]\d*)$", 0, "0"),
            (r"^\/v[12](beta)?$", 0, "/v1"),
            ("^[A-F0-9]{8}$", 0, "11111111"),
            ("^[^a]$", 0, "b"),
            ("", 0, ""),
            ("x*", 0, "x"),
        ] {
            assert_eq!(text_of(pattern, least).as_deref(), Some(expected), "{pattern}");
        }
        assert_eq!(text_of("^(?!x)", 0), None);
        assert_eq!(text_of("(", 0), None);
    }

    #[test]
    fn work_is_bounded() {
        for pattern in ["((a{1000}){1000}){1000}", "((){1000}){1000}", "(a|b{999}){999}{999}", "(a*)*"] {
            assert!(text_of(pattern, 50_000).is_none_or(|text| text.len() <= LONGEST + 1), "{pattern}");
        }
    }
}
