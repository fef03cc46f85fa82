//! Timeout of a connection for the head of a request.
//!
//! hyper has such a timeout, too, but makes a timer for each request and one more read to start it: a tenth of the cost
//! of a small request. One timer of the runtime per connection would still cost half of that, since the runtime arms it
//! again each time it is idle. Here one thread checks the connections at intervals.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};

use crate::model::lock::lock;

/// The shortest and the longest interval between two checks of the connections.
const TICK: (Duration, Duration) = (Duration::from_millis(5), Duration::from_secs(1));

/// Checks the connections of a server, until this is dropped. A late head is found after its timeout and at most a
/// quarter more, or two seconds.
pub(super) struct Watch(Arc<Watched>);

struct Watched {
    timeout: Duration,
    connections: Mutex<Connections>,
    changed: Condvar,
}

#[derive(Default)]
struct Connections {
    /// Each with the time since when it waits for a head.
    waiting: Vec<(Weak<Requests>, Option<Instant>)>,
    is_over: bool,
}

impl Watch {
    /// # Errors
    /// If the system cannot start a thread.
    pub(super) fn new(timeout: Duration) -> io::Result<Self> {
        let watched = Arc::new(Watched { timeout, connections: Mutex::default(), changed: Condvar::new() });
        let of_thread = watched.clone();
        std::thread::Builder::new().name("ops-heads".to_owned()).spawn(move || of_thread.run())?;
        Ok(Self(watched))
    }

    /// The requests of a new connection.
    pub(super) fn connection(&self) -> Arc<Requests> {
        let requests = Arc::<Requests>::default();
        let mut connections = lock(&self.0.connections);
        if connections.waiting.is_empty() {
            self.0.changed.notify_one();
        }
        connections.waiting.push((Arc::downgrade(&requests), Some(Instant::now())));
        requests
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        lock(&self.0.connections).is_over = true;
        self.0.changed.notify_one();
    }
}

impl Watched {
    fn run(&self) {
        let tick = (self.timeout / 8).clamp(TICK.0, TICK.1);
        let mut connections = lock(&self.connections);
        while !connections.is_over {
            connections = if connections.waiting.is_empty() {
                self.changed.wait(connections).unwrap_or_else(PoisonError::into_inner)
            } else {
                let waited = self.changed.wait_timeout(connections, tick);
                waited.unwrap_or_else(PoisonError::into_inner).0
            };
            connections.look(Instant::now(), self.timeout);
        }
    }
}

impl Connections {
    fn look(&mut self, now: Instant, timeout: Duration) {
        self.waiting.retain_mut(|(requests, since)| {
            let Some(requests) = requests.upgrade() else { return false };
            if requests.has_come.swap(false, Ordering::Relaxed) || requests.is_any_in_flight() {
                *since = None;
            }
            if !requests.is_any_in_flight() && now.saturating_duration_since(*since.get_or_insert(now)) >= timeout {
                requests.is_late.store(true, Ordering::Release);
                requests.waker.wake();
            }
            true
        });
        // Memory of many connections is released after they have ended.
        if self.waiting.len() < self.waiting.capacity() / 4 {
            self.waiting.shrink_to_fit();
        }
    }
}

/// The requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// True if a request has arrived since [`Watch`] last checked.
    has_come: AtomicBool,
    in_flight: AtomicUsize,
    /// True while the client does not accept what is written: hyper drops a body when it has taken its last part, which
    /// may still have to be written.
    is_writing: AtomicBool,
    is_late: AtomicBool,
    waker: AtomicWaker,
}

