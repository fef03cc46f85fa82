//! Foreign text in messages, of limited length.

use std::borrow::Cow;

/// The longest name, pattern or value in a message, in bytes.
pub(super) const MAX_NAME: usize = 200;

/// The start of a text that is too long to be reported.
pub(crate) fn cut(text: &str, limit: usize) -> Cow<'_, str> {
    if text.len() <= limit {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}..", text.get(..text.floor_char_boundary(limit)).unwrap_or_default()))
}
