//! Calls that a server turns into a task: the task is polled until its result is available.
//!
//! A tool of 2025-11-25 that requires a task is called as one. Since 2026-07-28 the response to any call may be a task,
//! if the client declares the extension, as this one does.

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{Either, select};
use rmcp::RoleClient;
use rmcp::model::{
    CancelTaskParams, CancelTaskRequest, ClientRequest, CustomRequest, GetTaskParams, GetTaskRequest, UpdateTaskParams,
    UpdateTaskRequest,
};
use rmcp::service::{Peer, PeerRequestOptions};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use super::interceptor::{RpcError, Slot};
use super::session::{Session, rpc_failure};
use crate::{CallError, ErrorCode, ProgressSink};

/// The revision in which clients request that a call is a task.
const EARLIER: &str = "2025-11-25";

/// The default poll interval.
const POLL: Duration = Duration::from_secs(1);
/// Limits of the poll interval that a server sets.
const POLLS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(60));

/// How long requests about a task are repeated if the server may be silent for any time.
const PATIENCE: Duration = Duration::from_secs(300);

/// How often such a request is repeated at least, however long that takes.
const TRIES: u32 = 3;

/// How long the server may take to accept that a task is cancelled.
const END_TIME: Duration = Duration::from_secs(5);

/// The call of a tool that is to be a task.
fn request(tool: &str, arguments: &Map<String, Value>) -> ClientRequest {
    let params = json!({ "name": tool, "arguments": arguments, "task": {} });
    ClientRequest::CustomRequest(CustomRequest::new("tools/call", Some(params)))
}

/// The task in a result. `None` if it is the result of the tool.
fn task_of(result: &Value, is_earlier: bool) -> Option<Value> {
    let task = match is_earlier {
        true => result.get("task").filter(|_| result.get("content").is_none())?,
        false => Some(result).filter(|result| result.get("resultType").and_then(Value::as_str) == Some("task"))?,
    };
    task.get("taskId").and_then(Value::as_str).map(|_| task.clone())
}

/// The status of a task.
fn status(task: &Value) -> &str {
    task.get("status").and_then(Value::as_str).unwrap_or_default()
}

/// The poll interval that a server sets.
fn interval(task: &Value) -> Duration {
    let told = ["pollIntervalMs", "pollInterval"].iter().find_map(|name| task.get(*name)?.as_u64());
    told.map_or(POLL, Duration::from_millis).clamp(POLLS.0, POLLS.1)
}

/// True if the server has not answered a request, or refuses it only for now.
fn may_pass(error: &CallError) -> bool {
    let details = error.details();
    match (details.get("statusCode").and_then(Value::as_u64), details.get("code")) {
        (Some(status), _) => matches!(status, 408 | 425 | 429 | 500..600),
        // An internal error of the server: other codes are about the request.
        (None, Some(code)) => code.as_i64() == Some(-32603),
        (None, None) => *error.code() == ErrorCode::ExecutionError,
    }
}

/// The failures of a request that changes nothing, and may be repeated.
struct Failures {
    count: u32,
    first: Option<Instant>,
    /// How long the server may fail.
    patience: Duration,
}

impl Failures {
    /// No failures yet, of a server that may fail as long as it may be silent.
    fn of(session: &Session) -> Self {
        Self::within(session.idle().unwrap_or(PATIENCE))
    }

    fn within(patience: Duration) -> Self {
        Self { count: 0, first: None, patience }
    }

    /// Counts a failure. False if the request is not to be repeated: the error is final, or the server has failed for too
    /// long. A few failures are always allowed, since the pauses between them may be long.
    fn allow(&mut self, error: &CallError) -> bool {
        let first = *self.first.get_or_insert_with(Instant::now);
        self.count = self.count.saturating_add(1);
        may_pass(error) && (self.count <= TRIES || first.elapsed() < self.patience)
    }

    /// Forgets earlier failures if the request that began then has waited longer than the server may fail: the server
    /// worked in the meantime, and its next failure is a new one.
    fn forget_before(&mut self, begun: Instant) {
        if begun.elapsed() >= self.patience {
            *self = Self::within(self.patience);
        }
    }
}

