//! Submitting jobs and reading their results.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::join_all;
use ops_runtime::ErrorCode;
use ops_runtime::access::Identity;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::durable::record::Stored;
use ops_runtime::durable::{JobError, JobStatus, Jobs, SubmitOptions};
use ops_runtime::registry::Progress;
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::harness::{Harness, MAX_SIZE, Set, is_running, pause};
use crate::operations::*;

pub(crate) async fn typed_and_by_id<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Add>(AddInput { a: 40, b: 2 }, SubmitOptions::new()).await.unwrap();
    assert!(job.is_new());
    let envelope = job.result().await.unwrap();
    assert_eq!((envelope.data, envelope.meta.source()), (42, "local"));
    let job = set.jobs.submit_by_id("test.add", json!({ "a": 1, "b": 2 }), SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, 3);
    assert_eq!(job.status().await.unwrap(), JobStatus::Done);
    set.settled().await;
    worker.stop().await;
}

/// No worker can have such an operation.
pub(crate) async fn ids_that_name_no_operation<H: Harness>() {
    let set = Set::<H>::start().await;
    for id in ["", "nothing", ".add", "test."] {
        let error = set.jobs.submit_by_id(id, json!({}), SubmitOptions::new()).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError);
        let expected = format!("`{id}` is not an operation id: write `namespace.name`, the namespace without a dot");
        assert_eq!(error.message(), expected);
    }
    set.settled().await;
}

/// The error of a job lists all that is wrong with its input, like that of a call.
pub(crate) async fn all_that_is_wrong_with_an_input<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let input = json!({ "a": "one" });
    let job = set.jobs.submit_by_id("test.add", input.clone(), SubmitOptions::new()).await.unwrap();
    let error = job.result().await.unwrap_err();
    let called = set.registry().call("test.add", input).await.unwrap_err();
    assert_eq!((error.message(), error.details()), (called.message(), called.details()));
    let violations = error.details()["violations"].as_array().unwrap();
    let places: BTreeSet<_> = violations.iter().map(|violation| violation["pointer"].as_str().unwrap()).collect();
    assert_eq!(places, BTreeSet::from(["/a", "/b"]));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn taken_up_by_its_id<H: Harness>() {
    let set = Set::<H>::start().await;
    let id = {
        let submitter = set.others().await;
        let job = submitter.submit::<Add>(AddInput { a: 1, b: 2 }, SubmitOptions::new()).await.unwrap();
        job.id().to_string()
    };
    let job = set.jobs.job::<Add>(id.parse().unwrap());
    assert_eq!(job.status().await.unwrap(), JobStatus::Queued);
    // One waits already, one comes when it has ended.
    let waiting = {
        let job = job.clone();
        tokio::spawn(async move { job.result().await })
    };
    pause(50).await;
    let worker = set.worker().await;
    assert_eq!(waiting.await.unwrap().unwrap().data, 3);
    worker.stop().await;
    let late = set.others().await.job_by_id(id.parse().unwrap());
    assert_eq!(late.result().await.unwrap().data, 3);
    assert_eq!(late.result().await.unwrap().data, 3);
    set.settled().await;
}

