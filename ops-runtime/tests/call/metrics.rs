//! What is counted about calls.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock};

use futures_util::StreamExt;
use metrics::{
    Counter, CounterFn, Gauge, GaugeFn, Histogram, HistogramFn, Key, KeyName, Metadata, Recorder, SharedString, Unit,
};
use ops_runtime::Registry;
use ops_runtime::call::{CallHandler, InProcess};
use serde_json::json;

use crate::operations::{Probe, registry};

/// The sum of what was recorded under a name with its labels; of a histogram, how often.
#[derive(Default)]
struct Sums(Mutex<BTreeMap<String, f64>>);

fn sums() -> &'static Arc<Sums> {
    static SUMS: OnceLock<Arc<Sums>> = OnceLock::new();
    SUMS.get_or_init(Arc::default)
}

impl Sums {
    fn of(&self, name: &str) -> f64 {
        self.0.lock().unwrap().get(name).copied().unwrap_or_default()
    }
}

struct One(String);

impl One {
    fn of(key: &Key) -> Arc<Self> {
        let labels: BTreeMap<_, _> = key.labels().map(|label| (label.key(), label.value())).collect();
        Arc::new(Self(format!("{} {labels:?}", key.name())))
    }

    fn add(&self, value: f64) {
        *sums().0.lock().unwrap().entry(self.0.clone()).or_default() += value;
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

    fn set(&self, _: f64) {}
}

impl HistogramFn for One {
    fn record(&self, value: f64) {
        assert!((0.0..600.0).contains(&value), "{value} seconds");
        self.add(1.0);
    }
}

struct Summing;

impl Recorder for Summing {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        Counter::from_arc(One::of(key))
    }

    fn register_gauge(&self, key: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::from_arc(One::of(key))
    }

    fn register_histogram(&self, key: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::from_arc(One::of(key))
    }
}

// One thread, whose recorder is not that of other tests.
#[test]
fn calls_are_counted() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    metrics::with_local_recorder(&Summing, || {
        runtime.block_on(async {
            let transport = InProcess::new();
            let worker = transport.serve(CallHandler::new(registry(&Arc::new(Probe::default()))));
            let remote = transport.remote();
            for n in 0..3 {
                remote.call("test.add", json!({ "a": n, "b": 1 })).await.unwrap();
            }
            remote.call("test.fail", json!({ "code": "MADE_UP", "message": "" })).await.unwrap_err();
            remote.call("test.lost", json!({})).await.unwrap_err();
            for (operation, input) in [("test.count", json!({ "to": 3 })), ("test.fail_after", json!({ "items": 2 }))] {
                let items: Vec<_> = remote.stream(operation, input).await.unwrap().collect().await;
                assert_eq!(items.len(), 3);
            }
            // Peers name what they announce, so it is no label where calls are forwarded.
            let far = InProcess::new();
            let forwarding = far.serve(CallHandler::new(Registry::new()).with_forwarding(remote.clone()));
            far.remote().call("test.echo", json!({ "value": 1 })).await.unwrap();
            forwarding.stop().await;
            // Dropped before its end.
            drop(remote.stream("test.silent_after", json!({ "items": 0 })).await.unwrap());
            // Time for the worker's task to be dropped.
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
            worker.stop().await;
        });
    });
    for side in ["caller", "worker"] {
        let of = |name: &str, more: &str| sums().of(&format!("{name} {{{more}\"side\": \"{side}\"}}"));
        assert_eq!(of("ops_calls_total", r#""code": "OK", "operation": "test.add", "#), 3.0);
        assert_eq!(of("ops_calls_total", r#""code": "DOMAIN", "operation": "test.fail", "#), 1.0);
        assert_eq!(of("ops_calls_total", r#""code": "OK", "operation": "test.count", "#), 1.0);
        assert_eq!(of("ops_calls_total", r#""code": "OK", "operation": "test.echo", "#), 1.0);
        assert_eq!(of("ops_calls_total", r#""code": "OK", "operation": "forwarded", "#), 1.0);
        assert_eq!(of("ops_calls_total", r#""code": "DOMAIN", "operation": "test.fail_after", "#), 1.0);
        assert_eq!(of("ops_call_duration_seconds", r#""operation": "test.add", "#), 3.0);
        assert_eq!(of("ops_calls_in_flight", ""), 0.0);
    }
    let dropped = r#"ops_calls_total {"code": "ABORTED", "operation": "test.silent_after", "side": "caller"}"#;
    assert_eq!(sums().of(dropped), 1.0);
    assert!(!sums().0.lock().unwrap().keys().any(|key| key.contains("lost") || key.contains("MADE_UP")));
}
