//! The engine on NATS `JetStream`, on servers that the tests start: what is its own, beside the suite for every engine.

mod engine;
mod faults;
mod left_behind;
mod lost;
mod servers;

/// The server of the tests.
const NATS_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
