//! Leases while the engine responds to some requests only.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use super::Lease;
use crate::BoxStream;
use crate::durable::engine::{Delivery, Engine, EngineLimits, EngineResult, JobPage, Listed, QueueStats};
use crate::durable::record::{Ended, JobRecord, ScheduleRecord, Stored, Tries};
use crate::durable::{JobId, Jobs};
use crate::registry::Progress;

/// Extends the first leases, and never shows a job.
#[derive(Clone)]
struct Half {
    extended: Arc<AtomicUsize>,
    most: usize,
}

fn unused<T>(what: &str) -> T {
    panic!("nobody needs `{what}`")
}

impl Engine for Half {
    fn name(&self) -> &'static str {
        "half"
    }

    fn limits(&self) -> EngineLimits {
        EngineLimits::DEFAULT
    }

    fn now(&self) -> u64 {
        0
    }

    fn extend<'a>(&'a self, _: &'a Delivery) -> EngineResult<'a, bool> {
        let is_extended = self.extended.fetch_add(1, Ordering::SeqCst) < self.most;
        Box::pin(std::future::ready(Ok(is_extended)))
    }

    fn read_known<'a>(&'a self, _: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        Box::pin(std::future::pending())
    }

    fn submit<'a>(&'a self, _: &'a JobRecord) -> EngineResult<'a, Option<Stored>> {
        unused("submit")
    }

    fn read<'a>(&'a self, _: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        unused("read")
    }

    fn wait<'a>(&'a self, _: &'a JobId, _: Duration) -> EngineResult<'a, Option<Stored>> {
        unused("wait")
    }

    fn is_running<'a>(&'a self, _: &'a JobId) -> EngineResult<'a, bool> {
        unused("is_running")
    }

    fn close<'a>(&'a self, _: &'a JobId, _: &'a Ended) -> EngineResult<'a, bool> {
        unused("close")
    }

    fn pull<'a>(&'a self, _: &'a str, _: usize, _: Duration) -> EngineResult<'a, Vec<Delivery>> {
        unused("pull")
    }

    fn end<'a>(&'a self, _: &'a Delivery, _: &'a Ended) -> EngineResult<'a, bool> {
        unused("end")
    }

    fn again<'a>(&'a self, _: &'a Delivery, _: &'a Tries, _: Duration) -> EngineResult<'a, ()> {
        unused("again")
    }

    fn closed<'a>(&'a self, _: &'a str) -> EngineResult<'a, BoxStream<'static, JobId>> {
        unused("closed")
    }

    fn tell<'a>(&'a self, _: &'a JobId, _: &'a Progress) -> EngineResult<'a, ()> {
        unused("tell")
    }

    fn progress<'a>(&'a self, _: &'a JobId) -> EngineResult<'a, BoxStream<'static, Progress>> {
        unused("progress")
    }

    fn step<'a>(&'a self, _: &'a JobId, _: &'a str) -> EngineResult<'a, Option<String>> {
        unused("step")
    }

    fn keep_step<'a>(&'a self, _: &'a JobId, _: &'a str, _: &'a str, _: Duration) -> EngineResult<'a, String> {
        unused("keep_step")
    }

    fn retry<'a>(&'a self, _: &'a JobRecord) -> EngineResult<'a, bool> {
        unused("retry")
    }

    fn discard<'a>(&'a self, _: &'a JobId) -> EngineResult<'a, bool> {
        unused("discard")
    }

    fn keep_schedule<'a>(&'a self, _: &'a ScheduleRecord, _: Option<&'a ScheduleRecord>) -> EngineResult<'a, bool> {
        unused("keep_schedule")
    }

    fn remove_schedule<'a>(&'a self, _: &'a str) -> EngineResult<'a, bool> {
        unused("remove_schedule")
    }

    fn schedules(&self) -> EngineResult<'_, Vec<ScheduleRecord>> {
        unused("schedules")
    }

    fn queues(&self) -> EngineResult<'_, Vec<String>> {
        unused("queues")
    }

    fn list<'a>(&'a self, _: &'a str, _: Listed, _: Option<&'a str>, _: usize) -> EngineResult<'a, JobPage> {
        unused("list")
    }

    fn stats<'a>(&'a self, _: &'a str) -> EngineResult<'a, QueueStats> {
        unused("stats")
    }
}

/// The lease of a step, and its engine, which extends it so many times.
fn lease(most: usize) -> (Arc<Lease>, Half) {
    let id = |queue: &str| format!("{queue}.0.0123456789abcdef0123456789abcdef").parse().unwrap();
    let mut job = JobRecord::new(id("slow"), "test.step", RawValue::NULL.to_owned());
    job.parent = Some(id("jobs"));
    (Arc::new(Lease::new(Delivery::new(job, "1"))), Half { extended: Arc::default(), most })
}

#[tokio::test(start_paused = true)]
async fn a_step_is_held_while_the_queue_of_its_job_does_not_respond() {
    let (lease, engine) = lease(usize::MAX);
    let extended = || engine.extended.load(Ordering::SeqCst);
    let time = EngineLimits::DEFAULT.lease;
    let held = tokio::spawn(lease.clone().hold(Jobs::new(engine.clone()), CancellationToken::new()));
    tokio::time::sleep(10 * time).await;
    assert!((29..=31).contains(&extended()), "{}", extended());
    // When it is released, no more is sent.
    lease.release().await;
    let before = extended();
    held.await.unwrap();
    tokio::time::sleep(10 * time).await;
    assert_eq!(extended(), before);
    // Nor is anything sent by a task that begins after that.
    lease.hold(Jobs::new(engine.clone()), CancellationToken::new()).await;
    assert_eq!(extended(), before);
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_is_told() {
    let (lease, engine) = lease(2);
    let held = tokio::spawn(lease.clone().hold(Jobs::new(engine.clone()), CancellationToken::new()));
    lease.lost().await;
    held.await.unwrap();
    assert_eq!(engine.extended.load(Ordering::SeqCst), 3);
}
