//! A registry as an MCP server, over pipes and over HTTP.

mod asks;
mod calls;
mod changes;
mod client;
mod conformance;
mod document;
mod fixture;
mod http;
mod limits;
#[path = "../call/log.rs"]
mod log;
mod opening;
mod same;
#[cfg(feature = "jetstream")]
#[path = "../jetstream/servers.rs"]
mod servers;
mod sessions;
mod streams;
#[cfg(feature = "durable")]
mod tasks;
mod tools;

/// The server of the tests.
#[cfg(feature = "jetstream")]
const NATS_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
