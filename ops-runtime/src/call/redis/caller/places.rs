//! The places of requests in their Redis streams.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

use crate::Text;
use crate::call::pending::ByNumber;
use crate::model::lock::lock;
use crate::model::request_id::Number;

/// How many requests are looked up at a time.
const LOOKED_FOR: usize = 1_000;

/// The places of requests in their Redis streams, until a worker starts them.
#[derive(Default)]
pub(super) struct Places {
    all: Mutex<ByNumber<Place>>,
    /// The request that was looked up last.
    last: AtomicU64,
}

#[derive(Clone)]
pub(super) struct Place {
    pub(super) operation: Text,
    /// Its entry in the stream; `None` until it is written.
    pub(super) entry: Option<String>,
    /// Since when it is known to be gone from the stream, while no worker reports it.
    pub(super) gone: Option<Instant>,
    /// Since when the server refuses the lookup for a permanent reason.
    pub(super) refused: Option<Instant>,
}

impl Place {
    /// The place of a request for an operation; the request is not written yet.
    pub(super) fn of(operation: Text) -> Self {
        Self { operation, entry: None, gone: None, refused: None }
    }
}

impl Places {
    pub(super) fn all(&self) -> MutexGuard<'_, ByNumber<Place>> {
        lock(&self.all)
    }

    /// Some of those that may still wait in their streams, with their entries; in rotation, so that each gets its turn.
    pub(super) fn next(&self, silent: &[Number]) -> Vec<(Number, Text, String)> {
        let all = self.all();
        let mut waiting: Vec<_> = silent
            .iter()
            .filter_map(|number| match all.get(number)? {
                Place { operation, entry: Some(entry), gone: None, .. } => Some((*number, operation, entry)),
                // One without an entry has not been written yet.
                _ => None,
            })
            .collect();
        waiting.sort_unstable_by_key(|(Number(number), ..)| *number);
        let last = self.last.load(Ordering::Relaxed);
        let seen = waiting.partition_point(|(Number(number), ..)| *number <= last);
        waiting.rotate_left(seen);
        waiting.truncate(LOOKED_FOR);
        if let Some((Number(last), ..)) = waiting.last() {
            self.last.store(*last, Ordering::Relaxed);
        }
        waiting.into_iter().map(|(number, operation, entry)| (number, operation.clone(), entry.clone())).collect()
    }
}
