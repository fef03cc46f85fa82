//! The trace of a job, and the input of a key.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::{JobError, Jobs, RetryPolicy, SubmitOptions, Worker};
use crate::adapter::{Handler, Registration};
use crate::{Call, CallError, Context, Operation, OperationSpec, Registry};

pub(super) type Fields = BTreeMap<String, String>;

/// Keeps the spans of jobs with their fields.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<(String, Fields)>>>);

/// Notes fields as texts.
pub(super) struct Reading<'a>(pub(super) &'a mut Fields);

impl Visit for Reading<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").trim_matches('"').to_owned());
    }
}

impl Subscriber for Spans {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_span() && metadata.target().contains("durable")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = Fields::new();
        span.record(&mut Reading(&mut fields));
        let mut spans = self.0.lock().unwrap();
        spans.push((span.metadata().name().to_owned(), fields));
        Id::from_u64(spans.len() as u64)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let at = usize::try_from(span.into_u64()).unwrap() - 1;
        values.record(&mut Reading(&mut self.0.lock().unwrap()[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn the_trace_of_a_submit_goes_on_in_the_job() {
    let spans = Spans::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen = tracing::subscriber::with_default(spans.clone(), || {
        runtime.block_on(async {
            let registry = Registry::new();
            let handler = |_: Value, context: Context| async move { Ok(json!(context.metadata())) };
            let spec = OperationSpec::query("test.trace");
            registry.register(Registration::new(spec, Handler::dynamic(handler))).unwrap();
            let jobs = Jobs::in_memory();
            let worker = Worker::new(jobs.clone(), registry).start();
            let job = jobs.submit_by_id("test.trace", json!({}), SubmitOptions::new()).await.unwrap();
            let seen = job.result().await.unwrap().data;
            worker.stop().await;
            seen
        })
    });
    let spans = spans.0.lock().unwrap();
    let [(submit, sent), (job, run)] = &spans[..] else { panic!("{spans:?}") };
    assert_eq!((&**submit, &**job, &*run["attempt"], &*run["operation"]), ("submit", "job", "1", "test.trace"));
    assert_eq!((&run["trace_id"], &run["parent_id"]), (&sent["trace_id"], &sent["span_id"]));
    assert_eq!(sent.get("parent_id"), None);
    // What the handler calls goes on from the span of the job.
    assert_eq!(seen["traceparent"], format!("00-{}-{}-01", run["trace_id"], run["span_id"]));
}

static PAY: OperationSpec = OperationSpec::mutation("test.pay");

struct Pay;

impl Operation for Pay {
    type Input = BTreeMap<String, u128>;
    type Output = Value;
    const SPEC: &'static OperationSpec = &PAY;
}

impl Call for Pay {}

#[tokio::test]
async fn another_number_of_many_digits_is_another_input() {
    let jobs = Jobs::in_memory();
    let pay = async |id: u128| {
        let input = BTreeMap::from([("id".to_owned(), id)]);
        jobs.submit::<Pay>(input, SubmitOptions::new().with_key("k")).await
    };
    let first = pay((1 << 64) + 1).await.unwrap();
    assert!(first.is_new());
    let error = pay((1 << 64) + 2).await.unwrap_err();
    assert_eq!(JobError::of(&error), Some(JobError::Conflict { job: first.id().clone() }));
    let again = pay((1 << 64) + 1).await.unwrap();
    assert_eq!((again.id(), again.is_new()), (first.id(), false));
}

static STEP: OperationSpec = OperationSpec::query("test.step");

struct Step;

impl Operation for Step {
    type Input = Value;
    type Output = Value;
    const SPEC: &'static OperationSpec = &STEP;
}

impl Call for Step {}

#[test]
fn attempts_and_steps_are_in_the_trace_of_the_submit() {
    let spans = Spans::default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    tracing::subscriber::with_default(spans.clone(), || {
        runtime.block_on(async {
            let registry = Registry::new();
            // The first attempt fails after its step, and the second attaches to that.
            let order = |_: Value, context: Context| async move {
                let data = context.once::<Step>("step", json!({})).await?.data;
                if context.attempt() == 1 { Err(CallError::execution("as it should")) } else { Ok(data) }
            };
            let step = |_: Value, _: Context| async { Ok::<_, CallError>(json!(7)) };
            registry.register(Registration::new(OperationSpec::query("test.order"), Handler::dynamic(order))).unwrap();
            registry.register(Registration::new(STEP.clone(), Handler::dynamic(step))).unwrap();
            let jobs = Jobs::in_memory();
            let worker = Worker::new(jobs.clone(), registry).start();
            let policy = RetryPolicy::new(2).with_backoff(std::time::Duration::ZERO, std::time::Duration::ZERO);
            let options = SubmitOptions::new().with_retry(policy);
            let job = jobs.submit_by_id("test.order", json!({}), options).await.unwrap();
            assert_eq!(job.result().await.unwrap().data, 7);
            worker.stop().await;
        });
    });
    let spans = spans.0.lock().unwrap();
    let of = |name: &str, operation: &str| -> Vec<&Fields> {
        let found = spans.iter().filter(|(own, fields)| own == name && fields["operation"] == operation);
        found.map(|(_, fields)| fields).collect()
    };
    let [submit] = of("submit", "test.order")[..] else { panic!("{spans:?}") };
    let [first, second] = of("job", "test.order")[..] else { panic!("{spans:?}") };
    let [sent, attached] = of("submit", "test.step")[..] else { panic!("{spans:?}") };
    let [step] = of("job", "test.step")[..] else { panic!("{spans:?}") };
    assert_eq!((&*first["attempt"], &*second["attempt"], &*step["attempt"]), ("1", "2", "1"));
    // Each span and the one that it belongs to.
    for (span, parent) in [(first, submit), (second, submit), (sent, first), (attached, second), (step, sent)] {
        assert_eq!((&span["trace_id"], &span["parent_id"]), (&submit["trace_id"], &parent["span_id"]), "{spans:?}");
    }
    assert_eq!((&first["job"], &sent["job"]), (&second["job"], &attached["job"]));
}
