//! Strings: lengths, patterns and the formats of the compatible reading.

use std::sync::{LazyLock, OnceLock};

use super::budget::Budget;
use super::cut::{MAX_NAME, cut};
use crate::Body;
use crate::model::body::handover::{self, Length};

/// The rules of a string.
#[derive(Debug, Default)]
pub(super) struct StringRules {
    pub(super) min: Option<i64>,
    pub(super) max: Option<i64>,
    pub(super) patterns: Vec<Pattern>,
    pub(super) format: Option<Format>,
    /// Lengths in UTF-16 code units, as the original counts them, instead of characters.
    pub(super) utf16: bool,
    /// True if the string stands for bytes, whose number is its length.
    pub(super) is_bytes: bool,
}

/// The `format` of a string.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) name: Box<str>,
    pub(super) matcher: Matcher,
}

/// What a format demands.
#[derive(Debug)]
pub(super) enum Matcher {
    /// Nothing is checked, but no value is made up for it.
    Annotation,
    Known(&'static Pattern),
    /// A name that the original does not know, so that no string conforms.
    Unknown,
}

impl StringRules {
    pub(super) fn check(&self, text: &str, budget: &Budget) -> bool {
        self.check_by(text, || self.patterns.iter().all(|pattern| pattern.is_in(text, budget)))
    }

    pub(super) fn check_without_patterns(&self, text: &str) -> bool {
        self.check_by(text, || true)
    }

    #[inline]
    fn check_by(&self, text: &str, patterns: impl FnOnce() -> bool) -> bool {
        match self.bytes(text) {
            Some(length) => !self.is_body_short(length) && !self.is_body_long(length),
            None => self.length(text) && patterns() && self.format_matches(text),
        }
    }

    fn length(&self, text: &str) -> bool {
        self.longer(text) && self.shorter(text)
    }

    fn longer(&self, text: &str) -> bool {
        // A character has one to four bytes, so most strings need no counting.
        self.min.is_none_or(|min| {
            let bytes = as_i64(text.len());
            bytes >= min && (bytes >= min.saturating_mul(4) || self.count(text) >= min)
        })
    }

    fn shorter(&self, text: &str) -> bool {
        self.max.is_none_or(|max| as_i64(text.len()) <= max || self.count(text) <= max)
    }

    fn count(&self, text: &str) -> i64 {
        as_i64(if self.utf16 { text.encode_utf16().count() } else { text.chars().count() })
    }

    fn format_matches(&self, text: &str) -> bool {
        match self.format.as_ref().map(|format| &format.matcher) {
            None | Some(Matcher::Annotation) => true,
            // These pass through a text once.
            Some(Matcher::Known(pattern)) => pattern.matches(text),
            Some(Matcher::Unknown) => false,
        }
    }

    /// How many bytes a text stands for; `None` if it is text. Bytes have no characters that a pattern could be about.
    fn bytes(&self, text: &str) -> Option<Length> {
        let given = handover::length_of(text);
        given.or_else(|| self.is_bytes.then(|| Some(Body::length_of_text(text) as u64)))
    }

    fn is_body_short(&self, length: Length) -> bool {
        let min = self.min.and_then(|min| u64::try_from(min).ok());
        min.zip(length).is_some_and(|(min, length)| length < min)
    }

    fn is_body_long(&self, length: Length) -> bool {
        let max = self.max.and_then(|max| u64::try_from(max).ok());
        max.zip(length).is_some_and(|(max, length)| length > max)
    }

    /// A message for each rule that the string breaks.
    pub(super) fn violations(&self, text: &str, budget: &Budget, mut say: impl FnMut(String)) {
        if let Some(length) = self.bytes(text) {
            if let Some(min) = self.min.filter(|_| self.is_body_short(length)) {
                say(format!("Expected no fewer than {min} bytes"));
            }
            if let Some(max) = self.max.filter(|_| self.is_body_long(length)) {
                say(format!("Expected no more than {max} bytes"));
            }
            return;
        }
        if let Some(min) = self.min.filter(|_| !self.longer(text)) {
            say(format!("Expected string length greater or equal to {min}"));
        }
        if let Some(max) = self.max.filter(|_| !self.shorter(text)) {
            say(format!("Expected string length less or equal to {max}"));
        }
        for pattern in &self.patterns {
            let source = cut(&pattern.source, MAX_NAME);
            match pattern.look(text, budget) {
                Found::Yes => {}
                Found::No => say(format!("Expected string to match '{source}'")),
                Found::TooLong => say(format!("Expected string to match '{source}', which takes too long to find out")),
            }
        }
        if let Some(format) = self.format.as_ref().filter(|_| !self.format_matches(text)) {
            say(match format.matcher {
                Matcher::Unknown => format!("Unknown format '{}'", cut(&format.name, MAX_NAME)),
                _ => format!("Expected string to match '{}' format", format.name),
            });
        }
    }

