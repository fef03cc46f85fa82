//! Discriminators: which schemas the values of a property select.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::document::Node;
use super::pointer::{self, definition_reference, percent_decoded};
use super::reader::Reader;
use super::schema::MAX_PARTS;
use super::text::kind;

impl<'a> Reader<'a> {
    /// The property of a discriminator: of an object, or in Swagger 2.0 the discriminator itself.
    pub(super) fn tag_of(node: &Node<'a>) -> Option<&'a str> {
        node.value.as_str().or_else(|| node.value.get("propertyName")?.as_str())
    }

    /// A discriminator whose mapping names definitions.
    pub(super) fn discriminator(&mut self, at: &Node<'a>, node: &Node<'a>) -> Option<Value> {
        let Some(property) = Self::tag_of(node) else {
            self.warn(node, "a discriminator without `propertyName`", "it was left out");
            return None;
        };
        let mut mapping = Map::new();
        for (value, target) in node.get("mapping").iter().flat_map(Node::members) {
            match self.selected(at, &target) {
                Ok(found) => {
                    mapping.insert(value.to_owned(), definition_reference(&self.define(&found)));
                }
                Err(message) => self.warn(&target, message, "this value of the discriminator was left out"),
            }
        }
        self.map_renamed(at, property, &mut mapping);
        let mut out = json!({ "propertyName": property });
        if let (Some(out), Some(default)) = (out.as_object_mut(), node.get("defaultMapping")) {
            match self.selected(at, &default) {
                Ok(found) => {
                    out.insert("defaultMapping".into(), definition_reference(&self.define(&found)));
                }
                Err(message) => self.warn(&default, message, "the default of the discriminator was left out"),
            }
        }
        if let (Some(out), false) = (out.as_object_mut(), mapping.is_empty()) {
            out.insert("mapping".into(), Value::Object(mapping));
        }
        Some(out)
    }

    /// Maps the names of variants whose definitions are called otherwise, as those of other documents may be: what nothing
    /// else selects is selected by the name that its reference gives (3.1, section 4.8.25.1).
    fn map_renamed(&mut self, at: &Node<'a>, property: &str, mapping: &mut Map<String, Value>) {
        let mut mapped: HashSet<String> = mapping.values().filter_map(Value::as_str).map(str::to_owned).collect();
        let variants = ["oneOf", "anyOf"].into_iter().filter_map(|key| at.get(key));
        for variant in variants.flat_map(|list| list.items().collect::<Vec<_>>()) {
            let Some(reference) = variant.text("$ref") else { continue };
            let name = reference.split_once('#').and_then(|(_, pointer)| pointer.rsplit_once('/'));
            let (Some((_, name)), Ok(found)) = (name, self.target(&variant, reference)) else { continue };
            let name = percent_decoded(name).replace("~1", "/").replace("~0", "~");
            let definition = self.define(&found);
            if definition != name && !self.has_tag(&found, property) {
                let target = definition_reference(&definition);
                if target.as_str().is_some_and(|target| mapped.insert(target.to_owned())) {
                    mapping.entry(name).or_insert(target);
                }
            }
        }
    }

    /// True if a schema, or a part of its `allOf`, says itself which values of a property select it.
    fn has_tag(&self, schema: &Node<'a>, property: &str) -> bool {
        let Ok(schema) = self.documents.resolve(schema.clone()) else { return false };
        let parts = schema.get("allOf");
        let parts = parts.iter().flat_map(Node::items).take(MAX_PARTS);
        let mut places = parts.filter_map(|part| self.documents.resolve(part).ok()).chain([schema]);
        places.any(|place| {
            let tag = place.get("properties").and_then(|properties| properties.get(property));
            let tag = tag.and_then(|tag| self.documents.resolve(tag).ok());
            tag.is_some_and(|tag| tag.get("const").is_some() || tag.get("enum").is_some())
        })
    }

    /// The schema that a value in a discriminator names.
    pub(super) fn selected(&self, at: &Node<'a>, target: &Node<'a>) -> Result<Node<'a>, String> {
        match target.value.as_str() {
            // A reference that is empty means the whole document, which is no schema.
            Some("") => Err("an empty text names no schema".to_owned()),
            Some(text) => self.schema_of_name(at, text),
            None => Err(format!("a discriminator selects a schema by its name, and this is {}", kind(target.value))),
        }
    }

    /// The schema that a bare name or a reference in a discriminator means.
    ///
    /// A name is first looked up among the schemas of the whole description, then among those of the document where it
    /// stands. Otherwise it is a file.
    fn schema_of_name(&self, at: &Node<'a>, text: &str) -> Result<Node<'a>, String> {
        let mut component = format!("#{}", self.version.schemas());
        pointer::push(&mut component, text);
        let main = self.documents.main_of(at.document);
        let found = self.documents.find(main, &component).or_else(|_| self.documents.find(at.document, &component));
        found.or_else(|_| self.target(at, text))
    }
}
