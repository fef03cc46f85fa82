//! Steps of a job: results that a repeated attempt takes over from the one before.

use std::sync::Arc;

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use crate::durable::error::JobError;
use crate::durable::id::JobId;
use crate::durable::job::AnyJob;
use crate::durable::jobs::Origin;
use crate::durable::options::{SubmitOptions, When};
use crate::durable::record::{Ended, JobRecord, Stored};
use crate::durable::scope::{Scope, Step};
use crate::run::payload::to_text;
use crate::{Call, CallError, Context, ErrorCode, ResponseEnvelope};

/// Steps of durable calls.
impl Context {
    /// Runs an operation as a step of this job: a job of its own, to which a repeated attempt attaches.
    ///
    /// **The name is unique within the job**, because a repeated attempt finds the step by it. In a loop, make it from
    /// what the turn is about, as in `format!("ship {parcel}")`: to use the name of a step that gave a value once more
    /// is an error. A step that failed can be repeated under its name.
    ///
    /// Calls that the handler makes by [`env`](Self::env) are part of the job, so an operation that is called several
    /// times must give its steps different names for each call. That includes calls that a handler repeats because they
    /// failed: for other calls, the name of a step is used up even if the step failed.
    ///
    /// The step runs with the identity of this call, like a call by `env`, and has retries of its own. While the handler
    /// waits for it, another job can run in its place. Its result is kept for 30 days
    /// ([`Jobs::with_step_retention`](crate::durable::Jobs::with_step_retention)). A step that has become a dead letter
    /// stays one until it is retried or discarded, and its error is returned to every attempt until then. A step that
    /// still runs when its job was cancelled, or when its job is no longer stored, is cancelled.
    ///
    /// Register the operation with the workers: the job waits until a worker has run the step. If the worker of the job
    /// does not have the operation itself, the log says so.
    ///
    /// In a call that is not a job, this just runs the operation.
    ///
    /// # Errors
    /// The error of the operation. `KEY_CONFLICT` if an earlier attempt gave the step another input: compute inputs
    /// from the job's own input and from other steps. `VALIDATION_ERROR` if this attempt has a step with the name, in
    /// another call, or with a value, or still running, or if the input or the metadata of this call is too large.
    pub async fn once<Op: Call>(
        &self,
        name: &str,
        input: impl Into<Op::Input> + Send,
    ) -> Result<ResponseEnvelope<Op::Output>, CallError> {
        let Some(scope) = self.extension::<Arc<Scope>>().cloned() else {
            return self.env().execute::<Op>(input).await;
        };
        let named = scope.name(Step::Operation, name, self)?;
        let input = to_text(&input.into()).map_err(|error| error.with_operation(Op::SPEC.id.clone()))?;
        let parent = scope.job();
        let mut options = SubmitOptions::new().with_retention(scope.jobs.step_retention());
        options.tenant.clone_from(&parent.tenant);
        options.deadline = scope.deadline.map(crate::durable::job::time).map(When::At);
        options.metadata = self.metadata().cloned().unwrap_or_default();
        let step = parent.step_name(name);
        let key = ["step", parent.id.as_str(), &*step];
        let origin = Origin {
            key: Some(&key),
            retry: Op::SPEC.retry(),
            // So that a repeated attempt finds it, even if there are more lanes by then.
            lane: Some(parent.id.lane()),
            parent: Some(parent),
            trusted: true,
            ..Origin::default()
        };
        // A call that the handler makes may have another identity than the job.
        let own = scope.jobs.with_identity(self.identity().cloned());
        let record = own.record(&Op::SPEC.id, input, options, &origin);
        let mut record = record.map_err(|error| error.with_operation(Op::SPEC.id.clone()))?;
        if let Some(earlier) = earlier(&scope, &record, &key).await? {
            record.id = earlier;
        }
        // The step that an earlier attempt submitted is seen whatever identity it has.
        let (job, known) = scope.jobs.with_identity(None).put_or_known(record).await?;
        // Another queue may have workers of its own.
        let is_here = job.id().queue() == parent.id.queue();
        if job.is_new() && is_here && self.registry.handler(&Op::SPEC.id).is_none() {
            tracing::warn!(
                job = parent.id.as_str(),
                step = name,
                operation = Op::SPEC.id.as_ref(),
                "no handler here for the operation of a step: the job waits until a worker has run the step. Register the \
                 operation in the registry of this worker"
            );
        }
        let ended = match known {
            // It needs no place to wait. The waiting places may all be taken by jobs that wait for this one.
            Some(Stored::Ended(ended)) => *ended,
            _ => end_of(&scope, &job).await?,
        };
        let envelope = job.outcome(ended)?;
        named.keep();
        Ok(envelope)
    }

