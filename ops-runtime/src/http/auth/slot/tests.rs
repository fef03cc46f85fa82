//! Tokens that come late or not at all, and those who wait for them.

use std::future::{pending, ready};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

use super::*;

fn token(number: usize) -> Token {
    Token { value: format!("t{number}").into(), expires: None }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_ends_before_does_not_end_the_request() {
    let (slot, asked) = (Slot::default(), AtomicUsize::new(0));
    let fetch = || {
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            sleep(Duration::from_secs(3)).await;
            Ok(token(number))
        }
        .boxed()
    };
    let second = Duration::from_secs(1);
    for _ in 0..2 {
        assert!(timeout(second, slot.valid(None, &fetch)).await.is_err());
    }
    // Nobody waits while it comes.
    sleep(second * 2).await;
    assert_eq!(timeout(second, slot.valid(None, &fetch)).await.unwrap().unwrap().expose(), "t1");
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn all_who_wait_get_the_error() {
    let (slot, asked) = (Slot::default(), AtomicUsize::new(0));
    let fetch = || {
        asked.fetch_add(1, Ordering::SeqCst);
        async {
            sleep(Duration::from_secs(30)).await;
            Err(CallError::execution("nobody is there"))
        }
        .boxed()
    };
    for round in 1..3 {
        let start = tokio::time::Instant::now();
        for found in join_all((0..20).map(|_| slot.valid(None, &fetch))).await {
            assert_eq!(found.unwrap_err().message(), "nobody is there");
        }
        assert!(start.elapsed() < Duration::from_secs(31), "{:?}", start.elapsed());
        assert_eq!(asked.load(Ordering::SeqCst), round);
    }
}

#[test]
fn a_request_in_a_runtime_that_no_thread_runs_holds_up_nobody_for_long() {
    let runtime = || -> Runtime { Builder::new_current_thread().enable_time().start_paused(true).build().unwrap() };
    let (first, second) = (runtime(), runtime());
    let (slot, asked) = (Slot::default(), AtomicUsize::new(0));
    let fetch = || {
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if number == 1 {
                sleep(TIMEOUT).await;
                return Err(CallError::execution("nobody is there"));
            }
            Ok(token(number))
        }
        .boxed()
    };
    let seconds = Duration::from_secs;
    assert!(first.block_on(async { timeout(seconds(1), slot.valid(None, &fetch)).await }).is_err());
    // Also calls that have less time than a request for a token get one in the end.
    second.block_on(async {
        assert!(timeout(seconds(20), slot.valid(None, &fetch)).await.is_err());
        assert_eq!(timeout(seconds(20), slot.valid(None, &fetch)).await.unwrap().unwrap().expose(), "t2");
    });
    // The request ends after all. Its error says nothing of the token that has come meanwhile.
    first.block_on(async { sleep(seconds(60)).await });
    assert_eq!(second.block_on(slot.valid(None, &fetch)).unwrap().expose(), "t2");
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_request_that_takes_too_long_is_not_joined() {
    let runtime = || -> Runtime { Builder::new_current_thread().enable_time().start_paused(true).build().unwrap() };
    let (first, second) = (runtime(), runtime());
    let (slot, asked) = (Slot::default(), AtomicUsize::new(0));
    let fetch = || {
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if number == 1 {
                pending::<()>().await;
            }
            Ok(token(number))
        }
        .boxed()
    };
    assert!(first.block_on(async { timeout(Duration::from_secs(1), slot.valid(None, &fetch)).await }).is_err());
    second.block_on(async {
        sleep(MAX_WAIT).await;
        assert!(slot.valid(None, &fetch).now_or_never().is_none());
        assert_eq!(asked.load(Ordering::SeqCst), 2);
        // It is fetched in a task, for all.
        assert_eq!(slot.valid(None, &fetch).await.unwrap().expose(), "t2");
    });
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_request_whose_runtime_has_ended_is_made_again() {
    let runtime = || -> Runtime { Builder::new_current_thread().enable_time().build().unwrap() };
    let (slot, asked) = (Slot::default(), AtomicUsize::new(0));
    let fetch = || {
        let number = asked.fetch_add(1, Ordering::SeqCst) + 1;
        async move {
            if number == 1 {
                pending::<()>().await;
            }
            Ok(token(number))
        }
        .boxed()
    };
    let first = runtime();
    let waited = first.block_on(async { timeout(Duration::from_millis(10), slot.valid(None, &fetch)).await });
    assert!(waited.is_err());
    drop(first);
    assert_eq!(runtime().block_on(slot.valid(None, &fetch)).unwrap().expose(), "t2");
    assert_eq!(runtime().block_on(slot.valid(None, &fetch)).unwrap().expose(), "t2");
}

#[test]
fn no_runtime_is_needed() {
    let (slot, asked) = (Slot::default(), AtomicUsize::new(0));
    let fetch = || ready(Ok(token(asked.fetch_add(1, Ordering::SeqCst) + 1))).boxed();
    let valid =
        |rejected: Option<&Secret>| slot.valid(rejected, &fetch).now_or_never().unwrap().unwrap().expose().to_owned();
    assert_eq!([valid(None), valid(None)], ["t1", "t1"]);
    let (first, second) = (Secret::from("t1"), Secret::from("t2"));
    assert_eq!([valid(Some(&first)), valid(Some(&first))], ["t2", "t2"]);
    // Only the token that is there is given up.
    slot.forget(&first);
    assert_eq!(valid(None), "t2");
    slot.forget(&second);
    assert_eq!(valid(None), "t3");
}