impl Session {
    /// Calls a tool, and returns its raw result, if need be that of a task. `needs_task` if the server runs the tool as a
    /// task only. The call has used up its time at `until`.
    pub(super) async fn call(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        progress: Option<ProgressSink>,
        needs_task: bool,
        until: Option<Instant>,
    ) -> Result<Value, CallError> {
        let is_earlier = self.info.protocol_version == EARLIER;
        let (result, slot) = match needs_task && is_earlier {
            true => {
                let mut has_visited = false;
                loop {
                    let request = request(&tool, &arguments);
                    if let Some(called) = self.try_call(request, progress.clone(), &mut has_visited, until).await? {
                        break called;
                    }
                }
            }
            false => self.call_tool(tool, arguments, progress, until).await?,
        };
        match task_of(&result, is_earlier) {
            // Boxed, so that other calls are not as large.
            Some(task) => Box::pin(self.ended(task, &slot, is_earlier, until)).await,
            None => Ok(result),
        }
    }

    /// Waits until a task has ended, and returns the result of its call. If the caller stops waiting, the task is
    /// cancelled; a request about it that fails is not its end. Its progress arrives under the number of the call, in the
    /// slot of the call.
    async fn ended(
        &self,
        mut task: Value,
        call: &Arc<Slot>,
        is_earlier: bool,
        until: Option<Instant>,
    ) -> Result<Value, CallError> {
        let id = task.get("taskId").and_then(Value::as_str).unwrap_or_default().to_owned();
        let mut open = OpenTask { peer: self.peer().clone(), runtime: self.runtime().clone(), id: Some(id.clone()) };
        let (mut answered, mut failures) = (HashSet::new(), Failures::of(self));
        loop {
            match status(&task) {
                "working" => {}
                // The server asks, and then responds, while its result is awaited.
                "input_required" | "completed" | "failed" | "cancelled" if is_earlier => {
                    let begun = Instant::now();
                    let result = self.result_of(&task, &id, call, until).await;
                    // The result of a task that has ended needs no long request.
                    if status(&task) == "input_required" {
                        failures.forget_before(begun);
                    }
                    // The error of a task that has failed is its result.
                    let has_failed = matches!(status(&task), "failed" | "cancelled");
                    let is_end = |error: &CallError| has_failed && error.details().get("code").is_some();
                    match &result {
                        Err(error) if !is_end(error) && self.is_open() && failures.allow(error) => {}
                        // A caller who waits no longer has the task cancelled. An error that the server answers with is
                        // its end.
                        Err(error) if *error.code() == ErrorCode::Timeout => return result,
                        _ => {
                            open.id = None;
                            return result;
                        }
                    }
                }
                "input_required" => self.answer(&task, &id, &mut answered, until).await?,
                "completed" => {
                    open.id = None;
                    return Ok(task.get_mut("result").map(Value::take).unwrap_or_default());
                }
                "failed" => {
                    open.id = None;
                    let error = task.get_mut("error").map(Value::take).unwrap_or_default();
                    let error: RpcError = serde_json::from_value(error).unwrap_or_else(|_| RpcError::unknown());
                    return Err(self.given.error(rpc_failure(&self.interceptor.server, &error)));
                }
                "cancelled" => {
                    open.id = None;
                    let message =
                        format!("the MCP server `{}` has cancelled the task of the call", self.interceptor.server);
                    return Err(CallError::new(ErrorCode::Aborted, message));
                }
                other => {
                    let other: String = self.given.text(other).chars().take(100).collect();
                    let server = &self.interceptor.server;
                    let message =
                        format!("the MCP server `{server}` says of a task that it is `{other}`, which is no status");
                    return Err(CallError::execution(message));
                }
            }
            task = self.later(&task, &id, until, failures.count).await?;
        }
    }

    /// Waits for the result of a task of 2025-11-25. As long as the server says that the task is open, it may be silent: the work
    /// may take long after a question. After that, it has as long as for any response.
    async fn result_of(
        &self,
        task: &Value,
        id: &str,
        call: &Arc<Slot>,
        until: Option<Instant>,
    ) -> Result<Value, CallError> {
        let params = json!({ "taskId": id });
        let request = ClientRequest::CustomRequest(CustomRequest::new("tasks/result", Some(params)));
        let slot = Slot::of_task(call.clone());
        let result = pin!(self.request(request, slot.clone(), until));
        let watched = pin!(async {
            slot.set_open(true);
            let watched = self.watch(task.clone(), id, until).await;
            slot.set_open(false);
            watched
        });
        match select(result, watched).await {
            Either::Left((result, _)) => result,
            Either::Right((watched, result)) => {
                if let Err(error) = watched {
                    tracing::debug!(server = %self.interceptor.server, %error, "a task can't be asked about");
                }
                result.await
            }
        }
    }

