//! The body of a request: bytes in memory, files and streams, one after the other.

#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_core::Stream;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::Body;
use crate::model::body::measured::{Measured, asked};

/// The body of a request, as your own service receives it.
///
/// A clone starts from the beginning; files are opened again, but a stream can be read only once: see
/// [`is_repeatable`](Self::is_repeatable).
#[derive(Debug, Default)]
pub struct RequestBody {
    pieces: Arc<[Piece]>,
    next: usize,
    // Exclusive access needs no lock; the mutex only makes a stream `Sync`, which the built-in engine requires.
    current: Option<Mutex<Measured>>,
    left: Option<u64>,
}

#[derive(Debug, Clone)]
pub(super) enum Piece {
    Bytes(Bytes),
    /// A body, with its length if it is known.
    Body(Body, Option<u64>),
}

impl Piece {
    fn length(&self) -> Option<u64> {
        match self {
            Self::Bytes(bytes) => Some(bytes.len() as u64),
            Self::Body(_, length) => *length,
        }
    }
}

impl RequestBody {
    pub(super) fn of(pieces: Vec<Piece>) -> Self {
        Self { left: total(&pieces), pieces: pieces.into(), next: 0, current: None }
    }

    /// True if the body can be sent again: it can, unless there is a stream in it, or a pipe or a device given as a file.
    pub fn is_repeatable(&self) -> bool {
        self.pieces.iter().all(|piece| !matches!(piece, Piece::Body(body, _) if body.is_stream()))
    }

    /// True if the body is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// All bytes; `None` if it has a file or a stream.
    pub(super) fn in_memory(&self) -> Option<Bytes> {
        let bytes = |piece: &Piece| match piece {
            Piece::Bytes(bytes) => Some(bytes.clone()),
            Piece::Body(..) => None,
        };
        if let [piece] = &*self.pieces {
            return bytes(piece);
        }
        let pieces: Option<Vec<Bytes>> = self.pieces.iter().map(bytes).collect();
        Some(pieces?.concat().into())
    }

    /// All bytes, if they are in memory in one piece, so that no copy is needed, and if none was read.
    pub(super) fn in_one_piece(&self) -> Option<Bytes> {
        match &*self.pieces {
            _ if self.next > 0 => None,
            [] => Some(Bytes::new()),
            [Piece::Bytes(bytes)] => Some(bytes.clone()),
            _ => None,
        }
    }

    /// Determines the lengths of bodies, to send them to the server. That of a file may change between attempts.
    ///
    /// A file without a length is a pipe, a device, or a file below `/proc`. It may not be readable twice, so it is a stream
    /// from now on.
    ///
    /// # Errors
    /// If a file is missing, or if a stream that states no bytes has some; nothing is sent then.
    pub(super) async fn measure(&mut self) -> io::Result<()> {
        if !self.pieces.iter().any(|piece| matches!(piece, Piece::Body(..))) {
            return Ok(());
        }
        let mut pieces = self.pieces.to_vec();
        for piece in &mut pieces {
            if let Piece::Body(body, length) = piece {
                *length = body.length().await?;
                let is_once = length.is_none() && body.as_path().is_some();
                let found = if is_once { Body::stream(body.clone().into_stream()) } else { body.clone() };
                *body = asked(found, *length).await?;
            }
        }
        *self = Self::of(pieces);
        Ok(())
    }
}

/// An error of the body itself, such as a file that cannot be opened: the connection is not its cause.
#[derive(Debug)]
pub(super) struct Unsendable(io::Error);

impl Unsendable {
    /// The error of the body that an error is or has in its causes.
    pub(super) fn below<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e io::Error> {
        let mut next = Some(error);
        while let Some(error) = next {
            // What an `io::Error` holds is not its source.
            let held = error.downcast_ref::<io::Error>().and_then(|error| error.get_ref());
            if let Some(own) = held.and_then(|held| held.downcast_ref::<Self>()) {
                return Some(&own.0);
            }
            next = error.source();
        }
        None
    }
}

impl fmt::Display for Unsendable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for Unsendable {
    // An `io::Error` hides what it holds from those who walk its causes, such as the layers of a service.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.get_ref().map(|held| -> &(dyn Error + 'static) { held })
    }
}

fn total(pieces: &[Piece]) -> Option<u64> {
    pieces.iter().try_fold(0_u64, |sum, piece| sum.checked_add(piece.length()?))
}

impl Clone for RequestBody {
    fn clone(&self) -> Self {
        Self { pieces: self.pieces.clone(), next: 0, current: None, left: total(&self.pieces) }
    }
}

impl From<Bytes> for RequestBody {
    fn from(bytes: Bytes) -> Self {
        Self::of(if bytes.is_empty() { Vec::new() } else { vec![Piece::Bytes(bytes)] })
    }
}

impl From<Body> for RequestBody {
    fn from(body: Body) -> Self {
        body.into_memory().map_or_else(|body| Self::of(vec![Piece::Body(body, None)]), Self::from)
    }
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let this = &mut *self;
        loop {
            let bytes = match &mut this.current {
                Some(stream) => {
                    let stream = stream.get_mut().unwrap_or_else(PoisonError::into_inner);
                    match ready!(Pin::new(stream).poll_next(cx)) {
                        Some(Ok(bytes)) => bytes,
                        Some(Err(error)) => {
                            return Poll::Ready(Some(Err(io::Error::new(error.kind(), Unsendable(error)))));
                        }
                        None => {
                            this.current = None;
                            continue;
                        }
                    }
                }
                None => {
                    let Some(piece) = this.pieces.get(this.next) else { return Poll::Ready(None) };
                    this.next += 1;
                    match piece {
                        Piece::Bytes(bytes) => bytes.clone(),
                        Piece::Body(body, length) => {
                            this.current = Some(Mutex::new(Measured::new(body.clone(), *length)));
                            continue;
                        }
                    }
                }
            };
            if !bytes.is_empty() {
                this.left = this.left.map(|left| left.saturating_sub(bytes.len() as u64));
                return Poll::Ready(Some(Ok(Frame::data(bytes))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.current.is_none() && self.next >= self.pieces.len()
    }

    fn size_hint(&self) -> SizeHint {
        self.left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
