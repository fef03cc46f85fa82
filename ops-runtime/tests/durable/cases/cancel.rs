//! Cancelling a job at each stage.

use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::join_all;
use ops_runtime::Registry;
use ops_runtime::durable::engine::Listed;
use ops_runtime::durable::{AnyJob, JobError, JobStatus, RetryPolicy, SubmitOptions, Worker};

use crate::harness::{Harness, LEASE, Set, attempts, eventually, is_running, pause, reaches};
use crate::operations::*;

/// Cancels a job that has not ended, and checks that it stays so.
async fn cancelled(job: &AnyJob) {
    assert!(job.cancel().await.unwrap());
    assert!(!job.cancel().await.unwrap());
    assert_eq!(job.status().await.unwrap(), JobStatus::Cancelled);
    let error = job.result().await.unwrap_err();
    assert_eq!(JobError::of(&error), Some(JobError::Cancelled { job: job.id().clone() }));
}

pub(crate) async fn delayed<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
    // Longer than a request is waited for whose answer is lost, as may happen while servers of a cluster start.
    let options = SubmitOptions::new().with_delay(Duration::from_secs(8));
    let job = set.jobs.submit::<Work>(named("a"), options).await.unwrap();
    pause(100).await;
    cancelled(&job).await;
    pause(9_000).await;
    assert_eq!(set.probe.starts("a"), 0);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn queued<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = SubmitOptions::new().with_key("k");
    let job = set.jobs.submit::<Work>(named("a"), options.clone()).await.unwrap();
    let waiting = {
        let job = job.clone();
        tokio::spawn(async move { job.result().await })
    };
    pause(100).await;
    cancelled(&job).await;
    assert!(matches!(JobError::of(&waiting.await.unwrap().unwrap_err()), Some(JobError::Cancelled { .. })));
    // A repeat of the key attaches to what was cancelled.
    assert!(!set.jobs.submit::<Work>(named("a"), options).await.unwrap().is_new());
    let worker = set.worker().await;
    pause(500).await;
    assert_eq!(set.probe.starts("a"), 0);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn running<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Hang>(HangInput { name: "a".into() }, SubmitOptions::new()).await.unwrap();
    is_running(&job).await;
    eventually("it has started", || set.probe.starts("a") == 1).await;
    // By another process.
    cancelled(&set.others().await.job_by_id(job.id().clone())).await;
    eventually("its handler is dropped", || set.probe.alive() == 0).await;
    pause(2 * u64::try_from(LEASE.as_millis()).unwrap()).await;
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn between_attempts<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let policy = RetryPolicy::new(3).with_backoff(Duration::from_secs(5), Duration::from_secs(5));
    let job = set.jobs.submit::<Work>(failing("a", 9), SubmitOptions::new().with_retry(policy)).await.unwrap();
    let status = reaches(&job, "retrying", |status| matches!(status, JobStatus::Retrying { .. })).await;
    let JobStatus::Retrying { attempts, error, .. } = status else { unreachable!() };
    assert_eq!((attempts, error.message()), (1, "attempt 1 fails"));
    cancelled(&job).await;
    pause(6_000).await;
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

/// Two faults at once: it failed and waits, and who would have run it next is dead.
pub(crate) async fn between_attempts_after_its_worker_died<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let policy = RetryPolicy::new(3).with_backoff(Duration::from_secs(5), Duration::from_secs(5));
    let job = set.jobs.submit::<Work>(failing("a", 9), SubmitOptions::new().with_retry(policy)).await.unwrap();
    reaches(&job, "retrying", |status| matches!(status, JobStatus::Retrying { .. })).await;
    drop(worker);
    cancelled(&job).await;
    let worker = set.worker().await;
    pause(6_000).await;
    assert_eq!(set.probe.starts("a"), 1);
    // Dead while it runs, and cancelled before anybody notices.
    let hung = set.jobs.submit::<Hang>(HangInput { name: "b".into() }, attempts(5)).await.unwrap();
    is_running(&hung).await;
    eventually("it has started", || set.probe.starts("b") == 1).await;
    drop(worker);
    cancelled(&hung).await;
    let worker = set.worker().await;
    pause(2 * u64::try_from(LEASE.as_millis()).unwrap()).await;
    assert_eq!(set.probe.starts("b"), 1);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn ended<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let done = set.jobs.submit::<Work>(named("a"), SubmitOptions::new()).await.unwrap();
    assert_eq!(done.result().await.unwrap().data, 1);
    assert!(!done.cancel().await.unwrap());
    assert_eq!(done.result().await.unwrap().data, 1);
    let dead = set.jobs.submit::<Work>(failing("b", 9), attempts(1)).await.unwrap();
    assert!(dead.result().await.is_err());
    assert!(!dead.cancel().await.unwrap());
    assert!(matches!(dead.status().await.unwrap(), JobStatus::Dead(_)));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn with_its_steps<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, SubmitOptions::new()).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    cancelled(&job).await;
    eventually("both handlers are dropped", || set.probe.alive() == 0).await;
    set.settled().await;
    worker.stop().await;
}

