//! Running a tool: the call of its operation, its items, and its result.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use ::http::request::Parts;
use futures_util::future::{Either, FutureExt, select};
use futures_util::poll;
use futures_util::stream::StreamExt;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ErrorData, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use serde_json::{Map, Value};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::options::McpServerOptions;
use super::peer::{RequestPeer, Rounds};
use super::result::{self, Items};
use super::shared::Shared;
use super::tool::{Served, StructuredContent};
use super::unread;
use crate::call::RequestId;
use crate::model::request_id::Number;
use crate::run::context::{deadline_after, now};
use crate::run::fairness::{Cost, in_turns};
use crate::run::pipeline::{self, EnvelopeStream, Invocation};
use crate::run::principal::Principal;
use crate::run::redact;
use crate::run::registry::Exact;
use crate::{CallError, CallOptions, CancelToken, ErrorCode, Progress, ProgressStream};

/// The room that another item of a list takes at least: a comma, a digit, and the bracket behind all.
const LEAST: usize = 3;

/// How long the end of a subscription may come after the last item that is collected.
const END: Duration = Duration::from_millis(100);

/// How long a report or an item may take to be sent, if the call could go on or end. It is less than what the SDK gives calls in
/// flight when the client has closed its end: nothing is sent then but results.
const TELL: Duration = Duration::from_secs(1);

/// The prefix of the protocol's own metadata in a request, which is not for handlers.
const RESERVED: &str = "io.modelcontextprotocol/";

/// Calls a tool. A failure of its operation is a result, too.
///
/// # Errors
/// If there is no such tool, if the state of the request is not of this server, or if the client lacks a capability that
/// the tool needs.
// Not an async fn: its future would hold the arguments twice, and the SDK moves it several times.
pub(super) fn run(
    server: &Shared,
    params: CallToolRequestParams,
    context: RequestContext<RoleServer>,
) -> impl Future<Output = Result<CallToolResponse, ErrorData>> + Send {
    let begun = Call::begin(server, params, context);
    async move {
        let (call, work) = begun?;
        let cost = call.of_request::<Arc<Cost>>().cloned();
        let ended = {
            let answer = pin!(call.answer(work));
            let asked = call.peer.until_asked(answer);
            match cost {
                Some(cost) => in_turns(asked, cost).await,
                None => asked.await,
            }
        };
        match ended {
            Ok(result) => {
                unread::count(&call.peer.request().extensions, &result);
                Ok(result.into())
            }
            Err(question) => Ok(call.peer.question(question, &server.states, &call.about)?.into()),
        }
    }
}

/// Binds the state of a call to its caller, tool and arguments.
fn about(caller: &Principal, params: &CallToolRequestParams) -> Vec<u8> {
    serde_json::to_vec(&(caller.id(), &params.name, &params.arguments)).unwrap_or_default()
}

/// A call of a tool.
struct Call<'a> {
    options: &'a McpServerOptions,
    tool: Arc<Served>,
    structure: StructuredContent,
    about: Vec<u8>,
    peer: RequestPeer,
    request: Number,
    token: Option<ProgressToken>,
}

/// The prepared work of a call.
struct Work {
    invocation: Invocation,
    input: Result<Value, CallError>,
    reports: Option<ProgressStream>,
}

