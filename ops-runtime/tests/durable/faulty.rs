//! An engine that is the in-memory one, with faults of servers.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ops_runtime::CallError;
use ops_runtime::adapter::BoxStream;
use ops_runtime::durable::engine::{Delivery, Engine, EngineLimits, EngineResult, JobPage, Listed, QueueStats};
use ops_runtime::durable::record::{Ended, JobRecord, ScheduleRecord, Stored, Tries};
use ops_runtime::durable::{InMemory, JobId, Jobs, Schedule, SubmitOptions, Worker};
use ops_runtime::registry::Progress;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::watch;

use crate::harness::{attempts, eventually};
use crate::operations::{Gate, GateInput, Probe, Render, RenderInput, Work, named, registry};

#[derive(Clone, Default)]
struct Faulty {
    engine: InMemory,
    /// What workers answer to the next questions if they run a job, before the engine is asked.
    answers: Arc<Mutex<VecDeque<bool>>>,
    /// Nothing can be given back, and no job can be closed.
    is_away: Arc<AtomicBool>,
    /// To close a job takes a second.
    is_slow: bool,
    /// Stored jobs are those of a later version, which this one cannot read.
    is_unreadable: Arc<AtomicBool>,
    /// The queue `slow` has no leader: submits to it fail after half a minute.
    has_no_leader: Arc<AtomicBool>,
    /// No lease is extended.
    is_lost: Arc<AtomicBool>,
    /// Jobs that are known to exist are shown when this is `false` again.
    is_hidden: Arc<watch::Sender<bool>>,
}

fn away<'a, T: Send + 'a>() -> EngineResult<'a, T> {
    Box::pin(std::future::ready(Err(CallError::execution("the server is away"))))
}

/// Methods that only ask the engine.
macro_rules! pass_on {
    ($life:lifetime: $($name:ident($($argument:ident: $type:ty),*) -> $result:ty;)+) => {$(
        fn $name<$life>(&$life self, $($argument: $type),*) -> EngineResult<$life, $result> {
            self.engine.$name($($argument),*)
        }
    )+};
}

