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
//! ([`CALL_EVENT_SCHEMA`](crate::wire::CALL_EVENT_SCHEMA)):
//!
//! | event | from | payload beside `requestId` |
//! |---|---|---|
//! | `call.requested` | caller | `operationId`, `input`; if there is something to say: `parentRequestId`, `deadline`, `idleTimeout`, `identity`, `metadata` |
//! | `call.responded` | worker | `output`, an envelope: once for a call, once for each item of a subscription |
//! | `call.completed` | worker | nothing: a subscription ended normally |
//! | `call.aborted` | either | nothing: whoever sends it gives the request up |
//! | `call.error` | worker | `code`, `message`, `details`: the call failed |
//!
//! A request ends with the answer of a call, or with `call.completed`, `call.aborted` or `call.error`; what comes later,
//! comes twice, belongs to no request or is of a type that is not known does no harm. An envelope that says `isError` is an
//! answer. A request id is any text that its sender uses once.
//!
//! - **The deadline** is of a call or of a subscription as a whole, in milliseconds since the Unix epoch, and enforced on
//!   both sides: clocks should agree. The caller sends `call.aborted` when it gives up.
//! - **The idle timeout** is how long a subscription may let its reader wait for the next item, in milliseconds; that a
//!   reader takes no items does not count.
//! - **An abort** drops the running handler, and with it the calls that it makes. A caller whose future or stream is
//!   dropped aborts.
//! - **Identity** is attached by the transport that authenticated the caller. `identity` in a request counts only over a
//!   link whose peer may speak for others ([`Origin::trusted`]): within a process, or from a hub that passes on calls, and
//!   only if somebody has configured that.
//! - **The trace** goes on: `metadata.traceparent` (W3C Trace Context) is passed to nested calls, and is the parent of a
//!   `tracing` span on each side, in which the handler runs. A program that exports spans makes its own the child of it
//!   there.
//!
//! Five frames are about the link ([`LINK_FRAME_SCHEMA`](crate::wire::LINK_FRAME_SCHEMA)):
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
//! not read holds up nothing but its own subscription.
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
mod directory;
mod event;
mod handler;
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
mod trace;
mod transport;
#[cfg(feature = "websocket")]
pub mod websocket;

pub use directory::Directory;
pub use event::{Announcement, CallEvent, CallRequest, Frame, Malformed, RequestId};
pub use handler::{CallHandler, Session};
pub use in_process::{InProcess, Worker};
pub use pending::PendingRequests;
pub use remote::Remote;
pub use transport::{Facts, Link, Origin, Route, Transport, Unsent};

/// How many items of a subscription a worker sends before the first credit.
pub const WINDOW: u32 = 64;

/// Somewhere between half of a delay and all of it, so that those who lost a server do not all come back at once.
#[cfg(any(feature = "nats", feature = "redis", feature = "websocket"))]
fn jitter(delay: std::time::Duration) -> std::time::Duration {
    use std::hash::{BuildHasher, RandomState};
    let share = u32::try_from(RandomState::new().hash_one(0) % 512).unwrap_or(0);
    delay / 2 + delay / 1024 * share
}
