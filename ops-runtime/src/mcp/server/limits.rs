//! Limits for the clients of a server over HTTP: requests in flight, and bytes.

// An error is the response that is sent, so a small type would gain nothing.
#![allow(clippy::result_large_err)]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt;
use rmcp::model::RequestId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::body::{McpBody, RequestBody, plain};
use super::options::McpServerOptions;
use super::session::Session;
use crate::model::body::pieces::Pieces;
use crate::model::lock::lock;
use crate::model::separators::{NODE, SMALL, separators};

/// How many messages are read at a time for which there is no room, as they may end work that takes it.
const RESERVE: usize = 100;

/// How long a request waits for room before it is refused.
const WAIT: Duration = Duration::from_secs(5);

/// State shared by all requests.
pub(super) struct Limits {
    requests: Arc<Semaphore>,
    /// Messages that are read though there is no room for a request.
    reserve: Arc<Semaphore>,
    /// Requests of 2026-07-28 that are streams of the server's own messages.
    streams: Arc<Semaphore>,
    /// Bytes of requests: those that are read, and what is made of them until they are answered.
    bytes: Arc<Semaphore>,
    max_bodies: usize,
    max_body: usize,
    /// Bytes of results that clients have not read yet.
    unread: Arc<AtomicUsize>,
    max_unread: usize,
    read_timeout: Duration,
}

/// The resources of one request, released when its response was read or dropped.
#[derive(Default)]
pub(super) struct Held {
    /// As what it counts: a request, a message of the reserve, or a stream.
    counted: Mutex<Option<OwnedSemaphorePermit>>,
    bytes: Mutex<Option<OwnedSemaphorePermit>>,
    /// Without a permit for what is let in beyond the session's limit.
    session: OnceLock<(Arc<Session>, Option<OwnedSemaphorePermit>)>,
    id: OnceLock<RequestId>,
    /// Its id, if another request of the session has it.
    repeats: OnceLock<RequestId>,
    /// Set if it is a stream that the session's client listens on.
    listens: OnceLock<()>,
    unread: AtomicUsize,
    all_unread: Arc<AtomicUsize>,
}

impl Limits {
    pub(super) fn new(options: &McpServerOptions) -> Self {
        let semaphore = |count: usize| Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS)));
        // The highest number of permits that can be acquired at once.
        let max_bodies = options.max_bodies.clamp(1, u32::MAX as usize);
        Self {
            requests: semaphore(options.max_requests),
            reserve: semaphore(RESERVE),
            streams: semaphore(options.max_streams),
            bytes: semaphore(max_bodies),
            max_bodies,
            max_body: options.max_body,
            unread: Arc::default(),
            max_unread: options.max_unread_bytes,
            read_timeout: options.read_timeout,
        }
    }

    /// Admits a request.
    ///
    /// # Errors
    /// The response if there is no room.
    pub(super) fn admit(&self) -> Result<Held, Response<McpBody>> {
        self.may_send()?;
        let Ok(request) = self.requests.clone().try_acquire_owned() else {
            return Err(busy("Too many requests are in work (max_requests)"));
        };
        Ok(Held::of(Some(request), self.unread.clone()))
    }

    /// Lets a message in for which there is no room, to see if it ends work. `None` if there are many of them.
    pub(super) fn reserve(&self) -> Option<Held> {
        let message = self.reserve.clone().try_acquire_owned().ok()?;
        Some(Held::of(Some(message), self.unread.clone()))
    }

    /// Admits a request that counts for its session only.
    pub(super) fn uncounted(&self) -> Held {
        Held::of(None, self.unread.clone())
    }

    /// Refuses to send more while too many results wait to be read.
    ///
    /// # Errors
    /// The response to the request.
    pub(super) fn may_send(&self) -> Result<(), Response<McpBody>> {
        if self.unread.load(Ordering::Acquire) > self.max_unread {
            return Err(busy("Too many results wait to be read (max_unread_bytes)"));
        }
        Ok(())
    }

    /// Counts a request as a stream of the server's own messages, which lasts as long as its client likes.
    ///
    /// # Errors
    /// The response if there are as many as there may be.
    pub(super) fn listen(&self, held: &Held) -> Result<(), Response<McpBody>> {
        let Ok(stream) = self.streams.clone().try_acquire_owned() else {
            return Err(busy("Too many streams of the server's messages are open (max_streams)"));
        };
        *lock(&held.counted) = Some(stream);
        Ok(())
    }

    /// Reads the body of a request, and reserves as many bytes for it as the server will need.
    ///
    /// # Errors
    /// The response if the body is too large or too slow, or if there is no room.
    pub(super) async fn read(&self, held: &Held, body: RequestBody) -> Result<Bytes, Response<McpBody>> {
        let read = timeout(self.read_timeout, self.collect(held, body)).await;
        let bytes = read.unwrap_or_else(|_| {
            Err(plain(StatusCode::REQUEST_TIMEOUT, "Request Timeout: the body did not come in time (read_timeout)"))
        })?;
        if bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[') {
            let text = "Bad Request: batches, which 2025-03-26 had, are not taken: send one message at a time";
            return Err(plain(StatusCode::BAD_REQUEST, text));
        }
        let nodes = separators(&bytes);
        if nodes > self.max_bodies / NODE {
            return Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large: too many values (max_bodies)"));
        }
        if nodes > SMALL {
            self.hold(held, nodes.saturating_mul(NODE)).await?;
        }
        Ok(bytes)
    }

    async fn collect(&self, held: &Held, mut body: RequestBody) -> Result<Bytes, Response<McpBody>> {
        let mut pieces = Pieces::default();
        while let Some(data) = piece(&mut body, self.max_body.saturating_sub(pieces.len())).await? {
            self.hold(held, data.len()).await?;
            pieces.push(data);
        }
        Ok(pieces.into_bytes())
    }

    /// Reserves more bytes for a request, when there is room; one that needs more than the limit reserves all.
    async fn hold(&self, held: &Held, bytes: usize) -> Result<(), Response<McpBody>> {
        let has = lock(&held.bytes).as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = bytes.min(self.max_bodies.saturating_sub(has));
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        let permit = match self.bytes.clone().try_acquire_many_owned(more) {
            Ok(permit) => permit,
            Err(_) => match timeout(WAIT, self.bytes.clone().acquire_many_owned(more)).await {
                Ok(Ok(permit)) => permit,
                _ => return Err(busy("Too many bytes are in work (max_bodies)")),
            },
        };
        let mut bytes = lock(&held.bytes);
        match &mut *bytes {
            Some(bytes) => bytes.merge(permit),
            None => *bytes = Some(permit),
        }
        Ok(())
    }
}

