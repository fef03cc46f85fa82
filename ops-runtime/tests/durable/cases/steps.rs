//! Steps: what a repeated attempt does not repeat.

use std::time::Duration;

use futures_util::TryStreamExt;
use ops_runtime::ErrorCode;
use ops_runtime::access::Identity;
use ops_runtime::durable::engine::{Engine, Listed};
use ops_runtime::durable::record::JobRecord;
use ops_runtime::durable::{JobError, JobStatus, RetryPolicy, SubmitOptions, Worker};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::harness::{Harness, Set, attempts, eventually, is_running, pause, reaches};
use crate::operations::*;

pub(crate) async fn once_over_all_attempts<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let input = || OrderInput { name: "a".into(), fails: 2 };
    let job = set.jobs.submit::<Order>(input(), attempts(3)).await.unwrap();
    // The step failed once and was tried again by itself.
    assert_eq!(job.result().await.unwrap().data, json!({ "charged": 2, "label": 1, "attempt": 3 }));
    let starts = |name: &str| set.probe.starts(name);
    assert_eq!((starts("a"), starts("a-charge"), starts("a-label")), (3, 2, 1));
    // Another job has steps of its own.
    let job = set.jobs.submit::<Order>(input(), attempts(3)).await.unwrap();
    assert!(job.result().await.is_ok());
    assert_eq!((starts("a"), starts("a-charge"), starts("a-label")), (6, 4, 2));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn closures_are_kept<H: Harness>() {
    let set = Set::<H>::start().await;
    // Over workers, too: the second attempt is another's, after the first died.
    let first = set.worker().await;
    let input = OrderInput { name: "a".into(), fails: 1 };
    let (policy, wait) = (RetryPolicy::new(5), Duration::from_secs(5));
    let options = SubmitOptions::new().with_retry(policy.with_backoff(wait, wait));
    let job = set.jobs.submit::<Order>(input, options).await.unwrap();
    // The first attempt has failed behind the label, which is kept by then.
    reaches(&job, "retrying", |status| matches!(status, JobStatus::Retrying { .. })).await;
    drop(first);
    let second = set.worker().await;
    let result = job.result().await.unwrap().data;
    assert_eq!((&result["charged"], &result["label"]), (&json!(2), &json!(1)));
    assert_eq!(set.probe.starts("a-label"), 1);
    set.settled().await;
    second.stop().await;
}

pub(crate) async fn nested_with_one_place<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await, set.registry()).with_max_running(1).start();
    let jobs: Vec<_> = {
        let mut jobs = Vec::new();
        for _ in 0..3 {
            jobs.push(set.jobs.submit::<Nest>(NestInput { depth: 5 }, SubmitOptions::new()).await.unwrap());
        }
        jobs
    };
    for job in jobs {
        assert_eq!(job.result().await.unwrap().data, 5);
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn side_by_side<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await, set.registry()).with_max_running(2).start();
    let job = set.jobs.submit::<Fan>(FanInput { name: "a".into(), steps: 20 }, SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 20);
    assert_eq!((set.probe.starts("a"), set.probe.starts("a-step")), (1, 20));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn another_input_is_a_conflict<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Fickle>(FickleInput {}, attempts(3)).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert!(matches!(JobError::of(&error), Some(JobError::Conflict { .. })), "{error}");
    assert!(matches!(job.status().await.unwrap(), JobStatus::Failed(_)));
    set.settled().await;
    worker.stop().await;
}

/// Two calls of one operation share no step: the second would get what the first got.
pub(crate) async fn of_several_calls<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Parcels>(ParcelsInput { named: false }, attempts(3)).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    assert!(error.message().starts_with("another call of this job has a step `parcel`"), "{error}");
    assert_eq!(set.probe.starts("charge"), 1);
    // Those with names of their own are kept over attempts.
    let job = set.jobs.submit::<Parcels>(ParcelsInput { named: true }, attempts(3)).await.unwrap();
    let shipped = |parcel| {
        let label = format!("label of {parcel}");
        json!({ "label": label, "charged": 1 })
    };
    assert_eq!(job.result().await.unwrap().data, [shipped("a"), shipped("b")]);
    assert_eq!(set.probe.starts("charge"), 3);
    set.settled().await;
    worker.stop().await;
}

