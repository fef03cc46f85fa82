//! The worker's side: running requests and sending their events.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};

use serde_json::json;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

use super::budget::{Budget, Limits, Share};
use super::credits::Credits;
use super::own_specs::changes_without_binding;
use super::run_request::{Task, serve};
use super::{CallEvent, CallRequest, Frame, Link, PeerAuth, Remote, RequestId, TransportId, Unsent};
use crate::model::lock::lock;
use crate::run::fairness::in_turns;
use crate::run::redact;
use crate::run::schemas::published_input;
use crate::{Binding, CallError, Handler, OperationSpec, Registry, Schema, SpecRef, Text};

/// Announced specs, with those that they were derived from.
type Announced = BTreeMap<Text, (SpecRef, Arc<OperationSpec>)>;

/// Runs the requests of a transport with a registry.
///
/// Every call is checked against the identity that the transport authenticated. Without an identity, it is denied if
/// the operation requires any access. A clone is the same handler.
#[derive(Clone)]
pub struct CallHandler {
    registry: Registry,
    /// The remotes to which calls are forwarded. The first that serves an operation gets its calls.
    forward: Vec<Remote>,
    /// The transport of the worker, if it serves over one that also calls.
    transport: Option<TransportId>,
    budget: Arc<Budget>,
    shows_upstream: bool,
    /// Specs without the parts that are not announced, with those that they were derived from.
    announced: Arc<Mutex<Announced>>,
    /// True if it was logged that an identity was ignored.
    told: Arc<AtomicBool>,
}

impl CallHandler {
    /// A handler that runs the operations of a registry.
    pub fn new(registry: Registry) -> Self {
        let budget = Budget::new(Limits::default());
        Self {
            registry,
            forward: Vec::new(),
            transport: None,
            budget,
            shows_upstream: false,
            announced: Arc::default(),
            told: Arc::default(),
        }
    }

    /// Forwards calls of operations that the registry does not have, on behalf of their callers.
    ///
    /// Access is checked here as well, by the rules in the announced specs. The worker that runs the call has to trust
    /// this process to name the caller. Of several remotes, the first that serves an operation gets its calls.
    ///
    /// Peers learn of the operations that the remote serves when the worker starts, or when they connect. `announce` of
    /// the worker, or of the hub, tells them of later changes. A hub announces changes by itself only for its own spokes
    /// (`Hub::with_forwarding`).
    #[must_use]
    pub fn with_forwarding(mut self, remote: Remote) -> Self {
        self.forward.push(remote);
        self
    }

    /// The handler of a worker of this transport.
    ///
    /// It does not serve what it would call over the same transport: such a call could come back to it, without end.
    pub(super) fn over(mut self, transport: TransportId) -> Self {
        self.transport = Some(transport);
        // Each transport leaves out other operations.
        self.announced = Arc::default();
        self
    }

    /// Limits the running requests of one peer, 16,384 by default; further requests fail.
    #[must_use]
    pub fn with_max_running(self, requests: usize) -> Self {
        self.limited(|limits| limits.peer_running = requests)
    }

    /// Limits the running requests of all peers, 65,536 by default; further requests fail.
    ///
    /// Each connection of a hub may run 16 in any case, or a 64th of the limit if that is less, so that one connection
    /// cannot use up the limit.
    #[must_use]
    pub fn with_max_running_in_all(self, requests: usize) -> Self {
        self.limited(|limits| limits.all_running = requests)
    }

    /// Limits the memory that one peer holds, and that of all peers together, in bytes; 64 MiB and 256 MiB by default.
    ///
    /// Running requests, unread responses, buffered items of forwarded subscriptions, partly received messages and
    /// announcements count. What callers in this process request does not. Over WebSocket, a peer that holds half of its
    /// limit is not read until it releases some. Requests and responses beyond the limit fail with an `EXECUTION_ERROR`
    /// whose details are `{ "limit" }`. When the limit of all peers is reached, each connection of a hub may still hold
    /// 256 KiB, and the connection that holds the most is closed if it has released nothing for a second, or holds more
    /// than four times its part. Each caller over a broker, and each [`session`](Self::session), may still hold 256 KiB
    /// as well, but only until all peers together hold a quarter more than the limit: such a peer may have any number
    /// of names.
    #[must_use]
    pub fn with_max_bytes(self, peer: usize, all: usize) -> Self {
        self.limited(|limits| (limits.peer, limits.all) = (peer, all))
    }

    fn limited(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        let mut limits = self.budget.limits();
        change(&mut limits);
        self.budget = Budget::new(limits);
        self
    }

    /// Shows callers in other processes the headers and cookies of HTTP responses, the bodies of HTTP errors, the texts
    /// of calls that functions made (of failed tools, and of what was refused or ended too early), and the servers of
    /// operations (their `binding`).
    ///
    /// By default they get as much as a host gets from an MCP server: the data and the status. Callers in this process
    /// get everything. Unlike an MCP server, it shows the other errors of functions as they are in either case. Only if a
    /// call that a function made is refused for its input, or for an identity that the function has set, it is an
    /// `EXECUTION_ERROR`: by its own code, it would read as the refusal of the caller's call.
    #[must_use]
    pub fn with_upstream_shown(mut self) -> Self {
        self.shows_upstream = true;
        self
    }

