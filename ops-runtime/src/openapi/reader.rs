//! What all parts of the reader share: the documents, the names of definitions, and the diagnostics.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::Value;

use super::document::{Documents, Node};
use super::version::Version;
use crate::{Definition, Diagnostic};

/// The reader of one description.
pub(super) struct Reader<'a> {
    pub(super) documents: &'a Documents<'a>,
    pub(super) version: Version,
    /// The name of the definition that each place became, by document and pointer.
    pub(super) names: BTreeMap<(usize, String), String>,
    /// All names of definitions.
    pub(super) taken: BTreeSet<String>,
    /// Places that have a name and are still to be read.
    pub(super) queue: VecDeque<(String, Node<'a>)>,
    pub(super) definitions: Vec<Definition>,
    /// Each with the number of its document.
    pub(super) diagnostics: Vec<(usize, Diagnostic)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(documents: &'a Documents<'a>, version: Version) -> Self {
        Self {
            documents,
            version,
            names: BTreeMap::new(),
            taken: BTreeSet::new(),
            queue: VecDeque::new(),
            definitions: Vec::new(),
            diagnostics: Vec::new(),
        }
    }

    /// Says that something at a place was left out or made less precise, and what was done instead.
    pub(super) fn warn(&mut self, at: &Node<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push((at.document, Diagnostic::warning(&at.pointer, message).with_help(help)));
    }

    /// Says that something at a place was read in a way that its author may not have meant.
    pub(super) fn note(&mut self, at: &Node<'_>, message: impl Into<String>, help: impl Into<String>) {
        self.diagnostics.push((at.document, Diagnostic::note(&at.pointer, message).with_help(help)));
    }

    /// The item at a place, or the one that it refers to; a `$ref` to nowhere costs the item.
    pub(super) fn resolve(&mut self, node: Node<'a>, what: &str) -> Option<Node<'a>> {
        let found = match self.documents.resolve(node.clone()) {
            Ok(found) => found,
            Err(message) => {
                self.warn(&node, message, format!("{what} was left out"));
                return None;
            }
        };
        if found.value.is_object() {
            return Some(found);
        }
        self.warn(&node, format!("{what} is {}, not an object", kind(found.value)), "it was left out");
        None
    }
}

/// What kind of value this is, for messages.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The name, or the name with the first number from 2 that makes it a new one.
pub(super) fn unique(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.to_owned();
    let mut number = 2_usize;
    while is_taken(&candidate) {
        candidate = format!("{name}_{number}");
        number += 1;
    }
    candidate
}
