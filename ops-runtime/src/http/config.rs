//! The configuration of an HTTP client.

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

use super::address::is_http;
use super::auth::{Credentials, take_credentials};
use super::engine::{CONNECT, Custom, Engine, Led};
use super::settings::Settings;
use super::{Auth, Destinations, HttpEngine, Reconnect, RequestBody, Retry, invalid};
use crate::{CallError, OutputPolicy};

/// How long a call may take.
const TIMEOUT: Duration = Duration::from_secs(600);

/// How long a stream may be silent.
const IDLE: Duration = Duration::from_secs(300);

/// The configuration of an HTTP client for one service.
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
    idle_timeout: Option<Duration>,
    connect_timeout: Option<Duration>,
    max_response: usize,
    max_line: Option<usize>,
    max_event: Option<usize>,
    max_in_flight: Option<usize>,
    redirects: usize,
    bodies_to_other_origins: bool,
    destinations: Destinations,
    retry: Option<Retry>,
    reconnect: Option<Reconnect>,
    policy: OutputPolicy,
    engine: Option<Arc<dyn Engine>>,
}

impl HttpConfig {
    /// A configuration without credentials, and without a base URL: operations say where the service is.
    pub fn new() -> Self {
        Self {
            namespace: None,
            base_url: None,
            headers: Vec::new(),
            auth: None,
            credentials: BTreeMap::new(),
            server_variables: BTreeMap::new(),
            timeout: Some(TIMEOUT),
            idle_timeout: Some(IDLE),
            connect_timeout: Some(CONNECT),
            max_response: 64 * 1024 * 1024,
            max_line: None,
            max_event: None,
            max_in_flight: None,
            redirects: 10,
            bodies_to_other_origins: false,
            destinations: Destinations::default(),
            retry: None,
            reconnect: None,
            policy: OutputPolicy::default(),
            engine: None,
        }
    }

    /// Sets the namespace of operations that are read from a document of this service.
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the URL that every path is appended to; without it, each operation's own server is called.
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

    /// Sets a variable in the URLs of the document's servers, which are not used if there is a base URL.
    ///
    /// An operation whose server lacks the variable is called as before. If the server does not allow the value, the
    /// call is refused.
    #[must_use]
    pub fn with_server_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.server_variables.insert(name.into(), value.into());
        self
    }

    /// Sets the credentials for every operation that accepts their kind, or that says nothing about credentials.
    ///
    /// An operation that only allows anonymous calls gets none. An operation that asks for others, for which there are
    /// none [by name](Self::with_credentials), gets these anyway: documents are often wrong about it.
    #[must_use]
    pub fn with_auth(mut self, auth: impl Into<Auth>) -> Self {
        self.auth = Some(auth.into());
        self
    }

    /// Sets the credentials for a security scheme, by the name that the document gives it.
    ///
    /// An operation may name several ways to authenticate: the first whose credentials are all set is used. If there is
    /// none, the request is sent without credentials, and logged at the level `DEBUG`.
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

    /// Retries requests after transient failures, where it is safe: see [`Retry`]. Off by default.
    #[must_use]
    pub fn with_retries(mut self, retry: Retry) -> Self {
        self.retry = Some(retry);
        self
    }

    /// Reopens subscriptions whose connection has ended: see [`Reconnect`]. Off by default.
    #[must_use]
    pub fn with_reconnect(mut self, reconnect: Reconnect) -> Self {
        self.reconnect = Some(reconnect);
        self
    }

    /// Sets how many requests may be in flight at once; more wait for their turn. No limit by default.
    ///
    /// A request is in flight until its response is read or dropped; a subscription or streamed body, until it ends.
    #[must_use]
    pub fn with_max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = Some(requests);
        self
    }

    /// Sets the timeout of a call, retries included; for a subscription or a streamed body, until the response's
    /// headers arrive. Ten minutes by default; `None` for no limit.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets how long a subscription or a streamed body may be silent before it ends with an error; comments of an event
    /// stream count as activity. Five minutes by default; `None` for no limit.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = timeout.into();
        self
    }

    /// Sets how long connecting may take, TLS included: 30 seconds by default; `None` for no limit. A service of yours
    /// ([`with_service`](Self::with_service)) has its own limits.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.connect_timeout = timeout.into();
        self
    }

    /// Sets how many bytes the body of a response may have: 64 MiB by default.
    ///
    /// It does not apply to subscriptions, which have limits per line and per event.
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

    /// Lets redirects send the body of a request to another scheme, host or port, as 307 and 308 ask for. By default that
    /// is an error: the body was meant for the service. From `http` to `https` of the same host is allowed.
    #[must_use]
    pub fn with_bodies_to_other_origins(mut self) -> Self {
        self.bodies_to_other_origins = true;
        self
    }

    /// Sets which addresses redirects may lead to. By default, only a private address may redirect to private networks:
    /// see [`Destinations`].
    #[must_use]
    pub fn with_destinations(mut self, destinations: Destinations) -> Self {
        self.destinations = destinations;
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

    /// Sends the requests through a service of yours instead of the built-in engine, which it may wrap
    /// ([`HttpEngine`]).
    ///
    /// It gets each request as sent, with credentials, once per redirect and retry. The service should not follow
    /// redirects itself: the client does, and keeps credentials from other origins.
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
pub(super) struct Checked {
    pub(super) settings: Arc<Settings>,
    pub(super) credentials: Credentials,
}

impl Checked {
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
            // Any of them may hold credentials.
            value.set_sensitive(true);
            if name == USER_AGENT {
                headers.insert(name, value);
            } else {
                headers.append(name, value);
            }
        }
        let led = config.engine.is_none().then(|| Led::new(config.destinations.clone(), config.connect_timeout));
        let engine = match config.engine {
            Some(engine) => engine,
            None => Arc::new(Custom(Mutex::new(HttpEngine::with_timeout(config.connect_timeout)?))),
        };
        let credentials = Credentials::new(auth, config.credentials)?;
        let settings = Settings {
            base_url,
            headers,
            server_variables: config.server_variables,
            timeout: config.timeout,
            idle_timeout: config.idle_timeout,
            max_response: config.max_response,
            max_line: config.max_line,
            max_event: config.max_event,
            redirects: config.redirects,
            bodies_to_other_origins: config.bodies_to_other_origins,
            destinations: config.destinations,
            led,
            retry: config.retry,
            reconnect: config.reconnect,
            // At least one, or nothing would ever be sent.
            in_flight: config.max_in_flight.map(|n| Arc::new(Semaphore::new(n.clamp(1, Semaphore::MAX_PERMITS)))),
            engine,
        };
        Ok(Self { settings: Arc::new(settings), credentials })
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
