//! Checks the `Host` and the `Origin` of requests to a server.

use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};

/// The hosts of a server, and the origins of the pages that may send requests.
///
/// `Host` has to be one of the hosts. `Origin`, if a browser sends it, has to be a page of one of them or one of the
/// origins. A server that has any host accepts requests of its own pages:
/// those that the browser marks as such (`Sec-Fetch-Site`), or whose origin is the host that the request names.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    /// `None` for any host.
    hosts: Option<Vec<(String, Option<u16>)>>,
    origins: Vec<Page>,
}

/// The header in which a browser tells the relation of the page to the server (Fetch Metadata, section 2.4).
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// The names of the local host.
const LOCAL: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// The names of the local host for a server at a loopback address, which may be another one, such as `127.0.1.1`: no
/// name of a foreign host stands for an address.
#[cfg(feature = "http-server")]
pub fn local_hosts(address: std::net::IpAddr) -> Vec<String> {
    let own = if address.is_ipv6() { format!("[{address}]") } else { address.to_string() };
    LOCAL.map(str::to_owned).into_iter().chain([own]).collect()
}

/// An allowed origin.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    scheme: String,
    host: String,
    /// `None` for any port.
    port: Option<u16>,
}

impl Default for Door {
    /// Only the local host.
    fn default() -> Self {
        let mut door = Self::any();
        door.set_hosts(LOCAL.map(str::to_owned));
        door
    }
}

impl Door {
    /// Any host, and only pages of the server itself.
    pub(crate) fn any() -> Self {
        Self { hosts: None, origins: Vec::new() }
    }

    pub(crate) fn set_hosts(&mut self, hosts: impl IntoIterator<Item = String>) {
        let named = |host: String| {
            if !is_host(&host) {
                tracing::warn!(
                    host,
                    "no request names this host: it is `HOST` or `HOST:PORT`, without a scheme or a pattern"
                );
            }
            named(&host)
        };
        self.hosts = Some(hosts.into_iter().map(named).collect());
    }

    /// Accepts any host.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn set_any_host(&mut self) {
        self.hosts = None;
    }

    /// True if any host is accepted.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn has_any_host(&self) -> bool {
        self.hosts.is_none()
    }

    /// Allows pages of another origin, such as `https://app.example.com`, or `https://app.example.com:*` for any port.
    pub(crate) fn add_origin(&mut self, origin: &str) {
        let (origin, any) = origin.strip_suffix(":*").map_or((origin, false), |origin| (origin, true));
        match page(origin) {
            Some(page) => self.origins.push(Page { port: if any { None } else { page.port }, ..page }),
            None => tracing::warn!(origin, "this is no origin: `https://HOST` or `https://HOST:PORT`"),
        }
    }

    /// True if origins are allowed by name.
    #[cfg(feature = "http-server")]
    pub(crate) fn has_origins(&self) -> bool {
        !self.origins.is_empty()
    }

    /// True if an origin is allowed by name.
    #[cfg(any(feature = "http-server", feature = "mcp-server"))]
    pub(crate) fn lists(&self, origin: &str) -> bool {
        page(origin).is_some_and(|page| self.is_listed(&page))
    }

    fn is_listed(&self, page: &Page) -> bool {
        self.origins.iter().any(|allowed| {
            allowed.scheme == page.scheme
                && allowed.host == page.host
                && (allowed.port.is_none() || allowed.port == page.port)
        })
    }

    /// Checks the head of a request; the error is the status to refuse it with.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), StatusCode> {
        let own = one(headers, &header::HOST)?;
        let has_origin = headers.contains_key(header::ORIGIN);
        let is_one = |own| self.hosts.iter().flatten().any(|(name, port)| port.is_none() && name == own);
        if !has_origin && (self.hosts.is_none() || own.is_some_and(is_one)) {
            return Ok(());
        }
        let host = match own {
            Some(host) => named(host),
            // HTTP/2 has it in the URI.
            None => named(uri.authority().ok_or(StatusCode::BAD_REQUEST)?.as_str()),
        };
        // Clients leave out the default port of a scheme.
        let is_at = |port: u16, at: Option<u16>| at.map_or(is_default(port), |at| at == port);
        let is_ours = |(name, port): &(String, Option<u16>), of: &str, at: Option<u16>| {
            name == of && port.is_none_or(|port| is_at(port, at))
        };
        if self.hosts.as_ref().is_some_and(|hosts| !hosts.iter().any(|ours| is_ours(ours, &host.0, host.1))) {
            tracing::warn!("a request for another host is refused (`with_hosts`)");
            return Err(StatusCode::FORBIDDEN);
        }
        let Some(origin) = one(headers, &header::ORIGIN)? else { return Ok(()) };
        let allowed = page(origin).is_some_and(|page| {
            let web = matches!(page.scheme.as_str(), "http" | "https");
            let own = || match &self.hosts {
                Some(hosts) => hosts.iter().any(|ours| is_ours(ours, &page.host, page.port)),
                // Behind a proxy, the request may name another host than the browser has used.
                None => match headers.get(FETCH_SITE) {
                    Some(site) => site == "same-origin",
                    None => page.host == host.0 && page.port == host.1.or(port_of(&page.scheme)),
                },
            };
            self.is_listed(&page) || web && own()
        });
        if allowed {
            return Ok(());
        }
        tracing::warn!("a request of a page of another origin is refused (`with_origins`)");
        Err(StatusCode::FORBIDDEN)
    }
}

