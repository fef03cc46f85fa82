//! The transport within one process; it needs no feature.
//!
//! # What it promises
//!
//! - **Delivery.** A request is given to one worker, once, and runs as a task of its own. If a worker is dropped, its
//!   running requests fail with `ABORTED`. If it is stopped, it finishes them, and new requests go to other workers.
//! - **Order.** Items of a subscription arrive in order. Calls run concurrently.
//! - **Limits.** Values are moved, not copied; the input of a typed call is JSON text. A message is as large as memory
//!   allows. A worker runs up to 16,384 requests at a time ([`CallHandler::with_max_running`]). Up to 64 unread items of
//!   a subscription are buffered.
//! - **Identity.** Callers are in the same process, and are trusted to name an identity: `CallOptions::identity`.
//! - **Discovery.** The operations of workers are known at once. A call of an operation that no worker serves fails
//!   with `OPERATION_NOT_FOUND`.
//!
//! ```
//! use ops_runtime::call::{CallHandler, InProcess};
//! use ops_runtime::Registry;
//! use ops_runtime::adapter::{Handler, Registration};
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! static ECHO: OperationSpec = OperationSpec::query("demo.echo");
//! registry.register(Registration::new(&ECHO, Handler::dynamic(|input: Value, _| async { Ok(input) })))?;
//!
//! let transport = InProcess::new();
//! let worker = transport.serve(CallHandler::new(registry));
//! assert_eq!(transport.remote().call("demo.echo", json!(7)).await?.data, 7);
//! worker.stop().await;
//! # Ok(()) }
//! ```

use std::fmt;
use std::sync::{Arc, Mutex};

use super::directory::gone;
use super::own_specs::Announced;
use super::pending::WeakPending;
use super::{
    CallHandler, Directory, Frame, Link, PeerAuth, PendingRequests, Remote, Route, Session, Transport, TransportId,
    TransportInfo, Unsent,
};
use crate::model::lock::lock;
use crate::{CallError, SpecRef};

/// Connects callers and workers of one process by channels in memory.
///
/// A clone is the same transport.
#[derive(Debug, Clone)]
pub struct InProcess {
    id: TransportId,
    directory: Directory,
    workers: Arc<Mutex<Vec<WeakPending>>>,
}

impl InProcess {
    /// A transport without workers.
    pub fn new() -> Self {
        Self { id: TransportId::next(), directory: Directory::new(), workers: Arc::default() }
    }

    /// Serves the operations of a handler until the worker is stopped or dropped.
    pub fn serve(&self, handler: CallHandler) -> InProcessWorker {
        let handler = handler.over(self.id);
        let back = Arc::new(ToCaller(std::sync::OnceLock::new()));
        let auth = PeerAuth { in_process: true, ..PeerAuth::trusted() };
        let session = handler.session(auth, back.clone());
        let pending = PendingRequests::new(Arc::new(ToWorker(session.clone())));
        let _ = back.0.set(pending.downgrade());
        let mut workers = lock(&self.workers);
        workers.retain(|worker| worker.upgrade().is_some());
        workers.push(pending.downgrade());
        drop(workers);
        let worker = InProcessWorker {
            directory: self.directory.clone(),
            handler,
            session,
            pending,
            announced: Mutex::default(),
        };
        worker.announce();
        worker
    }

    /// A caller for the operations that the workers serve.
    pub fn remote(&self) -> Remote {
        Remote::new(self.clone())
    }
}

impl Transport for InProcess {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        self.directory.route(operation).map(Route::To)
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.directory.spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        self.directory.list()
    }

    fn in_flight(&self) -> usize {
        let workers = lock(&self.workers);
        workers.iter().filter_map(WeakPending::upgrade).map(|pending| pending.in_flight()).sum()
    }

    fn info(&self) -> TransportInfo {
        TransportInfo::new("in-process")
    }

    fn id(&self) -> Option<TransportId> {
        Some(self.id)
    }
}

impl Default for InProcess {
    fn default() -> Self {
        Self::new()
    }
}

/// A worker, which serves the operations of a handler.
///
/// Dropping it aborts the running requests; [`stop`](Self::stop) lets them finish.
#[must_use = "a worker that is dropped serves no more"]
pub struct InProcessWorker {
    directory: Directory,
    handler: CallHandler,
    session: Session,
    pending: PendingRequests,
    announced: Mutex<Announced>,
}

impl InProcessWorker {
    /// Announces operations that were added to the registry or removed since.
    pub fn announce(&self) {
        let mut announced = lock(&self.announced);
        self.directory.announce(&self.pending, announced.change(self.handler.list()));
    }

    /// Number of running requests.
    pub fn running(&self) -> usize {
        self.session.running()
    }

    /// Accepts no more requests, and returns when the running ones have ended.
    pub async fn stop(self) {
        self.directory.withdraw(&self.pending);
        self.pending.quiesce().await;
        self.session.drain().await;
    }
}

impl Drop for InProcessWorker {
    fn drop(&mut self) {
        self.directory.withdraw(&self.pending);
        self.session.close();
        self.pending.close(&gone("the worker is gone"));
    }
}

impl fmt::Debug for InProcessWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessWorker").field("running", &self.running()).finish_non_exhaustive()
    }
}

struct ToWorker(Session);

impl Link for ToWorker {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        self.0.receive(frame).map_err(Unsent::Gone)
    }
}

/// The link to the table of requests. The reference is weak, because the worker owns the table, which owns the link to
/// the worker.
struct ToCaller(std::sync::OnceLock<WeakPending>);

impl Link for ToCaller {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        match (frame, self.0.get().and_then(WeakPending::upgrade)) {
            (Frame::Event(event), Some(pending)) => {
                pending.receive(event);
                Ok(())
            }
            (frame, _) => Err(Unsent::Gone(frame)),
        }
    }
}
