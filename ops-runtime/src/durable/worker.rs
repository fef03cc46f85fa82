//! Workers, which run jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Registry;
use crate::durable::attempt::{Attempted, Signals, Terms};
use crate::durable::engine::Delivery;
use crate::durable::id::JobId;
use crate::durable::jobs::{Jobs, check_queue};
use crate::durable::lease::Lease;
use crate::durable::log::Unknown;
use crate::durable::schedule;
use crate::durable::scope::{Gate, Scope};
use crate::model::lock::lock;

/// How long an engine is asked for jobs at a time. A worker that stops waits for it, so that no job is lost in between.
const PULL: Duration = Duration::from_secs(1);
/// How long [`WorkerHandle::stop_within`] gives jobs back after its limit.
const GIVE_BACK: Duration = Duration::from_secs(5);
/// How often the gauges of a queue are set.
#[cfg(feature = "metrics")]
const MEASURE: Duration = Duration::from_secs(15);
/// The shortest and the longest delay after an error of the engine.
const BACK_OFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Runs jobs with the operations of a registry.
///
/// Jobs of operations that the registry does not have are left to other workers, so that an older version may run
/// beside a newer one. The log names each such operation once.
///
/// ```
/// # use ops_runtime::Registry;
/// # use ops_runtime::durable::{Jobs, Worker};
/// # async fn example(registry: Registry) {
/// let worker = Worker::new(Jobs::in_memory(), registry).with_max_running(8).start();
/// // When the process is asked to end:
/// worker.stop().await;
/// # }
/// ```
#[derive(Debug)]
#[must_use = "a worker does nothing until it is started"]
pub struct Worker {
    jobs: Jobs,
    registry: Registry,
    queues: BTreeSet<String>,
    max_running: usize,
    max_waiting: usize,
}

impl Worker {
    /// A worker for all queues of these jobs.
    pub fn new(jobs: Jobs, registry: Registry) -> Self {
        let queues = jobs.queues().into_iter().collect();
        Self { jobs, registry, queues, max_running: 64, max_waiting: 1024 }
    }

    /// Takes jobs of these queues only. An invalid name is skipped, with an error in the log.
    pub fn with_queues<Q: Into<String>>(self, queues: impl IntoIterator<Item = Q>) -> Self {
        Self { queues: queues.into_iter().map(Into::into).collect(), ..self }
    }

    /// Sets how many jobs of a queue run at a time; 64 by default. A job that waits for a step does not count.
    pub fn with_max_running(self, jobs: usize) -> Self {
        Self { max_running: jobs, ..self }
    }

    /// Sets how many jobs of a queue wait for steps at a time; 1,024 by default. Beyond, a job is given back to the
    /// queue, and starts again when its turn comes.
    pub fn with_max_waiting(self, jobs: usize) -> Self {
        Self { max_waiting: jobs, ..self }
    }

    /// Starts taking jobs.
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn start(self) -> WorkerHandle {
        let Self { jobs, registry, queues, max_running, max_waiting } = self;
        let tasks = TaskTracker::new();
        let (draining, signals) = (CancellationToken::new(), Signals::default());
        for queue in queues {
            if let Err(error) = check_queue(&queue) {
                tracing::error!(%error, "a queue is left out");
                continue;
            }
            let mut gate = Gate::new(max_running, max_waiting);
            gate.draining = draining.clone();
            let puller = Arc::new(Puller {
                jobs: jobs.clone(),
                registry: registry.clone(),
                queue,
                gate: Arc::new(gate),
                running: Mutex::default(),
                number: AtomicU64::new(0),
                unknown: Unknown::default(),
                signals: signals.clone(),
                tasks: TaskTracker::new(),
            });
            #[cfg(feature = "metrics")]
            tasks.spawn(measure(jobs.clone(), puller.queue.clone(), draining.clone()));
            tasks.spawn(puller.clone().hear());
            tasks.spawn(puller.clone().hold());
            tasks.spawn(puller.work());
        }
        let (due, ended) = (schedule::submit_due(jobs), draining.clone());
        tasks.spawn(async move {
            tokio::select! {
                biased;
                () = ended.cancelled() => {}
                () = due => {}
            }
        });
        tasks.close();
        WorkerHandle { draining, signals, tasks }
    }
}

