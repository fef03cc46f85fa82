//! The server over streamable HTTP: authentication, and sessions that belong to whoever began them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_core::Stream;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::model::{ClientJsonRpcMessage, GetExtensions, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};

use super::Shared;
use super::caller::Caller;
use super::handler::Connection;
use crate::{BoxFuture, CancelToken, Identity};

const SESSION: &str = "mcp-session-id";

/// Finds out who sends a request.
type Authenticator = dyn Fn(&Parts) -> BoxFuture<'static, Result<Identity, Unauthorized>> + Send + Sync;

/// Who could not be authenticated, and how they can try: HTTP status 401 with `WWW-Authenticate`.
#[derive(Debug, Clone)]
pub struct Unauthorized {
    challenge: HeaderValue,
}

impl Unauthorized {
    /// Asks for a bearer token.
    pub const fn bearer() -> Self {
        Self { challenge: HeaderValue::from_static("Bearer") }
    }

    /// Asks as the value of `WWW-Authenticate` says (RFC 9110, section 11.6.1), such as
    /// `Bearer resource_metadata="https://api.example.com/.well-known/oauth-protected-resource"` (RFC 9728).
    ///
    /// What can't stand in a header asks for a bearer token.
    pub fn challenge(challenge: &str) -> Self {
        HeaderValue::from_str(challenge).map_or_else(|_| Self::bearer(), |challenge| Self { challenge })
    }
}

/// A registry as an MCP server over streamable HTTP: a `tower` service, to be mounted where the server is to answer.
///
/// It serves both ways of the protocol: sessions that begin with `initialize`, and requests that stand alone
/// (2026-07-28). A session belongs to the identity that began it. Requests must name this host in `Host`, and a page
/// that sends them must be of this host (`Origin`); both are the local host unless said otherwise, so that no page of
/// the web reaches a server on its reader's machine by DNS rebinding.
///
/// Without an authenticator callers have no identity and may call what needs none, unless the server was given an
/// identity.
#[derive(Clone)]
pub struct McpService {
    inner: StreamableHttpService<Connection, Sessions>,
    sessions: Arc<Sessions>,
    server: Arc<Shared>,
    authenticator: Option<Arc<Authenticator>>,
}

impl McpService {
    pub(super) fn new(server: Shared) -> Self {
        let server = Arc::new(server);
        let sessions = Arc::new(Sessions::default());
        let config = StreamableHttpServerConfig::default().enforce_origin_validation();
        let connect = {
            let server = server.clone();
            move || Ok(Connection::new(server.clone()))
        };
        let inner = StreamableHttpService::new(connect, sessions.clone(), config);
        Self { inner, sessions, server, authenticator: None }.with_hosts(["localhost", "127.0.0.1", "[::1]"])
    }

    /// Has every request authenticated: by a future that finds out who sends it, from its head.
    ///
    /// ```
    /// # use ops_runtime::{Identity, Registry, mcp::{McpServer, Unauthorized}};
    /// let service = McpServer::new(Registry::new()).into_service().with_authenticator(|request| {
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
    pub fn with_authenticator<F, Fut>(mut self, authenticate: F) -> Self
    where
        F: Fn(&Parts) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Identity, Unauthorized>> + Send + 'static,
    {
        self.authenticator = Some(Arc::new(move |parts| Box::pin(authenticate(parts))));
        self
    }

    /// Says under which hosts the server is reached, with or without a port, such as `api.example.com`. Pages of these
    /// hosts may send requests.
    #[must_use]
    pub fn with_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        let hosts: Vec<String> = hosts.into_iter().map(Into::into).collect();
        let origin = |scheme: &str, host: &String| {
            let has_port = host.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
            format!("{scheme}://{host}{}", if has_port { "" } else { ":*" })
        };
        self.inner.config.allowed_origins =
            hosts.iter().flat_map(|host| ["http", "https"].map(|scheme| origin(scheme, host))).collect();
        self.inner.config.allowed_hosts = hosts;
        self
    }

    /// Allows pages of other origins, too, such as `https://app.example.com:443`, or `https://app.example.com:*` for
    /// any port.
    #[must_use]
    pub fn with_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.inner.config.allowed_origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Gives a handle that ends all sessions and streams, for a shutdown that does not wait for clients.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.inner.config.cancellation_token = cancel.0;
        self
    }

    /// Limits the size of requests, in bytes; 4 MiB unless said otherwise.
    #[must_use]
    pub fn with_max_request(mut self, bytes: usize) -> Self {
        self.inner.config.max_request_body_bytes = bytes;
        self
    }

    async fn answer<B>(self, request: Request<B>) -> Response<McpBody>
    where
        B: http_body::Body + Send + 'static,
        B::Error: fmt::Display,
    {
        let (mut parts, body) = request.into_parts();
        let caller = match &self.authenticator {
            None => self.server.remote_caller(),
            Some(authenticate) => match authenticate(&parts).await {
                Ok(identity) => Caller::Checked(Some(Arc::new(identity))),
                Err(Unauthorized { challenge }) => return unauthorized(challenge),
            },
        };
        let session = parts.headers.get(SESSION).and_then(|id| id.to_str().ok());
        if session.is_some_and(|id| !self.sessions.may_use(id, &caller)) {
            return plain(StatusCode::NOT_FOUND, "Not Found: Session not found");
        }
        parts.extensions.insert(caller);
        self.inner.handle(Request::from_parts(parts, body)).await.map(McpBody)
    }
}

fn plain(status: StatusCode, text: &'static str) -> Response<McpBody> {
    let mut response = Response::new(McpBody(Full::new(Bytes::from_static(text.as_bytes())).boxed()));
    *response.status_mut() = status;
    response
}

fn unauthorized(challenge: HeaderValue) -> Response<McpBody> {
    let mut response = plain(StatusCode::UNAUTHORIZED, "Unauthorized");
    response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    response
}

impl<B> tower_service::Service<Request<B>> for McpService
where
    B: http_body::Body + Send + 'static,
    B::Error: fmt::Display,
{
    type Response = Response<McpBody>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl fmt::Debug for McpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpService").field("hosts", &self.inner.config.allowed_hosts).finish_non_exhaustive()
    }
}

/// The body of an answer: JSON, or a stream of events.
pub struct McpBody(BoxBody<Bytes, Infallible>);

impl http_body::Body for McpBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.0).poll_frame(task)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.0.size_hint()
    }
}

impl fmt::Debug for McpBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("McpBody")
    }
}

/// The sessions of the SDK, and whose they are.
#[derive(Default)]
struct Sessions {
    local: LocalSessionManager,
    owners: RwLock<HashMap<SessionId, Caller>>,
}

impl Sessions {
    /// Whether a session is the caller's; one that nobody has is not refused here.
    fn may_use(&self, id: &str, caller: &Caller) -> bool {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.get(id).is_none_or(|owner| owner.is(caller))
    }

    fn forget(&self, id: &SessionId) {
        self.owners.write().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// All as the SDK does it, but for keeping who began a session.
impl SessionManager for Sessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        self.local.create_session().await
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        if let ClientJsonRpcMessage::Request(request) = &message
            && let Some(caller) = request.request.extensions().get::<Parts>().and_then(|parts| parts.extensions.get())
        {
            self.owners.write().unwrap_or_else(PoisonError::into_inner).insert(id.clone(), Caller::clone(caller));
        }
        self.local.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        self.local.has_session(id).await
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        self.forget(id);
        self.local.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_stream(id, message).await
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.local.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.create_standalone_stream(id).await
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        self.local.resume(id, last_event_id).await
    }
}
