//! Who waits for the answer to a request, or for the items of a subscription.

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
                        self.ticket.slot.finish(Err(error));
                    }
                }
            }
        }
    }
}
