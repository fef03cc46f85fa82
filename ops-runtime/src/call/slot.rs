//! What a caller waits for: the answers to one request, put there by whoever receives them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll, Waker};

use crate::call::CallRequest;
use crate::{CallError, Payload, ResponseEnvelope};

/// An answer to a call, or an item of a subscription.
pub(super) type Answer = Result<ResponseEnvelope<Payload>, CallError>;

/// How many bytes of JSON text an answer is.
pub(super) fn size(answer: &Answer) -> usize {
    answer.as_ref().ok().and_then(|envelope| envelope.data.text()).map_or(0, <[u8]>::len)
}

/// The answers to one request that nobody has taken yet.
pub(super) struct Slot {
    state: Mutex<State>,
    /// Of a subscription, how many bytes of items the worker may send ahead.
    window: Option<u64>,
}

#[derive(Default)]
struct State {
    /// The first answer: all that a call gets, so that a call allocates no queue. Boxed, for many wait and few have one.
    first: Option<Box<Answer>>,
    more: VecDeque<Answer>,
    /// How many bytes of JSON text they are.
    bytes: usize,
    ended: bool,
    waker: Option<Waker>,
    /// A subscription that is asked for again when its connection was lost, and whether that is due.
    again: Option<(Box<CallRequest>, bool)>,
    /// Whether the last of the answers tells that the connection was lost.
    gap: bool,
}

/// What is in a slot for whoever polls it.
pub(super) enum Taken {
    Answer(Answer),
    /// There is nothing more.
    End,
    /// The subscription is to be asked for again.
    Again(Box<CallRequest>),
}

impl Slot {
    /// A slot for one answer, or for the items of a subscription with a window of so many bytes.
    pub(super) fn new(window: Option<u64>) -> Self {
        Self { state: Mutex::default(), window }
    }

    pub(super) fn streams(&self) -> bool {
        self.window.is_some()
    }

    /// From how many bytes on a worker is taken for broken: it may have had one item more on its way when a credit was
    /// given, and one item is always sent.
    pub(super) fn most_bytes(&self) -> usize {
        self.window.map_or(usize::MAX, |window| usize::try_from(window.max(1).saturating_mul(2)).unwrap_or(usize::MAX))
    }

    /// Keeps the request of a subscription, so that it can be asked for again.
    pub(super) fn keep(&self, request: Box<CallRequest>) {
        self.lock().again = Some((request, false));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an answer into the slot; `last` if nothing follows. Returns false if there are `limit` answers already, or so
    /// many bytes.
    pub(super) fn put(&self, answer: Answer, last: bool, limit: usize, bytes: usize) -> bool {
        let mut state = self.lock();
        if state.ended {
            return true;
        }
        if !last && (state.more.len() >= limit || state.bytes >= bytes) {
            return false;
        }
        state.gap = false;
        state.bytes += size(&answer);
        if state.first.is_none() && state.more.is_empty() {
            state.first = Some(Box::new(answer));
        } else {
            state.more.push_back(answer);
        }
        state.ended = last;
        wake(state);
        true
    }

    /// Says that nothing more comes.
    pub(super) fn end(&self) {
        let mut state = self.lock();
        state.ended = true;
        wake(state);
    }

    /// Tells that the connection was lost, if the subscription outlives that.
    pub(super) fn interrupt(&self, gap: CallError) -> bool {
        let mut state = self.lock();
        if state.ended || state.again.is_none() {
            return false;
        }
        // One word about the gap is enough, however often the connection is lost before anybody reads.
        // An item that failed is no such word.
        if !state.gap || (state.first.is_none() && state.more.is_empty()) {
            state.more.push_back(Err(gap));
            state.gap = true;
        }
        wake(state);
        true
    }

    /// Tells that there is a connection again.
    pub(super) fn resume(&self) {
        let mut state = self.lock();
        if let Some((_, due)) = &mut state.again {
            *due = true;
            wake(state);
        }
    }

    pub(super) fn poll(&self, task: &mut Task<'_>) -> Poll<Taken> {
        let mut state = self.lock();
        let taken = state.first.take().map(|answer| *answer).or_else(|| state.more.pop_front());
        if let Some(answer) = taken {
            state.bytes = state.bytes.saturating_sub(size(&answer));
            return Poll::Ready(Taken::Answer(answer));
        }
        if state.ended {
            return Poll::Ready(Taken::End);
        }
        if let Some((request, due)) = &mut state.again
            && std::mem::take(due)
        {
            return Poll::Ready(Taken::Again(request.clone()));
        }
        match &mut state.waker {
            Some(waker) => waker.clone_from(task.waker()),
            waker => *waker = Some(task.waker().clone()),
        }
        Poll::Pending
    }
}

/// Wakes whoever waits, once the lock is given back: it may run at once on another thread.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}
