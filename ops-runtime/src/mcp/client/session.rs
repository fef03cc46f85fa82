//! One connection to a server, from its start to its end.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, GetExtensions, ListToolsRequest, NumberOrString,
    PaginatedRequestParams, ServerResult,
};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use serde_json::{Map, Value, json};
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use super::host::Host;
use super::interceptor::{Answer, Interceptor, RpcError, Slot, cost};
use super::secrets::Given;
use super::start::{self, Authorization};
use crate::mcp::ask::Asks;
use crate::mcp::config::McpServerConfig;
use crate::model::clock::millis;
use crate::model::lock::lock;
use crate::{CallError, ErrorCode, ProgressSink};

/// How often a server may ask further questions before a call fails.
const ROUNDS: usize = 10;

/// The server's information about itself.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct McpServerInfo {
    /// Its name; empty if it sends none.
    pub name: String,
    /// Its version; empty if it sends none.
    pub version: String,
    /// The negotiated revision of the protocol, such as `2025-11-25`.
    pub protocol_version: String,
    /// Instructions for a language model.
    pub instructions: Option<String>,
    /// Its capabilities (MCP specification, `ServerCapabilities`).
    pub capabilities: Value,
}

/// One connection to a server.
pub(super) struct Session {
    pub(super) interceptor: Arc<Interceptor>,
    pub(super) given: Arc<Given>,
    pub(super) info: McpServerInfo,
    peer: Peer<RoleClient>,
    service: Mutex<Option<RunningService<RoleClient, Host>>>,
    runtime: Handle,
    asks: Asks,
    limits: CallLimits,
    /// Limit of the bytes of a list.
    pub(super) max_list: usize,
}

/// How long calls may take.
#[derive(Clone, Copy)]
struct CallLimits {
    /// Without a response or progress.
    idle: Option<Duration>,
    /// In all.
    total: Option<Duration>,
}

impl Session {
    /// Connects: with the newest revision if the server knows it, otherwise by `initialize`.
    pub(super) async fn connect(
        config: &McpServerConfig,
        server: &str,
        changed: Arc<Notify>,
        authorization: Option<&Authorization>,
    ) -> Result<Self, CallError> {
        let interceptor = Interceptor::new(server);
        let given = Given::new(config);
        let (weak, asks) = (Arc::downgrade(&interceptor), config.asks.clone());
        let host = Host { interceptor: weak, given: given.clone(), asks, changed };
        let failure = match start::start(config, &interceptor, &given, &host, authorization).await {
            Ok(Ok(service)) => return Ok(Self::new(config, interceptor, given, service)),
            Ok(Err(failure)) => failure.told(&interceptor),
            Err(_) => {
                let message =
                    format!("it did not answer within {:?}: raise `with_connect_timeout`", config.connect_timeout);
                CallError::new(ErrorCode::Timeout, message)
            }
        };
        let named = format!("the MCP server `{server}` ");
        let why = failure.message().strip_prefix(&named).map(|why| format!("it {why}"));
        let why = why.unwrap_or_else(|| failure.message().to_owned());
        let mut message = format!("cannot connect to the MCP server `{server}`: {why}");
        if let Some(reason) = interceptor.reason().filter(|reason| *reason != failure.message()) {
            message = format!("{message}: {reason}");
        }
        let words = interceptor.last_words();
        if !words.is_empty() {
            message = format!("{message}; the last lines that it wrote to standard error are:\n{words}");
        }
        Err(given.error(CallError::new(failure.code().clone(), message).with_details(failure.details().clone())))
    }

    fn new(
        config: &McpServerConfig,
        interceptor: Arc<Interceptor>,
        given: Arc<Given>,
        service: RunningService<RoleClient, Host>,
    ) -> Self {
        let peer = service.peer().clone();
        let mut info = McpServerInfo::default();
        if let Some(server) = peer.peer_info() {
            info.protocol_version = server.protocol_version.to_string();
            info.instructions = server.instructions.clone();
            info.capabilities = serde_json::to_value(&server.capabilities).unwrap_or_default();
            if let Some(implementation) = &server.server_info {
                info.name = implementation.name.clone();
                info.version = implementation.version.clone();
            }
        }
        Self {
            interceptor,
            given,
            info,
            peer,
            service: Mutex::new(Some(service)),
            runtime: Handle::current(),
            asks: config.asks.clone(),
            limits: CallLimits { idle: config.timeout, total: config.total_timeout },
            max_list: config.max_list,
        }
    }

