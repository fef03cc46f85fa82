//! Server-sent events, without those that rmcp does not need.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use rmcp::transport::streamable_http_client::SseError;
use sse_stream::Sse;

use crate::http::sse::SseParser;
use crate::mcp::client::given::Given;
use crate::mcp::client::interceptor::{Interceptor, Verdict, decode};

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
    let events = Events { bytes, parser, interceptor, given, id: String::new(), retry: None };
    stream::unfold(Some(events), |events| async move {
        let mut events = events?;
        match events.next().await {
            Some(Ok(event)) => Some((Ok(event), Some(events))),
            Some(Err(error)) => Some((Err(error), None)),
            None => None,
        }
    })
    .boxed()
}

/// A stream of events for rmcp.
struct Events<S> {
    bytes: S,
    parser: SseParser,
    interceptor: Arc<Interceptor>,
    given: Arc<Given>,
    /// The last event id and the reconnection time that rmcp knows.
    id: String,
    retry: Option<Duration>,
}

impl<S: Stream<Item = Result<Bytes, reqwest::Error>> + Unpin> Events<S> {
    async fn next(&mut self) -> Option<Result<Sse, SseError>> {
        loop {
            if let Some(event) = self.parser.next_event() {
                if event.kind != "message" {
                    continue;
                }
                let mut sse = self.seen(event.id.clone(), event.retry);
                sse.data = self.data(event.data);
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
        let retry = retry.map(|retry| u64::try_from(retry.as_millis()).unwrap_or(u64::MAX));
        let sse = Sse { id: (!id.is_empty()).then(|| id.clone()), retry, ..Sse::default() };
        self.id = id;
        self.retry = self.parser.retry();
        sse
    }

    fn data(&self, data: String) -> Option<String> {
        if data.trim().is_empty() {
            return None;
        }
        match self.interceptor.inbound(&data) {
            Ok(Verdict::Pass) => Some(self.given.heard(&data).into_owned()),
            Ok(verdict) => decode(verdict, &data).ok()?.and_then(|message| serde_json::to_string(&message).ok()),
            Err(error) => {
                let error = self.given.words(&error);
                tracing::warn!(server = %self.interceptor.server, bytes = data.len(), error, "an event that is no message is skipped");
                None
            }
        }
    }
}
