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
use futures_util::future::{Either, join_all, select};
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
use super::connection::{Connection, Parts, Stage};
use super::driver;
use super::handshake;
use super::io::{Gauge, Gauged};
use super::listener::{self, Handshakes};
use super::outbox::{Outbox, ToPeer};
use super::socket::End;
use crate::call::heard::MAX_ANNOUNCED;
use crate::call::{CallHandler, Directory, PeerAuth, PendingRequests, Remote};
use crate::model::futures::BoxFuture;
use crate::run::door::Door;

/// How long a spoke has to send its last request when the hub stops.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long changes of what is served are collected before spokes are told.
const AT_ONCE: Duration = Duration::from_millis(5);

/// What a request is told that does not get as far as authentication. Only the hub's program can do something about it.
const NOT_OURS: &str = "no connections by this `Host`, or for pages of this `Origin`: `Hub::with_hosts` and \
                        `Hub::with_origins` say which the hub takes";

type Authenticate = Arc<dyn Fn(RequestParts) -> BoxFuture<'static, Result<PeerAuth, StatusCode>> + Send + Sync>;

/// How many connections a hub has, unless it is told otherwise.
const MAX_CONNECTIONS: usize = 4_096;

/// Where spokes connect: it runs what they ask for, and calls what they serve.
///
/// Requests must name this host in `Host`, and a page that sends them must be of this host (`Origin`); both are the local
/// host unless said otherwise ([`with_hosts`](Self::with_hosts)), so that no page of the web reaches a hub on its reader's
/// machine. What a spoke announces that did not say who it is does not count, unless an option says so
/// ([`with_anonymous_serving`](Self::with_anonymous_serving)).
///
/// A clone is the same hub. It is a service for a router of axum's, or a server of its own ([`listen`](Self::listen)).
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
    /// Connections that there is room for.
    room: Arc<Semaphore>,
    shared: Arc<Shared>,
}

impl Hub {
    /// Makes a hub that admits requests for this host, gives no peer an identity, and takes no announcements.
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

    /// Decides at the handshake who a spoke is, by the head of its request, or refuses it with a status.
    ///
    /// ```
    /// use axum::http::StatusCode;
    /// use ops_runtime::call::websocket::Hub;
    /// use ops_runtime::call::{CallHandler, PeerAuth};
    /// use ops_runtime::Registry;
    /// use ops_runtime::access::Identity;
    ///
    /// let hub = Hub::new(CallHandler::new(Registry::new())).with_authentication(|request| async move {
    ///     match request.headers.get("authorization").and_then(|value| value.to_str().ok()) {
    ///         Some("Bearer t0ken") => Ok(PeerAuth::authenticated(Identity::new("ann").with_scope("pets:read"))),
    ///         _ => Err(StatusCode::UNAUTHORIZED),
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn with_authentication<F, Fut>(mut self, authenticate: F) -> Self
    where
        F: Fn(RequestParts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<PeerAuth, StatusCode>> + Send + 'static,
    {
        self.authenticate = Arc::new(move |parts| Box::pin(authenticate(parts)));
        self
    }

    /// Calls the operations of anonymous spokes, too. For a hub that only trusted programs can reach.
    ///
    /// A spoke is anonymous if [authentication](Self::with_authentication) lets it in as [`PeerAuth::anonymous`]; without
    /// authentication, each is.
    #[must_use]
    pub fn with_anonymous_serving(mut self) -> Self {
        self.anonymous_serves = true;
        self
    }

    /// Says under which hosts the hub is reached, with or without a port, such as `hub.example.com`. Pages of these hosts
    /// may connect. `localhost`, `127.0.0.1` and `[::1]` by default.
    #[must_use]
    pub fn with_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        Arc::make_mut(&mut self.door).set_hosts(hosts.into_iter().map(Into::into));
        self
    }

