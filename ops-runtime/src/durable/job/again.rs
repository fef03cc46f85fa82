//! Retrying and discarding jobs that have ended.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::AnyJob;
use crate::durable::error::UNREADABLE;
use crate::durable::record::{DeadLetter, Ended, JobRecord, Outcome, Stored};
use crate::{CallError, ErrorCode};

/// How often workers are asked if they still have a cancelled job.
const ASK: Duration = Duration::from_millis(50);

impl AnyJob {
    /// Runs a failed job again, with all attempts: a dead letter, or a job whose error is not retried by itself.
    ///
    /// The job keeps its id, its input and the results of its steps, and waiters get the result of the new attempts. The
    /// time to its deadline starts anew, without the delay of the submit. Returns `false` if the job has not failed, or
    /// runs again already.
    ///
    /// A step is a job of its own: it runs even if the job that waited for it has ended. If a job failed because of a
    /// step, retry the step first: until then, every attempt of the job gets the step's stored error.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`](crate::durable::JobError)), or the error of the engine. `VALIDATION_ERROR` if an
    /// earlier version of this library stored the failure, without the input.
    pub async fn retry(&self) -> Result<bool, CallError> {
        let Stored::Ended(ended) = self.read().await? else { return Ok(false) };
        let Ended { outcome, job, .. } = *ended;
        let mut job = match (outcome, job) {
            (Outcome::Dead(letter), _) => letter.job,
            (Outcome::Failed(_), Some(job)) => *job,
            (Outcome::Failed(_), None) => {
                let message = format!(
                    "the failure of the job `{}` was stored by an earlier version of this library, without the input: \
                     discard it, and submit it again",
                    self.id
                );
                return Err(CallError::new(ErrorCode::ValidationError, message));
            }
            (Outcome::Done(_) | Outcome::Cancelled, _) => return Ok(false),
        };
        self.renew(&mut job).await?;
        self.jobs.engine().retry(&job).await
    }

    /// Removes a job that failed, a dead letter, or a job that was cancelled, and frees its key: the next submit of the
    /// key is a new job. Returns `false` for any other job: a result is kept until its retention has expired.
    ///
    /// After a cancellation, this waits until no worker says that it runs the job. A worker whose threads are blocked
    /// cannot say so, and the in-memory engine does not wait at all: then the cancelled handler may still run for a while
    /// beside the next job of the key. If the cancelled job was the next one of a schedule, a worker may submit it again.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`](crate::durable::JobError)), or the error of the engine. `EXECUTION_ERROR` if a
    /// worker runs the cancelled job for longer than a lease.
    pub async fn discard(&self) -> Result<bool, CallError> {
        let Stored::Ended(ended) = self.read().await? else { return Ok(false) };
        if !ended.can_be_discarded() {
            return Ok(false);
        }
        if let Outcome::Cancelled = ended.outcome {
            self.left().await?;
        }
        self.jobs.engine().discard(&self.id).await
    }

    /// The dead letter of the job. `None` if it is not a dead letter.
    ///
    /// # Errors
    /// `JOB_NOT_FOUND` ([`JobError`](crate::durable::JobError)), or the error of the engine.
    pub async fn dead_letter(&self) -> Result<Option<DeadLetter>, CallError> {
        Ok(match self.read().await? {
            Stored::Ended(ended) => match ended.outcome {
                Outcome::Dead(letter) => Some(*letter),
                _ => None,
            },
            Stored::Open { .. } => None,
        })
    }

    /// Makes the record of a job that ended one that is submitted now.
    async fn renew(&self, job: &mut JobRecord) -> Result<(), CallError> {
        // Engines tell the endings of successive runs apart by this time.
        let now = self.jobs.engine().now().max(job.submitted.saturating_add(1));
        let parent = self.open_parent(job).await?;
        job.deadline = match (&job.parent, job.deadline) {
            // What it inherited was the rest of the other job's time, which may be over.
            (Some(_), _) => {
                let own = job.retry.as_ref().and_then(|policy| policy.deadline);
                let own = own.map(|limit| now.saturating_add(limit));
                own.into_iter().chain(parent.as_ref().and_then(|parent| parent.deadline)).min()
            }
            (None, Some(deadline)) => {
                // A deadline before the start left no time at all, and counts from the submit.
                let from = if deadline > job.start() { job.start() } else { job.submitted };
                Some(now.saturating_add(deadline.saturating_sub(from)))
            }
            (None, None) => None,
        };
        if parent.is_none() {
            (job.parent, job.parent_nonce) = (None, String::new());
        }
        (job.submitted, job.not_before, job.retried) = (now, None, true);
        Ok(())
    }

    /// The job that waits for a step. `None` if it has ended or is unknown: then the step is retried for its own sake,
    /// and does not end with the other.
    async fn open_parent(&self, job: &JobRecord) -> Result<Option<Box<JobRecord>>, CallError> {
        let Some(parent) = &job.parent else { return Ok(None) };
        match self.jobs.engine().read_known(parent).await {
            Ok(Some(stored)) if job.is_step_of(&stored) => Ok(match stored {
                Stored::Open { job, .. } => Some(job),
                Stored::Ended(_) => None,
            }),
            Ok(_) => Ok(None),
            // Such as a record of a later version.
            Err(error) if error.details().get(UNREADABLE).is_some() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until no worker has the cancelled job, of which a worker learns within a third of a lease. The result of
    /// one that still had it could be taken for that of the next job with its key.
    async fn left(&self) -> Result<(), CallError> {
        let (engine, start) = (self.jobs.engine(), Instant::now());
        // A busy worker may respond late, and counts as none then.
        while engine.is_running(&self.id).await? || engine.is_running(&self.id).await? {
            if start.elapsed() > engine.limits().lease {
                let message = format!("the job `{}` was cancelled, and a worker still runs it: try again", self.id);
                return Err(CallError::execution(message));
            }
            sleep(ASK).await;
        }
        Ok(())
    }
}
