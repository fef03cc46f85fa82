//! Deadline and idle timeout of requests that were made without a registry.

use std::time::{Duration, Instant};

use futures_core::Stream;
use futures_util::StreamExt;
use serde_json::json;

use crate::call::slot::Answer;
use crate::model::clock::millis;
use crate::run::context::deadline_after;
use crate::{CallError, ErrorCode, PayloadStream};

pub(super) const LATE: &str = "the deadline passed";

/// The error of a request whose deadline has passed.
pub(super) fn passed(deadline: Option<u64>, why: &'static str) -> CallError {
    CallError::new(ErrorCode::Timeout, why).with_details(json!({ "deadline": deadline }))
}

/// The error of a subscription that had no item for too long.
fn silent(idle: Duration) -> CallError {
    let details = json!({ "idleTimeout": millis(idle) });
    CallError::new(ErrorCode::Timeout, format!("the subscription stayed silent for {idle:?}")).with_details(details)
}

/// Ends the items of a subscription at its deadline, or when none has arrived for its idle timeout.
pub(super) fn limited(
    items: impl Stream<Item = Answer> + Unpin + Send + 'static,
    deadline: Option<(Instant, u64)>,
    idle: Option<Duration>,
) -> PayloadStream {
    futures_util::stream::unfold(Some(items), move |items| async move {
        let mut items = items?;
        let (deadline, epoch) = deadline.unzip();
        let until = deadline.into_iter().chain(idle.and_then(deadline_after)).min();
        let next = match until {
            Some(until) => tokio::time::timeout_at(until.into(), items.next()).await.map_err(|_| until),
            None => Ok(items.next().await),
        };
        let error = match next {
            Ok(item) => return Some((item?, Some(items))),
            Err(until) if Some(until) == deadline => passed(epoch, LATE),
            Err(_) => silent(idle.unwrap_or_default()),
        };
        Some((Err(error), None))
    })
    .boxed()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::BoxFuture;
    use crate::call::directory::gone;
    use crate::call::{CallEvent, CallRequest, Frame, Link, PendingRequests, Unsent};
    use crate::{Payload, ResponseEnvelope};

    /// Keeps what is sent; has no room for another request if `is_full`.
    #[derive(Default)]
    struct Kept {
        is_full: bool,
        sent: Mutex<Vec<Frame>>,
    }

    impl Link for Kept {
        fn send(&self, frame: Frame) -> Result<(), Unsent> {
            self.sent.lock().unwrap().push(frame);
            Ok(())
        }

        fn ready(&self) -> Option<BoxFuture<'static, ()>> {
            self.is_full.then(|| Box::pin(std::future::pending()) as BoxFuture<'static, ()>)
        }
    }

    fn request(milliseconds: u64) -> CallRequest {
        CallRequest::new("a.b", serde_json::Value::Null).with_timeout(Duration::from_millis(milliseconds))
    }

    #[tokio::test]
    async fn a_link_without_room_holds_nobody_beyond_the_deadline() {
        let pending = PendingRequests::new(Arc::new(Kept { is_full: true, ..Kept::default() }));
        assert_eq!(*pending.call(request(20)).await.unwrap_err().code(), ErrorCode::Timeout);
        assert_eq!(*pending.subscribe(request(20)).await.err().unwrap().code(), ErrorCode::Timeout);
    }

    #[tokio::test]
    async fn a_subscription_ends_at_its_deadline() {
        let pending = PendingRequests::new(Arc::new(Kept::default()));
        let request = request(50).with_idle_timeout(Duration::from_secs(60));
        let items: Vec<_> = pending.subscribe(request).await.unwrap().collect().await;
        let [Err(error)] = &*items else { panic!("{items:?}") };
        assert_eq!((error.code(), error.message()), (&ErrorCode::Timeout, "the deadline passed"));
        assert_eq!(pending.in_flight(), 0);
    }

    #[tokio::test]
    async fn a_subscription_that_is_asked_for_again_has_less_time_left() {
        let link = Arc::new(Kept::default());
        let pending = PendingRequests::resubscribing(link.clone());
        let mut items = pending.subscribe(request(60_000)).await.unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        pending.interrupt(&gone("lost"));
        pending.resume();
        assert!(items.next().await.unwrap().is_err(), "the gap is told");
        assert!(futures_util::poll!(items.next()).is_pending());
        let left = |frame: &Frame| match frame {
            Frame::Event(CallEvent::Requested(request)) => request.time_left.unwrap(),
            other => panic!("{other:?}"),
        };
        let left: Vec<u64> = link.sent.lock().unwrap().iter().map(left).collect();
        assert!(left.len() == 2 && left[1] + 30 <= left[0], "{left:?}");
    }

    /// The requests that a link was given.
    fn requested(link: &Kept) -> usize {
        let is_request = |frame: &&Frame| matches!(frame, Frame::Event(CallEvent::Requested(_)));
        link.sent.lock().unwrap().iter().filter(is_request).count()
    }

    #[tokio::test]
    async fn a_subscription_that_is_read_late_asks_nobody_who_wants_no_more_requests() {
        let link = Arc::new(Kept::default());
        let pending = PendingRequests::resubscribing(link.clone());
        let mut items = pending.subscribe(request(60_000)).await.unwrap();
        pending.interrupt(&gone("lost"));
        pending.resume();
        pending.quiesce().await;
        assert_eq!(items.next().await.unwrap().unwrap_err().details()["resubscribed"], true);
        assert!(futures_util::poll!(items.next()).is_pending());
        assert_eq!(requested(&link), 1);
        // The next connection repeats it.
        pending.interrupt(&gone("lost"));
        pending.resume();
        assert_eq!(items.next().await.unwrap().unwrap_err().details()["resubscribed"], true);
        assert!(futures_util::poll!(items.next()).is_pending());
        assert_eq!((requested(&link), pending.in_flight()), (2, 1));
    }

    /// The id of a request is free when its response is there, even if that was not read yet.
    #[tokio::test]
    async fn a_call_that_ends_leaves_another_with_its_id_alone() {
        let link = Arc::new(Kept::default());
        let pending = PendingRequests::new(link.clone());
        let request = request(60_000);
        let answer = ResponseEnvelope::local(Payload::Value(1.into()), "a.b");
        let mut first = Box::pin(pending.call(request.clone()));
        assert!(futures_util::poll!(&mut first).is_pending());
        pending.respond(&request.request_id, answer.clone());
        let mut second = Box::pin(pending.call(request.clone()));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert_eq!(first.await.unwrap(), answer);
        assert_eq!((pending.in_flight(), link.sent.lock().unwrap().len()), (1, 2), "it is not aborted");
        pending.respond(&request.request_id, answer.clone());
        assert_eq!(second.await.unwrap(), answer);
        assert_eq!(pending.in_flight(), 0);
    }
}
