//! OAuth 2.1 for servers at a URL (MCP specification, "Authorization"), by rmcp.
//!
//! A request that is refused for lack of a token or a scope was not carried out: it is repeated after the user has
//! authorized it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::stream::BoxStream;
use http::{HeaderName, HeaderValue};
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::{
    AuthError, AuthorizationCallback, AuthorizationManager, AuthorizationMetadata, AuthorizationRequest,
    AuthorizationSession, CredentialStore, OAuthClientConfig, StoredCredentials,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tracing::Instrument;

use super::http::{Http, is_minor};
use crate::http::is_safe;
use crate::mcp::config::Http as Config;
use crate::mcp::invalid;
use crate::mcp::oauth::steps::{Bound, Steps};
use crate::mcp::oauth::tokens::Store;
use crate::mcp::oauth::{McpOAuth, Prompt};
use crate::model::text::readable;
use crate::{CallError, ErrorCode};

/// How many new authorizations a request may cause before its refusal is final.
const ATTEMPTS: usize = 3;

type Failure = StreamableHttpError<CallError>;

/// The authorization of a client at one server, for as long as the client lives.
#[derive(Clone)]
pub(in crate::mcp) struct Authorization(Arc<Inner>);

struct Inner {
    oauth: McpOAuth,
    url: String,
    manager: tokio::sync::Mutex<AuthorizationManager>,
    /// Locked while the user is asked: other requests go on meanwhile with the tokens that there are.
    asking: Arc<tokio::sync::Mutex<Asked>>,
    /// The token endpoint that the tokens are from.
    bound: Arc<Bound>,
    /// True once connected: a refused request then asks the user, instead of connecting again.
    connected: AtomicBool,
}

/// The last question to the user.
#[derive(Default)]
struct Asked {
    /// When the user has agreed; requests that were sent before may be repeated.
    granted: Option<Instant>,
    /// When asking has failed, for which challenge, and why: it is not asked again for requests sent before.
    failed: Option<(Instant, String, CallError)>,
}

impl Asked {
    /// Notes what has come of asking for what a challenge demands.
    fn note(&mut self, challenge: &str, got: &Result<(), CallError>) {
        match got {
            Ok(()) => self.granted = Some(Instant::now()),
            Err(error) => self.failed = Some((Instant::now(), challenge.to_owned(), error.clone())),
        }
    }
}

impl Authorization {
    pub(super) async fn new(oauth: &McpOAuth, config: &Config) -> Result<Self, CallError> {
        let bound = Arc::new(Bound::default());
        let mut manager = manager(oauth, &config.url, &bound).await?;
        // Stored tokens are tried first; the server refuses them if they are invalid.
        match restore(oauth, &config.url, &bound, &mut manager).await {
            Ok(()) => {}
            Err(error @ AuthError::CredentialStoreError(_)) => return Err(failed(&error)),
            Err(error) => tracing::debug!(%error, "stored tokens can't be used yet"),
        }
        Ok(Self(Arc::new(Inner {
            oauth: oauth.clone(),
            url: config.url.clone(),
            manager: tokio::sync::Mutex::new(manager),
            asking: Arc::default(),
            bound,
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
        let this = self.clone();
        finished(async move { this.valid_token().await }).await?
    }

    async fn valid_token(&self) -> Result<Option<String>, AuthError> {
        let mut manager = self.0.manager.lock().await;
        let mut token = manager.get_access_token().await;
        // It lacks the client if the authorization server did not answer when it was made.
        if matches!(token, Err(AuthError::InternalError(_))) {
            token = match self.restore(&mut manager).await {
                Ok(()) => manager.get_access_token().await,
                Err(error) => Err(error),
            };
        }
        match token {
            Ok(token) => return Ok(Some(token)),
            Err(error @ AuthError::CredentialStoreError(_)) => return Err(error),
            Err(AuthError::AuthorizationRequired) => {}
            // If there is no prompt, the reason is more helpful than a refusal.
            Err(error) if self.0.oauth.prompt.is_none() => return Err(error),
            Err(error) => tracing::debug!(%error, "an expired token can't be renewed"),
        }
        // Without a token, a server might carry out the request for an anonymous user.
        let kept = self.kept().await?.and_then(|kept| kept.token_response);
        Ok(serde_json::to_value(kept).ok().and_then(|tokens| Some(tokens.get("access_token")?.as_str()?.to_owned())))
    }

    /// Replaces a refused token without asking the user; true if there is a new one.
    async fn renew(&self, refused: &str) -> bool {
        let (this, refused) = (self.clone(), refused.to_owned());
        let renewed = finished(async move { this.replace(&refused).await }).await;
        renewed.unwrap_or_else(|error| {
            tracing::debug!(%error, "a token was refused, and can't be renewed");
            false
        })
    }

    async fn replace(&self, refused: &str) -> bool {
        let mut manager = self.0.manager.lock().await;
        let mut renewed = match manager.get_access_token().await {
            // Another request may have been faster.
            Ok(token) if token != refused => return true,
            Ok(_) => manager.refresh_token().await.map(drop),
            // It has expired, and can't be renewed.
            Err(error) => Err(error),
        };
        if matches!(renewed, Err(AuthError::InternalError(_))) && self.restore(&mut manager).await.is_ok() {
            renewed = manager.refresh_token().await.map(drop);
        }
        match renewed {
            Ok(()) => manager.get_access_token().await.is_ok_and(|token| token != refused),
            Err(error) => {
                tracing::debug!(%error, "a token was refused, and can't be renewed");
                false
            }
        }
    }

    async fn restore(&self, manager: &mut AuthorizationManager) -> Result<(), AuthError> {
        restore(&self.0.oauth, &self.0.url, &self.0.bound, manager).await
    }

    /// What the store has for the server.
    async fn kept(&self) -> Result<Option<StoredCredentials>, AuthError> {
        store(&self.0.oauth, &self.0.url, &self.0.bound).load().await
    }

    /// Asks the user for what the challenge requires; false if the user has agreed to something since the request was
    /// sent, and is not asked. If asking has failed since then, that error is returned.
    pub(super) async fn authorize(&self, challenge: &str, sent: Instant) -> Result<bool, CallError> {
        let prompt = self
            .0
            .oauth
            .prompt
            .as_ref()
            .ok_or_else(|| invalid("nobody can be asked for authorization: see `McpOAuth::with_prompt`"))?;
        let mut asked = self.0.asking.clone().lock_owned().await;
        if asked.granted.is_some_and(|granted| granted >= sent) {
            return Ok(false);
        }
        if let Some((failed, demanded, error)) = &asked.failed
            && *failed >= sent
            && demanded == challenge
        {
            return Err(error.clone());
        }
        match self.ask(prompt, challenge).await {
            Ok((session, callback)) => {
                let (this, challenge) = (self.clone(), challenge.to_owned());
                let getting = async move {
                    let got = this.take_over(session, &callback).await;
                    asked.note(&challenge, &got);
                    got
                };
                finished(getting).await.map_err(|error| failed(&error))?.map(|()| true)
            }
            Err(error) => {
                asked.note(challenge, &Err(error.clone()));
                Err(error)
            }
        }
    }

    /// Has the user agree to what the challenge demands, and gives the URL that the user came back with.
    async fn ask(&self, prompt: &Prompt, challenge: &str) -> Result<(AuthorizationSession, String), CallError> {
        let Inner { oauth, url, bound, .. } = &*self.0;
        // The tokens that there are stay with the manager, and the client, that renews them until there are others.
        let mut manager = manager(oauth, url, bound).await?;
        let kept = self.kept().await.map_err(|error| failed(&error))?;
        let metadata = metadata(oauth, url, bound, &manager, Some(challenge)).await?;
        let kept = kept.filter(|kept| kept.issuer == metadata.issuer);
        manager.set_metadata(metadata);
        let session = session(oauth, manager, challenge, kept).await?;
        if !url::Url::parse(&session.auth_url).is_ok_and(|url| is_safe(&url)) {
            let url = readable(&session.auth_url, 200);
            return Err(CallError::execution(format!(
                "authorization failed: the user is not sent to `{url}`, which is neither `https`, nor `http` on this \
                 machine"
            )));
        }
        // The timeout for the user begins when the question is shown.
        let turn = match &oauth.turn {
            Some(turn) => Some(turn.lock().await),
            None => None,
        };
        let callback = asked(oauth.user_timeout, prompt(session.auth_url.clone())).await?;
        drop(turn);
        match refusal(&callback) {
            Some(refused) => Err(refused),
            None => Ok((session, callback)),
        }
    }

    /// Gets the tokens for what the user has agreed to.
    async fn take_over(&self, session: AuthorizationSession, callback: &str) -> Result<(), CallError> {
        // Tokens that are being renewed must not take the place of the new ones.
        let mut shared = self.0.manager.lock().await;
        exchange(&session.auth_manager, callback).await.map_err(|error| failed(&error))?;
        *shared = session.auth_manager;
        Ok(())
    }
}

/// Does to its end what gets tokens, though its caller may go away: a refresh token or a code is spent once it is sent, and
/// what comes for it must be kept.
async fn finished<T: Send + 'static>(getting: impl Future<Output = T> + Send + 'static) -> Result<T, AuthError> {
    let ended = tokio::spawn(getting.in_current_span()).await;
    ended.map_err(|error| AuthError::InternalError(format!("getting tokens broke off: {error}")))
}

/// The metadata of the authorization server: what the MCP server leads to, or what the issuer of `with_issuer` publishes.
async fn metadata(
    oauth: &McpOAuth,
    url: &str,
    bound: &Arc<Bound>,
    manager: &AuthorizationManager,
    challenge: Option<&str>,
) -> Result<AuthorizationMetadata, CallError> {
    let resolved = manager.resolve_metadata_from_challenge(challenge).await;
    let found = resolved.map_err(|error| failed(&error))?.metadata;
    let Some(issuer) = &oauth.issuer else { return Ok(found) };
    if found.issuer.as_ref() != Some(issuer) {
        let found = readable(found.issuer.as_deref().unwrap_or("no issuer"), 200);
        return Err(CallError::execution(format!(
            "authorization failed: the MCP server names the authorization server `{found}`, and `with_issuer` another"
        )));
    }
    // What was found may be a text of the MCP server, with the issuer's name and endpoints of its own.
    steps(oauth, url, bound)?.published(issuer).await
}

/// The authorization that a challenge demands, beside the scopes that the tokens of the same issuer have. A challenge without
/// scopes demands those of the server's metadata (2025-11-25, "Scope Selection Strategy").
async fn session(
    oauth: &McpOAuth,
    manager: AuthorizationManager,
    challenge: &str,
    kept: Option<StoredCredentials>,
) -> Result<AuthorizationSession, CallError> {
    let mut request = AuthorizationRequest::new(&oauth.redirect_uri)
        .with_client_name(&oauth.client_name)
        .with_challenge(challenge)
        .with_initial_scope_selection();
    request.scopes = match kept {
        Some(StoredCredentials { granted_scopes: granted, .. }) if oauth.scopes.is_empty() => {
            let mut new = manager.select_initial_scopes(&[]).await;
            new.retain(|scope| !granted.contains(scope));
            [granted, new].concat()
        }
        _ => oauth.scopes.clone(),
    };
    if let Some((id, secret)) = &oauth.client {
        request = request.with_preregistered_client(id);
        request.client_secret = secret.as_ref().map(|secret| secret.expose().to_owned());
    }
    request.client_metadata_url.clone_from(&oauth.client_metadata_url);
    AuthorizationSession::new(manager, request).await.map_err(|(_, error)| failed(&error))
}

/// Exchanges the code of the user's redirect for tokens.
async fn exchange(manager: &AuthorizationManager, callback: &str) -> Result<(), AuthError> {
    let AuthorizationCallback { code, csrf_token, issuer, .. } = AuthorizationCallback::from_redirect_url(callback)?;
    manager.exchange_code_for_token_with_issuer(&code, &csrf_token, issuer.as_deref()).await.map(drop)
}

/// The error in the user's redirect instead of a code (RFC 6749, section 4.1.2.1).
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
    let steps = steps(oauth, url, bound)?;
    let made = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(steps)).await;
    let mut manager = made.map_err(|error| failed(&error))?;
    manager.set_credential_store(store(oauth, url, bound));
    Ok(manager)
}

/// The HTTP client below the manager.
fn steps(oauth: &McpOAuth, url: &str, bound: &Arc<Bound>) -> Result<Steps, CallError> {
    let server = url::Url::parse(url).map_err(|error| invalid(format!("the URL of the MCP server: {error}")))?;
    Steps::new(&server, oauth.destinations.clone(), oauth.step_timeout, has_secret(oauth), bound.clone())
}

fn store(oauth: &McpOAuth, url: &str, bound: &Arc<Bound>) -> Store {
    Store {
        inner: oauth.store.clone(),
        server: url.to_owned(),
        bound: bound.clone(),
        has_secret: has_secret(oauth),
        refreshes: oauth.refreshes.clone(),
    }
}

/// True if the program has a secret of its own.
fn has_secret(oauth: &McpOAuth) -> bool {
    oauth.client.as_ref().is_some_and(|(_, secret)| secret.is_some())
}

/// Loads the stored tokens, and the client that they were issued to.
async fn restore(
    oauth: &McpOAuth,
    url: &str,
    bound: &Arc<Bound>,
    manager: &mut AuthorizationManager,
) -> Result<(), AuthError> {
    if oauth.issuer.is_some() && store(oauth, url, bound).load().await?.is_some() {
        let metadata = metadata(oauth, url, bound, manager, None).await;
        manager.set_metadata(metadata.map_err(|error| AuthError::MetadataError(error.message().to_owned()))?);
    }
    if manager.initialize_from_store().await? {
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
    Ok(())
}

fn failed(error: &AuthError) -> CallError {
    // It may contain the server's whole response.
    let why = readable(CallError::of_error(error).message(), 2000);
    CallError::execution(format!("authorization failed: {why}"))
}

/// The HTTP client with tokens, under rmcp's transport.
#[derive(Clone)]
pub(super) struct Authorized {
    http: Http,
    authorization: Authorization,
}

impl Authorized {
    /// Sends a request with a token, and again with a new token if the server rejects the first.
    ///
    /// If `asks` is true, the user may be asked to log in for a new token. Pongs and cancellations are not worth that.
    async fn send<T, Fut>(&self, asks: bool, send: impl Fn(Option<String>) -> Fut + Send) -> Result<T, Failure>
    where
        Fut: Future<Output = Result<T, Failure>> + Send,
        T: Send,
    {
        let authorization = &self.authorization;
        let (mut renewed, mut attempts, mut granted) = (false, 0, None);
        loop {
            let sent = Instant::now();
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
            // While the client connects, its timeout runs, so the user is not asked: see `Session::connect`. Nor is the
            // user asked for the server's own streams, for which no call waits.
            let interceptor = &self.http.interceptor;
            let meets = asks
                && authorization.0.connected.load(Ordering::Acquire)
                && authorization.0.oauth.prompt.is_some()
                && interceptor.pending() > 0;
            // The user's last authorization was not enough.
            if !meets || attempts == ATTEMPTS || granted.as_ref() == Some(&challenge) {
                return Err(refused);
            }
            attempts += 1;
            // Timeouts of calls pause until the user has answered.
            let asking = interceptor.questions.asks();
            let asked = authorization.authorize(&self.http.given.demanded(&challenge), sent).await;
            // The error may quote the challenge, and rmcp logs it.
            let asked = asked.map_err(|error| StreamableHttpError::Client(self.http.given.error(error)))?;
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
        self.send(!is_minor(&message), |token| {
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
        self.send(false, |token| self.http.delete_session(uri.clone(), session_id.clone(), token, headers.clone()))
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        self.send(true, |token| {
            self.http.get_stream(uri.clone(), session_id.clone(), last_event_id.clone(), token, headers.clone())
        })
        .await
    }
}
