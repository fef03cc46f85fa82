//! The worker's side: a session for each caller, and the reports to it about its requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::json;

use super::Faults;
use crate::call::{CallEvent, CallHandler, Frame, Link, Malformed, PeerAuth, RequestId, Session, Unsent};
use crate::model::lock::lock;
use crate::{BoxFuture, CallError, ErrorCode};

/// How many requests one report names.
const NAMED_AT_ONCE: usize = 1_000;

/// Up to so many bytes may wait for the broker before errors are dropped, however small the limit is that the worker's
/// program sets: one response may be larger than that limit, and the caller of a dropped error waits for nothing.
const ROOM_FOR_ERRORS: usize = 8 << 20;

/// Sends a worker's frames to a caller.
pub(crate) trait Post: Send + Sync + 'static {
    /// Queues a frame for a caller, with its number among the frames of its request.
    fn post(&self, caller: &Arc<str>, frame: Frame, number: u64) -> Result<(), Unsent>;

    /// What to wait for before another item is sent.
    fn ready(&self) -> Option<BoxFuture<'static, ()>>;

    /// How many bytes wait to be sent.
    fn waiting(&self) -> usize;

    /// True if the broker took what was last sent to it.
    fn is_reached(&self) -> bool {
        true
    }

    /// True if a caller still reads frames other than responses.
    fn listens(&self, caller: &str) -> bool {
        let _ = caller;
        true
    }
}

/// The callers for which a worker runs something.
pub(crate) struct Callers {
    handler: CallHandler,
    auth: PeerAuth,
    post: Arc<dyn Post>,
    table: Mutex<HashMap<Arc<str>, Known>>,
    faults: Faults,
}

struct Known {
    session: Session,
    link: Arc<ToCaller>,
    /// Since when the caller could not be reached, and whether that was so at the last heartbeat.
    unreachable: Option<Instant>,
    lately: bool,
}

