//! Inheritance: a schema with a discriminator stands for all that extend it by `allOf` (OpenAPI 3.1, section 4.8.25.3).
//!
//! References to such a schema mean a union of its descendants; the descendants mean its own content. So it becomes two
//! definitions: the union under its own name, and its content under another name.
//!
//! A descendant may be such a schema itself. In the union it stands for its own content, since its descendants are variants,
//! too. But if its discriminator names another property, it stands for its own union: that property selects among its
//! descendants.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::{MAX_HOPS, Node};
use super::null::{ANNOTATIONS, nullable};
use super::pointer::{definition_reference, reference_to};
use super::reader::Reader;
use super::text::LONGEST;
use crate::model::cut;
use crate::model::keywords::is_comment;

/// How many schemas may extend others, each counted once for each that it extends.
const MAX_DESCENDANTS: usize = 20_000;

/// A schema that others extend.
#[derive(Clone)]
pub(super) struct Base<'a> {
    /// The value that selects it.
    selector: String,
    /// The definition of the schema's own content.
    own: String,
    /// The places of those that extend it.
    places: HashSet<usize>,
    /// The schemas that extend it, directly or not, each with the value that selects it.
    descendants: Vec<(String, Node<'a>)>,
}

impl<'a> Reader<'a> {
    /// Finds the schemas that others extend, among those that have a name in any of the documents.
    pub(super) fn find_bases(&mut self) {
        let mut known: HashSet<usize> = HashSet::new();
        let all = self.queue.iter().cloned().chain(self.named_elsewhere());
        let all = all.filter(|(_, node)| known.insert(key(node)));
        let mut named: Vec<(String, Node<'a>)> = all.map(|(name, node)| (selector(&name, &node), node)).collect();
        // Beside a reference, OpenAPI 3.0 knows no other members.
        let others = if self.version.keeps_siblings() { &["oneOf", "anyOf"][..] } else { &["oneOf", "anyOf", "$ref"] };
        let is_base = |node: &Node<'a>| tag(node).is_some() && others.iter().all(|key| node.get(key).is_none());
        let bases: Vec<(String, Node<'a>)> = named.iter().filter(|(_, node)| is_base(node)).cloned().collect();
        if bases.is_empty() {
            return;
        }
        // What a mapping names has a name, wherever it is.
        let mut mapped: HashSet<usize> = HashSet::new();
        for (_, base) in &bases {
            let mapping = base.get("discriminator").and_then(|discriminator| discriminator.get("mapping"));
            for (value, target) in mapping.iter().flat_map(Node::members) {
                let Ok(found) = self.selected(base, &target) else { continue };
                let found = self.meant(found);
                mapped.insert(key(&found));
                if known.insert(key(&found)) {
                    named.push((selector(value, &found), found));
                }
            }
        }
        let mut children: HashMap<usize, Vec<&(String, Node<'a>)>> = HashMap::new();
        let mut pairs: HashSet<(usize, usize)> = HashSet::new();
        for child in named.iter().filter(|(_, node)| mapped.contains(&key(node)) || !self.is_only_nullable(node)) {
            for part in child.1.get("allOf").iter().flat_map(Node::items) {
                let Some(parent) = self.parent(&part) else { continue };
                // Each base looks at all children of its descendants, so that one named many times must count once.
                if pairs.insert((key(&parent), key(&child.1))) {
                    children.entry(key(&parent)).or_default().push(child);
                }
            }
        }
        let order: HashMap<usize, usize> = named.iter().enumerate().map(|(at, (_, node))| (key(node), at)).collect();
        let mut count = 0;
        for (selector, node) in &bases {
            let mut found = HashSet::from([key(node)]);
            let mut descendants: Vec<(String, Node<'a>)> = Vec::new();
            let mut next = vec![key(node)];
            while let Some(parent) = next.pop() {
                for (child, place) in children.get(&parent).into_iter().flatten() {
                    if count < MAX_DESCENDANTS && found.insert(key(place)) {
                        count += 1;
                        next.push(key(place));
                        descendants.push((child.clone(), place.clone()));
                    }
                }
            }
            if !descendants.is_empty() {
                // In the order of the document, not of inheritance.
                descendants.sort_by_key(|(_, place)| order.get(&key(place)));
                found.remove(&key(node));
                let name = self.names.get(&key(node)).cloned().unwrap_or_else(|| self.readable(node));
                let own = self.taken.allot(&format!("{name}_base"));
                let selector = selector.clone();
                self.bases.insert(key(node), Base { selector, own, places: found, descendants });
            }
        }
    }

    /// The schema that a part of `allOf` extends. Schemas that are only other names of it, or it or null, are passed.
    fn parent(&self, part: &Node<'a>) -> Option<Node<'a>> {
        let mut found = self.documents.find(part.document, part.text("$ref")?).ok()?;
        let mut passed = vec![key(&found)];
        while let Some(next) = self.renamed(&found).filter(|next| !passed.contains(&key(next))) {
            found = next;
            passed.push(key(&found));
            if passed.len() == MAX_HOPS {
                break;
            }
        }
        Some(found)
    }

    /// The schema that another one only gives another name, or adds null to.
    fn renamed(&self, node: &Node<'a>) -> Option<Node<'a>> {
        let only = if self.is_only_nullable(node) { node.get("allOf")?.item(0)? } else { node.clone() };
        let is_beside = |key: &String| key == "$ref" || says_no_more(key);
        // What stands beside a reference since OpenAPI 3.1 would be lost.
        if self.version.keeps_siblings() && !only.value.as_object()?.keys().all(is_beside) {
            return None;
        }
        self.documents.find(only.document, only.text("$ref")?).ok()
    }

    /// True if a schema is another one or null: OpenAPI 3.0 allows nothing beside a `$ref`, so it stands in an `allOf`.
    fn is_only_nullable(&self, node: &Node<'a>) -> bool {
        let parts = node.value.get("allOf").and_then(Value::as_array);
        let mut keys = node.value.as_object().into_iter().flat_map(Map::keys);
        self.is_nullable(node)
            && parts.is_some_and(|parts| parts.len() == 1)
            && keys.all(|key| key == "allOf" || says_no_more(key))
    }

    /// A part of `allOf` if the schema around it extends another: a reference to the content of that one.
    pub(super) fn extended(&mut self, at: &Node<'a>, part: &Node<'a>, level: usize) -> Option<Value> {
        if self.bases.is_empty() {
            return None;
        }
        let parent = self.parent(part)?;
        if !self.bases.get(&key(&parent))?.places.contains(&key(at)) {
            return None;
        }
        let own = definition_reference(&self.own_of(&parent));
        // What stands beside the reference is kept.
        let has_siblings = self.version.keeps_siblings() && self.adds_to_its_reference(part);
        let mut out = if has_siblings { self.content(part, part.value.as_object()?, level) } else { Map::new() };
        out.insert("$ref".into(), own);
        Some(Value::Object(out))
    }

    /// The definition of a schema's own content, without those that extend it.
    fn own_of(&mut self, place: &Node<'a>) -> String {
        // The content of one that others extend is written with their union, so that has to be defined, too.
        let name = self.define(place);
        self.bases.get(&key(place)).map_or(name, |base| base.own.clone())
    }

    /// The definition that stands for a member of a family.
    fn member_of(&mut self, family: &Node<'a>, member: &Node<'a>) -> String {
        if self.is_own(family, member) { self.own_of(member) } else { self.define(member) }
    }

    /// True if a member of a family has a family by the same property, so that only its own content stands for it.
    fn is_own(&self, family: &Node<'a>, member: &Node<'a>) -> bool {
        self.bases.contains_key(&key(member)) && tag(family) == tag(member)
    }

    /// True if a member of a family accepts null: the own content of one that others extend does not.
    fn has_null(&self, family: &Node<'a>, member: &Node<'a>) -> bool {
        !self.is_own(family, member) && self.is_nullable(member)
    }

    /// The definitions of a schema that others extend: its own, and the union of all.
    pub(super) fn family(&mut self, name: &str, node: &Node<'a>) -> Option<[(String, Value); 2]> {
        let base = self.bases.get(&key(node))?.clone();
        // Null is a variant of the union: a part of a descendant would not be null.
        let mut own = self.content(node, node.value.as_object()?, 0);
        let discriminator = own.shift_remove("discriminator");
        let declared = node.get("discriminator")?;
        let property = tag(node)?;
        let mut members: Vec<String> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut mapping = Map::new();
        let mut has_null = false;
        for (value, target) in declared.get("mapping").iter().flat_map(Node::members) {
            if let Ok(found) = self.selected(node, &target) {
                let found = self.meant(found);
                let member = self.member_of(node, &found);
                has_null |= self.has_null(node, &found);
                mapping.insert(value.to_owned(), definition_reference(&member));
                if known.insert(member.clone()) {
                    members.push(member);
                }
            }
        }
        for (value, place) in
            base.descendants.iter().map(|(value, place)| (value, place)).chain([(&base.selector, node)])
        {
            let member = self.member_of(node, place);
            has_null |= self.has_null(node, place);
            if known.insert(member.clone()) {
                mapping.entry(value.as_str()).or_insert_with(|| definition_reference(&member));
                members.push(member);
            }
        }
        let default = discriminator.and_then(|own| own.get("defaultMapping").cloned());
        let default = default.unwrap_or_else(|| definition_reference(&base.own));
        let mut union = Map::new();
        if let Some(text) = own.get("description") {
            union.insert("description".into(), text.clone());
        }
        let members: Vec<Value> = members.iter().map(|member| reference_to(member)).collect();
        union.insert("oneOf".into(), members.into());
        let tags = json!({ "propertyName": property, "mapping": mapping, "defaultMapping": default });
        union.insert("discriminator".into(), tags);
        // Null twice in a `oneOf` would match no null.
        let union = if self.is_nullable(node) && !has_null { nullable(union, false) } else { Value::Object(union) };
        Some([(name.to_owned(), union), (base.own, Value::Object(own))])
    }
}

fn key(node: &Node<'_>) -> usize {
    node.key()
}

/// The property by which a schema's discriminator selects.
fn tag<'a>(node: &Node<'a>) -> Option<&'a str> {
    node.get("discriminator").as_ref().and_then(Reader::tag_of)
}

/// The value that selects a schema which no mapping names. Each base repeats it, so it is cut.
fn selector(name: &str, node: &Node<'_>) -> String {
    cut::start(node.text("x-ms-discriminator-value").unwrap_or(name), LONGEST).to_owned()
}

/// True for members that may stand beside a schema without changing what is not null in it.
fn says_no_more(key: &str) -> bool {
    matches!(key, "nullable" | "x-nullable") || is_comment(key) || ANNOTATIONS.contains(&key)
}
