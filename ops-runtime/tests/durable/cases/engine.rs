//! The promises of an engine, without what stands above it.

use std::time::{Duration, Instant};

use ops_runtime::CallError;
use ops_runtime::durable::JobId;
use ops_runtime::durable::engine::{Delivery, Engine, Listed, QueueStats};
use ops_runtime::durable::record::{DeadLetter, Ended, JobRecord, Outcome, Stored, Tries};
use serde_json::value::to_raw_value;

use crate::harness::{Harness, LEASE, pause};

const SOON: Duration = Duration::from_secs(5);

fn job(number: u8) -> JobRecord {
    let id: JobId = format!("jobs.0.{number:032x}").parse().unwrap();
    JobRecord::new(id, "test.any", to_raw_value(&number).unwrap())
}

fn done(engine: &impl Engine, job: &JobRecord, data: u8) -> Ended {
    Ended::new(job, engine.now(), 1, Outcome::Done(to_raw_value(&data).unwrap()))
}

fn dead(engine: &impl Engine, job: &JobRecord) -> Ended {
    let letter = DeadLetter::new(job.clone(), engine.now(), Tries::default(), CallError::execution("no"));
    Ended::new(job, engine.now(), 1, Outcome::Dead(Box::new(letter)))
}

/// The data of a job that is done.
async fn data(engine: &impl Engine, job: &JobRecord) -> Option<u8> {
    match engine.read(&job.id).await.unwrap()? {
        Stored::Ended(ended) => match ended.outcome {
            Outcome::Done(data) => Some(serde_json::from_str(data.get()).unwrap()),
            _ => None,
        },
        _ => None,
    }
}

async fn pull_one(engine: &impl Engine) -> Delivery {
    let start = Instant::now();
    loop {
        if let Some(delivery) = engine.pull("jobs", 1, SOON).await.unwrap().pop() {
            return delivery;
        }
        assert!(start.elapsed() < 6 * SOON, "nothing was delivered");
    }
}

pub(crate) async fn an_id_is_submitted_once<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    let job = job(1);
    assert!(engine.read(&job.id).await.unwrap().is_none());
    assert!(engine.submit(&job).await.unwrap().is_none());
    let mut changed = job.clone();
    changed.operation = "test.other".to_owned();
    let Some(Stored::Open { job: known, .. }) = other.submit(&changed).await.unwrap() else { panic!("it is known") };
    assert_eq!((&known.id, &*known.operation, known.input.get()), (&job.id, "test.any", "1"));
    let delivery = pull_one(&other).await;
    assert_eq!((delivery.deliveries, delivery.tries.clone()), (1, Tries::default()));
    assert_eq!(delivery.job.operation, "test.any");
    assert!(other.is_running(&job.id).await.unwrap());
    assert!(other.submit(&changed).await.unwrap().is_some());
    assert!(other.end(&delivery, &done(&other, &job, 7)).await.unwrap());
    let Some(Stored::Ended(ended)) = engine.submit(&changed).await.unwrap() else { panic!("it has ended") };
    assert_eq!(ended.operation, "test.any");
    assert_eq!(data(&engine, &job).await, Some(7));
    assert!(!engine.is_running(&job.id).await.unwrap());
    assert!(engine.pull("jobs", 1, Duration::from_millis(300)).await.unwrap().is_empty());
}

pub(crate) async fn one_ending_wins<H: Harness>() {
    let harness = H::start().await;
    let engine = harness.engine().await;
    let (closed, ended) = (job(1), job(2));
    for job in [&closed, &ended] {
        engine.submit(job).await.unwrap();
    }
    let mut deliveries = [pull_one(&engine).await, pull_one(&engine).await];
    deliveries.sort_by(|a, b| a.job.id.cmp(&b.job.id));
    let cancelled = |job| Ended::new(job, engine.now(), 0, Outcome::Cancelled);
    assert!(engine.close(&closed.id, &cancelled(&closed)).await.unwrap());
    assert!(!engine.end(&deliveries[0], &done(&engine, &closed, 1)).await.unwrap());
    assert!(engine.end(&deliveries[1], &done(&engine, &ended, 2)).await.unwrap());
    assert!(!engine.close(&ended.id, &cancelled(&ended)).await.unwrap());
    assert_eq!((data(&engine, &closed).await, data(&engine, &ended).await), (None, Some(2)));
    assert!(!engine.close(&job(3).id, &cancelled(&job(3))).await.unwrap());
    // Who gives back a job that has ended changes nothing.
    engine.again(&deliveries[0], &Tries::default(), Duration::ZERO).await.unwrap();
    assert!(engine.pull("jobs", 2, LEASE + Duration::from_millis(500)).await.unwrap().is_empty());
    assert_eq!(engine.stats("jobs").await.unwrap().open, 0);
}

