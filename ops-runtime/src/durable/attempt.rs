//! One delivery of a job, from the worker to its outcome.

use std::convert::Infallible;
use std::future::pending;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::future::{Either, select};
use futures_util::{FutureExt, StreamExt};
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span, field};

use crate::call::trace::continue_trace;
use crate::durable::bounds::{Bounds, bounded};
use crate::durable::engine::{Delivery, Engine};
use crate::durable::id::JobId;
use crate::durable::job::{AnyJob, late, overdue};
use crate::durable::lease::Lease;
use crate::durable::log::{self, Unknown};
use crate::durable::meter::Meter;
use crate::durable::parent::{Parent, is_cancelled};
use crate::durable::record::{DeadLetter, Ended, FORMAT, JobRecord, Outcome, Tries};
use crate::durable::scope::Scope;
use crate::model::clock::millis;
use crate::registry::{ProgressSink, ProgressStream};
use crate::run::attempt::{Attempt, IdempotencyKey};
use crate::run::pipeline::{Invocation, serve};
use crate::{
    CallError, CallOptions, Context, ErrorCode, OperationKind, OperationSpec, Payload, Progress, Registry, RetryPolicy,
};

/// How long a job waits that no worker of this process can run, so that others get it: at first, and at most.
const PASSED: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));
/// How long a job that was given back while it waited for steps stays in its queue.
const SUSPENDED: Duration = Duration::from_secs(1);

/// Marks the error of an attempt whose worker died, in its details.
const DIED: &str = "workerDied";

/// What ends all attempts of a worker from outside. The [`Lease`] has what ends one.
#[derive(Clone, Default)]
pub(super) struct Signals {
    /// The worker is dropped: nothing more is written.
    pub(super) killed: CancellationToken,
    /// The worker stops: the job is given back.
    pub(super) stopped: CancellationToken,
}

/// A job that was delivered.
pub(super) struct Attempted<'a> {
    pub(super) registry: &'a Registry,
    pub(super) lease: &'a Lease,
    /// The operation, if the registry has it.
    pub(super) spec: Option<&'a OperationSpec>,
    pub(super) terms: Terms,
    pub(super) scope: Arc<Scope>,
    pub(super) signals: Signals,
    /// The operations that were left to other workers.
    pub(super) unknown: &'a Unknown,
}

/// The policy for the attempts of a job: its submitter's, or else its operation's.
pub(super) struct Terms {
    retry: RetryPolicy,
    /// True if the policy is that of the job's submitter or of its operation. False if it is the default, because the
    /// operation is unknown here.
    are_known: bool,
    /// When the job is given up, over all attempts.
    pub(super) deadline: Option<u64>,
}

impl Terms {
    pub(super) fn of(job: &JobRecord, spec: Option<&OperationSpec>) -> Self {
        let own = spec.and_then(OperationSpec::retry).filter(|_| job.retry.is_none());
        let limit = own.and_then(|own| own.deadline).map(|limit| job.start().saturating_add(limit));
        let deadline = match (job.deadline, limit) {
            // The deadline of a step is inherited from its job, so the step's own limit counts as well.
            (Some(deadline), Some(limit)) if job.trusted => Some(deadline.min(limit)),
            (deadline, limit) => deadline.or(limit),
        };
        let are_known = spec.is_some() || job.retry.is_some();
        Self { retry: job.retry.as_ref().or(own).cloned().unwrap_or_default(), are_known, deadline }
    }
}

/// The outcome to be written.
enum Verdict {
    End(Outcome),
    /// It failed, and is retried.
    Retry(Duration),
    /// It is given back.
    Pass(Duration),
}

/// How a handler ended.
enum Ran {
    Result(Result<Box<RawValue>, CallError>),
    Passed(Duration),
    Closed,
    Lost,
    Killed,
}

