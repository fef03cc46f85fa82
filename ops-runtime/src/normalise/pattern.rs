//! Regular expressions of JavaScript (ECMA-262), as schemas write them.

pub(super) mod named;
pub(super) mod size;

use std::sync::OnceLock;

use super::budget::Budget;
use super::findings::Problem;
use size::{Allowance, read};

/// A regular expression in the dialect of JavaScript, compiled on first use.
#[derive(Debug)]
pub(super) struct Pattern {
    pub(super) source: Box<str>,
    /// True if letters that are no escapes in JavaScript stand for themselves, as they do there.
    strict: bool,
    compiled: OnceLock<Engine>,
}

#[derive(Debug)]
enum Engine {
    /// With its weight in the steps of a search.
    Linear(regex::Regex, u64),
    /// Look-around and back-references. The last number is how many times [`MAX_BACKTRACKS`] a search may backtrack.
    Backtracking(Box<fancy_regex::Regex>, u64, u64),
    /// Neither engine can compile it, so it is only an annotation.
    Unchecked,
}

/// The result of searching a pattern in a text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Yes,
    No,
    /// Not known: the steps ran out.
    Ended,
    /// The search was ended, because it might have taken too long.
    TooLong,
}

/// How often a search may backtrack.
const MAX_BACKTRACKS: usize = 20_000;
/// How many times as often it may if the pattern has boundaries of words, which backtrack once or twice each time.
const AT_BOUNDARIES: u64 = 2;
/// How many steps a search with that much backtracking counts for.
const BACKTRACKING: u64 = 4096;

impl Pattern {
    pub(super) fn new(source: &str, strict: bool) -> Self {
        Pattern { source: source.into(), strict, compiled: OnceLock::new() }
    }

    /// Reads the pattern for a schema. What is wrong with it is returned; it then counts as matched by every text.
    pub(super) fn admit(&self, allowance: &Allowance) -> Option<Problem> {
        let source = translate(&self.source, self.strict);
        let Some(read) = read(&source) else { return Some(Problem::pattern(&self.source)) };
        let taken = if read.is_linear {
            allowance.take(read.size, self.source.len())
        } else {
            allowance.take_compiled(read.size)
        };
        let Some(taken) = taken else {
            _ = self.compiled.set(Engine::Unchecked);
            return Some(Problem::large_pattern(&self.source));
        };
        // The size is an estimate, and only compiling shows what the engine that backtracks supports. So both are found out
        // here: later, nothing could be told of it.
        let is_small = read.size < SIZE_LIMIT / 2;
        if read.is_linear && is_small || !matches!(self.engine(), Engine::Unchecked) {
            return None;
        }
        allowance.give_back(taken);
        Some(if is_small { Problem::pattern(&self.source) } else { Problem::too_large_pattern(&self.source) })
    }

    /// True if the pattern is in a text; false if the search takes too long.
    pub(super) fn is_in(&self, text: &str, budget: &Budget) -> bool {
        self.look(text, budget) == Found::Yes
    }

    /// The same for one of the patterns of this crate, which pass through a text once.
    pub(super) fn matches(&self, text: &str) -> bool {
        self.search(text) == Found::Yes
    }

    pub(super) fn look(&self, text: &str, budget: &Budget) -> Found {
        let found = match self.steps(text.len()) {
            steps if steps > Budget::most_of_text(text.len()) => Found::TooLong,
            steps if budget.spend(steps) => self.search(text),
            _ => Found::Ended,
        };
        if found == Found::TooLong {
            let times = if let Engine::Backtracking(_, _, times) = self.engine() { *times } else { 1 };
            budget.spend(BACKTRACKING.saturating_mul(times));
        }
        found
    }

    /// The steps that a search counts for. They grow with the length of the text, and faster in a large pattern.
    fn steps(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        match self.engine() {
            Engine::Linear(_, weight) | Engine::Backtracking(_, weight, _) if *weight > 1 => {
                weight.saturating_mul((bytes / 64).saturating_mul(1 + bytes / 4096).saturating_add(1))
            }
            _ => 1 + bytes / 64,
        }
    }

    fn engine(&self) -> &Engine {
        self.compiled.get_or_init(|| self.compile())
    }

    fn search(&self, text: &str) -> Found {
        let found = match self.engine() {
            Engine::Linear(regex, _) => regex.is_match(text),
            Engine::Backtracking(regex, ..) => match regex.is_match(text) {
                Ok(found) => found,
                Err(_) => return Found::TooLong,
            },
            Engine::Unchecked => true,
        };
        if found { Found::Yes } else { Found::No }
    }

