//! The trait of engines: they store jobs and hand them out to workers.
//!
//! An engine stores records and hands them out; it knows no operations. What all engines have in common is above it:
//! attempts, back-off, deadlines, steps, schedules, and the typed interfaces. So an engine has few promises to keep:
//!
//! - **One submit of an id wins.** [`submit`](Engine::submit) of a known id changes nothing and returns the stored job,
//!   even if it has ended and is still kept.
//! - **One ending wins.** A job ends once: by [`end`](Engine::end) or by [`close`](Engine::close), whichever is first.
//! - **A job is with one worker at a time**, as long as that worker [extends](Engine::extend) its lease. When the lease
//!   has expired, the job is delivered again.
//! - **Nothing that was acknowledged is lost**, as far as the engine's own documentation promises.
//!
//! Names of queues have 1 to 64 lower-case letters, digits, `_` and `-`, which is checked above the engine. Names of
//! steps and of schedules are any text.
//!
//! Times are milliseconds since the Unix epoch by the engine's own clock ([`now`](Engine::now)), so that the clocks of
//! submitters and workers do not matter. Every error means a failure of the engine or of the connection to it; the
//! caller may retry.
//!
//! ```
//! use ops_runtime::durable::engine::Engine;
//! use ops_runtime::durable::{InMemory, Jobs};
//!
//! let engine = InMemory::new();
//! assert_eq!(engine.name(), "in-process");
//! let jobs = Jobs::new(engine);
//! # let _ = jobs;
//! ```

use std::time::Duration;

use crate::durable::bounds::Bounds;
use crate::durable::id::JobId;
use crate::durable::record::{Ended, JobRecord, ScheduleRecord, Stored, Tries};
use crate::registry::Progress;
use crate::{BoxFuture, BoxStream, CallError};

/// The result of a request to an engine.
pub type EngineResult<'a, T> = BoxFuture<'a, Result<T, CallError>>;

