//! Keys: a repeat of a submit attaches to the first.

use std::time::Duration;

use futures_util::future::join_all;
use ops_runtime::access::Identity;
use ops_runtime::durable::{JobError, SubmitOptions};
use serde_json::json;

use crate::harness::{Harness, Set, attempts, is_running, pause};
use crate::operations::*;

fn key(key: &str) -> SubmitOptions {
    SubmitOptions::new().with_key(key)
}

pub(crate) async fn a_repeat_attaches<H: Harness>() {
    let set = Set::<H>::start().await;
    let submit = async || set.jobs.submit::<Gate>(GateInput { name: "a".into() }, key("k")).await.unwrap();
    let first = submit().await;
    let queued = submit().await;
    let worker = set.worker().await;
    is_running(&first).await;
    let running = submit().await;
    set.probe.open();
    assert_eq!(first.result().await.unwrap().data, 1);
    let ended = submit().await;
    for job in [&queued, &running, &ended] {
        assert_eq!((job.id(), job.is_new()), (first.id(), false));
        assert_eq!(job.result().await.unwrap().data, 1);
    }
    assert!(first.is_new());
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

/// It would be one key for all who forgot theirs.
pub(crate) async fn without_characters<H: Harness>() {
    let set = Set::<H>::start().await;
    for empty in ["", " "] {
        let error = set.jobs.submit::<Work>(named("a"), key(empty)).await.unwrap_err();
        assert_eq!((error.code().as_str(), error.operation()), ("VALIDATION_ERROR", Some("test.work")));
        assert!(error.message().starts_with("the key is empty or blank"), "{error}");
    }
    set.settled().await;
}

pub(crate) async fn another_input_is_a_conflict<H: Harness>() {
    let set = Set::<H>::start().await;
    let submit = async |input| set.jobs.submit_by_id("test.add", input, key("k")).await;
    let first = submit(json!({ "a": 1, "b": 2 })).await.unwrap();
    let conflict = Some(JobError::Conflict { job: first.id().clone() });
    let error = submit(json!({ "a": 1, "b": 3 })).await.unwrap_err();
    assert_eq!(JobError::of(&error), conflict);
    assert_eq!((error.code().as_str(), error.operation()), ("KEY_CONFLICT", Some("test.add")));
    // The order of members makes no other input.
    assert_eq!(submit(json!({ "b": 2, "a": 1 })).await.unwrap().id(), first.id());
    let worker = set.worker().await;
    assert_eq!(first.result().await.unwrap().data, 3);
    // Nor does it matter that it has ended.
    assert_eq!(JobError::of(&submit(json!({ "a": 2, "b": 1 })).await.unwrap_err()), conflict);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn a_key_is_of_its_operation_tenant_and_identity<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let (ann, empty) = (set.jobs.scoped(Identity::new("ann")), set.jobs.scoped(Identity::new("")));
    let jobs = [
        set.jobs.submit::<Work>(named("a"), key("k")).await.unwrap().into_any(),
        set.jobs.submit::<Work>(named("a"), key("K")).await.unwrap().into_any(),
        set.jobs.submit::<Work>(named("a"), key("k").with_tenant("acme")).await.unwrap().into_any(),
        set.jobs.submit::<Render>(RenderInput { name: "a".into() }, key("k")).await.unwrap().into_any(),
        ann.submit::<Work>(named("a"), key("k")).await.unwrap().into_any(),
        // An empty text is not the same as none.
        empty.submit::<Work>(named("a"), key("k")).await.unwrap().into_any(),
        set.jobs.submit::<Work>(named("a"), key("k").with_tenant("")).await.unwrap().into_any(),
        empty.submit::<Work>(named("a"), key("k").with_tenant("")).await.unwrap().into_any(),
    ];
    for job in &jobs {
        assert!(job.is_new());
        assert_eq!(job.result().await.unwrap().data, 1);
    }
    assert_eq!(set.probe.starts("a"), jobs.len());
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn fifty_at_once_make_one_job<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let others = set.others().await;
    let submits = (0..50).map(|n| {
        let jobs = if n % 2 == 0 { set.jobs.clone() } else { others.clone() };
        async move {
            let job = jobs.submit::<Work>(named("a"), key("k")).await.unwrap();
            (job.is_new(), job.result().await.unwrap().data)
        }
    });
    let results = join_all(submits).await;
    assert_eq!(results.iter().filter(|(is_new, _)| *is_new).count(), 1);
    assert!(results.iter().all(|(_, attempt)| *attempt == 1));
    assert_eq!(set.probe.starts("a"), 1);
    set.settled().await;
    worker.stop().await;
}

/// Repeats that come at any moment around the end of the first neither run it again nor get lost.
pub(crate) async fn a_repeat_while_the_first_ends<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    for round in 0..20 {
        let name = format!("round-{round}");
        let input = WorkInput { millis: Some(10), ..named(&name) };
        let first = set.jobs.submit::<Work>(input.clone(), key(&name)).await.unwrap();
        let repeats = (0..10).map(|n| {
            let (jobs, input, name) = (set.jobs.clone(), input.clone(), name.clone());
            async move {
                pause(2 * n + round % 3).await;
                let job = jobs.submit::<Work>(input, key(&name)).await.unwrap();
                (job.is_new(), job.result().await.unwrap().data)
            }
        });
        assert_eq!(join_all(repeats).await, vec![(false, 1); 10]);
        assert_eq!(first.result().await.unwrap().data, 1);
        assert_eq!(set.probe.starts(&name), 1);
    }
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn retention_frees_the_key<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let options = || key("k").with_retention(Duration::from_secs(6));
    let first = set.jobs.submit::<Work>(named("a"), options()).await.unwrap();
    assert_eq!(first.result().await.unwrap().data, 1);
    pause(500).await;
    assert!(!set.jobs.submit::<Work>(named("a"), options()).await.unwrap().is_new());
    let mut again = None;
    for _ in 0..200 {
        pause(100).await;
        // Another input, too, once the key is free.
        match set.jobs.submit::<Work>(failing("a", 0), options()).await {
            Ok(job) => {
                again = Some(job);
                break;
            }
            Err(error) => assert!(matches!(JobError::of(&error), Some(JobError::Conflict { .. })), "{error}"),
        }
    }
    let again = again.expect("the key is free again");
    assert!(again.is_new());
    assert_eq!(again.id(), first.id());
    assert_eq!(again.result().await.unwrap().data, 1);
    assert_eq!(set.probe.starts("a"), 2);
    set.settled().await;
    worker.stop().await;
}

