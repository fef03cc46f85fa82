//! The server over streamable HTTP: authentication, and sessions that belong to their creators.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::model::{ErrorData, RequestId};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::answers::Answers;
use super::body::{McpBody, RequestBody, of_request, plain, refusal};
use super::cors::Asking;
use super::handler::Connection;
use super::limits::{Held, Limits, busy};
use super::message;
use super::options::McpServerOptions;
use super::sessions::{self, Entered, Sessions, Unknown};
use super::shared::Shared;
#[cfg(feature = "durable")]
use super::tasks;
use crate::model::unauthorized::Unauthorized;
use crate::run::authenticator::{Authenticator, challenge};
use crate::run::host_check::Door;
use crate::run::principal::Principal;
use crate::{BoxFuture, CancelToken};

const SESSION: &str = "mcp-session-id";

/// A registry as an MCP server over streamable HTTP: a `tower` service, to be mounted at the server's path.
///
/// It serves sessions, which begin with `initialize`, and single requests (2026-07-28). A session belongs to the
/// identity that began it. `Host` must name this server's host, and so must `Origin` if a web page sends the request.
/// By default that is the local host, so no web page can reach a server on its reader's machine by DNS rebinding.
///
/// # Limits
///
/// [`McpServerOptions`] sets the limits. A request beyond `max_requests`, `max_bodies` or `max_unread_bytes` is answered with
/// 503, one beyond `max_session_requests` with 429, a body longer than `max_body` with 413, and one slower than
/// `read_timeout` with 408.
/// What may end work is let in beyond the limits of requests and results: the answers of a session's client, its
/// notifications, and the end of the session (DELETE). A stream of the server's own messages is no request: one beyond
/// `max_streams` is answered with 503.
/// Beyond `max_sessions`, a new session ends the least recently used one, whose client gets 404 and begins another; if
/// all are in use, the new one gets 503. Connections are limited by [`serve`](Self::serve), or by the server that the
/// service is mounted on.
///
/// A client of a session that loses its connection can come back with `Last-Event-ID`. It gets the messages of a call that
/// it has not read, and the answer for 60 seconds. A session keeps 4 MiB of answers to calls, the last ones, and all
/// sessions together keep 64 MiB. When they are sent again, they count for `max_unread_bytes`.
///
/// Without an authenticator, callers have no identity and may call only what requires none, unless the server was given
/// an identity.
#[derive(Clone)]
pub struct McpService {
    inner: StreamableHttpService<Connection, Sessions>,
    sessions: Arc<Sessions>,
    limits: Arc<Limits>,
    server: Arc<Shared>,
    authenticator: Option<Arc<dyn Authenticator>>,
    /// The names of the server, and the other origins whose pages may send requests and read responses.
    door: Door,
}

impl McpService {
    pub(super) fn new(server: Shared) -> Self {
        let server = Arc::new(server);
        let sessions = Arc::new(Sessions::new(&server));
        let limits = Arc::new(Limits::new(&server.options));
        // Hosts and origins are checked before a request gets to the SDK.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_max_request_body_bytes(server.options.max_body);
        let connect = {
            let server = server.clone();
            move || Ok(Connection::new(server.clone()))
        };
        let inner = StreamableHttpService::new(connect, sessions.clone(), config);
        Self { inner, sessions, limits, server, authenticator: None, door: Door::default() }
    }

