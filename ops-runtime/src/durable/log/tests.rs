//! The warnings and errors in the log, of workers with a clock that does not wait.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use serde_json::{Value, json};
use tokio::time::sleep;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::adapter::{Handler, Registration};
use crate::durable::tests::{Fields, Reading};
use crate::durable::{Jobs, RetryPolicy, Schedule, SubmitOptions, Worker};
use crate::{Call, CallError, Context, Operation, OperationSpec, Registry};

/// Keeps the fields of warnings and errors, and their levels.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<(Level, Fields)>>>);

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event() && metadata.target().contains("durable") && *metadata.level() <= Level::WARN
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::new();
        event.record(&mut Reading(&mut fields));
        self.0.lock().unwrap().push((*event.metadata().level(), fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is logged while a test runs, and what it returns.
fn logged<T>(run: impl Future<Output = T>) -> (T, Vec<(Level, Fields)>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let log = Log::default();
    let returned = tracing::subscriber::with_default(log.clone(), || runtime.block_on(run));
    let logged = log.0.lock().unwrap().clone();
    (returned, logged)
}

fn fields<const N: usize>(fields: [(&str, &str); N]) -> Fields {
    fields.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn registry(id: &'static str, handler: Handler) -> Registry {
    let registry = Registry::new();
    registry.register(Registration::new(OperationSpec::mutation(id), handler)).unwrap();
    registry
}

#[test]
fn failed_attempts_and_dead_letters() {
    let fail = |_: Value, context: Context| async move {
        let error = CallError::execution(format!("no {}", context.attempt()));
        Err::<Value, _>(error.with_details(json!({ "body": "hush" })))
    };
    let (id, logged) = logged(async {
        let jobs = Jobs::in_memory();
        let worker = Worker::new(jobs.clone(), registry("test.fail", Handler::dynamic(fail))).start();
        let options = SubmitOptions::new().with_retry(RetryPolicy::new(2));
        let job = jobs.submit_by_id("test.fail", json!({}), options).await.unwrap();
        job.result().await.unwrap_err();
        worker.stop().await;
        job.id().to_string()
    });
    let common = |more: Fields| {
        let mut all = fields([("job", id.as_str()), ("operation", "test.fail"), ("code", "EXECUTION_ERROR")]);
        all.extend(more);
        all
    };
    let failed = |attempt, outcome, error| {
        let message = ("message", "an attempt of a job failed");
        common(fields([message, ("attempt", attempt), ("outcome", outcome), ("error", error)]))
    };
    let dead = fields([("message", "a job has become a dead letter"), ("attempts", "2"), ("error", "no 2")]);
    let expected = [
        (Level::WARN, failed("1", "retry", "no 1")),
        (Level::WARN, failed("2", "dead", "no 2")),
        (Level::ERROR, common(dead)),
    ];
    assert_eq!(logged, expected);
}

/// Their messages may have parts of the input.
#[test]
fn messages_for_callers_stay_out() {
    for code in ["VALIDATION_ERROR", "TOOL_ERROR", "TAKEN"] {
        let fail = move |_: Value, _: Context| async move { Err::<Value, _>(CallError::new(code, "hush")) };
        let ((), logged) = logged(async {
            let jobs = Jobs::in_memory();
            let worker = Worker::new(jobs.clone(), registry("test.fail", Handler::dynamic(fail))).start();
            let options = SubmitOptions::new().with_retry(RetryPolicy::new(1));
            let job = jobs.submit_by_id("test.fail", json!({}), options).await.unwrap();
            job.result().await.unwrap_err();
            worker.stop().await;
        });
        let (_, failed) = &logged[0];
        assert_eq!((&*failed["message"], &*failed["code"]), ("an attempt of a job failed", code));
        assert!(logged.iter().all(|(_, fields)| !fields.contains_key("error")), "{logged:?}");
    }
}

#[test]
fn a_worker_that_died() {
    let hang = |_: Value, context: Context| async move {
        if context.attempt() == 1 { pending().await } else { Ok::<Value, CallError>(json!(7)) }
    };
    let (id, logged) = logged(async {
        let (jobs, registry) = (Jobs::in_memory(), registry("test.hang", Handler::dynamic(hang)));
        let first = Worker::new(jobs.clone(), registry.clone()).start();
        let job = jobs.submit_by_id("test.hang", json!({}), SubmitOptions::new()).await.unwrap();
        sleep(Duration::from_secs(1)).await;
        drop(first);
        let second = Worker::new(jobs, registry).start();
        assert_eq!(job.result().await.unwrap().data, 7);
        second.stop().await;
        job.id().to_string()
    });
    let expected = fields([
        ("message", "an attempt of a job failed"),
        ("job", id.as_str()),
        ("operation", "test.hang"),
        ("attempt", "1"),
        ("outcome", "died"),
        ("code", "ABORTED"),
        ("error", "the worker died or lost its connection during the attempt"),
    ]);
    assert_eq!(logged, [(Level::WARN, expected)]);
}

static STEP: OperationSpec = OperationSpec::mutation("test.step");

struct Step;

impl Operation for Step {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &STEP;
}

impl Call for Step {}

/// However often the job is given back, its operation is named once.
#[test]
fn a_step_whose_operation_no_worker_has() {
    let order = |_: Value, context: Context| async move {
        Ok::<Value, CallError>(context.once::<Step>("pick up", json!({})).await?.data)
    };
    let (id, logged) = logged(async {
        let jobs = Jobs::in_memory();
        let worker = Worker::new(jobs.clone(), registry("test.order", Handler::dynamic(order))).start();
        let job = jobs.submit_by_id("test.order", json!({}), SubmitOptions::new()).await.unwrap();
        sleep(Duration::from_secs(60)).await;
        assert!(job.cancel().await.unwrap());
        worker.stop().await;
        job.id().to_string()
    });
    let [(first, step), (second, left)] = &logged[..] else { panic!("{logged:?}") };
    assert_eq!((*first, *second), (Level::WARN, Level::WARN));
    assert_eq!((&*step["job"], &*step["step"], &*step["operation"]), (&*id, "pick up", "test.step"));
    assert!(step["message"].starts_with("no handler here for the operation of a step"), "{step:?}");
    assert_eq!(left["operation"], "test.step");
    assert!(left["message"].starts_with("no handler here: jobs of the operation are left to other w"), "{left:?}");
}

/// The first time of the schedule has a job, which waits for a worker. The later times have none.
#[test]
fn times_of_a_schedule_that_were_skipped() {
    for (seconds, is_set_again, numbers) in [
        (45, false, Some((2, 4, "true"))),
        (45, true, Some((2, 4, "true"))),
        (305, false, Some((15, 30, "false"))),
        (15, false, None),
        (5, true, None),
    ] {
        let (since, logged) = logged(async {
            let (jobs, every) = (Jobs::in_memory(), Schedule::every(Duration::from_secs(10)));
            let set = async || {
                let options = SubmitOptions::new();
                jobs.schedule_by_id("tick", every.clone(), "test.tick", json!({}), options).await.unwrap();
            };
            set().await;
            sleep(Duration::from_secs(seconds)).await;
            // A program sets its schedules at each start.
            if is_set_again {
                set().await;
            }
            let tick = |_: Value, _: Context| async move { Ok::<Value, CallError>(json!({})) };
            let worker = Worker::new(jobs.clone(), registry("test.tick", Handler::dynamic(tick))).start();
            // From here on, no time is skipped.
            sleep(Duration::from_secs(60)).await;
            worker.stop().await;
            jobs.schedules().await.unwrap()[0].since
        });
        let at = |number: i64| {
            let since = DateTime::from_timestamp_millis(since.try_into().unwrap()).unwrap();
            (since + TimeDelta::seconds(10 * number)).to_string()
        };
        let expected = numbers.map(|(first, last, are_all)| {
            let message = "times of a schedule have passed without a job, and are skipped: no worker ran, or the engine took no jobs";
            let (times, first, last) = ((last - first + 1).to_string(), at(first), at(last));
            let expected = [
                ("message", message),
                ("schedule", "tick"),
                ("times", times.as_str()),
                ("are_all", are_all),
                ("first", first.as_str()),
                ("last", last.as_str()),
            ];
            (Level::WARN, fields(expected))
        });
        assert_eq!(logged, Vec::from_iter(expected), "{seconds} s");
    }
}
