//! How well operations answer a question.

use std::collections::HashMap;

use super::features::Features;
use super::index::{GAP, Index, Term};
use super::question::{Concept, Meaning, Question};
use super::spread;

/// How many of the best are compared in full.
const CANDIDATES: usize = 300;

/// A word that fewer operations have is worth no more: what is rare may have come by chance.
const RARE: f32 = 8.0;

/// How much of its score an operation keeps that is deprecated.
const DEPRECATED: f32 = 0.75;

/// How much of the score depends on how much of the question an operation covers, and on its namespace.
const COVERAGE: f32 = 0.9;
const NAMESPACE: f32 = 0.7;

/// How much is added for a name, a title or a path that says nothing else than the question, and for the same order.
const NOTHING_ELSE: f32 = 1.6;
const SAME_ORDER: f32 = 0.35;

/// The power of that, fitted with the weights of [`Features`].
const KEYS: f32 = 0.6;

/// How much depends on how near an operation is to the question by what both mean: a nearness of 1 rather than 0 makes the
/// score `e` to this power.
const MEANING: f32 = 5.0;

/// A word counts as being there if it counts for so much: less is a mention.
const THERE: f32 = 0.4;

/// The best operations for a question, by their numbers, with their scores.
pub(super) fn rank(index: &Index, question: &Question, limit: usize) -> Vec<(usize, f32)> {
    let first = Matches::new(index, question);
    let mut found = first.best(index, CANDIDATES.max(limit));
    let keys = Keys::new(question, &first.worth);
    let mut features = Features::new(index, question, &first.worth, &found);
    for (operation, score) in &mut found {
        *score *= keys.factor(index, *operation).powf(KEYS) * features.weigh(*operation).exp();
        *score *= (MEANING * index.meanings.nearness(*operation, &question.meaning)).exp();
        if let Some(operation) = index.operations.get(*operation) {
            *score *= operation.action.fit(question.action).powf(question.certainty);
            if operation.deprecated {
                *score *= DEPRECATED;
            }
        }
    }
    sort(&mut found);
    let mut found = spread::spread(index, found);
    found.truncate(limit);
    found
}

/// Sorts by score, and where it is the same by the order of the operations.
fn sort(found: &mut [(usize, f32)]) {
    found.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
}

/// Operations by their numbers, and how much something counts there.
type Found = Vec<(usize, f32)>;

/// What each operation has of each concept.
struct Matches {
    /// The sum of what the concepts are worth that an operation has, by how much.
    scores: Vec<f32>,
    /// The same, but for how prominent the words are.
    covered: Vec<f32>,
    /// What each concept is worth: more, the fewer operations have it.
    worth: Vec<f32>,
    /// How likely each namespace is meant, from 0 to 1.
    namespaces: Vec<f32>,
}

impl Matches {
    fn new(index: &Index, question: &Question) -> Self {
        let count = index.operations.len();
        let mut matches =
            Self { scores: vec![0.0; count], covered: vec![0.0; count], worth: Vec::new(), namespaces: Vec::new() };
        matches.namespaces = vec![0.0; index.namespaces.len()];
        let (mut best, mut touched) = (vec![0.0_f32; count], Vec::new());
        for concept in &question.concepts {
            matches.add(index, concept, &mut best, &mut touched);
        }
        matches
    }

    fn add(&mut self, index: &Index, concept: &Concept, best: &mut [f32], touched: &mut Vec<usize>) {
        let count = index.operations.len() as f32;
        let found = concept.meanings.iter().map(|meaning| {
            let postings: Found = match meaning.terms.as_slice() {
                [term] => index.postings(*term).collect(),
                terms => all(index, terms),
            };
            (meaning, worth(count, &postings), postings)
        });
        let found: Vec<(&Meaning, f32, Found)> = found.collect();
        // What many operations have is worth little even where it stands for a rare word, and no more than that word where
        // it is rarer. How rare a phrase is says nothing, as few have it as it stands.
        let worth_of = |is: &dyn Fn(&Meaning) -> bool| {
            found.iter().filter(|(meaning, ..)| is(meaning)).map(|(_, worth, _)| *worth).reduce(f32::max)
        };
        let own = worth_of(&|meaning| meaning.sure >= 1.0 && meaning.terms.len() == 1);
        let most = own.or_else(|| worth_of(&|meaning| meaning.sure < 1.0)).or_else(|| worth_of(&|_| true));
        let most = most.unwrap_or_default().max(f32::EPSILON);
        for (meaning, worth, postings) in &found {
            for (operation, impact) in postings {
                let Some(best) = best.get_mut(*operation) else { continue };
                if *best == 0.0 {
                    touched.push(*operation);
                }
                *best = best.max(impact * meaning.sure * (worth / most).min(1.0));
            }
        }
        let worth = concept.importance * most;
        self.worth.push(worth);
        self.lean(index, concept);
        for operation in touched.drain(..) {
            let Some(best) = best.get_mut(operation).map(std::mem::take) else { continue };
            if let Some(score) = self.scores.get_mut(operation) {
                *score += worth * best;
            }
            if let Some(covered) = self.covered.get_mut(operation) {
                *covered += worth * (best / THERE).min(1.0);
            }
        }
    }

