//! The worker's side: requests that are run, and what is said about them on the way.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::serve::{Task, serve};
use super::{CallEvent, CallRequest, Frame, Link, Origin, Remote, RequestId, Unsent, WINDOW};
use crate::{CallError, Registry, SpecRef};

/// How many requests of one peer are run at a time, unless the handler says otherwise.
const MAX_RUNNING: usize = 16_384;

/// Runs the requests that come over a transport by a registry.
///
/// Every call is checked: against the identity that the transport authenticated, and denied without one if the operation
/// requires anything. A clone is the same handler.
#[derive(Clone)]
pub struct CallHandler {
    registry: Registry,
    forward: Option<Remote>,
    max_running: usize,
}

impl CallHandler {
    /// A handler that runs the operations of a registry.
    pub fn new(registry: Registry) -> Self {
        Self { registry, forward: None, max_running: MAX_RUNNING }
    }

    /// Passes on what the registry does not have, in the name of whoever called.
    ///
    /// Access is checked here, too, by the rules that were announced. Whoever runs the call has to trust this process to
    /// say who calls.
    #[must_use]
    pub fn with_forwarding(mut self, remote: Remote) -> Self {
        self.forward = Some(remote);
        self
    }

    /// Limits how many requests of one peer are run at a time, 16,384 by default; those beyond fail.
    #[must_use]
    pub fn with_max_running(mut self, requests: usize) -> Self {
        self.max_running = requests;
        self
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The operations that can be called, in the order of their ids; those that are passed on come last.
    pub fn list(&self) -> Vec<SpecRef> {
        let mut specs = self.registry.list();
        if let Some(remote) = &self.forward {
            let own = specs.len();
            for spec in remote.list() {
                let known = specs.get(..own).is_some_and(|own| own.binary_search_by(|s| s.id.cmp(&spec.id)).is_ok());
                if !known {
                    specs.push(spec);
                }
            }
        }
        specs
    }

    pub(super) fn forward(&self) -> Option<&Remote> {
        self.forward.as_ref()
    }

    /// Opens a session for a peer, whose answers go to the link. Dropping it aborts what it runs.
    pub fn session(&self, origin: Origin, link: Arc<dyn Link>) -> Session {
        Session(Arc::new(Guarded(Arc::new(Peer {
            handler: self.clone(),
            origin,
            link,
            running: Mutex::new(Running { tasks: HashMap::new(), closed: false }),
            idle: Notify::new(),
        }))))
    }
}

impl fmt::Debug for CallHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallHandler").field("registry", &self.registry).finish_non_exhaustive()
    }
}

/// The requests of one peer that are run.
///
/// A clone is the same session; the last one that is dropped aborts what is running.
#[derive(Clone)]
pub struct Session(Arc<Guarded>);

/// Closes the session when nobody has it any more; its tasks have only what is inside.
struct Guarded(Arc<Peer>);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// What the tasks of a session share.
pub(super) struct Peer {
    pub(super) handler: CallHandler,
    pub(super) origin: Origin,
    pub(super) link: Arc<dyn Link>,
    running: Mutex<Running>,
    idle: Notify,
}

struct Running {
    tasks: HashMap<RequestId, Entry>,
    closed: bool,
}

struct Entry {
    /// None until the task is there.
    abort: Option<AbortHandle>,
    credits: Arc<Credits>,
}