impl Callers {
    pub(crate) fn new(handler: CallHandler, auth: PeerAuth, post: Arc<dyn Post>) -> Self {
        Self { handler, auth, post, table: Mutex::default(), faults: Faults::default() }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<Arc<str>, Known>> {
        lock(&self.table)
    }

    /// Handles a frame of a caller.
    pub(crate) fn receive(&self, caller: &str, frame: Frame) {
        let Frame::Event(CallEvent::Requested(request)) = frame else {
            let session = self.table().get(caller).map(|caller| caller.session.clone());
            if let Some(session) = session {
                let _ = session.receive(frame);
            }
            return;
        };
        let request_id = request.request_id.clone();
        let mut table = self.table();
        if !table.contains_key(caller) {
            let address: Arc<str> = caller.into();
            table.insert(address.clone(), self.caller(address));
        }
        let Some(Known { session, link, .. }) = table.get(caller) else { return };
        // Under the lock, so that the session is not forgotten in between.
        link.started(&request_id);
        let (session, link) = (session.clone(), link.clone());
        let refused = session.receive(CallEvent::Requested(request).into()).is_err();
        drop(table);
        if refused {
            link.finished(&request_id);
            let _ = link.send(CallEvent::Aborted { request_id }.into());
        }
    }

    fn caller(&self, address: Arc<str>) -> Known {
        let link = Arc::new(ToCaller {
            listens: self.post.listens(&address),
            address,
            post: self.post.clone(),
            most: self.most(),
            running: Mutex::default(),
            news: AtomicBool::new(false),
        });
        let session = self.handler.session(self.auth.clone(), link.clone());
        Known { session, link, unreachable: None, lately: false }
    }

    /// Limit of bytes that are queued for the broker.
    fn most(&self) -> usize {
        self.handler.budget().limits().peer
    }

    /// Logs a message of a caller that is not answered: what is wrong with it, and what is known of it.
    pub(crate) fn note_fault(&self, what: &'static str, about: Option<&str>) {
        self.faults.tell(what, about);
    }

    /// Reports a malformed message to its caller, if the message names its request.
    pub(crate) fn complain(&self, caller: &str, malformed: Malformed) {
        self.note_fault("a caller sent a message that can't be read", malformed.kind.as_deref());
        if let (Some("call.requested"), Some(request_id)) = (malformed.kind.as_deref(), &malformed.request_id) {
            let error = CallError::new(ErrorCode::ValidationError, malformed.to_string());
            self.refuse(caller, request_id.clone(), error);
        }
    }

    /// Reports to a caller that its request is refused, unless too much waits for the broker: callers may send wrong
    /// requests faster than the broker takes the errors.
    pub(crate) fn refuse(&self, caller: &str, request_id: RequestId, error: CallError) {
        if self.post.waiting() < self.most().max(ROOM_FOR_ERRORS) {
            let _ = self.post.post(&caller.into(), CallEvent::Error { request_id, error }.into(), 0);
        }
    }

    /// Reports running requests to their callers: only those not reported yet, or all of them.
    pub(crate) fn name(&self, all: bool) {
        // Reports that wait for the broker would pile up. Those that follow name the same requests.
        if !self.post.is_reached() {
            return;
        }
        let links: Vec<_> = {
            let mut table = self.table();
            if all {
                table.retain(|_, caller| caller.session.running() > 0 || caller.link.is_running());
            }
            let named = |caller: &&Known| all || caller.link.news.load(Ordering::Relaxed);
            table.values().filter(named).map(|caller| caller.link.clone()).collect()
        };
        links.iter().for_each(|link| link.name(all));
    }

    /// Notes that a caller cannot be reached now; its requests are aborted if that lasts.
    pub(crate) fn unreachable(&self, address: &str, patience: Duration) {
        let mut table = self.table();
        let Some(caller) = table.get_mut(address) else { return };
        caller.lately = true;
        let since = *caller.unreachable.get_or_insert_with(Instant::now);
        drop(table);
        if since.elapsed() >= patience {
            self.forget(address);
        }
    }

    /// Begins another check of which callers can be reached.
    pub(crate) fn look_again(&self) {
        for caller in self.table().values_mut() {
            if !std::mem::take(&mut caller.lately) {
                caller.unreachable = None;
            }
        }
    }

    /// Aborts the requests of a caller that is gone.
    pub(crate) fn forget(&self, address: &str) {
        let caller = self.table().remove(address);
        if let Some(caller) = caller {
            tracing::debug!("a caller is gone");
            caller.session.close();
        }
    }

    /// Number of running requests.
    pub(crate) fn running(&self) -> usize {
        self.table().values().map(|caller| caller.session.running()).sum()
    }

    /// True if requests hold so much memory that further ones should stay in the broker's queue.
    pub(crate) fn is_spent(&self) -> bool {
        self.handler.budget().is_spent()
    }

    /// Waits until fewer requests than this are running, or any request has ended.
    pub(crate) async fn until_fewer(&self, requests: usize) {
        self.handler.budget().until_freed(|| self.running() < requests && !self.is_spent()).await;
    }

    /// Waits until nothing is running.
    pub(crate) async fn drain(&self) {
        let sessions: Vec<_> = self.table().values().map(|caller| caller.session.clone()).collect();
        for session in sessions {
            session.drain().await;
        }
    }

    /// Aborts everything.
    pub(crate) fn close(&self) {
        let callers = std::mem::take(&mut *self.table());
        callers.values().for_each(|caller| caller.session.close());
    }
}

/// The link to one caller.
struct ToCaller {
    address: Arc<str>,
    post: Arc<dyn Post>,
    /// Limit of bytes that are queued for the broker.
    most: usize,
    listens: bool,
    /// The running requests.
    running: Mutex<HashMap<RequestId, Running>>,
    /// True if there is a request that the caller has no report of.
    news: AtomicBool,
}

#[derive(Default)]
struct Running {
    /// True if the caller has a report of it.
    known: bool,
    /// Number of frames sent about it.
    sent: u64,
}

impl ToCaller {
    fn requests(&self) -> MutexGuard<'_, HashMap<RequestId, Running>> {
        lock(&self.running)
    }

    fn started(&self, request_id: &RequestId) {
        self.requests().entry(request_id.clone()).or_default();
        self.news.store(true, Ordering::Relaxed);
    }

    fn is_running(&self) -> bool {
        !self.requests().is_empty()
    }

    fn name(&self, all: bool) {
        if !self.listens {
            return;
        }
        let mut ids = Vec::new();
        {
            let mut running = self.requests();
            self.news.store(false, Ordering::Relaxed);
            for (id, Running { known, .. }) in running.iter_mut() {
                if !std::mem::replace(known, true) || all {
                    ids.push(id.clone());
                }
            }
        }
        for ids in ids.chunks(NAMED_AT_ONCE) {
            let _ = self.post.post(&self.address, Frame::Running { request_ids: ids.to_vec() }, 0);
        }
    }
}