/// Stores jobs, and hands them out to workers.
pub trait Engine: Send + Sync + 'static {
    /// Name of the engine in logs and metrics, such as `in-process`.
    fn name(&self) -> &'static str;

    /// The limits of the engine. They do not change.
    fn limits(&self) -> EngineLimits;

    /// Milliseconds since the Unix epoch by the engine's clock.
    ///
    /// An engine on a server keeps the offset of the server's clock to [`Instant`](std::time::Instant).
    fn now(&self) -> u64;

    /// Stores a job unless its id is known. Returns `None` if the job is new, otherwise the stored job.
    ///
    /// A job with `not_before` is not delivered before that time. An engine repeats a submit whose outcome it does not
    /// know. The repetition may then find its own job, and returns it.
    fn submit<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, Option<Stored>>;

    /// Reads a job. `None` if it is unknown, or if its retention has expired.
    fn read<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>>;

    /// Reads a job that is known to exist, such as one that the caller has submitted.
    ///
    /// An engine that may not show acknowledged writes at once retries before it returns `None`. The default is
    /// [`read`](Self::read), which also takes ids of unknown origin.
    fn read_known<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        self.read(id)
    }

    /// Waits until a job has ended, for at most `at_most`, and returns it.
    ///
    /// Returns at once if the job has ended or is unknown. After `at_most` it returns the job as it is then.
    fn wait<'a>(&'a self, id: &'a JobId, at_most: Duration) -> EngineResult<'a, Option<Stored>>;

    /// True if a worker runs the job now, as far as workers can be asked.
    fn is_running<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool>;

    /// Ends a run of a job from outside of a worker: cancels it, or ends it at its deadline.
    ///
    /// The run is that of `end`: the open job has its [`submitted`](Ended::submitted) and its [`nonce`](Ended::nonce).
    /// The caller read the job a while ago, and it may have been retried or submitted again since. Returns `false` if
    /// the run has ended already or is unknown. If it has ended, this removes whatever is still stored of it beside its
    /// ending. Workers learn of it by [`closed`](Engine::closed).
    fn close<'a>(&'a self, id: &'a JobId, end: &'a Ended) -> EngineResult<'a, bool>;

    /// The next jobs of a queue: at least one, or none after `at_most`; never more than `most`.
    ///
    /// Takes from each lane of the queue in turn, so that the jobs of a tenant delay only those of the same lane. Never
    /// returns a job that has ended: an engine whose deliveries may be late checks that first if a job was delivered
    /// before.
    fn pull<'a>(&'a self, queue: &'a str, most: usize, at_most: Duration) -> EngineResult<'a, Vec<Delivery>>;

    /// Gives back the jobs of a queue that were sent to this process and that no worker has got by
    /// [`pull`](Self::pull). Returns when the engine has received everything that was sent so far: then the process may
    /// end. Jobs that were not pulled do not count as delivered.
    ///
    /// A worker that pulls no more calls this, and again when its last job has ended. Other workers of the process may
    /// go on pulling. The default does nothing, for engines that send only what is pulled and that wait for each
    /// response.
    fn release<'a>(&'a self, queue: &'a str) -> EngineResult<'a, ()> {
        let _ = queue;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Renews the lease of a delivery. Returns `false` if the worker has lost the job: it has ended, even if it was
    /// retried or submitted again since, or its lease has expired and another worker may have it.
    fn extend<'a>(&'a self, delivery: &'a Delivery) -> EngineResult<'a, bool>;

    /// Ends a job, and keeps the ending for its [`retention`](Ended::retention); a dead letter is kept until it is
    /// retried or discarded. Returns `false` if it has another ending already, which is kept, or had one before it was
    /// retried or submitted again: a result never becomes that of a later run.
    fn end<'a>(&'a self, delivery: &'a Delivery, end: &'a Ended) -> EngineResult<'a, bool>;

    /// Stores the tries of a job, and delivers it again after that time. Does nothing if the worker has lost the job.
    ///
    /// This is also how a job is given back that was not run: then [`Tries::passes`] has grown instead of
    /// [`Tries::attempts`].
    fn again<'a>(&'a self, delivery: &'a Delivery, tries: &'a Tries, after: Duration) -> EngineResult<'a, ()>;

    /// The ids of jobs of a queue that are [closed](Engine::close) from now on. May lose some: a worker also notices by
    /// [`extend`](Engine::extend).
    fn closed<'a>(&'a self, queue: &'a str) -> EngineResult<'a, BoxStream<'static, JobId>>;

    /// Sends a progress report to the streams of [`progress`](Engine::progress). It may be lost, and is not stored.
    fn tell<'a>(&'a self, id: &'a JobId, progress: &'a Progress) -> EngineResult<'a, ()>;

    /// The progress reports of a job from now on. The stream need not end with the job.
    fn progress<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, BoxStream<'static, Progress>>;

    /// The stored result of a step of a job, as JSON. `None` if there is none yet.
    fn step<'a>(&'a self, id: &'a JobId, name: &'a str) -> EngineResult<'a, Option<String>>;

    /// Stores the result of a step unless there is one; returns the stored result. `name` is any text.
    fn keep_step<'a>(
        &'a self,
        id: &'a JobId,
        name: &'a str,
        value: &'a str,
        retention: Duration,
    ) -> EngineResult<'a, String>;

    /// Makes a job that failed, or a dead letter, an open job again with the same id: `job` replaces it, without tries.
    /// It is marked as [`retried`](JobRecord::retried), and its submit time is later than before.
    ///
    /// Returns `false` if the job has another state (by now). Of several concurrent calls of this and of
    /// [`discard`](Engine::discard), one returns `true`.
    fn retry<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, bool>;

    /// Removes a job that failed, a dead letter, or a job that was cancelled, and frees its id. Returns `false` if the
    /// job has another state.
    fn discard<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool>;

    /// Stores a schedule under its name if the stored one is still `known`; `None` if there must be none.
    ///
    /// Returns `false` if another is stored by now: of several concurrent calls, one returns `true`. An engine only
    /// stores schedules. Workers submit the due jobs with `not_before`, under ids made of the name and the time.
    fn keep_schedule<'a>(
        &'a self,
        schedule: &'a ScheduleRecord,
        known: Option<&'a ScheduleRecord>,
    ) -> EngineResult<'a, bool>;

    /// Removes a schedule. Returns `false` if there is none with the name.
    fn remove_schedule<'a>(&'a self, name: &'a str) -> EngineResult<'a, bool>;

    /// All schedules, in the order of their names.
    fn schedules(&self) -> EngineResult<'_, Vec<ScheduleRecord>>;

    /// The queues for which something is stored, in the order of their names.
    fn queues(&self) -> EngineResult<'_, Vec<String>>;

    /// Jobs of a queue in an order of the engine's own: at most `most`, beginning at `after`, which is the
    /// [`JobPage::next`] of the page before.
    ///
    /// Jobs that change while they are listed may be missing.
    fn list<'a>(
        &'a self,
        queue: &'a str,
        what: Listed,
        after: Option<&'a str>,
        most: usize,
    ) -> EngineResult<'a, JobPage>;

    /// Counts the jobs of a queue, by state.
    fn stats<'a>(&'a self, queue: &'a str) -> EngineResult<'a, QueueStats>;
}

