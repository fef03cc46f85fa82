//! What an engine is: the storage of jobs, and who gets them when.
//!
//! An engine keeps records and hands them out; it knows no operations. What is common to all engines is above it:
//! attempts, back-off, deadlines, steps, schedules, and the typed faces. So an engine has few promises to keep:
//!
//! - **One submit of an id wins.** [`submit`](Engine::submit) of an id that is known, also of a job that has ended and
//!   is still kept, changes nothing and returns what is there.
//! - **One ending wins.** A job ends once: by [`end`](Engine::end) or by [`close`](Engine::close), whichever is first.
//! - **A job is with one worker at a time**, as long as that worker [extends](Engine::extend) its lease. After the lease
//!   the job is delivered again.
//! - **Nothing that was acknowledged is lost**, as far as the engine's own documentation promises.
//!
//! Queues are named by 1 to 64 lower-case letters, digits, `_` and `-`, which is checked above the engine. Names of steps and of
//! schedules are any text.
//!
//! Times are milliseconds since the Unix epoch by the engine's own clock ([`now`](Engine::now)), so that the clocks of
//! submitters and workers do not matter. Every error is one of the engine or of the way to it; the caller may try again.
//!
//! ```
//! use ops_runtime::durable::engine::Engine;
//! use ops_runtime::durable::{InProcess, Jobs};
//!
//! let engine = InProcess::new();
//! assert_eq!(engine.name(), "in-process");
//! let jobs = Jobs::new(engine);
//! # let _ = jobs;
//! ```

use std::time::Duration;

use crate::durable::bounds::Bounds;
use crate::durable::id::JobId;
use crate::durable::record::{DeadLetter, Ended, JobRecord, ScheduleRecord, Stored, Tries};
use crate::registry::Progress;
use crate::{BoxFuture, BoxStream, CallError};

/// The result of a request to an engine.
pub type EngineResult<'a, T> = BoxFuture<'a, Result<T, CallError>>;

