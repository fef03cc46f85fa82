//! What expanded macros and generated code call.

#[cfg(feature = "discover")]
pub(crate) mod discover;
pub(crate) mod generated;
#[cfg(feature = "macros")]
pub mod json_schema;
#[cfg(all(feature = "macros", feature = "registry"))]
pub(crate) mod private;
#[cfg(feature = "registry")]
pub(crate) mod server;
