//! The last answers to a session's calls, for a client that loses its connection before it has read them.
//!
//! The SDK gives a client that comes back the messages of a call in flight. It forgets a call with its answer, whether
//! anybody has read that or not. Other requests can be sent again, but a call may have changed something.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;
use rmcp::model::{JsonRpcMessage, ServerResult};
use rmcp::transport::streamable_http_server::session::{EventStream, ServerSseMessage};
use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

use super::length;
use crate::model::lock::lock;

/// How long an answer is kept.
const KEPT: Duration = Duration::from_secs(60);

/// Limit of the answers of a session, in bytes. Its oldest make room for others.
const MOST: usize = 4 * 1024 * 1024;

/// Limit of the answers of all sessions, in bytes.
const ALL: usize = 64 * 1024 * 1024;

/// What an answer takes beside its text, about.
const LEAST: usize = 512;

/// How long an answer may take from a broken stream to here.
const MOMENT: Duration = Duration::from_millis(50);

/// The room for the answers of all sessions of a service: a permit for each byte.
pub(super) fn room() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(ALL))
}

/// The last answers to the calls of one session.
pub(super) struct Answers {
    kept: Mutex<Kept>,
    room: Arc<Semaphore>,
}

#[derive(Default)]
struct Kept {
    /// The oldest first.
    all: VecDeque<Answer>,
    bytes: usize,
}

struct Answer {
    event_id: String,
    /// The event as it is sent.
    event: Bytes,
    at: Instant,
    room: OwnedSemaphorePermit,
}

impl Kept {
    /// False if there is none.
    fn forget_oldest(&mut self) -> bool {
        let gone = self.all.pop_front();
        self.bytes = self.bytes.saturating_sub(gone.as_ref().map_or(0, |gone| gone.room.num_permits()));
        gone.is_some()
    }

    fn forget_old(&mut self) {
        while self.all.front().is_some_and(|oldest| oldest.at.elapsed() > KEPT) {
            self.forget_oldest();
        }
    }
}

impl Answers {
    pub(super) fn new(room: Arc<Semaphore>) -> Self {
        Self { kept: Mutex::default(), room }
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    /// Keeps an event if it is an answer, and if there is room for it: those of other sessions keep theirs.
    fn keep(&self, event: &ServerSseMessage) {
        let Some((event_id, event)) = sent(event) else { return };
        let bytes = event.len().saturating_add(LEAST);
        let mut kept = self.lock();
        kept.forget_old();
        let most = MOST.min(kept.bytes.saturating_add(self.room.available_permits()));
        let Some(permits) = u32::try_from(bytes).ok().filter(|_| bytes <= most) else { return };
        let room = loop {
            if kept.bytes.saturating_add(bytes) <= MOST
                && let Ok(room) = self.room.clone().try_acquire_many_owned(permits)
            {
                break room;
            }
            if !kept.forget_oldest() {
                return;
            }
        };
        kept.bytes = kept.bytes.saturating_add(bytes);
        kept.all.push_back(Answer { event_id, event, at: Instant::now(), room });
    }

    /// Forgets the answers whose time is over.
    pub(super) fn forget_old(&self) {
        self.lock().forget_old();
    }

    /// The event with the answer to the call whose stream has this event. `None` if it is not kept, or if it is this
    /// event.
    pub(super) fn after(&self, last_event: &str) -> Option<Bytes> {
        let (event_id, event) = self.find(last_event)?;
        (event_id != last_event).then_some(event)
    }

    /// True if the answer to a call is here that has ended, or comes in a moment.
    pub(super) async fn has(&self, last_event: &str) -> bool {
        if stream_of(last_event).is_some() && self.find(last_event).is_none() {
            sleep(MOMENT).await;
        }
        self.find(last_event).is_some()
    }

    fn find(&self, last_event: &str) -> Option<(String, Bytes)> {
        let stream = stream_of(last_event)?;
        let kept = self.lock();
        let mut answers = kept.all.iter().rev().filter(|answer| answer.at.elapsed() <= KEPT);
        let found = answers.find(|answer| stream_of(&answer.event_id) == Some(stream))?;
        Some((found.event_id.clone(), found.event.clone()))
    }

    /// Passes the events of a call on, and keeps its answer. If the client stops reading, the rest is read here.
    pub(super) fn watch(self: Arc<Self>, events: EventStream) -> EventStream {
        Box::pin(Watched { events: Some(events), answers: self })
    }
}

/// The stream of an event, by its id: `INDEX/STREAM`. `None` if it is the stream of the server's own messages.
fn stream_of(event_id: &str) -> Option<&str> {
    event_id.split_once('/').map(|(_, stream)| stream)
}

/// An answer as it is sent, with the id of its event. `None` for other messages, and for answers that are too large.
fn sent(event: &ServerSseMessage) -> Option<(String, Bytes)> {
    let message = event.message.as_deref()?;
    let is_small = match message {
        // Large results are not written once more.
        JsonRpcMessage::Response(response) => match &response.result {
            ServerResult::CallToolResult(result) => length::of_result(result) <= MOST,
            _ => true,
        },
        JsonRpcMessage::Error(_) => true,
        _ => false,
    };
    let event_id = event.event_id.clone().filter(|_| is_small)?;
    let mut text = b"data: ".to_vec();
    serde_json::to_writer(&mut text, message).ok()?;
    text.extend_from_slice(format!("\nid: {event_id}\n\n").as_bytes());
    text.shrink_to_fit();
    Some((event_id, text.into()))
}

/// The events of a call, as its client reads them.
struct Watched {
    /// `None` if there are no more.
    events: Option<EventStream>,
    answers: Arc<Answers>,
}

impl Stream for Watched {
    type Item = ServerSseMessage;

