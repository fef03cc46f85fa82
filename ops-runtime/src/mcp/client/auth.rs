//! OAuth 2.1 for servers at a URL (MCP specification, "Authorization"), by rmcp.
//!
//! A request that is refused for lack of a token or a scope was not carried out: it is sent again once the user has
//! agreed.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationRequest, AuthorizationSession,
    OAuthClientConfig,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::http::Http;
use crate::http::is_safe;
use crate::mcp::config::Http as Config;
use crate::mcp::invalid;
use crate::mcp::oauth::steps::{Bound, Steps};
use crate::mcp::oauth::tokens::Store;
use crate::mcp::oauth::{McpOAuth, Prompt};
use crate::model::text::readable;
use crate::{CallError, ErrorCode};

/// How many new authorizations a request may cause before its refusal counts.
const ATTEMPTS: usize = 3;

type Failure = StreamableHttpError<CallError>;

/// The authorization of a client at one server, for as long as the client lives.
#[derive(Clone)]
pub(in crate::mcp) struct Authorization(Arc<Inner>);

struct Inner {
    oauth: McpOAuth,
    url: String,
    manager: tokio::sync::Mutex<AuthorizationManager>,
    /// Held while the user is asked: other requests go on meanwhile with the tokens that there are.
    asking: tokio::sync::Mutex<()>,
    /// The token endpoint that the tokens are from.
    bound: Arc<Bound>,
    /// How often the user has agreed; requests that were refused before may be sent again.
    granted: AtomicU64,
    /// True once connected: a refused request then asks the user, instead of connecting again.
    connected: AtomicBool,
}

impl Authorization {
    pub(super) async fn new(oauth: &McpOAuth, config: &Config) -> Result<Self, CallError> {
        let bound = Arc::new(Bound::default());
        let manager = manager(oauth, &config.url, &bound).await?;
        Ok(Self(Arc::new(Inner {
            oauth: oauth.clone(),
            url: config.url.clone(),
            manager: tokio::sync::Mutex::new(manager),
            asking: tokio::sync::Mutex::default(),
            bound,
            granted: AtomicU64::new(0),
            connected: AtomicBool::new(false),
        })))
    }

    /// Sets whether the client is connected: if it is, a refused request asks the user.
    pub(super) fn connected(&self, connected: bool) {
        self.0.connected.store(connected, Ordering::Release);
    }

    /// The HTTP client that sends tokens.
    pub(super) fn client(&self, http: Http) -> Authorized {
        Authorized { http: http.with_authorization(), authorization: self.clone() }
    }

    /// The token to send; `None` if there is none, so that the server's refusal leads to the user.
    async fn token(&self) -> Result<Option<String>, AuthError> {
        let mut manager = self.0.manager.lock().await;
        let mut token = manager.get_access_token().await;
        // It lacks the client if the authorization server did not answer when it was made.
        if matches!(token, Err(AuthError::InternalError(_))) {
            self.restore(&mut manager).await?;
            token = manager.get_access_token().await;
        }
        match token {
            Ok(token) => Ok(Some(token)),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(error @ AuthError::CredentialStoreError(_)) => Err(error),
            // Without anybody to ask, the reason tells more than a refusal.
            Err(error) if self.0.oauth.prompt.is_none() => Err(error),
            Err(error) => {
                tracing::debug!(%error, "an expired token can't be renewed");
                Ok(None)
            }
        }
    }

    /// Replaces a refused token without asking the user; true if there is a new one.
    async fn renew(&self, refused: &str) -> bool {
        let mut manager = self.0.manager.lock().await;
        // Another request may have been faster.
        if manager.get_access_token().await.is_ok_and(|token| token != refused) {
            return true;
        }
        let mut renewed = manager.refresh_token().await;
        if matches!(renewed, Err(AuthError::InternalError(_))) && self.restore(&mut manager).await.is_ok() {
            renewed = manager.refresh_token().await;
        }
        match renewed {
            Ok(_) => manager.get_access_token().await.is_ok_and(|token| token != refused),
            Err(error) => {
                tracing::debug!(%error, "a token was refused, and can't be renewed");
                false
            }
        }
    }

