//! The call protocol over NATS: queue groups share the requests among workers.
//!
//! ```no_run
//! use ops_runtime::call::nats::{Nats, NatsConfig};
//! use ops_runtime::call::CallHandler;
//! use ops_runtime::Registry;
//! use ops_runtime::adapter::{Handler, Registration};
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! static ECHO: OperationSpec = OperationSpec::query("demo.echo");
//! let registry = Registry::new();
//! registry.register(Registration::new(&ECHO, Handler::dynamic(|input: Value, _| async { Ok(input) })))?;
//!
//! // A worker, here or anywhere.
//! let nats = Nats::connect("nats://127.0.0.1:4222", NatsConfig::new()).await?;
//! let worker = nats.serve(CallHandler::new(registry)).await?;
//!
//! // A caller, here or anywhere.
//! let remote = nats.remote().await?;
//! assert_eq!(remote.call("demo.echo", json!(7)).await?.data, 7);
//! worker.stop().await;
//! # Ok(()) }
//! ```
//!
//! # What it promises
//!
//! - **Delivery.** The server gives a request to one worker that serves the operation, at most once; nothing is stored
//!   (`JetStream` is not used), and nothing is sent again. What gets lost, be it the request, the answer or the worker, fails
//!   the call with `ABORTED`: the worker may have run it, or not. Of 100 calls that a worker runs when it dies, each fails
//!   so, once.
//! - **Death.** Workers tell each caller what they run for it: 100 ms after a request has come, and at every heartbeat
//!   (1 s, [`NatsConfig::with_heartbeat`]). A request that none has named for 5 s ([`NatsConfig::with_lost_after`]) is lost.
//!   A worker that is stopped or dropped says so at once. Callers that nothing reaches for as long are given up, and what
//!   is run for them is aborted.
//! - **Aborts** reach a worker at once, or with the first word that it has to say about a request, 100 ms after that came.
//! - **Order.** Items of a subscription come in order, and are numbered; calls run side by side. A subscription fails with
//!   `ABORTED` if an item is missing, or if the connection of its worker or of its caller breaks, because a credit may be.
//! - **Reconnecting.** A connection that breaks is made again, after 50 ms at first and up to some seconds. Calls that begin
//!   meanwhile wait up to 10 s ([`NatsConfig::with_patience`]), or until their deadline, and fail with `ABORTED`. Those that
//!   are under way go on if their worker and their caller are back before they are given up. A connection that is given up
//!   while no server can be reached ends when one can be: until then `async-nats` goes on trying, and keeps about 100 KB.
//! - **Limits.** A message has as many bytes as the server takes (`max_payload`, 1 MiB unless it is configured); what is
//!   larger fails its own call with an `EXECUTION_ERROR` whose details are `{ "size", "limit" }`. A worker runs up to 16,384
//!   requests of a caller at a time, and 65,536 of all, and refuses more; what they hold is bounded, too
//!   ([`CallHandler::with_max_bytes`](crate::call::CallHandler::with_max_bytes)). 65,536 messages that have not been read yet wait in the process; those
//!   beyond are lost, and their calls fail with `ABORTED`. So does what exceeds the server's `max_pending`.
//! - **Identity.** NATS knows who is connected, but does not tell of a message who has sent it. So callers are nobody, and
//!   what they say of themselves does not count, unless a worker is told to believe
//!   ([`NatsConfig::with_peer_auth`]). Whoever may subscribe to `ops.call.>` may serve, whoever may publish there may call:
//!   use the server's permissions, which are exact, because a worker refuses a request that names another operation than
//!   its subject.
//! - **Discovery.** Workers announce what they serve, and every change. A caller asks all of them when it starts, and one of
//!   which it has missed an announcement. A request
//!   for which the server knows nobody fails with `OPERATION_NOT_FOUND` at once.
//!
//! # For programs in other languages
//!
//! Subjects begin with `ops` ([`NatsConfig::with_prefix`]). Every message is one frame, as JSON, or empty.
//!
//! | subject | who listens | what |
//! |---|---|---|
//! | `ops.call.NAMESPACE.NAME` | workers, in the queue group `workers` | `call.requested`, with the caller's reply subject |
//! | the reply subject | the caller | answers; their own reply subject leads to the worker |
//! | `ops.worker.WORKER.CONNECTION.NUMBER.CALLER` | the worker, at `ops.worker.WORKER.>` | `link.credit`, `call.aborted` from that caller |
//! | `ops.announce` | callers | `link.announce`, a change; an empty one at each heartbeat; the reply subject begins with `ops.worker.WORKER` |
//! | `ops.discover`, `ops.worker.WORKER.CONNECTION.0.discover` | workers | empty: say all that you serve, to the reply subject, as `link.announce` |
//!
//! `NAMESPACE` and `NAME` are the operation's, with all bytes but ASCII letters, digits, `-` and `_` as `%XX`; an id is
//! split at its first dot. To call, a request with any inbox as its reply subject is enough
//! (`nats request ops.call.math.add '{"type":"call.requested",..}'`). A caller that wants to know that its requests are
//! still run uses `INBOX.ops.REQUEST` as reply subject, with the request's id as the last token, and listens to
//! `INBOX.ops.*`: there `link.running` comes to `INBOX.ops.link`. To serve, answer to the reply subject, send `link.running`
//! to such callers, and stop on `call.aborted`. A worker's reply subjects have the `NUMBER` of the event among those about
//! its request, from 0, and a `CONNECTION` that is another after it has lost one. Those of its announcements have the number
//! of changes that it has announced so far, this one included, or 0 always: a caller that has missed one asks.

