//! The hub: a service that spokes connect to.

mod spokes;

use std::fmt;
use std::future::ready;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts as RequestParts;
use axum::response::{self, IntoResponse, Response};
use axum::routing::{MethodRouter, any};
use futures_util::future::{Either, join, join_all, select};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{self, Role};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::spokes::Peer;
use self::spokes::{Registered, Shared, Spokes};
use super::config::{HEARTBEAT, MAX_MESSAGE};
use super::connection::{Connection, Parts};
use super::driver;
use super::handshake;
use super::io::{Gauge, Gauged};
use super::listener::{self, Handshakes};
use super::outbox::{Outbox, ToPeer};
use super::socket::End;
use crate::call::peer_specs::MAX_ANNOUNCED;
use crate::call::{CallHandler, Directory, LONGEST, PeerAuth, PendingRequests, Remote};
use crate::model::futures::BoxFuture;
use crate::run::host_check::Door;

/// How long the hub waits for the last request of a spoke when it stops.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long changes of the operations are collected before they are announced.
const AT_ONCE: Duration = Duration::from_millis(5);

/// The response to a request by another name, or of a foreign page. Only the hub's own program can mend the cause.
const NOT_OURS: &str = "no connections by this `Host`, or for pages of this `Origin`: `Hub::with_hosts` and \
                        `Hub::with_origins` say which the hub takes";

type Authenticate = Arc<dyn Fn(RequestParts) -> BoxFuture<'static, Result<PeerAuth, StatusCode>> + Send + Sync>;

/// Default limit of connections.
const MAX_CONNECTIONS: usize = 4_096;

/// A server that spokes connect to: it runs their requests, and calls the operations that they serve.
///
/// Requests must name this host in `Host`, and a page that sends them must be of this host (`Origin`). Both are the
/// local host by default ([`with_hosts`](Self::with_hosts)), so no page on the web can reach a hub on its reader's
/// machine. Announcements of an anonymous spoke are ignored, unless an option allows them
/// ([`with_anonymous_serving`](Self::with_anonymous_serving)).
///
/// A clone is the same hub. It is a service for an axum router, or a server of its own ([`listen`](Self::listen)).
#[derive(Clone)]
pub struct Hub {
    handler: CallHandler,
    authenticate: Authenticate,
    anonymous_serves: bool,
    max_message: usize,
    heartbeat: Duration,
    forwards: bool,
    door: Arc<Door>,
    handshakes: Handshakes,
    max_announced: usize,
    /// Permits for connections.
    room: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Hub {
    /// A hub that accepts requests for `localhost`, `127.0.0.1` and `[::1]` only. Spokes are anonymous, and the
    /// operations that they announce are ignored.
    pub fn new(handler: CallHandler) -> Self {
        Self {
            handler,
            authenticate: Arc::new(|_| Box::pin(ready(Ok(PeerAuth::anonymous())))),
            anonymous_serves: false,
            max_message: MAX_MESSAGE,
            heartbeat: HEARTBEAT,
            forwards: false,
            door: Arc::default(),
            handshakes: Handshakes::default(),
            max_announced: MAX_ANNOUNCED,
            room: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
            shared: Arc::new(Shared {
                directory: Directory::new(),
                peers: Mutex::default(),
                next: AtomicU64::new(0),
                draining: AtomicBool::new(false),
                running: TaskTracker::new(),
                stop: CancellationToken::new(),
                kill: CancellationToken::new(),
                max_message: AtomicU64::new(MAX_MESSAGE as u64),
                company: Arc::default(),
            }),
        }
    }

    /// Authenticates each spoke by the head of its handshake request, or refuses it with an HTTP status.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use ops_runtime::call::websocket::Hub;
    /// use ops_runtime::call::{CallHandler, PeerAuth};
    /// use ops_runtime::Registry;
    /// use ops_runtime::access::Identity;
    ///
    /// let hub = Hub::new(CallHandler::new(Registry::new())).with_authenticator(|request| async move {
    ///     match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
    ///         Some("Bearer t0ken") => Ok(PeerAuth::authenticated(Identity::new("ann").with_scope("pets:read"))),
    ///         _ => Err(StatusCode::UNAUTHORIZED),
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn with_authenticator<F, Fut>(mut self, authenticate: F) -> Self
    where
        F: Fn(RequestParts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<PeerAuth, StatusCode>> + Send + 'static,
    {
        self.authenticate = Arc::new(move |parts| Box::pin(authenticate(parts)));
        self
    }

    /// Also calls the operations of anonymous spokes. For a hub that only trusted programs can reach.
    ///
    /// A spoke is anonymous if [authentication](Self::with_authenticator) admits it as [`PeerAuth::anonymous`], or if
    /// the hub has no authentication.
    #[must_use]
    pub fn with_anonymous_serving(mut self) -> Self {
        self.anonymous_serves = true;
        self
    }

    /// Sets the hosts of the hub, with or without a port, such as `hub.example.com`; `localhost`, `127.0.0.1` and
    /// `[::1]` by default. Pages of these hosts may connect.
    #[must_use]
    pub fn with_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        Arc::make_mut(&mut self.door).set_hosts(hosts.into_iter().map(Into::into));
        self
    }

    /// Also allows pages of other origins, such as `https://app.example.com`, or `https://app.example.com:*` for any
    /// port.
    #[must_use]
    pub fn with_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        let door = Arc::make_mut(&mut self.door);
        origins.into_iter().for_each(|origin| door.add_origin(&origin.into()));
        self
    }

