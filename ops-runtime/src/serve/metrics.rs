//! Metrics of requests: the text for Prometheus, and the `metrics` facade (feature `metrics`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use crate::model::lock::{lock, read, write};
use crate::{AccessControl, Text};

/// Prometheus text format.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The bounds of the histogram, in seconds: those of OpenTelemetry for HTTP servers.
const BOUNDS: [f64; 14] = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0];

/// The status of a request whose client disconnected before the response, as in proxies.
const CLIENT_CLOSED: u16 = 499;

/// The metrics of a server.
pub(super) struct Metrics {
    /// The access rules for reading them.
    pub(super) access: AccessControl,
    /// The jobs whose queues are included.
    #[cfg(feature = "durable")]
    pub(super) jobs: Option<crate::durable::Jobs>,
    in_flight: AtomicUsize,
    /// By operation; requests without an operation have an empty name. Names that clients make up are not labels.
    operations: RwLock<BTreeMap<Text, Arc<Counts>>>,
}

/// The metrics of one operation.
#[derive(Default)]
struct Counts {
    statuses: RwLock<BTreeMap<u16, AtomicU64>>,
    /// How many took at most as long as each bound, and longer than the one before.
    durations: [AtomicU64; BOUNDS.len()],
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Metrics {
    pub(super) fn new(access: AccessControl) -> Self {
        Self {
            access,
            #[cfg(feature = "durable")]
            jobs: None,
            in_flight: AtomicUsize::new(0),
            operations: RwLock::default(),
        }
    }

    #[cfg(feature = "durable")]
    pub(super) fn with_jobs(self, jobs: Option<crate::durable::Jobs>) -> Self {
        Self { jobs, ..self }
    }

    fn record(&self, operation: &Text, status: u16, duration: Duration) {
        let counts = read(&self.operations).get(operation).cloned();
        let counts = counts.unwrap_or_else(|| {
            let mut operations = write(&self.operations);
            operations.entry(operation.clone()).or_default().clone()
        });
        counts.record(status, duration);
    }

    /// The text for Prometheus, with the operations that are still served.
    pub(super) fn text(&self, open_streams: usize, is_served: impl Fn(&str) -> bool) -> String {
        let operations = {
            let mut operations = write(&self.operations);
            operations.retain(|operation, _| operation.is_empty() || is_served(operation));
            operations.clone()
        };
        let mut text = String::new();
        let head = |text: &mut String, name: &str, kind: &str, help: &str| {
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        };
        head(&mut text, "ops_http_requests_total", "counter", "Requests by operation and status of the response.");
        for (operation, counts) in &operations {
            let operation = escaped(operation);
            for (status, count) in &*read(&counts.statuses) {
                let count = count.load(Ordering::Relaxed);
                let labels = format!("operation=\"{operation}\",status=\"{status}\"");
                let _ = writeln!(text, "ops_http_requests_total{{{labels}}} {count}");
            }
        }
        let name = "ops_http_request_duration_seconds";
        head(&mut text, name, "histogram", "Seconds from the head of a request to that of its response.");
        for (operation, counts) in &operations {
            let operation = escaped(operation);
            let mut sum = 0;
            for (bound, count) in BOUNDS.iter().zip(&counts.durations) {
                sum += count.load(Ordering::Relaxed);
                let _ = writeln!(text, "{name}_bucket{{operation=\"{operation}\",le=\"{bound}\"}} {sum}");
            }
            // It may change while the text is written, and must not be below the buckets.
            let count = counts.count.load(Ordering::Relaxed).max(sum);
            let seconds = Duration::from_nanos(counts.nanoseconds.load(Ordering::Relaxed)).as_secs_f64();
            let _ = writeln!(text, "{name}_bucket{{operation=\"{operation}\",le=\"+Inf\"}} {count}");
            let _ = writeln!(text, "{name}_sum{{operation=\"{operation}\"}} {seconds}");
            let _ = writeln!(text, "{name}_count{{operation=\"{operation}\"}} {count}");
        }
        let in_flight = self.in_flight.load(Ordering::Relaxed);
        head(&mut text, "ops_http_requests_in_flight", "gauge", "Requests without a response yet.");
        let _ = writeln!(text, "ops_http_requests_in_flight {in_flight}");
        head(&mut text, "ops_http_streams_open", "gauge", "Open streams, and calls whose response may be one.");
        let _ = writeln!(text, "ops_http_streams_open {open_streams}");
        text
    }
}

impl Counts {
    fn record(&self, status: u16, duration: Duration) {
        let known = read(&self.statuses);
        match known.get(&status) {
            Some(count) => {
                count.fetch_add(1, Ordering::Relaxed);
            }
            None => {
                drop(known);
                let mut statuses = write(&self.statuses);
                statuses.entry(status).or_default().fetch_add(1, Ordering::Relaxed);
            }
        }
        let seconds = duration.as_secs_f64();
        let bucket = BOUNDS.iter().zip(&self.durations).find(|(bound, _)| seconds <= **bound);
        if let Some((_, bucket)) = bucket {
            bucket.fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }
}

/// A label's value.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Counts one request, however it ends. Does nothing if there are no metrics.
pub(super) struct Meter(Option<Running>);

struct Running {
    metrics: Option<Arc<Metrics>>,
    operation: Mutex<Text>,
    status: u16,
    started: Instant,
}

impl Meter {
    pub(super) fn start(metrics: Option<&Arc<Metrics>>) -> Self {
        if metrics.is_none() && !cfg!(feature = "metrics") {
            return Self(None);
        }
        if let Some(metrics) = metrics {
            metrics.in_flight.fetch_add(1, Ordering::Relaxed);
        }
        facade::start();
        let metrics = metrics.cloned();
        Self(Some(Running { metrics, operation: Mutex::default(), status: CLIENT_CLOSED, started: Instant::now() }))
    }

