//! Checks the `Host` and the `Origin` of requests to a server.

use http::uri::Authority;
use http::{HeaderMap, HeaderName, StatusCode, Uri, header};

/// The hosts of a server, and the origins of the pages that may send requests.
///
/// `Host` has to be one of the hosts. `Origin`, if a browser sends it, has to be a page of one of them or one of the
/// origins.
///
/// A server that has any host cannot tell its own pages from those of a foreign name that was made to stand for its
/// address (DNS rebinding): for both, the origin is the host that the request names. An HTTP server accepts them, since
/// it has pages of its own that call it, such as `/docs`. An MCP server serves none, and must check `Origin` because of
/// such names (MCP, Streamable HTTP, security warning): if it has any host, it accepts only the origins.
#[derive(Debug, Clone)]
pub(crate) struct Door {
    /// `None` for any host.
    hosts: Option<Vec<(String, Option<u16>)>>,
    /// True if a server that has any host accepts pages that seem to be its own: those that the browser marks as such
    /// (`Sec-Fetch-Site`), or whose origin is the host that the request names.
    has_pages: bool,
    origins: Vec<Page>,
}

/// The status and the text of the response to a request that is refused.
pub(crate) type Refusal = (StatusCode, &'static str);

const FOREIGN: Refusal = (StatusCode::FORBIDDEN, "the server is not reached by that name, or from that page");
const NO_HOST: Refusal =
    (StatusCode::BAD_REQUEST, "the request does not name the server: send the header `Host` with the server's name");
const BAD_HOST: Refusal =
    (StatusCode::BAD_REQUEST, "the header `Host` came twice, or is not ASCII: send it once, with the server's name");
const BAD_ORIGIN: Refusal =
    (StatusCode::BAD_REQUEST, "the header `Origin` came twice, or is not ASCII: send it once, with the page's origin");

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
    /// Any host, and only pages that seem to be the server's own.
    pub(crate) fn any() -> Self {
        Self { hosts: None, has_pages: true, origins: Vec::new() }
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

    /// Accepts any host, and no pages but those of allowed origins.
    #[cfg(feature = "mcp-server")]
    pub(crate) fn set_any_host(&mut self) {
        (self.hosts, self.has_pages) = (None, false);
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

    /// Checks the head of a request.
    ///
    /// # Errors
    /// If it is refused.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let own = one(headers, &header::HOST).ok_or(BAD_HOST)?;
        let has_origin = headers.contains_key(header::ORIGIN);
        let is_one = |own| self.hosts.iter().flatten().any(|(name, port)| port.is_none() && name == own);
        if !has_origin && (self.hosts.is_none() || own.is_some_and(is_one)) {
            return Ok(());
        }
        let host = match own {
            Some(host) => named(host),
            // HTTP/2 has it in the URI.
            None => named(uri.authority().ok_or(NO_HOST)?.as_str()),
        };
        // Clients leave out the default port of a scheme.
        let is_at = |port: u16, at: Option<u16>| at.map_or(is_default(port), |at| at == port);
        let is_ours = |(name, port): &(String, Option<u16>), of: &str, at: Option<u16>| {
            name == of && port.is_none_or(|port| is_at(port, at))
        };
        if self.hosts.as_ref().is_some_and(|hosts| !hosts.iter().any(|ours| is_ours(ours, &host.0, host.1))) {
            tracing::warn!("a request for another host is refused (`with_hosts`)");
            return Err(FOREIGN);
        }
        let Some(origin) = one(headers, &header::ORIGIN).ok_or(BAD_ORIGIN)? else { return Ok(()) };
        let allowed = page(origin).is_some_and(|page| {
            let web = matches!(page.scheme.as_str(), "http" | "https");
            let own = || match &self.hosts {
                Some(hosts) => hosts.iter().any(|ours| is_ours(ours, &page.host, page.port)),
                None if !self.has_pages => false,
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
        tracing::warn!("a request of a page is refused: allow its origin (`with_origins`) or its host (`with_hosts`)");
        Err(FOREIGN)
    }
}

/// The value of a header that may be present once, if it is; `None` if it is present twice, or is not ASCII.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<Option<&'a str>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Some(None),
        (Some(value), None) => value.to_str().ok().map(Some),
        (Some(_), Some(_)) => None,
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

    #[cfg(feature = "mcp-server")]
    #[test]
    fn any_host_and_no_pages() {
        let mut door = Door::default();
        door.set_any_host();
        door.add_origin("https://app.example.com");
        let check = |site: Option<&'static str>, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            for (name, value) in [(header::HOST, Some("any.example")), (FETCH_SITE, site), (header::ORIGIN, origin)] {
                if let Some(value) = value {
                    headers.insert(name, http::HeaderValue::from_static(value));
                }
            }
            door.check(&Uri::from_static("/"), &headers)
        };
        for site in [None, Some("same-origin"), Some("cross-site")] {
            assert_eq!(check(site, None), Ok(()), "{site:?}");
            assert_eq!(check(site, Some("https://app.example.com")), Ok(()), "{site:?}");
            for origin in ["http://any.example", "https://any.example", "https://evil.example", "null"] {
                assert_eq!(check(site, Some(origin)), Err(FOREIGN), "{site:?} {origin}");
            }
        }
    }

    #[test]
    fn a_bad_head_is_told_what_to_send() {
        let all = |names: &[(HeaderName, &'static [u8])]| {
            let mut headers = HeaderMap::new();
            for (name, value) in names {
                headers.append(name, http::HeaderValue::from_bytes(value).unwrap());
            }
            headers
        };
        let (host, origin) = ((header::HOST, &b"localhost"[..]), (header::ORIGIN, &b"http://localhost"[..]));
        let table = [
            (all(&[]), NO_HOST),
            (all(&[host.clone(), host.clone()]), BAD_HOST),
            (all(&[(header::HOST, &b"\xe9"[..])]), BAD_HOST),
            (all(&[host.clone(), origin.clone(), origin]), BAD_ORIGIN),
            (all(&[host, (header::ORIGIN, &b"\xe9"[..])]), BAD_ORIGIN),
        ];
        for (headers, expected) in table {
            assert_eq!(Door::default().check(&Uri::from_static("/"), &headers), Err(expected), "{headers:?}");
        }
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
