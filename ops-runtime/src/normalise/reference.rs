//! Resolves a `$ref`: inside the schema itself, in the shared table, or nowhere.

use std::collections::HashMap;

use serde_json::Value;

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
        let base = if schema.get("$id").is_some_and(Value::is_string) { schema } else { self.base };
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

/// The `$id`s and anchors of a document, collected for the first reference that needs them.
#[derive(Debug, Default)]
pub(super) struct Anchors<'s>(HashMap<usize, HashMap<&'s str, &'s Value>>);

impl<'s> Anchors<'s> {
    fn of(&mut self, root: &'s Value) -> &HashMap<&'s str, &'s Value> {
        self.0.entry(std::ptr::from_ref(root).addr()).or_insert_with(|| {
            let mut names = HashMap::new();
            let mut open = vec![root];
            while let Some(value) = open.pop() {
                match value {
                    Value::Object(map) => {
                        for keyword in ["$id", "$anchor", "$dynamicAnchor"] {
                            if let Some(name) = map.get(keyword).and_then(Value::as_str) {
                                names.entry(name).or_insert(value);
                                // `$ref`s are relative to the base URI, so usually just the last segment.
                                if let Some((_, last)) = name.rsplit_once('/').filter(|(_, last)| !last.is_empty()) {
                                    names.entry(last).or_insert(value);
                                }
                            }
                        }
                        open.extend(map.values());
                    }
                    Value::Array(items) => open.extend(items),
                    _ => {}
                }
            }
            names
        })
    }

    /// Resolves a reference made from inside `from`.
    pub(super) fn resolve(&mut self, from: Raw<'s>, reference: &str) -> Found<'s> {
        let (document, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let base = if document.is_empty() {
            from.base
        } else {
            let last = document.rsplit('/').next().unwrap_or(document);
            let names = self.of(from.root);
            match names.get(document).or_else(|| names.get(last)) {
                Some(schema) => schema,
                None => return Found::Nowhere,
            }
        };
        if fragment.is_empty() {
            return Found::Here(Raw { schema: base, base, ..from });
        }
        let decoded = percent_decoded(fragment);
        if !decoded.starts_with('/') {
            return match self.of(from.root).get(&*decoded) {
                Some(schema) => Found::Here(from.to(schema)),
                None => Found::Nowhere,
            };
        }
        // Our references are written as they are, those of others percent-encoded: a name may look as if it were.
        let walked = |pointer: &str| walk(from, base, pointer).or_else(|| walk(from, from.root, pointer));
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
