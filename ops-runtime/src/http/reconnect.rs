//! When a subscription is reopened.

use std::time::Duration;

use super::retry::part_of;
use crate::model::random::jitter;

/// How a subscription is reopened after its connection has ended.
///
/// Only queries (GET and QUERY) are reopened, and only streams of server-sent events. The last event's id is sent as
/// `Last-Event-ID`. The delay is what the server asked for with `retry:`, or with the `Retry-After` of an error, or else a
/// back-off. It is never less than [`with_min_delay`](Self::with_min_delay), nor more than
/// [`with_max_delay`](Self::with_max_delay). The back-off grows with connections that end soon, even if an event came over
/// them. A stream ends for good when it says `[DONE]`, as an event or as a comment, or when the server answers 204. It ends
/// with an error when the server answers with a permanent one, or after too many tries in a row without an event. A
/// connection that lasted 10 seconds does not count as one of these: streams may be quiet. The silence before an
/// [idle timeout](super::HttpConfig::with_idle_timeout) is not part of these 10 seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reconnect {
    pub(super) tries: usize,
    first_delay: Duration,
    min_delay: Duration,
    max_delay: Duration,
}

impl Reconnect {
    /// The default: five attempts in a row without an event, with delays from half a second to 30 seconds.
    pub const fn new() -> Self {
        Self {
            tries: 5,
            first_delay: Duration::from_millis(500),
            min_delay: Duration::from_millis(500),
            max_delay: Duration::from_secs(30),
        }
    }

    /// Limits the attempts in a row that bring no event. A connection that lasted 10 seconds does not count.
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
            Some(asked) => asked.max(part_of(doubled)),
            None => jitter(doubled),
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
    fn delays_are_bounded() {
        let reconnect = Reconnect::new().with_max_delay(Duration::from_secs(3));
        assert_eq!(reconnect.delay(0, Some(Duration::ZERO)), Duration::from_millis(500));
        let reconnect = reconnect.with_min_delay(Duration::ZERO);
        assert_eq!(reconnect.delay(0, Some(Duration::from_millis(7))), Duration::from_millis(7));
        assert_eq!(reconnect.delay(0, Some(Duration::MAX)), Duration::from_secs(3));
        assert!(reconnect.delay(usize::MAX, None) <= Duration::from_secs(3));
        assert!(reconnect.delay(0, None) >= Duration::from_millis(250));
    }
}
