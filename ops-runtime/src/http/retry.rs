//! When a request is retried.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use http::header::{DATE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};

use super::RequestBody;
use super::idempotency::{is_blank, is_idempotency_header};
use crate::OperationSpec;
use crate::model::retry;

/// How often, and after which delays, a request is retried.
///
/// Only requests that are safe to repeat are retried: idempotent ones by RFC 9110, section 9.2.2 (GET, HEAD, OPTIONS,
/// TRACE, PUT, DELETE), QUERY, those of operations that [`with_idempotent`](Self::with_idempotent) names, and others only
/// with an idempotency key ([`CallOptions::with_idempotency_key`](crate::CallOptions::with_idempotency_key)); never one
/// whose body is a stream or a pipe. They are retried if the connection could not be made or broke before the response, if an
/// attempt took too long ([`with_attempt_timeout`](Self::with_attempt_timeout)), and after the statuses 408, 425, 429 and all
/// from 500 but 501 and 505, or those of [`with_statuses`](Self::with_statuses).
///
/// Before a request is sent, it does no harm to ask for its token again. So whatever the request, that is retried if the
/// error is one that [may pass](crate::CallError::is_retryable). It uses up one of the call's retries.
///
/// The delay is a random part of a time that doubles with each attempt ("full jitter"), or the server's `Retry-After` if
/// that is longer, or if there is no time for more before the call's deadline. A date in it is compared with the response's
/// own `Date`. If the delay would exceed the limit or the deadline, the last response counts.
///
/// Each retry is logged at the level `WARN`. How often the request was sent again is in
/// [`HttpMeta::retries`](crate::envelope::HttpMeta::retries), and in the details of an error as `retries`. In the details of
/// an error of the token endpoint, `retries` says how often the token was asked for again.
///
/// ```
/// use std::time::Duration;
///
/// use ops_runtime::http::{HttpConfig, Retry};
///
/// let retry = Retry::new().with_max_retries(5).with_max_retry_after(Duration::from_secs(10));
/// let config = HttpConfig::new().with_base_url("https://api.example.com").with_retries(retry);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    retries: usize,
    first_delay: Duration,
    max_delay: Duration,
    max_retry_after: Duration,
    attempt_timeout: Option<Duration>,
    /// `None` for the default statuses.
    statuses: Option<BTreeSet<u16>>,
    idempotent: Vec<String>,
}

impl Retry {
    /// Three retries, after up to 0.25, 0.5 and 1 seconds; waits for a `Retry-After` of up to a minute.
    pub const fn new() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(250),
            max_delay: Duration::from_secs(20),
            max_retry_after: Duration::from_secs(60),
            attempt_timeout: None,
            statuses: None,
            idempotent: Vec::new(),
        }
    }

    /// Sets how often a request is retried.
    #[must_use]
    pub const fn with_max_retries(mut self, retries: usize) -> Self {
        self.retries = retries;
        self
    }

    /// Sets the longest delay before the first retry; it doubles with each.
    #[must_use]
    pub const fn with_first_delay(mut self, delay: Duration) -> Self {
        self.first_delay = delay;
        self
    }

    /// Sets the longest delay before any retry: 20 seconds by default.
    #[must_use]
    pub const fn with_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// Sets the longest `Retry-After` to wait for; if the server requests more, its response counts.
    #[must_use]
    pub const fn with_max_retry_after(mut self, delay: Duration) -> Self {
        self.max_retry_after = delay;
        self
    }

    /// Limits the time of each attempt, until the headers of the response arrive. An attempt that takes longer is given up, and
    /// the request is retried. `None`, the default, is no limit: a server that never answers then uses up the time of the
    /// whole call.
    ///
    /// A request that is not safe to repeat has no other limit than that of the call. Each redirect is an attempt of its own.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use ops_runtime::http::{HttpConfig, Retry};
    ///
    /// let retry = Retry::new().with_attempt_timeout(Duration::from_secs(2));
    /// let config = HttpConfig::new().with_retries(retry).with_timeout(Duration::from_secs(30));
    /// ```
    #[must_use]
    pub fn with_attempt_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.attempt_timeout = timeout.into();
        self
    }

    /// Sets the statuses after which a request is retried, instead of the default ones.
    #[must_use]
    pub fn with_statuses(mut self, statuses: impl IntoIterator<Item = u16>) -> Self {
        self.statuses = Some(statuses.into_iter().collect());
        self
    }

    /// Treats operations that match the pattern as idempotent, such as a `POST` that only searches. Patterns are those of
    /// [`OperationSpec::matches`](crate::spec::OperationSpec::matches), and may be given more than once.
    ///
    /// ```
    /// use ops_runtime::http::Retry;
    ///
    /// let retry = Retry::new().with_idempotent("shop.search*").with_idempotent("POST /graphql").with_statuses([429, 503]);
    /// ```
    #[must_use]
    pub fn with_idempotent(mut self, pattern: impl Into<String>) -> Self {
        self.idempotent.push(pattern.into());
        self
    }

    pub(super) fn attempt_timeout(&self) -> Option<Duration> {
        self.attempt_timeout
    }

    /// True if the operation may be repeated regardless of its method.
    pub(super) fn repeats(&self, spec: &OperationSpec) -> bool {
        self.idempotent.iter().any(|pattern| spec.matches(pattern))
    }

    /// True if the request may be repeated after a response with this status.
    pub(super) fn may_pass(&self, status: StatusCode) -> bool {
        self.statuses.as_ref().map_or_else(|| may_pass(status), |own| own.contains(&status.as_u16()))
    }

    fn backoff(&self) -> ExponentialBackoff {
        ExponentialBuilder::default()
            .with_min_delay(self.first_delay.min(self.max_delay))
            .with_max_delay(self.max_delay)
            .with_max_times(self.retries)
            .build()
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self::new()
    }
}

