//! The engine in this process.

use std::time::Duration;

use ops_runtime::durable::engine::EngineLimits;
use ops_runtime::durable::{InProcess, Jobs, SubmitOptions, Worker};
use serde_json::json;

use crate::harness::{Harness, LEASE, MAX_SIZE, pause};

pub(crate) struct InProcessHarness(InProcess);

impl Harness for InProcessHarness {
    type Engine = InProcess;

    async fn start() -> Self {
        let limits = EngineLimits::DEFAULT.with_lease(LEASE).with_max_input(MAX_SIZE).with_max_result(MAX_SIZE);
        Self(InProcess::new().with_limits(limits))
    }

    async fn engine(&self) -> InProcess {
        self.0.clone()
    }
}

/// What is kept ends with its retention, so that memory is flat.
pub(crate) async fn nothing_is_kept_for_ever() {
    let harness = InProcessHarness::start().await;
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
    worker.drain().await;
}
