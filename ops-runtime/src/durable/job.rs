//! Handles of submitted jobs: their results, status and progress.

mod again;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt, stream};
use serde_core::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::durable::bounds::{Bounds, bounded};
use crate::durable::error::JobError;
use crate::durable::id::JobId;
use crate::durable::jobs::Jobs;
use crate::durable::log;
use crate::durable::record::{DeadLetter, Ended, FORMAT, JobRecord, Marks, Outcome, Stored, Tries};
use crate::registry::Progress;
use crate::{BoxStream, Call, CallError, ErrorCode, ResponseEnvelope};

/// How long an engine is asked to wait at a time.
const WAIT: Duration = Duration::from_secs(30);
/// The shortest and the longest delay after an error of the engine, while the end of a job is awaited.
const BACK_OFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));
/// How long after its deadline, in milliseconds, waiters end a job that no worker has.
const GRACE: u64 = 1_000;
/// How long after its deadline, in milliseconds, waiters end a job that a worker has, since its outcome was not
/// written.
const PATIENCE: u64 = 5_000;

/// A job of an operation.
///
/// Its id is text. [`Jobs::job`] makes a handle from the id in any process.
pub struct Job<Op: Call> {
    any: AnyJob,
    operation: PhantomData<fn() -> Op>,
}

/// A job of any operation.
#[derive(Clone)]
pub struct AnyJob {
    jobs: Jobs,
    id: JobId,
    is_new: bool,
    /// True if it was submitted by this handle, so it exists.
    is_known: bool,
}

/// The status of a job.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum JobStatus {
    /// It starts later.
    Delayed {
        /// When.
        until: SystemTime,
    },
    /// It waits for a worker.
    Queued,
    /// A worker runs it.
    Running {
        /// The number of the attempt; the first is 1. Attempts whose worker died are not counted here until the job
        /// has been given back or a later attempt has failed, so the handler may know a higher number.
        attempt: u32,
    },
    /// An attempt failed, and another follows.
    Retrying {
        /// How many attempts have failed.
        attempts: u32,
        /// When the next one may start.
        next: SystemTime,
        /// Why the last one failed.
        error: CallError,
    },
    /// It has a result.
    Done,
    /// It has failed with an error that is not retried, or has used up its time and is the job of a server's caller,
    /// such as an MCP task. While it is kept, it can be [retried](AnyJob::retry) by hand.
    Failed(CallError),
    /// It was cancelled.
    Cancelled,
    /// It has used up its attempts or its time, and is kept as a dead letter.
    Dead(CallError),
}

impl<Op: Call> Job<Op> {
    pub(super) fn of(any: AnyJob) -> Self {
        Self { any, operation: PhantomData }
    }

    /// Waits until the job has ended, and returns its result. As long as it is kept, it can be read again.
    ///
    /// Dropping the future changes nothing about the job.
    ///
    /// # Errors
    /// The error of the operation; for a dead letter the last one. `JOB_CANCELLED` and `JOB_NOT_FOUND` ([`JobError`]).
    /// `VALIDATION_ERROR` if the job is of another operation. The error of the engine, after which this may be called
    /// again.
    pub async fn result(&self) -> Result<ResponseEnvelope<Op::Output>, CallError> {
        let ended = self.any.ended().await.map_err(|error| error.with_operation(Op::SPEC.id.clone()))?;
        if ended.operation != Op::SPEC.id {
            let message = format!("the job `{}` is of `{}`, not of `{}`", self.id(), ended.operation, Op::SPEC.id);
            return Err(CallError::new(ErrorCode::ValidationError, message));
        }
        self.any.outcome(ended)
    }

    /// The same job without its type.
    pub fn into_any(self) -> AnyJob {
        self.any
    }
}

impl<Op: Call> Deref for Job<Op> {
    type Target = AnyJob;

    fn deref(&self) -> &AnyJob {
        &self.any
    }
}

impl<Op: Call> Clone for Job<Op> {
    fn clone(&self) -> Self {
        Self::of(self.any.clone())
    }
}

impl<Op: Call> fmt::Debug for Job<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.any.fmt(f)
    }
}

impl AnyJob {
    /// A handle for an id, which may be unknown.
    pub(super) fn new(jobs: Jobs, id: JobId) -> Self {
        Self { jobs, id, is_new: false, is_known: false }
    }

    /// A handle for a job that was submitted.
    pub(super) fn known(jobs: Jobs, id: JobId, is_new: bool) -> Self {
        Self { jobs, id, is_new, is_known: true }
    }

    /// The id of the job.
    pub fn id(&self) -> &JobId {
        &self.id
    }

    /// True if this submit made the job. False if it attached to the job of its key, which may have failed or been
    /// cancelled already, or if the handle was made from an id.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// Waits until the job has ended, and returns its result as JSON.
    ///
    /// # Errors
    /// Those of [`Job::result`].
    pub async fn result(&self) -> Result<ResponseEnvelope<Value>, CallError> {
        let ended = self.ended().await?;
        self.outcome(ended)
    }

