//! Inheritance: a schema with a discriminator stands for all that extend it by `allOf` (OpenAPI 3.1, section 4.8.25.3).
//!
//! References to such a schema mean a union of its descendants; the descendants mean its own content. So it becomes two
//! definitions: the union under its own name, and its content under another name.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::{MAX_HOPS, Node};
use super::null::{ANNOTATIONS, nullable};
use super::pointer::{definition_reference, reference_to};
use super::reader::Reader;
use crate::model::keywords::is_comment;

/// How many schemas may extend others, each counted once for each that it extends.
const MAX_DESCENDANTS: usize = 20_000;

/// A schema that others extend.
#[derive(Clone)]
pub(super) struct Base<'a> {
    /// The name by which a value selects it.
    name: String,
    /// The definition of the schema's own content.
    own: String,
    /// The places of those that extend it.
    places: HashSet<usize>,
    /// The schemas that extend it, directly or not, with the values that select them.
    descendants: Vec<(String, Node<'a>)>,
}

impl<'a> Reader<'a> {
    /// Finds the schemas that others extend, among those that have a name in any of the documents.
    pub(super) fn find_bases(&mut self) {
        let mut named: Vec<(String, Node<'a>)> = self.queue.iter().cloned().collect();
        let mut known: HashSet<usize> = named.iter().map(|(_, node)| key(node)).collect();
        named.extend(self.named_elsewhere().into_iter().filter(|(_, node)| known.insert(key(node))));
        // Beside a reference, OpenAPI 3.0 knows no other members.
        let others = if self.version.keeps_siblings() { &["oneOf", "anyOf"][..] } else { &["oneOf", "anyOf", "$ref"] };
        let is_base = |node: &Node<'a>| {
            node.get("discriminator").as_ref().and_then(Self::tag_of).is_some()
                && others.iter().all(|key| node.get(key).is_none())
        };
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
                    named.push((value.to_owned(), found));
                }
            }
        }
        let mut children: HashMap<usize, Vec<&(String, Node<'a>)>> = HashMap::new();
        for child in named.iter().filter(|(_, node)| mapped.contains(&key(node)) || !self.is_only_nullable(node)) {
            for part in child.1.get("allOf").iter().flat_map(Node::items) {
                for parent in self.targets(&part) {
                    children.entry(key(&parent)).or_default().push(child);
                }
            }
        }
        let order: HashMap<usize, usize> = named.iter().enumerate().map(|(at, (_, node))| (key(node), at)).collect();
        let mut count = 0;
        for (name, node) in &bases {
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
                let own = self.taken.allot(&format!("{name}_base"));
                let name = name.clone();
                self.bases.insert(key(node), Base { name, own, places: found, descendants });
            }
        }
    }

    /// The place that a reference leads to, and those that it leads to in turn, as the index of a folder of schemas does.
    fn targets(&self, part: &Node<'a>) -> Vec<Node<'a>> {
        let mut found: Vec<Node<'a>> = Vec::new();
        let mut next = part.text("$ref").map(|reference| (part.document, reference));
        while let Some((document, reference)) = next.take().filter(|_| found.len() < MAX_HOPS) {
            let Ok(target) = self.documents.find(document, reference) else { break };
            next = target.text("$ref").map(|reference| (target.document, reference));
            found.push(target);
        }
        found
    }

    /// True if a schema is another one or null: OpenAPI 3.0 allows nothing beside a `$ref`, so it stands in an `allOf`.
    fn is_only_nullable(&self, node: &Node<'a>) -> bool {
        let is_beside = |key: &str| {
            matches!(key, "allOf" | "nullable" | "x-nullable") || is_comment(key) || ANNOTATIONS.contains(&key)
        };
        let parts = node.value.get("allOf").and_then(Value::as_array);
        self.is_nullable(node)
            && parts.is_some_and(|parts| parts.len() == 1)
            && node.members().all(|(key, _)| is_beside(key))
    }

    /// The definition that a part of `allOf` means if the schema around it extends another.
    pub(super) fn extended(&mut self, at: &Node<'a>, part: &Node<'a>) -> Option<String> {
        if self.bases.is_empty() {
            return None;
        }
        let is_base = |target: &Node<'a>| self.bases.get(&key(target)).is_some_and(|b| b.places.contains(&key(at)));
        let base = self.targets(part).into_iter().find(is_base)?;
        Some(self.own_of(&base))
    }

    /// The definition of a schema's own content, without those that extend it.
    fn own_of(&mut self, place: &Node<'a>) -> String {
        // The content of one that others extend is written with their union, so that has to be defined, too.
        let name = self.define(place);
        self.bases.get(&key(place)).map_or(name, |base| base.own.clone())
    }

    /// True if a member of a family accepts null: the own content of one that others extend does not.
    fn has_null(&self, member: &Node<'a>) -> bool {
        !self.bases.contains_key(&key(member)) && self.is_nullable(member)
    }

    /// The definitions of a schema that others extend: its own, and the union of all.
    pub(super) fn family(&mut self, name: &str, node: &Node<'a>) -> Option<[(String, Value); 2]> {
        let base = self.bases.get(&key(node))?.clone();
        // Null is a variant of the union: a part of a descendant would not be null.
        let mut own = self.content(node, node.value.as_object()?, 0);
        let discriminator = own.shift_remove("discriminator");
        let declared = node.get("discriminator")?;
        let property = Self::tag_of(&declared)?;
        let mut members: Vec<String> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut mapping = Map::new();
        let mut has_null = false;
        for (value, target) in declared.get("mapping").iter().flat_map(Node::members) {
            if let Ok(found) = self.selected(node, &target) {
                // A descendant that is extended itself is represented by its own content.
                let found = self.meant(found);
                let member = self.own_of(&found);
                has_null |= self.has_null(&found);
                mapping.insert(value.to_owned(), definition_reference(&member));
                if known.insert(member.clone()) {
                    members.push(member);
                }
            }
        }
        let implied =
            base.descendants.iter().map(|(name, place)| (name.as_str(), place)).chain([(base.name.as_str(), node)]);
        for (name, place) in implied {
            let member = self.own_of(place);
            has_null |= self.has_null(place);
            if known.insert(member.clone()) {
                let value = place.text("x-ms-discriminator-value").unwrap_or(name);
                mapping.entry(value).or_insert_with(|| definition_reference(&member));
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
        let union = if self.is_nullable(node) && !has_null { nullable(union) } else { Value::Object(union) };
        Some([(name.to_owned(), union), (base.own, Value::Object(own))])
    }
}

fn key(node: &Node<'_>) -> usize {
    node.key()
}
