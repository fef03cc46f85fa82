//! Dead letters, and other jobs that failed.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, TryStreamExt};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::record::{DeadLetter, Ended, JobRecord, Outcome, Stored, Tries};
use ops_runtime::durable::{AnyJob, Job, JobError, JobStatus, RetryPolicy, SubmitOptions};
use ops_runtime::spec::OperationSpec;
use ops_runtime::{CallError, Context, Registry};
use serde_json::{Value, json};

use crate::harness::{Harness, Set, attempts, eventually, is_running, pause};
use crate::operations::*;

/// A dead letter that succeeds at the attempt of that number, if it is tried again.
async fn dead<H: Harness>(set: &Set<H>, input: WorkInput, options: SubmitOptions) -> Job<Work> {
    let job = set.jobs.submit::<Work>(input, options).await.unwrap();
    assert!(job.result().await.is_err());
    assert!(matches!(job.status().await.unwrap(), JobStatus::Dead(_)));
    job
}

async fn letters<H: Harness>(set: &Set<H>) -> Vec<DeadLetter> {
    set.jobs.dead_letters().try_collect().await.unwrap()
}

pub(crate) async fn listed_with_its_history<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    assert_eq!(set.jobs.dead_letters().count().await, 0);
    let options = attempts(2).with_key("k").with_tenant("acme");
    let job = dead(&set, failing("a", 9), options).await;
    let letters = letters(&set).await;
    let [letter] = &letters[..] else { panic!("{letters:?}") };
    assert_eq!((&letter.job.id, &*letter.job.operation), (job.id(), "test.work"));
    assert_eq!((letter.job.key.as_deref(), letter.job.tenant.as_deref()), (Some("k"), Some("acme")));
    assert_eq!(letter.input::<Work>().unwrap().name, "a");
    let input: Value = serde_json::from_str(letter.job.input.get()).unwrap();
    assert_eq!(input, json!({ "name": "a", "fails": 9 }));
    let history: Vec<_> = letter.history.iter().map(|failed| (failed.attempt, failed.error.message())).collect();
    assert_eq!(history, [(1, "attempt 1 fails"), (2, "attempt 2 fails")]);
    assert_eq!((letter.attempts, letter.error.message()), (2, "attempt 2 fails"));
    assert!(letter.history[0].at <= letter.history[1].at && letter.history[1].at <= letter.at);
    assert_eq!(set.jobs.stats("jobs").await.unwrap().dead, 1);
    // More than are read at once, and of both queues.
    for n in 0..120 {
        let input = json!({ "name": format!("{n}"), "fails": 9 });
        set.jobs.submit_by_id("test.work", input, attempts(1)).await.unwrap();
    }
    set.settled().await;
    assert_eq!(set.jobs.dead_letters().count().await, 121);
    worker.stop().await;
}

pub(crate) async fn tried_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    // It has as many attempts as before.
    let job = dead(&set, failing("a", 1), attempts(1)).await;
    assert!(job.retry().await.unwrap());
    assert!(job.result().await.is_err());
    assert_eq!(set.probe.starts("a"), 2);
    assert_eq!(job.dead_letter().await.unwrap().unwrap().attempts, 1);
    let gate = WorkInput { code: Some("EXECUTION_ERROR".into()), ..failing("b", 2) };
    let job = dead(&set, gate, attempts(2)).await;
    assert!(job.retry().await.unwrap());
    assert!(job.result().await.is_err());
    assert_eq!(set.probe.starts("b"), 4);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn tried_again_by_many_at_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = dead(&set, failing("a", 9), attempts(1)).await;
    worker.stop().await;
    let retries = (0..10).map(|_| {
        let job = job.clone();
        async move { job.retry().await.unwrap() }
    });
    assert_eq!(join_all(retries).await.into_iter().filter(|is_retried| *is_retried).count(), 1);
    assert_eq!(job.status().await.unwrap(), JobStatus::Queued);
    let worker = set.worker().await;
    assert!(job.result().await.is_err());
    assert_eq!(set.probe.starts("a"), 2);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn discarded<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let options = || attempts(1).with_key("k");
    let job = dead(&set, failing("a", 9), options()).await;
    assert!(job.discard().await.unwrap());
    assert!(letters(&set).await.is_empty());
    assert!(matches!(JobError::of(&job.status().await.unwrap_err()), Some(JobError::NotFound { .. })));
    // The key is free, also for another input.
    let again = set.jobs.submit::<Work>(named("a"), options()).await.unwrap();
    assert!(again.is_new());
    assert_eq!(again.result().await.unwrap().data, 1);
    assert!(!job.discard().await.unwrap());
    set.settled().await;
    worker.stop().await;
}