/// The second step of a name would get the result of the first, and not run.
pub(crate) async fn two_of_one_name<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    for how in ["steps", "side by side", "operations"] {
        let job = set.jobs.submit::<Twice>(TwiceInput { how: how.into() }, attempts(3)).await.unwrap();
        let error = job.result().await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError, "{how}");
        assert!(error.message().starts_with("this call has a step `n` already"), "{how}: {error}");
    }
    // One that failed gave nothing that a second could get.
    let job = set.jobs.submit::<Twice>(TwiceInput { how: "repeated".into() }, attempts(3)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, [1, 2]);
    set.settled().await;
    worker.stop().await;
}

/// A name is taken though the closure failed: the first call of the next attempt would get what the second one kept.
pub(crate) async fn of_a_call_that_is_repeated<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    for fails in [0, 1] {
        let job = set.jobs.submit::<Persists>(PersistsInput { fails }, attempts(2)).await.unwrap();
        assert_eq!(job.result().await.unwrap().data, ["BUSY", "VALIDATION_ERROR"], "{fails}");
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_step_that_failed<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Refused>(RefusedInput { name: "a".into() }, attempts(3)).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!((error.code().as_str(), error.operation()), ("CARD_DECLINED", Some("test.work")));
    // The error is the job's own, and is not tried again.
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

/// Jobs that find no place to wait are given back, and go on where they were.
pub(crate) async fn more_than_may_wait<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await, set.registry()).with_max_waiting(1).start();
    let mut jobs = Vec::new();
    for n in 0..4 {
        let input = WaitsInput { name: format!("job-{n}") };
        jobs.push(set.jobs.submit::<Waits>(input, attempts(1)).await.unwrap());
    }
    eventually("all steps run", || (0..4).all(|n| set.probe.starts(&format!("job-{n}-gate")) == 1)).await;
    set.probe.open();
    for job in jobs {
        // To be given back is no attempt.
        assert_eq!(job.result().await.unwrap().data, 1);
    }
    assert!((0..4).all(|n| set.probe.starts(&format!("job-{n}-gate")) == 1));
    set.settled().await;
    worker.stop().await;
}

/// A job that found no place to wait for its step needs none once that has ended, and so the one above it goes on.
pub(crate) async fn nested_with_one_that_may_wait<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await, set.registry()).with_max_waiting(1).start();
    let job = set.jobs.submit::<Nest>(NestInput { depth: 3 }, attempts(1)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 3);
    set.settled().await;
    worker.stop().await;
}

/// A step has the identity of the call that it is part of: not that of the job, and not that of the worker, who takes all jobs.
pub(crate) async fn with_the_identity_of_their_call<H: Harness>() {
    let set = Set::<H>::start().await;
    let others = set.others().await.scoped(Identity::new("carl"));
    let worker = Worker::new(others, set.registry()).start();
    for owner in [None, Some("ann")] {
        let jobs = owner.map_or_else(|| set.jobs.clone(), |owner| set.jobs.scoped(Identity::new(owner)));
        let own = jobs.submit::<Errand>(ErrandInput {}, attempts(1)).await.unwrap();
        assert_eq!(own.result().await.unwrap().data.as_deref(), owner);
        let input = SendsInput { whom: "bob".into(), bytes: 1 };
        let sent = jobs.submit::<Sends>(input, attempts(1)).await.unwrap();
        assert_eq!(sent.result().await.unwrap().data.as_deref(), Some("bob"), "{owner:?}");
    }
    set.settled().await;
    worker.stop().await;
}

/// What calls add to the metadata of a job is not stored beyond the limits either: the ending of a step could not be written.
pub(crate) async fn with_too_much_metadata<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let send = async |bytes| {
        let input = SendsInput { whom: "bob".into(), bytes };
        set.jobs.submit::<Sends>(input, attempts(3)).await.unwrap().result().await
    };
    assert_eq!(send(16_000).await.unwrap().data.as_deref(), Some("bob"));
    let error = send(20_000).await.unwrap_err();
    assert_eq!((error.code(), error.operation()), (&ErrorCode::ValidationError, Some("test.vault")));
    assert_eq!(error.message(), "the metadata is 20006 bytes as JSON, and the engine keeps up to 17408");
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn given_back_by_a_drain<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    let stopped = tokio::spawn(first.stop());
    pause(200).await;
    // The worker finishes the step, and leaves the job to another.
    set.probe.open();
    stopped.await.unwrap();
    let second = set.worker().await;
    assert_eq!(job.result().await.unwrap().data, 1);
    assert_eq!(set.probe.starts("a-gate"), 1);
    set.settled().await;
    second.stop().await;
}