    /// Sets the operation of the request, if known.
    pub(super) fn operation(&self, id: &Text) {
        if let Some(running) = &self.0 {
            *lock(&running.operation) = id.clone();
        }
    }

    /// Sets the status of the response.
    pub(super) fn end(mut self, status: http::StatusCode) {
        if let Some(running) = &mut self.0 {
            running.status = status.as_u16();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let operation = std::mem::take(self.operation.get_mut().unwrap_or_else(PoisonError::into_inner));
        let duration = self.started.elapsed();
        if let Some(metrics) = &self.metrics {
            metrics.in_flight.fetch_sub(1, Ordering::Relaxed);
            metrics.record(&operation, self.status, duration);
        }
        facade::end(operation, self.status, duration);
    }
}

#[cfg(feature = "metrics")]
mod facade {
    use std::time::Duration;

    use metrics::{counter, gauge, histogram};

    use crate::Text;

    pub(super) fn start() {
        gauge!("ops_http_requests_in_flight").increment(1.0);
    }

    pub(super) fn end(operation: Text, status: u16, duration: Duration) {
        gauge!("ops_http_requests_in_flight").decrement(1.0);
        histogram!("ops_http_request_duration_seconds", "operation" => operation.clone()).record(duration);
        counter!("ops_http_requests_total", "operation" => operation, "status" => status.to_string()).increment(1);
    }
}

#[cfg(not(feature = "metrics"))]
mod facade {
    use std::time::Duration;

    use crate::Text;

    pub(super) fn start() {}

    pub(super) fn end(_: Text, _: u16, _: Duration) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text() {
        let metrics = Metrics::new(AccessControl::NONE);
        metrics.record(&"a.b\"\\\n".into(), 200, Duration::from_millis(5));
        metrics.record(&"a.b\"\\\n".into(), 404, Duration::from_millis(80));
        metrics.record(&"a.b\"\\\n".into(), 200, Duration::from_secs(20));
        metrics.record(&"gone.now".into(), 200, Duration::from_secs(1));
        let text = metrics.text(7, |operation| operation != "gone.now");
        assert!(!text.contains("gone"));
        let own = r#"operation="a.b\"\\\n""#;
        for line in [
            &format!("ops_http_requests_total{{{own},status=\"200\"}} 2"),
            &format!("ops_http_requests_total{{{own},status=\"404\"}} 1"),
            &format!("ops_http_request_duration_seconds_bucket{{{own},le=\"0.005\"}} 1"),
            &format!("ops_http_request_duration_seconds_bucket{{{own},le=\"0.075\"}} 1"),
            &format!("ops_http_request_duration_seconds_bucket{{{own},le=\"0.1\"}} 2"),
            &format!("ops_http_request_duration_seconds_bucket{{{own},le=\"10\"}} 2"),
            &format!("ops_http_request_duration_seconds_bucket{{{own},le=\"+Inf\"}} 3"),
            &format!("ops_http_request_duration_seconds_sum{{{own}}} 20.085"),
            &format!("ops_http_request_duration_seconds_count{{{own}}} 3"),
            "ops_http_requests_in_flight 0",
            "ops_http_streams_open 7",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
    }
}
