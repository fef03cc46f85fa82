//! What is to be sent over a connection: encoded by whoever says it, written by the connection in one go.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::BoxFuture;
use crate::call::{Frame, Link, Unsent};

/// From how many bytes on the queue has no room for another item or request.
const FULL: usize = 1 << 20;

/// From how many bytes on nothing more is read from a peer that reads nothing itself.
const STALLED: usize = 8 << 20;

/// The queue of a connection.
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    driver: AtomicWaker,
    room: Notify,
    /// The largest message that the peer takes.
    limit: AtomicUsize,
}

struct Queue {
    texts: Vec<String>,
    /// Of these, and of those that are being written.
    bytes: usize,
    open: bool,
}

impl Outbox {
    /// A queue that is closed until there is a connection.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue { texts: Vec::new(), bytes: 0, open: false }),
            driver: AtomicWaker::new(),
            room: Notify::new(),
            limit: AtomicUsize::new(limit),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn open(&self) {
        self.queue().open = true;
    }

    /// Takes nothing more, and forgets what is there.
    pub(super) fn close(&self) {
        let mut queue = self.queue();
        (queue.open, queue.bytes) = (false, 0);
        queue.texts = Vec::new();
        drop(queue);
        self.room.notify_waiters();
    }

    /// The largest message that the peer takes.
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn send(&self, frame: Frame) -> Result<(), Unsent> {
        let text = frame.encode_within(self.limit()).map_err(Unsent::Refused)?;
        let mut queue = self.queue();
        if !queue.open {
            return Err(Unsent::Gone(frame));
        }
        let was_empty = queue.texts.is_empty();
        queue.bytes += text.len();
        queue.texts.push(text);
        drop(queue);
        if was_empty {
            self.driver.wake();
        }
        Ok(())
    }

    /// Moves what is queued into an empty vector, and has the driver woken when there is more.
    pub(super) fn take(&self, into: &mut Vec<String>, waker: &Waker) {
        self.driver.register(waker);
        std::mem::swap(&mut self.queue().texts, into);
    }

    /// Tells that bytes are on their way.
    pub(super) fn written(&self, bytes: usize) {
        let mut queue = self.queue();
        let was_full = queue.bytes >= FULL;
        queue.bytes = queue.bytes.saturating_sub(bytes);
        let has_room = queue.bytes < FULL;
        drop(queue);
        if was_full && has_room {
            self.room.notify_waiters();
        }
    }

    /// Whether the peer reads so little that it should be read no further.
    pub(super) fn is_stalled(&self) -> bool {
        self.queue().bytes >= STALLED
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue().bytes == 0
    }

    fn is_full(&self) -> bool {
        let queue = self.queue();
        queue.open && queue.bytes >= FULL
    }

    async fn has_room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if !self.is_full() {
                return;
            }
            room.await;
        }
    }
}

/// The link to whoever is connected.
#[derive(Clone)]
pub(super) struct ToPeer(pub(super) Arc<Outbox>);

impl Link for ToPeer {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        self.0.send(frame)
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.0.is_full().then(|| {
            let outbox = self.0.clone();
            Box::pin(async move { outbox.has_room().await }) as BoxFuture<'static, ()>
        })
    }
}
