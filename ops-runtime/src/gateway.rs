//! A gateway: any number of operations behind the few tools that a model can keep in mind.
//!
//! No model can use an MCP server of 2,000 tools: their list alone fills its context. A gateway has three tools, and
//! behind them everything: a program's own operations, whole APIs by their documents, other MCP servers. `search` finds
//! operations by words, `describe` shows one as a TypeScript signature, `call` calls it. With programs (feature
//! `program`), `execute` replaces `call`: a model then writes a program of many calls, which runs in a sandbox.
//!
#![cfg_attr(
    feature = "macros",
    doc = r#"
```
use ops_runtime::{Registry, operation};
use ops_runtime::gateway::{Gateway, Tools};

/// Adds two numbers.
#[operation(namespace = "math", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Add)?;
let gateway = Gateway::builder().with_registry(registry).with_tools(Tools::Search).build().await?;
# if false {
gateway.serve_stdio().await?;
# }
# Ok(()) }
```
"#
)]
//!
//! # Rules
//!
//! Every call obeys the same rules, whichever way it arrives. A [`CallPolicy`](crate::access::CallPolicy) decides which operations may be called,
//! which need approval, and which are refused; by default, operations that change nothing are allowed, and those that
//! [may change something](crate::spec::OperationSpec::may_change) need approval. If the client can ask its user
//! (elicitation), the gateway requests that. Otherwise, the tool's result tells the model to ask the user, and has a key:
//! the model repeats the call with it after the approval. Callers have [limits](CallerLimits), and an
//! [audit log](AuditLog) records their calls.
//!
//! Over stdio the caller is the owner, who started the process: access rules are not checked. Over HTTP they are
//! checked against the identity that the authenticator returns, and callers find and call only what they may call.
//!
//! For a failed call, a model reads what clients of an [`McpServer`] get, for every caller and kind of tools. Failures
//! without a code of their own, and headers and undeclared error responses of other servers, are only logged.
//! [`McpServerOptions::with_exposed_errors`] shows the messages of such failures.
//!
//! Servers, services and registries of a gateway work on after the [`Gateway`] is dropped. A registry without a server then
//! follows no further changes of the operations.

mod approval;
mod audit;
mod blocks;
mod builder;
mod caller;
mod core;
#[cfg(feature = "program")]
mod execute;
mod find;
mod gate;
#[cfg(feature = "program")]
mod host;
mod large;
mod limits;
#[cfg(feature = "program")]
mod place;
#[cfg(feature = "program")]
mod programs;
mod rules;
mod size;
mod summary;
mod tool_result;
mod tools;
mod upstream;

use std::fmt;
use std::io;
use std::sync::Arc;

pub use self::audit::{Approval, AuditEntry, AuditInputs, AuditLog, AuditOptions, AuditRecord, AuditSink};
pub use self::builder::GatewayBuilder;
pub use self::caller::CallerId;
pub use self::large::{Fitted, Part, ReadAt, ResultLimits, Results, Unit};
pub use self::limits::{CallPermit, CallerLimits, Limiter, Rate};

use self::core::Core;
use crate::mcp::{McpServer, McpServerOptions, McpService};
use crate::{BoxFuture, CallError, Diagnostic, Identity, Registry};

/// Number of operations from which `search` replaces one tool per operation.
const MANY: usize = 40;

/// The tools through which a gateway offers its operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Tools {
    /// A tool for each operation if there are fewer than 40; otherwise as `Search`.
    #[default]
    Auto,
    /// A tool for each operation.
    All,
    /// `search`, `describe` and `call`.
    Search,
    /// `search`, `describe` and `execute`, which runs a program of many calls.
    #[cfg(feature = "program")]
    Code,
}

/// Operations behind a few tools, under rules; see the [module](self).
///
/// A clone is the same gateway.
#[derive(Clone)]
pub struct Gateway {
    core: Arc<Core>,
    tools: Tools,
    options: McpServerOptions,
    identity: Option<Identity>,
    diagnostics: Arc<Vec<(String, Diagnostic)>>,
    failures: Arc<Vec<(String, CallError)>>,
    without_credentials: Arc<Vec<(String, String)>>,
}

