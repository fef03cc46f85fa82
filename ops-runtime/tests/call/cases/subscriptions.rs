//! Subscriptions.

use std::time::Duration;

use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use ops_runtime::adapter::{Handler, Registration};
use ops_runtime::call::CallHandler;
use ops_runtime::registry::{CancelToken, EnvelopeStream};
use ops_runtime::spec::{OperationKind, OperationSpec};
use ops_runtime::{CallError, CallOptions, ErrorCode, Registry, ResponseEnvelope};
use serde_json::{Value, json};

use crate::harness::{Harness, Set, Working, eventually};
use crate::operations::{
    Add, AddInput, Count, CountInput, FailAfter, FailAfterInput, Script, ScriptInput, SilentAfter, SilentAfterInput,
};

pub(crate) async fn finite<H: Harness>() {
    let set = Set::<H>::start().await;
    for to in [0, 1, 63, 64, 65, 1_000] {
        let items = set.remote.subscribe::<Count>(CountInput { to }).await.unwrap();
        let items: Vec<_> = items.map(|item| item.unwrap().data).collect().await;
        assert_eq!(items, (0..to).collect::<Vec<_>>());
    }
    let items = set.remote.stream("test.count", json!({ "to": 3 })).await.unwrap();
    let items: Vec<_> = items.map(|item| item.unwrap().data).collect().await;
    assert_eq!(items, [json!(0), json!(1), json!(2)]);
    set.settled().await;
}

pub(crate) async fn in_order<H: Harness>() {
    let set = Set::<H>::start().await;
    let items = set.remote.subscribe::<Count>(CountInput { to: 5_000 }).await.unwrap();
    let items: Vec<_> = items.map(|item| item.unwrap().data).collect().await;
    assert!(items.into_iter().eq(0..5_000));
    set.settled().await;
}

pub(crate) async fn endless_until_the_caller_stops<H: Harness>() {
    let set = Set::<H>::start().await;
    let mut items = set.remote.subscribe::<Count>(CountInput { to: u64::MAX }).await.unwrap();
    for n in 0..500 {
        assert_eq!(items.next().await.unwrap().unwrap().data, n);
    }
    assert_eq!(set.probe.alive(), 1);
    drop(items);
    set.settled().await;
}

pub(crate) async fn ended_by_the_worker<H: Harness>() {
    let Set { harness, worker, remote, probe } = Set::<H>::start().await;
    let mut items = remote.subscribe::<SilentAfter>(SilentAfterInput { items: 2 }).await.unwrap();
    assert_eq!(items.next().await.unwrap().unwrap().data, 0);
    worker.kill().await;
    let mut rest: Vec<_> = items.collect().await;
    let error = rest.pop().unwrap().unwrap_err();
    assert_eq!(*error.code(), ErrorCode::Aborted, "{error}");
    assert!(rest.len() <= 1);
    eventually("no request is pending", || remote.in_flight() == 0).await;
    eventually("no handler is left", || probe.alive() == 0).await;
    drop(harness);
}

pub(crate) async fn failing_midway<H: Harness>() {
    let set = Set::<H>::start().await;
    for after in [0, 3, 200] {
        let items = set.remote.subscribe::<FailAfter>(FailAfterInput { items: after }).await.unwrap();
        let mut items: Vec<_> = items.collect().await;
        let error = items.pop().unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Domain("OUT_OF_STOCK".into()));
        assert!(items.into_iter().map(|item| item.unwrap().data).eq(0..after));
    }
    set.settled().await;
}

/// What a subscriber sees of the items.
async fn seen<T: serde::Serialize>(items: EnvelopeStream<T>) -> Vec<Value> {
    let see = |item: Result<ResponseEnvelope<T>, CallError>| match item {
        Ok(envelope) => json!({ "data": envelope.data }),
        Err(error) => serde_json::to_value(error).unwrap(),
    };
    items.map(see).collect().await
}

pub(crate) async fn errors_among_the_items<H: Harness>() {
    let set = Set::<H>::start().await;
    let local = crate::operations::registry(&Default::default());
    let (one, two, failed) = (Some(1), Some(2), None);
    let scripts = [
        vec![failed],
        vec![one, failed, two],
        vec![failed, failed],
        vec![one, failed, failed, two, failed],
        vec![one, two, failed],
        vec![failed; 300],
        (0..500).map(|n| Some(n).filter(|n| n % 3 > 0)).collect(),
    ];
    for (script, pauses) in scripts.iter().flat_map(|script| [(script, false), (script, true)]) {
        let input = || ScriptInput { items: script.clone(), pauses, stays: false };
        let expected = seen(local.subscribe::<Script>(input()).await.unwrap()).await;
        assert_eq!(expected.len(), script.len());
        assert_eq!(seen(set.remote.subscribe::<Script>(input()).await.unwrap()).await, expected);
        let input = serde_json::to_value(input()).unwrap();
        assert_eq!(seen(set.remote.stream("test.script", input).await.unwrap()).await, expected);
    }
    set.settled().await;
}

