//! The MCP client with real servers, and with servers that misbehave.

mod asks;
mod authorization;
mod changes;
mod everything;
mod faults;
mod http;
mod issuer;
mod oauth;
mod peers;
#[cfg(unix)]
mod recovery;
mod servers;
mod tasks;
