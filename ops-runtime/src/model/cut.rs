//! The beginnings of long texts.

/// The longest name, pattern or value in a message, in bytes.
#[cfg(feature = "registry")]
pub(crate) const MAX_NAME: usize = 200;

/// The start of a text, of at most so many bytes.
pub(crate) fn start(text: &str, bytes: usize) -> &str {
    text.get(..text.floor_char_boundary(bytes)).unwrap_or_default()
}

/// A text for a message: the marked start of one that is longer than so many bytes.
#[cfg(feature = "registry")]
pub(crate) fn cut(text: &str, bytes: usize) -> std::borrow::Cow<'_, str> {
    if text.len() <= bytes {
        return text.into();
    }
    format!("{}..", start(text, bytes)).into()
}