/// The remaining retries of one call.
pub(super) struct Schedule {
    backoff: ExponentialBackoff,
    max_retry_after: Duration,
}

impl Schedule {
    pub(super) fn of(retry: &Retry) -> Self {
        Self { backoff: retry.backoff(), max_retry_after: retry.max_retry_after }
    }

    /// The delay before the next attempt; `None` if there is none, or if it would not be over in the time that is left.
    pub(super) fn next(&mut self, asked: Option<Duration>, left: Option<Duration>) -> Option<Duration> {
        let delay = part_of(self.backoff.next()?);
        let fits = |delay: &Duration| left.is_none_or(|left| *delay < left);
        match asked {
            Some(asked) if asked > self.max_retry_after => None,
            // Some servers ask for no delay at all, with every response. If there is no time for more, what they ask for
            // is enough.
            Some(asked) => [asked.max(delay), asked].into_iter().find(fits),
            None => Some(delay).filter(fits),
        }
    }
}

/// True if a request of this method changes nothing: GET, HEAD, OPTIONS, TRACE, and QUERY, which OpenAPI 3.2 describes.
pub(super) fn is_safe(method: &Method) -> bool {
    method.is_safe() || method.as_str() == "QUERY"
}

/// True if it does no harm to repeat a request that may have been carried out. `is_idempotent` is true for an operation that
/// is idempotent regardless of its method. The client itself can repeat it only if its body can be read again.
pub(super) fn is_safe_to_repeat(request: &Request<RequestBody>, is_idempotent: bool) -> bool {
    let by_method = is_safe(request.method()) || request.method().is_idempotent();
    // No server knows a request again by a key without characters.
    let is_key = |(name, value): (&HeaderName, &HeaderValue)| is_idempotency_header(name.as_str()) && !is_blank(value);
    let has_key = || request.headers().iter().any(is_key);
    is_idempotent || by_method || has_key()
}

/// A random part of a delay, so that many clients do not come back together.
pub(super) fn part_of(delay: Duration) -> Duration {
    delay.mul_f64(fastrand::f64())
}

/// True if the same request may succeed later.
pub(super) fn may_pass(status: StatusCode) -> bool {
    retry::may_pass(status.as_u16().into())
}

/// The delay that the server requests (RFC 9110, section 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok();
    wait_of(text(RETRY_AFTER)?, text(DATE), now)
}

