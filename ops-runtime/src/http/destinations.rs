//! The destinations to which servers may lead a client, by redirects and by OAuth metadata.

use std::error::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::{env, fmt};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use tokio::net::lookup_host;
use url::{Host, Url};

use crate::CallError;

/// Decides which addresses servers may lead a client to, by redirects and by the metadata of OAuth.
///
/// Hosts that the program itself names are always allowed. Among other hosts, the default allows public addresses. It
/// allows private ones (RFC 1918, `fc00::/7`, `fec0::/10`, `100.64.0.0/10`) if the program's own URL has a private
/// address or is on this machine, and loopback ones if it is on this machine. It never allows link-local addresses,
/// those of cloud metadata services, or other special ones. Names are looked up, and the client connects to an allowed
/// address. Behind a proxy that looks up names, and in a service of the program's own
/// ([`HttpConfig::with_service`](super::HttpConfig::with_service)), only addresses in URLs and the names of proxies are
/// checked.
///
/// ```
/// use std::net::IpAddr;
/// use ops_runtime::http::{Destinations, HttpConfig};
///
/// // Redirects may lead into the network of the office, and nowhere else.
/// let office = Destinations::only(|address| matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 10));
/// let config = HttpConfig::new().with_base_url("https://api.example.com").with_destinations(office);
/// ```
#[derive(Clone, Default)]
pub struct Destinations(Rule);

#[derive(Clone, Default)]
enum Rule {
    #[default]
    Standard,
    Any,
    Only(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>),
}

impl Destinations {
    /// Makes the default rules: see the [type](Self).
    pub fn standard() -> Self {
        Self::default()
    }

    /// Allows every address.
    pub fn any() -> Self {
        Self(Rule::Any)
    }

    /// Allows only the addresses for which the function returns `true`.
    pub fn only(allowed: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self(Rule::Only(Arc::new(allowed)))
    }

    /// Checks a URL to which a server leads. Names are checked when they are looked up, by a [`Resolver`].
    ///
    /// # Errors
    /// If its host is an address that is not allowed, or names this machine if that is not allowed.
    pub(crate) async fn check(&self, home: &Home, to: &Url) -> Result<(), CallError> {
        self.check_beside(&Proxies::of_environment(), home, to).await
    }

    async fn check_beside(&self, proxies: &Proxies, home: &Home, to: &Url) -> Result<(), CallError> {
        let addresses = match to.host() {
            Some(host) if home.is(&host) => return Ok(()),
            Some(Host::Ipv4(address)) => vec![IpAddr::V4(address)],
            Some(Host::Ipv6(address)) => vec![IpAddr::V6(address)],
            Some(Host::Domain(name)) if is_local(name) => vec![IpAddr::V4(Ipv4Addr::LOCALHOST)],
            // The resolver allows the name of a proxy.
            Some(Host::Domain(name)) if proxies.has(name) => lookup_host((name, 0))
                .await
                .map_or_else(|_| Vec::new(), |found| found.map(|found| found.ip()).collect()),
            _ => return Ok(()),
        };
        let mut allowed = !addresses.is_empty();
        for address in addresses {
            allowed = allowed && self.allows(home, address).await;
        }
        if allowed { Ok(()) } else { Err(CallError::from_error(Refused::of(to.host_str().unwrap_or_default()))) }
    }

    async fn allows(&self, home: &Home, address: IpAddr) -> bool {
        match &self.0 {
            Rule::Any => true,
            Rule::Only(allowed) => allowed(address),
            Rule::Standard => match Class::of(address) {
                Class::Public => true,
                Class::Private => matches!(home.class().await, Class::Private | Class::Loopback),
                Class::Loopback => home.class().await == Class::Loopback,
                Class::Special => false,
            },
        }
    }
}

impl fmt::Debug for Destinations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Rule::Standard => "Destinations::standard()",
            Rule::Any => "Destinations::any()",
            Rule::Only(_) => "Destinations::only(..)",
        })
    }
}

/// A server led to a host whose address is not allowed.
#[derive(Debug)]
pub(super) struct Refused(String);

impl Refused {
    fn of(host: &str) -> Self {
        Self(crate::model::text::readable(host, 200))
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server led to `{}`, whose address is private: allow it by `with_destinations`", self.0)
    }
}

impl Error for Refused {}

/// The hosts of the proxies in the environment. The program trusts them, and a client connects to them instead of the
/// hosts to which servers lead.
#[derive(Debug, Default)]
struct Proxies(Vec<String>);

