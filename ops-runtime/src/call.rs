//! The call protocol: operations across processes.
//!
//! A caller runs `remote.execute::<Op>(input)` with the types and the envelope of a local call, and workers serve a
//! registry, possibly in other processes. A [`Transport`] connects the two. The transport within one process needs no
//! feature:
//!
#![cfg_attr(
    feature = "macros",
    doc = r#"
```
use ops_runtime::call::{CallHandler, InProcess};
use ops_runtime::{Registry, operation};

/// Adds two numbers.
#[operation(namespace = "math", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Add)?;
let transport = InProcess::new();
let worker = transport.serve(CallHandler::new(registry));

let remote = transport.remote();
assert_eq!(remote.execute::<Add>(AddInput { a: 40, b: 2 }).await?.data, 42);
worker.stop().await;
# Ok(()) }
```
"#
)]
//!
//! # The protocol
//!
//! Five events, each `{ "type", "id", "payload" }` with the request's id as `id` and as `payload.requestId`
//! ([`CALL_EVENT_SCHEMA`](crate::model::wire::CALL_EVENT_SCHEMA)):
//!
//! | event | from | payload beside `requestId` |
//! |---|---|---|
//! | `call.requested` | caller | `operationId`, `input`; optional: `parentRequestId`, `deadline`, `timeLeft`, `windowBytes`, `oneResult`, `idleTimeout`, `identity`, `metadata` |
//! | `call.responded` | worker | `output`, an envelope: once for a call, once for each item of a subscription |
//! | `call.completed` | worker | nothing: a subscription ended normally |
//! | `call.aborted` | either | nothing: the sender aborts the request |
//! | `call.error` | worker | `code`, `message`, `details`: the call failed; with `more: true`, one item of a subscription did |
//!
//! A request ends with the response of a call, or with `call.completed`, `call.aborted` or `call.error`. Late and
//! duplicate events, events of unknown requests and events of unknown types are ignored. An envelope with `isError` is
//! a normal response. A request id is any text that its sender uses once.
//!
//! A `call.error` with `more: true` does not end the request: it stands for one item of a subscription, which goes on.
//! A caller that does not know `more` takes it for the end of the subscription, and aborts the request at the next
//! item. If the worker knows that the error is the last item, it leaves out `more`.
//!
//! A request with `windowBytes` asks for a subscription. A worker refuses it if the operation gives one result. A
//! request with `oneResult: true` asks for one result. A worker refuses it if the operation is a subscription, since its
//! caller would take the first item for the result. A caller refuses to request what does not fit the announced kind of
//! operation.
//!
//! - **The deadline** is that of a call or of a whole subscription. Both sides enforce it. The caller sends `timeLeft`,
//!   the milliseconds from sending to the deadline, and, for peers that do not know `timeLeft`, `deadline`, in
//!   milliseconds since the Unix epoch. A worker prefers `timeLeft`, so clocks may differ. With Redis, the worker
//!   subtracts the time for which the request was queued, by the server's clock. NATS stores nothing, so the time
//!   counts from when the worker reads the request. A request that waits in the caller's process for the broker is sent
//!   with the time that is left then, and is not sent after its deadline. Over NATS, up to 256 KiB of requests may be in
//!   the NATS client already: these are sent as they were. Time in the network, or in a server that stands still, is not
//!   known to anybody. A caller sends `call.aborted` when the deadline has passed.
//! - **The idle timeout**, in milliseconds, limits how long a subscription may keep its reader waiting for the next
//!   item. Time in which the reader takes no items does not count.
//! - **An abort** drops the running handler and, with it, the calls that it makes. Dropping the future or the stream of
//!   a call aborts it.
//! - **Identity** is attached by the transport that authenticated the caller. `identity` in a request counts only if
//!   the peer of the link is trusted to speak for others ([`PeerAuth::trusted`]): within a process, or if it is a hub
//!   that forwards calls and the worker is configured to trust it.
//! - **The trace** is continued: `metadata.traceparent` (W3C Trace Context) is passed to nested calls. It is the parent
//!   of a `tracing` span on each side, in which the handler runs. A program that exports spans sets it as the parent of
//!   its own span there.
//!
//! Five frames are about the link ([`LINK_FRAME_SCHEMA`](crate::model::wire::LINK_FRAME_SCHEMA)):
//!
//! | frame | says |
//! |---|---|
//! | `link.announce` | what the sender serves, as a change: `add` (specs), `remove` (ids), `more` if another part follows; `maxMessage`, the largest message it takes |
//! | `link.credit` | the subscriber accepts `items` more items of `requestId` |
//! | `link.drain` | send me no more requests; the response is `link.drained` |
//! | `link.drained` | no requests follow this frame |
//! | `link.running` | I run `requestIds` of yours: sent over brokers, where a request that no worker reports for too long counts as lost |
//!
//! A spec of an announcement that cannot be read is left out, and the log says why; the others count.
//!
//! **Flow control.** A worker sends up to [`WINDOW`] items of a subscription, and one more for each that `link.credit`
//! allows. Then it waits, and so does the handler's stream. A subscriber gives credit as it reads, so a slow subscriber
//! holds up only its own subscription. If the subscriber sends `windowBytes`, the worker also waits while the items
//! ahead of the credit have that many bytes, 8 MiB by default ([`Remote::with_window`]); one item is always sent. So a
//! subscriber gives credit when it has read half of either window.
//!
//! # Bounds
//!
//! The memory that a worker holds for its peers in other processes is limited: 64 MiB for each and 256 MiB for all
//! ([`CallHandler::with_max_bytes`]). So are the running requests: 16,384 of a peer ([`CallHandler::with_max_running`])
//! and 65,536 of all ([`CallHandler::with_max_running_in_all`]); 16 requests of each connection of a hub are reserved
//! for it. A request beyond a limit fails with an `EXECUTION_ERROR` whose details are `{ "limit" }`, and can be retried
//! later. If a handler forwards a subscription, up to 256 KiB of its items are buffered, and count for the peer that
//! subscribed, with their metadata and errors. A peer announces up to 20,000 operations; further ones are
//! left out. Operations beyond 32 MiB are kept without their schemas. A message whose request id is longer than 1,024
//! bytes cannot be read, and errors do not repeat the id. Messages whose `metadata`, `details`, `meta` or specs have
//! more than 400,000 values are refused, or read without them.
//!
//! # What callers are shown
//!
//! If an operation calls another server, callers in other processes do not see all of the response. Of an HTTP
//! response, they get the data, the status and the content type. Of an HTTP error, they get the status. They also get the
//! body if they called an operation of the API that responded, and it declares that status. If they called a function that
//! passes the error on, they do not get the body. Of any other failure of an operation of another server, they learn only
//! that it failed.
//! Announcements do not name the servers. [`CallHandler::with_upstream_shown`] shows all of it.
//!
//! The error of a function is shown as it is, even an `EXECUTION_ERROR` whose text was not meant for callers, since
//! peers are usually programs of the same owner. (Servers for HTTP and MCP write such texts to the log only.) There is
//! one exception: if the error is that of an MCP tool that the function called, callers learn only that a tool failed.
//! If the callers of a hub are not trusted, do not put texts of other systems into the errors of functions.
//!
//! # Metrics
//!
//! With the feature `metrics`: `ops_calls_total` (`side`, `operation`, `code`), `ops_call_duration_seconds` (`side`,
//! `operation`) and `ops_calls_in_flight` (`side`). A subscription counts as one call, until it ends. If a call is
//! forwarded, its `operation` is `forwarded` in the process that forwards it.

