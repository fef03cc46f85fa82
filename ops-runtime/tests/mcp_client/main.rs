//! The MCP client with real servers, and with servers that misbehave.

mod asks;
mod authorization;
mod changes;
mod everything;
mod faults;
mod http;
mod issuer;
#[path = "../gateway/secrets/log.rs"]
mod log;
mod oauth;
mod peers;
mod questions;
#[cfg(unix)]
mod recovery;
mod responses;
mod servers;
mod sessions;
mod tasks;
