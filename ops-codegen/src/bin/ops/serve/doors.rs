//! Checks the settings `hosts` (the names of the server) and `origins` (of web pages that may call it). Without a
//! check, a misspelt one would refuse every request without an explanation.

use axum::http::Uri;
use axum::http::uri::Authority;

/// Checks `hosts`.
///
/// # Errors
/// The error of the first that no request can have.
pub(super) fn check_hosts(hosts: &[String]) -> Result<(), String> {
    let wrong = hosts.iter().find(|host| !is_host(host.trim()));
    wrong.map_or(Ok(()), |host| {
        Err(format!(
            "`hosts` has `{host}`, which no request can name: write a name, or a name and a port, such as `tools.example.com` or \
             `tools.example.com:8443`, without a scheme, a path or a pattern"
        ))
    })
}

/// Checks `origins`.
///
/// # Errors
/// The error of the first that no page can have.
pub(super) fn check_origins(origins: &[String]) -> Result<(), String> {
    let wrong = origins.iter().find(|origin| !is_origin(origin.trim()));
    wrong.map_or(Ok(()), |origin| {
        Err(format!(
            "`origins` has `{origin}`, which is the origin of no page: write a scheme and a name, such as `https://app.example.com`, \
             with `:PORT` or, for any port, `:*` behind it"
        ))
    })
}

fn is_host(host: &str) -> bool {
    let Ok(authority) = Authority::try_from(host) else { return false };
    // Without a user before it.
    let Some(port) = host.strip_prefix(authority.host()) else { return false };
    !authority.host().is_empty() && !host.contains('*') && (port.is_empty() || authority.port_u16().is_some())
}

fn is_origin(origin: &str) -> bool {
    let Ok(uri) = Uri::try_from(origin.strip_suffix(":*").unwrap_or(origin)) else { return false };
    let has_no_path = matches!(uri.path(), "" | "/") && uri.query().is_none();
    uri.scheme().is_some() && has_no_path && uri.authority().is_some_and(|authority| is_host(authority.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lets_nobody_in_is_told() {
        for host in ["tools.example.com", "tools.example.com:8443", "localhost", "[::1]:8080", " a.example "] {
            assert_eq!(check_hosts(&[host.to_owned()]), Ok(()), "{host}");
        }
        for host in
            ["", "https://tools.example.com", "tools.example.com/", "*.example.com", "ann@a.example", "a.example:99999"]
        {
            let told = check_hosts(&["fine.example".to_owned(), host.to_owned()]).unwrap_err();
            assert!(told.starts_with(&format!("`hosts` has `{host}`")), "{told}");
        }
        for origin in [
            "https://app.example.com",
            "http://localhost:3000",
            "https://app.example.com:*",
            "app://x",
            "https://a.example/",
        ] {
            assert_eq!(check_origins(&[origin.to_owned()]), Ok(()), "{origin}");
        }
        for origin in ["", "app.example.com", "https://", "https://*.example.com", "https://app.example.com/login", "*"]
        {
            let told = check_origins(&[origin.to_owned()]).unwrap_err();
            assert!(told.starts_with(&format!("`origins` has `{origin}`")), "{told}");
        }
    }
}