/// Keeps jobs, and hands them out to workers.
pub trait Engine: Send + Sync + 'static {
    /// Name of the engine in logs and metrics, such as `in-process`.
    fn name(&self) -> &'static str;

    /// The limits of the engine. They do not change.
    fn limits(&self) -> EngineLimits;

    /// Milliseconds since the Unix epoch by the engine's clock.
    ///
    /// An engine on a server keeps the offset of the server's clock against [`Instant`](std::time::Instant).
    fn now(&self) -> u64;

    /// Keeps a job unless its id is known. Returns `None` if the job is new, otherwise what is there.
    ///
    /// A job with `not_before` is not delivered before that time. An engine repeats a submit whose outcome it does not
    /// know: the repetition may then meet its own job, and returns that.
    fn submit<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, Option<Stored>>;

    /// What is kept of a job. `None` if it is unknown, or if its retention is over.
    fn read<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>>;

    /// What is kept of a job that the caller has reason to know, such as one that it submitted.
    ///
    /// An engine that may not show at once what was acknowledged asks again before it says `None`. By default
    /// [`read`](Self::read), which is also for ids that anybody may have made up.
    fn read_known<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        self.read(id)
    }

    /// Waits until a job has ended, for at most `at_most`, and returns what is kept of it then.
    ///
    /// Returns at once for a job that has ended or is unknown. After `at_most` it returns the job as it is then.
    fn wait<'a>(&'a self, id: &'a JobId, at_most: Duration) -> EngineResult<'a, Option<Stored>>;

    /// True if a worker runs the job now, as far as workers can be asked.
    fn is_running<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool>;

    /// Ends a job from outside of a worker: cancels it, or gives it up at its deadline.
    ///
    /// Returns `false` if it has ended already or is unknown. If it has ended, this removes what is still stored of it beside its
    /// ending. Workers hear of it by [`closed`](Engine::closed).
    fn close<'a>(&'a self, id: &'a JobId, end: &'a Ended) -> EngineResult<'a, bool>;

    /// The next jobs of a queue: at least one, or none after `at_most`; never more than `most`.
    ///
    /// Takes from each lane of the queue in turn, so that the jobs of a tenant hold up only those of the same lane. Never returns a job
    /// that has ended: an engine whose deliveries may be late reads that first for a job that was delivered before.
    fn pull<'a>(&'a self, queue: &'a str, most: usize, at_most: Duration) -> EngineResult<'a, Vec<Delivery>>;

    /// Gives back the jobs of a queue that were sent to this process and that no worker has got by [`pull`](Self::pull), and returns
    /// when the engine has all that was told so far: then the process may end. What was not pulled counts as no delivery.
    ///
    /// A worker that pulls no more calls this, and again when its last job has ended. Others of the process may go on pulling.
    /// Does nothing by default, for engines that send no more than what is pulled and that wait for each answer.
    fn release<'a>(&'a self, queue: &'a str) -> EngineResult<'a, ()> {
        let _ = queue;
        Box::pin(std::future::ready(Ok(())))
    }

    /// Starts the lease of a delivery anew. Returns `false` if the worker has lost the job: it has ended, or its lease is
    /// over and another may have it.
    fn extend<'a>(&'a self, delivery: &'a Delivery) -> EngineResult<'a, bool>;

    /// Ends a job, and keeps the ending for its [`retention`](Ended::retention); a dead letter until it is retried or
    /// discarded. Returns `false` if it had ended otherwise, which is kept.
    fn end<'a>(&'a self, delivery: &'a Delivery, end: &'a Ended) -> EngineResult<'a, bool>;

    /// Keeps what the tries came to, and delivers the job again after that time.
    ///
    /// Also how a job is given back that was not tried: then [`Tries::passes`] has grown in place of
    /// [`Tries::attempts`].
    fn again<'a>(&'a self, delivery: &'a Delivery, tries: &'a Tries, after: Duration) -> EngineResult<'a, ()>;

    /// The ids of jobs of a queue that were [closed](Engine::close), from now on. May lose some: a worker also notices by
    /// [`extend`](Engine::extend).
    fn closed<'a>(&'a self, queue: &'a str) -> EngineResult<'a, BoxStream<'static, JobId>>;

    /// Sends a report of progress to the streams of [`progress`](Engine::progress). It may be lost, and is not kept.
    fn tell<'a>(&'a self, id: &'a JobId, progress: &'a Progress) -> EngineResult<'a, ()>;

    /// What is told about a job from now on. The stream need not end with the job.
    fn progress<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, BoxStream<'static, Progress>>;

    /// What a step of a job gave, as JSON. `None` if it has given nothing yet.
    fn step<'a>(&'a self, id: &'a JobId, name: &'a str) -> EngineResult<'a, Option<String>>;

    /// Keeps what a step gave, unless there is something; returns what is kept. `name` is any text.
    fn keep_step<'a>(
        &'a self,
        id: &'a JobId,
        name: &'a str,
        value: &'a str,
        retention: Duration,
    ) -> EngineResult<'a, String>;

    /// Dead letters of a queue in the order of their ids, those after an id: at most `most`.
    fn dead_letters<'a>(
        &'a self,
        queue: &'a str,
        after: Option<&'a JobId>,
        most: usize,
    ) -> EngineResult<'a, Vec<DeadLetter>>;

    /// Makes a dead letter a job again, in the same id, with `job` in the place of what it was and without tries.
    ///
    /// Returns `false` if there is no such dead letter (any more). Of several at once, one gets `true`.
    fn retry<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, bool>;

    /// Removes a dead letter, and frees its id. Returns `false` if there is no such dead letter.
    fn discard<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool>;

    /// Keeps a schedule under its name, in the place of `known`, which was read; `None` if the name must be free.
    ///
    /// Returns `false` if another is kept by now: of several at once, one gets `true`. An engine only keeps them: workers submit what is due as jobs with `not_before`, under ids made of the name and the
    /// time.
    fn keep_schedule<'a>(
        &'a self,
        schedule: &'a ScheduleRecord,
        known: Option<&'a ScheduleRecord>,
    ) -> EngineResult<'a, bool>;

    /// Removes a schedule. Returns `false` if there is none of the name.
    fn remove_schedule<'a>(&'a self, name: &'a str) -> EngineResult<'a, bool>;

    /// All schedules, in the order of their names.
    fn schedules(&self) -> EngineResult<'_, Vec<ScheduleRecord>>;

    /// The queues of which something is kept, in the order of their names.
    fn queues(&self) -> EngineResult<'_, Vec<String>>;

    /// Jobs of a queue in an order of the engine's own: at most `most`, from `after` on, which is [`JobPage::next`] of the
    /// page before.
    ///
    /// Jobs that change while they are listed may be missing.
    fn list<'a>(
        &'a self,
        queue: &'a str,
        what: Listed,
        after: Option<&'a str>,
        most: usize,
    ) -> EngineResult<'a, JobPage>;

    /// How many jobs of a queue there are.
    fn stats<'a>(&'a self, queue: &'a str) -> EngineResult<'a, QueueStats>;
}

