//! Typed operations from API documents.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

mod builder;
mod error;
mod generate;
mod lower;
mod module;
mod names;
mod output;
mod render;
mod types;

pub use builder::{Builder, Module};
pub use error::Error;
pub use generate::{Generated, Generator};
pub use output::write_if_changed;