/// The wait that the value of a header `Retry-After` asks for; `date` is the value of the header `Date` beside it.
pub(super) fn wait_of(value: &str, date: Option<&str>, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let then = httpdate::parse_http_date(value).ok()?;
    // The server's clock says how long the wait is, for this one may be wrong.
    let now = date.and_then(|date| httpdate::parse_http_date(date.trim()).ok()).unwrap_or(now);
    Some(then.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_server_asks_for() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let table = [
            ("120", Some(120)),
            (" 0 ", Some(0)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", Some(10)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", Some(10)),
            ("Sun, 06 Nov 1994 08:00:00 GMT", Some(0)),
            ("99999999999999999999999", Some(u64::MAX)),
            ("-1", None),
            ("soon", None),
            ("", None),
        ];
        for (value, seconds) in table {
            let headers = HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(value))]);
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{value}");
        }
        // This clock is an hour behind that of the server.
        let headers = [(RETRY_AFTER, "Sun, 06 Nov 1994 09:49:42 GMT"), (DATE, "Sun, 06 Nov 1994 09:49:37 GMT")];
        let headers = headers.map(|(name, value)| (name, HeaderValue::from_static(value)));
        assert_eq!(retry_after(&headers.into_iter().collect(), now), Some(Duration::from_secs(5)));
    }

    #[test]
    fn only_what_is_safe_is_repeated() {
        let request = |method: &str, key: bool, body: crate::Body| {
            let mut request = Request::builder().method(method);
            if key {
                request = request.header("Idempotency-Key", "k");
            }
            request.body(RequestBody::from(body)).unwrap()
        };
        let stream = || crate::Body::stream(futures_util::stream::empty());
        for (method, key, idempotent, body, expected) in [
            ("GET", false, false, crate::Body::default(), true),
            ("DELETE", false, false, crate::Body::default(), true),
            ("PUT", false, false, "x".into(), true),
            ("PUT", false, false, crate::Body::file("x"), true),
            ("PUT", false, false, stream(), false),
            ("QUERY", false, false, "x".into(), true),
            ("QUERY", false, false, stream(), false),
            ("POST", false, false, "x".into(), false),
            ("PATCH", false, false, "x".into(), false),
            ("POST", true, false, "x".into(), true),
            ("POST", true, false, stream(), false),
            ("POST", false, true, "x".into(), true),
            ("POST", false, true, stream(), false),
        ] {
            let request = request(method, key, body);
            let is_safe = is_safe_to_repeat(&request, idempotent);
            assert_eq!(is_safe && request.body().is_repeatable(), expected, "{method} {key} {idempotent}");
            // The caller can repeat it with another stream.
            assert_eq!(
                is_safe,
                !matches!(method, "POST" | "PATCH") || key || idempotent,
                "{method} {key} {idempotent}"
            );
        }
        // A key without characters is none.
        for (value, expected) in [("", false), (" ", false), ("k", true)] {
            let request = Request::post("/").header("Idempotency-Key", value).body(RequestBody::default()).unwrap();
            assert_eq!(is_safe_to_repeat(&request, false), expected, "{value:?}");
        }
    }

    #[test]
    fn statuses_that_may_pass() {
        let (default, own) = (Retry::new(), Retry::new().with_statuses([409, 503]));
        for (status, by_default, by_own) in [
            (408, true, false),
            (409, false, true),
            (425, true, false),
            (429, true, false),
            (404, false, false),
            (500, true, false),
            (501, false, false),
            (503, true, true),
            (505, false, false),
            (529, true, false),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!((default.may_pass(status), own.may_pass(status)), (by_default, by_own), "{status}");
        }
    }

    #[test]
    fn delays_are_bounded() {
        let retry = Retry::new().with_max_retries(4).with_max_delay(Duration::from_millis(600));
        let mut schedule = Schedule::of(&retry);
        assert!(schedule.next(None, None).unwrap() <= Duration::from_millis(250));
        assert_eq!(schedule.next(Some(Duration::from_secs(60)), None), Some(Duration::from_secs(60)));
        assert_eq!(schedule.next(Some(Duration::from_secs(61)), None), None);
        assert!(schedule.next(None, None).unwrap() <= Duration::from_millis(600));
        assert_eq!(schedule.next(None, None), None);
        let retry = retry.with_first_delay(Duration::from_secs(3_600)).with_max_retries(64);
        let mut schedule = Schedule::of(&retry);
        while let Some(delay) = schedule.next(None, None) {
            assert!(delay <= Duration::from_millis(600), "{delay:?}");
        }
        // A server that asks for no delay does not get all retries at once.
        let mut schedule = Schedule::of(&retry);
        let delays = std::iter::from_fn(|| schedule.next(Some(Duration::ZERO), None));
        assert!(delays.sum::<Duration>() > Duration::from_secs(1));

        // Nor is a retry given up that the server asked for, and for which there is time.
        let retry = Retry::new().with_max_retries(64).with_first_delay(Duration::from_secs(20));
        let (second, left) = (Duration::from_secs(1), Some(Duration::from_secs(2)));
        let mut schedule = Schedule::of(&retry);
        let delays: Vec<_> = std::iter::from_fn(|| schedule.next(Some(second), left)).collect();
        assert!(delays.len() == 64 && delays.iter().all(|delay| *delay >= second && *delay < second * 2), "{delays:?}");
        assert_eq!(Schedule::of(&retry).next(Some(second), Some(second)), None);
    }
}
