//! The steps of every call: look up, check access and input, run, then detect, wrap, normalise and validate.
//!
//! The typed functions are thin; what they share is not generic, so that an operation costs little compile time.

mod by_id;
mod elsewhere;
mod failure;
mod guard;
mod invocation;
mod local;
mod misfit;
mod output;
mod typed;

use std::any::{Any, TypeId};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll};

#[cfg(feature = "webhooks")]
use bytes::Bytes;
use futures_util::StreamExt;
#[cfg(feature = "webhooks")]
use serde_core::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::model::body::handover::{self, Bodies};
use crate::model::futures::{BoxFuture, BoxStream};
use crate::run::ending::Ending;
use crate::run::handler::{Endpoint, Erased, InputForm, Typed};
use crate::run::input::{self, AnyInput};
use crate::run::payload::{Payload, PayloadFuture, PayloadStream};
use crate::run::registry::Entry;
use crate::{Call, CallError, Context, Handler, Operation, OperationSpec, OutputPolicy, ResponseEnvelope, Subscribe};
#[cfg(feature = "webhooks")]
use crate::{SpecRef, run::schemas::DefinitionCache};

use elsewhere::start_elsewhere;
use failure::{failed, named};
use guard::{Boxed, begin};
use invocation::strict;
use local::{Answer, TypedCall, TypedStream, wrap};

pub use by_id::CallFuture;
#[cfg(any(feature = "http-server", feature = "mcp-server"))]
pub(crate) use by_id::answer_stream;
pub(crate) use by_id::{call, check_input, stream};
pub(crate) use elsewhere::execute_elsewhere;
#[cfg(feature = "http")]
pub(crate) use guard::timed_out;
pub(crate) use guard::{Guard, Limits, StreamGuard, panic_text};
#[cfg(feature = "http")]
pub(crate) use invocation::refused;
pub(crate) use invocation::{Invocation, Origin, not_found};
#[cfg(feature = "http")]
pub(crate) use misfit::misplaced;

/// Reads what another program sent as the output of an operation, under the policy.
#[cfg(feature = "webhooks")]
pub(crate) fn received<T: DeserializeOwned + 'static>(
    spec: &'static OperationSpec,
    policy: OutputPolicy,
    json: &[u8],
) -> Result<ResponseEnvelope<T>, CallError> {
    let entry = Entry::new(SpecRef::Static(spec), None, &DefinitionCache::default())
        .map_err(|error| CallError::execution(error.to_string()))?;
    let payload = Payload::Json(Bytes::copy_from_slice(json));
    typed::typed(&entry, spec, policy, ResponseEnvelope::local(payload, spec.id.clone()))
}

/// The items of a subscription.
pub type EnvelopeStream<T> = BoxStream<'static, Result<ResponseEnvelope<T>, CallError>>;

/// A subscription that is being opened: the future of its stream.
pub type Opening<Op> = BoxFuture<'static, Result<EnvelopeStream<<Op as Operation>::Output>, CallError>>;

/// The result of a handler, as it returns it: what came from another server stays marked as that server's.
#[inline]
fn answered(
    entry: &Entry,
    answer: Result<ResponseEnvelope<Payload>, CallError>,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    match answer {
        Ok(mut envelope) => {
            entry.disown(&mut envelope.meta);
            Ok(envelope)
        }
        Err(error) => Err(failed(error, &entry.spec)),
    }
}

/// Reports the check of a result to a handler that notes how calls end.
#[inline]
fn ended<T>(ending: Option<Ending>, checked: Result<T, CallError>) -> Result<T, CallError> {
    let Some(ending) = ending else { return checked };
    // Taken apart, because a reference to the whole result would cost other calls a copy of it.
    match checked {
        Ok(envelope) => {
            ending.end(None);
            Ok(envelope)
        }
        Err(error) => {
            ending.end(Some(&error));
            Err(error)
        }
    }
}

