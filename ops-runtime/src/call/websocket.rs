//! The call protocol over WebSocket: spokes that connect to a hub, and call each other through it.
//!
//! One message is one frame, as text. Both sides of a connection may serve and call: the hub runs the requests of
//! spokes, and calls the operations that they serve.
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
//! - **Delivery.** A request is sent once, over one connection, and runs as a task of its own. When a connection
//!   breaks, requests in flight fail with `ABORTED` on the caller's side, and are dropped on the worker's. Nothing is
//!   sent again, and no response outlives its connection. A spoke that stops ([`WebSocketClient::stop`]) finishes its
//!   running requests; new ones go to other spokes. A hub that stops ([`Hub::stop`]) admits no more spokes, finishes
//!   its running requests, and closes each connection when the responses have been sent. Spokes that serve operations
//!   come last, since requests of other spokes may need them: until those have ended, and for up to 10 s, such a spoke
//!   may still call through the hub. A running request of a spoke that serves cannot call through the hub after that.
//! - **Reconnecting.** A client reconnects by itself, after 100 ms at first and up to 10 s
//!   ([`WebSocketConfig::with_backoff`]); after 100 ms again once a connection has lasted for a while. Calls that begin
//!   meanwhile wait up to 10 s ([`WebSocketConfig::with_connect_timeout`]), or until their deadline, and then fail with
//!   `ABORTED`, or with `ACCESS_DENIED` if the hub refuses the client; the error says why there is no connection. For a
//!   token that expires, use [`WebSocketConfig::with_token_source`]. Subscriptions fail like calls, unless the client
//!   resubscribes ([`WebSocketConfig::with_resubscription`]): then the stream yields an `ABORTED` whose details are `{
//!   "resubscribed": true }`, because items may be missing there, and goes on with a new subscription. It waits as long
//!   as a call for the hub to announce the operation again. A subscription that may change something
//!   ([`OperationSpec::may_change`](crate::spec::OperationSpec::may_change)) ends with the `ABORTED`.
//! - **Order.** Frames of a connection arrive in order, and so do the items of a subscription. Calls run concurrently.
//! - **Limits.** A message has up to 4 MiB ([`WebSocketConfig::with_max_message`]). Both sides announce their limit,
//!   and a larger message fails its own call with an `EXECUTION_ERROR` whose details are `{ "size", "limit" }`. A
//!   peer that sends more nevertheless is disconnected (close code 1009). Up to 16,384 requests of a peer run at a
//!   time. A peer with more than 8 MiB of unread responses is hardly read, no longer read when what it sent has added
//!   8 MiB more, and disconnected if it reads none of them. The memory of all peers is limited
//!   ([`CallHandler::with_max_bytes`](crate::call::CallHandler::with_max_bytes)); a hub that reaches that limit
//!   disconnects the peer that holds the most. A hub has up to 4,096 connections ([`Hub::with_max_connections`]) and
//!   256 handshakes in progress ([`Hub::with_handshakes`]). A peer that sends 100 malformed messages is disconnected
//!   (1008).
//! - **Hosts and origins.** A hub accepts requests to its own hosts, and from pages of these hosts only
//!   ([`Hub::with_hosts`], [`Hub::with_origins`]): the local host by default. Announcements of an anonymous spoke are
//!   ignored ([`Hub::with_anonymous_serving`]).
//! - **Heartbeats.** Either side pings a peer that has been silent for 15 s, and closes the connection after 45 s
//!   ([`WebSocketConfig::with_heartbeat`]). A peer that still reads queued messages does not count as silent.
//! - **Identity.** The hub authenticates spokes at the handshake ([`Hub::with_authenticator`]). A caller that a spoke
//!   names is ignored, unless the spoke's [`PeerAuth`](crate::call::PeerAuth) allows it. A caller that the hub names is
//!   ignored, unless the spoke is configured to trust the hub ([`WebSocketConfig::trusting_hub`]).
//! - **Discovery.** Both sides announce their operations when they connect, and every change. A call of an operation
//!   that is not served fails with `OPERATION_NOT_FOUND` at once.
//!
//! # For programs in other languages
//!
//! Connect, with the authentication that the hub requires. Send `link.announce` with the specs of the operations that
//! you serve, `{}` if there are none, and with `maxMessage` if your largest message is not 4 MiB; read those that
//! arrive. The hub sends its own when it has read yours, in messages within your limit. To call, send
//! `call.requested` with an id that you use once, and with `oneResult: true` unless you subscribe. When you serve,
//! respond to `call.requested` with `call.responded` or `call.error`, and stop on `call.aborted`. Ignore what you do not
//! know.

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
