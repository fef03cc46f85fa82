//! The callers that have asked a worker for its operations and have no response yet.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::model::lock::lock;

/// Limit of waiting callers; further ones get no response, and ask again.
const MOST: usize = 4_096;

/// The waiting callers, in order.
///
/// A response is far larger than its request. A caller that asks again before it has a response gets one response. The
/// next response is made when there is room for it.
#[derive(Default)]
pub(super) struct Asked {
    askers: Mutex<Askers>,
    more: Notify,
}

#[derive(Default)]
struct Askers {
    queue: VecDeque<String>,
    known: HashSet<String>,
}

impl Asked {
    fn askers(&self) -> MutexGuard<'_, Askers> {
        lock(&self.askers)
    }

    /// Adds a caller, by the subject of its response.
    pub(super) fn add(&self, asker: &str) {
        let mut askers = self.askers();
        if askers.queue.len() < MOST && askers.known.insert(asker.to_owned()) {
            askers.queue.push_back(asker.to_owned());
            drop(askers);
            self.more.notify_one();
        }
    }

    /// Waits for a caller, and removes it.
    pub(super) async fn next(&self) -> String {
        loop {
            let next = {
                let mut askers = self.askers();
                let next = askers.queue.pop_front();
                next.inspect(|asker| _ = askers.known.remove(asker))
            };
            match next {
                Some(asker) => return asker,
                None => self.more.notified().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn whoever_asks_again_is_answered_once() {
        let asked = Asked::default();
        for asker in ["b", "a", "b", "a"] {
            asked.add(asker);
        }
        assert_eq!((asked.next().await, asked.next().await), ("b".to_owned(), "a".to_owned()));
        // Answered, it may ask once more.
        asked.add("b");
        assert_eq!(asked.next().await, "b");
        for n in 0..MOST + 5 {
            asked.add(&n.to_string());
        }
        let askers = asked.askers();
        assert_eq!((askers.queue.len(), askers.known.len()), (MOST, MOST));
    }
}
