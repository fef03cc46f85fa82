//! Running one request.

use std::sync::Arc;

use futures_util::StreamExt;
use tracing::Instrument;

use super::handler::{Credits, Peer};
use super::{CallEvent, CallRequest, Remote, RequestId, Unsent, meter, trace};
use crate::pipeline::{self, Invocation};
use crate::{CallError, Context, ErrorCode, OperationKind, Payload, Registry, SpecRef};

/// A request that is being run. Whatever becomes of it, its end is told.
pub(super) struct Task {
    peer: Arc<Peer>,
    request_id: RequestId,
    credits: Arc<Credits>,
    over: bool,
}

impl Task {
    pub(super) fn new(peer: Arc<Peer>, request_id: RequestId, credits: Arc<Credits>) -> Self {
        Self { peer, request_id, credits, over: false }
    }

    /// Says the last word about the request.
    fn end(&mut self, event: CallEvent) {
        self.over = true;
        // First, so that a session that is idle has said all it had to say.
        self.say(event);
        self.peer.finish(&self.request_id);
        self.peer.link.finished(&self.request_id);
    }

    fn say(&self, event: CallEvent) {
        if let Err(Unsent::Refused(error)) = self.peer.send(event) {
            // An answer that can't be sent, such as one that is too large, fails the call.
            let _ = self.peer.send(CallEvent::Error { request_id: self.request_id.clone(), error });
        }
    }

    fn fail(&mut self, error: CallError) {
        let request_id = self.request_id.clone();
        self.end(CallEvent::Error { request_id, error });
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        // Dropped where it stood: by an abort, or with the runtime.
        if self.over {
            return;
        }
        // Unless its caller has given it up.
        if self.peer.finish(&self.request_id) {
            let request_id = self.request_id.clone();
            self.say(CallEvent::Aborted { request_id });
        }
        self.peer.link.finished(&self.request_id);
    }
}

/// Runs a request and says what comes of it.
pub(super) async fn serve(mut task: Task, mut request: Box<CallRequest>) {
    let Some((registry, spec)) = find(&task.peer, &request.operation_id) else {
        return task.fail(pipeline::not_found(&request.operation_id, "operation not found"));
    };
    let span = trace::serving(&spec, &mut request);
    let meter = meter::Meter::start("worker", &spec.id);
    run(task, *request, registry, spec, meter).instrument(span).await;
}

async fn run(mut task: Task, mut request: CallRequest, registry: Registry, spec: SpecRef, mut meter: meter::Meter) {
    let identity = task.peer.origin.identify(request.identity.take());
    let policy = registry.policy();
    let context = Context::received(registry, &mut request, identity);
    let deadline = context.deadline;
    if deadline.is_some_and(|deadline| deadline <= std::time::Instant::now()) {
        meter.fail(&ErrorCode::Timeout);
        return task.fail(CallError::new(ErrorCode::Timeout, "the deadline had passed when the request came"));
    }
    let invocation = Invocation { context, policy, checked: true };
    if spec.kind == OperationKind::Subscription {
        let stream = Box::pin(stream(&mut task, invocation, &spec, request.input));
        let result = match deadline {
            // The handler's own guard rests while the subscriber takes nothing.
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
                task.fail(error);
            }
        }
        return;
    }
    match pipeline::serve(invocation, &spec.id, request.input).await {
        Ok(output) => {
            meter.succeed();
            let request_id = task.request_id.clone();
            task.end(CallEvent::Responded { request_id, output });
        }
        Err(error) => {
            meter.fail(error.code());
            task.fail(error);
        }
    }
}

/// Gives a subscriber the items for which it has given credit, as long as the link has room.
async fn stream(task: &mut Task, invocation: Invocation, spec: &SpecRef, input: Payload) -> Result<(), CallError> {
    let input = pipeline::input_value(spec, input)?;
    let mut items = pipeline::stream(invocation, &spec.id, input).await?;
    loop {
        // Before the item is made, so that none is in memory that nobody takes.
        task.credits.take().await;
        if let Some(ready) = task.peer.link.ready() {
            ready.await;
        }
        let Some(item) = items.next().await else { return Ok(()) };
        let (request_id, output) = (task.request_id.clone(), item?.map(Payload::Value));
        match task.peer.send(CallEvent::Responded { request_id, output }) {
            Ok(()) => {}
            Err(Unsent::Refused(error)) => return Err(error),
            Err(Unsent::Gone(_)) => return Err(super::directory::gone("the caller is gone")),
        }
    }
}

/// The registry that has the operation: the handler's own, or that of whoever it is passed on to.
fn find(peer: &Peer, id: &str) -> Option<(Registry, SpecRef)> {
    let own = peer.handler.registry();
    if let Some(spec) = own.spec(id) {
        return Some((own.clone(), spec));
    }
    let remote: &Remote = peer.handler.forward()?;
    let registry = remote.registry_of(id)?;
    let spec = registry.spec(id)?;
    Some((registry, spec))
}
