//! The engine on NATS `JetStream`: one server, and a cluster of three. Each case has a prefix of its own.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::TryStreamExt;
use ops_runtime::durable::engine::{Engine, Listed};
use ops_runtime::durable::jetstream::{JetStream, JetStreamConfig};
use ops_runtime::durable::record::{DeadLetter, Ended, JobRecord, Outcome, Stored, Tries};
use ops_runtime::durable::{JobId, Schedule, SubmitOptions};
use ops_runtime::{CallError, Registry};
use serde_json::value::to_raw_value;
use tokio::sync::OnceCell;

use crate::harness::{Harness, LANES, LEASE, MAX_SIZE, Set, attempts, eventually, pause};
use crate::operations::{Waits, WaitsInput, Work, named};
use crate::servers::Servers;

/// Jobs on so many servers, which all cases share.
pub(crate) struct JetStreamHarness<const SERVERS: usize> {
    prefix: String,
}

async fn servers(count: usize) -> &'static Servers {
    static ONE: OnceCell<Servers> = OnceCell::const_new();
    static THREE: OnceCell<Servers> = OnceCell::const_new();
    let servers = if count == 1 { &ONE } else { &THREE };
    servers.get_or_init(|| Servers::start(count, "2m")).await
}

/// Removes what the case has left: with all of them, the servers would have a thousand groups to keep.
impl<const SERVERS: usize> Drop for JetStreamHarness<SERVERS> {
    fn drop(&mut self) {
        let names = ["schedules", "queue-jobs", "queue-slow"].map(|name| format!("{}-{name}", self.prefix));
        // Not in the threads of the case, which end now.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let url = servers(SERVERS).await.url();
                let client = async_nats::connect(url.split(',').collect::<Vec<_>>()).await.unwrap();
                for name in names {
                    // Some cases use no queue, or one.
                    let _ = async_nats::jetstream::new(client.clone()).delete_stream(name).await;
                }
            });
        });
    }
}

impl<const SERVERS: usize> Harness for JetStreamHarness<SERVERS> {
    type Engine = JetStream;

    async fn start() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        servers(SERVERS).await;
        Self { prefix: format!("case{}", NEXT.fetch_add(1, Ordering::Relaxed)) }
    }

    async fn engine(&self) -> JetStream {
        let config = JetStreamConfig::new().with_prefix(&self.prefix).with_lease(LEASE).with_lanes(LANES);
        servers(SERVERS).await.engine(config.with_max_input(MAX_SIZE).with_max_result(MAX_SIZE)).await
    }
}

/// One server, without an engine.
async fn server() -> async_nats::jetstream::Context {
    async_nats::jetstream::new(async_nats::connect(servers(1).await.url()).await.unwrap())
}

/// A worker that has heard nothing of a cancellation learns of it by its lease, and cancels the steps.
pub(crate) async fn cancelled_without_a_notice() {
    let set = Set::<JetStreamHarness<1>>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("its step runs", || set.probe.starts("a-gate") == 1).await;
    let Stored::Open { job: record, .. } = job.stored().await.unwrap() else { panic!("it is open") };
    let cancelled = Ended::new(&record, record.submitted, 0, Outcome::Cancelled);
    let subject = format!("{}.queue.{}.end.done", set.harness.prefix, job.id());
    let text = serde_json::to_vec(&cancelled).unwrap();
    server().await.publish(subject, text.into()).await.unwrap().await.unwrap();
    eventually("both handlers are dropped", || set.probe.alive() == 0).await;
    assert!(!job.cancel().await.unwrap());
    set.settled().await;
    worker.stop().await;
}

