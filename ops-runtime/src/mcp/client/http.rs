//! A server at a URL: streamable HTTP, below rmcp's transport, which handles sessions and resumes streams.

mod errors;
mod event_stream;
mod events;
mod replies;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, ALLOW, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reqwest::redirect::Policy;
use reqwest::{RequestBuilder, Response};
use rmcp::model::{ClientJsonRpcMessage, ClientNotification, ClientRequest, ClientResult};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpClientTransportConfig,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;
use tokio::sync::watch;
use tokio::time::timeout_at;

use self::errors::{broken, broken_off, demands_scope, moved, status_error};
pub(super) use self::errors::{failure, may_be_done};
pub(super) use self::event_stream::Standing;
use super::batch;
use super::interceptor::Interceptor;
use super::secrets::Given;
use crate::http::sse::SseParser;
use crate::mcp::config::Http as Config;
use crate::mcp::follow::{follow, follow_with_message};
use crate::mcp::invalid;
use crate::model::lock::lock;
use crate::{BoxFuture, CallError, http as engine};

/// Timeout for the server's supported revisions; a server that says nothing by then is taken for an old one.
const DISCOVERY: Duration = Duration::from_secs(15);

/// Timeout for opening the stream of the server's own messages.
const OPENING: Duration = Duration::from_secs(3);

/// How much of the body of an error is kept.
const MAX_ERROR: usize = 64 * 1024;

/// Timeout for the acceptance of a message without a response, and for opening a stream.
const ACCEPT_TIME: Duration = Duration::from_secs(60);

/// Upper limit of the time to restart a session, whatever is configured: rmcp waits as long for the requests of the
/// forgotten session, and sends no others before.
const LONGEST_RECOVERY: Duration = Duration::from_secs(15);

/// How long the server may take to end a session, to accept a pong, or to accept that a call is cancelled.
const END_TIME: Duration = Duration::from_secs(5);

/// How many streams may be opened in a row, beside one per waiting call, and how long until one more may be.
const STREAMS: u32 = 16;
const STREAM: Duration = Duration::from_secs(1);

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

/// The headers that this client sets by itself.
const OWN: [&str; 4] = ["accept", "content-type", SESSION, LAST_EVENT];

type Failure = StreamableHttpError<CallError>;

/// The HTTP client below rmcp's transport.
#[derive(Clone)]
pub(super) struct Http {
    /// Sends messages. Only some redirects keep the message.
    client: reqwest::Client,
    /// Sends requests without a message: a GET loses nothing by a redirect.
    bare: reqwest::Client,
    pub(super) interceptor: Arc<Interceptor>,
    pub(super) given: Arc<Given>,
    /// True if tokens can be obtained for the server.
    authorizes: bool,
    max_message: usize,
    /// Timeout for the server's supported revisions. `None` if it is known to have the newest.
    discovery: Option<Duration>,
    /// The session whose own stream is open, or is known not to open.
    opened: Arc<watch::Sender<Option<Arc<str>>>>,
    pace: Arc<Mutex<Pace>>,
}

/// Limits how often streams are opened, in case a server ends each at once.
struct Pace {
    /// Number of opened streams, reduced as time passes.
    opened: u32,
    since: Instant,
}

impl Pace {
    /// The delay before the next stream.
    fn next(&mut self, calls: usize) -> Duration {
        let made_up = u32::try_from(self.since.elapsed().as_millis() / STREAM.as_millis()).unwrap_or(u32::MAX);
        if made_up > 0 {
            self.opened = self.opened.saturating_sub(made_up);
            self.since = Instant::now();
        }
        self.opened = self.opened.saturating_add(1);
        let free = STREAMS.saturating_add(u32::try_from(calls).unwrap_or(u32::MAX));
        STREAM.saturating_mul(self.opened.saturating_sub(free))
    }
}

/// The transport of a server at a URL, over a client that may add tokens. A session that the server has forgotten is
/// restarted within `recovery`.
pub(super) fn transport<C>(
    config: &Config,
    recovery: Duration,
    client: Standing<C>,
) -> Result<StreamableHttpClientTransport<Standing<C>>, CallError>
where
    C: StreamableHttpClient<Error = CallError> + Sync,
{
    let settings = settings(config)?.session_recovery_timeout(recovery.min(LONGEST_RECOVERY));
    Ok(StreamableHttpClientTransport::with_client(client, settings))
}

