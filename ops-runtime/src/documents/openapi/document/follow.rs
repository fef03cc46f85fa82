//! Following references: within a document, into others, and by the `$id`s of schemas.

use std::cell::Cell;
use std::rc::Rc;

use serde_json::Value;

use super::{Documents, GUESSES, MAX_HOPS, Node, STEPS};
use crate::documents::openapi::anchor::Anchors;
use crate::documents::openapi::pointer::{Path, percent_decoded, tokens};
use crate::documents::openapi::short::short;
use crate::documents::source::join;
use crate::model::nearest::{nearest, question};
use crate::pointer::unescaped;

impl Documents<'_> {
    /// The place that a reference in a document means.
    pub(in crate::documents::openapi) fn find(&self, document: usize, reference: &str) -> Result<Node<'_>, String> {
        self.find_within(document, reference, &mut MAX_HOPS.clone())
    }

    /// The place that a `$dynamicRef` means, if only one has that anchor.
    pub(in crate::documents::openapi) fn find_dynamic(&self, document: usize, name: &str) -> Option<Node<'_>> {
        let (document, path) = self.anchors().dynamic(document, name)?;
        self.along(document, path)
    }

    fn anchors(&self) -> &Anchors {
        let values = || self.list.iter().map(|document| document.value.as_ref());
        self.anchors.get_or_init(|| Anchors::of(values(), self.are_apart))
    }

    /// Counts the bytes of a reference that is followed.
    fn spend(&self, reference: &str) -> Result<(), String> {
        self.spend_steps(reference.len())
    }

    fn spend_steps(&self, steps: usize) -> Result<(), String> {
        let left = self.steps.get_or_init(|| {
            let (least, each) = STEPS;
            Cell::new(self.bytes().saturating_mul(each).saturating_add(least))
        });
        let rest = left.get().checked_sub(steps + 1);
        left.set(rest.unwrap_or(0));
        rest.map(|_| ()).ok_or_else(|| "the references of the description lead too far".to_owned())
    }

    /// The schema whose `$id` a reference names, or a place in it.
    fn identified(&self, document: usize, file: &str, fragment: &str, hops: &mut usize) -> Option<Node<'_>> {
        let anchors = self.anchors();
        let (document, path) = anchors.identified(document, file)?;
        let way = self.way(document, path);
        self.spend_steps(way.len()).ok()?;
        let decoded = percent_decoded(fragment);
        if fragment.is_empty() || decoded.starts_with('/') {
            return self.walk(way.last()?.clone(), &decoded, hops);
        }
        let own = self.base_of(way).and_then(|(base, _)| anchors.anchor_in(document, &base, &decoded));
        self.along(document, own.or_else(|| anchors.anchor(document, &decoded))?)
    }

    /// The base of the references at the end of a way, and the schema whose `$id` it is.
    fn base_of<'a>(&self, way: Vec<Node<'a>>) -> Option<(Rc<str>, Node<'a>)> {
        let has_id = |node: &Node<'_>| node.text("$id").is_some_and(|id| !id.starts_with('#'));
        let around = way.into_iter().rev().find(has_id)?;
        Some((self.anchors().base_of(around.value)?, around))
    }

    /// The place that a reference means within the schema around it that has an `$id`. `None` if it means nothing there.
    ///
    /// Such a schema is a document of its own, and the base of the references in it (JSON Schema, section 8.2.1).
    pub(in crate::documents::openapi) fn find_by_id<'a>(&'a self, at: &Node<'a>, reference: &str) -> Option<Node<'a>> {
        let with_ids = || self.list.iter().map(|document| has_id(&document.value)).collect();
        if !*self.with_ids.get_or_init(with_ids).get(at.document)? {
            return None;
        }
        let way = self.way(at.document, &at.path);
        self.spend_steps(way.len()).ok()?;
        let (base, around) = self.base_of(way)?;
        let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let decoded = percent_decoded(fragment);
        let target = if file.is_empty() { base.to_string() } else { join(&base, file) };
        if !(decoded.is_empty() || decoded.starts_with('/')) {
            return self.along(at.document, self.anchors().anchor_in(at.document, &target, &decoded)?);
        }
        let root = if *target == *base {
            around
        } else {
            let (document, path) = self.anchors().identified(at.document, &target)?;
            self.along(document, path)?
        };
        self.walk(root, &decoded, &mut MAX_HOPS.clone())
    }

    fn find_within(&self, document: usize, reference: &str, hops: &mut usize) -> Result<Node<'_>, String> {
        self.spend(reference)?;
        let (file, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let document = match self.foreign(document, file) {
            _ if file.is_empty() => document,
            Ok(found) => found,
            Err(message) => return self.identified(document, file, fragment, hops).ok_or(message),
        };
        let value = self.get(document).map_or(&Value::Null, |document| document.value.as_ref());
        let root = Node { document, path: Path::default(), value };
        let decoded = percent_decoded(fragment);
        if !(fragment.is_empty() || decoded.starts_with('/')) {
            let anchored = self.anchors().anchor(document, &decoded).and_then(|path| self.along(document, path));
            return anchored
                .ok_or_else(|| format!("`{}` is not a JSON pointer, nor the name of an anchor", short(reference)));
        }
        let found = self.walk(root.clone(), &decoded, hops);
        // The document may have left a `%` unencoded.
        let found = found.or_else(|| if decoded == fragment { None } else { self.walk(root.clone(), fragment, hops) });
        found.ok_or_else(|| {
            let meant = self.meant(root, &decoded);
            format!("`{}` does not exist{meant}", short(reference))
        })
    }

    /// What a pointer to nowhere may mean: ``: did you mean `Order`?``, or nothing. Cached, so that equal references give
    /// equal messages.
    fn meant<'a>(&'a self, root: Node<'a>, pointer: &str) -> String {
        let key = (root.document, pointer.to_owned());
        if let Some(known) = self.guesses.borrow().get(&key) {
            return known.clone();
        }
        if self.guesses.borrow().len() == GUESSES.0 {
            return String::new();
        }
        // On the way, there may be another reference to nowhere, or this one again.
        self.guesses.borrow_mut().insert(key.clone(), String::new());
        let question = self.guess(root, pointer).unwrap_or_default();
        self.guesses.borrow_mut().insert(key, question.clone());
        question
    }

    fn guess<'a>(&'a self, root: Node<'a>, pointer: &str) -> Option<String> {
        let (parent, name) = pointer.rsplit_once('/')?;
        let parent = self.walk(root, parent, &mut MAX_HOPS.clone())?;
        let known = parent.value.as_object()?.keys().map(String::as_str).take(GUESSES.1);
        Some(question(&nearest(&unescaped(name), known, 1)))
    }

    fn foreign(&self, document: usize, file: &str) -> Result<usize, String> {
        let main = self.main_of(document);
        let own = self.get(main).and_then(|main| main.value.get("$self")?.as_str());
        match self.references.get(&(document, file.to_owned())) {
            Some(Ok(number)) => Ok(*number),
            Some(Err(message)) => Err(message.to_string()),
            None if own.is_some_and(|own| own.split('#').next() == Some(file)) => Ok(main),
            None => Err(format!("`{}` is another document, and there is no source to read it from", short(file))),
        }
    }

    /// The place that a pointer leads to; a `$ref` on the way is followed if the place is not found otherwise.
    pub(in crate::documents::openapi) fn walk<'a>(
        &'a self,
        root: Node<'a>,
        pointer: &str,
        hops: &mut usize,
    ) -> Option<Node<'a>> {
        let mut node = root;
        for token in tokens(pointer) {
            node = match node.step(&token) {
                Some(next) => next,
                None => self.follow(node, hops).ok()?.step(&token)?,
            };
        }
        Some(node)
    }

    /// The node itself, or what it refers to if it is a `$ref`.
    pub(in crate::documents::openapi) fn resolve<'a>(&'a self, node: Node<'a>) -> Result<Node<'a>, String> {
        self.follow(node, &mut MAX_HOPS.clone())
    }

    /// The node itself, and those that it refers to in turn, up to the one that is no `$ref`. Those that only refer are left
    /// out.
    pub(in crate::documents::openapi) fn chain<'a>(&'a self, mut node: Node<'a>) -> Result<Vec<Node<'a>>, String> {
        let mut chain = Vec::new();
        let mut hops = MAX_HOPS;
        while let Some(reference) = node.text("$ref") {
            hops = hops.checked_sub(1).ok_or_else(|| format!("`{}` leads in a circle", short(reference)))?;
            let next = self.find_within(node.document, reference, &mut hops)?;
            if node.value.as_object().is_some_and(|members| members.len() > 1) {
                chain.push(node);
            }
            node = next;
        }
        chain.push(node);
        Ok(chain)
    }

    fn follow<'a>(&'a self, mut node: Node<'a>, hops: &mut usize) -> Result<Node<'a>, String> {
        while let Some(reference) = node.text("$ref") {
            *hops = hops.checked_sub(1).ok_or_else(|| format!("`{}` leads in a circle", short(reference)))?;
            node = self.find_within(node.document, reference, hops)?;
        }
        Ok(node)
    }
}

/// True if an object in a value has an `$id`.
fn has_id(value: &Value) -> bool {
    // An explicit stack: the value may be nested deeper than the thread's stack allows.
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        match value {
            Value::Object(map) => {
                if map.get("$id").is_some_and(Value::is_string) {
                    return true;
                }
                stack.extend(map.values());
            }
            Value::Array(items) => stack.extend(items),
            _ => {}
        }
    }
    false
}