/// A running query or mutation: the future of its result. Dropping it cancels the call.
// Boxed, with the handler's own future and its limits: one allocation, and nothing to move.
#[must_use = "a call ends when its future is dropped"]
pub struct Execution<Op: Operation>(Answer<Op>);

impl<Op: Operation> fmt::Debug for Execution<Op> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Execution").field("operation", &Op::SPEC.id).finish_non_exhaustive()
    }
}

impl<Op: Operation> Future for Execution<Op> {
    type Output = Result<ResponseEnvelope<Op::Output>, CallError>;

    #[inline]
    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        self.get_mut().0.as_mut().poll(task)
    }
}

/// Runs a query or a mutation by its type. The call is admitted and its handler's future made at once; an `async fn`
/// would do nothing until it is polled. Inlined into the caller, which would otherwise write the call to memory only for
/// it to be read at once.
#[inline(always)]
pub(crate) fn execute<'r, Op: Call>(call: Result<impl Into<Origin<'r>>, CallError>, input: Op::Input) -> Execution<Op> {
    Execution(match call {
        Ok(call) => start::<Op>(call.into(), input).unwrap_or_else(failing::<Op>),
        Err(error) => failing::<Op>(error),
    })
}

/// The future of a call that has failed before it began.
#[cold]
#[inline(never)]
fn failing<Op: Operation>(error: CallError) -> Answer<Op> {
    let mut error = Some(named(error, Op::SPEC));
    // Not an async block, which panics if it is polled once more.
    Box::pin(poll_fn(move |_| {
        Poll::Ready(Err(error.take().unwrap_or_else(|| named(CallError::execution("the call is over"), Op::SPEC))))
    }))
}

#[inline(always)]
fn start<Op: Call>(mut call: Origin<'_>, input: Op::Input) -> Result<Answer<Op>, CallError> {
    let table = call.registry().table();
    if let Some(entry) = table.get_type(TypeId::of::<Op>()) {
        let (entry, handler) = call.admit(&Op::SPEC.id, entry)?;
        if let Some(typed) = (&*handler.erased as &dyn Any).downcast_ref::<TypedCall<Op>>() {
            check_typed_input(entry, handler, &input)?;
            let (limits, strict) = (call.limits(), strict(call.policy(), entry));
            return begin(Op::SPEC, || typed.0.run(input, call, limits, strict));
        }
    }
    let entry = table.get_own(&Typed::of::<Op>()).cloned();
    drop(table);
    start_elsewhere::<Op>(call.into(), entry, input)
}

/// Checks what the type does not: the schema's constraints, if it has any.
///
/// Input for a remote is checked there: it may know enum values that the document does not have.
#[inline(always)]
fn check_typed_input(entry: &Entry, handler: &Handler, input: &dyn AnyInput) -> Result<(), CallError> {
    match !entry.schemas.input_is_constrained() || handler.is_remote() || handler.is_stand_in {
        true => Ok(()),
        false => check_constrained(entry, input),
    }
}

#[inline(never)]
fn check_constrained(entry: &Entry, input: &dyn AnyInput) -> Result<(), CallError> {
    let (value, bodies) = handover::scoped(|| input.to_value());
    let value = value.map_err(|error| input::unwritten(&entry.spec, input, error))?;
    handover::resolving(&bodies, || entry.schemas.check_input(&entry.spec, &value)).0
}

/// An input as JSON, and the bodies in it if the handler takes them unchanged.
fn hand_over(entry: &Entry, handler: &Handler, input: &dyn AnyInput) -> Result<(Value, Bodies), CallError> {
    let (value, bodies) = match handler.erased.streams_bodies() {
        true => handover::scoped(|| input.to_value()),
        false => (input.to_value(), Bodies::default()),
    };
    let value = value.map_err(|error| input::unwritten(&entry.spec, input, error))?;
    Ok((value, bodies))
}

