//! The documents that a description is spread over, and `$ref`s between and within them.

mod follow;

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::anchor::Anchors;
use super::foreign::foreign_references;
use super::options::ReadOptions;
use super::pointer::{Path, Token, percent_decoded, tokens};
use super::short::{brief, short};
use super::text;
use crate::Diagnostic;
use crate::documents::source::Source;
use crate::model::text::has_scheme;

/// How many `$ref`s may be followed to find one place.
pub(super) const MAX_HOPS: usize = 64;

/// How many bytes the location of a document may have that another refers to: relative references add to it, each time.
const LONGEST_LOCATION: usize = 8 << 10;

/// Limits for the documents of a description.
#[derive(Debug, Clone, Copy)]
pub(in crate::documents) struct Limits {
    /// How many documents.
    pub(super) documents: usize,
    /// How many bytes all of them together have.
    pub(super) bytes: usize,
}

impl Limits {
    pub(in crate::documents) fn of(options: &ReadOptions) -> Self {
        Self { documents: options.max_documents, bytes: options.max_bytes }
    }
}

/// A text and its value.
pub(in crate::documents) struct Parsed {
    text: String,
    is_json: bool,
    pub(in crate::documents) value: Value,
    /// Diagnostics of what was left out of the value.
    pub(in crate::documents) diagnostics: Vec<Diagnostic>,
}

impl Parsed {
    pub(in crate::documents) fn new(text: String) -> Result<Self, Diagnostic> {
        let mut diagnostics = Vec::new();
        // A byte order mark has no meaning in UTF-8.
        let text = text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text);
        let (value, is_json) = text::parse(&text, &mut diagnostics)?;
        Ok(Self { text, is_json, value, diagnostics })
    }
}

/// A document as it was read.
pub(super) struct Document<'v> {
    /// Where it was read; `None` for a value that the caller had.
    pub(super) location: Option<String>,
    /// Its text, and true if that is JSON, for the positions of diagnostics.
    pub(super) text: Option<(String, bool)>,
    /// Its content.
    pub(in crate::documents) value: Cow<'v, Value>,
}

/// The number of a document, or the reason why it could not be read.
type Known = Result<usize, Arc<str>>;

/// A description: its root document first, then all that it refers to.
#[derive(Default)]
pub(in crate::documents) struct Documents<'v> {
    list: Vec<Document<'v>>,
    /// True if each document is a description of its own, so that none refers to another.
    are_apart: bool,
    /// The documents, by location.
    locations: BTreeMap<String, Known>,
    /// The documents that the relative references of a document mean, by its number and the reference.
    references: BTreeMap<(usize, String), Known>,
    /// The places with names of their own; looked up when a reference is found nowhere else.
    anchors: OnceCell<Anchors>,
    /// The documents that have schemas with an `$id`.
    with_ids: OnceCell<Vec<bool>>,
    /// How many bytes of references may still be followed: following long chains of long references is expensive.
    steps: OnceCell<Cell<usize>>,
    /// What references to nowhere may mean, by the document and the pointer: questions, empty if there is nothing similar.
    guesses: RefCell<BTreeMap<(usize, String), String>>,
}

/// How many references to nowhere are guessed, and among how many names.
const GUESSES: (usize, usize) = (32, 1_000);

/// How many bytes of references are followed in any description, and how many more for each byte that it has.
const STEPS: (usize, usize) = (16 << 20, 64);

/// A place in a document.
#[derive(Debug, Clone)]
pub(super) struct Node<'a> {
    pub(super) document: usize,
    pub(super) path: Path<'a>,
    pub(in crate::documents) value: &'a Value,
}

