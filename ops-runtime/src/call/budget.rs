//! Limits the memory that peers may hold: a total budget in bytes, and a share for each peer.
//!
//! A peer holds memory by its running requests, its unread responses, partly received messages and its announcements;
//! all of it counts. A peer may hold up to its limit while the budget lasts. When the budget is spent, each peer may
//! still hold [`FLOOR`] bytes, so that peers with a small load go on. A connection that then holds much and releases
//! nothing is closed. Over a broker, a name costs nothing, and there may be any number of peers with a small load. So
//! they may only hold a quarter of the budget more, all together.

// Each transport uses its part.
#![cfg_attr(not(all(feature = "nats", feature = "redis", feature = "websocket")), allow(dead_code))]

mod weight;

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use self::weight::weight;
pub(super) use self::weight::{Written, written};
use super::CallRequest;
use crate::CallError;
use crate::model::lock::lock;
use crate::run::fairness::{Cost, Pace};

/// What a peer may hold when the budget is spent, in bytes.
pub(super) const FLOOR: usize = 256 << 10;

/// Number of requests that a connection may run when the total limit is reached; a 64th of that limit if it is less.
const FEW: usize = 16;

/// For how long a peer may release nothing when the budget is spent.
const IDLE: Duration = Duration::from_secs(1);

/// How often the peer that holds the most is looked for.
const LOOK: Duration = Duration::from_millis(100);

/// Limits of what peers may hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// Bytes of one peer, and of all.
    pub(super) peer: usize,
    pub(super) all: usize,
    /// Running requests of one peer, and of all.
    pub(super) peer_running: usize,
    pub(super) all_running: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { peer: 64 << 20, all: 256 << 20, peer_running: 16_384, all_running: 65_536 }
    }
}

impl Limits {
    /// Bytes of all while peers over a broker that hold little may hold more.
    fn with_floors(&self) -> usize {
        self.all.saturating_add(self.all / 4)
    }

    /// The bytes that one request may have if nothing else is held: see [`Share::take_one`].
    fn largest(&self) -> usize {
        self.peer.min(self.all).max(self.all / 2)
    }

    /// A limit that is reached, and the message about it.
    fn reached(&self, spent: Spent) -> (usize, String) {
        let (whose, limit, option) = match spent {
            Spent::Peer => ("one peer", self.peer, "the first"),
            Spent::All => ("all peers", self.all, "the second"),
        };
        (limit, format!("{whose} may hold {limit} bytes ({option} of `CallHandler::with_max_bytes`)"))
    }
}

/// The budget of all peers of a handler.
pub(super) struct Budget {
    limits: Limits,
    used: AtomicUsize,
    /// The part of `used` that is kept for announcements.
    kept: AtomicUsize,
    running: AtomicUsize,
    watched: Mutex<Watched>,
    pace: Arc<Pace>,
    /// Wakes workers that wait for room.
    freed: Notify,
    /// Number of workers that wait.
    waiting: AtomicUsize,
}

/// The peers that can be disconnected.
struct Watched {
    looked: Instant,
    peers: Vec<Seen>,
}

struct Seen {
    share: Weak<Share>,
    /// The total that it had released at its last release.
    returned: usize,
    since: Instant,
}

/// Why a peer may hold no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Spent {
    /// The peer has reached its limit.
    Peer,
    /// The total budget is spent.
    All,
}