/// A job that was delivered to a worker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delivery {
    /// The job.
    pub job: JobRecord,
    /// How often the job was delivered, including this time. Deliveries that the engine itself took back before a
    /// worker had them do not count, as far as it could store that.
    ///
    /// The deliveries that [`tries`](Self::tries) does not explain are those whose worker died or lost its lease:
    /// `deliveries - 1 - attempts - passes`.
    pub deliveries: u64,
    /// The results of the earlier tries.
    pub tries: Tries,
    /// The engine's own id of the delivery.
    pub receipt: String,
}

impl Delivery {
    /// The first delivery of a job.
    pub fn new(job: JobRecord, receipt: impl Into<String>) -> Self {
        Self { job, deliveries: 1, tries: Tries::default(), receipt: receipt.into() }
    }

    /// Sets how often the job was delivered, including this time, and the results of the earlier tries.
    #[must_use]
    pub fn with_tries(self, deliveries: u64, tries: Tries) -> Self {
        Self { deliveries, tries, ..self }
    }
}

/// The limits of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineLimits {
    /// Number of lanes of a queue. A tenant is always in the same lane. All processes of a system use the same number.
    pub lanes: u16,
    /// How long a worker keeps a job without [extending](Engine::extend) its lease.
    pub lease: Duration,
    /// Maximum size in bytes of an input as JSON.
    pub max_input: usize,
    /// Maximum size in bytes of a result as JSON.
    pub max_result: usize,
}

impl EngineLimits {
    /// Size limits of stored errors and metadata.
    pub(super) fn bounds(&self) -> Bounds {
        Bounds::beside(self.max_input.max(self.max_result))
    }

    /// 16 lanes, a lease of 30 seconds, inputs and results of up to 512 KiB.
    pub const DEFAULT: Self =
        Self { lanes: 16, lease: Duration::from_secs(30), max_input: 512 * 1024, max_result: 512 * 1024 };

    /// Sets the number of lanes; at least one.
    #[must_use]
    pub const fn with_lanes(self, lanes: u16) -> Self {
        Self { lanes: if lanes == 0 { 1 } else { lanes }, ..self }
    }

    /// Sets the lease.
    #[must_use]
    pub const fn with_lease(self, lease: Duration) -> Self {
        Self { lease, ..self }
    }

    /// Sets the maximum size in bytes of an input as JSON.
    #[must_use]
    pub const fn with_max_input(self, bytes: usize) -> Self {
        Self { max_input: bytes, ..self }
    }

    /// Sets the maximum size in bytes of a result as JSON.
    #[must_use]
    pub const fn with_max_result(self, bytes: usize) -> Self {
        Self { max_result: bytes, ..self }
    }
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// The lists of jobs of a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Listed {
    /// Jobs that wait for a worker or for the next attempt, and running jobs.
    Due,
    /// Jobs that start later.
    Delayed,
    /// Jobs that have a result, have failed with an error that is not retried, or were cancelled, while they are kept.
    Ended,
    /// Dead letters.
    Dead,
}

/// A page of a list of jobs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<(JobId, Stored)>,
    /// Where the next page begins. `None` if this is the last page.
    pub next: Option<String>,
}

impl JobPage {
    /// A page of these jobs, and where the next one begins.
    pub fn new(jobs: Vec<(JobId, Stored)>, next: Option<String>) -> Self {
        Self { jobs, next }
    }
}

/// The numbers of jobs in a queue, by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueStats {
    /// Number of jobs that have not ended: waiting, delayed and running.
    pub open: u64,
    /// Number of open jobs that were delivered to a worker.
    pub running: u64,
    /// Number of dead letters.
    pub dead: u64,
    /// How long ago the oldest open job could have started. `None` if no open job is due.
    pub oldest: Option<Duration>,
}

impl QueueStats {
    /// Makes the counts of a queue.
    pub const fn new(open: u64, running: u64, dead: u64) -> Self {
        Self { open, running, dead, oldest: None }
    }

    /// Sets how long ago the oldest open job could have started.
    #[must_use]
    pub const fn with_oldest(self, oldest: Option<Duration>) -> Self {
        Self { oldest, ..self }
    }
}
