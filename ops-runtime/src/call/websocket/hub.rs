//! The hub: a service that spokes connect to.

use std::collections::BTreeMap;
use std::fmt;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::ws::{WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::http::request::Parts as RequestParts;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use axum::serve::ListenerExt;
use futures_util::future::{Either, join_all, select};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::config::{HEARTBEAT, MAX_MESSAGE};
use super::connection::{Connection, Parts, Stage};
use super::driver;
use super::outbox::{Outbox, ToPeer};
use crate::call::directory::{gone, not_served};
use crate::call::{CallHandler, Directory, Facts, Origin, PendingRequests, Remote, Route, Transport};
use crate::handler::BoxFuture;
use crate::{CallError, ErrorCode, Identity, SpecRef};

/// How long a spoke has to send its last request when the hub stops.
const PATIENCE: Duration = Duration::from_secs(10);

type Authenticate = Arc<dyn Fn(RequestParts) -> BoxFuture<'static, Result<Origin, StatusCode>> + Send + Sync>;

/// Where spokes connect: it runs what they ask for, and calls what they serve.
///
/// A clone is the same hub. It is a service for a router of axum's, or a server of its own ([`listen`](Self::listen)).
#[derive(Clone)]
pub struct Hub {
    handler: CallHandler,
    authenticate: Authenticate,
    max_message: usize,
    heartbeat: Duration,
    forwards: bool,
    shared: Arc<Shared>,
}

struct Shared {
    directory: Directory,
    peers: Mutex<BTreeMap<u64, Peer>>,
    next: AtomicU64,
    /// Ends connections when all that was said has gone out; at once.
    stop: CancellationToken,
    kill: CancellationToken,
    max_message: AtomicU64,
}

impl Shared {
    fn peers(&self) -> MutexGuard<'_, BTreeMap<u64, Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hub {
    /// A hub that lets everybody in, whom it does not know, and whose operations it calls.
    pub fn new(handler: CallHandler) -> Self {
        Self {
            handler,
            authenticate: Arc::new(|_| Box::pin(ready(Ok(Origin::anonymous().serving(true))))),
            max_message: MAX_MESSAGE,
            heartbeat: HEARTBEAT,
            forwards: false,
            shared: Arc::new(Shared {
                directory: Directory::new(),
                peers: Mutex::default(),
                next: AtomicU64::new(0),
                stop: CancellationToken::new(),
                kill: CancellationToken::new(),
                max_message: AtomicU64::new(MAX_MESSAGE as u64),
            }),
        }
    }

    /// Decides at the handshake who a spoke is, by the head of its request, or refuses it with a status.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use ops_runtime::call::websocket::Hub;
    /// use ops_runtime::call::{CallHandler, Origin};
    /// use ops_runtime::{Identity, Registry};
    ///
    /// let hub = Hub::new(CallHandler::new(Registry::new())).with_authentication(|request| async move {
    ///     match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
    ///         Some("Bearer t0ken") => Ok(Origin::authenticated(Identity::new("ann").with_scope("pets:read"))),
    ///         _ => Err(StatusCode::UNAUTHORIZED),
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn with_authentication<F, Fut>(mut self, authenticate: F) -> Self
    where
        F: Fn(RequestParts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Origin, StatusCode>> + Send + 'static,
    {
        self.authenticate = Arc::new(move |parts| Box::pin(authenticate(parts)));
        self
    }

    /// Passes on what the hub's own registry does not have to spokes that serve it, in the name of whoever called.
    ///
    /// Those spokes have to trust the hub to say who calls
    /// ([`WebSocketConfig::trusting_hub`](super::WebSocketConfig::trusting_hub)). Spokes are told of each other's
    /// operations.
    #[must_use]
    pub fn with_forwarding(mut self) -> Self {
        let remote = self.remote();
        self.handler = self.handler.with_forwarding(remote);
        self.forwards = true;
        self
    }

    /// The largest message that is taken, in bytes; 4 MiB by default. Spokes tell their own.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self.shared.max_message.store(bytes as u64, Ordering::Relaxed);
        self
    }

    /// Pings a spoke that has been silent for that long, and gives it up after three times as long; 15 s by default.
    #[must_use]
    pub fn with_heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval.max(Duration::from_millis(1));
        self
    }

    /// The service, for a route of axum's.
    pub fn service<S: Clone + Send + Sync + 'static>(&self) -> MethodRouter<S> {
        let hub = self.clone();
        any(move |parts: RequestParts, upgrade: WebSocketUpgrade| {
            let hub = hub.clone();
            async move { hub.admit(parts, upgrade).await }
        })
    }

    /// Serves on an address of this machine, such as `127.0.0.1:9000`; port 0 is any that is free.
    ///
    /// # Errors
    /// If the address cannot be had.
    pub async fn listen(&self, address: &str) -> io::Result<Listening> {
        let listener = tokio::net::TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        // Answers are written in one go already; none should wait for another.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let router = axum::Router::new().route("/", self.service());
        let stop = self.shared.stop.clone();
        let server = axum::serve(listener, router).with_graceful_shutdown(async move { stop.cancelled().await });
        let task = tokio::spawn(async move {
            let _ = server.await;
        });
        Ok(Listening { hub: self.clone(), address, task })
    }

    async fn admit(self, parts: RequestParts, upgrade: WebSocketUpgrade) -> Response {
        if self.shared.stop.is_cancelled() {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        match (self.authenticate)(parts).await {
            Ok(origin) => upgrade
                .read_buffer_size(32 << 10)
                .max_message_size(self.max_message)
                .max_frame_size(self.max_message)
                .on_upgrade(move |socket| self.run(socket, origin)),
            Err(status) => status.into_response(),
        }
    }

    /// Runs a connection until it ends.
    async fn run(self, mut socket: WebSocket, origin: Origin) {
        let outbox = Outbox::new(self.max_message);
        let pending = PendingRequests::new(Arc::new(ToPeer(outbox.clone())));
        let identity = origin.identity.clone();
        let connection = Arc::new(Connection::new(Parts {
            outbox,
            pending,
            handler: Some(self.handler.clone()),
            directory: self.shared.directory.clone(),
            origin,
            max_message: self.max_message,
        }));
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let peer = Peer { connection: connection.clone(), identity };
        let registered = Registered { shared: self.shared.clone(), id };
        self.shared.peers().insert(id, peer);
        // Before the spoke is told what there is, so that no change in between is missed.
        let changes = self.shared.directory.changes();
        connection.open();
        let end = {
            let watching = std::pin::pin!(self.watch(&connection, changes));
            let stop = self.shared.stop.cancelled();
            let driving = std::pin::pin!(driver::drive(&mut socket, &connection, self.heartbeat, stop));
            let killed = std::pin::pin!(self.shared.kill.cancelled());
            match select(select(driving, watching), killed).await {
                Either::Left((Either::Left((end, _)), _)) => Some(end),
                _ => None,
            }
        };
        drop(registered);
        if let Some(end) = end {
            tracing::debug!(why = end.why, "a connection has ended");
            driver::close(&mut socket, end.code).await;
        }
    }

    /// Does what is due beside reading and writing.
    async fn watch(&self, connection: &Connection, mut changes: watch::Receiver<()>) {
        let mut stage = connection.stage();
        let draining = std::pin::pin!(async {
            let _ = stage.wait_for(|stage| *stage >= Stage::Draining).await;
            connection.quiesce().await;
            std::future::pending::<()>().await;
        });
        let announcing = std::pin::pin!(async {
            if !self.forwards {
                std::future::pending::<()>().await;
            }
            while changes.changed().await.is_ok() {
                // Those that come together are told together.
                tokio::time::sleep(Duration::from_millis(5)).await;
                changes.mark_unchanged();
                connection.announce();
            }
        });
        select(draining, announcing).await;
    }

    /// A caller of what the spokes serve.
    pub fn remote(&self) -> Remote {
        Remote::new(Spokes(self.shared.clone()))
    }

    /// The spokes that are connected, in the order in which they came.
    pub fn peers(&self) -> Vec<Peer> {
        self.shared.peers().values().cloned().collect()
    }

    /// Announces operations that the registry has got or lost since.
    pub fn announce(&self) {
        self.peers().iter().for_each(|peer| peer.connection.announce());
    }

    /// How many requests of spokes are being run.
    pub fn running(&self) -> usize {
        self.peers().iter().map(|peer| peer.connection.running()).sum()
    }

    /// Takes no more requests, finishes those that are there, and closes all connections.
    pub async fn stop(&self) {
        let peers = self.peers();
        join_all(peers.iter().map(|peer| peer.connection.drain(PATIENCE))).await;
        self.shared.stop.cancel();
    }

    /// Ends all connections where they stand.
    pub fn close(&self) {
        self.shared.stop.cancel();
        self.shared.kill.cancel();
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("peers", &self.shared.peers().len()).finish_non_exhaustive()
    }
}

