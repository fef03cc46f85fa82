//! HTTP options of a call.

use std::sync::Arc;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use url::Url;

use super::address::parse_url;
use super::auth::take_credentials;
use super::idempotency::is_blank;
use super::{Retry, Secret, invalid};
use crate::run::attempt::{GivenKey, IDEMPOTENCY_KEY};
use crate::{Call, CallError, CallOptions, Caller, Context, Execute, Open, Subscribe};

/// The HTTP options of a call, as they were set: `context.extension::<RequestOptions>()`.
///
/// An [`HttpClient`](crate::HttpClient) applies them. Handlers, such as those of a
/// [`MockCaller`](crate::mock::MockCaller), can read them. `Debug` shows no values.
#[derive(Debug, Clone, Default)]
pub struct RequestOptions {
    headers: Vec<(String, Secret)>,
    base_url: Option<Secret>,
    idempotency_key: Option<Secret>,
    /// `None` for those of the client, `Some(None)` for no retries.
    retry: Option<Option<Arc<Retry>>>,
    /// True if the call has a deadline of its own, which replaces the client's timeout.
    has_deadline: bool,
}

impl RequestOptions {
    /// The headers, in the order in which they were added.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        self.headers.iter().map(|(name, value)| (name.as_str(), value.expose()))
    }

    /// The base URL.
    pub fn base_url(&self) -> Option<&str> {
        self.base_url.as_ref().map(Secret::expose)
    }

    /// The idempotency key.
    pub fn idempotency_key(&self) -> Option<&str> {
        self.idempotency_key.as_ref().map(Secret::expose)
    }
}

/// Options for calls of an [`HttpClient`](crate::HttpClient), directly or through a registry. Other operations ignore
/// headers and base URLs; calls that a handler makes inherit none of these options.
impl CallOptions {
    /// Adds a header to the requests of this call.
    ///
    /// It replaces a header of that name from the configuration, the operation or the credentials, so `Authorization`
    /// can be the token of one user. Cookies are added to the others, and replace a cookie of the same name, credentials
    /// included. A redirect to another origin does not carry the header, unless no credential can be in it: see
    /// [Redirects](crate::http#redirects).
    /// The call fails with a `VALIDATION_ERROR` if the header is invalid, or one of those that frame the message, such
    /// as `Content-Length`.
    ///
    /// ```
    /// use ops_runtime::CallOptions;
    ///
    /// let options = CallOptions::new().with_header("X-Tenant", "t-7").with_header("Authorization", "Bearer t0k3n");
    /// ```
    #[must_use]
    pub fn with_header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let header = (name.into(), Secret::new(value));
        self.with_http(|options| options.headers.push(header))
    }

    /// Sends the requests of this call to another URL, instead of [`HttpConfig::with_base_url`] and the document's
    /// servers.
    ///
    /// The client's headers and credentials are sent there: do not take the URL from a response. A user and password in
    /// it are used as basic authentication.
    ///
    /// [`HttpConfig::with_base_url`]: crate::HttpConfig::with_base_url
    #[must_use]
    pub fn with_base_url(self, url: impl Into<String>) -> Self {
        let url = Secret::new(url);
        self.with_http(|options| options.base_url = Some(url))
    }

    /// Sends an idempotency key, by which the server recognises a repeated request, so that retries are safe.
    ///
    /// It is the value of the operation's header parameter for such keys: `Idempotency-Key`, one with that suffix
    /// (`X-Idempotency-Key`), or `PayPal-Request-Id`. All retries have the same key. The call fails with a
    /// `VALIDATION_ERROR` if the operation has no such parameter, because a server that ignores the key would carry out
    /// each retry, if the input or a header of the call has another key, or if the key has no characters. If the server takes
    /// the key although its document does not say so, send it by [`with_header`](Self::with_header).
    ///
    /// A function of this process reads the key with [`Context::idempotency_key`](crate::Context::idempotency_key). The
    /// call of an MCP tool, or of an operation of another process, fails with a `VALIDATION_ERROR`, since the key
    /// cannot be passed on.
    #[must_use]
    pub fn with_idempotency_key(mut self, key: impl Into<String>) -> Self {
        let key = key.into();
        self.extensions.insert_own(GivenKey(key.clone()));
        let key = Secret::new(key);
        self.with_http(|options| options.idempotency_key = Some(key))
    }

    /// Sets the retries of this call, instead of [`HttpConfig::with_retries`]: `None` for no retries.
    ///
    /// ```
    /// use ops_runtime::CallOptions;
    /// use ops_runtime::http::Retry;
    ///
    /// let once = CallOptions::new().with_retries(None);
    /// let often = CallOptions::new().with_retries(Retry::new().with_max_retries(9));
    /// ```
    ///
    /// [`HttpConfig::with_retries`]: crate::HttpConfig::with_retries
    #[must_use]
    pub fn with_retries(self, retry: impl Into<Option<Retry>>) -> Self {
        let retry = retry.into().map(Arc::new);
        self.with_http(|options| options.retry = Some(retry))
    }

    /// Notes that the call itself sets its deadline, if it does: for the client that it is made with.
    pub(super) fn noting_deadline(self) -> Self {
        if self.deadline.is_some() { self.with_http(|options| options.has_deadline = true) } else { self }
    }

    fn with_http(mut self, set: impl FnOnce(&mut RequestOptions)) -> Self {
        let mut options = self.extensions.get::<RequestOptions>().cloned().unwrap_or_default();
        set(&mut options);
        self.extensions.insert_own(options);
        self
    }
}