impl<'a> Node<'a> {
    /// The member of an object.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let (key, value) = self.value.as_object()?.get_key_value(key)?;
        Some(self.child(Token::Name(Cow::Borrowed(key)), value))
    }

    /// The item of a list.
    pub(super) fn item(&self, at: usize) -> Option<Self> {
        Some(self.child(Token::Number(at), self.value.as_array()?.get(at)?))
    }

    /// Identifies the place, however it was reached.
    pub(super) fn key(&self) -> usize {
        key(self.value)
    }

    /// A member that is text.
    pub(super) fn text(&self, key: &str) -> Option<&'a str> {
        self.value.get(key)?.as_str()
    }

    /// A member that is `true`.
    pub(super) fn is(&self, key: &str) -> bool {
        self.value.get(key).and_then(Value::as_bool).unwrap_or(false)
    }

    /// The members of an object; none of anything else.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let node = self.clone();
        let members = self.value.as_object().into_iter().flatten();
        members.map(move |(key, value)| (key.as_str(), node.child(Token::Name(Cow::Borrowed(key)), value)))
    }

    /// The items of a list; none of anything else.
    pub(super) fn items(&self) -> impl Iterator<Item = Self> + use<'a> {
        let node = self.clone();
        let items = self.value.as_array().into_iter().flatten().enumerate();
        items.map(move |(at, value)| node.child(Token::Number(at), value))
    }

    fn child(&self, token: Token<'a>, value: &'a Value) -> Self {
        Self { document: self.document, path: self.path.child(token, key(value)), value }
    }

    /// The place that one more step leads to.
    pub(super) fn step(&self, token: &str) -> Option<Self> {
        match self.value {
            Value::Array(_) => self.item(token.parse().ok()?),
            _ => self.get(token),
        }
    }
}

/// Documents are not moved while they are read, so an address identifies a value.
pub(super) fn key(value: &Value) -> usize {
    std::ptr::from_ref(value).addr()
}

impl<'v> Documents<'v> {
    /// A value that the caller has; references to other documents are not followed.
    pub(in crate::documents) fn of(value: &'v Value) -> Self {
        Self::of_all([value].into_iter())
    }

    /// Independent values; references are followed within one.
    pub(super) fn of_all(values: impl Iterator<Item = &'v Value>) -> Self {
        let list = values.map(|value| Document { location: None, text: None, value: Cow::Borrowed(value) });
        Self { list: list.collect(), are_apart: true, ..Self::default() }
    }

    /// Reads a document and all that it refers to, directly or not.
    pub(super) fn load(
        location: &str,
        source: &dyn Source,
        limits: Limits,
        diagnostics: &mut Vec<(usize, Diagnostic)>,
    ) -> Result<Self, Diagnostic> {
        let text = source.read(location, location).map_err(|error| Diagnostic::error("", error.message));
        let parsed = text.and_then(Parsed::new).map_err(|error| error.with_document(location))?;
        Self::load_parsed(location, parsed, source, limits, diagnostics)
    }

    /// A document that was read already, and all that it refers to, directly or not.
    pub(in crate::documents) fn load_parsed(
        location: &str,
        parsed: Parsed,
        source: &dyn Source,
        limits: Limits,
        diagnostics: &mut Vec<(usize, Diagnostic)>,
    ) -> Result<Self, Diagnostic> {
        let mut documents = Self::default();
        let mut room = limits.bytes;
        let failed = |message: String| Diagnostic::error("", message).with_document(location);
        take(&mut room, &parsed.text, limits).map_err(failed)?;
        documents.add(location, parsed, diagnostics);
        // References lead back to the root under the plain form of its location. The query of a URL may have slashes, too.
        let path = if has_scheme(location) { location.split(['?', '#']).next().unwrap_or(location) } else { location };
        let name = location.get(path.rfind(['/', '\\']).map_or(0, |at| at + 1)..).unwrap_or(location);
        documents.locations.insert(source.resolve(location, name), Ok(0));
        // The document's name for itself (3.2, section 4.1.1), wherever it was found.
        if let Some(own) = documents.root().text("$self") {
            let own = own.split('#').next().unwrap_or_default();
            let names = [own.to_owned(), source.resolve(location, own)];
            names.into_iter().for_each(|name| _ = documents.locations.entry(name).or_insert(Ok(0)));
        }
        let (mut next, mut failed) = (0, 0);
        while let Some(document) = documents.list.get(next) {
            let base = document.location.clone().unwrap_or_default();
            for reference in foreign_references(&document.value, documents.root().value) {
                let location = match has_scheme(&base) || has_scheme(&reference) {
                    // In a URL, an escape and what it stands for are different.
                    true => source.resolve(&base, &reference),
                    false => source.resolve(&base, &percent_decoded(&reference)),
                };
                let known = match documents.locations.get(&location) {
                    Some(known) => known.clone(),
                    None if location.len() > LONGEST_LOCATION => {
                        Err(format!("`{}` has more than {LONGEST_LOCATION} bytes", short(&location)).into())
                    }
                    // A document that cannot be read counts, too: requesting it has its price.
                    None if documents.list.len() + failed >= limits.documents => {
                        let (location, limit) = (short(&location), limits.documents);
                        Err(format!("`{location}` is not read: the description has more than {limit} documents").into())
                    }
                    None => {
                        let read = source.read(&location, documents.root_location()).map_err(|error| error.message);
                        let read = read.and_then(|text| take(&mut room, &text, limits).map(|()| text));
                        let parsed = read.and_then(|text| Parsed::new(text).map_err(|error| error.message));
                        match parsed {
                            Ok(parsed) => documents.add(&location, parsed, diagnostics),
                            Err(message) => {
                                failed += 1;
                                documents.locations.insert(location.clone(), Err(brief(&message).into()));
                            }
                        }
                        documents.locations.get(&location).cloned().unwrap_or(Ok(0))
                    }
                };
                documents.references.insert((next, reference), known);
            }
            next += 1;
        }
        Ok(documents)
    }

