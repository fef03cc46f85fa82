//! The call protocol over Redis 7: streams of requests, which a consumer group shares among workers.
//!
//! ```no_run
//! use ops_runtime::call::redis::{Redis, RedisConfig};
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
//! let redis = Redis::new("redis://127.0.0.1:6379", RedisConfig::new())?;
//! let worker = redis.serve(CallHandler::new(registry)).await?;
//!
//! // A caller, here or anywhere.
//! let remote = redis.remote().await?;
//! assert_eq!(remote.call("demo.echo", json!(7)).await?.data, 7);
//! worker.stop().await;
//! # Ok(()) }
//! ```
//!
//! # What it promises
//!
//! - **Delivery.** A request waits in a stream until a worker has room for it. It is started at most once: a worker
//!   starts it only if it has removed it from the stream, which only one can. There is one exception, a server that
//!   comes back with an older state: after a crash with snapshots (`save`), after one that has lost the end of the
//!   append-only file, or as a replica that was behind its primary. It has requests that were removed already, and they
//!   may be started again, also those of calls that have ended. A request with a deadline is not started after that.
//!   For other operations that must not run twice, use a server that keeps nothing over a restart (`save ""`), or one
//!   that writes at once (`appendfsync always`). If a worker dies before it starts a request that it was given, another
//!   worker takes the request over after 5 s ([`RedisConfig::with_lost_after`]). If a worker dies after it has started
//!   a request, the call fails with `ABORTED`. So does one whose writing was interrupted, because it may be in the
//!   stream or not. A request that the server refuses to store fails with an `EXECUTION_ERROR`.
//! - **Failure detection.** Workers report to each caller which requests they run for it: 100 ms after a request was
//!   started, and at every heartbeat (1 s, [`RedisConfig::with_heartbeat`]). A request that is in no stream and that no
//!   worker has reported for 7.5 s, one and a half times `lost_after`, is lost. A worker that is stopped or dropped
//!   reports that at once.
//! - **Disconnected callers.** Responses are kept if the caller is disconnected for up to 30 s
//!   ([`RedisConfig::with_response_retention`], at least three heartbeats): they wait in its stream, each arrives once
//!   and in order, and subscriptions go on. If the server cannot be reached for longer, the calls in flight fail with
//!   `ABORTED`. When a caller's stream has expired, workers abort its requests.
//! - **Loss of data.** A server that loses its data in a restart loses the waiting messages; their calls fail with
//!   `ABORTED`. Callers and workers announce themselves again. With its append-only file, waiting messages are kept;
//!   if it has lost the end of the file, see *Delivery*.
//! - **Aborts** remove a request that no worker has started; one that still waits in the caller's process is not
//!   written. An abort is sent at once if the caller knows the worker. Otherwise it is sent when the worker first
//!   reports the request, 100 ms after the request was started.
//! - **Order.** Items of a subscription are numbered and arrive in order; a subscription fails with `ABORTED` if one is
//!   missing. Requests for one operation are started in about the order in which they arrived, and run concurrently.
//! - **Limits.** A message has up to 4 MiB ([`RedisConfig::with_max_message`], to be set alike everywhere). A larger
//!   one fails its own call with an `EXECUTION_ERROR` whose details are `{ "size", "limit" }`. A worker runs about
//!   1,024 requests at a time ([`RedisConfig::with_max_running`]). Up to 100,000 wait for an operation
//!   ([`RedisConfig::with_max_waiting`]); beyond, the oldest fail with `ABORTED`. While requests hold half of a
//!   worker's memory ([`CallHandler::with_max_bytes`](crate::call::CallHandler::with_max_bytes)), it takes no more for
//!   5 s. Then it takes requests again: those of callers that hold little run, and the others fail. When the requests
//!   hold a quarter more than all of the memory, but for the last 256 KiB, it takes none until some have ended. So
//!   requests that call other operations of the same worker over Redis need a deadline: while they hold that memory,
//!   they wait without end for the calls that they make. A caller that leaves more than 256 MiB of responses unread
//!   loses them ([`RedisConfig::with_max_unread`]). A worker reads all of its operations with one command, so one that
//!   serves thousands costs the server more. If it has room for fewer requests than it has operations, it first looks
//!   which of them have any (`XLEN`), and reads each of these in its turn. Keys that are no longer renewed expire
//!   within a minute, including `ops:workers`. A worker that crashes leaves its consumers in the groups of its
//!   operations; other workers of these operations remove them in time, when they have been given nothing for five
//!   minutes.
//! - **Reconnecting.** A lost connection is made again, after 50 ms at first and up to some seconds. Calls that begin
//!   meanwhile wait up to 10 s ([`RedisConfig::with_connect_timeout`]), or until their deadline, and then fail with `ABORTED`.
//! - **Identity.** Redis does not tell workers who wrote an entry. So callers are anonymous, and an identity in a
//!   request is ignored, unless the worker is configured to trust its callers ([`RedisConfig::with_peer_auth`]). Any
//!   program that may write the keys may call and serve. Use the server's access lists. They are exact per operation,
//!   because a worker refuses a request that names another operation than its stream. A key with our prefix and another
//!   type is left alone: its operation is not served, all others are.
//! - **Discovery.** Workers announce their operations, and every change. A call of an unknown operation fails with
//!   `OPERATION_NOT_FOUND` at once; so does one whose last worker is gone, when the worker's announcement has expired.
//! - **One server**, or a primary with replicas, has all the keys. Redis Cluster is not supported. If the primary becomes
//!   a replica, connections to it are made again, and reach the new primary if the address leads to it.
//!
//! # For programs in other languages
//!
//! Keys begin with `ops` ([`RedisConfig::with_prefix`]). Entries have the fields `frame`, a frame as JSON, and `from`,
//! which is `ID`, `ID SEQ` or `ID SEQ N`. `ID` is the writer's own: any text of up to 256 bytes without white space.
//! `SEQ` is a number that grows with each entry of a writer. An entry that is written again, because it was unclear
//! whether it had arrived, has the same number, and a reader ignores entries whose number is not larger than the
//! writer's last. `N` is the number of an event among those of its request, from 0; responses have one.
//!
//! | key | type | content |
//! |---|---|---|
//! | `ops:call:OPERATION` | stream, group `workers` | `call.requested`; written with `NOMKSTREAM`: without workers there is none |
//! | `ops:caller:CALLER` | stream | responses and `link.running`, written with `NOMKSTREAM`; the caller creates it, renews its expiry and trims it |
//! | `ops:worker:WORKER` | stream | `link.credit` and `call.aborted`; the same for the worker |
//! | `ops:serves:WORKER` | hash | by operation, its spec as JSON; `worker`, the id. Expires when the worker does not renew it |
//! | `ops:workers` | set | the ids of workers. Each adds its own at every heartbeat, since callers remove those whose hash has expired |
//! | `ops:changes` | stream | an entry `from` each worker that has changed its hash |
//!
//! To call: create the stream `ops:caller:CALLER` by an entry without `frame`, `PEXPIRE` it, add `call.requested` to
//! the operation's stream, read the responses. To serve: create the group with `XGROUP CREATE .. 0 MKSTREAM`, write the
//! hash and add to the set and to the changes; read with `XREADGROUP`, remove the entry with `XDEL`, go on only if that
//! returned 1, `XACK`, and respond to the stream of the `ID` in `from`.

