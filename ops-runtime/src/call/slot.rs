//! The pending responses to one request: filled by the link, read by the caller.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context as Task, Poll, Waker};

use crate::call::budget::{Share, Written, written};
use crate::call::{CallRequest, WINDOW_BYTES};
use crate::model::lock::lock;
use crate::{CallError, Payload, ResponseEnvelope, Text};

/// A response to a call, or an item of a subscription.
pub(super) type Answer = Result<ResponseEnvelope<Payload>, CallError>;

/// Number of bytes of JSON text in a response.
pub(super) fn size(answer: &Answer) -> usize {
    answer.as_ref().ok().and_then(|envelope| envelope.data.text()).map_or(0, <[u8]>::len)
}

/// From how many bytes of text beyond the window on the worker counts as broken, whatever they are: beside its data, an
/// item has metadata and warnings, and an error is an item without data. The window of the worker counts data only.
const BESIDE: usize = WINDOW_BYTES as usize;

/// All of an item.
fn weight(answer: &Answer) -> Written {
    let data = size(answer);
    let mut all = Written { text: data, memory: data };
    match answer {
        Ok(envelope) => {
            all.add(written(&envelope.meta));
            if !envelope.warnings.is_empty() {
                all.add(written(&envelope.warnings));
            }
        }
        Err(error) => all.add(written(error)),
    }
    all
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
    first: Option<Box<Unread>>,
    more: VecDeque<Unread>,
    /// Number of bytes of JSON text in the items of a subscription.
    bytes: usize,
    /// All of the items.
    held: Written,
    ended: bool,
    waker: Option<Waker>,
    /// The request of a subscription that is repeated after a lost connection.
    again: Option<Again>,
    /// True if the last item reports that the connection was lost.
    gap: bool,
}

