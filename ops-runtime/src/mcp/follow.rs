//! Redirects of an MCP server.

use http::StatusCode;
use reqwest::redirect::{Action, Attempt};

/// Follows redirects only within the same origin, because headers may contain secrets for that origin.
pub(in crate::mcp) fn follow(attempt: Attempt<'_>) -> Action {
    let origin = attempt.previous().first().map(url::Url::origin);
    if attempt.previous().len() > 5 {
        return attempt.error("it redirects too often");
    }
    let next = attempt.url().origin();
    if origin.as_ref() == Some(&next) {
        return attempt.follow();
    }
    attempt.error(format!("it redirects to another origin, `{}`, to which nothing is sent", next.ascii_serialization()))
}

/// Like [`follow`], for requests with a message. A redirect that would lose the message is not followed: it is the response.
pub(in crate::mcp) fn follow_with_message(attempt: Attempt<'_>) -> Action {
    if loses_message(attempt.status()) { attempt.stop() } else { follow(attempt) }
}

/// True if a redirect turns a POST into a GET without a body (Fetch, "HTTP-redirect fetch").
pub(in crate::mcp) fn loses_message(status: StatusCode) -> bool {
    matches!(status, StatusCode::MOVED_PERMANENTLY | StatusCode::FOUND | StatusCode::SEE_OTHER)
}