/// The input of a call by id, in which each body is JSON unless the handler takes it unchanged.
fn with_json_bodies(handler: &Handler, input: Value, context: &Context) -> Result<Value, CallError> {
    match context.extension::<Bodies>().filter(|bodies| !bodies.is_empty()) {
        Some(bodies) if !handler.erased.takes_bodies(&input, bodies) => Ok(bodies.to_json(&input)?.into_owned()),
        _ => Ok(input),
    }
}

// Inlined for the same reason as `execute`.
#[inline(always)]
fn start_erased(
    call: Invocation,
    entry: &Entry,
    mut input: Value,
) -> Result<Boxed<ResponseEnvelope<Payload>>, CallError> {
    let handler = entry.handler.as_ref().ok_or_else(|| not_found(&entry.spec.id, "no handler"))?;
    prepare(entry, handler, &mut input);
    Guard::start(call.limits(), &entry.spec, || handler.erased.call(&entry.spec, input, call.context))
}

/// Removes what no request may contain from an input.
#[inline]
fn prepare(entry: &Entry, handler: &Handler, input: &mut Value) {
    if handler.is_remote() {
        entry.schemas.remove_read_only(&entry.spec, input);
    }
}

/// Runs a query or a mutation for a remote caller, whose input is a JSON value or JSON text.
///
/// As for a typed local call, an operation's own types stand for its schemas: what they take and give goes from text to
/// type and back. All else is checked and normalised like a call by id, and so is an operation of this process whose schemas
/// were written beside its types.
pub(crate) async fn serve(call: Invocation, id: &str, input: Payload) -> Result<ResponseEnvelope<Payload>, CallError> {
    let policy = call.policy;
    let entry = call.context.registry.table().get(id).cloned().ok_or_else(|| not_found(id, "operation not found"))?;
    let is_described_apart = entry.spec.is_local() && !is_described_by_types(&entry.spec);
    let is_trusted = |form: InputForm| form == InputForm::Either || form == InputForm::Types && !is_described_apart;
    let (guard, checked, ending) = start_served(call, &entry, input, is_trusted, Endpoint::call_payload)?;
    let envelope = answered(&entry, guard.await)?;
    ended(ending, if checked { Ok(envelope) } else { output::passed_on(&entry, policy, envelope) })
}

/// Runs a query or a mutation for a remote caller that knows the output's schema and relies on it.
///
/// Like [`serve`], but results of other processes are checked, too, and types that were generated from a document do
/// not stand for its schemas, since they accept more.
#[cfg_attr(not(feature = "mcp-server"), allow(dead_code, reason = "only an MCP server asks for it"))]
pub(crate) async fn answer(
    call: Invocation,
    entry: &Arc<Entry>,
    input: Value,
) -> Result<ResponseEnvelope<Value>, CallError> {
    let policy = call.policy;
    let is_own = has_own_types(entry);
    let (guard, checked, ending) = start_served(call, entry, Payload::Value(input), is_own, Endpoint::call_payload)?;
    let envelope = answered(entry, guard.await)?;
    ended(ending, if checked { output::parsed(envelope) } else { output::conforming(entry, policy, envelope) })
}

/// Like [`answer`], for a server that sends text and bytes: what needs no check is not parsed.
#[cfg_attr(not(feature = "http-server"), allow(dead_code, reason = "only an HTTP server asks for it"))]
// The call is started at once, and not by an async fn, whose future would hold the call and the input twice.
pub(crate) fn answer_text(
    call: Invocation,
    entry: &Arc<Entry>,
    input: Payload,
) -> impl Future<Output = Result<ResponseEnvelope<Payload>, CallError>> + Send {
    let policy = call.policy;
    let started = start_served(call, entry, input, has_own_types(entry), Endpoint::call_text);
    async move {
        let (guard, checked, ending) = started?;
        let envelope = answered(entry, guard.await)?;
        // Bytes have no schema.
        let is_whole = checked || matches!(envelope.data, Payload::Body(_));
        ended(ending, if is_whole { Ok(envelope) } else { output::conforming_text(entry, policy, envelope) })
    }
}