    /// Limits the number of connections; 4,096 by default. Further ones are refused with the status 503.
    #[must_use]
    pub fn with_max_connections(mut self, connections: usize) -> Self {
        self.room = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Limits the number and duration of handshakes in progress for [`listen`](Self::listen); 256 and 10 s by default.
    /// Beyond the limit, the oldest are closed.
    #[must_use]
    pub fn with_handshakes(mut self, most: usize, time: Duration) -> Self {
        self.handshakes = Handshakes { most: most.max(1), time: time.min(LONGEST) };
        self
    }

    /// Limits the memory for the specs that one spoke announces, in bytes; 32 MiB by default. Specs beyond the limit,
    /// and any spec above 1 MiB, are kept without their schemas. A spoke announces up to 20,000 operations.
    #[must_use]
    pub fn with_max_announced(mut self, bytes: usize) -> Self {
        self.max_announced = bytes;
        self
    }

    /// Forwards calls of operations that the hub's own registry does not have to spokes that serve them, on behalf of
    /// the caller.
    ///
    /// Those spokes have to trust the hub to name the caller
    /// ([`WebSocketConfig::trusting_hub`](super::WebSocketConfig::trusting_hub)). Each spoke learns of the operations
    /// of the others.
    #[must_use]
    pub fn with_forwarding(mut self) -> Self {
        let remote = self.remote();
        self.handler = self.handler.with_forwarding(remote);
        self.forwards = true;
        self
    }

    /// Sets the largest accepted message, in bytes; 4 MiB by default. Spokes announce their own.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = bytes;
        self.shared.max_message.store(bytes as u64, Ordering::Relaxed);
        self
    }

    /// Sets after how much silence a spoke is pinged; 15 s by default. After three times as long the connection is
    /// closed.
    #[must_use]
    pub fn with_heartbeat(mut self, interval: Duration) -> Self {
        self.heartbeat = interval.clamp(Duration::from_millis(1), LONGEST);
        self
    }