impl Engine for Faulty {
    fn name(&self) -> &'static str {
        "faulty"
    }

    fn limits(&self) -> EngineLimits {
        self.engine.limits()
    }

    fn now(&self) -> u64 {
        self.engine.now()
    }

    fn schedules(&self) -> EngineResult<'_, Vec<ScheduleRecord>> {
        self.engine.schedules()
    }

    fn queues(&self) -> EngineResult<'_, Vec<String>> {
        self.engine.queues()
    }

    fn is_running<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, bool> {
        match self.answers.lock().unwrap().pop_front() {
            Some(answer) => Box::pin(std::future::ready(Ok(answer))),
            None => self.engine.is_running(id),
        }
    }

    fn again<'a>(&'a self, delivery: &'a Delivery, tries: &'a Tries, after: Duration) -> EngineResult<'a, ()> {
        match self.is_away.load(Ordering::SeqCst) {
            true => away(),
            false => self.engine.again(delivery, tries, after),
        }
    }

    fn close<'a>(&'a self, id: &'a JobId, end: &'a Ended) -> EngineResult<'a, bool> {
        if self.is_away.load(Ordering::SeqCst) {
            return away();
        }
        Box::pin(async move {
            if self.is_slow {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            self.engine.close(id, end).await
        })
    }

    fn read<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        if self.is_unreadable.load(Ordering::SeqCst) {
            let error = CallError::execution("it is of a later version").with_details(json!({ "unreadable": true }));
            return Box::pin(std::future::ready(Err(error)));
        }
        self.engine.read(id)
    }

    fn read_known<'a>(&'a self, id: &'a JobId) -> EngineResult<'a, Option<Stored>> {
        Box::pin(async move {
            let mut is_hidden = self.is_hidden.subscribe();
            is_hidden.wait_for(|is_hidden| !is_hidden).await.unwrap();
            self.read(id).await
        })
    }

    fn extend<'a>(&'a self, delivery: &'a Delivery) -> EngineResult<'a, bool> {
        match self.is_lost.load(Ordering::SeqCst) {
            true => Box::pin(std::future::ready(Ok(false))),
            false => self.engine.extend(delivery),
        }
    }

    fn submit<'a>(&'a self, job: &'a JobRecord) -> EngineResult<'a, Option<Stored>> {
        if job.id.queue() != "slow" || !self.has_no_leader.load(Ordering::SeqCst) {
            return self.engine.submit(job);
        }
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(30)).await;
            away().await
        })
    }

    pass_on! { 'a:
        wait(id: &'a JobId, at_most: Duration) -> Option<Stored>;
        pull(queue: &'a str, most: usize, at_most: Duration) -> Vec<Delivery>;
        end(delivery: &'a Delivery, end: &'a Ended) -> bool;
        closed(queue: &'a str) -> BoxStream<'static, JobId>;
        tell(id: &'a JobId, progress: &'a Progress) -> ();
        progress(id: &'a JobId) -> BoxStream<'static, Progress>;
        step(id: &'a JobId, name: &'a str) -> Option<String>;
        keep_step(id: &'a JobId, name: &'a str, value: &'a str, retention: Duration) -> String;
        retry(job: &'a JobRecord) -> bool;
        discard(id: &'a JobId) -> bool;
        keep_schedule(schedule: &'a ScheduleRecord, known: Option<&'a ScheduleRecord>) -> bool;
        remove_schedule(name: &'a str) -> bool;
        list(queue: &'a str, what: Listed, after: Option<&'a str>, most: usize) -> JobPage;
        stats(queue: &'a str) -> QueueStats;
    }
}

/// A worker that is busy responds late, as if none had the job: its key is not free before two questions in a row say so.
pub(crate) async fn a_late_response_frees_no_key() {
    let engine = Faulty::default();
    let jobs = Jobs::new(engine.clone());
    let job = jobs.submit::<Work>(named("a"), attempts(1)).await.unwrap();
    assert!(job.cancel().await.unwrap());
    engine.answers.lock().unwrap().extend([false, true, false, false]);
    assert!(job.discard().await.unwrap());
    assert_eq!(engine.answers.lock().unwrap().len(), 0);
}

/// Who removes a schedule while its job cannot be cancelled repeats the call, and then nothing of it runs.
pub(crate) async fn a_schedule_is_removed_in_two_calls() {
    let engine = Faulty::default();
    let jobs = Jobs::new(engine.clone());
    let hourly = Schedule::every(Duration::from_secs(3_600));
    jobs.schedule::<Work>("a", hourly, named("a"), SubmitOptions::new()).await.unwrap();
    engine.is_away.store(true, Ordering::SeqCst);
    jobs.unschedule("a").await.unwrap_err();
    engine.is_away.store(false, Ordering::SeqCst);
    assert!(jobs.unschedule("a").await.unwrap());
    assert!(!jobs.unschedule("a").await.unwrap());
    assert_eq!(jobs.stats("jobs").await.unwrap().open, 0);
}

/// A schedule that another process sets while this one cancels the jobs of the one before it is removed with its own jobs.
pub(crate) fn a_schedule_is_replaced_while_it_is_removed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let engine = Faulty { is_slow: true, ..Faulty::default() };
        let (here, there) = (Jobs::new(engine.clone()), Jobs::new(engine));
        let set = async |jobs: &Jobs, hours: u64| {
            let every = Schedule::every(Duration::from_secs(3_600 * hours));
            jobs.schedule::<Work>("a", every, named("a"), SubmitOptions::new()).await.unwrap();
        };
        set(&here, 1).await;
        let removed = tokio::spawn({
            let here = here.clone();
            async move { here.unschedule("a").await }
        });
        // Now the job of the first is being cancelled.
        tokio::time::sleep(Duration::from_millis(500)).await;
        set(&there, 2).await;
        assert!(removed.await.unwrap().unwrap());
        assert!(here.schedules().await.unwrap().is_empty());
        assert_eq!(here.stats("jobs").await.unwrap().open, 0);
    });
}

/// A step does not begin if its worker was stopped, or has lost it, while the job that waits for it was looked up.
pub(crate) fn a_step_whose_job_is_looked_up_for_long() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (engine, probe) = (Faulty::default(), Arc::<Probe>::default());
        let jobs = Jobs::new(engine.clone());
        let record = |number: u32, operation: &str| {
            let id = format!("jobs.0.{number:032x}").parse().unwrap();
            JobRecord::new(id, operation, to_raw_value(&json!({ "name": "a" })).unwrap())
        };
        let mut waiting = record(1, "test.waits");
        waiting.not_before = Some(engine.now() + 3_600_000);
        let mut step = record(2, "test.work");
        step.parent = Some(waiting.id.clone());
        for job in [&waiting, &step] {
            assert!(engine.submit(job).await.unwrap().is_none());
        }
        let begin = async || {
            engine.is_hidden.send_replace(true);
            let worker = Worker::new(jobs.clone(), registry(&probe)).start();
            tokio::time::sleep(Duration::from_secs(2)).await;
            worker
        };
        let worker = begin().await;
        let stopped = tokio::spawn(worker.stop_now());
        tokio::time::sleep(Duration::from_secs(2)).await;
        engine.is_hidden.send_replace(false);
        stopped.await.unwrap();
        let Some(Stored::Open { tries, .. }) = engine.read(&step.id).await.unwrap() else { panic!("it is open") };
        assert_eq!((probe.starts("a"), tries.attempts, tries.passes, tries.unbegun), (0, 0, 1, 1));

        let worker = begin().await;
        engine.is_lost.store(true, Ordering::SeqCst);
        // A third of its lease.
        tokio::time::sleep(Duration::from_secs(12)).await;
        engine.is_hidden.send_replace(false);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(probe.starts("a"), 0);
        // It comes again when its lease has expired, which counts as the death of its worker.
        engine.is_lost.store(false, Ordering::SeqCst);
        assert_eq!(jobs.job_by_id(step.id.clone()).result().await.unwrap().data, 2);
        assert_eq!(probe.starts("a"), 1);
        worker.stop().await;
    });
}

/// The schedules of a queue without a leader make no schedule of another queue lose a time.
pub(crate) fn a_queue_that_takes_no_jobs_holds_up_no_other() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let (engine, probe) = (Faulty::default(), Arc::<Probe>::default());
        let jobs = Jobs::new(engine.clone()).with_queue("slow.*", "slow");
        let each_second = || Schedule::every(Duration::from_secs(1));
        for name in ["a", "c"] {
            let input = RenderInput { name: name.into() };
            jobs.schedule::<Render>(name, each_second(), input, SubmitOptions::new()).await.unwrap();
        }
        jobs.schedule::<Work>("b", each_second(), named("b"), SubmitOptions::new()).await.unwrap();
        engine.has_no_leader.store(true, Ordering::SeqCst);
        let worker = Worker::new(jobs, registry(&probe)).start();
        tokio::time::sleep(Duration::from_millis(100_500)).await;
        let ran = probe.starts("b");
        assert!((98..=101).contains(&ran), "{ran}");
        // It has a leader again: once the submit that waits is over, no time is lost.
        engine.has_no_leader.store(false, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_secs(61)).await;
        let before = ["a", "c"].map(|name| probe.starts(name));
        tokio::time::sleep(Duration::from_secs(10)).await;
        let after = ["a", "c"].map(|name| probe.starts(name));
        assert_eq!([after[0] - before[0], after[1] - before[1]], [10, 10]);
        worker.stop().await;
    });
}

