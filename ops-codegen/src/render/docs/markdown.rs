//! Text of the document as Markdown that keeps only lists, code and links.

use crate::render::text::is_visible;

/// Longer lines are wrapped, if that does not change their meaning.
const WIDTH: usize = 112;

/// Documentation of more lines is cut.
const LONGEST: usize = 48;

/// Lists in lists are indented to this depth.
const DEEPEST: usize = 3;

/// The text as lines of Markdown that is safe in documentation.
pub(super) fn markdown(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut fence: Option<String> = None;
    // The items of lists that are open: where each begins in the text, and where its text begins here.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for line in text.lines() {
        let line = shown(&line.replace('\t', "    "));
        let trimmed = line.trim();
        let column = line.len() - line.trim_start().len();
        if let Some(open) = &fence {
            if trimmed.starts_with(open.as_str()) && trimmed.chars().all(|c| open.starts_with(c)) {
                lines.push(trimmed.to_owned());
                fence = None;
            } else {
                lines.push(line.trim_end().to_owned());
            }
        } else if let Some(marker) = fence_of(trimmed) {
            lines.push(format!("{marker}text"));
            fence = Some(marker);
            open.clear();
        } else if trimmed.is_empty() {
            if lines.last().is_some_and(|line| !line.is_empty()) {
                lines.push(String::new());
            }
        } else if let Some(marker) = marker_of(trimmed) {
            open.retain(|(begin, _)| *begin < column);
            // Beyond, a list would look like code.
            open.truncate(DEEPEST);
            let own = open.last().map_or(0, |(_, inside)| *inside);
            open.push((column, own + marker));
            wrap(&inline(trimmed), own, own + marker, &mut lines);
        } else {
            // Behind an empty line, only what is indented goes on with the item.
            if lines.last().is_some_and(String::is_empty) {
                open.retain(|(begin, _)| *begin < column);
            }
            let own = open.last().map_or(0, |(_, inside)| *inside);
            wrap(&inline(trimmed), own, own, &mut lines);
        }
        if lines.len() > LONGEST {
            break;
        }
    }
    if lines.len() > LONGEST {
        lines.truncate(LONGEST);
        // If a fence is open at the cut, it must be closed.
        fence = open_fence(lines.iter().map(String::as_str));
        if fence.is_none() {
            lines.extend([String::new(), "…".to_owned()]);
        }
    }
    lines.extend(fence);
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    lines
}

/// The marker of the block of code that is open behind lines of [`markdown`].
pub(super) fn open_fence<'l>(lines: impl Iterator<Item = &'l str>) -> Option<String> {
    lines.fold(None, |open: Option<String>, line| match open {
        Some(open) => (!(line.starts_with(&open) && line.chars().all(|c| open.starts_with(c)))).then_some(open),
        None => line.strip_suffix("text").map(str::to_owned).filter(|line| fence_of(line).is_some()),
    })
}

/// The first paragraph of a text as one line, shortened; empty if the text begins with anything else, such as a list.
pub(super) fn paragraph_of(text: &str) -> String {
    let lines = text.lines().map(|line| shown(line).trim().to_owned()).skip_while(String::is_empty);
    let mut words = String::new();
    for line in lines.take_while(|line| !line.is_empty()) {
        let is_rule = line.chars().all(|c| matches!(c, '=' | '-'));
        let is_other = fence_of(&line).is_some() || marker_of(&line).is_some() || line.starts_with(['#', '|', '>']);
        // At the start of a line, these signs may have a meaning.
        if is_rule || is_other || words.is_empty() && line.starts_with(['-', '*', '+']) {
            break;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&line);
    }
    inline(&shortened(&words))
}

/// The sentences of a paragraph that fit into a line, or else the words that do.
fn shortened(text: &str) -> String {
    let Some(start) = text.char_indices().nth(WIDTH).and_then(|(end, _)| text.get(..end)) else {
        return text.to_owned();
    };
    let before = |at: usize| start.get(..at).filter(|text| is_whole(text));
    let mut parts = start.rmatch_indices(' ').filter_map(|(at, _)| before(at));
    let is_abbreviated = |text: &str| ["e.g.", "i.e."].iter().any(|end| text.ends_with(end));
    let is_sentence = |text: &&str| text.ends_with(['.', '!', '?']) && !is_abbreviated(text);
    match (parts.clone().find(is_sentence), parts.next()) {
        (Some(sentences), _) => sentences.to_owned(),
        (None, words) => format!("{}…", words.unwrap_or(start)),
    }
}