impl Budget {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let watched = Mutex::new(Watched { looked: Instant::now(), peers: Vec::new() });
        let [used, kept, running, waiting] = [0; 4].map(AtomicUsize::new);
        let (pace, freed) = (Pace::new(), Notify::new());
        Arc::new(Self { limits, used, kept, running, watched, pace, freed, waiting })
    }

    pub(super) fn limits(&self) -> Limits {
        self.limits
    }

    /// True if half of the budget is spent, so that further requests should stay in the broker's queue.
    pub(super) fn is_spent(&self) -> bool {
        self.used.load(Ordering::Relaxed) >= self.limits.all / 2
    }

    /// True if a request of a caller over a broker that holds little may be refused.
    pub(super) fn is_full(&self) -> bool {
        // Requests rarely fill the last bytes exactly. If nothing is held, none will be released: it is not full then.
        let most = self.limits.all.max(self.limits.with_floors().saturating_sub(FLOOR)).max(1);
        self.used.load(Ordering::Relaxed) >= most
    }

    /// Notes that a request has ended.
    pub(super) fn request_ended(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            self.freed.notify_waiters();
        }
    }

    /// Waits until a request has ended, or returns at once if there is room; cancel safe.
    pub(super) async fn until_freed(&self, has_room: impl Fn() -> bool) {
        struct Waiting<'b>(&'b AtomicUsize);
        impl Drop for Waiting<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::SeqCst);
            }
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let _waiting = Waiting(&self.waiting);
        let mut freed = std::pin::pin!(self.freed.notified());
        // Registered before the check, so that no end is missed.
        freed.as_mut().enable();
        if !has_room() {
            freed.await;
        }
    }

    /// A share for one of any number of peers.
    pub(super) fn share(self: &Arc<Self>) -> Arc<Share> {
        Arc::new(self.share_with(0, self.limits.with_floors()))
    }

    /// A share for the peer of a connection that this process has made.
    pub(super) fn own_share(self: &Arc<Self>) -> Arc<Share> {
        Arc::new(self.share_with(0, usize::MAX))
    }

    fn share_with(self: &Arc<Self>, few: usize, most: usize) -> Share {
        Share {
            budget: self.clone(),
            few,
            most,
            running: AtomicUsize::new(0),
            used: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            ahead: AtomicUsize::new(0),
            returned: AtomicUsize::new(0),
            tight: AtomicBool::new(false),
            refused: Mutex::default(),
            reader: AtomicWaker::new(),
            evicted: CancellationToken::new(),
            cost: Cost::new(&self.pace),
        }
    }

    /// A share for a peer with a connection of its own, which is closed if it holds too much: see [`Share::evicted`].
    /// The number of connections is limited, so each may run a few requests and hold a little, whatever the others do.
    pub(super) fn watched_share(self: &Arc<Self>) -> Arc<Share> {
        let share = Arc::new(self.share_with(FEW.min(self.limits.all_running / 64), usize::MAX));
        let mut watched = lock(&self.watched);
        watched.peers.retain(|seen| seen.share.strong_count() > 0);
        watched.peers.push(Seen { share: Arc::downgrade(&share), returned: 0, since: Instant::now() });
        share
    }

    /// Disconnects the peer that holds the most of those that release nothing, or hold far more than their part.
    #[cold]
    fn make_room(&self) {
        let now = Instant::now();
        let mut watched = lock(&self.watched);
        if now.duration_since(watched.looked) < LOOK {
            return;
        }
        watched.looked = now;
        let part = self.limits.all / watched.peers.len().max(1);
        let mut most: Option<(usize, Arc<Share>)> = None;
        for seen in &mut watched.peers {
            let Some(share) = seen.share.upgrade() else { continue };
            let used = share.used.load(Ordering::Relaxed).saturating_sub(share.kept.load(Ordering::Relaxed));
            let returned = share.returned.load(Ordering::Relaxed);
            if used <= FLOOR || returned != seen.returned {
                (seen.returned, seen.since) = (returned, now);
            }
            let is_idle = now.duration_since(seen.since) >= IDLE;
            let holds_much = used > FLOOR && (is_idle || used > part.saturating_mul(4));
            if holds_much && !share.evicted.is_cancelled() && most.as_ref().is_none_or(|(held, _)| used > *held) {
                most = Some((used, share));
            }
        }
        drop(watched);
        if let Some((held, share)) = most {
            tracing::warn!(held, "a peer is disconnected: all memory for peers is in use, and it holds the most");
            share.evicted.cancel();
        }
    }
}

