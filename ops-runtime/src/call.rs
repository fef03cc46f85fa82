//! The call protocol: operations across processes.
//!
//! A caller anywhere runs `remote.execute::<Op>(input)` with the types and the envelope of a local call; workers anywhere
//! serve a registry. In between is a [`Transport`]; the one that stays in the process is always there:
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
//! | `call.requested` | caller | `operationId`, `input`; if there is something to say: `parentRequestId`, `deadline`, `timeLeft`, `windowBytes`, `idleTimeout`, `identity`, `metadata` |
//! | `call.responded` | worker | `output`, an envelope: once for a call, once for each item of a subscription |
//! | `call.completed` | worker | nothing: a subscription ended normally |
//! | `call.aborted` | either | nothing: whoever sends it gives the request up |
//! | `call.error` | worker | `code`, `message`, `details`: the call failed; with `more: true`, one item of a subscription did |
//!
//! A request ends with the answer of a call, or with `call.completed`, `call.aborted` or `call.error`. What comes later,
//! comes twice, belongs to no request or is of a type that is not known does no harm. An envelope that says `isError` is an
//! answer. A request id is any text that its sender uses once.
//!
//! A `call.error` with `more: true` is no end: it stands for one item of a subscription, which goes on. A caller that does
//! not know `more` takes it for the end of the subscription and aborts it at the next item. An error that is the last item
//! is sent without `more` if the worker knows that nothing follows.
//!
//! A request with `windowBytes` asks for a subscription. A worker refuses it if the operation gives one result; a caller
//! refuses what does not fit the kind that was announced.
//!
//! - **The deadline** is of a call or of a subscription as a whole, and enforced on both sides. The caller sends
//!   `timeLeft`, the milliseconds until then when the request is sent, and for peers that do not know it `deadline`, in
//!   milliseconds since the Unix epoch. A worker goes by `timeLeft` if it is there, so that clocks may differ. Over Redis
//!   it takes off the time for which the request has waited, by the server's clock; NATS stores nothing, so the time is
//!   counted from when the worker reads the request. The caller sends `call.aborted` when it gives up.
//! - **The idle timeout** is how long a subscription may let its reader wait for the next item, in milliseconds; that a
//!   reader takes no items does not count.
//! - **An abort** drops the running handler, and with it the calls that it makes. A caller whose future or stream is
//!   dropped aborts.
//! - **Identity** is attached by the transport that authenticated the caller. `identity` in a request counts only over a
//!   link whose peer may speak for others ([`PeerAuth::trusted`]): within a process, or from a hub that passes on calls, and
//!   only if somebody has configured that.
//! - **The trace** goes on: `metadata.traceparent` (W3C Trace Context) is passed to nested calls, and is the parent of a
//!   `tracing` span on each side, in which the handler runs. A program that exports spans makes its own the child of it
//!   there.
//!
//! Five frames are about the link ([`LINK_FRAME_SCHEMA`](crate::model::wire::LINK_FRAME_SCHEMA)):
//!
//! | frame | says |
//! |---|---|
//! | `link.announce` | what the sender serves, as a change: `add` (specs), `remove` (ids), `more` if another part follows; `maxMessage`, the largest message it takes |
//! | `link.credit` | the subscriber takes `items` more of `requestId` |
//! | `link.drain` | send me no more requests; the answer is `link.drained` |
//! | `link.drained` | what comes after this is no request |
//! | `link.running` | I run `requestIds` of yours: said over brokers, where a request that nobody names for too long is lost |
//!
//! **Flow control.** A worker sends up to [`WINDOW`] items of a subscription, and one more for each that `link.credit`
//! allows; then it waits, and the handler's stream with it. A subscriber gives credit as it reads, so that one that does
//! not read holds up nothing but its own subscription. Where the subscriber says `windowBytes`, the worker also waits
//! while items of so many bytes, 8 MiB by default ([`Remote::with_window`]), are ahead of the credit; one item is always
//! sent. So a subscriber gives credit when it has read half of either window.
//!
//! # Bounds
//!
//! What peers make a worker hold has a budget of bytes: 64 MiB for each and 256 MiB for all
//! ([`CallHandler::with_max_bytes`]), and so have the requests that are run: 16,384 of a peer
//! ([`CallHandler::with_max_running`]), 65,536 of all ([`CallHandler::with_max_running_in_all`]), of which a connection of
//! a hub has 16 that others cannot use up. What is beyond fails with
//! an `EXECUTION_ERROR` whose details are `{ "limit" }` and can be tried again later. Of a subscription that a handler
//! passes on, up to 256 KiB of items wait there, and count as held by the peer that asked for it. A peer announces up to 20,000
//! operations in up to 32 MiB; those beyond are kept without their schemas. A message with an id of a request that is longer
//! than 1,024 bytes cannot be read, and errors do not repeat the id. Messages whose `metadata`, `details`, `meta` or specs are more than 400,000
//! values are refused, or read without them.
//!
//! # What callers are shown
//!
//! Callers in other processes get of an HTTP response the data, the status and the content type; of an HTTP error the
//! status, and the body if the operation declares that status; of other failures of operations that lead to another
//! server that there was one. Announcements do not say where operations lead. [`CallHandler::with_upstream_shown`] shows
//! all of it.
//!
//! The failure of a function is shown as it is, also an `EXECUTION_ERROR` whose text was not meant for callers: peers are
//! programs of one's own. Servers for HTTP and MCP keep such texts to the log. If the callers of a hub are not trusted, no
//! error of a function should hold a foreign text.
//!
//! # Metrics
//!
//! With the feature `metrics`: `ops_calls_total` (`side`, `operation`, `code`), `ops_call_duration_seconds` (`side`,
//! `operation`) and `ops_calls_in_flight` (`side`).

// A frame that is not sent is given back as it is, for somebody else.
#![allow(clippy::result_large_err)]

mod announced;
#[cfg(any(feature = "nats", feature = "redis"))]
mod broker;
mod budget;
mod directory;
pub(crate) mod event;
mod handler;
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
mod heard;
pub mod in_process;
mod meter;
#[cfg(feature = "nats")]
pub mod nats;
mod pending;
#[cfg(feature = "redis")]
pub mod redis;
mod remote;
mod serve;
mod slot;
#[cfg(any(feature = "redis", feature = "websocket"))]
mod tls;
pub(crate) mod trace;
mod transport;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use crate::model::request_id::RequestId;
pub use directory::Directory;
pub use event::{Announcement, CallEvent, CallRequest, Frame, Malformed};
pub use handler::{CallHandler, Session};
pub use in_process::{InProcess, Worker};
pub use pending::PendingRequests;
pub use remote::Remote;
pub use transport::{Link, PeerAuth, Route, Transport, TransportInfo, Unsent};

/// How many items of a subscription a worker sends before the first credit.
pub const WINDOW: u32 = 64;

/// How many bytes of items a caller keeps that it has not read yet, unless it is told otherwise
/// ([`Remote::with_window`]).
pub const WINDOW_BYTES: u64 = 8 << 20;

/// The largest window that counts: what is ahead of a subscriber is kept account of.
const MAX_WINDOW: u64 = 64 << 20;
