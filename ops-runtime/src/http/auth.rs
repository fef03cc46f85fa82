//! Credentials, which `Debug` never shows.

mod environment;
mod exchange;
mod oauth;
mod plan;
mod secret;
mod slot;
mod source;
mod token;

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderName, HeaderValue};

use url::Url;

use super::invalid;
use crate::CallError;
use crate::model::secrets::Secrets;

pub(super) use environment::Environment;
pub use exchange::TokenExchange;
pub use oauth::ClientCredentials;
pub(super) use plan::{Applied, Credentials, Plan};
pub use secret::Secret;
use secret::sensitive;
pub use source::{TokenRequest, TokenSource};

/// The credentials of a client.
///
/// If the document describes how an operation authenticates, credentials are sent in that place: a key, or a token in the
/// place of a key, in the header, query or cookie of that name, any other token in `Authorization`. Otherwise the kind of
/// credentials decides. They are sent to the base URL or, without one, to the servers that the document names. A redirect
/// to another scheme, host or port drops them from all parts of the request.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Auth {
    /// `Authorization: Bearer token` (RFC 6750).
    Bearer(Secret),
    /// `Authorization: Basic base64(user:password)` (RFC 7617).
    Basic {
        /// The user, without a colon.
        user: String,
        /// The password.
        password: Secret,
    },
    /// A key, in a header unless the document says where it goes.
    ApiKey {
        /// The name of the header.
        header: String,
        /// The prefix of the key, such as `Token `; usually empty.
        prefix: String,
        /// The key.
        key: Secret,
    },
    /// `Authorization: Bearer` with a token that an OAuth 2 server issues for the client's own credentials.
    ClientCredentials(ClientCredentials),
    /// A secret in the form of its security scheme.
    Secret(Secret),
    /// `Authorization: Bearer` with a token from a function of the program, or the key of a scheme for keys.
    Token(TokenSource),
    /// `Authorization: Bearer` with the token by which the call's own caller authenticated.
    PassOn,
    /// `Authorization: Bearer` with a token that an OAuth 2 server issues for that of the call's own caller.
    Exchange(TokenExchange),
}

impl Auth {
    /// A bearer token.
    pub fn bearer(token: impl Into<Secret>) -> Self {
        Self::Bearer(token.into())
    }

    /// A user and a password.
    pub fn basic(user: impl Into<String>, password: impl Into<Secret>) -> Self {
        Self::Basic { user: user.into(), password: password.into() }
    }

    /// A key in the header `X-API-Key`.
    pub fn api_key(key: impl Into<Secret>) -> Self {
        Self::ApiKey { header: "X-API-Key".to_owned(), prefix: String::new(), key: key.into() }
    }

    /// A secret for a scheme whose kind the program does not know. It is sent in the form that the scheme describes: a
    /// key unchanged, `user:password` as basic authentication, anything else as a bearer token.
    ///
    /// ```
    /// use ops_runtime::http::{Auth, HttpConfig};
    ///
    /// // Sent as `?key=k3y` if the document says that `shopKey` is a key in the query.
    /// let config = HttpConfig::new().with_credentials("shopKey", Auth::secret("k3y"));
    /// ```
    pub fn secret(text: impl Into<Secret>) -> Self {
        Self::Secret(text.into())
    }

    /// A user and a password with a colon between them; without one, a user without a password.
    fn basic_of(text: &Secret) -> Self {
        let (user, password) = basic(text);
        Self::basic(user, password)
    }

    /// OAuth 2 client credentials, exchanged for tokens as they are needed.
    pub fn client_credentials(id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        Self::ClientCredentials(ClientCredentials::new(id, secret))
    }

    /// Tokens from a function that is called before every call, and again if the server rejects the token (status 401).
    ///
    /// The retries of a call have the token that it began with. If the function fails with an error that
    /// [may pass](CallError::is_retryable), it is called again as the client's retries say.
    ///
    /// Several calls may be rejected with one token. A function that keeps its token compares it with the rejected one, so
    /// that only the first of them renews it:
    ///
    /// ```
    /// # use ops_runtime::CallError;
    /// use std::sync::Arc;
    ///
    /// use ops_runtime::http::{Auth, Secret, TokenRequest};
    /// use tokio::sync::Mutex;
    ///
    /// # async fn renew() -> Result<Secret, CallError> { Ok("new".into()) }
    /// let kept = Arc::new(Mutex::new(Secret::from("old")));
    /// let auth = Auth::token_source(move |request: TokenRequest| {
    ///     let kept = kept.clone();
    ///     async move {
    ///         let mut token = kept.lock().await;
    ///         if request.rejected_token.as_ref() == Some(&*token) {
    ///             *token = renew().await?;
    ///         }
    ///         Ok(token.clone())
    ///     }
    /// });
    /// ```
    ///
    /// For a scheme whose key has another place than `Authorization`, the function gives that key: it is sent unchanged.
    pub fn token_source<F, Fut>(source: F) -> Self
    where
        F: Fn(TokenRequest) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Secret, CallError>> + Send + 'static,
    {
        Self::Token(TokenSource::new(source))
    }