/// A response that was not read yet.
struct Unread {
    answer: Answer,
    /// Its part of what is counted: that of an item. Nothing is counted for calls, nor for the error that ends a
    /// subscription.
    held: Written,
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
        lock(&self.state)
    }

    /// Adds an item, unless there are `limit` already, more bytes than the window allows, or no memory for the peer to
    /// which it is forwarded.
    pub(super) fn put(&self, item: Answer, limit: usize) -> Result<(), CallError> {
        let mut state = self.lock();
        if state.ended {
            return Ok(());
        }
        let (most, held) = (self.most_bytes(), weight(&item));
        if state.more.len() >= limit || state.bytes >= most || state.held.text >= most.saturating_add(BESIDE) {
            let message = "the worker sent more items, or larger ones, than the window takes (`Remote::with_window`)";
            return Err(CallError::execution(message));
        }
        if let Some(share) = self.share()
            && let Err(spent) = share.take_ahead(held.memory)
        {
            return Err(share.refusal(spent, "items that this peer has not read"));
        }
        state.bytes += size(&item);
        state.held.add(held);
        Self::add(state, Unread { answer: item, held }, false);
        Ok(())
    }

    /// Adds the last response: the only one of a call, or the error that ends a subscription.
    pub(super) fn finish(&self, answer: Answer) {
        let state = self.lock();
        if !state.ended {
            Self::add(state, Unread { answer, held: Written::default() }, true);
        }
    }

    fn add(mut state: MutexGuard<'_, State>, unread: Unread, last: bool) {
        state.gap = false;
        if state.first.is_none() && state.more.is_empty() {
            state.first = Some(Box::new(unread));
        } else {
            state.more.push_back(unread);
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
            state.more.push_back(Unread { answer: Err(gap), held: Written::default() });
            state.gap = true;
        }
        wake(state);
        true
    }

    /// Notes that the request of a subscription could not be repeated, unless it is to be repeated already.
    pub(super) fn postpone(&self) {
        if let Some(again) = &mut self.lock().again {
            again.lost = !again.due;
        }
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
        let taken = state.first.take().map(|unread| *unread).or_else(|| state.more.pop_front());
        if let Some(Unread { answer, held }) = taken {
            state.bytes = state.bytes.saturating_sub(size(&answer));
            state.held.subtract(held);
            drop(state);
            if let Some(share) = self.share() {
                share.give_back_ahead(held.memory);
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
            share.give_back_ahead(self.state.get_mut().unwrap_or_else(PoisonError::into_inner).held.memory);
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

#[cfg(test)]
mod tests {
    use serde_json::{json, value::to_raw_value};

    use super::*;
    use crate::McpMeta;
    use crate::call::budget::{Budget, Limits};

    const MIB: usize = 1 << 20;

    /// An error of a MiB, and an item of a byte with a MiB of metadata.
    fn items() -> [Answer; 2] {
        let error = CallError::execution("no").with_details(json!("x".repeat(MIB)));
        let meta = McpMeta { structured_content: Some(json!("x".repeat(MIB))), ..McpMeta::default() };
        [Err(error), Ok(ResponseEnvelope::new(Payload::Raw(to_raw_value(&7).unwrap()), meta))]
    }

    #[test]
    fn what_comes_beside_the_data_of_items_has_a_limit() {
        for item in items() {
            let slot = Slot::new(Some(Items { window: 1, share: None }));
            let put = || (0..128).take_while(|_| slot.put(item.clone(), 128).is_ok()).count();
            // The item of a byte is as much as the window takes, and one is always sent.
            let most = if item.is_ok() { 2 } else { BESIDE / MIB };
            assert_eq!(put(), most);
            let mut task = Task::from_waker(Waker::noop());
            assert!(matches!(slot.poll(&mut task), Poll::Ready(Taken::Answer(_))));
            assert_eq!(put(), 1, "what was read makes room");
            // A window for the data of all.
            let slot = Slot::new(Some(Items { window: 64, share: None }));
            assert_eq!((0..128).take_while(|_| slot.put(item.clone(), 128).is_ok()).count(), BESIDE / MIB);
        }
    }

    /// A worker counts texts. It is not cut off because their values take more memory here.
    #[test]
    fn many_values_beside_the_data_of_items_are_no_more_than_their_text() {
        let numbers: Vec<usize> = (1_000..2_500).collect();
        let item = Err(CallError::execution("no").with_details(json!(numbers)));
        let Written { text, memory } = weight(&item);
        assert!(128 * text < BESIDE && 128 * memory > 2 * BESIDE, "{text} {memory}");
        let slot = Slot::new(Some(Items { window: 1, share: None }));
        assert_eq!((0..200).take_while(|_| slot.put(item.clone(), 128).is_ok()).count(), 129);
    }

    #[test]
    fn all_of_an_item_counts_for_the_peer_that_it_is_forwarded_to() {
        let limits = Limits { peer: 4 * MIB, ..Limits::default() };
        for item in items() {
            let share = Budget::new(limits).share();
            let slot = Slot::new(Some(Items { window: 64, share: Some(share.clone()) }));
            assert_eq!((0..128).take_while(|_| slot.put(item.clone(), 128).is_ok()).count(), 3);
            let held = weight(&item).memory;
            assert!(held > MIB);
            assert_eq!(share.used(), 3 * held);
            let mut task = Task::from_waker(Waker::noop());
            assert!(matches!(slot.poll(&mut task), Poll::Ready(Taken::Answer(_))));
            assert_eq!(share.used(), 2 * held);
            slot.finish(item);
            for _ in 0..3 {
                assert!(matches!(slot.poll(&mut task), Poll::Ready(Taken::Answer(_))));
            }
            assert!(matches!(slot.poll(&mut task), Poll::Ready(Taken::End)));
            assert_eq!(share.used(), 0);
            let slot = Slot::new(Some(Items { window: 64, share: Some(share.clone()) }));
            let [error, _] = items();
            slot.put(error, 128).unwrap();
            assert!(share.used() > MIB);
            drop(slot);
            assert_eq!(share.used(), 0);
        }
    }
}
