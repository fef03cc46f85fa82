//! Metrics of jobs, for the `metrics` facade (feature `metrics`); does nothing without it.
//!
//! - `ops_jobs_submitted_total`, a counter: `queue`, `known` (`true` if the submit attached to a job)
//! - `ops_job_attempts_total`, a counter: `operation`, `outcome` (`done`, `failed`, `dead`, `retry`, `passed`, `closed`,
//!   `lost`, `died`)
//! - `ops_job_attempt_duration_seconds`, a histogram: `operation`
//! - `ops_jobs_running`, a gauge: the jobs that run in this process
//! - `ops_jobs_open`, `ops_jobs_dead` and `ops_jobs_oldest_age_seconds`, gauges: `queue`; the state of the engine,
//!   which each worker reads every 15 seconds
//!
//! Only operations that a worker knows become labels.

use std::time::Instant;

#[cfg(feature = "metrics")]
mod facade {
    use std::time::Instant;

    use metrics::{counter, gauge, histogram};

    use crate::durable::engine::QueueStats;

    pub(crate) fn measured(queue: &str, stats: &QueueStats) {
        let set = |name: &'static str, value: f64| gauge!(name, "queue" => queue.to_owned()).set(value);
        set("ops_jobs_open", stats.open as f64);
        set("ops_jobs_dead", stats.dead as f64);
        set("ops_jobs_oldest_age_seconds", stats.oldest.unwrap_or_default().as_secs_f64());
    }

    pub(crate) fn submitted(queue: &str, is_new: bool) {
        let known = if is_new { "false" } else { "true" };
        counter!("ops_jobs_submitted_total", "queue" => queue.to_owned(), "known" => known).increment(1);
    }

    pub(super) fn begin() {
        gauge!("ops_jobs_running").increment(1.0);
    }

    pub(super) fn end(operation: &str, outcome: &'static str, started: Instant) {
        gauge!("ops_jobs_running").decrement(1.0);
        histogram!("ops_job_attempt_duration_seconds", "operation" => operation.to_owned()).record(started.elapsed());
        counter!("ops_job_attempts_total", "operation" => operation.to_owned(), "outcome" => outcome).increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
mod facade {
    use std::time::Instant;

    pub(crate) fn submitted(_: &str, _: bool) {}

    pub(super) fn begin() {}

    pub(super) fn end(_: &str, _: &'static str, _: Instant) {}
}

#[cfg(feature = "metrics")]
pub(super) use facade::measured;
pub(super) use facade::submitted;

/// Counts one attempt.
pub(super) struct Meter<'a> {
    operation: &'a str,
    outcome: &'static str,
    started: Instant,
}

impl<'a> Meter<'a> {
    pub(super) fn start(operation: &'a str) -> Self {
        facade::begin();
        // What is dropped before its end died with its worker.
        Self { operation, outcome: "died", started: Instant::now() }
    }

    pub(super) fn set(&mut self, outcome: &'static str) {
        self.outcome = outcome;
    }
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        facade::end(self.operation, self.outcome, self.started);
    }
}
