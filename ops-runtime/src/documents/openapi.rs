//! Reading OpenAPI documents into operations.
//!
//! ```
//! use ops_runtime::openapi::{self, ReadOptions};
//!
//! let document = serde_json::json!({
//!     "openapi": "3.1.0",
//!     "info": { "title": "Pet shop", "version": "2.0.0" },
//!     "paths": { "/pets/{id}": { "get": {
//!         "operationId": "showPet",
//!         "parameters": [{ "name": "id", "in": "path", "required": true, "schema": { "type": "integer" } }],
//!         "responses": { "200": {
//!             "description": "A pet",
//!             "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Pet" } } },
//!         } },
//!     } } },
//!     "components": { "schemas": { "Pet": { "type": "object" } } },
//! });
//! let (api, diagnostics) = openapi::read(&document, &ReadOptions::new()).unwrap();
//! assert_eq!(api.operations[0].id, "pet_shop.showPet");
//! assert_eq!(api.definitions.as_slice()[0].name, "Pet");
//! assert!(diagnostics.is_empty());
//! ```
//!
//! Only the schema or operation that cannot be read is left out, and a diagnostic names it: the rest of the document is
//! read. Schemas keep their names and refer to each other as `#/$defs/Name`, in JSON Schema 2020-12.
//!
//! OpenAPI 3.0, 3.1 and 3.2 are read, and Swagger 2.0; JSON and YAML; documents spread over several files, with
//! references to any part of them.
//!
//! The input of an operation is an object with a property for each parameter, under the parameter's name, and one for
//! the request body, `body`. If two parameters have one name, the later is `{name}_{location}`; beside a parameter
//! called `body`, the request body is `request_body`. If an endpoint takes several content types, the optional property
//! `contentType` selects one; if their schemas differ, the body is a `oneOf` of them. Bytes are
//! `{"type":"string","format":"binary"}`, base64 is `{"type":"string","format":"byte"}`. Base64url keeps its
//! `contentEncoding`.
//!
//! If a boolean such as `stream` in the body or the query chooses between one result and a stream, the operations set
//! it themselves: `x_stream` sends `true`, and `x` sends `false` only if the document's default is `true` or the
//! property is required. Neither input has it. A definition with the property keeps its name and loses the property. If
//! something else refers to the definition too, the inputs refer to `{Name}_without_stream` instead.
//!
//! Webhooks, and the callbacks of operations, are in `Api::webhooks`: the output of each is the JSON that the API sends. A
//! webhook is called by its key, a callback by its own; the second of one name has that of its operation before it.
//!
//! Different successes make a `oneOf`, each titled by the name of its status (`Ok`, `Created`, ...). Events
//! (`text/event-stream`) and lines of JSON (`application/jsonl` and its kin) make subscriptions: `x_stream` if the
//! endpoint also gives one result. An operation changes nothing if its method is `GET`, `HEAD`, `OPTIONS` or `QUERY`.
//! `x-ops-kind: query` beside `operationId` says so of another one, and `x-ops-kind: mutation` the contrary; both count
//! for the stream, too. A schema with a discriminator that others name in `allOf` is a union of these; its
//! own content is the definition `{Name}_base`. `readOnly` and `writeOnly` stay in the schemas, and so does `required`:
//! code that reads them for one direction must drop the properties that only the other side sends.

// An error ends the reading of a document, so nothing is gained by keeping it small.
#![allow(clippy::result_large_err)]

mod anchor;
mod body;
mod change;
mod copies;
mod definition;
mod diagnostics;
mod discriminator;
pub(in crate::documents) mod document;
mod enumeration;
mod event;
mod foreign;
mod inherit;
mod media;
mod name;
mod null;
mod operation;
mod options;
mod others;
mod parameter;
pub(crate) mod pointer;
mod position;
pub(in crate::documents) mod reader;
mod repeated;
mod response;
mod schema;
mod security;
mod server;
mod short;
pub(crate) mod standalone;
mod swagger;
mod switch;
mod text;
mod variants;
mod version;
mod webhook;
mod yaml;

use serde_core::de::IgnoredAny;
use serde_json::Value;

pub use self::change::{Change, Part, changes};
use self::document::{Documents, Limits};
#[cfg(feature = "mcp-schema")]
pub(crate) use self::name::namespace;
pub use self::options::ReadOptions;
use self::reader::Reader;
use self::version::Version;
pub use crate::documents::dir::{Directory, FileNamespace, dir_namespaces, file_namespace, load_dir};
use crate::documents::source::Source;
use crate::{Api, Definitions, Diagnostic};

