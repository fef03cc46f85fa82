//! Typed operations from API documents.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod error;
mod generate;
mod lower;
mod module;
mod names;
mod render;
mod types;

pub use error::Error;
pub use generate::{Generated, Generator};
