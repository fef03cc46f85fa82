//! The Model Context Protocol: tools of servers as operations, and a registry as a server.
//!
//! ```
//! use ops_runtime::mcp::{self, ReadOptions};
//!
//! let list = serde_json::json!({
//!     "serverInfo": { "name": "calculator", "version": "2.0.0" },
//!     "tools": [{
//!         "name": "add",
//!         "inputSchema": { "type": "object", "properties": { "a": { "type": "number" }, "b": { "type": "number" } } },
//!         "outputSchema": { "type": "object", "properties": { "result": { "type": "number" } }, "required": ["result"] },
//!         "annotations": { "readOnlyHint": true },
//!     }],
//! });
//! let (api, diagnostics) = mcp::read(&list, &ReadOptions::new()).unwrap();
//! assert_eq!(api.operations[0].id, "calculator.add");
//! assert_eq!(api.operations[0].output.to_value().unwrap()["type"], "number");
//! assert!(diagnostics.is_empty());
//! ```
//!
//! A tool keeps its name, whatever that is: its operation is `namespace.name`. It is a query if its annotations say
//! that it only reads, else a mutation. Its input is what `inputSchema` says, its output what `outputSchema` says; of a
//! schema that only wraps the output, `{"result": X}`, it is `X`, whether the schema is marked as a wrapper
//! (`x-fastmcp-wrap-result`) or not. A tool without an output schema gives its content blocks.
//!
//! Definitions of all schemas come into the one table of the API. Those of one name that mean the same are one; others
//! have the name of their tool before theirs. References to other documents are never followed. What cannot be read
//! costs itself alone and is named in a diagnostic.

// An error ends the reading of a list, so nothing is gained by keeping it small.
#![allow(clippy::result_large_err)]

mod change;
#[cfg(feature = "mcp")]
mod client;
#[cfg(feature = "mcp")]
mod clients;
#[cfg(feature = "mcp")]
mod config;
mod list;
mod read;
#[cfg(feature = "registry")]
mod result;
#[cfg(feature = "mcp-server")]
mod server;
mod snapshot;

pub use self::change::{Change, changes, tool_changes};
#[cfg(feature = "mcp")]
pub use self::client::ask::{Elicitation, ElicitationAnswer, ElicitationMode};
#[cfg(feature = "mcp-auth")]
pub use self::client::auth::{McpOAuth, MemoryTokenStore, TokenStore};
#[cfg(feature = "mcp")]
pub use self::client::{McpClient, McpServerInfo};
#[cfg(feature = "mcp")]
pub use self::clients::McpClients;
#[cfg(feature = "mcp")]
pub use self::config::{McpConfig, McpServerConfig};
pub use self::list::is_tool_list;
pub use self::read::{load, read};
#[cfg(feature = "registry")]
pub use self::result::decode;
#[cfg(feature = "mcp-server")]
pub use self::server::{McpBody, McpPeer, McpServer, McpServerOptions, McpService, Unauthorized};
pub use self::snapshot::Snapshot;

/// Marks the schema of an object that only stands for its property `result` (`FastMCP`).
const WRAPPED: &str = "x-fastmcp-wrap-result";

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

    /// Sets the namespace of the operations. What cannot stand in a namespace becomes `_`.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}
