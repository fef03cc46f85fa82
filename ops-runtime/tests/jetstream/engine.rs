//! What the engine promises, on one server and on three.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;

use ops_runtime::durable::JobId;
use ops_runtime::durable::engine::{Delivery, Engine, Listed};
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::record::{DeadLetter, Ended, FailedAttempt, JobRecord, Outcome, Stored, Tries};
use ops_runtime::{CallError, ErrorCode};
use serde_json::value::RawValue;

use crate::servers::Servers;

/// How long something may take that ends as soon as it can; a cluster that has just begun takes its time.
const LONG: Duration = Duration::from_secs(60);

pub(crate) fn raw(json: &str) -> Box<RawValue> {
    RawValue::from_string(json.to_owned()).unwrap()
}

/// An id in a lane, of a number.
pub(crate) fn id(lane: u16, number: u32) -> JobId {
    format!("jobs.{lane}.{number:032x}").parse().unwrap()
}

pub(crate) fn job(lane: u16, number: u32) -> JobRecord {
    JobRecord::new(id(lane, number), "demo.echo", raw(&number.to_string()))
}

pub(crate) fn done(engine: &JetStream, job: &JobRecord, json: &str) -> Ended {
    Ended::new(job, engine.now(), 1, Outcome::Done(raw(json)))
}

pub(crate) fn config() -> JetStreamConfig {
    JetStreamConfig::new().with_lease(Duration::from_secs(2))
}

pub(crate) async fn pull_one(engine: &JetStream) -> Delivery {
    let mut deliveries = engine.pull("jobs", 1, LONG).await.unwrap();
    assert_eq!(deliveries.len(), 1);
    deliveries.remove(0)
}

pub(crate) async fn nothing(engine: &JetStream, wait: Duration) {
    assert!(engine.pull("jobs", 8, wait).await.unwrap().is_empty());
}

/// Waits until something is so; the machine may be slow.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let start = Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < LONG, "after {LONG:?} still not: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

