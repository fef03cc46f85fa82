//! The configuration of a client, and defaults for both ends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use crate::call::peer_specs::MAX_ANNOUNCED;
use crate::call::tls::Trust;
use crate::call::{CallHandler, LONGEST};
use crate::{BoxFuture, CallError};

/// Default of the largest message, in bytes.
pub(super) const MAX_MESSAGE: usize = 4 << 20;

/// How long a peer may be silent before it is pinged.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(15);

/// The shortest wait before connecting again.
const LEAST_BACKOFF: Duration = Duration::from_millis(10);

/// A function that gives a token for each handshake.
type TokenSource = dyn Fn() -> BoxFuture<'static, Result<String, CallError>> + Send + Sync;

/// How a client connects to a hub.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::call::websocket::WebSocketConfig;
///
/// let config = WebSocketConfig::new()
///     .with_bearer("t0ken")
///     .with_heartbeat(Duration::from_secs(5))
///     .with_resubscription();
/// assert!(!format!("{config:?}").contains("t0ken"));
/// ```
#[derive(Clone)]
pub struct WebSocketConfig {
    pub(super) headers: HeaderMap,
    pub(super) token_source: Option<Arc<TokenSource>>,
    pub(super) trust: Trust,
    /// The first error in the configuration, returned when the client connects.
    pub(super) mistake: Option<CallError>,
    pub(super) handler: Option<CallHandler>,
    pub(super) trusts_hub: bool,
    pub(super) max_message: usize,
    pub(super) heartbeat: Duration,
    pub(super) backoff: (Duration, Duration),
    pub(super) connect_timeout: Duration,
    pub(super) resubscribes: bool,
    pub(super) max_announced: usize,
}

impl WebSocketConfig {
    /// A client without operations and credentials.
    pub fn new() -> Self {
        Self {
            headers: HeaderMap::new(),
            token_source: None,
            trust: Trust::default(),
            mistake: None,
            handler: None,
            trusts_hub: false,
            max_message: MAX_MESSAGE,
            heartbeat: HEARTBEAT,
            backoff: (Duration::from_millis(100), Duration::from_secs(10)),
            connect_timeout: Duration::from_secs(10),
            resubscribes: false,
            max_announced: MAX_ANNOUNCED,
        }
    }

    /// Sends a header with the handshake; its value is never shown.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            (Ok(name), Ok(mut value)) => {
                value.set_sensitive(true);
                self.headers.insert(name, value);
            }
            _ => self.mistake = Some(CallError::execution(format!("`{name}` and its value are no header"))),
        }
        self
    }

    /// Sends a bearer token with the handshake.
    #[must_use]
    pub fn with_bearer(self, token: &str) -> Self {
        self.with_header("authorization", &format!("Bearer {token}"))
    }

    /// Sends the bearer token that a function gives, which is called for each handshake. Use it for tokens that expire: a
    /// client that reconnects after that needs a new one.
    ///
    /// If the function fails, so does the attempt to connect.
    ///
    /// ```
    /// use ops_runtime::call::websocket::WebSocketConfig;
    ///
    /// async fn login() -> Result<String, ops_runtime::CallError> {
    ///     Ok("t0ken".to_owned())
    /// }
    ///
    /// let config = WebSocketConfig::new().with_token_source(login);
    /// ```
    #[must_use]
    pub fn with_token_source<F, Fut>(mut self, source: F) -> Self
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<String, CallError>> + Send + 'static,
    {
        self.token_source = Some(Arc::new(move || Box::pin(source())));
        self
    }

    /// Trusts the root certificates of a PEM text for `wss://`, in place of those of the system. A text without any, and an
    /// address without encryption, are refused when the client connects.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn with_root_certificates(mut self, pem: impl AsRef<[u8]>) -> Self {
        self.trust = Trust::only(pem.as_ref());
        self
    }

    /// Serves operations to the hub.
    #[must_use]
    pub fn with_handler(mut self, handler: CallHandler) -> Self {
        self.handler = Some(handler);
        self
    }

    /// Trusts the hub to name the caller of each request, which a hub that forwards calls needs. Without it, callers
    /// are anonymous.
    #[must_use]
    pub fn trusting_hub(mut self) -> Self {
        self.trusts_hub = true;
        self
    }

    /// Sets the largest accepted message, in bytes; 4 MiB by default. The hub announces its own.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self
    }

    /// Sets after how much silence the hub is pinged; 15 s by default. After three times as long the connection is
    /// closed.
    #[must_use]
    pub fn with_heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// Sets the first and the longest delay before reconnecting; 100 ms and 10 s by default, and at least 10 ms. The
    /// delay doubles each time, until a connection has lasted for a second and for twice the delay.
    #[must_use]
    pub fn with_backoff(mut self, first: Duration, most: Duration) -> Self {
        let first = first.clamp(LEAST_BACKOFF, LONGEST);
        self.backoff = (first, most.clamp(first, LONGEST));
        self
    }

    /// Limits the memory for the specs that the hub announces, in bytes; 32 MiB by default. Specs beyond the limit, and
    /// any spec above 1 MiB, are kept without their schemas.
    #[must_use]
    pub fn with_max_announced(mut self, bytes: usize) -> Self {
        self.max_announced = bytes;
        self
    }

    /// Sets how long a call waits for a connection; 10 s by default.
    #[must_use]
    pub fn with_connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Requests subscriptions again whose connection was lost.
    ///
    /// Their streams then yield an `ABORTED` with the details `{ "resubscribed": true }`, and go on. A subscription that may
    /// change something ([`OperationSpec::may_change`](crate::spec::OperationSpec::may_change)) is not requested again: it
    /// ends with an `ABORTED`.
    #[must_use]
    pub fn with_resubscription(mut self) -> Self {
        self.resubscribes = true;
        self
    }
}

/// The header of a token; it is never shown.
pub(super) fn bearer(token: &str) -> Result<HeaderValue, CallError> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        CallError::execution("the token of `WebSocketConfig::with_token_source` has characters that no header may have")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

impl Default for WebSocketConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for WebSocketConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WebSocketConfig")
            .field("headers", &self.headers.keys().collect::<Vec<_>>())
            .field("max_message", &self.max_message)
            .field("heartbeat", &self.heartbeat)
            .finish_non_exhaustive()
    }
}