    /// The string created by default; none can be made up to match a pattern or a format.
    pub(super) fn create(&self) -> Option<String> {
        if !self.patterns.is_empty() || self.format.is_some() {
            return None;
        }
        let min = usize::try_from(self.min.unwrap_or(0)).unwrap_or(0);
        (min <= MAX_CREATED).then(|| " ".repeat(min))
    }
}

/// The longest string or array that is made up.
pub(super) const MAX_CREATED: usize = 1 << 16;

fn as_i64(length: usize) -> i64 {
    i64::try_from(length).unwrap_or(i64::MAX)
}

/// Formats for which the default reading makes up no value (an empty string would not conform).
pub(super) fn has_structure(format: &str) -> bool {
    matches!(
        format,
        "date-time"
            | "date"
            | "time"
            | "duration"
            | "email"
            | "idn-email"
            | "hostname"
            | "idn-hostname"
            | "ipv4"
            | "ipv6"
            | "uri"
            | "iri"
            | "url"
            | "uuid"
    )
}

/// The formats that the compatible reading knows.
pub(super) fn registered(format: &str) -> Option<&'static Pattern> {
    static FORMATS: LazyLock<[(&str, Pattern); 7]> = LazyLock::new(|| {
        [
            ("date-time", r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})$"),
            ("date", r"^\d{4}-\d{2}-\d{2}$"),
            ("time", r"^\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]\d{2}:\d{2})?$"),
            ("email", r"^[^@\s]+@[^@\s]+\.[^@\s]+$"),
            ("uuid", r"^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"),
            ("uri", r"^[A-Za-z][A-Za-z0-9+.-]*:[^\s]+$"),
            ("ipv4", r"^(25[0-5]|2[0-4]\d|1?\d?\d)(\.(25[0-5]|2[0-4]\d|1?\d?\d)){3}$"),
        ]
        .map(|(name, source)| (name, Pattern::new(source, true)))
    });
    FORMATS.iter().find(|(name, _)| *name == format).map(|(_, pattern)| pattern)
}

/// A regular expression in the dialect of JavaScript, compiled on first use.
#[derive(Debug)]
pub(super) struct Pattern {
    source: Box<str>,
    /// True if letters that are no escapes in JavaScript stand for themselves, as they do there.
    strict: bool,
    compiled: OnceLock<Engine>,
}

#[derive(Debug)]
enum Engine {
    Linear(regex::Regex),
    /// Look-around and back-references.
    Backtracking(Box<fancy_regex::Regex>),
    /// Neither engine can compile it, so it is only an annotation.
    Unchecked,
}

/// The result of searching a pattern in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Yes,
    No,
    /// The search was ended, because it might have taken too long.
    TooLong,
}

/// How often a search may backtrack.
const MAX_BACKTRACKS: usize = 20_000;
/// How many steps a search with that much backtracking counts for.
const BACKTRACKING: u64 = 4096;

impl Pattern {
    pub(super) fn new(source: &str, strict: bool) -> Self {
        Pattern { source: source.into(), strict, compiled: OnceLock::new() }
    }

    /// True if the pattern is in a text; false if the search takes too long.
    pub(super) fn is_in(&self, text: &str, budget: &Budget) -> bool {
        self.look(text, budget) == Found::Yes
    }

    /// The same for a name in a schema, of which there are few.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.search(text) == Found::Yes
    }

    fn look(&self, text: &str, budget: &Budget) -> Found {
        let found = if budget.spend(text.len() as u64 / 64) { self.search(text) } else { Found::No };
        if found == Found::TooLong {
            budget.spend(BACKTRACKING);
        }
        found
    }

    fn search(&self, text: &str) -> Found {
        let found = match self.compiled.get_or_init(|| self.compile()) {
            Engine::Linear(regex) => regex.is_match(text),
            Engine::Backtracking(regex) => match regex.is_match(text) {
                Ok(found) => found,
                Err(_) => return Found::TooLong,
            },
            Engine::Unchecked => true,
        };
        if found { Found::Yes } else { Found::No }
    }

    fn compile(&self) -> Engine {
        let source = translate(&self.source, self.strict);
        if let Ok(regex) = regex::RegexBuilder::new(&source).size_limit(SIZE_LIMIT).build() {
            return Engine::Linear(regex);
        }
        match fancy_regex::RegexBuilder::new(&source)
            .delegate_size_limit(SIZE_LIMIT)
            .backtrack_limit(MAX_BACKTRACKS)
            .build()
        {
            Ok(regex) => Engine::Backtracking(Box::new(regex)),
            Err(_) => Engine::Unchecked,
        }
    }
}

