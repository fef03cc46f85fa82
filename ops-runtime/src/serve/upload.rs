//! The body of a request as a stream for its handler.

use std::fmt;
use std::future::pending;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::{Buf, Bytes};
use futures_util::future::{Either, select};
use futures_util::stream;
use http_body_util::BodyExt;
use tokio::time::{Instant, sleep_until, timeout};

use crate::model::lock::lock;
use crate::{Body, CallError, ErrorCode};

/// The limits of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Allowed {
    /// In bytes.
    pub(super) length: Option<u64>,
    /// For each piece.
    pub(super) time: Duration,
}

/// From when the time of a call counts whose handler reads a body as a stream. What its sender takes is not the handler's:
/// while a piece is awaited, it is when the piece would be late. `None` if that is too far away to be told.
#[derive(Debug, Clone)]
pub(super) struct Clock(Arc<Mutex<Option<Instant>>>);

impl Clock {
    fn start() -> Self {
        Self(Arc::new(Mutex::new(Some(Instant::now()))))
    }

    fn counts_from(&self) -> Option<Instant> {
        *lock(&self.0)
    }

    fn count_from(&self, from: Option<Instant>) {
        *lock(&self.0) = from;
    }

    /// Waits until the handler has had that much time.
    async fn has_passed(&self, time: Duration) {
        loop {
            let now = Instant::now();
            let end = self.counts_from().and_then(|from| from.checked_add(time));
            if end.is_some_and(|end| end <= now) {
                return;
            }
            // What comes meanwhile has the time count from now at the earliest.
            let Some(look) = now.checked_add(time) else { return pending().await };
            sleep_until(end.map_or(look, |end| end.min(look))).await;
        }
    }

    /// Runs a call for that long at most, without the time in which the pieces of its body are awaited.
    ///
    /// # Errors
    /// Those of the call, or that it took too long.
    pub(super) async fn limit<T>(
        &self,
        time: Duration,
        call: impl Future<Output = Result<T, CallError>>,
    ) -> Result<T, CallError> {
        // The time first: a call that is always ready to go on would use up what tokio lets a task do.
        match select(pin!(self.has_passed(time)), pin!(call)).await {
            Either::Left(_) => {
                let message = "the operation was not done in time after the request body had come";
                Err(CallError::new(ErrorCode::Timeout, message))
            }
            Either::Right((ended, _)) => ended,
        }
    }
}

/// A body that is read from the connection as its reader asks for it, and the clock of the call that reads it.
///
/// It ends with an error if it is longer than allowed, if a piece is late, or if the sender goes away.
pub(super) fn stream_of<B>(body: B, content_type: &str, allowed: Allowed) -> (Body, Clock)
where
    B: http_body::Body + Send + 'static,
    B::Error: fmt::Display,
{
    let length = body.size_hint().exact();
    let clock = Clock::start();
    let told = clock.clone();
    let pieces = stream::try_unfold((Box::pin(body), 0_u64), move |(mut body, before)| {
        let clock = told.clone();
        async move {
            loop {
                clock.count_from(Instant::now().checked_add(allowed.time));
                let frame = timeout(allowed.time, body.frame()).await;
                clock.count_from(Some(Instant::now()));
                let late = |_| io::Error::new(io::ErrorKind::TimedOut, "the body did not come in time");
                let Some(frame) = frame.map_err(late)? else { return Ok(None) };
                let broken =
                    |error| io::Error::new(io::ErrorKind::UnexpectedEof, format!("the body broke off: {error}"));
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
        }
    });
    let body = Body::stream(pieces).with_content_type(content_type);
    (length.map_or(body.clone(), |length| body.with_length(length)), clock)
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt;
    use http_body::Frame;
    use http_body_util::StreamBody;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// A body whose pieces take so long, and the clock of its call.
    fn body(pieces: u64, each: Duration) -> (Body, Clock) {
        let frames = stream::iter(0..pieces).then(move |_| async move {
            tokio::time::sleep(each).await;
            Ok::<_, io::Error>(Frame::data(Bytes::from_static(b"a")))
        });
        stream_of(StreamBody::new(frames), "text/plain", Allowed { length: None, time: SECOND * 10 })
    }

    async fn read(body: Body) -> u64 {
        let mut pieces = body.into_stream();
        let mut length = 0;
        while let Some(piece) = pieces.next().await {
            length += piece.unwrap().len() as u64;
        }
        length
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_takes_none_of_the_time_of_a_call() {
        for (pieces, each, after, is_in_time) in [
            (100, SECOND, SECOND, true),
            (1, SECOND * 9, SECOND, true),
            (100, SECOND, SECOND * 3, false),
            (0, SECOND, SECOND * 3, false),
        ] {
            let (body, clock) = body(pieces, each);
            let call = async {
                let length = read(body).await;
                tokio::time::sleep(after).await;
                Ok(length)
            };
            let ended = clock.limit(SECOND * 2, call).await;
            let told = format!("{pieces} pieces, then {after:?}: {ended:?}");
            assert_eq!(ended.ok(), is_in_time.then_some(pieces), "{told}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_call_that_does_not_read_its_body_has_the_time_of_others() {
        let (unread, clock) = body(100, SECOND);
        let began = Instant::now();
        let idle = async {
            let _unread = unread;
            pending::<Result<(), CallError>>().await
        };
        assert!(clock.limit(SECOND * 2, idle).await.is_err());
        assert!((SECOND * 2..SECOND * 3).contains(&began.elapsed()), "{:?}", began.elapsed());
        // One that has asked for a piece, and looks no more, until the piece would be late.
        let (half, clock) = body(100, SECOND * 9);
        let began = Instant::now();
        let stuck = async {
            let mut pieces = half.into_stream();
            let _ = futures_util::poll!(pieces.next());
            pending::<Result<(), CallError>>().await
        };
        assert!(clock.limit(SECOND * 2, stuck).await.is_err());
        assert!((SECOND * 12..SECOND * 13).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
}
