//! Retrying requests after failures of the server or of the connection.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::model::random::jitter;

/// How long a request is retried.
pub(super) struct Patience {
    /// `None` if it is retried for ever.
    until: Option<Instant>,
    next: Duration,
}

impl Patience {
    pub(super) fn new(patience: Duration) -> Self {
        Self { until: Instant::now().checked_add(patience), next: Duration::from_millis(10) }
    }

    /// Waits before the next attempt. Returns `false` if there is none.
    pub(super) async fn wait(&mut self) -> bool {
        let wait = jitter(self.next);
        if self.until.is_some_and(|until| Instant::now() + wait > until) {
            return false;
        }
        sleep(wait).await;
        self.next = (self.next * 2).min(Duration::from_millis(500));
        true
    }
}
