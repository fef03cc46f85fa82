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

#![allow(dead_code, unused_imports, reason = "each server uses its part")]

mod cost;
mod turns;

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::clock::millis;

pub(crate) use self::cost::Cost;
pub(crate) use self::turns::{Turns, in_turns};

/// What a peer takes is little beside what others take if it is one part in so many of that.
const LESS: u32 = 2;

/// Peers ask for about the same if none takes so many times what another takes.
const ALIKE: u32 = 4;

/// New peers ask for much if they take one part in so many of a processor together.
const NEW_MUCH: u32 = 5;

/// For how long work is done in turns before everything else comes first.
const SHORT: Duration = Duration::from_micros(250);

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
    /// Of new peers, and of those that ask for much, few at a time wait for the next turn: neither wait for all of the others.
    next_new: Semaphore,
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
            next_new: Semaphore::new(processors),
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
        millis(time.saturating_duration_since(self.began))
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

    /// True if others would wait longer for those that ask for much if these took no turns. Peers that have one request at a
    /// time and ask for the same are served in the order in which they come.
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

    /// Counts a peer that asks for much: its share of a processor in millionths, the share before that, and for how long it
    /// waited for its turn, as one that waits long comes seldom. Says whether those that ask for much have to take turns.
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
        let is_crowded = self.harms();
        // Peers with one request each wait with all others while they are new: many may come, ask for much once, and go.
        if is_crowded && self.spares_alike {
            self.note(&self.crowded, now);
        }
        is_crowded
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
