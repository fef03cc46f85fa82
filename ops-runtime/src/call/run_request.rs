//! Running one request.

use std::sync::Arc;

use futures_util::{FutureExt, StreamExt};
use tracing::Instrument;

use super::budget::{Charge, Reader};
use super::credits::Credits;
use super::directory::{gone, not_here, of_another_kind};
use super::handler::Peer;
use super::meter::{FORWARDED, Meter};
use super::{CallEvent, CallRequest, MAX_WINDOW, RequestId, Unsent, trace};
use crate::model::request_id::Number;
use crate::run::context::{Extra, now};
use crate::run::input;
use crate::run::payload;
use crate::run::pipeline::{self, Invocation};
use crate::run::redact;
use crate::{CallError, Context, ErrorCode, Identity, OperationKind, Payload, Registry, SpecRef};

/// A running request. Its end is always sent, whatever happens.
pub(super) struct Task {
    peer: Arc<Peer>,
    request_id: RequestId,
    credits: Arc<Credits>,
    over: bool,
    /// What it holds of its peer's share.
    _charge: Charge,
}

impl Task {
    pub(super) fn new(peer: Arc<Peer>, request_id: RequestId, credits: Arc<Credits>, charge: Charge) -> Self {
        Self { peer, request_id, credits, over: false, _charge: charge }
    }

    /// Sends the last event of the request.
    fn end(&mut self, event: CallEvent) {
        self.over = true;
        // Sent first, so that an idle session has sent everything.
        self.say(event);
        self.peer.finish(&self.request_id, &self.credits);
    }

    fn say(&self, event: CallEvent) {
        if let Err(Unsent::Refused(error)) = self.peer.send(event) {
            // A response that cannot be sent, such as one that is too large, fails the call.
            let _ = self.peer.send(CallEvent::Error { request_id: self.request_id.clone(), error });
        }
    }

    /// Sends an item of a subscription; one that cannot be sent, such as one that is too large, is replaced by an
    /// error.
    fn item(&self, event: CallEvent) -> Result<(), CallError> {
        let sent = match self.peer.send(event) {
            Err(Unsent::Refused(error)) => {
                // Before the error is sent, so that no credit has counted the item yet.
                self.credits.replaced();
                self.peer.send(CallEvent::ItemError { request_id: self.request_id.clone(), error })
            }
            sent => sent,
        };
        sent.map_err(|unsent| match unsent {
            Unsent::Refused(error) => error,
            Unsent::Gone(_) => gone("the caller is gone"),
        })
    }

    fn fail(&mut self, error: CallError) {
        let request_id = self.request_id.clone();
        self.end(CallEvent::Error { request_id, error });
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // Dropped while it ran: by an abort, or with the runtime.
        if self.over {
            return;
        }
        // Unless its caller has aborted it.
        if self.peer.finish(&self.request_id, &self.credits) {
            let request_id = self.request_id.clone();
            self.say(CallEvent::Aborted { request_id });
        }
    }
}

/// Runs a request and sends its result.
pub(super) async fn serve(mut task: Task, mut request: Box<CallRequest>) {
    let Some(Found { registry, spec, is_forwarded }) = find(&task.peer, &request.operation_id) else {
        return task.fail(not_here(&request.operation_id));
    };
    let span = trace::serving(&spec, &mut request);
    let meter = Meter::start("worker", if is_forwarded { &FORWARDED } else { &spec.id });
    run(task, *request, registry, spec, meter).instrument(span).await;
}

impl Context {
    /// The context of a request of another process. The transport names its sender.
    fn received(registry: Registry, request: &mut CallRequest, identity: Option<Arc<Identity>>) -> Self {
        let extra = Extra {
            identity,
            given: Some(request.request_id.clone()),
            parent: request.parent_request_id.take(),
            idle_timeout: request.idle_timeout(),
            metadata: std::mem::take(&mut request.metadata),
            ..Extra::default()
        };
        let deadline = request.deadline_of_received();
        Self { registry, request: Number::next(), deadline, timeout: None, extra: Some(Arc::new(extra)) }
    }
}