/// True if no code and no link is open at the end of a text.
fn is_whole(text: &str) -> bool {
    let is_open = text.rsplit_once('[').is_some_and(|(_, link)| match link.split_once(']') {
        Some((_, target)) => target.starts_with('(') && !target.contains(')'),
        None => true,
    });
    !is_open && text.matches('`').count().is_multiple_of(2)
}

/// The line with every invisible character replaced by its code point.
pub(super) fn shown(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        let joins = matches!(c, '\u{200d}' | '\u{fe0f}') && text.chars().last().is_some_and(is_emoji);
        if is_visible(c) || c.is_alphanumeric() || joins {
            text.push(c);
        } else if c.is_whitespace() || c.is_control() {
            text.push(' ');
        } else {
            text.push_str(&format!("U+{:04X}", u32::from(c)));
        }
    }
    text
}

/// True for signs that make one picture with a joiner or a selector behind them, and for these.
fn is_emoji(c: char) -> bool {
    matches!(c, '\u{200d}' | '\u{fe0f}' | '\u{203c}'..='\u{3299}' | '\u{1f000}'..='\u{1faff}')
}

/// The marker that opens a block of code, if the line does.
pub(super) fn fence_of(line: &str) -> Option<String> {
    let first = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let marker: String = line.chars().take_while(|c| *c == first).collect();
    let info = line.get(marker.len()..).unwrap_or_default();
    (marker.len() >= 3 && !(first == '`' && info.contains('`'))).then_some(marker)
}

/// The width of the marker and the space that open an item of a list.
fn marker_of(line: &str) -> Option<usize> {
    let digits = line.chars().take_while(char::is_ascii_digit).count();
    let rest = line.get(digits..).unwrap_or_default();
    let sign = match digits {
        0 => rest.starts_with("- ") || rest.starts_with("* ") || rest.starts_with("+ "),
        1..=3 => rest.starts_with(". ") || rest.starts_with(") "),
        _ => false,
    };
    sign.then_some(digits + 2)
}

/// Adds the line, wrapped; the first part indented by `first`, the others by `rest`.
pub(super) fn wrap(line: &str, first: usize, rest: usize, lines: &mut Vec<String>) {
    let mut current = " ".repeat(first);
    let mut width = first;
    let fixed = line.starts_with('#') || line.contains('|');
    let mut start = true;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        // At the start of a line some signs have a meaning.
        let plain = word.starts_with(|c: char| c.is_alphabetic() || matches!(c, '(' | '"' | '\'' | '`'));
        if !start && !fixed && plain && width + 1 + length > WIDTH {
            lines.push(std::mem::replace(&mut current, " ".repeat(rest)));
            width = rest;
            start = true;
        }
        if !start {
            current.push(' ');
            width += 1;
        }
        current.push_str(word);
        width += length;
        start = false;
    }
    lines.push(current);
}

