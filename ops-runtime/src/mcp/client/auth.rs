//! OAuth 2.1 for servers at a URL (MCP specification, "Authorization"), by rmcp.
//!
//! A request that is refused for want of a token, or of a scope, was not carried out: it is sent again when the user has
//! agreed.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, OAuthClientConfig,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::http::Http;
use super::redirect;
use super::tokens::{MemoryTokenStore, Store, TokenStore};
use crate::http::Secret;
use crate::mcp::config::{Http as Config, invalid};
use crate::{BoxFuture, CallError};

/// How often a request may lead to a new authorization, before its refusal counts.
const ATTEMPTS: usize = 3;

type Failure = StreamableHttpError<CallError>;

/// How to get tokens by OAuth 2.1: who this program is, who asks the user, and where tokens are kept.
///
/// What the authorization server is and what it wants is found out from the MCP server. The program is registered with it
/// in the first way that is possible: as a client that is known there, by the URL of its metadata, or dynamically.
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
    redirect_uri: String,
    client_name: String,
    client: Option<(String, Option<Secret>)>,
    client_metadata_url: Option<String>,
    scopes: Vec<String>,
    store: Arc<dyn TokenStore>,
    prompt: Option<Prompt>,
}

type Prompt = Arc<dyn Fn(String) -> BoxFuture<'static, Result<String, CallError>> + Send + Sync>;

impl McpOAuth {
    /// A program to which the authorization server sends users back at that URL.
    ///
    /// Tokens are kept in memory, and nobody asks the user, unless something else is said: then only tokens of a
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
                redirect::answer(&listener, &redirect).await
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

/// The authorization of a client at one server, for as long as the client lives.
#[derive(Clone)]
pub(in crate::mcp) struct Authorization(Arc<Inner>);

struct Inner {
    oauth: McpOAuth,
    url: String,
    manager: Arc<tokio::sync::Mutex<AuthorizationManager>>,
    /// How often the user has agreed: what was refused before may be sent again.
    granted: AtomicU64,
    /// Whether refusals are met in the middle of things, and not by connecting again.
    connected: AtomicBool,
}

impl Authorization {
    pub(super) async fn new(oauth: &McpOAuth, config: &Config) -> Result<Self, CallError> {
        // The authorization server is spoken to by a client of rmcp's, which needs TLS, too.
        let _ = crate::http::builder();
        let manager = manager(oauth, &config.url).await.map_err(|error| failed(&error))?;
        Ok(Self(Arc::new(Inner {
            oauth: oauth.clone(),
            url: config.url.clone(),
            manager: Arc::new(tokio::sync::Mutex::new(manager)),
            granted: AtomicU64::new(0),
            connected: AtomicBool::new(false),
        })))
    }

    /// From now on, refusals are met in the middle of things.
    pub(super) fn connected(&self, connected: bool) {
        self.0.connected.store(connected, Ordering::Release);
    }

    /// The HTTP client that sends tokens.
    pub(super) fn client(&self, http: Http) -> Authorized {
        Authorized { http, authorization: self.clone() }
    }