pub(crate) async fn a_lease_ends<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    let job = job(1);
    engine.submit(&job).await.unwrap();
    let first = pull_one(&engine).await;
    // Longer than a lease, as long as it is extended.
    for _ in 0..6 {
        pause(u64::try_from(LEASE.as_millis()).unwrap() / 3).await;
        assert!(engine.extend(&first).await.unwrap());
    }
    assert!(other.pull("jobs", 1, Duration::from_millis(100)).await.unwrap().is_empty());
    let second = pull_one(&other).await;
    assert_eq!((second.deliveries, &second.job.id), (2, &job.id));
    // The first ending counts, whoever has the lease.
    assert!(engine.end(&first, &done(&engine, &job, 1)).await.unwrap());
    assert!(!other.end(&second, &done(&other, &job, 2)).await.unwrap());
    assert_eq!(data(&other, &job).await, Some(1));
    assert!(other.pull("jobs", 1, LEASE + Duration::from_millis(500)).await.unwrap().is_empty());
    assert_eq!(engine.stats("jobs").await.unwrap().open, 0);
}

/// A result that could not be written before the lease was over counts, unless another came first.
pub(crate) async fn an_ending_after_the_lease<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    let lost = || pause(u64::try_from(LEASE.as_millis()).unwrap() + 500);
    // Nobody else has it, this process has it once more, and another does.
    for (number, again) in [(1, None), (2, Some(&engine)), (3, Some(&other))] {
        let job = job(number);
        engine.submit(&job).await.unwrap();
        let first = pull_one(&engine).await;
        lost().await;
        // Who writes endings keeps trying to have the lease meanwhile.
        let _ = engine.extend(&first).await.unwrap();
        let second = match again {
            Some(again) => Some(pull_one(again).await),
            None => None,
        };
        assert!(engine.end(&first, &done(&engine, &job, number)).await.unwrap(), "{number}");
        if let Some((second, by)) = second.zip(again) {
            assert!(!by.extend(&second).await.unwrap());
            assert!(!by.end(&second, &done(by, &job, 9)).await.unwrap());
        }
        assert_eq!(data(&other, &job).await, Some(number));
        assert!(!engine.end(&first, &done(&engine, &job, 9)).await.unwrap());
    }
    // What is submitted again is another job, whether the lease is over or not.
    for (number, extends, is_over) in [(4, true, true), (5, false, true), (6, true, false), (7, false, false)] {
        let mut next = job(number);
        engine.submit(&next).await.unwrap();
        let first = pull_one(&engine).await;
        if is_over {
            lost().await;
        }
        if extends {
            let _ = engine.extend(&first).await.unwrap();
        }
        assert!(other.close(&next.id, &dead(&engine, &next)).await.unwrap());
        if extends {
            assert!(!engine.end(&first, &done(&engine, &next, 9)).await.unwrap());
        }
        next.submitted = engine.now();
        assert!(other.retry(&next).await.unwrap());
        if extends {
            assert!(!engine.extend(&first).await.unwrap(), "{number}");
        }
        assert!(!engine.end(&first, &done(&engine, &next, 9)).await.unwrap(), "{extends}");
        let second = pull_one(&other).await;
        assert!(!engine.end(&first, &done(&engine, &next, 9)).await.unwrap(), "{extends}");
        assert!(other.end(&second, &done(&other, &next, number)).await.unwrap());
        assert_eq!(data(&engine, &next).await, Some(number));
    }
    assert!(other.pull("jobs", 1, LEASE + Duration::from_millis(500)).await.unwrap().is_empty());
    assert_eq!(engine.stats("jobs").await.unwrap().open, 0);
}