mod caller;
mod config;
mod connection;
mod entry;
mod keys;
mod server;
mod worker;

use std::fmt;
use std::sync::Arc;

use tokio::sync::OnceCell;

pub use config::RedisConfig;
pub use worker::RedisWorker;

use self::caller::RedisCaller;
use self::server::Server;
use super::{CallHandler, Remote, TransportId};
use crate::{BoxFuture, CallError};

/// A Redis server. Connections are made when they are needed, and made again when they are lost.
///
/// A clone is the same server. A caller has two connections, a worker three.
#[derive(Clone)]
pub struct Redis {
    id: TransportId,
    server: Server,
    config: RedisConfig,
    /// The one caller of the server, shared by its remotes.
    caller: Arc<OnceCell<Arc<RedisCaller>>>,
}

impl Redis {
    /// A server at `redis://[USER:PASSWORD@]HOST:PORT[/DATABASE]`, at the same with `rediss://`, or at
    /// `redis+unix:///PATH`.
    ///
    /// Use `rediss://` (feature `tls`) for a server on another machine: over `redis://`, the password and all calls are
    /// sent in the clear.
    ///
    /// # Errors
    /// If the URL is invalid, or if it requires TLS and that cannot be set up.
    pub fn new(url: &str, config: RedisConfig) -> Result<Self, CallError> {
        let tls = config.trust.settings(url)?;
        let server = Server::new(url, tls).map_err(|error| connection::refused(&error))?;
        Ok(Self { id: TransportId::next(), server, config, caller: Arc::default() })
    }

    /// A caller for the operations of the workers.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn remote(&self) -> BoxFuture<'_, Result<Remote, CallError>> {
        Box::pin(async move {
            let start = async || RedisCaller::start(self.id, &self.server, self.config.clone()).await.map(Arc::new);
            Ok(Remote::new(self.caller.get_or_try_init(start).await?.clone()))
        })
    }

    /// Serves the operations of a handler until the worker is stopped or dropped.
    ///
    /// # Errors
    /// If the server cannot be reached.
    pub fn serve(&self, handler: CallHandler) -> BoxFuture<'_, Result<RedisWorker, CallError>> {
        let handler = handler.over(self.id);
        Box::pin(async move { RedisWorker::start(&self.server, self.config.clone(), handler).await })
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redis").field("config", &self.config).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn errors_hold_no_credentials() {
        for url in [
            "redis://ann:hush@127.0.0.1:1",
            "redis://:hush@127.0.0.1:1/none",
            "redis://ann:hush@[bad",
            "redis://ann:hush@127.0.0.1:99999",
            "other://ann:hush@127.0.0.1:1",
            "ann:hush@127.0.0.1:1",
        ] {
            let error = match Redis::new(url, RedisConfig::default()) {
                Ok(redis) => redis.remote().await.map(drop).unwrap_err(),
                Err(error) => error,
            };
            let told = format!("{error} {error:?}");
            assert!(told.contains("Redis server can't be used") && !told.contains("hush"), "{url}: {told}");
        }
    }

    #[tokio::test]
    async fn an_error_names_the_server() {
        let redis = Redis::new("redis://ann:hush@127.0.0.1:1", RedisConfig::default()).unwrap();
        let error = redis.remote().await.map(drop).unwrap_err();
        let told = "the Redis server can't be used: 127.0.0.1:1: I/O error: Connection refused";
        assert!(error.message().starts_with(told), "{error}");
    }
}
