//! Patterns in the syntax of the engines that search them.

const SPACE: &str = r"\t\n\x0B\x0C\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
const WORD: &str = "0-9A-Za-z_";

/// The boundaries of words, which are ASCII in JavaScript, and what stands for them in the engine that backtracks: that one
/// knows only the words of Unicode. A condition backtracks less than two alternatives.
pub(super) const BOUNDARIES: [(&str, &str); 2] = [
    (BOUNDARY, "(?((?<=[0-9A-Za-z_]))(?![0-9A-Za-z_])|(?=[0-9A-Za-z_]))"),
    (NO_BOUNDARY, "(?((?<=[0-9A-Za-z_]))(?=[0-9A-Za-z_])|(?![0-9A-Za-z_]))"),
];
const BOUNDARY: &str = r"(?-u:\b)";
const NO_BOUNDARY: &str = r"(?-u:\B)";

/// Rewrites a JavaScript regular expression in the syntax of the `regex` crate.
///
/// The classes are those of JavaScript (`\d` and `\w` are ASCII), and characters that only JavaScript takes literally
/// (a brace that is no repetition, `[` and `&&` inside a class) are escaped.
pub(super) fn translate(source: &str, strict: bool) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut class = false;
    let mut previous = '\0';
    let mut is_after_set = false;
    // True from the brace that opens a repetition to the one that closes it.
    let mut is_repetition = false;
    // True where `.` takes line breaks, too, by the flag `s`; and what is true behind each open group.
    let (mut takes_lines, mut behind) = (false, Vec::new());
    while let Some(c) = chars.next() {
        let was_after_set = std::mem::take(&mut is_after_set);
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push_str(r"\\");
                    break;
                };
                is_after_set = is_set(escaped, strict);
                escape(escaped, class, strict, &mut chars, &mut out);
            }
            '[' if class => out.push_str(r"\["),
            '[' => {
                class = true;
                out.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    out.push('^');
                }
                // The empty class, or the class of everything.
                if chars.next_if_eq(&']').is_some() {
                    class = false;
                    let negated = out.ends_with('^');
                    out.truncate(out.len() - if negated { 2 } else { 1 });
                    out.push_str(if negated { r"(?s:.)" } else { r"[^\s\S]" });
                } else if is_next(&chars, ['-', '-']) {
                    // The first hyphen is where a range begins.
                    chars.next();
                    out.push_str(r"\-");
                }
            }
            ']' if class => {
                class = false;
                out.push(']');
            }
            ']' => out.push_str(r"\]"),
            '&' | '~' if class => {
                out.push('\\');
                out.push(c);
            }
            // Two hyphens in a row would subtract classes, and beside a set such as `\w` there is no range.
            '-' if class && (previous == '-' || was_after_set || opens_set(chars.clone(), strict)) => {
                out.push_str(r"\-");
            }
            '(' if !class => {
                let (inside, after) = flagged(chars.clone(), takes_lines);
                takes_lines = inside;
                behind.push(after);
                out.push('(');
            }
            ')' if !class => {
                takes_lines = behind.pop().unwrap_or(takes_lines);
                out.push(')');
            }
            '.' if !class && takes_lines => out.push_str(r"(?s:.)"),
            '.' if !class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if !class && !counts(chars.clone()) => out.push_str(r"\{"),
            '{' if !class => {
                is_repetition = true;
                out.push('{');
            }
            '}' if !class && !std::mem::take(&mut is_repetition) => out.push_str(r"\}"),
            _ => out.push(c),
        }
        previous = c;
    }
    out
}

/// True if `.` takes line breaks in a group that opens, and true if it does so behind the group: `(?s:.)` sets the flag
/// inside, `(?s)` for what follows. `(?-s)` takes it back.
fn flagged(mut chars: std::iter::Peekable<std::str::Chars<'_>>, takes_lines: bool) -> (bool, bool) {
    let (mut flag, mut sets) = (takes_lines, true);
    if chars.next_if_eq(&'?').is_none() {
        return (takes_lines, takes_lines);
    }
    for c in chars {
        match c {
            's' => flag = sets,
            '-' => sets = false,
            ':' => return (flag, takes_lines),
            ')' => return (takes_lines, flag),
            c if c.is_ascii_alphabetic() => {}
            _ => break,
        }
    }
    (takes_lines, takes_lines)
}

/// The same pattern for the engine that backtracks. There, a reference to a group that took no part would match nothing; in
/// JavaScript it matches the empty text.
pub(super) fn with_references(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut chars = source.chars().peekable();
    while let Some(c) = chars.next() {
        out.push(c);
        if c != '\\' {
            continue;
        }
        match chars.next() {
            Some(digit @ '1'..='9') => {
                let mut group = String::from(digit);
                while let Some(digit) = chars.next_if(char::is_ascii_digit) {
                    group.push(digit);
                }
                out.pop();
                out.push_str(&format!(r"(?({group})\{group}|)"));
            }
            Some('k') if chars.next_if_eq(&'<').is_some() => {
                let name: String = chars.by_ref().take_while(|c| *c != '>').collect();
                out.pop();
                out.push_str(&format!(r"(?(<{name}>)\k<{name}>|)"));
            }
            escaped => out.extend(escaped),
        }
    }
    out
}

