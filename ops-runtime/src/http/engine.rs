//! Engines, which send requests: the built-in one, or a service of the program.

mod body;

use std::collections::BTreeMap;
use std::error::Error;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::header::{ACCEPT_ENCODING, RANGE, TRANSFER_ENCODING};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::BodyExt;
use tower_service::Service;
use url::Url;

use super::destinations::{Home, Refused, Resolver};
use super::outgoing::Unsendable;
use super::{Destinations, RequestBody, tls};
use crate::model::body::measured::Changed;
use crate::model::lock::lock;
use crate::{CallError, ErrorCode};

pub use body::ResponseBody;
pub(super) use body::{BoxError, Silent};

/// The `User-Agent` of the built-in engine, unless a request sets another one.
const USER_AGENT: &str = concat!("ops-runtime/", env!("CARGO_PKG_VERSION"));

/// Timeout for connecting.
pub(super) const CONNECT: Duration = Duration::from_secs(30);

/// A response of any engine.
pub(super) type EngineResponse = Response<ResponseBody>;

/// Why there is no response.
#[derive(Debug)]
pub(super) struct SendError {
    pub(super) error: CallError,
    /// True if a retry may succeed: the connection could not be made, or broke.
    pub(super) transient: bool,
    /// True if the server may have got the request: not if no connection was made.
    pub(super) may_have_arrived: bool,
}

impl From<CallError> for SendError {
    fn from(error: CallError) -> Self {
        Self { error, transient: false, may_have_arrived: true }
    }
}

/// Sends one request and returns the response unchanged, including redirects.
pub(super) trait Engine: Send + Sync {
    fn send(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, SendError>>;
}

/// The built-in engine as a service, to be wrapped and passed to
/// [`HttpConfig::with_service`](super::HttpConfig::with_service).
///
/// It sends a request and returns the response unchanged. The client follows redirects and retries. Any `tower` layer
/// can wrap the engine:
///
/// ```
/// use std::task::{Context, Poll};
///
/// use ops_runtime::http::{HttpClient, HttpConfig, HttpEngine, RequestBody};
/// use tower_service::Service;
///
/// /// What `tower::ServiceBuilder::new().layer(..).service(HttpEngine::new()?)` gives, written by hand.
/// #[derive(Clone)]
/// struct Counted<S>(S, std::sync::Arc<std::sync::atomic::AtomicUsize>);
///
/// impl<S: Service<http::Request<RequestBody>>> Service<http::Request<RequestBody>> for Counted<S> {
///     type Response = S::Response;
///     type Error = S::Error;
///     type Future = S::Future;
///
///     fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
///         self.0.poll_ready(cx)
///     }
///
///     fn call(&mut self, request: http::Request<RequestBody>) -> S::Future {
///         self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
///         self.0.call(request)
///     }
/// }
///
/// let service = Counted(HttpEngine::new()?, Default::default());
/// let client = HttpClient::new(HttpConfig::new().with_base_url("https://api.example.com").with_service(service))?;
/// # Ok::<(), ops_runtime::CallError>(())
/// ```
#[derive(Debug, Clone)]
pub struct HttpEngine {
    client: reqwest::Client,
    /// True if the client may ask for compressed responses, which it decodes.
    may_decode: bool,
}

impl From<reqwest::Client> for HttpEngine {
    /// Your own client as an engine: see [`HttpConfig::with_client`](super::HttpConfig::with_client).
    fn from(client: reqwest::Client) -> Self {
        Self { client, may_decode: true }
    }
}

/// A coding with which a server may compress a response (RFC 9110, section 8.4.1).
#[cfg(feature = "compression")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// `gzip` (RFC 1952).
    Gzip,
    /// `br` (RFC 7932).
    Brotli,
    /// `zstd` (RFC 8878).
    Zstd,
}

#[cfg(feature = "compression")]
impl Compression {
    /// All codings that the built-in engine decodes.
    pub const ALL: [Self; 3] = [Self::Gzip, Self::Brotli, Self::Zstd];
}

/// How the built-in engine connects, and the codings that it requests.
#[derive(Debug, Clone)]
pub(super) struct Connecting {
    pub(super) timeout: Option<Duration>,
    #[cfg(feature = "compression")]
    pub(super) compression: Vec<Compression>,
}

