//! Tokens that an OAuth 2 server issues in exchange for a caller's own (RFC 8693).

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use ring::digest::{Context, SHA256};
use url::Url;

use super::secret::Secret;
use super::slot::{Slot, Token};
use super::token::{Answer, Client, Form, Refusal, ask, collect_parameters, parse_url};
use crate::access::CallerToken;
use crate::http::engine::Engine;
use crate::http::invalid;
use crate::http::settings::Settings;
use crate::model::lock::lock;
use crate::model::secrets::Secrets;
use crate::{CallError, ErrorCode};

const GRANT: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN: &str = "urn:ietf:params:oauth:token-type:access_token";
const REFRESH_TOKEN: &str = "urn:ietf:params:oauth:token-type:refresh_token";

/// Number of cached tokens; beyond, the least recently used one is dropped.
const MAX_TOKENS: usize = 4_096;

/// The longest accepted token, in bytes: no server accepts a longer header.
const MAX_TOKEN: usize = 16 * 1024;

/// How long a token is cached if the server does not state its lifetime.
const UNKNOWN_LIFETIME: Duration = Duration::from_secs(300);

/// How the token of a caller is exchanged for one that a service accepts (RFC 8693).
///
/// The caller's token is that of the call's [`Identity`](crate::access::Identity::with_token). It is sent to the token
/// URL only. The token that comes back is sent to the client's base URL as `Authorization: Bearer`. It is cached for this
/// caller's token, until 30 seconds before it expires, for five minutes if the server does not say when it expires, or
/// until the service rejects it with 401, which is followed by one more exchange. Redirects of the token endpoint are
/// not followed. Calls of one caller that need a token at the same time wait for one exchange.
///
/// A call without such a token fails with `ACCESS_DENIED`. So does one whose token the endpoint does not accept. If the
/// endpoint does not answer within 30 seconds, that is a `TIMEOUT`. Every other failure of it is an `EXECUTION_ERROR`.
///
/// ```
/// use ops_runtime::http::{Auth, HttpConfig, TokenExchange};
///
/// let exchange = TokenExchange::new("https://login.example.com/oauth/token")
///     .with_client("gateway", "s3cr3t")
///     .with_audience("https://api.example.com");
/// let config = HttpConfig::new().with_base_url("https://api.example.com").with_auth(Auth::exchange(exchange));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct TokenExchange {
    token_url: String,
    client: Option<Client>,
    in_body: bool,
    audiences: Vec<String>,
    resources: Vec<String>,
    scopes: Option<Vec<String>>,
    subject_token_type: String,
    requested_token_type: Option<String>,
    parameters: Vec<(String, String)>,
}

impl fmt::Debug for TokenExchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // URLs and parameters may contain secrets, too.
        f.debug_struct("TokenExchange")
            .field("audiences", &self.audiences)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

impl TokenExchange {
    /// An exchange of access tokens at this token endpoint, by a client that does not authenticate.
    pub fn new(token_url: impl Into<String>) -> Self {
        Self {
            token_url: token_url.into(),
            client: None,
            in_body: false,
            audiences: Vec::new(),
            resources: Vec::new(),
            scopes: None,
            subject_token_type: ACCESS_TOKEN.to_owned(),
            requested_token_type: None,
            parameters: Vec::new(),
        }
    }

    /// Sets the id and the secret of the client, sent to the token endpoint as basic authentication. If the secret is
    /// empty, only the id is sent, as the parameter `client_id`.
    #[must_use]
    pub fn with_client(mut self, id: impl Into<String>, secret: impl Into<Secret>) -> Self {
        self.client = Some(Client { id: id.into(), secret: secret.into(), in_body: false });
        self
    }

    /// Sends id and secret in the body of the request, for servers without basic authentication.
    #[must_use]
    pub fn with_secret_in_body(mut self) -> Self {
        self.in_body = true;
        self
    }

    /// Adds the name of a service that the token is for (`audience`).
    #[must_use]
    pub fn with_audience(mut self, audience: impl Into<String>) -> Self {
        self.audiences.push(audience.into());
        self
    }

    /// Adds the URI of a service that the token is for (`resource`): absolute, without a fragment.
    #[must_use]
    pub fn with_resource(mut self, uri: impl Into<String>) -> Self {
        self.resources.push(uri.into());
        self
    }

