//! Whose turn it is: peers that ask for much wait for each other, and for those that ask for little.
//!
//! What each peer costs is measured. As long as no more of them ask for much than there are processors, nothing else
//! happens. If more do, each of those does its work in turns: one for each processor at a time, but for one that is left
//! to those that ask for little, and each after everything else that the runtime has to do. So a peer that asks for little
//! is served as if the others were not there, and those get as much as there is. New peers wait in the same way only while
//! they ask for much together, and for a few of the others at most. Pieces of work that are short are done one after the
//! other before the runtime looks for anything else: to look costs as much as a short piece. Long pieces are done in turns
//! even if few peers ask for much: a peer with many of them ready would fill the queue of the runtime, where everybody waits
//! for all that came before.
//!
//! Connections of HTTP/1 have one request each in work. If all ask for about the same, the runtime serves them in the order
//! in which they come, which is fair already: they and new ones take turns only while one asks for far more than another, or
//! some ask for little. A peer with many requests at once has a queue of its own, so that the order of the runtime is not fair.

#![allow(dead_code, reason = "each server uses its part")]

use std::collections::HashMap;
use std::future::poll_fn;
use std::num::NonZero;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context as Task, Poll, ready};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use crate::BoxFuture;

/// How much time a peer takes before it is asked what part of all that is.
const LOOK: Duration = Duration::from_millis(2);

/// A peer asks for much if it takes one part in so many of a processor, as far as it is let.
const MUCH: u32 = 50;

/// A connection that has one request at a time asks for little, so that others wait for it, if it takes one part in so many
/// of a processor at most, or of what each of those takes that ask for much one part in [`LESS`].
const FEW: u32 = 200;
const LESS: u32 = 2;

/// Peers ask for about the same if none takes so many times what another takes.
const ALIKE: u32 = 4;

/// How long a peer keeps its turn while a request of its is in work: what answers it may run in other tasks.
const KEEP: Duration = Duration::from_millis(5);

/// New peers ask for much if they take one part in so many of a processor together.
const NEW_MUCH: u32 = 5;

/// For how long work is done in turns before everything else comes first.
const SHORT: Duration = Duration::from_micros(250);

/// How long a piece of work is for which everybody else would wait.
const LONG: Duration = Duration::from_millis(1);

/// For how long a peer works in turns after a long piece of work, even if few ask for much.
const LONG_AFTER: Duration = Duration::from_secs(1);

/// For how long a peer that asked for much counts among those that do; and for how long one that asked for little.
const LATELY: Duration = Duration::from_millis(100);

/// For how long peers count as unlike after one asked for far more than another: in turns they get the same.
const UNLIKE: Duration = Duration::from_secs(1);

/// Who asks for much, of all peers of a server.
pub(crate) struct Pace {
    processors: usize,
    /// Whether peers that ask for about the same go on without turns.
    spares_alike: bool,
    /// A turn for each processor but one. The last processor's turn is given while no peer asks for little.
    turns: Arc<Semaphore>,
    last_turn: Arc<Semaphore>,
    /// Who asks for much waits for the next turn, few at a time: new peers wait for those few and not for all of them.
    next: Semaphore,
    /// What was done in turns since everything else came first, in nanoseconds.
    done: AtomicU64,
    busy: Mutex<Busy>,
    /// When a peer asked for little, when one asked for far more than another, and when there were too many that ask for
    /// much, in milliseconds since the beginning.
    little: AtomicU64,
    unlike: AtomicU64,
    crowded: AtomicU64,
    /// What peers took of which nothing is known yet, in nanoseconds, since the time in milliseconds.
    new_took: AtomicU64,
    new_since: AtomicU64,
    began: Instant,
}

struct Busy {
    peers: HashMap<u64, Asked>,
    swept: Instant,
    next: u64,
}

/// What a peer asked for that asks for much.
#[derive(Clone, Copy)]
struct Asked {
    /// Until when it counts.
    until: Instant,
    /// The least and the most of its last two shares of a processor, in millionths. One alone may be chance: a thread that
    /// has to wait for a processor takes the time of the peer whose work it was at.
    least: u32,
    most: u32,
}

impl Pace {
    /// For peers that have many requests at once.
    pub(crate) fn new() -> Arc<Self> {
        Self::of(std::thread::available_parallelism().map_or(1, NonZero::get), false)
    }

    /// For peers that have one request at a time.
    pub(crate) fn one_by_one() -> Arc<Self> {
        Self::of(std::thread::available_parallelism().map_or(1, NonZero::get), true)
    }

    fn of(processors: usize, spares_alike: bool) -> Arc<Self> {
        let now = Instant::now();
        Arc::new(Self {
            processors,
            spares_alike,
            turns: Arc::new(Semaphore::new((processors - 1).max(1))),
            last_turn: Arc::new(Semaphore::new(usize::from(processors > 1))),
            next: Semaphore::new(processors),
            done: AtomicU64::new(0),
            busy: Mutex::new(Busy { peers: HashMap::new(), swept: now, next: 0 }),
            little: AtomicU64::new(0),
            unlike: AtomicU64::new(0),
            crowded: AtomicU64::new(0),
            new_took: AtomicU64::new(0),
            new_since: AtomicU64::new(0),
            began: now,
        })
    }

