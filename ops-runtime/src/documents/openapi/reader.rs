//! The shared state of the reader: the documents, the names of definitions, and the diagnostics.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;

use serde_json::Value;

use super::copies::Copies;
use super::diagnostics::Told;
use super::document::{Documents, Node};
use super::inherit::Base;
use super::others::Others;
use super::position;
use super::standalone::Shared;
use super::text::kind;
use super::version::Version;
use crate::{Definition, Diagnostic, SecurityKind, SecurityRequirement, Severity};

/// The reader of one description.
pub(super) struct Reader<'a> {
    pub(super) documents: &'a Documents<'a>,
    pub(super) version: Version,
    /// True if schemas keep the extension that names Rust types.
    pub(super) rust_types: bool,
    pub(super) examples: bool,
    /// The name of the definition that each place became, by the key of the place.
    pub(super) names: HashMap<usize, String>,
    /// All names of definitions.
    pub(super) taken: Names,
    /// Places that have a name and are still to be read.
    pub(super) queue: VecDeque<(String, Node<'a>)>,
    pub(super) definitions: Vec<Definition>,
    /// The definitions that documents share; `None` unless each document is a schema of its own.
    pub(super) shared: Option<Shared<'a>>,
    /// The schemas that others extend, by the keys of their places.
    pub(super) bases: HashMap<usize, Base<'a>>,
    /// The security schemes of the document, by name; `None` for one that cannot be read.
    pub(super) schemes: BTreeMap<String, Option<SecurityKind>>,
    /// The default security of operations, once it was read.
    pub(super) security: Option<Vec<SecurityRequirement>>,
    /// The operations that stream, for [`Reader::settle_switches`].
    pub(super) streams: Vec<Streaming<'a>>,
    /// The callbacks of operations, by the operations' names.
    pub(super) callbacks: Vec<(String, Node<'a>)>,
    pub(super) told: Told,
    /// The content types of responses that no output has.
    pub(super) others: Others<'a>,
    /// The copies of schemas that operations share.
    pub(super) copies: Copies,
}

impl<'a> Reader<'a> {
    pub(super) fn new(documents: &'a Documents<'a>, version: Version) -> Self {
        Self {
            documents,
            version,
            rust_types: false,
            examples: false,
            names: HashMap::new(),
            taken: Names::default(),
            queue: VecDeque::new(),
            definitions: Vec::new(),
            shared: None,
            bases: HashMap::new(),
            schemes: BTreeMap::new(),
            security: None,
            streams: Vec::new(),
            callbacks: Vec::new(),
            told: Told::default(),
            others: Others::default(),
            copies: Copies::new(documents.bytes()),
        }
    }

    /// Warns that something at a place was left out or made less precise; `help` says what was done instead.
    pub(super) fn warn(&mut self, at: &Node<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.told.tell(at, Severity::Warning, message.into(), help);
    }

    /// Notes that something at a place was read in a way that its author may not have meant.
    pub(super) fn note(&mut self, at: &Node<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.told.tell(at, Severity::Note, message.into(), help);
    }

    /// The diagnostics, each once, with document and position.
    pub(super) fn finished_diagnostics(&mut self) -> Vec<Diagnostic> {
        let told = std::mem::take(&mut self.told).finish();
        let mut wanted: BTreeMap<usize, BTreeSet<String>> = BTreeMap::new();
        for (document, diagnostic) in told.iter().filter(|(_, d)| d.position.is_none()) {
            wanted.entry(*document).or_default().insert(diagnostic.pointer.clone());
        }
        let mut positions = BTreeMap::new();
        for (number, pointers) in &wanted {
            if let Some((text, is_json)) = self.documents.get(*number).and_then(|document| document.text.as_ref()) {
                positions.insert(
                    *number,
                    position::positions(text, *is_json, &pointers.iter().map(String::as_str).collect()),
                );
            }
        }
        let mut finished: Vec<Diagnostic> = Vec::new();
        let mut seen = BTreeSet::new();
        for (number, mut diagnostic) in told {
            // A part that several operations share is read for each of them.
            if !seen.insert((number, diagnostic.pointer.clone(), diagnostic.message.clone())) {
                continue;
            }
            let position = positions.get(&number).and_then(|positions| positions.get(&diagnostic.pointer));
            diagnostic.position = diagnostic.position.or(position.copied());
            diagnostic.document = self.documents.get(number).and_then(|document| document.location.clone());
            finished.push(diagnostic);
        }
        finished
    }

    /// The items of a list; any other value there is left out.
    pub(super) fn list(&mut self, node: &Node<'a>, key: &str) -> Vec<Node<'a>> {
        let Some(found) = node.get(key) else { return Vec::new() };
        self.expect(&found, key, found.value.is_array(), "a list");
        found.items().collect()
    }

    /// The members of an object; any other value there is left out.
    pub(super) fn map(&mut self, node: &Node<'a>, key: &str) -> Vec<(&'a str, Node<'a>)> {
        let Some(found) = node.get(key) else { return Vec::new() };
        self.expect(&found, key, found.value.is_object(), "an object");
        found.members().collect()
    }

    fn expect(&mut self, node: &Node<'a>, key: &str, is_expected: bool, expected: &str) {
        // In YAML a key without a value is null.
        if !is_expected && !node.value.is_null() {
            self.warn(node, format!("`{key}` is {}, not {expected}", kind(node.value)), "it was left out");
        }
    }

    /// The item at a place, or the one that it refers to; an item whose `$ref` leads nowhere is left out.
    pub(super) fn resolve(&mut self, node: &Node<'a>, what: &str) -> Option<Node<'a>> {
        let found = match self.documents.resolve(node.clone()) {
            Ok(found) => found,
            Err(message) => {
                self.warn(node, message, format!("{what} was left out"));
                return None;
            }
        };
        if found.value.is_object() {
            return Some(found);
        }
        self.warn(node, format!("{what} is {}, not an object", kind(found.value)), "it was left out");
        None
    }
}

/// An operation of the document that streams, alone or beside a variant with one result.
pub(super) struct Streaming<'a> {
    pub(super) operation: Node<'a>,
    /// The range of specs that it became.
    pub(super) specs: Range<usize>,
    /// The schema of each of its bodies.
    pub(super) schemas: Vec<Value>,
}

/// Names without duplicates.
#[derive(Default)]
pub(in crate::documents) struct Names {
    taken: BTreeSet<String>,
    /// The last number given to a name that was requested more than once.
    last: BTreeMap<String, usize>,
}

impl Names {
    /// Takes a name as it is; `false` if it is taken already.
    pub(in crate::documents) fn take(&mut self, name: &str) -> bool {
        self.taken.insert(name.to_owned())
    }

    /// Takes a name, or the name with the first number from 2 that makes it a new one.
    pub(in crate::documents) fn allot(&mut self, name: &str) -> String {
        let mut candidate = name.to_owned();
        while !self.taken.insert(candidate.clone()) {
            // Counting on from the last number keeps this linear if a whole document requests one name.
            let number = self.last.entry(name.to_owned()).or_insert(1);
            *number += 1;
            candidate = format!("{name}_{number}");
        }
        candidate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ() {
        let mut names = Names::default();
        assert!(names.take("a") && names.take("a_2") && !names.take("a"));
        assert_eq!((names.allot("a"), names.allot("a"), names.allot("b")), ("a_3".into(), "a_4".into(), "b".into()));
    }
}