/// What one peer holds.
pub(super) struct Share {
    budget: Arc<Budget>,
    /// Number of requests that it may run when the total limit is reached.
    few: usize,
    /// Bytes that all peers may hold while it holds little.
    most: usize,
    running: AtomicUsize,
    used: AtomicUsize,
    /// The part of it that is kept for its announcements, which does not count as idle memory.
    kept: AtomicUsize,
    /// The part of it that is unread items of its subscriptions. While there are any, its frames must be read, since
    /// credit frees them.
    ahead: AtomicUsize,
    /// Total of what it has released so far.
    returned: AtomicUsize,
    /// True if its next release must be acted on: something was refused, or its reader waits.
    tight: AtomicBool,
    /// Why it was refused memory, if it has released nothing since.
    refused: Mutex<Option<Spent>>,
    /// Woken when it releases memory after it had reached its limit.
    reader: AtomicWaker,
    evicted: CancellationToken,
    /// The CPU time that it uses.
    cost: Arc<Cost>,
}

impl Share {
    /// Reserves bytes, if the peer may hold them.
    pub(super) fn take(&self, bytes: usize) -> Result<(), Spent> {
        let own = self.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let all = self.budget.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let limits = &self.budget.limits;
        let spent = if own > limits.peer {
            Spent::Peer
        } else if all > limits.all && (own > FLOOR || all > self.most) {
            Spent::All
        } else {
            return Ok(());
        };
        self.undo(bytes);
        *lock(&self.refused) = Some(spent);
        self.tight.store(true, Ordering::Release);
        if spent == Spent::All {
            self.budget.make_room();
        }
        Err(spent)
    }

    /// Reserves bytes for one object. An object above the limit is accepted if the peer holds nothing else.
    fn take_one(&self, bytes: usize) -> Result<(), Spent> {
        let limits = &self.budget.limits;
        let is_alone = bytes > limits.peer && bytes <= limits.all / 2 && self.used.load(Ordering::Relaxed) <= FLOOR;
        if is_alone && self.budget.used.load(Ordering::Relaxed).saturating_add(bytes) <= limits.all {
            self.take_anyway(bytes);
            return Ok(());
        }
        self.take(bytes)
    }