    /// True while the connection is open.
    pub(super) fn is_open(&self) -> bool {
        !self.peer.is_transport_closed()
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        &self.peer
    }

    pub(super) fn runtime(&self) -> &Handle {
        &self.runtime
    }

    /// How long the server may be silent during a call.
    pub(super) fn idle(&self) -> Option<Duration> {
        self.limits.idle
    }

    /// Answers the questions of a call, within its time.
    pub(super) async fn answers(
        &self,
        requests: &Map<String, Value>,
        until: Option<Instant>,
    ) -> Result<Map<String, Value>, CallError> {
        self.within(until, self.asks.answer_all(requests)).await?
    }

    /// Waits for the user, within the time of a call.
    async fn within<T>(&self, until: Option<Instant>, answer: impl Future<Output = T>) -> Result<T, CallError> {
        match until {
            None => Ok(answer.await),
            Some(until) => timeout_at(until, answer).await.map_err(|_| self.too_late()),
        }
    }

    /// The error of a call that has exceeded its time.
    pub(super) fn too_late(&self) -> CallError {
        timed_out(&self.interceptor.server, "did not answer", self.limits.total, "with_total_timeout")
    }

    /// Calls a tool. Returns the raw result, and the slot that receives progress: if the result is a task, progress
    /// continues.
    pub(super) async fn call_tool(
        &self,
        tool: String,
        arguments: Map<String, Value>,
        progress: Option<ProgressSink>,
        until: Option<Instant>,
    ) -> Result<(Value, Arc<Slot>), CallError> {
        let mut params = CallToolRequestParams::new(tool).with_arguments(arguments);
        let mut has_visited = false;
        for _ in 0..ROUNDS {
            let request = ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()));
            let called = self.try_call(request, progress.clone(), &mut has_visited, until).await?;
            let Some((result, slot)) = called else { continue };
            if result.get("resultType").and_then(Value::as_str) != Some("input_required") {
                return Ok((result, slot));
            }
            // The server requests that the call is repeated with the answers (2026-07-28, "Multi round-trip requests").
            let requests = result.get("inputRequests").and_then(Value::as_object).cloned().unwrap_or_default();
            params.input_responses = Some(self.answers(&requests, until).await?.into_iter().collect());
            params.request_state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        }
        Err(CallError::execution(format!("the MCP server `{}` asked for more {ROUNDS} times", self.interceptor.server)))
    }

    /// Sends a call. Returns `None` if it is to be repeated: the server has not carried it out, because the user had to
    /// visit pages first, and the user has accepted that.
    ///
    /// That happens once in a call. A program may accept when it opens a page, and a user who is not done there must not
    /// be asked again and again.
    pub(super) async fn try_call(
        &self,
        request: ClientRequest,
        progress: Option<ProgressSink>,
        has_visited: &mut bool,
        until: Option<Instant>,
    ) -> Result<Option<(Value, Arc<Slot>)>, CallError> {
        let slot = Slot::new(progress);
        // The error still has its secrets: without them, its URLs would lead elsewhere.
        let error = match self.answered(request, slot.clone(), until).await {
            Ok((result, ..)) => return Ok(Some((result, slot))),
            Err(error) => error,
        };
        if !*has_visited && self.asks.demands_visit(error.details()) {
            // Boxed, so that other calls are not as large.
            *has_visited = self.within(until, Box::pin(self.asks.visits(error.details()))).await?;
            if *has_visited {
                return Ok(None);
            }
        }
        Err(self.given.error(error))
    }

    /// One page of the list of tools: the raw result, with its size in bytes, which may be up to `room`. Over HTTP,
    /// tools with invalid `x-mcp-header` annotations are left out, since they must not be used (2026-07-28, "Custom
    /// headers").
    pub(super) async fn list_tools(&self, cursor: Option<String>, room: usize) -> Result<(Value, usize), CallError> {
        let params = PaginatedRequestParams::default().with_cursor(cursor);
        let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
        // Over HTTP rmcp reads it, too: it has to know which arguments are headers.
        let (mut result, bytes, read) = self.request_shared(request, Slot::shared(room), None).await?;
        if let (ServerResult::ListToolsResult(kept), Some(Value::Array(tools))) = (read, result.get_mut("tools"))
            && kept.tools.len() != tools.len()
        {
            tools.retain(|tool| {
                kept.tools.iter().any(|kept| tool.get("name") == Some(&Value::from(kept.name.as_ref())))
            });
        }
        Ok((result, bytes))
    }

    pub(super) async fn request(
        &self,
        request: ClientRequest,
        slot: Arc<Slot>,
        until: Option<Instant>,
    ) -> Result<Value, CallError> {
        self.request_shared(request, slot, until).await.map(|(result, ..)| result)
    }

    /// Sends a request and waits for its result. If the caller stops waiting, the server is notified.
    async fn request_shared(
        &self,
        request: ClientRequest,
        slot: Arc<Slot>,
        until: Option<Instant>,
    ) -> Result<(Value, usize, ServerResult), CallError> {
        self.answered(request, slot, until).await.map_err(|error| self.given.error(error))
    }

    async fn answered(
        &self,
        mut request: ClientRequest,
        slot: Arc<Slot>,
        until: Option<Instant>,
    ) -> Result<(Value, usize, ServerResult), CallError> {
        request.extensions_mut().insert(slot.clone());
        let sent = self.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|error| self.failure(error))?;
        let mut waiting = Waiting { handle: Some(handle), session: self };
        // On an error here, dropping `waiting` notifies the server.
        let received = waiting.answer(&slot, until).await?;
        waiting.over();
        match (slot.take(), received) {
            (Some(Answer::TooLarge), _) => Err(self.too_long()),
            (Some(Answer::Error(error)), _) => Err(rpc_failure(&self.interceptor.server, &error)),
            (_, Err(error)) => Err(self.failure(error)),
            (Some(Answer::Result(result)), Ok(read)) => match serde_json::from_str(result.get()) {
                Ok(value) => Ok((value, cost(result.get()), read)),
                Err(error) => Err(CallError::execution(format!(
                    "the answer of the MCP server `{}`: {error}",
                    self.interceptor.server
                ))),
            },
            (None, Ok(_)) => {
                Err(CallError::execution(format!("the MCP server `{}` sent no result", self.interceptor.server)))
            }
        }
    }

    /// The error of a list of tools that is too long.
    pub(super) fn too_long(&self) -> CallError {
        CallError::execution(format!(
            "the list of tools of the MCP server `{}` has more than {} bytes, for which each value counts 32: raise `with_max_list`",
            self.interceptor.server, self.max_list
        ))
    }

    /// Closes the connection, and ends the process or the session of the server.
    pub(super) async fn close(&self) {
        let service = lock(&self.service).take();
        if let Some(service) = service {
            self.interceptor.end(format!("the connection to the MCP server `{}` was closed", self.interceptor.server));
            let _ = service.cancel().await;
        }
    }

    /// The error of a request without a response.
    fn failure(&self, error: ServiceError) -> CallError {
        let server = &self.interceptor.server;
        match error {
            ServiceError::TransportClosed => self.interrupted(None),
            ServiceError::TransportSend(_) if self.interceptor.reason().is_some() => self.interrupted(None),
            ServiceError::TransportSend(error) => {
                let failure = transport_failure(server, &*error.error);
                #[cfg(feature = "mcp-http")]
                if super::http::may_be_done(&*error.error) {
                    return self.unsure(failure.message());
                }
                failure
            }
            // Responses of the server never get here: this is rmcp's reason for having none.
            ServiceError::McpError(error) => self.interrupted(Some(&error.message)),
            error => CallError::execution(format!("the MCP server `{server}`: {error}")),
        }
    }

    /// The error of a call that was interrupted.
    fn interrupted(&self, why: Option<&str>) -> CallError {
        let server = &self.interceptor.server;
        let why = match (self.interceptor.reason(), why) {
            (Some(reason), _) => reason.to_owned(),
            (None, Some(why)) => format!("the MCP server `{server}` did not answer: {why}"),
            (None, None) => format!("the connection to the MCP server `{server}` broke off before the answer"),
        };
        self.unsure(&why)
    }

    /// The error of a call that the server may have carried out.
    fn unsure(&self, why: &str) -> CallError {
        CallError::execution(format!("{why}; the call may have been carried out, so it is not repeated"))
            .with_details(json!({ "server": &*self.interceptor.server, "interrupted": true }))
    }
}

