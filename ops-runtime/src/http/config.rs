//! The configuration of an HTTP client.

mod checked;
mod credentials;

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;
use url::Url;

#[cfg(feature = "compression")]
use super::Compression;
use super::auth::Environment;
use super::engine::{CONNECT, Custom, Engine};
use super::hooks::Hooks;
use super::{Auth, Destinations, HttpEngine, Reconnect, RequestBody, RequestInfo, ResponseInfo, Retry};
use crate::{CallError, OutputPolicy};

pub(super) use checked::Checked;

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
    environment: Environment,
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
    idempotency_keys: bool,
    trace_context: bool,
    hooks: Hooks,
    #[cfg(feature = "compression")]
    compression: Vec<Compression>,
    policy: OutputPolicy,
    engine: Option<Arc<dyn Engine>>,
}

impl HttpConfig {
    /// A configuration without credentials, and without a base URL: operations name the servers.
    pub fn new() -> Self {
        Self {
            namespace: None,
            base_url: None,
            headers: Vec::new(),
            auth: None,
            credentials: BTreeMap::new(),
            environment: Environment::default(),
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
            idempotency_keys: false,
            trace_context: false,
            hooks: Hooks::default(),
            #[cfg(feature = "compression")]
            compression: Vec::new(),
            policy: OutputPolicy::default(),
            engine: None,
        }
    }

    /// Restricts the client to the operations of one API, by their namespace, which operations of a document get as
    /// well.
    ///
    /// The call of an operation with another namespace is a `VALIDATION_ERROR`, and nothing is sent. Without a
    /// namespace, a client runs every operation, and sends its credentials to the base URL, or, if there is none, to
    /// the server in the operation's own document.
    ///
    /// ```
    /// use ops_runtime::http::{Auth, HttpConfig};
    ///
    /// // Not even by mistake does the bank's token go to a shop.
    /// let config = HttpConfig::new().with_namespace("bank").with_auth(Auth::bearer("t0k3n"));
    /// ```
    #[must_use]
    pub fn with_namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// Sets the URL to which every path is appended; without it, each operation's own server is called.
    ///
    /// A user and password in it are used as basic authentication. Without a base URL, the document decides where
    /// credentials are sent: set one for documents that you do not trust.
    #[must_use]
    pub fn with_base_url(mut self, url: impl Into<String>) -> Self {
        self.base_url = Some(url.into());
        self
    }