/// Checks the stored result of a job as [`answer`] checks that of a call.
///
/// A job runs by [`serve`], perhaps in another version of the program, and its result is stored as it is given there.
#[cfg_attr(
    not(all(feature = "durable", feature = "mcp-server")),
    allow(dead_code, reason = "only servers of tasks ask for it")
)]
pub(crate) fn stored(
    entry: &Entry,
    policy: OutputPolicy,
    envelope: ResponseEnvelope<Box<RawValue>>,
) -> Result<ResponseEnvelope<Value>, CallError> {
    if is_as_stored(entry, policy) {
        return output::parsed(envelope.map(Payload::Raw));
    }
    let ResponseEnvelope { data, meta, warnings } = envelope;
    // It may have been JSON of another content type, which only text may be.
    let may_be_text = meta.has_content_type() && data.get() != "null";
    let data = Payload::Raw(data);
    let data = if may_be_text { data } else { Payload::Value(output::parse(&meta, data)?) };
    output::conforming(entry, policy, ResponseEnvelope { data, meta, warnings })
}

/// True if [`stored`] checks no result of the operation, because its type stands for the schema.
pub(crate) fn is_as_stored(entry: &Entry, policy: OutputPolicy) -> bool {
    policy != OutputPolicy::Strict && reads_text(entry)
}

/// True if [`answer_text`] reads the operation's own type from text, without checking the input's schema.
pub(crate) fn reads_text(entry: &Entry) -> bool {
    let form = entry.handler.as_ref().map(|handler| handler.erased.input_form());
    form.is_some_and(has_own_types(entry)) && entry.schemas.input_is_its_type()
}

/// Returns a function that is true for a handler that takes the types from which the operation's schemas are made.
///
/// The types of a function of this process are its own even if it is bound to HTTP.
fn has_own_types(entry: &Entry) -> impl FnOnce(InputForm) -> bool + use<> {
    let own = (entry.spec.is_local() || entry.spec.output.is_made()) && is_described_by_types(&entry.spec);
    move |form| own && form == InputForm::Types
}

/// True if the operation's schemas are made of its types, or say nothing. Others may ask for what the types do not.
fn is_described_by_types(spec: &OperationSpec) -> bool {
    [&spec.input, &spec.output].into_iter().all(|schema| schema.is_made() || schema.is_any())
}

/// How an endpoint is run that is trusted.
type Run = fn(&dyn Erased, &OperationSpec, Payload, Context) -> PayloadFuture;

/// A call that was started, true if its output needs no check, and what its end is reported to.
type Started = (Boxed<ResponseEnvelope<Payload>>, bool, Option<Ending>);

/// Starts a call for a remote caller. A trusted endpoint checks its own input and output.
fn start_served(
    mut call: Invocation,
    entry: &Arc<Entry>,
    input: Payload,
    is_trusted: impl FnOnce(InputForm) -> bool,
    run: Run,
) -> Result<Started, CallError> {
    let (entry, handler) = call.admit(&entry.spec.id, Some(entry))?;
    let by_type = is_trusted(handler.erased.input_form()) && call.policy != OutputPolicy::Strict;
    if let Payload::Value(input) = &input {
        entry.check_members(input, &call.context).map_err(|error| call.refused(entry, input, error))?;
    }
    let ending = call.ending(handler);
    if by_type && entry.schemas.input_is_its_type() {
        let limits = call.limits();
        let start = || run(&*handler.erased, &entry.spec, input, call.context);
        return Ok((Guard::start(limits, &entry.spec, start)?, true, ending));
    }
    let input = with_json_bodies(handler, input::value(&entry.spec, input)?, &call.context)?;
    entry.check_input(&input, &call.context).map_err(|error| call.refused(entry, &input, error))?;
    Ok((start_erased(call, entry, input)?, false, ending))
}

