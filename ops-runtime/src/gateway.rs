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
//! Every call obeys the same rules, whichever way it arrives. A [`CallPolicy`] decides which operations may be called,
//! which need approval, and which are refused; by default queries are allowed, and everything else needs approval. If
//! the client can ask its user (elicitation), it is asked to. Otherwise the tool's result tells the model to ask, with
//! a key for the call that follows the user's approval. Callers have [limits](CallerLimits), and an [audit
//! log](AuditLog) records their calls.
//!
//! Over stdio the caller is the owner, who started the process: access rules are not checked. Over HTTP they are
//! checked against the identity that the authenticator returns, and callers find and call only what they may call.

mod approval;
mod audit;
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
pub use self::caller::CallerId;
pub use self::large::{Fitted, Part, ReadAt, ResultLimits, Results, Unit};
pub use self::limits::{CallPermit, CallerLimits, Limiter, Rate};

use self::core::{Approvals, Core};
use self::gate::{Filter, Gate};
use self::rules::Rules;
use self::upstream::Document;
use crate::mcp::{McpClients, McpConfig, McpServer, McpServerOptions, McpService};
use crate::{
    BoxFuture, CallError, CallPolicy, Diagnostic, HttpConfig, Identity, OperationKind, OperationSpec, Registry,
};

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
    /// Kept to keep their connections open.
    _servers: Option<McpClients>,
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
    /// ([`McpMeta`](crate::envelope::McpMeta)). A call without an identity is the owner's.
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

/// Builds a gateway.
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct GatewayBuilder {
    registry: Option<Registry>,
    documents: Vec<Document>,
    credentials_from_env: bool,
    servers: Option<McpConfig>,
    has_mock_servers: bool,
    filters: Vec<Filter>,
    tools: Tools,
    options: Option<McpServerOptions>,
    identity: Option<Identity>,
    policy: CallPolicy,
    limits: CallerLimits,
    results: ResultLimits,
    audit: Option<AuditLog>,
    asks_by_client_only: bool,
    #[cfg(feature = "program")]
    program_limits: crate::program::Limits,
    #[cfg(feature = "program")]
    program_store: Option<Arc<dyn crate::program::JournalStore>>,
}

impl GatewayBuilder {
    /// Sets the program's own registry. The operations of documents and servers are registered there, too.
    pub fn with_registry(mut self, registry: Registry) -> Self {
        self.registry = Some(registry);
        self
    }

    /// Adds the API of an OpenAPI document, in a file or at a URL, called by a client with that configuration. Its
    /// credentials are used for this API only.
    ///
    /// The namespace is that of the configuration, or else the name of the file. A file may also be a list of tools
    /// (`ops snapshot`): without its server, they are found and described, but calls of them fail.
    pub fn with_document(mut self, location: impl Into<String>, config: HttpConfig) -> Self {
        self.documents.push(Document { location: location.into(), config, is_mock: false });
        self
    }

    /// Adds a document like [`with_document`](Self::with_document), but its operations return examples.
    pub fn with_mock(mut self, location: impl Into<String>, config: HttpConfig) -> Self {
        self.documents.push(Document { location: location.into(), config, is_mock: true });
        self
    }

    /// Reads credentials of documents from the environment: those of the namespace `my-shop` from `MY_SHOP_TOKEN` and
    /// so on, as for [`HttpConfig::with_credentials_from_env`]. Credentials in a document's own configuration take
    /// precedence.
    pub fn with_credentials_from_env(mut self) -> Self {
        self.credentials_from_env = true;
        self
    }

    /// Adds the tools of the MCP servers of a configuration, and updates them when they change.
    pub fn with_mcp_servers(mut self, config: McpConfig) -> Self {
        (self.servers, self.has_mock_servers) = (Some(config), false);
        self
    }

    /// Adds the tools of the MCP servers of a configuration, but they return examples. Each server is asked for its
    /// tools when the gateway is built; then the connection is closed.
    pub fn with_mock_mcp_servers(mut self, config: McpConfig) -> Self {
        (self.servers, self.has_mock_servers) = (Some(config), true);
        self
    }

