//! What is known of how an operation answers a question beside its score, as numbers, and how much each counts.

use std::collections::HashMap;

use super::action::Action;
use super::index::{GAP, Index, Term};
use super::question::Question;
use super::text::Field;
use super::weights::WEIGHTS;

/// Where words stand: in a name or a title, in the first sentence, anywhere, and anywhere but in the namespace.
const TITLE: u8 = Field::Name.bit() | Field::Title.bit();
const LEAD: u8 = Field::Lead.bit();
const ALL: u8 = u8::MAX;
const OWN: u8 = ALL ^ Field::Namespace.bit();
/// Those by which a word is rare or common within a namespace: what is merely mentioned is left out.
const PROMINENT: u8 = OWN ^ Field::Description.bit() ^ Field::Parameter.bit();

/// A word that fewer operations have is no rarer.
const RARE: f32 = 8.0;

/// How much a name, a title or a path has to say at least.
const LEAST: f32 = 4.0;

/// How well an operation has a concept: as the question says it, and in each of these places, by how sure its meaning is.
#[derive(Clone, Copy, Default)]
struct Cell {
    exact: f32,
    title: f32,
    lead: f32,
    all: f32,
    own: f32,
}

/// What is needed to compare the best operations.
pub(super) struct Features<'a> {
    index: &'a Index,
    question: &'a Question,
    /// What each concept of the question is worth.
    worth: &'a [f32],
    /// The rows of the operations in `cells`.
    rows: HashMap<usize, usize>,
    /// What each operation has of each concept.
    cells: Vec<Cell>,
    /// How many operations of each namespace have each concept.
    local: Vec<Vec<f32>>,
    /// How sure it is that a word is meant.
    sure: HashMap<Term, f32>,
    /// How near words of operations are to each word of the question.
    near: HashMap<Term, Vec<f32>>,
}

/// How near the words of a question are to words of an operation, and those to them.
struct Soft {
    /// How near the nearest are to the words of the question, in the mean, and their cubes, which leave out what is far.
    there: f32,
    sharp: f32,
    /// How near the words of the operation are to the question, in the mean.
    back: f32,
}

impl<'a> Features<'a> {
    pub(super) fn new(index: &'a Index, question: &'a Question, worth: &'a [f32], found: &[(usize, f32)]) -> Self {
        let rows: HashMap<usize, usize> = found.iter().enumerate().map(|(row, (at, _))| (*at, row)).collect();
        let cells = vec![Cell::default(); found.len() * question.concepts.len()];
        let (local, sure, near) = (Vec::new(), HashMap::new(), HashMap::new());
        let mut features = Self { index, question, worth, rows, cells, local, sure, near };
        for number in 0..question.concepts.len() {
            features.read(number);
        }
        features
    }

    /// Reads which operations have a concept.
    fn read(&mut self, number: usize) {
        let index = self.index;
        let count = index.operations.len() as f32;
        let mut local = vec![0.0_f32; index.namespaces.len()];
        let Some(concept) = self.question.concepts.get(number) else { return };
        let worth = self.worth.get(number).copied().unwrap_or_default() / concept.importance;
        for meaning in &concept.meanings {
            let mut own = vec![0.0_f32; index.namespaces.len()];
            let mut found: HashMap<usize, (f32, u8, usize)> = HashMap::new();
            for term in &meaning.terms {
                let sure = self.sure.entry(*term).or_default();
                *sure = sure.max(meaning.sure);
                for (at, impact, places) in index.placed(*term) {
                    if places & PROMINENT != 0 && meaning.terms.len() == 1 {
                        let namespace = index.operations.get(at).map_or(0, |operation| operation.namespace as usize);
                        own.get_mut(namespace).into_iter().for_each(|count| *count += meaning.sure);
                    }
                    if let Some(row) = self.rows.get(&at) {
                        let found = found.entry(*row).or_insert((1.0, ALL, 0));
                        *found = (found.0.min(impact), found.1 & places, found.2 + 1);
                    }
                }
            }
            local.iter_mut().zip(own).for_each(|(count, own)| *count = count.max(own));
            let has = meaning.terms.iter().map(|term| index.postings(*term).len()).min().unwrap_or(1) as f32;
            let own = (1.0 + (count - has).max(0.5) / (has.max(RARE) + 0.5)).ln();
            let sure = meaning.sure * (own / worth.max(f32::EPSILON)).min(1.0);
            for (row, (impact, places, terms)) in found {
                let cell = self.cells.get_mut(row * self.question.concepts.len() + number);
                if let Some(cell) = cell.filter(|_| terms == meaning.terms.len()) {
                    cell.add(places, sure, if meaning.sure >= 1.0 { impact } else { 0.0 });
                }
            }
        }
        self.local.push(local);
    }

