//! Reads operations into an index.

use std::collections::HashMap;

use super::super::action::{Action, ends_with_parameter};
use super::super::meaning::{Pieces, pieces};
use super::super::text::{self, Field, Known};
use super::super::words::{Stems, has, is_stop_word, words};
use super::{GAP, Index, Operation, Term};
use crate::spec::OperationSpec;

/// With so much weight, a word counts half as much as it can.
const HALF: f32 = 4.0;

/// How much the length of a field matters, from 0 to 1.
const LENGTH: f32 = 0.75;

/// Words of namespaces and hosts that say nothing of the API.
const NAMESPACES: &str = "\
    ag api apis app cloud com core io json local mcp modelcontextprotocol net openapi org oss public rest \
    sandbox server service spec swagger v1 v2 v3 www yaml";

/// Collects the words of operations.
pub(in super::super) struct Builder {
    index: Index,
    stems: Stems,
    /// The terms of words as they are written, `None` for those without meaning: most words come again.
    known: HashMap<Box<str>, (Term, bool)>,
    namespaces: HashMap<Box<str>, u32>,
    /// The words of each field of the operation that is being read.
    fields: [Vec<Term>; Field::ALL.len()],
    /// The weight of each term in the operation that is being read, and the terms that have one.
    weights: Vec<f32>,
    /// In which of its fields each stands.
    places: Vec<u8>,
    touched: Vec<Term>,
    found: Vec<(Term, u32, u16, u8)>,
    /// The definitions of the API whose operations are read.
    properties: Known,
    pieces: &'static Pieces,
    /// The meaning of the operation that is being read.
    meaning: Vec<f32>,
    /// The same for its name and title.
    head: Vec<f32>,
}

impl Builder {
    pub(in super::super) fn new() -> Self {
        Self {
            index: Index::default(),
            stems: Stems::new(),
            known: HashMap::new(),
            namespaces: HashMap::new(),
            fields: Default::default(),
            weights: Vec::new(),
            places: Vec::new(),
            touched: Vec::new(),
            found: Vec::new(),
            properties: Known::default(),
            pieces: pieces(),
            meaning: pieces().empty(),
            head: pieces().empty(),
        }
    }

    pub(in super::super) fn add(&mut self, spec: &OperationSpec) {
        let Ok(number) = u32::try_from(self.index.operations.len()) else { return };
        let (mut name, mut title) = (Vec::new(), Vec::new());
        let mut last = Field::Name;
        let mut properties = std::mem::take(&mut self.properties);
        text::texts(spec, &mut properties, |field, text| {
            let is_key = matches!(field, Field::Name | Field::Title | Field::Path);
            if is_key && field != last {
                self.index.keys.push(GAP);
                last = field;
            }
            words(text, |word, is_whole| {
                let (term, is_stop) = self.intern(word);
                // A letter in front of the same operation makes no other of it.
                let is_letter = field == Field::Namespace && word.len() == 1;
                if !is_whole && !is_letter && field.has_meaning(spec) {
                    self.pieces.add(word, &mut self.meaning);
                    if matches!(field, Field::Name | Field::Title) {
                        self.pieces.add(word, &mut self.head);
                    }
                }
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
                if field == Field::Lead && !is_stop && !is_whole {
                    self.index.lead_words.push(term);
                }
            });
        });
        self.properties = properties;
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
            let place = self.places.get_mut(term as usize).map(std::mem::take).unwrap_or_default();
            self.found.push((term, number, (impact * 65_535.0) as u16, place));
        }
        let next = self.namespaces.len() as u32;
        let namespace = *self.namespaces.entry(spec.namespace().into()).or_insert(next);
        if namespace == next {
            self.index.namespaces.push(0);
            self.index.centers.push(self.pieces.empty());
        }
        if let Some(size) = self.index.namespaces.get_mut(namespace as usize) {
            *size += 1;
        }
        for (sum, meanings) in [(&mut self.meaning, &mut self.index.meanings), (&mut self.head, &mut self.index.heads)]
        {
            meanings.push(sum);
            sum.fill(0.0);
        }
        self.add_to_namespace(namespace as usize);
        let is_item = ends_with_parameter(spec);
        let lead_end = self.index.lead_words.len() as u32;
        let (id, deprecated) = (spec.id.clone(), spec.deprecated);
        let keys_end = self.index.keys.len() as u32;
        self.index.operations.push(Operation { id, action, deprecated, is_item, namespace, lead_end, keys_end });
    }

    /// Counts the words of the last operation in its namespace, and adds what it means.
    fn add_to_namespace(&mut self, namespace: usize) {
        let index = &mut self.index;
        let start = index.operations.last().map_or(0, |last| last.keys_end as usize);
        let mut keys = index.keys.get(start..).unwrap_or_default().to_vec();
        keys.sort_unstable();
        keys.dedup();
        for term in keys.into_iter().filter(|term| *term != GAP) {
            *index.local.entry((namespace as u32, term)).or_insert(0) += 1;
        }
        if let Some(center) = index.centers.get_mut(namespace) {
            index.meanings.add_to(index.operations.len(), center);
        }
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
            if let Some(places) = self.places.get_mut(term as usize) {
                *places |= field.bit();
            }
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
            self.places.push(0);
            let mut sum = self.pieces.empty();
            self.pieces.add(word, &mut sum);
            self.index.words.push(&sum);
        }
        let known = (term, is_stop_word(word));
        self.known.insert(word.into(), known);
        known
    }

    /// Sorts what was found by term.
    pub(in super::super) fn finish(self) -> Index {
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
        index.places = vec![0; found.len()];
        // Each start moves to the end of its postings, which is the start of the next.
        for (term, document, impact, bits) in found {
            let Some(at) = starts.get_mut(term as usize + 1) else { continue };
            let place = *at as usize;
            *at += 1;
            if let (Some(to), Some(weight), Some(places)) =
                (index.documents.get_mut(place), index.impacts.get_mut(place), index.places.get_mut(place))
            {
                (*to, *weight, *places) = (document, impact, bits);
            }
        }
        starts.pop();
        for center in &mut index.centers {
            let length = center.iter().map(|number| number * number).sum::<f32>().sqrt().max(f32::EPSILON);
            center.iter_mut().for_each(|number| *number /= length);
        }
        index.starts = starts;
        index.keys.shrink_to_fit();
        index
    }
}
