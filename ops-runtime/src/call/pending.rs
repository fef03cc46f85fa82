//! The caller's side: requests in flight, and the events that arrive for them.

mod by_number;
mod limits;
mod slots;

use std::fmt;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context as Task, Poll, ready};

use futures_core::Stream;
use futures_util::future::{Either, select};
use serde_json::json;

#[cfg(any(feature = "nats", feature = "redis"))]
pub(super) use self::by_number::ByNumber;
use self::limits::{LATE, limited, passed};
use self::slots::Slots;
use super::budget::Share;
use super::directory::{gone, stopped};
use super::slot::{Answer, Items, Slot, Taken, size};
use super::{CallEvent, CallRequest, Frame, Link, MAX_WINDOW, RequestId, Unsent, WINDOW, WINDOW_BYTES};
use crate::model::request_id::Number;
use crate::{CallError, Payload, PayloadStream, ResponseEnvelope, Text};

/// How many items beyond its window a subscription buffers before the worker counts as broken: those that were in
/// flight when a credit was given.
const SLACK: usize = WINDOW as usize;

/// The requests in flight over one link.
///
/// A clone is the same table. Transports pass it the events that arrive ([`receive`](Self::receive)). Late and
/// duplicate events, and events of unknown requests, are ignored. [`Remote`](crate::call::Remote) is the typed
/// interface to it.
#[derive(Clone)]
pub struct PendingRequests(Arc<Shared>);

struct Shared {
    link: Arc<dyn Link>,
    slots: Slots,
    closed: AtomicBool,
    /// How many threads are sending a request.
    sending: AtomicUsize,
    resubscribes: bool,
}

impl PendingRequests {
    /// A table for the requests of a link.
    pub fn new(link: Arc<dyn Link>) -> Self {
        Self::with(|_| link, false)
    }

