//! The jobs that this process has.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Subject;

use crate::durable::JobId;

/// A job that was delivered to this process and that it has not given back.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// Where its acknowledgements go. All that count in it are the stream, the consumer and the sequence: those of an
    /// earlier delivery of the message hold for a later one.
    pub(super) receipt: Subject,
    /// Its place in the stream.
    pub(super) sequence: u64,
    /// The place of the last that was kept of the job when it was delivered: the job itself, or its tries.
    pub(super) last: u64,
    /// How often the server had delivered it then.
    pub(super) delivered: u64,
    /// Where the submitter hears of its end.
    pub(super) note: Option<String>,
    /// When the lease began for the last time.
    pub(super) since: Instant,
}

/// All of them.
#[derive(Default)]
pub(super) struct Held {
    jobs: Mutex<HashMap<JobId, Lease>>,
}

impl Held {
    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Lease>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, id: JobId, lease: Lease) {
        self.jobs().insert(id, lease);
    }

    /// The lease that a delivery knows by its receipt; none if the job was delivered again since then.
    pub(super) fn get(&self, id: &JobId, receipt: &str) -> Option<Lease> {
        self.jobs().get(id).filter(|lease| lease.receipt.as_str() == receipt).cloned()
    }

    pub(super) fn remove(&self, id: &JobId, receipt: &str) {
        let mut jobs = self.jobs();
        if jobs.get(id).is_some_and(|lease| lease.receipt.as_str() == receipt) {
            jobs.remove(id);
        }
    }

    pub(super) fn extended(&self, id: &JobId, since: Instant) {
        if let Some(lease) = self.jobs().get_mut(id) {
            lease.since = since;
        }
    }

    /// True if this process has the job, and its lease is not over, nor about to be: the server counts from when it sent
    /// the job, which is a little earlier.
    pub(super) fn has(&self, id: &JobId, lease: Duration) -> bool {
        self.jobs().get(id).is_some_and(|held| held.since.elapsed() < lease * 3 / 4)
    }

    /// How many jobs of a queue this process has.
    pub(super) fn count(&self, queue: &str) -> usize {
        self.jobs().keys().filter(|id| id.queue() == queue).count()
    }
}
