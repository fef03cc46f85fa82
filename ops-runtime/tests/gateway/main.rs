//! A gateway as models and other callers find it.

#[allow(dead_code, reason = "the tests of the MCP server need more of it")]
#[path = "../mcp_server/client.rs"]
mod client;

mod approval;
mod audit;
mod callers;
#[cfg(feature = "program")]
mod consent;
mod documents;
mod dropped;
mod files;
mod fixture;
#[cfg(feature = "program")]
mod programs;
mod results;
mod secrets;
mod shown;
mod tools;
#[cfg(feature = "program")]
mod waiting;