/// Ends the run of a job, and begins its next one: submitted again, or retried.
async fn next_run(engine: &impl Engine, first: &JobRecord, discards: bool) -> JobRecord {
    assert!(engine.close(&first.id, &dead(engine, first)).await.unwrap());
    let mut next = first.clone();
    if discards {
        assert!(engine.discard(&first.id).await.unwrap());
        next.nonce = "next".to_owned();
        assert!(engine.submit(&next).await.unwrap().is_none());
    } else {
        (next.submitted, next.retried) = (engine.now(), true);
        assert!(engine.retry(&next).await.unwrap());
    }
    next
}

/// A worker that has not heard of the end of its job does not keep the next run of it.
pub(crate) async fn a_lease_of_an_earlier_run<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    for (number, discards) in [(1, false), (2, true)] {
        let first = job(number);
        engine.submit(&first).await.unwrap();
        let delivery = pull_one(&engine).await;
        assert!(engine.extend(&delivery).await.unwrap());
        let next = next_run(&other, &first, discards).await;
        assert!(!engine.extend(&delivery).await.unwrap(), "{number}");
        let second = pull_one(&other).await;
        assert!(other.extend(&second).await.unwrap());
        assert!(other.end(&second, &done(&other, &next, number)).await.unwrap());
        assert_eq!(data(&engine, &next).await, Some(number));
    }
    assert!(other.pull("jobs", 1, LEASE + Duration::from_millis(500)).await.unwrap().is_empty());
    assert_eq!(engine.stats("jobs").await.unwrap().open, 0);
}

/// Workers submit the jobs of a schedule again and again, with the same time and without a nonce.
pub(crate) async fn submitted_again_while_it_is_discarded<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    for number in 0..40 {
        let job = job(number);
        let cancelled = Ended::new(&job, engine.now(), 0, Outcome::Cancelled);
        assert!(engine.submit(&job).await.unwrap().is_none());
        assert!(engine.close(&job.id, &cancelled).await.unwrap());
        let submitted = async {
            while other.submit(&job).await.unwrap().is_some() {
                tokio::task::yield_now().await;
            }
        };
        let (discarded, ()) = tokio::join!(engine.discard(&job.id), submitted);
        assert!(discarded.unwrap(), "{number}");
        assert!(engine.close(&job.id, &cancelled).await.unwrap());
    }
    assert_eq!(engine.stats("jobs").await.unwrap(), QueueStats::default());
}

/// Who closes a job has read it before. One that was retried or submitted again since is another run, and goes on.
pub(crate) async fn a_late_close<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    for (number, discards) in [(1, false), (2, true)] {
        let first = job(number);
        engine.submit(&first).await.unwrap();
        let dead = dead(&engine, &first);
        let next = next_run(&engine, &first, discards).await;
        assert!(!other.close(&first.id, &dead).await.unwrap(), "{number}");
        let Some(Stored::Open { job: open, .. }) = engine.read(&first.id).await.unwrap() else { panic!("it is open") };
        assert_eq!((open.submitted, &open.nonce), (next.submitted, &next.nonce));
        // Its own ending ends it.
        assert!(other.close(&first.id, &done(&other, &next, number)).await.unwrap());
        assert_eq!(data(&engine, &next).await, Some(number));
    }
    assert_eq!(engine.stats("jobs").await.unwrap().open, 0);
}

/// A job that is given back has its turn, however many others are submitted.
pub(crate) async fn fresh_jobs_hold_up_no_other<H: Harness>() {
    let harness = H::start().await;
    let engine = harness.engine().await;
    let job = |number| {
        let mut job = job(number);
        job.submitted = engine.now();
        job
    };
    engine.submit(&job(0)).await.unwrap();
    let first = pull_one(&engine).await;
    engine.again(&first, &Tries::default(), Duration::from_millis(50)).await.unwrap();
    engine.submit(&job(1)).await.unwrap();
    for number in 2..200 {
        engine.submit(&job(number)).await.unwrap();
        let delivery = pull_one(&engine).await;
        if delivery.job.id == first.job.id {
            return;
        }
        assert!(engine.end(&delivery, &done(&engine, &delivery.job, 1)).await.unwrap());
        pause(10).await;
    }
    panic!("the first job was never delivered again");
}

