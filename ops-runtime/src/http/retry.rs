//! When a request is retried, and when a subscription is reopened.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};

use super::RequestBody;
use super::idempotency::{is_blank, is_idempotency_header};
use crate::OperationSpec;
use crate::model::retry;

/// How often, and after which delays, a request is retried.
///
/// Only requests that are safe to repeat are retried: idempotent ones by RFC 9110, section 9.2.2 (GET, HEAD, OPTIONS,
/// TRACE, PUT, DELETE), those of operations that [`with_idempotent`](Self::with_idempotent) names, and others only with an
/// idempotency key ([`CallOptions::with_idempotency_key`](crate::CallOptions::with_idempotency_key)); never one whose body
/// is a stream or a pipe. They are retried if the connection could not be made or broke before the response, and after the
/// statuses 408, 425, 429 and all from 500 but 501 and 505, or those of [`with_statuses`](Self::with_statuses).
///
/// Before a request is sent, it does no harm to ask for its token again. So whatever the request, that is retried if the
/// error is one that [may pass](crate::CallError::is_retryable). It uses up one of the call's retries.
///
/// The delay is a random part of a time that doubles with each attempt ("full jitter"), or the server's `Retry-After`.
/// If it would exceed the limit or the call's deadline, the last response counts.
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

    /// The delay before the next attempt; `None` if there is none.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let delay = self.backoff.next()?;
        match asked {
            Some(asked) => (asked <= self.max_retry_after).then_some(asked),
            None => Some(jitter(delay)),
        }
    }
}

/// True if a request may be repeated, even if it may have been carried out. `is_idempotent` is true for an operation
/// that is idempotent regardless of its method.
pub(super) fn is_repeatable(request: &Request<RequestBody>, is_idempotent: bool) -> bool {
    let by_method = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE]
        .contains(request.method());
    // No server knows a request again by a key without characters.
    let is_key = |(name, value): (&HeaderName, &HeaderValue)| is_idempotency_header(name.as_str()) && !is_blank(value);
    let has_key = || request.headers().iter().any(is_key);
    (is_idempotent || by_method || has_key()) && request.body().is_repeatable()
}

/// A random part of a delay, so that many clients do not come back together.
pub(super) fn jitter(delay: Duration) -> Duration {
    delay.mul_f64(fastrand::f64())
}

/// True if the same request may succeed later.
pub(super) fn may_pass(status: StatusCode) -> bool {
    retry::may_pass(status.as_u16().into())
}

/// The delay that the server requests (RFC 9110, section 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    wait_of(headers.get(RETRY_AFTER)?.to_str().ok()?, now)
}

/// The wait that the value of a header `Retry-After` asks for.
pub(super) fn wait_of(value: &str, now: SystemTime) -> Option<Duration> {
    let value = value.trim();
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(value.parse().unwrap_or(u64::MAX)));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

/// How a subscription is reopened after its connection has ended.
///
/// Only queries (GET) are reopened, and only streams of server-sent events. The last event's id is sent as
/// `Last-Event-ID`. The delay is what the server asked for with `retry:`, or else a back-off, and never less than
/// [`with_min_delay`](Self::with_min_delay). The back-off grows with connections that end soon, even if an event came
/// over them. A stream ends for good when it says `[DONE]`, or when the server answers 204. It ends with an error when the
/// server answers with a permanent one, or after too many tries in a row without an event. A connection that lasted 10
/// seconds does not count as one of these: streams may be quiet. The silence before an
/// [idle timeout](super::HttpConfig::with_idle_timeout) is not part of these 10 seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnect {
    pub(super) tries: usize,
    first_delay: Duration,
    min_delay: Duration,
    max_delay: Duration,
}

impl Reconnect {
    /// Five attempts in a row, after half a second to 30 seconds.
    pub const fn new() -> Self {
        Self {
            tries: 5,
            first_delay: Duration::from_millis(500),
            min_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }

    /// Sets how many tries in a row may bring no event, beside connections that lasted 10 seconds.
    #[must_use]
    pub const fn with_max_attempts(mut self, tries: usize) -> Self {
        self.tries = tries;
        self
    }

    /// Sets the delay before the first attempt if the server requests none; it doubles with each.
    #[must_use]
    pub const fn with_first_delay(mut self, delay: Duration) -> Self {
        self.first_delay = delay;
        self
    }

    /// Sets the shortest delay before any attempt, even if the server requests less: half a second by default.
    #[must_use]
    pub const fn with_min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Sets the longest delay before any attempt, even if the server requests more.
    #[must_use]
    pub const fn with_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The delay before an attempt, after `in_vain` attempts without an event.
    pub(super) fn delay(&self, in_vain: usize, asked: Option<Duration>) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << in_vain.min(16));
        let delay = match asked {
            // At first the server's delay; a longer one while the server is away.
            Some(asked) if in_vain == 0 => asked,
            Some(asked) => asked.max(jitter(doubled)),
            None => doubled / 2 + jitter(doubled / 2),
        };
        delay.max(self.min_delay).min(self.max_delay)
    }
}

impl Default for Reconnect {
    fn default() -> Self {
        Self::new()
    }
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
            ("POST", false, false, "x".into(), false),
            ("PATCH", false, false, "x".into(), false),
            ("POST", true, false, "x".into(), true),
            ("POST", true, false, stream(), false),
            ("POST", false, true, "x".into(), true),
            ("POST", false, true, stream(), false),
        ] {
            let found = is_repeatable(&request(method, key, body), idempotent);
            assert_eq!(found, expected, "{method} {key} {idempotent}");
        }
        // A key without characters is none.
        for (value, expected) in [("", false), (" ", false), ("k", true)] {
            let request = Request::post("/").header("Idempotency-Key", value).body(RequestBody::default()).unwrap();
            assert_eq!(is_repeatable(&request, false), expected, "{value:?}");
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
        assert!(schedule.next(None).unwrap() <= Duration::from_millis(250));
        assert_eq!(schedule.next(Some(Duration::from_secs(60))), Some(Duration::from_secs(60)));
        assert_eq!(schedule.next(Some(Duration::from_secs(61))), None);
        assert!(schedule.next(None).unwrap() <= Duration::from_millis(600));
        assert_eq!(schedule.next(None), None);
        let retry = retry.with_first_delay(Duration::from_secs(3_600)).with_max_retries(64);
        let mut schedule = Schedule::of(&retry);
        while let Some(delay) = schedule.next(None) {
            assert!(delay <= Duration::from_millis(600), "{delay:?}");
        }

        let reconnect = Reconnect::new().with_max_delay(Duration::from_secs(3));
        assert_eq!(reconnect.delay(0, Some(Duration::ZERO)), Duration::from_millis(500));
        let reconnect = reconnect.with_min_delay(Duration::ZERO);
        assert_eq!(reconnect.delay(0, Some(Duration::from_millis(7))), Duration::from_millis(7));
        assert_eq!(reconnect.delay(0, Some(Duration::MAX)), Duration::from_secs(3));
        assert!(reconnect.delay(usize::MAX, None) <= Duration::from_secs(3));
        assert!(reconnect.delay(0, None) >= Duration::from_millis(250));
    }
}