    /// A number for a peer.
    fn peer(&self) -> u64 {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        busy.next += 1;
        busy.next
    }

    fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// A time in milliseconds since the beginning.
    fn at(&self, time: Instant) -> u64 {
        u64::try_from(time.saturating_duration_since(self.began).as_millis()).unwrap_or(u64::MAX)
    }

    fn note(&self, time: &AtomicU64, now: Instant) {
        // Never the beginning, which stands for never.
        let now = self.at(now).max(1);
        let noted = time.load(Ordering::Relaxed);
        // Seldom written, for all peers share it.
        if noted == 0 || now > noted + 20 {
            time.store(now, Ordering::Relaxed);
        }
    }

    fn is_late(&self, time: &AtomicU64) -> bool {
        self.is_within(time, LATELY)
    }

    fn is_within(&self, time: &AtomicU64, span: Duration) -> bool {
        let time = time.load(Ordering::Relaxed);
        time > 0 && u128::from(self.now().saturating_sub(time)) <= span.as_millis()
    }

    /// A turn that nobody else has.
    fn free(&self) -> Option<OwnedSemaphorePermit> {
        let last = self.last_turn.clone().try_acquire_owned().ok().filter(|_| !self.is_late(&self.little));
        last.or_else(|| self.turns.clone().try_acquire_owned().ok())
    }

    /// True if so much was done in turns that everything else comes first.
    fn is_done(&self) -> bool {
        Duration::from_nanos(self.done.load(Ordering::Relaxed)) >= SHORT
    }

    /// Counts what a new peer took. Many may come, take little and go, and together ask for much.
    fn new_took(&self, time: Duration, at: Instant) {
        let now = self.at(at);
        let since = self.new_since.load(Ordering::Relaxed);
        let within = Duration::from_millis(now.saturating_sub(since));
        let took = self.new_took.fetch_add(nanoseconds(time), Ordering::Relaxed);
        if within >= LATELY {
            self.new_since.store(now, Ordering::Relaxed);
            self.new_took.store(0, Ordering::Relaxed);
        } else if Duration::from_nanos(took).saturating_add(time) > LATELY / NEW_MUCH && self.harms() {
            self.note(&self.crowded, at);
        }
    }

    /// True if those that ask for much would harm others without turns: peers that have one request at a time, and ask for
    /// the same, harm nobody.
    fn harms(&self) -> bool {
        !self.spares_alike || self.is_late(&self.little) || self.is_within(&self.unlike, UNLIKE)
    }

    /// True if there are too many peers that ask for much, and a share is far less than that of each.
    fn is_little(&self, share: u32) -> bool {
        let now = Instant::now();
        let busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let mut least = busy.peers.values().filter(|asked| asked.until > now).map(|asked| asked.least);
        busy.peers.len() > self.processors && least.all(|least| least / LESS >= share)
    }

    /// Counts a peer that asks for much, and its share of a processor in millionths, and the one before that; whether those
    /// that do have to take turns.
    fn crowds(&self, peer: u64, before: u32, share: u32, waited: Duration) -> bool {
        let now = Instant::now();
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        if now.duration_since(busy.swept) >= LATELY / 10 {
            busy.peers.retain(|_, asked| asked.until > now);
            busy.swept = now;
        }
        let (least, most) = (before.min(share), before.max(share));
        busy.peers.insert(peer, Asked { until: now + LATELY + waited.min(LATELY * 10), least, most });
        if busy.peers.len() <= self.processors {
            return false;
        }
        let greatest = busy.peers.values().map(|asked| asked.least).max().unwrap_or(share);
        let smallest = busy.peers.values().map(|asked| asked.most).min().unwrap_or(share);
        drop(busy);
        if greatest / ALIKE >= smallest {
            self.note(&self.unlike, now);
        }
        self.harms()
    }
}

/// What is known of a peer: nothing yet, that it asks for little, for something, for much, or for much where others do.
const NEW: u8 = 0;
const LITTLE: u8 = 1;
const SOME: u8 = 2;
const MUCH_ALONE: u8 = 3;
const PACED: u8 = 4;

/// What one peer has cost since it was last looked at.
pub(crate) struct Cost {
    pace: Arc<Pace>,
    peer: u64,
    known: AtomicU8,
    /// In nanoseconds, like the time for which it waited for a turn.
    took: AtomicU64,
    waited: AtomicU64,
    /// When it was last looked at, in nanoseconds since the beginning, and its share of a processor then, in millionths.
    since: AtomicU64,
    share: AtomicU32,
    /// How many requests of the peer are in work that should be answered in one turn, and whether one is.
    in_work: AtomicUsize,
    is_kept: AtomicBool,
    /// One turn at a time, so that a peer with many tasks gets no more than others.
    turn: Arc<Semaphore>,
    /// When a piece of work of the peer was long, in milliseconds since the beginning; and how many of its tasks do long
    /// pieces at a time while few ask for much. The others wait here, and not in the queue of the runtime, where everybody
    /// would wait for all of them.
    long: AtomicU64,
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

