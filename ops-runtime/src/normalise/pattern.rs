//! Regular expressions of JavaScript (ECMA-262), as schemas write them.

pub(super) mod named;
pub(super) mod size;
mod translate;

use std::sync::OnceLock;

use super::budget::Budget;
use super::findings::Problem;
use size::{Allowance, read};
use translate::{BOUNDARIES, translate, with_references};

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
        let build = |source: &str| {
            fancy_regex::RegexBuilder::new(source)
                .delegate_size_limit(SIZE_LIMIT)
                .backtrack_limit(MAX_BACKTRACKS.saturating_mul(usize::try_from(times).unwrap_or(1)))
                .build()
                .ok()
        };
        let referring = with_references(&source);
        // What is looked at behind may hold a reference, but not a condition.
        let built = build(&referring).or_else(|| if referring == source { None } else { build(&source) });
        match built {
            Some(regex) => Engine::Backtracking(Box::new(regex), read.weight, times),
            None => Engine::Unchecked,
        }
    }
}

/// How large one compiled pattern may be: short ones such as `(a{1000}){1000}` may be huge.
const SIZE_LIMIT: usize = 2 << 20;

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
            // A group that took no part is the empty text.
            (r"^\d{4}(-)?\d{2}\1\d{2}$", "20240101", true),
            (r"^\d{4}(-)?\d{2}\1\d{2}$", "2024-01-01", true),
            (r"^\d{4}(-)?\d{2}\1\d{2}$", "2024-0101", false),
            (r"^\d{4}(-)?\d{2}\1\d{2}$", "202401-01", false),
            (r#"^(?<quote>["'])?\w+\k<quote>$"#, "abc", true),
            (r#"^(?<quote>["'])?\w+\k<quote>$"#, "'abc'", true),
            (r#"^(?<quote>["'])?\w+\k<quote>$"#, "'abc", false),
            (r"^\1(a)$", "a", true),
            (r"^(b)?a\1{2}$", "a", true),
            (r"^(b)?a\1{2}$", "bab", false),
            (r"^(a)?\\1$", r"\1", true),
            (r"(?<=(a)\1)b", "aab", true),
            (r"(?<=(a)\1)b", "ab", false),
            // The flag `s`, of other engines.
            (r"(?s)^.{1,3}$", "a\nb", true),
            (r"^.(?s:.)b$", "a\nb", true),
            (r"^(?s:.).b$", "a\nb", false),
            (r"^((?is).)B.$", "\nb\n", false),
            (r"^((?is).)b$", "\nb", true),
            (r"^(?s)a(?-s:.)(.)$", "ab\n", true),
            (r"^(?s)a(?-s:.)(.)$", "a\nb", false),
            (r"^(?<s>.)$", "\n", false),
            (r"^\(?s.$", "s\n", false),
            (r"^(?s)(?=.b).+$", "\nb", true),
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
