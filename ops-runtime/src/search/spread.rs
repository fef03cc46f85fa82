//! Separates near-duplicate operations in the results.

use super::index::{Index, Term};

/// How many of the best results are compared with each other, and the penalty of an operation that repeats another.
const MAX_SPREAD: usize = 30;
const LIKENESS: f32 = 0.2;

/// Moves operations down that repeat those before them, so that the first results are not all about one thing.
pub(super) fn spread(index: &Index, found: Vec<(usize, f32)>) -> Vec<(usize, f32)> {
    let kept = found.len().min(MAX_SPREAD);
    let (near, rest) = found.split_at(kept);
    let mut left: Vec<(usize, f32, Vec<Term>)> =
        near.iter().map(|(operation, score)| (*operation, *score, words_of(index, *operation))).collect();
    let mut chosen: Vec<(usize, f32)> = Vec::with_capacity(found.len());
    let mut likeness = vec![0.0_f32; left.len()];
    while !left.is_empty() {
        let worth = |at: usize, score: f32| score * (1.0 - LIKENESS * likeness.get(at).copied().unwrap_or_default());
        let best = left.iter().enumerate().map(|(at, (_, score, _))| (at, worth(at, *score)));
        let Some((at, score)) = best.reduce(|a, b| if b.1 > a.1 { b } else { a }) else { break };
        let (operation, _, words) = left.remove(at);
        likeness.remove(at);
        // Scores only fall.
        let least = chosen.last().map_or(score, |(_, last)| score.min(*last));
        chosen.push((operation, least));
        for (like, (_, _, other)) in likeness.iter_mut().zip(&left) {
            *like = like.max(alike(&words, other));
        }
    }
    let least = chosen.last().map_or(f32::MAX, |(_, score)| *score);
    chosen.extend(rest.iter().map(|(operation, score)| (*operation, score.min(least))));
    chosen
}

/// The different words of an operation's name, title and path, sorted.
fn words_of(index: &Index, operation: usize) -> Vec<Term> {
    let mut words = index.keys(operation).to_vec();
    words.sort_unstable();
    words.dedup();
    words
}

/// The share of words that two operations have in common.
fn alike(a: &[Term], b: &[Term]) -> f32 {
    let common = a.iter().filter(|term| b.binary_search(term).is_ok()).count();
    common as f32 / (a.len() + b.len() - common).max(1) as f32
}
