//! Resolves a `$ref`: inside the schema itself, in the shared table, or nowhere.

use std::collections::HashMap;

use serde_json::Value;

use super::standard::locate::Document;
use crate::pointer::percent_decoded;

/// What `#` means for a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// A self-contained schema: its own definitions come before those of the table.
    Schema,
    /// A definition of the table: the table comes first.
    Table,
}

/// A schema within the document that its references are relative to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Raw<'s> {
    pub(super) schema: &'s Value,
    /// The nearest enclosing schema with an `$id`, or the root.
    pub(super) base: &'s Value,
    pub(super) root: &'s Value,
    pub(super) home: Home,
    /// True if it applies under a condition: it asks nothing of a value, but what it declares may be there.
    pub(super) is_conditional: bool,
}

impl<'s> Raw<'s> {
    pub(super) fn root(schema: &'s Value, home: Home) -> Self {
        Raw { schema, base: schema, root: schema, home, is_conditional: false }
    }

    /// A schema inside this one.
    pub(super) fn to(self, schema: &'s Value) -> Self {
        // Up to draft 7, an anchor was written as an identifier that begins with `#`.
        let id = schema.get("$id").and_then(Value::as_str).filter(|id| !id.starts_with('#'));
        let base = if id.is_some() { schema } else { self.base };
        Raw { schema, base, ..self }
    }

    /// The same schema, where it applies under a condition.
    pub(super) fn under_condition(self) -> Self {
        Raw { is_conditional: true, ..self }
    }

    /// Identifies the schema, under a condition or without one. Addresses of values are even.
    pub(super) fn address(self) -> usize {
        std::ptr::from_ref(self.schema).addr() | usize::from(self.is_conditional)
    }
}

#[derive(Debug)]
pub(super) enum Found<'s> {
    Here(Raw<'s>),
    /// A key of the shared table.
    Shared(String),
    Nowhere,
}

/// The names in a document that references use.
struct Names<'s> {
    document: Document<'s>,
    /// The resources by the last segments of their URIs; `None` if several end with it.
    by_last: HashMap<String, Option<usize>>,
}

impl<'s> Names<'s> {
    fn read(root: &'s Value) -> Self {
        let document = Document::read(root);
        let mut by_last = HashMap::new();
        for (number, resource) in document.resources.iter().enumerate() {
            if let Some(last) = resource.uri.rsplit('/').next().filter(|last| !last.is_empty()) {
                by_last.entry(last.to_owned()).and_modify(|known| *known = None).or_insert(Some(number));
            }
        }
        Names { document, by_last }
    }

    /// The resource that a reference without its fragment leads to.
    fn resource(&self, from: usize, document: &str) -> Option<usize> {
        let is_relative = |uri: &str| !uri.contains(':');
        let last = || {
            let base = self.document.resources.get(from)?;
            let last = document.rsplit('/').next().unwrap_or(document);
            *self.by_last.get(last).filter(|_| is_relative(document) && is_relative(&base.uri))?
        };
        // If the base is not known, a relative reference is usually just the last segment.
        self.document.resource(from, document).or_else(last)
    }

    /// The schema behind a reference that is no JSON pointer.
    fn find(&self, from: Raw<'s>, document: &str, name: &str) -> Option<Raw<'s>> {
        let number = self.resource(self.document.home(from.base, 0), document)?;
        let resource = self.document.resources.get(number)?;
        let schema = if name.is_empty() { resource.root } else { *resource.anchors.get(name)? };
        Some(Raw { schema, base: resource.root, ..from })
    }
}

/// The names in documents, each of which is read for the first reference that needs them.
#[derive(Default)]
pub(super) struct Anchors<'s>(HashMap<usize, Names<'s>>);

impl<'s> Anchors<'s> {
    fn of(&mut self, root: &'s Value) -> &Names<'s> {
        self.0.entry(std::ptr::from_ref(root).addr()).or_insert_with(|| Names::read(root))
    }

    /// True if it depends on the way to a reference which of several schemas it leads to.
    pub(super) fn is_dynamic(&mut self, from: Raw<'s>, keyword: &str, reference: &str) -> bool {
        let name = reference.split_once('#').map_or("", |(_, name)| name);
        match keyword {
            "$dynamicRef" if !name.is_empty() => self.of(from.root).document.is_ambiguous(name),
            "$recursiveRef" if from.base.get("$recursiveAnchor") == Some(&Value::Bool(true)) => {
                self.of(from.root).document.resources.len() > 1
            }
            _ => false,
        }
    }

    /// Resolves a reference made from inside `from`.
    pub(super) fn resolve(&mut self, from: Raw<'s>, reference: &str) -> Found<'s> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let decoded = percent_decoded(fragment);
        let is_pointer = decoded.starts_with('/');
        let name = if is_pointer { "" } else { &*decoded };
        let start = if document.is_empty() && name.is_empty() {
            Raw { schema: from.base, ..from }
        } else {
            match self.of(from.root).find(from, document, name) {
                Some(start) => start,
                None => return Found::Nowhere,
            }
        };
        if !is_pointer {
            return Found::Here(start);
        }
        // Our references are written as they are, those of others percent-encoded: a name may look as if it were.
        let walked = |pointer: &str| walk(from, start.schema, pointer).or_else(|| walk(from, from.root, pointer));
        let other = || if fragment.contains('%') { walked(&decoded) } else { None };
        let inside = || walked(fragment).or_else(other).map(Found::Here);
        let shared = || table_key(fragment).or_else(|| table_key(&decoded)).map(Found::Shared);
        match from.home {
            Home::Schema => inside().or_else(shared),
            Home::Table => shared().or_else(inside),
        }
        .unwrap_or(Found::Nowhere)
    }
}

/// Follows a JSON pointer from a document, noting the `$id`s on the way.
fn walk<'s>(from: Raw<'s>, document: &'s Value, pointer: &str) -> Option<Raw<'s>> {
    let mut raw = Raw { schema: document, base: document, ..from };
    for token in pointer.strip_prefix('/')?.split('/') {
        raw = raw.to(raw.schema.pointer(&format!("/{token}"))?);
    }
    Some(raw)
}

/// `/$defs/Name`, `/definitions/Name` or `/components/schemas/Name`, with any rest, as a key of the table, as it is
/// written.
fn table_key(pointer: &str) -> Option<String> {
    ["/$defs/", "/definitions/", "/components/schemas/"]
        .iter()
        .find_map(|prefix| pointer.strip_prefix(prefix))
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
}

/// The key of the shared table that a reference names, if it is none to a part of the schema itself.
pub(super) fn key_of(reference: &str) -> Option<String> {
    table_key(reference.strip_prefix('#')?)
}
