//! The server's clock, by which deadlines are compared.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use async_nats::datetime;
use async_nats::jetstream::Context;
use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;

use crate::model::clock::{millis, since_epoch};
use crate::model::lock::lock;

/// A response that took less than this is used even if others were faster.
const SLOW: Duration = Duration::from_secs(1);

/// The server's time, advanced by this process's monotonic clock.
pub(super) struct Clock {
    at: Mutex<Known>,
}

/// The server's time at a moment.
struct Known {
    at: Instant,
    time: u64,
    /// How long the fastest response took. `None` before the first.
    best: Option<Duration>,
}

#[derive(Deserialize)]
struct Answer {
    ts: String,
}

impl Clock {
    /// Begins with the system's time, until the server was asked.
    pub(super) fn new() -> Self {
        Self { at: Mutex::new(Known { at: Instant::now(), time: millis(since_epoch()), best: None }) }
    }

    pub(super) fn now(&self) -> u64 {
        let Known { at, time, .. } = *lock(&self.at);
        time.saturating_add(millis(at.elapsed()))
    }

    /// Asks the server: every response about a stream has its time.
    pub(super) async fn ask(&self, context: &Context, stream: &str) -> Result<(), async_nats::Error> {
        let asked = Instant::now();
        let answer: Answer = context.request(format!("STREAM.INFO.{stream}"), &()).await?;
        self.hear(millis_of(datetime::parse_rfc3339(&answer.ts)?), asked.elapsed());
        Ok(())
    }

    /// Uses a time that the server sent. It may be wrong by half of the response time, so a slow response is ignored if
    /// there was a faster one. The first is always used, since it is better than the system's time.
    fn hear(&self, time: u64, took: Duration) {
        let mut known = lock(&self.at);
        if known.best.is_none_or(|best| took < SLOW.max(best * 2)) {
            let best = known.best.map_or(took, |best| best.min(took));
            *known = Known { at: Instant::now(), time: time.saturating_add(millis(took / 2)), best: Some(best) };
        }
    }
}

/// Milliseconds since the Unix epoch.
pub(super) fn millis_of(time: datetime::DateTime) -> u64 {
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}

/// The time in the format of the server's schedules.
pub(super) fn rfc3339(millis: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(millis).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_that_took_long() {
        let clock = Clock::new();
        // The time that was told, how long the answer took, and the time then.
        for (told, took, is) in [
            (1_000_000, 3_000, 1_001_500),
            (2_000_000, 5_000, 2_002_500),
            (3_000_000, 7_000, 2_002_500),
            (4_000_000, 20, 4_000_010),
            (5_000_000, 900, 5_000_450),
            (6_000_000, 1_100, 5_000_450),
        ] {
            clock.hear(told, Duration::from_millis(took));
            assert_eq!(clock.at.lock().unwrap().time, is, "{told} {took}");
            assert!(clock.now() >= is, "{told} {took}: {}", clock.now());
        }
    }

    #[test]
    fn times_as_text() {
        assert_eq!(rfc3339(1_795_484_060_007).as_deref(), Some("2026-11-24T01:34:20.007Z"));
        assert_eq!(rfc3339(u64::MAX), None);
    }
}
