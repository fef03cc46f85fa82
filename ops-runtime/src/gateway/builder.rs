//! What a gateway is built of: documents, MCP servers, rules and limits.

use std::fmt;
use std::sync::Arc;

use super::core::{Approvals, Core};
use super::gate::Gate;
use super::rules::Rules;
use super::upstream::{self, Document};
use super::{AuditLog, CallerLimits, Gateway, ResultLimits, Results, Tools, approval};
#[cfg(feature = "program")]
use super::{place, programs};
use crate::mcp::{McpClients, McpConfig, McpServerOptions};
use crate::run::filter::Filters;
use crate::spec::{check_pattern, may_name_a_method};
use crate::{BoxFuture, CallError, CallPolicy, ErrorCode, HttpConfig, Identity, OperationSpec, Registry};

/// Builds a gateway.
#[derive(Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct GatewayBuilder {
    registry: Option<Registry>,
    documents: Vec<Document>,
    credentials_from_env: bool,
    servers: Option<McpConfig>,
    has_mock_servers: bool,
    filters: Filters,
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
    /// The namespace is that of the configuration, or else the name of the file. For a URL that ends in a usual name, such as
    /// `openapi.json`, it is the document's title. A file may also be a list of tools
    /// (`ops snapshot`): without its server, they are found and described, but calls of them fail.
    pub fn with_document(mut self, location: impl Into<String>, config: HttpConfig) -> Self {
        self.documents.push(Document::new(location.into(), config, false));
        self
    }

    /// Adds a document like [`with_document`](Self::with_document), but its operations return examples.
    pub fn with_mock(mut self, location: impl Into<String>, config: HttpConfig) -> Self {
        self.documents.push(Document::new(location.into(), config, true));
        self
    }

    /// Follows the references of the document that was added last anywhere within this folder, not only within the document's
    /// own folder. The document may lie at any depth in it. For the command `ops`, whose folders have many documents.
    #[doc(hidden)]
    pub fn within(mut self, folder: impl Into<std::path::PathBuf>) -> Self {
        if let Some(document) = self.documents.last_mut() {
            document.within = Some(folder.into());
        }
        self
    }

    /// Reads credentials of documents from the environment: those of the namespace `my-shop` from `MY_SHOP_TOKEN` and
    /// so on, as for [`HttpConfig::with_credentials_from_env`]. Credentials in a document's own configuration take
    /// precedence.
    ///
    /// A variable is for one document. With documents `my` and `my-shop`, `MY_SHOP_TOKEN` is for the latter alone. But
    /// `MY_API_KEY` is for `my`, as a variable for all schemes of a kind, even if there is a document `my-api`. Two
    /// documents with the same prefix, such as `my-shop` and `my_shop`, get none, and a warning is logged.
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

    /// Shows the operations of these namespaces only.
    pub fn with_namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.filters.add_namespaces(namespaces);
        self
    }

    /// Shows only operations that the filter accepts; with several filters, those that all accept.
    pub fn with_filter(mut self, filter: impl Fn(&OperationSpec) -> bool + Send + Sync + 'static) -> Self {
        self.filters.add(filter);
        self
    }

    /// Shows only operations that change nothing: those for which [`OperationSpec::may_change`] is false.
    pub fn read_only(self) -> Self {
        self.with_filter(|spec| !spec.may_change())
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

    /// Sets how long results may be, and how many are kept so that a model can read the rest.
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
    /// A document or server that fails does not stop the others: see [`Gateway::failures`]. A server with the namespace of
    /// a named document or of another server fails, too.
    ///
    /// # Errors
    /// If two sources have operations with the same id. A `VALIDATION_ERROR` if a pattern of the policy is a mistake
    /// ([`check_pattern`](crate::spec::check_pattern)). A document or a server that fails may have the method that a pattern
    /// such as `BATCH *` names, so such a pattern is then no error. Any other pattern that matches no present operation is
    /// logged at the level `WARN`.
    ///
    /// Operations that were registered before the error stay in the [registry](Self::with_registry).
    pub fn build(self) -> BoxFuture<'static, Result<Gateway, CallError>> {
        Box::pin(self.connect())
    }

    async fn connect(self) -> Result<Gateway, CallError> {
        let registry = self.registry.unwrap_or_default();
        let configured = self.servers.map(|config| upstream::with_own_namespaces(config, &self.documents));
        let connecting = async {
            match &configured {
                Some(config) => Some(McpClients::connect(config).await),
                None => None,
            }
        };
        #[cfg(feature = "program")]
        let clients: Vec<_> =
            self.documents.iter().map(|document| (document.config.clone(), document.is_mock)).collect();
        let others = configured.iter().flat_map(upstream::namespaces_of_servers).collect();
        let own = registry.list().iter().map(|spec| spec.namespace().to_lowercase()).collect();
        let namespaces = upstream::Taken { others, own };
        let reading = upstream::read(self.documents, namespaces, self.credentials_from_env);
        let (read, servers) = futures_util::join!(reading, connecting);
        let read = read?;
        #[cfg(feature = "program")]
        let place = place::of(&clients, &read, configured.as_ref(), self.has_mock_servers);
        let upstream::Collected { operations, diagnostics, mut failures, without_credentials } =
            upstream::collect(read);
        registry.register_all(operations)?;
        if let Some(servers) = &servers {
            register_servers(servers, self.has_mock_servers, &registry).await?;
            failures.extend(servers.errors().iter().map(|(name, error)| (name.clone(), error.clone())));
        }
        check_patterns(&self.policy, &registry, failures.is_empty())?;
        let rules = Arc::new(Rules::new(self.policy, self.limits.clone(), self.audit));
        let gate = Gate::new(registry, servers, self.filters, rules);
        let options = self.options.unwrap_or_default();
        let approvals = Approvals { waiting: approval::Waiting::default(), by_answer: !self.asks_by_client_only };
        #[allow(unused_mut, reason = "programs are set below")]
        let mut core = Core::new(gate, Results::new(self.results), approvals, options.expose_errors);
        #[cfg(feature = "program")]
        if self.tools == Tools::Code {
            core.programs = Some(programs::Programs::new(self.program_limits, self.limits, self.program_store, place));
        }
        Ok(Gateway {
            core: Arc::new(core),
            tools: self.tools,
            options,
            identity: self.identity,
            diagnostics: Arc::new(diagnostics),
            failures: Arc::new(failures),
            without_credentials: Arc::new(without_credentials),
        })
    }
}