pub(crate) async fn errors_among_the_items_and_an_abort<H: Harness>() {
    let set = Set::<H>::start().await;
    for (pauses, cancels) in [(false, false), (true, false), (false, true), (true, true)] {
        let cancel = CancelToken::new();
        let options = CallOptions::new().with_cancel(cancel.clone());
        let input = ScriptInput { items: vec![Some(1), None, None, Some(2)], pauses, stays: true };
        let mut items = set.remote.subscribe_with::<Script>(input, options).await.unwrap();
        assert_eq!(items.next().await.unwrap().unwrap().data, 1);
        for _ in 0..2 {
            assert_eq!(*items.next().await.unwrap().unwrap_err().code(), ErrorCode::Domain("OUT_OF_STOCK".into()));
        }
        if cancels {
            assert_eq!(items.next().await.unwrap().unwrap().data, 2);
            cancel.cancel();
            assert_eq!(*items.next().await.unwrap().unwrap_err().code(), ErrorCode::Aborted);
            assert!(items.next().await.is_none());
        }
        drop(items);
        set.settled().await;
    }
    // And a worker that goes away after an item that failed and one too many.
    let Set { harness, worker, remote, .. } = set;
    let input = ScriptInput { items: vec![None, Some(1)], pauses: true, stays: true };
    let mut items = remote.subscribe::<Script>(input).await.unwrap();
    assert_eq!(*items.next().await.unwrap().unwrap_err().code(), ErrorCode::Domain("OUT_OF_STOCK".into()));
    assert_eq!(items.next().await.unwrap().unwrap().data, 1);
    worker.kill().await;
    assert_eq!(*items.next().await.unwrap().unwrap_err().code(), ErrorCode::Aborted);
    assert!(items.next().await.is_none());
    eventually("no request is pending", || remote.in_flight() == 0).await;
    drop(harness);
}

pub(crate) async fn refused_before_the_first_item<H: Harness>() {
    let set = Set::<H>::start().await;
    let error = match set.remote.stream("test.count", json!({ "to": "many" })).await {
        Err(error) => error,
        Ok(items) => items.collect::<Vec<_>>().await.pop().unwrap().unwrap_err(),
    };
    assert_eq!(*error.code(), ErrorCode::ValidationError);
    set.settled().await;
}

pub(crate) async fn slow_readers_hold_up_nobody<H: Harness>() {
    let set = Set::<H>::start().await;
    let mut slow = set.remote.subscribe::<Count>(CountInput { to: 100_000 }).await.unwrap();
    assert_eq!(slow.next().await.unwrap().unwrap().data, 0);
    // The worker makes what the window allows, and waits.
    eventually("the window is full", || set.probe.made() >= 64).await;
    for _ in 0..20 {
        assert_eq!(set.remote.execute::<Add>(AddInput { a: 1, b: 1 }).await.unwrap().data, 2);
    }
    let items = set.remote.subscribe::<Count>(CountInput { to: 500 }).await.unwrap();
    assert_eq!(items.collect::<Vec<_>>().await.len(), 500);
    assert!(set.probe.made() <= 500 + 200, "{} items were made for a reader of one", set.probe.made());
    // And nothing is lost for it.
    for n in 1..2_000 {
        assert_eq!(slow.next().await.unwrap().unwrap().data, n);
    }
    drop(slow);
    set.settled().await;
}

pub(crate) async fn nobody_reads<H: Harness>() {
    let set = Set::<H>::start().await;
    let idle: Vec<_> = join_all((0..50).map(|_| set.remote.subscribe::<Count>(CountInput { to: u64::MAX }))).await;
    let idle: Vec<_> = idle.into_iter().map(Result::unwrap).collect();
    eventually("every window is full", || set.probe.made() >= 50 * 64).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(set.probe.made() <= 50 * 130, "{} items were made for nobody", set.probe.made());
    drop(idle);
    set.settled().await;
}

