//! Limits of a server's requests: their number, and the bytes of their bodies.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use futures_util::poll;
use http::StatusCode;
use http_body_util::BodyExt;
use tokio::time::timeout;

use super::options::HttpServerOptions;
use super::problem::Problem;
use super::read::{nodes, nodes_of_json};
use super::upload::Allowed;
use crate::model::body::pieces::Pieces;
use crate::model::media::{Media, is_utf8};
use crate::model::separators::{NODE, SMALL};

/// State shared by all requests.
#[derive(Debug)]
pub(super) struct Limits {
    requests: Arc<Room>,
    streams: Arc<Room>,
    /// The memory for bodies.
    bytes: Arc<Room>,
    max_body: usize,
    max_upload: Option<u64>,
    read_timeout: Duration,
}

/// The amount of a resource, and how much of it is taken. A counter: a semaphore has a queue with a lock.
#[derive(Debug)]
struct Room {
    most: usize,
    taken: AtomicUsize,
}

/// A part of the resource, which is released when this is dropped.
#[derive(Debug)]
pub(super) struct Taken {
    room: Arc<Room>,
    amount: usize,
}

/// What a request holds until its response.
#[derive(Debug)]
pub(super) struct Held {
    _request: Taken,
    bytes: Taken,
}

impl Room {
    fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(1), taken: AtomicUsize::new(0) })
    }

    fn take(self: &Arc<Self>, amount: usize) -> Option<Taken> {
        let mut taken = Taken { room: self.clone(), amount: 0 };
        taken.more(amount).then_some(taken)
    }
}

impl Taken {
    /// How much more this can take if nothing else takes any.
    fn rest(&self) -> usize {
        self.room.most.saturating_sub(self.amount)
    }

    /// Takes more. False if there is not enough.
    fn more(&mut self, amount: usize) -> bool {
        let fits = |taken: usize| taken.checked_add(amount).filter(|all| *all <= self.room.most);
        let is_there = self.room.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if is_there {
            self.amount += amount;
        }
        is_there
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if self.amount > 0 {
            self.room.taken.fetch_sub(self.amount, Ordering::Relaxed);
        }
    }
}

impl Limits {
    pub(super) fn new(options: &HttpServerOptions) -> Self {
        Self {
            requests: Room::new(options.max_requests),
            streams: Room::new(options.max_streams),
            bytes: Room::new(options.max_bodies),
            max_body: options.max_body,
            max_upload: options.max_upload,
            read_timeout: options.read_timeout,
        }
    }

    /// Admits a request.
    pub(super) fn admit(&self) -> Result<Held, Problem> {
        match self.requests.take(1) {
            Some(request) => Ok(Held { _request: request, bytes: Taken { room: self.bytes.clone(), amount: 0 } }),
            None => Err(Problem::busy("too many requests are in flight")),
        }
    }

    /// Admits a stream.
    pub(super) fn stream(&self) -> Result<Taken, Problem> {
        self.streams.take(1).ok_or_else(|| Problem::busy("too many streams are open"))
    }

    /// The limits of a body that a handler reads as a stream.
    ///
    /// # Errors
    /// If its stated length is too large.
    pub(super) fn upload(&self, body: &Body) -> Result<Allowed, Problem> {
        let least = body.size_hint().lower();
        match self.max_upload.filter(|most| least > *most) {
            Some(most) => Err(too_large(most)),
            None => Ok(Allowed { length: self.max_upload, time: self.read_timeout }),
        }
    }

    /// How many streams are open.
    pub(super) fn open_streams(&self) -> usize {
        self.streams.taken.load(Ordering::Relaxed)
    }

    /// Reads the body of a request.
    pub(super) async fn read(
        &self,
        held: &mut Held,
        content_type: Option<&str>,
        mut body: Body,
    ) -> Result<Bytes, Problem> {
        if body.is_end_stream() {
            return Ok(Bytes::new());
        }
        // A body that never fits is not refused as if the server were busy: a client would send it again and again.
        let most = self.max_body.min(held.bytes.rest());
        let too_large = || too_large(most as u64);
        // A body that will be refused need not be read.
        if body.size_hint().lower() > most as u64 {
            return Err(too_large());
        }
        let read = async {
            let mut pieces = Pieces::default();
            while let Some(frame) = body.frame().await {
                let frame = frame.map_err(|_| Problem::new(StatusCode::BAD_REQUEST, "the body broke off"))?;
                let Ok(data) = frame.into_data() else { continue };
                if pieces.len() + data.len() > most {
                    return Err(too_large());
                }
                hold(held, data.len())?;
                pieces.push(data);
            }
            Ok(pieces.into_bytes())
        };
        let late = || Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not come in time");
        let bytes = {
            let mut read = pin!(read);
            // Most bodies have arrived already, and need no timer.
            match poll!(&mut read) {
                Poll::Ready(read) => read?,
                Poll::Pending => Box::pin(timeout(self.read_timeout, read)).await.unwrap_or_else(|_| Err(late()))?,
            }
        };
        let count = match content_type.map(|kind| (Media::of(kind), kind)) {
            // A file or a text is one value, whatever is in it. The parts of a body are counted later, when they are
            // known.
            Some((Media::Text | Media::Bytes | Media::Other | Media::Multipart, _)) => 0,
            Some((Media::Json | Media::Lines | Media::Sequence, kind)) if is_utf8(kind) => nodes_of_json(&bytes),
            _ => nodes(&bytes),
        };
        self.values(held, count)?;
        Ok(bytes)
    }

    /// Reserves so many values, which will be made from texts.
    pub(super) fn values(&self, held: &mut Held, nodes: usize) -> Result<(), Problem> {
        if nodes <= SMALL {
            return Ok(());
        }
        let bytes = nodes.saturating_mul(NODE);
        if bytes > held.bytes.rest() {
            return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "the request has too many values"));
        }
        hold(held, bytes)
    }
}

fn hold(held: &mut Held, bytes: usize) -> Result<(), Problem> {
    if held.bytes.more(bytes) { Ok(()) } else { Err(Problem::busy("too many bytes are in flight")) }
}

fn too_large(most: u64) -> Problem {
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, format!("the body is longer than {most} bytes"))
}