/// Who retries a dead letter and who discards it at the same time: one of them does.
pub(crate) async fn tried_again_and_discarded_at_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let (engine, others) = (set.harness.engine().await, set.others().await);
    for round in 0..60 {
        let job = set.jobs.submit::<Work>(named("a"), attempts(1)).await.unwrap();
        let record = open(&job).await;
        let letter = DeadLetter::new(record.clone(), engine.now(), Tries::default(), CallError::execution("no"));
        let dead = Ended::new(&record, engine.now(), 1, Outcome::Dead(Box::new(letter)));
        assert!(engine.close(job.id(), &dead).await.unwrap());
        let other = others.job_by_id(job.id().clone());
        let discard = async {
            tokio::time::sleep(Duration::from_micros(round % 20 * 50)).await;
            other.discard().await
        };
        let (retried, discarded) = tokio::join!(job.retry(), discard);
        let [retried, discarded] = [retried, discarded].map(|changed| match changed {
            // For the retry that came too late, the job is not there any more.
            Err(error) if matches!(JobError::of(&error), Some(JobError::NotFound { .. })) => false,
            changed => changed.unwrap(),
        });
        assert_ne!(retried, discarded, "{round}");
        assert_eq!(engine.read(job.id()).await.unwrap().is_some(), retried, "{round}");
        if retried {
            assert!(job.cancel().await.unwrap());
        }
    }
    set.settled().await;
}

/// The submitter was told that its job is a dead letter; then another process retries it, and the submitter gets the new result.
pub(crate) async fn tried_again_by_another_process<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
    let options = SubmitOptions::new().with_timeout(Duration::from_secs(4));
    let job = set.jobs.submit::<Gate>(GateInput { name: "a".into() }, options).await.unwrap();
    assert!(job.result().await.is_err());
    set.probe.open();
    assert!(set.others().await.job_by_id(job.id().clone()).retry().await.unwrap());
    assert!(job.result().await.is_ok());
    assert!(job.result().await.is_ok());
    set.settled().await;
    worker.stop().await;
}

/// A repeat of the key belongs to the dead letter, before it is tried again and after.
pub(crate) async fn tried_again_after_its_key_was_submitted_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = || SubmitOptions::new().with_key("k").with_timeout(Duration::from_secs(4));
    let input = || GateInput { name: "a".into() };
    let submit = async || set.jobs.submit::<Gate>(input(), options()).await.unwrap();
    let first = submit().await;
    assert!(first.result().await.is_err());
    let repeated = submit().await;
    assert_eq!((repeated.is_new(), repeated.id()), (false, first.id()));
    assert!(repeated.result().await.is_err());
    set.probe.open();
    let worker = set.warm_worker().await;
    assert!(repeated.retry().await.unwrap());
    let again = submit().await;
    assert!(!again.is_new());
    for job in [&first, &repeated, &again] {
        assert_eq!(job.result().await.unwrap().data, 1);
    }
    assert!(!first.retry().await.unwrap());
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_deadline_begins_anew<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
    let options = attempts(1).with_timeout(Duration::from_secs(5));
    let job = set.jobs.submit::<Gate>(GateInput { name: "a".into() }, options).await.unwrap();
    assert!(job.result().await.is_err());
    pause(500).await;
    assert!(job.retry().await.unwrap());
    is_running(&job).await;
    set.probe.open();
    assert_eq!(job.result().await.unwrap().data, 1);
    set.settled().await;
    worker.stop().await;
}

/// The record of a job that has not ended.
async fn open(job: &AnyJob) -> JobRecord {
    let Stored::Open { job, .. } = job.stored().await.unwrap() else { panic!("it is open") };
    *job
}

pub(crate) async fn a_deadline_begins_anew_without_the_delay<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let policy = RetryPolicy::new(1).with_deadline(Duration::from_secs(100));
    let options = SubmitOptions::new().with_retry(policy).with_delay(Duration::from_secs(2));
    let job = dead(&set, failing("a", 9), options).await;
    worker.stop().await;
    assert!(job.retry().await.unwrap());
    let record = open(&job).await;
    assert_eq!((record.not_before, record.deadline), (None, Some(record.submitted + 100_000)));
    let worker = set.worker().await;
    assert!(job.result().await.is_err());
    set.settled().await;
    worker.stop().await;
}