    /// How near a word is to each word of the question.
    fn near(&mut self, term: Term) -> &[f32] {
        let (index, question) = (self.index, self.question);
        self.near.entry(term).or_insert_with(|| {
            let near = |word: &Vec<f32>| index.words.nearness(term as usize, word).max(0.0);
            question.words.iter().map(|(word, _)| near(word)).collect()
        })
    }

    /// How rare a word is among all operations.
    fn rarity(&self, term: Term) -> f32 {
        let has = self.index.postings(term).len() as f32;
        (1.0 + self.index.operations.len() as f32 / (has + RARE)).ln()
    }

    fn soft(&mut self, terms: &[Term]) -> Soft {
        let question = self.question;
        let mut best = vec![0.0_f32; question.words.len()];
        let (mut back, mut rarities) = (0.0, 0.0);
        for term in terms {
            let rarity = self.rarity(*term);
            let near = self.near(*term);
            best.iter_mut().zip(near).for_each(|(best, near)| *best = best.max(*near));
            back += rarity * near.iter().copied().fold(0.0, f32::max);
            rarities += rarity;
        }
        let whole = question.words.iter().map(|(_, weight)| weight).sum::<f32>().max(f32::EPSILON);
        let mean = |power: i32| {
            let sum = best.iter().zip(&question.words).map(|(best, (_, weight))| best.powi(power) * weight);
            sum.sum::<f32>() / whole
        };
        Soft { there: mean(1), sharp: mean(3), back: back / f32::max(rarities, f32::EPSILON) }
    }

    /// How much less or more likely an operation is than its score says: what is to be added to the logarithm.
    pub(super) fn weigh(&mut self, at: usize) -> f32 {
        let (index, question) = (self.index, self.question);
        let Some(operation) = index.operations.get(at) else { return 0.0 };
        let concepts = question.concepts.len();
        let start = self.rows.get(&at).map_or(0, |row| row * concepts);
        let cells = self.cells.get(start..start + concepts).unwrap_or_default().to_vec();
        let whole = self.worth.iter().sum::<f32>().max(f32::EPSILON);
        let cover = |has: fn(&Cell) -> f32| {
            cells.iter().zip(self.worth).map(|(cell, worth)| has(cell) * worth).sum::<f32>() / whole
        };
        let of = |concept: Option<usize>| concept.and_then(|at| cells.get(at)).copied().unwrap_or_default();
        let flag = |is: bool| f32::from(u8::from(is));
        let is_read = matches!(operation.action, Action::List | Action::Get);
        let is_change = matches!(question.action, Action::Create | Action::Update | Action::Delete);
        let size = index.namespaces.get(operation.namespace as usize).copied().unwrap_or(1) as f32;
        let mut sum = WEIGHTS.lead * cover(|cell| cell.lead)
            + WEIGHTS.title * cover(|cell| cell.title)
            + WEIGHTS.all * cover(|cell| cell.all)
            + WEIGHTS.exact * cover(|cell| cell.exact)
            + WEIGHTS.object * of(question.object).title
            + WEIGHTS.verb * of(question.verb).all
            + WEIGHTS.item * flag(operation.is_item) * question.wants_one
            + WEIGHTS.size * size.ln()
            + WEIGHTS.read_for_change * flag(is_read && is_change) * question.certainty
            + WEIGHTS.lead_length * index.lead(at).len() as f32;

        // How much of the question the operation has, where words count that are rare in its namespace.
        let (mut have, mut all) = (0.0, 0.0);
        for ((cell, concept), counts) in cells.iter().zip(&question.concepts).zip(&self.local) {
            let count = counts.get(operation.namespace as usize).copied().unwrap_or_default();
            let worth = concept.importance * (1.0 + size / (count + 0.5)).ln();
            have += cell.own * worth;
            all += worth;
        }
        sum += WEIGHTS.local * have / f32::max(all, f32::EPSILON);

        if let Some(center) = index.centers.get(operation.namespace as usize) {
            let asked: f32 = center.iter().zip(&question.meaning).map(|(a, b)| a * b).sum();
            let own = index.heads.nearness(at, center);
            let apart = index.heads.nearness(at, &question.meaning) - asked * own;
            sum += WEIGHTS.center * asked + WEIGHTS.apart * apart / (1.0 - own * own).max(0.05).sqrt();
        }
        sum + self.weigh_keys(at, operation.namespace)
    }

