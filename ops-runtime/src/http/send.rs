//! Sending one request, with a timeout.

use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, ready};
use std::time::Duration;

use http::{HeaderMap, Method, Request};
use serde_json::json;
use tokio::time::{Instant, sleep_until};
use tracing::{Instrument, Span, debug, debug_span, field};
use url::Url;

use super::RequestBody;
use super::engine::{EngineResponse, SendError};
use super::settings::Settings;
use super::trace;
use crate::model::clock::millis;
use crate::run::pipeline::timed_out;
use crate::{BoxFuture, CallError, ErrorCode, OperationSpec};

/// A request from its parts.
pub(super) fn request(
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: RequestBody,
) -> Result<Request<RequestBody>, CallError> {
    let mut request = Request::new(body);
    *request.method_mut() = method;
    *request.uri_mut() =
        url.as_str().parse().map_err(|error| CallError::execution(format!("the URL cannot be requested: {error}")))?;
    *request.headers_mut() = headers;
    Ok(request)
}

/// The label of a request in a trace: the path's template, but no value of the input.
#[derive(Debug, Clone, Default)]
pub(super) struct Label {
    pub(super) operation: String,
    template: String,
}

impl Label {
    pub(super) fn of(spec: &OperationSpec) -> Self {
        let template = spec.http().map_or_else(String::new, |binding| binding.path.clone().into_owned());
        Self { operation: spec.id.clone().into_owned(), template }
    }
}

/// The requests that a call has sent.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// All requests, including retries and redirects.
    requests: u32,
    /// The number of the current attempt.
    attempt: u32,
    /// The headers of requests after the program's hooks, which may have added some.
    headers: Vec<HeaderMap>,
    /// How long a request may take until the headers of its response arrive.
    timeout: Option<Duration>,
    /// True if a server may have begun with a request. False while it waits for others, or if a hook or the server refuses it.
    pub(super) may_have_begun: bool,
}

impl Sent {
    /// Counts another attempt.
    pub(super) fn try_again(&mut self) {
        self.attempt = self.attempt.saturating_add(1);
    }

    /// Limits the time of each request from now on.
    pub(super) fn limit(&mut self, timeout: Option<Duration>) {
        self.timeout = timeout;
    }

    /// The headers of requests after the program's hooks.
    pub(super) fn take_headers(&mut self) -> Vec<HeaderMap> {
        std::mem::take(&mut self.headers)
    }

    /// The number of the current attempt; the first is 1.
    pub(super) fn attempt(&self) -> u32 {
        self.attempt.max(1)
    }
}

/// Sends one request, in a span of its own (OpenTelemetry's conventions for HTTP clients).
pub(super) fn send_one<'a>(
    settings: &'a Settings,
    request: Request<RequestBody>,
    label: &'a Label,
    sent: &'a mut Sent,
) -> BoxFuture<'a, Result<EngineResponse, SendError>> {
    send_led(settings, None, request, label, sent)
}

/// Sends one request, to another host than `home` if a server led there.
pub(super) fn send_led<'a>(
    settings: &'a Settings,
    home: Option<&'a Url>,
    mut request: Request<RequestBody>,
    label: &'a Label,
    sent: &'a mut Sent,
) -> BoxFuture<'a, Result<EngineResponse, SendError>> {
    Box::pin(async move {
        let span = span(&request, label);
        if sent.requests > 0 {
            span.record("http.request.resend_count", sent.requests);
        }
        if settings.trace_context
            && let Some(own) = trace::of_request(request.headers())
        {
            span.record("trace_id", &own.trace);
            span.record("span_id", &own.span);
        }
        sent.requests = sent.requests.saturating_add(1);
        let outer = span.clone();
        async {
            let permit = match &settings.in_flight {
                Some(semaphore) => semaphore.clone().acquire_owned().await.ok(),
                None => None,
            };
            let (operation, attempt) = (label.operation.as_str(), sent.attempt());
            let sending = settings.hooks.before(operation, attempt, &mut request)?;
            if !settings.hooks.before.is_empty() {
                sent.headers.push(request.headers().clone());
            }
            sent.may_have_begun = true;
            let answer = async {
                match (home, &settings.led) {
                    (Some(home), Some(led)) => led.send(home, request).await,
                    _ => settings.engine.send(request).await,
                }
            };
            let response = match sent.timeout {
                Some(limit) => tokio::time::timeout(limit, answer).await.unwrap_or_else(|_| Err(given_up(limit))),
                None => answer.await,
            };
            settings.hooks.after(operation, attempt, sending, &response);
            match response {
                Ok(response) => {
                    let status = response.status();
                    span.record("http.response.status_code", status.as_u16());
                    if status.is_client_error() || status.is_server_error() {
                        span.record("error.type", status.as_str());
                        span.record("otel.status_code", "ERROR");
                    }
                    debug!(status = status.as_u16(), "response");
                    Ok(response.map(|body| body.holding(permit)))
                }
                Err(failed) => {
                    span.record("error.type", if failed.transient { "connection" } else { "request" });
                    span.record("otel.status_code", "ERROR");
                    Err(failed)
                }
            }
        }
        .instrument(outer)
        .await
    })
}

/// A span with everything that is known before the response. It has no URL, which may hold secrets.
fn span(request: &Request<RequestBody>, label: &Label) -> Span {
    let (method, uri) = (request.method().as_str(), request.uri());
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    debug_span!(
        "http",
        "otel.kind" = "client",
        "otel.name" = %format_args!("{method} {}", label.template),
        "otel.status_code" = field::Empty,
        "http.request.method" = method,
        "url.template" = label.template,
        "url.scheme" = uri.scheme_str(),
        "server.address" = uri.host(),
        "server.port" = port,
        "http.request.resend_count" = field::Empty,
        "http.response.status_code" = field::Empty,
        "error.type" = field::Empty,
        trace_id = field::Empty,
        span_id = field::Empty,
        operation = label.operation,
    )
}

/// Applies the service's timeout.
pub(super) async fn limited<T>(
    timeout: Option<Duration>,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let Some(timeout) = timeout else { return work.await };
    let mut work = pin!(work);
    // A result that is ready at once needs no timer.
    let mut timer = None;
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        timer.as_mut().poll(cx).map(|()| Err(too_slow(timeout)))
    })
    .await
}

/// Ends a call at its own deadline. The registry does so, too, but does not know if the request may be repeated.
pub(super) async fn until<T>(
    deadline: Option<std::time::Instant>,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    let Some(deadline) = deadline.map(Instant::from_std) else { return work.await };
    let mut work = pin!(work);
    let mut timer = None;
    poll_fn(|cx| {
        if let Poll::Ready(done) = work.as_mut().poll(cx) {
            return Poll::Ready(done);
        }
        // Checked before it is polled, as the registry checks its own, so that this error comes first.
        if Instant::now() < deadline {
            let timer = timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
            ready!(timer.as_mut().poll(cx));
        }
        Poll::Ready(Err(timed_out()))
    })
    .await
}

/// The error of an attempt that took too long.
fn given_up(limit: Duration) -> SendError {
    let message = format!("the server did not answer within {limit:?}: raise `Retry::with_attempt_timeout`");
    let error = CallError::new(ErrorCode::Timeout, message).with_details(json!({ "timeout": millis(limit) }));
    SendError { error, transient: true, may_have_arrived: true }
}

fn too_slow(timeout: Duration) -> CallError {
    let message = format!("the server did not answer within {timeout:?}: raise `with_timeout`");
    CallError::new(ErrorCode::Timeout, message).with_details(json!({ "timeout": millis(timeout) }))
}
