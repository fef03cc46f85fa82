//! The client: an endpoint for a registry, and a caller by itself.

mod batch;
mod caller;
mod catalog;
mod delay;
mod host;
mod interceptor;
mod link;
mod listen;
mod secrets;
mod session;
mod start;
mod stdio;
mod task;
mod update;

#[cfg(feature = "mcp-auth")]
mod auth;
#[cfg(feature = "mcp-http")]
mod http;

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, OnceLock, Weak};

use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};
use tokio_util::task::AbortOnDropHandle;

pub use session::McpServerInfo;

use super::config::McpServerConfig;
use crate::mcp::Snapshot;
use crate::model::futures::BoxFuture;
use crate::model::lock::lock;
#[cfg(feature = "mcp-auth")]
use crate::model::secrets::Secrets;
use crate::run::attempt::refuse_key;
use crate::run::handler::Erased;
use crate::run::registry::WeakRegistry;
use crate::{
    CallError, Context, Diagnostic, Endpoint, Handler, OperationSpec, Payload, Registration, Registry, RegistryError,
    ResponseEnvelope, SpecRef,
};
use catalog::Catalog;
use delay::delay;
use link::Link;
use session::Session;

/// The shortest interval between two refreshes of the tools.
const REFRESH: std::time::Duration = std::time::Duration::from_secs(1);

/// How often a failed listing is retried, until the server reports a change again: about two minutes.
const MAX_REFRESHES: u32 = 10;

/// A client of one MCP server, which runs its tools as operations.
///
/// A clone is the same client. The connection stays open as long as a clone, or a registry that has its operations.
///
/// ```no_run
/// use ops_runtime::mcp::{McpClient, McpServerConfig};
/// use serde_json::json;
///
/// # async fn run() -> Result<(), ops_runtime::CallError> {
/// let config = McpServerConfig::stdio("npx", ["-y", "@modelcontextprotocol/server-everything"]).with_namespace("demo");
/// let client = McpClient::connect(config).await?;
/// let answer = client.call("demo.echo", json!({ "message": "hello" })).await?;
/// // By id, a tool that fails is no error: its result says why. A call by type fails with `TOOL_ERROR`.
/// if answer.meta.as_mcp().is_some_and(|meta| meta.is_error) {
///     println!("the tool failed");
/// }
/// println!("{}", answer.data);
/// client.close().await;
/// # Ok(()) }
/// ```
///
/// # When something fails
///
/// The next call restarts a server that has died or whose connection has ended, once for all waiting calls. Calls in
/// flight fail, with `interrupted` in their details. They are not repeated, because the server may have carried them
/// out. The same is true of a call over HTTP whose response is lost or cannot be read.
///
/// Failed restarts are retried after a growing delay, of 30 seconds at most. Calls wait for delays of up to a second;
/// during a longer delay, they fail at once, with the number of seconds as `retryAfter` in their details.
///
/// A call that is dropped or times out is cancelled at the server.
#[derive(Clone)]
pub struct McpClient {
    remote: Remote,
    /// The handler of all its operations, by which registries know that they belong to one client.
    handler: Handler,
    /// The operations that are run by their type.
    typed: Registry,
    /// The tools of the server, run by their id.
    dynamic: Registry,
}

/// The server as an endpoint, which registrations hold.
#[derive(Clone)]
struct Remote(Arc<Inner>);

struct Inner {
    name: Arc<str>,
    config: McpServerConfig,
    namespace: Option<String>,
    link: Mutex<Link>,
    catalog: Mutex<Arc<Catalog>>,
    /// How many times the server was asked for its tools.
    loads: AtomicU64,
    /// Diagnostics of the operations that the program expects, by their id.
    unfit: Mutex<Vec<(String, Diagnostic)>>,
    /// The registries that hold the tools, to be updated when the tools change.
    registries: Mutex<Vec<WeakRegistry>>,
    /// The endpoint of the client's handler. It is gone when the last handler is dropped.
    endpoint: OnceLock<Weak<dyn Erased>>,
    changed: Arc<Notify>,
    /// Lists the tools again when they have changed.
    refresher: OnceLock<AbortOnDropHandle<()>>,
    /// The authorization at the server, made when it is first needed.
    #[cfg(feature = "mcp-auth")]
    authorization: tokio::sync::OnceCell<auth::Authorization>,
}