/// Who wrote a dead letter may die before the job itself is removed.
pub(crate) async fn what_is_left_of_dead_letters_does_not_run() {
    let harness = JetStreamHarness::<1>::start().await;
    let engine = harness.engine().await;
    let mut jobs = Vec::new();
    for number in [1, 2] {
        let id: JobId = format!("jobs.0.{number:032x}").parse().unwrap();
        let job = JobRecord::new(id, "test.any", to_raw_value(&number).unwrap());
        engine.submit(&job).await.unwrap();
        let letter = DeadLetter::new(job.clone(), engine.now(), Tries::default(), CallError::execution("no"));
        let dead = Ended::new(&job, engine.now(), 1, Outcome::Dead(Box::new(letter)));
        let (subject, text) =
            (format!("{}.queue.{}.end.dead", harness.prefix, job.id), serde_json::to_vec(&dead).unwrap());
        server().await.publish(subject, text.into()).await.unwrap().await.unwrap();
        jobs.push(job);
    }
    let [discarded, mut retried] = <[JobRecord; 2]>::try_from(jobs).unwrap();
    assert!(engine.discard(&discarded.id).await.unwrap());
    assert!(engine.read(&discarded.id).await.unwrap().is_none());
    retried.submitted = engine.now();
    assert!(engine.retry(&retried).await.unwrap());
    let mut pulled = Vec::new();
    for _ in 0..5 {
        pulled.extend(engine.pull("jobs", 8, LEASE / 2).await.unwrap());
    }
    let submitted: Vec<_> = pulled.iter().map(|delivery| (&delivery.job.id, delivery.job.submitted)).collect();
    assert!(submitted.iter().all(|job| *job == (&retried.id, retried.submitted)), "{submitted:?}");
    assert!(!submitted.is_empty());
}

/// A job may wait for a worker longer than anything that has a time of its own is kept.
pub(crate) async fn tries_are_kept_as_long_as_their_job() {
    let harness = JetStreamHarness::<1>::start().await;
    let engine = harness.engine().await;
    let id: JobId = format!("jobs.0.{:032x}", 1).parse().unwrap();
    engine.submit(&JobRecord::new(id.clone(), "test.any", to_raw_value(&1).unwrap())).await.unwrap();
    let delivery = engine.pull("jobs", 1, Duration::from_secs(60)).await.unwrap().pop().unwrap();
    let mut tries = Tries::default();
    tries.passes = 1;
    engine.again(&delivery, &tries, Duration::ZERO).await.unwrap();
    let stream = server().await.get_stream(format!("{}-queue-jobs", harness.prefix)).await.unwrap();
    let subject = format!("{}.queue.{id}.try", harness.prefix);
    let kept = stream.get_last_raw_message_by_subject(&subject).await.unwrap();
    assert!(kept.headers.get("Nats-TTL").is_none(), "{:?}", kept.headers);
    // They go with it.
    let delivery = engine.pull("jobs", 1, Duration::from_secs(60)).await.unwrap().pop().unwrap();
    let ended = Ended::new(&delivery.job, engine.now(), 1, Outcome::Cancelled);
    assert!(engine.end(&delivery, &ended).await.unwrap());
    assert!(stream.get_last_raw_message_by_subject(&subject).await.is_err());
}

/// A step whose job is not there, such as on a server that has just become the leader, is no error of the job that waits for it.
pub(crate) async fn a_step_that_is_not_there() {
    let set = Set::<JetStreamHarness<1>>::start().await;
    // It knows the job, and not its step.
    let partial = Registry::builder().with_state(set.probe.clone()).build();
    partial.register(Waits).unwrap();
    let first = set.worker_of(partial).await;
    let job = set.jobs.submit::<Waits>(WaitsInput { name: "a".into() }, attempts(1)).await.unwrap();
    let mut step = None;
    while step.is_none() {
        let due: Vec<_> = set.jobs.list("jobs", Listed::Due).try_collect().await.unwrap();
        step = due.into_iter().map(|(id, _)| id).find(|id| id != job.id());
    }
    let stream = server().await.get_stream(format!("{}-queue-jobs", set.harness.prefix)).await.unwrap();
    let all = format!("{}.queue.{}.>", set.harness.prefix, step.unwrap());
    // It is given back again and again, and may be written once more.
    for _ in 0..2 {
        stream.purge().filter(&all).await.unwrap();
        pause(100).await;
    }
    eventually("its job begins again", || set.probe.starts("a") > 1).await;
    let second = set.worker().await;
    set.probe.open();
    assert_eq!(job.result().await.unwrap().data, 1);
    set.settled().await;
    first.stop().await;
    second.stop().await;
}

