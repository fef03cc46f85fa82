//! The names of operations and namespaces.

use std::path::Path;

use super::document::Node;
use super::reader::Names;
use super::short::short;
use super::text::{LONGEST, word};
use crate::Severity;
use crate::model::cut;
use crate::model::text::has_scheme;

/// An operation that was found, before it has a name.
pub(super) struct Found<'a> {
    pub(super) path: &'a str,
    /// In upper case.
    pub(super) method: String,
    /// The path item, and before it the members beside a reference to it: what stands first counts.
    pub(super) items: Vec<Node<'a>>,
    pub(super) operation: Node<'a>,
}

/// A name for each operation, in their order.
///
/// The first operation with an `operationId` gets it unchanged. All others follow in the order of the document, so that
/// no name from the document depends on a made-up one.
pub(super) fn allot(
    found: &[Found<'_>],
    taken: &mut Names,
    tell: &mut dyn FnMut(Severity, &Node<'_>, String, String),
) -> Vec<String> {
    let mut first: Vec<Option<String>> = Vec::new();
    for found in found {
        let id = found.operation.text("operationId").filter(|id| !id.trim().is_empty());
        first.push(id.filter(|id| taken.take(id)).map(str::to_owned));
    }
    let mut names = Vec::new();
    for (found, name) in found.iter().zip(first) {
        names.push(name.unwrap_or_else(|| {
            let name = taken.allot(&made_up(&found.method, found.path));
            let (severity, message) = match found.operation.text("operationId").filter(|id| !id.trim().is_empty()) {
                // Callers that use the id reach the other operation.
                Some(id) => (Severity::Warning, format!("the `operationId` `{}` stands here again", short(id))),
                None => {
                    let message = format!("`{} {}` has no `operationId`", short(&found.method), short(found.path));
                    (Severity::Note, message)
                }
            };
            tell(severity, &found.operation, message, format!("called `{name}`"));
            name
        }));
    }
    names
}

/// A name made of the method and the words of the path: `get_pets_by_pet_id`.
fn made_up(method: &str, path: &str) -> String {
    let mut words = vec![method.to_ascii_lowercase()];
    for segment in path.split('/').filter(|segment| !segment.is_empty()) {
        let by = if segment.starts_with('{') { "by_" } else { "" };
        let word = snake(cut::start(segment, LONGEST));
        if !word.is_empty() {
            words.push(format!("{by}{word}"));
        }
    }
    if words.len() == 1 {
        words.push("root".to_owned());
    }
    cut::start(&words.join("_"), LONGEST).trim_end_matches('_').to_owned()
}

/// The text in lower case with `_` between its words.
fn snake(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut before = ' ';
    for c in text.chars() {
        if c.is_alphanumeric() {
            let starts = c.is_uppercase() && (before.is_lowercase() || before.is_numeric());
            if (starts || !before.is_alphanumeric()) && !out.is_empty() {
                out.push('_');
            }
            out.extend(c.to_lowercase());
        }
        before = c;
    }
    out
}

/// File names that do not describe the content.
const GENERIC: &[&str] = &["api", "api_docs", "document", "index", "openapi", "schema", "spec", "swagger"];

/// The namespace of a document: the name of its file, or its title if that is more specific.
pub(crate) fn namespace(location: Option<&str>, title: Option<&str>) -> String {
    let stem = location.and_then(stem).map(words).filter(|stem| !stem.is_empty());
    let title = title.map(words).filter(|title| !title.is_empty());
    match stem {
        Some(stem) if title.is_none() || !GENERIC.contains(&stem.as_str()) => stem,
        _ => title.unwrap_or_else(|| "api".to_owned()),
    }
}

/// The name of the file at a location, without its ending. Of a URL it is the end of the path: what surrounds that may be
/// secret, such as a token in the query, and names are shown everywhere.
pub(super) fn stem(location: &str) -> Option<&str> {
    let path = match location.split_once("://").filter(|_| has_scheme(location)) {
        Some((_, rest)) => rest.split(['?', '#']).next()?.split_once('/')?.1,
        None => location,
    };
    Path::new(path).file_stem()?.to_str()
}

/// The words of a text in lower case, joined by `_`.
pub(super) fn words(text: &str) -> String {
    // All operations repeat it, so it is cut.
    word(cut::start(text, LONGEST)).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_names() {
        for (method, path, name) in [
            ("GET", "/pets/{petId}", "get_pets_by_pet_id"),
            ("POST", "/pets", "post_pets"),
            ("GET", "/", "get_root"),
            ("GET", "/repos/{owner}/{repo}/git-refs.json", "get_repos_by_owner_by_repo_git_refs_json"),
            ("PUT", "/v1/HTTPServer2Config", "put_v1_httpserver2_config"),
            ("GET", "/a/{b}.{c}", "get_a_by_b_c"),
            ("GET", "/#Action=Run", "get_action_run"),
        ] {
            assert_eq!(made_up(method, path), name);
        }
    }

    #[test]
    fn namespaces() {
        for (location, title, name) in [
            (Some("specs/petstore.yaml"), Some("Swagger Petstore"), "petstore"),
            (Some("specs/ag-stripe.com.json"), None, "ag_stripe_com"),
            (Some("https://example.com/openapi.json"), Some("Pet Shop - 3.1"), "pet_shop_3_1"),
            (Some("openapi.json"), None, "openapi"),
            (Some("https://example.com/null.yaml?key=SEC.RET"), None, "null"),
            (Some("https://example.com/null.yaml?token=a/bSECRETb"), Some("Shop"), "null"),
            (Some("https://example.com/openapi.json?v=1.2#/paths"), Some("Shop"), "shop"),
            (Some("https://user:SECRET@example.com"), Some("Shop"), "shop"),
            (Some("https://user:SECRET@example.com/?key=SECRET"), None, "api"),
            (Some("specs/what?.yaml"), None, "what"),
            (Some("document"), Some("A library"), "a_library"),
            (None, Some("Pet Shop"), "pet_shop"),
            (None, Some("…"), "api"),
            (None, None, "api"),
        ] {
            assert_eq!(namespace(location, title), name);
        }
    }
}
