//! Reading JSON text: a deserializer of our own, and the cursor under it.
//!
//! It accepts what `serde_json` does and refuses the rest with the same words at the same places
//! (`tests` compares them), but is made for one case, a text that is in memory as a whole: the text is
//! checked once for being UTF-8, names and strings without escapes are borrowed, and unused values are
//! skipped. Numbers of more than 15 digits are rounded correctly, which `serde_json` does not always do.

mod cursor;
mod deserializer;
mod fault;
mod name;
mod number;
mod string;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use cursor::Cursor;
pub(crate) use fault::Fault;
pub(super) use fault::NO_TIME;
pub(super) use name::{AHEAD, GUESSED};
#[cfg(feature = "registry")]
pub(crate) use {cursor::Place, number::Figure, string::Text};