/// Starts a subscription by its type.
pub(crate) async fn subscribe<Op: Subscribe>(
    call: Result<Invocation, CallError>,
    input: Op::Input,
) -> Result<EnvelopeStream<Op::Output>, CallError> {
    let started = match call {
        Ok(call) => start_stream::<Op>(call, input).await,
        Err(error) => Err(error),
    };
    started.map_err(|error| named(error, Op::SPEC))
}

async fn start_stream<Op: Subscribe>(
    mut call: Invocation,
    input: Op::Input,
) -> Result<EnvelopeStream<Op::Output>, CallError> {
    let policy = call.policy;
    let registry = call.context.registry.clone();
    // A block of its own, so that the table is not held while the handler runs.
    let (entry, typed) = {
        let table = registry.table();
        if let Some(entry) = table.get_type(TypeId::of::<Op>()) {
            let (entry, handler) = call.admit(&Op::SPEC.id, Some(entry))?;
            check_typed_input(entry, handler, &input)?;
            (entry.clone(), Some(handler.erased.clone()))
        } else {
            let (entry, handler) = call.admit(&Op::SPEC.id, table.get_own(&Typed::of::<Op>()))?;
            entry.check_type(&Typed::of::<Op>())?;
            check_typed_input(entry, handler, &input)?;
            (entry.clone(), None)
        }
    };
    let typed = typed.as_deref().and_then(|handler| (handler as &dyn Any).downcast_ref::<TypedStream<Op>>());
    if let Some(handler) = typed {
        let ((first, rest), strict) = (Limits::of_subscription(&mut call.context), strict(policy, &entry));
        let opening = Guard::start(first, &entry.spec, || (handler.0)(input, call.context))?;
        let stream = opening.await.map_err(|error| failed(error, Op::SPEC))?;
        return Ok(StreamGuard::new(stream, rest, entry.spec.clone())
            .map(move |item| match item {
                Ok(reply) => wrap::<Op>(reply, strict.as_deref()),
                Err(error) => Err(failed(error, Op::SPEC)),
            })
            .boxed());
    }
    let handler = entry.handler.as_ref().ok_or_else(|| not_found(&entry.spec.id, "no handler"))?;
    let (input, bodies) = hand_over(&entry, handler, &input)?;
    call.context = call.context.with_bodies(bodies);
    let (stream, ending) = open(call, &entry, input).await?;
    let read = move |item: Result<_, CallError>| {
        let read = item.and_then(|item| typed::typed(&entry, Op::SPEC, policy, item));
        noted(ending.as_ref(), read.map_err(|error| named(error, Op::SPEC)))
    };
    Ok(stream.map(read).boxed())
}

/// Starts an erased subscription under its limits. Its items are [`noted`] when they have been read.
async fn open(
    mut call: Invocation,
    entry: &Arc<Entry>,
    mut input: Value,
) -> Result<(PayloadStream, Option<Ending>), CallError> {
    let handler = entry.handler.as_ref().ok_or_else(|| not_found(&entry.spec.id, "no handler"))?;
    prepare(entry, handler, &mut input);
    let ending = call.ending(handler);
    let (first, rest) = Limits::of_subscription(&mut call.context);
    let answering = entry.clone();
    let subscribe = || handler.erased.subscribe(&entry.spec, input, call.context);
    let opening = Guard::start(first, &entry.spec, subscribe)?;
    let stream = opening.await.map_err(|error| failed(error, &entry.spec))?;
    let stream = StreamGuard::new(stream, rest, entry.spec.clone()).map(move |item| answered(&answering, item)).boxed();
    Ok((stream, ending))
}

/// Notes how an item of a subscription was read, if its handler asks for it.
fn noted<T>(ending: Option<&Ending>, item: Result<T, CallError>) -> Result<T, CallError> {
    if let Some(ending) = ending {
        ending.item(item.as_ref().err());
    }
    item
}