/// Two faults at once: a job and its step lose their worker.
pub(crate) async fn their_worker_dies<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(3)).await.unwrap();
    is_running(&job).await;
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    drop(first);
    set.probe.open();
    let second = set.worker().await;
    // The second attempt of the step is what the job's second attempt gets.
    assert_eq!(job.result().await.unwrap().data, 2);
    assert_eq!((set.probe.starts("a"), set.probe.starts("a-gate")), (2, 2));
    set.settled().await;
    second.stop().await;
}

pub(crate) async fn in_a_plain_call<H: Harness>() {
    let set = Set::<H>::start().await;
    let registry = set.registry();
    let called = registry.execute::<Nest>(NestInput { depth: 3 }).await.unwrap();
    assert_eq!(called.data, 3);
    // A closure, and an operation that says which attempt it is.
    let shipped = registry.execute::<Ship>(ShipInput { parcel: "a".into(), named: false }).await.unwrap();
    assert_eq!(shipped.data, json!({ "label": "label of a", "charged": 1 }));
    assert_eq!(set.jobs.stats("jobs").await.unwrap().open, 0);
}

/// Steps are where their job is, though its tenant may be in another lane since there are more.
pub(crate) async fn in_the_lane_of_their_job<H: Harness>() {
    let set = Set::<H>::start().await;
    let engine = set.harness.engine().await;
    for lane in 0..2 {
        let id = format!("jobs.{lane}.0123456789abcdef0123456789abcdef").parse().unwrap();
        let record = JobRecord::new(id, "test.nest", to_raw_value(&json!({ "depth": 1 })).unwrap());
        assert!(engine.submit(&record).await.unwrap().is_none());
    }
    let worker = set.worker().await;
    set.settled().await;
    let ended: Vec<_> = set.jobs.list("jobs", Listed::Ended).try_collect().await.unwrap();
    let mut lanes: Vec<_> = ended.iter().map(|(id, _)| id.lane()).collect();
    lanes.sort_unstable();
    assert_eq!(lanes, [0, 0, 1, 1]);
    worker.stop().await;
}

/// A repeated attempt finds its steps though their operation has another queue by then.
pub(crate) async fn in_the_queue_that_they_had<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let late = SubmitOptions::new()
        .with_retry(RetryPolicy::new(2).with_backoff(Duration::from_secs(3), Duration::from_secs(3)));
    let job = set.jobs.submit::<Order>(OrderInput { name: "a".into(), fails: 9 }, late).await.unwrap();
    reaches(&job, "retrying", |status| matches!(status, JobStatus::Retrying { .. })).await;
    first.stop().await;
    let others = set.others().await.with_queue("test.work", "slow");
    let second = Worker::new(others, set.registry()).start();
    let starts = || ["a", "a-charge", "a-label"].map(|name| set.probe.starts(name));
    assert!(job.result().await.is_err());
    assert_eq!(starts(), [2, 2, 1]);
    // By hand, too, which begins with a first delivery.
    assert!(job.retry().await.unwrap());
    assert!(job.result().await.is_err());
    assert_eq!(starts(), [4, 2, 1]);
    assert!(job.discard().await.unwrap());
    set.settled().await;
    second.stop().await;
}

/// A handler that ends before its steps do takes no place from others.
pub(crate) async fn left_behind<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await, set.registry()).with_max_running(1).start();
    let job = set.jobs.submit::<Leaves>(LeavesInput { name: "a".into() }, attempts(1)).await.unwrap();
    assert!(job.result().await.is_ok());
    set.probe.open();
    let next = set.jobs.submit::<Work>(named("b"), attempts(1)).await.unwrap();
    assert_eq!(next.result().await.unwrap().data, 1);
    eventually("the step has run", || set.probe.starts("a-gate") == 1).await;
    set.settled().await;
    worker.stop().await;
}
