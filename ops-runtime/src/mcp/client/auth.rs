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
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, OAuthClientConfig,
};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::http::Http;
use crate::http::is_safe;
use crate::mcp::config::Http as Config;
use crate::mcp::invalid;
use crate::mcp::oauth::McpOAuth;
use crate::mcp::oauth::steps::{Bound, Steps};
use crate::mcp::oauth::tokens::Store;
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
    manager: Arc<tokio::sync::Mutex<AuthorizationManager>>,
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
            manager: Arc::new(tokio::sync::Mutex::new(manager)),
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
        Authorized { http, authorization: self.clone() }
    }

    /// The token to send; `None` if there is none.
    async fn token(&self) -> Result<Option<String>, AuthError> {
        match self.0.manager.lock().await.get_access_token().await {
            Ok(token) => Ok(Some(token)),
            Err(AuthError::AuthorizationRequired) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Replaces a refused token without asking the user; true if there is a new one.
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

    /// Asks the user for what the challenge demands, unless the user has agreed to something since the request was
    /// sent.
    pub(super) async fn authorize(&self, challenge: &str, sent_after: u64) -> Result<(), CallError> {
        let Inner { oauth, url, manager: shared, granted, bound, .. } = &*self.0;
        let prompt = oauth
            .prompt
            .as_ref()
            .ok_or_else(|| invalid("nobody can be asked for authorization: see `McpOAuth::with_prompt`"))?;
        let mut shared = shared.lock().await;
        if self.granted() != sent_after {
            return Ok(());
        }
        let metadata = shared.resolve_metadata_from_challenge(Some(challenge)).await.map_err(|error| failed(&error))?;
        if let Some(issuer) = &oauth.issuer
            && metadata.metadata.issuer.as_ref() != Some(issuer)
        {
            let found = metadata.metadata.issuer.as_deref().unwrap_or("no issuer");
            let found = crate::model::text::readable(found, 200);
            return Err(CallError::execution(format!(
                "authorization failed: the MCP server names the authorization server `{found}`, and `with_issuer` another"
            )));
        }
        let mut current = std::mem::replace(&mut *shared, manager(oauth, url, bound).await?);
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
        let answered = if url::Url::parse(&session.auth_url).is_ok_and(|url| is_safe(&url)) {
            asked(oauth.user_timeout, prompt(session.auth_url.clone())).await
        } else {
            let url = crate::model::text::readable(&session.auth_url, 200);
            Err(CallError::execution(format!(
                "authorization failed: the user is not sent to `{url}`, which is neither `https`, nor `http` on this machine"
            )))
        };
        let exchanged = match answered {
            Ok(callback) => session.handle_callback_url(&callback).await.map_err(|error| failed(&error)),
            Err(error) => Err(error),
        };
        *shared = session.auth_manager;
        exchanged?;
        granted.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
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
    stored(oauth, url, steps, store).await.map_err(|error| failed(&error))
}

async fn stored(oauth: &McpOAuth, url: &str, steps: Steps, store: Store) -> Result<AuthorizationManager, AuthError> {
    let mut manager = AuthorizationManager::new_with_oauth_http_client(url, Arc::new(steps)).await?;
    manager.set_credential_store(store);
    // Stored tokens are tried first; the server refuses them if they are invalid.
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
    // It may hold the server's whole response.
    let why = crate::model::text::readable(CallError::from_error(error).message(), 2000);
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
        let (mut renewed, mut attempts) = (false, 0);
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