/// Registers the tools of servers, or operations that return examples in their place.
async fn register_servers(servers: &McpClients, are_mocks: bool, registry: &Registry) -> Result<(), CallError> {
    if are_mocks {
        let tools = servers.operations();
        servers.close_all().await;
        registry.register_all(tools.into_iter().map(crate::mock::examples))?;
    } else {
        servers.register_all(registry)?;
    }
    Ok(())
}

/// Refuses the patterns of a policy that are mistakes, and warns of others that match no operation. If some operations are
/// missing (`are_all` is false), it only warns of a pattern whose method another document may have.
fn check_patterns(policy: &CallPolicy, registry: &Registry, are_all: bool) -> Result<(), CallError> {
    let specs = registry.list();
    for (decision, pattern) in policy.patterns() {
        if specs.iter().any(|spec| spec.matches(pattern)) {
            continue;
        }
        match check_pattern(pattern, specs.iter().map(|spec| &**spec)) {
            Err(error) if are_all || !may_name_a_method(pattern) => {
                let message = format!("the pattern `{pattern}` of the policy: {error}");
                return Err(CallError::new(ErrorCode::ValidationError, message));
            }
            _ => tracing::warn!(?decision, pattern, "a pattern of the policy matches no operation"),
        }
    }
    Ok(())
}

impl fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatewayBuilder").field("tools", &self.tools).finish_non_exhaustive()
    }
}
