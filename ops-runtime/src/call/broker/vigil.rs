//! The caller's side: which requests are known to be run, and by whom.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::call::{PendingRequests, RequestId};
use crate::context::Number;

/// What is known of requests that are not answered at once.
#[derive(Default)]
pub(crate) struct Vigil(Mutex<HashMap<Number, Seen>>);

struct Seen {
    /// When somebody last said that it runs, or the request was first seen.
    at: Instant,
    worker: Option<Arc<str>>,
}

impl Vigil {
    fn seen(&self) -> MutexGuard<'_, HashMap<Number, Seen>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a worker runs requests; those that nobody waits for come back.
    pub(crate) fn running(&self, pending: &PendingRequests, worker: &Arc<str>, ids: Vec<RequestId>) -> Vec<RequestId> {
        let mut seen = self.seen();
        let mut unknown = Vec::new();
        for id in ids {
            match id.number().filter(|number| pending.has(*number)) {
                Some(number) => {
                    seen.insert(number, Seen { at: Instant::now(), worker: Some(worker.clone()) });
                }
                None => unknown.push(id),
            }
        }
        unknown
    }

    /// Notes who gives a subscription its items.
    pub(crate) fn answered(&self, pending: &PendingRequests, worker: &str, id: &RequestId) {
        let Some(number) = id.number().filter(|number| pending.has(*number)) else { return };
        let mut seen = self.seen();
        match seen.get_mut(&number) {
            Some(Seen { at, worker: Some(known) }) if **known == *worker => *at = Instant::now(),
            _ => {
                seen.insert(number, Seen { at: Instant::now(), worker: Some(worker.into()) });
            }
        }
    }

    /// Who runs a request, as far as it is known.
    pub(crate) fn worker_of(&self, id: &RequestId) -> Option<Arc<str>> {
        self.seen().get(&id.number()?)?.worker.clone()
    }

    /// The requests under way that nobody has named for that long.
    pub(crate) fn silent(&self, pending: &PendingRequests, after: Duration) -> Vec<RequestId> {
        let numbers = pending.numbers();
        let (mut seen, now) = (self.seen(), Instant::now());
        let mut before = std::mem::take(&mut *seen);
        let mut silent = Vec::new();
        for number in numbers {
            let known = before.remove(&number).unwrap_or(Seen { at: now, worker: None });
            if now.duration_since(known.at) >= after {
                silent.push(RequestId::of(number));
            }
            seen.insert(number, known);
        }
        silent
    }
}
