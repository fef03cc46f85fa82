//! The texts of a document, which are made once.

use std::array;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::OnceLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Shared;
use http_body::{Frame, SizeHint};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::BoxFuture;
use crate::serve::tag;

/// A document as texts, each made on first use.
#[derive(Default)]
pub(crate) struct Texts {
    json: OnceLock<Shared<Making>>,
    yaml: OnceLock<Shared<Making>>,
}

/// A text that is being made; `None` if that failed.
type Making = BoxFuture<'static, Option<Begun>>;

impl Texts {
    /// The text; `None` if it cannot be made. `make` returns a function that makes the document without its servers.
    ///
    /// A document of many operations takes seconds, in which the thread of a request would serve no other one. Concurrent
    /// requests wait for the same text. It is finished even if all of them are dropped.
    pub(crate) async fn text<M>(&self, written: Written, make: impl FnOnce() -> M) -> Option<Begun>
    where
        M: FnOnce() -> Value + Send + 'static,
    {
        let begin = || {
            let make = make();
            let making = tokio::task::spawn_blocking(move || Begun::new(written, &make()));
            making.map(Result::ok).boxed().shared()
        };
        let making = match written {
            Written::Json => self.json.get_or_init(begin),
            Written::Yaml => self.yaml.get_or_init(begin),
        };
        making.clone().await
    }
}

/// A text without its last member, the servers: they depend on the path of a request, and clients can send any number of
/// paths.
#[derive(Clone)]
pub(crate) struct Begun {
    written: Written,
    text: Bytes,
    digest: Sha256,
}

impl Begun {
    fn new(written: Written, document: &Value) -> Self {
        let mut text = written.text(document);
        if written == Written::Json {
            // The closing brace comes with the servers.
            text.pop();
        }
        let digest = Sha256::new_with_prefix(&text);
        Self { written, text: text.into(), digest }
    }

    /// The whole text for a server at a URL, and its entity tag.
    pub(crate) fn at(self, url: &str) -> (Pieces, String) {
        let servers = self.written.text(&json!({ "servers": [{ "url": url }] }));
        let rest = match self.written {
            Written::Json => servers.replacen('{', ",", 1),
            Written::Yaml => servers,
        };
        let tag = tag::of(self.digest.chain_update(&rest));
        (Pieces([self.text, rest.into()].into_iter()), tag)
    }
}

/// The pieces of a text as a body. The first may be long, and all responses share it.
pub(crate) struct Pieces(array::IntoIter<Bytes, 2>);

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.next().map(|piece| Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_slice().is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.as_slice().iter().map(|piece| piece.len() as u64).sum())
    }
}

/// How a document is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    Json,
    Yaml,
}

impl Written {
    /// The document at a path, if there is one.
    pub(crate) fn at(path: &str) -> Option<Self> {
        match path {
            "/openapi.json" => Some(Self::Json),
            "/openapi.yaml" => Some(Self::Yaml),
            _ => None,
        }
    }

    fn text(self, document: &Value) -> String {
        match self {
            Self::Json => document.to_string(),
            // A tree of JSON can always be written as YAML.
            Self::Yaml => serde_saphyr::to_string(document).unwrap_or_default(),
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Yaml => "application/yaml",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole text at a URL, and its tag.
    fn at(begun: Option<Begun>, url: &str) -> (String, String) {
        let (Pieces(pieces), tag) = begun.unwrap().at(url);
        (String::from_utf8(pieces.flatten().collect()).unwrap(), tag)
    }

    #[tokio::test]
    async fn a_text_is_made_once_and_stops_no_other_request() {
        let texts = Texts::default();
        let (begin, begun) = std::sync::mpsc::channel();
        let slow = || {
            move || {
                begun.recv().unwrap();
                json!({ "openapi": "3.1.1" })
            }
        };
        let again = || || -> Value { panic!("the text is made twice") };
        let (first, second, ()) = tokio::join!(
            texts.text(Written::Json, slow),
            texts.text(Written::Json, again),
            // Another request on the only thread.
            async { begin.send(()).unwrap() },
        );
        let expected = r#"{"openapi":"3.1.1","servers":[{"url":"/"}]}"#;
        assert_eq!((at(first, "/").0.as_str(), at(second, "/").0.as_str()), (expected, expected));
        // Dropping the first request does not restart it.
        let _ = texts.text(Written::Yaml, || || json!({ "openapi": "3.2.0" })).now_or_never();
        assert!(at(texts.text(Written::Yaml, again).await, "/").0.starts_with("openapi: "));
    }

    /// Clients can ask for a document at any number of URLs.
    #[tokio::test]
    async fn one_text_is_made_for_all_urls() {
        for written in [Written::Json, Written::Yaml] {
            let texts = Texts::default();
            let begun = texts.text(written, || || json!({ "openapi": "3.1.1", "paths": {} })).await;
            assert!(begun.is_some());
            for url in ["/", "/api/v7", "/a\"b: {c}"] {
                let begun = texts.text(written, || || -> Value { panic!("the text is made twice") }).await;
                let whole = json!({ "openapi": "3.1.1", "paths": {}, "servers": [{ "url": url }] });
                let whole = written.text(&whole);
                let tag = tag::of(Sha256::new_with_prefix(&whole));
                assert_eq!(at(begun, url), (whole, tag), "{written:?}");
            }
        }
    }
}
