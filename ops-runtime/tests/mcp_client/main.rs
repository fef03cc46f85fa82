//! The MCP client with real servers, and with one that misbehaves.

mod everything;
mod peers;