/// True if a letter after a backslash stands for a set of characters.
fn is_set(c: char, strict: bool) -> bool {
    matches!(c, 'd' | 'D' | 'w' | 'W' | 's' | 'S') || !strict && matches!(c, 'p' | 'P')
}

/// True if these characters are next.
fn is_next(chars: &std::iter::Peekable<std::str::Chars<'_>>, expected: [char; 2]) -> bool {
    chars.clone().take(2).eq(expected)
}

fn opens_set(mut chars: std::iter::Peekable<std::str::Chars<'_>>, strict: bool) -> bool {
    chars.next() == Some('\\') && chars.next().is_some_and(|c| is_set(c, strict))
}

fn escape(c: char, class: bool, strict: bool, chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let set = |inside: &str, negated: bool| match (class, negated) {
        (true, false) => inside.to_owned(),
        (_, true) => format!("[^{inside}]"),
        (false, false) => format!("[{inside}]"),
    };
    match c {
        'd' => out.push_str(&set("0-9", false)),
        'D' => out.push_str(&set("0-9", true)),
        'w' => out.push_str(&set(WORD, false)),
        'W' => out.push_str(&set(WORD, true)),
        's' => out.push_str(&set(SPACE, false)),
        'S' => out.push_str(&set(SPACE, true)),
        'b' if class => out.push_str(r"\x08"),
        'b' => out.push_str(BOUNDARY),
        'B' if !class => out.push_str(NO_BOUNDARY),
        'n' | 'r' | 't' | 'v' | 'f' => {
            out.push('\\');
            out.push(c);
        }
        '0' => out.push_str(r"\x00"),
        // A numbered or named back-reference, for the engine that supports them.
        '1'..='9' if !class => {
            out.push('\\');
            out.push(c);
        }
        'k' if chars.peek() == Some(&'<') => out.push_str(r"\k"),
        'c' => match chars.next_if(char::is_ascii_alphabetic) {
            Some(letter) => out.push_str(&format!(r"\x{:02X}", letter as u32 % 32)),
            None => out.push_str(r"\\c"),
        },
        'x' | 'u' => {
            if let Some(code) = hex(chars, if c == 'x' { 2 } else { 4 }) {
                // With the flag `u`, two halves of a character are that character.
                let code = if strict { code } else { paired(code, chars).unwrap_or(code) };
                out.push_str(&format!(r"\u{{{code:X}}}"));
            } else if !strict && chars.peek() == Some(&'{') {
                out.push_str(r"\u");
                braced(chars, out);
            } else {
                out.push(c);
            }
        }
        // Documents are written for many engines; these are the usual meanings.
        'p' | 'P' | 'A' | 'z' if !strict => {
            out.push('\\');
            out.push(c);
            if is_set(c, strict) {
                braced(chars, out);
            }
        }
        'Z' if !strict => out.push_str(r"\z"),
        c if c.is_ascii_alphanumeric() => out.push(c),
        c if c.is_ascii_punctuation() && c != '<' && c != '>' => {
            out.push('\\');
            out.push(c);
        }
        c => out.push(c),
    }
}

/// Takes over what stands in braces after `\p` or `\u`.
fn braced(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, out: &mut String) {
    let mut taken = String::new();
    for c in chars.clone() {
        match c {
            '}' => {
                taken.push(c);
                chars.nth(taken.len() - 1);
                out.push_str(&taken);
                return;
            }
            '{' if taken.is_empty() => taken.push(c),
            c if !taken.is_empty() && (c.is_ascii_alphanumeric() || c == '_' || c == '=') => taken.push(c),
            _ => return,
        }
    }
}

/// True if the text after a brace makes it a repetition: `3}`, `3,}`, `3,5}`.
fn counts(mut chars: std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    let mut digits = 0;
    let mut comma = false;
    loop {
        match chars.next() {
            Some('0'..='9') => digits += 1,
            Some(',') if !comma && digits > 0 => comma = true,
            Some('}') => return digits > 0,
            _ => return false,
        }
    }
}

/// Takes a number of so many hexadecimal digits; if there are fewer, nothing.
fn hex(chars: &mut std::iter::Peekable<std::str::Chars<'_>>, digits: usize) -> Option<u32> {
    let code: String = chars.clone().take(digits).take_while(char::is_ascii_hexdigit).collect();
    let code = u32::from_str_radix(&code, 16).ok().filter(|_| code.len() == digits)?;
    chars.nth(digits - 1);
    Some(code)
}

/// The character of a surrogate pair, if its first half was read and the escape of the second is next, which is then taken.
fn paired(high: u32, chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<u32> {
    let mut ahead = chars.clone();
    if !(0xD800..=0xDBFF).contains(&high) || !is_next(&ahead, ['\\', 'u']) {
        return None;
    }
    ahead.nth(1);
    let low = hex(&mut ahead, 4).filter(|low| (0xDC00..=0xDFFF).contains(low))?;
    *chars = ahead;
    Some(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}
