//! The HTTP client against a real server over loopback.

mod auth;
mod bodies;
mod callers;
mod calls;
#[cfg(feature = "compression")]
mod compression;
mod engines;
mod failures;
mod hooks;
mod options;
#[cfg(unix)]
mod pipes;
mod rejected;
mod resilience;
mod retryable;
mod script;
mod secrets;
mod server;
mod streams;
mod tokens;
