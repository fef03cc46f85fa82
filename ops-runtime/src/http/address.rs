//! The scheme, host and origin of URLs.

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

/// True if a URL from a server may be requested for keys or tokens, or opened in a browser: `https`, and `http` on this
/// machine.
#[cfg(any(feature = "jwt", feature = "mcp-auth"))]
pub(crate) fn is_safe(url: &Url) -> bool {
    use url::Host;
    match (url.scheme(), url.host()) {
        ("https", Some(_)) => true,
        ("http", Some(Host::Domain(name))) => super::destinations::is_local(name),
        ("http", Some(Host::Ipv4(address))) => address.is_loopback(),
        ("http", Some(Host::Ipv6(address))) => address.is_loopback(),
        _ => false,
    }
}

/// The base URL, which must be absolute.
pub(super) fn parse_url(text: &str) -> Result<Url, CallError> {
    // The text stays out of the message: it may hold a password.
    let url = Url::parse(text.trim()).map_err(|error| {
        let message = format!("the base URL is not an absolute URL, such as `https://api.example.com/v1`: {error}");
        invalid("/baseUrl", message)
    })?;
    if !is_http(&url) {
        return Err(invalid("/baseUrl", format!("the base URL has the scheme `{}`, not http or https", url.scheme())));
    }
    // A brace that is meant is written as `%7B`.
    let before_query = text.split(['?', '#']).next().unwrap_or_default();
    if before_query.contains('{') && url.path().contains("%7B") {
        let message = "the base URL has a placeholder in braces: write its value there, or set no base URL and call \
                       `with_server_variable`";
        return Err(invalid("/baseUrl", message.to_owned()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_without_a_scheme_says_what_one_is() {
        let error = parse_url("api.example.com").unwrap_err();
        assert!(error.message().contains("such as `https://api.example.com/v1`: relative URL"), "{error}");
    }

    #[test]
    fn a_base_url_has_no_placeholders() {
        let error = parse_url("https://api.example.com/{region}/v1").unwrap_err();
        assert!(error.message().contains("`with_server_variable`"), "{error}");
        assert!(parse_url("https://api.example.com/%7Bregion%7D?a={b}").is_ok());
    }

    #[cfg(any(feature = "jwt", feature = "mcp-auth"))]
    #[test]
    fn only_what_is_safe_is_asked_or_opened() {
        for (url, expected) in [
            ("https://login.example/authorize", true),
            ("http://127.0.0.1:80/x", true),
            ("http://[::1]/x", true),
            ("http://localhost:8080/x", true),
            ("http://login.example/x", false),
            ("http://10.0.0.1/x", false),
            ("file:///etc/passwd", false),
            ("javascript:alert(1)", false),
            ("data:text/html,x", false),
            ("ssh://host/-oProxyCommand=x", false),
        ] {
            assert_eq!(is_safe(&Url::parse(url).unwrap()), expected, "{url}");
        }
    }
}