impl McpClient {
    /// Connects to a server and lists its tools.
    /// # Errors
    /// If the server cannot be started or reached, or responds with an error; a `TIMEOUT` if it does not respond in
    /// time. Under [`OutputPolicy::Strict`](crate::OutputPolicy::Strict) also if an operation of
    /// [`with_operations`](McpServerConfig::with_operations) is missing or differs.
    #[doc(alias = "createMCPClient")]
    pub fn connect(config: McpServerConfig) -> BoxFuture<'static, Result<Self, CallError>> {
        Box::pin(async move {
            let name = config.namespace.clone().unwrap_or_else(|| match &config.target {
                super::config::Target::Stdio(stdio) => stdio.shown().to_owned(),
                super::config::Target::Http(http) => http.host().to_owned(),
            });
            Self::connect_named(&name, None, config).await
        })
    }

    /// Connects to a server; errors and logs use the given name. The tools' namespace is the configured one, else the
    /// given name, else the server's own name.
    pub(super) async fn connect_named(
        name: &str,
        namespace: Option<&str>,
        config: McpServerConfig,
    ) -> Result<Self, CallError> {
        let namespace = config.namespace.as_deref().or(namespace).map(|namespace| namespace.replace('.', "_"));
        let (typed, dynamic) = (registry(&config), registry(&config));
        let inner = Arc::new(Inner {
            name: name.into(),
            config,
            namespace,
            link: Mutex::default(),
            catalog: Mutex::default(),
            loads: AtomicU64::new(0),
            unfit: Mutex::default(),
            registries: Mutex::new(vec![dynamic.downgrade()]),
            endpoint: OnceLock::new(),
            changed: Arc::default(),
            refresher: OnceLock::new(),
            #[cfg(feature = "mcp-auth")]
            authorization: tokio::sync::OnceCell::new(),
        });
        let handler = Handler::endpoint(Remote(inner.clone()));
        let _ = inner.endpoint.set(Arc::downgrade(&handler.erased));
        let session = inner.open().await?;
        *lock(&inner.link) = Link::up(session);
        let weak = Arc::downgrade(&inner);
        let changed = inner.changed.clone();
        let refresher = tokio::spawn(async move {
            let mut failures = 0;
            loop {
                if failures == 0 {
                    changed.notified().await;
                } else {
                    // A failed listing is retried after a delay.
                    let _ = timeout(delay(failures), changed.notified()).await;
                }
                let Some(inner) = weak.upgrade() else { return };
                failures = if inner.refresh().await || failures == MAX_REFRESHES { 0 } else { failures + 1 };
                drop(inner);
                // A server that reports changes continuously is asked only at intervals.
                tokio::time::sleep(REFRESH).await;
            }
        });
        let _ = inner.refresher.set(AbortOnDropHandle::new(refresher));
        Ok(Self { remote: Remote(inner), handler, typed, dynamic })
    }

    /// The server's name in errors and logs.
    pub fn name(&self) -> &str {
        &self.remote.0.name
    }

    /// The present tools of the server, to be written to a file.
    pub fn snapshot(&self) -> Snapshot {
        let info = self.server_info();
        Snapshot::new(&info.name, &info.version, &info.protocol_version, self.tools())
    }

    /// What the server said about itself when the client last connected.
    pub fn server_info(&self) -> McpServerInfo {
        self.remote.0.catalog().info.clone()
    }

    /// The server's tools as it sent them, in its order.
    pub fn tools(&self) -> Vec<Value> {
        self.remote.0.catalog().tools.clone()
    }

    /// The server's tools as operations, loaded at run time. They are updated when the server reports that its tools
    /// have changed, and when it is restarted.
    pub fn operations(&self) -> Vec<SpecRef> {
        self.remote.0.catalog().operations.clone()
    }

    /// Registers the server's tools, and updates the registry when they change.
    ///
    /// Operations of this client that are already registered are kept: those of generated code, and those to which the
    /// program gave other specs, such as access rules. A tool that the program has removed stays away until the server
    /// lists it as a new one.
    ///
    /// # Errors
    /// If an id is taken by another operation.
    pub fn register_all(&self, registry: &Registry) -> Result<(), RegistryError> {
        let mut registries = lock(&self.remote.0.registries);
        let missing = self.operations().into_iter().filter(|spec| !self.remote.0.runs(registry, &spec.id));
        registry.register_all(self.remote.bind(missing))?;
        registries.push(registry.downgrade());
        Ok(())
    }

    /// The operations with this client as their handler, for `registry.register_all(..)`.
    ///
    /// # Errors
    /// Under [`OutputPolicy::Strict`](crate::OutputPolicy::Strict), if one of them is missing or differs at the server;
    /// under the default policy that is a [diagnostic](Self::diagnostics).
    pub fn bind<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Result<Vec<Registration>, CallError> {
        let specs: Vec<SpecRef> = specs.into_iter().map(Into::into).collect();
        specs.iter().try_for_each(|spec| self.remote.0.expect(spec))?;
        Ok(self.remote.bind(specs))
    }

    /// Problems with the tools: those that could not be read in full, and operations of generated code that the server
    /// lacks or has changed.
    pub fn diagnostics(&self) -> Vec<Diagnostic> {
        let mut diagnostics = self.remote.0.catalog().diagnostics.clone();
        diagnostics.extend(lock(&self.remote.0.unfit).iter().map(|(_, diagnostic)| diagnostic.clone()));
        diagnostics
    }

    /// Lists the tools again, which is not necessary if the server reports changes.
    ///
    /// # Errors
    /// If the server cannot be reached, or responds with an error.
    pub fn refresh(&self) -> BoxFuture<'_, Result<(), CallError>> {
        Box::pin(async move {
            let inner = &self.remote.0;
            let session = inner.session().await?;
            inner.take_over(inner.load(&session).await?)
        })
    }

    /// Number of requests without a response.
    pub fn in_flight(&self) -> usize {
        lock(&self.remote.0.link).session().map_or(0, |session| session.interceptor.pending())
    }

    /// Ends the connection; a child process is told to exit, and killed if it does not. Calls in flight fail, as do
    /// later ones.
    pub fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let before = std::mem::replace(&mut *lock(&self.remote.0.link), Link::Closed);
            if let Some(session) = before.session() {
                session.close().await;
            }
        })
    }
}

