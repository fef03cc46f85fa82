//! Requests as whoever has made them sees them: the answer to a call, the items of a subscription.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use futures_core::Stream;

use super::PendingRequests;
use crate::CallError;
use crate::call::directory::gone;
use crate::call::slot::{Answer, Slot, Taken, size};
use crate::call::{CallEvent, CallRequest, Frame, RequestId, Unsent, WINDOW};
use crate::model::request_id::Number;

/// A request that is aborted when nobody waits for it any more.
pub(super) struct Ticket {
    pub(super) pending: PendingRequests,
    pub(super) request_id: RequestId,
    pub(super) number: Number,
    pub(super) slot: Arc<Slot>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.pending.remove(self.number).is_some() {
            let _ = self.pending.link().send(CallEvent::Aborted { request_id: self.request_id.clone() }.into());
        }
    }
}

/// The answer to a call, some time.
pub(in crate::call) struct PendingCall {
    ticket: Ticket,
}

impl PendingCall {
    pub(super) fn new(ticket: Ticket) -> Self {
        Self { ticket }
    }
}

impl Future for PendingCall {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Answer> {
        Poll::Ready(match ready!(self.ticket.slot.poll(task)) {
            Taken::Answer(answer) => answer,
            Taken::End | Taken::Again(_) => Err(gone("the call was completed without an answer")),
        })
    }
}

/// The items of a subscription.
pub(in crate::call) struct Subscription {
    ticket: Ticket,
    /// The items that were taken since the worker was last told, and their bytes.
    taken: u32,
    bytes: usize,
    /// How many bytes the worker may send ahead.
    window: usize,
}

impl Subscription {
    pub(super) fn new(ticket: Ticket, window: usize) -> Self {
        Self { ticket, taken: 0, bytes: 0, window }
    }

    /// Asks for the subscription again, over a new connection.
    fn again(&mut self, mut request: Box<CallRequest>) -> Result<(), CallError> {
        (self.taken, self.bytes) = (0, 0);
        request.note_time_left();
        let frame = CallEvent::Requested(request).into();
        match self.ticket.pending.link().send(frame) {
            // Lost once more: there is going to be another time.
            Ok(()) | Err(Unsent::Gone(_)) => Ok(()),
            Err(Unsent::Refused(error)) => Err(error),
        }
    }
}

impl Stream for Subscription {
    type Item = Answer;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Option<Answer>> {
        loop {
            match ready!(self.ticket.slot.poll(task)) {
                Taken::Answer(answer) => {
                    self.taken += 1;
                    self.bytes = self.bytes.saturating_add(size(&answer));
                    if self.taken >= WINDOW / 2 || self.bytes >= self.window / 2 {
                        self.bytes = 0;
                        let (request_id, items) = (self.ticket.request_id.clone(), std::mem::take(&mut self.taken));
                        let _ = self.ticket.pending.link().send(Frame::Credit { request_id, items });
                    }
                    return Poll::Ready(Some(answer));
                }
                Taken::End => return Poll::Ready(None),
                Taken::Again(request) => {
                    if let Err(error) = self.again(request) {
                        self.ticket.slot.put(Err(error), true, usize::MAX, usize::MAX);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use futures_util::StreamExt;

    use super::*;
    use crate::call::Link;
    use crate::{BoxFuture, ErrorCode};

    /// Keeps what is sent; has no room for another request if `is_full`.
    #[derive(Default)]
    struct Kept {
        is_full: bool,
        sent: Mutex<Vec<Frame>>,
    }

    impl Link for Kept {
        fn send(&self, frame: Frame) -> Result<(), Unsent> {
            self.sent.lock().unwrap().push(frame);
            Ok(())
        }

        fn ready(&self) -> Option<BoxFuture<'static, ()>> {
            self.is_full.then(|| Box::pin(std::future::pending()) as BoxFuture<'static, ()>)
        }
    }

    fn request(milliseconds: u64) -> CallRequest {
        CallRequest::new("a.b", serde_json::Value::Null).with_timeout(Duration::from_millis(milliseconds))
    }

    #[tokio::test]
    async fn a_link_without_room_holds_nobody_beyond_the_deadline() {
        let pending = PendingRequests::new(Arc::new(Kept { is_full: true, ..Kept::default() }));
        assert_eq!(*pending.call(request(20)).await.unwrap_err().code(), ErrorCode::Timeout);
        assert_eq!(*pending.subscribe(request(20)).await.err().unwrap().code(), ErrorCode::Timeout);
    }

    #[tokio::test]
    async fn a_subscription_ends_at_its_deadline() {
        let pending = PendingRequests::new(Arc::new(Kept::default()));
        let request = request(50).with_idle_timeout(Duration::from_secs(60));
        let items: Vec<_> = pending.subscribe(request).await.unwrap().collect().await;
        let [Err(error)] = &*items else { panic!("{items:?}") };
        assert_eq!((error.code(), error.message()), (&ErrorCode::Timeout, "the deadline passed"));
        assert_eq!(pending.pending_count(), 0);
    }

    #[tokio::test]
    async fn a_subscription_that_is_asked_for_again_has_less_time_left() {
        let link = Arc::new(Kept::default());
        let pending = PendingRequests::resubscribing(link.clone());
        let mut items = pending.subscribe(request(60_000)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        pending.interrupt(&gone("lost"));
        pending.resume();
        assert!(items.next().await.unwrap().is_err(), "the gap is told");
        assert!(futures_util::poll!(items.next()).is_pending());
        let left = |frame: &Frame| match frame {
            Frame::Event(CallEvent::Requested(request)) => request.time_left.unwrap(),
            other => panic!("{other:?}"),
        };
        let left: Vec<u64> = link.sent.lock().unwrap().iter().map(left).collect();
        assert!(left.len() == 2 && left[1] + 30 <= left[0], "{left:?}");
    }
}
