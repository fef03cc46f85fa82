//! The in-memory engine, for tests and for programs of one process.
//!
//! # What it promises
//!
//! - **It does not survive the process.** Jobs, results and schedules end with it; nothing is written to disk.
//! - **Delivery.** A job is given to one worker at a time. If a worker does not extend its lease (30 seconds by
//!   default), the job is delivered again.
//! - **Order.** Within a lane, jobs are delivered in the order in which they are due. Lanes take turns.
//! - **Limits.** Inputs and results of up to 512 KiB each by default: [`InMemory::with_limits`].
//! - **Clock.** It is monotonic from the creation of the engine, and ignores changes of the system's clock. On Linux and
//!   macOS, it stands still while the machine is suspended. So the times of cron schedules, of
//!   [`SubmitOptions::with_start`](super::SubmitOptions::with_start) and of `with_deadline` are late by that, and wrong by
//!   whatever the system's clock was wrong by at the creation. In a test with tokio's paused clock (`start_paused`), it is
//!   that clock: delays, retries and leases take no time.

mod state;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::{StreamExt, stream};
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;

use self::state::{State, Taken};
use crate::BoxStream;
use crate::durable::engine::{Delivery, Engine, EngineLimits, EngineResult, JobPage, Listed, QueueStats};
use crate::durable::id::JobId;
use crate::durable::record::{Ended, JobRecord, ScheduleRecord, Stored, Tries};
use crate::durable::retry::after;
use crate::model::clock::{millis, since_epoch};
use crate::model::lock::lock;
use crate::registry::Progress;

/// Number of closed jobs that are buffered for a slow worker.
const CLOSED: usize = 1024;

/// The in-memory engine; its jobs end with the process.
///
/// A clone is the same engine.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::durable::{InMemory, Jobs, engine::EngineLimits};
///
/// let engine = InMemory::new().with_limits(EngineLimits::DEFAULT.with_lease(Duration::from_secs(5)));
/// let jobs = Jobs::new(engine);
/// ```
#[derive(Clone)]
pub struct InMemory {
    shared: Arc<Shared>,
    limits: EngineLimits,
}

struct Shared {
    state: Mutex<State>,
    /// Wakes the pulls that wait for a job.
    more: Notify,
    /// The ids of closed jobs, with the [number](State::number) of that time.
    closed: broadcast::Sender<(JobId, u64)>,
    /// When the engine was made, by both clocks: tokio's, as all waits are by it, and the system's.
    made: (Instant, u64),
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl InMemory {
    /// An engine without jobs.
    pub fn new() -> Self {
        let shared = Shared {
            state: Mutex::default(),
            more: Notify::new(),
            closed: broadcast::Sender::new(CLOSED),
            made: (Instant::now(), millis(since_epoch())),
        };
        Self { shared: Arc::new(shared), limits: EngineLimits::DEFAULT }
    }

    /// Sets the limits; earlier clones keep theirs.
    #[must_use]
    pub fn with_limits(self, limits: EngineLimits) -> Self {
        Self { limits, ..self }
    }

    /// The state, after expired records were removed.
    fn state(&self) -> (MutexGuard<'_, State>, u64) {
        let mut state = self.shared.state();
        let now = self.now();
        state.forget(now);
        (state, now)
    }

    fn lease_from(&self, now: u64) -> u64 {
        now.saturating_add(millis(self.limits.lease))
    }
}

impl Default for InMemory {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for InMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InMemory").field("limits", &self.limits).finish_non_exhaustive()
    }
}

/// A result that is ready at once.
fn ready<'a, T: Send + 'a>(value: T) -> EngineResult<'a, T> {
    Box::pin(std::future::ready(Ok(value)))
}

