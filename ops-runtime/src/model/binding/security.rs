//! How callers of an endpoint must authenticate.

use std::borrow::Cow;

use super::ParameterLocation;
use crate::model::text::{List, Text, set};
use crate::model::text_list::TextList;

/// One way to authenticate: all of its schemes together (OpenAPI 3.1, section 4.8.30).
///
/// One without schemes allows anonymous calls.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SecurityRequirement {
    /// The schemes that are needed together.
    pub schemes: List<SecurityScheme>,
}

impl SecurityRequirement {
    /// A requirement of all of these schemes.
    pub const fn new(schemes: &'static [SecurityScheme]) -> Self {
        Self { schemes: Cow::Borrowed(schemes) }
    }
}

/// A scheme, under its name in the document, with the scopes that an operation needs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SecurityScheme {
    /// The name in the document, by which the client's credentials are set.
    pub name: Text,
    /// The kind of scheme.
    pub kind: SecurityKind,
    /// The scopes that the operation needs.
    pub scopes: TextList,
}

impl SecurityScheme {
    /// A scheme without scopes.
    pub const fn new(name: &'static str, kind: SecurityKind) -> Self {
        Self { name: Cow::Borrowed(name), kind, scopes: TextList::new(&[]) }
    }

    /// A scheme without scopes, whose name is loaded at run time.
    pub fn owned(name: impl Into<Text>, kind: SecurityKind) -> Self {
        Self { name: name.into(), kind, scopes: TextList::new(&[]) }
    }

    /// Sets the scopes that the operation needs.
    #[must_use]
    pub const fn with_scopes(mut self, scopes: &'static [&'static str]) -> Self {
        set(&mut self.scopes, TextList::new(scopes));
        self
    }
}

/// How credentials are sent (OpenAPI 3.1, section 4.8.27).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SecurityKind {
    /// `Authorization: Basic`.
    Basic,
    /// `Authorization: Bearer`, with a token that the caller has.
    Bearer,
    /// A key in a header, in the query or in a cookie.
    ApiKey {
        /// The place of the key: `Header`, `Query` or `Cookie`.
        location: ParameterLocation,
        /// The name of the header, parameter or cookie.
        name: Text,
    },
    /// `Authorization: Bearer`, with a token of an OAuth 2 server.
    OAuth2 {
        /// The URL at which client credentials are exchanged for a token, if the document has it. It may be relative to the
        /// server's URL.
        token_url: Option<Text>,
    },
    /// `Authorization: Bearer`, with a token of an `OpenID` Connect provider.
    OpenIdConnect {
        /// The URL at which the provider describes itself. It may be relative to the server's URL.
        url: Text,
    },
    /// Any other scheme, by its name: `mutualTLS`, or another scheme of HTTP such as `digest`.
    Other(Text),
}

impl SecurityKind {
    /// The kind of a scheme that a document requires, but does not describe. No caller of our servers can satisfy it.
    pub const UNKNOWN: Self = Self::Other(Cow::Borrowed("unknown"));
}