    /// A table for the requests of a link that knows the table.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn known_to(link: impl FnOnce(WeakPending) -> Arc<dyn Link>) -> Self {
        Self::with(link, false)
    }

    /// A table whose subscriptions survive the loss of the connection: see [`interrupt`](Self::interrupt).
    pub fn resubscribing(link: Arc<dyn Link>) -> Self {
        Self::with(|_| link, true)
    }

    fn with(link: impl FnOnce(WeakPending) -> Arc<dyn Link>, resubscribes: bool) -> Self {
        Self(Arc::new_cyclic(|shared| Shared {
            link: link(WeakPending(shared.clone())),
            slots: Slots::default(),
            closed: AtomicBool::new(false),
            sending: AtomicUsize::new(0),
            resubscribes,
        }))
    }

    /// Runs a query or a mutation; dropping the future aborts it.
    ///
    /// # Errors
    /// The error that the worker sends, `TIMEOUT` at the request's deadline, `ABORTED` if either side aborts.
    // Not an async fn, which would keep all of the request as long as it waits.
    pub fn call(
        &self,
        request: CallRequest,
    ) -> impl Future<Output = Result<ResponseEnvelope<Payload>, CallError>> + Send + use<> {
        let (pending, request) = (self.clone(), Box::new(request));
        async move {
            let (deadline, epoch) = (request.deadline(), request.deadline);
            let answer = pin!(async {
                pending.ready().await;
                pending.start(request).map_err(unsent)?.await
            });
            let Some(deadline) = deadline else { return answer.await };
            let timer = Box::pin(tokio::time::sleep_until(deadline.into()));
            match select(answer, timer).await {
                Either::Left((answer, _)) => answer,
                Either::Right(_) => Err(passed(epoch, "the deadline passed before an answer came")),
            }
        }
    }

    /// Starts a subscription; dropping the stream aborts it.
    ///
    /// # Errors
    /// If the request cannot be sent, or not before its deadline. Later errors are items: `TIMEOUT` at the request's
    /// deadline, or when no item has arrived for its idle timeout.
    pub async fn subscribe(&self, request: CallRequest) -> Result<PayloadStream, CallError> {
        let (deadline, epoch, idle) = (request.deadline(), request.deadline, request.idle_timeout());
        let opening = async {
            self.ready().await;
            self.open(Box::new(request)).map_err(unsent)
        };
        let items = match deadline {
            Some(deadline) => {
                tokio::time::timeout_at(deadline.into(), opening).await.map_err(|_| passed(epoch, LATE))??
            }
            None => opening.await?,
        };
        Ok(limited(items, deadline.zip(epoch), idle))
    }

    /// Waits until the link has room for another request.
    pub(super) async fn ready(&self) {
        if let Some(ready) = self.0.link.ready() {
            ready.await;
        }
    }

    /// Sends the request of a call whose deadline the caller of this function enforces.
    pub(super) fn start(&self, request: Box<CallRequest>) -> Result<PendingCall, Unsent> {
        let (request_id, number, slot) = self.send(request, None, false)?;
        Ok(PendingCall::new(Ticket { pending: self.clone(), request_id, number, slot }))
    }

    /// Sends the request of a subscription whose deadline the caller of this function enforces.
    pub(super) fn open(&self, request: Box<CallRequest>) -> Result<Subscription, Unsent> {
        self.open_for(request, None, true)
    }

    /// Like `open`, on behalf of a peer: buffered items count for its share. It is requested again only if it `may_repeat`.
    pub(super) fn open_for(
        &self,
        mut request: Box<CallRequest>,
        share: Option<Arc<Share>>,
        may_repeat: bool,
    ) -> Result<Subscription, Unsent> {
        let window = *request.window_bytes.get_or_insert(WINDOW_BYTES);
        // Credit is given for half of the window that the worker applies, even if a larger one was requested.
        let window = usize::try_from(window.min(MAX_WINDOW)).unwrap_or(usize::MAX);
        let items = Items { window: request.window_bytes.unwrap_or(WINDOW_BYTES), share };
        let (request_id, number, slot) = self.send(request, Some(items), may_repeat)?;
        let ticket = Ticket { pending: self.clone(), request_id, number, slot };
        Ok(Subscription::new(ticket, window))
    }

    fn send(
        &self,
        mut request: Box<CallRequest>,
        items: Option<Items>,
        may_repeat: bool,
    ) -> Result<(RequestId, Number, Arc<Slot>), Unsent> {
        let shared = &*self.0;
        let slot = Arc::new(Slot::new(items));
        request.note_time_left();
        request.one_result = !slot.streams();
        let number = loop {
            // A request with a foreign id, or an id in use, cannot be found by its number.
            match request.request_id.number() {
                Some(number) if shared.slots.insert(number, &slot) => break number,
                _ => request.request_id = RequestId::of(Number::next()),
            }
        };
        if may_repeat && shared.resubscribes {
            slot.keep(request.clone());
        }
        let request_id = request.request_id.clone();
        match self.request(request) {
            Ok(()) => Ok((request_id, number, slot)),
            Err(unsent) => {
                self.0.slots.remove_same(number, &slot);
                Err(unsent)
            }
        }
    }

    /// Hands a request to the link, unless no more are accepted.
    fn request(&self, request: Box<CallRequest>) -> Result<(), Unsent> {
        let shared = &*self.0;
        let frame = CallEvent::Requested(request).into();
        shared.sending.fetch_add(1, Ordering::SeqCst);
        let closed = shared.closed.load(Ordering::SeqCst);
        let sent = if closed { Err(Unsent::Gone(frame)) } else { shared.link.send(frame) };
        shared.sending.fetch_sub(1, Ordering::SeqCst);
        sent
    }

    fn remove(&self, number: Number) -> Option<Arc<Slot>> {
        self.0.slots.remove(number)
    }

    /// Handles an event that arrived over the link.
    pub fn receive(&self, event: CallEvent) {
        match event {
            CallEvent::Responded { request_id, output } => self.respond(&request_id, output),
            CallEvent::Completed { request_id } => self.complete(&request_id),
            CallEvent::Error { request_id, error } => self.emit_error(&request_id, error),
            CallEvent::ItemError { request_id, error } => self.fail_item(&request_id, error),
            CallEvent::Aborted { request_id } => self.emit_error(&request_id, gone("the worker gave up the call")),
            CallEvent::Requested(_) => {}
        }
    }

    /// Resolves a call, or adds an item to a subscription.
    pub fn respond(&self, request_id: &RequestId, output: ResponseEnvelope<Payload>) {
        self.take(request_id, Ok(output));
    }

    /// Adds an error as an item to a subscription, which goes on; fails a call.
    pub fn fail_item(&self, request_id: &RequestId, error: CallError) {
        self.take(request_id, Err(error));
    }

    fn take(&self, request_id: &RequestId, answer: Answer) {
        let Some(number) = request_id.number() else { return };
        let Some(slot) = self.0.slots.get(number) else {
            // The worker has missed that the request was aborted.
            let _ = self.0.link.send(CallEvent::Aborted { request_id: request_id.clone() }.into());
            return;
        };
        if slot.streams() {
            if let Err(error) = slot.put(answer, WINDOW as usize + SLACK) {
                self.0.slots.remove_same(number, &slot);
                slot.finish(Err(error));
                let _ = self.0.link.send(CallEvent::Aborted { request_id: request_id.clone() }.into());
            }
        } else if self.0.slots.remove_same(number, &slot) {
            slot.finish(answer);
        }
    }

    /// Fails a call, or ends a subscription with an error.
    pub fn emit_error(&self, request_id: &RequestId, error: CallError) {
        if let Some(slot) = request_id.number().and_then(|number| self.remove(number)) {
            slot.finish(Err(error));
        }
    }

    /// Ends a subscription; fails a call that has no response yet.
    pub fn complete(&self, request_id: &RequestId) {
        if let Some(slot) = request_id.number().and_then(|number| self.remove(number)) {
            slot.end();
        }
    }

    /// Fails a request whose worker behaves wrongly, and aborts it there.
    pub(super) fn fail(&self, request_id: &RequestId, error: CallError) {
        if let Some(slot) = request_id.number().and_then(|number| self.remove(number)) {
            slot.finish(Err(error));
            let _ = self.0.link.send(CallEvent::Aborted { request_id: request_id.clone() }.into());
        }
    }

    /// Aborts a request: tells the worker, and fails the pending call with `ABORTED`.
    pub fn abort(&self, request_id: &RequestId) {
        self.fail(request_id, stopped("the call was aborted"));
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.0.slots.count()
    }

    /// Stops accepting requests, and returns when those that are being sent have been handed to the link.
    pub async fn quiesce(&self) {
        self.0.closed.store(true, Ordering::SeqCst);
        while self.0.sending.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }

    /// Stops accepting requests, and fails those in flight.
    pub fn close(&self, error: &CallError) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.fail_where(|slot| {
            slot.finish(Err(error.clone()));
            true
        });
    }

    /// Fails the calls in flight because their connection was lost, and accepts no more until [`resume`](Self::resume).
    ///
    /// Subscriptions fail, too, unless the table resubscribes: then they get the error as an item, with the details `{
    /// "resubscribed": true }`, and go on. Those of a [`Remote`](crate::call::Remote) that may change something fail.
    pub fn interrupt(&self, error: &CallError) {
        self.0.closed.store(true, Ordering::SeqCst);
        self.fail_where(|slot| {
            let goes_on = slot.interrupt(error.clone().with_details(json!({ "resubscribed": true })));
            if !goes_on {
                slot.finish(Err(error.clone()));
            }
            !goes_on
        });
    }

    /// Accepts requests again, and repeats the requests of interrupted subscriptions.
    pub fn resume(&self) {
        self.reopen().iter().for_each(|(_, slot)| slot.resume());
    }

    /// Accepts requests again. Returns the interrupted subscriptions with their operations; their requests are still to
    /// be repeated.
    pub(super) fn reopen(&self) -> Vec<(Text, Arc<Slot>)> {
        self.0.closed.store(false, Ordering::SeqCst);
        self.0.slots.all().into_iter().filter_map(|(_, slot)| Some((slot.interrupted()?, slot))).collect()
    }

    /// Removes the requests for which `fail` returns true.
    fn fail_where(&self, fail: impl Fn(&Slot) -> bool) {
        for (number, slot) in self.0.slots.all() {
            if fail(&slot) {
                self.0.slots.remove_same(number, &slot);
            }
        }
    }

    /// The requests in flight.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn numbers(&self) -> Vec<Number> {
        self.0.slots.numbers()
    }

    /// True if a request is in flight.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn has(&self, number: Number) -> bool {
        self.0.slots.has(number)
    }

    /// True if the request is a subscription that has not ended.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn streams(&self, number: Number) -> bool {
        self.0.slots.get(number).is_some_and(|slot| slot.streams())
    }

    /// Fails a request if it is a subscription, without telling the worker; true if it was one.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn fail_subscription(&self, request_id: &RequestId, error: &CallError) -> bool {
        let streams = request_id.number().is_some_and(|number| self.streams(number));
        if streams {
            self.emit_error(request_id, error.clone());
        }
        streams
    }

    /// Fails all subscriptions, and aborts them at their workers.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(super) fn fail_subscriptions(&self, error: &CallError) {
        for number in self.numbers() {
            let request_id = RequestId::of(number);
            if self.fail_subscription(&request_id, error) {
                let _ = self.0.link.send(CallEvent::Aborted { request_id }.into());
            }
        }
    }

    /// True if both are the same table.
    pub(super) fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// A weak reference to the table.
    pub(super) fn downgrade(&self) -> WeakPending {
        WeakPending(Arc::downgrade(&self.0))
    }

    pub(super) fn link(&self) -> &Arc<dyn Link> {
        &self.0.link
    }
}