pub(crate) fn result(stored: Option<Stored>) -> String {
    match stored {
        Some(Stored::Ended(ended)) => match ended.outcome {
            Outcome::Done(json) => json.get().to_owned(),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    }
}

pub(crate) async fn each(test: impl AsyncFn(&Servers)) {
    for count in [1, 3] {
        let servers = Servers::start(count, "always").await;
        test(&servers).await;
    }
}

#[tokio::test]
async fn a_job_is_submitted_once_and_ends_once() {
    each(async |servers| {
        // The lease does not end while it is asked who has the job.
        let config = || config().with_lease(Duration::from_secs(5));
        let (here, there) = (servers.engine(config()).await, servers.engine(config()).await);
        let first = job(0, 1);
        assert!(here.submit(&first).await.unwrap().is_none());
        assert!(matches!(there.submit(&first).await.unwrap(), Some(Stored::Open { .. })));
        let delivery = pull_one(&there).await;
        assert_eq!((delivery.deliveries, delivery.job.input.get()), (1, "1"));
        // A worker that responds late counts as one that has nothing.
        until("it runs", async || here.is_running(&first.id).await.unwrap()).await;
        until("one runs", async || here.stats("jobs").await.unwrap().running == 1).await;
        let waiting = tokio::spawn({
            let (here, id) = (here.clone(), first.id.clone());
            async move { here.wait(&id, LONG).await.unwrap() }
        });
        let other = tokio::spawn({
            let (other, id) = (servers.engine(config()).await, first.id.clone());
            async move { other.wait(&id, LONG).await.unwrap() }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        assert!(there.end(&delivery, &done(&there, &first, "\"a\"")).await.unwrap());
        assert_eq!(result(waiting.await.unwrap()), "\"a\"");
        assert_eq!(result(other.await.unwrap()), "\"a\"");
        assert!(!there.end(&delivery, &done(&there, &first, "\"b\"")).await.unwrap());
        assert!(!here.close(&first.id, &done(&here, &first, "\"c\"")).await.unwrap());
        assert_eq!(result(here.submit(&first).await.unwrap()), "\"a\"");
        assert_eq!(result(here.read(&first.id).await.unwrap()), "\"a\"");
        assert!(!here.is_running(&first.id).await.unwrap());
        nothing(&here, Duration::from_secs(6)).await;
        let stats = here.stats("jobs").await.unwrap();
        assert_eq!((stats.open, stats.running, stats.dead), (0, 0, 0));
    })
    .await;
}

#[tokio::test]
async fn delays_tries_and_lost_leases() {
    each(async |servers| {
        let engine = servers.engine(config()).await;
        let mut later = job(1, 1);
        later.not_before = Some(engine.now() + 5_000);
        assert!(engine.submit(&later).await.unwrap().is_none());
        assert!(matches!(engine.submit(&later).await.unwrap(), Some(Stored::Open { .. })));
        assert_eq!(engine.stats("jobs").await.unwrap().open, 1);
        let delivery = pull_one(&engine).await;
        assert!(engine.now() >= later.not_before.unwrap());
        assert_eq!(delivery.deliveries, 1);
        // A failed attempt, and one whose worker died.
        let mut tries = Tries::default();
        tries.attempts = 1;
        tries.next = Some(engine.now() + 5_000);
        tries.history.push(FailedAttempt::new(1, engine.now(), CallError::execution("no")));
        let given_back = Instant::now();
        engine.again(&delivery, &tries, Duration::from_secs(5)).await.unwrap();
        let Some(Stored::Open { tries: stored, .. }) = engine.read(&later.id).await.unwrap() else { panic!() };
        assert_eq!(stored, tries);
        let delivery = pull_one(&engine).await;
        assert!(given_back.elapsed() > Duration::from_secs(4), "{:?}", given_back.elapsed());
        assert_eq!((delivery.deliveries, &delivery.tries), (2, &tries));
        assert!(engine.extend(&delivery).await.unwrap());
        let delivery = pull_one(&engine).await;
        assert_eq!((delivery.deliveries, &delivery.tries), (3, &tries));
        // Given up from outside.
        let ended = Ended::new(&later, engine.now(), 2, Outcome::Cancelled);
        assert!(engine.close(&later.id, &ended).await.unwrap());
        assert!(!engine.extend(&delivery).await.unwrap());
        assert!(!engine.end(&delivery, &done(&engine, &later, "1")).await.unwrap());
        nothing(&engine, Duration::from_secs(3)).await;
    })
    .await;
}

#[tokio::test]
async fn dead_letters_and_steps() {
    each(async |servers| {
        let engine = servers.engine(config()).await;
        for number in 0..3 {
            let job = job(number, 7);
            engine.submit(&job).await.unwrap();
            let delivery = pull_one(&engine).await;
            let letter = DeadLetter::new(
                job.clone(),
                engine.now(),
                Tries::default(),
                CallError::new(ErrorCode::Timeout, "late"),
            );
            let ended = Ended::new(&job, engine.now(), 1, Outcome::Dead(Box::new(letter)));
            assert!(engine.end(&delivery, &ended).await.unwrap());
        }
        let letters = engine.list("jobs", Listed::Dead, None, 2).await.unwrap();
        assert_eq!(letters.jobs.iter().map(|(id, _)| id.clone()).collect::<Vec<_>>(), [id(0, 7), id(1, 7)]);
        let rest = engine.list("jobs", Listed::Dead, letters.next.as_deref(), 9).await.unwrap();
        assert_eq!((rest.jobs.len(), engine.stats("jobs").await.unwrap().dead), (1, 3));
        assert!(engine.discard(&id(0, 7)).await.unwrap());
        assert!(!engine.discard(&id(0, 7)).await.unwrap());
        assert!(engine.read(&id(0, 7)).await.unwrap().is_none());
        let again = job(1, 7);
        let other = servers.engine(config()).await;
        let (one, two) = tokio::join!(engine.retry(&again), other.retry(&again));
        assert_eq!([one.unwrap(), two.unwrap()].into_iter().filter(|retried| *retried).count(), 1);
        let delivery = pull_one(&engine).await;
        assert!(engine.end(&delivery, &done(&engine, &again, "2")).await.unwrap());
        assert_eq!(result(engine.wait(&again.id, LONG).await.unwrap()), "2");
        assert_eq!(engine.list("jobs", Listed::Dead, None, 9).await.unwrap().jobs.len(), 1);

        assert_eq!(engine.step(&again.id, "charge it!").await.unwrap(), None);
        let minute = Duration::from_secs(60);
        assert_eq!(engine.keep_step(&again.id, "charge it!", "1", minute).await.unwrap(), "1");
        assert_eq!(other.keep_step(&again.id, "charge it!", "2", minute).await.unwrap(), "1");
        assert_eq!(other.step(&again.id, "charge it!").await.unwrap().as_deref(), Some("1"));
        assert_eq!(other.step(&again.id, "charge").await.unwrap(), None);
    })
    .await;
}

/// What a worker writes of a job that it has lost changes nothing, even if the job has ended since then.
#[tokio::test]
async fn tries_that_come_late() {
    each(async |servers| {
        let (slow, quick) = (servers.engine(config()).await, servers.engine(config()).await);
        let client = async_nats::connect(servers.url().split(',').next().unwrap()).await.unwrap();
        let context = async_nats::jetstream::new(client);
        let mut tries = Tries::default();
        tries.attempts = 7;
        let mut dead = tries.clone();
        dead.attempts = 9;
        // Those of a worker of an older version, which asks for no condition.
        let left_behind = async |id: &JobId| {
            // Its job is acknowledged, which nobody waits for.
            tokio::time::sleep(Duration::from_millis(500)).await;
            let text = serde_json::to_vec(&tries).unwrap();
            context.publish(format!("ops.queue.{id}.try"), text.into()).await.unwrap().await.unwrap();
        };

        let first = job(0, 1);
        slow.submit(&first).await.unwrap();
        let lost = pull_one(&slow).await;
        let delivery = pull_one(&quick).await;
        assert_eq!((delivery.deliveries, &delivery.job.id), (2, &first.id));
        assert!(quick.end(&delivery, &done(&quick, &first, "1")).await.unwrap());
        slow.again(&lost, &tries, Duration::ZERO).await.unwrap();
        left_behind(&first.id).await;
        assert_eq!(result(quick.read(&first.id).await.unwrap()), "1");
        assert_eq!(result(slow.submit(&first).await.unwrap()), "1");
        nothing(&quick, Duration::from_secs(3)).await;

        // A dead letter that tries stand behind is retried, and its job begins anew.
        let second = job(1, 2);
        quick.submit(&second).await.unwrap();
        let delivery = pull_one(&quick).await;
        let letter = DeadLetter::new(second.clone(), quick.now(), dead, CallError::execution("no"));
        let ended = Ended::new(&second, quick.now(), 9, Outcome::Dead(Box::new(letter)));
        assert!(quick.end(&delivery, &ended).await.unwrap());
        left_behind(&second.id).await;
        assert!(quick.retry(&second).await.unwrap());
        let delivery = pull_one(&quick).await;
        assert_eq!(delivery.tries, Tries::default());
        assert!(quick.end(&delivery, &done(&quick, &second, "2")).await.unwrap());
        assert_eq!(result(quick.read(&second.id).await.unwrap()), "2");
        nothing(&quick, Duration::from_secs(3)).await;
        let stats = quick.stats("jobs").await.unwrap();
        assert_eq!((stats.open, stats.dead), (0, 0));
    })
    .await;
}

/// A server that has just become the leader may not show for a moment what was acknowledged.
#[tokio::test]
async fn what_a_cluster_does_not_show_yet() {
    let servers = Servers::start(3, "2m").await;
    let engine = servers.engine(config()).await;
    engine.submit(&job(0, 0)).await.unwrap();
    assert!(engine.read(&id(0, 9)).await.unwrap().is_none());
    // What is known is read again for half a second, which a slow machine may need for the submits.
    for round in 1..=10 {
        let [known, unknown] = [1, 2].map(|number| job(1, 10 * round + number));
        let (asked, is_asked) = tokio::sync::oneshot::channel();
        // What anybody may have made up is read once.
        let unread = async {
            let unread = engine.read(&unknown.id).await.unwrap();
            asked.send(()).unwrap();
            unread
        };
        let later = async {
            is_asked.await.unwrap();
            for job in [&known, &unknown] {
                engine.submit(job).await.unwrap();
            }
        };
        let (read, unread, ()) = tokio::join!(engine.read_known(&known.id), unread, later);
        assert!(unread.is_none());
        if matches!(read.unwrap(), Some(Stored::Open { .. })) {
            return;
        }
    }
    panic!("what is known was never read again");
}

/// Who submits a job once more takes nothing from those of the same process who wait for its end.
#[tokio::test]
async fn a_repeated_submit_holds_up_no_waiter() {
    let servers = Servers::start(1, "2m").await;
    let (engine, other) = (servers.engine(config()).await, servers.engine(config()).await);
    for number in 1..=10 {
        let first = job(0, number);
        assert!(engine.submit(&first).await.unwrap().is_none());
        let waiting = tokio::spawn({
            let (engine, id) = (engine.clone(), first.id.clone());
            async move { engine.wait(&id, LONG).await.unwrap() }
        });
        let delivery = pull_one(&other).await;
        assert!(engine.submit(&first).await.unwrap().is_some());
        assert!(other.end(&delivery, &done(&other, &first, "1")).await.unwrap());
        let ended = Instant::now();
        assert_eq!(result(waiting.await.unwrap()), "1");
        // Well before it is looked whether a notice was lost. A slow machine may need that long, but not each time.
        if ended.elapsed() < Duration::from_millis(1_500) {
            return;
        }
    }
    panic!("no waiter got a notice");
}

/// A process that ends takes none of the jobs with it that were sent to it and that no worker took.
#[test]
fn what_is_released_comes_to_others() {
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (rest, ends) = (runtime(), runtime());
    let servers = rest.block_on(Servers::start(1, "2m"));
    // Of a lease that does not end meanwhile. Each lane is asked for a job.
    let connect = || servers.engine(JetStreamConfig::new().with_lease(2 * LONG));
    let engine = ends.block_on(connect());
    ends.block_on(async {
        assert!(engine.pull("jobs", 1, Duration::from_millis(100)).await.unwrap().is_empty());
        for lane in 0..4 {
            engine.submit(&job(lane, 1)).await.unwrap();
        }
        let first = pull_one(&engine).await;
        assert!(engine.end(&first, &done(&engine, &first.job, "1")).await.unwrap());
        engine.release("jobs").await.unwrap();
    });
    ends.shutdown_background();
    rest.block_on(async {
        let (other, start) = (connect().await, Instant::now());
        let mut deliveries = Vec::new();
        while deliveries.len() < 3 {
            deliveries.extend(other.pull("jobs", 8, LONG).await.unwrap());
            assert!(start.elapsed() < LONG, "they wait for a lease");
        }
        // None counts as one whose worker died.
        for Delivery { deliveries, tries, .. } in &deliveries {
            assert_eq!(*deliveries, 1 + u64::from(tries.passes));
            assert_eq!(tries.unbegun, tries.passes);
        }
        assert_eq!(other.stats("jobs").await.unwrap().open, 3);
    });
}

/// A job that was closed is this process's no more, and its id may come back at once.
#[tokio::test]
async fn closed_jobs_are_let_go() {
    each(async |servers| {
        // Of a lease that does not end meanwhile.
        let config = || config().with_lease(Duration::from_secs(5));
        let (engine, other) = (servers.engine(config()).await, servers.engine(config()).await);
        let heard = Arc::new(AtomicUsize::new(0));
        let closed = engine.closed("jobs").await.unwrap();
        let hears = heard.clone();
        let listens = tokio::spawn(closed.for_each(move |_| {
            hears.fetch_add(1, Ordering::SeqCst);
            std::future::ready(())
        }));
        // Other servers of a cluster may take a moment to know who listens.
        nothing(&engine, Duration::from_secs(2)).await;
        let (first, second) = (job(0, 1), job(0, 2));
        engine.submit(&first).await.unwrap();
        let delivery = pull_one(&engine).await;
        let letter = DeadLetter::new(first.clone(), engine.now(), Tries::default(), CallError::execution("no"));
        let dead = Ended::new(&first, engine.now(), 0, Outcome::Dead(Box::new(letter)));
        assert!(other.close(&first.id, &dead).await.unwrap());
        until("the first is told", async || heard.load(Ordering::SeqCst) >= 1).await;
        engine.submit(&second).await.unwrap();
        assert_eq!(other.stats("jobs").await.unwrap().running, 0);
        assert!(other.discard(&first.id).await.unwrap());
        other.submit(&first).await.unwrap();
        let mut deliveries = [pull_one(&engine).await, pull_one(&engine).await];
        deliveries.sort_by(|a, b| a.job.id.cmp(&b.job.id));
        let [again, second] = deliveries;
        assert_eq!(&again.job.id, &first.id);
        // No worker had them; what waits for one that has no time is given back, which is counted.
        for Delivery { deliveries, tries, .. } in [&again, &second] {
            assert_eq!(*deliveries, 1 + u64::from(tries.passes));
        }
        // What the former life had is no more.
        assert!(!engine.extend(&delivery).await.unwrap());
        assert!(!engine.end(&delivery, &done(&engine, &first, "1")).await.unwrap());
        assert!(engine.end(&again, &done(&engine, &first, "2")).await.unwrap());
        assert!(engine.end(&second, &done(&engine, &second.job, "3")).await.unwrap());
        assert_eq!(result(other.read(&first.id).await.unwrap()), "2");

        // One that has come and waits for a worker with room.
        let more = [job(1, 3), job(1, 4)];
        assert!(engine.pull("jobs", 8, Duration::from_millis(200)).await.unwrap().is_empty());
        for job in &more {
            engine.submit(job).await.unwrap();
        }
        let delivery = pull_one(&engine).await;
        tokio::time::sleep(Duration::from_millis(150)).await;
        let left = more.iter().find(|job| job.id != delivery.job.id).unwrap();
        assert!(other.close(&left.id, &Ended::new(left, other.now(), 0, Outcome::Cancelled)).await.unwrap());
        until("the second is told", async || heard.load(Ordering::SeqCst) >= 2).await;
        assert!(engine.end(&delivery, &done(&engine, &delivery.job, "1")).await.unwrap());
        nothing(&engine, Duration::from_secs(6)).await;
        listens.abort();
    })
    .await;
}

/// What the server delivers once more to the process that has the job is no death of a worker.
#[tokio::test]
async fn a_job_that_comes_twice() {
    each(async |servers| {
        let engine = servers.engine(config().with_lease(Duration::from_secs(5))).await;
        let client = async_nats::connect(servers.url().split(',').next().unwrap()).await.unwrap();
        engine.submit(&job(0, 1)).await.unwrap();
        let first = pull_one(&engine).await;
        client.publish(first.receipt.clone(), "-NAK".into()).await.unwrap();
        nothing(&engine, Duration::from_millis(500)).await;
        let mut tries = Tries::default();
        tries.passes = 1;
        engine.again(&first, &tries, Duration::ZERO).await.unwrap();
        let second = pull_one(&engine).await;
        assert_eq!((second.deliveries, second.tries.passes), (2, 1));
        assert!(engine.end(&second, &done(&engine, &second.job, "1")).await.unwrap());
    })
    .await;
}

#[tokio::test]
async fn lanes_take_turns() {
    let servers = Servers::start(1, "always").await;
    let engine = servers.engine(config()).await;
    for number in 0..200 {
        engine.submit(&job(0, number)).await.unwrap();
    }
    engine.submit(&job(3, 1)).await.unwrap();
    let mut position = 0;
    loop {
        let delivery = pull_one(&engine).await;
        assert!(engine.end(&delivery, &done(&engine, &delivery.job, "0")).await.unwrap());
        if delivery.job.id.lane() == 3 {
            break;
        }
        position += 1;
    }
    assert!(position < 10, "{position}");
}

#[tokio::test]
async fn settings_that_do_not_fit() {
    let servers = Servers::start(1, "always").await;
    let patient =
        servers.engine(JetStreamConfig::new().with_prefix("patient").with_request_timeout(Duration::MAX)).await;
    assert!(patient.read(&id(0, 1)).await.unwrap().is_none());
    let refused = async |config: JetStreamConfig| match JetStream::connect(&servers.url(), config).await {
        Ok(engine) => engine.submit(&job(0, 1)).await.map(|_| ()).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    let one = || JetStreamConfig::new().with_replicas(1);
    assert!(refused(JetStreamConfig::new()).await.contains("with_replicas(1)"));
    let engine = servers.engine(one()).await;
    engine.submit(&job(0, 1)).await.unwrap();
    let error = refused(one().with_memory_storage()).await;
    assert!(error.contains("configured otherwise: storage is File, not Memory"), "{error}");
    let error = refused(one().with_lease(Duration::from_secs(7))).await;
    assert!(error.contains("ack_wait is 30s, not 7s"), "{error}");
    let error = refused(one().with_max_input(900_000)).await;
    assert!(error.contains("max_payload"), "{error}");
    for (prefix, replicas) in [("a..b", 1), ("a.*", 1), ("", 1), ("a b", 1), ("ops", 0), ("ops", 6)] {
        refused(JetStreamConfig::new().with_prefix(prefix).with_replicas(replicas)).await;
    }
}
