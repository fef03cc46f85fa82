//! Who serves what, as workers have announced it to the broker.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;

use crate::call::Announcement;
use crate::call::heard::Heard;
use crate::{OperationSpec, SpecRef, Text};

/// How many workers are known at a time.
const MAX_WORKERS: usize = 10_000;

/// How many times as much as one worker all of them may announce.
const ALL: usize = 4;

/// The workers that are there.
pub(crate) struct Workers {
    /// How much memory the specs of one worker may take.
    limit: usize,
    workers: Mutex<HashMap<Arc<str>, Worker>>,
    /// What all of them serve, for readers that take no lock.
    served: ArcSwap<BTreeMap<Text, Arc<OperationSpec>>>,
}

struct Worker {
    specs: Heard,
    heard: Instant,
}

impl Workers {
    /// Makes the table, without workers; the specs of each worker may take `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, workers: Mutex::default(), served: ArcSwap::default() }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<Arc<str>, Worker>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over what a worker says; false if it was not known, so that it may have said more before.
    pub(crate) fn announce(&self, id: &str, announcement: Announcement) -> bool {
        let mut workers = self.workers();
        let others = self.room(&workers, id);
        let Some(worker) = workers.get_mut(id) else { return false };
        worker.heard = Instant::now();
        let Announcement { add, remove, .. } = announcement;
        if add.is_empty() && remove.is_empty() {
            return true;
        }
        for id in &remove {
            worker.specs.remove(id);
        }
        let last_word = admit(&mut worker.specs, add, self.limit, others);
        self.publish(&workers, last_word);
        true
    }

    /// Takes over all that a worker serves.
    pub(crate) fn replace(&self, id: &str, add: Vec<Arc<OperationSpec>>) {
        let mut workers = self.workers();
        if workers.len() >= MAX_WORKERS && !workers.contains_key(id) {
            tracing::warn!("more than {MAX_WORKERS} workers announce themselves");
            return;
        }
        let mut specs = Heard::default();
        let room = self.room(&workers, id);
        let last_word = admit(&mut specs, add, self.limit, room);
        workers.insert(id.into(), Worker { specs, heard: Instant::now() });
        self.publish(&workers, last_word);
    }

    /// How many bytes a worker may take beside what the others do.
    fn room(&self, workers: &HashMap<Arc<str>, Worker>, id: &str) -> usize {
        let others = workers.iter().filter(|(other, _)| ***other != *id).map(|(_, worker)| worker.specs.bytes());
        self.limit.saturating_mul(ALL).saturating_sub(others.sum())
    }

    /// Forgets a worker.
    pub(crate) fn withdraw(&self, id: &str) {
        let mut workers = self.workers();
        if workers.remove(id).is_some() {
            self.publish(&workers, Vec::new());
        }
    }

    /// Forgets workers that have not been heard of for that long.
    pub(crate) fn expire(&self, after: Duration) {
        let mut workers = self.workers();
        let before = workers.len();
        workers.retain(|_, worker| worker.heard.elapsed() < after);
        if workers.len() < before {
            self.publish(&workers, Vec::new());
        }
    }

    /// Takes it that all workers have just been heard of: nobody could be.
    pub(crate) fn pardon(&self) {
        let now = Instant::now();
        self.workers().values_mut().for_each(|worker| worker.heard = now);
    }

    /// The workers that are known.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.workers().keys().cloned().collect()
    }

    /// The operation of that id, if somebody serves it.
    pub(crate) fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.served.load().get(operation).cloned().map(SpecRef::Shared)
    }

    /// What is served, in the order of the ids.
    pub(crate) fn list(&self) -> Vec<SpecRef> {
        self.served.load().values().cloned().map(SpecRef::Shared).collect()
    }

    /// Makes the table for readers; of what several workers say of an operation, the last word counts.
    fn publish(&self, workers: &HashMap<Arc<str>, Worker>, last_word: Vec<Arc<OperationSpec>>) {
        let before = self.served.load();
        let mut served: BTreeMap<Text, Arc<OperationSpec>> = BTreeMap::new();
        for spec in workers.values().flat_map(|worker| worker.specs.specs()) {
            // What was said so far stays, as long as one still says so.
            let known = before.get(&spec.id).filter(|known| ***known == **spec);
            match served.entry(spec.id.clone()) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(known.unwrap_or(spec).clone());
                }
                std::collections::btree_map::Entry::Occupied(mut entry) => {
                    if let Some(known) = known {
                        entry.insert(known.clone());
                    }
                }
            }
        }
        for spec in last_word {
            if let Some(said) = served.get_mut(&spec.id)
                && **said != *spec
            {
                *said = spec;
            }
        }
        self.served.store(Arc::new(served));
    }
}

/// Adds to what a worker serves, as much as there is room for; what was added.
fn admit(specs: &mut Heard, add: Vec<Arc<OperationSpec>>, limit: usize, room: usize) -> Vec<Arc<OperationSpec>> {
    let mut admitted = Vec::with_capacity(add.len());
    for spec in add {
        let taken = specs.bytes();
        admitted.extend(specs.add(spec, limit, |bytes| taken.saturating_add(bytes) <= room));
    }
    admitted
}
