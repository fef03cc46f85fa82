//! Schedules.

use std::collections::BTreeSet;
use std::time::{Duration, Instant, SystemTime};

use futures_util::TryStreamExt;
use futures_util::future::try_join_all;
use ops_runtime::ErrorCode;
use ops_runtime::access::Identity;
use ops_runtime::durable::engine::Listed;
use ops_runtime::durable::record::Stored;
use ops_runtime::durable::{JobStatus, Jobs, Schedule, SubmitOptions};
use serde_json::json;

use crate::harness::{Harness, LEASE, Set, eventually, pause};
use crate::operations::*;

fn each_second() -> Schedule {
    Schedule::every(Duration::from_secs(1))
}

pub(crate) async fn each_time_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let workers = [set.worker().await, set.worker().await, set.worker().await];
    let began = Instant::now();
    set.jobs.schedule::<Work>("tick", each_second(), named("a"), SubmitOptions::new()).await.unwrap();
    eventually("it has run thrice", || set.probe.starts("a") >= 3).await;
    let jobs = set.probe.jobs("a");
    // A job for each time, and each once, though three workers submit what is due.
    assert_eq!(jobs.iter().collect::<BTreeSet<_>>().len(), jobs.len(), "{jobs:?}");
    assert!(jobs.len() as u64 <= began.elapsed().as_secs() + 1, "{} in {:?}", jobs.len(), began.elapsed());
    assert!(set.jobs.unschedule("tick").await.unwrap());
    let most = began.elapsed().as_secs() + 2;
    assert!(!set.jobs.unschedule("tick").await.unwrap());
    // One that has started, or was just submitted, may come yet.
    pause(1_500).await;
    set.settled().await;
    let after = set.probe.starts("a");
    pause(2_000).await;
    assert_eq!(set.probe.starts("a"), after);
    assert!(after as u64 <= most, "{after} instead of {most}");
    for worker in workers {
        worker.stop().await;
    }
}

pub(crate) async fn replaced_and_removed<H: Harness>() {
    let set = Set::<H>::start().await;
    let far = Schedule::every(Duration::from_secs(3_600));
    set.jobs.schedule::<Work>("b", far.clone(), named("old"), SubmitOptions::new()).await.unwrap();
    set.jobs.schedule::<Work>("a", far, named("other"), SubmitOptions::new()).await.unwrap();
    set.jobs.schedule::<Work>("b", each_second(), named("new"), SubmitOptions::new()).await.unwrap();
    let schedules = set.jobs.schedules().await.unwrap();
    let shown: Vec<_> = schedules.iter().map(|schedule| (&*schedule.name, &*schedule.when)).collect();
    assert_eq!(shown, [("a", "@every 3600000ms"), ("b", "@every 1000ms")]);
    let next = schedules[0].next_after(SystemTime::now()).unwrap();
    assert!(next > SystemTime::now() + Duration::from_secs(3_500));
    // One job for each: that of the old schedule is gone.
    assert_eq!(set.jobs.stats("jobs").await.unwrap().open, 2);
    let worker = set.worker().await;
    eventually("the new one runs", || set.probe.starts("new") >= 2).await;
    assert!(set.jobs.unschedule("a").await.unwrap() && set.jobs.unschedule("b").await.unwrap());
    assert_eq!((set.probe.starts("old"), set.probe.starts("other")), (0, 0));
    set.settled().await;
    worker.stop().await;
}

