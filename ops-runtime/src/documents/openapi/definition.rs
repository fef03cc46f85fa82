//! Which places of the documents become definitions, and their names.

use serde_json::Value;

use super::document::{MAX_HOPS, Node};
use super::name::stem;
use super::pointer::{Token, reference_to};
use super::reader::Reader;
use super::short::short;
use super::text::{LONGEST, word};
use super::version::Version;
use crate::Definition;
use crate::model::cut;
use crate::model::keywords::{Holds, holds};

impl<'a> Reader<'a> {
    /// Names the schemas of the components, verbatim unless a name is too long: references that are short may lead to it.
    pub(super) fn define_components(&mut self) {
        let root = self.documents.root();
        let schemas = if self.version == Version::V20 {
            self.map(&root, "definitions")
        } else {
            root.get("components").map(|components| self.map(&components, "schemas")).unwrap_or_default()
        };
        let is_kept = |name: &str| !name.is_empty() && name.len() <= LONGEST;
        // Names that are made up yield to these.
        let kept = schemas.iter().map(|(name, _)| *name).filter(|name| is_kept(name));
        kept.for_each(|name| _ = self.taken.take(name));
        for (name, node) in schemas {
            let name = match name {
                "" => self.taken.allot("schema"),
                _ if is_kept(name) => name.to_owned(),
                _ => {
                    self.warn(&node, format!("the name of a schema has more than {LONGEST} bytes"), "it was cut");
                    self.taken.allot(cut::start(name, LONGEST))
                }
            };
            // A component that only refers to another file gives that file its name here.
            let elsewhere = match node.text("$ref") {
                Some(reference) if !self.adds_to_its_reference(&node) => {
                    self.documents.find(0, reference).ok().filter(|found| found.document != 0)
                }
                _ => None,
            };
            self.names.insert(node.key(), name.clone());
            let node = match elsewhere {
                Some(found) if !self.names.contains_key(&found.key()) => {
                    self.names.insert(found.key(), name.clone());
                    found
                }
                _ => node,
            };
            self.queue.push_back((name, node));
        }
        self.find_bases();
    }

    /// The name of the definition that a place becomes.
    pub(super) fn define(&mut self, node: &Node<'a>) -> String {
        if let Some(name) = self.names.get(&node.key()) {
            return name.clone();
        }
        let wish = self.readable(node);
        let (name, is_new) = self.share(node, &wish);
        self.names.insert(node.key(), name.clone());
        if is_new {
            self.queue.push_back((name.clone(), node.clone()));
        }
        name
    }

    /// The name that a place without one of its own may get.
    pub(super) fn readable(&self, node: &Node<'a>) -> String {
        let location = self.documents.get(node.document).and_then(|document| document.location.as_deref());
        readable(&node.path.tokens(), location)
    }

    /// The schemas of other documents that have a name: components and definitions, the members of a document that holds
    /// nothing but parts by name, and documents that are schemas themselves. The names are as the documents write them.
    pub(super) fn named_elsewhere(&self) -> Vec<(String, Node<'a>)> {
        let (mut named, mut whole) = (Vec::new(), Vec::new());
        for root in (1..).map_while(|number| self.documents.at(number, "")) {
            let is_part = |(key, node): (&str, Node<'a>)| {
                node.value.is_object() && key != "discriminator" && holds(key) == Holds::Other
            };
            let lists = ["/components/schemas", "/definitions", "/$defs"];
            let mut lists: Vec<_> = lists.iter().filter_map(|list| self.documents.at(root.document, list)).collect();
            if root.members().all(is_part) {
                lists.push(root);
            } else {
                let location = self.documents.get(root.document).and_then(|document| document.location.as_deref());
                whole.push((location.and_then(stem).unwrap_or("schema").to_owned(), root));
            }
            let members = lists.iter().flat_map(Node::members);
            named.extend(members.map(|(name, node)| (name.to_owned(), self.meant(node))));
        }
        named.extend(whole);
        named
    }

