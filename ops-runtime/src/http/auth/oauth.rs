//! Tokens from an OAuth 2 server for client credentials (RFC 6749, section 4.4).

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use url::{ParseError, Url};

use super::secret::Secret;
use super::slot::{Slot, Token};
use super::token::{Client, Form, ask, collect_parameters, parse_url, without_user};
use crate::CallError;
use crate::http::address::{is_http, same_origin};
use crate::http::engine::Engine;
use crate::http::settings::Settings;
use crate::model::lock::lock;
use crate::model::secrets::Secrets;

/// Client credentials of OAuth 2, and the endpoint that exchanges them for tokens.
///
/// A token is cached until 30 seconds before it expires, or until the server rejects it with 401. Calls that need a token at
/// the same time wait for one request, and get its error if it fails. The request takes at most 30 seconds, and goes on if
/// these calls end before.
///
/// The secret goes to the URL set with [`with_token_url`](Self::with_token_url). Without it, the document's own token
/// URL is used only if it is on the host of the client's base URL (by https, or by the base URL's own scheme and port),
/// or if [`with_token_url_of_document`](Self::with_token_url_of_document) allows it. Otherwise the document's author
/// could have the secret sent to them. A relative URL is resolved against the base URL, or else against the operation's server.
/// Redirects of the token endpoint are not followed.
///
/// ```
/// use ops_runtime::http::{ClientCredentials, HttpConfig};
///
/// let credentials = ClientCredentials::new("my-app", "s3cr3t").with_token_url("https://login.example.com/oauth/token");
/// let config = HttpConfig::new().with_base_url("https://api.example.com").with_credentials("oauth", credentials);
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCredentials {
    client: Client,
    token_url: Option<String>,
    scopes: Option<Vec<String>>,
    parameters: Vec<(String, String)>,
    trusts_document: bool,
}

impl fmt::Debug for ClientCredentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL and the parameters may hold secrets, too.
        f.debug_struct("ClientCredentials")
            .field("id", &self.client.id)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl ClientCredentials {
    /// The id and the secret of a client, sent to the token endpoint as basic authentication.
    ///
    /// If the secret is empty, only the id is sent, as the parameter `client_id`: for clients that authenticate by an
    /// assertion, which [`with_parameter`](Self::with_parameter) adds (RFC 7523), or by a TLS certificate (RFC 8705).
    pub fn new(id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        Self {
            client: Client { id: id.into(), secret: secret.into(), in_body: false },
            token_url: None,
            scopes: None,
            parameters: Vec::new(),
            trusts_document: false,
        }
    }

    /// Sets the URL of the token endpoint.
    #[must_use]
    pub fn with_token_url(mut self, url: impl Into<String>) -> Self {
        self.token_url = Some(url.into());
        self
    }

    /// Allows the secret to be sent to the token URL in the document, on any host.
    #[must_use]
    pub fn with_token_url_of_document(mut self) -> Self {
        self.trusts_document = true;
        self
    }

    /// Sets the scopes to request, instead of those that the document names for each operation.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Adds a parameter to the request for a token, such as `audience`.
    #[must_use]
    pub fn with_parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    /// Sends id and secret in the body of the request for a token, for servers without basic authentication.
    #[must_use]
    pub fn with_secret_in_body(mut self) -> Self {
        self.client.in_body = true;
        self
    }

    pub(super) fn check(&self) -> Result<(), CallError> {
        self.token_url.as_deref().map_or(Ok(()), |url| parse_url(url).map(|_| ()))
    }

    /// Adds the secrets that are sent to the token endpoint.
    pub(super) fn collect(&self, secrets: &mut Secrets) {
        self.client.collect(secrets);
        self.token_url.iter().for_each(|url| secrets.add_url(url));
        collect_parameters(&self.parameters, secrets);
    }

    /// True if the token endpoint is known without a document.
    #[cfg(any(feature = "jwt", feature = "openapi"))]
    pub(super) fn knows_url(&self) -> bool {
        self.token_url.is_some()
    }

    /// The URL to which the secret may be sent.
    fn url(&self, settings: &Settings, of_document: Option<&str>) -> Result<Url, CallError> {
        if let Some(url) = &self.token_url {
            return parse_url(url);
        }
        let url = match of_document.map(|text| (text, Url::parse(text))) {
            Some((_, Ok(url))) if is_http(&url) => url,
            Some((text, Err(ParseError::RelativeUrlWithoutBase))) => {
                return Err(CallError::execution(format!(
                    "the document's token URL `{}` is relative: set `with_base_url`, or the token URL with \
                     `with_token_url`",
                    text.escape_debug()
                )));
            }
            _ => {
                let message = "the document names no token URL that can be called: set one with `with_token_url`";
                return Err(CallError::execution(message));
            }
        };
        let base = settings.base_url.as_ref();
        let home =
            base.is_some_and(|base| same_origin(base, &url) || (url.scheme() == "https" && base.host() == url.host()));
        if home || self.trusts_document {
            return Ok(without_user(url));
        }
        let (place, how) =
            (origin(&url), "the token URL with `with_token_url`, or allow it with `with_token_url_of_document`");
        let told = match base {
            Some(base) => format!("which is not the host and port of the base URL, `{}`: set {how}", origin(base)),
            None => format!("and no base URL says if that is the service: set one with `with_base_url`, or set {how}"),
        };
        Err(CallError::execution(format!("the document would have the client's secret sent to `{place}`, {told}")))
    }
}

