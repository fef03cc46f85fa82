//! The jobs that this process has.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use async_nats::Subject;

use crate::durable::JobId;
use crate::durable::record::JobRecord;

/// For how long it is at least known that a job was closed.
const CLOSED: Duration = Duration::from_secs(5);

/// A job that was delivered to this process and that it has not given back.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// Where its acknowledgements go. All that count in it are the stream, the consumer and the sequence: those of an
    /// earlier delivery of the message hold for a later one.
    pub(super) receipt: Subject,
    /// Its place in the stream.
    pub(super) sequence: u64,
    /// When the job was submitted: one that is submitted again, or retried, has another time.
    pub(super) submitted: u64,
    /// The place of the last that was kept of the job when it was delivered: the job itself, or its tries.
    pub(super) last: u64,
    /// How often the server has delivered it, as far as this process knows.
    pub(super) delivered: u64,
    /// Where the submitter hears of its end.
    pub(super) note: Option<String>,
    /// When the lease began for the last time.
    pub(super) since: Instant,
}

impl Lease {
    fn is_live(&self, lease: Duration) -> bool {
        self.since.elapsed() < lease / 4 * 3
    }
}

/// All of them.
#[derive(Default)]
pub(super) struct Held {
    jobs: Mutex<HashMap<JobId, Lease>>,
    closed: Mutex<Closed>,
}

/// The jobs that were closed a moment ago, and at which place their endings are. Some may be on their way to this process.
#[derive(Default)]
struct Closed {
    now: HashMap<JobId, u64>,
    before: HashMap<JobId, u64>,
    since: Option<Instant>,
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

    /// Forgets a job that was closed by an ending at a place. False if it was submitted again since then, and is here again.
    pub(super) fn close(&self, id: &JobId, end: u64) -> bool {
        let mut jobs = self.jobs();
        match jobs.get(id).map(|lease| lease.sequence < end) {
            Some(true) => drop(jobs.remove(id)),
            Some(false) => return false,
            None => {}
        }
        drop(jobs);
        let mut closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        if closed.since.is_none_or(|since| since.elapsed() > CLOSED) {
            closed.before = std::mem::take(&mut closed.now);
            closed.since = Some(Instant::now());
        }
        closed.now.insert(id.clone(), end);
        true
    }

    /// True if the job with this place was closed a moment ago.
    pub(super) fn is_closed(&self, id: &JobId, sequence: u64) -> bool {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        [&closed.now, &closed.before].iter().any(|closed| closed.get(id).is_some_and(|end| sequence < *end))
    }

    /// True if this process has the job, and its lease is not over, nor about to be: the server counts from when it sent
    /// the job, which is a little earlier.
    pub(super) fn has(&self, id: &JobId, lease: Duration) -> bool {
        self.jobs().get(id).is_some_and(|held| held.is_live(lease))
    }

    /// True if this process [has](Self::has) the job, which was delivered once more: that delivery counts no more than the one
    /// before. It may be a copy at another place, of a start that a server fired twice; a job that was submitted again is another.
    pub(super) fn came_again(&self, job: &JobRecord, sequence: u64, delivered: u64, lease: Duration) -> bool {
        let mut jobs = self.jobs();
        let is_same = |held: &&mut Lease| held.sequence == sequence || held.submitted == job.submitted;
        let Some(held) = jobs.get_mut(&job.id).filter(is_same).filter(|held| held.is_live(lease)) else { return false };
        if held.sequence == sequence {
            held.delivered = delivered;
        }
        true
    }

    /// How many jobs of a queue this process has. Those of a worker that was dropped are no longer its own when their leases
    /// are over.
    pub(super) fn count(&self, queue: &str, lease: Duration) -> usize {
        self.jobs().iter().filter(|(id, held)| id.queue() == queue && held.since.elapsed() < lease).count()
    }
}
