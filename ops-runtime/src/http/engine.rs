//! What carries requests: the built-in engine, or a service of the user's.

use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use tower_service::Service;

use crate::CallError;

type BoxError = Box<dyn Error + Send + Sync>;

/// A response of any engine.
pub(super) type EngineResponse = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// The body of a request, as a service of the user's receives it.
#[derive(Debug, Clone, Default)]
pub struct RequestBody(Full<Bytes>);

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self(Full::new(bytes))
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

/// Sends one request and gives the response as it comes, redirects and all.
pub(super) trait Engine: Send + Sync {
    fn send(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, CallError>>;
}

/// The built-in engine.
pub(super) struct Reqwest(reqwest::Client);

impl Reqwest {
    pub(super) fn new() -> Result<Self, CallError> {
        // TLS needs cryptography, and the program may have chosen some; `ring` builds in a fraction of the time that
        // the default of rustls takes. That another thread may be first is fine.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(Duration::from_secs(30))
            .build()
            .map(Self)
            .map_err(|error| failure("the HTTP client cannot be set up", &error.without_url()))
    }
}

impl Engine for Reqwest {
    fn send(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, CallError>> {
        let client = self.0.clone();
        Box::pin(async move {
            // The URL is left out of every message: it may hold what nobody should read in a log.
            let request = request.map(reqwest::Body::wrap);
            let request = reqwest::Request::try_from(request)
                .map_err(|error| failure("the request cannot be sent", &error.without_url()))?;
            let response =
                client.execute(request).await.map_err(|error| failure("the request failed", &error.without_url()))?;
            Ok(Response::from(response).map(|body| body.map_err(|error| error.without_url().into()).boxed_unsync()))
        })
    }
}

/// A service of the user's.
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
    fn send(&self, request: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, CallError>> {
        let mut service = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Box::pin(async move {
            let failed = |error: S::Error| failure("the request failed", &*error.into());
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(failed)?;
            let response = service.call(request).await.map_err(failed)?;
            Ok(response.map(|body| body.map_err(Into::into).boxed_unsync()))
        })
    }
}

/// An error of the transport with its causes.
pub(super) fn failure(what: &str, error: &(dyn Error + 'static)) -> CallError {
    let reason = CallError::from_error(error);
    CallError::execution(format!("{what}: {}", reason.message()))
}
