//! Workers whose operations have changed. They are read in another task than the responses, since a worker may serve
//! many operations, or change them often.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::BoxFuture;
use crate::model::lock::lock;
use crate::model::random::reconnect;

/// Limit of such workers.
pub(super) const MAX_WORKERS: usize = 10_000;

/// The workers whose operations have changed.
#[derive(Default)]
pub(super) struct Changed {
    workers: Mutex<BTreeSet<String>>,
    more: Notify,
}

impl Changed {
    fn workers(&self) -> MutexGuard<'_, BTreeSet<String>> {
        lock(&self.workers)
    }

    /// Adds workers; one that is there already is read once.
    pub(super) fn add<'a>(&self, changed: impl Iterator<Item = &'a str>) {
        let mut workers = self.workers();
        for worker in changed {
            if workers.len() < MAX_WORKERS && !workers.contains(worker) {
                workers.insert(worker.to_owned());
            }
        }
        drop(workers);
        self.more.notify_one();
    }

    /// The next worker after the last one, in rotation: one that cannot be read comes after all others.
    fn next(&self, last: &str) -> Option<String> {
        let mut workers = self.workers();
        let next = workers.range::<str, _>((Excluded(last), Unbounded)).next().or_else(|| workers.first()).cloned()?;
        workers.take(&next)
    }
}

/// Reads the operations of changed workers; `look_at` returns true if that was possible.
pub(super) async fn look(changed: Arc<Changed>, look_at: impl Fn(String) -> BoxFuture<'static, bool> + Send + Sync) {
    let (mut attempts, mut worker) = (0, String::new());
    loop {
        let Some(next) = changed.next(&worker) else {
            changed.more.notified().await;
            // All have been read.
            attempts = 0;
            continue;
        };
        worker = next;
        if look_at(worker.clone()).await {
            continue;
        }
        changed.add([&*worker].into_iter());
        tokio::time::sleep(reconnect(attempts)).await;
        attempts += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_can_not_be_read_is_behind_the_others() {
        let changed = Changed::default();
        changed.add(["a", "b", "c", "b"].into_iter());
        let mut last = String::new();
        let mut looks = Vec::new();
        while let Some(worker) = changed.next(&last) {
            looks.push(worker.clone());
            if worker == "a" && looks.len() < 5 {
                changed.add([&*worker].into_iter());
            }
            last = worker;
        }
        assert_eq!(looks, ["a", "b", "c", "a", "a"]);
    }
}
