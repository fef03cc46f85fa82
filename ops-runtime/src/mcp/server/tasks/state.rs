//! A task as clients see it: the state of a job, read for a caller.

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat};
use rmcp::model::{CallToolResult, ErrorCode as RpcCode, ErrorData, Task, TaskStatus};
use rmcp::service::{RequestContext, RoleServer};
use serde_core::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ask::{self, Client, Question};
use super::config::McpTasks;
use crate::durable::engine::Engine;
use crate::durable::record::{Ended, Outcome, Stored};
use crate::durable::{JobId, is_death};
use crate::mcp::server::result;
use crate::mcp::server::shared::Shared;
use crate::mcp::server::tool::{Served, StructuredContent};
use crate::model::clock::millis;
use crate::model::request_id::RequestId;
use crate::record::from_str;
use crate::run::principal::Principal;
use crate::run::{pipeline, redact};
use crate::{CallError, ResponseEnvelope};

/// The marks of jobs of known and of unknown callers.
const VIA: [&str; 2] = ["mcp", "mcp-unknown"];

/// The code of the error of a cancelled task.
const CANCELLED: RpcCode = RpcCode(-32000);

/// The caller that asks about tasks, and what it can read.
pub(super) struct Asker<'a> {
    pub(super) server: &'a Shared,
    pub(super) tasks: &'a McpTasks,
    pub(super) caller: Principal,
    pub(super) structure: StructuredContent,
}

/// A task that its caller may see.
pub(super) struct Seen {
    pub(super) id: JobId,
    pub(super) tool: Arc<Served>,
    pub(super) stored: Stored,
    /// The pending questions, with their numbers.
    pub(super) questions: Vec<(usize, Question)>,
    /// When the last question was asked.
    asked: u64,
}

impl<'a> Asker<'a> {
    /// `None` if the server has no tasks.
    pub(super) fn new(server: &'a Shared, context: &RequestContext<RoleServer>) -> Option<Self> {
        let structure = StructuredContent::of(context.protocol_version().as_ref());
        let caller = server.caller(&context.extensions);
        Some(Self { tasks: server.tasks.as_ref()?, server, caller, structure })
    }

    pub(super) fn engine(&self) -> &dyn Engine {
        self.tasks.jobs.engine()
    }