/// Reads the document at a location, and all that it refers to.
///
/// # Errors
/// If there is no such document, or if it is not an OpenAPI document.
pub fn load(location: &str, source: &dyn Source, options: &ReadOptions) -> Result<(Api, Vec<Diagnostic>), Diagnostic> {
    let mut diagnostics = Vec::new();
    let documents = Documents::load(location, source, Limits::of(options), &mut diagnostics)?;
    read_documents(&documents, options, diagnostics).map_err(|error| error.with_document(location))
}

/// The value of a JSON or YAML text, told apart by content, as [`read`] takes it.
///
/// It holds no value nested deeper than 512 levels. If a key occurs more than once, its last value counts.
///
/// # Errors
/// If the text is neither.
pub fn parse(text: &str) -> Result<Value, Diagnostic> {
    parse_with_diagnostics(text).map(|(value, _)| value)
}

/// Parses a JSON or YAML text like [`parse`], and also returns a diagnostic for each part that was left out.
///
/// ```
/// let (value, diagnostics) = ops_runtime::openapi::parse_with_diagnostics("a: 1\na: 2").unwrap();
/// assert_eq!(value, serde_json::json!({ "a": 2 }));
/// assert_eq!(diagnostics.len(), 1);
/// ```
///
/// # Errors
/// If the text is neither.
pub fn parse_with_diagnostics(text: &str) -> Result<(Value, Vec<Diagnostic>), Diagnostic> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut diagnostics = Vec::new();
    let (value, _) = text::parse(text, &mut diagnostics)?;
    Ok((value, diagnostics))
}

/// Finds the line and the column, from 1, of the values at JSON pointers in a text.
///
/// ```
/// let text = "paths:\n  /pets:\n    get: {}\n";
/// let found = ops_runtime::openapi::locate(text, &["/paths/~1pets/get", "/paths/~1toys"]);
/// assert_eq!(found, [Some((3, 5)), None]);
/// ```
pub fn locate(text: &str, pointers: &[&str]) -> Vec<Option<(usize, usize)>> {
    let wanted = pointers.iter().copied().collect();
    let is_json = text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok();
    let found = position::exact(text, is_json, &wanted);
    pointers.iter().map(|pointer| found.get(*pointer).copied()).collect()
}

/// Reads a document that is a JSON value already. References to other documents are not followed.
///
/// # Errors
/// If the value is not an OpenAPI document.
pub fn read(document: &Value, options: &ReadOptions) -> Result<(Api, Vec<Diagnostic>), Diagnostic> {
    read_documents(&Documents::of(document), options, Vec::new())
}

pub(in crate::documents) fn read_documents(
    documents: &Documents<'_>,
    options: &ReadOptions,
    diagnostics: Vec<(usize, Diagnostic)>,
) -> Result<(Api, Vec<Diagnostic>), Diagnostic> {
    let root = documents.root();
    let version = Version::of(root.value)?;
    let has = |key: &str| root.value.get(key).is_some_and(Value::is_object);
    if !has("paths") && (version <= Version::V30 || !has("webhooks") && !has("components")) {
        let error = Diagnostic::error("/paths", "the document has no `paths`, so it describes no operations");
        return Err(error.with_help("write `paths: {}` if that is meant"));
    }
    let mut reader = Reader::new(documents, version);
    reader.rust_types = options.rust_types;
    reader.examples = options.examples;
    reader.told.add(diagnostics);
    let location = documents.get(0).and_then(|root| root.location.as_deref());
    let info = root.get("info");
    if let Some(info) = info.as_ref().filter(|info| info.get("version").is_none()) {
        reader.note(info, "the document does not say its version", "its operations have `1.0.0`");
    }
    let title = info.as_ref().and_then(|info| info.text("title"));
    let namespace = match options.namespace.as_deref().map(|name| name.replace('.', "_")) {
        Some(namespace) if !namespace.is_empty() => namespace,
        _ => name::namespace(location, title),
    };
    reader.define_components();
    let mut operations = reader.operations(&namespace);
    let webhooks = reader.webhooks(&namespace);
    reader.read_definitions();
    reader.settle_switches(&mut operations, &webhooks);
    let api = Api::new(Definitions::new(std::mem::take(&mut reader.definitions)), operations);
    let api = api.with_webhooks(webhooks);
    Ok((api, reader.finished_diagnostics()))
}
