//! What an HTTP client needs to know about a service.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::header::USER_AGENT;
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response};
use http_body::Body;
use tokio::sync::Semaphore;
use tower_service::Service;
use url::Url;

use super::auth::Credentials;
use super::engine::{Custom, Engine};
use super::{Auth, HttpEngine, Reconnect, RequestBody, Retry, invalid};
use crate::{CallError, OutputPolicy};

/// What an HTTP client needs to know about a service.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::http::{Auth, HttpClient, HttpConfig};
///
/// let config = HttpConfig::new()
///     .with_base_url("https://api.example.com/v1")
///     .with_auth(Auth::bearer("t0k3n"))
///     .with_timeout(Duration::from_secs(20));
/// let client = HttpClient::new(config)?;
/// # Ok::<(), ops_runtime::CallError>(())
/// ```
#[derive(Clone)]
pub struct HttpConfig {
    namespace: Option<String>,
    base_url: Option<String>,
    headers: Vec<(String, String)>,
    auth: Option<Auth>,
    credentials: BTreeMap<String, Auth>,
    server_variables: BTreeMap<String, String>,
    timeout: Option<Duration>,
    max_response: usize,
    max_line: Option<usize>,
    max_event: Option<usize>,
    max_in_flight: Option<usize>,
    redirects: usize,
    retry: Option<Retry>,
    reconnect: Option<Reconnect>,
    policy: OutputPolicy,
    engine: Option<Arc<dyn Engine>>,
}

impl HttpConfig {
    /// A service whose operations say where it is, without credentials.
    pub fn new() -> Self {
        Self {
            namespace: None,
            base_url: None,
            headers: Vec::new(),
            auth: None,
            credentials: BTreeMap::new(),
            server_variables: BTreeMap::new(),
            timeout: None,
            max_response: 64 * 1024 * 1024,
            max_line: None,
            max_event: None,
            max_in_flight: None,
            redirects: 10,
            retry: None,
            reconnect: None,
            policy: OutputPolicy::default(),
            engine: None,
        }
    }

    /// Names the namespace of operations that are read from a document of this service.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the URL that every path is below; without it, each operation's own server is called.
    ///
    /// A user and password in it are used as basic authentication. Without a base URL, the document decides where the
    /// credentials go: set one for documents that you do not trust.
    #[must_use]
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds a header to every request; a parameter of the operation replaces one of the same name.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a variable of the servers that the document names; a base URL makes it needless.
    ///
    /// An operation whose server knows no such variable is called as before; one whose server does not allow the value is
    /// refused.
    #[must_use]
    pub fn with_server_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.server_variables.insert(name.into(), value.into());
        self
    }

    /// Sets the credentials for every operation that asks for any that they fit, or that says nothing about it.
    ///
    /// An operation that only allows anonymous calls is called without. One that asks for something that neither these nor
    /// those [by name](Self::with_credentials) are is sent these nonetheless, as documents are often wrong about it.
    #[must_use]
    pub fn with_auth(mut self, auth: impl Into<Auth>) -> Self {
        self.auth = Some(auth.into());
        self
    }

    /// Sets the credentials for a security scheme, by the name that the document gives it.
    ///
    /// An operation may name several ways to authenticate: the first for which there are all credentials is used. If there
    /// is none, the request is sent without any, which the log says at the level `DEBUG`.
    ///
    /// ```
    /// use ops_runtime::http::{Auth, HttpConfig};
    ///
    /// let config = HttpConfig::new()
    ///     .with_base_url("https://api.example.com")
    ///     .with_credentials("petstore_auth", Auth::client_credentials("my-app", "s3cr3t"))
    ///     .with_credentials("api_key", Auth::api_key("k3y"));
    /// ```
    #[must_use]
    pub fn with_credentials(mut self, scheme: impl Into<String>, auth: impl Into<Auth>) -> Self {
        self.credentials.insert(scheme.into(), auth.into());
        self
    }

    /// Has requests sent again that failed in a way that may pass, where it is safe: see [`Retry`]. By default none is.
    #[must_use]
    pub fn with_retries(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Has subscriptions opened again whose connection has ended: see [`Reconnect`]. By default none is.
    #[must_use]
    pub fn with_reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = Some(reconnect);
        self
    }

    /// Sets how many requests may be under way at a time; more wait for their turn. By default there is no limit.
    ///
    /// A request is under way until its response is read, or dropped: a subscription or a streamed body until it ends.
    #[must_use]
    pub fn with_max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = Some(requests);
        self
    }

    /// Sets how long a call may take in all, retries included; of a subscription or a streamed body, until the response's
    /// headers are there.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how many bytes the body of a response may have: 64 MiB by default.
    ///
    /// It does not count for subscriptions, which have the limits of a line and an event.
    #[must_use]
    pub fn with_max_response(mut self, bytes: usize) -> Self {
        self.max_response = bytes;
        self
    }

    /// Sets how many bytes a line of an event stream may have: 1 MiB by default.
    #[must_use]
    pub fn with_max_line(mut self, bytes: usize) -> Self {
        self.max_line = Some(bytes);
        self
    }

    /// Sets how many bytes the data of a server-sent event may have: 8 MiB by default.
    #[must_use]
    pub fn with_max_event(mut self, bytes: usize) -> Self {
        self.max_event = Some(bytes);
        self
    }

    /// Sets how many redirects are followed, 10 by default; with 0 a redirect is an error like any other status.
    #[must_use]
    pub fn with_redirects(mut self, count: usize) -> Self {
        self.redirects = count;
        self
    }

    /// Says what the client's own calls do with results that do not match their schema.
    ///
    /// Calls through a registry follow the registry's policy.
    #[must_use]
    pub fn with_policy(mut self, policy: OutputPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sends the requests through a service of yours instead of the built-in engine; it may wrap one
    /// ([`HttpEngine`]).
    ///
    /// It gets each request as it goes out, with credentials, once for every redirect and retry. The service should not follow redirects itself: the client does, and keeps credentials from strangers.
    #[must_use]
    pub fn with_service<S, B>(mut self, service: S) -> Self
    where
        S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
        S::Error: Into<Box<dyn Error + Send + Sync>>,
        S::Future: Send + 'static,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn Error + Send + Sync>>,
    {
        self.engine = Some(Arc::new(Custom(Mutex::new(service))));
        self
    }

    pub(super) fn policy(&self) -> OutputPolicy {
        self.policy
    }

    /// The namespace of operations that are read from a document of this service.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Header values and the URL may hold credentials; their names and the host do not.
        let host = self.base_url.as_deref().and_then(|url| Url::parse(url).ok());
        f.debug_struct("HttpConfig")
            .field("namespace", &self.namespace)
            .field("host", &host.as_ref().and_then(Url::host_str))
            .field("headers", &self.headers.iter().map(|(name, _)| name).collect::<Vec<_>>())
            .field("auth", &self.auth)
            .field("credentials", &self.credentials)
            .field("timeout", &self.timeout)
            .field("max_response", &self.max_response)
            .field("redirects", &self.redirects)
            .finish_non_exhaustive()
    }
}