    /// Allows pages of other origins, too, such as `https://app.example.com`, or `https://app.example.com:*` for any port.
    #[must_use]
    pub fn with_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        let door = Arc::make_mut(&mut self.door);
        origins.into_iter().for_each(|origin| door.add_origin(&origin.into()));
        self
    }

    /// Limits how many connections there are at a time, 4,096 by default; those beyond are refused with the status 503.
    #[must_use]
    pub fn with_max_connections(mut self, connections: usize) -> Self {
        self.room = Arc::new(Semaphore::new(connections.min(Semaphore::MAX_PERMITS)));
        self
    }

    /// Limits, for a server of its own ([`listen`](Self::listen)), how many connections have not become one of the hub's
    /// yet, and how long that may take; 256 and 10 s by default. The oldest beyond are closed.
    #[must_use]
    pub fn with_handshakes(mut self, most: usize, time: Duration) -> Self {
        self.handshakes = Handshakes { most: most.max(1), time };
        self
    }

    /// Limits how much memory the specs take that one spoke announces, in bytes; 32 MiB by default. Those beyond are kept
    /// without their schemas, as is one of more than 1 MiB. A spoke announces up to 20,000 operations.
    #[must_use]
    pub fn with_max_announced(mut self, bytes: usize) -> Self {
        self.max_announced = bytes;
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

    /// The service, for a route of axum's. A clone is the same hub.
    pub fn into_service<S: Clone + Send + Sync + 'static>(self) -> MethodRouter<S> {
        let hub = self;
        any(move |request: Request| {
            let hub = hub.clone();
            async move { hub.admit(request).await }
        })
    }

    /// Serves on an address of this machine, such as `127.0.0.1:9000`; port 0 is any that is free.
    ///
    /// Under which names it is reached from other machines, [`with_hosts`](Self::with_hosts) says.
    ///
    /// # Errors
    /// If the address cannot be had.
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

    /// Begins a connection; the response for one that is refused.
    async fn enter(self, request: Request) -> response::Result<Response> {
        let (mut parts, _) = request.into_parts();
        self.door.check(&parts.uri, &parts.headers).map_err(|status| (status, NOT_OURS))?;
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
        let outbox = Outbox::new(self.max_message);
        let pending = PendingRequests::new(Arc::new(ToPeer(outbox.clone())));
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
        let peer = Peer { connection: connection.clone(), identity };
        let registered = Registered { shared: self.shared.clone(), id };
        self.shared.peers().insert(id, peer);
        // Before the spoke is told what there is, so that no change in between is missed.
        let changes = self.shared.directory.changes();
        connection.open();
        let end = if self.shared.draining.load(Ordering::SeqCst) {
            // It came too late to be among those that are asked to send no more.
            Some(End { why: "the hub stops".to_owned(), code: 1001 })
        } else {
            let watching = std::pin::pin!(self.watch(&connection, changes));
            let stop = self.shared.stop.cancelled();
            let driving = std::pin::pin!(driver::drive(&mut socket, &connection, self.heartbeat, stop));
            let killed = std::pin::pin!(self.shared.kill.cancelled());
            let evicted = std::pin::pin!(share.evicted().cancelled());
            match select(select(driving, watching), select(killed, evicted)).await {
                Either::Left((Either::Left((end, _)), _)) => Some(end),
                _ => None,
            }
        };
        drop(registered);
        // The outbox gives back what it held.
        drop(connection);
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
            let mut pause = AT_ONCE;
            while changes.changed().await.is_ok() {
                // Those that come together are told together, and a spoke that changes what it serves without end costs
                // the others a part of the time only.
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

    /// Takes no more connections and requests, finishes those requests that are there, and closes all connections when
    /// their answers have gone out: within 10 s, for a spoke may not read.
    pub async fn stop(&self) {
        self.shared.draining.store(true, Ordering::SeqCst);
        let peers = self.peers();
        join_all(peers.iter().map(|peer| peer.connection.drain(PATIENCE))).await;
        drop(peers);
        self.shared.stop.cancel();
        self.shared.running.close();
        if tokio::time::timeout(PATIENCE, self.shared.running.wait()).await.is_err() {
            self.shared.kill.cancel();
        }
    }

    /// Ends all connections where they stand.
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

/// Counts a connection as long as it lasts.
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

    /// Takes no more connections and requests, finishes those requests that are there, and closes all connections when
    /// their answers have gone out: see [`Hub::stop`].
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