    /// Sets the authenticator, which determines the identity of the sender of a request. A request without credentials
    /// gets the status 401.
    ///
    /// ```
    /// # use ops_runtime::Registry;
    /// # use ops_runtime::access::Identity;
    /// # use ops_runtime::mcp::{McpServer, Unauthorized};
    /// let service = McpServer::new(Registry::new()).into_service().with_authenticator(|request: &http::request::Parts| {
    ///     let token = request.headers.get("authorization").cloned();
    ///     async move {
    ///         match token.as_ref().and_then(|token| token.to_str().ok()) {
    ///             Some("Bearer 7") => Ok(Identity::new("ann").with_scope("pets:read")),
    ///             _ => Err(Unauthorized::bearer()),
    ///         }
    ///     }
    /// });
    /// ```
    #[must_use]
    pub fn with_authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticator = Some(Arc::new(authenticator));
        self
    }

    /// Sets the hosts of the server, with or without a port, such as `api.example.com`. Pages of these hosts may send
    /// requests.
    #[must_use]
    pub fn with_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.door.set_hosts(hosts.into_iter().map(Into::into));
        self
    }

    /// Accepts requests for any host, for a server that does not know its names. It should
    /// [authenticate](Self::with_authenticator) every caller, since a web page could reach it by DNS rebinding. Pages
    /// may send requests only if [`with_origins`](Self::with_origins) names their origin.
    #[must_use]
    pub fn with_any_host(mut self) -> Self {
        self.door.set_any_host();
        self
    }

    /// Also allows pages of other origins, such as `https://app.example.com:443`, or `https://app.example.com:*` for
    /// any port. Their scripts may send any header but cookies, and read the responses (CORS).
    #[must_use]
    pub fn with_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        origins.into_iter().for_each(|origin| self.door.add_origin(&origin.into()));
        self
    }

    /// Sets a token that ends all sessions and streams, for a shutdown that does not wait for clients.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.inner.config.cancellation_token = cancel.own;
        self
    }

    pub(super) fn options(&self) -> &McpServerOptions {
        &self.server.options
    }

    pub(super) fn cancel(&self) -> CancellationToken {
        self.inner.config.cancellation_token.clone()
    }

    /// Returns the response to a request; failures become responses, too.
    ///
    /// It is not generic over the body: so the SDK's code is compiled once, with this crate, and not for the body type of each
    /// program's server.
    pub(super) fn respond(
        self,
        request: Request<RequestBody>,
    ) -> BoxFuture<'static, Result<Response<McpBody>, Infallible>> {
        Box::pin(async move { Ok(self.answer(request).await) })
    }

    async fn answer(self, request: Request<RequestBody>) -> Response<McpBody> {
        let (parts, body) = request.into_parts();
        if let Err((status, detail)) = self.door.check(&parts.uri, &parts.headers) {
            return plain(status, detail);
        }
        let page = Asking::of(&self.door, &parts.headers);
        let mut response = match page.as_ref().and_then(|page| page.preflight(&parts.method, &parts.headers)) {
            Some(response) => return response,
            None => self.authenticated(parts, body).await,
        };
        if let Some(page) = page {
            page.let_read(response.headers_mut());
        }
        response
    }

    async fn authenticated(self, parts: Parts, body: RequestBody) -> Response<McpBody> {
        let caller = match &self.authenticator {
            None => self.server.remote_caller(),
            Some(authenticator) => match authenticator.authenticate(&parts).await {
                Ok(Some(identity)) => Principal::Checked(Some(Arc::new(identity))),
                Ok(None) => return unauthorized(challenge(&authenticator.schemes())),
                Err(refused) => return unauthorized(refused),
            },
        };
        self.admitted(parts, body, caller).await.unwrap_or_else(|refused| refused)
    }

    /// Serves a request if there is room for it.
    async fn admitted(
        self,
        mut parts: Parts,
        body: RequestBody,
        caller: Principal,
    ) -> Result<Response<McpBody>, Response<McpBody>> {
        let session = match parts.headers.get(SESSION).and_then(|id| id.to_str().ok()) {
            None => None,
            Some(id) => match self.sessions.enter(id, &caller) {
                Ok(session) => session,
                Err(Unknown) => return Err(plain(StatusCode::NOT_FOUND, "Not Found: Session not found")),
            },
        };
        let begins = session.is_none();
        let (held, refused) = self.seat(&parts.method, session.as_ref())?;
        let returning = session.as_ref().and_then(|(session, _)| Returning::of(&parts, &session.answers));
        let held = Arc::new(held);
        if let Some((session, permit)) = session {
            held.in_session(session, permit);
            if parts.method == Method::GET {
                held.listen();
            }
        }
        parts.extensions.insert(caller);
        parts.extensions.insert(held.clone());
        let response = if parts.method == Method::POST {
            self.post(parts, body, &held, begins, refused).await?
        } else {
            // The SDK reads no body here. An empty one of the same type as elsewhere keeps its code compiled for one type only.
            let response = self.inner.handle(Request::from_parts(parts, Full::<Bytes>::default())).await;
            if response.status() == StatusCode::OK
                && let Some(answer) = returning.and_then(Returning::answer)
            {
                self.limits.may_send()?;
                held.unread(answer.len());
                return Ok(response.map(|_| McpBody::written(answer, held)));
            }
            response
        };
        Ok(response.map(|body| McpBody::holding(body, held)))
    }

    /// The place of a request among those in flight; and the refusal of a message that is only let in to see if it ends
    /// work.
    ///
    /// # Errors
    /// The response if there is no room.
    #[allow(clippy::result_large_err, reason = "an error is the response that is sent")]
    fn seat(
        &self,
        method: &Method,
        session: Option<&Entered>,
    ) -> Result<(Held, Option<Response<McpBody>>), Response<McpBody>> {
        let is_full = matches!(session, Some((_, None)));
        match *method {
            Method::POST => {
                let admitted = if is_full { Err(full()) } else { self.limits.admit() };
                match admitted {
                    Ok(held) => Ok((held, None)),
                    // Work in the session may wait for this message: only its body tells.
                    Err(refused) => match session.and_then(|_| self.limits.reserve()) {
                        Some(held) => Ok((held, Some(refused))),
                        None => Err(refused),
                    },
                }
            }
            // Ends the session, and all that it has in work.
            Method::DELETE => Ok((self.limits.uncounted(), None)),
            _ if is_full => Err(full()),
            // Streams of the server's own messages are many and last long: they count for their session only.
            _ => Ok((self.limits.uncounted(), None)),
        }
    }

    /// The response to a message. `begins` is true if it is of no session; `refused` is the response if it ends no work.
    async fn post(
        &self,
        parts: Parts,
        body: RequestBody,
        held: &Held,
        begins: bool,
        refused: Option<Response<McpBody>>,
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, Response<McpBody>> {
        let body = self.limits.read(held, body).await?;
        if let Some(refused) = refused
            && !message::ends_work(&body)
        {
            return Err(refused);
        }
        if begins && message::listens(&parts.headers, &body) {
            self.limits.listen(held)?;
        }
        if begins && !self.sessions.has_room() && message::begins_session(&body) {
            return Err(crowded());
        }
        #[cfg(feature = "durable")]
        let body = self.renamed(&parts, body);
        let handling = self.inner.handle(Request::from_parts(parts, Full::new(body)));
        let (response, is_crowded) = sessions::handled(handling).await;
        if let Some(id) = held.repeats() {
            return Err(repeated(id));
        }
        // Another request may have taken the last place since.
        if is_crowded { Err(crowded()) } else { Ok(response) }
    }
}

