//! Calls by id, for which the program need not know the types.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use futures_util::StreamExt;
use serde_json::Value;

use super::failure::{failed, named};
use super::guard::Boxed;
use super::invocation::Invocation;
use super::{EnvelopeStream, ended, has_own_types, noted, open, output, start_erased, with_json_bodies};
use crate::model::body::handover::Bodies;
use crate::run::ending::Ending;
use crate::run::payload::Payload;
use crate::run::registry::{Entry, Exact};
use crate::{CallError, OutputPolicy, ResponseEnvelope};

/// The future of a call by id. Dropping it cancels the call.
// Not an async fn, which would move the call and its input once more.
#[must_use = "a call ends when its future is dropped"]
pub struct CallFuture(State);

impl fmt::Debug for CallFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallFuture").finish_non_exhaustive()
    }
}

enum State {
    Refused(Option<CallError>),
    Running(Boxed<ResponseEnvelope<Payload>>, Arc<Entry>, OutputPolicy, Option<Ending>),
}

impl Future for CallFuture {
    type Output = Result<ResponseEnvelope<Value>, CallError>;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        Poll::Ready(match &mut self.get_mut().0 {
            State::Running(guard, entry, policy, ending) => match ready!(Pin::new(guard).poll(task)) {
                Ok(mut envelope) => {
                    entry.disown(&mut envelope.meta);
                    let checked = output::dynamic(entry, *policy, envelope);
                    ended(ending.take(), checked.map_err(|error| named(error, &entry.spec)))
                }
                Err(error) => Err(failed(error, &entry.spec)),
            },
            State::Refused(error) => Err(error.take().unwrap_or_else(|| CallError::execution("the call is over"))),
        })
    }
}

/// Runs a query or a mutation by its id. The call is admitted and its handler's future made at once.
// Inlined for the same reason as `execute`.
#[inline(always)]
pub(crate) fn call(call: Result<Invocation, CallError>, id: &str, input: Value) -> CallFuture {
    let started = match call {
        Ok(call) => start(call, id, input),
        Err(error) => Err(error),
    };
    CallFuture(started.unwrap_or_else(|error| refused(error, id)))
}

#[cold]
fn refused(error: CallError, id: &str) -> State {
    State::Refused(Some(error.with_operation(id.to_owned())))
}

#[inline(always)]
fn start(mut call: Invocation, id: &str, mut input: Value) -> Result<State, CallError> {
    let policy = call.policy;
    let table = call.context.registry.table();
    let (entry, handler) = call.admit(id, table.get(id))?;
    // Bodies are an extension: a call with default options has none.
    if call.context.extra.is_some() {
        input = with_json_bodies(handler, input, &call.context)?;
        if let Some(bodies) = call.context.extension::<Bodies>().cloned() {
            // Its result is JSON, too.
            call.context = call.context.with_bodies(bodies.with_output(false));
        }
    }
    let checked = entry.check_input(&input, &call.context).and_then(|()| entry.check_members(&input, &call.context));
    checked.map_err(|error| call.refused(entry, &input, error))?;
    let ending = call.ending(handler);
    Ok(State::Running(start_erased(call, entry, input)?, entry.clone(), policy, ending))
}

/// Checks an input as [`call`] does, without the call. Members that the operation would pass over are wrong: whoever is asked about
/// the input agrees to all of it.
pub(crate) fn check_input(mut call: Invocation, id: &str, input: &Value) -> Result<(), CallError> {
    call.context = call.context.with_own(Exact);
    let table = call.context.registry.table();
    let entry = table.get(id).ok_or_else(|| call.unknown(id))?;
    if call.checked {
        call.authorise(entry)?;
    }
    entry.check_input(input, &call.context)?;
    entry.check_by_handler(input, &call.context)
}

/// Starts a subscription by its id.
pub(crate) async fn stream(call: Invocation, id: &str, input: Value) -> Result<EnvelopeStream<Value>, CallError> {
    start_dynamic_stream(call, id, input, false).await.map_err(|error| error.with_operation(id.to_owned()))
}

/// Like [`stream`], for a server that promises the output's schema: an item that stays unrepaired is an error in its place.
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) async fn answer_stream(
    call: Invocation,
    id: &str,
    input: Value,
) -> Result<EnvelopeStream<Value>, CallError> {
    start_dynamic_stream(call, id, input, true).await.map_err(|error| error.with_operation(id.to_owned()))
}

/// Normalises an item of a subscription.
type Check = fn(&Entry, OutputPolicy, ResponseEnvelope<Payload>) -> Result<ResponseEnvelope<Value>, CallError>;

async fn start_dynamic_stream(
    mut call: Invocation,
    id: &str,
    mut input: Value,
    is_promised: bool,
) -> Result<EnvelopeStream<Value>, CallError> {
    let policy = call.policy;
    let registry = call.context.registry.clone();
    let entry = {
        let table = registry.table();
        let (entry, handler) = call.admit(id, table.get(id))?;
        input = with_json_bodies(handler, input, &call.context)?;
        entry.clone()
    };
    let checked = entry.check_input(&input, &call.context).and_then(|()| entry.check_members(&input, &call.context));
    checked.map_err(|error| call.refused(&entry, &input, error))?;
    let (stream, ending) = open(call, &entry, input).await?;
    let form = entry.handler.as_ref().map(|handler| handler.erased.input_form());
    let check: Check = match is_promised && !form.is_some_and(has_own_types(&entry)) {
        true => output::conforming,
        false => output::dynamic,
    };
    let read = move |item: Result<_, CallError>| {
        let read = item.and_then(|item| check(&entry, policy, item));
        noted(ending.as_ref(), read.map_err(|error| named(error, &entry.spec)))
    };
    Ok(stream.map(read).boxed())
}