    /// The registry.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The operations that can be called, in the order of their ids; forwarded ones come last.
    pub fn list(&self) -> Vec<SpecRef> {
        let table = self.registry.table();
        let own = table.iter().filter(|entry| self.serves(entry.handler.as_ref()));
        let mut specs: Vec<SpecRef> = own.map(|entry| entry.spec.clone()).collect();
        drop(table);
        for remote in self.forward() {
            let mut more = remote.list();
            {
                let known: HashSet<&str> = specs.iter().map(|spec| spec.id.as_ref()).collect();
                more.retain(|spec| !known.contains(spec.id.as_ref()));
            }
            specs.extend(more);
        }
        specs
    }

    /// The operation of the registry with this id, if it is served.
    pub(super) fn spec(&self, id: &str) -> Option<SpecRef> {
        let table = self.registry.table();
        let entry = table.get(id)?;
        self.serves(entry.handler.as_ref()).then(|| entry.spec.clone())
    }

    /// False for an operation that is called over the transport of the worker itself.
    fn serves(&self, handler: Option<&Handler>) -> bool {
        self.transport.is_none() || handler.and_then(Remote::transport_of) != self.transport
    }

    /// True if it was logged that an identity was ignored.
    pub(super) fn told(&self) -> &AtomicBool {
        &self.told
    }

    /// The remotes to which calls are forwarded, other than over the transport of the worker itself.
    pub(super) fn forward(&self) -> impl Iterator<Item = &Remote> {
        self.forward.iter().filter(move |remote| self.transport.is_none() || remote.transport() != self.transport)
    }

    #[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
    pub(super) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// The operations as they are announced to other processes: without their binding, unless it is shown, and with
    /// what only the binding says of the input in its schema.
    #[cfg_attr(not(any(feature = "nats", feature = "redis", feature = "websocket")), allow(dead_code))]
    pub(super) fn announced(&self) -> Vec<SpecRef> {
        let mut specs = self.list();
        if self.shows_upstream {
            return specs;
        }
        let mut made = lock(&self.announced);
        if made.len() > specs.len() * 2 {
            made.clear();
        }
        for spec in &mut specs {
            if spec.binding == Binding::Local {
                continue;
            }
            let known = made.get(&spec.id).filter(|(of, _)| same(of, spec)).map(|(_, bare)| bare.clone());
            let bare = known.unwrap_or_else(|| {
                let mut bare = OperationSpec::clone(spec);
                if let Some(input) = published_input(spec) {
                    bare.input = Schema::from(input);
                }
                bare.changes = changes_without_binding(spec);
                bare.binding = Binding::Local;
                let bare = Arc::new(bare);
                made.insert(spec.id.clone(), (spec.clone(), bare.clone()));
                bare
            });
            *spec = SpecRef::Shared(bare);
        }
        specs
    }

    /// Opens a session for a peer; the link takes its responses. Dropping the session aborts its requests.
    pub fn session(&self, auth: PeerAuth, link: Arc<dyn Link>) -> Session {
        self.session_with(auth, link, self.budget.share())
    }

