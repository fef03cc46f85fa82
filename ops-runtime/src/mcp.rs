//! The Model Context Protocol: tools of servers as operations, and a registry as a server.

#[cfg(feature = "mcp-server")]
mod server;

#[cfg(feature = "mcp-server")]
pub use self::server::{McpBody, McpPeer, McpServer, McpServerOptions, McpService, Unauthorized};