    /// Reserves bytes that cannot be refused.
    pub(super) fn take_anyway(&self, bytes: usize) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
        self.budget.used.fetch_add(bytes, Ordering::Relaxed);
    }

    fn undo(&self, bytes: usize) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
        self.budget.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Releases bytes.
    pub(super) fn give_back(&self, bytes: usize) {
        if bytes == 0 {
            return;
        }
        self.undo(bytes);
        self.returned.fetch_add(bytes, Ordering::Relaxed);
        // Rarely true: a fast path for peers that hold little.
        if self.tight.load(Ordering::Relaxed) && self.tight.swap(false, Ordering::AcqRel) {
            *lock(&self.refused) = None;
            self.reader.wake();
        }
    }

    /// Reserves bytes for items that are forwarded to the peer, if it may hold them.
    pub(super) fn take_ahead(&self, bytes: usize) -> Result<(), Spent> {
        self.ahead.fetch_add(bytes, Ordering::Relaxed);
        let taken = self.take(bytes);
        if taken.is_err() {
            self.ahead.fetch_sub(bytes, Ordering::Relaxed);
        }
        taken
    }

    /// Releases bytes of forwarded items.
    pub(super) fn give_back_ahead(&self, bytes: usize) {
        self.give_back(bytes);
        self.ahead.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Limit of the bytes of one forwarded subscription that are ahead of the peer: small, since the peer has a window
    /// of its own, and the sum over several subscriptions may exceed its limit.
    pub(super) fn window(&self) -> u64 {
        FLOOR.min(self.budget.limits.peer / 16).max(1) as u64
    }

    /// True if so many bytes of announcements could be kept: all peers together may use half of the budget for them.
    pub(super) fn could_keep(&self, bytes: usize) -> bool {
        let kept = self.budget.kept.load(Ordering::Relaxed).saturating_add(bytes);
        let fits = kept <= self.budget.limits.all / 2 && self.take(bytes).is_ok();
        if fits {
            self.undo(bytes);
        }
        fits
    }

    /// Sets the bytes that are kept for announcements, in place of the earlier number. Not for concurrent use.
    pub(super) fn keep(&self, bytes: usize) {
        let before = self.kept.swap(bytes, Ordering::Relaxed);
        self.budget.kept.fetch_add(bytes, Ordering::Relaxed);
        self.budget.kept.fetch_sub(before, Ordering::Relaxed);
        self.take_anyway(bytes);
        self.give_back(before);
    }

    /// Why the peer was refused memory, if it has released nothing since.
    pub(super) fn refused(&self) -> Option<Spent> {
        *lock(&self.refused)
    }

    /// True if the peer holds so much that nothing more should be read from it.
    pub(super) fn is_spent(&self) -> bool {
        let used = self.used.load(Ordering::Relaxed);
        used.saturating_sub(self.ahead.load(Ordering::Relaxed)) >= self.budget.limits.peer / 2
            || (used > FLOOR && self.budget.used.load(Ordering::Relaxed) >= self.budget.limits.all)
    }

    /// Wakes this task when something is released.
    pub(super) fn wake_reader(&self, waker: &std::task::Waker) {
        self.reader.register(waker);
        self.tight.store(true, Ordering::Release);
    }

    /// Number of bytes that the peer holds.
    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Cancelled when the peer is to be disconnected, to make room for others.
    pub(super) fn evicted(&self) -> &CancellationToken {
        &self.evicted
    }

    /// The CPU time of the peer, and its turn.
    pub(super) fn cost(&self) -> &Arc<Cost> {
        &self.cost
    }

    /// Reserves what a request holds while it runs.
    pub(super) fn request(self: &Arc<Self>, request: &CallRequest) -> Result<Charge, CallError> {
        // Releases the counts if the request is refused.
        let mut charge = self.begin()?;
        let bytes = weight(request);
        let limits = self.budget.limits;
        self.take_one(bytes).map_err(|spent| match bytes > limits.largest() {
            true => too_large(bytes, &limits),
            false => self.refusal(spent, "requests and answers of this peer"),
        })?;
        charge.bytes = bytes;
        Ok(charge)
    }

    /// Counts a running request, but not its memory.
    pub(super) fn begin(self: &Arc<Self>) -> Result<Charge, CallError> {
        let limits = self.budget.limits;
        let own = self.running.fetch_add(1, Ordering::Relaxed);
        let all = self.budget.running.fetch_add(1, Ordering::Relaxed);
        let charge = Charge { share: self.clone(), bytes: 0 };
        if all >= limits.all_running && own >= self.few {
            let message = format!(
                "the worker runs {} requests already, which is its limit (`CallHandler::with_max_running_in_all`)",
                limits.all_running
            );
            return Err(CallError::execution(message).with_details(json!({ "limit": limits.all_running })));
        }
        Ok(charge)
    }

    /// The error for memory that the peer may not hold.
    pub(super) fn refusal(&self, spent: Spent, what: &str) -> CallError {
        let (limit, reached) = self.budget.limits.reached(spent);
        let message = format!("{what} hold too much memory: {reached}; try again later");
        CallError::execution(message).with_details(json!({ "limit": limit }))
    }
}

/// The error for a request that is too large by itself, so that sending it again cannot succeed.
fn too_large(bytes: usize, limits: &Limits) -> CallError {
    let (limit, reached) = limits.reached(if limits.all < limits.peer { Spent::All } else { Spent::Peer });
    let message = format!("the request holds too much memory: {bytes} bytes, and {reached}");
    CallError::execution(message).with_details(json!({ "limit": limit }))
}

impl Drop for Share {
    fn drop(&mut self) {
        let (left, kept) = (*self.used.get_mut(), *self.kept.get_mut());
        self.budget.used.fetch_sub(left, Ordering::Relaxed);
        self.budget.kept.fetch_sub(kept, Ordering::Relaxed);
    }
}

/// The peer to which a subscription is forwarded: what is buffered here counts for that peer.
pub(super) struct Reader {
    pub(super) share: Arc<Share>,
    /// Limit of bytes of items that may be ahead of it.
    pub(super) window: u64,
}

/// What a request holds; released when it is dropped.
pub(super) struct Charge {
    share: Arc<Share>,
    bytes: usize,
}

impl Drop for Charge {
    fn drop(&mut self) {
        self.share.give_back(self.bytes);
        self.share.running.fetch_sub(1, Ordering::Relaxed);
        self.share.budget.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