impl Default for Connecting {
    fn default() -> Self {
        Self {
            timeout: Some(CONNECT),
            #[cfg(feature = "compression")]
            compression: Vec::new(),
        }
    }
}

impl Connecting {
    fn builder(&self) -> reqwest::ClientBuilder {
        let builder = builder().connect_timeout(self.timeout.unwrap_or(Duration::MAX)).user_agent(USER_AGENT);
        #[cfg(feature = "compression")]
        let builder = builder
            .gzip(self.compression.contains(&Compression::Gzip))
            .brotli(self.compression.contains(&Compression::Brotli))
            .zstd(self.compression.contains(&Compression::Zstd));
        builder
    }

    #[cfg(feature = "compression")]
    fn may_decode(&self) -> bool {
        !self.compression.is_empty()
    }

    #[cfg(not(feature = "compression"))]
    fn may_decode(&self) -> bool {
        false
    }
}

/// The settings that every HTTP client of this crate shares.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // Another crate of the program may have enabled the features of reqwest that turn these on by default.
    tls::shared(reqwest::Client::builder()).connect_timeout(CONNECT).no_gzip().no_brotli().no_deflate().no_zstd()
}

impl HttpEngine {
    /// An engine with a pool of connections of its own; a clone shares it.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new() -> Result<Self, CallError> {
        Self::connecting(&Connecting::default())
    }

    pub(super) fn connecting(connecting: &Connecting) -> Result<Self, CallError> {
        Self::build(connecting.builder(), connecting.may_decode())
    }

    fn build(builder: reqwest::ClientBuilder, may_decode: bool) -> Result<Self, CallError> {
        builder
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map(|client| Self { client, may_decode })
            .map_err(|error| failure("the HTTP client cannot be set up", &error.without_url()))
    }
}

/// The error of a client that follows redirects itself.
const FOLLOWED: &str = "the client that was given to `with_client` followed a redirect itself, which may carry \
                        credentials to other hosts: build it with `redirect(reqwest::redirect::Policy::none())`";

/// How many engines for hosts to which servers led are cached.
const LED: usize = 16;

/// The engines for hosts to which servers lead. They connect only to allowed addresses; there is one engine for each
/// host that the program itself named.
pub(super) struct Led {
    destinations: Destinations,
    connecting: Connecting,
    engines: Mutex<BTreeMap<String, HttpEngine>>,
}

impl Led {
    pub(super) fn new(destinations: Destinations, connecting: Connecting) -> Self {
        Self { destinations, connecting, engines: Mutex::default() }
    }

    /// Sends a request to a URL to which a server led, away from the one that the program named.
    pub(super) async fn send(&self, home: &Url, request: Request<RequestBody>) -> Result<EngineResponse, SendError> {
        let engine = {
            let mut engines = lock(&self.engines);
            let host = home.host_str().unwrap_or_default();
            match engines.get(host) {
                Some(engine) => engine.clone(),
                None => {
                    let resolver = Resolver::new(self.destinations.clone(), Home::of(home));
                    let builder = self.connecting.builder().dns_resolver(Arc::new(resolver));
                    let engine = HttpEngine::build(builder, self.connecting.may_decode())?;
                    if engines.len() >= LED {
                        engines.clear();
                    }
                    engines.insert(host.to_owned(), engine.clone());
                    engine
                }
            }
        };
        Custom(Mutex::new(engine)).send(request).await
    }
}

impl Service<Request<RequestBody>> for HttpEngine {
    type Response = Response<ResponseBody>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<RequestBody>) -> Self::Future {
        let client = self.client.clone();
        // Over HTTP/1, the body of such a request is sent only if its length is known, or if this header is set.
        let body = request.body();
        let has_length = body.is_end_stream() || body.size_hint().exact().is_some();
        if !has_length && [Method::GET, Method::HEAD].contains(request.method()) {
            request.headers_mut().insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        // A range counts compressed bytes if the response is compressed (Fetch, "HTTP-network-or-cache fetch").
        if self.may_decode && request.headers().contains_key(RANGE) {
            request.headers_mut().entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("identity"));
        }
        let is_head = *request.method() == Method::HEAD;
        Box::pin(async move {
            // Messages do not show the URL, since it may contain secrets.
            let request = reqwest::Request::try_from(request.map(body_of)).map_err(reqwest::Error::without_url)?;
            let url = request.url().clone();
            let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            if *response.url() != url {
                return Err(FOLLOWED.into());
            }
            let has_content =
                !is_head && ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&response.status());
            Ok(Response::from(response).map(|body| {
                let body = body.map_err(reqwest::Error::without_url);
                if has_content { ResponseBody::new(body) } else { ResponseBody::without_content(body) }
            }))
        })
    }
}

