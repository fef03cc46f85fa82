//! The configuration of tasks.

use std::time::Duration;

use super::open_count::Open;
use crate::durable::Jobs;
use crate::model::glob::glob;
use crate::{OperationKind, OperationSpec};

/// How the calls of a tool relate to tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskSupport {
    /// A call is never a task.
    Forbidden,
    /// A call may be a task.
    Optional,
    /// A call is always a task.
    Required,
}

impl TaskSupport {
    /// As it is in a list of tools.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Forbidden => "forbidden",
            Self::Optional => "optional",
            Self::Required => "required",
        }
    }
}

/// Which tool calls are tasks, how long these are kept, and how many there may be.
///
/// A task is a tool call whose client polls for the result instead of waiting for the response.
/// [`McpServer::with_tasks`](crate::mcp::McpServer::with_tasks) adds them to a server: a call becomes a job of the
/// tool's operation, which any worker of these [`Jobs`] runs, in this process or in another; the client gets the job's
/// id. As far as the engine stores jobs, tasks survive the server: a client of another server, or of this one after a
/// restart, continues with the id.
///
#[cfg_attr(
    feature = "macros",
    doc = r#"
```
use std::time::Duration;
use ops_runtime::durable::{Jobs, Worker};
use ops_runtime::mcp::{McpServer, McpTasks, TaskSupport};
use ops_runtime::{Registry, operation};

/// Makes a film of a script.
#[operation(namespace = "video", kind = mutation)]
async fn render(script: String) -> String {
    format!("{script}.mp4")
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Render)?;

let jobs = Jobs::in_memory();
let worker = Worker::new(jobs.clone(), registry.clone()).start();
let tasks = McpTasks::new(jobs)
    .with_support("video.*", TaskSupport::Required)
    .with_ttl(Duration::from_secs(3600));
let service = McpServer::new(registry).with_tasks(tasks).into_service();
# drop((service, worker)); Ok(()) }
```
"#
)]
///
/// # Differences between the revisions
///
/// In 2025-11-25 the client decides: it calls a tool with `task` if the list of tools has `execution.taskSupport`.
/// `tasks/get`, `tasks/result`, `tasks/list` and `tasks/cancel` are supported, and `notifications/tasks/status` reports
/// the end of a task to the connection that began it. Progress continues under the token of the call.
///
/// In 2026-07-28 the extension `io.modelcontextprotocol/tasks` leaves it to the server: a call of a client that
/// declares it gets its result if that is ready [in time](McpTasks::with_inline_timeout), and a task otherwise. `tasks/get`,
/// `tasks/update` and `tasks/cancel` are supported. Notifications are not sent, because the SDK lacks them: clients
/// poll.
///
/// In earlier revisions, and for clients that do not declare tasks, tools are called without tasks; those that
/// [require](TaskSupport::Required) a task cannot be called.
///
/// # How tasks end
///
/// A failure is retried by the retry policy of the jobs. The result is the same as that of the call itself: a failure
/// of the operation is a result with `isError`. A task ends with an error of the protocol if it was cancelled, or if
/// its workers died until its attempts were used up.
///
/// A task is kept while it runs, and for its [`ttl`](McpTasks::with_ttl) after its end; while its end is unknown, `ttl`
/// is `null`. Clients do not see jobs that are kept longer, such as dead letters.
///
/// # Owners
///
/// A task belongs to the identity that began it, and runs with it; for other identities there is no such task. Callers
/// of an HTTP server without an identity own tasks by knowing their ids, which have 128 random bits, and cannot list
/// them. A caller that has lost the right to call a tool cannot read its tasks either.
///
/// A caller may have [`max_open`](McpTasks::with_max_open) tasks that have not ended, as counted by this process.
///
/// # Asking the client
///
/// A handler asks by [`McpPeer`](crate::mcp::McpPeer), as in any other call, even in another process. The task is
/// `input_required` until the client has answered; meanwhile the handler waits, and keeps its place in the worker.
/// Questions and answers are stored with the job, so that a repeated attempt does not ask again: it gets the answer to a
/// question with the same key, method and parameters. They are kept as long as the task may be, by its deadline and its `ttl`;
/// 30 days if it has no deadline.
///
/// A step (`Context::once`) is a job of its own, and cannot ask: its question fails with `UNSUPPORTED`. Ask before the
/// step, or call the operation by `Context::env`.
#[derive(Debug)]
pub struct McpTasks {
    pub(super) jobs: Jobs,
    support: Vec<(String, TaskSupport)>,
    ttl: Duration,
    max_ttl: Duration,
    timeout: Option<Duration>,
    pub(super) poll_interval: Duration,
    pub(super) patience: Duration,
    pub(super) max_open: usize,
    pub(super) open: Open,
}