impl Proxies {
    /// Reads the variables like the built-in engine.
    fn of_environment() -> Self {
        // In a CGI script, a header of the request could set `HTTP_PROXY`.
        if env::var_os("REQUEST_METHOD").is_some() {
            return Self::default();
        }
        let variables = [["HTTP_PROXY", "http_proxy"], ["HTTPS_PROXY", "https_proxy"], ["ALL_PROXY", "all_proxy"]];
        let urls = variables.iter().filter_map(|names| names.iter().find_map(|name| env::var(name).ok()));
        Self(urls.filter_map(|url| Some(url.parse::<http::Uri>().ok()?.host()?.to_owned())).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.iter().any(|host| host.eq_ignore_ascii_case(name))
    }
}

/// The host that the program itself named.
#[derive(Debug, Clone)]
pub(crate) struct Home(Option<Host>);

impl Home {
    pub(crate) fn of(url: &Url) -> Self {
        Self(url.host().map(|host| host.to_owned()))
    }

    /// True if a host is this one.
    pub(crate) fn is(&self, host: &Host<&str>) -> bool {
        self.0.as_ref().is_some_and(|home| match (home, host) {
            (Host::Domain(home), Host::Domain(host)) => home == host,
            (Host::Ipv4(home), Host::Ipv4(host)) => home == host,
            (Host::Ipv6(home), Host::Ipv6(host)) => home == host,
            _ => false,
        })
    }

    async fn class(&self) -> Class {
        match &self.0 {
            None => Class::Public,
            Some(Host::Ipv4(address)) => Class::of(IpAddr::V4(*address)),
            Some(Host::Ipv6(address)) => Class::of(IpAddr::V6(*address)),
            Some(Host::Domain(name)) if is_local(name) => Class::Loopback,
            Some(Host::Domain(name)) => match lookup_host((name.as_str(), 0)).await {
                // With addresses of several classes, the most public counts.
                Ok(found) => found.map(|found| Class::of(found.ip())).min().unwrap_or(Class::Public),
                Err(_) => Class::Public,
            },
        }
    }
}

/// Looks up names, and returns only the addresses to which a client may be led.
#[derive(Debug)]
pub(crate) struct Resolver {
    destinations: Destinations,
    home: Home,
    proxies: Proxies,
}

impl Resolver {
    pub(crate) fn new(destinations: Destinations, home: Home) -> Self {
        Self { destinations, home, proxies: Proxies::of_environment() }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let (destinations, home) = (self.destinations.clone(), self.home.clone());
        let is_named = home.is(&Host::Domain(name.as_str())) || self.proxies.has(name.as_str());
        Box::pin(async move {
            let name = name.as_str();
            let mut allowed: Vec<SocketAddr> = Vec::new();
            for found in lookup_host((name, 0)).await? {
                if is_named || destinations.allows(&home, found.ip()).await {
                    allowed.push(found);
                }
            }
            if allowed.is_empty() {
                return Err(Box::from(Refused::of(name)));
            }
            Ok(Box::new(allowed.into_iter()) as Addrs)
        })
    }
}

/// Kinds of addresses, the more public ones first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Class {
    Public,
    Private,
    Loopback,
    Special,
}

impl Class {
    fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => Self::of_v6(address),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        let [a, b, c, _] = address.octets();
        // Of protocols and of examples; some clouds have their metadata services there, and at one shared address.
        if address == Ipv4Addr::new(100, 100, 100, 200)
            || matches!([a, b, c], [192, 0, 0 | 2] | [198, 51, 100] | [203, 0, 113])
        {
            Self::Special
        } else if address.is_loopback() {
            Self::Loopback
        } else if address.is_private() || (a == 100 && (64..128).contains(&b)) || (a == 198 && matches!(b, 18 | 19)) {
            Self::Private
        } else if a == 0 || a >= 224 || address.is_link_local() {
            Self::Special
        } else {
            Self::Public
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        let [a, b, c, d, e, f, g, h] = address.segments();
        let v4 = |high: u16, low: u16| Self::of_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
        if address.is_loopback() {
            return Self::Loopback;
        }
        match [a, b, c, d, e, f] {
            // Addresses of IPv4 in another form: mapped, compatible, NAT64, 6to4.
            [0, 0, 0, 0, 0, 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0] => v4(g, h),
            [0, 0, 0, 0, 0, 0] => {
                if address.is_unspecified() {
                    Self::Special
                } else {
                    v4(g, h)
                }
            }
            [0x2002, ..] => v4(b, c),
            // The metadata services of two clouds.
            [0xfd00, 0xec2, 0, 0, 0, 0] | [0xfd20, 0xce, 0, 0, 0, 0] if [g, h] == [0, 0x254] => Self::Special,
            // Unique local, and site local, which RFC 3879 has deprecated and some networks still use.
            _ if a & 0xfe00 == 0xfc00 || a & 0xffc0 == 0xfec0 => Self::Private,
            _ if a & 0xffc0 == 0xfe80 || a & 0xff00 == 0xff00 => Self::Special,
            // Teredo, and NAT64 of a network's own.
            [0x2001, 0, ..] | [0x64, 0xff9b, 1, ..] => Self::Special,
            _ => Self::Public,
        }
    }
}