/// The configuration of rmcp's transport.
fn settings(config: &Config) -> Result<StreamableHttpClientTransportConfig, CallError> {
    if !config.url.starts_with("https://") && !config.url.starts_with("http://") {
        return Err(invalid("its URL starts with neither `https://` nor `http://`"));
    }
    let mut headers = HashMap::new();
    for (name, value) in &config.headers {
        let wrong = || {
            invalid(format!(
                "the header `{name}` is invalid: its name or its value has characters that HTTP does not allow"
            ))
        };
        let mut value = HeaderValue::from_str(value).map_err(|_| wrong())?;
        value.set_sensitive(true);
        headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| wrong())?, value);
    }
    // A broken stream is resumed a few times; a call without a timeout must not wait for ever.
    let mut retries = ExponentialBackoff::default();
    (retries.max_times, retries.max_delay) = (Some(6), Some(Duration::from_secs(5)));
    let mut settings = StreamableHttpClientTransportConfig::with_uri(config.url.as_str())
        .custom_headers(headers)
        // The answer to a call may take as long as the call.
        .max_concurrent_requests(usize::MAX)
        // For cancellations, which rmcp sends one after the other. Replies do not keep it waiting: see `Replies`.
        .control_request_timeout(END_TIME);
    settings.retry_config = Arc::new(retries);
    settings.auth_header.clone_from(&config.bearer);
    Ok(settings)
}

impl Http {
    pub(super) fn new(max_message: usize, interceptor: Arc<Interceptor>, given: Arc<Given>) -> Result<Self, CallError> {
        let client = |redirects: Policy| {
            engine::builder().redirect(redirects).build().map_err(|error| {
                CallError::execution(format!("the HTTP client cannot be set up: {}", error.without_url()))
            })
        };
        interceptor.over_http();
        Ok(Self {
            client: client(Policy::custom(follow_with_message))?,
            bare: client(Policy::custom(follow))?,
            interceptor,
            given,
            authorizes: false,
            max_message,
            discovery: Some(DISCOVERY),
            opened: Arc::new(watch::Sender::new(None)),
            pace: Arc::new(Mutex::new(Pace { opened: 0, since: Instant::now() })),
        })
    }

    /// The client of a server for which tokens can be obtained.
    #[cfg(feature = "mcp-auth")]
    pub(super) fn with_authorization(self) -> Self {
        Self { authorizes: true, ..self }
    }

    /// The client of a server that is known to have the newest revision, and may take any time to say so.
    pub(super) fn patient(self) -> Self {
        Self { discovery: None, ..self }
    }

    /// Waits until the server can send messages of its own in this session. Some servers lose questions that they ask
    /// before that, during the first call.
    async fn opened(&self, session: &Arc<str>, message: &ClientJsonRpcMessage) {
        let is_open = |opened: &Option<Arc<str>>| opened.as_ref() == Some(session);
        if matches!(message, ClientJsonRpcMessage::Request(_)) && self.opened.borrow().as_ref() != Some(session) {
            let mut opened = self.opened.subscribe();
            let _ = tokio::time::timeout(OPENING, opened.wait_for(is_open)).await;
            self.opened.send_replace(Some(session.clone()));
        }
    }

