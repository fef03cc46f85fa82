//! How much of a result waits until its client has read it.

use std::sync::Arc;

use ::http::request::Parts;
use rmcp::model::{CallToolResult, Extensions};

use super::length;
use super::limits::Held;

/// Counts the bytes of a result as unread, where the transport bounds them.
pub(super) fn count(extensions: &Extensions, result: &CallToolResult) {
    let held = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Arc<Held>>());
    let Some(held) = held else { return };
    // As it is here, and as it is sent.
    held.unread(length::of_result(result).saturating_mul(2));
}