#[cfg(feature = "durable")]
impl McpService {
    /// The body of a request about tasks of 2025-11-25, with a method name that the SDK leaves to us.
    fn renamed(&self, parts: &Parts, body: Bytes) -> Bytes {
        // Later revisions have the method in a header.
        let revision = parts.headers.get("mcp-protocol-version").and_then(|revision| revision.to_str().ok());
        if self.server.tasks.is_none() || revision.is_some_and(|revision| revision >= "2026-07-28") {
            return body;
        }
        tasks::wire::renamed(&body).map_or(body, Bytes::from)
    }
}

/// A client that comes back to a stream.
struct Returning {
    answers: Arc<Answers>,
    last_event: String,
}

impl Returning {
    /// `None` if the request is another one.
    fn of(parts: &Parts, answers: &Arc<Answers>) -> Option<Self> {
        let last_event = parts.headers.get("last-event-id").filter(|_| parts.method == Method::GET)?;
        Some(Self { answers: answers.clone(), last_event: last_event.to_str().ok()?.to_owned() })
    }

    /// The event with the answer, if its call has ended.
    fn answer(self) -> Option<Bytes> {
        self.answers.after(&self.last_event)
    }
}

/// The response to a request for a session if there is no room for another.
fn crowded() -> Response<McpBody> {
    busy("Too many sessions are in use (max_sessions)")
}

/// The response to a request whose id another request of the session has, which is in flight.
fn repeated(id: &RequestId) -> Response<McpBody> {
    let text = "another request of the session has this id: give each request an id of its own";
    refusal(StatusCode::BAD_REQUEST, ErrorData::invalid_request(text, None), id.clone())
}

/// The response to a request that is one too many for its session.
fn full() -> Response<McpBody> {
    let text = "Too Many Requests: the session has too many in work (max_session_requests)";
    plain(StatusCode::TOO_MANY_REQUESTS, text)
}

fn unauthorized(Unauthorized { challenge, is_unavailable }: Unauthorized) -> Response<McpBody> {
    if is_unavailable {
        return busy("credentials cannot be checked now");
    }
    let mut response = plain(StatusCode::UNAUTHORIZED, "Unauthorized");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

impl<B> tower_service::Service<Request<B>> for McpService
where
    B: http_body::Body + Send + 'static,
{
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.clone().respond(request.map(of_request))
    }
}

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService").field("door", &self.door).finish_non_exhaustive()
    }
}