/// The body for `reqwest`, which sends a request again that an HTTP/2 server says it has not processed, but only if it
/// knows that the body can be sent again.
fn body_of(body: RequestBody) -> reqwest::Body {
    match body.in_one_piece() {
        Some(bytes) => bytes.into(),
        None => reqwest::Body::wrap(body),
    }
}

/// A service: the built-in engine, or your own.
///
/// The lock makes the service shareable; it is held only while the service is cloned.
pub(super) struct Custom<S>(pub(super) Mutex<S>);

impl<S, B> Engine for Custom<S>
where
    S: Service<Request<RequestBody>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    fn send(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, SendError>> {
        let mut service = lock(&self.0).clone();
        let uri = request.uri().clone();
        Box::pin(async move {
            let failed = |error: S::Error| {
                let error = error.into();
                let what = format!("the request to {} failed", server(&uri));
                let (transient, failure) = (is_transient(&*error), failure(&what, &*error));
                let error_of_call = if transient { failure.transient() } else { failure };
                SendError { transient, may_have_arrived: !is_unconnected(&*error), error: error_of_call }
            };
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(failed)?;
            let response = service.call(request).await.map_err(failed)?;
            Ok(response.map(ResponseBody::new))
        })
    }
}

/// The server of a URL, without parts that may be secret.
fn server(uri: &http::Uri) -> String {
    let host = uri.host().unwrap_or("a server");
    let scheme = uri.scheme_str().map(|scheme| format!("{scheme}://")).unwrap_or_default();
    let port = uri.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}{host}{port}")
}

/// True if the connection could not be made or broke, so that a retry may succeed.
fn is_transient(error: &(dyn Error + 'static)) -> bool {
    // The body is the cause, and not the connection. Another try reads a file anew.
    if let Some(error) = Unsendable::below(error) {
        return Changed::is(error);
    }
    // An address that is not allowed is an error of connecting, too.
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<Refused>() {
            return false;
        }
        next = error.source();
    }
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return error.is_connect() || error.is_request();
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return matches!(
                error.kind(),
                ErrorKind::ConnectionRefused
                    | ErrorKind::ConnectionReset
                    | ErrorKind::ConnectionAborted
                    | ErrorKind::NotConnected
                    | ErrorKind::BrokenPipe
                    | ErrorKind::UnexpectedEof
            );
        }
        next = error.source();
    }
    false
}

/// True if no connection was made, so that no server can have got the request.
fn is_unconnected(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<reqwest::Error>() {
            return error.is_connect();
        }
        if let Some(error) = error.downcast_ref::<std::io::Error>() {
            return error.kind() == ErrorKind::ConnectionRefused;
        }
        next = error.source();
    }
    false
}

/// An error of the transport with its causes.
pub(super) fn failure(what: &str, error: &(dyn Error + 'static)) -> CallError {
    // What a stream of the program failed with says nothing of this server, even if it is an error of another response.
    if let Some(error) = Unsendable::below(error) {
        return CallError::execution(format!("{what}: {}", CallError::words_of(error)));
    }
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(silent) = error.downcast_ref::<Silent>() {
            return CallError::new(ErrorCode::Timeout, format!("{what}: {silent}"));
        }
        if error.downcast_ref::<reqwest::Error>().is_some_and(|error| error.is_connect() && error.is_timeout()) {
            let message = format!(
                "{what}: no connection was made in time: raise `with_connect_timeout`, or the timeout of your own client"
            );
            return CallError::new(ErrorCode::Timeout, message);
        }
        next = error.source();
    }
    CallError::execution(format!("{what}: {}", CallError::words_of(error)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_destination_that_is_not_allowed_is_not_tried_again() {
        let led = Led::new(Destinations::standard(), Connecting::default());
        let home = Url::parse("https://8.8.8.8").unwrap();
        let request = Request::get("http://localhost:1/").body(RequestBody::default()).unwrap();
        let failed = led.send(&home, request).await.unwrap_err();
        assert!(!failed.transient && failed.error.message().contains("with_destinations"), "{}", failed.error);
    }
}