    /// Sets the scopes to request, instead of those that the document names for each operation.
    #[must_use]
    pub fn with_scopes<S: Into<String>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.scopes = Some(scopes.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the type of the caller's token (`subject_token_type`), such as `urn:ietf:params:oauth:token-type:jwt`; an
    /// access token by default.
    #[must_use]
    pub fn with_subject_token_type(mut self, kind: impl Into<String>) -> Self {
        self.subject_token_type = kind.into();
        self
    }

    /// Sets the requested type (`requested_token_type`). A token of any other type is then not accepted. By default the
    /// endpoint decides.
    #[must_use]
    pub fn with_requested_token_type(mut self, kind: impl Into<String>) -> Self {
        self.requested_token_type = Some(kind.into());
        self
    }

    /// Adds another parameter to the request, such as `client_id` of a client without a secret.
    #[must_use]
    pub fn with_parameter(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.parameters.push((name.into(), value.into()));
        self
    }

    pub(super) fn check(&self) -> Result<(), CallError> {
        parse_url(&self.token_url)?;
        let is_resource = |uri: &String| Url::parse(uri).is_ok_and(|url| url.fragment().is_none());
        if !self.resources.iter().all(is_resource) {
            return Err(invalid(
                "/auth/resource",
                "a resource of the token exchange is no absolute URI without a fragment",
            ));
        }
        Ok(())
    }

    /// Adds the secrets that are sent to the token endpoint, beside the caller's token.
    pub(super) fn collect(&self, secrets: &mut Secrets) {
        self.client.iter().for_each(|client| client.collect(secrets));
        collect_parameters(&self.parameters, secrets);
        secrets.add_url(&self.token_url);
    }

    fn form<'a>(&'a self, subject: &'a CallerToken, scopes: &'a str) -> Form<'a> {
        let mut form: Form = vec![
            ("grant_type", GRANT),
            ("subject_token", subject.expose()),
            ("subject_token_type", &self.subject_token_type),
        ];
        form.extend(self.requested_token_type.as_deref().map(|kind| ("requested_token_type", kind)));
        form.extend(self.audiences.iter().map(|audience| ("audience", audience.as_str())));
        form.extend(self.resources.iter().map(|resource| ("resource", resource.as_str())));
        form.extend(Some(scopes).filter(|scopes| !scopes.is_empty()).map(|scopes| ("scope", scopes)));
        form.extend(self.parameters.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        form
    }

    async fn exchange(self, subject: CallerToken, engine: Arc<dyn Engine>, scopes: String) -> Result<Token, CallError> {
        let url = parse_url(&self.token_url)?;
        let client = self.client.clone().map(|client| Client { in_body: self.in_body, ..client });
        match ask(&*engine, &url, client.as_ref(), self.form(&subject, &scopes)).await? {
            Ok(answer) => self.token(&answer),
            Err(refusal) => Err(refused(&refusal)),
        }
    }

    /// The token in a response (RFC 8693, section 2.2.1).
    fn token(&self, answer: &Answer) -> Result<Token, CallError> {
        let mut faults = Vec::new();
        let value = answer.text("access_token").filter(|token| !token.is_empty());
        match value.map(str::len) {
            None => faults.push("it has no `access_token`"),
            Some(length) if length > MAX_TOKEN => faults.push("its `access_token` is longer than 16 KiB"),
            Some(_) => {}
        }
        match (answer.text("issued_token_type"), &self.requested_token_type) {
            (None, _) => faults.push("it has no `issued_token_type`"),
            (Some(issued), Some(requested)) if issued != requested => {
                faults.push("its `issued_token_type` is not the type that was requested");
            }
            (Some(REFRESH_TOKEN), None) => faults.push("its `issued_token_type` is that of a refresh token"),
            _ => {}
        }
        if !answer.text("token_type").is_some_and(|kind| kind.eq_ignore_ascii_case("bearer")) {
            faults.push("its `token_type` is not `Bearer`");
        }
        match value {
            Some(value) if faults.is_empty() => {
                let expires = answer.expires().or_else(|| answer.expires_after(UNKNOWN_LIFETIME));
                Ok(Token { value: Secret::from(value), expires })
            }
            _ => {
                let faults = faults.join(", ");
                Err(CallError::execution(format!(
                    "the token endpoint's answer to the exchange cannot be used: {faults}"
                )))
            }
        }
    }
}

/// The error of an exchange that the token endpoint refuses.
fn refused(refusal: &Refusal) -> CallError {
    // The codes for a rejected subject token: that of RFC 8693, section 2.2.2, and others that servers use.
    const OF_CALLERS: [&str; 4] = ["invalid_request", "invalid_grant", "invalid_token", "access_denied"];
    let words = refusal.words();
    if (400..500).contains(&refusal.status) && refusal.code.as_deref().is_some_and(|code| OF_CALLERS.contains(&code)) {
        let message = format!("the token endpoint does not accept the caller's token ({words}): it may have expired");
        return CallError::new(ErrorCode::AccessDenied, message);
    }
    refusal.error(format!("the token endpoint did not exchange the caller's token: {words}"))
}

