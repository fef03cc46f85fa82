//! The delays before something is reopened.

use std::time::Duration;

use tokio::time::{Instant, sleep};

/// A connection that lasted this long does not count as failed when it ends.
pub(super) const STABLE: Duration = Duration::from_secs(10);

/// The delay after the first failure, doubled with each more up to the longest.
const DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

/// The delay after so many failures.
pub(super) fn delay(failures: u32) -> Duration {
    DELAY.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(LONGEST_DELAY)
}

/// A stream that is reopened whenever it ends.
#[derive(Default)]
pub(super) struct Reopening {
    failures: u32,
    opened: Option<Instant>,
}

impl Reopening {
    /// Notes that the stream is open.
    pub(super) fn opened(&mut self) {
        self.opened = Some(Instant::now());
    }

    /// Notes that data has arrived, so that the stream has not failed.
    pub(super) fn works(&mut self) {
        self.failures = 0;
    }

    /// Waits before the stream is reopened: at least that long, and longer the more often it failed.
    pub(super) async fn wait(&mut self, least: Duration) {
        if self.opened.take().is_some_and(|opened| opened.elapsed() >= STABLE) {
            self.works();
        }
        self.failures = self.failures.saturating_add(1);
        sleep(delay(self.failures).max(least)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_longest() {
        let delays: Vec<_> = [1, 2, 5, 9, 10, 100, u32::MAX].map(|failures| delay(failures).as_millis()).into();
        assert_eq!(delays, [100, 200, 1600, 25_600, 30_000, 30_000, 30_000]);
    }
}
