//! The call protocol over WebSocket: spokes that connect to a hub, and call each other through it.
//!
//! One message is one frame, as text. Both sides of a connection may serve and call: the hub runs what spokes ask for, and
//! calls what they serve.
//!
//! ```
//! use ops_runtime::call::websocket::{Hub, WebSocketClient, WebSocketConfig};
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
//! // The hub is a service of axum's: `Router::new().route("/ops", hub.clone().into_service())`; or a server of its own.
//! let hub = Hub::new(CallHandler::new(registry));
//! let server = hub.listen("127.0.0.1:0").await?;
//!
//! let spoke = WebSocketClient::connect(&server.url(), WebSocketConfig::new()).await?;
//! assert_eq!(spoke.remote().call("demo.echo", json!(7)).await?.data, 7);
//! spoke.stop().await;
//! server.stop().await;
//! # Ok(()) }
//! ```
//!
//! # What it promises
//!
//! - **Delivery.** A request is sent once, over one connection, and runs as a task of its own. What is under way when a
//!   connection breaks fails with `ABORTED` on the caller's side, and is dropped on the worker's: nothing is sent again,
//!   and no answer outlives its connection. A spoke that stops ([`WebSocketClient::stop`]) finishes what it runs; what it
//!   would have got goes to another. A hub that stops ([`Hub::stop`]) admits no more spokes, finishes what it runs, and
//!   closes each connection when the answers have left.
//! - **Reconnecting.** A client connects again by itself, after 100 ms at first and up to 10 s
//!   ([`WebSocketConfig::with_backoff`]); after 100 ms again once a connection has held for a while. Calls that begin meanwhile wait up to 10 s
//!   ([`WebSocketConfig::with_patience`]), or until their deadline, and fail with `ABORTED`. Subscriptions fail like calls,
//!   unless the client resubscribes ([`WebSocketConfig::with_resubscription`]): then the stream gives an `ABORTED` whose
//!   details are `{ "resubscribed": true }`, because items may be missing there, and goes on with a new subscription.
//! - **Order.** Frames of a connection come in order, so items of a subscription do; calls run side by side.
//! - **Limits.** A message has up to 4 MiB ([`WebSocketConfig::with_max_message`]); both sides tell theirs, and what is
//!   larger fails its own call with an `EXECUTION_ERROR` whose details are `{ "size", "limit" }`. A peer that sends more all
//!   the same is disconnected (close code 1009). Requests of a peer run up to 16,384 at a time. A peer that does not read
//!   what it asked for is read no further beyond 8 MiB of answers, and disconnected if that lasts. What all of them hold is
//!   bounded ([`CallHandler::with_max_bytes`](crate::call::CallHandler::with_max_bytes)); a hub that holds that much
//!   disconnects the peer that holds the most. A hub has up to 4,096 connections ([`Hub::with_max_connections`]) and 256 that are
//!   being made ([`Hub::with_handshakes`]). A peer that sends 100 messages that cannot be read is disconnected (1008).
//! - **Doors.** A hub takes requests for its own hosts, and pages of these only ([`Hub::with_hosts`],
//!   [`Hub::with_origins`]): the local host by default. What an anonymous spoke announces does not count
//!   ([`Hub::with_anonymous_serving`]).
//! - **Heartbeats.** Either side pings a peer that has been silent for 15 s, and gives it up after 45 s
//!   ([`WebSocketConfig::with_heartbeat`]). One that reads what has waited for it is not silent.
//! - **Identity.** The hub authenticates at the handshake ([`Hub::with_authentication`]). What a spoke says of its callers
//!   does not count, unless its [`PeerAuth`](crate::call::PeerAuth) says so; nor does what the hub says to a spoke, unless the
//!   spoke is configured to trust it ([`WebSocketConfig::trusting_hub`]).
//! - **Discovery.** Both sides announce what they serve when they connect, and every change. What nobody serves fails with
//!   `OPERATION_NOT_FOUND` at once.
//!
//! # For programs in other languages
//!
//! Connect, with whatever the hub wants for authentication. Send `link.announce` with the specs of what you serve, `{}` if
//! nothing, and with `maxMessage` if you do not take 4 MiB; read those that come. The hub says what it serves when it has
//! read yours, in messages that you take. To call, send `call.requested` with an id that you use once. When you serve, answer
//! `call.requested` with `call.responded` or `call.error`, and stop on `call.aborted`. Pass over what you do not know.

mod announcing;
mod client;
mod config;
mod connection;
mod driver;
mod handshake;
mod hub;
mod io;
mod listener;
mod outbox;
mod socket;

pub use client::WebSocketClient;
pub use config::WebSocketConfig;
pub use hub::{Hub, Listening, Peer};
