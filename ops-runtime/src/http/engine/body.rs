//! The bodies of responses.

use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};

pub(in crate::http) type BoxError = Box<dyn Error + Send + Sync>;

/// The body of a response, as it comes from the built-in engine.
#[derive(Debug)]
pub struct ResponseBody {
    inner: UnsyncBoxBody<Bytes, BoxError>,
    /// Counts the request as in flight until the body is read or dropped.
    permit: Option<OwnedSemaphorePermit>,
    idle: Option<Idle>,
}

/// The idle limit of a body. The timer is made when the body is first waited for.
#[derive(Debug)]
struct Idle {
    limit: Duration,
    /// When the body ends even if it is not silent.
    end: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    /// True if the timer has been started since the last piece.
    runs: bool,
}

/// A stream was silent for too long.
#[derive(Debug)]
pub(in crate::http) struct Silent(Duration);

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server was silent for {:?}: raise `with_idle_timeout`", self.0)
    }
}

impl Error for Silent {}

impl ResponseBody {
    pub(in crate::http) fn new<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self { inner: body.map_err(Into::into).boxed_unsync(), permit: None, idle: None }
    }

    /// The body of a response that has no content by its method or its status.
    pub(super) fn without_content<B>(body: B) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self::new(NoContent(Self::new(body)))
    }

    pub(in crate::http) fn holding(mut self, permit: Option<OwnedSemaphorePermit>) -> Self {
        self.permit = permit;
        self
    }

    /// Counts the request as in flight no longer, though the body is not read yet.
    pub(in crate::http) fn release(&mut self) {
        self.permit = None;
    }

    /// Ends the body with an error when it has been silent for longer than the limit.
    pub(in crate::http) fn with_idle_timeout(mut self, limit: Option<Duration>) -> Self {
        self.idle = limit.map(|limit| Idle { limit, end: None, timer: None, runs: false });
        self
    }

    /// Ends the body with an error when it takes longer than the limit in total, even if it is never silent. A shorter idle
    /// limit stays.
    pub(in crate::http) fn with_total(mut self, limit: Duration) -> Self {
        let end = Instant::now().checked_add(limit);
        let limit = self.idle.map_or(limit, |idle| idle.limit.min(limit));
        self.idle = Some(Idle { limit, end, timer: None, runs: false });
        self
    }

    fn poll_silence(&mut self, cx: &mut Context<'_>) -> Poll<Silent> {
        let Some(idle) = &mut self.idle else { return Poll::Pending };
        let timer = idle.timer.get_or_insert_with(|| Box::pin(sleep(idle.limit)));
        if !std::mem::replace(&mut idle.runs, true) {
            let silence = Instant::now().checked_add(idle.limit);
            if let Some(end) = silence.into_iter().chain(idle.end).min() {
                timer.as_mut().reset(end);
            }
        }
        timer.as_mut().poll(cx).map(|()| Silent(idle.limit))
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = Pin::new(&mut self.inner).poll_frame(cx);
        match &polled {
            Poll::Pending => {
                if let Poll::Ready(silent) = self.poll_silence(cx) {
                    self.permit = None;
                    return Poll::Ready(Some(Err(silent.into())));
                }
            }
            Poll::Ready(None | Some(Err(_))) => self.permit = None,
            Poll::Ready(Some(Ok(_))) => {
                if let Some(idle) = &mut self.idle {
                    idle.runs = false;
                }
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// A body without content (RFC 9110, section 6.4.1), which is read to its end all the same, so that the connection can go on.
///
/// Over HTTP/2 it may end with a piece of no bytes, of which a decoder says that it is no `gzip`. There was nothing to decode.
struct NoContent(ResponseBody);

impl Body for NoContent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            match ready!(Pin::new(&mut self.0).poll_frame(cx)) {
                Some(Ok(frame)) if frame.is_trailers() => return Poll::Ready(Some(Ok(frame))),
                Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {}
                _ => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(0)
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt, StreamExt, stream};
    use http_body_util::StreamBody;

    use super::*;

    type Piece = Result<Frame<Bytes>, BoxError>;

    fn body(pieces: Vec<Piece>) -> ResponseBody {
        ResponseBody::new(StreamBody::new(stream::iter(pieces)))
    }

    fn read(body: ResponseBody) -> Result<Bytes, String> {
        let whole = body.collect().now_or_never().unwrap();
        whole.map(http_body_util::Collected::to_bytes).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_body_that_drips_ends() {
        let drips = stream::repeat(()).then(|()| async {
            sleep(Duration::from_millis(10)).await;
            Piece::Ok(Frame::data(Bytes::from_static(b"x")))
        });
        let body = ResponseBody::new(StreamBody::new(drips)).with_total(Duration::from_millis(100));
        let whole = tokio::time::timeout(Duration::from_secs(20), body.collect()).await.expect("the body ends");
        assert!(whole.unwrap_err().is::<Silent>());
    }

    #[tokio::test(start_paused = true)]
    async fn a_limit_in_total_leaves_the_idle_limit() {
        let seconds = Duration::from_secs;
        for (idle, expected) in [(Some(2), 2), (Some(20), 10), (None, 10)] {
            let body = ResponseBody::new(StreamBody::new(stream::pending::<Piece>()));
            let body = body.with_idle_timeout(idle.map(seconds)).with_total(seconds(10));
            let start = Instant::now();
            assert!(body.collect().await.unwrap_err().is::<Silent>());
            assert_eq!(start.elapsed().as_secs(), expected, "{idle:?}");
        }
    }

    #[test]
    fn what_has_no_content_has_no_wrong_one() {
        let data = |text: &'static str| Ok(Frame::data(Bytes::from_static(text.as_bytes())));
        let broken = || Err("unexpected end of file".into());
        for pieces in [vec![], vec![data("")], vec![broken()], vec![data(""), broken()], vec![data("x"), data("y")]] {
            let body = ResponseBody::without_content(body(pieces));
            assert_eq!(body.size_hint().exact(), Some(0));
            assert_eq!(read(body).unwrap(), "");
        }
        assert_eq!(read(body(vec![data("x"), broken()])).unwrap_err(), "unexpected end of file");
    }
}