    /// The schema that a place means: the one that it refers to, if it says nothing else.
    pub(super) fn meant(&self, mut node: Node<'a>) -> Node<'a> {
        for _ in 0..MAX_HOPS {
            let reference = node.text("$ref").filter(|_| !self.adds_to_its_reference(&node));
            match reference.and_then(|reference| self.documents.find(node.document, reference).ok()) {
                Some(found) => node = found,
                None => break,
            }
        }
        node
    }

    /// Reads all places that have a name, and those that they refer to in turn.
    pub(super) fn read_definitions(&mut self) {
        while let Some((name, node)) = self.queue.pop_front() {
            if let Some(family) = self.family(&name, &node) {
                let family = family.map(|(name, schema)| Definition::from_value(name, schema));
                self.definitions.extend(family);
                continue;
            }
            let mut schema = self.schema(&node);
            // Definitions that are only names of each other describe nothing.
            if schema == reference_to(&name) || self.leads_in_a_circle(&node) {
                self.warn(&node, format!("`{}` is defined as itself", short(&name)), "any value is accepted");
                schema = Value::Bool(true);
            }
            self.definitions.push(Definition::from_value(name, schema));
        }
    }

    fn leads_in_a_circle(&self, node: &Node<'a>) -> bool {
        node.text("$ref").is_some_and(|reference| match self.documents.find(node.document, reference) {
            Ok(found) => self.documents.resolve(found).is_err_and(|message| message.ends_with("in a circle")),
            Err(_) => false,
        })
    }
}

/// A name for the place at a pointer.
fn readable(tokens: &[Token<'_>], location: Option<&str>) -> String {
    let tokens: Vec<_> = tokens.iter().map(Token::name).collect();
    let mut words: Vec<&str> = Vec::new();
    let mut after = "";
    for (at, token) in tokens.iter().enumerate() {
        let token = token.as_ref();
        match (after, token) {
            // The last name is enough: `#/definitions/Pet`, `#/components/schemas/Pet/$defs/Toy`.
            ("schemas" | "definitions" | "$defs", _) if at + 1 == tokens.len() => words = vec![token],
            ("content", _) => {}
            ("schemas" | "definitions" | "$defs" | "properties" | "paths" | "responses" | "parameters", _) => {
                words.push(token)
            }
            (
                _,
                "components" | "schemas" | "definitions" | "$defs" | "properties" | "paths" | "responses"
                | "parameters" | "content" | "schema",
            ) => {}
            _ => words.push(token),
        }
        // A property or a path may be named like a part of a document.
        after = match after {
            "schemas" | "definitions" | "$defs" | "properties" | "paths" | "responses" | "content" | "parameters" => "",
            _ => token,
        };
    }
    if words.is_empty() {
        words.extend(location.and_then(stem));
    }
    if let [first, _, _, _, _, _, .., before, last] = words.as_slice() {
        words = vec![first, before, last];
    }
    let words: Vec<&str> = words.into_iter().map(|word| cut::start(word, LONGEST)).collect();
    let name = cut::start(&word(&words.join("_")), LONGEST).trim_end_matches('_').to_owned();
    if name.is_empty() { "schema".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::openapi::pointer::tokens;

    #[test]
    fn places_have_readable_names() {
        for (pointer, name) in [
            ("/components/schemas/Pet", "Pet"),
            ("/components/schemas/Pet/properties/tag", "Pet_tag"),
            ("/components/schemas/Pet/properties/schema", "Pet_schema"),
            ("/components/schemas/Pet/$defs/Toy", "Toy"),
            ("/definitions/com.example.Pet", "com_example_Pet"),
            ("/components/responses/NotFound/content/application~1json/schema", "NotFound"),
            ("/paths/~1pets~1{id}/get/responses/200/content/application~1json/schema/items", "pets_id_get_200_items"),
            ("/components/schemas/Pet/allOf/0", "Pet_allOf_0"),
            ("/components/schemas/A/items/items/items/items/items/items/items/items", "A_items_items"),
            ("", "pets"),
            ("/«»", "schema"),
        ] {
            let tokens: Vec<Token<'_>> = tokens(pointer).map(Token::Name).collect();
            assert_eq!(readable(&tokens, Some("specs/pets.yaml")), name, "{pointer}");
        }
        assert_eq!(readable(&[], Some("https://h/pets.yaml?token=a/b.c")), "pets");
    }
}
