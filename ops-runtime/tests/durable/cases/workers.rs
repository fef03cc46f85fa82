//! Workers: their deaths, stops and versions.

use std::time::{Duration, Instant};

use ops_runtime::durable::engine::Engine;
use ops_runtime::durable::record::{JobRecord, Stored};
use ops_runtime::durable::{AnyJob, JobStatus, SubmitOptions, Worker};
use ops_runtime::{ErrorCode, Registry};
use serde_json::json;
use serde_json::value::to_raw_value;

use crate::harness::{Harness, LEASE, Set, attempts, eventually, is_running, pause, reaches};
use crate::operations::*;

pub(crate) async fn a_job_survives_its_worker<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let job = set.jobs.submit::<Gate>(GateInput { name: "a".into() }, attempts(2)).await.unwrap();
    is_running(&job).await;
    eventually("it has started", || set.probe.starts("a") == 1).await;
    drop(first);
    eventually("its handler is dropped", || set.probe.alive() == 0).await;
    let second = set.worker().await;
    set.probe.open();
    assert_eq!(job.result().await.unwrap().data, 2);
    assert_eq!(set.probe.starts("a"), 2);
    set.settled().await;
    second.stop().await;
}

/// Who asks for one attempt gets one, though nobody knows how far it came.
pub(crate) async fn one_attempt_is_not_run_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let job = set.jobs.submit::<Hang>(HangInput { name: "a".into() }, attempts(1)).await.unwrap();
    is_running(&job).await;
    eventually("it has started", || set.probe.starts("a") == 1).await;
    drop(first);
    let second = set.worker().await;
    let error = job.result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Aborted);
    let letter = job.dead_letter().await.unwrap().unwrap();
    assert_eq!((letter.attempts, letter.history.len()), (1, 1));
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    second.stop().await;
}

/// A job that kills its workers ends.
pub(crate) async fn killed_again_and_again<H: Harness>() {
    let set = Set::<H>::start().await;
    let job = set.jobs.submit::<Hang>(HangInput { name: "a".into() }, attempts(3)).await.unwrap();
    for death in 1..=3 {
        let worker = set.worker().await;
        eventually("it has started", || set.probe.starts("a") == death).await;
        drop(worker);
    }
    let last = set.worker().await;
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::Aborted);
    assert_eq!(job.dead_letter().await.unwrap().unwrap().history.len(), 3);
    assert_eq!(set.probe.starts("a"), 3);
    set.settled().await;
    last.stop().await;
}

/// Workers die all the time, and submitters repeat what they submit: each job has one result.
pub(crate) async fn they_come_and_go<H: Harness>() {
    const JOBS: usize = 100;
    let set = Set::<H>::start().await;
    let submitters = [set.others().await, set.others().await];
    let submits = (0..2 * JOBS).map(|n| {
        let jobs = submitters[n % 2].clone();
        async move {
            let name = format!("job-{}", n / 2);
            let input = WorkInput { millis: Some(30), ..failing(&name, u32::try_from(n / 2 % 2).unwrap()) };
            pause(n as u64 * 10).await;
            let job = jobs.submit::<Work>(input, attempts(50).with_key(&name)).await.unwrap();
            (job.is_new(), job.result().await.unwrap().data)
        }
    });
    let results = tokio::spawn(futures_util::future::join_all(submits));
    let stays = Worker::new(set.others().await, set.registry()).with_max_running(1).start();
    while !results.is_finished() {
        let dies = Worker::new(set.others().await, set.registry()).with_max_running(4).start();
        pause(250).await;
        drop(dies);
    }
    let results = results.await.unwrap();
    assert_eq!(results.iter().filter(|(is_new, _)| *is_new).count(), JOBS);
    for pair in results.chunks(2) {
        assert_eq!(pair[0].1, pair[1].1);
    }
    set.settled().await;
    let stats = set.jobs.stats("jobs").await.unwrap();
    assert_eq!((stats.open, stats.dead), (0, 0));
    stays.stop().await;
}

pub(crate) async fn a_drain_finishes_jobs<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let running = set.jobs.submit::<Gate>(GateInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("it has started", || set.probe.starts("a") == 1).await;
    let stopped = tokio::spawn(worker.stop());
    pause(1_500).await;
    let late = set.jobs.submit::<Work>(named("late"), attempts(1)).await.unwrap();
    pause(300).await;
    assert_eq!((stopped.is_finished(), set.probe.starts("late")), (false, 0));
    set.probe.open();
    stopped.await.unwrap();
    assert_eq!(running.status().await.unwrap(), JobStatus::Done);
    assert_eq!(late.status().await.unwrap(), JobStatus::Queued);
    let worker = set.worker().await;
    assert_eq!(late.result().await.unwrap().data, 1);
    set.settled().await;
    worker.stop().await;
}