pub(crate) async fn waits_for_a_worker<H: Harness>() {
    let set = Set::<H>::start().await;
    let job = set.jobs.submit::<Work>(named("a"), SubmitOptions::new()).await.unwrap();
    pause(200).await;
    assert_eq!(job.status().await.unwrap(), JobStatus::Queued);
    let stats = set.jobs.stats("jobs").await.unwrap();
    assert_eq!((stats.open, stats.running, stats.dead), (1, 0, 0));
    let worker = set.worker().await;
    assert_eq!(job.result().await.unwrap().data, 1);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn many_at_once<H: Harness>() {
    const MANY: i64 = 500;
    let set = Set::<H>::start().await;
    let workers = [set.worker().await, set.worker().await];
    let run = |n: i64| {
        let jobs = set.jobs.clone();
        async move {
            let job = jobs.submit::<Add>(AddInput { a: n, b: 1 }, SubmitOptions::new()).await.unwrap();
            job.result().await.unwrap().data
        }
    };
    let sums = join_all((0..MANY).map(run)).await;
    assert_eq!(sums, (1..=MANY).collect::<Vec<_>>());
    set.settled().await;
    for worker in workers {
        worker.stop().await;
    }
}

pub(crate) async fn there_is_no_such_job<H: Harness>() {
    let set = Set::<H>::start().await;
    let job = set.jobs.job_by_id("jobs.0.0123456789abcdef0123456789abcdef".parse().unwrap());
    let expected = Some(JobError::NotFound { job: job.id().clone() });
    assert_eq!(JobError::of(&job.result().await.unwrap_err()), expected);
    assert_eq!(JobError::of(&job.status().await.unwrap_err()), expected);
    assert_eq!(JobError::of(&job.cancel().await.unwrap_err()), expected);
    assert_eq!(JobError::of(&job.retry().await.unwrap_err()), expected);
    assert_eq!(JobError::of(&job.discard().await.unwrap_err()), expected);
    assert_eq!(JobError::of(&job.progress().await.map(drop).unwrap_err()), expected);
}

pub(crate) async fn of_another_operation<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Add>(AddInput { a: 1, b: 2 }, SubmitOptions::new()).await.unwrap();
    let error = set.jobs.job::<Work>(job.id().clone()).result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    assert_eq!(error.message(), format!("the job `{}` is of `test.add`, not of `test.work`", job.id()));
    worker.stop().await;
}