/// A due job that cannot be read keeps no schedule from being removed.
pub(crate) fn a_schedule_with_an_unreadable_job_is_removed() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let engine = Faulty::default();
        let jobs = Jobs::new(engine.clone());
        let minutely = Schedule::every(Duration::from_secs(60));
        jobs.schedule::<Work>("a", minutely, named("a"), SubmitOptions::new()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(90)).await;
        engine.is_unreadable.store(true, Ordering::SeqCst);
        assert!(jobs.unschedule("a").await.unwrap());
        assert!(jobs.schedules().await.unwrap().is_empty());
    });
}

/// The process is killed soon: it does not wait for an engine that does not respond.
pub(crate) async fn a_stop_has_a_limit_while_the_engine_is_away() {
    let (engine, probe) = (Faulty::default(), Arc::<Probe>::default());
    let jobs = Jobs::new(engine.clone());
    let worker = Worker::new(jobs.clone(), registry(&probe)).start();
    let _job = jobs.submit::<Gate>(GateInput { name: "a".into() }, attempts(1)).await.unwrap();
    eventually("it has started", || probe.starts("a") == 1).await;
    engine.is_away.store(true, Ordering::SeqCst);
    let start = Instant::now();
    worker.stop_within(Duration::from_millis(100)).await;
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    // What is left ends like a crash.
    eventually("its handler is dropped", || probe.alive() == 0).await;
}