    /// Reads the status of the job.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`]), or the error of the engine.
    pub async fn status(&self) -> Result<JobStatus, CallError> {
        self.status_of(&self.read().await?).await
    }

    /// The status of the job, from a record that was already read (by [`Jobs::list`] or [`stored`](Self::stored)). The
    /// engine is asked only if the job has not ended.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`]) if the job belongs to another caller, or the error of the engine.
    pub async fn status_of(&self, stored: &Stored) -> Result<JobStatus, CallError> {
        if !self.jobs.sees(stored.owner()) {
            return Err(JobError::NotFound { job: self.id.clone() }.into());
        }
        let (job, tries) = match stored {
            Stored::Ended(ended) => return Ok(JobStatus::of(ended)),
            Stored::Open { job, tries } => (job, tries),
        };
        if self.jobs.engine().is_running(&self.id).await? {
            return Ok(JobStatus::Running { attempt: tries.attempts.saturating_add(1) });
        }
        Ok(JobStatus::of_waiting(job, tries, self.jobs.engine().now()))
    }

    /// The handler's progress reports from now on, as a stream. It ends with the job, even if the engine is away
    /// meanwhile. Reports may be lost.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`]), or the error of the engine.
    pub async fn progress(&self) -> Result<BoxStream<'static, Progress>, CallError> {
        let reports = self.jobs.engine().progress(&self.id).await?;
        if let Stored::Ended(_) = self.read().await? {
            return Ok(stream::empty().boxed());
        }
        let job = self.clone();
        let end = Box::pin(async move { job.until_ended().await });
        let stream = stream::unfold((reports, Some(end)), |(mut reports, end)| async move {
            let report = match end {
                None => reports.next().now_or_never().flatten()?,
                Some(end) => match select(reports.next(), end).await {
                    Either::Left((report, end)) => return Some((report?, (reports, Some(end)))),
                    // Reports before the end have arrived by now.
                    Either::Right(((), next)) => next.now_or_never().flatten()?,
                },
            };
            Some((report, (reports, None)))
        });
        Ok(stream.boxed())
    }

    /// Cancels the job, whichever process has it. A running handler is dropped, and so is the attempt; steps that it
    /// waits for are cancelled with it. If no worker has the job, its steps are cancelled when they would begin, or
    /// within a third of a lease if they run; within two leases if the job is no longer stored, such as after
    /// [`discard`](Self::discard). With replicas on `JetStream`, such a step is cancelled only if the lease is two seconds or
    /// more.
    ///
    /// Returns `false` if the job has ended already.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`]), or the error of the engine.
    pub async fn cancel(&self) -> Result<bool, CallError> {
        match self.read().await? {
            // The rest of it is removed.
            Stored::Ended(ended) => {
                let at = self.jobs.engine().now();
                let cancelled =
                    Ended { at, failed: None, marks: Marks::default(), outcome: Outcome::Cancelled, ..*ended };
                self.jobs.engine().close(&self.id, &cancelled).await
            }
            Stored::Open { job, tries } => self.close(&job, tries.attempts, Outcome::Cancelled).await,
        }
    }

    /// The stored record of the job.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`]), or the error of the engine.
    pub async fn stored(&self) -> Result<Stored, CallError> {
        self.read().await
    }

    pub(crate) async fn read(&self) -> Result<Stored, CallError> {
        let engine = self.jobs.engine();
        let stored = if self.is_known { engine.read_known(&self.id).await? } else { engine.read(&self.id).await? };
        self.own(stored)
    }

    /// The stored record, if this identity may see it.
    fn own(&self, stored: Option<Stored>) -> Result<Stored, CallError> {
        let own = stored.filter(|stored| self.jobs.sees(stored.owner()));
        own.ok_or_else(|| JobError::NotFound { job: self.id.clone() }.into())
    }

    /// Waits until the job has ended.
    pub(crate) async fn ended(&self) -> Result<Ended, CallError> {
        let engine = self.jobs.engine();
        // The deadline is unknown before the job is read, which is not necessary if it ends soon.
        let mut at_most = Duration::from_millis(GRACE);
        let mut is_known = self.is_known;
        loop {
            let stored = match engine.wait(&self.id, at_most).await? {
                None if is_known => engine.read_known(&self.id).await?,
                stored => stored,
            };
            is_known = true;
            let (job, mut tries) = match self.own(stored)? {
                Stored::Ended(ended) => return Ok(*ended),
                Stored::Open { job, tries } => (job, tries),
            };
            let now = engine.now();
            // A job of a later format is left to newer versions.
            let deadline = job.deadline.filter(|_| job.format <= FORMAT);
            let left = deadline.map(|at| at.saturating_add(GRACE).saturating_sub(now));
            if left != Some(0) {
                at_most = left.map_or(WAIT, |left| Duration::from_millis(left).min(WAIT));
                continue;
            }
            let bounds = engine.limits().bounds();
            let error = late(&tries);
            if engine.is_running(&self.id).await.unwrap_or(false) {
                // Its worker knows the outcome better, and writes it soon.
                if deadline.is_some_and(|at| at.saturating_add(PATIENCE) > now) {
                    at_most = Duration::from_millis(GRACE);
                    continue;
                }
                let during = "the deadline of the job passed during the attempt";
                tries.fail(now, CallError::new(ErrorCode::Timeout, during), bounds.attempt);
            }
            let attempts = tries.attempts;
            self.close(&job, attempts, overdue(&job, now, tries, error, bounds)).await?;
        }
    }

    /// Waits until the job has ended or is unknown, even if the engine is away meanwhile.
    pub(crate) async fn until_ended(&self) {
        let mut wait = BACK_OFF.0;
        while let Err(error) = self.ended().await {
            if let Some(JobError::NotFound { .. }) = JobError::of(&error) {
                return;
            }
            tracing::warn!(%error, job = self.id.as_str(), "the end of a job can't be waited for now");
            tokio::time::sleep(wait).await;
            wait = wait.saturating_mul(2).min(BACK_OFF.1);
        }
    }

    async fn close(&self, job: &JobRecord, attempts: u32, outcome: Outcome) -> Result<bool, CallError> {
        let ended = Ended::new(job, self.jobs.engine().now(), attempts, outcome);
        let counts = self.jobs.engine().close(&self.id, &ended).await?;
        if counts {
            log::ended(&self.id, &ended);
        }
        Ok(counts)
    }

    /// The result of a job that has ended.
    pub(super) fn outcome<T: DeserializeOwned>(&self, ended: Ended) -> Result<ResponseEnvelope<T>, CallError> {
        let Ended { operation, failed, marks, outcome, .. } = ended;
        let result = match outcome {
            Outcome::Done(envelope) => read_envelope(&envelope),
            Outcome::Failed(error) => Err(error),
            Outcome::Dead(letter) => Err(letter.error),
            Outcome::Cancelled => Err(JobError::Cancelled { job: self.id.clone() }.into()),
        };
        result.map_err(|error| marks.put_on(error).with_operation(failed.unwrap_or(operation)))
    }
}