impl McpTasks {
    /// Tasks that are jobs of that engine. A worker for them must run.
    ///
    /// Queries and mutations may be tasks, unless [`with_support`](Self::with_support) sets otherwise.
    pub fn new(jobs: Jobs) -> Self {
        Self {
            jobs,
            support: Vec::new(),
            ttl: Duration::from_secs(60 * 60),
            max_ttl: Duration::from_secs(24 * 60 * 60),
            timeout: None,
            poll_interval: Duration::from_secs(1),
            patience: Duration::from_millis(500),
            max_open: 1_000,
            open: Open::default(),
        }
    }

    /// Sets if calls of the operations that match a pattern may be tasks; the first match counts. `*` is any text, `?`
    /// any character. Subscriptions are never tasks.
    #[must_use]
    pub fn with_support(mut self, pattern: impl Into<String>, support: TaskSupport) -> Self {
        self.support.push((pattern.into(), support));
        self
    }

    /// Sets how long an ended task is kept if the client does not request a time; an hour by default.
    #[must_use]
    pub fn with_ttl(mut self, ttl: Duration) -> Self {
        self.ttl = ttl;
        self
    }

    /// Sets how long an ended task is kept at most, whatever the client requests; a day by default.
    #[must_use]
    pub fn with_max_ttl(mut self, ttl: Duration) -> Self {
        self.max_ttl = ttl;
        self
    }

    /// Sets how long a task may take over all attempts, from its start, with the time that it waits for a worker; by
    /// default as long as a plain call ([`McpServerOptions::timeout`](crate::mcp::McpServerOptions::timeout)). A task
    /// that takes longer fails with `TIMEOUT`. It is kept for its [`ttl`](Self::with_ttl) like any other task, and is no
    /// dead letter; a step of it that is out of time is one. A shorter limit of the operation or of the jobs counts.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how often clients are asked to poll; every second by default.
    #[must_use]
    pub fn with_poll_interval(mut self, interval: Duration) -> Self {
        self.poll_interval = interval;
        self
    }

    /// Sets how long to wait for the result of a call before the response is a task (revision 2026-07-28); half a second
    /// by default. A tool that [requires](TaskSupport::Required) a task always responds with one.
    #[must_use]
    pub fn with_inline_timeout(mut self, timeout: Duration) -> Self {
        self.patience = timeout;
        self
    }

    /// Sets how many tasks that have not ended a caller may have; 1,000 by default. Callers without an identity count
    /// together, and tasks that another process began do not count.
    #[must_use]
    pub fn with_max_open(mut self, tasks: usize) -> Self {
        self.max_open = tasks;
        self
    }

    /// The task support of an operation.
    pub(in crate::mcp::server) fn support(&self, spec: &OperationSpec) -> TaskSupport {
        if spec.kind == OperationKind::Subscription {
            return TaskSupport::Forbidden;
        }
        let own = self.support.iter().find(|(pattern, _)| glob(pattern, &spec.id));
        own.map_or(TaskSupport::Optional, |(_, support)| *support)
    }

    /// How long a task may take, with the timeout of plain calls.
    pub(super) fn timeout(&self, plain: Option<Duration>) -> Option<Duration> {
        self.timeout.or(plain)
    }

    /// How long an ended task is kept, for the time that the client requests.
    pub(super) fn ttl(&self, wanted: Option<Duration>) -> Duration {
        wanted.unwrap_or(self.ttl).min(self.max_ttl)
    }
}

impl From<Jobs> for McpTasks {
    fn from(jobs: Jobs) -> Self {
        Self::new(jobs)
    }
}
