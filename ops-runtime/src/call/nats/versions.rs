//! Detects missed announcements of workers.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard};

use super::subject;
use crate::model::lock::lock;

/// The last complete version of each worker's announcements: the worker's connection, and a number.
///
/// The server stores nothing for disconnected clients, and a lost connection loses messages in flight. So a worker
/// numbers its announcements, and each heartbeat has the latest number.
#[derive(Default)]
pub(super) struct Versions(Mutex<HashMap<String, (String, u64)>>);

impl Versions {
    fn last(&self) -> MutexGuard<'_, HashMap<String, (String, u64)>> {
        lock(&self.0)
    }

    /// Notes that all announcements of a worker up to a number are known. `worker` includes its connection.
    pub(super) fn know(&self, worker: &str, number: u64) {
        self.last().insert(subject::name(worker).to_owned(), (worker.to_owned(), number));
    }

    /// Notes an announced change, if none before it is missing.
    pub(super) fn changed(&self, worker: &str, number: u64) {
        if let Some((connection, last)) = self.last().get_mut(subject::name(worker))
            && *connection == worker
            && number == last.saturating_add(1)
        {
            *last = number;
        }
    }

    /// True if all announcements of a worker are known, given its latest number.
    pub(super) fn is_current(&self, worker: &str, number: u64) -> bool {
        let last = self.last();
        let known = last.get(subject::name(worker));
        known.is_none_or(|(connection, last)| *connection == worker && *last == number)
    }

    /// Forgets all other workers.
    pub(super) fn keep(&self, workers: &[Arc<str>]) {
        let mut last = self.last();
        if last.len() > workers.len() {
            let workers: HashSet<&str> = workers.iter().map(|worker| &**worker).collect();
            last.retain(|name, _| workers.contains(&**name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_noticed() {
        let versions = Versions::default();
        assert!(versions.is_current("w.0", 7), "nothing is known of it: it is asked anyhow");
        versions.know("w.0", 7);
        versions.changed("w.0", 8);
        assert!(versions.is_current("w.0", 8));
        // The ninth is missing.
        versions.changed("w.0", 10);
        assert!(!versions.is_current("w.0", 10));
        versions.know("w.0", 10);
        assert!(versions.is_current("w.0", 10));
        // What was said over another connection may be lost.
        assert!(!versions.is_current("w.1", 10));
        versions.keep(&["other".into()]);
        assert_eq!(versions.last().len(), 1, "there are no more than workers");
        versions.keep(&[]);
        assert!(versions.last().is_empty());
    }
}
