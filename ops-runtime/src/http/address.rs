//! What URLs say about where a request goes.

use url::Url;

use super::invalid;
use crate::CallError;

/// True if a request can be sent to the URL; such a URL always has a host.
pub(super) fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// True if two URLs are of one origin (RFC 6454).
pub(super) fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}

/// The base URL, which must be absolute.
pub(super) fn parse_url(text: &str) -> Result<Url, CallError> {
    // The text stays out of the message: it may hold a password.
    let url = Url::parse(text.trim())
        .map_err(|error| invalid("/baseUrl", format!("the base URL is not an absolute URL: {error}")))?;
    if !is_http(&url) {
        return Err(invalid("/baseUrl", format!("the base URL has the scheme `{}`, not http or https", url.scheme())));
    }
    Ok(url)
}
