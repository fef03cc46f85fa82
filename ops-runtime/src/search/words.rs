//! Words of a text, and the stems by which they are compared.

use std::borrow::Cow;

use frostem::{Algorithm, Stemmer};

/// The longest indexed word, in characters: longer ones are hashes, keys and other things that are not searched for.
const LONGEST: usize = 40;

/// Calls `each` with every word of a text, in lower case: `list_PRs_v2` is `list`, `prs` and `v2`.
///
/// Words end where case, `_` and the like end them. What case splits comes as a whole first, with `true`: `GitHub` is
/// `github`, `git` and `hub`. Scripts without spaces do not show where a word ends: there each two characters that follow
/// one another are a word, so that a part of a sentence is found. Digits stay with their letters (`oauth2`, `k8s`). The
/// letters before them are a word, too, if there are three or more. Tags of HTML and URLs are left out.
pub(super) fn words(text: &str, mut each: impl FnMut(&str, bool)) {
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_alphanumeric() || c == '<') {
        let (_, from) = rest.split_at(start);
        if let Some(after) = markup(from) {
            rest = after;
            continue;
        }
        let end = from.find(|c: char| !c.is_alphanumeric()).unwrap_or(from.len());
        let (run, after) = from.split_at(end);
        rest = match run {
            "" => after.strip_prefix('<').unwrap_or(after),
            "http" | "https" if after.starts_with("://") => after.trim_start_matches(|c| !ends_url(c)),
            _ => {
                scripts(run, &mut each);
                after
            }
        };
    }
}

fn ends_url(c: char) -> bool {
    c.is_whitespace() || matches!(c, ')' | '"' | '>' | ']')
}

/// What follows a tag of HTML, if the text starts with one.
fn markup(text: &str) -> Option<&str> {
    const LONGEST_TAG: usize = 200;
    let inner = text.strip_prefix('<')?;
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
        return None;
    }
    let end = inner.bytes().take(LONGEST_TAG).position(|byte| byte == b'>')?;
    inner.get(end + 1..)
}

/// True for a character of a script without spaces between words: Chinese, Japanese, Thai, Lao, Burmese and Khmer.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'
            | '\u{1000}'..='\u{109f}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{3005}'..='\u{3007}'
            | '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{f900}'..='\u{faff}'
            | '\u{ff66}'..='\u{ff9f}'
            | '\u{20000}'..='\u{3ffff}')
}

/// Splits letters and digits where a script without spaces begins and ends.
fn scripts(run: &str, each: &mut impl FnMut(&str, bool)) {
    let mut rest = run;
    while let Some(first) = rest.chars().next() {
        let is_pairs = is_unspaced(first);
        let end = rest.find(|c: char| is_unspaced(c) != is_pairs).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if is_pairs {
            pairs(part, each);
        } else {
            cased(part, each);
        }
        rest = after;
    }
}

/// Each two characters that follow one another, or the only one.
fn pairs(part: &str, each: &mut impl FnMut(&str, bool)) {
    let mut ends = part.char_indices().map(|(at, c)| at + c.len_utf8()).skip(1).peekable();
    if ends.peek().is_none() {
        each(part, false);
    }
    for ((start, _), end) in part.char_indices().zip(ends) {
        each(part.get(start..end).unwrap_or_default(), false);
    }
}

/// Splits letters and digits where their case says that a word begins: `getHTTPServer`.
fn cased(run: &str, each: &mut impl FnMut(&str, bool)) {
    let mut start = 0;
    let mut before: Option<char> = None;
    let mut is_split = false;
    let mut chars = run.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next_is_lower = chars.peek().is_some_and(|(_, next)| next.is_lowercase());
        // The plural of an acronym is no new word: `PRs`.
        let is_plural = run.get(at + c.len_utf8()..).is_some_and(|rest| rest == "s");
        let begins = before.is_some_and(|before| {
            c.is_uppercase() && !before.is_uppercase() || c.is_uppercase() && next_is_lower && !is_plural
        });
        if begins {
            if !is_split {
                word(run, true, each);
                is_split = true;
            }
            word(run.get(start..at).unwrap_or_default(), false, each);
            start = at;
        }
        before = Some(c);
    }
    word(run.get(start..).unwrap_or_default(), false, each);
}

fn word(word: &str, is_whole: bool, each: &mut impl FnMut(&str, bool)) {
    if word.is_empty() || word.len() > LONGEST && word.chars().count() > LONGEST {
        return;
    }
    let lower = word.to_lowercase();
    each(&lower, is_whole);
    if is_whole {
        return;
    }
    let letters = lower.trim_end_matches(|c: char| c.is_ascii_digit());
    if letters.len() < lower.len() && letters.len() > 2 {
        each(letters, false);
    }
}

/// Words that stems would confuse with others: `customer` with `custom`, `settings` with `set`.
const KEPT: &[(&str, &str)] = &[
    ("activities", "activity"),
    ("activity", "activity"),
    ("communities", "community"),
    ("community", "community"),
    ("customer", "customer"),
    ("customers", "customer"),
    ("emails", "email"),
    ("generally", "general"),
    ("meta", "meta"),
    ("rating", "rating"),
    ("ratings", "rating"),
    ("setting", "setting"),
    ("settings", "setting"),
    ("universal", "universal"),
];

/// Finds the stems of words (Snowball's English).
pub(super) struct Stems(Stemmer);

impl Stems {
    pub(super) fn new() -> Self {
        Self(Stemmer::new(Algorithm::English))
    }