    fn compile(&self) -> Engine {
        let source = translate(&self.source, self.strict);
        let Some(read) = read(&source) else { return Engine::Unchecked };
        if read.is_linear {
            return match regex::RegexBuilder::new(&source).size_limit(SIZE_LIMIT).build() {
                Ok(regex) => Engine::Linear(regex, read.weight),
                Err(_) => Engine::Unchecked,
            };
        }
        // The other engine limits only some of the parts that it compiles, and not all of them together.
        if read.size > 2 * SIZE_LIMIT {
            return Engine::Unchecked;
        }
        let has_boundaries = BOUNDARIES.iter().any(|(linear, _)| source.contains(linear));
        let times = if has_boundaries { AT_BOUNDARIES } else { 1 };
        let source = BOUNDARIES.iter().fold(source, |source, (linear, other)| source.replace(linear, other));
        match fancy_regex::RegexBuilder::new(&source)
            .delegate_size_limit(SIZE_LIMIT)
            .backtrack_limit(MAX_BACKTRACKS.saturating_mul(usize::try_from(times).unwrap_or(1)))
            .build()
        {
            Ok(regex) => Engine::Backtracking(Box::new(regex), read.weight, times),
            Err(_) => Engine::Unchecked,
        }
    }
}

/// How large one compiled pattern may be: short ones such as `(a{1000}){1000}` may be huge.
const SIZE_LIMIT: usize = 2 << 20;

const SPACE: &str = r"\t\n\x0B\x0C\r \u{a0}\u{1680}\u{2000}-\u{200a}\u{2028}\u{2029}\u{202f}\u{205f}\u{3000}\u{feff}";
const WORD: &str = "0-9A-Za-z_";

/// The boundaries of words, which are ASCII in JavaScript, and what stands for them in the engine that backtracks: that one
/// knows only the words of Unicode. A condition backtracks less than two alternatives.
const BOUNDARIES: [(&str, &str); 2] = [
    (BOUNDARY, "(?((?<=[0-9A-Za-z_]))(?![0-9A-Za-z_])|(?=[0-9A-Za-z_]))"),
    (NO_BOUNDARY, "(?((?<=[0-9A-Za-z_]))(?=[0-9A-Za-z_])|(?![0-9A-Za-z_]))"),
];
const BOUNDARY: &str = r"(?-u:\b)";
const NO_BOUNDARY: &str = r"(?-u:\B)";

