//! The credits of a subscription, at the worker: a subscriber that reads slowly holds up only its own subscription.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use tokio::sync::Notify;

use super::WINDOW;
use crate::model::lock::lock;

/// The credits of a subscription: how many items may be sent.
pub(super) struct Credits {
    left: AtomicUsize,
    more: Notify,
    ahead: Mutex<Ahead>,
}

/// The items that were sent and not yet credited.
#[derive(Default)]
struct Ahead {
    sizes: VecDeque<usize>,
    bytes: usize,
}

impl Credits {
    pub(super) fn new() -> Self {
        Self { left: AtomicUsize::new(WINDOW as usize), more: Notify::new(), ahead: Mutex::default() }
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        lock(&self.ahead)
    }

    /// Records that an item of this size was sent.
    pub(super) fn sent(&self, bytes: usize) {
        let mut ahead = self.ahead();
        ahead.sizes.push_back(bytes);
        ahead.bytes += bytes;
    }

    /// Records that an error was sent in place of the last item. It counts as an item, but its bytes do not count, as for the
    /// subscriber.
    pub(super) fn replaced(&self) {
        let mut ahead = self.ahead();
        // The item is gone if the peer gave credit for it before it arrived.
        let bytes = ahead.sizes.back_mut().map_or(0, std::mem::take);
        ahead.bytes -= bytes;
    }

    /// Waits until fewer bytes than the window are sent and not yet credited.
    pub(super) async fn fits(&self, window: usize) {
        while self.ahead().bytes >= window {
            self.more.notified().await;
        }
    }

    /// Records that the subscriber accepts more items.
    pub(super) fn add(&self, items: usize) {
        {
            let mut ahead = self.ahead();
            for _ in 0..items.min(ahead.sizes.len()) {
                ahead.bytes -= ahead.sizes.pop_front().unwrap_or(0);
            }
        }
        let add = |left: usize| Some(left.saturating_add(items));
        let _ = self.left.try_update(Ordering::AcqRel, Ordering::Acquire, add);
        self.more.notify_one();
    }

    /// Takes one credit, as soon as there is one.
    pub(super) async fn take(&self) {
        loop {
            let taken = self.left.try_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
            if taken.is_ok() {
                return;
            }
            self.more.notified().await;
        }
    }
}