    async fn restore(&self, manager: &mut AuthorizationManager) -> Result<(), AuthError> {
        restore(&self.0.oauth, &self.0.bound, manager).await
    }

    pub(super) fn granted(&self) -> u64 {
        self.0.granted.load(Ordering::Acquire)
    }

    /// Asks the user for what the challenge demands; false if the user has agreed to something since the request was
    /// sent, and is not asked.
    pub(super) async fn authorize(&self, challenge: &str, sent_after: u64) -> Result<bool, CallError> {
        let Inner { oauth, url, manager: shared, asking, granted, bound, .. } = &*self.0;
        let prompt = oauth
            .prompt
            .as_ref()
            .ok_or_else(|| invalid("nobody can be asked for authorization: see `McpOAuth::with_prompt`"))?;
        let _asking = asking.lock().await;
        if self.granted() != sent_after {
            return Ok(false);
        }
        // The one that asks knows which scopes were granted before; its place is taken by one for the others.
        let other = manager(oauth, url, bound).await?;
        let current = std::mem::replace(&mut *shared.lock().await, other);
        let (current, answered) = ask(oauth, prompt, current, challenge).await;
        // Tokens that the other one is renewing must not take the place of the new ones.
        let mut shared = shared.lock().await;
        *shared = current;
        exchange(&shared, &answered?).await.map_err(|error| failed(&error))?;
        granted.fetch_add(1, Ordering::AcqRel);
        Ok(true)
    }
}

/// Has the user agree to what the challenge demands. Gives the URL that the user came back to.
async fn ask(
    oauth: &McpOAuth,
    prompt: &Prompt,
    mut current: AuthorizationManager,
    challenge: &str,
) -> (AuthorizationManager, Result<String, CallError>) {
    let metadata = match current.resolve_metadata_from_challenge(Some(challenge)).await {
        Ok(metadata) => metadata.metadata,
        Err(error) => return (current, Err(failed(&error))),
    };
    if let Some(issuer) = &oauth.issuer
        && metadata.issuer.as_ref() != Some(issuer)
    {
        let found = readable(metadata.issuer.as_deref().unwrap_or("no issuer"), 200);
        let error = CallError::execution(format!(
            "authorization failed: the MCP server names the authorization server `{found}`, and `with_issuer` another"
        ));
        return (current, Err(error));
    }
    current.set_metadata(metadata);
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
        Err((current, error)) => return (current, Err(failed(&error))),
    };
    let answered = if url::Url::parse(&session.auth_url).is_ok_and(|url| is_safe(&url)) {
        asked(oauth.user_timeout, prompt(session.auth_url.clone())).await
    } else {
        let url = readable(&session.auth_url, 200);
        Err(CallError::execution(format!(
            "authorization failed: the user is not sent to `{url}`, which is neither `https`, nor `http` on this machine"
        )))
    };
    let answered = answered.and_then(|callback| refusal(&callback).map_or(Ok(callback), Err));
    (session.auth_manager, answered)
}

/// Gets the tokens for the code that the user came back with.
async fn exchange(manager: &AuthorizationManager, callback: &str) -> Result<(), AuthError> {
    let AuthorizationCallback { code, csrf_token, issuer, .. } = AuthorizationCallback::from_redirect_url(callback)?;
    manager.exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref()).await.map(drop)
}

/// The error that the user was sent back with in place of a code (RFC 6749, section 4.1.2.1).
fn refusal(callback: &str) -> Option<CallError> {
    let url = url::Url::parse(callback).ok()?;
    let told = |name: &str| url.query_pairs().find(|(key, _)| key == name).map(|(_, value)| readable(&value, 300));
    let error = told("error")?;
    let description = told("error_description").map(|description| format!(": {description}")).unwrap_or_default();
    Some(CallError::execution(format!(
        "authorization failed: the authorization server sent the user back with `{error}`{description}"
    )))
}

