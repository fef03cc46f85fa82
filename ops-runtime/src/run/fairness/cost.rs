//! The load of one peer, and whether it has to wait for its turn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{LATELY, NEW_MUCH, Pace, nanoseconds};
use crate::BoxFuture;

/// How much time a peer takes before its share is computed.
const LOOK: Duration = Duration::from_millis(2);

/// A load is large if the peer takes one part in so many of a processor, as far as it gets turns.
const MUCH: u32 = 50;

/// The load of a connection with one request at a time is small if it takes at most one part in so many of a processor, or
/// little beside large loads. Others wait for a small load.
const FEW: u32 = 200;

/// For how long a peer works in turns after a long piece of work, even if few loads are large.
const LONG_AFTER: Duration = Duration::from_secs(1);

/// The measured load of a peer: none yet, small, medium, large, or large while too many others are.
const NEW: u8 = 0;
const LITTLE: u8 = 1;
const SOME: u8 = 2;
const MUCH_ALONE: u8 = 3;
const PACED: u8 = 4;

/// What one peer has cost since it was last measured.
pub(crate) struct Cost {
    pub(super) pace: Arc<Pace>,
    peer: u64,
    pub(super) known: AtomicU8,
    /// In nanoseconds, like the time for which it waited for a turn.
    took: AtomicU64,
    pub(super) waited: AtomicU64,
    /// When it was last measured, in nanoseconds since the start, and its share of a processor then, in millionths.
    pub(super) since: AtomicU64,
    share: AtomicU32,
    /// How many requests of the peer are in work that should complete within one turn, and whether a turn is kept.
    pub(super) in_work: AtomicUsize,
    pub(super) is_kept: AtomicBool,
    /// One turn at a time, so that a peer with many tasks gets no more than others.
    turn: Arc<Semaphore>,
    /// When the peer last had a long piece of work, in milliseconds since the start; and how many of its tasks do long
    /// pieces at a time while few loads are large. The others wait here, and not in the queue of the runtime, where
    /// everything else would wait for all of them.
    pub(super) long: AtomicU64,
    turns: Arc<Semaphore>,
}

impl Cost {
    pub(crate) fn new(pace: &Arc<Pace>) -> Arc<Self> {
        let [took, waited] = [0; 2].map(AtomicU64::new);
        let since = AtomicU64::new(nanoseconds(pace.began.elapsed()));
        let (peer, known) = (pace.peer(), AtomicU8::new(NEW));
        let (in_work, is_kept) = (AtomicUsize::new(0), AtomicBool::new(false));
        let (turn, turns) = (Arc::new(Semaphore::new(1)), Arc::new(Semaphore::new(pace.processors)));
        let (pace, share, long) = (pace.clone(), AtomicU32::new(0), AtomicU64::new(0));
        Arc::new(Self { pace, peer, known, took, waited, since, share, in_work, is_kept, turn, long, turns })
    }

    /// Counts a request of the peer as in work until the returned value is dropped. [`Turns`] that wait for it keep
    /// their turn for a moment.
    pub(crate) fn request(self: &Arc<Self>) -> InWork {
        self.in_work.fetch_add(1, Ordering::Relaxed);
        InWork(self.clone())
    }

    /// Adds time that was taken until now.
    pub(super) fn add(&self, time: Duration, now: Instant) {
        let took = self.took.fetch_add(nanoseconds(time), Ordering::Relaxed);
        let took = Duration::from_nanos(took).saturating_add(time);
        let known = self.known.load(Ordering::Relaxed);
        match known {
            LITTLE => self.pace.note(&self.pace.little, now),
            NEW => {
                if !self.pace.spares_alike {
                    self.pace.note(&self.pace.little, now);
                }
                self.pace.new_took(time, now);
            }
            _ => {}
        }
        if took < LOOK && matches!(known, LITTLE | SOME) {
            return;
        }
        let now = nanoseconds(now.saturating_duration_since(self.pace.began));
        let since = self.since.load(Ordering::Relaxed);
        let waited = Duration::from_nanos(self.waited.load(Ordering::Relaxed));
        let within = Duration::from_nanos(now.saturating_sub(since)).saturating_sub(waited);
        // Of two tasks that reach this at the same time, one measures.
        if (took >= LOOK || within >= LATELY)
            && self.since.compare_exchange(since, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.look(took, within, waited);
        }
    }