    /// The part of an operation's name, title and path.
    fn weigh_keys(&mut self, at: usize, namespace: u32) -> f32 {
        let index = self.index;
        let parts = index.keys(at).split(|term| *term == GAP).filter(|part| !part.is_empty());
        let (mut said, mut left, mut left_local, mut near_part) = (0.0_f32, f32::MAX, f32::MAX, 0.0_f32);
        for part in parts {
            let (mut have, mut all, mut local) = (0.0, 0.0, 0.0);
            for term in part {
                let sure = self.sure.get(term).copied().unwrap_or_default();
                let rarity = self.rarity(*term);
                have += rarity * sure;
                all += rarity;
                local += index.local_rarity(namespace, *term) * (1.0 - sure);
            }
            said = said.max(have / (all + LEAST));
            left = left.min(all - have);
            left_local = left_local.min(local);
            near_part = near_part.max(self.soft(part).there);
        }
        let mut keys: Vec<Term> = index.keys(at).iter().copied().filter(|term| *term != GAP).collect();
        keys.sort_unstable();
        keys.dedup();
        if keys.is_empty() {
            (left, left_local) = (0.0, 0.0);
        }
        let (mut sum, mut squares, mut all) = (0.0, 0.0, 0.0);
        for term in &keys {
            let rarity = index.local_rarity(namespace, *term);
            let most = self.near(*term).iter().copied().fold(0.0, f32::max);
            sum += rarity * most;
            squares += rarity * most * most;
            all += rarity;
        }
        let all = f32::max(all, f32::EPSILON);
        let sharp = self.soft(&keys).sharp;
        keys.extend(index.lead(at));
        let both = self.soft(&keys);
        WEIGHTS.said * said
            + WEIGHTS.left * left
            + WEIGHTS.left_local * left_local
            + WEIGHTS.near_part * near_part
            + WEIGHTS.near_local * sum / all
            + WEIGHTS.squares_local * squares / all
            + WEIGHTS.sharp_keys * sharp
            + WEIGHTS.near_both * both.there
            + WEIGHTS.sharp_both * both.sharp
            + WEIGHTS.back_both * both.back
    }
}

impl Cell {
    fn add(&mut self, places: u8, sure: f32, exact: f32) {
        self.exact = self.exact.max(exact);
        for (value, mask) in
            [(&mut self.title, TITLE), (&mut self.lead, LEAD), (&mut self.all, ALL), (&mut self.own, OWN)]
        {
            if places & mask != 0 {
                *value = value.max(sure);
            }
        }
    }
}
