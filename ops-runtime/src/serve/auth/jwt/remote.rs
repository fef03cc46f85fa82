//! Keys at a URL: fetched on first use, and again when they are old or when a token has an unknown key.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use serde_json::Value;
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use url::Url;

use super::key::KeySet;
use super::token::Token;
use crate::http::{HttpClient, HttpConfig, is_safe};
use crate::{CallError, ErrorCode};

/// After which time keys are fetched again, while the present ones are used.
const FRESH: Duration = Duration::from_secs(5 * 60);

/// How long keys are used if they cannot be fetched again: after that, a withdrawn key must not be trusted.
const USABLE: Duration = Duration::from_secs(60 * 60);

/// The timeout for one document.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Limit of a document, in bytes.
const MAX_BYTES: usize = 512 << 10;

/// The source of the keys.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// At the URL in the metadata of an issuer.
    Issuer(String),
    /// At a URL.
    Url(String),
}

impl Origin {
    /// The host, for the log: the rest of a URL may contain a secret.
    fn host(&self) -> String {
        let (Self::Issuer(url) | Self::Url(url)) = self;
        Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Fetched keys.
pub(super) struct Remote {
    origin: Origin,
    client: HttpClient,
    interval: Duration,
    fetched: Arc<Fetched>,
    /// When they were last requested, successfully or not; locked during a request.
    asked: Arc<Mutex<Option<Instant>>>,
}

#[derive(Default)]
struct Fetched(ArcSwapOption<(KeySet, Instant)>);

impl Fetched {
    /// The keys, unless they are too old.
    fn usable(&self) -> Option<Keys> {
        self.0.load_full().filter(|keys| keys.1.elapsed() < USABLE).map(Keys)
    }
}

/// Keys with the time at which they were fetched.
pub(super) struct Keys(Arc<(KeySet, Instant)>);

impl Keys {
    pub(super) fn verify(&self, token: &Token<'_>) -> bool {
        self.0.0.verify(token)
    }
}

impl Remote {
    pub(super) fn new(origin: Origin) -> Result<Self, CallError> {
        let (Origin::Issuer(url) | Origin::Url(url)) = &origin;
        safe(url).map_err(|message| CallError::new(ErrorCode::ValidationError, message))?;
        let client = HttpClient::new(HttpConfig::new().with_timeout(TIMEOUT).with_max_response(MAX_BYTES))?;
        Ok(Self::with(origin, client, Duration::from_secs(10)))
    }

    pub(super) fn with_client(&self, client: HttpClient) -> Self {
        Self::with(self.origin.clone(), client, self.interval)
    }

    pub(super) fn with_interval(&self, interval: Duration) -> Self {
        Self::with(self.origin.clone(), self.client.clone(), interval)
    }

    fn with(origin: Origin, client: HttpClient, interval: Duration) -> Self {
        Self { origin, client, interval, fetched: Arc::default(), asked: Arc::default() }
    }

    /// The URL of an issuer's metadata.
    pub(super) fn discovery_url(&self) -> Option<String> {
        match &self.origin {
            Origin::Issuer(issuer) => {
                Some(format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/')))
            }
            Origin::Url(_) => None,
        }
    }

    /// The keys for a token; `None` if there are none now.
    pub(super) async fn keys(&self, token: &Token<'_>) -> Option<Keys> {
        if let Some(keys) = self.fetched.usable().filter(|keys| keys.0.0.has_key_of(token)) {
            if keys.0.1.elapsed() >= FRESH
                && let Ok(asked) = self.asked.clone().try_lock_owned()
            {
                drop(self.refresh(asked));
            }
            return Some(keys);
        }
        let asked = self.asked.clone().lock_owned().await;
        if let Some(refreshed) = self.refresh(asked) {
            refreshed.await.ok();
        }
        self.fetched.usable()
    }

    /// Fetches the keys, unless that was tried a moment ago; in a task of its own, which does not end when the client
    /// disconnects.
    fn refresh(&self, mut asked: OwnedMutexGuard<Option<Instant>>) -> Option<JoinHandle<()>> {
        if asked.is_some_and(|asked| asked.elapsed() < self.interval) {
            return None;
        }
        *asked = Some(Instant::now());
        let (origin, client, fetched) = (self.origin.clone(), self.client.clone(), self.fetched.clone());
        Some(tokio::spawn(async move {
            match fetch(&origin, &client).await {
                Ok(keys) => fetched.0.store(Some(Arc::new((keys, Instant::now())))),
                Err(error) => tracing::warn!(%error, origin = origin.host(), "the keys for tokens cannot be fetched"),
            }
            // What was requested a moment ago is not requested again, however long the response took: others wait for
            // this one.
            *asked = Some(Instant::now());
            drop(asked);
        }))
    }
}

async fn fetch(origin: &Origin, client: &HttpClient) -> Result<KeySet, CallError> {
    let url = match origin {
        Origin::Url(url) => url.clone(),
        Origin::Issuer(issuer) => discover(issuer, client).await?,
    };
    let jwks = document(&url, client).await?;
    KeySet::from_jwks(&jwks, false).map_err(CallError::execution)
}

/// The URL of an issuer's keys.
async fn discover(issuer: &str, client: &HttpClient) -> Result<String, CallError> {
    let url = Url::parse(issuer).map_err(|_| CallError::execution("the issuer is no URL"))?;
    // OpenID Connect Discovery 1.0, section 4, and RFC 8414, section 3.1.
    let open_id = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let mut oauth = url.clone();
    oauth.set_path(&format!("/.well-known/oauth-authorization-server{}", url.path().trim_end_matches('/')));
    let metadata = match document(&open_id, client).await {
        Ok(metadata) => metadata,
        Err(error) => document(oauth.as_str(), client).await.map_err(|_| error)?,
    };
    if metadata.get("issuer").and_then(Value::as_str) != Some(issuer) {
        return Err(CallError::execution("the issuer's metadata is of another issuer: give it exactly as in `iss`"));
    }
    let keys = metadata.get("jwks_uri").and_then(Value::as_str);
    keys.map(str::to_owned).ok_or_else(|| CallError::execution("the issuer's metadata has no `jwks_uri`"))
}

async fn document(url: &str, client: &HttpClient) -> Result<Value, CallError> {
    safe(url).map_err(CallError::execution)?;
    let document = client.fetch_part(url, MAX_BYTES).await?;
    serde_json::from_str(&document.text).map_err(|_| CallError::execution("the document is not JSON"))
}

/// Checks that the content of a URL cannot be changed on the way: https, or this machine.
fn safe(url: &str) -> Result<(), &'static str> {
    let url = Url::parse(url).map_err(|_| "keys for tokens are at an absolute URL")?;
    if is_safe(&url) { Ok(()) } else { Err("keys for tokens are fetched by https only, or from this machine") }
}
