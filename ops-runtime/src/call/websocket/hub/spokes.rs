//! The connected spokes of a hub, and calls of their operations.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::call::directory::{gone, not_served};
use crate::call::websocket::connection::{Connection, Stage};
use crate::call::{Directory, Remote, Route, Transport, TransportInfo};
use crate::model::lock::lock;
use crate::{CallError, Identity, SpecRef};

/// State shared by the connections of a hub.
pub(super) struct Shared {
    pub(super) directory: Directory,
    pub(super) peers: Mutex<BTreeMap<u64, Peer>>,
    pub(super) next: AtomicU64,
    /// True if no more connections are accepted, because the hub is stopping.
    pub(super) draining: AtomicBool,
    /// The tasks of connections, until these are closed.
    pub(super) running: TaskTracker,
    /// The first ends connections when everything has been sent, the second at once.
    pub(super) stop: CancellationToken,
    pub(super) kill: CancellationToken,
    pub(super) max_message: AtomicU64,
    /// How many connections there are.
    pub(super) company: Arc<AtomicUsize>,
}

impl Shared {
    pub(super) fn peers(&self) -> MutexGuard<'_, BTreeMap<u64, Peer>> {
        lock(&self.peers)
    }
}

/// Removes a spoke when its connection ends, however that happens.
pub(super) struct Registered {
    pub(super) shared: Arc<Shared>,
    pub(super) id: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let peer = self.shared.peers().remove(&self.id);
        if let Some(peer) = peer {
            peer.connection.close();
            peer.connection.pending.close(&gone("the connection was lost"));
        }
    }
}

/// A connected spoke of a hub.
#[derive(Clone)]
pub struct Peer {
    pub(super) connection: Arc<Connection>,
    pub(super) identity: Option<Arc<Identity>>,
    /// Ends the connection when everything has been sent; also cancelled by that of all connections.
    pub(super) stop: CancellationToken,
}

impl Peer {
    /// Its identity, if it was authenticated.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }

    /// A caller for the operations of this spoke.
    pub fn remote(&self) -> Remote {
        Remote::new(Spoke(self.connection.clone()))
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("identity", &self.identity()).finish_non_exhaustive()
    }
}

/// The transport to all spokes of a hub.
pub(super) struct Spokes(pub(super) Arc<Shared>);

impl Transport for Spokes {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        self.0.directory.route(operation).map(Route::To)
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.0.directory.spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        self.0.directory.list()
    }

    fn in_flight(&self) -> usize {
        self.0.peers().values().map(|peer| peer.connection.pending.in_flight()).sum()
    }

    fn info(&self) -> TransportInfo {
        let limit = self.0.max_message.load(Ordering::Relaxed);
        TransportInfo::new("websocket").with_max_message(usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

/// The transport to one spoke of a hub.
struct Spoke(Arc<Connection>);

impl Transport for Spoke {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        if *self.0.stage().borrow() == Stage::Closed {
            return Err(gone("the spoke is gone"));
        }
        match self.0.spec(operation) {
            Some(_) => Ok(Route::To(self.0.pending.clone())),
            None => Err(not_served(operation)),
        }
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.0.spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        self.0.specs()
    }

    fn in_flight(&self) -> usize {
        self.0.pending.in_flight()
    }

    fn info(&self) -> TransportInfo {
        TransportInfo::new("websocket").with_max_message(self.0.outbox.limit())
    }
}
