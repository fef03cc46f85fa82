//! Server-sent events, without those that rmcp does not need.

use std::collections::VecDeque;
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;
use tokio::time::{Instant, sleep_until};

use crate::http::sse::SseParser;
use crate::mcp::client::batch;
use crate::mcp::client::interceptor::{Interceptor, Verdict, decode};
use crate::mcp::client::secrets::Given;
use crate::model::clock::millis;

/// The limits of the delay that a server may request before a stream is reopened.
const RETRY: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(60)];

/// The events in the bytes of a response.
pub(super) fn read<S>(
    bytes: S,
    parser: SseParser,
    interceptor: Arc<Interceptor>,
    given: Arc<Given>,
) -> BoxStream<'static, Result<Sse, SseError>>
where
    S: Stream<Item = Result<Bytes, reqwest::Error>> + Send + Unpin + 'static,
{
    Events { bytes, parser, interceptor, given, batch: VecDeque::new(), id: String::new(), retry: None }.stream()
}

/// The messages of a batch, each as an event.
pub(super) fn of_batch(
    messages: Vec<String>,
    interceptor: Arc<Interceptor>,
    given: Arc<Given>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let (bytes, parser) = (stream::empty::<Result<Bytes, reqwest::Error>>(), SseParser::new());
    Events { bytes, parser, interceptor, given, batch: messages.into(), id: String::new(), retry: None }.stream()
}

/// The events that come for `server/discover`: if the server ends them without an answer, or has given none by then, it is
/// taken for an old one.
pub(super) fn discovered(
    events: BoxStream<'static, Result<Sse, SseError>>,
    until: Instant,
    interceptor: Arc<Interceptor>,
) -> BoxStream<'static, Result<Sse, SseError>> {
    // It gives nothing up if there was an answer.
    let given_up = async move {
        let message = interceptor.give_up_discovery()?;
        Some(Ok::<_, SseError>(Sse { data: serde_json::to_string(&message).ok(), ..Sse::default() }))
    };
    events.take_until(sleep_until(until)).chain(stream::once(given_up).filter_map(ready)).boxed()
}

/// A stream of events for rmcp.
struct Events<S> {
    bytes: S,
    parser: SseParser,
    interceptor: Arc<Interceptor>,
    given: Arc<Given>,
    /// Messages of a batch that are not taken yet.
    batch: VecDeque<String>,
    /// The last event id and the reconnection time that rmcp knows.
    id: String,
    retry: Option<Duration>,
}

impl<S: Stream<Item = Result<Bytes, reqwest::Error>> + Send + Unpin + 'static> Events<S> {
    fn stream(self) -> BoxStream<'static, Result<Sse, SseError>> {
        stream::unfold(Some(self), |events| async move {
            let mut events = events?;
            match events.next().await {
                Some(Ok(event)) => Some((Ok(event), Some(events))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        })
        .boxed()
    }

    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if let Some(message) = self.batch.pop_front() {
                if let Some(data) = self.data(&message) {
                    return Some(Ok(Sse { data: Some(data), ..Sse::default() }));
                }
                continue;
            }
            if let Some(event) = self.parser.next_event() {
                if event.kind != "message" {
                    continue;
                }
                let mut sse = self.seen(event.id.clone(), event.retry);
                match batch::unpack(event.data.trim()) {
                    Ok(None) => sse.data = self.data(&event.data),
                    // They follow the event that has their id.
                    Ok(Some(messages)) => self.batch.extend(messages),
                    Err(error) => self.skips(&event.data, &error),
                }
                return Some(Ok(sse));
            }
            // Events without data only set the id and the delay for resuming.
            let (id, retry) = (self.parser.last_event_id().to_owned(), self.parser.retry());
            if id != self.id || retry != self.retry {
                return Some(Ok(self.seen(id, retry)));
            }
            match self.bytes.next().await? {
                Ok(chunk) => {
                    if let Err(error) = self.parser.push(&chunk) {
                        return Some(Err(SseError::Body(Box::new(error))));
                    }
                }
                Err(error) => return Some(Err(SseError::Body(Box::new(error)))),
            }
        }
    }

    fn seen(&mut self, id: String, retry: Option<Duration>) -> Sse {
        let [shortest, longest] = RETRY;
        let retry = retry.map(|retry| retry.clamp(shortest, longest));
        let retry = retry.map(millis);
        let sse = Sse { id: (!id.is_empty()).then(|| id.clone()), retry, ..Sse::default() };
        self.id = id;
        self.retry = self.parser.retry();
        sse
    }

    fn data(&self, data: &str) -> Option<String> {
        if data.trim().is_empty() {
            return None;
        }
        match self.interceptor.inbound(data) {
            Ok(Verdict::Pass) => Some(self.given.heard(data).into_owned()),
            Ok(verdict) => decode(verdict, data).ok()?.and_then(|message| serde_json::to_string(&message).ok()),
            Err(error) => {
                self.skips(data, &error);
                None
            }
        }
    }

    fn skips(&self, data: &str, error: &dyn fmt::Display) {
        let error = self.given.words(error);
        tracing::warn!(server = %self.interceptor.server, bytes = data.len(), error, "an event that is no message is skipped");
    }
}