impl Gateway {
    /// A builder for a gateway.
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder::default()
    }

    /// All operations, as callers find them: each call by this registry is checked against the gateway's rules.
    pub fn registry(&self) -> &Registry {
        self.core.gate.registry()
    }

    /// The diagnostics of reading documents, each with the document's location.
    pub fn diagnostics(&self) -> &[(String, Diagnostic)] {
        &self.diagnostics
    }

    /// Documents that could not be read and servers that could not be connected to, each error with its location or
    /// name.
    pub fn failures(&self) -> &[(String, CallError)] {
        &self.failures
    }

    /// The documents whose operations need credentials that are not set: the location of each, and a message that says
    /// what to set.
    ///
    /// Documents with credentials for some of their operations are left out.
    pub fn without_credentials(&self) -> &[(String, String)] {
        &self.without_credentials
    }

    /// Serves the parent process over stdio, until it closes stdin.
    ///
    /// # Errors
    /// If the client does not follow the protocol at the start, or if the pipe breaks.
    pub fn serve_stdio(&self) -> BoxFuture<'_, io::Result<()>> {
        Box::pin(async move {
            let served = self.mcp_server(true).serve_stdio().await;
            self.flush().await;
            served
        })
    }

    /// Waits until the audit log, if there is one, has written all calls that have ended: for the end of a process.
    ///
    /// It waits 5 seconds at most, and does not wait for a log that fails and is not
    /// [required](AuditOptions::with_required). The number of lost entries is logged as an error.
    pub async fn flush(&self) {
        self.core.gate.rules().flush().await;
    }

    /// The gateway as an MCP server over HTTP, to be mounted. Each call is checked against the identity of its caller.
    /// A caller that is not authenticated may call only what needs no rights.
    pub fn mcp_service(&self) -> McpService {
        self.mcp_server(false).into_service()
    }

    /// The gateway as an MCP server that treats callers without an identity as the owner, or as the
    /// [identity](GatewayBuilder::with_identity) that the gateway was built with.
    pub fn owned_mcp_server(&self) -> McpServer {
        self.mcp_server(true)
    }

    /// The tools as operations, for a program that calls a model itself: `gateway.search` and so on, or a snapshot of
    /// all operations if there are few. The text for the model is in the content blocks of the result's meta
    /// ([`McpMeta`](crate::envelope::McpMeta)). A call without an identity is the owner's. The text of a failed call is as it
    /// would be over MCP; a snapshot returns errors as they are.
    ///
    /// ```
    /// # use ops_runtime::Registry;
    /// # use ops_runtime::gateway::{Gateway, Tools};
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let gateway = Gateway::builder().with_tools(Tools::Search).build().await?;
    /// let found = gateway.tools().call("gateway.search", serde_json::json!({ "query": "refund" })).await?;
    /// let text = found.meta.as_mcp().and_then(|meta| meta.content[0].as_text().map(str::to_owned));
    /// assert_eq!(text.as_deref(), Some("There are no operations."));
    /// # Ok(()) }
    /// ```
    pub fn tools(&self) -> Registry {
        let own = || tools::own(&self.core).unwrap_or_default();
        self.few(true).unwrap_or_else(own)
    }

    /// The few tools, unless there is one per operation.
    fn few(&self, unknown_is_owner: bool) -> Option<Registry> {
        match self.tools {
            Tools::All => None,
            Tools::Auto if self.registry().list().len() < MANY => None,
            _ => tools::registry(&self.core, unknown_is_owner).ok(),
        }
    }

    fn mcp_server(&self, unknown_is_owner: bool) -> McpServer {
        let server = match self.few(unknown_is_owner) {
            Some(few) => McpServer::new(few).with_names(|spec| spec.name().to_owned()),
            None => {
                self.core.gate.keep_following();
                McpServer::new(self.registry().clone())
            }
        };
        let server = server.with_options(self.options.clone());
        match &self.identity {
            // Over HTTP, a caller without authentication is unknown.
            Some(identity) if unknown_is_owner => server.with_identity(identity.clone()),
            _ => server,
        }
    }

    /// The operations over HTTP, with their OpenAPI document: see [`HttpServer`](crate::serve::HttpServer). Each call
    /// is checked against the identity of its caller. Calls for which the policy requires approval are allowed, since
    /// the caller is not a model.
    #[cfg(feature = "http-server")]
    pub fn http_server(&self) -> crate::serve::HttpServer {
        self.core.gate.keep_following();
        crate::serve::HttpServer::new(self.registry().clone())
    }
}

impl fmt::Debug for Gateway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operations = self.registry().list().len();
        f.debug_struct("Gateway").field("tools", &self.tools).field("operations", &operations).finish_non_exhaustive()
    }
}
