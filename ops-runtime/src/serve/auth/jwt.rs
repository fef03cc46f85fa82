//! Bearer tokens that are JWTs (RFC 7519), signed (RFC 7515) with keys that are given or fetched.

mod claims;
mod key;
#[cfg(feature = "http")]
mod remote;
mod token;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use serde_json::{Map, Value};

use self::claims::Rules;
use self::key::{Key, KeySet};
#[cfg(feature = "http")]
use self::remote::{Origin, Remote};
use self::token::Token;
use super::bearer::{invalid_token, keeping, token};
use crate::model::unauthorized::Unauthorized;
use crate::run::authenticator::Authenticator;
use crate::{BoxFuture, CallError, Identity, SecurityKind, SecurityScheme};

pub use self::key::JwtAlgorithm;

/// Authenticates by bearer tokens that are JWTs, such as the access tokens of an OAuth 2 server (RFC 9068).
///
/// A token requires the signature of one of the keys and `exp`. The key decides which algorithms are allowed: a public
/// key is never used as a secret, and `none` is refused. A token that has an audience (`aud`) is accepted only if
/// [`with_audience`](Self::with_audience) lists it. `nbf` and the issuer are checked as well; a token with critical
/// extensions (`crit`), or of a type other than `JWT` and `at+jwt`, is refused.
///
/// The identity has `sub` as its id, and the scopes of `scope`, `scp` and `permissions`.
/// [`with_identity`](Self::with_identity) makes another identity from the claims. It keeps the token: see
/// [`Identity::with_token`].
///
#[cfg_attr(
    feature = "http",
    doc = r#"
```no_run
use ops_runtime::Registry;
use ops_runtime::serve::{HttpServer, JwtAuthenticator};

# fn main() -> Result<(), ops_runtime::CallError> {
let tokens = JwtAuthenticator::from_issuer("https://login.example.com/")?.with_audience("https://pets.example.com");
let server = HttpServer::new(Registry::new()).with_authenticator(tokens);
# let _ = server;
# Ok(()) }
```
"#
)]
#[derive(Clone)]
pub struct JwtAuthenticator {
    keys: Keys,
    rules: Arc<Rules>,
}

/// The source of the keys.
#[derive(Clone)]
enum Keys {
    Given(Arc<KeySet>),
    #[cfg(feature = "http")]
    Fetched(Arc<Remote>),
}

impl JwtAuthenticator {
    fn given(keys: Vec<Key>) -> Self {
        Self { keys: Keys::Given(Arc::new(KeySet(keys))), rules: Arc::default() }
    }

    /// Tokens that are signed with a secret, by HMAC (HS256, HS384 and HS512).
    ///
    /// # Errors
    /// If the secret is shorter than 32 bytes. An algorithm requires a secret as long as its hash (RFC 7518, section
    /// 3.2): HS512 64 bytes.
    pub fn from_secret(secret: impl AsRef<[u8]>) -> Result<Self, CallError> {
        Key::from_secret(secret.as_ref()).map(|key| Self::given(vec![key])).map_err(invalid)
    }

    /// Tokens that are signed with the private key of this public one, in PEM: RSA of 2048 bits or more, P-256, P-384 or
    /// Ed25519.
    ///
    /// # Errors
    /// If the text is not such a key: `BEGIN PUBLIC KEY`, or `BEGIN RSA PUBLIC KEY`.
    pub fn from_pem(pem: &str) -> Result<Self, CallError> {
        Key::from_pem(pem).map(|key| Self::given(vec![key])).map_err(invalid)
    }

    /// Tokens that are signed with one of the keys of a JSON Web Key Set (RFC 7517, section 5). Unknown keys, and keys
    /// that are not for signatures, are skipped.
    ///
    /// # Errors
    /// If the set has no usable key.
    pub fn from_jwks(jwks: &Value) -> Result<Self, CallError> {
        let keys = KeySet::from_jwks(jwks, true);
        keys.map(|keys| Self { keys: Keys::Given(Arc::new(keys)), rules: Arc::default() }).map_err(invalid)
    }

    /// Tokens that are signed with one of the keys of the JSON Web Key Set at a URL.
    ///
    /// The set is fetched for the first token, again every five minutes, and for a token with an unknown key, at most
    /// [every ten seconds](Self::with_refresh_interval). If it cannot be fetched, the present keys are used for an
    /// hour; without any, requests with a token get the status 503.
    ///
    /// # Errors
    /// If the URL is not https; http is allowed on this machine.
    #[cfg(feature = "http")]
    pub fn from_jwks_url(url: impl Into<String>) -> Result<Self, CallError> {
        let remote = Remote::new(Origin::Url(url.into()))?;
        Ok(Self { keys: Keys::Fetched(Arc::new(remote)), rules: Arc::default() })
    }

