//! The worker's side: a session for each caller, and the reports to it about its requests.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::call::{CallEvent, CallHandler, Frame, Link, Malformed, PeerAuth, RequestId, Session, Unsent};
use crate::model::lock::lock;
use crate::{BoxFuture, CallError, ErrorCode};

/// How many requests one report names.
const NAMED_AT_ONCE: usize = 1_000;

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
        Self { handler, auth, post, table: Mutex::default() }
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
            most: self.handler.budget().limits().peer,
            running: Mutex::default(),
            news: AtomicBool::new(false),
        });
        let session = self.handler.session(self.auth.clone(), link.clone());
        Known { session, link, unreachable: None, lately: false }
    }

    /// Reports a malformed message to its caller, if the message names its request.
    pub(crate) fn complain(&self, caller: &str, malformed: Malformed) {
        tracing::warn!(kind = malformed.kind, "a caller sent a message that can't be read");
        if let (Some("call.requested"), Some(request_id)) = (malformed.kind.as_deref(), &malformed.request_id) {
            let error = CallError::new(ErrorCode::ValidationError, malformed.to_string());
            let _ =
                self.post.post(&caller.into(), CallEvent::Error { request_id: request_id.clone(), error }.into(), 0);
        }
    }

    /// Reports to a caller that its request is refused.
    pub(crate) fn refuse(&self, caller: &str, request_id: RequestId, error: CallError) {
        let _ = self.post.post(&caller.into(), CallEvent::Error { request_id, error }.into(), 0);
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
        if let Frame::Event(CallEvent::Responded { .. }) = frame
            && self.post.waiting() >= self.most
        {
            let message = format!(
                "{} bytes of answers wait for the broker already (`CallHandler::with_max_bytes`); try again later",
                self.most
            );
            return Err(Unsent::Refused(CallError::execution(message).with_details(json!({ "limit": self.most }))));
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
