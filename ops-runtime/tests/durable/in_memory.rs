//! The engine in this process.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use ops_runtime::ErrorCode;
use ops_runtime::access::Identity;
use ops_runtime::durable::engine::{Engine, EngineLimits};
use ops_runtime::durable::record::{Ended, JobRecord, Outcome};
use ops_runtime::durable::{InMemory, Jobs, SubmitOptions, Worker};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::harness::{Harness, LEASE, MAX_SIZE, attempts, eventually, pause};
use crate::operations::{
    Block, BlockInput, Delays, DelaysInput, Hang, HangInput, Probe, Work, WorkInput, failing, registry,
};

pub(crate) struct InMemoryHarness(InMemory);

impl Harness for InMemoryHarness {
    type Engine = InMemory;

    async fn start() -> Self {
        let limits = EngineLimits::DEFAULT.with_lease(LEASE).with_max_input(MAX_SIZE).with_max_result(MAX_SIZE);
        Self(InMemory::new().with_limits(limits))
    }

    async fn engine(&self) -> InMemory {
        self.0.clone()
    }
}

/// What is kept ends with its retention, so that memory is flat.
pub(crate) async fn nothing_is_kept_for_ever() {
    let harness = InMemoryHarness::start().await;
    let probe = std::sync::Arc::default();
    let jobs = Jobs::new(harness.engine().await);
    let worker = Worker::new(jobs.clone(), crate::operations::registry(&probe)).start();
    let options = || SubmitOptions::new().with_retention(Duration::from_millis(1));
    let mut last = None;
    for n in 0..500 {
        last = Some(jobs.submit_by_id("test.add", json!({ "a": n, "b": 1 }), options()).await.unwrap());
    }
    let last = last.unwrap();
    assert_eq!(last.result().await.unwrap().data, 500);
    // At least a second, so that those who wait can read it.
    pause(1_100).await;
    assert_eq!(last.result().await.unwrap_err().code().as_str(), "JOB_NOT_FOUND");
    worker.stop().await;
}

/// The caller gives up the job after some time. The dead letter counts the attempt that still runs.
pub(crate) async fn the_deadline_passes_while_the_worker_hangs() {
    let probe = Arc::<Probe>::default();
    // A lease that does not end meanwhile.
    let jobs = Jobs::new(InMemory::new().with_limits(EngineLimits::DEFAULT));
    let worker = Worker::new(jobs.clone(), registry(&probe)).start();
    let options = attempts(5).with_timeout(Duration::from_secs(3));
    let (start, input) = (Instant::now(), BlockInput { name: "a".into(), millis: 20_000 });
    let job = jobs.submit::<Block>(input, options).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    let waited = start.elapsed();
    assert!(waited > Duration::from_secs(7) && waited < Duration::from_secs(18), "{waited:?}");
    let letter = job.dead_letter().await.unwrap().unwrap();
    assert_eq!((letter.attempts, letter.history.len()), (1, 1));
    // What the attempt comes to then changes nothing.
    eventually("it has ended", || probe.alive() == 0).await;
    worker.stop().await;
    let letter = job.dead_letter().await.unwrap().unwrap();
    assert_eq!((letter.attempts, letter.history.len(), probe.starts("a")), (1, 1, 1));
}

/// A step that has another identity than its job is cancelled with it at once, and not first when its lease is extended.
pub(crate) fn a_step_of_another_identity_is_cancelled_with_its_job() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let probe = Arc::<Probe>::default();
        let jobs = Jobs::in_memory();
        let worker = Worker::new(jobs.clone(), registry(&probe)).start();
        let input = DelaysInput { whom: "bob".into(), name: "a".into() };
        let job = jobs.scoped(Identity::new("ann")).submit::<Delays>(input, attempts(1)).await.unwrap();
        eventually("its step runs", || probe.starts("a-gate") == 1).await;
        let cancelled = tokio::time::Instant::now();
        assert!(job.cancel().await.unwrap());
        eventually("both handlers are dropped", || probe.alive() == 0).await;
        assert!(cancelled.elapsed() < Duration::from_secs(1), "{:?}", cancelled.elapsed());
        worker.stop().await;
    });
}

/// The notice of a cancellation may come when the key was submitted again: the next job has the same id.
pub(crate) async fn a_late_notice_ends_no_other_job() {
    let engine = InMemory::new();
    let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
    let job = JobRecord::new(id, "test.work", to_raw_value(&json!({ "name": "a" })).unwrap());
    let cancelled = Ended::new(&job, engine.now(), 0, Outcome::Cancelled);
    let mut closed = engine.closed("jobs").await.unwrap();
    for is_last in [false, true] {
        assert!(engine.submit(&job).await.unwrap().is_none());
        assert_eq!(engine.pull("jobs", 1, Duration::ZERO).await.unwrap().len(), 1);
        if is_last {
            assert_eq!(closed.next().now_or_never(), None);
        }
        assert!(engine.close(&job.id, &cancelled).await.unwrap());
        if is_last {
            assert_eq!(closed.next().await, Some(job.id.clone()));
        }
        assert!(engine.discard(&job.id).await.unwrap());
    }
    // One that comes before the next submit is told: the worker still has the job.
    assert!(engine.submit(&job).await.unwrap().is_none() && engine.close(&job.id, &cancelled).await.unwrap());
    assert!(engine.discard(&job.id).await.unwrap());
    assert_eq!(closed.next().await, Some(job.id.clone()));
}

/// In a test with tokio's paused clock, an hour is over at once, for delays, back-offs and leases.
pub(crate) fn a_paused_clock_is_the_clock() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let probe = Arc::<Probe>::default();
        let jobs = Jobs::in_memory();
        let worker = Worker::new(jobs.clone(), registry(&probe)).start();
        let (hour, start, began) = (Duration::from_secs(3_600), Instant::now(), tokio::time::Instant::now());
        let input = WorkInput { millis: Some(600_000), ..failing("a", 1) };
        let job = jobs.submit::<Work>(input, attempts(2).with_delay(hour)).await.unwrap();
        let result = tokio::time::timeout(3 * hour, job.result()).await.expect("the engine has the same clock");
        assert_eq!((result.unwrap().data, probe.starts("a")), (2, 2));
        let waited = began.elapsed();
        assert!(waited > hour && waited < 2 * hour, "{waited:?}");
        assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
        worker.stop().await;
    });
}

/// A job that comes with the last pull of a worker that drains is dropped at once when it is cancelled, and not first when its
/// lease is extended.
pub(crate) fn a_worker_that_drains_hears_of_cancellations() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let probe = Arc::<Probe>::default();
        let jobs = Jobs::in_memory();
        let worker = Worker::new(jobs.clone(), registry(&probe)).start();
        // It waits for a job, and goes on to do so for the rest of a second when it is stopped.
        pause(100).await;
        let stopped = tokio::spawn(worker.stop());
        pause(100).await;
        let job = jobs.submit::<Hang>(HangInput { name: "a".into() }, attempts(1)).await.unwrap();
        eventually("it has started", || probe.starts("a") == 1).await;
        let cancelled = tokio::time::Instant::now();
        assert!(job.cancel().await.unwrap());
        eventually("its handler is dropped", || probe.alive() == 0).await;
        assert!(cancelled.elapsed() < Duration::from_secs(1), "{:?}", cancelled.elapsed());
        stopped.await.unwrap();
    });
}