    /// The token by which the call's own caller authenticated, passed on unchanged.
    ///
    /// It is the token of the call's [`Identity`](crate::access::Identity::with_token). It is sent only to the client's
    /// base URL, which must be set; a redirect to another origin drops it. A call whose caller has no token fails with
    /// `ACCESS_DENIED`. The service can use the token for everything that the caller may do: pass it on only to
    /// services that you trust with that, and [`exchange`](Self::exchange) it for all others.
    ///
    /// ```
    /// use ops_runtime::http::{Auth, HttpConfig};
    ///
    /// let config = HttpConfig::new().with_base_url("https://api.example.com").with_auth(Auth::pass_on());
    /// ```
    pub fn pass_on() -> Self {
        Self::PassOn
    }

    /// A token that an OAuth 2 server issues for that of the call's own caller (RFC 8693).
    pub fn exchange(exchange: TokenExchange) -> Self {
        Self::Exchange(exchange)
    }

    /// True if the credentials are derived from those of the call's caller.
    fn is_of_caller(&self) -> bool {
        matches!(self, Self::PassOn | Self::Exchange(_))
    }

    /// Sends the API key in this header instead of `X-API-Key`.
    ///
    /// If the operation's security scheme names a place, the key is sent there instead. Has no effect on other kinds of
    /// credentials.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>) -> Self {
        if let Self::ApiKey { header, .. } = &mut self {
            *header = name.into();
        }
        self
    }

    /// Sends a prefix before the API key, such as `Token `. Has no effect on other kinds of credentials.
    #[must_use]
    pub fn with_prefix(mut self, text: impl Into<String>) -> Self {
        if let Self::ApiKey { prefix, .. } = &mut self {
            *prefix = text.into();
        }
        self
    }

    /// Adds the secrets, except fetched tokens.
    fn collect(&self, secrets: &mut Secrets) {
        match self {
            Self::Bearer(token) => secrets.add(token.expose()),
            Self::Basic { user, password } => secrets.add_basic(user, password.expose()),
            Self::ApiKey { key, .. } => secrets.add(key.expose()),
            Self::Secret(text) => {
                secrets.add(text.expose());
                let (user, password) = basic(text);
                secrets.add_basic(user, password);
            }
            Self::ClientCredentials(credentials) => credentials.collect(secrets),
            Self::Exchange(exchange) => exchange.collect(secrets),
            Self::Token(_) | Self::PassOn => {}
        }
    }

    /// The header that carries the credentials, marked as sensitive; `None` if a token must be fetched first.
    pub(super) fn to_header(&self) -> Result<Option<(HeaderName, HeaderValue)>, CallError> {
        let what = match self {
            Self::Bearer(_) => "the bearer token",
            Self::ApiKey { .. } => "the API key",
            _ => "the secret",
        };
        let (name, value) = match self {
            Self::Bearer(secret) | Self::Secret(secret) | Self::ApiKey { key: secret, .. }
                if secret.expose().is_empty() =>
            {
                return Err(invalid("/auth", format!("{what} is empty: leave the credentials out if there are none")));
            }
            Self::Bearer(token) | Self::Secret(token) => (AUTHORIZATION, format!("Bearer {}", token.expose())),
            Self::Basic { user, .. } if user.contains(':') => {
                return Err(invalid("/auth/user", "the user of basic authentication holds a colon"));
            }
            Self::Basic { user, password } => {
                (AUTHORIZATION, format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.expose()))))
            }
            Self::ApiKey { header, prefix, key } => {
                let name = HeaderName::from_bytes(header.as_bytes())
                    .map_err(|_| invalid("/auth/header", "the API key's header has no valid name"))?;
                (name, format!("{prefix}{}", key.expose()))
            }
            Self::ClientCredentials(_) | Self::Token(_) | Self::PassOn | Self::Exchange(_) => return Ok(None),
        };
        Ok(Some((name, sensitive(what, &value)?)))
    }
}