    /// The service, for a route of an axum router. A clone is the same hub.
    pub fn into_service<S: Clone + Send + Sync + 'static>(self) -> MethodRouter<S> {
        let hub = self;
        any(move |request: Request| {
            let hub = hub.clone();
            async move { hub.admit(request).await }
        })
    }

    /// Serves on an address of this machine, such as `127.0.0.1:9000`; port 0 is any free port.
    ///
    /// [`with_hosts`](Self::with_hosts) sets the names by which other machines reach it.
    ///
    /// # Errors
    /// If the address cannot be bound.
    pub fn listen<'a>(&'a self, address: &'a str) -> BoxFuture<'a, io::Result<Listening>> {
        Box::pin(async move {
            let listener = tokio::net::TcpListener::bind(address).await?;
            let address = listener.local_addr()?;
            let router = axum::Router::new().route("/", self.clone().into_service());
            let task = tokio::spawn(listener::serve(listener, router, self.handshakes, self.shared.stop.clone()));
            Ok(Listening { hub: self.clone(), address, task })
        })
    }

    async fn admit(self, request: Request) -> Response {
        if self.shared.draining.load(Ordering::SeqCst) {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        self.enter(request).await.into_response()
    }

    /// Begins a connection; the error is the response of a refused one.
    async fn enter(self, request: Request) -> response::Result<Response> {
        let (mut parts, _) = request.into_parts();
        let checked = self.door.check(&parts.uri, &parts.headers);
        checked
            .map_err(|(status, detail)| (status, if status == StatusCode::FORBIDDEN { NOT_OURS } else { detail }))?;
        let response = handshake::upgrade(&parts)?;
        let upgrade = parts.extensions.remove::<OnUpgrade>().ok_or(StatusCode::UPGRADE_REQUIRED)?;
        let mut auth = (self.authenticate)(parts).await?;
        auth.may_serve |= self.anonymous_serves && auth.is_anonymous();
        let Ok(room) = self.room.clone().try_acquire_owned() else {
            tracing::warn!("a connection is refused: there are too many (`Hub::with_max_connections`)");
            return Err(StatusCode::SERVICE_UNAVAILABLE.into());
        };
        let time = self.handshakes.time;
        self.shared.running.clone().spawn(async move {
            match tokio::time::timeout(time, upgrade).await {
                Ok(Ok(stream)) => self.run(TokioIo::new(stream), auth, room).await,
                Ok(Err(error)) => tracing::debug!(%error, "a connection was lost while it was made"),
                Err(_) => tracing::debug!("a connection was not made in time"),
            }
        });
        Ok(response)
    }

    /// Runs a connection until it ends.
    async fn run(self, stream: TokioIo<hyper::upgrade::Upgraded>, auth: PeerAuth, _room: OwnedSemaphorePermit) {
        let share = self.handler.budget().watched_share();
        let gauge = Gauge::new(share.clone());
        let settings = protocol::WebSocketConfig::default()
            .read_buffer_size(32 << 10)
            .max_message_size(Some(self.max_message))
            .max_frame_size(Some(self.max_message));
        let stream = Gauged::new(stream, gauge.clone());
        let mut socket = WebSocketStream::from_raw_socket(stream, Role::Server, Some(settings)).await;
        let _counted = Counted::new(&self.shared.company);
        let outbox = Outbox::new(MAX_MESSAGE);
        let pending = PendingRequests::new(Arc::new(ToPeer::lasting(outbox.clone())));
        let identity = auth.identity.clone();
        let connection = Arc::new(Connection::new(Parts {
            outbox,
            pending,
            handler: Some(self.handler.clone()),
            directory: self.shared.directory.clone(),
            auth,
            max_message: self.max_message,
            share: share.clone(),
            gauge,
            max_announced: self.max_announced,
            company: self.shared.company.clone(),
        }));
        let id = self.shared.next.fetch_add(1, Ordering::Relaxed);
        let stop = self.shared.stop.child_token();
        let peer = Peer { connection: connection.clone(), identity, stop: stop.clone() };
        let registered = Registered { shared: self.shared.clone(), id };
        self.shared.peers().insert(id, peer);
        // Before the spoke is told of the operations, so that no change in between is missed.
        let changes = self.shared.directory.changes();
        connection.open();
        let end = if self.shared.draining.load(Ordering::SeqCst) {
            // It connected too late to be asked to send no more.
            Some(End { why: "the hub stops".to_owned(), code: 1001 })
        } else {
            let watching = std::pin::pin!(self.watch(&connection, changes));
            let driving = std::pin::pin!(driver::drive(&mut socket, &connection, self.heartbeat, stop.cancelled()));
            let killed = std::pin::pin!(self.shared.kill.cancelled());
            let evicted = std::pin::pin!(share.evicted().cancelled());
            match select(select(driving, watching), select(killed, evicted)).await {
                Either::Left((Either::Left((end, _)), _)) => Some(end),
                _ => None,
            }
        };
        drop(registered);
        // The outbox releases what it held.
        drop(connection);
        if let Some(end) = end {
            tracing::debug!(why = end.why, "a connection has ended");
            driver::close(&mut socket, end.code).await;
        }
    }

    /// Does the work of a connection beside reading and writing.
    async fn watch(&self, connection: &Connection, mut changes: watch::Receiver<()>) {
        let draining = std::pin::pin!(async {
            connection.leaves().await;
            connection.quiesce().await;
            std::future::pending::<()>().await;
        });
        let announcing = std::pin::pin!(async {
            if !self.forwards {
                std::future::pending::<()>().await;
            }
            let mut pause = AT_ONCE;
            while changes.changed().await.is_ok() {
                // Changes within that time are announced together. A spoke that changes its operations without end
                // costs the others only a part of the time.
                tokio::time::sleep(pause).await;
                changes.mark_unchanged();
                let began = Instant::now();
                connection.announce();
                let all = u32::try_from(connection.company()).unwrap_or(u32::MAX);
                pause = began.elapsed().saturating_mul(4).saturating_mul(all).clamp(AT_ONCE, PATIENCE);
            }
        });
        select(draining, announcing).await;
    }

    /// A caller for the operations of the spokes.
    pub fn remote(&self) -> Remote {
        Remote::new(Spokes(self.shared.clone()))
    }

    /// The connected spokes, in the order in which they connected.
    pub fn peers(&self) -> Vec<Peer> {
        self.shared.peers().values().cloned().collect()
    }

    /// Announces operations that were added to the registry or removed since.
    pub fn announce(&self) {
        self.peers().iter().for_each(|peer| peer.connection.announce());
    }

    /// Number of running requests of spokes.
    pub fn running(&self) -> usize {
        self.peers().iter().map(|peer| peer.connection.running()).sum()
    }

    /// Accepts no more connections, nor requests of spokes that do not serve operations, finishes the running requests, and
    /// closes all connections when the responses have been sent: within 10 s, since a spoke may not read.
    ///
    /// The connection of a spoke is closed when its own requests have ended, so that it can go on with another hub. Spokes
    /// that serve operations come last: requests of other spokes may need these operations, and their handlers may call
    /// others through the hub. So the hub accepts requests of such spokes until those of the other spokes have ended, for up
    /// to 10 s.
    ///
    /// Until the hub ends, a spoke that reconnects to it is refused with the status 503. Such a spoke is back up to 10 s after
    /// the next hub at that address ([`WebSocketConfig::with_backoff`](super::WebSocketConfig::with_backoff)).
    pub async fn stop(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
        let (serving, others): (Vec<_>, _) = self.peers().into_iter().partition(|peer| peer.connection.is_needed());
        let drain = |peer: Peer| async move {
            peer.connection.drain(PATIENCE).await;
            if !peer.connection.is_needed() {
                peer.stop.cancel();
            }
        };
        let mut first = std::pin::pin!(join_all(others.into_iter().map(drain)));
        // A request without an end must not keep the hub open for new ones of the spokes that serve.
        let is_over = tokio::time::timeout(PATIENCE, first.as_mut()).await.is_ok();
        let rest = async {
            if !is_over {
                first.await;
            }
        };
        join(rest, join_all(serving.into_iter().map(drain))).await;
        self.shared.stop.cancel();
        self.shared.running.close();
        if tokio::time::timeout(PATIENCE, self.shared.running.wait()).await.is_err() {
            self.shared.kill.cancel();
        }
    }

    /// Closes all connections at once.
    pub fn close(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
        self.shared.stop.cancel();
        self.shared.kill.cancel();
    }
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub").field("peers", &self.shared.peers().len()).finish_non_exhaustive()
    }
}

/// Counts a connection while it lasts.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A hub that is a server of its own; dropping it closes its connections at once.
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

    /// The URL to connect to, `ws://HOST:PORT/`.
    pub fn url(&self) -> String {
        format!("ws://{}/", self.address)
    }

    /// Accepts no more connections, nor requests of spokes that do not serve operations, finishes the running requests, and
    /// closes all connections when the responses have been sent: see [`Hub::stop`].
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