pub(crate) async fn what_is_given_back<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    let job = job(1);
    engine.submit(&job).await.unwrap();
    let first = pull_one(&engine).await;
    let mut tries = Tries::default();
    (tries.attempts, tries.passes, tries.next) = (1, 2, Some(7));
    let start = Instant::now();
    engine.again(&first, &tries, Duration::from_millis(700)).await.unwrap();
    assert!(!other.is_running(&job.id).await.unwrap());
    let Some(Stored::Open { tries: kept, .. }) = other.read(&job.id).await.unwrap() else { panic!("it is open") };
    assert_eq!(kept, tries);
    let second = pull_one(&other).await;
    assert!(start.elapsed() >= Duration::from_millis(680), "{:?}", start.elapsed());
    assert_eq!((second.deliveries, second.tries.clone()), (2, tries));
    assert!(other.end(&second, &done(&other, &job, 1)).await.unwrap());
}

pub(crate) async fn never_too_many<H: Harness>() {
    let harness = H::start().await;
    let engine = harness.engine().await;
    for number in 0..10 {
        engine.submit(&job(number)).await.unwrap();
    }
    let mut pulled = 0;
    while pulled < 10 {
        let deliveries = engine.pull("jobs", 3, SOON).await.unwrap();
        assert!(deliveries.len() <= 3, "{}", deliveries.len());
        pulled += deliveries.len();
        for delivery in deliveries {
            assert!(engine.end(&delivery, &done(&engine, &delivery.job, 1)).await.unwrap());
        }
    }
    let start = Instant::now();
    assert!(engine.pull("jobs", 3, Duration::from_millis(300)).await.unwrap().is_empty());
    assert!(start.elapsed() < 6 * SOON);
    assert!(engine.pull("other", 3, Duration::from_millis(300)).await.unwrap().is_empty());
}

pub(crate) async fn steps_are_kept_once<H: Harness>() {
    let harness = H::start().await;
    let (engine, other) = (harness.engine().await, harness.engine().await);
    let (job, another) = (job(1), job(2));
    // Any text is a name.
    for name in ["a", "", "a.b *>", "ä\n"] {
        assert_eq!(engine.step(&job.id, name).await.unwrap(), None);
        assert_eq!(engine.keep_step(&job.id, name, "1", SOON * 10).await.unwrap(), "1");
        assert_eq!(other.keep_step(&job.id, name, "2", SOON * 10).await.unwrap(), "1");
        assert_eq!(other.step(&job.id, name).await.unwrap().as_deref(), Some("1"));
        assert_eq!(other.step(&another.id, name).await.unwrap(), None);
    }
    // What is kept of steps is no job.
    assert!(engine.read(&job.id).await.unwrap().is_none());
    assert!(engine.submit(&job).await.unwrap().is_none());
    assert_eq!(engine.stats("jobs").await.unwrap().open, 1);
}

/// What an attempt of an earlier worker gave too late does not shorten the time of what is kept.
pub(crate) async fn steps_are_kept_for_their_time<H: Harness>() {
    let harness = H::start().await;
    let engine = harness.engine().await;
    let (id, start) = (job(1).id, Instant::now());
    let keep = async |value: &'static str, secs: u64| {
        engine.keep_step(&id, "a", value, Duration::from_secs(secs)).await.unwrap()
    };
    assert_eq!(keep("1", 3).await, "1");
    pause(2_000).await;
    // If the machine is slow, this is the first that is kept.
    let second = keep("2", 5).await;
    while engine.step(&id, "a").await.unwrap().is_some() {
        pause(50).await;
    }
    assert_eq!(keep("3", 60).await, "3", "{second}");
    tokio::time::sleep((start + Duration::from_secs(8)).saturating_duration_since(Instant::now())).await;
    assert_eq!(engine.step(&id, "a").await.unwrap().as_deref(), Some("3"));
}