/// A configuration that was checked.
pub(super) struct Settings {
    pub(super) base_url: Option<Url>,
    pub(super) headers: HeaderMap,
    pub(super) credentials: Credentials,
    pub(super) server_variables: BTreeMap<String, String>,
    pub(super) timeout: Option<Duration>,
    pub(super) max_response: usize,
    pub(super) max_line: Option<usize>,
    pub(super) max_event: Option<usize>,
    pub(super) redirects: usize,
    pub(super) retry: Option<Retry>,
    pub(super) reconnect: Option<Reconnect>,
    pub(super) in_flight: Option<Arc<Semaphore>>,
    pub(super) engine: Arc<dyn Engine>,
}

impl Settings {
    pub(super) fn new(config: HttpConfig) -> Result<Self, CallError> {
        let mut auth = config.auth;
        let mut base_url = config.base_url.as_deref().map(parse_url).transpose()?;
        if let Some(url) = &mut base_url {
            let own = take_credentials(url)?;
            auth = auth.or(own);
        }
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("ops-runtime/", env!("CARGO_PKG_VERSION"))));
        for (name, value) in &config.headers {
            let bad =
                |what: &str| invalid("/headers", format!("the header `{}` has no valid {what}", name.escape_debug()));
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
            let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| bad("value"))?;
            // Nobody knows which of them are credentials.
            value.set_sensitive(true);
            if name == USER_AGENT {
                headers.insert(name, value);
            } else {
                headers.append(name, value);
            }
        }
        let engine = match config.engine {
            Some(engine) => engine,
            None => Arc::new(Custom(Mutex::new(HttpEngine::new()?))),
        };
        Ok(Self {
            base_url,
            headers,
            credentials: Credentials::new(auth, config.credentials)?,
            server_variables: config.server_variables,
            timeout: config.timeout,
            max_response: config.max_response,
            max_line: config.max_line,
            max_event: config.max_event,
            redirects: config.redirects,
            retry: config.retry,
            reconnect: config.reconnect,
            // At least one, or nothing would ever be sent.
            in_flight: config.max_in_flight.map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)))),
            engine,
        })
    }
}

/// The base URL, which must be absolute.
fn parse_url(text: &str) -> Result<Url, CallError> {
    // The text stays out of the message: it may hold a password.
    let url = Url::parse(text.trim())
        .map_err(|error| invalid("/baseUrl", format!("the base URL is not an absolute URL: {error}")))?;
    if !is_http(&url) {
        return Err(invalid("/baseUrl", format!("the base URL has the scheme `{}`, not http or https", url.scheme())));
    }
    Ok(url)
}

/// Whether a request can be sent to the URL; such a URL always has a host.
pub(super) fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// Takes user and password out of the URL.
pub(super) fn take_credentials(url: &mut Url) -> Result<Option<Auth>, CallError> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decode(url.username());
    let password = url.password().map(decode);
    if user.is_empty() && password.is_none() {
        return Ok(None);
    }
    // They fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let auth = Auth::basic(user, password.unwrap_or_default());
    auth.to_header()?;
    Ok(Some(auth))
}