    /// Leans to the namespaces whose operations have a word that few others have, such as the name of an API.
    fn lean(&mut self, index: &Index, concept: &Concept) {
        let own = concept.meanings.iter().filter(|meaning| meaning.sure >= 1.0);
        for term in own.filter_map(|meaning| match meaning.terms.as_slice() {
            [term] => Some(*term),
            _ => None,
        }) {
            let mut counts = vec![0.0_f32; self.namespaces.len()];
            let mut whole = 0.0;
            for (at, impact) in index.postings(term) {
                let Some(operation) = index.operations.get(at) else { continue };
                if let Some(count) = counts.get_mut(operation.namespace as usize) {
                    let weight = (impact * 4.0).min(1.0);
                    *count += weight;
                    whole += weight;
                }
            }
            for ((lean, count), size) in self.namespaces.iter_mut().zip(counts).zip(&index.namespaces) {
                let density = (count / *size as f32 * 2.0).min(1.0);
                *lean = lean.max(count / (whole + 1.0) * density);
            }
        }
    }

    fn best(&self, index: &Index, limit: usize) -> Vec<(usize, f32)> {
        let whole: f32 = self.worth.iter().sum();
        let scores = self.scores.iter().zip(&self.covered).enumerate();
        let lean = |at: usize| {
            let namespace = index.operations.get(at).map_or(0, |operation| operation.namespace);
            self.namespaces.get(namespace as usize).copied().unwrap_or_default()
        };
        let most = self.namespaces.iter().copied().fold(0.0, f32::max);
        let score = |at: usize, score: f32, covered: f32| {
            score
                * (1.0 - COVERAGE + COVERAGE * covered / whole.max(f32::EPSILON))
                * (1.0 - NAMESPACE * (most - lean(at)))
        };
        let mut found: Vec<(usize, f32)> = scores
            .filter(|(_, (sum, _))| **sum > 0.0)
            .map(|(at, (sum, covered))| (at, score(at, *sum, *covered)))
            .collect();
        if found.len() > limit {
            found.select_nth_unstable_by(limit, |a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
            found.truncate(limit);
        }
        found
    }
}

/// What a word is worth that these operations have: more, the fewer they are.
fn worth(count: f32, postings: &[(usize, f32)]) -> f32 {
    let has: f32 = postings.iter().map(|(_, impact)| (impact / THERE).min(1.0)).sum();
    let has = has.max(RARE);
    (1.0 + (count - has + 0.5).max(0.5) / (has + 0.5)).ln()
}

/// The operations that have all of the words, and how much the least of them counts there.
fn all(index: &Index, terms: &[Term]) -> Vec<(usize, f32)> {
    let mut terms: Vec<Term> = terms.to_vec();
    terms.sort_by_key(|term| index.postings(*term).len());
    let Some((first, rest)) = terms.split_first() else { return Vec::new() };
    let mut found: Vec<(usize, f32)> = index.postings(*first).collect();
    for term in rest {
        let mut other = index.postings(*term).peekable();
        // Both are in the order of the operations.
        found.retain_mut(|(operation, impact)| {
            while other.next_if(|(at, _)| at < operation).is_some() {}
            match other.peek() {
                Some((at, also)) if at == operation => {
                    *impact = impact.min(*also);
                    true
                }
                _ => false,
            }
        });
    }
    found
}

/// The concepts of a question by their words, to look at names, titles and paths.
struct Keys {
    concepts: HashMap<Term, (usize, f32)>,
    worth: Vec<f32>,
}

impl Keys {
    fn new(question: &Question, worth: &[f32]) -> Self {
        let mut concepts: HashMap<Term, (usize, f32)> = HashMap::new();
        for (at, concept) in question.concepts.iter().enumerate() {
            for meaning in &concept.meanings {
                for term in &meaning.terms {
                    let known = concepts.entry(*term).or_insert((at, meaning.sure));
                    if known.1 < meaning.sure {
                        *known = (at, meaning.sure);
                    }
                }
            }
        }
        Self { concepts, worth: worth.to_vec() }
    }

    /// How much of an operation's name, title or path the question says, and in the same order.
    fn factor(&self, index: &Index, operation: usize) -> f32 {
        let (mut said, mut pairs) = (0.0_f32, 0.0_f32);
        for part in index.keys(operation).split(|term| *term == GAP).filter(|part| !part.is_empty()) {
            let mut have = 0.0;
            let mut last: Option<usize> = None;
            let mut in_order = 0.0;
            for term in part {
                let concept = self.concepts.get(term);
                if let Some((at, sure)) = concept {
                    have += sure;
                    if last.is_some_and(|last| last + 1 == *at) {
                        in_order += self.worth.get(*at).copied().unwrap_or_default() * sure;
                    }
                }
                last = concept.map(|(at, _)| *at);
            }
            said = said.max(have / (part.len() as f32 + 1.0));
            pairs = pairs.max(in_order);
        }
        let whole: f32 = self.worth.iter().sum::<f32>().max(f32::EPSILON);
        (1.0 + NOTHING_ELSE * said) * (1.0 + SAME_ORDER * pairs / whole)
    }
}
