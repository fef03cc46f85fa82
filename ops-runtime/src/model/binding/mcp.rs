//! Tools of MCP servers.

use std::borrow::Cow;

use crate::model::text::Text;

/// The tool of an MCP server that an operation calls, and where in its answer the output stands.
///
/// ```
/// use ops_runtime::binding::{McpBinding, McpOutput};
///
/// const ADD: McpBinding = McpBinding::new("add", McpOutput::Wrapped);
/// assert_eq!((ADD.tool.as_ref(), ADD.output.as_str()), ("add", "wrapped"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct McpBinding {
    /// The name of the tool, as the server knows it.
    pub tool: Text,
    /// Where the output stands.
    pub output: McpOutput,
}

impl McpBinding {
    /// A tool, and where in its answer the output stands.
    pub const fn new(tool: &'static str, output: McpOutput) -> Self {
        Self { tool: Cow::Borrowed(tool), output }
    }
}

/// Where in the answer of a tool the output of its operation stands (MCP specification, `CallToolResult`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum McpOutput {
    /// It is the list of content blocks: the tool declares no output schema.
    Content,
    /// It is the structured content.
    Structured,
    /// It is the property `result` of the structured content, which has no other.
    Wrapped,
}
