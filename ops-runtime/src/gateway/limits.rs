//! Limits for the calls of each caller.
//!
//! A caller's rate is a token bucket, stored as the time at which the bucket will be full again (GCRA). Calls beyond
//! the number in flight wait for a bounded time, and only a bounded number of them. Callers are remembered by a keyed
//! hash of their id, in a bounded table, so that it does not grow with the number of identities.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::CallerId;
use crate::CallError;
use crate::model::lock::lock;
use crate::run::handler::TOO_MANY_REQUESTS;

/// The retry delay if it is unknown when there will be room.
const LATER: Duration = Duration::from_secs(1);

/// The limits of each caller.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct CallerLimits {
    /// The rate at which calls may begin; `None` for no limit.
    pub rate: Option<Rate>,
    /// Limit of calls in flight. A subscription or a streamed body counts until it ends.
    pub max_in_flight: usize,
    /// Limit of calls that wait for one in flight to end.
    pub max_waiting: usize,
    /// How long a call waits for one in flight to end.
    pub max_wait: Duration,
    /// Number of callers that are remembered. The least recently seen caller without a call is forgotten, and begins
    /// anew when it comes back.
    pub max_callers: usize,
}

/// A number of calls in a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rate {
    /// The number of calls; at least one.
    pub calls: u32,
    /// The time for them.
    pub per: Duration,
    /// How many of them may begin at once; at least one.
    pub burst: u32,
}

impl Rate {
    /// At most `calls` calls per `per`. All of them may begin at once.
    pub fn new(calls: u32, per: Duration) -> Self {
        Self { calls, per, burst: calls }
    }

    /// Sets how many calls may begin at once.
    #[must_use]
    pub fn with_burst(mut self, calls: u32) -> Self {
        self.burst = calls;
        self
    }

    /// The time for one call.
    fn interval(&self) -> Duration {
        self.per / self.calls.max(1)
    }

    /// The time for the calls that may begin at once after the first.
    fn tolerance(&self) -> Duration {
        self.interval().saturating_mul(self.burst.max(1) - 1)
    }
}

impl Default for CallerLimits {
    /// 50 calls a second, 200 at once; 16 in flight, and 64 that wait for up to 30 seconds; 10,000 callers.
    fn default() -> Self {
        Self {
            rate: Some(Rate::new(50, Duration::from_secs(1)).with_burst(200)),
            max_in_flight: 16,
            max_waiting: 64,
            max_wait: Duration::from_secs(30),
            max_callers: 10_000,
        }
    }
}

impl CallerLimits {
    /// The default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the rate at which calls may begin; `None` for no limit.
    #[must_use]
    pub fn with_rate(mut self, rate: impl Into<Option<Rate>>) -> Self {
        self.rate = rate.into();
        self
    }

    /// Sets the limit of calls in flight; at least one.
    #[must_use]
    pub fn with_max_in_flight(mut self, calls: usize) -> Self {
        self.max_in_flight = calls;
        self
    }

    /// Sets how many calls wait for one in flight to end, and for how long.
    #[must_use]
    pub fn with_max_waiting(mut self, calls: usize, wait: Duration) -> Self {
        (self.max_waiting, self.max_wait) = (calls, wait);
        self
    }

    /// Sets the number of callers that are remembered; at least one.
    #[must_use]
    pub fn with_max_callers(mut self, callers: usize) -> Self {
        self.max_callers = callers;
        self
    }
}

/// Applies limits to callers. A clone applies the same limits.
///
/// ```
/// use std::time::Duration;
/// use ops_runtime::gateway::{CallerId, CallerLimits, Limiter, Rate};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ops_runtime::CallError> {
/// let limiter = Limiter::new(CallerLimits::new().with_rate(Rate::new(1, Duration::from_secs(60))));
/// let ann = CallerId::connection("ann");
/// let permit = limiter.admit(&ann).await?;
/// // The call is in flight until the permit is dropped.
/// drop(permit);
/// let error = limiter.admit(&ann).await.unwrap_err();
/// assert_eq!(error.code().as_str(), "TOO_MANY_REQUESTS");
/// assert!(error.details()["retryAfter"].as_f64() > Some(59.0));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Limiter(Arc<Inner>);

struct Inner {
    limits: CallerLimits,
    /// Keyed, so that no caller can search for ids with the same hash. Two callers with the same hash would share their
    /// limits.
    hasher: RandomState,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    callers: HashMap<u64, State>,
    /// The callers without a call, by when they were last seen.
    idle: BTreeMap<u64, u64>,
    seen: u64,
}

struct State {
    /// When the bucket will be full again.
    full: Instant,
    /// Calls in flight and waiting calls.
    calls: usize,
    slots: Arc<Semaphore>,
    /// The caller's key in `idle`.
    seen: u64,
}

/// A call in flight: it counts until this is dropped.
pub struct CallPermit {
    // Dropped first, so that a caller is idle only when all of its slots are free.
    _slot: OwnedSemaphorePermit,
    _place: Place,
}

impl fmt::Debug for CallPermit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallPermit").finish_non_exhaustive()
    }
}

