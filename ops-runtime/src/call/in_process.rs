//! The transport that stays in the process: the embedded default.
//!
//! # What it promises
//!
//! - **Delivery.** A request is given to one worker, once; it runs as a task of its own. A worker that goes away fails what
//!   it runs with `ABORTED`; one that stops finishes it, and what it would have got goes to another.
//! - **Order.** Items of a subscription come in order. Calls run side by side.
//! - **Limits.** Values are moved, not copied: a message is as large as memory allows. A worker runs up to 16,384 requests
//!   at a time ([`CallHandler::with_max_running`]); of a subscription, up to 64 items wait for their reader.
//! - **Identity.** Callers are of this process and trusted to say in whose name they call: `CallOptions::identity`.
//! - **Discovery.** What workers serve is known at once; a call that nobody serves fails with `OPERATION_NOT_FOUND`.
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
use std::sync::{Arc, Mutex, PoisonError};

use super::announced::Announced;
use super::directory::gone;
use super::pending::WeakPending;
use super::{
    CallHandler, Directory, Frame, Link, PeerAuth, PendingRequests, Remote, Route, Session, Transport, TransportInfo,
    Unsent,
};
use crate::{CallError, SpecRef};

/// Callers and workers of one process, joined without a wire.
///
/// A clone is the same transport.
#[derive(Debug, Clone, Default)]
pub struct InProcess {
    directory: Directory,
    workers: Arc<Mutex<Vec<WeakPending>>>,
}

impl InProcess {
    /// A transport without workers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Serves the operations of a handler, until the worker is stopped or dropped.
    pub fn serve(&self, handler: CallHandler) -> Worker {
        let back = Arc::new(ToCaller(std::sync::OnceLock::new()));
        let auth = PeerAuth { in_process: true, ..PeerAuth::trusted() };
        let session = handler.session(auth, back.clone());
        let pending = PendingRequests::new(Arc::new(ToWorker(session.clone())));
        let _ = back.0.set(pending.downgrade());
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| worker.upgrade().is_some());
        workers.push(pending.downgrade());
        drop(workers);
        let worker =
            Worker { directory: self.directory.clone(), handler, session, pending, announced: Mutex::default() };
        worker.announce();
        worker
    }

    /// A caller of what the workers serve.
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

    fn pending_count(&self) -> usize {
        let workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.iter().filter_map(WeakPending::upgrade).map(|pending| pending.pending_count()).sum()
    }

    fn info(&self) -> TransportInfo {
        TransportInfo::new("in-process")
    }
}

/// Operations that are being served.
///
/// Dropping it aborts what is running; [`stop`](Self::stop) lets it finish.
#[must_use = "a worker that is dropped serves no more"]
pub struct Worker {
    directory: Directory,
    handler: CallHandler,
    session: Session,
    pending: PendingRequests,
    announced: Mutex<Announced>,
}

impl Worker {
    /// Announces operations that the registry has got or lost since.
    pub fn announce(&self) {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        self.directory.announce(&self.pending, announced.change(self.handler.list()));
    }

    /// How many requests are being run.
    pub fn running(&self) -> usize {
        self.session.running()
    }

    /// Takes no more requests, and returns when those that are running are done.
    pub async fn stop(self) {
        self.directory.withdraw(&self.pending);
        self.pending.quiesce().await;
        self.session.drain().await;
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.directory.withdraw(&self.pending);
        self.session.close();
        self.pending.close(&gone("the worker is gone"));
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker").field("running", &self.running()).finish_non_exhaustive()
    }
}

struct ToWorker(Session);

impl Link for ToWorker {
    fn send(&self, frame: Frame) -> Result<(), Unsent> {
        self.0.receive(frame).map_err(Unsent::Gone)
    }
}

/// To the table of requests; the worker owns it, and the table owns the way to the worker.
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