impl fmt::Debug for PendingRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingRequests").field("pending", &self.in_flight()).finish_non_exhaustive()
    }
}

/// A weak reference to a table.
#[derive(Debug, Clone)]
pub(super) struct WeakPending(Weak<Shared>);

impl WeakPending {
    pub(super) fn upgrade(&self) -> Option<PendingRequests> {
        self.0.upgrade().map(PendingRequests)
    }
}

/// The error of a request that was not sent.
pub(super) fn unsent(unsent: Unsent) -> CallError {
    match unsent {
        Unsent::Gone(_) => gone("the other side is gone"),
        Unsent::Refused(error) => error,
    }
}

/// Aborts the request when it is dropped.
struct Ticket {
    pending: PendingRequests,
    request_id: RequestId,
    number: Number,
    slot: Arc<Slot>,
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // After the response, another request may have its id.
        if self.pending.0.slots.remove_same(self.number, &self.slot) {
            let _ = self.pending.link().send(CallEvent::Aborted { request_id: self.request_id.clone() }.into());
        }
    }
}

/// The pending result of a call.
pub(super) struct PendingCall {
    ticket: Ticket,
}

impl PendingCall {
    fn new(ticket: Ticket) -> Self {
        Self { ticket }
    }
}

impl Future for PendingCall {
    type Output = Answer;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Answer> {
        Poll::Ready(match ready!(self.ticket.slot.poll(task)) {
            Taken::Answer(answer) => answer,
            // The worker is there, and would say the same again.
            Taken::End | Taken::Again(_) => Err(stopped("the call was completed without an answer")),
        })
    }
}

/// The items of a subscription.
pub(super) struct Subscription {
    ticket: Ticket,
    /// The number of items that were read since the last credit, and their bytes.
    taken: u32,
    bytes: usize,
    /// How many bytes the worker may send ahead of the credit.
    window: usize,
}

impl Subscription {
    fn new(ticket: Ticket, window: usize) -> Self {
        Self { ticket, taken: 0, bytes: 0, window }
    }

    /// Repeats the request of the subscription over a new connection.
    fn again(&mut self, mut request: Box<CallRequest>) -> Result<(), CallError> {
        (self.taken, self.bytes) = (0, 0);
        request.note_time_left();
        match self.ticket.pending.request(request) {
            Ok(()) => Ok(()),
            // The other side is leaving, or the connection is lost again: the next one repeats it.
            Err(Unsent::Gone(_)) => {
                self.ticket.slot.postpone();
                Ok(())
            }
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
