//! Bearer tokens (RFC 6750).

use std::fmt;
use std::future::Future;

use http::header::AUTHORIZATION;
use http::request::Parts;

use super::known::Known;
use crate::model::unauthorized::Unauthorized;
use crate::run::authenticator::Authenticator;
use crate::{BoxFuture, Identity};

/// Authenticates by bearer tokens from a list or a lookup.
///
/// The token is in the header `Authorization: Bearer TOKEN`. An unknown token is refused with 401. A request with
/// another scheme in this header has no credentials. The identity keeps the token: see [`Identity::with_token`].
///
/// ```
/// use ops_runtime::Registry;
/// use ops_runtime::access::Identity;
/// use ops_runtime::serve::{BearerTokens, HttpServer};
///
/// let tokens = BearerTokens::new().with_token("s3cret", Identity::new("ann").with_scope("pets:read"));
/// let server = HttpServer::new(Registry::new()).with_authenticator(tokens);
/// # let _ = server;
/// ```
#[derive(Clone, Default)]
pub struct BearerTokens {
    known: Known,
}

impl BearerTokens {
    /// Makes an authenticator that knows no tokens yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token with its holder. An empty token is never accepted. A warning is logged for a token that no
    /// request can have, such as one that ends with a line break.
    #[must_use]
    pub fn with_token(mut self, token: impl AsRef<str>, holder: Identity) -> Self {
        self.known.add_in_header(token.as_ref(), holder);
        self
    }

    /// Sets a lookup for tokens that were not added. It returns the holder, or `None` for an invalid token.
    ///
    /// If the lookup fails, it returns [`Unauthorized::unavailable`]. Look up the digest of a token instead of the
    /// token itself, so that the time of the lookup reveals nothing about other tokens.
    ///
    /// ```
    /// # use ops_runtime::access::Identity;
    /// # use ops_runtime::serve::{BearerTokens, Unauthorized};
    /// # async fn holder(token: &str) -> std::io::Result<Option<String>> { Ok(None) }
    /// let tokens = BearerTokens::new().with_lookup(|token| async move {
    ///     let holder = holder(&token).await.map_err(|_| Unauthorized::unavailable())?;
    ///     Ok(holder.map(Identity::new))
    /// });
    /// # let _ = tokens;
    /// ```
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
}

impl Authenticator for BearerTokens {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        match token(request) {
            Ok(Some(token)) => {
                let (found, token) = (self.known.find(token.to_owned(), invalid_token(None)), token.to_owned());
                Box::pin(async move { Ok(found.await?.map(|holder| keeping(holder, token))) })
            }
            Ok(None) => Box::pin(async { Ok(None) }),
            Err(refused) => Box::pin(async { Err(refused) }),
        }
    }

    fn is_exact(&self) -> bool {
        true
    }
}

impl fmt::Debug for BearerTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerTokens").finish_non_exhaustive()
    }
}

/// The token of a request (RFC 6750, section 2.1); `None` without credentials, or with those of another scheme.
///
/// # Errors
/// If there are several headers, or no token in it.
pub(super) fn token(request: &Parts) -> Result<Option<&str>, Unauthorized> {
    let mut values = request.headers.get_all(AUTHORIZATION).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(invalid_token(Some("there are several headers `Authorization`")));
    }
    let text = value.to_str().map_err(|_| invalid_token(None))?;
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("Bearer") {
        return Ok(None);
    }
    match token.trim_matches(' ') {
        "" => Err(invalid_token(None)),
        token => Ok(Some(token)),
    }
}

/// The holder of a token, with that token unless the authenticator has set another.
pub(super) fn keeping(holder: Identity, token: String) -> Identity {
    if holder.token().is_some() { holder } else { holder.with_token(token) }
}

/// The refusal of a token (RFC 6750, section 3.1), with the reason if its holder may know it.
pub(super) fn invalid_token(description: Option<&'static str>) -> Unauthorized {
    let description = description.map(|description| format!(", error_description=\"{description}\""));
    Unauthorized::challenge(&format!("Bearer error=\"invalid_token\"{}", description.unwrap_or_default()))
}