    #[cold]
    fn look(&self, took: Duration, within: Duration, waited: Duration) {
        self.took.store(0, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
        let share = millionths(took, within);
        let last = self.known.load(Ordering::Relaxed);
        let before = match (last, self.share.swap(share, Ordering::Relaxed)) {
            (NEW, _) => share,
            (_, before) => before,
        };
        let known = if took.saturating_mul(MUCH) < within {
            let is_some = self.pace.spares_alike && took.saturating_mul(FEW) >= within && !self.pace.is_little(share);
            if is_some { SOME } else { LITTLE }
        } else if !self.pace.spares_alike && (last == LITTLE || last == NEW && took.saturating_mul(NEW_MUCH) < within) {
            // One measurement may be chance.
            SOME
        } else if self.pace.crowds(self.peer, before, share, waited) {
            PACED
        } else {
            MUCH_ALONE
        };
        self.known.store(known, Ordering::Relaxed);
    }

    /// A turn of the peer. `None` if it need not wait for one.
    pub(super) fn turn(&self, is_reader: bool) -> Option<Next> {
        if self.is_kept.load(Ordering::Relaxed) {
            return None;
        }
        let known = self.known.load(Ordering::Relaxed);
        let own = match known {
            PACED => &self.turn,
            NEW if self.pace.is_late(&self.pace.crowded) => &self.turn,
            // Short pieces delay others only a little.
            MUCH_ALONE if self.pace.is_within(&self.long, LONG_AFTER) => &self.turns,
            _ => return None,
        };
        if !self.pace.is_done()
            && let Ok(own) = own.clone().try_acquire_owned()
            && let Some(all) = self.pace.free()
        {
            return Some(Next::Now(Turn { waited: Duration::ZERO, _all: Some(all), _own: Some(own) }));
        }
        let (own, pace, is_new) = (own.clone(), self.pace.clone(), known == NEW);
        Some(Next::Later(Box::pin(async move {
            let began = Instant::now();
            let own = own.acquire_owned();
            let own = if is_reader { tokio::time::timeout(LATELY, own).await.ok() } else { Some(own.await) };
            let all = match pace.free() {
                Some(free) => Some(free),
                None => {
                    let next = if is_new { &pace.next_new } else { &pace.next };
                    let _next = if pace.spares_alike { None } else { next.acquire().await.ok() };
                    pace.turns.clone().acquire_owned().await.ok()
                }
            };
            if pace.is_done() {
                pace.done.store(0, Ordering::Relaxed);
                // Whatever else is ready comes first, and what has arrived over the network meanwhile.
                tokio::task::yield_now().await;
            }
            Turn { waited: began.elapsed(), _all: all, _own: own.and_then(Result::ok) }
        })))
    }
}

/// The fraction of a time that was taken, in millionths; at most the whole.
fn millionths(took: Duration, within: Duration) -> u32 {
    let share = took.as_nanos().saturating_mul(1_000_000) / within.as_nanos().max(1);
    u32::try_from(share).unwrap_or(u32::MAX).min(1_000_000)
}

/// A request that is in work, until this is dropped.
pub(crate) struct InWork(Arc<Cost>);

impl Drop for InWork {
    fn drop(&mut self) {
        self.0.in_work.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The right to work, until it is dropped.
pub(super) struct Turn {
    pub(super) waited: Duration,
    _all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

/// A turn: at once, or after others.
pub(super) enum Next {
    Now(Turn),
    Later(BoxFuture<'static, Turn>),
}
