//! A registry as an MCP server: its operations are tools for any host.
//!
//! Over stdio it is `McpServer::new(registry).serve_stdio().await?`; over HTTP, `into_service()` gives what `axum` and
//! others mount. All revisions of the protocol from 2024-11-05 to 2026-07-28 are spoken, but for the batches of 2025-03-26: each
//! message has to come by itself.
//!
//! # Tools
//!
//! Every operation with a handler is a tool, unless it is filtered out. Its name is the id, with `_` for every
//! character but letters, digits, `_` and `-`: `math.add` is `math_add`. MCP would allow a dot, but the models of hosts
//! do not. The name ends with a hash if it would be longer than 64 characters, if another operation had that name before,
//! or if two ids would share it (then both names end with a hash). So names do not depend on the order in which operations
//! are registered. While the server runs, a call by a former name reaches the operation that had that name, or fails if
//! that operation is gone. Tools are listed in the order of their names.
//!
//! A tool's arguments are the operation's input, or `{"input": X}` if that is not an object. Its output schema is the
//! operation's, and its results are structured content. Before 2026-07-28 that had to be an object, so any other output
//! is `{"result": X}`, with a schema that says so (and the mark `x-fastmcp-wrap-result`). An output without a schema is
//! structured content if the revision allows the value. The text of a result is always the data itself: a string
//! unchanged, everything else as JSON.
//!
//! An operation that returns content blocks, `Vec<ContentBlock>` or an envelope with [`McpMeta`](crate::McpMeta), has
//! these as its result. A query is `readOnlyHint: true`, and so is a subscription whose HTTP method says that it changes
//! nothing (`GET`, `HEAD`, `OPTIONS`, `QUERY`), unless [`OperationSpec::changes`](crate::spec::OperationSpec::changes) says
//! that it does. Other subscriptions have no hint.
//!
//! # Subscriptions
//!
//! A subscription's items are progress notifications, for clients that ask for progress: the number of the item, and
//! the item as text. The result has all of them as a list, up to [`max_items`](McpServerOptions::max_items),
//! [`max_bytes`](McpServerOptions::max_bytes) and the [`timeout`](McpServerOptions::timeout) of the call. A shortened list
//! says so in its text, and by `ops/truncated` in its `_meta`.
//!
//! An item that fails does not end the subscription: its text is a progress notification, and the items after it are
//! collected. Then the result is an error (`isError`), with the text of each failure, followed by the items.
//! `ops/errors` in its `_meta` has the failures, each with its `index` among all items.
//!
//! # Asking the client
//!
//! A handler reaches the client that called its tool by [`McpPeer::of`]: it can ask the user (elicitation) or the model
//! (sampling). Its reports by [`Context::report`](crate::Context::report) are progress notifications.
//!
//! # Tasks
//!
//! With the feature `durable`, `McpServer::with_tasks` runs calls as durable jobs that clients poll, cancel and read:
//! the tasks of 2025-11-25, and the extension of 2026-07-28. See `McpTasks`.
//!
//! # Errors
//!
//! An unknown tool is an error of the protocol. Every other failure is a result with `isError`: `CODE: message`, then
//! the details as JSON, and all three as `ops/error` in its `_meta`. A failure without a code of its own
//! (`EXECUTION_ERROR`, `UNKNOWN_ERROR`) may contain anything, such as a path or a password. It is logged, and the
//! caller gets the request id; [`expose_errors`](McpServerOptions::expose_errors) shows its message. For
//! errors that callers should read, use a code that the operation declares, or a `CallError::new("OUT_OF_STOCK", ..)`.
//! An HTTP error shows its status. It also shows its body if the called operation is one of the API that responded, and
//! declares that status. A function that passes the error on does not show the body.
//!
//! Repairs of a result (`warnings` of the envelope) are `ops/warnings` in its `_meta`.
//!
//! # Who may call what
//!
//! Over stdio the caller is the owner, who started the process: access rules are not checked, unless
//! [`with_identity`](McpServer::with_identity) sets an identity. Over HTTP they are checked against the identity that
//! the authenticator of [`McpService`] returns; callers without an identity may only run operations without access
//! rules. Callers do not see tools that they may not call; calling one nevertheless fails with `ACCESS_DENIED`.

mod answers;
mod body;
mod call;
mod cors;
mod handler;
mod http;
mod length;
mod limits;
mod listen;
mod message;
mod name;
mod opening;
mod options;
mod peer;
mod question;
mod result;
mod schema;
mod served;
mod session;
mod sessions;
mod shared;
#[cfg(feature = "durable")]
mod tasks;
mod tool;
mod unread;

use std::fmt;
use std::io;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};

pub use self::body::McpBody;
pub use self::http::McpService;
pub use self::options::McpServerOptions;
pub use self::peer::McpPeer;
#[cfg(feature = "durable")]
pub use self::tasks::{McpTasks, TaskSupport};
pub use crate::model::unauthorized::Unauthorized;
pub use crate::run::authenticator::Authenticator;