pub(crate) async fn silent_ones_time_out<H: Harness>() {
    let set = Set::<H>::start().await;
    // Each item comes within that time, on a busy machine, too.
    let idle = || CallOptions::new().with_idle_timeout(Duration::from_secs(3));
    let silent = async {
        let input = SilentAfterInput { items: 3 };
        let items = set.remote.subscribe_with::<SilentAfter>(input, idle()).await.unwrap();
        let mut items: Vec<_> = items.collect().await;
        let error = items.pop().unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
        assert_eq!(error.details()["idleTimeout"], 3_000);
        assert_eq!(items.len(), 3);
    };
    // An item that failed and one too many: the idle timeout is the end, after both.
    let among_errors = async {
        let input = ScriptInput { items: vec![None, Some(1)], pauses: false, stays: true };
        let items = seen(set.remote.subscribe_with::<Script>(input, idle()).await.unwrap()).await;
        let codes: Vec<_> = items.iter().map(|item| item["code"].as_str().unwrap_or("OK")).collect();
        assert_eq!(codes, ["OUT_OF_STOCK", "OK", "TIMEOUT"]);
    };
    // A deadline is of the subscription as a whole.
    let with_deadline = async {
        let options = CallOptions::new().with_timeout(Duration::from_millis(400));
        let input = SilentAfterInput { items: 1 };
        let items = set.remote.subscribe_with::<SilentAfter>(input, options).await.unwrap();
        let error = items.collect::<Vec<_>>().await.pop().unwrap().unwrap_err();
        assert_eq!(*error.code(), ErrorCode::Timeout, "{error}");
    };
    tokio::join!(silent, among_errors, with_deadline);
    set.settled().await;
}

pub(crate) async fn many_at_once<H: Harness>() {
    let set = Set::<H>::start().await;
    let all = (0..100).map(|n| {
        let remote = set.remote.clone();
        tokio::spawn(async move {
            let items = remote.subscribe::<Count>(CountInput { to: n }).await.unwrap();
            assert!(items.map(|item| item.unwrap().data).collect::<Vec<_>>().await.into_iter().eq(0..n));
        })
    });
    for one in join_all(all).await {
        one.unwrap();
    }
    set.settled().await;
    assert_eq!(set.worker.running(), 0);
}

pub(crate) async fn taken_for_another_kind<H: Harness>() {
    let set = Set::<H>::start().await;
    let error = set.remote.call("test.count", json!({ "to": 3 })).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
    assert!(error.message().contains("use `subscribe` or `stream`"), "{error}");
    let error = match set.remote.stream("test.add", json!({ "a": 1, "b": 1 })).await {
        Err(error) => error,
        Ok(items) => items.collect::<Vec<_>>().await.pop().unwrap().unwrap_err(),
    };
    assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
    assert!(error.message().contains("use `execute` or `call`"), "{error}");
    // The first item is no result, whatever the types of the caller say.
    let error = set.remote.execute::<stale::Count>(stale::CountInput { to: 3 }).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::ExecutionError, "{error}");
    assert!(error.message().contains("use `subscribe` or `stream`"), "{error}");
    set.settled().await;
}

/// Operations as they were before the worker's.
mod stale {
    use ops_runtime::operation;

    /// Counts, and gives how far.
    #[operation(namespace = "test", kind = query)]
    pub(super) async fn count(to: u64) -> u64 {
        to
    }
}

pub(crate) async fn with_a_window_of_nothing<H: Harness>() {
    let set = Set::<H>::start().await;
    let remote = set.remote.clone().with_window(0);
    let items = remote.subscribe::<Count>(CountInput { to: 200 }).await.unwrap();
    assert!(items.map(|item| item.unwrap().data).collect::<Vec<_>>().await.into_iter().eq(0..200));
    set.settled().await;
}

/// An item that is too large for the transport is an error, and what is after it comes, however small the window is.
pub(crate) async fn items_that_are_too_large<H: Harness>() {
    let harness = H::start().await;
    let registry = Registry::new();
    let spec = OperationSpec::new(OperationKind::Subscription, "sized", "texts").unwrap();
    let handler = Handler::dynamic_stream(|input: Value, _| async move {
        let sizes: Vec<usize> = serde_json::from_value(input).unwrap();
        Ok(stream::iter(sizes).map(|bytes| Ok(json!("x".repeat(bytes)))))
    });
    registry.register(Registration::new(spec, handler)).unwrap();
    let worker = harness.worker(CallHandler::new(registry)).await;
    let remote = harness.caller().await;
    eventually("it is announced", || remote.list().len() == 1).await;
    let limit = remote.info().max_message;
    let large = limit.unwrap_or(1 << 20) + 1;
    let sizes = [large, 1, 2, large, large, 3, 4];
    for remote in [remote.clone().with_window(1), remote.clone()] {
        let items = remote.stream("sized.texts", json!(sizes)).await.unwrap();
        let items: Vec<_> = items.collect().await;
        assert_eq!(items.len(), sizes.len());
        for (item, bytes) in items.into_iter().zip(sizes) {
            match (item, limit) {
                (Err(error), Some(limit)) if bytes == large => assert_eq!(error.details()["limit"], limit, "{error:?}"),
                (item, _) => assert_eq!(item.unwrap().data.as_str().unwrap().len(), bytes),
            }
        }
    }
    eventually("no request is pending", || remote.in_flight() == 0).await;
    eventually("no task is left", || worker.running() == 0).await;
}
