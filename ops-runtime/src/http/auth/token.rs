//! The endpoints that issue tokens (RFC 6749, sections 3.2 and 5).

use std::time::{Duration, Instant, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Method};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio::time::timeout;
use url::Url;
use url::form_urlencoded::{Serializer, byte_serialize};

use super::secret::{Secret, sensitive};
use crate::http::address::is_http;
use crate::http::engine::Engine;
use crate::http::invalid;
use crate::http::response::{Collected, collect};
use crate::http::retry::retry_after;
use crate::http::send::request;
use crate::model::media::{FORM, JSON};
use crate::model::retry::may_pass;
use crate::model::secrets::{Secrets, names_a_secret};
use crate::{BoxFuture, CallError, ErrorCode};

/// How long before its expiry a token counts as expired, so that it is still valid when the server checks it.
const LEEWAY: Duration = Duration::from_secs(30);

/// How long a request for a token may take.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// How many bytes the response of a token endpoint may have.
const MAX_ANSWER: usize = 256 * 1024;

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
    ///
    /// Without a secret, only the id is added: the client authenticates by an assertion or a certificate, and no request
    /// may use two methods (RFC 6749, section 2.3).
    fn put<'a>(&'a self, headers: &mut HeaderMap, form: &mut Form<'a>) -> Result<(), CallError> {
        if self.secret.expose().is_empty() {
            form.push(("client_id", self.id.as_str()));
            return Ok(());
        }
        if self.in_body {
            form.extend([("client_id", self.id.as_str()), ("client_secret", self.secret.expose())]);
            return Ok(());
        }
        // Both are escaped before they are joined (RFC 6749, section 2.3.1).
        let escape = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = format!("{}:{}", escape(&self.id), escape(self.secret.expose()));
        headers.insert(AUTHORIZATION, sensitive("the client's secret", &format!("Basic {}", STANDARD.encode(pair)))?);
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
    /// When to ask again, as the endpoint says it.
    retry_after: Option<String>,
}

impl Refusal {
    /// The status and the code, such as `HTTP 400: invalid_scope`.
    pub(super) fn words(&self) -> String {
        let code = self.code.as_ref().map_or_else(String::new, |code| format!(": {code}"));
        format!("HTTP {}{code}", self.status)
    }

    /// The error for it, which says if the endpoint may answer otherwise later, and when.
    pub(super) fn error(&self, message: String) -> CallError {
        let error = CallError::execution(message);
        if !may_pass(self.status.into()) {
            return error;
        }
        let asked = self.retry_after.iter().fold(error, |error, wait| error.with_header(RETRY_AFTER.as_str(), wait));
        asked.transient()
    }
}

/// Sends a request to a token endpoint.
///
/// # Errors
/// If the transport fails, or if the endpoint does not answer in time. What it refuses is the inner error.
pub(super) fn ask<'a>(
    engine: &'a dyn Engine,
    url: &'a Url,
    client: Option<&'a Client>,
    mut form: Form<'a>,
) -> BoxFuture<'a, Result<Result<Answer, Refusal>, CallError>> {
    Box::pin(async move {
        let mut headers = HeaderMap::new();
        if let Some(client) = client {
            client.put(&mut headers, &mut form)?;
        }
        headers.insert(ACCEPT, HeaderValue::from_static(JSON));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(FORM));
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let started = Instant::now();
        let request = request(Method::POST, url, headers, bytes::Bytes::from(body).into())?;
        let answered = async {
            // Straight to the engine: a redirect must not carry the secret anywhere.
            let response = engine.send(request).await.map_err(|failed| failed.error)?;
            let (parts, body) = response.into_parts();
            match collect(body, MAX_ANSWER).await {
                Collected::Whole(bytes) => Ok((parts, serde_json::from_slice(&bytes).unwrap_or_default())),
                Collected::Cut(_) => Ok((parts, Value::Null)),
                Collected::Broken(_, error) => Err(error),
            }
        };
        // Outside of a Tokio runtime there are no timers.
        let has_timers = Handle::try_current().is_ok();
        let (parts, json) = match has_timers {
            true => timeout(TIMEOUT, answered).await.unwrap_or_else(|_| Err(too_slow(url)))?,
            false => answered.await?,
        };
        let answer = Answer { started, json };
        if parts.status.is_success() {
            return Ok(Ok(answer));
        }
        // Error codes of the standard are harmless, so only a code is kept: a description may contain anything.
        let code = answer.text("error").filter(|code| code.len() < 64 && code.bytes().all(|b| b.is_ascii_graphic()));
        // A `Retry-After` that is no time may contain anything, too. A date becomes seconds here, where the server's own time is
        // known.
        let wait = retry_after(&parts.headers, SystemTime::now()).map(|wait| wait.as_secs().to_string());
        Ok(Err(Refusal { status: parts.status.as_u16(), code: code.map(str::to_owned), retry_after: wait }))
    })
}

fn too_slow(url: &Url) -> CallError {
    let host = url.host_str().unwrap_or_default();
    CallError::new(ErrorCode::Timeout, format!("the token endpoint at `{host}` did not answer within {TIMEOUT:?}"))
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

#[cfg(test)]
mod tests {
    use futures_util::future::BoxFuture;
    use http::Request;

    use super::*;
    use crate::http::RequestBody;
    use crate::http::engine::{EngineResponse, SendError};

    /// Takes requests, and never answers.
    struct Silent;

    impl Engine for Silent {
        fn send(&self, _: Request<RequestBody>) -> BoxFuture<'static, Result<EngineResponse, SendError>> {
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_endpoint_that_is_silent_is_not_waited_for_without_end() {
        let url = Url::parse("https://login.test/token").unwrap();
        let error = ask(&Silent, &url, None, Vec::new()).await.err().unwrap();
        let told = "the token endpoint at `login.test` did not answer within 30s";
        assert_eq!((error.code().as_str(), error.message(), error.is_retryable()), ("TIMEOUT", told, true));
    }
}
