//! Requests that wait to be sent to a broker.

use std::time::{Duration, Instant};

use super::decode;
use crate::call::pending::WeakPending;
use crate::call::{CallEvent, CallRequest, Frame};
use crate::model::request_id::Number;

/// How long a request may wait before its text is written again, with the time that is left then.
const SOON: Duration = Duration::from_millis(10);

/// A request that waits to be sent. While a broker stands still, its caller may give it up, and its deadline comes nearer.
pub(crate) struct Queued {
    pub(crate) number: Number,
    pending: WeakPending,
    /// Since when it waits, if it has a deadline.
    since: Option<Instant>,
}

impl Queued {
    /// A request of a table that is queued now. `None` if it is none of this process.
    pub(crate) fn of(pending: &WeakPending, request: &CallRequest) -> Option<Self> {
        let since = request.time_left.map(|_| Instant::now());
        Some(Self { number: request.request_id.number()?, pending: pending.clone(), since })
    }

    /// True if its caller still waits for the response.
    pub(crate) fn is_wanted(&self) -> bool {
        self.pending.upgrade().is_some_and(|pending| pending.has(self.number))
    }

    /// The text of the request, with the time that is left now. `None` if the text has it already.
    pub(crate) fn renewed(&self, text: &[u8]) -> Option<String> {
        let waited = self.since?.elapsed();
        if waited < SOON {
            return None;
        }
        let Ok(Some(Frame::Event(CallEvent::Requested(mut request)))) = decode(text) else { return None };
        request.has_waited(waited);
        Frame::from(CallEvent::Requested(request)).encode().ok()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::call::{Link, PendingRequests, Unsent};

    /// Queues what is sent.
    struct Queue {
        pending: WeakPending,
        queued: Arc<Mutex<Vec<(Queued, String)>>>,
    }

    impl Link for Queue {
        fn send(&self, frame: Frame) -> Result<(), Unsent> {
            if let Frame::Event(CallEvent::Requested(request)) = &frame {
                let queued = Queued::of(&self.pending, request).unwrap();
                self.queued.lock().unwrap().push((queued, frame.encode().unwrap()));
            }
            Ok(())
        }
    }

    fn time_left(text: &str) -> Option<u64> {
        match Frame::decode(text) {
            Ok(Some(Frame::Event(CallEvent::Requested(request)))) => request.time_left,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_request_that_waits_is_as_it_is_now() {
        let queued: Arc<Mutex<Vec<_>>> = Arc::default();
        let pending = PendingRequests::known_to(|pending| Arc::new(Queue { pending, queued: queued.clone() }));
        let request = || CallRequest::new("a.b", serde_json::json!({ "n": 1.50 }));
        let wanted = pending.start(Box::new(request().with_timeout(Duration::from_secs(60)))).unwrap();
        drop(pending.start(Box::new(request())).unwrap());
        let mut queued = queued.lock().unwrap();
        let [(one, first), (other, second)] = &mut **queued else { panic!("two were sent") };
        assert_eq!((one.is_wanted(), other.is_wanted()), (true, false));
        assert_eq!((one.renewed(first.as_bytes()), other.renewed(second.as_bytes())), (None, None));
        one.since = one.since.and_then(|since| since.checked_sub(Duration::from_secs(20)));
        let text = one.renewed(first.as_bytes()).unwrap();
        let (before, now) = (time_left(first).unwrap(), time_left(&text).unwrap());
        assert!((before - 21_000..=before - 20_000).contains(&now), "{before} {now}");
        assert_eq!(text.replace(&format!("\"timeLeft\":{now}"), &format!("\"timeLeft\":{before}")), *first);
        drop((wanted, pending));
        assert!(!one.is_wanted());
    }
}