    fn poll_next(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<ServerSseMessage>> {
        let this = self.get_mut();
        let Some(events) = &mut this.events else { return Poll::Ready(None) };
        let next = ready!(events.as_mut().poll_next(task));
        match &next {
            // That it was sent does not mean that it has arrived.
            Some(event) => this.answers.keep(event),
            None => this.events = None,
        }
        Poll::Ready(next)
    }
}

impl Drop for Watched {
    /// The connection broke: the rest is read here, until the answer has come or the client reads the stream again.
    fn drop(&mut self) {
        let Some(mut events) = self.events.take() else { return };
        let Ok(runtime) = Handle::try_current() else { return };
        let answers = self.answers.clone();
        runtime.spawn(async move {
            while let Some(event) = events.next().await {
                answers.keep(&event);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, ContentBlock, RequestId, ServerJsonRpcMessage};

    use super::*;

    fn answer(event_id: &str, text: String) -> ServerSseMessage {
        let result = ServerResult::CallToolResult(CallToolResult::success(vec![ContentBlock::text(text)]));
        ServerSseMessage::new(event_id, ServerJsonRpcMessage::response(result, RequestId::Number(1)))
    }

    fn kept(answers: &Answers) -> Vec<String> {
        answers.lock().all.iter().map(|answer| answer.event_id.clone()).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_kept_for_a_while() {
        let room = room();
        let answers = Answers::new(room.clone());
        answers.keep(&answer("3/7", "first".into()));
        answers.keep(&ServerSseMessage::priming("0/8", KEPT));
        // With the answer itself, or without a stream, there is nothing more.
        for (last, has, more) in [("0/7", true, true), ("3/7", true, false), ("0/8", false, false), ("0", false, false)]
        {
            assert_eq!((answers.has(last).await, answers.after(last).is_some()), (has, more), "{last}");
        }
        let event = String::from_utf8(answers.after("0/7").unwrap().to_vec()).unwrap();
        assert!(event.starts_with("data: {") && event.ends_with("}\nid: 3/7\n\n"), "{event}");
        assert_eq!(ALL - room.available_permits(), event.len() + LEAST);
        sleep(KEPT * 2).await;
        assert!(!answers.has("0/7").await);
        answers.forget_old();
        assert!(kept(&answers).is_empty());
        assert_eq!(room.available_permits(), ALL);
    }

    #[tokio::test]
    async fn answers_have_a_bound() {
        let room = room();
        let (own, other) = (Answers::new(room.clone()), Answers::new(room.clone()));
        other.keep(&answer("1/0", "other".into()));
        for number in 0..6 {
            own.keep(&answer(&format!("1/{number}"), "x".repeat(MOST / 4)));
            assert!(own.lock().bytes <= MOST);
        }
        own.keep(&answer("1/6", "x".repeat(MOST)));
        assert_eq!(kept(&own), ["1/3", "1/4", "1/5"]);
        assert_eq!(kept(&other), ["1/0"]);
        // They are gone with their session.
        drop(own);
        let left = room.available_permits();
        assert!(ALL - left < 1_000);
        // What other sessions keep is not forgotten for those of this one, nor its own if that is no use.
        let _taken = room.clone().try_acquire_many_owned(u32::try_from(left).unwrap()).unwrap();
        other.keep(&answer("1/1", "x".repeat(1_000)));
        assert_eq!(kept(&other), ["1/0"]);
        other.keep(&answer("1/2", "x".into()));
        assert_eq!(kept(&other), ["1/2"]);
    }
}