    /// Shows only operations that the filter accepts; with several filters, those that all accept.
    pub fn with_filter(mut self, filter: impl Fn(&OperationSpec) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Shows only queries, which change nothing.
    pub fn read_only(self) -> Self {
        self.with_filter(|spec| spec.kind != OperationKind::Mutation)
    }

    /// Sets which tools models see.
    pub fn with_tools(mut self, tools: Tools) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the name, the instructions and the limits of the MCP server.
    pub fn with_options(mut self, options: McpServerOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Sets the identity of the caller over stdio: every call is checked against it. Callers over HTTP do not get it.
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets which operations may be called, and which need approval first.
    pub fn with_policy(mut self, policy: CallPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Accepts approval only from the client. By default, if the client can't ask the user, the tool's result tells the
    /// model to ask and to repeat the call with a key. Then only the model vouches that the user agreed.
    pub fn with_approval_by_client_only(mut self) -> Self {
        self.asks_by_client_only = true;
        self
    }

    /// Sets the limits of programs.
    #[cfg(feature = "program")]
    pub fn with_program_limits(mut self, limits: crate::program::Limits) -> Self {
        self.program_limits = limits;
        self
    }

    /// Sets where programs are stored while they wait for approval, for example a
    /// [`FolderStore`](crate::program::FolderStore), so that they can go on in another process. By default they are in
    /// memory for a day: 50 of each caller, of up to 64 MiB, and 1,000 of all, of up to 256 MiB.
    ///
    /// A program goes on only behind a gateway whose documents and MCP servers lead to the same servers. Operations of
    /// the [own registry](Self::with_registry) are not compared: if they lead to different servers, use a store for each.
    #[cfg(feature = "program")]
    pub fn with_program_store(mut self, store: impl crate::program::JournalStore + 'static) -> Self {
        self.program_store = Some(Arc::new(store));
        self
    }

    /// Sets the limits of each caller: for calls, and separately for programs.
    pub fn with_limits(mut self, limits: CallerLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long results may be, and how many are kept for reading on.
    pub fn with_results(mut self, limits: ResultLimits) -> Self {
        self.results = limits;
        self
    }

    /// Logs every call.
    pub fn with_audit(mut self, log: AuditLog) -> Self {
        self.audit = Some(log);
        self
    }

    /// Reads the documents, connects to the servers, and builds the gateway.
    ///
    /// A document or server that fails does not stop the others: see [`Gateway::failures`].
    ///
    /// # Errors
    /// If two sources have operations with the same id, or if a pattern of the policy can match no id
    /// ([`check_pattern`](crate::spec::check_pattern)). A pattern that matches no present operation is logged at the
    /// level `WARN`.
    pub fn build(self) -> BoxFuture<'static, Result<Gateway, CallError>> {
        Box::pin(self.connect())
    }

    async fn connect(self) -> Result<Gateway, CallError> {
        for (_, pattern) in self.policy.patterns() {
            let refused = |error| CallError::execution(format!("the pattern `{pattern}` of the policy: {error}"));
            crate::spec::check_pattern(pattern).map_err(refused)?;
        }
        let registry = self.registry.unwrap_or_default();
        let connecting = async {
            match &self.servers {
                Some(config) => Some(McpClients::connect(config).await),
                None => None,
            }
        };
        #[cfg(feature = "program")]
        let clients: Vec<_> =
            self.documents.iter().map(|document| (document.config.clone(), document.is_mock)).collect();
        let others = self.servers.iter().flat_map(upstream::namespaces_of_servers).collect();
        let own = registry.list().iter().map(|spec| spec.namespace().to_lowercase()).collect();
        let taken = upstream::Taken { others, own };
        let reading = upstream::read(self.documents, taken, self.credentials_from_env);
        let (read, servers) = futures_util::join!(reading, connecting);
        let read = read?;
        #[cfg(feature = "program")]
        let place = place::of(&clients, &read, self.servers.as_ref(), self.has_mock_servers);
        let taken = |error: crate::RegistryError| CallError::execution(error.to_string());
        let upstream::Collected { operations, diagnostics, mut failures, without_credentials } =
            upstream::collect(read);
        registry.register_all(operations).map_err(taken)?;
        if let Some(servers) = &servers {
            if self.has_mock_servers {
                let tools = servers.operations();
                servers.close_all().await;
                registry.register_all(tools.into_iter().map(crate::mock::examples)).map_err(taken)?;
            } else {
                servers.register_all(&registry).map_err(taken)?;
            }
            failures.extend(servers.errors().iter().map(|(name, error)| (name.clone(), error.clone())));
        }
        let specs = registry.list();
        for (decision, pattern) in self.policy.patterns() {
            if !specs.iter().any(|spec| spec.matches(pattern)) {
                tracing::warn!(?decision, pattern, "a pattern of the policy matches no operation");
            }
        }
        drop(specs);
        let rules = Arc::new(Rules::new(self.policy, self.limits.clone(), self.audit));
        let gate = Gate::new(registry, self.filters, rules);
        let approvals = Approvals { waiting: approval::Waiting::default(), by_answer: !self.asks_by_client_only };
        #[allow(unused_mut, reason = "programs are set below")]
        let mut core = Core::new(gate, large::Results::new(self.results), approvals);
        #[cfg(feature = "program")]
        if self.tools == Tools::Code {
            core.programs = Some(programs::Programs::new(self.program_limits, self.limits, self.program_store, place));
        }
        Ok(Gateway {
            core: Arc::new(core),
            tools: self.tools,
            options: self.options.unwrap_or_default(),
            identity: self.identity,
            diagnostics: Arc::new(diagnostics),
            failures: Arc::new(failures),
            without_credentials: Arc::new(without_credentials),
            _servers: servers,
        })
    }
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").field("tools", &self.tools).finish_non_exhaustive()
    }
}