    /// Says that a request of the peer is in work, until this is dropped. [`Turns`] that wait for it keep their turn for
    /// a moment.
    pub(crate) fn request(self: &Arc<Self>) -> InWork {
        self.in_work.fetch_add(1, Ordering::Relaxed);
        InWork(self.clone())
    }

    /// Notes time that was taken until now.
    fn add(&self, time: Duration, now: Instant) {
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
        // Of two tasks that look at the same time, one does.
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
            // Once may be chance.
            SOME
        } else if self.pace.crowds(self.peer, before, share, waited) {
            PACED
        } else {
            MUCH_ALONE
        };
        self.known.store(known, Ordering::Relaxed);
    }

    /// A turn of the peer, if it has to wait for one.
    fn turn(&self, is_reader: bool) -> Option<Next> {
        if self.is_kept.load(Ordering::Relaxed) {
            return None;
        }
        let known = self.known.load(Ordering::Relaxed);
        let own = match known {
            PACED => &self.turn,
            NEW if self.pace.is_late(&self.pace.crowded) => &self.turn,
            // Nobody waits long for short pieces.
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
                    let _next = if is_new { None } else { pace.next.acquire().await.ok() };
                    pace.turns.clone().acquire_owned().await.ok()
                }
            };
            if pace.is_done() {
                pace.done.store(0, Ordering::Relaxed);
                // Whatever else is ready comes first, and what has come over the network meanwhile.
                tokio::task::yield_now().await;
            }
            Turn { waited: began.elapsed(), _all: all, _own: own.and_then(Result::ok) }
        })))
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// What part of a time was taken, in millionths; the whole at most.
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
struct Turn {
    waited: Duration,
    _all: Option<OwnedSemaphorePermit>,
    _own: Option<OwnedSemaphorePermit>,
}

/// A turn at once, or after others.
enum Next {
    Now(Turn),
    Later(BoxFuture<'static, Turn>),
}

/// A turn that is kept while a request is in work.
struct Kept {
    cost: Arc<Cost>,
    until: Pin<Box<Sleep>>,
    _turn: Turn,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.cost.is_kept.store(false, Ordering::Relaxed);
    }
}

/// Lets the work of a peer go on in turns, if it has to.
#[derive(Default)]
pub(crate) struct Turns {
    waiting: Option<BoxFuture<'static, Turn>>,
    kept: Option<Kept>,
    is_reader: bool,
}

impl Turns {
    /// Turns of what reads the peer. It waits for the peer's others, so that no more is read than is done, but not for long:
    /// it may learn that the others are in vain.
    pub(crate) fn of_reader() -> Self {
        Self { is_reader: true, ..Self::default() }
    }

    /// Does a piece of work, when it may be done, and notes what it costs.
    pub(crate) fn poll<T>(
        &mut self,
        cost: &Arc<Cost>,
        task: &mut Task<'_>,
        work: impl FnOnce(&mut Task<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let mut turn = None;
        if self.kept.as_mut().is_some_and(|kept| kept.until.as_mut().poll(task).is_ready()) {
            self.kept = None;
        }
        if self.waiting.is_none() && self.kept.is_none() {
            match cost.turn(self.is_reader) {
                Some(Next::Now(given)) => turn = Some(given),
                Some(Next::Later(waiting)) => self.waiting = Some(waiting),
                None => {}
            }
        }
        if let Some(waiting) = &mut self.waiting {
            let given = ready!(Pin::new(waiting).poll(task));
            self.waiting = None;
            cost.waited.fetch_add(nanoseconds(given.waited), Ordering::Relaxed);
            turn = Some(given);
        }
        let began = Instant::now();
        let polled = work(task);
        let ended = Instant::now();
        let took = ended.saturating_duration_since(began);
        cost.add(took, ended);
        if took >= LONG && !cost.pace.spares_alike {
            cost.pace.note(&cost.long, ended);
        }
        if turn.is_some() || self.kept.is_some() {
            cost.pace.done.fetch_add(nanoseconds(took), Ordering::Relaxed);
        }
        if polled.is_ready() || cost.in_work.load(Ordering::Relaxed) == 0 {
            self.kept = None;
        } else if let Some(turn) = turn {
            let mut until = Box::pin(sleep(KEEP));
            // So that the time wakes the task.
            if until.as_mut().poll(task).is_pending() {
                cost.is_kept.store(true, Ordering::Relaxed);
                self.kept = Some(Kept { cost: cost.clone(), until, _turn: turn });
            }
        }
        polled
    }

    /// Does pieces of work until there is a result.
    pub(crate) async fn run<T>(&mut self, cost: &Arc<Cost>, mut work: impl FnMut(&mut Task<'_>) -> Poll<T>) -> T {
        poll_fn(|task| self.poll(cost, task, &mut work)).await
    }
}

/// Runs a task of a peer in turns.
pub(crate) async fn in_turns<T>(task: impl Future<Output = T>, cost: Arc<Cost>) -> T {
    let mut task = pin!(task);
    Turns::default().run(&cost, |context| task.as_mut().poll(context)).await
}

#[cfg(test)]
mod tests;