/// The scheme, host and port of a URL, for messages.
fn origin(url: &Url) -> String {
    url.origin().ascii_serialization()
}

/// The tokens that a client has, by token URL and scopes.
#[derive(Default)]
pub(super) struct Tokens(Mutex<BTreeMap<(String, String), Slot>>);

impl Tokens {
    /// A token that is valid as far as known; `rejected` is the token that the server rejected.
    pub(super) async fn get(
        &self,
        credentials: &ClientCredentials,
        settings: &Settings,
        of_document: Option<&str>,
        scopes: &[String],
        rejected: Option<&Secret>,
    ) -> Result<Secret, CallError> {
        let url = credentials.url(settings, of_document)?;
        let scopes = credentials.scopes.as_deref().unwrap_or(scopes).join(" ");
        let fetch = || fetch(credentials.clone(), settings.engine.clone(), url.clone(), scopes.clone()).boxed();
        self.slot(&url, &scopes).valid(rejected, &fetch).await
    }

    /// Gives up the token that the server rejected.
    pub(super) fn forget(
        &self,
        credentials: &ClientCredentials,
        settings: &Settings,
        of_document: Option<&str>,
        scopes: &[String],
        rejected: &Secret,
    ) {
        let scopes = credentials.scopes.as_deref().unwrap_or(scopes).join(" ");
        if let Ok(url) = credentials.url(settings, of_document) {
            self.slot(&url, &scopes).forget(rejected);
        }
    }

    /// Adds the tokens that are there.
    pub(super) fn collect(&self, secrets: &mut Secrets) {
        let slots = lock(&self.0);
        slots.values().for_each(|slot| slot.collect(secrets));
    }

    fn slot(&self, url: &Url, scopes: &str) -> Slot {
        let mut slots = lock(&self.0);
        slots.entry((url.to_string(), scopes.to_owned())).or_default().clone()
    }
}

async fn fetch(
    credentials: ClientCredentials,
    engine: Arc<dyn Engine>,
    url: Url,
    scopes: String,
) -> Result<Token, CallError> {
    let mut form: Form = vec![("grant_type", "client_credentials")];
    if !scopes.is_empty() {
        form.push(("scope", &scopes));
    }
    form.extend(credentials.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
    let answer = ask(&*engine, &url, Some(&credentials.client), form).await?;
    let answer = answer.map_err(|refusal| refusal.error(format!("the token endpoint answered {}", refusal.words())))?;
    let bearer = answer.text("token_type").is_none_or(|kind| kind.eq_ignore_ascii_case("bearer"));
    let value = answer
        .text("access_token")
        .filter(|token| bearer && !token.is_empty())
        .ok_or_else(|| CallError::execution("the token endpoint did not answer with a bearer token"))?;
    Ok(Token { value: Secret::from(value), expires: answer.expires() })
}
