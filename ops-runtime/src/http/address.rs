//! What URLs say about where a request goes.

use url::Url;

/// True if a request can be sent to the URL; such a URL always has a host.
pub(super) fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}

/// True if two URLs are of one origin (RFC 6454).
pub(super) fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme() == b.scheme() && a.host() == b.host() && a.port_or_known_default() == b.port_or_known_default()
}
