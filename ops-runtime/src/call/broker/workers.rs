//! The workers that announced themselves to the broker, and the operations that they serve.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use crate::call::Announcement;
use crate::call::peer_specs::Heard;
use crate::model::lock::{lock, read, write};
use crate::{OperationSpec, SpecRef, Text};

/// Limit of known workers.
const MAX_WORKERS: usize = 10_000;

/// The limit for all workers together, as a multiple of the limit for one.
const ALL: usize = 4;

/// The known workers.
pub(crate) struct Workers {
    /// Memory limit for the specs of one worker, in bytes.
    limit: usize,
    workers: Mutex<HashMap<Arc<str>, Worker>>,
    /// What all of them serve. It is written while `workers` is locked, and only for the time of a change.
    served: RwLock<Served>,
}

struct Worker {
    specs: Heard,
    heard: Instant,
}

impl Workers {
    /// An empty table; `limit` is the memory limit for the specs of each worker, in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, workers: Mutex::default(), served: RwLock::default() }
    }

    fn workers(&self) -> MutexGuard<'_, HashMap<Arc<str>, Worker>> {
        lock(&self.workers)
    }

    fn served(&self) -> RwLockReadGuard<'_, Served> {
        read(&self.served)
    }

    /// Applies an announcement; false if the worker was unknown, so that earlier parts may be missing.
    pub(crate) fn announce(&self, id: &str, announcement: Announcement) -> bool {
        let mut workers = self.workers();
        let room = self.room(&workers, id);
        let Some(worker) = workers.get_mut(id) else { return false };
        worker.heard = Instant::now();
        let Announcement { add, remove, .. } = announcement;
        let mut change = Change::default();
        for id in &remove {
            change.unsaid.extend(worker.specs.remove(id));
        }
        change.admit(&mut worker.specs, add, self.limit, room);
        self.apply(change);
        true
    }

    /// Replaces all that a worker serves.
    pub(crate) fn replace(&self, id: &str, add: Vec<Arc<OperationSpec>>) {
        let mut workers = self.workers();
        if workers.len() >= MAX_WORKERS && !workers.contains_key(id) {
            tracing::warn!("more than {MAX_WORKERS} workers announce themselves");
            return;
        }
        let mut specs = Heard::default();
        let mut change = Change::default();
        let room = self.room(&workers, id);
        change.admit(&mut specs, add, self.limit, room);
        if let Some(before) = workers.insert(id.into(), Worker { specs, heard: Instant::now() }) {
            change.unsaid.extend(before.specs.specs().cloned());
        }
        self.apply(change);
    }

    /// How many bytes the worker may use, given what the others use.
    fn room(&self, workers: &HashMap<Arc<str>, Worker>, id: &str) -> usize {
        let others = workers.iter().filter(|(other, _)| ***other != *id).map(|(_, worker)| worker.specs.bytes());
        self.limit.saturating_mul(ALL).saturating_sub(others.sum())
    }

    /// Forgets a worker.
    pub(crate) fn withdraw(&self, id: &str) {
        let mut workers = self.workers();
        if let Some(worker) = workers.remove(id) {
            self.apply(Change::end(&worker));
        }
    }

    /// Forgets workers whose last heartbeat is older than that.
    pub(crate) fn expire(&self, after: Duration) {
        let mut workers = self.workers();
        for (_, worker) in workers.extract_if(|_, worker| worker.heard.elapsed() >= after) {
            self.apply(Change::end(&worker));
        }
    }

    /// Takes all workers as just seen, for a time in which no heartbeat could arrive.
    pub(crate) fn pardon(&self) {
        let now = Instant::now();
        self.workers().values_mut().for_each(|worker| worker.heard = now);
    }

    /// The workers that are known.
    pub(crate) fn ids(&self) -> Vec<Arc<str>> {
        self.workers().keys().cloned().collect()
    }

    /// The operation with this id, if a worker serves it.
    pub(crate) fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.served().0.get(operation).and_then(Said::last_word).map(SpecRef::Shared)
    }

    /// The served operations, in the order of their ids.
    pub(crate) fn list(&self) -> Vec<SpecRef> {
        self.served().0.values().filter_map(Said::last_word).map(SpecRef::Shared).collect()
    }

    fn apply(&self, change: Change) {
        if change.said.is_empty() && change.unsaid.is_empty() {
            return;
        }
        let mut served = write(&self.served);
        // In this order, a spec that is announced again stays the same object.
        for spec in change.said {
            served.0.entry(spec.id.clone()).or_default().say(spec);
        }
        for spec in &change.unsaid {
            if let Some(said) = served.0.get_mut(&spec.id) {
                said.unsay(spec);
                if said.0.is_empty() {
                    served.0.remove(&spec.id);
                }
            }
        }
    }
}

