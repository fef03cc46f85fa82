//! What a question asks for: each of its words with all that it may mean.

mod alike;
mod intent;
mod tokens;

use std::collections::HashSet;

use super::action::Action;
use super::index::{Index, Term};
use super::meaning::pieces;
use super::synonyms::{self, LONGEST_PHRASE, Meanings};
use super::words::{Stems, is_weak_word};
use crate::model::cut::start;
use tokens::{MAX_BYTES, Token, tokens};

/// How many words and phrases of a question count.
const MAX_CONCEPTS: usize = 24;

/// How far the second part of a phrase such as `turn off` may be from the first.
const MAX_GAP: usize = 4;

/// Words that say whose something is.
const OWN: &[&str] = &["me", "mine", "my"];

/// Words that ask for one thing, and those that ask for all.
const ONE: &[&str] = &["id", "one", "particular", "single", "specific", "this"];
const MANY: &[&str] = &["all", "each", "every", "list", "which"];

/// So many operations have a word that the index does not know, and what fewer have is no rarer.
const UNKNOWN: f32 = 30.0;
const RARE: f32 = 8.0;

/// How much a verb matters that is one of [`Action`], what follows the verb, `my`, and a word beside its phrase.
const VERB: f32 = 0.85;
const OBJECT: f32 = 1.25;
const MY: f32 = 0.3;
const PART: f32 = 0.35;

/// Words of an index that all stand in an operation, and how sure it is that they are meant, from 0 to 1.
#[derive(Debug)]
pub(super) struct Meaning {
    pub(super) terms: Vec<Term>,
    pub(super) sure: f32,
}

/// A word or a phrase of a question.
#[derive(Debug, Default)]
pub(super) struct Concept {
    pub(super) meanings: Vec<Meaning>,
    /// How much it matters beside others.
    pub(super) importance: f32,
}

impl Concept {
    fn new(importance: f32) -> Self {
        Self { meanings: Vec::new(), importance }
    }

    /// Adds a meaning, if the index has all of its words.
    fn add<'s>(&mut self, index: &Index, stems: impl IntoIterator<Item = &'s str>, sure: f32) {
        let terms: Option<Vec<Term>> = stems.into_iter().map(|stem| index.term(stem)).collect();
        if let Some(terms) = terms.filter(|terms| !terms.is_empty()) {
            self.meanings.push(Meaning { terms, sure });
        }
    }
}

/// A question in the terms of an index.
#[derive(Debug)]
pub(super) struct Question {
    pub(super) concepts: Vec<Concept>,
    /// What is to be done.
    pub(super) action: Action,
    /// How sure that is: less than 1 if no verb says it.
    pub(super) certainty: f32,
    /// What it means as a whole.
    pub(super) meaning: Vec<f32>,
    /// What each of its words means, and how much it matters.
    pub(super) words: Vec<(Vec<f32>, f32)>,
    /// Which of the concepts are the verb and what follows it.
    pub(super) verb: Option<usize>,
    pub(super) object: Option<usize>,
    /// 1 if one thing is asked for, -1 if all are, and 0 if neither or both are said.
    pub(super) wants_one: f32,
}

impl Question {
    pub(super) fn read(index: &Index, text: &str) -> Self {
        let stems = Stems::new();
        let tokens = tokens(index, &stems, text);
        let intent = intent::asked(&tokens, text.trim_end().ends_with('?'));
        let used = vec![false; tokens.len()];
        let mut reader = Reader {
            index,
            stems,
            tokens: &tokens,
            used,
            intent,
            verb: None,
            concepts: Vec::new(),
            seen: HashSet::new(),
        };
        for at in 0..tokens.len() {
            reader.read(at);
        }
        let Reader { intent, verb, mut concepts, .. } = reader;
        let object =
            concepts.iter_mut().enumerate().find(|(at, concept)| Some(*at) != verb && concept.importance > 0.8);
        let object = object.map(|(at, object)| {
            object.importance *= OBJECT;
            at
        });
        let (action, certainty) = intent.unwrap_or_else(|| intent::implied(&tokens));
        let meaning = pieces().meaning(start(text, MAX_BYTES));
        let words = tokens.iter().filter(|token| !token.is_stop).map(|token| {
            let has = index.term(&token.stem).map_or(UNKNOWN, |term| index.postings(term).len() as f32);
            let rarity = (1.0 + index.operations.len() as f32 / (has + RARE)).ln();
            (pieces().meaning(&token.word), token.importance * rarity)
        });
        let words = words.collect();
        let says = |words: &[&str]| f32::from(u8::from(tokens.iter().any(|token| token.is_any(words))));
        let wants_one = says(ONE) - says(MANY);
        Self { concepts, action, certainty, meaning, words, verb, object, wants_one }
    }
}

/// A phrase of the table of synonyms.
struct Phrase {
    key: String,
    places: Vec<usize>,
    meanings: &'static Meanings,
}

struct Reader<'a> {
    index: &'a Index,
    stems: Stems,
    tokens: &'a [Token],
    /// Which of the tokens are a part of a phrase that was read.
    used: Vec<bool>,
    intent: Option<(Action, f32)>,
    /// Which of the concepts is the verb.
    verb: Option<usize>,
    concepts: Vec<Concept>,
    /// The stems that were read: what is said twice counts once.
    seen: HashSet<String>,
}

