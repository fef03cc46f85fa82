//! Tools of MCP servers.

use std::borrow::Cow;

use crate::model::text::Text;

/// The tool of an MCP server that an operation calls, and the place of the output in its result.
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
    /// The name of the tool at the server.
    pub tool: Text,
    /// The place of the output.
    pub output: McpOutput,
}

impl McpBinding {
    /// A tool, and the place of the output in its result.
    pub const fn new(tool: &'static str, output: McpOutput) -> Self {
        Self { tool: Cow::Borrowed(tool), output }
    }

    /// A tool whose name is loaded at run time.
    pub fn owned(tool: impl Into<Text>, output: McpOutput) -> Self {
        Self { tool: tool.into(), output }
    }
}

/// The place of an operation's output in the result of its tool (MCP specification, `CallToolResult`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum McpOutput {
    /// The list of content blocks: the tool declares no output schema.
    Content,
    /// The structured content.
    Structured,
    /// The property `result` of the structured content, which has no other.
    Wrapped,
}