/// A call in the table, in flight or waiting. It must not be dropped while the table is locked.
struct Place {
    limiter: Limiter,
    key: u64,
}

impl Drop for Place {
    fn drop(&mut self) {
        let table = &mut *self.limiter.table();
        let Some(state) = table.callers.get_mut(&self.key) else { return };
        state.calls = state.calls.saturating_sub(1);
        if state.calls == 0 {
            table.rest(self.key);
        }
    }
}

/// A call that has passed the rate limit, and may begin when there is a slot.
pub(super) struct Entered {
    place: Place,
    slots: Arc<Semaphore>,
}

impl Entered {
    /// Waits for a slot, which is given at once or when another call of the caller ends.
    ///
    /// # Errors
    /// A `TOO_MANY_REQUESTS` if none ended in time.
    pub(super) async fn admit(self) -> Result<CallPermit, CallError> {
        let Self { place, slots } = self;
        let CallerLimits { max_in_flight, max_wait, .. } = &place.limiter.0.limits;
        let slot = match slots.clone().try_acquire_owned() {
            Ok(slot) => Some(slot),
            Err(_) => match timeout(*max_wait, slots.acquire_owned()).await {
                Ok(slot) => slot.ok(),
                Err(_) => None,
            },
        };
        let full = || format!("{max_in_flight} calls of the caller are in flight, and none ended within {max_wait:?}");
        let slot = slot.ok_or_else(|| refused(&full(), LATER))?;
        Ok(CallPermit { _slot: slot, _place: place })
    }
}

impl Limiter {
    /// Applies these limits to each caller.
    pub fn new(limits: CallerLimits) -> Self {
        Self(Arc::new(Inner { limits, hasher: RandomState::new(), table: Mutex::default() }))
    }

    /// Admits a call, at once or when another call of the caller ends.
    ///
    /// # Errors
    /// A `TOO_MANY_REQUESTS` beyond the limits. Its message and its details, `{ "retryAfter": 0.25 }`, say after how
    /// many seconds to retry. An HTTP server responds with 429 and `Retry-After`.
    pub async fn admit(&self, caller: &CallerId) -> Result<CallPermit, CallError> {
        self.enter(caller, true)?.admit().await
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        lock(&self.0.table)
    }

    /// Enters a call into the table: it counts among the waiting calls, and if `has_rate` for the rate of its caller.
    pub(super) fn enter(&self, caller: &CallerId, has_rate: bool) -> Result<Entered, CallError> {
        let limits = &self.0.limits;
        let (key, now) = (self.0.hasher.hash_one(caller), Instant::now());
        let in_flight = limits.max_in_flight.clamp(1, Semaphore::MAX_PERMITS);
        let table = &mut *self.table();
        if !table.callers.contains_key(&key) && table.callers.len() >= limits.max_callers.max(1) {
            let Some((_, oldest)) = table.idle.pop_first() else {
                let message = format!("calls of {} callers are in flight", table.callers.len());
                return Err(refused(&message, LATER));
            };
            table.callers.remove(&oldest);
        }
        let state = table.callers.entry(key).or_insert_with(|| State {
            full: now,
            calls: 0,
            slots: Arc::new(Semaphore::new(in_flight)),
            seen: 0,
        });
        let (mut reasons, mut wait) = (Vec::new(), Duration::ZERO);
        let mut full = state.full;
        if let Some(rate) = limits.rate.filter(|_| has_rate) {
            let soonest = state.full.checked_sub(rate.tolerance()).unwrap_or(now);
            if soonest > now {
                wait = soonest - now;
                reasons.push(format!("the caller makes more than {} calls in {:?}", rate.calls.max(1), rate.per));
            }
            full = state.full.max(now).checked_add(rate.interval()).unwrap_or(state.full);
        }
        if state.calls >= in_flight.saturating_add(limits.max_waiting) {
            wait = wait.max(LATER);
            reasons
                .push(format!("{in_flight} calls of the caller are in flight and {} are waiting", limits.max_waiting));
        }
        if state.calls == 0 {
            table.idle.remove(&state.seen);
        }
        if reasons.is_empty() {
            (state.full, state.calls) = (full, state.calls.saturating_add(1));
            return Ok(Entered { place: Place { limiter: self.clone(), key }, slots: state.slots.clone() });
        }
        if state.calls == 0 {
            table.rest(key);
        }
        Err(refused(&reasons.join(", and "), wait))
    }
}

impl Table {
    /// Makes a caller without a call the most recently seen one.
    fn rest(&mut self, key: u64) {
        self.seen = self.seen.saturating_add(1);
        if let Some(state) = self.callers.get_mut(&key) {
            state.seen = self.seen;
            self.idle.insert(self.seen, key);
        }
    }
}

fn refused(reason: &str, wait: Duration) -> CallError {
    // In whole milliseconds, rounded up.
    let wait = Duration::from_millis(u64::try_from(wait.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX));
    CallError::new(TOO_MANY_REQUESTS, format!("{reason}: try again in {wait:?}"))
        .with_details(json!({ "retryAfter": wait.as_secs_f64() }))
}

impl fmt::Debug for Limiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limiter").field("limits", &self.0.limits).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
