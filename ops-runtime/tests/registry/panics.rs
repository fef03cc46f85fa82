//! Handlers that panic: when they start, while they run, and when what they hold is dropped.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context as Task, Poll};

use futures_util::FutureExt;

use super::*;

#[tokio::test]
async fn a_panic_fails_the_call_alone() {
    let registry = registry();
    registry.register(Registration::call::<Failing, _, _>(|_, _| async { panic!("boom") })).unwrap();
    let error = registry.execute::<Failing>(json!({})).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::UnknownError);
    assert!(!error.to_string().contains("boom"));
    assert_eq!(registry.execute::<Double>(2).await.unwrap().data, 4);
    registry
        .replace(Registration::new(
            Failing::SPEC,
            Handler::dynamic(|_, _| -> Ready<Result<Value, CallError>> { panic!("early") }),
        ))
        .unwrap();
    assert_eq!(registry.call("math.failing", json!({})).await.unwrap_err().code(), &ErrorCode::UnknownError);
}

/// A handler that gives this result at its second poll, or never, and panics when it is dropped.
struct Trap {
    result: Option<i64>,
    polls: usize,
}

impl Future for Trap {
    type Output = Result<Reply<i64>, CallError>;

    fn poll(mut self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        self.polls += 1;
        task.waker().wake_by_ref();
        match self.result.filter(|_| self.polls == 2) {
            Some(result) => Poll::Ready(Ok(Reply::Value(result))),
            None => Poll::Pending,
        }
    }
}

impl Drop for Trap {
    fn drop(&mut self) {
        panic!("late");
    }
}

fn trapping(result: Option<i64>) -> Registry {
    let registry = Registry::new();
    registry.register(Registration::call::<Double, _, _>(move |_, _| Trap { result, polls: 0 })).unwrap();
    registry
}

#[tokio::test]
async fn a_result_from_before_a_panic_counts() {
    assert_eq!(trapping(Some(7)).execute::<Double>(2).await.unwrap().data, 7);
}

#[tokio::test]
async fn a_panic_at_the_drop_of_a_handler_does_not_reach_its_caller() {
    let registry = trapping(None);
    let mut typed = registry.execute::<Double>(2);
    assert!((&mut typed).now_or_never().is_none());
    drop(typed);
    let mut by_id = registry.call("math.double", json!(2));
    assert!((&mut by_id).now_or_never().is_none());
    drop(by_id);
    // Before its first poll.
    drop(registry.execute::<Double>(2));
    let options = CallOptions::new().with_timeout(Duration::from_millis(10));
    let error = registry.execute_with::<Double>(2, options).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::Timeout);
}

#[tokio::test]
async fn a_call_that_has_ended_says_so() {
    let registry = registry();
    registry.register(Registration::call::<Failing, _, _>(|_, _| ready(Ok(Reply::Value(1))))).unwrap();
    let mut ended = registry.execute::<Failing>(json!({}));
    assert!((&mut ended).await.is_ok());
    assert!((&mut ended).await.is_err());
    let mut refused = Registry::new().execute::<Failing>(json!({}));
    for _ in 0..2 {
        assert!((&mut refused).await.is_err());
    }
}
