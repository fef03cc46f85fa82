//! The operations that peers announce, and the choice of a peer for a request.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, RwLock, RwLockReadGuard};

use tokio::sync::watch;

use crate::call::{Announcement, PendingRequests};
use crate::model::lock::{read, write};
use crate::run::pipeline;
use crate::{CallError, ErrorCode, OperationKind, SpecRef, Text};

/// The operations that peers serve, as they have announced them.
///
/// A clone is the same directory.
///
/// ```
/// use std::sync::Arc;
/// use ops_runtime::call::{Announcement, Directory, Frame, Link, PendingRequests, Unsent};
/// use ops_runtime::spec::OperationSpec;
///
/// struct Nowhere;
/// impl Link for Nowhere {
///     fn send(&self, frame: Frame) -> Result<(), Unsent> {
///         Err(Unsent::Gone(frame))
///     }
/// }
///
/// let directory = Directory::new();
/// let peer = PendingRequests::new(Arc::new(Nowhere));
/// let mut announcement = Announcement::new();
/// announcement.add.push(Arc::new(OperationSpec::query("math.add")));
/// directory.announce(&peer, announcement);
/// assert!(directory.route("math.add").is_ok());
/// directory.withdraw(&peer);
/// assert!(directory.route("math.add").is_err());
/// ```
#[derive(Clone)]
pub struct Directory(Arc<Inner>);

struct Inner {
    /// Changed in place: peers may announce their operations one by one, so a change must not copy the table.
    table: RwLock<BTreeMap<Text, Served>>,
    next: AtomicUsize,
    changed: watch::Sender<()>,
}

/// An operation, and the peers that serve it: at least one.
#[derive(Clone, Default)]
struct Served {
    /// Each with its spec of the operation; the latest spec counts.
    peers: Vec<(PendingRequests, SpecRef)>,
}

impl Served {
    fn forget(&mut self, peer: &PendingRequests) {
        self.peers.retain(|(known, _)| !known.same(peer));
    }

    fn spec(&self) -> Option<&SpecRef> {
        self.peers.last().map(|(_, spec)| spec)
    }
}

impl Directory {
    /// An empty directory.
    pub fn new() -> Self {
        Self(Arc::new(Inner { table: RwLock::default(), next: AtomicUsize::new(0), changed: watch::Sender::new(()) }))
    }

    /// Applies an announcement of a peer.
    pub fn announce(&self, peer: &PendingRequests, announcement: Announcement) {
        self.change(|table| {
            for id in &announcement.remove {
                forget(table, id, peer);
            }
            for spec in &announcement.add {
                let spec = SpecRef::Shared(spec.clone());
                let served = table.entry(spec.id.clone()).or_default();
                served.forget(peer);
                served.peers.push((peer.clone(), spec));
            }
        });
    }

    /// Forgets a peer.
    pub fn withdraw(&self, peer: &PendingRequests) {
        self.change(|table| {
            table.retain(|_, served| {
                served.forget(peer);
                !served.peers.is_empty()
            });
        });
    }

    /// Chooses a peer that serves the operation: of the next two in turn, the one with fewer pending requests.
    ///
    /// # Errors
    /// `OPERATION_NOT_FOUND` if no peer serves it.
    pub fn route(&self, operation: &str) -> Result<PendingRequests, CallError> {
        let table = self.table();
        let served = table.get(operation).ok_or_else(|| not_served(operation))?;
        let peers = &served.peers;
        let peer = match &**peers {
            [(only, _)] => only,
            _ => {
                let turn = self.0.next.fetch_add(1, Ordering::Relaxed);
                let pick = |turn: usize| peers.get(turn.checked_rem(peers.len())?);
                let (Some((one, _)), Some((other, _))) = (pick(turn), pick(turn.wrapping_add(1))) else {
                    return Err(not_served(operation));
                };
                if other.in_flight() < one.in_flight() { other } else { one }
            }
        };
        Ok(peer.clone())
    }

    /// The operation with this id, if a peer serves it.
    pub fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.table().get(operation).and_then(Served::spec).cloned()
    }

    /// The served operations, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        self.table().values().filter_map(Served::spec).cloned().collect()
    }

    /// A receiver that is notified of every change from now on.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    fn table(&self) -> RwLockReadGuard<'_, BTreeMap<Text, Served>> {
        read(&self.0.table)
    }

    fn change(&self, change: impl FnOnce(&mut BTreeMap<Text, Served>)) {
        change(&mut write(&self.0.table));
        self.0.changed.send_replace(());
    }
}

impl Default for Directory {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.table().iter().map(|(id, served)| (id, served.peers.len()))).finish()
    }
}

fn forget(table: &mut BTreeMap<Text, Served>, id: &Text, peer: &PendingRequests) {
    if let Some(served) = table.get_mut(id) {
        served.forget(peer);
        if served.peers.is_empty() {
            table.remove(id);
        }
    }
}

/// The operation in the error of a request of which a broker does not say what it was for.
pub(crate) const UNTOLD: &str = "unknown";

/// The error of a call whose operation no peer serves.
pub(crate) fn not_served(operation: &str) -> CallError {
    pipeline::not_found(operation, "nobody serves the operation")
}

/// The error of a worker that does not have the operation, for example because it was removed meanwhile.
pub(super) fn not_here(operation: &str) -> CallError {
    pipeline::not_found(operation, "operation not found")
}

/// The error of a call of an operation that no peer serves, of one that the caller knows: a peer may serve it again soon.
pub(super) fn unserved(operation: &str) -> CallError {
    pipeline::not_found(operation, "no worker serves the operation now").retryable()
}

/// The error of calling a subscription, or of subscribing to an operation with one result; the same text as an
/// endpoint's.
pub(super) fn of_another_kind(operation: &str, kind: OperationKind) -> CallError {
    CallError::execution(match kind {
        OperationKind::Subscription => format!("`{operation}` is a subscription: use `subscribe` or `stream`"),
        _ => format!("`{operation}` gives one result: use `execute` or `call`"),
    })
}

/// The error of a call whose peer went away.
pub(crate) fn gone(why: impl Into<Text>) -> CallError {
    CallError::new(ErrorCode::Aborted, why).retryable()
}

/// The error of a call that this side has ended.
pub(crate) fn stopped(why: &'static str) -> CallError {
    CallError::new(ErrorCode::Aborted, why)
}
