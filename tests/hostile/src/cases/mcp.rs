//! MCP servers and clients that flood, stall or lie.

use crate::Case;

mod child;
mod client;
mod server;

pub(super) const CASES: &[Case] = &[
    Case::new("mcp-child-floods-and-does-not-read", 256 << 20, child::flood),
    Case::new("mcp-child-asks-for-more-than-it-reads", 4 << 20, child::small_flood).with_family("requests"),
    Case::new("mcp-child-list-without-end", 64 << 20, child::endless_list).with_family("pages"),
    Case::new("mcp-child-page-of-megabytes", 48 << 20, child::large_page).with_family("pages"),
    Case::new("mcp-child-cursor-again", 1 << 20, child::same_cursor).with_family("pages"),
    Case::new("mcp-child-batch-of-nothing", 32 << 20, child::batch).with_family("requests"),
    Case::new("mcp-child-standard-error", 64 << 20, child::standard_error),
    Case::new("mcp-child-changes-all-the-time", 3, child::changes),
    Case::new("mcp-child-progress-storm", 16 << 20, child::progress),
    Case::new("mcp-child-error-of-megabytes", 32 << 20, child::large_error),
    Case::new("mcp-stream-opened-again-at-once", 5, client::reopened),
    Case::new("mcp-events-ask-without-end", 8 << 20, client::asked).with_family("requests"),
    Case::new("mcp-server-body-of-numbers", 4 << 20, server::numbers).with_family("requests"),
    Case::new("mcp-server-bodies-at-once", 64, server::bodies).with_limits(512, 60),
    Case::new("mcp-server-batch", 4 << 20, server::batch).with_family("requests"),
    Case::new("mcp-server-bad-json", 4 << 20, server::bad_json).with_family("requests"),
    Case::new("mcp-server-sessions", 3000, server::sessions).with_limits(512, 60),
    Case::new("mcp-server-one-id-again", 300, server::same_id),
    Case::new("mcp-server-half-open", 600, server::half_open),
    Case::new("mcp-server-slow-body", 0, server::slow_body),
    Case::new("mcp-server-results-unread", 40, server::unread).with_limits(512, 60),
];