// A frame that is not sent is returned whole, so that it can be sent to another peer.
#![allow(clippy::result_large_err)]

#[cfg(any(feature = "nats", feature = "redis"))]
mod broker;
mod budget;
mod credits;
mod directory;
pub(crate) mod event;
mod handler;
pub mod in_process;
mod meter;
#[cfg(feature = "nats")]
pub mod nats;
mod own_specs;
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
mod peer_specs;
mod pending;
#[cfg(feature = "redis")]
pub mod redis;
mod remote;
mod run_request;
mod slot;
#[cfg(any(feature = "redis", feature = "websocket"))]
mod tls;
pub(crate) mod trace;
mod transport;
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
mod trouble;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use crate::model::request_id::RequestId;
pub use directory::Directory;
pub use event::{Announcement, CallEvent, CallRequest, Frame, Malformed};
pub use handler::{CallHandler, Session};
pub use in_process::{InProcess, InProcessWorker};
pub use pending::PendingRequests;
pub use remote::Remote;
#[doc(hidden)]
pub use transport::TransportId;
pub use transport::{Link, PeerAuth, Route, Transport, TransportInfo, Unsent};

/// Number of items of a subscription that a worker sends before the first credit.
pub const WINDOW: u32 = 64;

/// Default for how many bytes of unread items a caller buffers ([`Remote::with_window`]).
pub const WINDOW_BYTES: u64 = 8 << 20;

/// The largest window that has an effect, since a worker keeps account of the items ahead of a subscriber.
const MAX_WINDOW: u64 = 64 << 20;

/// The longest interval or timeout in the configuration of a transport; a longer one is cut to it.
///
/// It is as good as no limit. Sums and multiples of it can still be expressed, by clocks and by servers.
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
const LONGEST: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 60 * 60);
