//! The kept results.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::Value;
use tokio::time::Instant;

use super::options::ResultLimits;
use crate::gateway::CallerId;
use crate::model::random;

/// Memory of a result beside its value, in bytes.
const OVERHEAD: usize = 512;

/// Kept results, by their ids.
#[derive(Default)]
pub(super) struct Store {
    kept: HashMap<String, Kept>,
    /// The ids, by when they were last read.
    order: BTreeMap<u64, String>,
    /// The bytes of each caller's results.
    callers: HashMap<CallerId, usize>,
    bytes: usize,
    reads: u64,
}

struct Kept {
    caller: CallerId,
    value: Arc<Value>,
    bytes: usize,
    read: Instant,
    /// The key in `order`.
    place: u64,
}

impl Store {
    /// Keeps a result, and returns its id; `None` if it is too large.
    pub(super) fn keep(
        &mut self,
        caller: &CallerId,
        value: &Arc<Value>,
        weight: usize,
        now: Instant,
        limits: &ResultLimits,
    ) -> Option<String> {
        self.expire(now, limits);
        let bytes = weight.saturating_add(OVERHEAD);
        if bytes > limits.max_caller_bytes.min(limits.max_bytes) {
            return None;
        }
        let room = |taken: usize, limit: usize| taken.saturating_add(bytes) <= limit;
        while !room(self.callers.get(caller).copied().unwrap_or(0), limits.max_caller_bytes) {
            self.remove_oldest(caller)?;
        }
        while !room(self.bytes, limits.max_bytes) {
            let most = self.callers.iter().max_by_key(|(_, bytes)| **bytes).map(|(caller, _)| caller.clone())?;
            self.remove_oldest(&most)?;
        }
        let id = random::key();
        self.reads = self.reads.saturating_add(1);
        self.order.insert(self.reads, id.clone());
        self.bytes = self.bytes.saturating_add(bytes);
        *self.callers.entry(caller.clone()).or_default() += bytes;
        let kept = Kept { caller: caller.clone(), value: value.clone(), bytes, read: now, place: self.reads };
        self.kept.insert(id.clone(), kept);
        Some(id)
    }

    /// The result with this id, if it is the caller's.
    pub(super) fn get(
        &mut self,
        caller: &CallerId,
        id: &str,
        now: Instant,
        limits: &ResultLimits,
    ) -> Option<Arc<Value>> {
        self.expire(now, limits);
        let kept = self.kept.get_mut(id).filter(|kept| kept.caller == *caller)?;
        self.reads = self.reads.saturating_add(1);
        let id = self.order.remove(&kept.place)?;
        self.order.insert(self.reads, id);
        (kept.place, kept.read) = (self.reads, now);
        Some(kept.value.clone())
    }

    /// Removes results that were not read for too long.
    fn expire(&mut self, now: Instant, limits: &ResultLimits) {
        while let Some((_, id)) = self.order.first_key_value() {
            let is_old = |kept: &Kept| now.saturating_duration_since(kept.read) >= limits.keep;
            if !self.kept.get(id).is_none_or(is_old) {
                return;
            }
            let id = id.clone();
            self.remove(&id);
        }
    }

    /// Removes the caller's least recently read result; `None` if there is none.
    fn remove_oldest(&mut self, caller: &CallerId) -> Option<()> {
        let is_own = |id: &&String| self.kept.get(*id).is_some_and(|kept| kept.caller == *caller);
        let id = self.order.values().find(is_own)?.clone();
        self.remove(&id);
        Some(())
    }

    fn remove(&mut self, id: &str) {
        let Some(kept) = self.kept.remove(id) else { return };
        self.order.remove(&kept.place);
        self.bytes = self.bytes.saturating_sub(kept.bytes);
        if let Some(bytes) = self.callers.get_mut(&kept.caller) {
            *bytes = bytes.saturating_sub(kept.bytes);
            if *bytes == 0 {
                self.callers.remove(&kept.caller);
            }
        }
    }

    /// The bytes that are kept, and the number of callers.
    #[cfg(test)]
    pub(super) fn kept(&self) -> (usize, usize) {
        assert_eq!(self.kept.len(), self.order.len());
        assert_eq!(self.kept.values().map(|kept| kept.bytes).sum::<usize>(), self.bytes);
        assert_eq!(self.callers.values().sum::<usize>(), self.bytes);
        (self.bytes, self.callers.len())
    }
}
