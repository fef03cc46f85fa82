//! Inheritance: a schema with a discriminator stands for all that extend it by `allOf` (OpenAPI 3.1, section 4.8.25.3).
//!
//! References to such a schema mean a union of its descendants; the descendants mean its own content. So it becomes two
//! definitions: the union under its own name, and its content under another name.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value, json};

use super::document::Node;
use super::null::nullable;
use super::pointer::{definition_reference, reference_to};
use super::reader::Reader;

/// How many schemas may extend others, each counted once for each that it extends.
const MAX_DESCENDANTS: usize = 20_000;

/// A schema that others extend.
#[derive(Clone)]
pub(super) struct Base<'a> {
    /// The definition of the schema's own content.
    own: String,
    /// The places of those that extend it.
    places: HashSet<usize>,
    /// The schemas that extend it, directly or not, with the values that select them.
    descendants: Vec<(String, Node<'a>)>,
}

impl<'a> Reader<'a> {
    /// Finds the schemas that others extend, among those that have a name.
    pub(super) fn find_bases(&mut self) {
        let named: Vec<(String, Node<'a>)> = self.queue.iter().cloned().collect();
        // Beside a reference, OpenAPI 3.0 knows no other members.
        let others = if self.version.keeps_siblings() { &["oneOf", "anyOf"][..] } else { &["oneOf", "anyOf", "$ref"] };
        let is_base = |node: &Node<'a>| {
            node.get("discriminator").as_ref().and_then(Self::tag_of).is_some()
                && others.iter().all(|key| node.get(key).is_none())
        };
        let bases: Vec<&(String, Node<'a>)> = named.iter().filter(|(_, node)| is_base(node)).collect();
        if bases.is_empty() {
            return;
        }
        let mut children: HashMap<usize, Vec<&(String, Node<'a>)>> = HashMap::new();
        for child in &named {
            for part in child.1.get("allOf").iter().flat_map(Node::items) {
                let parent = part.text("$ref").and_then(|reference| self.documents.find(part.document, reference).ok());
                if let Some(parent) = parent {
                    children.entry(key(&parent)).or_default().push(child);
                }
            }
        }
        let order: HashMap<usize, usize> = named.iter().enumerate().map(|(at, (_, node))| (key(node), at)).collect();
        let mut count = 0;
        for (name, node) in bases {
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
                self.bases.insert(key(node), Base { own, places: found, descendants });
            }
        }
    }

    /// The definition that a part of `allOf` means if the schema around it extends another.
    pub(super) fn extended(&self, at: &Node<'a>, part: &Node<'a>) -> Option<String> {
        if self.bases.is_empty() {
            return None;
        }
        let target = self.documents.find(part.document, part.text("$ref")?).ok()?;
        let base = self.bases.get(&key(&target))?;
        base.places.contains(&key(at)).then(|| base.own.clone())
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
        // A descendant that is extended itself is represented by its own content.
        let concrete = |reader: &mut Self, place: &Node<'a>| match reader.bases.get(&key(place)) {
            Some(base) => base.own.clone(),
            None => reader.define(place),
        };
        let mut members: Vec<String> = Vec::new();
        let mut known: HashSet<String> = HashSet::new();
        let mut mapping = Map::new();
        let mut has_null = false;
        for (value, target) in declared.get("mapping").iter().flat_map(Node::members) {
            if let Ok(found) = self.selected(node, &target) {
                let member = concrete(self, &found);
                has_null |= self.has_null(&found);
                mapping.insert(value.to_owned(), definition_reference(&member));
                if known.insert(member.clone()) {
                    members.push(member);
                }
            }
        }
        let implied = base.descendants.iter().map(|(name, place)| (name.as_str(), place)).chain([(name, node)]);
        for (name, place) in implied {
            let member = concrete(self, place);
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