/// Waits for the user, up to the configured timeout.
async fn asked(
    limit: Option<Duration>,
    answer: impl Future<Output = Result<String, CallError>>,
) -> Result<String, CallError> {
    let Some(limit) = limit else { return answer.await };
    tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| {
        let message = format!("the user did not authorize within {limit:?}: raise `with_user_timeout`");
        Err(CallError::new(ErrorCode::Timeout, message))
    })
}

async fn manager(oauth: &McpOAuth, url: &str, bound: &Arc<Bound>) -> Result<AuthorizationManager, CallError> {
    let server = url::Url::parse(url).map_err(|error| invalid(format!("the URL of the MCP server: {error}")))?;
    let has_secret = oauth.client.as_ref().is_some_and(|(_, secret)| secret.is_some());
    let steps = Steps::new(&server, oauth.destinations.clone(), oauth.step_timeout, has_secret, bound.clone())?;
    let store = Store { inner: oauth.store.clone(), server: url.to_owned(), bound: bound.clone(), has_secret };
    stored(oauth, url, bound, steps, store).await.map_err(|error| failed(&error))
}

async fn stored(
    oauth: &McpOAuth,
    url: &str,
    bound: &Bound,
    steps: Steps,
    store: Store,
) -> Result<AuthorizationManager, AuthError> {
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(steps)).await?;
    manager.set_credential_store(store);
    // Stored tokens are tried first; the server refuses them if they are invalid.
    restore(oauth, bound, &mut manager).await?;
    Ok(manager)
}

/// Takes over the stored tokens, and the client that they were issued to.
async fn restore(oauth: &McpOAuth, bound: &Bound, manager: &mut AuthorizationManager) -> Result<(), AuthError> {
    match manager.initialize_from_store().await {
        Ok(true) => {
            let id = manager.get_credentials().await?.0;
            let (id, secret) = match &oauth.client {
                Some((id, secret)) => (id.clone(), secret.clone()),
                None => (id.clone(), bound.secret_of(&id)),
            };
            if let Some(secret) = secret {
                let client = OAuthClientConfig::new(id, &oauth.redirect_uri);
                manager.configure_client(client.with_client_secret(secret.expose()))?;
            }
        }
        Ok(false) => {}
        Err(error @ AuthError::CredentialStoreError(_)) => return Err(error),
        Err(error) => tracing::debug!(%error, "stored tokens can't be used"),
    }
    Ok(())
}

fn failed(error: &AuthError) -> CallError {
    // It may hold the server's whole response.
    let why = readable(CallError::from_error(error).message(), 2000);
    CallError::execution(format!("authorization failed: {why}"))
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
        let (mut renewed, mut attempts, mut granted) = (false, 0, None);
        loop {
            let sent_after = authorization.granted();
            let token = authorization.token().await?;
            token.iter().for_each(|token| self.http.given.token(token));
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
            // While the client connects, the timeout for that runs, so the user is not asked: see `Session::connect`.
            // Nor is the user asked for streams of the server's that nobody waits for.
            let interceptor = &self.http.interceptor;
            let meets = authorization.0.connected.load(Ordering::Acquire)
                && authorization.0.oauth.prompt.is_some()
                && interceptor.pending() > 0;
            // What the user has just agreed to does not do.
            if !meets || attempts == ATTEMPTS || granted.as_ref() == Some(&challenge) {
                return Err(refused);
            }
            attempts += 1;
            // Timeouts of calls pause until the user has answered.
            let asking = interceptor.asks();
            let asked = authorization.authorize(&challenge, sent_after).await.map_err(StreamableHttpError::Client)?;
            drop(asking);
            granted = asked.then_some(challenge);
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