/// The user and the password of a secret; without a colon, all of it is the user.
fn basic(text: &Secret) -> (&str, &str) {
    text.expose().split_once(':').unwrap_or((text.expose(), ""))
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bearer(token) => f.debug_tuple("Bearer").field(token).finish(),
            // A user without a password is itself the secret.
            Self::Basic { password, .. } if password.expose().is_empty() => f.write_str("Basic"),
            Self::Basic { user, password } => {
                f.debug_struct("Basic").field("user", user).field("password", password).finish()
            }
            Self::ApiKey { header, prefix, key } => {
                f.debug_struct("ApiKey").field("header", header).field("prefix", prefix).field("key", key).finish()
            }
            Self::ClientCredentials(credentials) => f.debug_tuple("ClientCredentials").field(credentials).finish(),
            Self::Secret(text) => f.debug_tuple("Secret").field(text).finish(),
            Self::Token(source) => f.debug_tuple("Token").field(source).finish(),
            Self::PassOn => f.write_str("PassOn"),
            Self::Exchange(exchange) => f.debug_tuple("Exchange").field(exchange).finish(),
        }
    }
}

impl From<ClientCredentials> for Auth {
    fn from(credentials: ClientCredentials) -> Self {
        Self::ClientCredentials(credentials)
    }
}

impl From<TokenExchange> for Auth {
    fn from(exchange: TokenExchange) -> Self {
        Self::Exchange(exchange)
    }
}

/// Takes user and password out of the URL.
pub(super) fn take_credentials(url: &mut Url) -> Result<Option<Auth>, CallError> {
    let decode = |text: &str| percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned();
    let user = decode(url.username());
    let password = url.password().map(decode);
    if user.is_empty() && password.is_none() {
        return Ok(None);
    }
    // They fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    let auth = Auth::basic(user, password.unwrap_or_default());
    auth.to_header()?;
    Ok(Some(auth))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers() {
        let table = [
            (Auth::bearer("t0k"), "authorization", "Bearer t0k"),
            (Auth::basic("ann", "p:w"), "authorization", "Basic YW5uOnA6dw=="),
            (Auth::api_key("k"), "x-api-key", "k"),
            (Auth::api_key("k").with_header("Authorization").with_prefix("Token "), "authorization", "Token k"),
        ];
        for (auth, name, value) in table {
            let (found_name, found) = auth.to_header().unwrap().unwrap();
            assert_eq!((found_name.as_str(), found.to_str().unwrap()), (name, value));
            assert!(found.is_sensitive());
        }
        for bad in [Auth::basic("a:b", "c"), Auth::bearer("a\nb"), Auth::api_key("k").with_header("a b")] {
            assert!(bad.to_header().is_err());
        }
    }

    #[test]
    fn what_is_wrong_with_credentials() {
        for (auth, message) in [
            (Auth::bearer("t0k\n"), "the bearer token ends with a line break: trim it"),
            (Auth::api_key("k\r\n"), "the API key ends with a line break: trim it"),
            (Auth::secret("a\nb"), "the secret has a character that a header cannot carry"),
            (Auth::bearer(""), "the bearer token is empty: leave the credentials out if there are none"),
            (
                Auth::api_key("").with_prefix("Token "),
                "the API key is empty: leave the credentials out if there are none",
            ),
            (Auth::secret(""), "the secret is empty: leave the credentials out if there are none"),
        ] {
            assert_eq!(auth.to_header().unwrap_err().message(), message);
        }
        // A user may have no password.
        assert!(Auth::basic("ann", "").to_header().unwrap().is_some());
    }

    #[test]
    fn secrets_do_not_show() {
        let source = Auth::token_source(|_| async { Ok("hush".into()) });
        let client =
            ClientCredentials::new("id", "hush").with_token_url("http://a:hush@h.test").with_parameter("p", "hush");
        let client = Auth::from(client);
        let exchange =
            TokenExchange::new("http://a:hush@h.test/hush").with_client("id", "hush").with_resource("x:hush");
        let exchange = Auth::exchange(exchange.with_parameter("actor_token", "hush"));
        let basic = [Auth::basic("ann", "hush"), Auth::basic("hush", ""), Auth::secret("hush")];
        let others = [Auth::bearer("hush"), Auth::api_key("hush"), source, client, exchange];
        for auth in basic.into_iter().chain(others) {
            assert!(!format!("{auth:?}").contains("hush"));
        }
    }
}