/// The steps of methods for options of their HTTP requests.
macro_rules! steps {
    ($name:ident, $kind:ident) => {
        impl<C: Caller, Op: $kind> $name<'_, C, Op> {
            /// Adds a header to the requests of this call, like [`CallOptions::with_header`].
            pub fn with_header(self, name: impl Into<String>, value: impl Into<String>) -> Self {
                self.map_options(|options| options.with_header(name, value))
            }

            /// Sends the requests of this call to another URL, like [`CallOptions::with_base_url`].
            pub fn with_base_url(self, url: impl Into<String>) -> Self {
                self.map_options(|options| options.with_base_url(url))
            }

            /// Sends an idempotency key, like [`CallOptions::with_idempotency_key`].
            pub fn with_idempotency_key(self, key: impl Into<String>) -> Self {
                self.map_options(|options| options.with_idempotency_key(key))
            }

            /// Sets the retries of this call, with `None` for no retries, like [`CallOptions::with_retries`].
            pub fn with_retries(self, retry: impl Into<Option<Retry>>) -> Self {
                self.map_options(|options| options.with_retries(retry))
            }
        }
    };
}

steps!(Execute, Call);
steps!(Open, Subscribe);

/// The HTTP options of a call, checked.
#[derive(Default)]
pub(super) struct PerCall {
    pub(super) headers: HeaderMap,
    pub(super) base_url: Option<Url>,
    pub(super) idempotency_key: Option<HeaderValue>,
    /// The key of the job that the call is an attempt of: sent if there is a parameter for it and no other key.
    pub(super) job_key: Option<HeaderValue>,
    /// The retries instead of the client's; `None` for the client's.
    pub(super) retry: Option<Option<Arc<Retry>>>,
    /// True if the call has a deadline of its own, which replaces the client's timeout.
    pub(super) has_deadline: bool,
}

impl PerCall {
    /// # Errors
    /// A `VALIDATION_ERROR` that names the option that cannot be sent.
    pub(super) fn of(context: &Context) -> Result<Self, CallError> {
        // The key of a job has only digits.
        let job_key = context.job_key().and_then(|key| HeaderValue::from_str(key).ok());
        let Some(options) = context.extension::<RequestOptions>() else {
            return Ok(Self { job_key, ..Self::default() });
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &options.headers {
            let (name, value) = header(name, value.expose())?;
            if frames(&name) {
                let message = format!("the header `{name}` frames the message, and cannot be set for a call");
                return Err(invalid("/headers", message));
            }
            headers.append(name, value);
        }
        let mut base_url = options.base_url.as_ref().map(|url| parse_url(url.expose())).transpose()?;
        if let Some(url) = &mut base_url
            && let Some((_, value)) = take_credentials(url)?.map(|own| own.to_header()).transpose()?.flatten()
        {
            headers.entry(AUTHORIZATION).or_insert(value);
        }
        let idempotency_key = options.idempotency_key.as_ref().map(key).transpose()?;
        let retry = options.retry.clone();
        Ok(Self { headers, base_url, idempotency_key, job_key, retry, has_deadline: options.has_deadline })
    }
}

/// The value of an idempotency key.
///
/// # Errors
/// A `VALIDATION_ERROR` if no header can carry it, or if it has no characters.
fn key(given: &Secret) -> Result<HeaderValue, CallError> {
    let (_, value) = header(IDEMPOTENCY_KEY, given.expose())?;
    if is_blank(&value) {
        let message = "the idempotency key has no characters, so no server knows a repeated request by it: give the call a \
                       key of its own, or leave it out";
        return Err(invalid("/idempotencyKey", message));
    }
    Ok(value)
}

/// A header, marked as sensitive: any of them may hold credentials.
///
/// # Errors
/// A `VALIDATION_ERROR` that names the header, without its value.
pub(super) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), CallError> {
    let bad = |what: &str| invalid("/headers", format!("the header `{}` has no valid {what}", name.escape_debug()));
    let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("name"))?;
    let mut value = HeaderValue::from_bytes(value.as_bytes()).map_err(|_| bad("value"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

/// Replaces headers by those with the same names, except those that are to stay.
pub(super) fn replace(headers: &mut HeaderMap, own: &HeaderMap, stays: impl Fn(&HeaderName) -> bool) {
    for name in own.keys().filter(|name| !stays(name)) {
        headers.remove(name);
        for value in own.get_all(name) {
            headers.append(name, value.clone());
        }
    }
}

/// True for headers that belong to the connection or the framing of a message (RFC 9110, section 7.6.1; RFC 9112).
pub(in crate::http) fn frames(name: &HeaderName) -> bool {
    const FRAMING: [&str; 9] = [
        "connection",
        "content-length",
        "expect",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    FRAMING.contains(&name.as_str())
}