/// A step is tried again for its own sake and with a time of its own, though nothing is kept of the job that waited for it.
pub(crate) async fn a_step_of_a_job_that_is_gone<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
    // Long enough for the job to come to its step.
    let options = attempts(1).with_timeout(Duration::from_secs(6));
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, options).await.unwrap();
    assert!(job.result().await.is_err());
    let mut step = None;
    for _ in 0..300 {
        step = letters(&set).await.into_iter().map(|letter| letter.job.id).find(|id| id != job.id());
        if step.is_some() {
            break;
        }
        pause(100).await;
    }
    let step = set.jobs.job_by_id(step.expect("its step is a dead letter, too"));
    assert!(job.discard().await.unwrap());
    worker.stop().await;
    assert!(step.retry().await.unwrap());
    let record = open(&step).await;
    assert_eq!((record.parent, record.deadline), (None, None));
    set.probe.open();
    let worker = set.worker().await;
    assert_eq!(step.result().await.unwrap().data, json!(1));
    set.settled().await;
    worker.stop().await;
}

/// A job whose error is not retried by itself keeps its input, and is tried again when its cause is gone.
pub(crate) async fn failed_ones_are_tried_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let expired = Registry::new();
    let refuse = |_: Value, _: Context| async {
        Err::<Value, _>(CallError::execution("the token has expired").with_details(json!({ "statusCode": 401 })))
    };
    expired.register(Registration::new(OperationSpec::mutation("test.work"), Handler::dynamic(refuse))).unwrap();
    let first = set.worker_of(expired).await;
    let submit = async || {
        let options = attempts(3).with_key("k").with_tenant("acme");
        set.jobs.submit::<Work>(named("a"), options).await.unwrap()
    };
    let job = submit().await;
    let far = set.others().await.job_by_id(job.id().clone());
    assert!(far.result().await.is_err());
    assert!(matches!(far.status().await.unwrap(), JobStatus::Failed(_)));
    first.stop().await;
    let stored = far.stored().await.unwrap();
    let Stored::Ended(ended) = &stored else { panic!("it has ended") };
    let record = ended.job.as_ref().unwrap();
    let input: Value = serde_json::from_str(record.input.get()).unwrap();
    assert_eq!((&input["name"], record.tenant.as_deref(), stored.key()), (&json!("a"), Some("acme"), Some("k")));
    let worker = set.worker().await;
    // Of two retries at once, one counts. The submitter was told of the failure, and has not asked yet.
    let (one, other) = tokio::join!(job.retry(), far.retry());
    assert_ne!(one.unwrap(), other.unwrap());
    assert_eq!(job.result().await.unwrap().data, 1);
    assert!(!job.retry().await.unwrap() && !job.discard().await.unwrap());
    assert!(!submit().await.is_new());
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn failed_and_cancelled_ones_are_discarded<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    for (name, is_cancelled) in [("failed", false), ("cancelled", true)] {
        let millis = is_cancelled.then_some(60_000);
        let input = WorkInput { code: Some("TAKEN".into()), millis, ..failing(name, 9) };
        let job = set.jobs.submit::<Work>(input, attempts(3).with_key(name)).await.unwrap();
        if is_cancelled {
            is_running(&job).await;
            assert!(!job.discard().await.unwrap());
            eventually("it has started", || set.probe.starts(name) == 1).await;
            assert!(job.cancel().await.unwrap() && !job.retry().await.unwrap());
        }
        assert!(job.result().await.is_err());
        assert!(job.discard().await.unwrap());
        assert!(matches!(JobError::of(&job.status().await.unwrap_err()), Some(JobError::NotFound { .. })));
        // The key is free, also for another input, and servers take the next job for another one.
        let again = set.jobs.submit::<Work>(named(name), attempts(3).with_key(name)).await.unwrap();
        assert_eq!((again.is_new(), again.id()), (true, job.id()));
        assert_eq!(again.result().await.unwrap().data, 1);
        let keys = set.probe.jobs(name);
        assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
    }
    set.settled().await;
    worker.stop().await;
}

/// An earlier version did not store the input of a job that failed.
pub(crate) async fn failures_of_earlier_versions<H: Harness>() {
    let set = Set::<H>::start().await;
    let submit = async || set.jobs.submit::<Work>(named("a"), attempts(1).with_key("k")).await.unwrap();
    let job = submit().await;
    let engine = set.harness.engine().await;
    let error = CallError::new("TAKEN", "no");
    let mut ended = Ended::new(&open(&job).await, engine.now(), 1, Outcome::Failed(error.clone()));
    ended.job = None;
    assert!(engine.close(job.id(), &ended).await.unwrap());
    assert_eq!(job.status().await.unwrap(), JobStatus::Failed(error));
    let refused = job.retry().await.unwrap_err();
    assert!(
        refused.message().contains("was stored by an earlier version of this library, without the input"),
        "{refused}"
    );
    assert!(job.discard().await.unwrap());
    let again = submit().await;
    assert!(again.is_new() && again.cancel().await.unwrap());
    set.settled().await;
}
