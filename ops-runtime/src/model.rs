//! The types of operations, calls and results: plain data, without anything that runs.
//!
//! The JSON of a type is in `json.rs` in the type's folder, made with the tables of [`json`]. The JSON Schemas of that
//! JSON are in [`wire`].

pub mod access;
pub mod binding;
pub(crate) mod body;
pub(crate) mod call_policy;
pub(crate) mod clock;
pub mod content;
#[cfg(any(feature = "openapi", feature = "registry", feature = "search"))]
pub(crate) mod cut;
#[cfg(any(feature = "openapi", feature = "registry"))]
pub(crate) mod decimal;
pub(crate) mod diagnostic;
pub mod envelope;
pub(crate) mod error;
pub mod formats;
#[cfg(feature = "registry")]
pub(crate) mod futures;
pub mod glob;
#[cfg(feature = "registry")]
pub(crate) mod hex;
pub(crate) mod json;
#[cfg_attr(
    not(any(feature = "registry", feature = "mcp-schema", feature = "openapi", feature = "typescript")),
    allow(dead_code, unreachable_pub, reason = "without these, only the references of a schema are looked for")
)]
pub mod keywords;
#[cfg(feature = "registry")]
pub(crate) mod lock;
#[cfg(any(feature = "http", feature = "openapi", feature = "registry"))]
pub(crate) mod media;
#[cfg(any(feature = "openapi", feature = "registry"))]
pub mod nearest;
pub(crate) mod operation;
#[cfg(any(feature = "http", feature = "http-server"))]
pub(crate) mod parameters;
#[cfg(feature = "registry")]
pub(crate) mod policy;
#[cfg(feature = "registry")]
pub(crate) mod protocol;
#[cfg(feature = "registry")]
pub(crate) mod random;
#[cfg(feature = "registry")]
pub(crate) mod request_id;
pub(crate) mod retry;
pub(crate) mod schema;
pub(crate) mod secrets;
#[cfg(any(feature = "http-server", feature = "mcp", feature = "mcp-server"))]
pub(crate) mod separators;
#[cfg(any(feature = "http-server", feature = "mcp-server", feature = "program"))]
pub(crate) mod setters;
pub(crate) mod spec;
#[cfg(feature = "registry")]
pub(crate) mod spec_ref;
pub(crate) mod text;
pub(crate) mod text_list;
#[cfg(feature = "registry")]
pub(crate) mod trace_parent;
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) mod unauthorized;
pub mod wire;
