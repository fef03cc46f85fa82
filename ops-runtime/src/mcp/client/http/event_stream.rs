//! The stream of a server's own messages: it is reopened as long as the session lives.
//!
//! rmcp gives up such a stream after a few attempts, or if it does not open at once. A server whose stream is lost
//! cannot report changes of its tools.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use http::{HeaderName, HeaderValue, StatusCode};
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use serde_json::Value;
use sse_stream::Sse;
use tokio::sync::Notify;

use super::errors::not_begun;
use super::replies::Replies;
use super::{Failure, OPENING};
use crate::CallError;
use crate::mcp::client::delay::Reopening;
use crate::mcp::client::interceptor::Interceptor;

type Events = BoxStream<'static, Result<Sse, SseError>>;

/// A client that reopens its standing stream, sends replies beside each other, and notes when a session replaces another.
#[derive(Clone)]
pub(in crate::mcp::client) struct Standing<C> {
    client: C,
    interceptor: Arc<Interceptor>,
    /// Notified when the tools may have changed.
    changed: Arc<Notify>,
    /// True once a session has begun.
    begun: Arc<AtomicBool>,
    replies: Replies,
}

impl<C> Standing<C> {
    pub(in crate::mcp::client) fn new(client: C, interceptor: Arc<Interceptor>, changed: Arc<Notify>) -> Self {
        Self { client, interceptor, changed, begun: Arc::default(), replies: Replies::default() }
    }
}

impl<C: StreamableHttpClient<Error = CallError> + Sync> StreamableHttpClient for Standing<C> {
    type Error = CallError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        if matches!(message, ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_)) {
            if !self.interceptor.replies(&message) {
                tracing::debug!(server = %self.interceptor.server, "a reply to a question that is not open is not sent");
                return Ok(StreamableHttpPostResponse::Accepted);
            }
            let (client, server) = (self.client.clone(), self.interceptor.server.clone());
            let unsent = self.replies.send(Box::pin(async move {
                if let Err(error) = client.post_message(uri, message, session_id, auth_header, headers).await {
                    let error = CallError::from_error(error);
                    tracing::warn!(%server, error = error.message(), "a reply to the server was not accepted");
                }
            }));
            // Too many are being sent: rmcp waits for this one, up to its own limit.
            if let Some(reply) = unsent {
                reply.await;
            }
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let begins = matches!(&message, ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::InitializeRequest(_)));
        let has_begun = matches!(&message, ClientJsonRpcMessage::Notification(notification)
            if matches!(notification.notification, ClientNotification::InitializedNotification(_)));
        // The questions of a session that the server has forgotten: those of the next may have the same ids.
        if begins {
            self.interceptor.questions.withdraw();
        }
        let sent = self.client.post_message(uri, message, session_id, auth_header, headers).await;
        let answer = if begins || has_begun { sent.map_err(not_begun)? } else { sent? };
        // The streams of the old session stayed open meanwhile, and may have brought more. The next has no stream yet.
        if has_begun {
            self.interceptor.questions.withdraw();
        }
        // rmcp restarts a session that the server has forgotten; by then the server may have other tools.
        if begins && self.begun.swap(true, Ordering::AcqRel) {
            self.changed.notify_one();
        }
        Ok(answer)
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        self.client.delete_session(uri, session_id, auth_header, headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, Failure> {
        let since = Instant::now();
        let first = self.client.get_stream(
            uri.clone(),
            session.clone(),
            last_event_id.clone(),
            auth_header.clone(),
            headers.clone(),
        );
        let first = first.await;
        // With an event id, the stream of a call is resumed.
        if last_event_id.is_some() {
            return first;
        }
        let mut reopening = Reopening::default();
        let open = match first {
            Ok(events) => {
                reopening.opened();
                // Requests did not wait for it that long.
                if since.elapsed() >= OPENING {
                    self.missed();
                }
                Some(events)
            }
            Err(error) if passes(&error) => None,
            Err(error) => return Err(error),
        };
        let again = Again {
            standing: self.clone(),
            uri,
            session,
            auth_header,
            headers,
            id: None,
            retry: Duration::ZERO,
            reopening,
        };
        Ok(stream::unfold((again, open), |(mut again, open)| async move {
            let (event, open) = again.next(open).await?;
            Some((Ok(event), (again, Some(open))))
        })
        .boxed())
    }
}

impl<C> Standing<C> {
    /// Notes that the server may have been unable to report changes of its tools.
    fn missed(&self) {
        if self.interceptor.reports_changes() {
            self.changed.notify_one();
        }
    }
}

/// The data for reopening the stream.
struct Again<C> {
    standing: Standing<C>,
    uri: Arc<str>,
    session: Option<Arc<str>>,
    auth_header: Option<String>,
    headers: HashMap<HeaderName, HeaderValue>,
    /// The id of the last event.
    id: Option<String>,
    /// The delay that the server requests.
    retry: Duration,
    reopening: Reopening,
}

