//! Durable calls: jobs that survive their caller and their worker. A key creates one job, and its result is kept.
//!
//! A *job* is a call that is stored by an *engine*: [`Jobs`] submits it, a [`Worker`] runs it with the operations of a
//! registry, and its id is enough to get its result. Any query or mutation can be a job: a function of this program, an
//! endpoint of an HTTP API, a tool of an MCP server.
//!
#![cfg_attr(
    feature = "macros",
    doc = r#"
```
use ops_runtime::durable::{Jobs, SubmitOptions, Worker};
use ops_runtime::{CallError, Context, Registry, operation};

/// Charges a customer.
#[operation(namespace = "shop", kind = mutation)]
async fn charge(customer: String, cents: i64) -> String {
    format!("{customer} paid {cents}")
}

/// Fulfils an order: charges once and prints one label, however often it has to be tried.
#[operation(namespace = "shop", kind = mutation)]
async fn fulfil(context: &Context, order: u64) -> Result<String, CallError> {
    let receipt = context.once::<Charge>("charge", ChargeInput { customer: "ann".into(), cents: 1200 }).await?.data;
    let label = context.step("label", || async { Ok(format!("label {order}")) }).await?;
    Ok(format!("{receipt}, {label}"))
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Charge)?;
registry.register(Fulfil)?;

let jobs = Jobs::in_memory();
let worker = Worker::new(jobs.clone(), registry).start();

// A repeated submit with the same key attaches to this job.
let options = SubmitOptions::new().with_key("order-12");
let id = jobs.submit::<Fulfil>(FulfilInput { order: 12 }, options).await?.id().to_string();

// Later, possibly in another process, the id is enough to get the result.
let job = jobs.job::<Fulfil>(id.parse()?);
assert_eq!(job.result().await?.data, "ann paid 1200, label 12");
worker.stop().await;
# Ok(()) }
```
"#
)]
//!
//! # What is promised
//!
//! - **Once submitted, a job ends**, when a worker with its operation runs: with a result, with an error that is not
//!   retried, cancelled, or as a dead letter. It has one ending, whatever crashes, as long as the engine keeps what it
//!   has acknowledged.
//! - **A key is submitted once.** A repeated submit attaches to the first job, until the retention of its ending has
//!   expired, or the job was discarded; the same key with another input is an error, `KEY_CONFLICT`.
//!   [`Jobs::job_by_key`] finds the job.
//! - **A handler may run more than once**: if its worker dies, another runs the job again. [`Context::once`] and
//!   [`Context::step`] keep parts of it from being repeated. With [`Context::idempotency_key`], servers can recognise a
//!   repetition. If the job, or a step of [`Context::once`], is an operation of an HTTP API with a parameter for such
//!   keys, the client sends the key. Other calls of a handler do not inherit it: pass it by
//!   `CallOptions::with_idempotency_key`. With [`RetryPolicy::once`], a job that fails, or whose worker dies, is not run
//!   again. It becomes a dead letter, unless its error is one that is never retried: then it is a failed job, which is
//!   kept for its retention. But even then a job that was given back is run again, as the same attempt. A job is given
//!   back by a worker that is stopped, or by one that has no room for it to wait for a step.
//! - **Failures are retried** by the [`RetryPolicy`]. A job that has used up its attempts or its time becomes a dead
//!   letter, with its input, its error and its history: [`Jobs::dead_letters`], [`AnyJob::retry`], [`AnyJob::discard`].
//!   A job that fails with another error is kept with its input for its retention, and can be retried by hand as well.
//!   So is an MCP task that has used up its time.
//! - **Access** is checked when a job runs, with the identity of [`Jobs::scoped`]. A job that was submitted without it
//!   runs as the owner of the worker's registry, unchecked.
//!
//! The documentation of each engine says how long it keeps these promises, and against which failures: [`InMemory`]
//! does not survive its process; the module `jetstream` (a feature) stores jobs on NATS servers.
//!
//! # Metrics, logs and traces
//!
//! With the feature `metrics`, by the facade of the crate `metrics`:
//!
//! | metric | labels | what |
//! |---|---|---|
//! | `ops_jobs_submitted_total` | `queue`, `known` | submits; `known` is `true` for those that attached to a job |
//! | `ops_job_attempts_total` | `operation`, `outcome` | attempts: `done`, `failed` and `dead` ended the job, `retry` did not; `passed` gave it back; `closed`: it was cancelled; `lost`, `died`: the worker lost it or was dropped |
//! | `ops_job_attempt_duration_seconds` | `operation` | how long attempts took |
//! | `ops_jobs_running` | | jobs that run in this process |
//! | `ops_jobs_open`, `ops_jobs_dead` | `queue` | open jobs and dead letters of the engine |
//! | `ops_jobs_oldest_age_seconds` | `queue` | how long ago the oldest open job could have started; 0 if none is due |
//!
//! The last three are measured by every worker every 15 seconds (and by `Jobs::record_stats` for processes without
//! one), so take their maximum over processes, not their sum.
//!
//! Workers log each failed attempt as a warning, and each new dead letter as an error: the job, its operation, and the
//! error without its details. A worker also warns, once for each operation, if it has no handler for a job.
//!
//! The trace of a submit continues in the job and in its steps, by `traceparent` in its metadata: spans `submit` and
//! `job`, one for each attempt.
//!
//! [`Context::once`]: crate::Context::once
//! [`Context::step`]: crate::Context::step
//! [`Context::idempotency_key`]: crate::Context::idempotency_key

mod attempt;
mod bounds;
mod digest;
pub mod engine;
mod error;
mod id;
mod in_memory;
#[cfg(feature = "jetstream")]
pub mod jetstream;
mod job;
mod jobs;
mod lease;
mod log;
mod meter;
mod options;
mod parent;
pub mod record;
mod retry;
mod schedule;
mod scope;
mod steps;
#[cfg(test)]
mod tests;
mod worker;

pub use self::error::JobError;
pub use self::id::{InvalidJobId, JobId};
pub use self::in_memory::InMemory;
pub use self::job::{AnyJob, Job, JobStatus};
pub use self::jobs::Jobs;
pub use self::options::{SubmitOptions, When};
pub use self::schedule::Schedule;
pub use self::worker::{Worker, WorkerHandle};
pub use crate::spec::RetryPolicy;

#[cfg(feature = "mcp-server")]
pub(crate) use self::attempt::is_death;
#[cfg(feature = "mcp-server")]
pub(crate) use self::jobs::Origin;
#[cfg(feature = "mcp-server")]
pub(crate) use self::scope::Scope;
