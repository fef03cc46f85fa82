//! The caller's side: which requests are known to run, on which worker, and whether a frame was lost.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::call::directory::gone;
use crate::call::pending::ByNumber;
use crate::call::{CallEvent, PendingRequests, RequestId};
use crate::model::lock::lock;
use crate::model::request_id::Number;

/// What is known of requests that had no immediate response.
#[derive(Default)]
pub(crate) struct Liveness(Mutex<ByNumber<Seen>>);

struct Seen {
    /// When a worker last reported it, or the request was first seen.
    at: Instant,
    worker: Option<Arc<str>>,
    /// The number of the next event.
    next: u64,
}

impl Liveness {
    fn seen(&self) -> MutexGuard<'_, ByNumber<Seen>> {
        lock(&self.0)
    }

    /// Notes that a worker runs requests; returns those that no caller waits for.
    pub(crate) fn running(&self, pending: &PendingRequests, worker: &Arc<str>, ids: Vec<RequestId>) -> Vec<RequestId> {
        let (mut unknown, mut broken) = (Vec::new(), Vec::new());
        let mut seen = self.seen();
        for id in ids {
            match id.number().filter(|number| pending.has(*number)) {
                Some(number) if !note(&mut seen, number, worker) => broken.push(id),
                Some(_) => {}
                None => unknown.push(id),
            }
        }
        drop(seen);
        for id in broken {
            if pending.fail_subscription(&id, &gone("the worker's connection was lost, and items may be")) {
                unknown.push(id);
            }
        }
        unknown
    }

    /// Handles an event, which has a number among those of its request if its sender counts.
    ///
    /// Duplicates are ignored. If an event is missing, the request fails, so a subscriber never misses an item
    /// unnoticed. If the event ended the request, its number is returned.
    pub(crate) fn receive(
        &self,
        pending: &PendingRequests,
        worker: Option<&str>,
        number: Option<u64>,
        event: CallEvent,
    ) -> Option<Number> {
        let id = event.request_id().clone();
        let request = id.number()?;
        let counts =
            matches!(event, CallEvent::Responded { .. } | CallEvent::Completed { .. } | CallEvent::ItemError { .. });
        let expected = self.seen().get(&request).map_or(0, |seen| seen.next);
        match number {
            Some(number) if counts && number < expected => return None,
            Some(number) if counts && number > expected => {
                pending.fail(&id, gone("items of the subscription were lost"));
                return Some(request);
            }
            _ => {}
        }
        // Before the item is delivered: its reader gives credit at once, which has to find the worker.
        if let Some(worker) = worker
            && pending.streams(request)
        {
            let mut seen = self.seen();
            let fresh = || Seen { at: Instant::now(), worker: Some(worker.into()), next: 0 };
            let seen = seen.entry(request).or_insert_with(fresh);
            seen.at = Instant::now();
            seen.next = expected + 1;
            if seen.worker.is_none() {
                seen.worker = Some(worker.into());
            }
        }
        pending.receive(event);
        (!pending.has(request)).then_some(request)
    }

    /// The worker that runs a request, if known.
    pub(crate) fn worker_of(&self, id: &RequestId) -> Option<Arc<str>> {
        self.seen().get(&id.number()?)?.worker.clone()
    }

    /// The requests that a worker is known to run.
    pub(crate) fn of(&self, worker: &str) -> Vec<RequestId> {
        let runs = |seen: &Seen| seen.worker.as_deref() == Some(worker);
        self.seen().iter().filter(|(_, seen)| runs(seen)).map(|(number, _)| RequestId::of(*number)).collect()
    }

    /// Takes all requests as just reported, for a time in which no report could be read.
    pub(crate) fn pardon(&self) {
        let now = Instant::now();
        self.seen().values_mut().for_each(|seen| seen.at = now);
    }

    /// The pending requests that no worker has reported for that long.
    pub(crate) fn silent(&self, pending: &PendingRequests, after: Duration) -> Vec<RequestId> {
        // Locked first: a request may be sent after the others were listed, and its worker may have reported it
        // since.
        let mut seen = self.seen();
        let (numbers, now) = (pending.numbers(), Instant::now());
        let mut before = std::mem::take(&mut *seen);
        let mut silent = Vec::new();
        for number in numbers {
            let known = before.remove(&number).unwrap_or(Seen { at: now, worker: None, next: 0 });
            if now.duration_since(known.at) >= after {
                silent.push(RequestId::of(number));
            }
            seen.insert(number, known);
        }
        silent
    }
}

/// Notes which worker runs a request; false if it is another worker than before.
fn note(seen: &mut ByNumber<Seen>, number: Number, worker: &Arc<str>) -> bool {
    let fresh = || Seen { at: Instant::now(), worker: None, next: 0 };
    let seen = seen.entry(number).or_insert_with(fresh);
    seen.at = Instant::now();
    let before = seen.worker.replace(worker.clone());
    before.is_none_or(|before| before == *worker)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use futures_util::StreamExt;

    use super::*;
    use crate::call::{CallRequest, Frame, Link, Unsent};

    struct Anywhere;
    impl Link for Anywhere {
        fn send(&self, _: Frame) -> Result<(), Unsent> {
            Ok(())
        }
    }

    #[test]
    fn the_worker_is_known_when_its_first_item_is_read() {
        struct Reader(Arc<Liveness>, RequestId, AtomicBool);
        impl std::task::Wake for Reader {
            fn wake(self: Arc<Self>) {
                self.2.store(self.0.worker_of(&self.1).is_some(), Ordering::Relaxed);
            }
        }
        let (pending, liveness) = (PendingRequests::new(Arc::new(Anywhere)), Arc::new(Liveness::default()));
        let request = Box::new(CallRequest::new("a.b", serde_json::Value::Null));
        let request_id = request.request_id.clone();
        let mut items = pending.open(request).unwrap();
        let reader = Arc::new(Reader(liveness.clone(), request_id.clone(), AtomicBool::new(false)));
        let waker = reader.clone().into();
        assert!(items.poll_next_unpin(&mut std::task::Context::from_waker(&waker)).is_pending());
        let output = crate::ResponseEnvelope::local(crate::Payload::Value(1.into()), "a.b");
        liveness.receive(&pending, Some("w"), Some(0), CallEvent::Responded { request_id, output });
        assert!(reader.2.load(Ordering::Relaxed));
    }

    #[test]
    fn a_look_at_who_is_silent_forgets_no_request_that_has_just_been_sent() {
        let (pending, liveness) = (PendingRequests::new(Arc::new(Anywhere)), Liveness::default());
        let request = || Box::new(CallRequest::new("a.b", serde_json::Value::Null));
        // Many, so that it takes a while to list them.
        let _others: Vec<_> = (0..20_000).map(|_| pending.start(request()).unwrap()).collect();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    liveness.silent(&pending, Duration::from_secs(60));
                    // A lock that is taken again at once is nobody else's.
                    std::thread::sleep(Duration::from_micros(300));
                }
            });
            let worker: Arc<str> = "w".into();
            let mut forgotten = 0;
            for _ in 0..200 {
                let request = request();
                let id = request.request_id.clone();
                let call = pending.start(request).unwrap();
                liveness.running(&pending, &worker, vec![id.clone()]);
                // Whoever has begun a look is through with it.
                std::thread::sleep(Duration::from_millis(5));
                forgotten += usize::from(liveness.worker_of(&id).is_none());
                drop(call);
            }
            over.store(true, Ordering::Relaxed);
            assert_eq!(forgotten, 0);
        });
    }
}