/// One schedule that cannot be read, such as one of a later version, stops no other.
pub(crate) async fn a_schedule_that_cannot_be_read() {
    let set = Set::<JetStreamHarness<1>>::start().await;
    let often = || Schedule::every(Duration::from_secs(1));
    set.jobs.schedule::<Work>("a", often(), named("a"), SubmitOptions::new()).await.unwrap();
    set.jobs.schedule::<Work>("b", often(), named("b"), SubmitOptions::new()).await.unwrap();
    let stream = server().await.get_stream(format!("{}-schedules", set.harness.prefix)).await.unwrap();
    let subjects = stream.get_first_raw_message_by_subject(format!("{}.schedule.*", set.harness.prefix), 1).await;
    let first = subjects.unwrap().subject;
    server().await.publish(first, "{}".into()).await.unwrap().await.unwrap();
    let names =
        async || -> Vec<_> { set.jobs.schedules().await.unwrap().into_iter().map(|schedule| schedule.name).collect() };
    assert_eq!(names().await, ["b"]);
    let worker = set.worker().await;
    eventually("the other runs", || set.probe.starts("b") >= 2).await;
    // It is replaced.
    set.jobs.schedule::<Work>("a", often(), named("a"), SubmitOptions::new()).await.unwrap();
    assert_eq!(names().await, ["a", "b"]);
    assert!(set.jobs.unschedule("a").await.unwrap() && set.jobs.unschedule("b").await.unwrap());
    worker.stop().await;
}

/// A stream that an operator has made beside those of the queues, such as a backup, is no queue.
pub(crate) async fn a_stream_that_is_no_queue() {
    let set = Set::<JetStreamHarness<1>>::start().await;
    let job = set.jobs.submit::<Work>(named("a"), SubmitOptions::new()).await.unwrap();
    let name = format!("{}-queue-jobs-BACKUP", set.harness.prefix);
    let config = async_nats::jetstream::stream::Config { name: name.clone(), ..Default::default() };
    server().await.create_stream(config).await.unwrap();
    assert_eq!(set.jobs.kept_queues().await.unwrap(), ["jobs"]);
    server().await.delete_stream(name).await.unwrap();
    assert!(job.cancel().await.unwrap());
    set.settled().await;
}

/// A schedule that could not be replaced stays, and its next job with it.
pub(crate) async fn a_schedule_that_cannot_be_replaced() {
    let set = Set::<JetStreamHarness<1>>::start().await;
    let far = |hours: u64| Schedule::every(Duration::from_secs(hours * 3_600));
    set.jobs.schedule::<Work>("a", far(1), named("a"), SubmitOptions::new()).await.unwrap();
    let stream = server().await.get_stream(format!("{}-schedules", set.harness.prefix)).await.unwrap();
    let config =
        |most| async_nats::jetstream::stream::Config { max_message_size: most, ..stream.cached_info().config.clone() };
    server().await.update_stream(config(16)).await.unwrap();
    set.jobs.schedule::<Work>("a", far(2), named("a"), SubmitOptions::new()).await.unwrap_err();
    assert_eq!(set.jobs.schedules().await.unwrap()[0].when, "@every 3600000ms");
    assert_eq!(set.jobs.stats("jobs").await.unwrap().open, 1);
    // Once it can be, the job is that of the new one.
    server().await.update_stream(config(-1)).await.unwrap();
    set.jobs.schedule::<Work>("a", far(2), named("a"), SubmitOptions::new()).await.unwrap();
    assert_eq!(set.jobs.stats("jobs").await.unwrap().open, 1);
    assert!(set.jobs.unschedule("a").await.unwrap());
    set.settled().await;
}
