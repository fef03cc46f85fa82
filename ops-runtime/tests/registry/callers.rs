//! Who may call: access rules, and what nested calls inherit.

use super::*;

#[tokio::test]
async fn access_is_checked_for_everybody_but_the_owner() {
    let registry = Registry::new();
    registry.register(Registration::call::<Guarded, _, _>(|_, _| async { Ok(Reply::Value(1)) })).unwrap();
    registry.execute::<Guarded>(json!({})).await.unwrap();

    let ann = Identity::new("ann").with_scope("math:write");
    registry.scoped(ann.clone()).execute::<Guarded>(json!({})).await.unwrap();
    let bob = registry.scoped(Identity::new("bob"));
    let error = bob.call("math.guarded", json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::AccessDenied);
    assert_eq!(error.details(), &json!({ "requiredScopes": ["math:write"] }));
    assert!(bob.list().is_empty());
    // Options can't widen a scope.
    let options = CallOptions::new().with_identity(ann);
    assert!(bob.execute_with::<Guarded>(json!({}), options.clone()).await.is_err());
    registry.execute_with::<Guarded>(json!({}), options).await.unwrap();
}

#[tokio::test]
async fn nested_calls_are_trusted_and_inherit() {
    let registry = Registry::new();
    registry
        .register(Registration::call::<Guarded, _, _>(|_, context: Context| async move {
            assert!(context.is_trusted());
            assert!(context.parent_request_id().is_some());
            assert_eq!(context.identity().map(|i| i.id.as_str()), Some("bob"));
            assert!(context.deadline().is_some());
            Ok(Reply::Value(1))
        }))
        .unwrap();
    registry
        .register(Registration::call::<Outer, _, _>(|_, context: Context| async move {
            let data = context.env().execute::<Guarded>(json!({})).await?.data;
            let filtered = context.env_of(["other"]);
            assert!(filtered.list().is_empty());
            let refused = filtered.call("math.guarded", json!({})).await.unwrap_err();
            assert_eq!(refused.code(), &ErrorCode::OperationNotFound);
            Ok(Reply::Value(json!(data)))
        }))
        .unwrap();
    let bob = registry.scoped(Identity::new("bob"));
    let options = CallOptions::new().with_timeout(Duration::from_secs(5));
    assert_eq!(bob.execute_with::<Outer>(json!({}), options).await.unwrap().data, json!(1));
}

/// A caller that is not in the registry runs calls of a handler as the registry does.
#[tokio::test]
async fn calls_through_another_caller_inherit() {
    let other = Registry::new();
    other
        .register(Registration::call::<Guarded, _, _>(|_, context: Context| async move {
            assert!(context.is_trusted() && context.parent_request_id().is_some() && context.deadline().is_some());
            assert!(context.cancel_token().is_some());
            assert_eq!(context.metadata().unwrap()["tenant"], "t-7");
            Ok(Reply::Value(i64::from(context.identity().is_some_and(|identity| identity.id == "bob"))))
        }))
        .unwrap();
    let registry = Registry::builder().with_state(other).build();
    registry
        .register(Registration::call::<Outer, _, _>(|_, context: Context| async move {
            let other = context.state::<Registry>()?;
            let through = context.through(other);
            let mut seen = vec![json!(through.execute::<Guarded>(json!({})).await?.data)];
            seen.push(through.call("math.guarded", json!({})).await?.data);
            // An identity that is named, or that of a scope, has the call checked.
            let ann = CallOptions::new().with_identity(Identity::new("ann"));
            let named = ops_runtime::Caller::execute_with::<Guarded>(&through, json!({}), ann).await;
            let scoped = other.scoped(Identity::new("cat"));
            let scoped = context.through(&scoped).execute::<Guarded>(json!({})).await;
            for error in [named.unwrap_err(), scoped.unwrap_err()] {
                seen.push(json!(error.code().as_str()));
            }
            Ok(Reply::Value(json!(seen)))
        }))
        .unwrap();
    let options = CallOptions::new()
        .with_identity(Identity::new("bob"))
        .with_timeout(Duration::from_secs(5))
        .with_cancel(CancelToken::new())
        .with_metadata("tenant", "t-7");
    let seen = registry.execute_with::<Outer>(json!({}), options).await.unwrap().data;
    assert_eq!(seen, json!([1, 1, "ACCESS_DENIED", "ACCESS_DENIED"]));
}

#[tokio::test]
async fn a_nested_call_adds_to_the_metadata_that_it_inherits() {
    let registry = Registry::new();
    let inner = Handler::dynamic(|_, context| async move { Ok(json!(context.metadata())) });
    let outer = Handler::dynamic(|input: Value, context| async move {
        let mut options = CallOptions::new();
        options.metadata = input.as_object().cloned().unwrap_or_default();
        Ok(context.env().call_with("own.inner", json!({}), options).await?.data)
    });
    registry.register(Registration::new(OperationSpec::query("own.inner"), inner)).unwrap();
    registry.register(Registration::new(OperationSpec::query("own.outer"), outer)).unwrap();
    let options = CallOptions::new()
        .with_metadata("tenant", "t1")
        .with_metadata("traceparent", "00-1")
        .with_metadata("tracestate", "a=1");
    for (own, expected) in [
        (json!({}), json!({ "tenant": "t1", "traceparent": "00-1", "tracestate": "a=1" })),
        (json!({ "step": 1 }), json!({ "step": 1, "tenant": "t1", "traceparent": "00-1", "tracestate": "a=1" })),
        (json!({ "tenant": "t2" }), json!({ "tenant": "t2", "traceparent": "00-1", "tracestate": "a=1" })),
        // What was added to a trace is of no other.
        (json!({ "traceparent": "00-2" }), json!({ "tenant": "t1", "traceparent": "00-2" })),
    ] {
        assert_eq!(registry.call_with("own.outer", own, options.clone()).await.unwrap().data, expected);
    }

    // A span of the handler's own is of the same trace.
    let of = |trace: u8, span: u8| format!("00-{trace:032x}-{span:016x}-01");
    let options = CallOptions::new().with_metadata("traceparent", of(1, 1)).with_metadata("tracestate", "a=1");
    for (own, state) in [(of(1, 2), json!("a=1")), (of(2, 1), Value::Null), ("wrong".to_owned(), Value::Null)] {
        let call = registry.call_with("own.outer", json!({ "traceparent": own }), options.clone());
        let seen = call.await.unwrap().data;
        assert_eq!((&seen["traceparent"], &seen["tracestate"]), (&json!(own), &state));
    }
}

