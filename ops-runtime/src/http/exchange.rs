//! One call's requests: with credentials, repeated where that is safe, and seen in traces.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::Request;
use tracing::{Instrument, Span, debug, debug_span, field};

use super::RequestBody;
use super::auth::Plan;
use super::config::Settings;
use super::engine::{EngineResponse, SendError};
use super::redirect;
use super::retry::{Schedule, may_pass, retry_after};
use crate::{CallError, OperationSpec};

/// A request with all that is needed to send it, and to send it again.
pub(super) struct Exchange {
    pub(super) settings: Arc<Settings>,
    pub(super) request: Request<RequestBody>,
    pub(super) plan: Plan,
    pub(super) label: Label,
    /// When an answer is of no use any more.
    pub(super) deadline: Option<Instant>,
}

/// What a trace may know of a request: the path's template, but no value of the input.
#[derive(Debug, Clone, Default)]
pub(super) struct Label {
    operation: String,
    template: String,
}

impl Label {
    pub(super) fn of(spec: &OperationSpec) -> Self {
        let template = spec.http().map_or_else(String::new, |binding| binding.path.clone().into_owned());
        Self { operation: spec.id.clone().into_owned(), template }
    }
}

/// How many requests a call has sent already, repetitions and redirects alike.
#[derive(Debug, Default)]
pub(super) struct Sent(u32);

impl Exchange {
    /// Sends the request and gives the response, whatever its status.
    ///
    /// # Errors
    /// If there are no credentials, if a file of the body is not there, or if the transport fails.
    pub(super) async fn run(&mut self) -> Result<EngineResponse, CallError> {
        self.request.body_mut().measure().await?;
        let settings = &self.settings;
        let mut schedule = Schedule::of(settings.retry.as_ref(), &self.request);
        let mut credentials = self.plan.apply(settings, None).await?;
        let mut may_renew = self.plan.is_renewable() && self.request.body().is_repeatable();
        let mut sent = Sent::default();
        loop {
            let mut request = self.request.clone();
            credentials.put(&mut request)?;
            let result = redirect::send(settings, request, &credentials, &self.label, &mut sent).await;
            let refused = result.as_ref().is_ok_and(|answer| answer.status() == 401);
            if refused && std::mem::take(&mut may_renew) {
                let renewed = self.plan.apply(settings, Some(&credentials)).await?;
                if !renewed.same_tokens(&credentials) {
                    credentials = renewed;
                    continue;
                }
            }
            let asked = match &result {
                Ok(answer) if may_pass(answer.status()) => Some(retry_after(answer.headers(), SystemTime::now())),
                Err(failed) if failed.transient => Some(None),
                _ => None,
            };
            let delay = asked.and_then(|asked| schedule.as_mut()?.next(asked));
            let in_time = |delay| match (self.deadline, Instant::now().checked_add(delay)) {
                (Some(deadline), Some(then)) => then < deadline,
                (None, Some(_)) => true,
                (_, None) => false,
            };
            let Some(delay) = delay.filter(|delay| in_time(*delay)) else {
                return result.map(|answer| answer.response).map_err(|failed| failed.error);
            };
            debug!(operation = self.label.operation, ?delay, "the request is sent again");
            // The response that nobody wants gives its connection back while we wait.
            drop(result);
            tokio::time::sleep(delay).await;
        }
    }
}

/// Sends one request, in a span of its own (OpenTelemetry's conventions for HTTP clients).
pub(super) async fn send_one(
    settings: &Settings,
    request: Request<RequestBody>,
    label: &Label,
    sent: &mut Sent,
) -> Result<EngineResponse, SendError> {
    let span = span(&request, label);
    if sent.0 > 0 {
        span.record("http.request.resend_count", sent.0);
    }
    sent.0 = sent.0.saturating_add(1);
    let outer = span.clone();
    async {
        let permit = match &settings.in_flight {
            Some(semaphore) => semaphore.clone().acquire_owned().await.ok(),
            None => None,
        };
        match settings.engine.send(request).await {
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
}

/// A span with everything that is known before the response; the URL is left out, for it may hold secrets.
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
        operation = label.operation,
    )
}

#[cfg(test)]
mod tests;
