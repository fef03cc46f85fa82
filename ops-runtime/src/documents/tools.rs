//! Reading lists of MCP tools: as operations, as snapshots to commit, and the changes between two lists.

// An error ends the reading of a list, so nothing is gained by keeping it small.
#![allow(clippy::result_large_err)]

mod change;
mod list;
mod read;
mod snapshot;

#[cfg(feature = "registry")]
pub(crate) use self::change::is_served_by;
pub use self::change::{Change, changes, tool_changes};
pub use self::list::is_tool_list;
pub use self::read::{load, read};
pub use self::snapshot::Snapshot;

/// Marks the schema of an object that only wraps its property `result` (`FastMCP`).
pub(crate) const WRAPPED: &str = "x-fastmcp-wrap-result";

/// How a list of tools is read.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The namespace of the operations; by default the name of the server.
    pub namespace: Option<String>,
}

impl ReadOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the namespace of the operations. Characters that a namespace cannot have become `_`.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}