impl Engine for InMemory {
    fn name(&self) -> &'static str {
        "in-process"
    }

    fn limits(&self) -> EngineLimits {
        self.limits
    }

    fn now(&self) -> u64 {
        let (instant, millis_then) = self.shared.made;
        millis_then.saturating_add(millis(instant.elapsed()))
    }

    fn submit<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, Option<Stored>> {
        let known = self.state().0.submit(job);
        self.shared.more.notify_waiters();
        ready(known)
    }

    fn read<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        ready(self.state().0.read(id))
    }

    fn wait<'a>(&'a self, id: &'a JobId, at_most: Duration) -> EngineResult<'a, Option<Stored>> {
        let watched = self.state().0.watch(id);
        Box::pin(async move {
            if let Some(ended) = watched {
                // An error of either kind means that it is time to read the state.
                let _ = tokio::time::timeout(at_most, ended).await;
            }
            Ok(self.state().0.read(id))
        })
    }

    fn is_running<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool> {
        let (state, now) = self.state();
        ready(state.is_running(id, now))
    }

    fn close<'a>(&'a self, id: &'a JobId, end: &'a Ended) -> EngineResult<'a, bool> {
        let (mut state, _) = self.state();
        let (is_closed, number) = (state.close(id, end), state.number);
        drop(state);
        if is_closed {
            // Without workers there is no receiver.
            let _ = self.shared.closed.send((id.clone(), number));
        }
        ready(is_closed)
    }

    fn pull<'a>(&'a self, queue: &'a str, most: usize, at_most: Duration) -> EngineResult<'a, Vec<Delivery>> {
        Box::pin(async move {
            let until = after(at_most);
            loop {
                let mut more = std::pin::pin!(self.shared.more.notified());
                // Before the state is read, so that no job is missed in between.
                more.as_mut().enable();
                let next = {
                    let (mut state, now) = self.state();
                    match state.take(queue, most, now, self.lease_from(now)) {
                        Taken::Jobs(jobs) => return Ok(jobs),
                        Taken::Until(due) => due.map(|due| Duration::from_millis(due.saturating_sub(now).max(1))),
                    }
                };
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Ok(Vec::new());
                }
                let _ = tokio::time::timeout(next.map_or(left, |next| next.min(left)), more).await;
            }
        })
    }

    fn extend<'a>(&'a self, delivery: &'a Delivery) -> EngineResult<'a, bool> {
        let (mut state, now) = self.state();
        ready(state.extend(delivery, self.lease_from(now)))
    }

    fn end<'a>(&'a self, delivery: &'a Delivery, end: &'a Ended) -> EngineResult<'a, bool> {
        ready(self.state().0.end_delivered(delivery, end))
    }

    fn again<'a>(&'a self, delivery: &'a Delivery, tries: &'a Tries, after: Duration) -> EngineResult<'a, ()> {
        let (mut state, now) = self.state();
        state.again(delivery, tries, now.saturating_add(millis(after)));
        drop(state);
        self.shared.more.notify_waiters();
        ready(())
    }

    fn closed<'a>(&'a self, queue: &'a str) -> EngineResult<'a, BoxStream<'static, JobId>> {
        // The stream keeps no engine.
        let (shared, queue) = (Arc::downgrade(&self.shared), queue.to_owned());
        let heard = stream::unfold(self.shared.closed.subscribe(), |mut closed| async {
            loop {
                match closed.recv().await {
                    Ok(notice) => return Some((notice, closed)),
                    Err(broadcast::error::RecvError::Lagged(_)) => {}
                    Err(broadcast::error::RecvError::Closed) => return None,
                }
            }
        });
        let own = heard.filter_map(move |(id, number)| {
            // The notice may come late: the job was discarded, and its key submitted again.
            let is_later = shared.upgrade().is_some_and(|shared| shared.state().is_later(&id, number));
            std::future::ready((id.queue() == queue && !is_later).then_some(id))
        });
        ready(own.boxed())
    }

    fn tell<'a>(&'a self, id: &'a JobId, progress: &'a Progress) -> EngineResult<'a, ()> {
        self.state().0.tell(id, progress);
        ready(())
    }

    fn progress<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, BoxStream<'static, Progress>> {
        let stream = self.state().0.listen(id);
        ready(stream.map_or_else(|| stream::empty().boxed(), |stream| stream.boxed()))
    }

    fn step<'a>(&'a self, id: &'a JobId, name: &'a str) -> EngineResult<'a, Option<String>> {
        ready(self.state().0.step(id, name))
    }

    fn keep_step<'a>(
        &'a self,
        id: &'a JobId,
        name: &'a str,
        value: &'a str,
        retention: Duration,
    ) -> EngineResult<'a, String> {
        let (mut state, now) = self.state();
        ready(state.keep_step(id, name, value, now.saturating_add(millis(retention))))
    }

    fn retry<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, bool> {
        let is_open = self.state().0.retry(job);
        self.shared.more.notify_waiters();
        ready(is_open)
    }

    fn discard<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool> {
        ready(self.state().0.discard(id))
    }

    fn keep_schedule<'a>(
        &'a self,
        schedule: &'a ScheduleRecord,
        known: Option<&'a ScheduleRecord>,
    ) -> EngineResult<'a, bool> {
        let (mut state, _) = self.state();
        let is_known = ScheduleRecord::is_same(state.schedules.get(&schedule.name), known);
        if is_known {
            state.schedules.insert(schedule.name.clone(), schedule.clone());
        }
        ready(is_known)
    }

    fn remove_schedule<'a>(&'a self, name: &'a str) -> EngineResult<'a, bool> {
        ready(self.state().0.schedules.remove(name).is_some())
    }

    fn schedules(&self) -> EngineResult<'_, Vec<ScheduleRecord>> {
        ready(self.state().0.schedules.values().cloned().collect())
    }

    fn queues(&self) -> EngineResult<'_, Vec<String>> {
        ready(self.state().0.queues())
    }

    fn list<'a>(
        &'a self,
        queue: &'a str,
        what: Listed,
        after: Option<&'a str>,
        most: usize,
    ) -> EngineResult<'a, JobPage> {
        let (state, now) = self.state();
        ready(state.list(queue, what, after, most, now))
    }

    fn stats<'a>(&'a self, queue: &'a str) -> EngineResult<'a, QueueStats> {
        let (state, now) = self.state();
        ready(state.stats(queue, now))
    }
}
