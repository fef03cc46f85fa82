//! Functions without a context follow the same rules as those with one.

use super::*;

operation!(Slow: u64 => u64, Call, OperationSpec::query("slow.wait")
    .with_input(Schema::text(r#"{"type":"integer","maximum":60000}"#))
    .with_timeout(Duration::from_millis(20)));

/// Waits as long as it is told, in milliseconds; 7 is told to panic.
async fn slow(wait: u64) -> Result<Reply<u64>, CallError> {
    assert_ne!(wait, 7);
    tokio::time::sleep(Duration::from_millis(wait)).await;
    Ok(Reply::Value(wait))
}

#[tokio::test]
async fn limits_apply_with_and_without_a_context() {
    let alone = || Registration::function::<Slow, _, _>(slow);
    let within = || {
        Registration::call::<Slow, _, _>(|wait, context| async move {
            assert!(context.deadline().is_some(), "the operation's own timeout");
            slow(wait).await
        })
    };
    for registration in [alone(), within()] {
        let registry = Registry::new();
        registry.register(registration).unwrap();
        for (wait, expected) in [
            (0, None),
            (60_000, Some(ErrorCode::Timeout)),
            (60_001, Some(ErrorCode::ValidationError)),
            (7, Some(ErrorCode::UnknownError)),
        ] {
            let typed = registry.execute::<Slow>(wait).await.map(|envelope| envelope.data);
            let named = registry.call("slow.wait", json!(wait)).await.map(|envelope| envelope.data);
            match expected {
                None => assert_eq!((typed.unwrap(), named.unwrap()), (wait, json!(wait))),
                Some(code) => {
                    for error in [typed.unwrap_err(), named.unwrap_err()] {
                        assert_eq!((error.code(), error.operation()), (&code, Some("slow.wait")), "{wait}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn under_strict_a_result_is_checked_without_a_context() {
    for policy in [OutputPolicy::Repair, OutputPolicy::Strict] {
        let registry = Registry::builder().with_policy(policy).build();
        registry.register(Registration::function::<Bounded, _, _>(|n| async move { Ok(Reply::Value(n + 1)) })).unwrap();
        assert_eq!(registry.execute::<Bounded>(9).await.unwrap().data, 10);
        let code = registry.execute::<Bounded>(10).await.err().map(|error| error.code().clone());
        assert_eq!(code, (policy == OutputPolicy::Strict).then_some(ErrorCode::ValidationError));
    }
}
