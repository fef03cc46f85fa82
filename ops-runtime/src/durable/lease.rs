//! The lease of a delivered job, which a task of its own extends.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::{Mutex, Notify};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::durable::engine::{Delivery, EngineLimits};
use crate::durable::job::AnyJob;
use crate::durable::jobs::Jobs;
use crate::durable::parent::Parent;

/// A delivered job, and what ends its attempt: the job was closed, or its lease was lost.
///
/// The task that runs a handler does not extend the lease: a handler that is not polled for long, such as one in
/// `block_in_place`, would lose the job, and another worker would run the job beside it.
///
/// This does not help a handler that simply blocks its thread. A current-thread runtime has no other thread. In a
/// multi-thread runtime, the blocked thread may be the one that waits for the runtime's timers and sockets, and no other
/// thread is woken to do that: then no lease of the process is extended.
pub(super) struct Lease {
    pub(super) delivery: Delivery,
    is_closed: AtomicBool,
    is_lost: AtomicBool,
    /// True if the lease is not extended any more.
    is_over: AtomicBool,
    /// Wakes those that wait for one of these.
    changed: Notify,
    /// Locked while the lease is extended.
    extending: Mutex<()>,
}

impl Lease {
    pub(super) fn new(delivery: Delivery) -> Self {
        Self {
            delivery,
            is_closed: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
            changed: Notify::new(),
            extending: Mutex::new(()),
        }
    }

    /// How often a worker looks for jobs whose leases are to be extended. Those that it sees for the second time are.
    /// So a job that ends within this time has no such task, and any other has one before a third of its lease is over.
    pub(super) fn look_every(limits: &EngineLimits) -> Duration {
        (limits.lease / 6).max(Duration::from_millis(1))
    }

    /// The jobs as the identity of this one sees them.
    pub(super) fn jobs(&self, jobs: &Jobs) -> Jobs {
        // A worker takes all jobs of its queue, even if its own handle is restricted to an identity.
        jobs.with_identity(self.delivery.job.identity.clone())
    }

    /// The job was closed.
    pub(super) fn close(&self) {
        self.set(&self.is_closed);
    }

    /// Completes when the job was closed.
    pub(super) async fn closed(&self) {
        self.until(&self.is_closed).await;
    }

    /// True if the job has ended or may be another worker's.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Completes when the job has ended or may be another worker's.
    pub(super) async fn lost(&self) {
        self.until(&self.is_lost).await;
    }

    /// Ends the extending.
    pub(super) fn end(&self) {
        self.set(&self.is_over);
    }

    /// Ends the extending, and returns when no extension is in flight: one that arrives after the job was given back
    /// would take the job from its next worker.
    pub(super) async fn release(&self) {
        self.end();
        drop(self.extending.lock().await);
    }

    /// Extends the lease until it is over or lost, or the worker is dropped.
    pub(super) async fn hold(self: Arc<Self>, jobs: Jobs, killed: CancellationToken) {
        let _extending = self.extending.lock().await;
        tokio::select! {
            biased;
            () = killed.cancelled() => {}
            () = self.until(&self.is_over) => {}
            () = self.extend(&jobs) => {}
        }
    }

    /// Extends the lease every third of its time, until it is lost.
    async fn extend(&self, jobs: &Jobs) {
        let every = (jobs.engine().limits().lease / 3).max(Duration::from_millis(1));
        let mut gone = 0;
        loop {
            // From before the extension, which takes a while itself.
            let next = sleep(every);
            match jobs.engine().extend(&self.delivery).await {
                // The job of a step may be in another queue, whose servers may not respond now.
                Ok(true) => {
                    let _ = timeout(every, self.end_with_parent(jobs, &mut gone)).await;
                }
                Ok(false) => return self.set(&self.is_lost),
                // Perhaps no other worker has the job either. If one has, the first ending counts.
                Err(error) => {
                    let (job, operation) = (self.delivery.job.id.as_str(), &self.delivery.job.operation);
                    tracing::warn!(%error, job, operation, "the lease was not extended");
                }
            }
            next.await;
        }
    }

    /// Cancels a step whose job is gone, or was cancelled while no worker had the job. The handler is dropped as in any other
    /// cancellation.
    async fn end_with_parent(&self, jobs: &Jobs, gone: &mut u32) {
        let job = &self.delivery.job;
        if Parent::of(jobs.engine(), job).await.ends(gone)
            && let Err(error) = AnyJob::known(self.jobs(jobs), job.id.clone(), false).cancel().await
        {
            let (id, operation) = (job.id.as_str(), &job.operation);
            tracing::warn!(%error, job = id, operation, "a step of a cancelled job was not cancelled");
        }
    }

    fn set(&self, what: &AtomicBool) {
        what.store(true, Ordering::Release);
        self.changed.notify_waiters();
    }

    async fn until(&self, what: &AtomicBool) {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            // Before the value is read, so that no change is missed in between.
            changed.as_mut().enable();
            if what.load(Ordering::Acquire) {
                return;
            }
            changed.await;
        }
    }
}
