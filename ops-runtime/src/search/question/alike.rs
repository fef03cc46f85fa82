//! Words that are like one of a question: of the same family, written in two, with a typing error, or longer.

use super::super::index::{Index, Term};
use super::super::words::{Stems, is_stop_word};
use super::tokens::Token;
use super::{Concept, Meaning};

/// How much a word counts of the same family, one that is written in one word or in two, one with a typing error, and
/// one that only begins so.
const RELATED: f32 = 0.85;
const JOINED: f32 = 0.9;
const MISSPELT: f32 = 0.8;
const LONGER: f32 = 0.6;

/// How many words of the index may be meant by one that it does not have.
const MAX_NEAR: usize = 3;

/// Endings by which the stems of one family differ: `watch` and `watcher`, `sort` and `sortable`, `transcribe` and `transcript`.
const ENDINGS: &[(&str, &str)] = &[
    ("", "abl"),
    ("", "al"),
    ("", "at"),
    ("", "er"),
    ("", "i"),
    ("", "ibl"),
    ("", "ion"),
    ("", "ist"),
    ("", "iv"),
    ("", "ment"),
    ("", "or"),
    ("fi", "fic"),
    ("ist", "istr"),
    ("ist", "istrant"),
    ("rib", "ript"),
];

/// Adds the words of the index that are like this one; `next` follows it.
pub(super) fn add(index: &Index, stems: &Stems, token: &Token, next: Option<&Token>, concept: &mut Concept) {
    if let Some(next) = next.filter(|next| !next.is_stop && !token.is_stop) {
        let joined = format!("{}{}", token.word, next.word);
        concept.add(index, [stems.stem(&joined).as_ref()], JOINED);
    }
    for (a, b) in ENDINGS {
        for (ending, other) in [(a, b), (b, a)] {
            if let Some(start) = token.stem.strip_suffix(ending).filter(|start| start.len() > 2) {
                concept.add(index, [format!("{start}{other}").as_str()], RELATED);
            }
        }
    }
    let word = token.word.as_str();
    if index.term(&token.stem).is_some() || word.len() < 4 || !word.is_ascii() {
        return;
    }
    for at in 3..word.len().saturating_sub(2) {
        let (Some(first), Some(second)) = (word.get(..at), word.get(at..)) else { continue };
        if !is_stop_word(first) && !is_stop_word(second) {
            concept.add(index, [stems.stem(first).as_ref(), stems.stem(second).as_ref()], MISSPELT);
        }
    }
    if concept.meanings.is_empty() {
        concept.meanings.extend(near(index, token));
    }
}

/// The words that may be meant by one that the index does not have.
fn near(index: &Index, token: &Token) -> Vec<Meaning> {
    let sure = |stem: &str| match () {
        () if is_near(&token.stem, stem) || is_near(&token.word, stem) => Some(MISSPELT),
        () if stem.starts_with(&token.stem) => Some(LONGER),
        () => None,
    };
    let found = index.terms().filter_map(|(stem, term)| Some((sure(stem)?, index.postings(term).len(), stem, term)));
    let mut found: Vec<(f32, usize, &str, Term)> = found.collect();
    // The words that most operations have are the likeliest.
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)).then(a.2.cmp(b.2)));
    found.into_iter().take(MAX_NEAR).map(|(sure, .., term)| Meaning { terms: vec![term], sure }).collect()
}

/// True if one letter more, less or other, or two that changed places, make one word of the other.
fn is_near(a: &str, b: &str) -> bool {
    let (short, long) = if a.len() <= b.len() { (a.as_bytes(), b.as_bytes()) } else { (b.as_bytes(), a.as_bytes()) };
    if long.len() - short.len() > 1 || long.len() < 4 {
        return false;
    }
    let same = short.iter().zip(long).take_while(|(a, b)| a == b).count();
    match (short.get(same..).unwrap_or_default(), long.get(same..).unwrap_or_default()) {
        (rest, [_, other @ ..]) if rest.len() == other.len() => rest == other,
        ([_, rest @ ..], [_, other @ ..]) if rest == other => true,
        ([a, b, rest @ ..], [c, d, other @ ..]) => a == d && b == c && rest == other,
        (rest, other) => rest == other,
    }
}

#[cfg(test)]
mod tests {
    use super::is_near;

    #[test]
    fn one_mistake_is_near() {
        for (a, b) in [
            ("refund", "refund"),
            ("refnd", "refund"),
            ("refuund", "refund"),
            ("rafund", "refund"),
            ("reufnd", "refund"),
        ] {
            assert!(is_near(a, b) && is_near(b, a), "{a} {b}");
        }
        for (a, b) in [("refund", "remand"), ("ref", "re"), ("refund", "refunded"), ("", "a"), ("dnufer", "refund")] {
            assert!(!is_near(a, b) && !is_near(b, a), "{a} {b}");
        }
    }
}