    /// Adds a header to every request. A header parameter of the operation replaces the header of the same name. All cookies
    /// are sent in one header `Cookie`, in which a cookie of the call or of its input replaces the one of the same name. Headers
    /// that frame the message, such as `Content-Length`, are refused.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// Sets a variable in the URLs of the document's servers, which are not used if there is a base URL.
    ///
    /// An operation whose server lacks the variable is not affected. If the server does not allow the value, the call
    /// is refused. A name that no server has is logged at the level `WARN`.
    #[must_use]
    pub fn with_server_variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.server_variables.insert(name.into(), value.into());
        self
    }

    /// The server of an operation's requests: its URL, and the values of the variables in it.
    #[cfg(all(feature = "gateway", feature = "program"))]
    pub(crate) fn server_of(&self, http: &crate::HttpBinding) -> serde_json::Value {
        if let Some(url) = &self.base_url {
            return url.as_str().into();
        }
        let defaults: Vec<_> = http.server_variables.iter().map(|own| (&own.name, &own.default)).collect();
        serde_json::json!([http.server, defaults, self.server_variables])
    }

    /// Generates an idempotency key for each call of an operation that has a parameter for one, unless the call sets
    /// it.
    ///
    /// The key is a random UUID, the same for all retries of the call, which makes them safe. Another call has another key, so
    /// [`CallError::is_retryable`](crate::CallError::is_retryable) does not count it. To repeat a call yourself, set a key with
    /// [`CallOptions::with_idempotency_key`](crate::CallOptions::with_idempotency_key), which lists the parameters that count.
    /// Off by default.
    #[must_use]
    pub fn with_idempotency_keys(mut self) -> Self {
        self.idempotency_keys = true;
        self
    }

    /// Sends the header `traceparent` (W3C Trace Context), so that the service can continue the trace. Off by default.
    ///
    /// The trace is that of the call's metadata `traceparent`, with its `tracestate`; without one, the call begins a
    /// trace. Each attempt has a span id of its own, which is the field `span_id` of the request's `tracing` span. A
    /// header `traceparent` of the configuration or the call is sent unchanged.
    #[must_use]
    pub fn with_trace_context(mut self) -> Self {
        self.trace_context = true;
        self
    }

    /// Requests compressed responses, which are decoded. Off by default.
    ///
    /// Some servers compress unasked. A response that was not decoded is an error that names its coding, unless it is read as
    /// bytes.
    ///
    /// Limits such as [`with_max_response`](Self::with_max_response) count decoded bytes. The headers `Content-Encoding`
    /// and `Content-Length` of a decoded response are not in its metadata. A request with the header `Range` asks for a
    /// response that is not compressed. The setting configures the built-in engine: with
    /// [`with_client`](Self::with_client) or [`with_service`](Self::with_service), making the client fails.
    ///
    /// ```
    /// use ops_runtime::http::{Compression, HttpConfig};
    ///
    /// let config = HttpConfig::new().with_base_url("https://api.example.com").with_compression(Compression::ALL);
    /// ```
    #[cfg(feature = "compression")]
    #[must_use]
    pub fn with_compression(mut self, codings: impl IntoIterator<Item = Compression>) -> Self {
        self.compression = codings.into_iter().collect();
        self
    }

    /// Runs a function before each request, including retries and redirects; several run in order.
    ///
    /// It may change the headers, after credentials were added. An error ends the call, and the request is not sent.
    /// After a redirect to another origin it gets that URL: check it before adding a secret. It is not run for requests
    /// for tokens.
    ///
    /// ```
    /// use ops_runtime::http::HttpConfig;
    ///
    /// let config = HttpConfig::new().with_base_url("https://api.example.com").with_before(|request| {
    ///     request.headers.insert("x-attempt", request.attempt.into());
    ///     Ok(())
    /// });
    /// ```
    #[must_use]
    pub fn with_before(
        mut self,
        hook: impl Fn(&mut RequestInfo<'_>) -> Result<(), CallError> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.before.push(Arc::new(hook));
        self
    }

    /// Runs a function after each request, including retries and redirects, when the response's headers have arrived or
    /// the request has failed; several run in order.
    ///
    /// ```
    /// use ops_runtime::http::HttpConfig;
    ///
    /// let config = HttpConfig::new().with_base_url("https://api.example.com").with_after(|response| {
    ///     let status = response.result.map_or(0, |(status, _)| status.as_u16());
    ///     println!("{} try {}: {status} after {:?}", response.operation, response.attempt, response.elapsed);
    /// });
    /// ```
    #[must_use]
    pub fn with_after(mut self, hook: impl Fn(&ResponseInfo<'_>) + Send + Sync + 'static) -> Self {
        self.hooks.after.push(Arc::new(hook));
        self
    }

    /// Retries requests after transient failures, if it is safe: see [`Retry`]. Off by default;
    /// [`CallOptions::with_retries`](crate::CallOptions::with_retries) sets it for one call.
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

    /// Limits the requests in flight; further ones wait. No limit by default.
    ///
    /// A request is in flight until its response is read or dropped; a subscription or streamed body, until it ends.
    #[must_use]
    pub fn with_max_in_flight(mut self, requests: usize) -> Self {
        self.max_in_flight = Some(requests);
        self
    }

    /// Sets the timeout of a call, retries included; for a subscription or a streamed body, until the response's
    /// headers arrive. Ten minutes by default; `None` for no limit. A call of this client with a timeout or a deadline of its
    /// own does not have it. Of a registry that the client is bound to, the earlier of both applies.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Sets how long a subscription or a streamed body may be silent before it ends with an error; comments of an event
    /// stream count as activity. With [`with_reconnect`](Self::with_reconnect), a subscription is opened again first. Five
    /// minutes by default; `None` for no limit.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = timeout.into();
        self
    }

    /// Sets the timeout for connecting, including TLS: 30 seconds by default; `None` for no limit. A service of your
    /// own ([`with_service`](Self::with_service)) has its own limits.
    #[must_use]
    pub fn with_connect_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.connect_timeout = timeout.into();
        self
    }

    /// Sets the limit of the body of a response, in bytes: 64 MiB by default.
    ///
    /// It does not apply to subscriptions, which have limits per line and per event.
    #[must_use]
    pub fn with_max_response(mut self, bytes: usize) -> Self {
        self.max_response = bytes;
        self
    }

    /// Sets the limit of a line of an event stream, in bytes: 1 MiB by default.
    #[must_use]
    pub fn with_max_line(mut self, bytes: usize) -> Self {
        self.max_line = Some(bytes);
        self
    }

    /// Sets the limit of the data of a server-sent event, in bytes: 8 MiB by default.
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

    /// Allows redirects to send the body of a request to another scheme, host or port, as 307 and 308 require. By
    /// default that is an error, since the body was meant for the service. From `http` to `https` of the same host is
    /// allowed.
    ///
    /// It is still an error if the request may change something and has headers that another origin does not receive.
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

    /// Sets what the client's own calls do with results that do not match their schema.
    ///
    /// It has no effect on operations that are [bound](super::HttpClient::bind) to a registry: set
    /// `Registry::builder().with_policy(..)` for those. A policy in the options of a call takes precedence over both.
    #[must_use]
    pub fn with_policy(mut self, policy: OutputPolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sends the requests with your own `reqwest` client: its proxies, TLS settings, certificates and pool.
    ///
    /// Build it with `redirect(reqwest::redirect::Policy::none())`, because this client follows redirects itself and
    /// keeps credentials from other origins. If your client follows one, the call fails with an error that says so. Its
    /// own timeouts and compression apply, and [`with_connect_timeout`](Self::with_connect_timeout) does not. Requests have
    /// the `User-Agent` of your client, or none if it has none, which some services refuse.
    ///
    /// Your client adds its default headers to each request, also to one that follows a redirect to another host. So set
    /// credentials and private headers in this configuration instead, which keeps them from other origins.
    /// [`with_destinations`](Self::with_destinations) is checked before a redirect is followed, but your client looks
    /// up the host once more, so a hostile DNS server could then lead it to a private address.
    ///
    /// ```
    /// use ops_runtime::http::HttpConfig;
    ///
    /// # fn config(builder: reqwest::ClientBuilder) -> Result<HttpConfig, Box<dyn std::error::Error>> {
    /// let proxy = reqwest::Proxy::all("http://proxy.example.com:3128")?;
    /// let client = builder.proxy(proxy).redirect(reqwest::redirect::Policy::none()).build()?;
    /// Ok(HttpConfig::new().with_base_url("https://api.example.com").with_client(client))
    /// # }
    /// ```
    #[must_use]
    pub fn with_client(self, client: reqwest::Client) -> Self {
        self.with_service(HttpEngine::from(client))
    }

    /// Sends the requests through your own service instead of the built-in engine, which it may wrap ([`HttpEngine`]).
    ///
    /// It gets each request as sent, with credentials, once per redirect and retry. The service should not follow
    /// redirects itself: the client does, and keeps credentials from other origins. `User-Agent` is set by the built-in
    /// engine, so the requests of a service that does not wrap it have none. [`with_header`](Self::with_header) sets one.
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

    /// The namespace that restricts the client, and that operations of a document get.
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
            .field("environment", &self.environment)
            .field("timeout", &self.timeout)
            .field("max_response", &self.max_response)
            .field("redirects", &self.redirects)
            .finish_non_exhaustive()
    }
}
