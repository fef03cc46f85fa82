//! What operations, calls and results are made of: plain data, without anything that runs.
//!
//! Beside a type are its JSON (`json.rs` in the type's folder, made with the tables of [`json`]) and, in [`wire`], the
//! JSON Schemas of that JSON.

pub mod access;
pub mod binding;
pub(crate) mod body;
pub mod content;
pub(crate) mod diagnostic;
pub mod envelope;
pub(crate) mod error;
pub mod formats;
#[cfg(feature = "registry")]
pub(crate) mod futures;
pub(crate) mod json;
#[cfg(any(feature = "http", feature = "openapi", feature = "registry"))]
pub(crate) mod media;
pub(crate) mod operation;
#[cfg(feature = "registry")]
pub(crate) mod request_id;
pub(crate) mod schema;
pub(crate) mod spec;
pub(crate) mod text;
pub mod wire;