/// The value of a header that may be present once.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a str>, StatusCode> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(Some).map_err(|_| StatusCode::BAD_REQUEST),
        (Some(_), Some(_)) => Err(StatusCode::BAD_REQUEST),
    }
}

/// True if the text is a valid host.
fn is_host(host: &str) -> bool {
    let host = host.trim();
    let Ok(authority) = Authority::try_from(host) else { return false };
    // Without user information.
    let Some(port) = host.strip_prefix(authority.host()) else { return false };
    !authority.host().is_empty() && !host.contains('*') && (port.is_empty() || authority.port_u16().is_some())
}

/// The name and the port of a host.
fn named(host: &str) -> (String, Option<u16>) {
    let (name, port) = match Authority::try_from(host.trim()) {
        Ok(authority) => (authority.host().to_owned(), authority.port_u16()),
        Err(_) => (host.trim().to_owned(), None),
    };
    (name.trim_matches(['[', ']']).to_ascii_lowercase(), port)
}

/// The origin of a header, with the default port of its scheme.
fn page(origin: &str) -> Option<Page> {
    let uri = Uri::try_from(origin.trim()).ok()?;
    let scheme = uri.scheme_str()?.to_ascii_lowercase();
    let authority = uri.authority()?;
    let port = authority.port_u16().or(port_of(&scheme));
    Some(Page { scheme, host: authority.host().trim_matches(['[', ']']).to_ascii_lowercase(), port })
}

/// True for the default port of a scheme.
fn is_default(port: u16) -> bool {
    matches!(port, 80 | 443)
}