    /// The token to send, if there is one.
    async fn token(&self) -> Result<Option<String>, AuthError> {
        match self.0.manager.lock().await.get_access_token().await {
            Ok(token) => Ok(Some(token)),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Gets another token in the place of one that was refused, without the user; whether there is one.
    async fn renew(&self, refused: &str) -> bool {
        let manager = self.0.manager.lock().await;
        // Another request may have been faster.
        if manager.get_access_token().await.is_ok_and(|token| token != refused) {
            return true;
        }
        match manager.refresh_token().await {
            Ok(_) => manager.get_access_token().await.is_ok_and(|token| token != refused),
            Err(error) => {
                tracing::debug!(%error, "a token was refused, and can't be renewed");
                false
            }
        }
    }

    pub(super) fn granted(&self) -> u64 {
        self.0.granted.load(Ordering::Acquire)
    }

    /// Asks the user, because the server wants what the challenge says; unless the user has agreed to something since
    /// the request was sent.
    pub(super) async fn authorize(&self, challenge: &str, sent_after: u64) -> Result<(), CallError> {
        let Inner { oauth, url, manager: shared, granted, .. } = &*self.0;
        let prompt = oauth
            .prompt
            .as_ref()
            .ok_or_else(|| invalid("nobody can be asked for authorization: see `McpOAuth::with_prompt`"))?;
        let mut shared = shared.lock().await;
        if self.granted() != sent_after {
            return Ok(());
        }
        let metadata = shared.resolve_metadata_from_challenge(Some(challenge)).await.map_err(|error| failed(&error))?;
        let mut current = std::mem::replace(&mut *shared, manager(oauth, url).await.map_err(|error| failed(&error))?);
        current.set_metadata(metadata.metadata);
        let mut request = AuthorizationRequest::new(&oauth.redirect_uri)
            .with_client_name(&oauth.client_name)
            .with_scopes(&oauth.scopes)
            .with_challenge(challenge);
        if let Some((id, secret)) = &oauth.client {
            request = request.with_preregistered_client(id);
            request.client_secret = secret.as_ref().map(|secret| secret.expose().to_owned());
        }
        request.client_metadata_url.clone_from(&oauth.client_metadata_url);
        let session = match AuthorizationSession::new(current, request).await {
            Ok(session) => session,
            Err((current, error)) => {
                *shared = current;
                return Err(failed(&error));
            }
        };
        let exchanged = match prompt(session.auth_url.clone()).await {
            Ok(callback) => session.handle_callback_url(&callback).await.map_err(|error| failed(&error)),
            Err(error) => Err(error),
        };
        *shared = session.auth_manager;
        exchanged?;
        granted.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

async fn manager(oauth: &McpOAuth, url: &str) -> Result<AuthorizationManager, AuthError> {
    let mut manager = AuthorizationManager::new(url).await?;
    manager.set_credential_store(Store { inner: oauth.store.clone(), server: url.to_owned() });
    // Tokens that are there already; if they are of no use, the server says so.
    match manager.initialize_from_store().await {
        Ok(true) => {
            if let Some((id, Some(secret))) = &oauth.client {
                let client = OAuthClientConfig::new(id, &oauth.redirect_uri);
                manager.configure_client(client.with_client_secret(secret.expose()))?;
            }
        }
        Ok(false) => {}
        Err(error @ AuthError::CredentialStoreError(_)) => return Err(error),
        Err(error) => tracing::debug!(%error, "stored tokens can't be used"),
    }
    Ok(manager)
}

fn failed(error: &AuthError) -> CallError {
    CallError::execution(format!("authorization failed: {}", CallError::from_error(error).message()))
}

/// The HTTP client with tokens, under rmcp's transport.
#[derive(Clone)]
pub(super) struct Authorized {
    http: Http,
    authorization: Authorization,
}

impl Authorized {
    /// Sends a request with a token, and again with another if it is refused.
    async fn send<T, Fut>(&self, send: impl Fn(Option<String>) -> Fut + Send) -> Result<T, Failure>
    where
        Fut: Future<Output = Result<T, Failure>> + Send,
        T: Send,
    {
        let authorization = &self.authorization;
        let (mut renewed, mut attempts) = (false, 0);
        loop {
            let sent_after = authorization.granted();
            let token = authorization.token().await?;
            let refused = match send(token.clone()).await {
                Err(refused) => refused,
                answer => return answer,
            };
            let challenge = match &refused {
                StreamableHttpError::AuthRequired(refused) => {
                    if let Some(token) = &token
                        && !renewed
                    {
                        renewed = true;
                        if authorization.renew(token).await {
                            continue;
                        }
                    }
                    refused.www_authenticate_header.clone()
                }
                StreamableHttpError::InsufficientScope(refused) => refused.www_authenticate_header.clone(),
                _ => return Err(refused),
            };
            // While the client connects, a limit of time runs that the user knows nothing of: see `Session::connect`.
            let meets = authorization.0.connected.load(Ordering::Acquire) && authorization.0.oauth.prompt.is_some();
            if !meets || attempts == ATTEMPTS {
                return Err(refused);
            }
            attempts += 1;
            authorization.authorize(&challenge, sent_after).await.map_err(StreamableHttpError::Client)?;
        }
    }
}

impl StreamableHttpClient for Authorized {
    type Error = CallError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.send(|token| {
            self.http.post_message(uri.clone(), message.clone(), session_id.clone(), token, headers.clone())
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.send(|token| self.http.delete_session(uri.clone(), session_id.clone(), token, headers.clone())).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.send(|token| {
            self.http.get_stream(uri.clone(), session_id.clone(), last_event_id.clone(), token, headers.clone())
        })
        .await
    }
}