impl Attempted<'_> {
    /// Runs the job if it may run, and writes its outcome.
    ///
    /// Boxed in parts: allocators have small blocks at hand, and search for one of the size of the whole future.
    pub(super) async fn run(self) {
        let job = &self.lease.delivery.job;
        let mut tries = self.tries();
        let attempt = tries.attempts.saturating_add(1);
        let verdict = match self.refusal(&mut tries) {
            None => self.without_parent(&mut tries).await.or_else(|| self.stopped()),
            verdict => verdict,
        };
        let verdict = match verdict {
            Some(verdict) => {
                if let Verdict::Pass(_) = verdict {
                    tries.pass(false);
                }
                verdict
            }
            // Another worker may have the step: the lookup of its job may have taken longer than the lease.
            None if self.lease.is_lost() => return,
            None => {
                let mut meter = Meter::start(&job.operation);
                let (verdict, outcome) = match Box::pin(self.attempt(attempt)).await {
                    Ran::Killed => (None, "died"),
                    Ran::Lost => (None, "lost"),
                    Ran::Closed => (None, "closed"),
                    Ran::Passed(after) => {
                        tries.pass(true);
                        (Some(Verdict::Pass(after)), "passed")
                    }
                    Ran::Result(result) => {
                        let is_failed = result.is_err();
                        let verdict = self.judge(&mut tries, result);
                        let outcome = outcome(&verdict);
                        if is_failed {
                            log::failed(job, &tries, outcome);
                        }
                        (Some(verdict), outcome)
                    }
                };
                meter.set(outcome);
                let Some(verdict) = verdict else { return };
                verdict
            }
        };
        self.lease.release().await;
        Box::pin(self.write(tries, verdict)).await;
    }

    fn engine(&self) -> &dyn Engine {
        self.scope.jobs.engine()
    }

    fn bounds(&self) -> Bounds {
        self.engine().limits().bounds()
    }

    /// The results of the earlier attempts, including those of workers that died.
    fn tries(&self) -> Tries {
        let Delivery { job, deliveries, tries, .. } = &self.lease.delivery;
        let mut tries = tries.clone();
        let known = u64::from(tries.attempts).saturating_add(u64::from(tries.passes)).saturating_add(1);
        let deaths = deliveries.saturating_sub(known).min(u64::from(u16::MAX));
        for _ in 0..deaths {
            self.fail(&mut tries, death());
        }
        if deaths > 0 {
            log::failed(job, &tries, "died");
        }
        tries
    }

    fn fail(&self, tries: &mut Tries, error: CallError) {
        tries.fail(self.engine().now(), error, self.bounds().attempt);
    }

    /// The outcome of a job whose worker stops. `None` if it does not.
    fn stopped(&self) -> Option<Verdict> {
        self.signals.stopped.is_cancelled().then_some(Verdict::Pass(Duration::ZERO))
    }

    /// The outcome of a job that is not run. `None` if it is run.
    fn refusal(&self, tries: &mut Tries) -> Option<Verdict> {
        if let Some(verdict) = self.stopped() {
            return Some(verdict);
        }
        let job = &self.lease.delivery.job;
        // In an unknown format, no other field can be relied on, and a dead letter would lack the unknown fields.
        if job.format > FORMAT {
            return Some(pass(tries));
        }
        if self.terms.deadline.is_some_and(|deadline| deadline <= self.engine().now()) {
            return Some(self.overdue(tries, late(tries)));
        }
        // Only workers that have the operation know its number of attempts, unless the submitter has set it.
        if self.terms.are_known && tries.attempts >= self.terms.retry.attempts.max(1) {
            // Only deaths lead here: a failure of the last attempt ends the job.
            let error = tries.history.last().map(|failed| failed.error.clone());
            return Some(self.dead(tries, error.unwrap_or_else(|| late(tries))));
        }
        match self.spec {
            Some(spec) if spec.kind == OperationKind::Subscription => {
                let message = "a subscription gives a stream, and cannot be a job";
                Some(Verdict::End(Outcome::Failed(CallError::new(ErrorCode::ValidationError, message))))
            }
            Some(_) if self.registry.handler(&job.operation).is_some() => None,
            _ => {
                self.unknown.left(job);
                Some(pass(tries))
            }
        }
    }

    /// Runs the handler.
    async fn attempt(&self, attempt: u32) -> Ran {
        let Self { signals, scope, lease, .. } = self;
        let job = &lease.delivery.job;
        let span = tracing::debug_span!(
            "job",
            "otel.kind" = "consumer",
            "otel.name" = job.operation,
            operation = job.operation,
            job = job.id.as_str(),
            attempt,
            trace_id = field::Empty,
            span_id = field::Empty,
            parent_id = field::Empty,
        );
        let (sink, reports) = Progress::channel();
        let call = Box::pin(self.call(self.options(attempt, &span, sink)));
        let run = self.reported(call, reports).instrument(span.clone());
        let closed = async {
            lease.closed().await;
            // While the handler still waits for them.
            scope.steps()
        };
        let lost = async {
            lease.lost().await;
            scope.steps()
        };
        tokio::select! {
            biased;
            () = signals.killed.cancelled() => Ran::Killed,
            steps = closed => {
                self.close(steps).await;
                Ran::Closed
            }
            result = run => Ran::Result(result),
            () = scope.suspended.cancelled() => Ran::Passed(SUSPENDED),
            () = signals.stopped.cancelled() => Ran::Passed(Duration::ZERO),
            steps = lost => {
                tracing::warn!(
                    parent: &span,
                    job = job.id.as_str(),
                    operation = job.operation,
                    "the job has ended or is another worker's: its handler is dropped"
                );
                // The notice of the cancellation may have been lost, and so may the server.
                let close = async {
                    if !steps.is_empty()
                        && let Ok(Some(stored)) = self.engine().read_known(&job.id).await
                        && is_cancelled(&stored)
                    {
                        self.close(steps).await;
                    }
                };
                tokio::select! {
                    biased;
                    () = signals.killed.cancelled() => {}
                    () = signals.stopped.cancelled() => {}
                    _ = tokio::time::timeout(self.engine().limits().lease, close) => {}
                }
                Ran::Lost
            }
        }
    }

    fn options(&self, attempt: u32, span: &Span, progress: ProgressSink) -> CallOptions {
        let job = &self.lease.delivery.job;
        let mut metadata = job.metadata.clone();
        continue_trace(span, &mut metadata);
        let mut options =
            CallOptions { metadata, ..CallOptions::new() }.with_progress(progress).with_extension(self.scope.clone());
        options.extensions.insert(Attempt(attempt));
        options.extensions.insert_own(IdempotencyKey(job.idempotency_key().into_owned()));
        match self.terms.deadline {
            Some(deadline) => options.with_timeout(Duration::from_millis(deadline.saturating_sub(self.engine().now()))),
            None => options,
        }
    }

    async fn call(&self, options: CallOptions) -> Result<Box<RawValue>, CallError> {
        let job = &self.lease.delivery.job;
        let identity = job.identity.clone().map(Arc::new);
        let checked = (identity.is_some() || job.unknown) && !job.trusted;
        let context = Context::new(self.registry.clone(), options, identity);
        let call = Invocation { context, policy: self.registry.policy(), checked };
        let envelope = serve(call, &job.operation, Payload::Raw(job.input.clone())).await?;
        let text = to_raw_value(&envelope)
            .map_err(|error| CallError::execution(format!("the result can't be written as JSON: {error}")).lasting())?;
        let (size, limit) = (text.get().len(), self.engine().limits().max_result);
        if size > limit {
            let message = format!(
                "the result is {size} bytes as JSON, and the engine keeps up to {limit}: keep what is large elsewhere, and \
                 return where it is"
            );
            // Another attempt would have the same result.
            return Err(CallError::new(ErrorCode::ValidationError, message));
        }
        Ok(text)
    }

    /// Runs the handler, and sends its progress reports.
    async fn reported<T>(&self, run: impl Future<Output = T> + Unpin, mut reports: ProgressStream) -> T {
        let tell = async {
            while let Some(report) = reports.next().await {
                self.tell(&report).await;
            }
            pending::<Infallible>().await
        };
        let result = match select(run, pin!(tell)).await {
            Either::Left((result, _)) => result,
            Either::Right((never, _)) => match never {},
        };
        // The remaining reports. More may come from tasks that the handler has left behind; they are ignored.
        while let Some(report) = reports.next().now_or_never().flatten() {
            self.tell(&report).await;
        }
        result
    }

    async fn tell(&self, report: &Progress) {
        if let Err(error) = self.engine().tell(&self.lease.delivery.job.id, report).await {
            tracing::debug!(%error, "a report of progress is lost");
        }
    }

    /// The outcome of a step whose job was cancelled, or may have been. `None` if it is run, like any job that is not a
    /// step.
    async fn without_parent(&self, tries: &mut Tries) -> Option<Verdict> {
        let parent = Parent::of(self.engine(), &self.lease.delivery.job).await;
        match parent {
            _ if parent.ends(&mut tries.gone) => Some(Verdict::End(Outcome::Cancelled)),
            Parent::Waits => None,
            _ => Some(pass(tries)),
        }
    }

    /// Cancels the steps that a cancelled job waited for.
    async fn close(&self, steps: Vec<JobId>) {
        let JobRecord { id, operation, .. } = &self.lease.delivery.job;
        // A step may have another identity than its job.
        let jobs = self.scope.jobs.with_identity(None);
        for step in steps {
            if let Err(error) = AnyJob::known(jobs.clone(), step.clone(), false).cancel().await {
                let (job, step) = (id.as_str(), step.as_str());
                tracing::warn!(%error, job, operation, step, "a step of a cancelled job was not cancelled");
            }
        }
    }

    /// The outcome of a job that was run.
    fn judge(&self, tries: &mut Tries, result: Result<Box<RawValue>, CallError>) -> Verdict {
        let Terms { retry, deadline, .. } = &self.terms;
        let error = match result {
            Ok(envelope) => return Verdict::End(Outcome::Done(envelope)),
            Err(error) => error,
        };
        let now = self.engine().now();
        self.fail(tries, error.clone());
        if deadline.is_some_and(|deadline| deadline <= now) {
            return self.overdue(tries, late(tries));
        }
        if !retry.repeats(&error) {
            return Verdict::End(Outcome::Failed(bounded(error, self.bounds().failed)));
        }
        let wait = jittered(retry.wait_after(tries.attempts));
        let next = now.saturating_add(millis(wait));
        if tries.attempts >= retry.attempts {
            return self.dead(tries, error);
        }
        if deadline.is_some_and(|deadline| deadline <= next) {
            return self.overdue(tries, error);
        }
        tries.next = Some(next);
        Verdict::Retry(wait)
    }

    fn overdue(&self, tries: &Tries, error: CallError) -> Verdict {
        let (job, now) = (&self.lease.delivery.job, self.engine().now());
        Verdict::End(overdue(job, now, tries.clone(), error, self.bounds()))
    }

    fn dead(&self, tries: &Tries, error: CallError) -> Verdict {
        let error = bounded(error, self.bounds().letter);
        let job = JobRecord::clone(&self.lease.delivery.job);
        let letter = DeadLetter::new(job, self.engine().now(), tries.clone(), error);
        Verdict::End(Outcome::Dead(Box::new(letter)))
    }

    /// Writes the outcome of the job, until it is written or no longer matters.
    async fn write(&self, tries: Tries, verdict: Verdict) {
        let limits = self.engine().limits();
        let until = Instant::now().checked_add(limits.lease.saturating_mul(10).max(Duration::from_secs(60)));
        let job = &self.lease.delivery.job;
        // A job without a failure has one attempt, which the record of tries does not count.
        let is_done = matches!(verdict, Verdict::End(Outcome::Done(_)));
        let attempts = tries.attempts.saturating_add(u32::from(is_done));
        let what = match verdict {
            Verdict::End(outcome) => Either::Left(Ended::new(job, self.engine().now(), attempts, outcome)),
            Verdict::Retry(after) | Verdict::Pass(after) => Either::Right(after),
        };
        let mut failures = 0;
        loop {
            let written = match &what {
                Either::Left(ended) => self.engine().end(&self.lease.delivery, ended).await.map(|counts| {
                    if counts {
                        log::ended(&job.id, ended);
                    }
                }),
                Either::Right(after) => self.engine().again(&self.lease.delivery, &tries, *after).await,
            };
            let Err(error) = written else { return };
            failures += 1;
            let (id, operation) = (job.id.as_str(), &job.operation);
            tracing::warn!(%error, job = id, operation, failures, "what became of a job was not written");
            if until.is_some_and(|until| until <= Instant::now()) {
                // The next worker runs it again.
                return;
            }
            tokio::select! {
                biased;
                () = self.signals.killed.cancelled() => return,
                () = tokio::time::sleep(wait_after(Duration::from_millis(100), Duration::from_secs(5), failures)) => {}
            }
            // The ending counts even without the lease; this only keeps other workers from running the job meanwhile.
            let _ = self.engine().extend(&self.lease.delivery).await;
        }
    }
}

