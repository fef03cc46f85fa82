//! One session over HTTP: its owner, its requests, and what its client was sent.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use futures_core::Stream;
use futures_util::StreamExt;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::{EventStream, ServerSseMessage};
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::answers::Answers;
use crate::model::clock::millis;
use crate::model::lock::lock;
use crate::run::principal::Principal;

/// How long a session may do nothing after it began: clients report at once that they are ready (MCP specification,
/// "Lifecycle").
pub(super) const UNUSED: Duration = Duration::from_secs(30);

/// One session.
pub(super) struct Session {
    pub(super) owner: OnceLock<Principal>,
    /// Permits for its requests in flight.
    pub(super) requests: Arc<Semaphore>,
    max_requests: usize,
    /// How many of those in flight are streams that the client listens on: they last as long as the client wants, and
    /// hold nothing.
    streams: AtomicUsize,
    /// The ids of its requests in flight.
    ids: Mutex<HashSet<RequestId>>,
    /// When the service started.
    started: Instant,
    /// When it was last used, in milliseconds since then.
    pub(super) used: AtomicU64,
    /// True if it was used after it began.
    pub(super) in_use: AtomicBool,
    /// How many of the server's own messages its client was sent.
    pub(super) told: AtomicUsize,
    /// The last answers to its calls.
    pub(super) answers: Arc<Answers>,
}

/// The place of a session that is about to begin, so that others do not take it.
pub(super) struct Place(Arc<AtomicUsize>);

impl Place {
    pub(super) fn take(beginning: &Arc<AtomicUsize>) -> Self {
        beginning.fetch_add(1, Ordering::AcqRel);
        Self(beginning.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Session {
    /// A session that begins now, of a service that started then, with room for its answers.
    pub(super) fn new(started: Instant, max_requests: usize, room: Arc<Semaphore>) -> Self {
        Self {
            owner: OnceLock::new(),
            requests: Arc::new(Semaphore::new(max_requests)),
            max_requests,
            streams: AtomicUsize::default(),
            ids: Mutex::default(),
            started,
            used: AtomicU64::new(millis(started.elapsed())),
            in_use: AtomicBool::new(false),
            told: AtomicUsize::default(),
            answers: Arc::new(Answers::new(room)),
        }
    }

    /// Reserves an id for a request; false if another has it.
    pub(super) fn take(&self, id: &RequestId) -> bool {
        lock(&self.ids).insert(id.clone())
    }

    pub(super) fn give_back(&self, id: &RequestId) {
        lock(&self.ids).remove(id);
    }

    /// Notes that it is used now: a request begins or ends.
    pub(super) fn touch(&self) {
        self.used.store(millis(self.started.elapsed()), Ordering::Release);
    }

    /// Counts a stream that the client listens on, until [`end_stream`](Self::end_stream).
    pub(super) fn begin_stream(&self) {
        self.streams.fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn end_stream(&self) {
        self.streams.fetch_sub(1, Ordering::AcqRel);
    }

    /// True if it has no request in flight except streams that the client listens on.
    pub(super) fn is_idle(&self) -> bool {
        self.requests.available_permits() + self.streams.load(Ordering::Acquire) == self.max_requests
    }

    /// True if it may be ended: it is idle, and has been for the idle timeout.
    pub(super) fn has_expired(&self, idle: Duration) -> bool {
        let most = if self.in_use.load(Ordering::Acquire) { idle } else { idle.min(UNUSED) };
        let before = millis(self.started.elapsed().saturating_sub(most));
        self.is_idle() && self.started.elapsed() >= most && self.used.load(Ordering::Acquire) <= before
    }
}

/// The server's own messages, which the session's client has when they were read.
pub(super) fn noted(
    session: Option<Arc<Session>>,
    events: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
) -> EventStream {
    Box::pin(events.inspect(move |event| {
        if let (Some(session), Some(index)) = (&session, index(event)) {
            session.told.fetch_max(index.saturating_add(1), Ordering::AcqRel);
        }
    }))
}

/// The number of one of the server's own messages. `None` for an event of a call.
pub(super) fn index(event: &ServerSseMessage) -> Option<usize> {
    event.message.as_ref()?;
    event.event_id.as_ref()?.parse().ok()
}
