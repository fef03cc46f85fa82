//! A body that is sent with its length: as many bytes as were stated, or an error.
//!
//! What sends it would cut what is too much, and would wait for an end that never comes.

use std::error::Error;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use tokio::runtime::Handle;
use tokio::time::{Sleep, sleep};

use super::{Body, BodyStream};

/// How long a stream may take to end once it has given all bytes that it stated.
const PATIENCE: Duration = Duration::from_secs(1);

/// The bytes of a body whose length may have been stated to who receives it.
#[derive(Debug)]
pub(crate) struct Measured {
    stream: BodyStream,
    stated: Option<Stated>,
}

/// What was stated of a body, and what of it is left.
#[derive(Debug)]
struct Stated {
    source: Source,
    length: u64,
    left: u64,
    /// The last piece, which is held back until no other follows.
    last: Option<Bytes>,
    timer: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

/// Where a body comes from, for errors.
#[derive(Debug)]
enum Source {
    /// A file, which may change while it is sent.
    File(Box<Path>),
    Stream,
}

impl Measured {
    pub(crate) fn new(body: Body, length: Option<u64>) -> Self {
        let source = body.as_path().map_or(Source::Stream, |path| Source::File(path.into()));
        let stated =
            length.map(|length| Stated { source, length, left: length, last: None, timer: None, is_over: false });
        Self { stream: body.into_stream(), stated }
    }
}

/// The body as it is to be sent. A stream that states no bytes is asked for them first: HTTP/1 never asks such a body, and
/// what it gave all the same would be lost.
///
/// # Errors
/// If such a stream gives bytes, or fails.
pub(crate) async fn asked(body: Body, length: Option<u64>) -> io::Result<Body> {
    if length != Some(0) || !body.is_stream() {
        return Ok(body);
    }
    let empty = Body { file_name: body.file_name.clone(), content_type: body.content_type.clone(), ..Body::default() };
    let mut pieces = Measured::new(body, length);
    let piece = poll_fn(|cx| Pin::new(&mut pieces).poll_next(cx)).await;
    piece.transpose().map(|_| empty)
}

impl Stream for Measured {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Self { stream, stated } = &mut *self;
        let Some(stated) = stated else { return Pin::new(stream).poll_next(cx) };
        while !stated.is_over {
            let polled = match Pin::new(&mut *stream).poll_next(cx) {
                Poll::Pending => {
                    ready!(stated.poll_patience(cx));
                    None
                }
                Poll::Ready(polled) => polled,
            };
            match polled {
                None => return Poll::Ready(stated.end()),
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                Some(Ok(bytes)) => {
                    if let Some(piece) = stated.take(bytes) {
                        return Poll::Ready(Some(piece));
                    }
                }
            }
        }
        Poll::Ready(None)
    }
}

impl Stated {
    /// Takes a piece; gives what of it is to be sent now.
    fn take(&mut self, mut bytes: Bytes) -> Option<io::Result<Bytes>> {
        let length = bytes.len() as u64;
        if length < self.left {
            self.left -= length;
            return Some(Ok(bytes));
        }
        if matches!(self.source, Source::File(_)) {
            // What was written behind the file's end since is not part of what is sent.
            bytes.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            (self.left, self.is_over) = (0, true);
            return Some(Ok(bytes));
        }
        if length > self.left {
            self.is_over = true;
            return Some(Err(self.error(format_args!("gave more than the {} bytes that it stated", self.length))));
        }
        self.left = 0;
        if !bytes.is_empty() {
            self.last = Some(bytes);
        }
        None
    }

    /// Ready if a stream that has given all its bytes does not end in time. A body that has not is waited for.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Without a runtime there are no timers.
        if self.left > 0 || self.timer.is_none() && Handle::try_current().is_err() {
            return Poll::Pending;
        }
        self.timer.get_or_insert_with(|| Box::pin(sleep(PATIENCE))).as_mut().poll(cx)
    }

    /// The last piece; an error if bytes are missing.
    fn end(&mut self) -> Option<io::Result<Bytes>> {
        self.is_over = true;
        if self.left == 0 {
            return self.last.take().map(Ok);
        }
        let (came, length) = (self.length - self.left, self.length);
        Some(Err(match self.source {
            Source::File(_) => self.error(format_args!("became shorter while it was sent: {came} bytes, not {length}")),
            Source::Stream => self.error(format_args!("ended after {came} of the {length} bytes that it stated")),
        }))
    }

    fn error(&self, what: fmt::Arguments<'_>) -> io::Error {
        match &self.source {
            Source::File(path) => io::Error::other(Changed(format!("the file `{}` {what}", path.display()))),
            Source::Stream => io::Error::other(format!("the stream of a body {what}")),
        }
    }
}

/// A file that changed while it was sent. It is measured again when it is sent again, so that may succeed.
#[derive(Debug)]
pub(crate) struct Changed(String);

impl Changed {
    /// True if an error of a body is this.
    #[cfg(feature = "http")]
    pub(crate) fn is(error: &io::Error) -> bool {
        matches!(error.get_ref(), Some(held) if held.is::<Self>())
    }
}

impl fmt::Display for Changed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for Changed {}
