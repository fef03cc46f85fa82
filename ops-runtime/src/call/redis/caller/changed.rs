//! Workers that have changed what they serve. They are looked at beside the task that reads the answers: a worker may serve
//! much, or change often.

use std::collections::BTreeSet;
use std::ops::Bound::{Excluded, Unbounded};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::BoxFuture;
use crate::call::broker::backoff;

/// How many workers are looked at.
pub(super) const MAX_WORKERS: usize = 10_000;

/// The workers that have said that they serve something else.
#[derive(Default)]
pub(super) struct Changed {
    workers: Mutex<BTreeSet<String>>,
    more: Notify,
}

impl Changed {
    fn workers(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds workers; those that are there already are looked at once.
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

    /// Takes the next worker after the last one, round and round: one that can't be read is behind all others then.
    fn next(&self, last: &str) -> Option<String> {
        let mut workers = self.workers();
        let next = workers.range::<str, _>((Excluded(last), Unbounded)).next().or_else(|| workers.first()).cloned()?;
        workers.take(&next)
    }
}

/// Looks at workers that have changed; `look_at` says if one could be read.
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
        tokio::time::sleep(backoff(attempts)).await;
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
