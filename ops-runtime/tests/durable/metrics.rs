//! What is counted about jobs.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use ops_runtime::durable::{Jobs, Worker};
use serde_json::json;

use crate::harness::attempts;

/// The sum of what was recorded under a name with its labels; of a histogram, how often.
#[derive(Default, Clone)]
struct Sums(Arc<Mutex<BTreeMap<String, f64>>>);

struct One(Sums, String);

impl Sums {
    fn one(&self, key: &Key) -> Arc<One> {
        let labels: BTreeMap<_, _> = key.labels().map(|label| (label.key(), label.value())).collect();
        Arc::new(One(self.clone(), format!("{} {labels:?}", key.name())))
    }

    fn of(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

const AGE: &str = r#"ops_jobs_oldest_age_seconds {"queue": "jobs"}"#;

impl One {
    fn add(&self, value: f64) {
        *self.0.0.lock().unwrap().entry(self.1.clone()).or_default() += value;
    }
}

impl CounterFn for One {
    fn increment(&self, value: u64) {
        self.add(value as f64);
    }

    fn absolute(&self, _: u64) {}
}

impl GaugeFn for One {
    fn increment(&self, value: f64) {
        self.add(value);
    }

    fn decrement(&self, value: f64) {
        self.add(-value);
    }

    fn set(&self, value: f64) {
        self.0.0.lock().unwrap().insert(self.1.clone(), value);
    }
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        assert!((0.0..600.0).contains(&value), "{value} seconds");
        self.add(1.0);
    }
}

impl Recorder for Sums {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(self.one(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(self.one(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(self.one(key))
    }
}

// One thread, whose recorder is not that of other tests.
pub(crate) fn jobs_are_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sums = Sums::default();
    metrics::with_local_recorder(&sums, || {
        runtime.block_on(async {
            let jobs = Jobs::in_memory();
            let worker = Worker::new(jobs.clone(), crate::operations::registry(&Arc::default())).start();
            let submit = async |id: &str, input, key: &str| {
                jobs.submit_by_id(id, input, attempts(3).with_key(key)).await.unwrap()
            };
            submit("test.add", json!({ "a": 1, "b": 1 }), "a").await.result().await.unwrap();
            submit("test.add", json!({ "a": 1, "b": 1 }), "a").await.result().await.unwrap();
            submit("test.work", json!({ "name": "b", "fails": 9 }), "b").await.result().await.unwrap_err();
            let lost = submit("test.lost", json!({}), "c").await;
            tokio::time::sleep(Duration::from_millis(300)).await;
            lost.cancel().await.unwrap();
            worker.stop().await;
            // What is left, and how old the oldest is. A delayed job is open, and not due.
            let old = submit("test.add", json!({ "a": 1 }), "d").await;
            let delayed = attempts(1).with_delay(Duration::from_secs(600));
            jobs.submit_by_id("test.add", json!({ "a": 1 }), delayed).await.unwrap();
            tokio::time::sleep(Duration::from_millis(250)).await;
            let since = Instant::now();
            submit("test.add", json!({ "a": 1 }), "e").await;
            let stats = jobs.record_stats("jobs").await.unwrap();
            assert_eq!((stats.open, stats.dead), (3, 1));
            let oldest = stats.oldest.unwrap();
            assert!(oldest >= Duration::from_millis(250) && oldest < Duration::from_secs(60), "{oldest:?}");
            assert_eq!(sums.of(AGE), oldest.as_secs_f64());
            old.cancel().await.unwrap();
            jobs.record_stats("jobs").await.unwrap();
            // Times of jobs are in whole milliseconds.
            assert!(sums.of(AGE) <= since.elapsed().as_secs_f64() + 0.001);
            assert_eq!(
                (sums.of(r#"ops_jobs_open {"queue": "jobs"}"#), sums.of(r#"ops_jobs_dead {"queue": "jobs"}"#)),
                (2.0, 1.0)
            );
        });
    });
    let of = |name: &str| sums.of(name);
    assert_eq!(of(r#"ops_jobs_submitted_total {"known": "false", "queue": "jobs"}"#), 6.0);
    assert_eq!(of(r#"ops_jobs_submitted_total {"known": "true", "queue": "jobs"}"#), 1.0);
    assert_eq!(of(r#"ops_job_attempts_total {"operation": "test.add", "outcome": "done"}"#), 1.0);
    assert_eq!(of(r#"ops_job_attempts_total {"operation": "test.work", "outcome": "retry"}"#), 2.0);
    assert_eq!(of(r#"ops_job_attempts_total {"operation": "test.work", "outcome": "dead"}"#), 1.0);
    assert_eq!(of(r#"ops_job_attempt_duration_seconds {"operation": "test.work"}"#), 3.0);
    assert_eq!(of("ops_jobs_running {}"), 0.0);
    // Only operations that there are become labels.
    assert!(!sums.0.lock().unwrap().keys().any(|key| key.contains("lost")));
}
