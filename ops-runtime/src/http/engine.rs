//! What carries requests: the built-in engine, or a service of the user's.

use std::error::Error;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::OwnedSemaphorePermit;
use tower_service::Service;

use super::RequestBody;
use crate::CallError;

pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// A response of any engine.
pub(super) type EngineResponse = Response<ResponseBody>;

/// The body of a response, as it comes from the built-in engine.
#[derive(Debug)]
pub struct ResponseBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    /// Held until the body is read or dropped: so long the request counts as under way.
    permit: Option<OwnedSemaphorePermit>,
}

impl ResponseBody {
    pub(super) fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { inner: body.map_err(Into::into).boxed_unsync(), permit: None }
    }

    pub(super) fn holding(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self.permit = permit;
        self
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.permit = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Why there is no response.
#[derive(Debug)]
pub(super) struct SendError {
    pub(super) error: CallError,
    /// Whether it may be better the next time: the connection was not made, or broke.
    pub(super) transient: bool,
}

impl From<CallError> for SendError {
    fn from(error: CallError) -> Self {
        Self { error, transient: false }
    }
}

/// Sends one request and gives the response as it comes, redirects and all.
pub(super) trait Engine: Send + Sync {
    fn send(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, SendError>>;
}

/// The built-in engine as a service, to be wrapped by others and given to
/// [`HttpConfig::with_service`](super::HttpConfig::with_service).
///
/// It sends a request and gives the response as it comes: it follows no redirects and repeats nothing, which the client
/// does. Anything of `tower` goes around it:
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
pub struct HttpEngine(reqwest::Client);

/// What every HTTP client of this crate starts from.
pub(crate) fn builder() -> reqwest::ClientBuilder {
    // TLS needs cryptography, and the program may have chosen some; `ring` builds in a fraction of the time that the
    // default of rustls takes. That another thread may be first is fine.
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    reqwest::Client::builder().connect_timeout(Duration::from_secs(30))
}

impl HttpEngine {
    /// An engine with a pool of connections of its own; a clone shares it.
    ///
    /// # Errors
    /// If TLS cannot be set up.
    pub fn new() -> Result<Self, CallError> {
        builder()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map(Self)
            .map_err(|error| failure("the HTTP client cannot be set up", &error.without_url()))
    }
}

impl Service<Request<RequestBody>> for HttpEngine {
    type Response = Response<ResponseBody>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            // The URL is left out of every message: it may hold what nobody should read in a log.
            let request =
                reqwest::Request::try_from(request.map(reqwest::Body::wrap)).map_err(reqwest::Error::without_url)?;
            let response = client.execute(request).await.map_err(reqwest::Error::without_url)?;
            Ok(Response::from(response).map(|body| ResponseBody::new(body.map_err(reqwest::Error::without_url))))
        })
    }
}

/// A service: the built-in engine, or one of the user's.
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
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let failed = |error: S::Error| {
                let error = error.into();
                SendError { transient: is_transient(&*error), error: failure("the request failed", &*error) }
            };
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(failed)?;
            let response = service.call(request).await.map_err(failed)?;
            Ok(response.map(ResponseBody::new))
        })
    }
}

/// Whether the connection was not made or broke, which may be better the next time.
fn is_transient(error: &(dyn Error + 'static)) -> bool {
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

/// An error of the transport with its causes.
pub(super) fn failure(what: &str, error: &(dyn Error + 'static)) -> CallError {
    let reason = CallError::from_error(error);
    CallError::execution(format!("{what}: {}", reason.message()))
}
