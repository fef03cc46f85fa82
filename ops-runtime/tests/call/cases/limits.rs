//! Deadlines, aborts and ends.

use std::time::Duration;

use ops_runtime::registry::CancelToken;
use ops_runtime::{CallOptions, ErrorCode};

use crate::harness::{Harness, LONG, Set, Working, eventually, stopped};
use crate::operations::{About, AboutInput, Outer, OuterInput, Wait, WaitInput};

fn long() -> WaitInput {
    WaitInput { key: "long".to_owned(), milliseconds: LONG }
}

pub(crate) async fn the_deadline_is_enforced_on_both_sides<H: Harness>() {
    let set = Set::<H>::start().await;
    let options = CallOptions::new().with_timeout(Duration::from_millis(300));
    let error = set.remote.execute_with::<Wait>(long(), options).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Timeout);
    set.settled().await;
    // One that has passed already.
    let options = CallOptions::new().with_timeout(Duration::ZERO);
    let error = set.remote.execute_with::<Wait>(long(), options).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Timeout);
    set.settled().await;
}

pub(crate) async fn the_deadline_travels<H: Harness>() {
    let set = Set::<H>::start().await;
    let about = set.remote.execute::<About>(AboutInput {}).await.unwrap().data;
    assert_eq!(about["hasDeadline"], false);
    let options = CallOptions::new().with_timeout(Duration::from_secs(100));
    let about = set.remote.execute_with::<About>(AboutInput {}, options).await.unwrap().data;
    assert_eq!(about["hasDeadline"], true);
}

pub(crate) async fn a_dropped_call_is_aborted<H: Harness>() {
    let set = Set::<H>::start().await;
    for _ in 0..10 {
        let remote = set.remote.clone();
        let call = tokio::spawn(async move { remote.execute::<Wait>(long()).await });
        eventually("the handler runs", || set.probe.alive() == 1).await;
        call.abort();
        set.settled().await;
    }
}

pub(crate) async fn a_cancelled_call_is_aborted<H: Harness>() {
    let set = Set::<H>::start().await;
    let cancel = CancelToken::new();
    let options = CallOptions::new().with_cancel(cancel.clone());
    let (remote, input) = (set.remote.clone(), long());
    let call = tokio::spawn(async move { remote.execute_with::<Wait>(input, options).await });
    eventually("the handler runs", || set.probe.alive() == 1).await;
    cancel.cancel();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!((error.code(), error.is_retryable()), (&ErrorCode::Aborted, false), "{error:?}");
    set.settled().await;
}

pub(crate) async fn an_abort_drops_nested_calls<H: Harness>() {
    let set = Set::<H>::start().await;
    let remote = set.remote.clone();
    let call = tokio::spawn(async move { remote.execute::<Outer>(OuterInput { milliseconds: LONG }).await });
    eventually("both handlers run", || set.probe.alive() == 2).await;
    call.abort();
    set.settled().await;
}

pub(crate) async fn a_worker_that_stops_finishes<H: Harness>() {
    let Set { harness, worker, remote, probe } = Set::<H>::start().await;
    let calls: Vec<_> = (0..20)
        .map(|n| {
            let remote = remote.clone();
            let input = WaitInput { key: n.to_string(), milliseconds: LONG };
            tokio::spawn(async move { remote.execute::<Wait>(input).await })
        })
        .collect();
    eventually("all handlers run", || probe.alive() == 20).await;
    stopped(&probe, worker.stop()).await;
    for (n, call) in calls.into_iter().enumerate() {
        assert_eq!(call.await.unwrap().unwrap().data, n.to_string());
    }
    eventually("nothing is announced", || remote.list().is_empty()).await;
    let error = remote.execute::<About>(AboutInput {}).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::OperationNotFound, "{error}");
    assert_eq!((error.message(), error.is_retryable()), ("no worker serves the operation now: `test.about`", true));
    assert_eq!((remote.in_flight(), probe.alive()), (0, 0));
    drop(harness);
}
