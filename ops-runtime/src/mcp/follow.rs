//! Redirects of an MCP server.

use reqwest::redirect::Attempt;

/// Follows redirects only within the same origin, because headers may contain secrets for that origin.
pub(in crate::mcp) fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let origin = attempt.previous().first().map(url::Url::origin);
    if attempt.previous().len() > 5 {
        attempt.error("it redirects too often")
    } else if origin == Some(attempt.url().origin()) {
        attempt.follow()
    } else {
        attempt.error("it redirects to another host, to which nothing is sent")
    }
}
