//! Getting tokens by OAuth 2.1: the program's identity, the prompt for the user, and the store for tokens.

mod redirect;
pub(in crate::mcp) mod steps;
pub(in crate::mcp) mod tokens;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::tokens::{MemoryTokenStore, Refreshes, TokenStore};
use crate::http::{Destinations, Secret};
use crate::{BoxFuture, CallError};

/// How to get tokens by OAuth 2.1: the program's identity, the prompt for the user, and the store for tokens.
///
/// The MCP server names the authorization server and the required scopes. The program registers there in the first
/// possible way: as a known client, by the URL of its metadata, or dynamically.
///
/// The MCP server's metadata is not trusted. Only `https` URLs, and `http` ones on this machine, are requested or
/// opened, and private addresses only as [`Destinations`] allow. A refresh token is sent only to the token endpoint
/// that issued it, and a client's secret only to the first one that received it; [`with_issuer`](Self::with_issuer)
/// sets which server that is.
///
/// ```
/// use ops_runtime::mcp::{McpOAuth, McpServerConfig};
///
/// let oauth = McpOAuth::new("http://127.0.0.1:8973/callback")
///     .with_client_name("Pet Shop")
///     .with_loopback(|url| println!("Please visit {url}"));
/// let server = McpServerConfig::http("https://mcp.example.com/mcp").with_oauth(oauth);
/// ```
#[derive(Clone)]
pub struct McpOAuth {
    pub(in crate::mcp) redirect_uri: String,
    pub(in crate::mcp) client_name: String,
    pub(in crate::mcp) client: Option<(String, Option<Secret>)>,
    pub(in crate::mcp) client_metadata_url: Option<String>,
    pub(in crate::mcp) scopes: Vec<String>,
    pub(in crate::mcp) store: Arc<dyn TokenStore>,
    /// Shared by clones, which may have the same refresh tokens.
    pub(in crate::mcp) refreshes: Refreshes,
    pub(in crate::mcp) prompt: Option<Prompt>,
    /// Shared by clones, if only one user can be awaited at a time.
    pub(in crate::mcp) turn: Option<Arc<tokio::sync::Mutex<()>>>,
    pub(in crate::mcp) issuer: Option<String>,
    pub(in crate::mcp) destinations: Destinations,
    pub(in crate::mcp) step_timeout: Duration,
    pub(in crate::mcp) user_timeout: Option<Duration>,
}

pub(in crate::mcp) type Prompt = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, CallError>> + Send + Sync>;

impl McpOAuth {
    /// A program with the URL to which the authorization server sends users back.
    ///
    /// By default tokens are kept in memory and the user is never asked, so that only tokens of a
    /// [store](Self::with_store) are used.
    pub fn new(redirect_uri: impl Into<String>) -> Self {
        Self {
            redirect_uri: redirect_uri.into(),
            client_name: "ops-runtime".to_owned(),
            client: None,
            client_metadata_url: None,
            scopes: Vec::new(),
            store: Arc::new(MemoryTokenStore::default()),
            refreshes: Refreshes::default(),
            prompt: None,
            turn: None,
            issuer: None,
            destinations: Destinations::default(),
            step_timeout: Duration::from_secs(30),
            user_timeout: Some(Duration::from_secs(600)),
        }
    }

    /// Sets the name that users see if the client is registered dynamically.
    #[must_use]
    pub fn with_client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Sets the client id, and the secret, with which the program is registered at the authorization server.
    #[must_use]
    pub fn with_client(mut self, id: impl Into<String>, secret: Option<Secret>) -> Self {
        self.client = Some((id.into(), secret));
        self
    }

    /// Sets the URL of the program's client metadata document, which is its id at servers that support that.
    #[must_use]
    pub fn with_client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Sets the scopes to request, instead of those that the server demands when it refuses a request, or else lists in its
    /// metadata.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the authorization server to use, by its issuer (RFC 8414); any other is refused.
    ///
    /// Its endpoints are those that it publishes itself, whatever metadata the MCP server leads to.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Sets the addresses to which the MCP server's authorization metadata may lead: see [`Destinations`]. A private
    /// address in a URL, in place of a name, is always refused unless the MCP server is on this machine.
    #[must_use]
    pub fn with_destinations(mut self, destinations: Destinations) -> Self {
        self.destinations = destinations;
        self
    }

    /// Sets the timeout of each request to the authorization server: 30 seconds by default.
    #[must_use]
    pub fn with_step_timeout(mut self, timeout: Duration) -> Self {
        self.step_timeout = timeout;
        self
    }

    /// Sets how long the user may take: ten minutes by default, `None` for no limit.
    #[must_use]
    pub fn with_user_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.user_timeout = timeout.into();
        self
    }

    /// Sets the store of tokens.
    #[must_use]
    pub fn with_store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets how the user is asked: `ask` opens a URL in a browser, and returns the URL to which the browser was
    /// redirected. Clients of several servers may ask at the same time.
    #[must_use]
    pub fn with_prompt<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, CallError>> + Send + 'static,
    {
        self.prompt = Some(Arc::new(move |url| Box::pin(ask(url))));
        self.turn = None;
        self
    }

    /// Waits for the user's browser at the redirect URL, which must name a port of this machine; `open` opens the given
    /// URL.
    ///
    /// If clones of this are used for several servers, the user is asked for one server after the other.
    #[must_use]
    pub fn with_loopback(self, open: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let redirect = self.redirect_uri.clone();
        let open = Arc::new(open);
        let mut with = self.with_prompt(move |url| {
            let (redirect, open) = (redirect.clone(), open.clone());
            async move {
                let listener = redirect::listen(&redirect).await?;
                open(&url);
                redirect::answer(&listener, &redirect, redirect::state(&url).as_deref()).await
            }
        });
        with.turn = Some(Arc::default());
        with
    }
}

impl fmt::Debug for McpOAuth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpOAuth")
            .field("redirect_uri", &self.redirect_uri)
            .field("client_name", &self.client_name)
            .field("client", &self.client.as_ref().map(|(id, _)| id))
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}
