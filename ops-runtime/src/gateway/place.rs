//! Where the operations of a gateway lead. A program that waited goes on only where it began: what its user agreed to for
//! one server is not done on another.

use std::collections::BTreeSet;

use serde_json::json;

use super::upstream::Outcome;
use crate::HttpConfig;
use crate::mcp::McpConfig;
use crate::model::hex::hex;

/// What stands in place of a server if results are examples.
const EXAMPLES: &str = "examples";

/// The servers of all documents and the MCP servers, as a hash; empty if there are none.
///
/// The documents are in the order in which they were read, each with its client, and true if its results are examples.
/// Operations that the program registers itself lead where it decides: they are not part of it.
pub(super) fn of(
    documents: &[(HttpConfig, bool)],
    read: &[Outcome],
    servers: Option<&McpConfig>,
    has_mock_servers: bool,
) -> String {
    let mut places = BTreeSet::new();
    for ((config, is_mock), (_, read)) in documents.iter().zip(read) {
        for operation in read.iter().flat_map(|read| &read.operations) {
            let spec = operation.spec();
            let Some(http) = spec.http() else { continue };
            let server = if *is_mock { json!(EXAMPLES) } else { config.server_of(http) };
            places.insert(json!([spec.namespace(), server]).to_string());
        }
    }
    if let Some(config) = servers {
        for (name, server) in config.names().filter_map(|name| Some((name, config.server(name).ok()?))) {
            let target = if has_mock_servers { json!(EXAMPLES) } else { server.leads_to() };
            places.insert(json!([name, target]).to_string());
        }
    }
    if places.is_empty() {
        return String::new();
    }
    // As a hash, since URLs and variables may hold secrets.
    hex(ring::digest::digest(&ring::digest::SHA256, json!(places).to_string().as_bytes()).as_ref())
}
