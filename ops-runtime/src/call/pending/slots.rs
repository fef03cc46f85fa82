//! The slots of requests in flight, by the numbers of the requests.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::by_number::ByNumber;
use crate::call::slot::Slot;
use crate::model::lock::lock;
use crate::model::request_id::Number;

/// Requests are in several tables, so that threads rarely wait for a lock.
const SHARDS: usize = 16;

type Table = ByNumber<Arc<Slot>>;

/// The slots of the requests in flight.
#[derive(Default)]
pub(super) struct Slots {
    shards: [Mutex<Table>; SHARDS],
    count: AtomicUsize,
}

impl Slots {
    fn shard(&self, number: Number) -> MutexGuard<'_, Table> {
        let Number(n) = number;
        let [first, ..] = &self.shards;
        let shard = self.shards.get(usize::try_from(n).unwrap_or(0) % SHARDS).unwrap_or(first);
        lock(shard)
    }

    fn tables(&self) -> impl Iterator<Item = MutexGuard<'_, Table>> {
        self.shards.iter().map(lock)
    }

    /// Adds a slot; false if the number is in use.
    pub(super) fn insert(&self, number: Number, slot: &Arc<Slot>) -> bool {
        let mut table = self.shard(number);
        let vacant = !table.contains_key(&number);
        if vacant {
            table.insert(number, slot.clone());
            drop(table);
            self.count.fetch_add(1, Ordering::Relaxed);
        }
        vacant
    }

    pub(super) fn get(&self, number: Number) -> Option<Arc<Slot>> {
        self.shard(number).get(&number).cloned()
    }

    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn has(&self, number: Number) -> bool {
        self.shard(number).contains_key(&number)
    }

    pub(super) fn remove(&self, number: Number) -> Option<Arc<Slot>> {
        let slot = self.shard(number).remove(&number)?;
        self.count.fetch_sub(1, Ordering::Relaxed);
        Some(slot)
    }

    /// Removes a slot, unless its number is that of another request by now; true if it was there.
    pub(super) fn remove_same(&self, number: Number, slot: &Arc<Slot>) -> bool {
        let mut table = self.shard(number);
        let same = table.get(&number).is_some_and(|known| Arc::ptr_eq(known, slot));
        if same {
            table.remove(&number);
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
        same
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// All of them. They are used outside of the locks, because a woken task may run at once.
    pub(super) fn all(&self) -> Vec<(Number, Arc<Slot>)> {
        self.tables()
            .flat_map(|table| table.iter().map(|(number, slot)| (*number, slot.clone())).collect::<Vec<_>>())
            .collect()
    }

    /// The numbers of all of them.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn numbers(&self) -> Vec<Number> {
        self.tables().flat_map(|table| table.keys().copied().collect::<Vec<_>>()).collect()
    }
}
