//! The page at `/docs`: the server's document for people, with a form for each operation.
//!
//! It is plain HTML, CSS and JavaScript modules in `docs/`, sent unchanged. It shows only the document, and the
//! responses to its reader's requests. Names and descriptions are inserted as text, never as markup, and its content
//! security policy allows it to load from and connect to this server only.

use std::sync::LazyLock;

use axum::body::Body;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, LOCATION, REFERRER_POLICY};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use sha2::{Digest, Sha256};

use super::response::{empty, respond};
use super::tag;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// What the page may load and connect to: its own files, and this server. No text can become markup or a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// A part of the page.
pub(super) struct File {
    /// Its name below `/docs`; empty for the page itself.
    name: &'static str,
    content_type: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($name:literal: $content_type:ident, $file:literal;)*) => {
        &[$(File { name: $name, content_type: $content_type, text: include_str!(concat!("docs/", $file)) }),*]
    };
}

static FILES: &[File] = files! {
    "": HTML, "page.html";
    "/style.css": CSS, "style.css";
    "/body.js": SCRIPT, "body.js";
    "/controls.js": SCRIPT, "controls.js";
    "/credentials.js": SCRIPT, "credentials.js";
    "/document.js": SCRIPT, "document.js";
    "/dom.js": SCRIPT, "dom.js";
    "/form.js": SCRIPT, "form.js";
    "/json.js": SCRIPT, "json.js";
    "/list.js": SCRIPT, "list.js";
    "/main.js": SCRIPT, "main.js";
    "/operation.js": SCRIPT, "operation.js";
    "/prose.js": SCRIPT, "prose.js";
    "/request.js": SCRIPT, "request.js";
    "/result.js": SCRIPT, "result.js";
    "/samples.js": SCRIPT, "samples.js";
    "/schema.js": SCRIPT, "schema.js";
    "/send.js": SCRIPT, "send.js";
    "/snippets.js": SCRIPT, "snippets.js";
    "/stream.js": SCRIPT, "stream.js";
};

/// Distinguishes the files of one build from those of another.
static TAG: LazyLock<String> =
    LazyLock::new(|| tag::of(FILES.iter().fold(Sha256::new(), |digest, file| digest.chain_update(file.text))));

/// The target of a path of the page.
pub(super) enum Page {
    File(&'static File),
    /// The links of the page are relative to `/docs`.
    Slash,
}

impl Page {
    /// The target of a path, if the page has it.
    pub(super) fn at(path: &str) -> Option<Self> {
        match path.strip_prefix("/docs")? {
            "/" => Some(Self::Slash),
            name => FILES.iter().find(|file| file.name == name).map(Self::File),
        }
    }

    /// The response; without a body if the client has the present file.
    pub(super) fn response(&self, headers: &HeaderMap) -> Response<Body> {
        let Self::File(file) = self else {
            let mut response = empty(StatusCode::PERMANENT_REDIRECT);
            response.headers_mut().insert(LOCATION, HeaderValue::from_static("../docs"));
            return response;
        };
        let mut response = tag::respond(headers, &TAG, || respond(StatusCode::OK, file.content_type, file.text));
        let fixed = [(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-cache"), (REFERRER_POLICY, "no-referrer")];
        for (name, value) in fixed {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names that a text has in quotes behind a word.
    fn named<'t>(text: &'t str, word: &'t str) -> impl Iterator<Item = &'t str> {
        text.split(word).skip(1).filter_map(|rest| rest.split('"').next())
    }

    #[test]
    fn every_file_is_named_and_every_name_is_a_file() {
        let page = FILES[0].text;
        for file in FILES.iter().filter(|file| file.content_type == SCRIPT) {
            assert!(page.contains(&format!("\"docs{}\"", file.name)), "page.html does not name {}", file.name);
            for import in named(file.text, "from \"./") {
                assert!(Page::at(&format!("/docs/{import}")).is_some(), "{} imports {import}", file.name);
            }
        }
        for name in named(page, "\"docs/") {
            assert!(Page::at(&format!("/docs/{name}")).is_some(), "page.html names {name}");
        }
    }

    #[test]
    fn nothing_needs_markup_of_texts_or_another_server() {
        let words =
            ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "new Function", "localStorage"];
        for file in FILES {
            let is_free = |word: &&str| !file.text.contains(*word);
            assert!(words.iter().all(is_free), "{}", file.name);
            assert!(!file.text.contains("src=\"http") && !file.text.contains("url(http"), "{}", file.name);
            assert!(!file.text.contains("<style") && !file.text.contains("style="), "{}", file.name);
        }
    }

    #[test]
    fn paths() {
        let text = |path| match Page::at(path) {
            Some(Page::File(file)) => file.name,
            Some(Page::Slash) => "slash",
            None => "none",
        };
        let table = [
            ("/docs", ""),
            ("/docs/", "slash"),
            ("/docs/main.js", "/main.js"),
            ("/docs/page.html", "none"),
            ("/docs/../serve.rs", "none"),
            ("/docsx", "none"),
            ("/", "none"),
        ];
        for (path, expected) in table {
            assert_eq!(text(path), expected, "{path}");
        }
    }
}