/// Gives back a job that is not run here and now.
fn pass(tries: &Tries) -> Verdict {
    Verdict::Pass(wait_after(PASSED.0, PASSED.1, tries.passes))
}

/// The error of an attempt whose worker died.
fn death() -> CallError {
    let message = "the worker died or lost its connection during the attempt";
    CallError::new(ErrorCode::Aborted, message).with_details(json!({ DIED: true }))
}

/// True if the attempts of a job were used up by deaths of its workers. Errors of handlers may have the same code, such
/// as those of calls, and of steps whose own workers died.
#[cfg(feature = "mcp-server")]
pub(crate) fn is_death(ended: &Ended) -> bool {
    let Outcome::Dead(letter) = &ended.outcome else { return false };
    let error = &letter.error;
    ended.failed.is_none() && *error.code() == ErrorCode::Aborted && error.details().get(DIED).is_some()
}

fn outcome(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::End(Outcome::Done(_)) => "done",
        Verdict::End(Outcome::Failed(_)) => "failed",
        Verdict::End(_) => "dead",
        Verdict::Retry(_) => "retry",
        Verdict::Pass(_) => "passed",
    }
}

/// A delay that doubles each time.
fn wait_after(first: Duration, longest: Duration, times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(longest)
}

/// A delay that is shortened by up to a fifth at random.
fn jittered(wait: Duration) -> Duration {
    wait.saturating_sub(wait / 5 * fastrand::u32(..1000) / 1000)
}