/// Sets the gauges of a queue, until the worker stops.
#[cfg(feature = "metrics")]
async fn measure(jobs: Jobs, queue: String, draining: CancellationToken) {
    let measure = async {
        loop {
            if let Err(error) = jobs.record_stats(&queue).await {
                tracing::debug!(%error, queue, "the queue was not measured");
            }
            tokio::time::sleep(MEASURE).await;
        }
    };
    draining.run_until_cancelled(measure).await;
}

/// A running worker.
///
/// Dropping it ends it like a crash: running handlers are dropped, and their jobs are delivered again when their leases
/// have expired.
#[must_use = "a worker that is dropped runs no more jobs"]
pub struct WorkerHandle {
    draining: CancellationToken,
    signals: Signals,
    tasks: TaskTracker,
}

impl WorkerHandle {
    /// Takes no more jobs, and returns when the running ones have ended. Jobs that wait for steps are given back, and
    /// so are those that were sent to this process and not begun. The process may end then.
    pub async fn stop(self) {
        self.draining.cancel();
        self.tasks.wait().await;
    }

    /// Like [`stop`](Self::stop), for as long as the limit. Then it drops the handlers that still run, and gives their
    /// jobs back, like [`stop_now`](Self::stop_now).
    ///
    /// This is for processes that are killed some time after they were asked to end. Choose a limit that leaves five
    /// seconds for giving the jobs back. This returns then even if the engine does not respond, or if a handler blocks its
    /// thread, and can't be dropped before it has ended: such a job runs again when its lease has expired, and has lost
    /// an attempt.
    ///
    /// ```
    /// # use std::time::Duration;
    /// # async fn example(worker: ops_runtime::durable::WorkerHandle) {
    /// // Of the 30 seconds that Kubernetes gives by default.
    /// worker.stop_within(Duration::from_secs(20)).await;
    /// # }
    /// ```
    pub async fn stop_within(self, limit: Duration) {
        self.draining.cancel();
        if tokio::time::timeout(limit, self.tasks.wait()).await.is_err() {
            // What is not given back by then ends with the handle, like in a crash.
            let _ = tokio::time::timeout(GIVE_BACK, self.stop_now()).await;
        }
    }

    /// Takes no more jobs, drops the running handlers, and gives their jobs back. These start again from their steps,
    /// at once and as the same attempt: whatever was not a step happens twice.
    pub async fn stop_now(self) {
        self.signals.stopped.cancel();
        self.stop().await;
    }
}

impl Drop for WorkerHandle {
    fn drop(&mut self) {
        self.draining.cancel();
        self.signals.killed.cancel();
    }
}

impl fmt::Debug for WorkerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerHandle").field("tasks", &self.tasks.len()).finish_non_exhaustive()
    }
}

/// Takes the jobs of a queue.
struct Puller {
    jobs: Jobs,
    registry: Registry,
    queue: String,
    gate: Arc<Gate>,
    /// The running jobs. Numbered, since a job whose lease was lost may be here twice.
    running: Mutex<BTreeMap<(JobId, u64), Running>>,
    number: AtomicU64,
    unknown: Unknown,
    signals: Signals,
    /// The tasks of the running jobs.
    tasks: TaskTracker,
}

impl Puller {
    /// Takes jobs until the worker drains, and returns when the last of them has ended.
    async fn work(self: Arc<Self>) {
        self.clone().pull().await;
        // At once, for other workers.
        self.release().await;
        self.tasks.close();
        self.tasks.wait().await;
        // The outcomes of the last jobs may not have arrived yet.
        self.release().await;
    }

    /// Gives back what was sent to this process and not taken by a worker. The process may end after this.
    async fn release(&self) {
        tokio::select! {
            biased;
            () = self.signals.killed.cancelled() => {}
            released = self.jobs.engine().release(&self.queue) => {
                if let Err(error) = released {
                    tracing::warn!(%error, queue = self.queue, "jobs that no worker took come again when their leases are over");
                }
            }
        }
    }

