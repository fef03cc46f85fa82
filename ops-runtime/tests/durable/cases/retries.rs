//! Failures and further attempts.

use std::time::Duration;

use futures_util::StreamExt;
use ops_runtime::ErrorCode;
use ops_runtime::access::Identity;
use ops_runtime::durable::engine::Listed;
use ops_runtime::durable::{JobStatus, RetryPolicy, SubmitOptions};
use serde_json::json;

use crate::harness::{Harness, MAX_SIZE, Set, attempts};
use crate::operations::*;

pub(crate) async fn until_it_succeeds<H: Harness>() {
    let set = Set::<H>::start().await;
    let workers = [set.worker().await, set.worker().await];
    let job = set.jobs.submit::<Work>(failing("a", 3), attempts(5)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 4);
    assert_eq!(set.probe.starts("a"), 4);
    assert_eq!(job.status().await.unwrap(), JobStatus::Done);
    set.settled().await;
    for worker in workers {
        worker.stop().await;
    }
}

pub(crate) async fn until_attempts_are_used_up<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Work>(failing("a", 99), attempts(3)).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!((error.code(), error.message()), (&ErrorCode::ExecutionError, "attempt 3 fails"));
    assert_eq!(error.operation(), Some("test.work"));
    assert_eq!(job.status().await.unwrap(), JobStatus::Dead(error));
    assert_eq!(set.probe.starts("a"), 3);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn what_is_never_tried_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let coded = |code: &str| json!({ "name": code, "fails": 99, "code": code });
    let stranger = set.jobs.scoped(Identity::new("bob"));
    let policy = || attempts(5).with_retry(RetryPolicy::new(5).with_code("VALIDATION_ERROR"));
    for (jobs, id, input, code) in [
        (&set.jobs, "test.add", json!({ "a": "one" }), "VALIDATION_ERROR"),
        (&set.jobs, "test.work", coded("VALIDATION_ERROR"), "VALIDATION_ERROR"),
        (&set.jobs, "test.work", coded("TAKEN"), "TAKEN"),
        (&stranger, "test.vault", json!({}), "ACCESS_DENIED"),
    ] {
        let job = jobs.submit_by_id(id, input, policy()).await.unwrap();
        let error = job.result().await.unwrap_err();
        assert_eq!(error.code().as_str(), code);
        // It is a result, and no dead letter.
        assert_eq!(job.status().await.unwrap(), JobStatus::Failed(error));
        assert!(job.dead_letter().await.unwrap().is_none());
    }
    assert_eq!((set.probe.starts("TAKEN"), set.probe.starts("VALIDATION_ERROR")), (1, 1));
    set.settled().await;
    worker.stop().await;
}

/// It is not that of the job.
pub(crate) async fn an_identity_of_the_handler_is_tried_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Guess>(GuessInput { fails: 2 }, attempts(3)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data.as_deref(), Some("till"));
    let job = set.jobs.submit::<Guess>(GuessInput { fails: 2 }, attempts(2)).await.unwrap();
    let error = job.result().await.unwrap_err();
    let told = "access to `test.vault` denied: it needs all of the scopes vault:open";
    assert_eq!((error.code(), error.message()), (&ErrorCode::AccessDenied, told));
    assert_eq!(job.status().await.unwrap(), JobStatus::Dead(error));
    set.settled().await;
    worker.stop().await;
}

