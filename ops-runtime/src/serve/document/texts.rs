//! The texts of a document, which are made once.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::Shared;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

use crate::BoxFuture;
use crate::serve::tag;

/// The turn of the documents of a server, which are made one at a time: the path of a request is part of a document, so
/// clients could ask for any number.
#[derive(Debug, Clone)]
pub(crate) struct Turn(Arc<Semaphore>);

impl Default for Turn {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(1)))
    }
}

/// A document at a server's URL as texts, made on first use.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) url: String,
    turn: Turn,
    json: OnceLock<Shared<Making>>,
    yaml: OnceLock<Shared<Making>>,
}

/// A text that is being made; `None` if that failed.
type Making = BoxFuture<'static, Option<Tagged>>;

/// A text with its entity tag.
#[derive(Clone)]
pub(crate) struct Tagged {
    pub(crate) text: Bytes,
    pub(crate) tag: Arc<str>,
}

impl Tagged {
    fn new(text: String) -> Self {
        let tag = tag::of([text.as_bytes()]).into();
        Self { text: text.into(), tag }
    }
}

impl Texts {
    pub(crate) fn new(url: String, turn: Turn) -> Self {
        Self { url, turn, ..Self::default() }
    }

    /// The text; `None` if it cannot be made. `make` returns a function that makes the document.
    ///
    /// A document of many operations takes seconds, in which the thread of a request would serve no other one. Concurrent
    /// requests wait for the same text. It is finished even if all of them are dropped, unless the texts are dropped, too,
    /// before its turn.
    pub(crate) async fn text<M>(&self, written: Written, make: impl FnOnce() -> M) -> Option<Tagged>
    where
        M: FnOnce() -> Value + Send + 'static,
    {
        let begin = || {
            let (make, Turn(turn)) = (make(), self.turn.clone());
            // A task, since a future that is not polled would keep others from their turn.
            let making = tokio::spawn(async move {
                let turn = turn.acquire_owned().await.ok()?;
                let made = tokio::task::spawn_blocking(move || {
                    let made = Tagged::new(written.text(&make()));
                    drop(turn);
                    made
                });
                made.await.ok()
            });
            AbortOnDropHandle::new(making).map(|made| made.ok().flatten()).boxed().shared()
        };
        let making = match written {
            Written::Json => self.json.get_or_init(begin),
            Written::Yaml => self.yaml.get_or_init(begin),
        };
        making.clone().await
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
    use std::sync::atomic::AtomicUsize;
    use std::sync::atomic::Ordering::Relaxed;
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn a_text_is_made_once_and_stops_no_other_request() {
        let texts = Texts::new("/".to_owned(), Turn::default());
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
        let text = |tagged: Option<Tagged>| tagged.unwrap().text;
        assert_eq!((text(first), text(second)), (r#"{"openapi":"3.1.1"}"#.into(), r#"{"openapi":"3.1.1"}"#.into()));
        // Dropping the first request does not restart it.
        let _ = texts.text(Written::Yaml, || || json!({ "openapi": "3.2.0" })).now_or_never();
        assert!(text(texts.text(Written::Yaml, again).await).starts_with(b"openapi: "));
    }

    /// Clients that ask for a document at many URLs, and hang up.
    #[tokio::test]
    async fn documents_are_made_one_at_a_time_and_only_if_they_are_needed() {
        let running = Arc::new(AtomicUsize::new(0));
        let make = |made: Arc<AtomicUsize>| {
            let running = running.clone();
            move || {
                move || {
                    let others = running.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_millis(20));
                    running.fetch_sub(1, Relaxed);
                    made.fetch_add(1, Relaxed);
                    json!(others)
                }
            }
        };
        let (needed, left) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let turn = Turn::default();
        let all: Vec<Texts> = (0..4).map(|at| Texts::new(format!("/{at}"), turn.clone())).collect();
        // Held, so that none of the others has its turn yet.
        let held = turn.0.acquire().await.unwrap();
        let asking: Vec<_> = all.iter().map(|texts| texts.text(Written::Json, make(needed.clone()))).collect();
        for at in 0..20 {
            let texts = Texts::new(format!("/left/{at}"), turn.clone());
            let _ = texts.text(Written::Json, make(left.clone())).now_or_never();
            // It waits for its turn now.
            tokio::task::yield_now().await;
        }
        drop(held);
        for made in futures_util::future::join_all(asking).await {
            assert_eq!(made.unwrap().text, "0");
        }
        assert_eq!((needed.load(Relaxed), left.load(Relaxed)), (4, 0));
    }
}