/// The tokens that a client has obtained for its callers.
#[derive(Default)]
pub(super) struct Exchanged(Mutex<Table>);

/// By a digest of the caller's token and the scopes, so that no caller's token stays in memory.
type Key = [u8; 32];

#[derive(Default)]
struct Table {
    slots: HashMap<Key, (u64, Slot)>,
    /// The keys by their last use.
    order: BTreeMap<u64, Key>,
    uses: u64,
}

impl Table {
    fn slot(&mut self, key: Key) -> Slot {
        self.uses = self.uses.saturating_add(1);
        let now = self.uses;
        let (used, slot) = self.slots.entry(key).or_insert_with(|| (now, Slot::default()));
        self.order.remove(used);
        self.order.insert(now, key);
        *used = now;
        let slot = slot.clone();
        if self.slots.len() > MAX_TOKENS
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.slots.remove(&oldest);
        }
        slot
    }
}

impl Exchanged {
    /// A token for this caller that is valid as far as known; `rejected` is the token that the server rejected.
    pub(super) async fn get(
        &self,
        exchange: &TokenExchange,
        subject: &CallerToken,
        settings: &Settings,
        scopes: &[String],
        rejected: Option<&Secret>,
    ) -> Result<Secret, CallError> {
        let scopes = exchange.scopes.as_deref().unwrap_or(scopes).join(" ");
        let fetch = || exchange.clone().exchange(subject.clone(), settings.engine.clone(), scopes.clone()).boxed();
        self.slot(subject, &scopes).valid(rejected, &fetch).await
    }

    /// Gives up the token for this caller that the server rejected.
    pub(super) fn forget(&self, exchange: &TokenExchange, subject: &CallerToken, scopes: &[String], rejected: &Secret) {
        let scopes = exchange.scopes.as_deref().unwrap_or(scopes).join(" ");
        self.slot(subject, &scopes).forget(rejected);
    }

    fn slot(&self, subject: &CallerToken, scopes: &str) -> Slot {
        lock(&self.0).slot(key(subject, scopes))
    }
}

fn key(subject: &CallerToken, scopes: &str) -> Key {
    let mut digest = Context::new(&SHA256);
    // The length keeps the two apart.
    digest.update(&(subject.expose().len() as u64).to_le_bytes());
    digest.update(subject.expose().as_bytes());
    digest.update(scopes.as_bytes());
    let mut key = [0; 32];
    key.copy_from_slice(digest.finish().as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_bounded_and_keeps_what_is_used() {
        let mut table = Table::default();
        let key = |n: u64| key(&CallerToken::from(n.to_string()), "");
        let first = table.slot(key(0));
        for n in 1..10_000 {
            table.slot(key(n));
            assert!(table.slot(key(0)).is(&first), "{n}");
        }
        assert_eq!((table.slots.len(), table.order.len()), (MAX_TOKENS, MAX_TOKENS));
        let used = table.slots[&key(9_999)].1.clone();
        assert!(used.is(&table.slot(key(9_999))));
        assert!(!table.slots.contains_key(&key(1)));
    }

    #[test]
    fn tokens_and_scopes_are_told_apart() {
        let key = |token: &str, scopes: &str| key(&token.into(), scopes);
        assert_eq!(key("ab", "c"), key("ab", "c"));
        assert_ne!(key("ab", "c"), key("a", "bc"));
        assert_ne!(key("ab", ""), key("a", "b"));
    }

    #[test]
    fn what_cannot_be_exchanged_is_refused_at_once() {
        let good = || TokenExchange::new("https://login.test/token").with_resource("https://api.test/v1?x=1");
        assert!(good().check().is_ok());
        let table = [
            (TokenExchange::new("login.test"), "/auth/tokenUrl"),
            (TokenExchange::new("ftp://login.test"), "/auth/tokenUrl"),
            (good().with_resource("/v1"), "/auth/resource"),
            (good().with_resource("https://api.test/#f"), "/auth/resource"),
        ];
        for (exchange, pointer) in table {
            let error = exchange.check().unwrap_err();
            assert_eq!(error.details()["violations"][0]["pointer"], pointer, "{exchange:?}");
        }
    }
}
