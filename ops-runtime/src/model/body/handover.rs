//! Handing bodies to an endpoint separately from the JSON of an input.
//!
//! A typed input becomes a `serde_json::Value` on its way to an endpoint, and a stream has no JSON. So while the input
//! is serialised, which happens in one go on one thread, each of its bodies is put aside and replaced by a placeholder,
//! by which the endpoint finds it. The placeholder cannot be guessed, so that no input that is JSON already can refer
//! to the body of another caller.

use super::Body;
use crate::model::random;
use std::cell::RefCell;

thread_local! {
    static ASIDE: RefCell<Option<Attachments>> = const { RefCell::new(None) };
}

/// Bodies that were put aside, by their placeholders.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Attachments(Vec<(String, Body)>);

impl Attachments {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The body behind a placeholder; `None` for any other text.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only endpoints that stream ask for them"))]
    pub(crate) fn get(&self, placeholder: &str) -> Option<&Body> {
        self.0.iter().find(|(known, _)| known == placeholder).map(|(_, body)| body)
    }
}

/// Runs a serialisation whose bodies are put aside; returns its result and the bodies.
pub(crate) fn scoped<T>(serialise: impl FnOnce() -> T) -> (T, Attachments) {
    /// Restores the earlier attachments, even if the serialisation panics.
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

/// Puts a body aside if a serialisation asks for it, and returns its placeholder.
pub(super) fn put_aside(body: &Body) -> Option<String> {
    ASIDE.with_borrow_mut(|aside| {
        let Attachments(attachments) = aside.as_mut()?;
        let placeholder = placeholder();
        attachments.push((placeholder.clone(), body.clone()));
        Some(placeholder)
    })
}

/// A new text that cannot be guessed.
fn placeholder() -> String {
    format!("body:{:032x}", u128::from_le_bytes(random::bytes()))
}
