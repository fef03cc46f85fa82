//! The requests of one call, with credentials, retries and traces.

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use http::Request;
use tracing::debug;

use super::RequestBody;
use super::auth::Plan;
use super::engine::EngineResponse;
use super::redirect;
use super::retry::{Schedule, may_pass, retry_after};
use super::send::{Label, Sent};
use super::settings::Settings;
use crate::CallError;

/// A request with all that is needed to send it, and to send it again.
pub(super) struct Exchange {
    pub(super) settings: Arc<Settings>,
    pub(super) request: Request<RequestBody>,
    pub(super) plan: Plan,
    pub(super) label: Label,
    /// After this time no response is of use.
    pub(super) deadline: Option<Instant>,
}

impl Exchange {
    /// Sends the request and returns the response, of any status.
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
            // Dropping the unused response frees its connection during the wait.
            drop(result);
            tokio::time::sleep(delay).await;
        }
    }
}

#[cfg(test)]
mod tests;