async fn run(mut task: Task, mut request: CallRequest, registry: Registry, spec: SpecRef, mut meter: Meter) {
    let identity = task.peer.auth.identify(request.identity.take(), task.peer.handler.told());
    let policy = registry.policy();
    let mut context = Context::received(registry, &mut request, identity);
    let deadline = context.deadline;
    if deadline.is_some_and(|deadline| deadline <= now()) {
        meter.fail(&ErrorCode::Timeout);
        return task.fail(CallError::new(ErrorCode::Timeout, "the deadline had passed when the request came"));
    }
    let streams = spec.kind == OperationKind::Subscription;
    // A caller that sent a window waits for items and an end. Any other caller would take the first item for its result.
    let is_of_another_kind = if streams { request.one_result } else { request.window_bytes.is_some() };
    if is_of_another_kind {
        let error = of_another_kind(&spec.id, spec.kind);
        meter.fail(error.code());
        return task.fail(error);
    }
    if streams {
        let window = request.window_bytes.filter(|_| !task.peer.auth.in_process);
        if !task.peer.auth.in_process {
            // Few items of a forwarded subscription are sent ahead: the peer has a window of its own.
            let window = window.unwrap_or(MAX_WINDOW).min(task.peer.share.window());
            context = context.with_own(Reader { share: task.peer.share.clone(), window });
        }
        let invocation = Invocation { context, policy, checked: true };
        let stream = Box::pin(stream(&mut task, invocation, &spec, request.input, window));
        let result = match deadline {
            // The handler's own guard is paused while the subscriber takes nothing.
            Some(deadline) => tokio::time::timeout_at(deadline.into(), stream)
                .await
                .unwrap_or_else(|_| Err(CallError::new(ErrorCode::Timeout, "the deadline passed"))),
            None => stream.await,
        };
        match result {
            Ok(()) => {
                meter.succeed();
                let request_id = task.request_id.clone();
                task.end(CallEvent::Completed { request_id });
            }
            Err(error) => {
                meter.fail(error.code());
                let error = task.peer.shown(error, &spec, &task.request_id);
                task.fail(error);
            }
        }
        return;
    }
    // Before the response is made: responses should not pile up for a peer that does not read.
    if let Some(ready) = task.peer.link.ready() {
        match deadline {
            Some(deadline) => drop(tokio::time::timeout_at(deadline.into(), ready).await),
            None => ready.await,
        }
    }
    let invocation = Invocation { context, policy, checked: true };
    match pipeline::serve(invocation, &spec.id, request.input).await {
        Ok(mut output) => {
            meter.succeed();
            let request_id = task.request_id.clone();
            if !task.peer.sees_upstream() {
                redact::meta(&mut output.meta);
            }
            // A function may give any content type. Callers compare it with the described ones if the data are a value,
            // but not if they are text, as from other processes. An empty body stays `null`.
            if output.meta.as_own().is_some()
                && let Payload::Value(value) = &output.data
                && !value.is_null()
            {
                match payload::to_text(value) {
                    Ok(text) => output.data = Payload::Raw(text),
                    Err(error) => {
                        meter.fail(error.code());
                        return task.fail(error);
                    }
                }
            }
            task.end(CallEvent::Responded { request_id, output });
        }
        Err(error) => {
            meter.fail(error.code());
            let error = task.peer.shown(error, &spec, &task.request_id);
            task.fail(error);
        }
    }
}

/// Sends the items for which the subscriber has given credit, while the link has room.
async fn stream(
    task: &mut Task,
    invocation: Invocation,
    spec: &SpecRef,
    input: Payload,
    window: Option<u64>,
) -> Result<(), CallError> {
    let window = window.and_then(|bytes| usize::try_from(bytes.min(MAX_WINDOW)).ok());
    let input = input::value(spec, input)?;
    let mut items = pipeline::stream(invocation, &spec.id, input).await?;
    let mut ahead = None;
    loop {
        // Before the item is made, so that no item is in memory before it can be sent.
        task.credits.take().await;
        if let Some(window) = window {
            // One at a time, if necessary.
            task.credits.fits(window.max(1)).await;
        }
        if let Some(ready) = task.peer.link.ready() {
            ready.await;
        }
        let item = match ahead.take() {
            Some(item) => item,
            None => items.next().await,
        };
        let request_id = task.request_id.clone();
        match item {
            None => return Ok(()),
            Some(Ok(item)) => {
                let mut output = match window {
                    None => item.map(Payload::Value),
                    Some(_) => {
                        let item = item.try_map(|value| payload::to_text(&value))?;
                        task.credits.sent(item.data.get().len());
                        item.map(Payload::Raw)
                    }
                };
                if !task.peer.sees_upstream() {
                    redact::meta(&mut output.meta);
                }
                task.item(CallEvent::Responded { request_id, output })?;
            }
            Some(Err(error)) => {
                // An error that is known to be the last item ends the subscription.
                ahead = items.next().now_or_never();
                if let Some(None) = ahead {
                    return Err(error);
                }
                let error = task.peer.shown(error, spec, &request_id);
                if window.is_some() {
                    task.credits.sent(0);
                }
                task.item(CallEvent::ItemError { request_id, error })?;
            }
        }
    }
}

/// An operation, and the registry that runs it.
struct Found {
    registry: Registry,
    spec: SpecRef,
    /// True if only peers know the operation.
    is_forwarded: bool,
}

/// The operation in the handler's own registry, or in that of a remote to which it forwards.
fn find(peer: &Peer, id: &str) -> Option<Found> {
    let handler = &peer.handler;
    if let Some(spec) = handler.spec(id) {
        return Some(Found { registry: handler.registry().clone(), spec, is_forwarded: false });
    }
    let registry = handler.forward().find_map(|remote| remote.registry_of(id))?;
    let spec = registry.spec(id)?;
    Some(Found { registry, spec, is_forwarded: true })
}
