//! The files of a folder that `ops serve` uses: its documents, including those in subfolders, and its configurations of
//! MCP servers.
//!
//! The files are those that `ops inspect` and `ops generate` read. A configuration in a subfolder starts no server: it
//! may have come with other files, and the user, who named the outer folder, may not know of it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ops_codegen::folder::{Files, Kind, files, kind};
use ops_runtime::openapi::{self, FileNamespace, dir_namespaces};
use ops_runtime::spec::Diagnostic;
use serde_json::Value;

use crate::failure::Failure;
use crate::server::holds_config;

/// A document that is served.
pub(super) struct Document {
    /// A file or a URL.
    pub(super) location: String,
    /// The namespace by the subfolders; `None` for a file in no subfolder.
    pub(super) namespace: Option<FileNamespace>,
    /// The named folder, within which references are followed; `None` for a document that was named itself.
    pub(super) within: Option<PathBuf>,
}

impl Document {
    /// A document without folders in its namespace.
    pub(super) fn new(location: String) -> Self {
        Self { location, namespace: None, within: None }
    }
}

/// The contents of a folder.
pub(super) struct Found {
    pub(super) documents: Vec<Document>,
    pub(super) configurations: Vec<String>,
    /// The files and folders that are not served, and why.
    pub(super) others: Vec<Diagnostic>,
}

/// Looks at all files of a folder.
///
/// # Errors
/// If the folder itself cannot be read.
pub(super) fn read(folder: &str) -> Result<Found, Failure> {
    let root = Path::new(folder);
    let Files { paths, unread } = files(root).map_err(|error| Failure::Failed(error.to_string()))?;
    let (mut documents, mut configurations, mut unknown, mut others) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    others.extend(
        unread
            .iter()
            .map(|(folder, error)| left_out(&folder.to_string_lossy(), &format!("the folder cannot be read: {error}"))),
    );
    let mut parts = BTreeSet::new();
    for path in paths {
        let Ok(text) = std::fs::read_to_string(&path) else {
            documents.push(path);
            continue;
        };
        let beside = path.parent().unwrap_or(Path::new(""));
        parts.extend(references(&text).map(|file| beside.join(file)));
        let is_below = path.parent() != Some(root);
        let location = path.to_string_lossy().into_owned();
        match kind_of(&text) {
            // Reading it as a document reports what is wrong.
            None | Some(Kind::OpenApi | Kind::Tools) => documents.push(path),
            Some(Kind::Spec) => {
                let message = "the file describes an operation of a program, which alone has it";
                others.push(left_out(&location, message));
            }
            Some(Kind::Unknown) => match holds_config(&text) {
                Ok(false) => unknown.push(path),
                Ok(true) if is_below => {
                    let message =
                        "the file names MCP servers, and those in folders below the named one are not started";
                    others.push(left_out(&location, message).with_help("name the file itself to start them"));
                }
                Ok(true) => configurations.push(location),
                Err(told) => others.push(left_out(&location, &format!("the file {told}"))),
            },
        }
    }
    let parts: BTreeSet<PathBuf> = parts.iter().filter_map(|path| path.canonicalize().ok()).collect();
    let is_part = |path: &PathBuf| path.canonicalize().is_ok_and(|path| parts.contains(&path));
    let message = "the file is neither an OpenAPI document nor a list of tools nor a configuration of MCP servers";
    unknown.retain(|path| !is_part(path));
    others.extend(unknown.iter().map(|path| left_out(&path.to_string_lossy(), message)));
    documents.retain(|path| !is_part(path) || has_operations(path));
    let namespaces: Vec<_> = dir_namespaces(root, &documents, |_| true).collect();
    let document = |(path, namespace): (PathBuf, FileNamespace)| Document {
        namespace: (path.parent() != Some(root)).then_some(namespace),
        location: path.to_string_lossy().into_owned(),
        within: Some(root.to_owned()),
    };
    Ok(Found { documents: std::iter::zip(documents, namespaces).map(document).collect(), configurations, others })
}

/// False for a document that has only parts of others, such as schemas.
fn has_operations(path: &Path) -> bool {
    let value = std::fs::read_to_string(path).ok().and_then(|text| openapi::parse(&text).ok());
    value.is_none_or(|value| {
        let paths = value.get("paths").and_then(Value::as_object);
        kind(&value) != Kind::OpenApi || paths.is_some_and(|paths| !paths.is_empty())
    })
}

fn left_out(location: &str, message: &str) -> Diagnostic {
    Diagnostic::warning("", message).with_help("it is not served").with_document(location)
}

/// What a text holds; `None` if it cannot be read.
fn kind_of(text: &str) -> Option<Kind> {
    // Most documents begin with the version of OpenAPI, or have it in a line: they are not parsed twice.
    let first = text.trim_start().strip_prefix('{').map(str::trim_start).unwrap_or_default();
    let is_json = ["\"openapi\"", "\"swagger\""].iter().any(|key| first.starts_with(key));
    let mut lines = text.lines();
    if is_json || lines.any(|line| ["openapi:", "swagger:"].iter().any(|key| line.starts_with(key))) {
        return Some(Kind::OpenApi);
    }
    openapi::parse(text).ok().map(|value| kind(&value))
}

/// The files that a text refers to, as it names them.
fn references(text: &str) -> impl Iterator<Item = &str> {
    text.split("$ref").skip(1).filter_map(|after| {
        let after = after.trim_start_matches(['"', '\'', ':', ' ']);
        let file = after.split(['#', '"', '\'', '\n', '\r', ',', '}']).next()?.trim_end();
        (!file.is_empty() && !file.contains("://")).then_some(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_known_by_their_content() {
        for (text, wanted) in [
            ("{\n \"openapi\": \"3.1.0\", ", Some(Kind::OpenApi)),
            ("info: {}\nswagger: '2.0'\n", Some(Kind::OpenApi)),
            ("{\"info\": {}, \"openapi\": \"3.1.0\"}", Some(Kind::OpenApi)),
            ("{\"tools\": [{\"name\": \"a\", \"inputSchema\": {}}]}", Some(Kind::Tools)),
            ("{\"namespace\": \"a\", \"name\": \"b\", \"inputSchema\": {}}", Some(Kind::Spec)),
            ("{\"keywords\": [\"openapi\"]}", Some(Kind::Unknown)),
            ("text: |\n  openapi: 3.1.0\n", Some(Kind::Unknown)),
            ("[]", Some(Kind::Unknown)),
            ("{", None),
        ] {
            assert_eq!(kind_of(text), wanted, "{text}");
        }
    }

    #[test]
    fn files_are_found_in_references() {
        let text = "a: { $ref: parts/pet.yaml#/Pet, b: x }\nb:\n  $ref: './more.yaml'\nc: {\"$ref\":\"../x.json#/a\"}\n\
                    d: { $ref: '#/local' }\ne: { $ref: 'https://x.test/y' }\nf:\n  $ref: last.yaml";
        let found: Vec<&str> = references(text).collect();
        assert_eq!(found, ["parts/pet.yaml", "./more.yaml", "../x.json", "last.yaml"]);
    }
}