    /// Runs a closure as a step of this job, and stores its result: a repeated attempt gets the result, and does not
    /// run it.
    ///
    /// If the worker dies after the closure's effect and before the result is stored, the closure runs again: use
    /// [`once`](Self::once), or pass [`idempotency_key`](Self::idempotency_key) to what it calls. An error is not
    /// stored. A result is kept for 30 days. The name has the same rules as for [`once`](Self::once): in a loop, each
    /// turn needs a name of its own.
    ///
    /// In a call that is not a job, this just runs the closure.
    ///
    /// # Errors
    /// Those of the closure, and of the engine. `VALIDATION_ERROR` if an earlier attempt stored a value of another
    /// type, or if this attempt has a step with the name, in another call, or with a value, or still running.
    /// `EXECUTION_ERROR`, which is not retried, if JSON cannot represent the value.
    pub async fn step<T, F>(&self, name: &str, run: impl FnOnce() -> F + Send) -> Result<T, CallError>
    where
        T: Serialize + DeserializeOwned + Send,
        F: Future<Output = Result<T, CallError>> + Send,
    {
        let Some(scope) = self.extension::<Arc<Scope>>() else { return run().await };
        let named = scope.name(Step::Closure, name, self)?;
        let (engine, id, key) = (scope.jobs.engine(), &scope.job().id, scope.job().step_name(name));
        let kept = match engine.step(id, &key).await? {
            Some(kept) => kept,
            None => {
                // The closure has run, and would give such a value again.
                let value = to_text(&run().await?).map_err(CallError::lasting)?;
                let (size, limit) = (value.get().len(), engine.limits().max_result);
                if size > limit {
                    let message =
                        format!("the step `{name}` gave {size} bytes as JSON, and the engine keeps up to {limit}");
                    return Err(CallError::new(ErrorCode::ValidationError, message));
                }
                engine.keep_step(id, &key, value.get(), scope.jobs.step_retention()).await?
            }
        };
        let value = crate::record::from_str(&kept).map_err(|error| {
            let message = format!("the step `{name}` kept a value of another type: {error}");
            CallError::new(ErrorCode::ValidationError, message)
        })?;
        named.keep();
        Ok(value)
    }
}

/// The step that an earlier attempt submitted, if that is in another queue: its operation was in that queue then.
///
/// The first attempt has no such steps, and most programs have one queue, so this usually asks the engine nothing.
async fn earlier(scope: &Scope, step: &JobRecord, key: &[&str]) -> Result<Option<JobId>, CallError> {
    let of_parent = scope.job().id.queue();
    let mut queues = scope.jobs.queues();
    if !queues.iter().any(|queue| queue == of_parent) {
        queues.push(of_parent.to_owned());
    }
    queues.retain(|queue| queue != step.id.queue());
    let engine = scope.jobs.engine();
    if queues.is_empty() || !scope.is_repeated() || engine.read(&step.id).await?.is_some() {
        return Ok(None);
    }
    for queue in queues {
        let id = JobId::of_key(&queue, step.id.lane(), key);
        if engine.read(&id).await?.is_some() {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

/// Waits for the end of a step. Another job can run in the place of this one until then.
async fn end_of(scope: &Arc<Scope>, step: &AnyJob) -> Result<Ended, CallError> {
    let Some(_waiting) = scope.wait_for(step.id()) else { return suspend(scope).await };
    let ended = tokio::select! {
        biased;
        ended = step.ended() => ended,
        () = scope.draining() => return suspend(scope).await,
    };
    match ended {
        // The engine had it a moment ago. Its next submit shows if it is lost, or just not shown.
        Err(error) if matches!(JobError::of(&error), Some(JobError::NotFound { .. })) => suspend(scope).await,
        ended => ended,
    }
}

/// Gives the job back. Its worker drops the handler, so this never returns.
async fn suspend<T>(scope: &Scope) -> T {
    scope.suspended.cancel();
    std::future::pending().await
}
