//! Handing bodies to an endpoint beside the JSON of an input.
//!
//! A typed input becomes a `serde_json::Value` on its way to an endpoint, and a stream has no JSON. So while the input is
//! serialised, which happens in one go on one thread, every body of it is put aside and a placeholder written in its
//! place; the endpoint finds the body by the placeholder. It cannot be guessed, so that no input that is JSON already can
//! stand for a body of somebody else's.

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Body;

thread_local! {
    static ASIDE: RefCell<Option<Attachments>> = const { RefCell::new(None) };
}

/// Bodies that were put aside, by the placeholders that stand for them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attachments(Vec<(String, Body)>);

impl Attachments {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The body that a text stands for, if it stands for one.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only endpoints that stream ask for them"))]
    pub(crate) fn get(&self, placeholder: &str) -> Option<&Body> {
        self.0.iter().find(|(known, _)| known == placeholder).map(|(_, body)| body)
    }
}

/// Runs a serialisation whose bodies are put aside; gives what it gave, and the bodies.
pub(crate) fn scoped<T>(serialise: impl FnOnce() -> T) -> (T, Attachments) {
    /// Puts back what was there before, even if the serialisation panics.
    struct Restore(Option<Attachments>);
    impl Drop for Restore {
        fn drop(&mut self) {
            ASIDE.set(self.0.take());
        }
    }
    let outer = Restore(ASIDE.replace(Some(Attachments::default())));
    let result = serialise();
    let attachments = ASIDE.take().unwrap_or_default();
    drop(outer);
    (result, attachments)
}

/// Puts a body aside, if somebody wants that, and gives the placeholder that stands for it.
pub(super) fn put_aside(body: &Body) -> Option<String> {
    ASIDE.with_borrow_mut(|aside| {
        let Attachments(attachments) = aside.as_mut()?;
        let placeholder = placeholder();
        attachments.push((placeholder.clone(), body.clone()));
        Some(placeholder)
    })
}

/// A text that was never used before and that nobody can guess: the standard library's hash keys are secret and random.
fn placeholder() -> String {
    static KEYS: OnceLock<(RandomState, RandomState)> = OnceLock::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (a, b) = KEYS.get_or_init(|| (RandomState::new(), RandomState::new()));
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("body:{:016x}{:016x}", a.hash_one(number), b.hash_one(!number))
}