fn read_envelope<T: DeserializeOwned>(envelope: &RawValue) -> Result<ResponseEnvelope<T>, CallError> {
    crate::record::from_str(envelope.get()).map_err(|error| {
        let message = format!("the result that is kept is not of this type, but perhaps of another version: {error}");
        CallError::new(ErrorCode::ValidationError, message)
    })
}

/// The error of a job whose deadline passed.
pub(super) fn late(tries: &Tries) -> CallError {
    let last = tries.history.last().map(|failed| format!("; the last attempt failed: {}", failed.error));
    let message = format!("the deadline of the job passed before it was done{}", last.unwrap_or_default());
    CallError::new(ErrorCode::Timeout, message)
}

/// The outcome of a job whose deadline passed, or leaves no time for another attempt.
///
/// A job that a server submitted for one of its callers fails, and is kept for its retention only. A caller may submit
/// any number of jobs that take too long, and dead letters stay until an operator removes them.
pub(super) fn overdue(job: &JobRecord, now: u64, tries: Tries, error: CallError, bounds: Bounds) -> Outcome {
    if job.via.is_some() {
        return Outcome::Failed(bounded(error, bounds.failed));
    }
    Outcome::Dead(Box::new(DeadLetter::new(job.clone(), now, tries, bounded(error, bounds.letter))))
}

impl JobStatus {
    fn of(ended: &Ended) -> Self {
        match &ended.outcome {
            Outcome::Done(_) => Self::Done,
            Outcome::Failed(error) => Self::Failed(error.clone()),
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Dead(letter) => Self::Dead(letter.error.clone()),
        }
    }

    fn of_waiting(job: &JobRecord, tries: &Tries, now: u64) -> Self {
        match (tries.history.last(), tries.next, job.not_before) {
            (Some(failed), Some(next), _) => {
                Self::Retrying { attempts: tries.attempts, next: time(next), error: failed.error.clone() }
            }
            (_, _, Some(until)) if until > now => Self::Delayed { until: time(until) },
            _ => Self::Queued,
        }
    }

    /// True if the job has ended.
    pub fn is_ended(&self) -> bool {
        matches!(self, Self::Done | Self::Failed(_) | Self::Cancelled | Self::Dead(_))
    }
}

/// Milliseconds since the Unix epoch as a time.
pub(super) fn time(millis: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(millis)).unwrap_or(UNIX_EPOCH)
}

impl fmt::Debug for AnyJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").field("id", &self.id).field("is_new", &self.is_new).finish_non_exhaustive()
    }
}