    /// The mark of this caller's jobs.
    pub(super) fn via(&self) -> &'static str {
        let [known, unknown] = VIA;
        if self.caller == Principal::Checked(None) { unknown } else { known }
    }

    /// True if the caller has an identity, and may list tasks.
    pub(super) fn is_somebody(&self) -> bool {
        self.caller != Principal::Checked(None)
    }

    /// Finds a task of the caller, with its questions.
    ///
    /// # Errors
    /// If the caller may see no task with this id, or if the engine cannot be reached.
    pub(super) async fn find(&self, id: &str) -> Result<Seen, ErrorData> {
        // An engine is not asked about queues that it may not have.
        let known = |id: &JobId| self.tasks.jobs.queues().iter().any(|queue| queue == id.queue());
        let Some(id) = id.parse().ok().filter(known) else { return Err(unknown(id)) };
        let stored = self.engine().read(&id).await.map_err(|error| unreachable(&error))?;
        let seen = stored.and_then(|stored| self.seen(id.clone(), stored)).ok_or_else(|| unknown(id.as_str()))?;
        self.with_questions(seen).await.map_err(|error| unreachable(&error))
    }

    /// The task of a job, if the caller may see it. Its questions are not read.
    pub(super) fn seen(&self, id: JobId, stored: Stored) -> Option<Seen> {
        let is_own = stored.via() == Some(self.via()) && stored.owner() == self.caller.id();
        if !is_own || self.is_over(&stored) {
            return None;
        }
        let tool = self.server.served().of_operation(stored.operation()).cloned()?;
        self.caller.sees(tool.spec()).then_some(Seen { id, tool, stored, questions: Vec::new(), asked: 0 })
    }

    /// True if a job was kept longer than its retention, like dead letters.
    fn is_over(&self, stored: &Stored) -> bool {
        match stored {
            Stored::Ended(ended) => ended.at.saturating_add(ended.retention) <= self.engine().now(),
            Stored::Open { .. } => false,
        }
    }

    pub(super) async fn with_questions(&self, mut seen: Seen) -> Result<Seen, CallError> {
        if let (Some(client), Stored::Open { job, .. }) = (seen.client(), &seen.stored) {
            (seen.questions, seen.asked) = ask::pending(self.engine(), job, &client).await?;
        }
        Ok(seen)
    }

    /// The result of the call itself. `None` if the task has not ended.
    pub(super) fn outcome(&self, seen: &Seen) -> Option<Result<CallToolResult, ErrorData>> {
        let Stored::Ended(ended) = &seen.stored else { return None };
        Some(match &ended.outcome {
            Outcome::Done(envelope) => match self.kept(seen, envelope) {
                Some(Ok(envelope)) => Ok(result::success(&seen.tool, self.structure, envelope)),
                Some(Err(error)) => Ok(self.failure(seen, ended, &error)),
                None => Err(ErrorData::internal_error("the result that is kept can't be read", None)),
            },
            Outcome::Cancelled => Err(ErrorData::new(CANCELLED, "the task was cancelled", None)),
            Outcome::Failed(error) => Ok(self.failure(seen, ended, error)),
            // No attempt has completed.
            Outcome::Dead(_) if is_death(ended) => {
                Err(ErrorData::internal_error("the workers of the task died until its attempts were used up", None))
            }
            Outcome::Dead(letter) => Ok(self.failure(seen, ended, &letter.error)),
        })
    }

    /// The stored result of a job that is done, as a call of its tool would give it: an error if it is not what the
    /// tool's schema promises. `None` if it can't be read.
    fn kept(&self, seen: &Seen, envelope: &RawValue) -> Option<Result<ResponseEnvelope<Value>, CallError>> {
        let envelope = read(seen, envelope)?;
        Some(pipeline::stored(&seen.tool.entry, self.server.registry.policy(), envelope))
    }

    /// True if [`kept`](Self::kept) is an error or says `isError`. `None` if it can't be read.
    ///
    /// Clients ask for the status often, and for many tasks at once: the data are read only if they decide it.
    fn is_failure(&self, seen: &Seen, envelope: &RawValue, structure: StructuredContent) -> Option<bool> {
        let is_checked = !pipeline::is_as_stored(&seen.tool.entry, self.server.registry.policy());
        // In 2026-07-28, the status of a result that is an error is the same.
        if structure == StructuredContent::Any || !is_checked {
            return read::<IgnoredAny>(seen, envelope).map(|envelope| envelope.meta.is_error());
        }
        Some(self.kept(seen, envelope)?.map_or(true, |envelope| envelope.meta.is_error()))
    }

    fn failure(&self, seen: &Seen, ended: &Ended, error: &CallError) -> CallToolResult {
        let failed = ended.failed.clone().unwrap_or_else(|| ended.operation.clone());
        let error = ended.marks.put_on(error.clone()).with_operation(failed);
        let request = RequestId::from(Arc::<str>::from(seen.id.as_str()));
        let entry = &seen.tool.entry;
        let expose = self.server.options.expose_errors;
        result::failure(&redact::public(error, &entry.spec, &request, entry.is_foreign(), expose))
    }

    /// The task of 2025-11-25.
    pub(super) fn told(&self, seen: &Seen) -> Map<String, Value> {
        let status = self.status(seen, StructuredContent::Object);
        let mut task = Map::new();
        let mut put = |name: &str, value: Value| drop(task.insert(name.to_owned(), value));
        put("taskId", json!(seen.id.as_str()));
        put("status", json!(status));
        put("statusMessage", json!(seen.message(status)));
        put("createdAt", json!(time(seen.stored.submitted())));
        put("lastUpdatedAt", json!(time(seen.updated())));
        put("ttl", json!(seen.ttl()));
        put("pollInterval", json!(millis(self.tasks.poll_interval)));
        task
    }

    /// The task of 2026-07-28.
    pub(super) fn told_as_extension(&self, seen: &Seen) -> Task {
        let status = self.status(seen, StructuredContent::Any);
        let (created, updated) = (time(seen.stored.submitted()), time(seen.updated()));
        let mut task = Task::new(seen.id.as_str(), status, created, updated).with_status_message(seen.message(status));
        task.ttl_ms = seen.ttl();
        task.poll_interval_ms = Some(millis(self.tasks.poll_interval).max(1));
        task
    }

    /// The status. A result with `isError` is a failure in 2025-11-25; in 2026-07-28 it is a result.
    fn status(&self, seen: &Seen, structure: StructuredContent) -> TaskStatus {
        let Stored::Ended(ended) = &seen.stored else {
            return if seen.questions.is_empty() { TaskStatus::Working } else { TaskStatus::InputRequired };
        };
        let failed = |is_result: bool| match structure {
            StructuredContent::Any if is_result => TaskStatus::Completed,
            _ => TaskStatus::Failed,
        };
        match &ended.outcome {
            Outcome::Done(envelope) => match self.is_failure(seen, envelope, structure) {
                Some(false) => TaskStatus::Completed,
                Some(true) => failed(true),
                None => failed(false),
            },
            Outcome::Cancelled => TaskStatus::Cancelled,
            Outcome::Failed(_) => failed(true),
            Outcome::Dead(_) => failed(!is_death(ended)),
        }
    }
}

