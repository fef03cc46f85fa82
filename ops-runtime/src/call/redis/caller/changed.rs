//! Workers that have changed what they serve. They are looked at beside the task that reads the answers: a worker may serve
//! much, or change often.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use super::{MAX_WORKERS, Shared};
use crate::call::broker::backoff;

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
}

/// Looks at workers that have changed.
pub(super) async fn look(shared: Arc<Shared>, changed: Arc<Changed>) {
    let mut attempts = 0;
    loop {
        let Some(worker) = changed.workers().pop_first() else {
            changed.more.notified().await;
            continue;
        };
        if shared.look_at(&shared.line, &worker).await.is_ok() {
            attempts = 0;
            continue;
        }
        changed.add([&*worker].into_iter());
        tokio::time::sleep(backoff(attempts)).await;
        attempts += 1;
    }
}