/// The numbers of the jobs of a list, read in pages of so many.
async fn listed(engine: &impl Engine, what: Listed, most: usize) -> Vec<u8> {
    let (mut numbers, mut after) = (Vec::new(), None);
    loop {
        let page = engine.list("jobs", what, after.as_deref(), most).await.unwrap();
        assert!(page.jobs.len() <= most, "{page:?}");
        for (id, stored) in page.jobs {
            assert_eq!(matches!(stored, Stored::Ended(_)), matches!(what, Listed::Ended | Listed::Dead));
            numbers.push(u8::from_str_radix(id.token(), 16).unwrap());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    numbers.sort_unstable();
    numbers
}

pub(crate) async fn what_is_listed<H: Harness>() {
    let harness = H::start().await;
    let engine = harness.engine().await;
    assert_eq!(engine.queues().await.unwrap(), [""; 0]);
    for what in [Listed::Due, Listed::Delayed, Listed::Ended, Listed::Dead] {
        assert_eq!(listed(&engine, what, 3).await, [0; 0]);
    }
    for number in 1..=6 {
        let mut job = job(number);
        job.not_before = (number == 6).then(|| engine.now() + 60_000);
        engine.submit(&job).await.unwrap();
    }
    // One is done, one is a dead letter, one waits for its next attempt, one runs.
    let mut tries = Tries::default();
    tries.attempts = 1;
    let (mut expected, mut letters) = (vec![2, 3, 4, 5], Vec::new());
    for verdict in ["done", "dead", "again", "runs"] {
        let delivery = pull_one(&engine).await;
        let number: u8 = serde_json::from_str(delivery.job.input.get()).unwrap();
        match verdict {
            "done" => {
                assert_eq!(number, 1);
                assert!(engine.end(&delivery, &done(&engine, &delivery.job, 0)).await.unwrap());
            }
            "dead" => {
                let letter =
                    DeadLetter::new(delivery.job.clone(), engine.now(), tries.clone(), CallError::execution("x"));
                let end = Ended::new(&delivery.job, engine.now(), 1, Outcome::Dead(Box::new(letter)));
                assert!(engine.end(&delivery, &end).await.unwrap());
                expected.retain(|listed| *listed != number);
                letters.push(number);
            }
            "again" => {
                engine.again(&delivery, &tries, Duration::from_secs(60)).await.unwrap();
                let page = engine.list("jobs", Listed::Due, None, 9).await.unwrap();
                let found = page.jobs.into_iter().find(|(id, _)| *id == delivery.job.id);
                let Some((_, Stored::Open { tries: kept, .. })) = found else { panic!("it is open") };
                assert_eq!(kept, tries);
            }
            _ => {}
        }
    }
    engine.keep_step(&job(2).id, "step", "1", SOON).await.unwrap();
    let other = harness.engine().await;
    for engine in [&engine, &other] {
        for most in [1, 2, 100] {
            assert_eq!(listed(engine, Listed::Due, most).await, expected);
            assert_eq!(listed(engine, Listed::Delayed, most).await, [6]);
            assert_eq!(listed(engine, Listed::Ended, most).await, [1]);
            assert_eq!(listed(engine, Listed::Dead, most).await, letters);
        }
        assert_eq!(engine.queues().await.unwrap(), ["jobs"]);
        let stats = engine.stats("jobs").await.unwrap();
        assert_eq!((stats.open, stats.dead), (4, 1));
        assert!(stats.oldest.is_some_and(|oldest| oldest > Duration::ZERO), "{stats:?}");
    }
    assert_eq!(engine.stats("other").await.unwrap(), QueueStats::default());
    assert!(engine.list("other", Listed::Due, None, 9).await.unwrap().jobs.is_empty());
}

/// Who empties the list of dead letters page by page finds each of them.
pub(crate) async fn listed_while_they_are_discarded<H: Harness>() {
    let harness = H::start().await;
    let engine = harness.engine().await;
    for number in 1..=5 {
        let job = job(number);
        engine.submit(&job).await.unwrap();
        assert!(engine.close(&job.id, &dead(&engine, &job)).await.unwrap());
    }
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = engine.list("jobs", Listed::Dead, after.as_deref(), 2).await.unwrap();
        for (id, _) in page.jobs {
            assert!(engine.discard(&id).await.unwrap());
            found.push(u8::from_str_radix(id.token(), 16).unwrap());
        }
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, [1, 2, 3, 4, 5]);
    assert_eq!(engine.stats("jobs").await.unwrap(), QueueStats::default());
}
