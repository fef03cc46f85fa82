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
