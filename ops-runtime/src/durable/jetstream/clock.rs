//! The server's clock, by which deadlines are compared.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use async_nats::datetime;
use async_nats::jetstream::Context;
use chrono::{DateTime, SecondsFormat};
use serde::Deserialize;

/// The server's time, counted on by this process's monotonic clock.
pub(super) struct Clock {
    at: Mutex<(Instant, u64)>,
}

#[derive(Deserialize)]
struct Answer {
    ts: String,
}

impl Clock {
    /// Begins with the system's time, until the server was asked.
    pub(super) fn new() -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { at: Mutex::new((Instant::now(), millis(now))) }
    }

    pub(super) fn now(&self) -> u64 {
        let (at, time) = *self.at.lock().unwrap_or_else(PoisonError::into_inner);
        time.saturating_add(millis(at.elapsed()))
    }

    /// Asks the server: every answer about a stream has its time.
    pub(super) async fn ask(&self, context: &Context, stream: &str) -> Result<(), async_nats::Error> {
        let asked = Instant::now();
        let answer: Answer = context.request(format!("STREAM.INFO.{stream}"), &()).await?;
        let time = datetime::parse_rfc3339(&answer.ts)?;
        let round_trip = asked.elapsed();
        // What took long says little.
        if round_trip < Duration::from_secs(1) {
            let time = millis_of(time).saturating_add(millis(round_trip / 2));
            *self.at.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), time);
        }
        Ok(())
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Milliseconds since the Unix epoch.
pub(super) fn millis_of(time: datetime::DateTime) -> u64 {
    u64::try_from(time.unix_timestamp_nanos() / 1_000_000).unwrap_or_default()
}

/// The time as the server's schedules want it.
pub(super) fn rfc3339(millis: u64) -> Option<String> {
    let time = DateTime::from_timestamp_millis(i64::try_from(millis).ok()?)?;
    Some(time.to_rfc3339_opts(SecondsFormat::Millis, true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_text() {
        assert_eq!(rfc3339(1_795_484_060_007).as_deref(), Some("2026-11-24T01:34:20.007Z"));
        assert_eq!(rfc3339(u64::MAX), None);
    }
}
