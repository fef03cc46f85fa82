//! How calls end from outside: deadlines and cancellation.

use super::*;

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[tokio::test]
async fn a_handler_that_outlives_its_deadline_is_dropped() {
    let registry = Registry::new();
    let dropped = Arc::new(AtomicBool::new(false));
    let flag = dropped.clone();
    registry
        .register(Registration::call::<Slow, _, _>(move |_, _| {
            let flag = Flag(flag.clone());
            async move {
                std::future::pending::<()>().await;
                drop(flag);
                Ok(Reply::Value(0))
            }
        }))
        .unwrap();
    let started = Instant::now();
    let error = registry.execute::<Slow>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(started.elapsed() < Duration::from_secs(5));
    assert!(dropped.load(Ordering::SeqCst));
    let cancel = CancelToken::new();
    let call = registry.execute_with::<Slow>(json!({}), CallOptions::new().with_cancel(cancel.clone()));
    cancel.cancel();
    assert_eq!(call.await.unwrap_err().code(), &ErrorCode::Aborted);
}

#[tokio::test]
async fn a_call_after_its_deadline_or_its_end_is_not_begun() {
    let registry = registry();
    let runs = Arc::new(AtomicUsize::new(0));
    let (counted, of_stream, of_id) = (runs.clone(), runs.clone(), runs.clone());
    let double = move |n: i64, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        async move { Ok(Reply::Value(2 * n)) }
    };
    registry.replace(Registration::call::<Double, _, _>(double)).unwrap();
    let count = move |_, _| {
        of_stream.fetch_add(1, Ordering::SeqCst);
        async { Ok(futures_util::stream::empty()) }
    };
    registry.register(Registration::subscription::<Count, _, _, _>(count)).unwrap();
    let handler = Handler::dynamic(move |input: Value, _| {
        of_id.fetch_add(1, Ordering::SeqCst);
        async move { Ok(input) }
    });
    registry.register(Registration::new(OperationSpec::query("any.echo"), handler)).unwrap();
    let cancelled = CancelToken::new();
    cancelled.cancel();
    for (options, code) in [
        (CallOptions::new().with_deadline(Instant::now()), ErrorCode::Timeout),
        (CallOptions::new().with_timeout(Duration::ZERO), ErrorCode::Timeout),
        (CallOptions::new().with_cancel(cancelled), ErrorCode::Aborted),
    ] {
        let error = registry.execute_with::<Double>(1, options.clone()).await.unwrap_err();
        assert_eq!((error.code(), error.operation()), (&code, Some("math.double")));
        assert_eq!(registry.call_with("any.echo", json!(1), options.clone()).await.unwrap_err().code(), &code);
        assert_eq!(registry.subscribe_with::<Count>(1_u32, options).await.err().unwrap().code(), &code);
    }
    assert_eq!(runs.load(Ordering::SeqCst), 0);
}

#[test]
fn a_deadline_without_tokio_fails_the_call() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Slow, _, _>(|_, _| async {
            std::future::pending::<()>().await;
            Ok(Reply::Value(0))
        }))
        .unwrap();
    let result = futures_util::FutureExt::now_or_never(registry.execute::<Slow>(json!({})));
    assert!(result.unwrap().is_err());
}

#[tokio::test]
async fn a_call_that_has_ended_before_its_first_poll_does_not_run() {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let registry = Registry::new();
    registry
        .register(Registration::call::<Double, _, _>(move |n, _| {
            let runs = counted.clone();
            async move {
                runs.fetch_add(1, Ordering::Relaxed);
                Ok(Reply::Value(2 * n))
            }
        }))
        .unwrap();
    let cancel = CancelToken::new();
    let options = CallOptions::new().with_cancel(cancel.clone());
    let typed = registry.execute_with::<Double>(1, options.clone());
    let dynamic = registry.call_with("math.double", json!(1), options);
    cancel.cancel();
    assert_eq!(typed.await.unwrap_err().code(), &ErrorCode::Aborted);
    assert_eq!(dynamic.await.unwrap_err().code(), &ErrorCode::Aborted);
    let options = CallOptions::new().with_timeout(Duration::from_millis(10));
    let (typed, dynamic) =
        (registry.execute_with::<Double>(1, options.clone()), registry.call_with("math.double", json!(1), options));
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(typed.await.unwrap_err().code(), &ErrorCode::Timeout);
    assert_eq!(dynamic.await.unwrap_err().code(), &ErrorCode::Timeout);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
    // A deadline that is yet to come, and a token that is not cancelled, change nothing.
    let options = CallOptions::new().with_timeout(Duration::from_secs(60)).with_cancel(CancelToken::new());
    assert_eq!(registry.execute_with::<Double>(1, options).await.unwrap().data, 2);
    assert_eq!(runs.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_busy_handler_does_not_escape_its_deadline() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Slow, _, _>(|_, _| async {
            let (send, mut receive) = tokio::sync::mpsc::unbounded_channel();
            loop {
                // Uses up tokio's budget each time that it is polled.
                send.send(1).unwrap();
                receive.recv().await;
            }
        }))
        .unwrap();
    let error = registry.execute::<Slow>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
}

operation!(Patient: Value => i64, Call, OperationSpec::query("math.patient").with_timeout(Duration::from_secs(30)));

fn patient() -> Registry {
    let registry = Registry::new();
    let wait = |_, _| async {
        tokio::time::sleep(Duration::from_millis(1)).await;
        Ok(Reply::Value(1))
    };
    registry.register(Registration::call::<Patient, _, _>(wait)).unwrap();
    registry
}

#[tokio::test(start_paused = true)]
async fn timeouts_count_by_the_clock_that_a_test_has_moved() {
    let registry = patient();
    for _ in 0..2 {
        assert_eq!(registry.execute::<Patient>(json!({})).await.unwrap().data, 1);
        let options = CallOptions::new().with_timeout(Duration::from_secs(45));
        assert_eq!(registry.execute_with::<Patient>(json!({}), options).await.unwrap().data, 1);
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_operations_own_timeout_counts_from_the_first_poll() {
    let registry = patient();
    let (typed, dynamic) = (registry.execute::<Patient>(json!({})), registry.call("math.patient", json!({})));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!((typed.await.unwrap().data, dynamic.await.unwrap().data), (1, json!(1)));
}
