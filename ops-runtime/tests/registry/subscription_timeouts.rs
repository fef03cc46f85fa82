//! What ends a subscription whose items take too long: its deadline, its own timeout, and the idle timeout.

use futures_util::FutureExt;

use super::*;

#[tokio::test(start_paused = true)]
async fn a_subscription_ends_at_its_deadline() {
    let registry = Registry::new();
    registry
        .register(Registration::subscription::<Count, _, _, _>(|_, _| async {
            Ok(futures_util::stream::repeat(1).map(|i| Ok(Reply::Value(i))))
        }))
        .unwrap();
    let options = CallOptions::new().with_timeout(Duration::from_secs(60));
    let mut stream = registry.subscribe_with::<Count>(1_u32, options).await.unwrap();
    let mut last = None;
    while let Some(item) = stream.next().await {
        last = Some(item);
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(last.unwrap().unwrap_err().code(), &ErrorCode::Timeout);
}

operation!(Forwarded: u32 => u32, Subscribe, OperationSpec::subscription("math.forwarded")
    .with_timeout(Duration::from_secs(1)));

#[tokio::test(start_paused = true)]
async fn a_subscription_gives_its_own_timeout_to_none_that_it_opens() {
    let registry = Registry::new();
    registry
        .register(Registration::subscription::<Count, _, _, _>(|to, _| async move {
            Ok(futures_util::stream::iter(1..=to).then(|n| async move {
                tokio::time::sleep(Duration::from_millis(150)).await;
                Ok(Reply::Value(n))
            }))
        }))
        .unwrap();
    registry
        .register(Registration::subscription::<Forwarded, _, _, _>(|to, context: Context| async move {
            let items = context.env().subscribe::<Count>(to).await?;
            Ok(items.map(|item| item.map(Reply::from)))
        }))
        .unwrap();
    let by_type = registry.subscribe::<Forwarded>(10_u32).await.unwrap().collect::<Vec<_>>();
    let by_id = registry.stream("math.forwarded", json!(10)).await.unwrap().collect::<Vec<_>>();
    let (by_type, by_id) = tokio::join!(by_type, by_id);
    let by_type: Vec<_> = by_type.into_iter().map(|item| item.unwrap().data).collect();
    assert_eq!(by_type, Vec::from_iter(1..=10));
    assert_eq!(
        by_id.into_iter().map(|item| item.unwrap().data).collect::<Vec<_>>(),
        Vec::from_iter((1..=10).map(Value::from))
    );
}

#[tokio::test]
async fn an_idle_timeout_does_not_count_while_no_item_is_waited_for() {
    let registry = Registry::new();
    registry
        .register(Registration::subscription::<Count, _, _, _>(|_, _| async {
            Ok(futures_util::stream::pending::<Result<Reply<u32>, _>>())
        }))
        .unwrap();
    let options = CallOptions::new().with_idle_timeout(Duration::from_millis(100));
    let mut stream = registry.subscribe_with::<Count>(1_u32, options).await.unwrap();
    assert!(stream.next().now_or_never().is_none());
    tokio::time::sleep(Duration::from_millis(400)).await;
    // The first that comes back to it waits as long as any other.
    let began = Instant::now();
    let error = stream.next().await.unwrap().unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(began.elapsed() >= Duration::from_millis(100), "{:?}", began.elapsed());
}

operation!(Prompt: u32 => u32, Subscribe, OperationSpec::subscription("math.prompt")
    .with_timeout(Duration::from_secs(1)));

#[tokio::test]
async fn a_subscription_s_own_timeout_does_not_count_while_no_item_is_waited_for() {
    let registry = Registry::new();
    registry
        .register(Registration::subscription::<Prompt, _, _, _>(|to, _| async move {
            let items = futures_util::stream::iter(1..=to).map(|n| Ok(Reply::Value(n)));
            Ok(items.chain(futures_util::stream::pending()))
        }))
        .unwrap();
    let mut ready = registry.subscribe::<Prompt>(1_u32).await.unwrap();
    let mut pending = registry.subscribe::<Prompt>(0_u32).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    // An item that is ready is given, however late the reader comes.
    assert_eq!(ready.next().await.unwrap().unwrap().data, 1);
    // The reader of one that is not has the rest of the timeout to wait for it. The other items have no such limit.
    let began = Instant::now();
    let first = async { (pending.next().await.unwrap().unwrap_err(), began.elapsed()) };
    let other = tokio::time::timeout(Duration::from_millis(1_500), ready.next());
    let ((error, waited), other) = tokio::join!(first, other);
    assert_eq!(error.code(), &ErrorCode::Timeout);
    assert!(waited >= Duration::from_millis(20), "{waited:?}");
    assert!(other.is_err());
}

#[tokio::test(start_paused = true)]
async fn the_timeouts_of_items_count_on_a_paused_clock() {
    let registry = Registry::new();
    registry
        .register(Registration::subscription::<Prompt, _, _, _>(|_, _| async {
            Ok(futures_util::stream::pending::<Result<Reply<u32>, _>>())
        }))
        .unwrap();
    registry
        .register(Registration::subscription::<Count, _, _, _>(|_, _| async {
            Ok(futures_util::stream::pending::<Result<Reply<u32>, _>>())
        }))
        .unwrap();
    // From here on, tokio's clock is far ahead of the system's.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let options = CallOptions::new().with_idle_timeout(Duration::from_secs(1));
    let own = registry.subscribe::<Prompt>(1_u32).await.unwrap();
    let idle = registry.subscribe_with::<Count>(1_u32, options).await.unwrap();
    for mut stream in [own, idle] {
        let began = tokio::time::Instant::now();
        let error = stream.next().await.unwrap().unwrap_err();
        assert_eq!(error.code(), &ErrorCode::Timeout);
        let waited = began.elapsed();
        assert!(waited > Duration::ZERO && waited <= Duration::from_millis(1_100), "{waited:?}");
    }
}