    /// Tokens of an issuer, whose keys are found by its metadata: `OpenID` Connect Discovery, or RFC 8414. They are
    /// fetched as for [`from_jwks_url`](Self::from_jwks_url).
    ///
    /// The issuer is a URL exactly as in the claim `iss`.
    ///
    /// # Errors
    /// If the URL is not https; http is allowed on this machine.
    #[cfg(feature = "http")]
    pub fn from_issuer(issuer: impl Into<String>) -> Result<Self, CallError> {
        let issuer = issuer.into();
        let remote = Remote::new(Origin::Issuer(issuer.clone()))?;
        Ok(Self { keys: Keys::Fetched(Arc::new(remote)), rules: Arc::default() }.with_issuer(issuer))
    }

    /// Accepts only tokens whose claim `iss` is this, or another that was added.
    #[must_use]
    pub fn with_issuer(mut self, issuer: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.rules).issuers.push(issuer.into());
        self
    }

    /// Accepts only tokens whose claim `aud` has this, or another that was added.
    #[must_use]
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        Arc::make_mut(&mut self.rules).audiences.push(audience.into());
        self
    }

    /// Accepts only tokens that are signed by one of these algorithms. By default only the keys decide.
    #[must_use]
    pub fn with_algorithms(mut self, algorithms: impl IntoIterator<Item = JwtAlgorithm>) -> Self {
        Arc::make_mut(&mut self.rules).algorithms = Some(algorithms.into_iter().collect());
        self
    }

    /// Sets how far the clocks of issuers may differ from this one; a minute by default.
    #[must_use]
    pub fn with_leeway(mut self, leeway: Duration) -> Self {
        Arc::make_mut(&mut self.rules).leeway = leeway;
        self
    }

    /// Sets how the claims of a valid token become an identity. `None` refuses the token.
    ///
    /// ```
    /// use ops_runtime::access::Identity;
    /// use ops_runtime::serve::JwtAuthenticator;
    ///
    /// # fn main() -> Result<(), ops_runtime::CallError> {
    /// let tokens = JwtAuthenticator::from_secret("a secret of at least 32 random bytes")?.with_identity(|claims| {
    ///     let name = claims.get("preferred_username")?.as_str()?;
    ///     Some(Identity::new(name).with_scope("pets:read"))
    /// });
    /// # let _ = tokens;
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_identity(
        mut self,
        identity: impl Fn(&Map<String, Value>) -> Option<Identity> + Send + Sync + 'static,
    ) -> Self {
        Arc::make_mut(&mut self.rules).identity = Some(Arc::new(identity));
        self
    }

    /// Sets the client that fetches keys, such as one with a proxy or with its own certificates. By default its timeout
    /// is five seconds.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_client(mut self, client: crate::HttpClient) -> Self {
        if let Keys::Fetched(remote) = &self.keys {
            self.keys = Keys::Fetched(Arc::new(remote.with_client(client)));
        }
        self
    }

    /// Sets how soon fetched keys may be fetched again for a token with an unknown key; 10 seconds by default.
    #[cfg(feature = "http")]
    #[must_use]
    pub fn with_refresh_interval(mut self, interval: Duration) -> Self {
        if let Keys::Fetched(remote) = &self.keys {
            self.keys = Keys::Fetched(Arc::new(remote.with_interval(interval)));
        }
        self
    }
}

impl Authenticator for JwtAuthenticator {
    fn authenticate(&self, request: &Parts) -> BoxFuture<'static, Result<Option<Identity>, Unauthorized>> {
        let text = match token(request) {
            Ok(Some(text)) => text.to_owned(),
            Ok(None) => return Box::pin(async { Ok(None) }),
            Err(refused) => return Box::pin(async { Err(refused) }),
        };
        let Self { keys, rules } = self.clone();
        Box::pin(async move {
            let token = Token::parse(&text).filter(|token| rules.allows(token.algorithm));
            let token = token.ok_or_else(|| invalid_token(None))?;
            let is_signed = match keys {
                Keys::Given(keys) => keys.verify(&token),
                #[cfg(feature = "http")]
                Keys::Fetched(remote) => remote.keys(&token).await.ok_or(Unauthorized::unavailable())?.verify(&token),
            };
            if !is_signed {
                return Err(invalid_token(None));
            }
            let claims = token.claims().ok_or_else(|| invalid_token(None))?;
            rules.check(&claims).map_err(|fault| invalid_token(Some(fault)))?;
            let holder = rules.identify(&claims);
            let holder = holder.ok_or_else(|| invalid_token(Some("the token does not say whose it is")))?;
            Ok(Some(keeping(holder, text)))
        })
    }

    fn schemes(&self) -> Vec<SecurityScheme> {
        #[cfg(feature = "http")]
        if let Keys::Fetched(remote) = &self.keys
            && let Some(url) = remote.discovery_url()
        {
            return vec![SecurityScheme::new("oidc", SecurityKind::OpenIdConnect { url: url.into() })];
        }
        vec![SecurityScheme::new("jwt", SecurityKind::Bearer)]
    }

    fn is_exact(&self) -> bool {
        true
    }
}

impl fmt::Debug for JwtAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JwtAuthenticator")
            .field("issuers", &self.rules.issuers)
            .field("audiences", &self.rules.audiences)
            .finish_non_exhaustive()
    }
}

fn invalid(message: &'static str) -> CallError {
    CallError::new(crate::ErrorCode::ValidationError, message)
}