use self::handler::Connection;
use self::opening::Opening;
use self::peer::States;
use self::served::Cache;
use self::shared::Shared;
use crate::run::filter::Filters;
use crate::{BoxFuture, Identity, OperationSpec, Registry};

type Read = Box<dyn AsyncRead + Send + Unpin>;
type Write = Box<dyn AsyncWrite + Send + Unpin>;

/// A registry as an MCP server.
///
#[cfg_attr(
    feature = "macros",
    doc = r#"
```no_run
use ops_runtime::mcp::{McpServer, McpServerOptions};
use ops_runtime::{Registry, operation};

/// Adds two numbers.
#[operation(namespace = "math", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Add)?;
McpServer::new(registry).with_options(McpServerOptions::new("calculator", "1.0.0")).serve_stdio().await?;
# Ok(()) }
```
"#
)]
#[doc(alias = "FastMCP")]
pub struct McpServer(Shared);

impl McpServer {
    /// A server for all operations that the registry has, now and later.
    pub fn new(registry: Registry) -> Self {
        Self(Shared {
            registry,
            options: McpServerOptions::default(),
            identity: None,
            filters: Filters::default(),
            naming: None,
            cache: Cache::default(),
            states: States::random(),
            #[cfg(feature = "durable")]
            tasks: None,
        })
    }

    /// Sets the name, the version and the limits.
    #[must_use]
    pub fn with_options(mut self, options: McpServerOptions) -> Self {
        self.0.options = options;
        self
    }

    /// Sets the identity of callers if the transport does not: every call is checked against it.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.0.identity = Some(Arc::new(identity));
        self
    }

    /// Sets the key that signs the state of calls that wait for answers ([`McpPeer`]). Servers behind one load balancer
    /// need the same key; by default each generates its own.
    #[must_use]
    pub fn with_state_key(mut self, key: [u8; 32]) -> Self {
        self.0.states = States::new(key);
        self
    }

    /// Serves calls as tasks, which are durable jobs: of [`Jobs`](crate::durable::Jobs), or of [`McpTasks`] with
    /// further options.
    ///
    /// A [`Worker`](crate::durable::Worker) for these jobs must run, with the served operations.
    #[cfg(feature = "durable")]
    #[must_use]
    pub fn with_tasks(mut self, tasks: impl Into<McpTasks>) -> Self {
        self.0.tasks = Some(tasks.into());
        self
    }

    /// Serves the operations of these namespaces only.
    #[must_use]
    pub fn with_namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.0.filters.add_namespaces(namespaces);
        self
    }

    /// Serves only operations that the filter accepts; with several filters, those that all accept.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&OperationSpec) -> bool + Send + Sync + 'static) -> Self {
        self.0.filters.add(filter);
        self
    }

    /// Sets the names of tools; by default they are made from the ids. In either case, characters other than letters,
    /// digits, `_` and `-` become `_`, and a hash of the id is added to a name that is too long or not unique.
    #[must_use]
    pub fn with_names(mut self, name: impl Fn(&OperationSpec) -> String + Send + Sync + 'static) -> Self {
        self.0.naming = Some(Box::new(name));
        self
    }

    /// Serves the parent process, until it closes stdin.
    ///
    /// The protocol needs stdout for itself: any other output there breaks it. The runtime must drive I/O, like that of
    /// `#[tokio::main]`.
    ///
    /// # Errors
    /// If the client does not follow the protocol at the start, or if the pipe breaks.
    pub fn serve_stdio(self) -> BoxFuture<'static, io::Result<()>> {
        let (read, write) = rmcp::transport::stdio_pipes();
        self.serve(read, write)
    }

    /// Serves one client over a pair of pipes, until it closes its end: messages are lines of JSON.
    ///
    /// # Errors
    /// If the client does not follow the protocol at the start, or if the pipe breaks.
    pub fn serve<R, W>(self, read: R, write: W) -> BoxFuture<'static, io::Result<()>>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        self.serve_pipes(Box::new(read), Box::new(write))
    }

    fn serve_pipes(self, read: Read, write: Write) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(self.over_pipes(read, write))
    }

    async fn over_pipes(self, read: Read, write: Write) -> io::Result<()> {
        // Servers with and without tasks use one type of transport, since the SDK is compiled for each type.
        #[cfg(feature = "durable")]
        let pipe = tasks::Pipe::new(read, write, self.0.tasks.is_some());
        #[cfg(not(feature = "durable"))]
        let pipe = rmcp::transport::async_rw::AsyncRwTransport::new_server(read, write);
        let running = match Connection::new(Arc::new(self.0)).serve(Opening::new(pipe)).await {
            Ok(running) => running,
            // A client only checked if there is a server.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(io::Error::other(error)),
        };
        running.waiting().await.map(|_| ()).map_err(io::Error::other)
    }

    /// The server over streamable HTTP, to be mounted.
    pub fn into_service(self) -> McpService {
        McpService::new(self.0)
    }
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer").field("options", &self.0.options).finish_non_exhaustive()
    }
}
