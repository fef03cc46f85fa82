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
//! A tool keeps its name: its operation is `namespace.name`. It is a query if its annotations say that it only reads,
//! else a mutation. `inputSchema` is the schema of its input, `outputSchema` that of its output. An output schema that
//! only wraps the output, `{"result": X}`, is unwrapped to `X`, even without the mark `x-fastmcp-wrap-result`. A tool
//! without an output schema gives its content blocks.
//!
//! The definitions of all schemas go into one table of the API. Definitions with the same name and meaning are merged;
//! others get the tool's name as a prefix. References to other documents are never followed. Only the part that cannot
//! be read is left out, and a diagnostic names it.

//!
//! # Running tools
//!
//! `McpClient` (feature `mcp`) connects to a server, started as a child process or at a URL (feature `mcp-http`), and
//! runs its tools: those of generated code, and those that were loaded at run time. `McpClients` does so for all
//! servers of a configuration file, `McpConfig`.
#![cfg_attr(
    feature = "mcp",
    doc = r###"
```
use ops_runtime::Registry;
use ops_runtime::mcp::{McpClients, McpConfig};

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let config = McpConfig::from_json(r##"{ "mcpServers": { "shop": { "command": "no-such-server" } } }"##)?;
let clients = McpClients::connect(&config).await;
// One that fails does not stop the others.
assert!(clients.errors()["shop"].message().contains("`no-such-server` cannot be started"));
let registry = Registry::new();
clients.register_all(&registry)?;
# Ok(()) }
```

- **Revisions**: 2026-07-28 if the server knows it, or else what it agrees to by `initialize`, from 2024-11-05.
- **Results** are decoded as they came: nothing that a server says is lost. See [`decode`].
- **Errors**: a tool that fails gives an envelope whose meta says `is_error` to `call`, and a `TOOL_ERROR` to `execute` and to
  clients of an `HttpServer`.
  An error of the protocol is an `EXECUTION_ERROR` whose details are `{ server, code, message, data }`; one of HTTP has
  the details of every HTTP error. A call that was interrupted, so that the server may have carried
  it out, has `interrupted` in its details.
- **Time**: `McpServerConfig::with_timeout` counts from the last sign of life, `with_total_timeout` and the options of a
  call from its start. A call that ends so, or is dropped, is cancelled at the server.
- **What a server asks** (elicitation, sampling, roots) goes to those that the configuration names, and is declined
  otherwise.
- **What a child writes** to standard error goes to `tracing` (target `ops_runtime::mcp::stderr`), what a server logs to
  the target `ops_runtime::mcp::log`.
- **Secrets**: what a server was given (headers, tokens, what may be a key in its URL, variables of its environment and those
  that were filled into a file) is `***` in errors, in the answer of a tool that fails, and in the log, even if the server
  repeats it. Values of less than 4 bytes are not replaced, of less than 8 only if their name says that they are secret, and
  variables with names such as `.._PATH` and `.._PORT` not at all. The results of tools that succeed stay as they came.
"###
)]

#[cfg(feature = "mcp")]
mod ask;
#[cfg(feature = "mcp")]
mod client;
#[cfg(feature = "mcp")]
mod clients;
#[cfg(feature = "mcp")]
mod config;
#[cfg(feature = "mcp-http")]
mod follow;
#[cfg(feature = "mcp-auth")]
mod oauth;
#[cfg(feature = "registry")]
mod result;
#[cfg(feature = "mcp-server")]
mod server;

#[cfg(feature = "mcp")]
pub use self::ask::{Elicitation, ElicitationAnswer, ElicitationMode};
#[cfg(feature = "mcp")]
pub use self::client::{McpClient, McpServerInfo};
#[cfg(feature = "mcp")]
pub use self::clients::McpClients;
#[cfg(feature = "mcp")]
pub use self::config::{McpConfig, McpServerConfig};
#[cfg(feature = "mcp-auth")]
pub use self::oauth::McpOAuth;
#[cfg(feature = "mcp-auth")]
pub use self::oauth::tokens::{MemoryTokenStore, TokenStore};
#[cfg(feature = "registry")]
pub use self::result::decode;
#[cfg(feature = "mcp-server")]
pub use self::server::{Authenticator, McpBody, McpPeer, McpServer, McpServerOptions, McpService, Unauthorized};
#[cfg(all(feature = "durable", feature = "mcp-server"))]
pub use self::server::{McpTasks, TaskSupport};
pub use crate::documents::tools::{Change, ReadOptions, Snapshot, changes, is_tool_list, load, read, tool_changes};

#[cfg(feature = "mcp")]
/// The error of an invalid configuration.
fn invalid(message: impl Into<String>) -> crate::CallError {
    crate::CallError::new(crate::ErrorCode::ValidationError, message.into())
}
