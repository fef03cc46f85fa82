//! Redacts secrets from errors and logs.
//!
//! A server can repeat whatever it was sent: in a body, a header, a redirect or on standard error. A call with
//! credentials carries a [`Kept`], which can collect them. When an error or a log line is made from a server's text,
//! they are replaced by `***` (`Secrets`). A call that succeeds does none of this, and its data are not changed.

#[cfg(any(feature = "http", feature = "mcp"))]
mod hide;
#[cfg(any(feature = "http", feature = "mcp"))]
mod plain;

#[cfg(feature = "registry")]
use std::borrow::Cow;
use std::fmt;
#[cfg(any(feature = "http", feature = "mcp"))]
use std::sync::Arc;

#[cfg(all(feature = "http", any(feature = "jwt", feature = "openapi")))]
pub(crate) use self::hide::looks_like_key;
#[cfg(any(feature = "http", feature = "mcp"))]
pub(crate) use self::hide::{KeepsSecrets, Secrets, names_a_secret};

/// Parts of the names of members, headers and variables that contain secrets, in lower case and without separators.
#[cfg(any(feature = "http", feature = "mcp"))]
pub(crate) const NAMES: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "token",
    "key",
    "authorization",
    "credential",
    "cookie",
    "session",
    "bearer",
];

/// What knows the secrets that went out with a call, if there is any. It is no part of what holds it: it does not show, and
/// any two are equal.
#[derive(Clone, Default)]
pub(crate) struct Kept(#[cfg(any(feature = "http", feature = "mcp"))] Option<Arc<dyn KeepsSecrets>>);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl PartialEq for Kept {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Kept {}

#[cfg(feature = "registry")]
impl Kept {
    /// The text without the secrets.
    #[cfg_attr(
        not(any(feature = "http", feature = "mcp")),
        allow(clippy::unused_self, reason = "without other servers there is nothing to hide")
    )]
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        #[cfg(any(feature = "http", feature = "mcp"))]
        if self.0.is_some() {
            return self.secrets().text(text);
        }
        Cow::Borrowed(text)
    }
}

#[cfg(any(feature = "http", feature = "mcp"))]
impl Kept {
    pub(crate) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn by(keeper: Arc<dyn KeepsSecrets>) -> Self {
        Self(Some(keeper))
    }

    /// The secrets, to be replaced in more than one text.
    pub(crate) fn secrets(&self) -> Secrets {
        self.0.as_deref().map(Secrets::of).unwrap_or_default()
    }
}