pub(crate) async fn big_inputs_and_results<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let envelope = 200;
    let fits = "x".repeat(MAX_SIZE - envelope);
    let job = set.jobs.submit::<Echo>(EchoInput { value: json!(fits) }, SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap().data, json!(fits));
    // To the byte: `{"value":"..."}`.
    let size = |text: &str| text.len() + r#"{"value":""}"#.len();
    let text = "x".repeat(MAX_SIZE - size("") + 1);
    let error = set.jobs.submit::<Echo>(EchoInput { value: json!(text) }, SubmitOptions::new()).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    let expected = format!("the input is {} bytes as JSON, and the engine takes up to {MAX_SIZE}", size(&text));
    assert!(error.message().starts_with(&expected), "{error}");
    assert_eq!(error.operation(), Some("test.echo"));
    // An input that just fits, whose result does not.
    let text = "x".repeat(MAX_SIZE - size(""));
    let job = set.jobs.submit::<Echo>(EchoInput { value: json!(text) }, SubmitOptions::new()).await.unwrap();
    let error = job.result().await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::ValidationError);
    assert!(error.message().contains(&format!("the engine keeps up to {MAX_SIZE}")), "{error}");
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn access_is_checked_when_it_runs<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let ann = set.jobs.scoped(Identity::new("ann").with_scope("vault:open").with_token("hush"));
    let bob = set.jobs.scoped(Identity::new("bob"));
    let of =
        async |jobs: &Jobs| jobs.submit::<Vault>(VaultInput {}, SubmitOptions::new()).await.unwrap().result().await;
    assert_eq!(of(&ann).await.unwrap().data.as_deref(), Some("ann"));
    assert_eq!(of(&bob).await.unwrap_err().code(), &ErrorCode::AccessDenied);
    assert_eq!(of(&set.jobs).await.unwrap().data, None);
    // No engine keeps the token.
    let later = SubmitOptions::new().with_delay(Duration::from_secs(60));
    let later = ann.submit::<Work>(named("a"), later).await.unwrap();
    let Stored::Open { job, .. } = later.stored().await.unwrap() else { panic!("it is open") };
    assert!(job.identity.unwrap().token().is_none());
    assert!(later.cancel().await.unwrap());
    // What a handler does by steps is its own business.
    let errand = bob.submit::<Errand>(ErrandInput {}, SubmitOptions::new()).await.unwrap();
    assert_eq!(errand.result().await.unwrap().data.as_deref(), Some("bob"));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn jobs_of_others_are_not_found<H: Harness>() {
    let set = Set::<H>::start().await;
    let ann = set.jobs.scoped(Identity::new("ann"));
    let bob = set.jobs.scoped(Identity::new("bob"));
    let own = ann.submit::<Work>(named("a"), SubmitOptions::new().with_key("k")).await.unwrap();
    let not_found = Some(JobError::NotFound { job: own.id().clone() });
    let of_bob = bob.job_by_id(own.id().clone());
    assert_eq!(JobError::of(&of_bob.status().await.unwrap_err()), not_found);
    assert_eq!(JobError::of(&of_bob.cancel().await.unwrap_err()), not_found);
    let worker = set.worker().await;
    assert_eq!(own.result().await.unwrap().data, 1);
    assert_eq!(JobError::of(&of_bob.result().await.unwrap_err()), not_found);
    assert_eq!(set.jobs.job_by_id(own.id().clone()).result().await.unwrap().data, 1);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn handlers_know_their_job<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let options = SubmitOptions::new().with_metadata("traceparent", trace).with_metadata("x", 7);
    let options = options.with_timeout(std::time::Duration::from_secs(3_600));
    let ann = set.jobs.scoped(Identity::new("ann"));
    let job = ann.submit::<Who>(WhoInput { nested: false }, options.clone()).await.unwrap();
    let mut who = job.result().await.unwrap().data;
    let left = who["deadline"].take().as_u64().unwrap();
    assert!((3_500..=3_600).contains(&left), "{left}");
    let key = job.id().as_str().rsplit('.').next().unwrap();
    let metadata = json!({ "traceparent": trace, "x": 7 });
    assert_eq!(who, json!({ "identity": "ann", "attempt": 1, "key": key, "metadata": metadata, "deadline": null }));
    // A call that the handler makes has no key: two of them would have the same.
    let job = ann.submit::<Who>(WhoInput { nested: true }, options).await.unwrap();
    let who = job.result().await.unwrap().data;
    assert_eq!((&who["key"], &who["identity"]), (&Value::Null, &json!("ann")));
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_subscription_is_no_job<H: Harness>() {
    let set = Set::<H>::start().await;
    let registry = set.registry();
    let numbers = Handler::dynamic_stream(|_: Value, _| async { Ok(futures_util::stream::empty().boxed()) });
    registry.register(Registration::new(OperationSpec::subscription("test.numbers"), numbers)).unwrap();
    let worker = set.worker_of(registry).await;
    let job = set.jobs.submit_by_id("test.numbers", json!({}), SubmitOptions::new()).await.unwrap();
    assert_eq!(job.result().await.unwrap_err().code(), &ErrorCode::ValidationError);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn progress_is_a_stream<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let job = set.jobs.submit::<Report>(ReportInput { times: 3 }, SubmitOptions::new()).await.unwrap();
    is_running(&job).await;
    // Two listen, one of them in another process.
    let far = set.others().await.job_by_id(job.id().clone());
    let (near, far) = (job.progress().await.unwrap(), far.progress().await.unwrap());
    // They may take a moment to be heard of by the other servers of a cluster.
    pause(2_000).await;
    set.probe.open();
    let expected: Vec<_> = (1..=3).map(|n| Progress::new(f64::from(n)).with_total(3.0)).collect();
    assert_eq!(near.collect::<Vec<_>>().await, expected);
    assert_eq!(far.collect::<Vec<_>>().await, expected);
    assert_eq!(job.result().await.unwrap().data, 3);
    assert_eq!(job.progress().await.unwrap().count().await, 0);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn names_of_queues<H: Harness>() {
    let set = Set::<H>::start().await;
    for name in ["", "Jobs", "a.b", "a*", ">", "ä", &"a".repeat(65)] {
        let jobs = Jobs::new(set.harness.engine().await).with_queue("test.*", name);
        let error = jobs.submit::<Add>(AddInput { a: 1, b: 1 }, SubmitOptions::new()).await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::ValidationError);
        assert!(error.message().contains("is no name of a queue"), "{error}");
        assert_eq!(jobs.stats(name).await.unwrap_err().code(), &ErrorCode::ValidationError);
        assert_eq!(jobs.queues(), ["jobs"]);
    }
}