/// Rewrites a JavaScript regular expression in the syntax of the `regex` crate.
///
/// The classes are those of JavaScript (`\d` and `\w` are ASCII), and characters that only JavaScript takes literally
/// (a brace that is no repetition, `[` and `&&` inside a class) are escaped.
fn translate(source: &str, strict: bool) -> String {
    let mut out = String::with_capacity(source.len() + 16);
    let mut chars = source.chars().peekable();
    let mut class = false;
    let mut previous = '\0';
    let mut is_after_set = false;
    // True from the brace that opens a repetition to the one that closes it.
    let mut is_repetition = false;
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
            (r"^(?<a>b)\k<a>$", "bb", true),
            (r"^(?<a>b)\k<a>$", "bc", false),
            (r"\bfoo\b", "a foo b", true),
            (r"\bfoo\b", "éfoo", true),
            (r"\Bb", "éb", false),
            (r"\Bb", "ab", true),
            (r"^(?!.*\b(DROP|DELETE)\b).*$", "DROP TABLE x", false),
            (r"^(?!.*\b(DROP|DELETE)\b).*$", "éDELETE", false),
            (r"^(?!.*\b(DROP|DELETE)\b).*$", "DROPS", true),
            (r"^(?=.*\bfoo\b)(?!.*\bbar\b)", "a foo", true),
            (r"^(?=.*\bfoo\b)(?!.*\bbar\b)", "foo bar", false),
            (r"^(?=.*\Bb)", "éb", false),
            (r"^(?=.*\Bb)", "ab", true),
            (r"^(\w)\b-\1$", "a-a", true),
            (r"(?<=ab?)c", "abc", true),
            (r"(?<=ab?)c", "bc", false),
            (r"^[(?!-/](?=a)", "(a", true),
            (r"^(a)(?!\1+$)", "ab", true),
            (r"^(a)(?!\1+$)", "aaa", false),
            (r"^\p{Lu}$", "É", true),
            (r"^\p{Lu}$", "é", false),
            (r"^\p{L}+$", "Straße", true),
            (r"^\p{L}+$", "a1", false),
            (r"^\P{L}{2}$", "12", true),
            (r"^\P{L}{2}$", "1a", false),
            (r"^[\p{L}\p{Nd}-]+$", "a-1", true),
            (r"^[\p{L}\p{Nd}-]+$", "a_1", false),
            (r"^\p{Script=Greek}$", "α", true),
            (r"^\p{Script=Greek}$", "a", false),
            (r"^\u{1F600}$", "😀", true),
            (r"^\u{1F600}$", "😁", false),
            (r"^[\u{1F600}-\u{1F64F}]{2}$", "😀😁", true),
            (r"^[\u{1F600}-\u{1F64F}]{2}$", "😀a", false),
            (r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a-b.c@d-e.org", true),
            (r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a/b@c.org", false),
            (r"^[\w-\.]+@([\w-]+\.)+[\w-]{2,4}$", "a@b", false),
            (r"^[\s-a]$", "-", true),
            (r"^[\s-a]$", "B", false),
            (r"^[+-\d]+$", "+-1", true),
            (r"^[+-\d]+$", ",", false),
            (r"^[\d-x]$", "-", true),
            (r"^[\d-x]$", "a", false),
            (r"^[a-c-\d]$", "-", true),
            (r"^[a-c-\d]$", "d", false),
            (r"^[--a]$", "b", false),
            (r"^[--a]$", "A", true),
            (r"^[^--a]$", "A", false),
            (r"^[--]$", "-", true),
            (r"^[---]$", "-", true),
            (r"^[--\d]$", "-", true),
            (r"^[--\d]$", ".", false),
            // What is repeated is a backslash.
            (r"^\\{2}[a-z]+$", r"\\server", true),
            (r"^\\{2}[a-z]+$", "../../etc/passwd", false),
            (r"^\\{1,2}?a$", r"\a", true),
            (r"^\\{1,}a$", "a", false),
            (r"^\\\{2}$", r"\{2}", true),
            (r"^[{]}$", "{}", true),
            // Halves of a character, as they are written where characters have 16 bits.
            (r"^\uD83D\uDE00+$", "😀😀", true),
            (r"^\ud83d\ude00$", "😁", false),
            (r"^[\uD83D\uDE00-\uD83D\uDE4F]{2}$", "😀😁", true),
            (r"^[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*$", "a😀\n", true),
            (r"^[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*$", "\u{1}", false),
            (r"\Aa\Z", "a", true),
            (r"^\cJ$", "\n", true),
            (r"(", "anything", true),
        ] {
            let pattern = Pattern::new(source, false);
            assert_eq!(pattern.matches(text), expected, "{source} on {text:?}");
            assert_eq!(pattern.admit(&Allowance::default()).is_none(), source != "(", "{source}");
        }
    }

    #[test]
    fn boundaries_are_searched_in_long_texts() {
        let pattern = Pattern::new(r"^(?!.*\b(DROP|DELETE)\b).*$", false);
        let text = "the quick brown fox ".repeat(750);
        assert!(pattern.search(&text) == Found::Yes);
        assert!(pattern.search(&format!("{text}DROP")) == Found::No);
    }

    #[test]
    fn patterns_that_no_engine_reads() {
        for source in ["(", "[z-a]", r"\p{Nonsense}", r"\u{110000}", "(?=a", r"(?=a)\p{Nonsense}"] {
            assert!(Pattern::new(source, false).admit(&Allowance::default()).is_some(), "{source}");
        }
    }

    #[test]
    fn patterns_that_no_engine_compiles_are_told() {
        for (source, message) in [
            (r"(a)\2", "cannot be read"),
            (r"(?<=(a)\1+)b", "cannot be read"),
            (r"(?<=((a{1000}){1000}){1000}x?)b", "is too large"),
            // The engine that backtracks makes instructions of each of these, and an automaton of some.
            (format!("(?=a){}", r"\b".repeat(32_768)).as_str(), "is too large"),
            ("(?=ab*)".repeat(9_000).as_str(), "is too large"),
            (format!(r"(a)(?:\1{})", "|a*b".repeat(13_000)).as_str(), "is too large"),
        ] {
            let pattern = Pattern::new(source, false);
            let problem = pattern.admit(&Allowance::default()).map(|problem| problem.message);
            assert!(problem.is_some_and(|told| told.contains(message)), "{source}: {problem:?}");
            assert!(pattern.matches("anything"), "{source}");
        }
    }
}
