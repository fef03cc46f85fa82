//! Delays and deadlines.

use std::time::{Duration, Instant, SystemTime};

use ops_runtime::ErrorCode;
use ops_runtime::durable::{JobStatus, RetryPolicy, SubmitOptions};

use crate::harness::{Harness, Set, attempts, is_running, pause};
use crate::operations::*;

pub(crate) async fn delayed<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let (start, delay) = (Instant::now(), Duration::from_secs(8));
    let later = set.jobs.submit::<Work>(named("later"), SubmitOptions::new().with_delay(delay)).await.unwrap();
    let JobStatus::Delayed { until } = later.status().await.unwrap() else { panic!("it is delayed") };
    assert!(until > SystemTime::now() && until < SystemTime::now() + delay);
    let sooner = set.jobs.submit::<Work>(named("sooner"), SubmitOptions::new()).await.unwrap();
    assert_eq!(sooner.result().await.unwrap().data, 1);
    assert!(set.probe.times("later").is_empty() || start.elapsed() > delay, "it ran before its time");
    // A delay is no attempt.
    assert_eq!(later.result().await.unwrap().data, 1);
    let started = set.probe.times("later")[0] - start;
    assert!(started >= delay - Duration::from_millis(20), "{started:?}");
    assert!(started < delay + Duration::from_secs(5), "{started:?}");
    set.settled().await;
    worker.drain().await;
}

pub(crate) async fn at_a_time<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let past = SubmitOptions::new().with_start(SystemTime::UNIX_EPOCH);
    let job = set.jobs.submit::<Work>(named("past"), past).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 1);
    let start = Instant::now();
    let future = SubmitOptions::new().with_start(SystemTime::now() + Duration::from_secs(1));
    let job = set.jobs.submit::<Work>(named("future"), future).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 1);
    assert!(start.elapsed() > Duration::from_millis(900));
    set.settled().await;
    worker.drain().await;
}

pub(crate) async fn the_deadline_passes_without_a_worker<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = || SubmitOptions::new().with_timeout(Duration::from_millis(300));
    let waited = set.jobs.submit::<Work>(named("a"), options()).await.unwrap();
    let left = set.jobs.submit::<Work>(named("a"), options()).await.unwrap();
    let error = waited.result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    // The other is found by a worker that comes too late.
    let worker = set.worker().await;
    assert_eq!(left.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    assert!(matches!(left.status().await.unwrap(), JobStatus::Dead(_)));
    assert_eq!(set.probe.starts("a"), 0);
    assert!(waited.discard().await.unwrap() && left.discard().await.unwrap());
    set.settled().await;
    worker.drain().await;
}

pub(crate) async fn the_deadline_passes_in_the_handler<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let options = attempts(5).with_timeout(Duration::from_secs(5));
    let job = set.jobs.submit::<Hang>(HangInput { name: "a".into() }, options).await.unwrap();
    is_running(&job).await;
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    let letter = job.dead_letter().await.unwrap().unwrap();
    assert_eq!((letter.attempts, letter.history.len()), (1, 1));
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.drain().await;
}

pub(crate) async fn the_deadline_leaves_no_time_for_another_attempt<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let policy = RetryPolicy::new(5).with_backoff(Duration::from_secs(60), Duration::from_secs(60));
    let options = SubmitOptions::new().with_timeout(Duration::from_secs(40)).with_retry(policy);
    let start = Instant::now();
    let job = set.jobs.submit::<Work>(failing("a", 9), options).await.unwrap();
    // The error of the handler, at once.
    let error = job.result().await.unwrap_err();
    assert_eq!((error.code(), error.message()), (&ErrorCode::ExecutionError, "attempt 1 fails"));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(matches!(job.status().await.unwrap(), JobStatus::Dead(_)));
    pause(10).await;
    set.settled().await;
    worker.drain().await;
}