fn registry(config: &McpServerConfig) -> Registry {
    Registry::builder().with_policy(config.policy).build()
}

impl fmt::Debug for McpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClient").field("name", &self.name()).field("config", &self.remote.0.config).finish()
    }
}

impl Remote {
    fn bind<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Vec<Registration> {
        let handler = self.0.handler();
        specs.into_iter().map(|spec| Registration::new(spec, handler.clone())).collect()
    }
}

impl Inner {
    /// Connects, lists the tools and registers them.
    async fn open(self: &Arc<Self>) -> Result<Arc<Session>, CallError> {
        #[cfg(feature = "mcp-auth")]
        let authorization = self.authorization().await?;
        #[cfg(not(feature = "mcp-auth"))]
        let authorization = None;
        let session = Session::connect(&self.config, &self.name, self.changed.clone(), authorization).await?;
        session.listen(self.changed.clone()).await;
        let loaded = self.load(&session).await;
        if let Err(error) = loaded.and_then(|catalog| self.take_over(catalog)) {
            session.close().await;
            return Err(error);
        }
        Ok(Arc::new(session))
    }

    #[cfg(feature = "mcp-auth")]
    async fn authorization(&self) -> Result<Option<&auth::Authorization>, CallError> {
        match (&self.config.oauth, &self.config.target) {
            (Some(oauth), super::config::Target::Http(http)) => {
                let made = self.authorization.get_or_try_init(|| auth::Authorization::new(oauth, http)).await;
                made.map(Some).map_err(|error| error.without(&Secrets::of(&self.config)))
            }
            _ => Ok(None),
        }
    }

    /// The client's handler; a new one if the last was dropped.
    fn handler(self: &Arc<Self>) -> Handler {
        match self.endpoint.get().and_then(Weak::upgrade) {
            Some(endpoint) => Handler::foreign(endpoint),
            None => Handler::endpoint(Remote(self.clone())),
        }
    }

    fn catalog(&self) -> Arc<Catalog> {
        lock(&self.catalog).clone()
    }
}

impl Endpoint for Remote {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        // Only what decoding requires, so that the whole spec is not copied.
        let mut called = OperationSpec::query("");
        (called.id, called.binding) = (spec.id.clone(), spec.binding.clone());
        let inner = self.0.clone();
        Box::pin(async move {
            let tool = match called.mcp() {
                Some(mcp) => mcp.tool.clone().into_owned(),
                None => {
                    return Err(CallError::execution(format!(
                        "`{}` is not a tool of an MCP server: call it on a `Registry` in which it is registered, or on the \
                         client of its API",
                        called.id
                    )));
                }
            };
            let arguments = arguments(&called, input)?;
            refuse_key(&called, &context, "as a tool of an MCP server")?;
            let until = inner.config.total_timeout.and_then(|total| Instant::now().checked_add(total));
            let session = inner.session_until(until).await?;
            let needs_task = inner.catalog().tasks.contains(&tool);
            let mut result = session.call(tool, arguments, context.progress().cloned(), needs_task, until).await?;
            if result.get("isError") == Some(&Value::Bool(true)) {
                // The text of a failed tool is shown to callers as an error.
                session.given.secrets().value(&mut result);
            }
            let mut envelope = super::decode(&called, result).map_err(|error| session.given.error(error))?;
            envelope.meta.keep(session.given.kept());
            Ok(envelope)
        })
    }
}

impl Endpoint for McpClient {
    fn call(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        Endpoint::call(&self.remote, spec, input, context)
    }
}

/// The arguments of a tool: an object, empty if there are none.
fn arguments(spec: &OperationSpec, input: Value) -> Result<Map<String, Value>, CallError> {
    match input {
        Value::Object(arguments) => Ok(arguments),
        Value::Null => Ok(Map::new()),
        _ => {
            Err(super::invalid(format!("the input of `{}` is not an object, as the arguments of a tool are", spec.id)))
        }
    }
}