impl Reader<'_> {
    /// Reads the phrase that begins at a word, or else the word.
    fn read(&mut self, at: usize) {
        let Some(token) = self.tokens.get(at) else { return };
        if self.concepts.len() >= MAX_CONCEPTS || self.used.get(at).copied().unwrap_or_default() {
            return;
        }
        let phrase = self.phrase(at);
        // Of words without meaning, few mean something by themselves.
        let phrase = phrase.filter(|phrase| phrase.places.len() > 1 || !token.is_stop || token.is_any(OWN));
        if phrase.is_none() && token.is_stop {
            return;
        }
        let mut concept = Concept::new(token.importance);
        let (key, places) = match phrase {
            Some(Phrase { key, places, meanings }) => {
                for (stems, sure) in meanings {
                    concept.add(self.index, stems.iter().map(AsRef::as_ref), *sure);
                }
                (key, places)
            }
            None => (token.stem.clone(), vec![at]),
        };
        for place in &places {
            self.used.get_mut(*place).into_iter().for_each(|used| *used = true);
        }
        let tokens: Vec<&Token> = places.iter().filter_map(|place| self.tokens.get(*place)).collect();
        concept.importance = tokens.iter().map(|token| token.importance).fold(0.0, f32::max);
        match tokens.as_slice() {
            [token] if token.is_stop => concept.importance *= MY,
            [token] => {
                concept.add(self.index, [token.stem.as_str()], 1.0);
                alike::add(self.index, &self.stems, token, self.tokens.get(at + 1), &mut concept);
            }
            _ => concept.add(self.index, tokens.iter().map(|token| token.stem.as_str()), 1.0),
        }
        self.take_verb(&mut concept, &places, &key);
        if concept.meanings.is_empty() || !self.seen.insert(key) {
            return;
        }
        let importance = concept.importance * PART;
        self.concepts.push(concept);
        if tokens.len() > 1 {
            // What has only a part of the phrase is better than nothing.
            for token in tokens.into_iter().filter(|token| !token.is_stop && !is_weak_word(&token.word)) {
                let mut part = Concept::new(importance);
                part.add(self.index, [token.stem.as_str()], 1.0);
                if !part.meanings.is_empty() && self.seen.insert(token.stem.clone()) {
                    self.concepts.push(part);
                }
            }
        }
    }

    /// The longest phrase that begins at a word, or one whose second part comes later. A phrase that stands for nothing in
    /// the index is none: its words may still stand there.
    fn phrase(&self, at: usize) -> Option<Phrase> {
        let table = synonyms::table();
        let stem = |at: usize| self.tokens.get(at).map_or("", |token| token.stem.as_str());
        let mut key = String::new();
        let mut found = None;
        for next in at..self.tokens.len().min(at + LONGEST_PHRASE) {
            key.push_str(if next > at { " " } else { "" });
            key.push_str(stem(next));
            let known = table.get(key.as_str()).filter(|meanings| next == at || self.stands_for_some(&key, meanings));
            if let Some(meanings) = known {
                found = Some(Phrase { key: key.clone(), places: (at..=next).collect(), meanings });
            }
        }
        if found.as_ref().is_some_and(|phrase| phrase.places.len() > 1) {
            return found;
        }
        // `turn it off`
        let later = (at + 2..self.tokens.len().min(at + 2 + MAX_GAP)).find_map(|next| {
            let key = format!("{} {}", stem(at), stem(next));
            let known = table.get(key.as_str()).filter(|_| self.is_particle(next));
            let meanings = known.filter(|meanings| self.stands_for_some(&key, meanings))?;
            Some(Phrase { key, places: vec![at, next], meanings })
        });
        later.or(found)
    }

    /// True if operations have all words of a phrase, or of one of its meanings.
    fn stands_for_some(&self, key: &str, meanings: &Meanings) -> bool {
        let has = |stem: &str| self.index.term(stem).is_some_and(|term| self.index.postings(term).next().is_some());
        key.split(' ').all(has) || meanings.iter().any(|(stems, _)| stems.iter().all(|stem| has(stem)))
    }

    /// True if this word is the second part of a verb: nothing that it leads to follows, as in `turn it on`.
    fn is_particle(&self, at: usize) -> bool {
        let Some(token) = self.tokens.get(at) else { return false };
        let next = self.tokens.get(at + 1).filter(|next| next.clause == token.clause);
        intent::PARTICLES.contains(&token.stem.as_str()) && next.is_none_or(|next| next.is_stop)
    }

    /// Takes what the question wants done from its first verb.
    fn take_verb(&mut self, concept: &mut Concept, places: &[usize], key: &str) {
        if self.intent.is_some() {
            return;
        }
        let Some(action) = intent::of_verb(self.tokens, places, key) else { return };
        self.intent = Some((action, 1.0));
        self.verb = Some(self.concepts.len());
        if action != Action::Other {
            concept.importance *= VERB;
        }
    }
}