impl<C: StreamableHttpClient<Error = CallError>> Again<C> {
    /// The next event, with the stream that it came from. `None` if the server has no such stream any more.
    async fn next(&mut self, mut open: Option<Events>) -> Option<(Sse, Events)> {
        // True if the server could not report all changes.
        let mut lost = open.is_none();
        loop {
            if let Some(mut events) = open.take() {
                match events.next().await {
                    Some(Ok(event)) => {
                        self.retry = event.retry.map_or(self.retry, Duration::from_millis);
                        if let Some(id) = event.id.clone() {
                            self.id = Some(id);
                            self.reopening.works();
                        }
                        return Some((event, events));
                    }
                    Some(Err(error)) => {
                        self.tell(&error);
                        lost = true;
                    }
                    // A server may end its stream at any time if it continues it after the last event.
                    None => lost |= self.id.is_none(),
                }
            }
            self.reopening.wait(self.retry).await;
            let (uri, session, headers) = (self.uri.clone(), self.session.clone(), self.headers.clone());
            let client = &self.standing.client;
            match client.get_stream(uri, session, self.id.clone(), self.auth_header.clone(), headers).await {
                Ok(events) => {
                    self.reopening.opened();
                    if std::mem::take(&mut lost) {
                        self.standing.missed();
                    }
                    open = Some(events);
                }
                Err(StreamableHttpError::ServerDoesNotSupportSse) => return None,
                Err(error) => {
                    // A server that has forgotten the session says so to the request for its tools, too. Then rmcp begins
                    // another, with a stream of its own in place of this one.
                    if matches!(error, StreamableHttpError::SessionExpired) {
                        self.standing.changed.notify_one();
                    }
                    self.tell(&error);
                    lost = true;
                }
            }
        }
    }

    fn tell(&self, error: &(dyn std::error::Error + 'static)) {
        let server = &self.standing.interceptor.server;
        tracing::debug!(%server, error = CallError::of_error(error).message(), "the stream of the server's own messages broke off");
    }
}

/// True if the server may open the stream when it is asked again.
fn passes(error: &Failure) -> bool {
    let error = match error {
        StreamableHttpError::Client(error) => error,
        // It broke off.
        StreamableHttpError::Io(_) => return true,
        _ => return false,
    };
    let status =
        error.details().get("statusCode").and_then(Value::as_u64).and_then(|status| u16::try_from(status).ok());
    let Some(status) = status.and_then(|status| StatusCode::from_u16(status).ok()) else { return true };
    let waits = matches!(status, StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS);
    waits || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use serde_json::json;

    use super::*;
    use crate::mcp::client::interceptor::Verdict;

    /// A server that opens the stream at some tries.
    #[derive(Clone, Default)]
    struct Fake {
        tries: Arc<AtomicUsize>,
    }

    impl StreamableHttpClient for Fake {
        type Error = CallError;

        async fn post_message(
            &self,
            _: Arc<str>,
            _: ClientJsonRpcMessage,
            _: Option<Arc<str>>,
            _: Option<String>,
            _: HashMap<HeaderName, HeaderValue>,
        ) -> Result<StreamableHttpPostResponse, Failure> {
            Ok(StreamableHttpPostResponse::Accepted)
        }

        async fn delete_session(
            &self,
            _: Arc<str>,
            _: Arc<str>,
            _: Option<String>,
            _: HashMap<HeaderName, HeaderValue>,
        ) -> Result<(), Failure> {
            Ok(())
        }

        async fn get_stream(
            &self,
            _: Arc<str>,
            _: Option<Arc<str>>,
            id: Option<String>,
            _: Option<String>,
            _: HashMap<HeaderName, HeaderValue>,
        ) -> Result<Events, Failure> {
            match self.tries.fetch_add(1, Ordering::Relaxed) {
                0 => {
                    let event = Sse { id: Some("7".to_owned()), data: Some("first".to_owned()), ..Sse::default() };
                    Ok(stream::iter([Ok(event)]).boxed())
                }
                1..50 => Err(StreamableHttpError::Client(CallError::execution("the server is away"))),
                50 => Ok(stream::iter([Ok(Sse { data: id, ..Sse::default() })]).boxed()),
                _ => Err(StreamableHttpError::ServerDoesNotSupportSse),
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_may_be_away_for_long() {
        let (changed, client) = (Arc::new(Notify::new()), Fake::default());
        let interceptor = Interceptor::new("s");
        let standing = Standing::new(client.clone(), interceptor, changed);
        let begun = tokio::time::Instant::now();
        let events = standing.get_stream("http://x".into(), None, None, None, HashMap::new()).await.unwrap();
        let events: Vec<_> = events.map(|event| event.unwrap().data.unwrap()).collect().await;
        // It goes on behind the last event that came.
        assert_eq!((events, client.tries.load(Ordering::Relaxed)), (vec!["first".to_owned(), "7".to_owned()], 52));
        // The delays do not grow without end.
        assert!((600..2000).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    }

    #[tokio::test]
    async fn a_question_of_a_lost_session_takes_no_id_of_the_next() {
        let interceptor = Interceptor::new("s");
        let standing = Standing::new(Fake::default(), interceptor.clone(), Arc::default());
        let send = async |message: Value| {
            let message = serde_json::from_value(message).unwrap();
            standing.post_message("http://x".into(), message, None, None, HashMap::new()).await.unwrap();
        };
        let asks = || {
            let question = r#"{"id":0,"method":"elicitation/create"}"#;
            matches!(interceptor.inbound(question).unwrap(), Verdict::Pass)
        };
        assert!(asks() && !asks());
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" },
        });
        send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })).await;
        // A stream of the old session brings another, before the next session has begun.
        assert!(asks() && !asks());
        send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        assert!(asks() && !asks());
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let failed =
            |details: Value| passes(&StreamableHttpError::Client(CallError::execution("x").with_details(details)));
        for (status, expected) in [(400, false), (404, false), (429, true), (500, true), (501, false), (503, true)] {
            assert_eq!(failed(json!({ "statusCode": status })), expected, "{status}");
        }
        assert!(failed(Value::Null) && passes(&StreamableHttpError::Io(std::io::Error::other("broken off"))));
        assert!(!passes(&StreamableHttpError::ServerDoesNotSupportSse));
    }
}
