//! The credentials of an HTTP client, as they are configured.

use super::HttpConfig;
use crate::http::Auth;
use crate::http::auth::Environment;

impl HttpConfig {
    /// Sets the credentials for every operation that requires some, even of another kind, or that does not describe any.
    ///
    /// An operation that allows only anonymous calls gets none; one that also allows them gets these if they fit. An
    /// operation that requires others, for which there are none [by name](Self::with_credentials), gets these
    /// nevertheless, since documents are often wrong about it.
    #[must_use]
    pub fn with_auth(mut self, auth: impl Into<Auth>) -> Self {
        self.auth = Some(auth.into());
        self
    }

    /// Sets the credentials for a security scheme, by the name that the document gives it.
    ///
    /// An operation may have several alternatives to authenticate: the first whose credentials are all set is used, and the
    /// credentials of the others are not sent. To send something beside them, such as the name of a user for whom an
    /// administrator acts, use [`with_header`](Self::with_header). If there is no such alternative, the request is sent without
    /// credentials, which is logged at the level `DEBUG`.
    ///
    /// A name that no operation of the client has is probably wrong. [`HttpClient::bind`](crate::http::HttpClient::bind) and
    /// [`HttpClient::add`](crate::http::HttpClient::add) log it at the level `WARN`, with the nearest names. A call that
    /// would be sent without credentials is refused with a `VALIDATION_ERROR` if it requires a scheme with a similar
    /// name.
    ///
    /// ```
    /// use ops_runtime::http::{Auth, HttpConfig};
    ///
    /// let config = HttpConfig::new()
    ///     .with_base_url("https://api.example.com")
    ///     .with_credentials("petstore_auth", Auth::client_credentials("my-app", "s3cr3t"))
    ///     .with_credentials("api_key", Auth::api_key("k3y"));
    /// ```
    #[must_use]
    pub fn with_credentials(mut self, scheme: impl Into<String>, auth: impl Into<Auth>) -> Self {
        self.credentials.insert(scheme.into(), auth.into());
        self
    }

    /// Reads credentials from environment variables, for the security schemes of operations.
    ///
    /// For the prefix `SHOP` and a scheme of the name `petStoreAuth`, the first of these that is set is used:
    ///
    /// | kind of scheme | its own variable | for all schemes of the kind |
    /// |---|---|---|
    /// | bearer, `OpenID` Connect | `SHOP_PET_STORE_AUTH` | `SHOP_TOKEN` |
    /// | OAuth 2, a token | `SHOP_PET_STORE_AUTH` | `SHOP_TOKEN` |
    /// | OAuth 2, client credentials | `SHOP_PET_STORE_AUTH_CLIENT_ID` and `.._CLIENT_SECRET` | `SHOP_CLIENT_ID` and `SHOP_CLIENT_SECRET` |
    /// | API key | `SHOP_PET_STORE_AUTH` | `SHOP_API_KEY` |
    /// | basic | `SHOP_PET_STORE_AUTH`, as `user:password` | `SHOP_USER` and `SHOP_PASSWORD` |
    ///
    /// The variables are read now. One that is empty or not UTF-8 counts as not set. Credentials that the program sets
    /// take precedence, and an operation that requires none gets none. If the program passes on the token of the caller
    /// ([`Auth::pass_on`], [`Auth::exchange`]), credentials of the environment are only sent beside it.
    ///
    /// ```
    /// use ops_runtime::http::HttpConfig;
    ///
    /// let config = HttpConfig::new().with_base_url("https://shop.example.com/v1").with_credentials_from_env("SHOP");
    /// ```
    #[must_use]
    pub fn with_credentials_from_env(mut self, prefix: impl Into<String>) -> Self {
        self.environment = Environment::read(prefix.into(), &[]);
        self
    }

    /// Like [`with_credentials_from_env`](Self::with_credentials_from_env), without the variables of other documents.
    #[cfg(feature = "gateway")]
    pub(crate) fn with_own_credentials_from_env(mut self, prefix: &str, others: &[String]) -> Self {
        self.environment = Environment::read(prefix.to_owned(), others);
        self
    }

    /// True if requests of an operation may have credentials for which the operation sets the server.
    #[cfg(feature = "gateway")]
    pub(crate) fn proves_anywhere(&self, binding: &crate::HttpBinding) -> bool {
        let mut schemes = binding.security.iter().flat_map(|way| way.schemes.iter());
        let is_set = self.auth.is_some() || !self.credentials.is_empty() || !self.headers.is_empty();
        self.base_url.is_none() && (is_set || schemes.any(|scheme| self.environment.auth(scheme).is_some()))
    }
}
