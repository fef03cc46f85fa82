//! Stores of tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use rmcp::transport::auth::{AuthError, CredentialRefreshGuard, CredentialStore, StoredCredentials};
use serde::{Deserialize, Serialize};

use super::steps::Bound;
use crate::http::Secret;
use crate::model::lock::lock;
use crate::{BoxFuture, CallError};

/// A store of tokens, by the URL of the MCP server that they are for.
///
/// They are secret text in a format that only this crate reads.
pub trait TokenStore: Send + Sync + 'static {
    /// The tokens for a server, if there are any.
    fn load(&self, server: &str) -> BoxFuture<'static, Result<Option<Secret>, CallError>>;

    /// Stores the tokens for a server, replacing earlier ones.
    fn save(&self, server: &str, tokens: Secret) -> BoxFuture<'static, Result<(), CallError>>;

    /// Removes the tokens for a server.
    fn clear(&self, server: &str) -> BoxFuture<'static, Result<(), CallError>>;
}

/// An in-memory store: tokens are lost when the program ends.
#[derive(Debug, Clone, Default)]
pub struct MemoryTokenStore(Arc<Mutex<BTreeMap<String, Secret>>>);

impl MemoryTokenStore {
    fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut BTreeMap<String, Secret>) -> T,
    ) -> BoxFuture<'static, Result<T, CallError>> {
        let done = work(&mut lock(&self.0));
        Box::pin(std::future::ready(Ok(done)))
    }
}

impl TokenStore for MemoryTokenStore {
    fn load(&self, server: &str) -> BoxFuture<'static, Result<Option<Secret>, CallError>> {
        self.with(|tokens| tokens.get(server).cloned())
    }

    fn save(&self, server: &str, secret: Secret) -> BoxFuture<'static, Result<(), CallError>> {
        self.with(|tokens| drop(tokens.insert(server.to_owned(), secret)))
    }

    fn clear(&self, server: &str) -> BoxFuture<'static, Result<(), CallError>> {
        self.with(|tokens| drop(tokens.remove(server)))
    }
}

/// A store in the form of rmcp, for one server.
pub(in crate::mcp) struct Store {
    pub(in crate::mcp) inner: Arc<dyn TokenStore>,
    pub(in crate::mcp) server: String,
    /// The token endpoint of the stored tokens.
    pub(in crate::mcp) bound: Arc<Bound>,
    pub(in crate::mcp) has_secret: bool,
    pub(in crate::mcp) refreshes: Refreshes,
}

/// The locks for refreshing tokens, one per server: authorization servers that rotate refresh tokens revoke all of them
/// when one is used twice (RFC 9700, section 4.14.2).
#[derive(Clone, Default)]
pub(in crate::mcp) struct Refreshes(Arc<Mutex<BTreeMap<String, Arc<tokio::sync::Mutex<()>>>>>);

impl Refreshes {
    /// The lock for the tokens of a server.
    fn of(&self, server: &str) -> Arc<tokio::sync::Mutex<()>> {
        lock(&self.0).entry(server.to_owned()).or_default().clone()
    }
}

/// The stored data for a server.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Kept {
    /// The token endpoint that issued the tokens: they are sent to no other.
    token_endpoint: Option<String>,
    credentials: Option<StoredCredentials>,
    /// The secret of the client that the tokens were issued to, if the authorization server gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<String>,
}

impl Store {
    async fn keep(&self, credentials: Option<StoredCredentials>) -> Result<(), AuthError> {
        let secret = credentials.as_ref().and_then(|kept| self.bound.secret_of(&kept.client_id));
        let client_secret = secret.map(|secret| secret.expose().to_owned());
        let kept = Kept { token_endpoint: self.bound.endpoint(), credentials, client_secret };
        let text = serde_json::to_string(&kept).map_err(|error| store_error(&error))?;
        self.inner.save(&self.server, Secret::new(text)).await.map_err(|error| store_error(&error))
    }
}

type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, AuthError>> + Send + 'a>>;

fn store_error(error: &dyn fmt::Display) -> AuthError {
    AuthError::CredentialStoreError(error.to_string())
}

// In the form that `async_trait` generates.
impl CredentialStore for Store {
    fn load<'a, 'f>(&'a self) -> StoreFuture<'f, Option<StoredCredentials>>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            let loaded = self.inner.load(&self.server).await.map_err(|error| store_error(&error))?;
            let Some(text) = loaded else { return Ok(None) };
            let kept: Kept = serde_json::from_str(text.expose()).map_err(|error| store_error(&error))?;
            if let Some(endpoint) = kept.token_endpoint {
                self.bound.set(Some(endpoint));
            }
            if let (Some(credentials), Some(secret)) = (&kept.credentials, kept.client_secret) {
                self.bound.register(credentials.client_id.clone(), Secret::new(secret));
            }
            Ok(kept.credentials)
        })
    }

    fn save<'a, 'f>(&'a self, credentials: StoredCredentials) -> StoreFuture<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move { self.keep(Some(credentials)).await })
    }

    fn clear<'a, 'f>(&'a self) -> StoreFuture<'f, ()>
    where
        'a: 'f,
        Self: 'f,
    {
        Box::pin(async move {
            if self.has_secret && self.bound.endpoint().is_some() {
                // The endpoint that knows the secret is remembered when the tokens are cleared.
                return self.keep(None).await;
            }
            self.inner.clear(&self.server).await.map_err(|error| store_error(&error))
        })
    }

    // A client that waited here loads the tokens that the one before it obtained.
    fn acquire_refresh_guard<'a, 'f>(&'a self) -> StoreFuture<'f, Option<CredentialRefreshGuard>>
    where
        'a: 'f,
        Self: 'f,
    {
        let lock = self.refreshes.of(&self.server);
        Box::pin(async move { Ok(Some(CredentialRefreshGuard::new(lock.lock_owned().await))) })
    }
}