impl Held {
    fn of(counted: Option<OwnedSemaphorePermit>, all_unread: Arc<AtomicUsize>) -> Self {
        Self {
            counted: Mutex::new(counted),
            bytes: Mutex::default(),
            session: OnceLock::new(),
            id: OnceLock::new(),
            repeats: OnceLock::new(),
            listens: OnceLock::new(),
            unread: AtomicUsize::default(),
            all_unread,
        }
    }

    /// Counts the request as one of a session's.
    pub(super) fn in_session(&self, session: Arc<Session>, permit: Option<OwnedSemaphorePermit>) {
        let _ = self.session.set((session, permit));
    }

    /// Counts the request as a stream that the session's client listens on.
    pub(super) fn listen(&self) {
        if let Some((session, _)) = self.session.get()
            && self.listens.set(()).is_ok()
        {
            session.begin_stream();
        }
    }

    /// Reserves an id of the session for the request; false if another request has it.
    pub(super) fn take_id(&self, id: &RequestId) -> bool {
        let Some((session, _)) = self.session.get() else { return true };
        let taken = session.take(id);
        let own = if taken { &self.id } else { &self.repeats };
        let _ = own.set(id.clone());
        taken
    }

    /// Its id, if it was refused because another request of the session in flight has it.
    pub(super) fn repeats(&self) -> Option<&RequestId> {
        self.repeats.get()
    }

    /// Counts the bytes of a result, until it is read.
    pub(super) fn unread(&self, bytes: usize) {
        self.unread.fetch_add(bytes, Ordering::AcqRel);
        self.all_unread.fetch_add(bytes, Ordering::AcqRel);
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all_unread.fetch_sub(*self.unread.get_mut(), Ordering::AcqRel);
        let Some((session, _)) = self.session.get() else { return };
        session.touch();
        if self.listens.get().is_some() {
            session.end_stream();
        }
        if let Some(id) = self.id.get() {
            session.give_back(id);
        }
    }
}

/// The next piece of a body, of at most `room` bytes.
async fn piece(body: &mut RequestBody, room: usize) -> Result<Option<Bytes>, Response<McpBody>> {
    match body.frame().await.map(|frame| frame.map(http_body::Frame::into_data)) {
        None => Ok(None),
        Some(Ok(Ok(data))) if data.len() > room => {
            Err(plain(StatusCode::PAYLOAD_TOO_LARGE, "Payload Too Large (max_body)"))
        }
        Some(Ok(Ok(data))) => Ok(Some(data)),
        Some(Ok(Err(_trailers))) => Ok(Some(Bytes::new())),
        Some(Err(_)) => Err(plain(StatusCode::BAD_REQUEST, "Bad Request: the body broke off")),
    }
}

/// The response to a request if there is no room now.
pub(super) fn busy(text: &'static str) -> Response<McpBody> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, text);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    response
}