/// One line of text: code and web links stay, other special characters of rustdoc are escaped.
pub(super) fn inline(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let boundary = out.is_empty() || out.ends_with(|c: char| !c.is_alphanumeric());
        if let Some(taken) = [code_span, link, autolink].iter().find_map(|part| part(rest)) {
            out.push_str(rest.get(..taken).unwrap_or_default());
            rest = rest.get(taken..).unwrap_or_default();
            continue;
        }
        if let Some(taken) = url(rest).filter(|_| boundary) {
            out.push_str(&format!("<{}>", rest.get(..taken).unwrap_or_default()));
            rest = rest.get(taken..).unwrap_or_default();
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        match c {
            '\\' => {
                let next = rest.chars().next().filter(char::is_ascii_punctuation);
                out.push('\\');
                out.push(next.unwrap_or('\\'));
                rest = rest.get(next.map_or(0, char::len_utf8)..).unwrap_or_default();
            }
            '[' | ']' | '<' | '>' | '`' => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out
}

/// The length of a code span at the start of the text.
fn code_span(text: &str) -> Option<usize> {
    let ticks = text.bytes().take_while(|b| *b == b'`').count();
    if ticks == 0 {
        return None;
    }
    let mut at = ticks;
    while let Some(rest) = text.get(at..) {
        let next = rest.find('`')?;
        let run = rest.get(next..)?.bytes().take_while(|b| *b == b'`').count();
        at += next + run;
        if run == ticks {
            return Some(at);
        }
    }
    None
}

/// The length of `[text](https://..)` at the start of the text.
fn link(text: &str) -> Option<usize> {
    let inner = text.strip_prefix('[')?;
    let close = inner.find(']')?;
    let label = inner.get(..close)?;
    if label.trim().is_empty() || label.contains(['[', '`', '<', '>', '\\', '|']) {
        return None;
    }
    let target = inner.get(close + 1..)?.strip_prefix('(')?;
    let length = url(target)?;
    target.get(length..)?.strip_prefix(')')?;
    Some(1 + close + 2 + length + 1)
}

/// The length of `<https://..>` at the start of the text.
fn autolink(text: &str) -> Option<usize> {
    let length = url(text.strip_prefix('<')?)?;
    text.get(1 + length..)?.strip_prefix('>')?;
    Some(length + 2)
}

/// The length of a web address at the start of the text.
fn url(text: &str) -> Option<usize> {
    let scheme = ["https://", "http://"].iter().find(|scheme| text.starts_with(**scheme))?.len();
    let good = |c: char| c.is_ascii_alphanumeric() || "-._~:/?#@!$&'+,;=%".contains(c);
    let end = text.find(|c: char| !good(c)).unwrap_or(text.len());
    let url = text.get(..end)?.trim_end_matches(['.', ',', ';', ':', '!', '?', '\'']);
    (url.len() > scheme && url.as_bytes().get(scheme).is_some_and(u8::is_ascii_alphanumeric)).then_some(url.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_the_first_paragraph() {
        let long = "word ".repeat(30);
        for (text, wanted) in [
            ("A pet.\n\nMore.", "A pet.".to_owned()),
            ("\nTwo\nlines of [it]\n- no item", "Two lines of \\[it\\]".to_owned()),
            ("```json\n{}\n```", String::new()),
            ("- an item", String::new()),
            ("# A heading", String::new()),
            (&format!("One sentence. {long}"), "One sentence.".to_owned()),
            (long.trim(), format!("{}…", "word ".repeat(22).trim())),
            // No code and no link is cut.
            (&format!("{}`a code of words` {long}", "word ".repeat(20)), format!("{}…", "word ".repeat(20).trim())),
            (
                &format!("{}[a link](https://example.com/a/b) {long}", "word ".repeat(20)),
                format!("{}…", "word ".repeat(20).trim()),
            ),
            ("", String::new()),
        ] {
            assert_eq!(paragraph_of(text), wanted, "{text:?}");
        }
        assert_eq!(paragraph_of(&"x".repeat(200)), format!("{}…", "x".repeat(WIDTH)));
    }

    #[test]
    fn text_is_harmless() {
        let table: &[(&str, &[&str])] = &[
            ("A pet.", &["A pet."]),
            ("  indented\n    code", &["indented", "code"]),
            ("see [Pet] and <b>", &["see \\[Pet\\] and \\<b\\>"]),
            ("[docs](https://a.b/c) [x](y)", &["[docs](https://a.b/c) \\[x\\](y)"]),
            ("at https://a.b/c. Then", &["at <https://a.b/c>. Then"]),
            ("`[code]` and `open", &["`[code]` and \\`open"]),
            ("- one\ntwo\n  - three\n\nfour", &["- one", "  two", "  - three", "", "four"]),
            ("1. a\n   - b\n\n     c\n2. d", &["1. a", "   - b", "", "     c", "2. d"]),
            ("* a\n* b\n\n    code?", &["* a", "* b", "", "  code?"]),
            (
                "\u{1f468}\u{200d}\u{1f4bb} \u{26a0}\u{fe0f} a\u{200d}b",
                &["\u{1f468}\u{200d}\u{1f4bb} \u{26a0}\u{fe0f} aU+200Db"],
            ),
            ("```rust\nfn main() {}\n```\nend", &["```text", "fn main() {}", "```", "end"]),
            ("```\nopen [x]", &["```text", "open [x]", "```"]),
            ("a\u{202e}b\u{0}c", &["aU+202Eb c"]),
            ("\n\n", &[]),
            ("\\[x\\] \\", &["\\[x\\] \\\\"]),
        ];
        for (text, lines) in table {
            assert_eq!(markdown(text), *lines, "{text:?}");
        }
        assert!(markdown(&"line\n".repeat(1000)).len() <= LONGEST + 2);
        assert!(markdown(&format!("```\n{}", "line\n".repeat(1000))).ends_with(&["```".to_owned()]));
        assert!(markdown(&"word ".repeat(100)).iter().all(|line| line.len() <= WIDTH));
    }
}
