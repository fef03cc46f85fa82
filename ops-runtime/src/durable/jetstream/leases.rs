//! The jobs that this process holds.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use async_nats::Subject;

use crate::durable::JobId;
use crate::durable::record::JobRecord;
use crate::model::lock::lock;

/// How long a closed job is remembered at least.
const CLOSED: Duration = Duration::from_secs(5);

/// A job that was delivered to this process and not given back.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    /// The subject of its acknowledgements. Only the stream, the consumer and the sequence in it count: the receipt of
    /// an earlier delivery of the message is valid for a later one.
    pub(super) receipt: Subject,
    /// Its sequence in the stream.
    pub(super) sequence: u64,
    /// When the job was submitted: one that is submitted again, or retried, has another time.
    pub(super) submitted: u64,
    /// The sequence of the last message about the job when it was delivered: the job itself, or its tries.
    pub(super) last: u64,
    /// How often the server has delivered it, as far as this process knows.
    pub(super) delivered: u64,
    /// The inbox of its submitter.
    pub(super) note: Option<String>,
    /// When the lease was last renewed.
    pub(super) since: Instant,
}

impl Lease {
    fn is_live(&self, lease: Duration) -> bool {
        self.since.elapsed() < lease / 4 * 3
    }

    /// True if nothing else was stored of the job when it was delivered. Its submit made sure that nothing was stored
    /// before. That does not hold for a retry, after which the former ending may be left. It does not hold for a delayed
    /// job, which its schedule writes without a condition, perhaps twice or behind its ending. Nor does it hold for a
    /// message that this engine did not write.
    pub(super) fn is_alone(&self, job: &JobRecord) -> bool {
        self.last == self.sequence && self.note.is_some() && !job.retried && job.not_before.is_none()
    }
}

/// The leases of this process.
#[derive(Default)]
pub(super) struct Held {
    jobs: Mutex<HashMap<JobId, Lease>>,
    closed: Mutex<Closed>,
}

/// Recently closed jobs, with the sequences of their endings. Deliveries of them may still arrive.
#[derive(Default)]
struct Closed {
    now: HashMap<JobId, u64>,
    before: HashMap<JobId, u64>,
    since: Option<Instant>,
}

impl Held {
    fn jobs(&self) -> MutexGuard<'_, HashMap<JobId, Lease>> {
        lock(&self.jobs)
    }

    pub(super) fn insert(&self, id: JobId, lease: Lease) {
        self.jobs().insert(id, lease);
    }

    /// The lease of a delivery, by its receipt; `None` if the job was delivered again since then.
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

    /// Removes a job that was closed by an ending with a sequence. `false` if it was submitted again since, and is here
    /// again.
    pub(super) fn close(&self, id: &JobId, end: u64) -> bool {
        let mut jobs = self.jobs();
        match jobs.get(id).map(|lease| lease.sequence < end) {
            Some(true) => drop(jobs.remove(id)),
            Some(false) => return false,
            None => {}
        }
        drop(jobs);
        let mut closed = lock(&self.closed);
        if closed.since.is_none_or(|since| since.elapsed() > CLOSED) {
            closed.before = std::mem::take(&mut closed.now);
            closed.since = Some(Instant::now());
        }
        closed.now.insert(id.clone(), end);
        true
    }

    /// True if the job with this sequence was closed recently.
    pub(super) fn is_closed(&self, id: &JobId, sequence: u64) -> bool {
        let closed = lock(&self.closed);
        [&closed.now, &closed.before].iter().any(|closed| closed.get(id).is_some_and(|end| sequence < *end))
    }

    /// True if this process holds the job, and its lease has not expired and is not about to: the server counts from
    /// when it sent the job, which is a little earlier.
    pub(super) fn has(&self, id: &JobId, lease: Duration) -> bool {
        self.jobs().get(id).is_some_and(|held| held.is_live(lease))
    }

    /// True if this process [holds](Self::has) the job and it was delivered once more: that delivery does not count on
    /// its own. It may be a copy with another sequence, if a server fired a start twice; a job that was submitted again
    /// is a different one.
    pub(super) fn came_again(&self, job: &JobRecord, sequence: u64, delivered: u64, lease: Duration) -> bool {
        let mut jobs = self.jobs();
        let is_same = |held: &&mut Lease| held.sequence == sequence || held.submitted == job.submitted;
        let Some(held) = jobs.get_mut(&job.id).filter(is_same).filter(|held| held.is_live(lease)) else { return false };
        if held.sequence == sequence {
            held.delivered = delivered;
        }
        true
    }

    /// Number of jobs of a queue that this process holds. Those of a dropped worker stop counting when their leases
    /// expire.
    pub(super) fn count(&self, queue: &str, lease: Duration) -> usize {
        self.jobs().iter().filter(|(id, held)| id.queue() == queue && held.since.elapsed() < lease).count()
    }
}