/// Takes a spoke out when its connection ends, however that may be.
struct Registered {
    shared: Arc<Shared>,
    id: u64,
}

impl Drop for Registered {
    fn drop(&mut self) {
        let peer = self.shared.peers().remove(&self.id);
        if let Some(peer) = peer {
            peer.connection.close();
            peer.connection.pending.close(&CallError::new(ErrorCode::Aborted, "the connection was lost"));
        }
    }
}

/// A hub that is a server of its own; dropping it ends its connections where they stand.
pub struct Listening {
    hub: Hub,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Listening {
    /// The address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where to connect, `ws://HOST:PORT/`.
    pub fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// Takes no more requests, finishes those that are there, and closes all connections.
    pub async fn stop(mut self) {
        self.hub.stop().await;
        let _ = (&mut self.task).await;
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.hub.close();
        self.task.abort();
    }
}

impl fmt::Debug for Listening {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A spoke that is connected to a hub.
#[derive(Clone)]
pub struct Peer {
    connection: Arc<Connection>,
    identity: Option<Arc<Identity>>,
}

impl Peer {
    /// Who it is, if it was authenticated.
    pub fn identity(&self) -> Option<&Identity> {
        self.identity.as_deref()
    }

    /// A caller of what this spoke serves.
    pub fn remote(&self) -> Remote {
        Remote::new(Spoke(self.connection.clone()))
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer").field("identity", &self.identity()).finish_non_exhaustive()
    }
}

/// All spokes of a hub, to be called.
struct Spokes(Arc<Shared>);

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

    fn pending_count(&self) -> usize {
        self.0.peers().values().map(|peer| peer.connection.pending.pending_count()).sum()
    }

    fn facts(&self) -> Facts {
        let limit = self.0.max_message.load(Ordering::Relaxed);
        Facts::new("websocket").with_max_message(usize::try_from(limit).unwrap_or(usize::MAX))
    }
}

/// One spoke of a hub, to be called.
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

    fn pending_count(&self) -> usize {
        self.0.pending.pending_count()
    }

    fn facts(&self) -> Facts {
        Facts::new("websocket").with_max_message(self.0.outbox.limit())
    }
}
