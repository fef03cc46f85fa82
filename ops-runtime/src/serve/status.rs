//! Which statuses a response of the server can have.

use http::StatusCode;

/// A status with which a response can end, from 200 to 599. An interim one, such as 101, would leave the client waiting.
pub(super) fn sendable(status: u16) -> Option<StatusCode> {
    StatusCode::from_u16(status).ok().filter(|status| (200..600).contains(&status.as_u16()))
}

/// Like [`sendable`], for a status that a handler has set or another server has sent: any other is logged.
pub(super) fn status_of(operation: &str, status: u16) -> Option<StatusCode> {
    let found = sendable(status);
    if found.is_none() {
        tracing::warn!(operation, status, "a status is not sent: it is not one of 200 to 599");
    }
    found
}
