//! The refusal of a request whose sender a server does not know.

use http::HeaderValue;

/// A request without a valid identity: HTTP status 401, with `WWW-Authenticate` to say how to authenticate; or, if
/// credentials cannot be checked now, 503.
#[derive(Debug, Clone)]
pub struct Unauthorized {
    pub(crate) challenge: HeaderValue,
    /// True if nothing is known of the credentials.
    pub(crate) is_unavailable: bool,
}

impl Unauthorized {
    /// Asks for a bearer token.
    pub const fn bearer() -> Self {
        Self { challenge: HeaderValue::from_static("Bearer"), is_unavailable: false }
    }

    /// Refuses a request for now, as its credentials cannot be checked: HTTP status 503. Unlike 401, it does not tell a
    /// client to throw its credentials away.
    pub const fn unavailable() -> Self {
        Self { challenge: HeaderValue::from_static("Bearer"), is_unavailable: true }
    }

    /// Asks as the value of `WWW-Authenticate` says (RFC 9110, section 11.6.1), such as
    /// `Bearer resource_metadata="https://api.example.com/.well-known/oauth-protected-resource"` (RFC 9728).
    ///
    /// A text that can't be a header value asks for a bearer token.
    pub fn challenge(challenge: &str) -> Self {
        HeaderValue::from_str(challenge)
            .map_or_else(|_| Self::bearer(), |challenge| Self { challenge, is_unavailable: false })
    }
}