impl<'a> Call<'a> {
    /// Does everything that does not wait.
    fn begin(
        server: &'a Shared,
        mut params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(Self, Work), ErrorData> {
        let caller = server.caller(&context.extensions);
        let Some(tool) = server.tool(&params.name) else { return Err(server.unknown(&params.name, &caller)) };
        let repeated = params.request_state.is_some() || params.input_responses.is_some();
        let structure = StructuredContent::of(context.protocol_version().as_ref());
        let about = if structure == StructuredContent::Any { about(&caller, &params) } else { Vec::new() };
        let known = if repeated { server.states.rounds(&mut params, &about)? } else { Rounds::default() };
        let (options, token) = (&server.options, context.meta.get_progress_token());
        let mut call_options = call_options(options, &context);
        // The items of a subscription are its progress.
        let reports = (token.is_some() && !tool.is_stream()).then(|| {
            let (sink, reports) = Progress::channel();
            call_options.progress = Some(sink);
            reports
        });
        let peer = RequestPeer::new(context, known, options.ask_timeout);
        call_options = call_options.with_extension(peer.shown());
        call_options.extensions.insert_own(Exact);
        #[cfg(feature = "gateway")]
        if caller == Principal::Owner {
            call_options.extensions.insert_own(crate::run::principal::ByOwner);
        }
        let invocation = caller.invocation(&server.registry, call_options);
        let (request, input) = (invocation.context.request, tool.input_of(params.arguments));
        let work = Work { invocation, input, reports };
        Ok((Self { options, tool, structure, about, peer, request, token }, work))
    }

    async fn answer(&self, work: Work) -> CallToolResult {
        let Work { invocation, input, reports } = work;
        let input = match input {
            Ok(input) => input,
            Err(error) => return self.failure(error),
        };
        if self.tool.is_stream() {
            // Boxed, so that other calls are not as large.
            return Box::pin(self.collected(invocation, input)).await;
        }
        let call = pin!(pipeline::answer(invocation, &self.tool.entry, input));
        let outcome = match (&self.token, reports) {
            (Some(token), Some(reports)) => reporting(call, reports, token, &self.peer.request().peer).await,
            _ => call.await,
        };
        match outcome {
            Ok(envelope) => result::success(&self.tool, self.structure, envelope),
            Err(error) => self.failure(error),
        }
    }

    /// Runs a subscription to its end.
    async fn collected(&self, invocation: Invocation, input: Value) -> CallToolResult {
        let deadline = invocation.context.deadline;
        let stream = match pipeline::answer_stream(invocation, &self.tool.spec().id, input).await {
            Ok(stream) => stream,
            Err(error) => return self.failure(error),
        };
        let items = self.collect(stream, deadline).await;
        result::collected(&self.tool, self.structure, items)
    }

    /// An extension that the transport added to the request.
    fn of_request<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.peer.request().extensions.get::<Parts>()?.extensions.get()
    }

    fn failure(&self, error: CallError) -> CallToolResult {
        result::failure(&self.public(error))
    }

    /// The error as the caller may see it.
    fn public(&self, error: CallError) -> CallError {
        let entry = &self.tool.entry;
        let request = RequestId::of(self.request);
        redact::public(error, &entry.spec, &request, entry.is_foreign(), self.options.expose_errors)
    }

    /// Collects items up to the limits and the deadline of the call, and sends each as progress if the caller asked for it.
    /// A failed item does not end the collection.
    async fn collect(&self, mut stream: EnvelopeStream<Value>, deadline: Option<Instant>) -> Items {
        let mut all = Items { items: Vec::new(), text: "[".to_owned(), errors: Vec::new(), complete: true };
        let mut room = self.options.max_bytes.saturating_sub(all.text.len());
        let mut patience = TELL;
        loop {
            let count = all.items.len().saturating_add(all.errors.len());
            let has_all = count >= self.options.max_items;
            let next = if has_all || count > 0 && room < LEAST {
                // Only the end is waited for, which comes soon or not at all: another item would not be collected.
                timeout(END, stream.next()).await.unwrap_or_else(|_| {
                    all.complete = false;
                    None
                })
            } else {
                stream.next().await
            };
            let Some(item) = next else { break };
            // The deadline is a limit like the others, not a failure of an item.
            let is_late = |error: &CallError| {
                *error.code() == ErrorCode::Timeout && deadline.is_some_and(|deadline| deadline <= now())
            };
            if has_all || item.as_ref().is_err_and(is_late) {
                all.complete = false;
                break;
            }
            let item = item.map(|envelope| envelope.data).map_err(|error| self.public(error));
            let text = match &item {
                Ok(data) => data.to_string(),
                Err(error) => result::error_text(error),
            };
            // With a comma before it, and the closing bracket.
            let cost = text.len().saturating_add(usize::from(count > 0));
            let Some(left) = room.checked_sub(cost).filter(|left| *left > 0) else {
                all.complete = false;
                // The failure itself is always reported, even if there is no room.
                if let Err(error) = item
                    && all.errors.is_empty()
                {
                    all.errors.push((count, error));
                }
                break;
            };
            room = left;
            if let Some(token) = &self.token {
                let message = item.as_ref().map_or_else(|_| text.clone(), result::text);
                let number = u32::try_from(count).map_or(f64::MAX, f64::from) + 1.0;
                let told = ProgressNotificationParam::new(token.clone(), number).with_message(message);
                match timeout(patience, self.peer.request().peer.notify_progress(told)).await {
                    Ok(Ok(())) => patience = TELL,
                    // The client has gone.
                    Ok(Err(_)) => break,
                    // It does not read, but the result has all items: the next are not waited for.
                    Err(_) => patience = Duration::ZERO,
                }
            }
            match item {
                Ok(data) => all.push(data, &text),
                Err(error) => all.errors.push((count, error)),
            }
        }
        all.text.push(']');
        all
    }
}

