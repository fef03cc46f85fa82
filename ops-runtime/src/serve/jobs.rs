//! The metrics of jobs at `GET /metrics`.

use std::fmt::Write as _;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use crate::durable::Jobs;
use crate::durable::engine::QueueStats;

/// Timeout for the engine, so that it does not delay a scrape.
const PATIENCE: Duration = Duration::from_secs(2);

/// The text for Prometheus. A queue without a response of its engine is left out.
pub(super) async fn text(jobs: &Jobs) -> String {
    let queues = jobs.queues();
    let read = join_all(queues.iter().map(async |queue| match timeout(PATIENCE, jobs.stats(queue)).await {
        Ok(Ok(stats)) => Some((queue.as_str(), stats)),
        Ok(Err(error)) => {
            tracing::warn!(%error, queue, "the queue could not be measured");
            None
        }
        Err(_) => {
            tracing::warn!(queue, "the queue could not be measured in time");
            None
        }
    }));
    let stats: Vec<(&str, QueueStats)> = read.await.into_iter().flatten().collect();
    let mut text = String::new();
    let mut gauge = |name: &str, help: &str, value: fn(&QueueStats) -> f64| {
        let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} gauge\n");
        for (queue, stats) in &stats {
            // Names of queues need no escapes.
            let _ = writeln!(text, "{name}{{queue=\"{queue}\"}} {}", value(stats));
        }
    };
    gauge("ops_jobs_open", "Jobs that have not ended.", |stats| stats.open as f64);
    gauge("ops_jobs_dead", "Dead letters.", |stats| stats.dead as f64);
    let help = "Seconds since the oldest open job could have started; 0 if none is due.";
    gauge("ops_jobs_oldest_age_seconds", help, |stats| stats.oldest.unwrap_or_default().as_secs_f64());
    text
}