mod asked;
mod caller;
mod config;
mod connection;
mod subject;
mod versions;
mod worker;

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;

pub use config::NatsConfig;
pub use worker::NatsWorker;

use self::caller::NatsCaller;
use self::connection::Connection;
use super::{CallHandler, PeerAuth, Remote, Route, Transport, TransportInfo};
use crate::{BoxFuture, CallError, SpecRef};

/// A connection to a NATS server, which is made again when it is lost.
///
/// A clone is the same connection. It lasts as long as a clone, a worker, or a [`Remote`] of it.
#[derive(Clone)]
pub struct Nats {
    connection: Arc<Connection>,
    auth: PeerAuth,
    caller: Arc<OnceCell<Arc<NatsCaller>>>,
}

impl Nats {
    /// Connects to a server, or several of one cluster, at `nats://HOST:PORT`, `tls://HOST:PORT`, joined by commas.
    ///
    /// # Errors
    /// `EXECUTION_ERROR` if no server can be reached, or if it refuses.
    pub fn connect(url: &str, config: NatsConfig) -> BoxFuture<'_, Result<Self, CallError>> {
        Box::pin(async move {
            let connection = Arc::new(Connection::connect(url, &config).await?);
            Ok(Self { connection, auth: config.auth, caller: Arc::default() })
        })
    }

    /// A caller of what workers serve; it knows what those serve that have answered at once.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub fn remote(&self) -> BoxFuture<'_, Result<Remote, CallError>> {
        Box::pin(async move {
            let start = async || NatsCaller::start(self.connection.clone()).await.map(Arc::new);
            Ok(Remote::new(Shared(self.caller.get_or_try_init(start).await?.clone())))
        })
    }

    /// Serves the operations of a handler, until the worker is stopped or dropped.
    ///
    /// # Errors
    /// If the server cannot be used.
    pub fn serve(&self, handler: CallHandler) -> BoxFuture<'_, Result<NatsWorker, CallError>> {
        Box::pin(async move { NatsWorker::start(self.connection.clone(), handler, self.auth.clone()).await })
    }

    /// Whether there is a connection now.
    pub fn is_connected(&self) -> bool {
        *self.connection.up.borrow()
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("connected", &self.is_connected()).finish_non_exhaustive()
    }
}

/// The one caller of a connection.
struct Shared(Arc<NatsCaller>);

impl Transport for Shared {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        self.0.route(operation)
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        self.0.spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        self.0.list()
    }

    fn pending_count(&self) -> usize {
        self.0.pending_count()
    }

    fn info(&self) -> TransportInfo {
        self.0.info()
    }
}