/// A job in the hands of a worker.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Delivery {
    /// The job.
    pub job: JobRecord,
    /// How often the job was delivered, this time included. Deliveries that the engine itself took back before a worker
    /// had them do not count.
    ///
    /// What is not explained by [`tries`](Self::tries) are deliveries whose worker died or lost its lease:
    /// `deliveries - 1 - attempts - passes`.
    pub deliveries: u64,
    /// What the tries before came to.
    pub tries: Tries,
    /// What the engine knows the delivery by.
    pub receipt: String,
}

impl Delivery {
    /// The first delivery of a job.
    pub fn new(job: JobRecord, receipt: impl Into<String>) -> Self {
        Self { job, deliveries: 1, tries: Tries::default(), receipt: receipt.into() }
    }

    /// Sets how often the job was delivered, this time included, and what the tries before came to.
    #[must_use]
    pub fn with_tries(self, deliveries: u64, tries: Tries) -> Self {
        Self { deliveries, tries, ..self }
    }
}

/// The limits of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineLimits {
    /// How many lanes a queue has. A tenant is always in one of them; the processes of a system agree on the number.
    pub lanes: u16,
    /// How long a worker has a job without [extending](Engine::extend) its lease.
    pub lease: Duration,
    /// Maximum size in bytes of an input as JSON.
    pub max_input: usize,
    /// Maximum size in bytes of a result as JSON.
    pub max_result: usize,
}

impl EngineLimits {
    /// How much is kept of errors and metadata.
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

/// Which jobs of a queue are listed. Dead letters have a list of their own: [`Engine::dead_letters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Listed {
    /// Those that wait for a worker or an attempt, and those that run.
    Due,
    /// Those that start later.
    Delayed,
    /// Those with a result, with an error that is not tried again, and those that were cancelled, while they are kept.
    Ended,
}

/// Some jobs of a list.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct JobPage {
    /// The jobs.
    pub jobs: Vec<(JobId, Stored)>,
    /// Where the next page begins. `None` if there is none.
    pub next: Option<String>,
}

impl JobPage {
    /// A page of these jobs, and where the next one begins.
    pub fn new(jobs: Vec<(JobId, Stored)>, next: Option<String>) -> Self {
        Self { jobs, next }
    }
}

/// How many jobs of a queue there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct QueueStats {
    /// Jobs that have not ended: waiting, delayed and running.
    pub open: u64,
    /// Those of them that are with a worker.
    pub running: u64,
    /// Dead letters.
    pub dead: u64,
    /// How long ago the oldest open job could have started. `None` if no open job is due.
    pub oldest: Option<Duration>,
}

impl QueueStats {
    /// These numbers.
    pub const fn new(open: u64, running: u64, dead: u64) -> Self {
        Self { open, running, dead, oldest: None }
    }

    /// Sets how long ago the oldest open job could have started.
    #[must_use]
    pub const fn with_oldest(self, oldest: Option<Duration>) -> Self {
        Self { oldest, ..self }
    }
}