impl Seen {
    /// A task that was begun just now.
    pub(super) fn begun(id: JobId, tool: Arc<Served>, stored: Stored) -> Self {
        Self { id, tool, stored, questions: Vec::new(), asked: 0 }
    }

    /// True if there may be questions.
    pub(super) fn can_ask(&self) -> bool {
        self.client().is_some()
    }

    /// The capabilities of the client. `None` if there are no questions.
    fn client(&self) -> Option<Client> {
        match &self.stored {
            Stored::Open { job, .. } => Client::of(&job.metadata).filter(Client::can_be_asked),
            Stored::Ended(_) => None,
        }
    }

    /// Until when answers are kept.
    pub(super) fn answers_until(&self, now: u64) -> u64 {
        match &self.stored {
            Stored::Open { job, .. } => ask::kept_until(job, now),
            Stored::Ended(_) => now,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        matches!(&self.stored, Stored::Ended(ended) if matches!(ended.outcome, Outcome::Cancelled))
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self.stored, Stored::Ended(_))
    }

    /// The status in words. The error is in the result.
    fn message(&self, status: TaskStatus) -> String {
        let text = match (&self.stored, status) {
            (_, TaskStatus::InputRequired) => "It waits for an answer of the client.",
            (Stored::Open { tries, .. }, _) if tries.attempts > 0 => {
                return format!("It is tried again; failed so far: {}.", tries.attempts);
            }
            (Stored::Open { .. }, _) => "It waits for a worker, or runs.",
            (_, TaskStatus::Cancelled) => "It was cancelled.",
            (Stored::Ended(ended), _) => match ended.outcome.error() {
                Some(error) => return format!("It failed: {}. The result says more.", error.code().as_str()),
                None if status == TaskStatus::Failed => "It failed. The result says more.",
                None => "It is done.",
            },
        };
        text.to_owned()
    }

    fn updated(&self) -> u64 {
        match &self.stored {
            Stored::Open { job, tries } => {
                let failed = tries.history.last().map_or(0, |failed| failed.at);
                job.submitted.max(failed).max(self.asked)
            }
            Stored::Ended(ended) => ended.at,
        }
    }

    /// How long the task is kept after it was begun, in milliseconds. `None` while its end is unknown.
    fn ttl(&self) -> Option<u64> {
        match &self.stored {
            Stored::Open { .. } => None,
            Stored::Ended(ended) => Some(ended.at.saturating_sub(ended.submitted).saturating_add(ended.retention)),
        }
    }
}

/// The stored result of a job that is done. `None` if it can't be read.
fn read<T: DeserializeOwned>(seen: &Seen, envelope: &RawValue) -> Option<ResponseEnvelope<T>> {
    let read = from_str(envelope.get());
    read.inspect_err(|error| tracing::error!(%error, task = seen.id.as_str(), "the result of a task can't be read"))
        .ok()
}

/// A time in the form of the protocol.
fn time(at: u64) -> String {
    let time = i64::try_from(at).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// The error of an id of no task that the caller may see.
fn unknown(id: &str) -> ErrorData {
    let id: String = id.chars().take(120).collect();
    ErrorData::invalid_params(format!("there is no task `{id}`: it may have expired, or be another caller's"), None)
}

/// The error of an engine that cannot be reached.
pub(super) fn unreachable(error: &CallError) -> ErrorData {
    tracing::warn!(%error, "tasks can't be read or written");
    ErrorData::internal_error("tasks can't be read or written now; try again", None)
}