    /// Asks about a task again and again, until it has ended.
    async fn watch(&self, mut task: Value, id: &str, until: Option<Instant>) -> Result<(), CallError> {
        while matches!(status(&task), "working" | "input_required") {
            task = self.later(&task, id, until, 0).await?;
        }
        Ok(())
    }

    /// Asks how a task is, after as long as the server asks for. A request that fails for now is repeated: the task may
    /// go on all the same. Each failure doubles the pause, as do earlier ones.
    async fn later(&self, task: &Value, id: &str, until: Option<Instant>, earlier: u32) -> Result<Value, CallError> {
        let mut failures = Failures::of(self);
        loop {
            let doubled = 2_u32.saturating_pow(failures.count.saturating_add(earlier));
            self.pause(interval(task).saturating_mul(doubled).min(POLLS.1), until).await?;
            let request = ClientRequest::GetTaskRequest(GetTaskRequest::new(GetTaskParams::new(id)));
            match self.request(request, Slot::new(None), until).await {
                Err(error) if self.is_open() && failures.allow(&error) => {
                    tracing::debug!(server = %self.interceptor.server, %error, "a task is asked about again");
                }
                result => return result,
            }
        }
    }

    /// Answers what a task asks, each question once.
    async fn answer(
        &self,
        task: &Value,
        id: &str,
        answered: &mut HashSet<String>,
        until: Option<Instant>,
    ) -> Result<(), CallError> {
        let asked = task.get("inputRequests").and_then(Value::as_object);
        let new = asked.into_iter().flatten().filter(|(key, _)| !answered.contains(*key));
        let new: Map<String, Value> = new.map(|(key, request)| (key.clone(), request.clone())).collect();
        if new.is_empty() {
            return Ok(());
        }
        let answers = self.answers(&new, until).await?;
        answered.extend(new.into_iter().map(|(key, _)| key));
        let params = UpdateTaskParams::new(id, answers.into_iter().collect());
        let request = ClientRequest::UpdateTaskRequest(UpdateTaskRequest::new(params));
        self.request(request, Slot::new(None), until).await.map(drop)
    }

    /// Waits for that time, or until the call has used up its own.
    async fn pause(&self, time: Duration, until: Option<Instant>) -> Result<(), CallError> {
        let next = Instant::now() + time;
        match until.filter(|until| *until < next) {
            None => sleep_until(next).await,
            Some(until) => {
                sleep_until(until).await;
                return Err(self.too_late());
            }
        }
        Ok(())
    }
}

/// A task whose result was not read yet. Dropping it cancels the task.
struct OpenTask {
    peer: Peer<RoleClient>,
    runtime: Handle,
    id: Option<String>,
}

impl Drop for OpenTask {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let peer = self.peer.clone();
        self.runtime.spawn(async move {
            let request = ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id)));
            // If the server takes longer, rmcp cancels the request, and keeps nothing of it.
            let options = PeerRequestOptions::with_timeout(END_TIME);
            if let Ok(handle) = peer.send_request_with_option(request, options).await {
                let _ = handle.await_response().await;
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_that_may_pass() {
        let http = |status: u16| json!({ "statusCode": status, "headers": {}, "body": "" });
        for (details, expected) in [
            (http(408), true),
            (http(429), true),
            (http(503), true),
            (http(401), false),
            (http(404), false),
            (json!({ "code": -32603, "message": "not now" }), true),
            (json!({ "code": -32602, "message": "no such task" }), false),
            (json!({ "code": null, "message": null }), false),
            (json!({ "interrupted": true }), true),
            (Value::Null, true),
        ] {
            assert_eq!(may_pass(&CallError::execution("no").with_details(details.clone())), expected, "{details}");
        }
        assert!(!may_pass(&CallError::new(ErrorCode::Timeout, "too late")));
    }

    #[test]
    fn failures_that_are_allowed() {
        let error = CallError::execution("no");
        // However short the time is, a few are.
        let mut short = Failures::within(Duration::ZERO);
        assert_eq!([(); 5].map(|()| short.allow(&error)), [true, true, true, false, false]);
        // After a request that took longer, they are counted anew.
        short.forget_before(Instant::now());
        assert!(short.allow(&error) && short.count == 1);
        let mut long = Failures::within(PATIENCE);
        assert!([(); 5].map(|()| long.allow(&error)).iter().all(|allowed| *allowed));
        long.forget_before(Instant::now());
        assert_eq!(long.count, 5);
        assert!(!long.allow(&CallError::new(ErrorCode::Timeout, "too late")));
    }
}