    /// Opens a session for a peer with a share of the budget of its own.
    pub(super) fn session_with(&self, auth: PeerAuth, link: Arc<dyn Link>, share: Arc<Share>) -> Session {
        Session(Arc::new(Guarded(Arc::new(Peer {
            handler: self.clone(),
            auth,
            link,
            share,
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

/// True if two specs are the same object.
#[cfg_attr(not(any(feature = "nats", feature = "redis", feature = "websocket")), allow(dead_code))]
fn same(one: &SpecRef, other: &SpecRef) -> bool {
    match (one, other) {
        (SpecRef::Shared(one), SpecRef::Shared(other)) => Arc::ptr_eq(one, other),
        (SpecRef::Static(one), SpecRef::Static(other)) => std::ptr::eq(*one, *other),
        _ => false,
    }
}

/// The running requests of one peer.
///
/// A clone is the same session. Dropping the last clone aborts the running requests.
#[derive(Clone)]
pub struct Session(Arc<Guarded>);

/// Closes the session when the last clone is dropped; tasks hold only what is inside.
struct Guarded(Arc<Peer>);

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// State shared by the tasks of a session.
pub(super) struct Peer {
    pub(super) handler: CallHandler,
    pub(super) auth: PeerAuth,
    pub(super) link: Arc<dyn Link>,
    pub(super) share: Arc<Share>,
    running: Mutex<Running>,
    idle: Notify,
}

struct Running {
    tasks: HashMap<RequestId, Entry>,
    closed: bool,
}

struct Entry {
    /// `None` until the task has been spawned.
    abort: Option<AbortHandle>,
    credits: Arc<Credits>,
}

impl Session {
    /// Handles a frame from the peer: a request, an abort or a credit. Other frames are ignored.
    ///
    /// # Errors
    /// Returns a request that will not run, because the session accepts no more.
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

    /// Number of running requests.
    pub fn running(&self) -> usize {
        self.0.0.running().tasks.len()
    }

    /// Accepts no more requests, and waits until none is running.
    pub async fn drain(&self) {
        let peer = &self.0.0;
        // First, so that a peer that goes on sending requests does not delay the end.
        peer.running().closed = true;
        loop {
            let idle = peer.idle.notified();
            tokio::pin!(idle);
            // Registered before the table is checked, so that no end is missed.
            idle.as_mut().enable();
            if peer.running().tasks.is_empty() {
                return;
            }
            idle.await;
        }
    }

    /// Aborts the running requests, tells the peer, and accepts no more.
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
        lock(&self.running)
    }

    fn start(self: &Arc<Self>, request: Box<CallRequest>) -> Result<(), Box<CallRequest>> {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            self.refuse(request.request_id, CallError::execution("a call needs a tokio runtime to run on"));
            return Ok(());
        };
        let limit = self.handler.budget.limits().peer_running;
        let charge = match self.auth.in_process {
            // The caller is in this process, and holds the memory anyway.
            true => self.share.begin(),
            false => self.share.request(&request),
        };
        let mut running = self.running();
        if running.closed {
            return Err(request);
        }
        if running.tasks.contains_key(&request.request_id) {
            tracing::debug!(request_id = %request.request_id, "a request came twice");
            return Ok(());
        }
        if running.tasks.len() >= limit {
            drop(running);
            let message = format!(
                "the worker runs {limit} requests of this peer already, which is its limit \
                 (`CallHandler::with_max_running`)"
            );
            let error = CallError::execution(message).with_details(json!({ "limit": limit }));
            self.refuse(request.request_id, error);
            return Ok(());
        }
        let charge = match charge {
            Ok(charge) => charge,
            Err(error) => {
                drop(running);
                self.refuse(request.request_id, error);
                return Ok(());
            }
        };
        let (request_id, credits) = (request.request_id.clone(), Arc::new(Credits::new()));
        let task = Task::new(self.clone(), request_id.clone(), credits.clone(), charge);
        running.tasks.insert(request_id.clone(), Entry { abort: None, credits: credits.clone() });
        drop(running);
        // Not under the lock: a runtime that is shutting down drops the task at once, and that takes the lock.
        let abort = runtime.spawn(in_turns(serve(task, request), self.share.cost().clone())).abort_handle();
        match self.running().tasks.get_mut(&request_id) {
            Some(entry) if Arc::ptr_eq(&entry.credits, &credits) => entry.abort = Some(abort),
            // It has ended or was aborted meanwhile.
            _ => abort.abort(),
        }
        Ok(())
    }

    fn refuse(&self, request_id: RequestId, error: CallError) {
        let _ = self.send(CallEvent::Error { request_id: request_id.clone(), error });
        self.link.finished(&request_id);
    }

    /// Stops a request that its caller has aborted.
    fn abort(&self, request_id: &RequestId) {
        let Some(Entry { abort, .. }) = self.remove(request_id, |_| true) else { return };
        // Now, not when its task is dropped: the caller may reuse the id before that.
        self.link.finished(request_id);
        if let Some(abort) = abort {
            abort.abort();
        }
    }

    /// Removes a request, if it is the one that is meant.
    fn remove(&self, request_id: &RequestId, is_meant: impl FnOnce(&Entry) -> bool) -> Option<Entry> {
        let mut running = self.running();
        let entry = match running.tasks.remove_entry(request_id) {
            Some((id, other)) if !is_meant(&other) => {
                running.tasks.insert(id, other);
                None
            }
            found => found.map(|(_, entry)| entry),
        };
        let idle = running.tasks.is_empty();
        drop(running);
        if idle && entry.is_some() {
            self.idle.notify_waiters();
        }
        self.handler.budget.request_ended();
        entry
    }

    /// Forgets a request, identified by its credits, since its id may have been reused; false if its caller has aborted
    /// it.
    pub(super) fn finish(&self, request_id: &RequestId, credits: &Arc<Credits>) -> bool {
        let ended = self.remove(request_id, |entry| Arc::ptr_eq(&entry.credits, credits)).is_some();
        if ended {
            self.link.finished(request_id);
        }
        ended
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
            let _ = self.send(CallEvent::Aborted { request_id: request_id.clone() });
            self.link.finished(&request_id);
        }
        self.idle.notify_waiters();
        self.handler.budget.request_ended();
    }

    pub(super) fn send(&self, event: CallEvent) -> Result<(), Unsent> {
        self.link.send(event.into())
    }

    /// True if the peer gets all details of a response.
    pub(super) fn sees_upstream(&self) -> bool {
        self.auth.in_process || self.handler.shows_upstream
    }

    /// The error as the peer may see it.
    pub(super) fn shown(&self, error: CallError, spec: &OperationSpec, request_id: &RequestId) -> CallError {
        match self.sees_upstream() {
            // Within the process, the error keeps the name of its operation.
            true if self.auth.in_process => error,
            true => redact::as_own(error, spec, request_id),
            false => redact::error(error, spec, request_id),
        }
    }
}

#[cfg(test)]
mod tests;
