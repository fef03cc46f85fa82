//! From a request to a response: the host check, the route, the sender, and the response.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

use axum::body::Body;
use futures_util::FutureExt;
use http::header::{CONTENT_SECURITY_POLICY, HeaderName};
use http::{HeaderValue, Request, Response, StatusCode};

use super::accept::Accept;
use super::access;
use super::incoming::{Incoming, Shared};
use super::input::refused;
use super::metrics::{self, Meter};
use super::place::Place;
use super::problem::Problem;
use super::read;
use super::response;
use crate::model::request_id::Number;
use crate::run::registry::Entry;
use crate::run::response::ResponseParts;
use crate::{Bodies, BoxFuture, Payload};

/// Every response has the request id that is in the server's log.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const NO_SNIFF: HeaderName = HeaderName::from_static("x-content-type-options");

/// The server as a service.
#[derive(Clone)]
pub(super) struct Service(pub(super) Arc<Shared>);

impl tower_service::Service<Request<Body>> for Service {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Task<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.0.clone().respond(request).map(Ok))
    }
}

impl Shared {
    /// The response to a request, in every case.
    // Not an async fn, whose future would hold the request twice: it is made for each request.
    pub(super) fn respond(
        self: Arc<Self>,
        request: Request<Body>,
    ) -> impl Future<Output = Response<Body>> + Send + 'static {
        let (parts, body) = request.into_parts();
        async move {
            let number = Number::next();
            let meter = Meter::start(self.metrics.as_ref());
            let accept = Accept::of(&parts.headers);
            let incoming = Incoming {
                server: &self,
                parts: &parts,
                number,
                accept,
                meter: &meter,
                response: ResponseParts::new(),
            };
            let answered = incoming.answer(body).await;
            let mut buffer = [0; Number::LENGTH];
            let id = number.write(&mut buffer);
            let mut response = answered.unwrap_or_else(|problem| problem.into_response(id));
            meter.end(response.status());
            let headers = response.headers_mut();
            headers.insert(NO_SNIFF, HeaderValue::from_static("nosniff"));
            if response::may_run(headers) && !headers.contains_key(CONTENT_SECURITY_POLICY) {
                // The content may come from another server: its scripts would run as pages of this one.
                headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
            }
            if let Ok(id) = HeaderValue::from_str(id) {
                headers.insert(REQUEST_ID, id);
            }
            response
        }
    }
}

impl Incoming<'_> {
    async fn answer(&self, body: Body) -> Result<Response<Body>, Problem> {
        let checked = self.server.door.check(&self.parts.uri, &self.parts.headers);
        checked.map_err(|(status, detail)| Problem::new(status, detail))?;
        let headers = self.parts.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        if headers.sum::<usize>() > self.server.options.max_head {
            return Err(Problem::new(
                StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
                "the head of the request is too long",
            ));
        }
        let routes = self.server.cache.get(&self.server.registry, &self.server.filters);
        // Not in the `match`, which would keep its error until the end.
        let place = self.place(&routes)?;
        match place {
            Place::Health => Ok(response::respond(StatusCode::OK, "application/json", "{\"status\":\"ok\"}")),
            Place::Document(written) => Box::pin(self.document(&routes, written)).await,
            #[cfg(feature = "docs-page")]
            Place::Docs(page) => Ok(self.page(&routes, &page)),
            Place::Metrics(metrics) => {
                let identity = self.identify().await?;
                access::allows(&metrics.access, identity.as_deref())
                    .map_err(|lack| self.lacking(lack, identity.as_deref(), None))?;
                let text = metrics.text(self.server.limits.open_streams(), |id| routes.entry(id).is_some());
                #[cfg(feature = "durable")]
                let text = match &metrics.jobs {
                    Some(jobs) => text + &super::jobs::text(jobs).await,
                    None => text,
                };
                Ok(response::respond(StatusCode::OK, metrics::CONTENT_TYPE, text))
            }
            Place::ById(entry) => Box::pin(self.by_id(entry, body)).await,
            Place::Bound(matches) => {
                let identity = self.identify().await?;
                self.bound(matches, identity, body).await
            }
        }
    }

    async fn by_id(&self, entry: Arc<Entry>, body: Body) -> Result<Response<Body>, Problem> {
        let identity = self.identify().await?;
        self.admit(&entry, identity.as_deref())?;
        self.plain(None)?;
        let (_held, text) = self.text_by_id(&entry, body).await?;
        let input = match text.is_empty() {
            true => Payload::Value(read::nothing(&entry.spec)),
            false => Payload::Json(text.clone()),
        };
        let answered = self.run(&entry, None, identity, input, Bodies::default(), None).await;
        answered.map_err(|problem| refused(&entry, &text, problem))
    }
}
