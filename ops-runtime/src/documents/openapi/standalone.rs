//! JSON Schemas that stand on their own, outside of any OpenAPI document, such as those of tools.
//!
//! Each is a document of its own: its references lead into itself, never to another document or a network. Their
//! targets go into one table of definitions, in which schemas with the same name and meaning are merged.

#![cfg_attr(not(feature = "mcp-schema"), allow(dead_code))]

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::document::{Documents, Node};
use super::pointer::{may_lead_around, reference_to};
use super::reader::Reader;
use super::text::{LONGEST, word};
use super::version::Version;
use crate::model::cut;
use crate::{Definition, Diagnostic};

/// How many values of any list are visited to find equal definitions, and how many more for each byte of the list.
/// Beyond that, no definitions are shared.
const BUDGET: (usize, usize) = (1_000_000, 2);

/// How many definitions of one name and content are compared with the next one. They differ only in what they refer to.
const CANDIDATES: usize = 32;

/// A schema that stands on its own.
pub(crate) struct Standalone<'v> {
    /// The owner's name, a prefix for definitions whose name has another meaning in the API.
    pub(crate) owner: &'v str,
    /// Its name, if it refers to itself as a whole.
    pub(crate) name: String,
    /// Where it stands, for diagnostics.
    pub(crate) pointer: String,
    /// The schema.
    pub(crate) value: &'v Value,
    /// The part of it to read, as a JSON pointer; empty for the whole.
    pub(crate) part: &'static str,
}

/// The result of reading standalone schemas.
pub(crate) struct ReadSchemas {
    /// Each schema in JSON Schema 2020-12, in the order in which they were given.
    pub(crate) schemas: Vec<Value>,
    /// The definitions that they refer to.
    pub(crate) definitions: Vec<Definition>,
    /// Diagnostics of what was left out or made less precise.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

/// Reads schemas of any dialect of JSON Schema.
pub(crate) fn read(given: &[Standalone<'_>]) -> ReadSchemas {
    let documents = Documents::of_all(given.iter().map(|schema| schema.value));
    let mut reader = Reader::new(&documents, Version::V31);
    let owners = given.iter().map(|schema| (schema.owner.to_owned(), schema.name.clone())).collect();
    let budget = documents.bytes().saturating_mul(BUDGET.1).saturating_add(BUDGET.0);
    reader.shared = Some(Shared { owners, known: HashMap::new(), budget });
    let mut schemas = Vec::new();
    for (number, schema) in given.iter().enumerate() {
        let Some(node) = documents.at(number, schema.part) else { continue };
        let read = reader.schema(&node);
        // A schema that refers to itself is a definition, and is not written twice.
        let own = reader.names.get(&node.key());
        schemas.push(own.map_or(read, |name| reference_to(name)));
    }
    reader.read_definitions();
    let mut diagnostics = Vec::new();
    for (number, mut diagnostic) in std::mem::take(&mut reader.told).finish() {
        if let Some(schema) = given.get(number).filter(|_| !diagnostic.is_count()) {
            diagnostic.pointer.insert_str(0, &schema.pointer);
        }
        diagnostics.push(diagnostic);
    }
    ReadSchemas { schemas, definitions: std::mem::take(&mut reader.definitions), diagnostics }
}

/// The definitions that schemas of several documents share.
pub(super) struct Shared<'a> {
    /// The owner and the name of each document.
    owners: Vec<(String, String)>,
    /// The places that requested a name, by that name and a digest of their content, and the names that they got.
    known: HashMap<(String, u64), Vec<(Node<'a>, String)>>,
    budget: usize,
}

impl<'a> Reader<'a> {
    /// The name of a definition for a requested one, and true if it is new.
    ///
    /// The first place that requests a name gets it, and so do equal places; others are prefixed by their owner.
    pub(super) fn share(&mut self, node: &Node<'a>, wish: &str) -> (String, bool) {
        let Some(mut shared) = self.shared.take() else { return (self.taken.allot(wish), true) };
        let (owner, whole) = shared.owners.get(node.document).cloned().unwrap_or_default();
        let wish = if node.path.is_empty() { word(cut::start(&whole, LONGEST)) } else { wish.to_owned() };
        let known = shared.known.entry((wish.clone(), digest(node.value))).or_default();
        let mut candidates = known.iter().take(CANDIDATES);
        let same = candidates.find(|(other, _)| is_same(self, other, node, &mut shared.budget));
        let found = match same {
            Some((_, name)) => (name.clone(), false),
            None => {
                let is_free = self.taken.take(&wish);
                let name = if is_free {
                    wish
                } else {
                    self.taken.allot(cut::start(&word(&format!("{}_{wish}", cut::start(&owner, LONGEST))), 2 * LONGEST))
                };
                known.push((node.clone(), name.clone()));
                (name, true)
            }
        };
        self.shared = Some(shared);
        found
    }
}

/// A digest, which is the same for equal values.
fn digest(value: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        std::mem::discriminant(value).hash(&mut hasher);
        match value {
            Value::String(text) => text.hash(&mut hasher),
            Value::Bool(bool) => bool.hash(&mut hasher),
            Value::Number(number) => number.hash(&mut hasher),
            Value::Array(items) => stack.extend(items),
            Value::Object(map) => {
                // The order of members does not count.
                let mut members: Vec<(&String, &Value)> = map.iter().collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                members.iter().for_each(|(name, _)| name.hash(&mut hasher));
                stack.extend(members.into_iter().map(|(_, value)| value));
            }
            Value::Null => {}
        }
    }
    hasher.finish()
}

/// True if two places mean the same: they are equal, and so are the places that they refer to.
fn is_same<'a>(reader: &Reader<'a>, a: &Node<'a>, b: &Node<'a>, budget: &mut usize) -> bool {
    let mut seen = BTreeSet::new();
    let mut pairs = vec![(a.clone(), b.clone())];
    while let Some((a, b)) = pairs.pop() {
        if !seen.insert((a.key(), b.key())) {
            continue;
        }
        let Some(references) = references(a.value, budget) else { return false };
        if a.value != b.value {
            return false;
        }
        for reference in references {
            let find = |node: &Node<'a>| reader.documents.find(node.document, reference);
            match (find(&a), find(&b)) {
                (Ok(a), Ok(b)) => pairs.push((a, b)),
                // One that is not in the root may be around the reference, and differ.
                (Err(_), Err(_)) if !may_lead_around(reference) => {}
                _ => return false,
            }
        }
    }
    true
}

/// The references of a schema; `None` if it is too large, or if one of them depends on its place.
fn references<'v>(schema: &'v Value, budget: &mut usize) -> Option<Vec<&'v str>> {
    let mut found = Vec::new();
    // An explicit stack: the value may be nested deeper than the thread's stack allows.
    let mut stack = vec![schema];
    while let Some(value) = stack.pop() {
        let left = budget.checked_sub(1);
        *budget = left.unwrap_or(0);
        left?;
        match value {
            Value::Object(map) => {
                if ["$dynamicRef", "$recursiveRef"].iter().any(|key| map.contains_key(*key)) {
                    return None;
                }
                found.extend(map.get("$ref").and_then(Value::as_str));
                if let (Some(_), Some(Value::Object(mapping))) = (map.get("propertyName"), map.get("mapping")) {
                    found.extend(mapping.values().filter_map(Value::as_str));
                }
                stack.extend(map.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    Some(found)
}
