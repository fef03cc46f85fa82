//! The body of a request as a stream for its handler.

use std::fmt;
use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::stream;
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::Body;

/// The limits of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// In bytes.
    pub(super) length: Option<u64>,
    /// For each piece.
    pub(super) time: Duration,
}

/// A body that is read from the connection as its reader requests it.
///
/// It ends with an error if it is longer than allowed, if a piece is late, or if the sender disconnects.
pub(super) fn stream_of<B>(body: B, content_type: &str, allowed: Allowed) -> Body
where
    B: http_body::Body + Send + 'static,
    B::Error: fmt::Display,
{
    let length = body.size_hint().exact();
    let pieces = stream::try_unfold((Box::pin(body), 0_u64), move |(mut body, before)| async move {
        loop {
            let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the body did not come in time");
            let Some(frame) = timeout(allowed.time, body.frame()).await.map_err(late)? else { return Ok(None) };
            let broken = |error| io::Error::new(io::ErrorKind::UnexpectedEof, format!("the body broke off: {error}"));
            let Ok(mut data) = frame.map_err(broken)?.into_data() else { continue };
            let bytes: Bytes = data.copy_to_bytes(data.remaining());
            let read = before.saturating_add(bytes.len() as u64);
            if let Some(most) = allowed.length.filter(|most| read > *most) {
                let message = format!("the body is longer than {most} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
            }
            if !bytes.is_empty() {
                return Ok(Some((bytes, (body, read))));
            }
        }
    });
    let body = Body::stream(pieces).with_content_type(content_type);
    length.map_or(body.clone(), |length| body.with_length(length))
}
