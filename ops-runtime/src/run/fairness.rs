//! Fair scheduling of peers: a peer with a small load does not wait for peers with a large load.
//!
//! The CPU time of each peer is measured. While no more peers have a large load than there are processors, nothing is
//! scheduled. Beyond that, peers with a large load take turns:
//!
//! - One turn per processor is given at a time. One processor's turn is given only while no peer has a small load.
//! - A turn begins after everything else that the runtime has to do. So a peer with a small load is served as if the
//!   others were not there, and the others share the rest.
//! - New peers take turns in the same way only while their total load is large, and then few of the others go before
//!   them.
//! - Short pieces of work are done one after the other before the runtime checks for anything else, since checking
//!   costs as much as a short piece.
//! - Long pieces are done in turns even if few peers have a large load. Otherwise, a peer with many ready tasks would
//!   fill the queue of the runtime, in which all later tasks wait for the earlier ones.
//!
//! An HTTP/1 connection has one request at a time. If the loads of all are similar, the order of the runtime is fair
//! already. They and new ones take turns only while one has a far larger load than another, or some have a small load.
//! A peer with many requests at once has a queue of its own, so the order of the runtime is not fair.

#![cfg_attr(
    not(all(feature = "http-server", feature = "mcp-server", feature = "websocket")),
    allow(dead_code, unused_imports, reason = "each server uses its part")
)]

mod cost;
mod turns;

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::model::clock::millis;
use crate::model::lock::lock;

pub(crate) use self::cost::Cost;
pub(crate) use self::turns::{Turns, in_turns};

/// A peer's load is small beside the load of others if it is at most one part in so many of that.
const LESS: u32 = 2;

/// Loads are similar if none is so many times another.
const ALIKE: u32 = 4;

/// The total load of new peers is large from one part in so many of a processor.
const NEW_MUCH: u32 = 5;

/// For how long work is done in turns before everything else comes first.
const SHORT: Duration = Duration::from_micros(250);

/// For how long a measured large load counts; and for how long a small load does.
const LATELY: Duration = Duration::from_millis(100);

/// For how long loads count as different after one was far larger than another: in turns they become equal.
const UNLIKE: Duration = Duration::from_secs(1);

/// The peers of a server that have a large load.
pub(crate) struct Pace {
    processors: usize,
    /// True if peers with similar loads take no turns.
    spares_alike: bool,
    /// A turn for each processor but one. The last processor's turn is given while no peer has a small load.
    turns: Arc<Semaphore>,
    last_turn: Arc<Semaphore>,
    /// New peers, and peers with a large load: few of each wait for the next turn at a time, so neither wait for all of
    /// the others.
    next_new: Semaphore,
    next: Semaphore,
    /// Time spent in turns since everything else came first, in nanoseconds.
    done: AtomicU64,
    busy: Mutex<Busy>,
    /// When a peer last had a small load, when one load was last far larger than another, and when there were last too
    /// many large loads, in milliseconds since the start.
    little: AtomicU64,
    unlike: AtomicU64,
    crowded: AtomicU64,
    /// The time that unmeasured peers took, in nanoseconds, since a time in milliseconds.
    new_took: AtomicU64,
    new_since: AtomicU64,
    began: Instant,
}

struct Busy {
    peers: HashMap<u64, Asked>,
    swept: Instant,
    next: u64,
}

/// The measured large load of a peer.
#[derive(Clone, Copy)]
struct Asked {
    /// Until when it counts.
    until: Instant,
    /// The least and the most of its last two shares of a processor, in millionths. One alone may be chance: a thread
    /// that has to wait for a processor spends time that counts for the peer whose work it does.
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
        let mut busy = lock(&self.busy);
        busy.next += 1;
        busy.next
    }

    fn now(&self) -> u64 {
        self.at(Instant::now())
    }

    /// A time in milliseconds since the start.
    fn at(&self, time: Instant) -> u64 {
        millis(time.saturating_duration_since(self.began))
    }

    fn note(&self, time: &AtomicU64, now: Instant) {
        // Never 0, which means never.
        let now = self.at(now).max(1);
        let noted = time.load(Ordering::Relaxed);
        // Rarely written, since all peers share it.
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

    /// A turn that is free.
    fn free(&self) -> Option<OwnedSemaphorePermit> {
        let last = self.last_turn.clone().try_acquire_owned().ok().filter(|_| !self.is_late(&self.little));
        last.or_else(|| self.turns.clone().try_acquire_owned().ok())
    }

    /// True if enough was done in turns, so that everything else comes first.
    fn is_done(&self) -> bool {
        Duration::from_nanos(self.done.load(Ordering::Relaxed)) >= SHORT
    }

    /// Counts the time of a new peer. Many may connect, take little and leave, and together have a large load.
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

    /// True if others would wait longer if large loads took no turns. Peers with one request at a time and similar
    /// loads are served in order.
    fn harms(&self) -> bool {
        !self.spares_alike || self.is_late(&self.little) || self.is_within(&self.unlike, UNLIKE)
    }

    /// True if there are too many large loads, and a share is far smaller than each of them.
    fn is_little(&self, share: u32) -> bool {
        let now = Instant::now();
        let busy = lock(&self.busy);
        let mut least = busy.peers.values().filter(|asked| asked.until > now).map(|asked| asked.least);
        busy.peers.len() > self.processors && least.all(|least| least / LESS >= share)
    }

    /// Counts a peer with a large load: its share of a processor in millionths, the share before that, and how long it
    /// waited for its turn, since one that waits long is seldom counted. True if large loads have to take turns.
    fn crowds(&self, peer: u64, before: u32, share: u32, waited: Duration) -> bool {
        let now = Instant::now();
        let mut busy = lock(&self.busy);
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
        // Peers with one request each wait with all others while they are new: many may connect, cause a large load
        // once, and leave.
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