    fn add(&mut self, location: &str, parsed: Parsed, diagnostics: &mut Vec<(usize, Diagnostic)>) {
        let number = self.list.len();
        diagnostics.extend(parsed.diagnostics.into_iter().map(|diagnostic| (number, diagnostic)));
        self.list.push(Document {
            location: Some(location.to_owned()),
            text: Some((parsed.text, parsed.is_json)),
            value: Cow::Owned(parsed.value),
        });
        self.locations.insert(location.to_owned(), Ok(number));
    }

    fn root_location(&self) -> &str {
        self.get(0).and_then(|root| root.location.as_deref()).unwrap_or_default()
    }

    /// The document of that number; the root is number 0.
    pub(super) fn get(&self, number: usize) -> Option<&Document<'v>> {
        self.list.get(number)
    }

    /// The document whose names count in a document: the root of the description.
    pub(super) fn main_of(&self, document: usize) -> usize {
        if self.are_apart { document } else { 0 }
    }

    /// The whole root document.
    pub(super) fn root(&self) -> Node<'_> {
        let value = self.get(0).map_or(&Value::Null, |root| root.value.as_ref());
        Node { document: 0, path: Path::default(), value }
    }

    /// How many bytes the description has as text.
    pub(super) fn bytes(&self) -> usize {
        let text = |document: &Document<'_>| document.text.as_ref().map(|(text, _)| text.len());
        self.list.iter().map(|document| text(document).unwrap_or_else(|| text::weight(&document.value))).sum()
    }

    /// The place at a pointer.
    pub(super) fn at(&self, document: usize, pointer: &str) -> Option<Node<'_>> {
        let root = Node { document, path: Path::default(), value: &self.get(document)?.value };
        tokens(pointer).try_fold(root, |node, token| node.step(&token))
    }

    /// The place that a path leads to.
    fn along(&self, document: usize, path: &Path<'_>) -> Option<Node<'_>> {
        self.way(document, path).pop()
    }

    /// The places on a path, from the root to its end; none if the path does not exist.
    pub(super) fn way(&self, document: usize, path: &Path<'_>) -> Vec<Node<'_>> {
        let Some(root) = self.get(document) else { return Vec::new() };
        let mut way = vec![Node { document, path: Path::default(), value: &root.value }];
        for token in path.tokens() {
            let next = way.last().and_then(|node| match &token {
                Token::Name(name) => node.get(name),
                Token::Number(at) => node.item(*at),
            });
            match next {
                Some(next) => way.push(next),
                None => return Vec::new(),
            }
        }
        way
    }
}

/// Reserves room for a text.
fn take(room: &mut usize, text: &str, limits: Limits) -> Result<(), String> {
    let left = room.checked_sub(text.len());
    *room = left.ok_or_else(|| format!("the description has more than {} bytes", limits.bytes))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: Limits = Limits { documents: 10, bytes: 10_000 };

    #[test]
    fn a_query_with_slashes_is_no_folder() {
        let text = |value: Value| value.to_string();
        let root = "https://example.com/specs/api.json?ref=feature/x";
        let source = BTreeMap::from([
            (
                root.to_owned(),
                text(json!({ "a": { "$ref": "x" }, "b": { "$ref": "api.json?ref=feature/x#/c" }, "c": 1 })),
            ),
            ("https://example.com/specs/x".to_owned(), text(json!({ "found": 2 }))),
        ]);
        let mut diagnostics = Vec::new();
        let documents = Documents::load(root, &source, LIMITS, &mut diagnostics).unwrap();
        let found = |reference: &str| documents.find(0, reference).map(|node| node.value.clone());
        assert_eq!(found("x"), Ok(json!({ "found": 2 })));
        assert_eq!((found("api.json?ref=feature/x#/c"), documents.get(2).is_none()), (Ok(json!(1)), true));
    }

    #[test]
    fn references_lead_anywhere() {
        let value = json!({
            "paths": { "/pets/{id}": { "get": { "x": [{ "found": 1 }] } } },
            "a~b": { "found": 2 },
            "alias": { "$ref": "#/chain" },
            "chain": { "$ref": "#/a~0b" },
            "circle": { "$ref": "#/circle" },
            "100%": { "found": 3 },
        });
        let documents = Documents::of(&value);
        for (reference, found) in [
            ("#/paths/~1pets~1%7Bid%7D/get/x/0", Ok(1)),
            ("#/paths/~1pets~1{id}/get/x/0", Ok(1)),
            ("#/a~0b", Ok(2)),
            ("#/alias", Ok(2)),
            ("#/100%", Ok(3)),
            ("#/alias/found/nothing", Err("`#/alias/found/nothing` does not exist")),
            ("#/circle/x", Err("`#/circle/x` does not exist")),
            ("#/circle", Err("`#/circle` leads in a circle")),
            ("#name", Err("`#name` is not a JSON pointer, nor the name of an anchor")),
            ("x.yaml#/a", Err("`x.yaml` is another document, and there is no source to read it from")),
        ] {
            let node = documents.find(0, reference).and_then(|node| documents.resolve(node));
            let node = node.map(|node| node.value["found"].as_u64().unwrap());
            assert_eq!(node, found.map_err(str::to_owned), "{reference}");
        }
        let through = documents.find(0, "#/alias/found").unwrap();
        assert_eq!((through.path.text().as_str(), through.value), ("/a~0b/found", &json!(2)));
    }

    #[test]
    fn what_is_read_is_bounded() {
        let text = |next: usize| format!("a: {{$ref: '{next}.yaml#/a'}}\nb: {}\n", "x".repeat(1000));
        let source: BTreeMap<_, _> = (0..30).map(|at| (format!("{at}.yaml"), text(at + 1))).collect();
        for (limits, count, message) in [
            (LIMITS, 9, "the description has more than 10000 bytes"),
            (
                Limits { bytes: 100_000, ..LIMITS },
                10,
                "`10.yaml` is not read: the description has more than 10 documents",
            ),
        ] {
            let documents = Documents::load("0.yaml", &source, limits, &mut Vec::new()).unwrap();
            assert_eq!(documents.list.len(), count);
            assert_eq!(documents.resolve(documents.root().get("a").unwrap()).unwrap_err(), message);
        }
        assert!(Documents::load("0.yaml", &source, Limits { bytes: 10, ..LIMITS }, &mut Vec::new()).is_err());
    }

    #[test]
    fn the_place_of_a_document_is_bounded() {
        // Each document adds to the location of the next, which all its references would repeat.
        let folder = "x".repeat(3_000);
        let mut source = BTreeMap::new();
        let mut location = "0.yaml".to_owned();
        for at in 0..5 {
            let next = format!("{folder}/{}.yaml", at + 1);
            let others: String = (0..100).map(|n| format!("b{n}: {{$ref: 'z{n}.yaml'}}\n")).collect();
            source.insert(location.clone(), format!("a: {{$ref: '{next}'}}\n{others}"));
            location = source.resolve(&location, &next);
        }
        let load = |documents| {
            let limits = Limits { documents, bytes: 1 << 20 };
            Documents::load("0.yaml", &source, limits, &mut Vec::new()).unwrap()
        };
        let documents = load(1_000);
        assert_eq!(documents.list.len(), 3);
        let message = documents.find(2, "#/a").and_then(|last| documents.resolve(last)).unwrap_err();
        assert!(message.ends_with("...` has more than 8192 bytes") && message.len() < 200, "{message}");
        // What failed is told in a few words, and what was not requested is not kept.
        let failed = documents.references.values().filter_map(|known| known.as_ref().err());
        assert!(failed.clone().count() > 300 && failed.map(|told| told.len()).max() < Some(1_100));
        assert!(load(10).locations.len() <= 10);
    }

    #[test]
    fn a_fragment_refers_to_others_below_any_key() {
        let source = BTreeMap::from([
            ("api.yaml".to_owned(), "a: {$ref: 'parameters.yaml#/x-request-id'}\n".to_owned()),
            ("parameters.yaml".to_owned(), "x-request-id: {$ref: './id.yaml'}\n".to_owned()),
            ("id.yaml".to_owned(), "name: id\n".to_owned()),
        ]);
        let documents = Documents::load("api.yaml", &source, LIMITS, &mut Vec::new()).unwrap();
        let found = documents.resolve(documents.root().get("a").unwrap()).unwrap();
        assert_eq!(found.text("name"), Some("id"));
    }

    #[test]
    fn only_paths_are_decoded() {
        let text = |reference: &str| format!("a: {{$ref: '{reference}#/b'}}\n");
        let part = || "b: {name: x}\n".to_owned();
        let source = BTreeMap::from([
            ("specs/api.yaml".to_owned(), text("my%20part.yaml")),
            ("specs/my part.yaml".to_owned(), part()),
            ("https://git.example/api.yaml".to_owned(), text("files/docs%2Fpart.yaml?ref=a%26b")),
            ("https://git.example/files/docs%2Fpart.yaml?ref=a%26b".to_owned(), part()),
            ("api.yaml".to_owned(), text("https://git.example/files/docs%2Fpart.yaml?ref=a%26b")),
        ]);
        for location in ["specs/api.yaml", "https://git.example/api.yaml", "api.yaml"] {
            let documents = Documents::load(location, &source, LIMITS, &mut Vec::new()).unwrap();
            let found = documents.resolve(documents.root().get("a").unwrap()).unwrap();
            assert_eq!(found.text("name"), Some("x"), "{location}");
        }
    }

    #[test]
    fn documents_are_read_with_all_that_they_refer_to() {
        let source = BTreeMap::from([
            ("specs/api.yaml".to_owned(), "a: {$ref: 'parts/one.json#/b'}\nc: {$ref: gone.yaml}\n".to_owned()),
            ("specs/parts/one.json".to_owned(), r##"{"b": {"$ref": "../api.yaml#/d"}}"##.to_owned()),
            ("specs/../specs/api.yaml".to_owned(), "a: {$ref: 'parts/one.json#/b'}".to_owned()),
        ]);
        let mut diagnostics = Vec::new();
        let documents = Documents::load("specs/../specs/api.yaml", &source, LIMITS, &mut diagnostics).unwrap();
        assert_eq!(documents.list.len(), 2);
        let documents = Documents::load("specs/api.yaml", &source, LIMITS, &mut diagnostics).unwrap();
        assert_eq!(documents.list.len(), 2);
        assert_eq!(documents.find(0, "parts/one.json#/b").unwrap().document, 1);
        assert_eq!(documents.find(0, "gone.yaml").unwrap_err(), "there is no document `specs/gone.yaml`");
        let error = documents.resolve(documents.root().get("a").unwrap()).unwrap_err();
        assert_eq!(error, "`../api.yaml#/d` does not exist");
    }
}
