//! Several workers, and workers that go away.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use ops_runtime::ErrorCode;
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::CallHandler;
use ops_runtime::spec::OperationSpec;
use serde_json::{Value, json};

use crate::harness::{Harness, Set, Working, another, eventually};
use crate::operations::{Wait, WaitInput};

pub(crate) async fn each_request_is_started_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let mut workers = Vec::new();
    let mut probes = vec![set.probe.clone()];
    for _ in 0..3 {
        let (worker, probe) = another(&set.harness).await;
        workers.push(worker);
        probes.push(probe);
    }
    let starts = || probes.iter().map(|probe| probe.starts()).collect::<Vec<_>>();
    let mut done = 0;
    // At least 400, and until all are known and have got something.
    while done < 400 || starts().iter().any(HashMap::is_empty) {
        assert!(done < 20_000, "a worker gets nothing");
        let calls = (done..done + 100).map(|n| {
            let (remote, input) = (set.remote.clone(), WaitInput { key: n.to_string(), milliseconds: 5 });
            tokio::spawn(async move { remote.execute::<Wait>(input).await.unwrap().data })
        });
        for (n, key) in join_all(calls).await.into_iter().enumerate() {
            assert_eq!(key.unwrap(), (done + n).to_string());
        }
        done += 100;
    }
    assert!(starts().iter().flat_map(HashMap::values).all(|count| *count == 1));
    assert_eq!(starts().iter().map(HashMap::len).sum::<usize>(), done);
    set.settled().await;
    for worker in workers {
        worker.stop().await;
    }
}

pub(crate) async fn killed_with_calls_in_flight<H: Harness>() {
    let Set { harness, worker, remote, probe } = Set::<H>::start().await;
    let calls: Vec<_> = (0..100)
        .map(|n| {
            let (remote, input) = (remote.clone(), WaitInput { key: n.to_string(), milliseconds: 600_000 });
            tokio::spawn(async move { remote.execute::<Wait>(input).await })
        })
        .collect();
    eventually("all handlers run", || probe.alive() == 100).await;
    worker.kill().await;
    for call in calls {
        let error = call.await.unwrap().unwrap_err();
        assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::Aborted, true), "{error:?}");
    }
    assert_eq!(remote.in_flight(), 0);
    eventually("no handler is left", || probe.alive() == 0).await;
    // Another takes its place.
    let (worker, probe) = another(&harness).await;
    // What the first one served may be listed until the caller hears that it is gone: till then a call that comes before
    // the second one's announcement is refused, and started nowhere.
    let started = std::time::Instant::now();
    let answer = loop {
        let input = WaitInput { key: "new".to_owned(), milliseconds: 1 };
        match remote.execute::<Wait>(input).await {
            Err(error) if *error.code() == ErrorCode::OperationNotFound => {
                assert!(started.elapsed().as_secs() < 30, "nobody takes its place: {error}");
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
            answer => break answer.unwrap(),
        }
    };
    assert_eq!(answer.data, "new");
    assert_eq!(probe.starts()["new"], 1);
    worker.stop().await;
}

pub(crate) async fn announced_later<H: Harness>() {
    let harness = H::start().await;
    let registry = ops_runtime::Registry::new();
    let worker = harness.worker(CallHandler::new(registry.clone())).await;
    let remote = harness.caller().await;
    let spec = || OperationSpec::new(ops_runtime::spec::OperationKind::Query, "late", "operation").unwrap();
    let handler = |value: Value| {
        Handler::dynamic(move |_: Value, _| {
            let value = value.clone();
            async move { Ok(value) }
        })
    };
    registry.register(Registration::new(spec(), handler(json!(1)))).unwrap();
    worker.announce().await;
    eventually("it is announced", || !remote.list().is_empty()).await;
    assert_eq!(remote.call("late.operation", json!(null)).await.unwrap().data, 1);
    // Another of the same name: what is called by its id follows.
    let mut changed = spec();
    changed.output = ops_runtime::spec::Schema::text(r#"{"type":"string"}"#);
    registry.replace(Registration::new(changed, handler(json!("two")))).unwrap();
    worker.announce().await;
    eventually("the change is announced", || !remote.list()[0].output.is_any()).await;
    assert_eq!(remote.call("late.operation", json!(null)).await.unwrap().data, "two");
    registry.remove("late.operation");
    worker.announce().await;
    eventually("it is withdrawn", || remote.list().is_empty()).await;
    let error = remote.call("late.operation", json!(null)).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::OperationNotFound);
    assert_eq!((error.message(), error.is_retryable()), ("no worker serves the operation now: `late.operation`", true));
    worker.stop().await;
}

pub(crate) async fn one_of_two_stops<H: Harness>() {
    let set = Set::<H>::start().await;
    let (other, probe) = another(&set.harness).await;
    let remote = set.remote.clone();
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopping = stop.clone();
    let calls = tokio::spawn(async move {
        let mut done = 0;
        while !stopping.load(std::sync::atomic::Ordering::SeqCst) {
            let calls =
                (0..20).map(|n| remote.execute::<Wait>(WaitInput { key: format!("{done}-{n}"), milliseconds: 2 }));
            for answer in join_all(calls).await {
                answer.unwrap();
                done += 1;
            }
        }
        done
    });
    eventually("both have started some", || !probe.starts().is_empty() && !set.probe.starts().is_empty()).await;
    other.stop().await;
    let before = set.probe.starts().len();
    eventually("the other goes on", || set.probe.starts().len() > before + 20).await;
    stop.store(true, std::sync::atomic::Ordering::SeqCst);
    // None was lost, none failed.
    let done = calls.await.unwrap();
    assert_eq!(set.probe.starts().len() + probe.starts().len(), done);
    set.settled().await;
}

pub(crate) async fn described_by_one_that_is_left<H: Harness>() {
    let harness = H::start().await;
    let worker = async |description: &str| {
        let mut spec = OperationSpec::new(ops_runtime::spec::OperationKind::Query, "two", "versions").unwrap();
        spec.description = description.to_owned().into();
        let registry = ops_runtime::Registry::new();
        let handler = Handler::dynamic(|input: Value, _| async move { Ok(input) });
        registry.register(Registration::new(spec, handler)).unwrap();
        harness.worker(CallHandler::new(registry)).await
    };
    let remote = harness.caller().await;
    let described = |expected: &str| remote.list().iter().any(|spec| spec.description == expected);
    let old = worker("old").await;
    eventually("the old one is announced", || described("old")).await;
    let new = worker("new").await;
    eventually("the new one is announced", || described("new")).await;
    new.stop().await;
    eventually("the old one is what is left", || described("old")).await;
    assert_eq!(remote.call("two.versions", json!(1)).await.unwrap().data, 1);
    old.stop().await;
    eventually("nothing is left", || remote.list().is_empty()).await;
}