/// A job that no worker has is cancelled with its steps, too.
pub(crate) async fn with_its_steps_while_it_waits<H: Harness>() {
    let set = Set::<H>::start().await;
    // It finds no place to wait for its step, and is given back.
    let worker = Worker::new(set.others().await, set.registry()).with_max_waiting(0).start();
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    cancelled(&job).await;
    eventually("the step is dropped", || set.probe.alive() == 0).await;
    set.settled().await;
    worker.stop().await;
}

/// Its step, whose worker died as well, does not begin again.
pub(crate) async fn with_its_steps_after_their_worker_died<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(3)).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    drop(first);
    cancelled(&job).await;
    let second = set.worker().await;
    set.settled().await;
    assert_eq!((set.probe.starts("a"), set.probe.starts("a-gate")), (1, 1));
    second.stop().await;
}

/// Nor does it when nothing is kept any more of the job that waited for it.
pub(crate) async fn with_its_steps_after_its_ending_is_over<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let options = attempts(3).with_retention(Duration::from_secs(1));
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, options).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    drop(first);
    cancelled(&job).await;
    // Three leases on some engines.
    for _ in 0..600 {
        if job.status().await.is_err() {
            break;
        }
        pause(100).await;
    }
    let error = job.status().await.unwrap_err();
    assert!(matches!(JobError::of(&error), Some(JobError::NotFound { .. })), "{error}");
    let second = set.worker().await;
    set.settled().await;
    assert_eq!(set.probe.starts("a-gate"), 1);
    second.stop().await;
}

/// Nor does one go on that runs meanwhile, though its job is discarded before the worker of the step has looked.
pub(crate) async fn with_its_steps_and_discarded<H: Harness>() {
    let set = Set::<H>::start().await;
    // It finds no place to wait for its step, and is given back.
    let worker = Worker::new(set.others().await, set.registry()).with_max_waiting(0).start();
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    assert!(job.cancel().await.unwrap() && job.discard().await.unwrap());
    eventually("the step is dropped", || set.probe.alive() == 0).await;
    set.settled().await;
    assert_eq!(set.probe.starts("a-gate"), 1);
    worker.stop().await;
}

/// A step that no worker had when its job was cancelled does not run for the next job of the key, which has steps of its own.
pub(crate) async fn with_its_steps_and_submitted_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = || attempts(1).with_key("k");
    let submit = async || set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, options()).await.unwrap();
    // It knows the job, and not its step.
    let partial = Registry::builder().with_state(set.probe.clone()).build();
    partial.register(Waits).unwrap();
    let first = set.worker_of(partial).await;
    let job = submit().await;
    let step = loop {
        let due: Vec<_> = set.jobs.list("jobs", Listed::Due).try_collect().await.unwrap();
        if let Some((id, _)) = due.into_iter().find(|(id, _)| id != job.id()) {
            break set.jobs.job_by_id(id);
        }
        pause(20).await;
    };
    first.stop().await;
    cancelled(&job).await;
    assert!(job.discard().await.unwrap());
    let again = submit().await;
    assert_eq!((again.is_new(), again.id()), (true, job.id()));
    let second = set.worker().await;
    reaches(&step, "cancelled", |status| *status == JobStatus::Cancelled).await;
    set.probe.open();
    assert_eq!(again.result().await.unwrap().data, 1);
    set.settled().await;
    assert_eq!(set.probe.starts("a-gate"), 1);
    second.stop().await;
}

pub(crate) async fn by_many_at_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    for round in 0..10 {
        let input = WorkInput { millis: Some(10), ..named("a") };
        let job = set.jobs.submit::<Work>(input, SubmitOptions::new()).await.unwrap();
        pause(round * 2).await;
        let cancels = (0..5).map(|_| {
            let job = job.clone();
            async move { job.cancel().await.unwrap() }
        });
        let cancelled = join_all(cancels).await.into_iter().filter(|is_cancelled| *is_cancelled).count();
        // It has one ending, and all agree on it.
        match job.result().await {
            Ok(envelope) => assert_eq!((envelope.data, cancelled), (1, 0)),
            Err(error) => {
                assert!(matches!(JobError::of(&error), Some(JobError::Cancelled { .. })), "{error}");
                assert_eq!(cancelled, 1);
            }
        }
    }
    set.settled().await;
    worker.stop().await;
}