/// What was due while no worker was there does not run when the schedule is no more.
pub(crate) async fn missed_and_removed<H: Harness>() {
    let set = Set::<H>::start().await;
    set.jobs.schedule::<Work>("a", each_second(), named("old"), SubmitOptions::new()).await.unwrap();
    let far = Schedule::every(Duration::from_secs(3_600));
    set.jobs.schedule::<Work>("c", each_second(), named("late"), SubmitOptions::new()).await.unwrap();
    pause(2_500).await;
    assert!(set.jobs.unschedule("a").await.unwrap());
    assert_eq!(set.jobs.stats("jobs").await.unwrap().open, 1);
    // A program that sets its schedules at each start gets what it has missed.
    set.jobs.schedule::<Work>("c", far, named("late"), SubmitOptions::new()).await.unwrap();
    let worker = set.worker().await;
    eventually("it runs late", || set.probe.starts("late") == 1).await;
    assert!(set.jobs.unschedule("c").await.unwrap());
    // One that runs does so to its end.
    let input = GateInput { name: "runs".into() };
    set.jobs.schedule::<Gate>("b", each_second(), input, SubmitOptions::new()).await.unwrap();
    eventually("one runs", || set.probe.starts("runs") >= 1).await;
    assert!(set.jobs.unschedule("b").await.unwrap());
    pause(300).await;
    assert!(set.probe.alive() >= 1);
    set.probe.open();
    set.settled().await;
    assert_eq!(set.probe.starts("old"), 0);
    worker.stop().await;
}

/// A due job that workers have given back, but not run, does not run when the schedule is no more. One that has begun does.
pub(crate) async fn given_back_and_removed<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let input = GateInput { name: "begun".into() };
    set.jobs.schedule::<Gate>("begun", each_second(), input, SubmitOptions::new()).await.unwrap();
    set.jobs.schedule_by_id("typo", each_second(), "test.typo", json!({}), SubmitOptions::new()).await.unwrap();
    let due = async || -> Vec<(String, u32)> {
        let due: Vec<_> = set.jobs.list("jobs", Listed::Due).try_collect().await.unwrap();
        let passes = due.into_iter().filter_map(|(_, stored)| match stored {
            Stored::Open { job, tries } => Some((job.operation, tries.passes)),
            _ => None,
        });
        passes.collect()
    };
    for left in (0..300).rev() {
        if set.probe.starts("begun") > 0 && due().await.iter().any(|(id, passes)| id == "test.typo" && *passes > 0) {
            break;
        }
        assert!(left > 0, "{:?}", due().await);
        pause(100).await;
    }
    worker.stop_now().await;
    assert!(set.jobs.unschedule("typo").await.unwrap() && set.jobs.unschedule("begun").await.unwrap());
    let begun = set.probe.starts("begun");
    let open: Vec<_> = due().await.into_iter().map(|(id, _)| id).collect();
    assert_eq!(open, vec!["test.gate"; begun]);
    assert_eq!(set.jobs.stats("jobs").await.unwrap().open, begun as u64);
    set.probe.open();
    let worker = set.worker().await;
    set.settled().await;
    assert_eq!(set.probe.starts("begun"), 2 * begun);
    worker.stop().await;
}

/// A job of a schedule that was retried, and that no worker has begun, does not run when the schedule is no more.
pub(crate) async fn retried_and_removed<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = SubmitOptions::new().with_timeout(Duration::from_millis(1));
    let every = Schedule::every(Duration::from_secs(5));
    set.jobs.schedule::<Work>("a", every, named("a"), options).await.unwrap();
    let delayed: Vec<_> = set.jobs.list("jobs", Listed::Delayed).try_collect().await.unwrap();
    let [(id, _)] = &delayed[..] else { panic!("{delayed:?}") };
    let job = set.jobs.job_by_id(id.clone());
    // Without a worker, its time passes.
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::Timeout);
    assert!(job.retry().await.unwrap());
    assert!(set.jobs.unschedule("a").await.unwrap());
    assert_eq!(job.status().await.unwrap(), JobStatus::Cancelled);
    set.settled().await;
}

