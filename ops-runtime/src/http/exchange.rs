//! The requests of one call, with credentials, retries and traces.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use http::header::{AUTHORIZATION, COOKIE, DATE, RETRY_AFTER, USER_AGENT};
use http::{HeaderMap, HeaderName, Request};
use serde_json::{Map, Value};
use tracing::warn;

use super::RequestBody;
use super::auth::Applied;
use super::engine::EngineResponse;
use super::per_call::replace;
use super::redirect::{self, Answer, LAST_EVENT_ID};
use super::response::{Deadline, Remark, Retries};
use super::retry::{Retry, Schedule, retry_after, wait_of};
use super::secrets::Carried;
use super::send::{Label, Sent};
use super::settings::Settings;
use super::trace::Trace;
use crate::run::context::{Until, deadline_after, earlier, now};
use crate::{BoxFuture, CallError};

/// A request with everything that is needed to send it, and to repeat it.
pub(super) struct Exchange {
    pub(super) settings: Arc<Settings>,
    pub(super) request: Request<RequestBody>,
    /// The credentials, and the headers that the call itself set.
    pub(super) carried: Arc<Carried>,
    pub(super) label: Label,
    pub(super) trace: Option<Trace>,
    /// How the request is retried; `None` if it is not.
    pub(super) retry: Option<Arc<Retry>>,
    /// True if it does no harm to repeat the request, even if it may have been carried out.
    pub(super) is_safe_to_repeat: bool,
    /// True if it is safe to make the call again. False for a request that is safe to repeat only because of a key that the
    /// client made, since the next call has another key.
    pub(super) caller_may_repeat: bool,
    /// The client's timeout, unless the call has its own deadline.
    pub(super) timeout: Option<Duration>,
    /// When the call ends.
    pub(super) until: Until,
    /// The deadline of the response. `None` before the call begins.
    pub(super) deadline: Option<Instant>,
    /// True if the request continues after an event, with the event's id.
    pub(super) goes_on: bool,
    /// What was sent, which is known here even if the call ends before there is a response.
    pub(super) sent: Sent,
}

impl Exchange {
    /// Begins to count the timeouts, and returns the deadline of the call itself.
    ///
    /// A call begins when its future is polled first, which may be long after it was made.
    pub(super) fn start(&mut self) -> Option<Instant> {
        let deadline = self.until.start();
        self.deadline = earlier(deadline, self.timeout.and_then(deadline_after));
        deadline
    }

