//! Typed operations: one call, one result, wherever the operation runs.
#![cfg_attr(not(test), warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing))]

#[cfg(feature = "registry")]
pub mod normalise;
pub mod record;
