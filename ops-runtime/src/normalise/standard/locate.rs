//! The places of schemas in a document: its resources, their anchors, and the targets of references.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Map, Value};

use super::uri::resolve;
use crate::model::keywords;
use crate::pointer::percent_decoded;

/// A schema with an identifier of its own, or the whole document.
pub(in crate::normalise) struct Resource<'s> {
    pub(in crate::normalise) root: &'s Value,
    pub(in crate::normalise) uri: String,
    pub(in crate::normalise) anchors: HashMap<&'s str, &'s Value>,
    pub(super) dynamic: HashMap<&'s str, &'s Value>,
}

/// The resources of a document.
pub(in crate::normalise) struct Document<'s> {
    pub(in crate::normalise) resources: Vec<Resource<'s>>,
    by_uri: HashMap<String, usize>,
    /// In how many resources a name is that of a `$dynamicAnchor`.
    dynamic: HashMap<&'s str, usize>,
    /// The resources of schemas that do not belong to the first, by the schema's address.
    homes: HashMap<usize, usize>,
}

/// A schema and the resource that it belongs to.
#[derive(Clone, Copy)]
pub(super) struct Place<'s> {
    pub(super) schema: &'s Value,
    pub(super) resource: usize,
}

pub(super) fn address(schema: &Value) -> usize {
    std::ptr::from_ref(schema).addr()
}

impl<'s> Document<'s> {
    pub(in crate::normalise) fn read(root: &'s Value) -> Self {
        let first = Resource { root, uri: String::new(), anchors: HashMap::new(), dynamic: HashMap::new() };
        let mut document =
            Document { resources: vec![first], by_uri: HashMap::new(), dynamic: HashMap::new(), homes: HashMap::new() };
        let mut open = vec![Place { schema: root, resource: 0 }];
        while let Some(place) = open.pop() {
            let Value::Object(map) = place.schema else { continue };
            let resource = document.note(place, map);
            open.extend(keywords::all(map).map(|schema| Place { schema, resource }));
        }
        document
    }

    /// Notes the names of a schema; returns the resource that it belongs to.
    fn note(&mut self, place: Place<'s>, map: &'s Map<String, Value>) -> usize {
        let text = |keyword: &str| map.get(keyword).and_then(Value::as_str);
        let mut resource = place.resource;
        if let Some(id) = text("$id").filter(|id| !id.starts_with('#')) {
            let uri = resolve(self.resources.get(resource).map_or("", |resource| &resource.uri), id);
            if address(place.schema) == self.resources.first().map_or(0, |first| address(first.root)) {
                resource = 0;
                self.resources.iter_mut().take(1).for_each(|first| first.uri.clone_from(&uri));
            } else {
                resource = self.resources.len();
                let (anchors, dynamic) = (HashMap::new(), HashMap::new());
                self.resources.push(Resource { root: place.schema, uri: uri.clone(), anchors, dynamic });
            }
            self.by_uri.entry(uri).or_insert(resource);
        }
        if resource != 0 {
            self.homes.insert(address(place.schema), resource);
        }
        if let Some(home) = self.resources.get_mut(resource) {
            let fragment = text("$id").and_then(|id| id.strip_prefix('#'));
            for name in text("$anchor").into_iter().chain(fragment) {
                home.anchors.entry(name).or_insert(place.schema);
            }
            if let Some(name) = text("$dynamicAnchor") {
                home.anchors.entry(name).or_insert(place.schema);
                if let Entry::Vacant(entry) = home.dynamic.entry(name) {
                    entry.insert(place.schema);
                    *self.dynamic.entry(name).or_default() += 1;
                }
            }
        }
        resource
    }

    /// True if several resources have a `$dynamicAnchor` of this name.
    pub(in crate::normalise) fn is_ambiguous(&self, name: &str) -> bool {
        self.dynamic.get(name).is_some_and(|count| *count > 1)
    }

    /// The resource of a schema that was found inside another.
    pub(in crate::normalise) fn home(&self, schema: &Value, outer: usize) -> usize {
        self.homes.get(&address(schema)).copied().unwrap_or(outer)
    }

    /// The resource that a reference without its fragment leads to.
    pub(in crate::normalise) fn resource(&self, from: usize, document: &str) -> Option<usize> {
        if document.is_empty() {
            return Some(from);
        }
        let uri = resolve(&self.resources.get(from)?.uri, document);
        // An unknown base can't be resolved against; the identifier may have been written the same way.
        self.by_uri.get(&uri).or_else(|| self.by_uri.get(document)).copied()
    }

    /// The target of a reference, and its fragment if that is a name.
    pub(super) fn find<'r>(&self, from: usize, reference: &'r str) -> Option<(Place<'s>, &'r str)> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = self.resource(from, document)?;
        let home = self.resources.get(resource)?;
        if fragment.is_empty() {
            return Some((Place { schema: home.root, resource }, ""));
        }
        let decoded = percent_decoded(fragment);
        if !decoded.starts_with('/') {
            return Some((Place { schema: home.anchors.get(&*decoded)?, resource }, fragment));
        }
        // Our references are written as they are: a name may look as if it were percent-encoded.
        let part = |root: &'s Value| root.pointer(fragment).or_else(|| root.pointer(&decoded));
        let inner = part(home.root).map(|schema| Place { schema, resource });
        // Definitions of the whole document are meant, even with identifiers between.
        let whole = || Some(Place { schema: part(self.resources.first()?.root)?, resource: 0 });
        let place = inner.or_else(whole)?;
        Some((Place { resource: self.home(place.schema, place.resource), ..place }, ""))
    }
}