/// Who submits a key again after a dead letter was discarded gets nothing of what the steps of the former job gave.
pub(crate) async fn a_freed_key_has_new_steps<H: Harness>() {
    let set = Set::<H>::start().await;
    let worker = set.worker().await;
    let submit = async |fails| {
        let options = attempts(2).with_key("k");
        set.jobs.submit::<Order>(OrderInput { name: "a".into(), fails }, options).await.unwrap()
    };
    let starts = || ["a", "a-charge", "a-label"].map(|name| set.probe.starts(name));
    let first = submit(9).await;
    assert!(first.result().await.is_err());
    assert_eq!(starts(), [2, 2, 1]);
    // Whoever tries it again goes on behind them.
    assert!(first.retry().await.unwrap());
    assert!(first.result().await.is_err());
    assert_eq!(starts(), [4, 2, 1]);
    assert!(first.discard().await.unwrap());
    let second = submit(1).await;
    assert_eq!((second.is_new(), second.id()), (true, first.id()));
    let result = second.result().await.unwrap().data;
    assert_eq!((&result["charged"], &result["attempt"]), (&json!(2), &json!(2)));
    assert_eq!(starts(), [6, 4, 2]);
    set.settled().await;
    worker.stop().await;
}

pub(crate) async fn found_by_its_key<H: Harness>() {
    let set = Set::<H>::start().await;
    let ann = set.jobs.scoped(Identity::new("ann"));
    let own = ann.submit::<Work>(named("a"), key("k").with_tenant("acme")).await.unwrap();
    let found = ann.job_by_key::<Work>("k", Some("acme")).unwrap();
    assert_eq!((found.id(), found.is_new()), (own.id(), false));
    // The key of somebody else, of another tenant, or another key.
    let others = [
        set.jobs.job_by_key::<Work>("k", Some("acme")),
        ann.job_by_key::<Work>("k", None),
        ann.job_by_key::<Work>("K", Some("acme")),
    ];
    for other in others {
        let error = other.unwrap().status().await.unwrap_err();
        assert!(matches!(JobError::of(&error), Some(JobError::NotFound { .. })), "{error}");
    }
    let worker = set.worker().await;
    assert_eq!(found.result().await.unwrap().data, 1);
    assert_eq!(found.stored().await.unwrap().key(), Some("k"));
    // In a queue of its own.
    let render = set.jobs.submit::<Render>(RenderInput { name: "b".into() }, key("k")).await.unwrap();
    assert_eq!(set.jobs.job_by_key::<Render>("k", None).unwrap().id(), render.id());
    let invalid = set.jobs.clone().with_queue("test.work", "No").job_by_key::<Work>("k", None);
    assert_eq!(invalid.unwrap_err().code().as_str(), "VALIDATION_ERROR");
    set.settled().await;
    worker.stop().await;
}
