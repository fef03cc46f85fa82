//! Reading descriptions of operations: OpenAPI documents, lists of MCP tools, and the files that they are made of.

pub(crate) mod dir;
pub mod openapi;
pub mod source;
#[cfg(feature = "mcp-schema")]
pub(crate) mod tools;
