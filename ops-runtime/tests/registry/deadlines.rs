//! How calls end from outside: deadlines and cancellation.

use futures_util::FutureExt;
use futures_util::stream::FuturesUnordered;

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

operation!(Timed: Value => Value, Call, OperationSpec::query("outer.timed").with_timeout(Duration::from_millis(20)));

/// A registry with the operation `own.hangs`, which never ends, and another one.
fn with_hanging(outer: Registration) -> Registry {
    let registry = Registry::new();
    let hangs = Handler::dynamic(|_, _| std::future::pending::<Result<Value, CallError>>());
    registry.register(Registration::new(OperationSpec::query("own.hangs"), hangs)).unwrap();
    registry.register(outer).unwrap();
    registry
}

/// The nested call waits in a task of its own.
#[tokio::test(start_paused = true)]
async fn a_handler_that_waits_for_a_task_with_its_own_call_ends_with_its_call() {
    async fn spawns(context: Context) -> Result<Reply<Value>, CallError> {
        let nested = tokio::spawn(context.env().call("own.hangs", json!({})));
        drop(nested.await.unwrap().unwrap_err());
        Ok(Reply::Value(json!("went on")))
    }
    let registry = with_hanging(Registration::call::<Outer, _, _>(|_, context| spawns(context)));
    registry.register(Registration::call::<Timed, _, _>(|_, context| spawns(context))).unwrap();
    let timed = CallOptions::new().with_timeout(Duration::from_millis(20));
    for (id, options) in [("outer.run", timed), ("outer.timed", CallOptions::new())] {
        let outcome = registry.call_with(id, json!({}), options).await.map(|envelope| envelope.data);
        assert_eq!(outcome.unwrap_err().code(), &ErrorCode::Timeout, "{id}");
    }
}

/// The timeout counts from when the handler first waits. A nested call that it has made before ends a little earlier.
#[tokio::test(start_paused = true)]
async fn a_handler_ends_with_its_own_timeout_if_its_own_call_ends_just_before() {
    let outer = Registration::call::<Timed, _, _>(|_, context: Context| async move {
        let nested = context.env().call("own.hangs", json!({}));
        tokio::time::advance(Duration::from_micros(500)).await;
        drop(nested.await.unwrap_err());
        Ok(Reply::Value(json!("went on")))
    });
    let registry = with_hanging(outer);
    let typed = registry.execute::<Timed>(json!({})).await.map(|envelope| envelope.data).unwrap_err();
    let by_id = registry.call("outer.timed", json!({})).await.map(|envelope| envelope.data).unwrap_err();
    assert_eq!([typed.code(), by_id.code()], [&ErrorCode::Timeout; 2]);
}

/// Waits for calls of its own in the way that its input tells, and counts that it goes on.
async fn waits(how: Value, context: Context, went_on: Arc<AtomicUsize>) -> Result<Reply<Value>, CallError> {
    let env = context.env();
    let how = how.as_str().unwrap();
    if how.starts_with("refused") {
        // The call ends while the handler does not wait.
        match context.cancel_token() {
            Some(token) => token.cancel(),
            None => std::thread::sleep(Duration::from_millis(25)),
        }
    }
    match how {
        "call" | "refused call" => drop(env.call("own.hangs", json!({})).await),
        "type" | "refused type" => drop(env.execute::<Guarded>(json!({})).await),
        "through" => drop(context.through(context.state::<Registry>()?).call("own.hangs", json!({})).await),
        "stream" => drop(env.stream("own.silent", json!({})).await?.next().await),
        "refused stream" => drop(env.stream("own.silent", json!({})).await),
        _ => {
            let call = env.call("own.hangs", json!({})).map(drop).boxed();
            let mut both: FuturesUnordered<_> = [call, std::future::pending().boxed()].into_iter().collect();
            both.next().await;
        }
    }
    went_on.fetch_add(1, Ordering::SeqCst);
    Ok(Reply::Value(json!("went on")))
}

/// With the error of its own call, the handler would go on, and its result would be that of a call that has ended.
#[tokio::test]
async fn a_handler_that_waits_for_its_own_calls_ends_with_its_call() {
    let hangs = || {
        let handler = Handler::dynamic(|_, _| std::future::pending::<Result<Value, CallError>>());
        Registration::new(OperationSpec::query("own.hangs"), handler)
    };
    let other = Registry::new();
    other.register(hangs()).unwrap();
    let registry = Registry::builder().with_state(other).build();
    registry.register(hangs()).unwrap();
    registry.register(Registration::call::<Guarded, _, _>(|_, _| std::future::pending())).unwrap();
    let silent = |_, _| async { Ok(futures_util::stream::pending::<Result<Value, CallError>>()) };
    let silent = Registration::new(OperationSpec::subscription("own.silent"), Handler::dynamic_stream(silent));
    registry.register(silent).unwrap();
    let went_on = Arc::new(AtomicUsize::new(0));
    let counter = went_on.clone();
    let outer = move |how, context| waits(how, context, counter.clone());
    registry.register(Registration::call::<Outer, _, _>(outer)).unwrap();
    let ways = ["call", "type", "through", "stream", "one of two", "refused call", "refused type", "refused stream"];
    for how in ways {
        for code in [ErrorCode::Timeout, ErrorCode::Aborted] {
            for is_typed in [true, false] {
                let cancel = CancelToken::new();
                let options = if code == ErrorCode::Timeout {
                    CallOptions::new().with_timeout(Duration::from_millis(20))
                } else {
                    cancel.cancel_when(tokio::time::sleep(Duration::from_millis(20)));
                    CallOptions::new().with_cancel(cancel)
                };
                let ended = if is_typed {
                    registry.execute_with::<Outer>(json!(how), options).await
                } else {
                    registry.call_with("outer.run", json!(how), options).await
                };
                assert_eq!(ended.map(|envelope| envelope.data).unwrap_err().code(), &code, "{how}");
            }
        }
    }
    assert_eq!(went_on.load(Ordering::SeqCst), 0);
}
