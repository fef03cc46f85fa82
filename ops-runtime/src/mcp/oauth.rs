//! How tokens are got by OAuth 2.1: who the program is, who asks the user, and where tokens are kept.

mod redirect;
pub(in crate::mcp) mod steps;
pub(in crate::mcp) mod tokens;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use self::tokens::{MemoryTokenStore, TokenStore};
use crate::http::{Destinations, Secret};
use crate::{BoxFuture, CallError};

/// How to get tokens by OAuth 2.1: who this program is, who asks the user, and where tokens are kept.
///
/// What the authorization server is and what it wants is found out from the MCP server. The program is registered with it
/// in the first way that is possible: as a client that is known there, by the URL of its metadata, or dynamically.
///
/// What the MCP server names is not trusted. Only `https` URLs, and `http` ones on this machine, are asked or opened, and
/// private addresses as [`Destinations`] say. A refresh token and a client's secret go only to the token endpoint that the
/// token was got from, or that got the secret first; [`with_issuer`](Self::with_issuer) says which server that has to be.
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
    pub(in crate::mcp) prompt: Option<Prompt>,
    pub(in crate::mcp) issuer: Option<String>,
    pub(in crate::mcp) destinations: Destinations,
    pub(in crate::mcp) step_timeout: Duration,
    pub(in crate::mcp) user_timeout: Option<Duration>,
}

pub(in crate::mcp) type Prompt = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, CallError>> + Send + Sync>;

impl McpOAuth {
    /// A program to which the authorization server sends users back at that URL.
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
            prompt: None,
            issuer: None,
            destinations: Destinations::default(),
            step_timeout: Duration::from_secs(30),
            user_timeout: Some(Duration::from_secs(600)),
        }
    }

    /// Sets the name that users are shown, of a client that is registered dynamically.
    #[must_use]
    pub fn with_client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Says as which client the program is known to the authorization server.
    #[must_use]
    pub fn with_client(mut self, id: impl Into<String>, secret: Option<Secret>) -> Self {
        self.client = Some((id.into(), secret));
        self
    }

    /// Says where the program's client metadata document is, which is its id where servers support that.
    #[must_use]
    pub fn with_client_metadata_url(mut self, url: impl Into<String>) -> Self {
        self.client_metadata_url = Some(url.into());
        self
    }

    /// Sets the scopes to ask for, in the place of those that the server names.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = scopes.into_iter().map(Into::into).collect();
        self
    }

    /// Says which authorization server the user is to be sent to, by its issuer (RFC 8414): that of another is refused.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuer = Some(issuer.into());
        self
    }

    /// Decides which addresses the MCP server may lead to by what it says of its authorization server: see
    /// [`Destinations`]. A private address that stands in a URL instead of a name is refused in any case, unless the MCP
    /// server is on this machine.
    #[must_use]
    pub fn with_destinations(mut self, destinations: Destinations) -> Self {
        self.destinations = destinations;
        self
    }

    /// Sets how long each request to the authorization server may take: 30 seconds by default.
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

    /// Sets where tokens are kept.
    #[must_use]
    pub fn with_store(mut self, store: impl TokenStore) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Says how the user is asked: `ask` has a URL visited, and gives the URL that the browser was sent back to.
    #[must_use]
    pub fn with_prompt<F, Fut>(mut self, ask: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, CallError>> + Send + 'static,
    {
        self.prompt = Some(Arc::new(move |url| Box::pin(ask(url))));
        self
    }

    /// Waits for the user's browser at the redirect URL, which names a port of this machine; `open` has the URL that it
    /// is given visited.
    #[must_use]
    pub fn with_loopback(self, open: impl Fn(&str) + Send + Sync + 'static) -> Self {
        let redirect = self.redirect_uri.clone();
        let open = Arc::new(open);
        self.with_prompt(move |url| {
            let (redirect, open) = (redirect.clone(), open.clone());
            async move {
                let listener = redirect::listen(&redirect).await?;
                open(&url);
                redirect::answer(&listener, &redirect, redirect::state(&url).as_deref()).await
            }
        })
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
