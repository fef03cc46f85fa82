//! The page at `/docs`: the server's document for people, with a form for each operation.
//!
//! It is plain HTML, CSS and JavaScript modules in `docs/`, sent unchanged, except that the page has the document's
//! title before its scripts run. It shows only the document, and the responses to its reader's requests. Names and
//! descriptions are inserted as text, never as markup, and its content security policy allows it to load from and
//! connect to this server only.

use std::borrow::Cow;
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

/// The longest title, in characters; the script cuts it, too.
const MAX_TITLE: usize = 200;

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

    /// The response; without a body if the client has the present file. The page itself gets the title.
    pub(super) fn response(&self, headers: &HeaderMap, title: impl FnOnce() -> String) -> Response<Body> {
        let Self::File(file) = self else {
            let mut response = empty(StatusCode::PERMANENT_REDIRECT);
            response.headers_mut().insert(LOCATION, HeaderValue::from_static("../docs"));
            return response;
        };
        let (text, tag) = if file.name.is_empty() {
            let text = titled(file.text, &title());
            let tag = tag::of(Sha256::new().chain_update(&text));
            (Cow::Owned(text), Cow::Owned(tag))
        } else {
            (Cow::Borrowed(file.text), Cow::Borrowed(TAG.as_str()))
        };
        let mut response = tag::respond(headers, &tag, || respond(StatusCode::OK, file.content_type, text));
        let fixed = [(CONTENT_SECURITY_POLICY, POLICY), (CACHE_CONTROL, "no-cache"), (REFERRER_POLICY, "no-referrer")];
        for (name, value) in fixed {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// The page with a title in place of its own.
fn titled(page: &str, title: &str) -> String {
    if title.is_empty() {
        return page.to_owned();
    }
    let mut text = String::from(">");
    for c in title.chars().take(MAX_TITLE) {
        match c {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            c => text.push(c),
        }
    }
    text.push('<');
    page.replace(">Operations<", &text)
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

    #[test]
    fn a_title_is_text() {
        let page = titled(FILES[0].text, "A & B</title><script>");
        assert!(page.contains("<title>A &amp; B&lt;/title&gt;&lt;script&gt;</title>"), "{page}");
        assert!(page.contains("<h1 id=\"title\">A &amp; B&lt;/title&gt;&lt;script&gt;</h1>"), "{page}");
        assert_eq!(titled(FILES[0].text, ""), FILES[0].text);
        assert!(titled(FILES[0].text, &"x".repeat(500)).contains(&format!("<title>{}</title>", "x".repeat(200))));
    }
}
