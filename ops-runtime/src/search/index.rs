//! The words of many operations, as flat arrays.

use std::collections::HashMap;

use super::action::Action;
use super::text::{self, Field};
use super::words::{Stems, has, is_stop_word, words};
use crate::spec::{OperationSpec, Text};

/// A word of the index, by its number.
pub(super) type Term = u32;

/// With so much weight, a word counts half as much as it can.
const HALF: f32 = 4.0;

/// How much the length of a field matters, from 0 to 1.
const LENGTH: f32 = 0.75;

/// Words of namespaces and hosts that say nothing of the API.
const NAMESPACES: &str = "\
    ag api apis app cloud com core io json local mcp modelcontextprotocol net openapi org oss public rest \
    sandbox server service spec swagger v1 v2 v3 www yaml";

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
    pub(super) operations: Vec<Operation>,
    /// How many operations each namespace has.
    pub(super) namespaces: Vec<u32>,
    /// The words of names, titles and paths in their order, operation by operation.
    keys: Vec<Term>,
}

/// What is known of an operation beside its words.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) id: Text,
    pub(super) action: Action,
    pub(super) deprecated: bool,
    /// The number of the namespace.
    pub(super) namespace: u32,
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

    /// The words of an operation's name, title and path.
    pub(super) fn keys(&self, operation: usize) -> &[Term] {
        let end = |at: usize| self.operations.get(at).map_or(0, |operation| operation.keys_end as usize);
        let start = operation.checked_sub(1).map_or(0, end);
        self.keys.get(start..end(operation)).unwrap_or_default()
    }
}

/// Collects the words of operations.
pub(super) struct Builder {
    index: Index,
    stems: Stems,
    /// The terms of words as they are written, `None` for those without meaning: most words come again.
    known: HashMap<Box<str>, (Term, bool)>,
    namespaces: HashMap<Box<str>, u32>,
    /// The words of each field of the operation that is being read.
    fields: [Vec<Term>; Field::ALL.len()],
    /// The weight of each term in the operation that is being read, and the terms that have one.
    weights: Vec<f32>,
    touched: Vec<Term>,
    found: Vec<(Term, u32, u16)>,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            index: Index::default(),
            stems: Stems::new(),
            known: HashMap::new(),
            namespaces: HashMap::new(),
            fields: Default::default(),
            weights: Vec::new(),
            touched: Vec::new(),
            found: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, spec: &OperationSpec) {
        let Ok(number) = u32::try_from(self.index.operations.len()) else { return };
        let (mut name, mut title) = (Vec::new(), Vec::new());
        let mut last = Field::Name;
        text::texts(spec, |field, text| {
            let is_key = matches!(field, Field::Name | Field::Title | Field::Path);
            if is_key && field != last {
                self.index.keys.push(GAP);
                last = field;
            }
            words(text, |word, is_whole| {
                let (term, is_stop) = self.intern(word);
                match field {
                    Field::Name if !is_whole => name.push(word.to_owned()),
                    Field::Title if !is_whole => title.push(word.to_owned()),
                    Field::Namespace if has(NAMESPACES, word) => return,
                    _ if field.is_prose() && is_stop => return,
                    _ => {}
                }
                if let Some(terms) = self.fields.get_mut(field as usize) {
                    terms.push(term);
                }
                if is_key && !is_stop && !is_whole {
                    self.index.keys.push(term);
                }
            });
        });
        let action = Action::of(spec, &name, &title);
        for word in action.words() {
            let (term, _) = self.intern(word);
            if let Some(terms) = self.fields.get_mut(Field::Action as usize) {
                terms.push(term);
            }
        }
        for field in Field::ALL {
            self.weigh(field);
        }
        for term in std::mem::take(&mut self.touched) {
            let Some(weight) = self.weights.get_mut(term as usize).map(std::mem::take) else { continue };
            let impact = weight / (weight + HALF);
            self.found.push((term, number, (impact * 65_535.0) as u16));
        }
        let next = self.namespaces.len() as u32;
        let namespace = *self.namespaces.entry(spec.namespace().into()).or_insert(next);
        if namespace == next {
            self.index.namespaces.push(0);
        }
        if let Some(size) = self.index.namespaces.get_mut(namespace as usize) {
            *size += 1;
        }
        let (id, deprecated) = (spec.id.clone(), spec.deprecated);
        let keys_end = self.index.keys.len() as u32;
        self.index.operations.push(Operation { id, action, deprecated, namespace, keys_end });
    }

    /// Adds the weights of the words of one field, and forgets them.
    fn weigh(&mut self, field: Field) {
        let Some(terms) = self.fields.get_mut(field as usize) else { return };
        let length = terms.len() as f32 / field.usual();
        let weight = field.weight() / (1.0 - LENGTH + LENGTH * length.max(0.5));
        for term in terms.drain(..) {
            let Some(sum) = self.weights.get_mut(term as usize) else { continue };
            if *sum == 0.0 {
                self.touched.push(term);
            }
            *sum += weight;
        }
    }

    /// The term of a word, and whether the word says nothing.
    fn intern(&mut self, word: &str) -> (Term, bool) {
        if let Some(known) = self.known.get(word) {
            return *known;
        }
        let stem = self.stems.stem(word);
        let next = self.index.terms.len() as Term;
        let term = *self.index.terms.entry(stem.as_ref().into()).or_insert(next);
        if term == next {
            self.weights.push(0.0);
        }
        let known = (term, is_stop_word(word));
        self.known.insert(word.into(), known);
        known
    }

    /// Sorts what was found by term.
    pub(super) fn finish(self) -> Index {
        let Self { mut index, found, .. } = self;
        let mut starts = vec![0_u32; index.terms.len() + 2];
        for (term, ..) in &found {
            if let Some(count) = starts.get_mut(*term as usize + 2) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for count in &mut starts {
            sum += *count;
            *count = sum;
        }
        index.documents = vec![0; found.len()];
        index.impacts = vec![0; found.len()];
        // Each start moves to the end of its postings, which is the start of the next.
        for (term, document, impact) in found {
            let Some(at) = starts.get_mut(term as usize + 1) else { continue };
            let place = *at as usize;
            *at += 1;
            if let (Some(to), Some(weight)) = (index.documents.get_mut(place), index.impacts.get_mut(place)) {
                (*to, *weight) = (document, impact);
            }
        }
        starts.pop();
        index.starts = starts;
        index.keys.shrink_to_fit();
        index
    }
}