/// The handler or its step has done its work, and another attempt would give such a result again.
pub(crate) async fn results_that_json_does_not_have<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    for (name, in_step) in [("a", false), ("b", true)] {
        let policy = RetryPolicy::new(3).with_backoff(Duration::ZERO, Duration::ZERO).with_code("EXECUTION_ERROR");
        let options = SubmitOptions::new().with_retry(policy);
        let input = DividesInput { name: name.into(), in_step };
        let job = set.jobs.submit::<Divides>(input, options).await.unwrap();
        let error = job.result().await.unwrap_err();
        assert!(error.message().starts_with("the value can't be written as JSON: "), "{name}: {error}");
        assert_eq!((error.code(), error.details()), (&ErrorCode::ExecutionError, &json!({ "retryable": false })));
        assert_eq!((set.probe.starts(name), job.status().await.unwrap()), (1, JobStatus::Failed(error)));
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn codes_that_the_policy_names<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let policy =
        RetryPolicy::new(3).with_backoff(Duration::from_millis(20), Duration::from_millis(20)).with_code("BUSY");
    let input = WorkInput { code: Some("BUSY".into()), ..failing("a", 2) };
    let job = set.jobs.submit::<Work>(input, SubmitOptions::new().with_retry(policy)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 3);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn policies_by_pattern<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Patient>(PatientInput { fails: 3 }, SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 4);
    // The options of a submit have precedence.
    let job = set.jobs.submit::<Patient>(PatientInput { fails: 3 }, attempts(1)).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().message(), "attempt 1 fails");
    set.settled().await;
    worker.stop().await;
}

/// The most attempts of `test.hasty` in its 3 s: its waits of 50 ms are shortened by up to a fifth.
const HASTY: usize = 76;

pub(crate) async fn policies_of_operations<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let four = || StubbornInput { fails: 4 };
    // By its type and by its id, from a submitter that need not know the operation.
    let job = set.jobs.submit::<Stubborn>(four(), SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 5);
    let job = set.jobs.submit_by_id("test.stubborn", json!({ "fails": 4 }), SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 5);
    let job = set.jobs.submit::<Stubborn>(StubbornInput { fails: 5 }, SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().message(), "attempt 5 fails");
    assert!(matches!(job.status().await.unwrap(), JobStatus::Dead(_)));
    // A pattern of the jobs has precedence over it, and the options over both, also if they say what is the default.
    let busy = |attempts| {
        let policy = RetryPolicy::new(attempts).with_backoff(Duration::from_millis(20), Duration::from_millis(20));
        policy.with_code("BUSY")
    };
    let by_pattern = set.jobs.clone().with_retry("test.stub*", busy(2));
    let job = by_pattern.submit::<Stubborn>(four(), SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().message(), "attempt 2 fails");
    let job = by_pattern.submit::<Stubborn>(four(), SubmitOptions::new().with_retry(busy(3))).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().message(), "attempt 3 fails");
    let default = SubmitOptions::new().with_retry(RetryPolicy::DEFAULT);
    let job = by_pattern.submit::<Stubborn>(four(), default).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!((error.message(), job.status().await.unwrap()), ("attempt 1 fails", JobStatus::Failed(error.clone())));
    // A step follows the policy of its own operation.
    let job = set.jobs.submit::<Delegates>(DelegatesInput { name: "a".into() }, SubmitOptions::new()).await.unwrap();
    let (attempt, code) = job.result().await.unwrap().data;
    // The other is given up after its time, or when what is left of that would not do for another attempt.
    assert!(attempt == 5 && matches!(&*code, "EXECUTION_ERROR" | "TIMEOUT"), "{attempt} {code}");
    assert!((1..=HASTY).contains(&set.probe.starts("a")), "{}", set.probe.starts("a"));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn deadlines_of_operations<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
    let named = |name: &str| HastyInput { name: name.to_owned() };
    // The limit counts from the earliest start.
    let delayed = SubmitOptions::new().with_delay(Duration::from_millis(3_500));
    let job = set.jobs.submit::<Hasty>(named("a"), delayed).await.unwrap();
    let error = job.result().await.unwrap_err();
    // What is left would not do for another attempt, or the time is over.
    assert!(matches!(error.code(), ErrorCode::ExecutionError | ErrorCode::Timeout), "{error:?}");
    assert!(matches!(job.status().await.unwrap(), JobStatus::Dead(_)));
    assert!((1..=HASTY).contains(&set.probe.starts("a")), "{}", set.probe.starts("a"));
    // The options have precedence, also for later; a dead letter begins anew.
    let longer = SubmitOptions::new().with_timeout(Duration::from_secs(9));
    let other = set.jobs.submit::<Hasty>(named("b"), longer).await.unwrap();
    other.result().await.unwrap_err();
    let times = set.probe.times("b");
    let last = *times.last().unwrap() - times[0];
    assert!(last > Duration::from_millis(3_500) && last < Duration::from_secs(10), "{last:?}");
    let before = set.probe.starts("a");
    assert!(job.retry().await.unwrap());
    job.result().await.unwrap_err();
    assert!(set.probe.starts("a") > before);
    set.settled().await;
    worker.stop().await;
}

