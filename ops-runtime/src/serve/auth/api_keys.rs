//! API keys, in a header, the query or a cookie.

use std::fmt;
use std::future::Future;

use http::header::COOKIE;
use http::request::Parts;

use super::super::read::Escaping;
use super::known::Known;
use crate::model::unauthorized::Unauthorized;
use crate::run::authenticator::{Authenticator, key_challenge};
use crate::{BoxFuture, Identity, ParameterLocation, SecurityKind, SecurityScheme};

/// Authenticates by API keys from a list or a lookup.
///
/// An unknown key is refused with 401.
///
/// ```
/// use ops_runtime::Registry;
/// use ops_runtime::access::Identity;
/// use ops_runtime::serve::{ApiKeys, HttpServer};
///
/// let keys = ApiKeys::header("x-api-key").with_key("s3cret", Identity::new("ann").with_scope("pets:read"));
/// let server = HttpServer::new(Registry::new()).with_authenticator(keys);
/// # let _ = server;
/// ```
#[derive(Clone)]
pub struct ApiKeys {
    location: ParameterLocation,
    name: String,
    known: Known,
}

impl ApiKeys {
    /// Makes an authenticator for keys in a header, such as `x-api-key`.
    pub fn header(name: impl Into<String>) -> Self {
        Self::at(ParameterLocation::Header, name)
    }

    /// Makes an authenticator for keys in a parameter of the query. They appear in the logs of proxies and in browser histories: prefer a header.
    pub fn query(name: impl Into<String>) -> Self {
        Self::at(ParameterLocation::Query, name)
    }

    /// Makes an authenticator for keys in a cookie, which must be unescaped.
    ///
    /// Browsers also send cookies with requests of pages of other sites: set `SameSite` on the cookie, and
    /// [`with_hosts`](super::super::HttpServer::with_hosts), so that such requests are refused.
    pub fn cookie(name: impl Into<String>) -> Self {
        Self::at(ParameterLocation::Cookie, name)
    }

    fn at(location: ParameterLocation, name: impl Into<String>) -> Self {
        Self { location, name: name.into(), known: Known::default() }
    }

    /// Adds a key with its holder. An empty key is never accepted. A warning is logged for a key that no request can
    /// have in this place, such as one that ends with a line break.
    #[must_use]
    pub fn with_key(mut self, key: impl AsRef<str>, holder: Identity) -> Self {
        match self.location {
            // Escaped, it may have any characters.
            ParameterLocation::Query => self.known.add(key.as_ref(), holder),
            ParameterLocation::Cookie => self.known.add_in_cookie(key.as_ref(), holder),
            _ => self.known.add_in_header(key.as_ref(), holder),
        }
        self
    }

    /// Sets a lookup for keys that were not added. It returns the holder, or `None` for an invalid key.
    ///
    /// If the lookup fails, it returns [`Unauthorized::unavailable`].
    #[must_use]
    pub fn with_lookup<F, Fut, I>(mut self, lookup: F) -> Self
    where
        F: Fn(String) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<I, Unauthorized>> + Send + 'static,
        I: Into<Option<Identity>>,
    {
        self.known.set_lookup(lookup);
        self
    }

    /// The keys of a request; if there are several, all are invalid.
    fn keys(&self, request: &Parts) -> Vec<Option<String>> {
        let text = |key: &[u8]| std::str::from_utf8(key).ok().map(str::to_owned);
        match self.location {
            ParameterLocation::Header => {
                let values = request.headers.get_all(self.name.as_str()).iter();
                values.map(|value| text(value.as_bytes())).collect()
            }
            ParameterLocation::Cookie => {
                // Cookies of other applications on the host may be any bytes.
                let values = request.headers.get_all(COOKIE).iter();
                let pairs =
                    values.flat_map(|value| value.as_bytes().split(|byte| *byte == b';')).map(<[u8]>::trim_ascii);
                let keys = pairs.filter_map(|pair| pair.strip_prefix(self.name.as_bytes())?.strip_prefix(b"="));
                keys.map(text).collect()
            }
            _ => {
                let pairs = request.uri.query().unwrap_or_default().split('&');
                let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
                let is_own = |name: &str| Escaping::Form.undo(name).is_ok_and(|name| name == self.name);
                pairs.filter(|(name, _)| is_own(name)).map(|(_, key)| Escaping::Form.undo(key).ok()).collect()
            }
        }
    }
}

impl Authenticator for ApiKeys {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        let refused = || Unauthorized::challenge(&key_challenge(self.location, &self.name));
        let mut keys = self.keys(request);
        match (keys.pop(), keys.is_empty()) {
            (None, _) => Box::pin(async { Ok(None) }),
            (Some(Some(key)), true) => self.known.find(key, refused()),
            _ => {
                let refused = refused();
                Box::pin(async { Err(refused) })
            }
        }
    }

    fn schemes(&self) -> Vec<SecurityScheme> {
        let kind = SecurityKind::ApiKey { location: self.location, name: self.name.clone().into() };
        vec![SecurityScheme::owned(self.name.clone(), kind)]
    }

    fn is_exact(&self) -> bool {
        true
    }
}

impl fmt::Debug for ApiKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKeys").field("location", &self.location).field("name", &self.name).finish_non_exhaustive()
    }
}
