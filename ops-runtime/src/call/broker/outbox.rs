//! A queue of messages for the broker, which one task sends in order.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::sync::Notify;

use crate::BoxFuture;
use crate::model::lock::lock;

/// Number of queued bytes from which the queue has no room for another item or request.
const FULL: usize = 1 << 20;

/// A queue of messages.
pub(crate) struct Outbox<T> {
    queue: Mutex<Queue<T>>,
    filled: Notify,
    room: Notify,
    /// True if the broker has not taken what was last sent to it.
    is_stuck: AtomicBool,
}

struct Queue<T> {
    messages: Vec<T>,
    /// Bytes of the queued messages and of those that are being sent.
    bytes: usize,
}

impl<T: Send + 'static> Outbox<T> {
    pub(crate) fn new() -> Arc<Self> {
        let queue = Mutex::new(Queue { messages: Vec::new(), bytes: 0 });
        Arc::new(Self { queue, filled: Notify::new(), room: Notify::new(), is_stuck: AtomicBool::new(false) })
    }

    fn queue(&self) -> MutexGuard<'_, Queue<T>> {
        lock(&self.queue)
    }

    /// Queues a message of that many bytes.
    pub(crate) fn push(&self, message: T, bytes: usize) {
        let mut queue = self.queue();
        let was_empty = queue.messages.is_empty();
        queue.messages.push(message);
        queue.bytes += bytes;
        drop(queue);
        if was_empty {
            self.filled.notify_one();
        }
    }

    /// Waits for messages, and moves all of them into an empty vector.
    pub(crate) async fn take(&self, into: &mut Vec<T>) {
        loop {
            std::mem::swap(&mut self.queue().messages, into);
            if !into.is_empty() {
                return;
            }
            self.filled.notified().await;
            // Tasks that were woken together usually write together: so their messages are sent together.
            tokio::task::yield_now().await;
        }
    }

    /// Notes that bytes have been sent.
    pub(crate) fn sent(&self, bytes: usize) {
        let mut queue = self.queue();
        queue.bytes = queue.bytes.saturating_sub(bytes);
        let has_room = queue.bytes < FULL;
        drop(queue);
        if has_room {
            self.room.notify_waiters();
        }
    }

    /// Notes if the broker has taken what was sent to it.
    pub(crate) fn reached(&self, is_reached: bool) {
        self.is_stuck.store(!is_reached, Ordering::Relaxed);
    }

    /// True if the broker has taken what was last sent to it.
    pub(crate) fn is_reached(&self) -> bool {
        !self.is_stuck.load(Ordering::Relaxed)
    }

    /// Number of bytes that wait to be sent.
    pub(crate) fn bytes(&self) -> usize {
        self.queue().bytes
    }

    /// True if there is no room for another item or request.
    fn is_full(&self) -> bool {
        self.queue().bytes >= FULL
    }

    /// True if there is no room for another abort of an unknown request, either. Aborts have more room, since those who
    /// send items and requests keep the queue full for as long as they have more.
    pub(crate) fn is_overfull(&self) -> bool {
        self.queue().bytes >= 4 * FULL
    }

    /// Waits until everything has been sent.
    pub(crate) async fn flushed(&self) {
        self.wait(|outbox| outbox.queue().bytes == 0).await;
    }

    /// What to await before more is queued; `None` if there is room.
    pub(crate) fn ready(self: &Arc<Self>) -> Option<BoxFuture<'static, ()>> {
        self.is_full().then(|| {
            let outbox = self.clone();
            Box::pin(async move { outbox.wait(|outbox| !outbox.is_full()).await }) as BoxFuture<'static, ()>
        })
    }

    async fn wait(&self, until: impl Fn(&Self) -> bool) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if until(self) {
                return;
            }
            room.await;
        }
    }
}
