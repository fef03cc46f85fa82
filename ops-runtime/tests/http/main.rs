//! The HTTP client against a real server over loopback.

mod auth;
mod bodies;
mod calls;
mod failures;
mod resilience;
mod server;
mod streams;
