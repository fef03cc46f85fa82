//! What the suite needs to know of an engine.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use ops_runtime::Registry;
use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::{AnyJob, JobStatus, Jobs, RetryPolicy, SubmitOptions, Worker, WorkerHandle};

use crate::operations::{Probe, Work, named, registry};

/// The lease that engines have in the suite. A third of it is over before it is extended; a busy machine has the rest.
pub(crate) const LEASE: Duration = Duration::from_secs(4);
/// How many lanes the queues of engines with servers have in the suite.
pub(crate) const LANES: u16 = 2;
/// Maximum size of inputs and results in the suite.
pub(crate) const MAX_SIZE: usize = 64 * 1024;

/// An engine that is up, with its servers if it has any, without jobs.
pub(crate) trait Harness: Send + Sync + 'static {
    type Engine: Engine;

    /// Starts whatever the engine needs.
    fn start() -> impl Future<Output = Self> + Send;

    /// A way to the engine of a process's own: with the lease [`LEASE`] and inputs and results of up to [`MAX_SIZE`].
    fn engine(&self) -> impl Future<Output = Self::Engine> + Send;
}

/// An engine, the jobs of a submitter, and what the suite sees of handlers.
pub(crate) struct Set<H: Harness> {
    pub(crate) harness: H,
    pub(crate) jobs: Jobs,
    pub(crate) probe: Arc<Probe>,
}

impl<H: Harness> Set<H> {
    pub(crate) async fn start() -> Self {
        let harness = H::start().await;
        let jobs = jobs(&harness).await;
        Self { harness, jobs, probe: Arc::default() }
    }

    /// Jobs as another process has them.
    pub(crate) async fn others(&self) -> Jobs {
        jobs(&self.harness).await
    }

    pub(crate) fn registry(&self) -> Registry {
        registry(&self.probe)
    }

    /// A worker as another process has it.
    pub(crate) async fn worker(&self) -> WorkerHandle {
        self.worker_of(self.registry()).await
    }

    /// A worker that has taken jobs of each lane: a cluster that has just made them takes its time to choose who leads
    /// them, which is not to count for the deadline of a job.
    pub(crate) async fn warm_worker(&self) -> WorkerHandle {
        let worker = self.worker().await;
        let (mut jobs, mut lanes) = (Vec::new(), BTreeSet::new());
        // The tenant of a job gives its lane.
        while lanes.len() < usize::from(LANES) {
            let options = SubmitOptions::new().with_tenant(format!("warm-{}", jobs.len()));
            let job = self.jobs.submit::<Work>(named("warm"), options).await.unwrap();
            lanes.insert(job.id().lane());
            jobs.push(job);
        }
        for job in jobs {
            job.result().await.unwrap();
        }
        worker
    }

    pub(crate) async fn worker_of(&self, registry: Registry) -> WorkerHandle {
        Worker::new(self.others().await, registry).start()
    }

    /// Checks that nothing is left of the jobs so far: none is open, and no handler runs.
    pub(crate) async fn settled(&self) {
        for queue in self.jobs.queues() {
            for left in (0..300).rev() {
                let open = self.jobs.stats(&queue).await.unwrap().open;
                if open == 0 {
                    break;
                }
                assert!(left > 0, "{open} jobs of `{queue}` are open after all this time");
                pause(100).await;
            }
        }
        eventually("no handler is left", || self.probe.alive() == 0).await;
    }
}

async fn jobs(harness: &impl Harness) -> Jobs {
    Jobs::new(harness.engine().await)
        .with_queue("slow.*", "slow")
        .with_retry("test.patient", RetryPolicy::new(4).with_backoff(Duration::from_millis(20), Duration::from_secs(1)))
}

/// Options with so many attempts, 50 ms apart.
pub(crate) fn attempts(attempts: u32) -> SubmitOptions {
    SubmitOptions::new()
        .with_retry(RetryPolicy::new(attempts).with_backoff(Duration::from_millis(50), Duration::from_millis(50)))
}

/// Waits until a job has a status.
pub(crate) async fn reaches(job: &AnyJob, what: &str, is: impl Fn(&JobStatus) -> bool) -> JobStatus {
    let mut last = None;
    for _ in 0..1_500 {
        let status = job.status().await.unwrap();
        if is(&status) {
            return status;
        }
        last = Some(status);
        pause(20).await;
    }
    panic!("after 30 s still not {what}: {last:?}");
}

pub(crate) async fn is_running(job: &AnyJob) {
    reaches(job, "running", |status| matches!(status, JobStatus::Running { .. })).await;
}

pub(crate) async fn pause(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// Waits for a condition; the machine may be slow.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..3_000 {
        if condition() {
            return;
        }
        pause(10).await;
    }
    panic!("after 30 s still not: {what}");
}

/// Runs a case, which must not hang.
pub(crate) async fn limited(case: impl Future<Output = ()>) {
    tokio::time::timeout(Duration::from_secs(300), case).await.expect("the case hangs");
}