    /// The stem of a word in lower case: `subscriptions` and `subscription` have one.
    pub(super) fn stem<'a>(&self, word: &'a str) -> Cow<'a, str> {
        if let Ok(at) = KEPT.binary_search_by(|(kept, _)| (*kept).cmp(word)) {
            return Cow::Borrowed(KEPT.get(at).map_or("", |(_, stem)| *stem));
        }
        // Other languages have other endings.
        if !word.is_ascii() || word.len() < 3 {
            return Cow::Borrowed(word);
        }
        match american(word) {
            Some(word) => Cow::Owned(self.0.stem(&word).into_owned()),
            None => self.0.stem(word),
        }
    }
}

/// Endings of British spelling, and those for them. Words that only look so are changed alike wherever they stand.
const BRITISH: &[(&str, &str)] = &[
    ("isation", "ization"),
    ("isations", "izations"),
    ("ise", "ize"),
    ("ised", "ized"),
    ("ises", "izes"),
    ("ising", "izing"),
    ("our", "or"),
    ("ourite", "orite"),
    ("ourites", "orites"),
    ("ours", "ors"),
];

/// A word of British spelling in American.
fn american(word: &str) -> Option<String> {
    const SHORTEST: usize = 6;
    let (start, ending) = BRITISH.iter().find_map(|(ending, other)| Some((word.strip_suffix(ending)?, other)))?;
    (word.len() >= SHORTEST).then(|| format!("{start}{ending}"))
}

/// True if a word is one of those in a list with spaces between them.
pub(super) fn has(list: &str, word: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

/// True if a word says nothing about what an operation does.
pub(super) fn is_stop_word(word: &str) -> bool {
    has(STOP_WORDS, word)
}

/// True if a word of a question says little.
pub(super) fn is_weak_word(word: &str) -> bool {
    has(WEAK_WORDS, word)
}

const WEAK_WORDS: &str = "\
    able accident accidentally actual again against ago along always apart around away back because become \
    before begin belong belongs best better big bit bring brought came care certain come comes complete \
    completely currently different done down due early else enough entire exist exists extra far few first found \
    full fully gets getting goes going gone good got great happen happened happens hence instead keep kind know \
    last late later least left little long longer lot main make makes making many matter mean mistake most much \
    name named names never new next no not off often ok old only other others ourselves over part place present \
    put quickly ready real said same saw say says see seem simple single small sort specific stuff sure take \
    taken takes time together took toward towards try two under until up use used uses very whole without work \
    works write wrong";

/// In descriptions these are everywhere; in questions they ask.
const STOP_WORDS: &str = "\
    a about above actually after all already also am an and any anybody anyone anything are as at available be \
    been being both but by can could d did do does doing don e each either ever every everybody everyone \
    everything exactly for friday from g give given go had has have having help her here his how i if in into is \
    it its just kindly let like ll m may me might mine monday more morning must my need needs nobody nothing now \
    of on once one onto or our out own per please re really right s saturday shall she should so some somebody \
    someone something soon still such sunday t tell than that the their them then there these they thing things \
    this those through thursday to today tomorrow tonight too tuesday us using v1 v2 v3 ve via want was way we \
    wednesday were what when where whether which while who whom whose why will with within would yesterday yet \
    you your";

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        words(text, |word, _| found.push(word.to_owned()));
        found
    }

    #[test]
    fn words_end_where_case_and_signs_end_them() {
        let cases: &[(&str, &[&str])] = &[
            ("listPets", &["listpets", "list", "pets"]),
            ("pulls/list-files", &["pulls", "list", "files"]),
            ("getHTTPServer", &["gethttpserver", "get", "http", "server"]),
            ("list_PRs", &["list", "prs"]),
            ("oauth2 k8s V1", &["oauth2", "oauth", "k8s", "v1"]),
            ("<p>Creates a <a href=\"https://x.y/z\">refund</a>.</p>", &["creates", "a", "refund"]),
            ("see https://example.com/a_b?c=d (or [this](http://x.y)) now", &["see", "or", "this", "now"]),
            ("a < b, c <1>", &["a", "b", "c", "1"]),
            ("caf\u{e9} \u{4f60}\u{597d}\u{0}\u{1b}[1m", &["caf\u{e9}", "\u{4f60}\u{597d}", "1m"]),
            ("注文を作成する", &["注文", "文を", "を作", "作成", "成す", "する"]),
            ("API一覧v2", &["api", "一覧", "v2"]),
            ("税", &["税"]),
            ("", &[]),
            ("<<<<<", &[]),
        ];
        for (text, wanted) in cases {
            assert_eq!(split(text), *wanted, "{text}");
        }
        assert!(split(&"x".repeat(41)).is_empty());
        // As many letters of another alphabet are as long.
        assert_eq!(split(&"ж".repeat(40)), ["ж".repeat(40)]);
        assert!(split(&"ж".repeat(41)).is_empty());
    }

    #[test]
    fn stems_join_the_forms_of_a_word() {
        let stems = Stems::new();
        let alike = [
            ["subscription", "subscriptions"],
            ["cancelled", "cancel"],
            ["repositories", "repository"],
            ["organisations", "organization"],
            ["summarise", "summarize"],
            ["colours", "color"],
            ["customers", "customer"],
        ];
        for [a, b] in alike {
            assert_eq!(stems.stem(a), stems.stem(b), "{a} {b}");
        }
        for [a, b] in [["customer", "custom"], ["settings", "set"], ["activity", "activate"], ["hours", "hors"]] {
            assert_ne!(stems.stem(a), stems.stem(b), "{a} {b}");
        }
    }

    #[test]
    fn words_that_are_kept_are_sorted() {
        assert!(KEPT.is_sorted());
    }
}
