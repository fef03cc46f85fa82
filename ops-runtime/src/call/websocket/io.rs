//! The stream under a socket of the hub: the bytes of an incomplete message count for its peer.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context as Task, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep};

use crate::call::budget::{Share, Spent};

/// Bytes of a message that do not count: the buffer that every connection has.
const FREE: usize = 64 << 10;

/// How long to wait before checking for room again.
const AGAIN: Duration = Duration::from_millis(20);

/// How long a message may wait for room.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts the bytes of the incomplete message.
pub(super) struct Gauge {
    share: Arc<Share>,
    come: AtomicUsize,
    counted: AtomicUsize,
}

impl Gauge {
    pub(super) fn new(share: Arc<Share>) -> Arc<Self> {
        Arc::new(Self { share, come: AtomicUsize::new(0), counted: AtomicUsize::new(0) })
    }

    /// Called when the message is complete: it is counted as a message from now on.
    pub(super) fn settle(&self) {
        self.come.store(0, Ordering::Relaxed);
        if self.counted.load(Ordering::Relaxed) > 0 {
            self.share.give_back(self.counted.swap(0, Ordering::Relaxed));
        }
    }

    /// So many bytes were not part of a message, such as a ping; those of an incomplete message still count.
    pub(super) fn pass(&self, bytes: usize) {
        let take = |of: &AtomicUsize| {
            let before = of.load(Ordering::Relaxed);
            of.store(before.saturating_sub(bytes), Ordering::Relaxed);
            before.min(bytes)
        };
        take(&self.come);
        self.share.give_back(take(&self.counted));
    }

    fn came(&self, bytes: usize) {
        if self.come.fetch_add(bytes, Ordering::Relaxed) + bytes > FREE {
            self.counted.fetch_add(bytes, Ordering::Relaxed);
            self.share.take_anyway(bytes);
        }
    }

    /// True if more may be read of a message that counts already.
    ///
    /// One message of a peer that has reached its limit is read all the same: its size is limited, and its request is
    /// refused when it is known. So the peer loses that request, and not its connection.
    fn has_room(&self) -> bool {
        self.counted.load(Ordering::Relaxed) == 0
            || match self.share.take(FREE) {
                Ok(()) => {
                    self.share.give_back(FREE);
                    true
                }
                Err(spent) => spent == Spent::Peer,
            }
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        self.settle();
    }
}

/// A stream whose bytes are counted.
pub(super) struct Gauged<S> {
    stream: S,
    gauge: Arc<Gauge>,
    /// Since when there is no room, and when to check again.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl<S> Gauged<S> {
    pub(super) fn new(stream: S, gauge: Arc<Gauge>) -> Self {
        Self { stream, gauge, waiting: None }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Gauged<S> {
    fn poll_read(mut self: Pin<&mut Self>, task: &mut Task<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while !this.gauge.has_room() {
            let (since, again) =
                this.waiting.get_or_insert_with(|| (Instant::now(), Box::pin(tokio::time::sleep(AGAIN))));
            if since.elapsed() >= PATIENCE {
                let why = "there is no memory for the message (`CallHandler::with_max_bytes`)";
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::OutOfMemory, why)));
            }
            ready!(again.as_mut().poll(task));
            again.as_mut().reset(Instant::now() + AGAIN);
        }
        this.waiting = None;
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(task, buffer))?;
        this.gauge.came(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Gauged<S> {
    fn poll_write(mut self: Pin<&mut Self>, task: &mut Task<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(task, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(task)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(task)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        task: &mut Task<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(task, bytes)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
