//! Places of documents that have names of their own: `$anchor`, `$dynamicAnchor` and `$id`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::Value;

use super::pointer::{Path, Token};
use crate::documents::source::{has_scheme, join};

/// How many bytes an `$id` may have that others are relative to.
const LONGEST_BASE: usize = 500;

/// A way through a document that holds its own names.
type Trail = Path<'static>;

/// The named places of all documents, by pointer.
#[derive(Default)]
pub(super) struct Anchors {
    anchors: BTreeMap<(usize, String), Trail>,
    /// The places with this dynamic anchor, and how many have it.
    dynamic: BTreeMap<(usize, String), (Trail, usize)>,
    ids: BTreeMap<String, (usize, Trail)>,
    /// The names that documents give themselves.
    own: BTreeMap<usize, String>,
}

impl Anchors {
    /// The named places of these documents, in their order.
    pub(super) fn of<'v>(documents: impl Iterator<Item = &'v Value>) -> Self {
        let mut anchors = Self::default();
        for (number, value) in documents.enumerate() {
            let own = value.get("$self").or_else(|| value.get("$id")).and_then(Value::as_str);
            if let Some(own) = own {
                anchors.own.insert(number, own.to_owned());
            }
            // An explicit stack: the value may be nested deeper than the thread's stack allows.
            let mut stack = vec![(value, Trail::default(), None)];
            while let Some((value, at, around)) = stack.pop() {
                anchors.note(number, value, &at, around.as_deref());
                let base = anchors.base(number, around, value);
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
        anchors
    }

    fn note(&mut self, document: usize, value: &Value, at: &Trail, around: Option<&str>) {
        let text = |key: &str| value.get(key).and_then(Value::as_str);
        for key in ["$anchor", "$dynamicAnchor"] {
            if let Some(name) = text(key) {
                self.anchors.entry((document, name.to_owned())).or_insert_with(|| at.clone());
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
                        self.ids.entry(id).or_insert_with(|| (document, at.clone()));
                    }
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

    /// The base of the references in a value: its own `$id`, or what it was around it.
    pub(super) fn base(&self, document: usize, around: Option<Rc<str>>, value: &Value) -> Option<Rc<str>> {
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

    /// The place with this dynamic anchor, if no other place has it.
    pub(super) fn dynamic(&self, document: usize, name: &str) -> Option<(usize, &Trail)> {
        let (trail, count) = self.dynamic.get(&(document, name.to_owned()))?;
        (*count == 1).then_some((document, trail))
    }

    /// The place with this `$id`, written as the document does or in full.
    pub(super) fn identified(&self, document: usize, id: &str) -> Option<(usize, &Trail)> {
        let found = self.ids.get(id).or_else(|| self.ids.get(&self.absolute(document, id)))?;
        Some((found.0, &found.1))
    }
}