/// True if a name is this machine's by definition (RFC 6761, section 6.3).
pub(crate) fn is_local(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.to_ascii_lowercase().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_classed() {
        for (address, class) in [
            ("8.8.8.8", Class::Public),
            ("10.1.2.3", Class::Private),
            ("172.31.0.1", Class::Private),
            ("192.168.1.1", Class::Private),
            ("100.64.0.1", Class::Private),
            ("127.8.9.1", Class::Loopback),
            ("0.0.0.0", Class::Special),
            ("169.254.169.254", Class::Special),
            ("224.0.0.1", Class::Special),
            ("192.0.0.192", Class::Special),
            ("192.0.1.1", Class::Public),
            ("192.0.2.1", Class::Special),
            ("198.51.100.1", Class::Special),
            ("203.0.113.1", Class::Special),
            ("100.100.100.200", Class::Special),
            ("100.100.100.201", Class::Private),
            ("::ffff:192.0.0.192", Class::Special),
            ("fd00:ec2::254", Class::Special),
            ("fd20:ce::254", Class::Special),
            ("fd20:ce::255", Class::Private),
            ("255.255.255.255", Class::Special),
            ("2606:4700::1111", Class::Public),
            ("::1", Class::Loopback),
            ("::", Class::Special),
            ("fd00::1", Class::Private),
            ("fe80::1", Class::Special),
            ("febf::1", Class::Special),
            ("fec0::1", Class::Private),
            ("feff:ffff::1", Class::Private),
            ("ff02::1", Class::Special),
            ("::ffff:127.0.0.1", Class::Loopback),
            ("::ffff:169.254.169.254", Class::Special),
            ("64:ff9b::a00:1", Class::Private),
            ("2002:7f00:1::", Class::Loopback),
            ("2001:0:1::", Class::Special),
        ] {
            assert_eq!(Class::of(address.parse().unwrap()), class, "{address}");
        }
    }

    #[tokio::test]
    async fn servers_lead_no_further_in_than_the_program_went() {
        let led = |from: &'static str, to: &'static str, rule: Destinations| async move {
            rule.check(&Home::of(&Url::parse(from).unwrap()), &Url::parse(to).unwrap()).await.is_ok()
        };
        for (from, to, expected) in [
            ("https://8.8.8.8", "https://1.1.1.1", true),
            ("https://8.8.8.8", "https://named.example", true),
            ("https://8.8.8.8", "http://10.0.0.1", false),
            ("https://8.8.8.8", "http://localhost:80", false),
            ("https://8.8.8.8", "http://x.localhost.", false),
            ("https://8.8.8.8", "http://[::1]", false),
            ("https://10.0.0.1", "http://192.168.0.1", true),
            ("https://10.0.0.1", "http://127.0.0.1", false),
            ("https://localhost", "http://127.0.0.1", true),
            ("https://localhost", "http://10.0.0.1", true),
            ("https://localhost", "http://169.254.169.254", false),
            ("https://169.254.169.254", "http://169.254.169.254/x", true),
        ] {
            assert_eq!(led(from, to, Destinations::standard()).await, expected, "{from} to {to}");
            assert!(led(from, to, Destinations::any()).await);
        }
        let only = || Destinations::only(|address| address == IpAddr::from([10, 0, 0, 1]));
        assert!(led("https://8.8.8.8", "http://10.0.0.1", only()).await);
        assert!(!led("https://8.8.8.8", "http://1.1.1.1", only()).await);
    }

    #[tokio::test]
    async fn names_are_looked_up_before_they_are_asked() {
        let resolver = |home: &str, proxies: &[&str]| Resolver {
            destinations: Destinations::standard(),
            home: Home::of(&Url::parse(home).unwrap()),
            proxies: Proxies(proxies.iter().map(|host| (*host).to_owned()).collect()),
        };
        let name = || "localhost".parse::<Name>().unwrap();
        assert!(resolver("https://8.8.8.8", &[]).resolve(name()).await.err().unwrap().is::<Refused>());
        assert!(resolver("https://127.0.0.1", &[]).resolve(name()).await.is_ok());
        assert!(resolver("https://localhost", &[]).resolve(name()).await.is_ok());
        assert!(resolver("https://8.8.8.8", &["LocalHost"]).resolve(name()).await.is_ok());
    }

    #[tokio::test]
    async fn a_url_of_a_proxy_is_looked_up_first() {
        let (home, proxies) =
            (Home::of(&Url::parse("https://8.8.8.8").unwrap()), Proxies(vec!["proxy.invalid".into()]));
        for (to, is_allowed) in [("http://proxy.invalid", false), ("http://other.invalid", true)] {
            let checked = Destinations::standard().check_beside(&proxies, &home, &Url::parse(to).unwrap()).await;
            assert_eq!(checked.is_ok(), is_allowed, "{to}");
        }
    }
}
