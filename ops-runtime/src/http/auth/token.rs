//! Tokens, and the endpoints that issue them (RFC 6749, sections 3.2 and 5).

use std::sync::Arc;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::secret::{Secret, sensitive};
use crate::CallError;
use crate::http::address::is_http;
use crate::http::invalid;
use crate::http::response::{Collected, collect};
use crate::http::send::request;
use crate::http::settings::Settings;
use crate::model::secrets::{Secrets, names_a_secret};

/// How long before its expiry a token counts as expired, so that it is still valid when the server checks it.
const LEEWAY: Duration = Duration::from_secs(30);

/// Limit of the response of a token endpoint, in bytes.
const MAX_ANSWER: usize = 256 * 1024;

/// A token with its expiry.
pub(super) struct Token {
    pub(super) value: Secret,
    pub(super) expires: Option<Instant>,
}

/// The slot of one token. The holder of the lock fetches the token; the others wait for it.
pub(super) type Slot = Arc<tokio::sync::Mutex<Option<Token>>>;

/// The token in a slot, or the one that is fetched for it; `rejected` is the token that the server rejected.
pub(super) async fn valid(
    slot: &Slot,
    rejected: Option<&Secret>,
    fetch: impl Future<Output = Result<Token, CallError>>,
) -> Result<Secret, CallError> {
    let mut slot = slot.lock().await;
    if let Some(token) = &*slot
        && token.expires.is_none_or(|expires| expires > Instant::now())
        && rejected.is_none_or(|rejected| *rejected != token.value)
    {
        return Ok(token.value.clone());
    }
    *slot = None;
    Ok(slot.insert(fetch.await?).value.clone())
}

/// Empties a slot that still holds the token that the server rejected.
pub(super) async fn forget(slot: &Slot, rejected: &Secret) {
    let mut slot = slot.lock().await;
    if slot.as_ref().is_some_and(|token| token.value == *rejected) {
        *slot = None;
    }
}

/// The id and the secret of a client of a token endpoint.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Secret,
    /// True for servers without basic authentication.
    pub(super) in_body: bool,
}

impl Client {
    /// Adds the secret, in each form in which it may be sent.
    pub(super) fn collect(&self, secrets: &mut Secrets) {
        let escape = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        secrets.add_basic(&escape(&self.id), &escape(self.secret.expose()));
        secrets.add_basic(&self.id, self.secret.expose());
    }

    /// Adds the id and the secret to a request for a token, in its headers or at the end of its form.
    fn put<'a>(&'a self, headers: &mut HeaderMap, form: &mut Form<'a>) -> Result<(), CallError> {
        if self.in_body {
            form.extend([("client_id", self.id.as_str()), ("client_secret", self.secret.expose())]);
            return Ok(());
        }
        // Both are escaped before they are joined (RFC 6749, section 2.3.1).
        let escape = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", escape(&self.id), escape(self.secret.expose()));
        headers.insert(AUTHORIZATION, sensitive(&format!("Basic {}", STANDARD.encode(pair)))?);
        Ok(())
    }
}

/// The form of a request for a token.
pub(super) type Form<'a> = Vec<(&'a str, &'a str)>;

/// Adds the parameters of a request for a token whose names show that they are secret, such as `actor_token`.
pub(super) fn collect_parameters(parameters: &[(String, String)], secrets: &mut Secrets) {
    let secret = parameters.iter().filter(|(name, _)| names_a_secret(name) || name.contains("assertion"));
    secret.for_each(|(name, value)| secrets.add_setting(name, value));
}

/// The response of a token endpoint.
pub(super) struct Answer {
    /// When the request was sent; lifetimes count from then.
    started: Instant,
    json: Value,
}

impl Answer {
    /// The member of that name, if it is text.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.json.get(name).and_then(Value::as_str)
    }

    /// When the token expires; `None` if the server does not state it.
    pub(super) fn expires(&self) -> Option<Instant> {
        // Some servers send a number as text.
        let seconds = self.json.get("expires_in")?;
        let seconds = seconds.as_f64().or_else(|| seconds.as_str()?.parse().ok())?;
        let time = Duration::try_from_secs_f64(seconds).ok()?;
        self.started.checked_add(time.saturating_sub(LEEWAY.min(time / 4)))
    }

    /// When a lifetime ends that the server did not state.
    pub(super) fn expires_after(&self, lifetime: Duration) -> Option<Instant> {
        self.started.checked_add(lifetime)
    }
}

/// A token endpoint's refusal: its status, and the code of the standard, without words that may hold anything.
pub(super) struct Refusal {
    pub(super) status: u16,
    pub(super) code: Option<String>,
}

impl Refusal {
    /// The status and the code, such as `HTTP 400: invalid_scope`.
    pub(super) fn words(&self) -> String {
        let code = self.code.as_ref().map_or_else(String::new, |code| format!(": {code}"));
        format!("HTTP {}{code}", self.status)
    }
}

/// Sends a request to a token endpoint.
///
/// # Errors
/// If the transport fails. A refusal of the endpoint is the inner error.
pub(super) async fn ask<'a>(
    settings: &Settings,
    url: &Url,
    client: Option<&'a Client>,
    mut form: Form<'a>,
) -> Result<Result<Answer, Refusal>, CallError> {
    let mut headers = HeaderMap::new();
    if let Some(client) = client {
        client.put(&mut headers, &mut form)?;
    }
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let body = Serializer::new(String::new()).extend_pairs(form).finish();
    let started = Instant::now();
    let request = request(Method::POST, url, headers, bytes::Bytes::from(body).into())?;
    // Directly by the engine: a redirect must not carry the secret to another URL.
    let response = settings.engine.send(request).await.map_err(|failed| failed.error)?;
    let (parts, body) = response.into_parts();
    let json: Value = match collect(body, MAX_ANSWER).await {
        Collected::Whole(bytes) => serde_json::from_slice(&bytes).unwrap_or_default(),
        Collected::Cut(_) => Value::Null,
        Collected::Broken(_, error) => return Err(error),
    };
    let answer = Answer { started, json };
    if parts.status.is_success() {
        return Ok(Ok(answer));
    }
    // The codes of the standard are harmless; a description may hold anything.
    let code = answer.text("error").filter(|code| code.len() < 64 && code.bytes().all(|b| b.is_ascii_graphic()));
    Ok(Err(Refusal { status: parts.status.as_u16(), code: code.map(str::to_owned) }))
}

/// The URL of a token endpoint, as it was configured.
pub(super) fn parse_url(url: &str) -> Result<Url, CallError> {
    Url::parse(url)
        .ok()
        .filter(is_http)
        .map(without_user)
        .ok_or_else(|| invalid("/auth/tokenUrl", "the token URL is no http or https URL"))
}

/// Removes user and password: the client authenticates with its own credentials.
pub(super) fn without_user(mut url: Url) -> Url {
    // They fail only for URLs without a host.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url
}