impl Link for ToCaller {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        match &frame {
            Frame::Event(CallEvent::Responded { .. }) if self.post.waiting() >= self.most => {
                let message = format!(
                    "{} bytes of answers wait for the broker already (`CallHandler::with_max_bytes`); try again later",
                    self.most
                );
                return Err(Unsent::Refused(CallError::execution(message).with_details(json!({ "limit": self.most }))));
            }
            // There is an error for each request, also for one that is refused. Its caller finds out by the silence.
            Frame::Event(CallEvent::Error { .. }) if self.post.waiting() / 2 >= self.most.max(ROOM_FOR_ERRORS) => {
                return Err(Unsent::Gone(frame));
            }
            _ => {}
        }
        let id = frame.request_id().cloned();
        let running = |id| self.requests().get(id).map_or(0, |running| running.sent);
        self.post.post(&self.address, frame, id.as_ref().map_or(0, running))?;
        // Frames about one request come from one task, so nothing comes in between.
        if let Some(id) = id
            && let Some(running) = self.requests().get_mut(&id)
        {
            running.sent += 1;
        }
        Ok(())
    }

    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        self.post.ready()
    }

    fn finished(&self, request_id: &RequestId) {
        self.requests().remove(request_id);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;
    use crate::{Payload, Registry, ResponseEnvelope};

    /// A broker that has taken nothing of so many bytes, and counts what is sent to it nevertheless.
    #[derive(Default)]
    struct Stuck {
        waiting: AtomicUsize,
        sent: AtomicUsize,
    }

    impl Post for Stuck {
        fn post(&self, _: &Arc<str>, _: Frame, _: u64) -> Result<(), Unsent> {
            self.sent.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }

        fn ready(&self) -> Option<BoxFuture<'static, ()>> {
            None
        }

        fn waiting(&self) -> usize {
            self.waiting.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn what_is_refused_is_not_queued_without_a_limit() {
        const ROOM: usize = ROOM_FOR_ERRORS;
        let post = Arc::new(Stuck::default());
        let error = || CallError::execution("no");
        // How many complaints, refusals, responses and errors of running requests are sent.
        let sent = |most: usize, waiting: usize| {
            let handler = CallHandler::new(Registry::new()).with_max_bytes(most, most);
            let callers = Callers::new(handler, PeerAuth::anonymous(), post.clone());
            let link = callers.caller("me".into()).link;
            post.waiting.store(waiting, Ordering::Relaxed);
            let count = |send: &dyn Fn()| {
                let before = post.sent.load(Ordering::Relaxed);
                send();
                post.sent.load(Ordering::Relaxed) - before
            };
            let kind = Some("call.requested".to_owned());
            let malformed = Malformed { kind, request_id: Some("1".into()), message: String::new() };
            let output = ResponseEnvelope::local(Payload::Value(1.into()), "a.b");
            let responded = CallEvent::Responded { request_id: "1".into(), output };
            let failed = CallEvent::Error { request_id: "1".into(), error: error() };
            [
                count(&|| callers.complain("me", malformed.clone())),
                count(&|| callers.refuse("me", "1".into(), error())),
                count(&|| _ = link.send(responded.clone().into())),
                count(&|| _ = link.send(failed.clone().into())),
            ]
        };
        for most in [ROOM, 3 * ROOM] {
            assert_eq!(sent(most, most - 1), [1, 1, 1, 1]);
            assert_eq!(sent(most, most), [0, 0, 0, 1]);
            assert_eq!(sent(most, 2 * most - 1), [0, 0, 0, 1]);
            assert_eq!(sent(most, 2 * most), [0, 0, 0, 0]);
        }
        // A small limit holds for responses only.
        assert_eq!(sent(1_000, 999), [1, 1, 1, 1]);
        assert_eq!(sent(1_000, 1_000), [1, 1, 0, 1]);
        assert_eq!(sent(1_000, ROOM - 1), [1, 1, 0, 1]);
        assert_eq!(sent(1_000, ROOM), [0, 0, 0, 1]);
        assert_eq!(sent(1_000, 2 * ROOM - 1), [0, 0, 0, 1]);
        assert_eq!(sent(1_000, 2 * ROOM), [0, 0, 0, 0]);
    }
}
