//! JSON Schemas that stand on their own, outside of any OpenAPI document, such as those of tools.
//!
//! Each is a document of its own: its references lead to itself, never to another, and never to a network. What they
//! refer to goes into one table of definitions, in which schemas of one name that mean the same are one.

#![cfg_attr(not(feature = "mcp-schema"), allow(dead_code))]

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use serde_json::Value;

use super::definition::{LONGEST, word};
use super::document::{Documents, Node};
use super::reader::Reader;
use super::schema::reference_to;
use super::text::cut;
use super::version::Version;
use crate::{Definition, Diagnostic};

/// How many values of any list are looked at to find out which definitions are the same, and how many more for each byte
/// of the list; from there on none is shared.
const BUDGET: (usize, usize) = (1_000_000, 2);

/// A schema that stands on its own.
pub(crate) struct Standalone<'v> {
    /// Who it belongs to, for names of its definitions that mean something else elsewhere.
    pub(crate) owner: &'v str,
    /// What it is called if it refers to itself as a whole.
    pub(crate) name: String,
    /// Where it stands, for diagnostics.
    pub(crate) pointer: String,
    /// The schema.
    pub(crate) value: &'v Value,
    /// The part of it that is asked for, as a JSON pointer; empty for the whole.
    pub(crate) part: &'static str,
}

/// What was read of schemas that stand on their own.
pub(crate) struct ReadSchemas {
    /// Each schema in JSON Schema 2020-12, in the order in which they were given.
    pub(crate) schemas: Vec<Value>,
    /// What they refer to.
    pub(crate) definitions: Vec<Definition>,
    /// What was left out or made less precise.
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
        // A schema that refers to itself is a definition, and not written twice.
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
    /// The places that wished for a name, by that and what they say, and the names that they have.
    known: HashMap<(String, u64), Vec<(Node<'a>, String)>>,
    budget: usize,
}

impl<'a> Reader<'a> {
    /// The name of a definition by what it wishes for, and whether that is new.
    ///
    /// The first that wishes for a name gets it, and so does what is the same; what is not is prefixed by its owner.
    pub(super) fn share(&mut self, node: &Node<'a>, wish: &str) -> (String, bool) {
        let Some(mut shared) = self.shared.take() else { return (self.taken.allot(wish), true) };
        let (owner, whole) = shared.owners.get(node.document).cloned().unwrap_or_default();
        let wish = if node.path.is_empty() { word(cut(&whole, LONGEST)) } else { wish.to_owned() };
        let known = shared.known.entry((wish.clone(), digest(node.value))).or_default();
        let mut candidates = known.iter().take_while(|_| shared.budget > 0).collect::<Vec<_>>().into_iter();
        let same = candidates.find(|(other, _)| is_same(self, other, node, &mut shared.budget));
        let found = match same {
            Some((_, name)) => (name.clone(), false),
            None => {
                let is_free = self.taken.take(&wish);
                let name = if is_free {
                    wish
                } else {
                    self.taken.allot(cut(&word(&format!("{}_{wish}", cut(&owner, LONGEST))), 2 * LONGEST))
                };
                known.push((node.clone(), name.clone()));
                (name, true)
            }
        };
        self.shared = Some(shared);
        found
    }
}

/// What is the same for values that are equal.
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
                // In any order the members are the same.
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

/// Whether two places mean the same: they are equal, and so is all that they refer to.
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
                (Err(_), Err(_)) => {}
                _ => return false,
            }
        }
    }
    true
}

/// What a schema refers to; none if it is too large to tell, or refers to what depends on where it stands.
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
                if map.contains_key("$dynamicRef") {
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
