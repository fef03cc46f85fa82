//! Submits jobs, and makes handles of submitted ones.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use serde_json::Value;
use serde_json::value::RawValue;
use tracing::Instrument;

use crate::call::trace::continue_trace;
use crate::durable::bounds::Beside;
use crate::durable::digest::digest;
use crate::durable::engine::{Engine, Listed, QueueStats};
use crate::durable::error::JobError;
use crate::durable::id::{JobId, hash, is_queue};
use crate::durable::in_memory::InMemory;
use crate::durable::job::{AnyJob, Job};
use crate::durable::meter;
use crate::durable::options::{SubmitOptions, too_late};
use crate::durable::record::{DeadLetter, JobRecord, Outcome, Stored};
use crate::durable::retry::LONGEST;
use crate::model::clock::millis;
use crate::model::glob::glob;
use crate::model::random;
use crate::model::spec::check_id;
use crate::run::payload::to_text;
use crate::{BoxStream, Call, CallError, ErrorCode, Identity, RetryPolicy};

/// The queue of operations that match no pattern.
const QUEUE: &str = "jobs";
/// How long the results of steps are kept by default.
const STEPS: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// Number of jobs per request for a list.
const PAGE: usize = 100;

/// Submits jobs to an engine, and finds them by their ids.
///
/// Cheap to clone. All processes of a system use the same engine and queues.
#[derive(Clone)]
pub struct Jobs {
    shared: Arc<Shared>,
    identity: Option<Arc<Identity>>,
}

#[derive(Clone)]
struct Shared {
    engine: Arc<dyn Engine>,
    /// Patterns of operations, and their queues.
    queues: Vec<(String, String)>,
    retries: Vec<(String, RetryPolicy)>,
    /// How long the results of steps are kept.
    steps: Duration,
    /// The earliest time of a new schedule, in milliseconds: later than those of the schedules that were removed here.
    scheduled: Arc<AtomicU64>,
}

/// The parts of a job that its submitter does not set.
#[derive(Default)]
pub(crate) struct Origin<'a> {
    /// The texts that make its id, in place of the key of the options.
    pub(crate) key: Option<&'a [&'a str]>,
    /// The policy of the operation itself, if its submitter knows it, since a waiter needs its deadline.
    pub(crate) retry: Option<&'a RetryPolicy>,
    /// The lane, in place of that of the tenant.
    pub(crate) lane: Option<u16>,
    /// The job of which it is a step.
    pub(crate) parent: Option<&'a JobRecord>,
    /// True if access is not checked.
    pub(crate) trusted: bool,
    /// True if the caller is unknown, so that only operations without access rules run.
    pub(crate) unknown: bool,
    /// The server of this library that submits it.
    pub(crate) via: Option<&'a str>,
}

impl Jobs {
    /// Makes a handle to submit jobs to this engine, and to find them.
    pub fn new(engine: impl Engine) -> Self {
        let shared = Shared {
            engine: Arc::new(engine),
            queues: Vec::new(),
            retries: Vec::new(),
            steps: STEPS,
            scheduled: Arc::default(),
        };
        Self { shared: Arc::new(shared), identity: None }
    }

    /// In-memory jobs: see [`InMemory`].
    pub fn in_memory() -> Self {
        Self::new(InMemory::new())
    }

