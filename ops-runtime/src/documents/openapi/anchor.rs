//! Places of documents that have names of their own: `$anchor`, `$dynamicAnchor` and `$id`.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use serde_json::Value;

use super::document::key;
use super::pointer::{Path, Token};
use crate::documents::source::join;
use crate::model::text::has_scheme;

/// How many bytes an `$id` may have that others are relative to.
const LONGEST_BASE: usize = 500;

/// A way through a document that holds its own names.
type Trail = Path<'static>;

/// The named places of all documents, by pointer.
#[derive(Default)]
pub(super) struct Anchors {
    anchors: BTreeMap<(usize, String), Trail>,
    /// Those in schemas with an `$id`, by that: each such schema may have an anchor of the same name.
    scoped: BTreeMap<(usize, Rc<str>, String), Trail>,
    /// The places with this dynamic anchor, and how many have it.
    dynamic: BTreeMap<(usize, String), (Trail, usize)>,
    ids: BTreeMap<(usize, String), Trail>,
    /// The `$id`s in full, by the schemas that have them.
    bases: HashMap<usize, Rc<str>>,
    /// The first document with an `$id`, for references from others; empty if no document may refer to another.
    first: BTreeMap<String, usize>,
    /// The names that documents give themselves.
    own: BTreeMap<usize, String>,
}

impl Anchors {
    /// The named places of these documents, in their order; `are_apart` is true if no document may refer to another.
    pub(super) fn of<'v>(documents: impl Iterator<Item = &'v Value>, are_apart: bool) -> Self {
        let mut anchors = Self::default();
        for (number, value) in documents.enumerate() {
            let own = value.get("$self").or_else(|| value.get("$id")).and_then(Value::as_str);
            if let Some(own) = own {
                anchors.own.insert(number, own.to_owned());
            }
            // An explicit stack: the value may be nested deeper than the thread's stack allows.
            let mut stack = vec![(value, Trail::default(), None)];
            while let Some((value, at, around)) = stack.pop() {
                let base = anchors.base(number, around.clone(), value);
                anchors.note(number, value, &at, around.as_deref(), base.as_ref());
                match value {
                    Value::Object(map) => {
                        let name = |key: &String| at.child(Token::Name(Cow::Owned(key.clone())), 0);
                        stack.extend(map.iter().rev().map(|(key, value)| (value, name(key), base.clone())));
                    }
                    Value::Array(items) => {
                        let number = |number| at.child(Token::Number(number), 0);
                        stack.extend(items.iter().enumerate().rev().map(|(at, item)| (item, number(at), base.clone())));
                    }
                    _ => {}
                }
            }
        }
        if !are_apart {
            for (document, id) in anchors.ids.keys() {
                anchors.first.entry(id.clone()).or_insert(*document);
            }
        }
        anchors
    }

    fn note(&mut self, document: usize, value: &Value, at: &Trail, around: Option<&str>, base: Option<&Rc<str>>) {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = text(key) {
                self.anchors.entry((document, name.to_owned())).or_insert_with(|| at.clone());
                if let Some(base) = base {
                    let key = (document, Rc::clone(base), name.to_owned());
                    self.scoped.entry(key).or_insert_with(|| at.clone());
                }
            }
        }
        if let Some(name) = text("$dynamicAnchor") {
            let found = self.dynamic.entry((document, name.to_owned())).or_insert_with(|| (at.clone(), 0));
            found.1 += 1;
        }
        if let Some(id) = text("$id") {
            // In draft 4 and its followers, an id that is only a fragment was an anchor.
            match id.strip_prefix('#') {
                Some(name) => _ = self.anchors.entry((document, name.to_owned())).or_insert_with(|| at.clone()),
                None => {
                    let based = self.based(document, around, id);
                    for id in [based, self.absolute(document, id.trim_end_matches('#'))] {
                        self.ids.entry((document, id)).or_insert_with(|| at.clone());
                    }
                    self.bases.extend(base.map(|base| (key(value), Rc::clone(base))));
                }
            }
        }
    }

    fn absolute(&self, document: usize, reference: &str) -> String {
        match self.own.get(&document) {
            Some(own) if !has_scheme(reference) => join(own, reference),
            _ => reference.to_owned(),
        }
    }

    /// An `$id` in full: relative to the one around it, or else to the document's own.
    fn based(&self, document: usize, around: Option<&str>, id: &str) -> String {
        let id = id.trim_end_matches('#');
        around.map_or_else(|| self.absolute(document, id), |around| join(around, id))
    }

    /// The base of the references in a schema that has an `$id`.
    pub(super) fn base_of(&self, schema: &Value) -> Option<Rc<str>> {
        self.bases.get(&key(schema)).cloned()
    }

    /// The base of the references in a value: its own `$id`, or what it was around it.
    fn base(&self, document: usize, around: Option<Rc<str>>, value: &Value) -> Option<Rc<str>> {
        let id = value.get("$id").and_then(Value::as_str).filter(|id| !id.starts_with('#'));
        match id.map(|id| self.based(document, around.as_deref(), id)) {
            Some(base) if base.len() <= LONGEST_BASE => Some(base.into()),
            _ => around,
        }
    }

    /// The place with this anchor.
    pub(super) fn anchor(&self, document: usize, name: &str) -> Option<&Trail> {
        self.anchors.get(&(document, name.to_owned()))
    }

    /// The place with this anchor in the schema with this `$id` in full.
    pub(super) fn anchor_in(&self, document: usize, base: &str, name: &str) -> Option<&Trail> {
        self.scoped.get(&(document, base.into(), name.to_owned()))
    }

    /// The place with this dynamic anchor, if no other place has it.
    pub(super) fn dynamic(&self, document: usize, name: &str) -> Option<(usize, &Trail)> {
        let (trail, count) = self.dynamic.get(&(document, name.to_owned()))?;
        (*count == 1).then_some((document, trail))
    }

    /// The place with this `$id`, written as the document does or in full: in the document itself, or else in another.
    pub(super) fn identified(&self, document: usize, id: &str) -> Option<(usize, &Trail)> {
        let names = [id.to_owned(), self.absolute(document, id)];
        let within = |document: usize| {
            let trail = names.iter().find_map(|name| self.ids.get(&(document, name.clone())))?;
            Some((document, trail))
        };
        within(document).or_else(|| within(*names.iter().find_map(|name| self.first.get(name))?))
    }
}
