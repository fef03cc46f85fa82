//! The pending responses to one request: filled by the link, read by the caller.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll, Waker};

use crate::call::CallRequest;
use crate::call::budget::Share;
use crate::{CallError, Payload, ResponseEnvelope, Text};

/// A response to a call, or an item of a subscription.
pub(super) type Answer = Result<ResponseEnvelope<Payload>, CallError>;

/// Number of bytes of JSON text in a response.
pub(super) fn size(answer: &Answer) -> usize {
    answer.as_ref().ok().and_then(|envelope| envelope.data.text()).map_or(0, <[u8]>::len)
}

/// The unread responses to one request.
pub(super) struct Slot {
    state: Mutex<State>,
    /// Of a subscription only.
    items: Option<Box<Items>>,
}

/// The window and share of a subscription.
pub(super) struct Items {
    /// How many bytes of items the worker may send ahead of the credit.
    pub(super) window: u64,
    /// The share of the peer to which they are forwarded, if any: buffered items count for it.
    pub(super) share: Option<Arc<Share>>,
}

#[derive(Default)]
struct State {
    /// The first response: all that a call gets, so that a call allocates no queue. Boxed, since most slots are empty.
    first: Option<Box<Answer>>,
    more: VecDeque<Answer>,
    /// Number of bytes of JSON text in the items of a subscription.
    bytes: usize,
    ended: bool,
    waker: Option<Waker>,
    /// The request of a subscription that is repeated after a lost connection.
    again: Option<Again>,
    /// True if the last item reports that the connection was lost.
    gap: bool,
}

/// A request that is repeated after a lost connection.
struct Again {
    request: Box<CallRequest>,
    /// True if the connection was lost, and the request is still to be repeated.
    lost: bool,
    /// True if there is a connection again.
    due: bool,
}

/// What a poll of a slot finds.
pub(super) enum Taken {
    Answer(Answer),
    /// There is nothing more.
    End,
    /// The subscription is to be requested again.
    Again(Box<CallRequest>),
}

impl Slot {
    /// A slot for one response, or for the items of a subscription.
    pub(super) fn new(items: Option<Items>) -> Self {
        Self { state: Mutex::default(), items: items.map(Box::new) }
    }

    pub(super) fn streams(&self) -> bool {
        self.items.is_some()
    }

    /// From how many buffered bytes on the worker counts as broken: it may have had one more item in flight when a
    /// credit was given, and one item is always sent.
    fn most_bytes(&self) -> usize {
        let window = self.items.as_ref().map_or(u64::MAX, |items| items.window);
        usize::try_from(window.max(1).saturating_mul(2)).unwrap_or(usize::MAX)
    }

    fn share(&self) -> Option<&Arc<Share>> {
        self.items.as_ref()?.share.as_ref()
    }

    /// Keeps the request of a subscription, so that it can be repeated.
    pub(super) fn keep(&self, request: Box<CallRequest>) {
        self.lock().again = Some(Again { request, lost: false, due: false });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item, unless there are `limit` already, more bytes than the window allows, or no memory for the peer to
    /// which it is forwarded.
    pub(super) fn put(&self, item: Answer, limit: usize) -> Result<(), CallError> {
        let mut state = self.lock();
        if state.ended {
            return Ok(());
        }
        if state.more.len() >= limit || state.bytes >= self.most_bytes() {
            let message = "the worker sent more items, or larger ones, than the window takes (`Remote::with_window`)";
            return Err(CallError::execution(message));
        }
        let bytes = size(&item);
        if bytes > 0
            && let Some(share) = self.share()
            && let Err(spent) = share.take_ahead(bytes)
        {
            return Err(share.refusal(spent, "items that this peer has not read"));
        }
        state.bytes += bytes;
        Self::add(state, item, false);
        Ok(())
    }

    /// Adds the last response: the only one of a call, or the error that ends a subscription.
    pub(super) fn finish(&self, answer: Answer) {
        let state = self.lock();
        if !state.ended {
            Self::add(state, answer, true);
        }
    }

    fn add(mut state: MutexGuard<'_, State>, answer: Answer, last: bool) {
        state.gap = false;
        if state.first.is_none() && state.more.is_empty() {
            state.first = Some(Box::new(answer));
        } else {
            state.more.push_back(answer);
        }
        state.ended = last;
        wake(state);
    }

    /// Notes that nothing more comes.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        wake(state);
    }

    /// Reports that the connection was lost, if the subscription survives that.
    pub(super) fn interrupt(&self, gap: CallError) -> bool {
        let mut state = self.lock();
        if state.ended {
            return false;
        }
        let Some(again) = &mut state.again else { return false };
        (again.lost, again.due) = (true, false);
        // One report of the gap is enough, however often the connection is lost before it is read. An item that failed
        // is not such a report.
        if !state.gap || (state.first.is_none() && state.more.is_empty()) {
            state.more.push_back(Err(gap));
            state.gap = true;
        }
        wake(state);
        true
    }

    /// The operation of a subscription whose connection was lost, and whose request is still to be repeated.
    pub(super) fn interrupted(&self) -> Option<Text> {
        let state = self.lock();
        let again = state.again.as_ref().filter(|again| again.lost)?;
        Some(again.request.operation_id.clone())
    }

    /// Notes that the request of an interrupted subscription can be repeated.
    pub(super) fn resume(&self) {
        let mut state = self.lock();
        if let Some(again) = &mut state.again
            && again.lost
        {
            (again.lost, again.due) = (false, true);
            wake(state);
        }
    }

    pub(super) fn poll(&self, task: &mut Task<'_>) -> Poll<Taken> {
        let mut state = self.lock();
        let taken = state.first.take().map(|answer| *answer).or_else(|| state.more.pop_front());
        if let Some(answer) = taken {
            // Nothing is counted for calls, nor for the error that ends a subscription.
            let bytes = size(&answer).min(state.bytes);
            state.bytes -= bytes;
            drop(state);
            if let Some(share) = self.share() {
                share.give_back_ahead(bytes);
            }
            return Poll::Ready(Taken::Answer(answer));
        }
        if state.ended {
            return Poll::Ready(Taken::End);
        }
        if let Some(again) = &mut state.again
            && std::mem::take(&mut again.due)
        {
            return Poll::Ready(Taken::Again(again.request.clone()));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(task.waker()),
            waker => *waker = Some(task.waker().clone()),
        }
        Poll::Pending
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some(share) = self.items.as_ref().and_then(|items| items.share.as_ref()) {
            share.give_back_ahead(self.state.get_mut().unwrap_or_else(PoisonError::into_inner).bytes);
        }
    }
}

/// Wakes the waiting task after the lock is released: it may run at once on another thread.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
