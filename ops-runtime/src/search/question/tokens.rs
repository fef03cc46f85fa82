//! The words of a question as they are written, and how much each matters where it stands.

use super::super::index::Index;
use super::super::words::{Stems, is_stop_word, is_weak_word, words};
use crate::model::cut::start;

/// How much of a question is read, in words and in bytes.
const MAX_WORDS: usize = 64;
pub(super) const MAX_BYTES: usize = 2_000;

/// How much words matter after one of [`ASIDES`], words that say little, and each word beside the one before.
const ASIDE: f32 = 0.6;
const WEAK: f32 = 0.7;
const LATER: f32 = 0.96;

/// Words that begin what is said aside.
const ASIDES: &[&str] =
    &["after", "although", "because", "before", "but", "since", "so", "though", "unless", "until", "whereas", "while"];

/// Words after which a verb may say what is to be done.
const LEADS: &[&str] = &[
    "and", "can", "could", "do", "i", "let", "me", "must", "my", "please", "should", "to", "us", "we", "will", "would",
    "you",
];

/// Verbs that are followed by the one who is to do something: `have Stripe send it`.
const LETTING: &[&str] = &["have", "let", "make"];

/// A word of a question.
pub(super) struct Token {
    pub(super) word: String,
    pub(super) stem: String,
    pub(super) is_stop: bool,
    /// True if a verb may stand here that says what is to be done.
    pub(super) is_start: bool,
    /// How much a word here matters.
    pub(super) importance: f32,
    /// The number of the clause that it stands in.
    pub(super) clause: usize,
}

impl Token {
    /// True if the word is any of these.
    pub(super) fn is_any(&self, words: &[&str]) -> bool {
        words.contains(&self.word.as_str())
    }
}

/// The words of a question. A name such as `listPets` is one word if the index has it.
pub(super) fn tokens(index: &Index, stems: &Stems, text: &str) -> Vec<Token> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut importance = 1.0;
    for (number, clause) in start(text, MAX_BYTES).split([',', ':', ';', '.', '?', '!', '(', ')']).enumerate() {
        // The letters of a whole whose parts are left out.
        let mut covered = 0_usize;
        let mut is_start = true;
        let mut is_let = false;
        words(clause, |word, is_whole| {
            if tokens.len() >= MAX_WORDS {
                return;
            }
            if covered > 0 && !is_whole {
                covered = covered.saturating_sub(word.len());
                return;
            }
            let stem = stems.stem(word).into_owned();
            if is_whole {
                if index.term(&stem).is_none() {
                    return;
                }
                covered = word.len();
            }
            let is_stop = is_stop_word(word);
            let own = if is_weak_word(word) { WEAK * importance } else { importance };
            tokens.push(Token { word: word.to_owned(), stem, is_stop, is_start, importance: own, clause: number });
            if ASIDES.contains(&word) && tokens.len() > 3 {
                importance *= ASIDE;
            } else if !is_stop {
                importance *= LATER;
            }
            is_start = LEADS.contains(&word) || is_start && LETTING.contains(&word) || is_let;
            is_let = LETTING.contains(&word);
        });
    }
    tokens
}
