//! Words that people use for what APIs call by others.
//!
//! The tables are in `synonyms/`, one a subject. Words of a line mean the same; `->` leads from what is asked to what an
//! operation may say. A phrase stands for operations that have all of its words. Stems are compared, so one form is enough.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::words::{Stems, words};

const TABLES: [&str; 12] = [
    include_str!("synonyms/people.txt"),
    include_str!("synonyms/verbs.txt"),
    include_str!("synonyms/asking.txt"),
    include_str!("synonyms/code.txt"),
    include_str!("synonyms/machines.txt"),
    include_str!("synonyms/money.txt"),
    include_str!("synonyms/shops.txt"),
    include_str!("synonyms/talk.txt"),
    include_str!("synonyms/media.txt"),
    include_str!("synonyms/work.txt"),
    include_str!("synonyms/data.txt"),
    include_str!("synonyms/rest.txt"),
];

/// How many words a phrase has at most.
pub(super) const LONGEST_PHRASE: usize = 4;

/// What a phrase may mean: stems that all stand in an operation, and how sure that is, from 0 to 1.
pub(super) type Meanings = Vec<(Vec<Box<str>>, f32)>;

/// What phrases mean, by their stems with a space between them.
pub(super) fn table() -> &'static HashMap<Box<str>, Meanings> {
    static TABLE: OnceLock<HashMap<Box<str>, Meanings>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let stems = Stems::new();
        let mut table: HashMap<Box<str>, Meanings> = HashMap::new();
        let mut add = |from: &str, to: &str, sure: f32| {
            let (from, to) = (stemmed(&stems, from), stemmed(&stems, to));
            let meanings = table.entry(from.join(" ").into()).or_default();
            if from != to && !meanings.iter().any(|(meaning, _)| *meaning == to) {
                meanings.push((to, sure));
            }
        };
        for line in TABLES.into_iter().flat_map(str::lines) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some((from, to)) = line.split_once("->") {
                for from in from.split(',') {
                    to.split(',').for_each(|to| add(from, to, DIRECTED));
                }
            } else {
                for from in line.split(',') {
                    line.split(',').for_each(|to| add(from, to, SAME));
                }
            }
        }
        table.remove("");
        table
    })
}

/// How much a word counts that stands for another in both directions, or in one.
const SAME: f32 = 0.75;
const DIRECTED: f32 = 0.65;

fn stemmed(stems: &Stems, text: &str) -> Vec<Box<str>> {
    let mut found = Vec::new();
    words(text, |word, _| found.push(stems.stem(word).as_ref().into()));
    found
}
