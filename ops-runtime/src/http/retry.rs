//! When a request is sent again, and when a subscription is opened again.

use std::time::{Duration, SystemTime};

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use http::header::RETRY_AFTER;
use http::{HeaderMap, Method, Request, StatusCode};

use super::RequestBody;
use super::idempotency::is_idempotency_header;

/// How often, and after what delays, a request is retried.
///
/// Only requests that are safe to repeat are retried: idempotent ones by RFC 9110, section 9.2.2 (GET, HEAD, OPTIONS,
/// TRACE, PUT, DELETE), and others only with an idempotency key
/// ([`CallOptions::with_idempotency_key`](crate::CallOptions::with_idempotency_key)); never one whose body is a stream. They are
/// retried if the connection could not be made or broke before the response, and after the statuses 408, 429, 502, 503
/// and 504.
///
/// The delay is a random part of a time that doubles with each try ("full jitter"), or the server's `Retry-After`. If
/// it would exceed the limit or the call's deadline, the last response counts.
///
/// Each retry is logged at the level `WARN`. Their number is in [`HttpMeta::retries`](crate::envelope::HttpMeta::retries),
/// and in the details of an error as `retries`.
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
}

impl Retry {
    /// Three retries, after up to 0.25, 0.5 and 1 seconds; a `Retry-After` of up to a minute is followed.
    pub const fn new() -> Self {
        Self {
            retries: 3,
            first_delay: Duration::from_millis(250),
            max_delay: Duration::from_secs(20),
            max_retry_after: Duration::from_secs(60),
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

    /// Sets the longest `Retry-After` to wait for; if the server asks for more, its response counts.
    #[must_use]
    pub const fn with_max_retry_after(mut self, delay: Duration) -> Self {
        self.max_retry_after = delay;
        self
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

/// The retries that one call has left.
pub(super) struct Schedule {
    backoff: ExponentialBackoff,
    max_retry_after: Duration,
}

impl Schedule {
    /// `None` if the request must not be repeated, or if retries are off.
    pub(super) fn of(retry: Option<&Retry>, request: &Request<RequestBody>) -> Option<Self> {
        let retry = retry.filter(|_| is_repeatable(request))?;
        Some(Self { backoff: retry.backoff(), max_retry_after: retry.max_retry_after })
    }

    /// How long to wait before the next try; `None` if there is no next try.
    pub(super) fn next(&mut self, asked: Option<Duration>) -> Option<Duration> {
        let delay = self.backoff.next()?;
        match asked {
            Some(asked) => (asked <= self.max_retry_after).then_some(asked),
            None => Some(jitter(delay)),
        }
    }
}

/// True if a request may be sent again, whether it was carried out or not.
pub(super) fn is_repeatable(request: &Request<RequestBody>) -> bool {
    let idempotent = [Method::GET, Method::HEAD, Method::OPTIONS, Method::TRACE, Method::PUT, Method::DELETE]
        .contains(request.method());
    let has_key = || request.headers().keys().any(|name| is_idempotency_header(name.as_str()));
    (idempotent || has_key()) && request.body().is_repeatable()
}

/// A random part of a delay, so that many clients do not come back together.
pub(super) fn jitter(delay: Duration) -> Duration {
    delay.mul_f64(fastrand::f64())
}

/// True if the same request may succeed later.
pub(super) fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 502 | 503 | 504)
}

/// How long the server wants the client to wait (RFC 9110, section 10.2.3).
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
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
/// over them. A stream ends for good when it says `[DONE]`, when the server answers 204 or with a permanent error, or
/// after too many tries in a row without an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnect {
    pub(super) tries: usize,
    first_delay: Duration,
    min_delay: Duration,
    max_delay: Duration,
}

impl Reconnect {
    /// Five tries in a row, after half a second to 30 seconds.
    pub const fn new() -> Self {
        Self {
            tries: 5,
            first_delay: Duration::from_millis(500),
            min_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }

    /// Sets how many tries in a row may bring no event.
    #[must_use]
    pub const fn with_max_tries(mut self, tries: usize) -> Self {
        self.tries = tries;
        self
    }

    /// Sets the delay before the first try if the server asks for none; it doubles with each.
    #[must_use]
    pub const fn with_first_delay(mut self, delay: Duration) -> Self {
        self.first_delay = delay;
        self
    }

    /// Sets the shortest delay before any try, even if the server asks for less: half a second by default.
    #[must_use]
    pub const fn with_min_delay(mut self, delay: Duration) -> Self {
        self.min_delay = delay;
        self
    }

    /// Sets the longest delay before any try, even if the server asks for more.
    #[must_use]
    pub const fn with_max_delay(mut self, delay: Duration) -> Self {
        self.max_delay = delay;
        self
    }

    /// The delay before a try, after `in_vain` tries without an event.
    pub(super) fn delay(&self, in_vain: usize, asked: Option<Duration>) -> Duration {
        let doubled = self.first_delay.saturating_mul(1 << in_vain.min(16));
        let delay = match asked {
            // At first the server's delay; a longer one while the server stays away.
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
    use http::HeaderValue;

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
        let retry = Retry::new();
        let request = |method: &str, key: bool, body: crate::Body| {
            let mut request = Request::builder().method(method);
            if key {
                request = request.header("Idempotency-Key", "k");
            }
            request.body(RequestBody::from(body)).unwrap()
        };
        let stream = || crate::Body::stream(futures_util::stream::empty());
        for (method, key, body, expected) in [
            ("GET", false, crate::Body::default(), true),
            ("DELETE", false, crate::Body::default(), true),
            ("PUT", false, "x".into(), true),
            ("PUT", false, crate::Body::file("x"), true),
            ("PUT", false, stream(), false),
            ("POST", false, "x".into(), false),
            ("PATCH", false, "x".into(), false),
            ("POST", true, "x".into(), true),
            ("POST", true, stream(), false),
        ] {
            let found = Schedule::of(Some(&retry), &request(method, key, body)).is_some();
            assert_eq!(found, expected, "{method} {key}");
        }
        assert!(Schedule::of(None, &request("GET", false, crate::Body::default())).is_none());
    }

    #[test]
    fn delays_are_bounded() {
        let retry = Retry::new().with_max_retries(4).with_max_delay(Duration::from_millis(600));
        let request = Request::new(RequestBody::default());
        let mut schedule = Schedule::of(Some(&retry), &request).unwrap();
        assert!(schedule.next(None).unwrap() <= Duration::from_millis(250));
        assert_eq!(schedule.next(Some(Duration::from_secs(60))), Some(Duration::from_secs(60)));
        assert_eq!(schedule.next(Some(Duration::from_secs(61))), None);
        assert!(schedule.next(None).unwrap() <= Duration::from_millis(600));
        assert_eq!(schedule.next(None), None);
        let retry = retry.with_first_delay(Duration::from_secs(3_600)).with_max_retries(64);
        let mut schedule = Schedule::of(Some(&retry), &request).unwrap();
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
