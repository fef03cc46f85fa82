//! Text of the document as Markdown that keeps only lists, code and links.
//!
//! Every line begins exactly where its list wants it, and what looks like the start of another block is escaped: rustdoc
//! would run indented code, and fences without a word, as tests.

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
    let all: Vec<String> = text.lines().map(|line| shown(&line.replace('\t', "    "))).collect();
    // An empty line ends a table.
    let tables = all.split_inclusive(|line| line.trim().is_empty()).flat_map(|run| {
        let has_table = run.iter().any(|line| divides_table(line));
        run.iter().map(move |line| (line, has_table))
    });
    for (line, in_table) in tables {
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
        } else if is_rule(trimmed) {
            // Of other signs, it would make a heading of the line before.
            lines.push("***".to_owned());
            open.clear();
        } else if let Some(marker) = marker_of(trimmed) {
            let before = open.len();
            open.retain(|(begin, _)| *begin < column);
            // Beyond, a list would look like code.
            open.truncate(DEEPEST);
            let own = open.last().map_or(0, |(_, inside)| *inside);
            let in_paragraph = open.len() == before && lines.last().is_some_and(|line| !ends_paragraph(line));
            if in_paragraph && !interrupts(trimmed) {
                wrap(&unnumbered(&inline(trimmed, in_table)), own, own, &mut lines);
            } else {
                open.push((column, own + marker));
                let (sign, text) = trimmed.split_at_checked(marker).unwrap_or_default();
                let text = plain_start(&inline(text.trim_start(), in_table));
                wrap(&format!("{sign}{text}"), own, own + marker, &mut lines);
            }
        } else {
            // Behind an empty line, only what is indented goes on with the item.
            if lines.last().is_some_and(String::is_empty) {
                open.retain(|(begin, _)| *begin < column);
            }
            let own = open.last().map_or(0, |(_, inside)| *inside);
            wrap(&unnumbered(&inline(trimmed, in_table)), own, own, &mut lines);
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
    inline(&shortened(&words), false)
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

/// True for a line across the page whose signs have blanks between them, so that it could be taken for an item.
fn is_rule(line: &str) -> bool {
    let signs = |sign: char| line.matches(sign).count() > 2 && line.chars().all(|c| c == sign || c == ' ');
    line.contains(' ') && (signs('*') || signs('-'))
}

/// True if no paragraph goes on behind a line of [`markdown`]: an empty one, a heading, a line across the page, or the end of
/// a block of code.
fn ends_paragraph(line: &str) -> bool {
    let text = line.trim_start();
    let behind = text.trim_start_matches('#');
    let is_heading = (1..=6).contains(&text.len().abs_diff(behind.len())) && behind.starts_with(' ');
    let is_line = text == "***" || text.len() > 2 && ['-', '_'].iter().any(|sign| text.chars().all(|c| c == *sign));
    text.is_empty() || is_heading || is_line || fence_of(line).is_some()
}

/// True if an item may follow a line of a paragraph: one with another number than 1 would go on with the paragraph.
fn interrupts(item: &str) -> bool {
    item.starts_with(['-', '*', '+']) || item.starts_with("1.") || item.starts_with("1)")
}

/// The text of an item that begins no block inside of the item, such as a list, code or a rule.
fn plain_start(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    let is_escaped = word.starts_with(['`', '\\']);
    let is_sign = !is_escaped && word.chars().all(|c| c.is_ascii_punctuation());
    if is_sign || word.starts_with("~~~") { format!("\\{text}") } else { unnumbered(text) }
}

/// The text that does not begin with the number of an item.
fn unnumbered(text: &str) -> String {
    let word = text.split(' ').next().unwrap_or_default();
    let number = word.strip_suffix(['.', ')']).filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    match number.and_then(|number| text.strip_prefix(number)) {
        Some(rest) => format!("{}\\{rest}", number.unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// True for the line below the head of a table.
fn divides_table(line: &str) -> bool {
    line.contains('|') && line.contains('-') && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

/// Adds the line, wrapped; the first part indented by `first`, the others by `rest`.
pub(super) fn wrap(line: &str, first: usize, rest: usize, lines: &mut Vec<String>) {
    let mut current = " ".repeat(first);
    let mut width = first;
    let fixed = line.starts_with('#') || line.contains('|');
    let mut start = true;
    // Code is not broken: its second line could be read as anything, and its first as the start of a block.
    let mut code = 0;
    for word in line.split(' ').filter(|word| !word.is_empty()) {
        let length = word.chars().count();
        // At the start of a line some signs have a meaning.
        let plain = code == 0 && word.starts_with(|c: char| c.is_alphabetic() || matches!(c, '(' | '"' | '\'' | '`'));
        code = code_behind(word, code);
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

/// The number of backticks that end the code which is open behind a word, from that before it; 0 if none is open.
fn code_behind(word: &str, mut open: usize) -> usize {
    let mut rest = word;
    while let Some(at) = rest.find(|c| c == '`' || c == '\\' && open == 0) {
        rest = rest.get(at..).unwrap_or_default();
        let ticks = rest.bytes().take_while(|b| *b == b'`').count();
        open = match open {
            _ if ticks == 0 => open,
            0 => ticks,
            same if same == ticks => 0,
            other => other,
        };
        // A backslash takes the next character along.
        let taken = if ticks > 0 { ticks } else { rest.chars().take(2).map(char::len_utf8).sum() };
        rest = rest.get(taken..).unwrap_or_default();
    }
    open
}

/// One line of text: code and web links stay, other special characters of rustdoc are escaped.
///
/// In a table, `|` ends a cell even in code, unless a backslash is before it.
pub(super) fn inline(line: &str, in_table: bool) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let boundary = out.is_empty() || out.ends_with(|c: char| !c.is_alphanumeric());
        let code = code_span(rest).filter(|taken| !in_table || !rest.get(..*taken).is_some_and(divides_cell));
        if let Some(taken) = code.or_else(|| link(rest)).or_else(|| autolink(rest)) {
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
            // Else the link would be an image, which each reader's browser fetches.
            '!' if link(rest).is_some() => out.extend(['\\', c]),
            other => out.push(other),
        }
    }
    out
}

/// True if a code span holds a `|` that a table would not take for one of its text.
fn divides_cell(code: &str) -> bool {
    code.split('|').rev().skip(1).any(|before| !before.ends_with('\\') || before.ends_with("\\\\"))
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
mod tests;