/// Runs a call, and sends its reports before its result. A client that does not read them does not hold up the call.
async fn reporting<T>(
    mut call: Pin<&mut impl Future<Output = T>>,
    mut reports: ProgressStream,
    token: &ProgressToken,
    peer: &Peer<RoleServer>,
) -> T {
    // A call that ends at once leaves its reports behind, and needs nobody beside it who waits for them. The SDK's clients ask
    // for reports of every call.
    if let Poll::Ready(done) = poll!(call.as_mut()) {
        if let Some(first) = reports.next().now_or_never().flatten() {
            let telling = Box::pin(async {
                let mut next = Some(first);
                while let Some(report) = next {
                    tell(report, token, peer).await;
                    next = reports.next().now_or_never().flatten();
                }
            });
            let _ = timeout(TELL, telling).await;
        }
        return done;
    }
    let (end, mut ended) = oneshot::channel();
    // Boxed, so that calls without reports are not as large.
    let telling = Box::pin(async {
        // Reports come first, so those that are there when the call ends are told. The stream may stay open: a task of the
        // handler may have its other end.
        while let Either::Left((Some(report), _)) = select(reports.next(), &mut ended).await {
            tell(report, token, peer).await;
        }
    });
    match select(call, telling).await {
        Either::Left((done, telling)) => {
            let _ = end.send(());
            let _ = timeout(TELL, telling).await;
            done
        }
        Either::Right(((), call)) => call.await,
    }
}

async fn tell(report: Progress, token: &ProgressToken, peer: &Peer<RoleServer>) {
    let Progress { progress, total, message } = report;
    let mut told = ProgressNotificationParam::new(token.clone(), progress);
    (told.total, told.message) = (total, message);
    if let Err(error) = peer.notify_progress(told).await {
        tracing::debug!(%error, "progress could not be told");
    }
}

/// What a client says beside the arguments, without what is the protocol's own.
pub(super) fn metadata(context: &RequestContext<RoleServer>) -> impl Iterator<Item = (String, Value)> {
    let for_handlers = |(key, _): &(&String, &Value)| *key != "progressToken" && !key.starts_with(RESERVED);
    context.meta.iter().filter(for_handlers).map(|(key, value)| (key.clone(), value.clone()))
}

fn call_options(options: &McpServerOptions, context: &RequestContext<RoleServer>) -> CallOptions {
    CallOptions {
        deadline: options.timeout.and_then(deadline_after),
        // Cancelled by the client's notification, and by the end of its connection.
        cancel: Some(CancelToken::of(context.ct.clone())),
        metadata: metadata(context).collect::<Map<_, _>>(),
        ..CallOptions::default()
    }
}
