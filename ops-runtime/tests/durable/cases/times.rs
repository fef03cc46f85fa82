//! Delays and deadlines.

use std::time::{Duration, Instant, SystemTime};

use ops_runtime::ErrorCode;
use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::record::{Ended, Outcome, Stored};
use ops_runtime::durable::{JobStatus, RetryPolicy, SubmitOptions, Worker};

use crate::harness::{Harness, Set, attempts, is_running, pause, reaches};
use crate::operations::*;

pub(crate) async fn delayed<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
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
    assert!(started < delay + Duration::from_secs(30), "{started:?}");
    set.settled().await;
    worker.stop().await;
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
    worker.stop().await;
}

pub(crate) async fn the_deadline_passes_without_a_worker<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = || SubmitOptions::new().with_timeout(Duration::from_millis(300));
    let waited = set.jobs.submit::<Work>(named("a"), options()).await.unwrap();
    let left = set.jobs.submit::<Work>(named("a"), options()).await.unwrap();
    let start = Instant::now();
    let error = waited.result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(start.elapsed() < Duration::from_secs(15), "{:?}", start.elapsed());
    // The other is found by a worker that comes too late.
    let worker = set.worker().await;
    assert_eq!(left.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    assert!(matches!(left.status().await.unwrap(), JobStatus::Dead(_)));
    assert_eq!(set.probe.starts("a"), 0);
    assert!(waited.discard().await.unwrap() && left.discard().await.unwrap());
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn the_deadline_passes_in_the_handler<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.warm_worker().await;
    let options = attempts(5).with_timeout(Duration::from_secs(5));
    let job = set.jobs.submit::<Hang>(HangInput { name: "a".into() }, options).await.unwrap();
    is_running(&job).await;
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    let letter = job.dead_letter().await.unwrap().unwrap();
    assert_eq!((letter.attempts, letter.history.len()), (1, 1));
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
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
    worker.stop().await;
}

/// Who waits knows of deadlines that are not in the options: here no worker is there to know of them.
pub(crate) async fn deadlines_of_policies_pass<H: Harness>() {
    let set = Set::<H>::start().await;
    let start = Instant::now();
    let job = set.jobs.submit::<Hasty>(HastyInput { name: "a".into() }, SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    assert!(start.elapsed() > Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(job.discard().await.unwrap());
    // That of a step is not put off by a longer one of its job.
    let policy = RetryPolicy::new(1).with_deadline(Duration::from_secs(1));
    let others = set.others().await.with_retry("test.gate", policy);
    let worker = Worker::new(others, set.registry()).start();
    let options = attempts(1).with_timeout(Duration::from_secs(100));
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "b".into() }, options).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    set.settled().await;
    worker.stop().await;
}

/// What is for ever is that, or it is refused.
pub(crate) async fn durations_without_end<H: Harness>() {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await.with_step_retention(Duration::MAX), set.registry()).start();
    let kept = attempts(3).with_retention(Duration::MAX).with_timeout(Duration::MAX);
    let job = set.jobs.submit::<Work>(named("kept"), kept).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 1);
    let job = set.jobs.submit::<Order>(OrderInput { name: "a".into(), fails: 1 }, attempts(2)).await.unwrap();
    assert!(job.result().await.is_ok());
    assert_eq!(["kept", "a", "a-charge", "a-label"].map(|name| set.probe.starts(name)), [1, 2, 2, 1]);

    let later = SubmitOptions::new();
    for options in [later.clone().with_delay(Duration::MAX), later.clone().with_delay(101 * YEAR)] {
        let error = set.jobs.submit::<Work>(named("later"), options).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError);
    }
    let job = set.jobs.submit::<Work>(named("later"), later.with_delay(99 * YEAR)).await.unwrap();
    let policy = RetryPolicy::new(2).with_backoff(Duration::MAX, Duration::MAX);
    let failed = set.jobs.submit::<Work>(failing("fails", 9), SubmitOptions::new().with_retry(policy)).await.unwrap();
    reaches(&failed, "retrying", |status| matches!(status, JobStatus::Retrying { .. })).await;
    pause(2_500).await;
    assert_eq!((set.probe.starts("later"), set.probe.starts("fails")), (0, 1));
    assert!(matches!(job.status().await.unwrap(), JobStatus::Delayed { .. }));
    assert!(job.cancel().await.unwrap() && failed.cancel().await.unwrap());

    let engine = set.harness.engine().await;
    assert!(matches!(engine.wait(job.id(), Duration::MAX).await.unwrap(), Some(Stored::Ended(_))));
    worker.stop().await;
    set.jobs.submit::<Work>(named("pulled"), SubmitOptions::new()).await.unwrap();
    let delivery = engine.pull("jobs", 1, Duration::MAX).await.unwrap().pop().unwrap();
    let ended = Ended::new(&delivery.job, engine.now(), 1, Outcome::Cancelled);
    assert!(engine.end(&delivery, &ended).await.unwrap());
    set.settled().await;
}