    /// Sends the request and returns the response, of any status.
    ///
    /// # Errors
    /// If there are no credentials, if a file of the body is not there, or if the transport fails.
    pub(super) fn run(&mut self) -> BoxFuture<'_, Result<EngineResponse, CallError>> {
        Box::pin(self.try_all())
    }

    async fn try_all(&mut self) -> Result<EngineResponse, CallError> {
        let settings = &self.settings;
        let retry = self.retry.as_deref();
        let mut schedule = retry.map(Schedule::of);
        self.sent = Sent::default();
        self.sent.try_again();
        let mut credentials = self.credentials(None, &mut schedule).await?;
        let mut may_renew = self.carried.plan.is_renewable();
        let mut are_new = false;
        loop {
            // A file may have changed since the last try.
            self.request.body_mut().measure().await?;
            // Only now is it known that a file is a pipe, whose bytes come once.
            may_renew &= self.request.body().is_repeatable();
            let mut request = self.request.clone();
            credentials.put(&mut request, &self.carried.own)?;
            self.put_own(request.headers_mut());
            let is_repeatable = self.is_safe_to_repeat && self.request.body().is_repeatable();
            self.sent.limit(retry.and_then(Retry::attempt_timeout).filter(|_| is_repeatable));
            let had_begun = self.sent.may_have_begun;
            let mut result = redirect::send(settings, request, &credentials, &self.label, &mut self.sent).await;
            self.sent.may_have_begun = had_begun
                || match &result {
                    Ok(answer) => !was_refused(answer),
                    Err(failed) => self.sent.may_have_begun && failed.may_have_arrived,
                };
            self.carried.sent(self.sent.take_headers());
            // Another origin got no credentials, so it cannot reject them.
            if let Ok(answer) = &mut result
                && answer.status() == 401
                && answer.at_home
            {
                // After a redirect, the request itself was not refused: it may have been carried out.
                let repeats = answer.url.is_none() || is_repeatable;
                if repeats && std::mem::take(&mut may_renew) {
                    // Calls with other tokens must not wait for this one, which may take minutes.
                    answer.response.body_mut().release();
                    let renewed = self.credentials(Some(&credentials), &mut schedule).await?;
                    if !renewed.same_tokens(&credentials) {
                        credentials = renewed;
                        are_new = true;
                        self.sent.try_again();
                        continue;
                    }
                }
                // The next call must not send them again, even if this one cannot be repeated. If new ones are
                // rejected, the reason is another, and other calls may still use them.
                if !are_new {
                    self.carried.forget(&credentials);
                }
            }
            let asked = match &result {
                _ if !is_repeatable => None,
                Ok(answer) if retry.is_some_and(|retry| retry.may_pass(answer.status())) => {
                    Some(retry_after(answer.headers(), SystemTime::now()))
                }
                Err(failed) if failed.transient => Some(None),
                _ => None,
            };
            let Some(delay) = asked.and_then(|asked| self.delay(&mut schedule, asked)) else {
                let retries = self.sent.attempt().saturating_sub(1);
                return match result {
                    Ok(mut answer) => {
                        let remark = self.remark(&answer);
                        let extensions = answer.response.extensions_mut();
                        extensions.insert(Retries(retries));
                        if let Some(deadline) = self.deadline {
                            extensions.insert(Deadline(deadline));
                        }
                        extensions.insert(self.carried.kept());
                        if let Some(remark) = remark {
                            extensions.insert(remark);
                        }
                        Ok(answer.response)
                    }
                    Err(failed) => Err(with_retries(failed.error, retries)),
                };
            };
            let status = result.as_ref().ok().map(|answer| answer.status().as_u16());
            let error = result.as_ref().err().map(|failed| self.told(&failed.error));
            let (operation, attempt) = (&self.label.operation, self.sent.attempt());
            warn!(operation, attempt, status, error, ?delay, "the request is sent again");
            // Dropping the unused response frees its connection during the wait.
            drop(result);
            tokio::time::sleep(delay).await;
            self.sent.try_again();
        }
    }

    /// Fetches the tokens that are needed. To ask for them again does no harm, whatever the request.
    ///
    /// # Errors
    /// The last of the token endpoint, or of the function that gives tokens.
    async fn credentials(
        &self,
        rejected: Option<&Applied>,
        schedule: &mut Option<Schedule>,
    ) -> Result<Arc<Applied>, CallError> {
        let mut attempt = 1_u32;
        loop {
            let failed = match self.carried.apply(rejected).await {
                Ok(applied) => return Ok(applied),
                Err(failed) => failed,
            };
            let date = failed.header(DATE.as_str());
            let asked = failed.header(RETRY_AFTER.as_str()).and_then(|value| wait_of(value, date, SystemTime::now()));
            let delay = if failed.is_retryable() { self.delay(schedule, asked) } else { None };
            let Some(delay) = delay else { return Err(with_retries(failed, attempt.saturating_sub(1))) };
            warn!(
                operation = self.label.operation,
                attempt,
                error = self.told(&failed),
                ?delay,
                "a token is asked for again"
            );
            tokio::time::sleep(delay).await;
            attempt = attempt.saturating_add(1);
        }
    }

    /// What the error of a response says beside its status: that another server sent it, or that credentials are missing.
    fn remark(&self, answer: &Answer) -> Option<Remark> {
        if let Some(url) = answer.url.as_ref().filter(|_| !answer.at_home) {
            let server = url.origin().ascii_serialization();
            return Some(Remark(format!("from `{server}`, to which the server redirected")));
        }
        let lacks = self.carried.plan.lacks().filter(|_| answer.status() == 401)?;
        // Headers of the program's own may be credentials that the document does not describe.
        let may_have_own = self.request.headers().contains_key(AUTHORIZATION)
            || self.settings.headers.keys().any(|name| name != USER_AGENT)
            || !self.carried.own.is_empty()
            || !self.settings.hooks.before.is_empty();
        (!may_have_own).then(|| Remark(format!("no credentials are set for {lacks}, which the operation asks for")))
    }

    /// What is known of the request by now.
    pub(super) fn outcome(&self) -> Outcome {
        Outcome { caller_may_repeat: self.caller_may_repeat, may_have_begun: self.sent.may_have_begun }
    }

    /// How long to wait before the next try; `None` if there is none, or if it would come too late.
    fn delay(&self, schedule: &mut Option<Schedule>, asked: Option<Duration>) -> Option<Duration> {
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now()));
        schedule.as_mut()?.next(asked, left)
    }

    /// The message of an error, without the secrets of the call.
    fn told(&self, error: &CallError) -> String {
        self.carried.secrets().text(error.message()).into_owned()
    }

    /// Puts the call's own headers in the place of others, and its trace.
    fn put_own(&self, headers: &mut HeaderMap) {
        // Cookies were already joined with those of parameters and of the credentials. A reopened stream continues
        // after its last event, and not where the call began.
        let stays = |name: &HeaderName| name == COOKIE || (self.goes_on && name == LAST_EVENT_ID);
        replace(headers, &self.carried.own, stays);
        if let Some(trace) = &self.trace {
            trace.put(headers);
        }
    }
}

/// What is known of a request that failed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Outcome {
    caller_may_repeat: bool,
    may_have_begun: bool,
}

impl Outcome {
    /// The error of the call, which is not retryable if the call must not be repeated and may have been carried out.
    pub(super) fn judged(self, error: CallError) -> CallError {
        if self.caller_may_repeat || !self.may_have_begun { error } else { error.uncertain() }
    }
}

/// True if the server rejects the token, or wants to be asked later: it has not begun with the request. A server that
/// redirected the request may have carried it out before.
fn was_refused(answer: &Answer) -> bool {
    let by_status = match answer.status().as_u16() {
        401 | 408 | 425 | 429 => true,
        503 => answer.headers().contains_key(RETRY_AFTER),
        _ => false,
    };
    by_status && answer.url.is_none()
}

/// The error of a request, or of one for a token, that was sent more than once.
fn with_retries(error: CallError, retries: u32) -> CallError {
    if retries == 0 {
        return error;
    }
    let mut details = match error.details() {
        Value::Object(details) => details.clone(),
        Value::Null => Map::new(),
        _ => return error,
    };
    details.insert("retries".to_owned(), retries.into());
    error.with_details(details)
}

#[cfg(test)]
mod tests;