impl Session {
    /// Takes a frame that came from the peer: a request, an abort, a credit. Others are none of its business.
    ///
    /// # Errors
    /// Gives a request back that is not going to be run, because the session takes no more.
    pub fn receive(&self, frame: Frame) -> Result<(), Frame> {
        let peer = &self.0.0;
        match frame {
            Frame::Event(CallEvent::Requested(request)) => {
                return peer.start(request).map_err(|request| CallEvent::Requested(request).into());
            }
            Frame::Event(CallEvent::Aborted { request_id }) => peer.abort(&request_id),
            Frame::Credit { request_id, items } => {
                if let Some(entry) = peer.running().tasks.get(&request_id) {
                    entry.credits.add(items as usize);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// How many requests are being run.
    pub fn running(&self) -> usize {
        self.0.0.running().tasks.len()
    }

    /// Waits until nothing is running, and takes no more from then on.
    pub async fn drain(&self) {
        let peer = &self.0.0;
        loop {
            let idle = peer.idle.notified();
            tokio::pin!(idle);
            // Before the look at the table, so that no end in between is missed.
            idle.as_mut().enable();
            {
                let mut running = peer.running();
                if running.tasks.is_empty() {
                    running.closed = true;
                    return;
                }
            }
            idle.await;
        }
    }

    /// Aborts what is running, tells the peer, and takes no more.
    pub fn close(&self) {
        self.0.0.close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("running", &self.running()).finish_non_exhaustive()
    }
}

impl Peer {
    fn running(&self) -> MutexGuard<'_, Running> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(self: &Arc<Self>, request: Box<CallRequest>) -> Result<(), Box<CallRequest>> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.refuse(request.request_id, CallError::execution("a call needs a tokio runtime to run on"));
            return Ok(());
        };
        let mut running = self.running();
        if running.closed {
            return Err(request);
        }
        if running.tasks.contains_key(&request.request_id) {
            tracing::debug!(request_id = %request.request_id, "a request came twice");
            return Ok(());
        }
        if running.tasks.len() >= self.handler.max_running {
            drop(running);
            let message = format!("the worker runs {} requests of this peer already", self.handler.max_running);
            self.refuse(request.request_id, CallError::execution(message));
            return Ok(());
        }
        let (request_id, credits) = (request.request_id.clone(), Arc::new(Credits::new()));
        let task = Task::new(self.clone(), request_id.clone(), credits.clone());
        running.tasks.insert(request_id.clone(), Entry { abort: None, credits: credits.clone() });
        drop(running);
        // Not under the lock: a runtime that shuts down drops the task at once, which looks for its entry.
        let abort = runtime.spawn(serve(task, request)).abort_handle();
        match self.running().tasks.get_mut(&request_id) {
            Some(entry) if Arc::ptr_eq(&entry.credits, &credits) => entry.abort = Some(abort),
            // It is over already, or was given up meanwhile.
            _ => abort.abort(),
        }
        Ok(())
    }

    fn refuse(&self, request_id: RequestId, error: CallError) {
        let _ = self.send(CallEvent::Error { request_id: request_id.clone(), error });
        self.link.finished(&request_id);
    }

    /// Stops a request that its caller has given up.
    fn abort(&self, request_id: &RequestId) {
        if let Some(Entry { abort: Some(abort), .. }) = self.remove(request_id) {
            abort.abort();
        }
    }

    fn remove(&self, request_id: &RequestId) -> Option<Entry> {
        let mut running = self.running();
        let entry = running.tasks.remove(request_id);
        let idle = running.tasks.is_empty();
        drop(running);
        if idle && entry.is_some() {
            self.idle.notify_waiters();
        }
        entry
    }

    /// Forgets a request; false if its caller has given it up.
    pub(super) fn finish(&self, request_id: &RequestId) -> bool {
        self.remove(request_id).is_some()
    }

    fn close(&self) {
        let tasks = {
            let mut running = self.running();
            running.closed = true;
            std::mem::take(&mut running.tasks)
        };
        for (request_id, entry) in tasks {
            if let Some(abort) = entry.abort {
                abort.abort();
            }
            let _ = self.send(CallEvent::Aborted { request_id });
        }
        self.idle.notify_waiters();
    }

    pub(super) fn send(&self, event: CallEvent) -> Result<(), Unsent> {
        self.link.send(event.into())
    }
}

/// The items that a subscriber takes.
pub(super) struct Credits {
    left: AtomicUsize,
    more: Notify,
}

impl Credits {
    fn new() -> Self {
        Self { left: AtomicUsize::new(WINDOW as usize), more: Notify::new() }
    }

    fn add(&self, items: usize) {
        let add = |left: usize| Some(left.saturating_add(items));
        let _ = self.left.try_update(Ordering::AcqRel, Ordering::Acquire, add);
        self.more.notify_one();
    }

    /// Takes one, when there is one.
    pub(super) async fn take(&self) {
        loop {
            let taken = self.left.try_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
            if taken.is_ok() {
                return;
            }
            self.more.notified().await;
        }
    }
}