/// What one worker serves now, and what it no longer serves.
#[derive(Default)]
struct Change {
    said: Vec<Arc<OperationSpec>>,
    unsaid: Vec<Arc<OperationSpec>>,
}

impl Change {
    /// The change of a worker that is gone.
    fn end(worker: &Worker) -> Self {
        Self { said: Vec::new(), unsaid: worker.specs.specs().cloned().collect() }
    }

    /// Adds to what a worker serves, up to the limits.
    fn admit(&mut self, specs: &mut Heard, add: Vec<Arc<OperationSpec>>, limit: usize, room: usize) {
        for spec in add {
            let (before, taken) = (specs.get(&spec.id).cloned(), specs.bytes());
            if let Some(kept) = specs.add(spec, limit, |bytes| taken.saturating_add(bytes) <= room) {
                self.said.push(kept);
                self.unsaid.extend(before);
            }
        }
    }
}

/// The served operations, changed in place: workers may announce their operations one by one, so a change must not copy
/// the table.
#[derive(Default)]
struct Served(BTreeMap<Text, Said>);

/// The specs of one operation, each with the number of workers that announce it. The latest counts while a worker has
/// it.
#[derive(Default)]
struct Said(Vec<(Arc<OperationSpec>, usize)>);

impl Said {
    fn say(&mut self, spec: Arc<OperationSpec>) {
        // An earlier equal spec keeps its address, by which callers know what they have already read.
        let word = match self.0.iter().position(|(known, _)| *known == spec) {
            Some(at) => {
                let (known, count) = self.0.remove(at);
                (known, count + 1)
            }
            None => (spec, 1),
        };
        self.0.push(word);
    }

    fn unsay(&mut self, spec: &OperationSpec) {
        if let Some((_, count)) = self.0.iter_mut().find(|(known, _)| **known == *spec) {
            *count -= 1;
            self.0.retain(|(_, count)| *count > 0);
        }
    }

    fn last_word(&self) -> Option<Arc<OperationSpec>> {
        self.0.last().map(|(spec, _)| spec.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OperationKind;

    fn spec(name: &str, description: &str) -> Arc<OperationSpec> {
        let mut spec = OperationSpec::new(OperationKind::Query, "a", name).unwrap();
        spec.description = description.to_owned().into();
        Arc::new(spec)
    }

    fn said(workers: &Workers) -> Vec<String> {
        workers.list().iter().map(|spec| format!("{} {}", spec.id, spec.description)).collect()
    }

    #[test]
    fn the_last_word_counts_while_somebody_says_it() {
        let workers = Workers::new(1 << 20);
        workers.replace("one", vec![spec("x", "old"), spec("y", "old")]);
        workers.replace("two", vec![spec("x", "new")]);
        assert_eq!(said(&workers), ["a.x new", "a.y old"]);
        // Said again by another: now it is the last word.
        workers.replace("three", vec![spec("x", "old")]);
        assert_eq!(said(&workers), ["a.x old", "a.y old"]);
        workers.withdraw("three");
        assert_eq!(said(&workers), ["a.x old", "a.y old"]);
        workers.withdraw("one");
        assert_eq!(said(&workers), ["a.x new"]);
        workers.expire(Duration::ZERO);
        assert_eq!(said(&workers), [""; 0]);
        assert!(workers.served().0.is_empty());
    }

    #[test]
    fn what_is_said_again_stays_where_it_is() {
        let workers = Workers::new(1 << 20);
        workers.replace("one", vec![spec("x", "same"), spec("x", "same")]);
        let before = workers.served().0["a.x"].last_word().unwrap();
        workers.replace("one", vec![spec("x", "same")]);
        workers.replace("two", vec![spec("x", "same")]);
        workers.withdraw("one");
        assert!(Arc::ptr_eq(&before, &workers.served().0["a.x"].last_word().unwrap()));
        let changed =
            Announcement { add: vec![spec("x", "other")], remove: vec!["a.x".into()], ..Announcement::default() };
        assert!(workers.announce("two", changed));
        assert_eq!(said(&workers), ["a.x other"]);
        assert!(!workers.announce("one", Announcement::default()));
    }
}