    async fn pull(self: Arc<Self>) {
        let mut failures = 0;
        while !self.gate.draining.is_cancelled() {
            let room = tokio::select! {
                biased;
                () = self.gate.draining.cancelled() => return,
                room = self.gate.room() => room,
            };
            let pulled = tokio::select! {
                biased;
                () = self.signals.killed.cancelled() => return,
                pulled = self.jobs.engine().pull(&self.queue, room, PULL) => pulled,
            };
            match pulled {
                Ok(deliveries) => {
                    failures = 0;
                    for delivery in deliveries {
                        let run = self.clone().run(delivery);
                        self.tasks.spawn(run);
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, queue = self.queue, "no jobs could be taken");
                    let wait = BACK_OFF.0.saturating_mul(2_u32.saturating_pow(failures)).min(BACK_OFF.1);
                    failures += 1;
                    tokio::select! {
                        biased;
                        () = self.gate.draining.cancelled() => return,
                        () = tokio::time::sleep(wait) => {}
                    }
                }
            }
        }
    }

    fn run(self: Arc<Self>, delivery: Delivery) -> impl Future<Output = ()> + Send {
        let lease = Arc::new(Lease::new(delivery));
        // Before the task runs, so that the next pull counts it.
        let place = self.gate.enter();
        let listed = (lease.delivery.job.id.clone(), self.number.fetch_add(1, Ordering::Relaxed));
        self.running().insert(listed.clone(), Running { lease: lease.clone(), looks: 0 });
        let listed = Listed { puller: self.clone(), job: listed };
        async move {
            let job = &lease.delivery.job;
            let spec = self.registry.spec(&job.operation);
            let spec = spec.as_deref();
            let terms = Terms::of(job, spec);
            let jobs = lease.jobs(&self.jobs);
            let scope = Arc::new(Scope::new(jobs, lease.clone(), terms.deadline, self.gate.clone()));
            let (signals, unknown) = (self.signals.clone(), &self.unknown);
            Attempted { registry: &self.registry, lease: &lease, spec, terms, scope, signals, unknown }.run().await;
            drop((listed, place));
        }
    }

    fn running(&self) -> MutexGuard<'_, BTreeMap<(JobId, u64), Running>> {
        lock(&self.running)
    }

    /// Has the leases of long jobs extended, until the last job has ended.
    async fn hold(self: Arc<Self>) {
        let every = Lease::look_every(&self.jobs.engine().limits());
        let mut over = std::pin::pin!(self.tasks.wait());
        loop {
            tokio::select! {
                biased;
                () = &mut over => return,
                () = tokio::time::sleep(every) => {}
            }
            let long: Vec<_> = self.running().values_mut().filter_map(Running::seen).collect();
            for lease in long {
                self.tasks.spawn(lease.hold(self.jobs.clone(), self.signals.killed.clone()));
            }
        }
    }

    /// Ends jobs that are closed, until the last job has ended.
    async fn hear(self: Arc<Self>) {
        let mut failures = 0;
        // Not as soon as the worker stops and runs nothing: its last request for jobs may still bring some.
        let mut over = std::pin::pin!(self.tasks.wait());
        loop {
            let listen = async {
                match self.jobs.engine().closed(&self.queue).await {
                    Ok(mut closed) => {
                        while let Some(id) = closed.next().await {
                            let own = (id.clone(), 0)..=(id, u64::MAX);
                            self.running().range(own).for_each(|(_, running)| running.lease.close());
                        }
                    }
                    Err(error) => tracing::warn!(%error, queue = self.queue, "cancellations are not heard"),
                }
                tokio::time::sleep(BACK_OFF.0.saturating_mul(2_u32.saturating_pow(failures)).min(BACK_OFF.1)).await;
            };
            tokio::select! {
                biased;
                () = &mut over => return,
                () = listen => failures += 1,
            }
        }
    }
}

/// A running job.
struct Running {
    lease: Arc<Lease>,
    /// How often the task that extends leases has seen it.
    looks: u8,
}

impl Running {
    /// The lease, if this is the second look.
    fn seen(&mut self) -> Option<Arc<Lease>> {
        self.looks = self.looks.saturating_add(1);
        (self.looks == 2).then(|| self.lease.clone())
    }
}

/// A job in the list of running jobs, until this is dropped.
struct Listed {
    puller: Arc<Puller>,
    job: (JobId, u64),
}

impl Drop for Listed {
    fn drop(&mut self) {
        let running = self.puller.running().remove(&self.job);
        if let Some(Running { lease, .. }) = running {
            lease.end();
        }
    }
}