impl Requests {
    /// Counts a request as in flight until the returned value is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> InFlight {
        self.has_come.store(true, Ordering::Relaxed);
        self.is_late.store(false, Ordering::Relaxed);
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        InFlight(self.clone())
    }

    /// Sets if the connection waits until it can write.
    pub(super) fn writing(&self, is_writing: bool) {
        self.is_writing.store(is_writing, Ordering::Relaxed);
    }

    fn is_any_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0 || self.is_writing.load(Ordering::Relaxed)
    }

    /// Ready if the head of a request is late. Called after the connection has done what it could.
    pub(super) fn poll_late(&self, task: &mut Context<'_>) -> Poll<()> {
        if self.is_any_in_flight() {
            // Set while this request arrived: the next head has a timeout of its own.
            self.is_late.store(false, Ordering::Relaxed);
            return Poll::Pending;
        }
        self.waker.register(task.waker());
        // One that arrived meanwhile was not late.
        let is_late = self.is_late.load(Ordering::Acquire) && self.is_late.swap(false, Ordering::Relaxed);
        if is_late && !self.has_come.load(Ordering::Relaxed) { Poll::Ready(()) } else { Poll::Pending }
    }
}

/// A request in flight.
pub(super) struct InFlight(Arc<Requests>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of a response, whose request is in flight until hyper has taken all of it, or drops it.
pub(super) struct Sending<B> {
    body: B,
    _in_flight: InFlight,
}

impl<B> Sending<B> {
    pub(super) fn new(body: B, in_flight: InFlight) -> Self {
        Self { body, _in_flight: in_flight }
    }
}

impl<B: Body + Unpin> Body for Sending<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    #[tokio::test]
    async fn only_what_waits_for_a_head_is_late() {
        const SECOND: Duration = Duration::from_secs(1);
        let (began, requests) = (Instant::now(), Arc::<Requests>::default());
        let waiting = vec![(Arc::downgrade(&requests), Some(began))];
        let mut connections = Connections { waiting, ..Connections::default() };
        // Looks each second until this one; whether the head is late then.
        let mut at = 0;
        let mut look = async |until: u32| {
            while at < until {
                at += 1;
                connections.look(began + SECOND * at, SECOND * 10);
            }
            tokio::time::timeout(Duration::ZERO, poll_fn(|task| requests.poll_late(task))).await.is_ok()
        };
        assert!(!look(4).await);
        // A request in flight is not late, however long it takes.
        let request = requests.begin();
        assert!(!look(44).await);
        drop(request);
        // The time begins anew, even if a request came and went between two checks.
        assert!(!look(53).await);
        drop(requests.begin());
        assert!(!look(63).await);
        // A response that the client has yet to take is in flight, though hyper has dropped its body.
        requests.writing(true);
        assert!(!look(90).await);
        requests.writing(false);
        assert!(!look(100).await);
        assert!(look(101).await);
    }

    #[tokio::test]
    async fn a_request_that_came_in_time_is_not_late_after_it() {
        const SECOND: Duration = Duration::from_secs(1);
        let (began, requests) = (Instant::now(), Arc::<Requests>::default());
        let waiting = vec![(Arc::downgrade(&requests), Some(began))];
        let mut connections = Connections { waiting, ..Connections::default() };
        // Found to be late at the moment when its head comes, and looked at once more while it is in flight.
        connections.look(began + SECOND, SECOND);
        let request = requests.begin();
        connections.look(began + SECOND * 2, SECOND);
        drop(request);
        assert!(poll_fn(|task| Poll::Ready(requests.poll_late(task))).await.is_pending());
    }

    #[tokio::test]
    async fn a_late_head_wakes_the_connection() {
        let watch = Watch::new(Duration::from_millis(80)).unwrap();
        let began = Instant::now();
        let (requests, other) = (watch.connection(), watch.connection());
        let _request = other.begin();
        poll_fn(|task| requests.poll_late(task)).await;
        assert!(began.elapsed() >= Duration::from_millis(80));
        assert!(poll_fn(|task| Poll::Ready(other.poll_late(task))).await.is_pending());
        // Connections are forgotten, and so is the thread.
        drop((requests, other));
        let watched = Arc::downgrade(&watch.0);
        drop(watch);
        while watched.strong_count() > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
