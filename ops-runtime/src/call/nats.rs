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
//! - **Delivery.** The server gives a request to one worker that serves the operation, at most once. Nothing is stored
//!   (`JetStream` is not used), and nothing is sent again. If the request, the response or the worker is lost, the call
//!   fails with `ABORTED`: the worker may have run it, or not. If a worker dies while it runs 100 calls, each of them
//!   fails so, once.
//! - **Failure detection.** Workers report to each caller which requests they run for it: 100 ms after a request has
//!   arrived, and at every heartbeat (1 s, [`NatsConfig::with_heartbeat`]). A request that no worker has reported for
//!   5 s ([`NatsConfig::with_lost_after`]) is lost. A worker that is stopped or dropped reports that at once. A caller
//!   that cannot be reached for as long is given up, and its running requests are aborted.
//! - **Aborts.** An abort is sent at once if the caller knows the worker. Otherwise it is sent when the worker first
//!   reports the request, 100 ms after the request arrived.
//! - **Order.** Items of a subscription are numbered and arrive in order; calls run concurrently. A subscription fails
//!   with `ABORTED` if an item is missing, or if its worker or its caller loses the connection, because a credit may be
//!   lost.
//! - **Reconnecting.** A lost connection is made again, after 50 ms at first and up to some seconds. Calls that begin
//!   meanwhile wait up to 10 s ([`NatsConfig::with_connect_timeout`]), or until their deadline, and then fail with `ABORTED`.
//!   Calls in flight go on if their worker and their caller are back before they are given up. A connection that is
//!   dropped while no server can be reached ends when one can be: until then `async-nats` goes on trying, and keeps
//!   about 100 KB.
//! - **Limits.** The server limits a message (`max_payload`, 1 MiB by default). A larger one fails its own call with an
//!   `EXECUTION_ERROR` whose details are `{ "size", "limit" }`. A worker runs up to 16,384 requests of a caller at a
//!   time, and 65,536 of all, and refuses more. Their memory is limited, too
//!   ([`CallHandler::with_max_bytes`](crate::call::CallHandler::with_max_bytes)); while all of it is used, requests of
//!   all callers are refused. Up to 65,536 unread messages are
//!   buffered in the process; messages beyond are lost, and their calls fail with `ABORTED`. So do calls beyond the
//!   server's `max_pending`. A server closes a connection that sends a line of more than 4,096 bytes
//!   (`max_control_line`). So operations whose subject would have more than 3,072 bytes are not served, and requests
//!   with a reply subject of more than 1,536 bytes are ignored.
//! - **Identity.** NATS does not tell workers who sent a message. So callers are anonymous, and an identity in a
//!   request is ignored, unless the worker is configured to trust its callers ([`NatsConfig::with_peer_auth`]). Any
//!   client that may subscribe to `ops.call.>` may serve, and any that may publish there may call. Use the server's
//!   permissions. They are exact per operation, because a worker refuses a request that names another operation than
//!   its subject. The server does not say whose message it refuses, so the log names the subject, once, and the call
//!   fails like one whose request is lost.
//! - **Discovery.** Workers announce their operations, and every change. A caller asks all workers when it starts, and
//!   a single worker when it has missed an announcement of it. A request for which the server has no subscriber fails
//!   with `OPERATION_NOT_FOUND` at once.
//!
//! # For programs in other languages
//!
//! Subjects begin with `ops` ([`NatsConfig::with_prefix`]). Every message is one frame, as JSON, or empty.
//!
//! | subject | listener | content |
//! |---|---|---|
//! | `ops.call.NAMESPACE.NAME` | workers, in the queue group `workers` | `call.requested`, with the caller's reply subject |
//! | the reply subject | the caller | responses; their own reply subject leads to the worker |
//! | `ops.worker.WORKER.CONNECTION.NUMBER.CALLER` | the worker, at `ops.worker.WORKER.>` | `link.credit`, `call.aborted` from that caller |
//! | `ops.announce` | callers | `link.announce`, a change; an empty one at each heartbeat; the reply subject begins with `ops.worker.WORKER` |
//! | `ops.discover`, `ops.worker.WORKER.CONNECTION.0.discover` | workers | empty: send all that you serve to the reply subject, as `link.announce` |
//!
//! `NAMESPACE` and `NAME` are the operation's, with all bytes but ASCII letters, digits, `-` and `_` as `%XX`; an id
//! is split at its first dot. To call, send a request with any inbox as its reply subject (`nats request
//! ops.call.math.add '{"type":"call.requested",..}'`). To learn whether its requests are still running, a caller uses
//! `INBOX.ops.REQUEST` as reply subject, with the request's id as the last token, and subscribes to `INBOX.ops.*`:
//! `link.running` is sent to `INBOX.ops.link`. A request of any other caller is aborted as soon as a message to its
//! inbox finds no subscriber. To serve, respond to the reply subject, send `link.running` to such callers, and stop
//! on `call.aborted`. The reply subjects of a worker contain the `NUMBER` of the event among those of its request,
//! from 0, and a `CONNECTION` that changes after a reconnect. Those of its announcements contain the number of
//! changes that it has announced so far, including this one, or always 0. A caller that has missed one asks.

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
use super::{CallHandler, PeerAuth, Remote};
use crate::{BoxFuture, CallError};

/// A connection to a NATS server, with reconnecting.
///
/// A clone is the same connection. It lasts as long as a clone, a worker, or a [`Remote`] of it.
#[derive(Clone)]
pub struct Nats {
    connection: Arc<Connection>,
    auth: PeerAuth,
    /// The one caller of the connection, shared by its remotes.
    caller: Arc<OnceCell<Arc<NatsCaller>>>,
}

impl Nats {
    /// Connects to a server, or several of one cluster, at `nats://HOST:PORT`, `tls://HOST:PORT`, joined by commas. In a
    /// password or a token, a comma is written as `%2C`.
    ///
    /// # Errors
    /// `EXECUTION_ERROR` if no server can be reached, or if it refuses the connection.
    pub fn connect(url: &str, config: NatsConfig) -> BoxFuture<'_, Result<Self, CallError>> {
        Box::pin(async move {
            let connection = Arc::new(Connection::connect(url, &config).await?);
            Ok(Self { connection, auth: config.auth, caller: Arc::default() })
        })
    }

    /// A caller for the operations of the workers. At first it knows those of the workers that responded at once.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn remote(&self) -> BoxFuture<'_, Result<Remote, CallError>> {
        Box::pin(async move {
            let start = async || NatsCaller::start(self.connection.clone()).await.map(Arc::new);
            Ok(Remote::new(self.caller.get_or_try_init(start).await?.clone()))
        })
    }

    /// Serves the operations of a handler until the worker is stopped or dropped.
    ///
    /// # Errors
    /// If the connection is closed.
    pub fn serve(&self, handler: CallHandler) -> BoxFuture<'_, Result<NatsWorker, CallError>> {
        let handler = handler.over(self.connection.id);
        Box::pin(async move { NatsWorker::start(self.connection.clone(), handler, self.auth.clone()).await })
    }

    /// True if the connection is up.
    pub fn is_connected(&self) -> bool {
        *self.connection.up.borrow()
    }
}

impl fmt::Debug for Nats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nats").field("connected", &self.is_connected()).finish_non_exhaustive()
    }
}