/// The default port of a scheme.
fn port_of(scheme: &str) -> Option<u16> {
    match scheme {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(door: &Door, host: &str, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        if let Some(origin) = origin {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        door.check(&Uri::from_static("/"), &headers).is_ok()
    }

    #[cfg(feature = "http-server")]
    #[test]
    fn an_address_of_the_local_host() {
        for (address, own) in [("127.0.0.1", "127.0.0.1:9"), ("::1", "[::1]:9"), ("127.0.1.1", "127.0.1.1:9")] {
            let mut door = Door::any();
            door.set_hosts(local_hosts(address.parse().unwrap()));
            assert!(check(&door, own, None) && check(&door, "localhost", None), "{address}");
            assert!(!check(&door, "127.0.0.2", None), "{address}");
        }
    }

    #[test]
    fn the_local_host_alone() {
        let door = Door::default();
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:9", "[::1]:9", "[::1]"] {
            assert!(check(&door, host, None), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.2", ""] {
            assert!(!check(&door, host, None), "{host}");
        }
        for origin in ["http://localhost", "https://127.0.0.1:8443", "http://[::1]:3"] {
            assert!(check(&door, "localhost", Some(origin)), "{origin}");
        }
        for origin in
            ["null", "", "https://evil.example", "file://localhost", "localhost", "http://localhost.evil.example"]
        {
            assert!(!check(&door, "localhost", Some(origin)), "{origin}");
        }
    }

    #[test]
    fn any_host_and_its_own_pages() {
        let mut door = Door::any();
        door.add_origin("https://app.example.com");
        for host in ["localhost", "evil.example", "127.0.0.2:8"] {
            assert!(check(&door, host, None), "{host}");
        }
        let table = [
            ("api.example", "https://api.example", true),
            ("api.example:8080", "http://api.example:8080", true),
            ("api.example:8080", "http://api.example", false),
            ("api.example", "https://app.example.com", true),
            ("api.example", "https://evil.example", false),
            ("api.example", "null", false),
        ];
        for (host, origin, expected) in table {
            assert_eq!(check(&door, host, Some(origin)), expected, "{host} {origin}");
        }
        // What the browser says counts, and no page can say it.
        let said = |site: &str, origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, "10.0.0.1:8080".parse().unwrap());
            headers.insert(header::ORIGIN, origin.parse().unwrap());
            headers.insert(FETCH_SITE, site.parse().unwrap());
            door.check(&Uri::from_static("/"), &headers).is_ok()
        };
        assert!(said("same-origin", "https://api.example") && said("cross-site", "https://app.example.com"));
        assert!(!said("cross-site", "http://10.0.0.1:8080") && !said("same-site", "https://other.example"));
    }

    #[test]
    fn what_no_request_names_is_no_host() {
        for host in [
            "tools.example.com",
            "tools.example.com:8443",
            "localhost",
            "127.0.0.1:1",
            "[::1]",
            "[::1]:8",
            " a.example ",
        ] {
            assert!(is_host(host), "{host}");
        }
        for host in [
            "",
            "https://tools.example.com",
            "tools.example.com/",
            "*.example.com",
            "*",
            "ann@tools.example.com",
            ":8443",
            "a.example:99999",
            "a b",
        ] {
            assert!(!is_host(host), "{host}");
        }
    }

    #[test]
    fn others_by_name() {
        let mut door = Door::default();
        let hosts = ["api.example.com", "api.example.com:8443", "b.example:1", "c.example:443", "d.example:80"];
        door.set_hosts(hosts.map(str::to_owned));
        door.add_origin("https://app.example.com");
        door.add_origin("http://dev.example.com:*");
        assert!(check(&door, "api.example.com:8443", None) && !check(&door, "localhost", None));
        assert!(check(&door, "b.example:1", None) && !check(&door, "b.example:2", None));
        // A default port may be left out.
        for host in ["c.example", "d.example"] {
            assert!(check(&door, host, None) && !check(&door, &format!("{host}:8080"), None), "{host}");
        }
        assert!(check(&door, "c.example:443", None) && check(&door, "c.example", Some("https://c.example")));
        assert!(!check(&door, "b.example", None) && !check(&door, "c.example", Some("https://c.example:444")));
        let page = |origin| check(&door, "api.example.com", Some(origin));
        assert!(
            page("https://app.example.com") && page("https://app.example.com:443") && page("https://api.example.com")
        );
        assert!(page("http://dev.example.com:3000") && !page("https://dev.example.com"));
        assert!(!page("http://app.example.com") && !page("https://app.example.com:444"));
    }
}
