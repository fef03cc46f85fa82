//! The HTTP client against a real server over loopback.

mod calls;
mod failures;
mod server;
mod streams;