/// A handler may pass on the token of its own call.
#[tokio::test]
async fn a_token_that_is_passed_on_listens_to_each_token_once() {
    let registry = Registry::new();
    let deeper = Handler::dynamic(|input: Value, context: Context| async move {
        let token = context.cancel_token().unwrap().clone();
        let left = input.as_u64().unwrap();
        if left == 0 {
            return Ok(json!(format!("{token:?}").matches("CancellationToken").count()));
        }
        let token = if left == 5 { CancelToken::new() } else { token };
        let options = CallOptions::new().with_cancel(token);
        Ok(context.env().call_with("own.deeper", json!(left - 1), options).await?.data)
    });
    registry.register(Registration::new(OperationSpec::query("own.deeper"), deeper)).unwrap();
    // The call with five levels below it makes a token of its own.
    for (levels, tokens) in [(4, 1), (5, 2), (9, 2)] {
        let options = CallOptions::new().with_cancel(CancelToken::new());
        let found = registry.call_with("own.deeper", json!(levels), options).await.unwrap().data;
        assert_eq!(found, json!(tokens), "{levels}");
    }
}

#[tokio::test]
async fn what_a_token_waits_for_ends_with_the_parent_of_its_call() {
    let (registry, cancel) = (Registry::new(), CancelToken::new());
    let dropped = tokio_util::sync::CancellationToken::new();
    let guards = dropped.clone();
    let waits = Handler::dynamic(move |_, context: Context| {
        let guard = guards.clone().drop_guard();
        async move {
            let end = async move {
                let _guard = guard;
                std::future::pending::<()>().await;
            };
            context.cancel_token().unwrap().cancel_when(end);
            std::future::pending::<Result<Value, CallError>>().await
        }
    });
    let outer = Handler::dynamic(|_, context: Context| async move {
        let options = CallOptions::new().with_cancel(CancelToken::new());
        Ok(context.env().call_with("own.waits", json!({}), options).await?.data)
    });
    registry.register(Registration::new(OperationSpec::query("own.waits"), waits)).unwrap();
    registry.register(Registration::new(OperationSpec::query("own.outer"), outer)).unwrap();
    let options = CallOptions::new().with_cancel(cancel.clone());
    let call = tokio::spawn(registry.call_with("own.outer", json!({}), options));
    tokio::time::sleep(Duration::from_millis(20)).await;
    cancel.cancel();
    assert_eq!(call.await.unwrap().unwrap_err().code(), &ErrorCode::Aborted);
    tokio::time::timeout(Duration::from_secs(5), dropped.cancelled()).await.unwrap();
}

#[tokio::test]
async fn a_nested_call_with_a_token_of_its_own_ends_with_its_parent() {
    let registry = Registry::new();
    let slow = Handler::dynamic(|_, _| std::future::pending::<Result<Value, CallError>>());
    let (send, mut ended) = tokio::sync::mpsc::unbounded_channel();
    let spawns = Handler::dynamic(move |input: Value, context: Context| {
        let send = send.clone();
        async move {
            let own = CancelToken::new();
            let options = CallOptions::new().with_cancel(own.clone());
            tokio::spawn(async move {
                let error = context.env().call_with("own.slow", json!({}), options).await.unwrap_err();
                let parent = context.cancel_token().unwrap().is_cancelled();
                send.send((error.code().clone(), parent)).unwrap();
            });
            if input == "own" {
                tokio::task::yield_now().await;
                own.cancel();
            }
            std::future::pending::<Result<Value, CallError>>().await
        }
    });
    registry.register(Registration::new(OperationSpec::query("own.slow"), slow)).unwrap();
    registry.register(Registration::new(OperationSpec::query("own.spawns"), spawns)).unwrap();
    for (whose, is_parent) in [("own", false), ("parent", true)] {
        let cancel = CancelToken::new();
        let options = CallOptions::new().with_cancel(cancel.clone());
        let call = registry.call_with("own.spawns", json!(whose), options);
        let call = tokio::spawn(call);
        tokio::time::sleep(Duration::from_millis(20)).await;
        if is_parent {
            cancel.cancel();
        }
        let ended = tokio::time::timeout(Duration::from_secs(5), ended.recv()).await.unwrap();
        assert_eq!(ended, Some((ErrorCode::Aborted, is_parent)), "{whose}");
        cancel.cancel();
        assert_eq!(call.await.unwrap().unwrap_err().code(), &ErrorCode::Aborted);
    }
}