/// How large one compiled pattern may be: short ones such as `(a{1000}){1000}` may be huge.
const SIZE_LIMIT: usize = 2 << 20;

const SPACE: &str = r"\t\n\x0B\x0C\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
const WORD: &str = "0-9A-Za-z_";

/// Rewrites a JavaScript regular expression in the syntax of the `regex` crate.
///
/// The classes are those of JavaScript (`\d` and `\w` are ASCII), and characters that only JavaScript takes literally
/// (a brace that is no repetition, `[` and `&&` inside a class) are escaped.
fn translate(source: &str, strict: bool) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut class = false;
    let mut previous = '\0';
    while let Some(c) = chars.next() {
        match c {
            '\\' => {
                let Some(escaped) = chars.next() else {
                    out.push_str(r"\\");
                    break;
                };
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
            // Two hyphens in a row would subtract classes.
            '-' if class && previous == '-' => out.push_str(r"\-"),
            '.' if !class => out.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '{' if !class && !counts(chars.clone()) => out.push_str(r"\{"),
            '}' if !class && !out_counts(&out) => out.push_str(r"\}"),
            _ => out.push(c),
        }
        previous = c;
    }
    out
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
        'b' => out.push_str(r"(?-u:\b)"),
        'B' => out.push_str(r"\B"),
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
            let digits = if c == 'x' { 2 } else { 4 };
            let code: String = chars.clone().take(digits).take_while(char::is_ascii_hexdigit).collect();
            if code.len() == digits {
                chars.nth(digits - 1);
                out.push_str(&format!(r"\u{{{code}}}"));
            } else if !strict && chars.peek() == Some(&'{') {
                out.push_str(r"\u");
            } else {
                out.push(c);
            }
        }
        // Documents are written for many engines; these are the usual meanings.
        'p' | 'P' | 'A' | 'z' if !strict => {
            out.push('\\');
            out.push(c);
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

/// True if the brace that is being closed opened a repetition (or a `\u{..}` or `\p{..}`).
fn out_counts(out: &str) -> bool {
    match out.rfind('{') {
        Some(open) => {
            let inside = out.get(open + 1..).unwrap_or("");
            !inside.contains('}') && !out.get(..open).is_some_and(|before| before.ends_with('\\'))
        }
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_mean_what_they_mean_in_javascript() {
        for (source, text, expected) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "٣", false),
            (r"^\w+$", "é", false),
            (r"^\W$", "é", true),
            (r"^[\W_]$", "é", true),
            (r"\s", "\u{feff}", true),
            (r"^.$", "\u{2028}", false),
            (r"a{", "a{", true),
            (r"^{id}$", "{id}", true),
            (r"^a{2}$", "aa", true),
            (r"^x{2,}}$", "xx}", true),
            (r"^[[]$", "[", true),
            (r"^[a&&b]$", "&", true),
            (r"^[^]$", "\n", true),
            (r"[]", "a", false),
            (r"^\/a\-b$", "/a-b", true),
            (r"^\u0041\x42$", "AB", true),
            (r"^(?=.*\d)(?=.*[a-z]).{3,}$", "ab1", true),
            (r"^(?=.*\d)(?=.*[a-z]).{3,}$", "abc", false),
            (r"(?<=a)b", "ab", true),
            (r"^(a)\1$", "aa", true),
            (r"^\p{Lu}$", "É", true),
            (r"\Aa\Z", "a", true),
            (r"^\cJ$", "\n", true),
            (r"(", "anything", true),
        ] {
            assert_eq!(Pattern::new(source, false).matches(text), expected, "{source} on {text:?}");
        }
        for (format, text, expected) in [
            ("ipv4", "1.2.3.4", true),
            ("ipv4", "1.2.3.256", false),
            ("ipv4", "1.2.3", false),
            ("ipv4", "1.2.3.4.", false),
            ("ipv4", "1.2.3.4.5", false),
            ("email", "a@b.c", true),
            ("email", "a@b", false),
            ("uuid", "00000000-0000-0000-0000-000000000000", true),
        ] {
            assert_eq!(registered(format).map(|pattern| pattern.matches(text)), Some(expected), "{format} on {text}");
        }
    }
}