/// Errors that are too large to write or too deep to read are cut, and their messages say so.
pub(crate) async fn errors_of_any_size_are_kept<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let loud = |name: &str, code: &str, bytes, levels| LoudInput {
        name: name.to_owned(),
        code: code.to_owned(),
        bytes,
        levels,
        padding: Some("x".repeat(MAX_SIZE - 1_000)),
    };
    for (name, bytes, levels) in [("large", 1_200_000, 1), ("deep", 1, 125)] {
        let job = set.jobs.submit::<Loud>(loud(name, "TAKEN", bytes, levels), attempts(3)).await.unwrap();
        let error = job.result().await.unwrap_err();
        assert_eq!((error.code().as_str(), &error.details()["statusCode"]), ("TAKEN", &json!(503)));
        assert!(error.message().starts_with("attempt 1 fails [cut: "), "{error}");
        // It is not tried again, and so its handler does not run again.
        assert_eq!((set.probe.starts(name), job.status().await.unwrap()), (1, JobStatus::Failed(error)));
    }
    for (name, bytes, levels) in [("larger", 100_000, 1), ("deeper", 1, 123)] {
        let input = loud(name, "EXECUTION_ERROR", bytes, levels);
        let policy = RetryPolicy::new(18).with_backoff(Duration::ZERO, Duration::ZERO);
        let job = set.jobs.submit::<Loud>(input, SubmitOptions::new().with_retry(policy)).await.unwrap();
        let error = job.result().await.unwrap_err();
        assert!(error.message().starts_with("attempt 18 fails [cut: "), "{error}");
        let letter = job.dead_letter().await.unwrap().unwrap();
        assert_eq!((letter.attempts, letter.history.len(), set.probe.starts(name)), (18, 16, 18));
        assert!(letter.history.iter().all(|failed| failed.error.message().contains("[cut: ")), "{letter:?}");
    }
    let letters = set.jobs.dead_letters().count().await;
    let ended = set.jobs.list("jobs", Listed::Ended).count().await;
    assert_eq!((letters, ended), (2, 2));
    // What is refused is told to the submitter.
    let options = SubmitOptions::new().with_metadata("a", "x".repeat(MAX_SIZE));
    let error = set.jobs.submit::<Work>(named("a"), options).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn waits_grow<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let policy = RetryPolicy::new(4).with_backoff(Duration::from_millis(200), Duration::from_millis(800));
    let job = set.jobs.submit::<Work>(failing("a", 3), SubmitOptions::new().with_retry(policy)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 4);
    let times = set.probe.times("a");
    let waits: Vec<_> = times.windows(2).map(|pair| (pair[1] - pair[0]).as_millis()).collect();
    // Shortened by up to a fifth; the machine may be slow.
    for (wait, least) in waits.iter().zip([160, 320, 640]) {
        assert!(*wait >= least, "{waits:?}");
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_panic_is_a_failure<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Panics>(PanicsInput { times: 1 }, attempts(2)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 2);
    let job = set.jobs.submit::<Panics>(PanicsInput { times: 2 }, attempts(2)).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::UnknownError);
    set.settled().await;
    worker.stop().await;
}