/// A process that ends after it drained takes no job with it: those that were sent to it and that it has not begun start at once
/// elsewhere, as their first attempt, and what became of the others is stored.
pub(crate) async fn a_process_ends_after_its_drain<H: Harness>() {
    const JOBS: usize = 400;
    let set = Set::<H>::start().await;
    let submits = (0..JOBS).map(|_| {
        let input = WorkInput { millis: Some(5), ..named("a") };
        set.jobs.submit::<Work>(input, attempts(1))
    });
    let jobs = futures_util::future::try_join_all(submits).await.unwrap();
    for process in 1..=3 {
        tokio::task::block_in_place(|| {
            let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            runtime.block_on(async {
                let (worker, before) = (set.worker().await, set.probe.starts("a"));
                eventually("it has begun", || set.probe.starts("a") > before || before == JOBS).await;
                if process == 3 { worker.stop_now().await } else { worker.stop().await }
            });
            runtime.shutdown_background();
        });
    }
    let worker = set.worker().await;
    for job in &jobs {
        assert_eq!(job.result().await.unwrap().data, 1);
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_stop_gives_them_back<H: Harness>() {
    let set = Set::<H>::start().await;
    let first = set.worker().await;
    let job = set.jobs.submit::<Gate>(GateInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("it has started", || set.probe.starts("a") == 1).await;
    first.stop_now().await;
    assert_eq!(set.probe.alive(), 0);
    set.probe.open();
    let second = set.worker().await;
    // As the same attempt, its only one.
    assert_eq!(job.result().await.unwrap().data, 1);
    assert_eq!(set.probe.starts("a"), 2);
    set.settled().await;
    second.stop().await;
}

/// What ends within the limit is finished, and the rest is given back.
pub(crate) async fn a_stop_has_a_limit<H: Harness>() {
    let set = Set::<H>::start().await;
    let (first, limit) = (set.worker().await, Duration::from_secs(6));
    let long = set.jobs.submit::<Gate>(GateInput { name: "long".into() }, attempts(1)).await.unwrap();
    let input = WorkInput { millis: Some(500), ..named("short") };
    let short = set.jobs.submit::<Work>(input, attempts(1)).await.unwrap();
    eventually("they have started", || set.probe.starts("long") == 1 && set.probe.starts("short") == 1).await;
    let start = Instant::now();
    first.stop_within(limit).await;
    assert!(start.elapsed() >= limit, "{:?}", start.elapsed());
    assert_eq!((short.status().await.unwrap(), set.probe.alive()), (JobStatus::Done, 0));
    set.probe.open();
    let second = set.worker().await;
    // As the same attempt, its only one.
    assert_eq!(long.result().await.unwrap().data, 1);
    assert_eq!((set.probe.starts("long"), set.probe.starts("short")), (2, 1));
    set.settled().await;
    // A worker whose jobs have ended does not wait for the limit.
    let start = Instant::now();
    second.stop_within(Duration::MAX).await;
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
}

pub(crate) async fn older_ones_leave_what_they_do_not_know<H: Harness>() {
    let set = Set::<H>::start().await;
    let old = Registry::builder().build();
    old.register(Add).unwrap();
    let older = [set.worker_of(old.clone()).await, set.worker_of(old).await];
    let known = set.jobs.submit::<Add>(AddInput { a: 1, b: 1 }, attempts(1)).await.unwrap();
    let unknown = set.jobs.submit::<Work>(named("a"), attempts(1)).await.unwrap();
    assert_eq!(known.result().await.unwrap().data, 2);
    pause(1_200).await;
    // An older one may have it for a moment. One that has ended is never queued again.
    reaches(&unknown, "queued", |status| *status == JobStatus::Queued).await;
    let newer = set.worker().await;
    // However often it was given back, this is its first attempt.
    assert_eq!(unknown.result().await.unwrap().data, 1);
    set.settled().await;
    for worker in older {
        worker.stop().await;
    }
    newer.stop().await;
}

/// A worker that does not know the operation does not know how many attempts it has: here five, two more than the default.
pub(crate) async fn older_ones_end_nothing_that_they_do_not_know<H: Harness>() {
    let set = Set::<H>::start().await;
    let job = set.jobs.submit::<Stubborn>(StubbornInput { fails: 4 }, SubmitOptions::new()).await.unwrap();
    let engine = set.harness.engine().await;
    let delivery = engine.pull("jobs", 1, Duration::from_secs(60)).await.unwrap().pop().unwrap();
    let mut tries = delivery.tries.clone();
    tries.attempts = 3;
    engine.again(&delivery, &tries, Duration::ZERO).await.unwrap();
    let older = set.worker_of(Registry::builder().build()).await;
    pause(1_200).await;
    reaches(&job, "queued", |status| *status == JobStatus::Queued).await;
    older.stop().await;
    let newer = set.worker().await;
    assert_eq!(job.result().await.unwrap().data, 5);
    set.settled().await;
    newer.stop().await;
}

/// A worker leaves records of a later format alone.
pub(crate) async fn later_formats_are_left<H: Harness>() {
    let set = Set::<H>::start().await;
    let engine = set.harness.engine().await;
    let id = "jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap();
    let mut job = JobRecord::new(id, "test.work", to_raw_value(&json!({ "name": "a" })).unwrap());
    job.format += 1;
    job.deadline = Some(engine.now());
    assert!(engine.submit(&job).await.unwrap().is_none());
    let worker = set.worker().await;
    // Nor does who waits for it end it at its deadline.
    let waited = set.jobs.job_by_id(job.id.clone());
    assert!(tokio::time::timeout(Duration::from_millis(2_500), waited.result()).await.is_err());
    assert_eq!(set.probe.starts("a"), 0);
    let Some(Stored::Open { tries, .. }) = engine.read(&job.id).await.unwrap() else { panic!("it is open") };
    assert_eq!(tries.attempts, 0);
    assert!(set.jobs.job_by_id(job.id).cancel().await.unwrap());
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_flood_holds_up_nobody_else<H: Harness>() {
    const FLOOD: usize = 300;
    let set = Set::<H>::start().await;
    // Both lanes have leaders before it counts which of them is first.
    set.warm_worker().await.stop().await;
    let slow = |name: &str| WorkInput { millis: Some(20), ..named(name) };
    let of = |tenant: &str| SubmitOptions::new().with_tenant(tenant);
    let mut flood = Vec::new();
    for _ in 0..FLOOD {
        flood.push(set.jobs.submit::<Work>(slow("flood"), of("loud")).await.unwrap());
    }
    // Tenants share lanes; this one is in another.
    let quiet: Vec<String> = (0..32).map(|n| format!("quiet-{n}")).collect();
    let mut job = None;
    for tenant in &quiet {
        let submitted = set.jobs.submit::<Work>(slow("quiet"), of(tenant)).await.unwrap();
        if submitted.id().lane() != flood[0].id().lane() {
            job = Some(submitted);
            break;
        }
        submitted.cancel().await.unwrap();
    }
    let job = job.expect("two lanes");
    let worker = Worker::new(set.others().await, set.registry()).with_max_running(2).start();
    assert_eq!(job.result().await.unwrap().data, 1);
    let begun = set.probe.times("quiet")[0];
    let before = set.probe.times("flood").iter().filter(|at| **at < begun).count();
    assert!(before < FLOOD / 5, "{before} of the flood came first");
    for job in flood {
        assert_eq!(job.result().await.unwrap().data, 1);
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn queues_have_workers_of_their_own<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = Worker::new(set.others().await, set.registry()).with_queues(["jobs"]).start();
    let slow = set.jobs.submit::<Render>(RenderInput { name: "a".into() }, SubmitOptions::new()).await.unwrap();
    assert_eq!(slow.id().queue(), "slow");
    let quick = set.jobs.submit::<Work>(named("b"), SubmitOptions::new()).await.unwrap();
    assert_eq!(quick.result().await.unwrap().data, 1);
    pause(300).await;
    assert_eq!(slow.status().await.unwrap(), JobStatus::Queued);
    let other = Worker::new(set.others().await, set.registry()).with_queues(["slow"]).start();
    assert_eq!(slow.result().await.unwrap().data, 1);
    set.settled().await;
    worker.stop().await;
    other.stop().await;
}

/// A handler that takes longer than the lease is not run twice, with other workers at hand.
pub(crate) async fn a_slow_job_keeps_its_lease<H: Harness>() {
    let set = Set::<H>::start().await;
    let workers = [set.worker().await, set.worker().await];
    let start = Instant::now();
    let input = WorkInput { millis: Some(u64::try_from((2 * LEASE).as_millis()).unwrap()), ..named("a") };
    let job: AnyJob = set.jobs.submit::<Work>(input, attempts(3)).await.unwrap().into_any();
    assert_eq!(job.result().await.unwrap().data, 1);
    assert!(start.elapsed() >= 2 * LEASE);
    pause(u64::try_from(Duration::as_millis(&LEASE)).unwrap()).await;
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    for worker in workers {
        worker.stop().await;
    }
}

/// Nor is one that holds its thread meanwhile and has the runtime use another one: its own task can do nothing for the lease.
pub(crate) async fn a_blocking_job_keeps_its_lease<H: Harness>() {
    let set = Set::<H>::start().await;
    let workers = [set.worker().await, set.worker().await];
    let start = Instant::now();
    let input = BlockInput { name: "a".into(), millis: u64::try_from((2 * LEASE).as_millis()).unwrap() };
    let job = set.jobs.submit::<Block>(input, attempts(3)).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 1);
    assert!(start.elapsed() >= 2 * LEASE);
    pause(u64::try_from(Duration::as_millis(&LEASE)).unwrap()).await;
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    for worker in workers {
        worker.stop().await;
    }
}

/// Nor is one that blocks a thread for blocking work, even if the runtime of its worker has one thread itself.
pub(crate) async fn work_on_blocking_threads_keeps_its_lease<H: Harness>() {
    let set = Set::<H>::start().await;
    let input = ComputeInput { name: "a".into(), millis: u64::try_from((2 * LEASE).as_millis()).unwrap() };
    let job = set.jobs.submit::<Compute>(input, attempts(3)).await.unwrap();
    tokio::task::block_in_place(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let first = set.worker().await;
            eventually("it has started", || set.probe.starts("a") == 1).await;
            let second = set.worker().await;
            assert_eq!(job.result().await.unwrap().data, 1);
            first.stop().await;
            second.stop().await;
        });
        runtime.shutdown_background();
    });
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
}
