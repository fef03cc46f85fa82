use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::time::advance;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn caller(name: &str) -> CallerId {
    CallerId::connection(name)
}

fn unlimited() -> CallerLimits {
    CallerLimits::new().with_rate(None).with_max_in_flight(1_000)
}

/// Admits a call without waiting.
fn now(limiter: &Limiter, name: &str) -> Result<CallPermit, CallError> {
    limiter.admit(&caller(name)).now_or_never().expect("admitted or refused at once")
}

fn refusal(result: Result<CallPermit, CallError>) -> (String, f64) {
    let error = result.unwrap_err();
    assert_eq!(error.code().as_str(), "TOO_MANY_REQUESTS");
    (error.message().to_owned(), error.details()["retryAfter"].as_f64().unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_burst_and_then_the_rate() {
    let limiter = Limiter::new(unlimited().with_rate(Rate::new(4, SECOND).with_burst(3)));
    for _ in 0..3 {
        now(&limiter, "ann").unwrap();
    }
    let told = "the caller makes more than 4 calls in 1s: try again in 250ms";
    assert_eq!(refusal(now(&limiter, "ann")), (told.to_owned(), 0.25));
    // Refused calls cost nothing, and others have their own.
    assert_eq!(refusal(now(&limiter, "ann")).1, 0.25);
    now(&limiter, "bob").unwrap();
    advance(Duration::from_millis(249)).await;
    assert_eq!(refusal(now(&limiter, "ann")).1, 0.001);
    advance(Duration::from_millis(1)).await;
    now(&limiter, "ann").unwrap();
    assert_eq!(refusal(now(&limiter, "ann")).1, 0.25);
    // A long rest gives a burst, and no more.
    advance(100 * SECOND).await;
    let admitted = (0..10).filter(|_| now(&limiter, "ann").is_ok()).count();
    assert_eq!(admitted, 3);
}

#[tokio::test(start_paused = true)]
async fn rates_that_are_odd() {
    let table = [
        (Rate::new(0, SECOND), 1, 1.0),
        (Rate::new(1, 60 * SECOND).with_burst(0), 1, 60.0),
        (Rate::new(3, SECOND).with_burst(1), 1, 0.334),
        (Rate::new(1, Duration::MAX), 1, f64::MAX),
        (Rate::new(u32::MAX, Duration::ZERO), 100, 0.0),
    ];
    for (rate, admitted, wait) in table {
        let limiter = Limiter::new(unlimited().with_rate(rate));
        let found = (0..100).filter(|_| now(&limiter, "ann").is_ok()).count();
        if wait == f64::MAX {
            // No clock counts that far: such a rate is none.
            assert_eq!(found, 100, "{rate:?}");
            continue;
        }
        assert_eq!(found, admitted, "{rate:?}");
        if admitted < 100 {
            assert_eq!(refusal(now(&limiter, "ann")).1, wait, "{rate:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_in_flight_and_waiting() {
    let limits = unlimited().with_max_in_flight(2).with_max_waiting(1, 5 * SECOND);
    let limiter = Limiter::new(limits);
    let (first, second) = (now(&limiter, "ann").unwrap(), now(&limiter, "ann").unwrap());
    let ann = caller("ann");
    let mut third = Box::pin(limiter.admit(&ann));
    assert!(third.as_mut().now_or_never().is_none());
    let told = "2 calls of the caller are in flight and 1 are waiting: try again in 1s";
    assert_eq!(refusal(now(&limiter, "ann")), (told.to_owned(), 1.0));
    now(&limiter, "bob").unwrap();
    drop(first);
    let third = third.await.unwrap();
    // A call that waits, and whose caller goes away, leaves its place.
    let mut fourth = Box::pin(limiter.admit(&ann));
    assert!(fourth.as_mut().now_or_never().is_none());
    drop(fourth);
    // One that waits in vain is told so.
    let begun = Instant::now();
    let told = "2 calls of the caller are in flight, and none ended within 5s: try again in 1s";
    assert_eq!(refusal(limiter.admit(&ann).await), (told.to_owned(), 1.0));
    assert_eq!(begun.elapsed(), 5 * SECOND);
    drop((second, third));
    let table = limiter.table();
    assert_eq!(table.callers.len(), table.idle.len());
}

#[tokio::test(start_paused = true)]
async fn two_limits_at_once() {
    let rate = Rate::new(1, 10 * SECOND).with_burst(2);
    let limiter = Limiter::new(CallerLimits::new().with_rate(rate).with_max_in_flight(0).with_max_waiting(0, SECOND));
    let _permit = now(&limiter, "ann").unwrap();
    // The one that is full leaves the other as it was.
    let told = "1 calls of the caller are in flight and 0 are waiting: try again in 1s";
    assert_eq!(refusal(now(&limiter, "ann")), (told.to_owned(), 1.0));
    drop(_permit);
    let _permit = now(&limiter, "ann").unwrap();
    let (told, wait) = refusal(now(&limiter, "ann"));
    assert_eq!(
        told,
        "the caller makes more than 1 calls in 10s, and 1 calls of the caller are in flight and 0 are waiting: try \
         again in 10s"
    );
    assert_eq!(wait, 10.0);
}

#[tokio::test(start_paused = true)]
async fn a_million_identities_take_no_more_memory() {
    let limiter = Limiter::new(unlimited().with_rate(Rate::new(1, SECOND)).with_max_callers(100));
    let _held = now(&limiter, "held").unwrap();
    for n in 0..1_000_000_u32 {
        now(&limiter, &n.to_string()).unwrap();
    }
    {
        let table = limiter.table();
        assert_eq!((table.callers.len(), table.idle.len()), (100, 99));
        assert!(table.callers.capacity() < 1_000);
    }
    // Those that were seen last are remembered, and one with a call in flight is never forgotten.
    assert_eq!(refusal(now(&limiter, "999999")).1, 1.0);
    assert_eq!(refusal(now(&limiter, "held")).1, 1.0);
    now(&limiter, "0").unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_table_full_of_calls_takes_no_more_callers() {
    let limiter = Limiter::new(unlimited().with_max_callers(2));
    let held = [now(&limiter, "ann").unwrap(), now(&limiter, "bob").unwrap()];
    let told = "calls of 2 callers are in flight: try again in 1s";
    assert_eq!(refusal(now(&limiter, "eve")), (told.to_owned(), 1.0));
    // Callers that are known go on.
    now(&limiter, "ann").unwrap();
    drop(held);
    now(&limiter, "eve").unwrap();
    assert_eq!(limiter.table().callers.len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_more_in_flight_than_allowed() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    let limits = unlimited().with_max_in_flight(3).with_max_waiting(1_000, 60 * SECOND).with_max_callers(4);
    let limiter = Limiter::new(limits);
    let in_flight: Arc<[AtomicUsize; 4]> = Arc::default();
    let calls = (0..400).map(|n| {
        let (limiter, in_flight) = (limiter.clone(), in_flight.clone());
        tokio::spawn(async move {
            let name = caller(&(n % 4).to_string());
            let call = limiter.admit(&name);
            if n % 5 == 0 {
                // Dropped before it is admitted, or just then.
                let _ = tokio::time::timeout(Duration::from_micros(n), call).await;
                return;
            }
            let _permit = call.await.unwrap();
            let count = &in_flight[usize::try_from(n % 4).unwrap()];
            assert!(count.fetch_add(1, Ordering::SeqCst) < 3);
            tokio::time::sleep(Duration::from_micros(500)).await;
            count.fetch_sub(1, Ordering::SeqCst);
        })
    });
    for call in join_all(calls).await {
        call.unwrap();
    }
    let table = limiter.table();
    assert_eq!((table.callers.len(), table.idle.len()), (4, 4));
    assert!(table.callers.values().all(|state| state.calls == 0 && state.slots.available_permits() == 3));
}