/// Each process of a system sets its schedules when it starts.
pub(crate) async fn set_by_many_at_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let far = || Schedule::every(Duration::from_secs(3_600));
    let replicas = [set.others().await, set.others().await, set.others().await];
    let options = || SubmitOptions::new().with_timeout(Duration::from_secs(60)).with_metadata("ratio", 9.99 * 1.07);
    let all = async |name: &str| {
        let set = replicas.iter().map(|jobs| jobs.schedule::<Work>("a", far(), named(name), options()));
        try_join_all(set).await.unwrap();
        let schedules = set_of(&replicas[0]).await;
        assert_eq!(replicas[0].stats("jobs").await.unwrap().open, 1, "{schedules:?}");
        schedules
    };
    let first = all("old").await;
    pause(50).await;
    // Nothing has changed, and the next time is the same.
    assert_eq!(all("old").await, first);
    assert_ne!(all("new").await, first);
    assert!(set.jobs.unschedule("a").await.unwrap());
    set.settled().await;
}

/// Since when there is each schedule.
async fn set_of(jobs: &Jobs) -> Vec<(String, u64)> {
    let schedules = jobs.schedules().await.unwrap();
    schedules.into_iter().map(|schedule| (schedule.name, schedule.since)).collect()
}

/// A job of a schedule that was cancelled before its time is not submitted again when its ending would be over.
pub(crate) async fn one_time_is_cancelled<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = SubmitOptions::new().with_retention(Duration::from_secs(1));
    // Longer than endings are kept, which is three leases on some engines.
    let (over, time) = (4 * LEASE, 5 * LEASE);
    let started = Instant::now();
    set.jobs.schedule::<Work>("a", Schedule::every(time), named("a"), options).await.unwrap();
    let delayed: Vec<_> = set.jobs.list("jobs", Listed::Delayed).try_collect().await.unwrap();
    let [(id, _)] = &delayed[..] else { panic!("{delayed:?}") };
    assert!(set.jobs.job_by_id(id.clone()).cancel().await.unwrap());
    tokio::time::sleep(over).await;
    let worker = set.worker().await;
    tokio::time::sleep((time + Duration::from_secs(3)).saturating_sub(started.elapsed())).await;
    assert_eq!(set.probe.starts("a"), 0);
    assert!(set.jobs.unschedule("a").await.unwrap());
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn by_cron<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let each_second = Schedule::cron("* * * * * *").unwrap();
    set.jobs.schedule::<Work>("tick", each_second, named("a"), SubmitOptions::new()).await.unwrap();
    eventually("it has run twice", || set.probe.starts("a") >= 2).await;
    assert!(set.jobs.unschedule("tick").await.unwrap());
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn of_others<H: Harness>() {
    let set = Set::<H>::start().await;
    let (ann, bob) = (set.jobs.scoped(Identity::new("ann")), set.jobs.scoped(Identity::new("bob")));
    let far = || Schedule::every(Duration::from_secs(3_600));
    ann.schedule::<Work>("a", far(), named("a"), SubmitOptions::new()).await.unwrap();
    assert_eq!(bob.schedules().await.unwrap().len(), 0);
    assert!(!bob.unschedule("a").await.unwrap());
    let error = bob.schedule::<Work>("a", far(), named("a"), SubmitOptions::new()).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::AccessDenied);
    assert!(ann.unschedule("a").await.unwrap());
    set.settled().await;
}

pub(crate) async fn what_cannot_be_scheduled<H: Harness>() {
    let set = Set::<H>::start().await;
    let never = Schedule::cron("0 0 30 2 *").unwrap();
    for (schedule, options) in [
        (never, SubmitOptions::new()),
        (each_second(), SubmitOptions::new().with_key("k")),
        (each_second(), SubmitOptions::new().with_delay(Duration::from_secs(1))),
        (each_second(), SubmitOptions::new().with_deadline(SystemTime::now())),
    ] {
        let error = set.jobs.schedule::<Work>("a", schedule, named("a"), options).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError, "{error}");
    }
    assert!(set.jobs.schedules().await.unwrap().is_empty());
    set.settled().await;
}