    /// Assigns the operations that match a pattern to a queue of their own, such as `("video.*", "slow")`; the first
    /// match counts. All other operations are in the queue `jobs`.
    ///
    /// `*` is any text, `?` any character. The name of a queue has lower-case letters, digits, `_` and `-`; a submit to
    /// one with another name fails.
    #[must_use]
    pub fn with_queue(mut self, pattern: impl Into<String>, queue: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.shared).queues.push((pattern.into(), queue.into()));
        self
    }

    /// Sets the retry policy of the operations that match a pattern; the first match counts.
    ///
    /// The options of a submit take precedence over it, and it takes precedence over the operation's own policy
    /// (`#[operation(retry(..))]`, [`OperationSpec::retry`](crate::spec::OperationSpec::retry)).
    #[must_use]
    pub fn with_retry(mut self, pattern: impl Into<String>, policy: RetryPolicy) -> Self {
        Arc::make_mut(&mut self.shared).retries.push((pattern.into(), policy));
        self
    }

    /// Sets how long the results of steps are kept; 30 days by default.
    ///
    /// A job that is retried later than that, such as a dead letter, repeats its steps. So does a job whose key is
    /// submitted again after it was freed.
    #[must_use]
    pub fn with_step_retention(mut self, retention: Duration) -> Self {
        Arc::make_mut(&mut self.shared).steps = retention;
        self
    }

    /// Restricts these jobs to an identity. Jobs are submitted with this identity, access is checked with it when they
    /// run, and jobs of other identities are not found.
    ///
    /// The job has the scopes and resources that the identity has now, even if they change before it runs. A token of
    /// the identity stays in this process: handlers do not get it.
    #[must_use]
    pub fn scoped(&self, identity: Identity) -> Self {
        self.with_identity(Some(identity))
    }

    /// The jobs of `identity`, or all jobs if it is `None`, whichever identity `self` is restricted to.
    pub(super) fn with_identity(&self, identity: Option<Identity>) -> Self {
        Self { shared: self.shared.clone(), identity: identity.map(Arc::new) }
    }

    /// Submits a job, or attaches to the one that has its key.
    ///
    /// When this returns, the engine has the job. The job runs with the identity of [`scoped`](Self::scoped). Without
    /// `scoped`, it runs as the owner of the worker's registry: the caller of the submitting function does not matter.
    ///
    /// # Errors
    /// `KEY_CONFLICT` if the key was submitted with another input ([`JobError`]). `VALIDATION_ERROR` if the input is
    /// too large, or if the key is empty or blank. Otherwise the error of the engine: then the job may have been
    /// submitted or not, and only a submit with a key can be repeated without running it twice.
    pub async fn submit<Op: Call>(
        &self,
        input: impl Into<Op::Input>,
        options: SubmitOptions,
    ) -> Result<Job<Op>, CallError> {
        let input = to_text(&input.into()).map_err(|error| error.with_operation(Op::SPEC.id.clone()))?;
        let origin = Origin { retry: Op::SPEC.retry(), ..Origin::default() };
        Ok(Job::of(self.put(&Op::SPEC.id, input, options, origin).await?))
    }

    /// Submits a job of an operation by its id.
    ///
    /// Only workers know operations. So a job with a misspelt id waits for a worker that has such an operation, and a
    /// worker fails a job of a subscription.
    ///
    /// # Errors
    /// Those of [`submit`](Self::submit). `VALIDATION_ERROR` if the id is not `namespace.name`.
    pub async fn submit_by_id(&self, id: &str, input: Value, options: SubmitOptions) -> Result<AnyJob, CallError> {
        let input = to_text(&input).map_err(|error| error.with_operation(id.to_owned()))?;
        self.put(id, input, options, Origin::default()).await
    }

    /// A handle for a job by its id. Nothing is requested from the engine yet.
    pub fn job<Op: Call>(&self, id: JobId) -> Job<Op> {
        Job::of(self.job_by_id(id))
    }

    /// A handle for a job of any operation by its id. Nothing is requested from the engine yet.
    pub fn job_by_id(&self, id: JobId) -> AnyJob {
        AnyJob::new(self.clone(), id)
    }

    /// A handle for the job of a key, which was submitted with the options' key and tenant. Nothing is requested from
    /// the engine yet: if the key has no job, the methods of the handle return `JOB_NOT_FOUND` ([`JobError`]).
    ///
    /// A key counts per operation, tenant and identity ([`scoped`](Self::scoped)), so the owner finds no job here that
    /// was submitted with an identity. The queue is part of the job's id, so
    /// [`with_queue`](Self::with_queue) must be as it was for the submit.
    ///
    /// # Errors
    /// `VALIDATION_ERROR` if the operation's queue has an invalid name.
    pub fn job_by_key<Op: Call>(&self, key: &str, tenant: Option<&str>) -> Result<Job<Op>, CallError> {
        let operation = &Op::SPEC.id;
        let queue = self.queue_of(operation).map_err(|error| error.with_operation(operation.clone()))?;
        Ok(self.job(self.id_of_key(queue, self.lane_of(tenant), operation, key, tenant)))
    }

    /// All dead letters, queue by queue. Those that are added while they are read may be missing.
    pub fn dead_letters(&self) -> BoxStream<'static, Result<DeadLetter, CallError>> {
        let jobs = self.clone();
        stream::iter(self.queues()).flat_map(move |queue| jobs.dead_letters_of(&queue)).boxed()
    }

    /// The dead letters of a queue. Those that are added while they are read may be missing.
    pub fn dead_letters_of(&self, queue: &str) -> BoxStream<'static, Result<DeadLetter, CallError>> {
        let letter = |(_, stored): (JobId, Stored)| match stored {
            Stored::Ended(ended) => match ended.outcome {
                Outcome::Dead(letter) => Some(*letter),
                _ => None,
            },
            Stored::Open { .. } => None,
        };
        let listed = self.list(queue, Listed::Dead);
        listed.filter_map(move |found| std::future::ready(found.map(letter).transpose())).boxed()
    }

    /// The queues: the default one, and those of patterns that have valid names.
    pub fn queues(&self) -> Vec<String> {
        let mut queues: Vec<String> = vec![QUEUE.to_owned()];
        for (_, queue) in &self.shared.queues {
            if is_queue(queue) && !queues.contains(queue) {
                queues.push(queue.clone());
            }
        }
        queues
    }

    /// The queues for which the engine stores something, in the order of their names, regardless of the patterns set
    /// here.
    ///
    /// # Errors
    /// That of the engine.
    pub async fn kept_queues(&self) -> Result<Vec<String>, CallError> {
        self.engine().queues().await
    }

    /// Jobs of a queue, with the record of each, in an order of the engine's own. Jobs that change while they are read
    /// may be missing.
    ///
    /// Workers are not asked, so a running job looks like a waiting one: use [`AnyJob::status`].
    pub fn list(&self, queue: &str, what: Listed) -> BoxStream<'static, Result<(JobId, Stored), CallError>> {
        if let Err(error) = check_queue(queue) {
            return stream::once(std::future::ready(Err(error))).boxed();
        }
        let start = (self.clone(), queue.to_owned(), Some(None));
        let pages = stream::unfold(start, move |(jobs, queue, after)| async move {
            let after: Option<String> = after?;
            match jobs.engine().list(&queue, what, after.as_deref(), PAGE).await {
                Ok(page) => {
                    let own = page.jobs.into_iter().filter(|(_, stored)| jobs.sees(stored.owner())).map(Ok).collect();
                    Some((own, (jobs, queue, page.next.map(Some))))
                }
                // The last item.
                Err(error) => Some((vec![Err(error)], (jobs, queue, None))),
            }
        });
        pages.map(stream::iter).flatten().boxed()
    }

    /// Counts the jobs of a queue, by state.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` if the name is not valid for a queue, or the error of the engine.
    pub async fn stats(&self, queue: &str) -> Result<QueueStats, CallError> {
        check_queue(queue)?;
        self.engine().stats(queue).await
    }

    /// Sets the gauges of a queue (feature `metrics`): the numbers of open jobs and of dead letters, and the age of the
    /// oldest. Workers do so for their queues every 15 seconds; this is for processes without one.
    ///
    /// # Errors
    /// Those of [`stats`](Self::stats).
    #[cfg(feature = "metrics")]
    pub async fn record_stats(&self, queue: &str) -> Result<QueueStats, CallError> {
        let stats = self.stats(queue).await?;
        meter::measured(queue, &stats);
        Ok(stats)
    }

    pub(super) fn step_retention(&self) -> Duration {
        self.shared.steps
    }

    /// The earliest time of a new schedule: later than those of the schedules that were removed here.
    pub(super) fn earliest_schedule(&self) -> u64 {
        self.shared.scheduled.load(Ordering::Relaxed)
    }

    /// Moves that time, unless it is later already.
    pub(super) fn schedule_from(&self, earliest: u64) {
        self.shared.scheduled.fetch_max(earliest, Ordering::Relaxed);
    }

    pub(crate) fn engine(&self) -> &dyn Engine {
        &*self.shared.engine
    }

    /// True if these jobs may access a job of that owner.
    pub(crate) fn sees(&self, owner: Option<&str>) -> bool {
        self.identity.as_ref().is_none_or(|identity| Some(identity.id.as_str()) == owner)
    }

    fn queue_of(&self, operation: &str) -> Result<&str, CallError> {
        let own = self.shared.queues.iter().find(|(pattern, _)| glob(pattern, operation));
        check_queue(own.map_or(QUEUE, |(_, queue)| queue))
    }

    /// The lane of a tenant.
    fn lane_of(&self, tenant: Option<&str>) -> u16 {
        let lanes = u64::from(self.engine().limits().lanes.max(1));
        let number = |tenant: &str| u64::from_str_radix(hash(&[tenant]).get(..16).unwrap_or_default(), 16);
        let lane = tenant.map_or(0, |tenant| number(tenant).unwrap_or_default() % lanes);
        u16::try_from(lane).unwrap_or_default()
    }

    fn id_of_key(&self, queue: &str, lane: u16, operation: &str, key: &str, tenant: Option<&str>) -> JobId {
        let owner = self.identity.as_ref().map(|identity| identity.id.as_str());
        // An empty text looks like a missing one, so a mark tells them apart.
        let marks = [(tenant, "tenant"), (owner, "identity")];
        let marks = marks.into_iter().filter(|(text, _)| *text == Some("")).map(|(_, mark)| mark);
        let texts = ["key", operation, tenant.unwrap_or_default(), owner.unwrap_or_default(), key];
        JobId::of_key(queue, lane, &texts.into_iter().chain(marks).collect::<Vec<_>>())
    }

    /// The record of a job, and the id that its key gives it.
    pub(crate) fn record(
        &self,
        operation: &str,
        input: Box<RawValue>,
        options: SubmitOptions,
        origin: &Origin<'_>,
    ) -> Result<JobRecord, CallError> {
        let limits = self.engine().limits();
        let (key, tenant) = (options.key.as_deref(), options.tenant.as_deref());
        let beside =
            Beside { operation, key, tenant, identity: self.identity.as_deref(), retry: options.retry.as_ref() };
        let bounds = if origin.trusted { limits.bounds().of_step() } else { limits.bounds() };
        bounds.check(&options.metadata, &beside)?;
        let invalid = |message: String| CallError::new(ErrorCode::ValidationError, message);
        check_id(operation).map_err(|error| invalid(error.to_string()))?;
        if options.key.as_deref().is_some_and(|key| key.trim().is_empty()) {
            let message = "the key is empty or blank, so all such submits would be one job: give the job a key of its own, or \
                           leave the key out";
            return Err(invalid(message.to_owned()));
        }
        let limit = limits.max_input;
        let size = input.get().len();
        if size > limit {
            let message = format!(
                "the input is {size} bytes as JSON, and the engine takes up to {limit}: keep what is large elsewhere, and \
                 submit where it is"
            );
            return Err(invalid(message));
        }
        let queue = self.queue_of(operation)?;
        let lane = origin.lane.unwrap_or_else(|| self.lane_of(options.tenant.as_deref()));
        let id = match (origin.key, &options.key) {
            (Some(key), _) => JobId::of_key(queue, lane, key),
            (None, Some(key)) => self.id_of_key(queue, lane, operation, key, options.tenant.as_deref()),
            (None, None) => JobId::random(queue, lane),
        };
        let now = self.engine().now();
        let own =
            || self.shared.retries.iter().find(|(pattern, _)| glob(pattern, operation)).map(|(_, own)| own.clone());
        let mut job = JobRecord::new(id, operation, input);
        if origin.key.is_some() || options.key.is_some() {
            job.nonce = format!("{:016x}", random::unique());
            job.digest = digest(&job.input);
        }
        job.identity = self.identity.as_deref().map(without_token);
        if let Some(parent) = origin.parent {
            (job.parent, job.parent_nonce) = (Some(parent.id.clone()), parent.nonce.clone());
        }
        (job.trusted, job.unknown) = (origin.trusted, origin.unknown);
        job.via = origin.via.map(str::to_owned);
        job.submitted = now;
        job.not_before = options.start.map(|start| start.millis(now)).filter(|start| *start > now);
        if job.not_before.is_some_and(|start| start - now > millis(LONGEST)) {
            return Err(too_late(operation));
        }
        job.retention = options.retention_millis();
        // Without either, the worker uses the policy of the operation's spec.
        job.retry = options.retry.or_else(own);
        let all = job.retry.as_ref().or(origin.retry).and_then(|policy| policy.deadline);
        let all = all.map(|all| job.not_before.unwrap_or(now).saturating_add(all));
        job.deadline = match (options.deadline.map(|deadline| deadline.millis(now)), all) {
            // The deadline of a step is inherited from its job, so the step's own limit counts as well.
            (Some(deadline), Some(all)) if origin.trusted => Some(deadline.min(all)),
            (deadline, all) => deadline.or(all),
        };
        (job.key, job.tenant, job.metadata) = (options.key, options.tenant, options.metadata);
        Ok(job)
    }

    /// Submits a job; all public methods lead here.
    pub(super) async fn put(
        &self,
        operation: &str,
        input: Box<RawValue>,
        options: SubmitOptions,
        origin: Origin<'_>,
    ) -> Result<AnyJob, CallError> {
        let job = self.record(operation, input, options, &origin);
        self.put_record(job.map_err(|error| error.with_operation(operation.to_owned()))?).await
    }

    /// Submits the job of a record.
    pub(crate) async fn put_record(&self, job: JobRecord) -> Result<AnyJob, CallError> {
        self.put_or_known(job).await.map(|(job, _)| job)
    }

    /// Submits the job of a record, and returns the stored one if it was submitted before.
    pub(super) async fn put_or_known(&self, mut job: JobRecord) -> Result<(AnyJob, Option<Stored>), CallError> {
        let operation = job.operation.clone();
        let named = |error: CallError| error.with_operation(operation.clone());
        let span = tracing::debug_span!(
            "submit",
            "otel.kind" = "producer",
            operation,
            job = job.id.as_str(),
            trace_id = tracing::field::Empty,
            span_id = tracing::field::Empty,
            parent_id = tracing::field::Empty,
        );
        continue_trace(&span, &mut job.metadata);
        let known = self.engine().submit(&job).instrument(span).await.map_err(named)?;
        if let Some(known) = &known
            && (known.digest() != job.digest || known.operation() != job.operation)
        {
            return Err(named(JobError::Conflict { job: job.id }.into()));
        }
        meter::submitted(job.id.queue(), known.is_none());
        Ok((AnyJob::known(self.clone(), job.id, known.is_none()), known))
    }
}

/// The identity of a job, without its token: no engine stores tokens, even if it keeps records unchanged.
fn without_token(identity: &Identity) -> Identity {
    let mut kept = Identity::new(&identity.id);
    kept.scopes.clone_from(&identity.scopes);
    kept.resources.clone_from(&identity.resources);
    kept
}

/// Checks the name of a queue: in an engine, other texts may have a meaning, such as wildcards.
pub(super) fn check_queue(name: &str) -> Result<&str, CallError> {
    if is_queue(name) {
        return Ok(name);
    }
    let name = name.escape_debug();
    let message = format!("`{name}` is no name of a queue: write 1 to 64 lower-case letters, digits, `_` and `-`");
    Err(CallError::new(ErrorCode::ValidationError, message))
}

impl fmt::Debug for Jobs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine().name();
        f.debug_struct("Jobs").field("engine", &engine).field("queues", &self.queues()).finish_non_exhaustive()
    }
}
