//! Texts of documents, cut for messages.

use std::borrow::Cow;

use crate::model::cut::start;

/// How much of a name is shown in a message.
const SHOWN: usize = 120;

/// A name or a reference of the document for a message; a long one is cut.
pub(super) fn short(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default())),
        None => Cow::Borrowed(text),
    }
}

/// How many bytes of a message of others are shown.
const LONGEST_MESSAGE: usize = 1_000;

/// A message that others have written, such as a source of documents; a long one is cut.
pub(super) fn brief(message: &str) -> Cow<'_, str> {
    match start(message, LONGEST_MESSAGE) {
        whole if whole.len() == message.len() => Cow::Borrowed(message),
        start => Cow::Owned(format!("{start}...")),
    }
}