/// The error of a transport, with the name of the server.
pub(super) fn transport_failure(server: &str, error: &(dyn std::error::Error + Send + Sync + 'static)) -> CallError {
    #[cfg(feature = "mcp-http")]
    if let Some(failure) = super::http::failure(error) {
        let message = format!("the MCP server `{server}`: {}", failure.message());
        return CallError::new(failure.code().clone(), message).with_details(failure.details().clone());
    }
    CallError::execution(format!("the MCP server `{server}`: {}", CallError::words_of(error)))
}

/// A request that waits for its response. If it is dropped before that, the server is notified.
struct Waiting<'s> {
    handle: Option<RequestHandle<RoleClient>>,
    session: &'s Session,
}

type Received = Result<ServerResult, ServiceError>;

impl Waiting<'_> {
    async fn answer(&mut self, slot: &Slot, until: Option<Instant>) -> Result<Received, CallError> {
        let Some(handle) = &mut self.handle else { return Ok(Err(ServiceError::TransportClosed)) };
        let closed = |received: Result<Received, _>| received.unwrap_or(Err(ServiceError::TransportClosed));
        let idle = self.session.limits.idle;
        let mut sign_of_life = Instant::now();
        loop {
            let silent = idle.and_then(|idle| sign_of_life.checked_add(idle));
            let next = match (silent, until) {
                (Some(silent), Some(until)) => silent.min(until),
                (Some(next), None) | (None, Some(next)) => next,
                (None, None) => return Ok(closed((&mut handle.rx).await)),
            };
            if let Ok(received) = timeout_at(next, &mut handle.rx).await {
                return Ok(closed(received));
            }
            let seen = slot.last_progress().max(self.session.interceptor.questions.last_asked());
            match (seen.filter(|last| *last > sign_of_life), until) {
                (Some(last), until) if until.is_none_or(|until| next < until) => sign_of_life = last,
                (_, Some(until)) if next >= until => {
                    return Err(self.session.too_late());
                }
                _ => {
                    let server = &self.session.interceptor.server;
                    return Err(timed_out(server, "neither answered nor reported progress", idle, "with_timeout"));
                }
            }
        }
    }

    /// Notes that the request has a response, or never will.
    fn over(&mut self) {
        if let Some(handle) = self.handle.take()
            && let NumberOrString::Number(id) = handle.id
        {
            self.session.interceptor.give_up(id);
        }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let Some(handle) = self.handle.take() else { return };
        if let NumberOrString::Number(id) = handle.id {
            self.session.interceptor.forget(id);
        }
        self.session.runtime.spawn(async move {
            let _ = handle.cancel(Some("the caller waits no longer".to_owned())).await;
        });
    }
}

/// The error of what a server did not do in the time that an option gives it.
pub(super) fn timed_out(server: &str, what: &str, limit: Option<Duration>, option: &str) -> CallError {
    let limit = limit.unwrap_or_default();
    let message = format!("the MCP server `{server}` {what} within {limit:?}: raise `{option}`");
    CallError::new(ErrorCode::Timeout, message).with_details(json!({ "timeout": millis(limit) }))
}

/// The error that a server responds with.
pub(super) fn rpc_failure(server: &str, error: &RpcError) -> CallError {
    let message = match &error.message {
        Value::String(message) => message.clone(),
        Value::Null => "an error that does not say why".to_owned(),
        message => message.to_string(),
    };
    let mut details = json!({ "server": server, "code": error.code, "message": error.message });
    if let (Value::Object(details), false) = (&mut details, error.data.is_null()) {
        details.insert("data".to_owned(), error.data.clone());
    }
    CallError::execution(format!("the MCP server `{server}` answered with error {}: {message}", error.code))
        .with_details(details)
}