    async fn send(
        &self,
        mut request: RequestBuilder,
        session: Option<&str>,
        token: Option<String>,
        mut headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Response, Failure> {
        // A header that is set here is not sent a second time as it is configured.
        headers.retain(|name, _| !OWN.contains(&name.as_str()) && (token.is_none() || *name != AUTHORIZATION));
        for (name, value) in headers {
            request = request.header(name, value);
        }
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let response = request.send().await.map_err(|error| self.without_secrets(broken(error)))?;
        match (response.status(), challenge(response.headers())) {
            // Without a challenge, the default location of the authorization server is used (2025-11-25).
            (StatusCode::UNAUTHORIZED, challenge) if self.authorizes => {
                let challenge = self.given.challenge(challenge.unwrap_or_default());
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) if self.authorizes && demands_scope(&challenge) => {
                let challenge = self.given.challenge(challenge);
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
            }
            (StatusCode::NOT_FOUND, _) if session.is_some() => Err(StreamableHttpError::SessionExpired),
            _ => Ok(response),
        }
    }

    /// The response to a sent message.
    async fn answer(&self, response: Response, is_request: bool) -> Result<StreamableHttpPostResponse, Failure> {
        let session = response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if matches!(response.status(), StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        // Some servers send "ok", or an empty result or stream, if there is nothing to respond to.
        if !is_request {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if is(&response, EVENTS) {
            return Ok(StreamableHttpPostResponse::Sse(self.events(response), session));
        }
        let kind = content_type(response.headers());
        let is_json = is(&response, JSON);
        let body = body(response, self.max_message).await?;
        if body.trim().is_empty() {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if !is_json {
            return Err(StreamableHttpError::UnexpectedContentType(Some(self.given.text(&kind).into_owned())));
        }
        match batch::unpack(body.trim()) {
            Ok(None) => {}
            // rmcp takes one message, or a stream of them.
            Ok(Some(messages)) => {
                let events = events::of_batch(messages, self.interceptor.clone(), self.given.clone());
                return Ok(StreamableHttpPostResponse::Sse(events, session));
            }
            Err(error) => return Err(broken_off(format!("unexpected server response: {error}"))),
        }
        let read = self.interceptor.inbound(&body).and_then(|verdict| self.given.decode(verdict, &body));
        match read.map_err(|error| self.unread(&error))? {
            Some(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            None => Err(broken_off("unexpected server response: it answers no request that is waiting".to_owned())),
        }
    }

    /// Converts an error response for rmcp.
    async fn refused(
        &self,
        response: Response,
        is_request: bool,
        discovering: bool,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let (status, headers, is_json) = (response.status(), response.headers().clone(), is(&response, JSON));
        let body = body(response, MAX_ERROR).await.unwrap_or_default();
        let is_unauthorized = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        // Many send a JSON-RPC error with a status of the same meaning. If a reply is refused, its id is that of the server's
        // question, and may be that of a request of this side, too. A challenge is in the error of the status.
        if is_request
            && is_json
            && !(is_unauthorized && headers.contains_key(WWW_AUTHENTICATE))
            && let Ok(Some(message)) =
                self.interceptor.inbound(&body).and_then(|verdict| self.given.decode(verdict, &body))
        {
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        if discovering
            && !is_unauthorized
            && status != StatusCode::TOO_MANY_REQUESTS
            && let Some(message) = self.interceptor.give_up_discovery()
        {
            return Ok(StreamableHttpPostResponse::Json(message, None));
        }
        Err(StreamableHttpError::Client(self.given.error(status_error(status, &headers, body))))
    }

    /// An error without secrets. The error of a redirect names a place that the server has chosen.
    fn without_secrets(&self, error: Failure) -> Failure {
        match error {
            StreamableHttpError::Client(error) => StreamableHttpError::Client(self.given.error(error)),
            error => error,
        }
    }

    /// The error of a response that is not a message; it may quote the response.
    fn unread(&self, error: &serde_json::Error) -> Failure {
        broken_off(format!("Deserialize error: {}", self.given.words(error)))
    }

    /// Server-sent events, without those that rmcp does not need.
    fn events(&self, response: Response) -> BoxStream<'static, Result<Sse, SseError>> {
        let bytes = response.bytes_stream().map(|chunk| chunk.map_err(reqwest::Error::without_url));
        let parser = SseParser::new().with_max_line(self.max_message).with_max_event(self.max_message);
        events::read(bytes.boxed(), parser, self.interceptor.clone(), self.given.clone())
    }

    /// Sends a message, and returns the response. The future is boxed, because the SDK awaits it at many places.
    fn post(
        &self,
        uri: Arc<str>,
        mut message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> BoxFuture<'_, Result<StreamableHttpPostResponse, Failure>> {
        Box::pin(async move {
            if let Some(session) = &session_id {
                self.opened(session, &message).await;
            }
            self.interceptor.outbound(&mut message);
            let discovering = matches!(&message, ClientJsonRpcMessage::Request(request)
                if matches!(request.request, ClientRequest::DiscoverRequest(_)));
            let is_request = matches!(message, ClientJsonRpcMessage::Request(_));
            let accept_time = if is_minor(&message) { END_TIME } else { ACCEPT_TIME };
            let body = serde_json::to_vec(&message)?;
            let request =
                self.client.post(&*uri).header(ACCEPT, [JSON, EVENTS].join(", ")).header(CONTENT_TYPE, JSON).body(body);
            let answered = async {
                let response = self.send(request, session_id.as_deref(), auth_header, custom_headers).await?;
                if let Some(error) = moved(&response) {
                    Err(self.without_secrets(StreamableHttpError::Client(error)))
                } else if response.status().is_success() {
                    self.answer(response, is_request).await
                } else {
                    self.refused(response, is_request, discovering).await
                }
            };
            let Some(limit) = self.discovery.filter(|_| discovering) else {
                // The caller of a request has its own timeout.
                return if is_request { answered.await } else { soon(accept_time, answered).await };
            };
            let until = tokio::time::Instant::now() + limit;
            match timeout_at(until, answered).await {
                Ok(Ok(StreamableHttpPostResponse::Sse(events, session))) => Ok(StreamableHttpPostResponse::Sse(
                    events::discovered(events, until, self.interceptor.clone()),
                    session,
                )),
                // A server that only accepts the message sends no response to it.
                Ok(Ok(StreamableHttpPostResponse::Accepted)) | Err(_) => match self.interceptor.give_up_discovery() {
                    Some(message) => Ok(StreamableHttpPostResponse::Json(message, None)),
                    None => Err(StreamableHttpError::UnexpectedEndOfStream),
                },
                Ok(answered) => answered,
            }
        })
    }
}

impl StreamableHttpClient for Http {
    type Error = CallError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        self.post(uri, message, session_id, auth_header, custom_headers).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failure> {
        let sent = self.send(self.bare.delete(&*uri), Some(&session_id), auth_header, custom_headers);
        // Closing a connection waits only a short time for the server.
        let response = soon(END_TIME, sent).await?;
        if !response.status().is_success() {
            tracing::debug!(server = %self.interceptor.server, status = response.status().as_u16(), "the session is not ended");
        }
        Ok(())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let mut request = self.bare.get(&*uri).header(ACCEPT, EVENTS);
        if let Some(id) = last_event_id {
            request = request.header(LAST_EVENT, id);
        }
        let wait = lock(&self.pace).next(self.interceptor.pending());
        if !wait.is_zero() {
            tracing::debug!(server = %self.interceptor.server, ?wait, "the server ends its streams too often");
            tokio::time::sleep(wait).await;
        }
        let response = soon(ACCEPT_TIME, self.send(request, session_id.as_deref(), auth_header, custom_headers)).await;
        self.opened.send_replace(session_id);
        let response = response?;
        let status = response.status();
        if status == StatusCode::METHOD_NOT_ALLOWED
            || (status.is_client_error() && response.headers().contains_key(ALLOW))
        {
            return Err(StreamableHttpError::ServerDoesNotSupportSse);
        }
        if !status.is_success() {
            let headers = response.headers().clone();
            let error = status_error(status, &headers, String::new());
            return Err(StreamableHttpError::Client(self.given.error(error)));
        }
        if !is(&response, EVENTS) {
            let kind = content_type(response.headers());
            return Err(StreamableHttpError::UnexpectedContentType(Some(self.given.text(&kind).into_owned())));
        }
        Ok(self.events(response))
    }
}

/// True if a message only says that a call is cancelled, or that this side is alive: the server accepts it at once or never,
/// and it is no reason to ask the user for authorization.
pub(super) fn is_minor(message: &ClientJsonRpcMessage) -> bool {
    match message {
        ClientJsonRpcMessage::Notification(notification) => {
            matches!(notification.notification, ClientNotification::CancelledNotification(_))
        }
        ClientJsonRpcMessage::Response(response) => matches!(response.result, ClientResult::EmptyResult(_)),
        _ => false,
    }
}

/// Limits the wait for something that a server should do at once.
async fn soon<T>(limit: Duration, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
        let message = format!("the server did not answer within {limit:?}");
        Err(StreamableHttpError::Client(CallError::new(crate::ErrorCode::Timeout, message)))
    })
}

/// The challenges of a response. A server may send a line for each scheme, which is the same as all in one (RFC 9110,
/// section 5.3).
fn challenge(headers: &HeaderMap) -> Option<String> {
    let lines = headers.get_all(WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenges: Vec<&str> = lines.collect();
    (!challenges.is_empty()).then(|| challenges.join(", "))
}

fn is(response: &Response, kind: &str) -> bool {
    let given = content_type(response.headers());
    given.split(';').next().is_some_and(|given| given.trim().eq_ignore_ascii_case(kind))
}

fn content_type(headers: &HeaderMap) -> String {
    headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// The body, within the size limit.
async fn body(response: Response, max: usize) -> Result<String, Failure> {
    let mut bytes = response.bytes_stream();
    let mut body = Vec::new();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(broken)?;
        if body.len() + chunk.len() > max {
            return Err(StreamableHttpError::ResponseBodyTooLarge { max_size: max });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(String::from_utf8(body).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}
