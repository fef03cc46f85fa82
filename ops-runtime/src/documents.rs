//! Reading descriptions of operations: OpenAPI documents, lists of MCP tools, and the files that they are made of.

mod change;
pub(crate) mod dir;
pub(crate) mod openapi;
pub(crate) mod source;
#[cfg(feature = "mcp-schema")]
pub(crate) mod tools;
