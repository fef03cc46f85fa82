//! Many servers at once.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, RwLock};

use futures_util::future::join_all;

use super::{McpClient, McpConfig};
use crate::model::lock::{read, write};
use crate::{BoxFuture, CallError, Registry, RegistryError, SpecRef};

/// The clients of the servers of a configuration.
///
/// Clones share the clients. The namespace of a server's operations is its name in the configuration, so tools of the
/// same name do not clash.
///
/// ```no_run
/// use ops_runtime::Registry;
/// use ops_runtime::mcp::{McpClients, McpConfig};
///
/// # async fn run() -> Result<(), Box<dyn std::error::Error>> {
/// let clients = McpClients::connect(&McpConfig::from_file(".mcp.json")?).await;
/// for (name, error) in clients.errors() {
///     eprintln!("{name}: {error}");
/// }
/// let registry = Registry::new();
/// clients.register_all(&registry)?;
/// # Ok(()) }
/// ```
#[doc(alias = "MCPClientLoader")]
#[derive(Clone, Default)]
pub struct McpClients(Arc<Inner>);

#[derive(Default)]
struct Inner {
    clients: RwLock<BTreeMap<String, McpClient>>,
    errors: BTreeMap<String, CallError>,
}

impl McpClients {
    /// Connects to all enabled servers at the same time. One that fails does not stop the others: see
    /// [`errors`](Self::errors).
    pub fn connect(config: &McpConfig) -> BoxFuture<'_, Self> {
        Box::pin(async move {
            let enabled = config.servers.iter().filter(|(name, _)| !config.is_disabled(name));
            let connected = join_all(enabled.map(|(name, server)| async move {
                let client = match server {
                    Ok(server) => McpClient::connect_named(name, Some(name), server.clone()).await,
                    Err(wrong) => Err(wrong.error.clone()),
                };
                (name.clone(), client)
            }))
            .await;
            let (mut clients, mut errors) = (BTreeMap::new(), BTreeMap::new());
            for (name, client) in connected {
                match client {
                    Ok(client) => {
                        clients.insert(name, client);
                    }
                    Err(error) => {
                        tracing::warn!(server = name, %error, "an MCP server is not there");
                        errors.insert(name, error);
                    }
                }
            }
            Self(Arc::new(Inner { clients: RwLock::new(clients), errors }))
        })
    }

    /// The errors of servers that could not be connected to, by name.
    pub fn errors(&self) -> &BTreeMap<String, CallError> {
        &self.0.errors
    }

    /// The names of the servers that are connected, in alphabetical order.
    pub fn names(&self) -> Vec<String> {
        self.all().into_keys().collect()
    }

    /// The client of the server with this name.
    ///
    /// # Errors
    /// If there is none, or if connecting to it failed.
    pub fn client(&self, name: &str) -> Result<McpClient, CallError> {
        let missing = || match self.0.errors.get(name) {
            Some(error) => error.clone(),
            None => super::invalid(format!("there is no client of an MCP server `{name}`")),
        };
        self.all().remove(name).ok_or_else(missing)
    }

    /// The tools of all servers as operations.
    pub fn operations(&self) -> Vec<SpecRef> {
        self.all().values().flat_map(McpClient::operations).collect()
    }

    /// Registers the tools of all servers, and updates the registry when they change.
    ///
    /// # Errors
    /// If an id is taken by another operation.
    pub fn register_all(&self, registry: &Registry) -> Result<(), RegistryError> {
        self.all().values().try_for_each(|client| client.register_all(registry))
    }

    /// Closes the connection to the server with this name; its operations then fail. Returns true if there was one.
    pub async fn close(&self, name: &str) -> bool {
        let client = write(&self.0.clients).remove(name);
        match client {
            Some(client) => {
                client.close().await;
                true
            }
            None => false,
        }
    }

    /// Closes the connections to all servers.
    pub async fn close_all(&self) {
        let clients = std::mem::take(&mut *write(&self.0.clients));
        join_all(clients.values().map(McpClient::close)).await;
    }

    fn all(&self) -> BTreeMap<String, McpClient> {
        read(&self.0.clients).clone()
    }
}

impl fmt::Debug for McpClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpClients").field("clients", &self.names()).field("errors", self.errors()).finish()
    }
}
