//! The outgoing frames of a connection: encoded by the sender, written together by the connection.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

use crate::call::budget::{FLOOR, Share};
use crate::call::{CallEvent, Frame, Link, Unsent};
use crate::model::lock::lock;
use crate::{BoxFuture, CallError};

/// Number of queued bytes from which the queue has no room for another item or request.
const FULL: usize = 1 << 20;

/// Number of queued bytes from which a peer that does not read is hardly read either.
const STALLED: usize = 8 << 20;

/// A message of up to so many bytes is always queued, since it may report a refusal.
const SHORT: usize = 4 << 10;

const UNREAD: &str = "answers that this peer has not read";

/// The queue of a connection.
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    /// True if there is no room for another item or request.
    full: AtomicBool,
    driver: AtomicWaker,
    room: Notify,
    /// The largest message that the peer accepts.
    limit: AtomicUsize,
}

struct Queue {
    texts: Vec<String>,
    /// Bytes of the queue, and of what is being written.
    bytes: usize,
    open: bool,
    /// How many connections have ended.
    ended: u64,
    /// What the peer may hold.
    share: Option<Arc<Share>>,
}

impl Outbox {
    /// A queue that is closed until there is a connection.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self {
            queue: Mutex::new(Queue { texts: Vec::new(), bytes: 0, open: false, ended: 0, share: None }),
            full: AtomicBool::new(false),
            driver: AtomicWaker::new(),
            room: Notify::new(),
            limit: AtomicUsize::new(limit),
        })
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        lock(&self.queue)
    }

    /// Begins to queue for a peer with this share.
    pub(super) fn open(&self, share: Arc<Share>) {
        let mut queue = self.queue();
        (queue.open, queue.share) = (true, Some(share));
    }

    /// Accepts nothing more, and drops the queue.
    pub(super) fn close(&self) {
        let mut queue = self.queue();
        if let Some(share) = queue.share.take() {
            share.give_back(queue.bytes);
        }
        (queue.open, queue.bytes, queue.ended) = (false, 0, queue.ended + 1);
        queue.texts = Vec::new();
        self.full.store(false, Ordering::Release);
        drop(queue);
        self.room.notify_waiters();
    }

    /// The largest message that the peer accepts.
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub(super) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub(super) fn send(&self, frame: Frame) -> Result<(), Unsent> {
        self.send_over(None, frame)
    }

    /// Queues a frame for a connection, by the number of those before it, or for the one that there is.
    fn send_over(&self, connection: Option<u64>, frame: Frame) -> Result<(), Unsent> {
        if let (Frame::Event(CallEvent::Responded { .. }), Some(refusal)) = (&frame, self.refuses()) {
            return Err(Unsent::Refused(refusal));
        }
        let mut text = frame.encode_within(self.limit()).map_err(Unsent::Refused)?;
        if text.len() > SHORT && text.capacity() - text.len() > text.len() / 4 {
            // A queued text must not take more memory than is counted.
            text.shrink_to_fit();
        }
        let mut queue = self.queue();
        if !queue.open || connection.is_some_and(|before| before != queue.ended) {
            return Err(Unsent::Gone(frame));
        }
        if let Some(share) = &queue.share {
            // Requests are of this side, or count for the share of their caller.
            let is_answer = matches!(
                frame,
                Frame::Event(CallEvent::Responded { .. } | CallEvent::Error { .. } | CallEvent::ItemError { .. })
            );
            if is_answer && text.len() > SHORT {
                if let Err(spent) = share.take(text.len()) {
                    return Err(Unsent::Refused(share.refusal(spent, UNREAD)));
                }
            } else {
                share.take_anyway(text.len());
            }
        }
        let was_empty = queue.texts.is_empty();
        queue.bytes += text.len();
        if queue.bytes >= FULL {
            self.full.store(true, Ordering::Release);
        }
        queue.texts.push(text);
        drop(queue);
        if was_empty {
            self.driver.wake();
        }
        Ok(())
    }

    /// Why no response is queued for a peer that does not read: encoding it would cost the memory for which it is
    /// refused.
    fn refuses(&self) -> Option<CallError> {
        let queue = self.queue();
        let share = queue.share.as_ref().filter(|_| queue.bytes >= STALLED)?;
        share.refused().map(|spent| share.refusal(spent, UNREAD))
    }

    /// Moves the queue into an empty vector, and registers the driver to be woken.
    pub(super) fn take(&self, into: &mut Vec<String>, waker: &Waker) {
        self.driver.register(waker);
        std::mem::swap(&mut self.queue().texts, into);
    }

    /// Notes that bytes have been sent.
    pub(super) fn written(&self, bytes: usize) {
        let mut queue = self.queue();
        let was_full = queue.bytes >= FULL;
        let bytes = bytes.min(queue.bytes);
        queue.bytes -= bytes;
        let has_room = queue.bytes < FULL;
        if let Some(share) = &queue.share {
            share.give_back(bytes);
        }
        if has_room {
            self.full.store(false, Ordering::Release);
        }
        drop(queue);
        if was_full && has_room {
            self.room.notify_waiters();
            // Announcements wait for room, too, and the driver queues them.
            self.driver.wake();
        }
    }

    /// Number of queued bytes, if the peer reads so little that it should not be read.
    pub(super) fn stalled(&self) -> Option<usize> {
        let queue = self.queue();
        let is_refused = || queue.share.as_ref().is_some_and(|share| share.refused().is_some());
        (queue.bytes >= STALLED || (queue.bytes >= FLOOR && is_refused())).then_some(queue.bytes)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue().bytes == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Acquire)
    }

    /// Wakes the driver.
    pub(super) fn wake(&self) {
        self.driver.wake();
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

/// The link to the connected peer.
pub(super) struct ToPeer {
    outbox: Arc<Outbox>,
    /// The number of connections before the one that it ends with, if it ends with one.
    connection: Option<u64>,
}

impl ToPeer {
    /// A link over whichever connection there is.
    pub(super) fn lasting(outbox: Arc<Outbox>) -> Self {
        Self { outbox, connection: None }
    }

    /// A link over the connection that is begun next. A late response is not sent over another: there, its id may be that
    /// of another request.
    pub(super) fn once(outbox: Arc<Outbox>) -> Self {
        let connection = Some(outbox.queue().ended);
        Self { outbox, connection }
    }
}

impl Link for ToPeer {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        self.outbox.send_over(self.connection, frame)
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.outbox.is_full().then(|| {
            let outbox = self.outbox.clone();
            Box::pin(async move { outbox.has_room().await }) as BoxFuture<'static, ()>
        })
    }
}
