//! The words of many operations, as flat arrays.

mod build;

use std::collections::HashMap;

pub(super) use self::build::Builder;
use super::action::Action;
use super::meaning::Meanings;
use crate::spec::Text;

/// A word of the index, by its number.
pub(super) type Term = u32;

/// Separates the name, the title and the path in [`Index::keys`].
pub(super) const GAP: Term = Term::MAX;

/// Operations by the stems of their words.
#[derive(Debug, Default)]
pub(super) struct Index {
    terms: HashMap<Box<str>, Term>,
    /// Where the postings of each term begin in `documents` and `impacts`; one more than there are terms.
    starts: Vec<u32>,
    documents: Vec<u32>,
    /// How much the word counts there, as a part of 65,535.
    impacts: Vec<u16>,
    /// In which fields it stands there, a bit each.
    places: Vec<u8>,
    pub(super) operations: Vec<Operation>,
    /// How many operations each namespace has.
    pub(super) namespaces: Vec<u32>,
    /// What each operation means, and its name and title alone.
    pub(super) meanings: Meanings,
    pub(super) heads: Meanings,
    /// What each word means, as it was first written.
    pub(super) words: Meanings,
    /// The words of names, titles and paths in their order, operation by operation.
    keys: Vec<Term>,
    /// The words of first sentences, operation by operation.
    lead_words: Vec<Term>,
    /// How many operations of a namespace have a word in their names, titles and paths.
    local: HashMap<(u32, Term), u32>,
    /// What the operations of each namespace mean together.
    pub(super) centers: Vec<Vec<f32>>,
}

/// What is known of an operation beside its words.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: Text,
    pub(super) action: Action,
    pub(super) deprecated: bool,
    /// True if its path ends with a parameter.
    pub(super) is_item: bool,
    /// The number of the namespace.
    pub(super) namespace: u32,
    /// Where its part of `leads` ends.
    lead_end: u32,
    /// Where its part of `keys` ends.
    keys_end: u32,
}

impl Index {
    pub(super) fn term(&self, stem: &str) -> Option<Term> {
        self.terms.get(stem).copied()
    }

    pub(super) fn terms(&self) -> impl Iterator<Item = (&str, Term)> {
        self.terms.iter().map(|(stem, term)| (stem.as_ref(), *term))
    }

    /// The operations with a word, and how much it counts there, from 0 to 1.
    pub(super) fn postings(&self, term: Term) -> impl ExactSizeIterator<Item = (usize, f32)> {
        let at = term as usize;
        let bound = |at: usize| self.starts.get(at).map_or(0, |start| *start as usize);
        let range = bound(at)..bound(at + 1);
        let documents = self.documents.get(range.clone()).unwrap_or_default();
        let impacts = self.impacts.get(range).unwrap_or_default();
        documents.iter().zip(impacts).map(|(document, impact)| (*document as usize, f32::from(*impact) / 65_535.0))
    }

    /// The operations with a word, how much it counts there, and in which fields it stands.
    pub(super) fn placed(&self, term: Term) -> impl Iterator<Item = (usize, f32, u8)> {
        let at = term as usize;
        let bound = |at: usize| self.starts.get(at).map_or(0, |start| *start as usize);
        let places = self.places.get(bound(at)..bound(at + 1)).unwrap_or_default();
        self.postings(term).zip(places).map(|((operation, impact), place)| (operation, impact, *place))
    }

    /// How rare a word is among the operations of a namespace.
    pub(super) fn local_rarity(&self, namespace: u32, term: Term) -> f32 {
        let has = self.local.get(&(namespace, term)).copied().unwrap_or_default() as f32;
        let size = self.namespaces.get(namespace as usize).copied().unwrap_or_default() as f32;
        (1.0 + size / (has + 0.5)).ln()
    }

    /// The words of an operation's first sentence.
    pub(super) fn lead(&self, operation: usize) -> &[Term] {
        let end = |at: usize| self.operations.get(at).map_or(0, |operation| operation.lead_end as usize);
        let start = operation.checked_sub(1).map_or(0, end);
        self.lead_words.get(start..end(operation)).unwrap_or_default()
    }

    /// The words of an operation's name, title and path.
    pub(super) fn keys(&self, operation: usize) -> &[Term] {
        let end = |at: usize| self.operations.get(at).map_or(0, |operation| operation.keys_end as usize);
        let start = operation.checked_sub(1).map_or(0, end);
        self.keys.get(start..end(operation)).unwrap_or_default()
    }
}
