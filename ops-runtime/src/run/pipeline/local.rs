//! Code of this process that takes and returns the types of an operation.
//!
//! ```
//! use ops_runtime::adapter::{Handler, Registration, Reply};
//! use ops_runtime::spec::OperationSpec;
//! use ops_runtime::{Call, Operation, Registry};
//!
//! struct Double;
//!
//! impl Operation for Double {
//!     type Input = i64;
//!     type Output = i64;
//!     const SPEC: &'static OperationSpec = &OperationSpec::query("math.double");
//! }
//! impl Call for Double {}
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let double = Handler::typed::<Double, _, _>(|n, _| async move { Ok(Reply::Value(2 * n)) });
//! let registry = Registry::new();
//! registry.register(Registration::new(Double::SPEC, double))?;
//! assert_eq!(registry.execute::<Double>(21).await?.data, 42);
//! # Ok(()) }
//! ```

use std::any::Any;
use std::future::{Future, ready};
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context as Task, Poll, ready};

use futures_core::Stream;
use futures_util::{FutureExt, StreamExt};
use pin_project_lite::pin_project;
use serde_core::Serialize;
use serde_json::Value;

use super::failure::{failed, named};
use super::guard::{Guard, Limits};
use super::invocation::{Invocation, Origin};
use super::output;
use crate::model::body::handover::{self, Bodies};
use crate::model::futures::{BoxFuture, BoxStream};
use crate::record::DecodeError;
use crate::run::handler::{Endpoint, InputForm, Typed};
use crate::run::input;
use crate::run::payload::{Payload, PayloadFuture, PayloadStream, Reply, to_bytes, to_text, to_value};
use crate::run::registry::Entry;
use crate::{
    Body, Call, CallError, Context, Handler, Operation, OperationSpec, ResponseEnvelope, SpecRef, Subscribe, Text,
};

impl Handler {
    /// A handler of a query or a mutation that takes and returns the operation's types.
    pub fn typed<Op, F, Fut>(run: F) -> Self
    where
        Op: Call,
        F: Fn(Op::Input, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
    {
        Self::of(Arc::new(TypedCall::<Op>(Box::new(run))), Some(Typed::of::<Op>()), Some(false))
    }

    /// A handler of a query or a mutation that takes and returns the operation's types, and needs no context.
    pub fn function<Op, F, Fut>(run: F) -> Self
    where
        Op: Call,
        F: Fn(Op::Input) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
    {
        Self::of(Arc::new(TypedCall::<Op>(Box::new(Alone(run)))), Some(Typed::of::<Op>()), Some(false))
    }

    /// A handler of a subscription that takes and returns the operation's types.
    pub fn typed_stream<Op, F, Fut, S>(run: F) -> Self
    where
        Op: Subscribe,
        F: Fn(Op::Input, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, CallError>> + Send + 'static,
        S: Stream<Item = Result<Reply<Op::Output>, CallError>> + Send + 'static,
    {
        let run = Box::new(move |input, context| -> BoxFuture<'static, _> {
            let future = run(input, context);
            Box::pin(async move { Ok(Box::pin(future.await?) as BoxStream<'static, _>) })
        });
        Self::of(Arc::new(TypedStream::<Op>(run)), Some(Typed::of::<Op>()), Some(true))
    }
}

/// The future of a call by type.
pub(super) type Answer<Op> = BoxFuture<'static, Result<ResponseEnvelope<<Op as Operation>::Output>, CallError>>;

pub(super) struct TypedCall<Op: Operation>(pub(super) Box<dyn RunTyped<Op>>);

/// The code of a query or a mutation.
pub(super) trait RunTyped<Op: Operation>: Send + Sync {
    /// Runs it under limits for a caller with these types; `strict` has the schemas, if the policy does not rely on types.
    ///
    /// In one future, since each one that is boxed costs an allocation, and each one that is not is moved.
    fn run(&self, input: Op::Input, origin: Origin<'_>, limits: Limits, strict: Option<Arc<Entry>>) -> Answer<Op>;

    /// Runs it for a caller that gets JSON.
    fn run_encoded(&self, input: Op::Input, context: Context, encode: Encode<Op::Output>, id: Text) -> PayloadFuture;
}

impl<Op, F, Fut> RunTyped<Op> for F
where
    Op: Operation,
    F: Fn(Op::Input, Context) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
{
    fn run(&self, input: Op::Input, origin: Origin<'_>, limits: Limits, strict: Option<Arc<Entry>>) -> Answer<Op> {
        running::<Op, Fut>(|| self(input, Invocation::from(origin).context), limits, strict)
    }

    fn run_encoded(&self, input: Op::Input, context: Context, encode: Encode<Op::Output>, id: Text) -> PayloadFuture {
        encoded(self(input, context), encode, id)
    }
}

/// Code that needs no context.
struct Alone<F>(F);

impl<Op, F, Fut> RunTyped<Op> for Alone<F>
where
    Op: Operation,
    F: Fn(Op::Input) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
{
    fn run(&self, input: Op::Input, _: Origin<'_>, limits: Limits, strict: Option<Arc<Entry>>) -> Answer<Op> {
        running::<Op, Fut>(|| (self.0)(input), limits, strict)
    }

    fn run_encoded(&self, input: Op::Input, _: Context, encode: Encode<Op::Output>, id: Text) -> PayloadFuture {
        encoded((self.0)(input), encode, id)
    }
}

/// The future of a handler's result, wrapped.
#[inline(always)]
fn running<Op, Fut>(start: impl FnOnce() -> Fut, limits: Limits, strict: Option<Arc<Entry>>) -> Answer<Op>
where
    Op: Operation,
    Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
{
    // First the room for it, into which it is then written.
    let room = Box::new_uninit();
    let guard = Guard::new(start, limits, SpecRef::Static(Op::SPEC));
    let running: Box<Running<Op, Fut>> = Box::write(room, Running { guard, strict, operation: PhantomData });
    Box::into_pin(running)
}

/// The future of a handler's result, as JSON in an envelope.
#[inline(always)]
fn encoded<T: 'static>(
    work: impl Future<Output = Result<Reply<T>, CallError>> + Send + 'static,
    encode: Encode<T>,
    id: Text,
) -> PayloadFuture {
    // Not an async block, which would have room for the future twice.
    Box::pin(work.map(move |reply| encode(reply?, id)))
}

pin_project! {
    /// A handler that runs, whose result is wrapped.
    struct Running<Op, F> {
        #[pin]
        guard: Guard<F>,
        strict: Option<Arc<Entry>>,
        operation: PhantomData<fn() -> Op>,
    }
}

impl<Op, F> Future for Running<Op, F>
where
    Op: Operation,
    F: Future<Output = Result<Reply<Op::Output>, CallError>>,
{
    type Output = Result<ResponseEnvelope<Op::Output>, CallError>;

    fn poll(self: Pin<&mut Self>, task: &mut Task<'_>) -> Poll<Self::Output> {
        let this = self.project();
        Poll::Ready(match ready!(this.guard.poll(task)) {
            // As `wrap` does: here, so that the envelope is written where it is returned.
            Ok(Reply::Value(data)) if this.strict.is_none() => Ok(ResponseEnvelope::local(data, Op::SPEC.id.clone())),
            Ok(reply) => wrap::<Op>(reply, this.strict.as_deref()),
            Err(error) => Err(failed(error, Op::SPEC)),
        })
    }
}

/// Wraps the result of a handler of this process; its type stands for its schema, unless `strict` requires a check.
pub(super) fn wrap<Op: Operation>(
    reply: Reply<Op::Output>,
    strict: Option<&Entry>,
) -> Result<ResponseEnvelope<Op::Output>, CallError> {
    let envelope = match reply {
        Reply::Value(data) => ResponseEnvelope::local(data, Op::SPEC.id.clone()),
        Reply::Envelope(envelope) => *envelope,
    };
    match strict {
        Some(entry) => checked_strictly(entry, Op::SPEC, envelope),
        None => Ok(envelope),
    }
}

/// An answer of this process that its schema allows. Bodies in it are not read: bytes have no schema, and a stream is read once.
#[cold]
#[inline(never)]
fn checked_strictly<T: Serialize>(
    entry: &Entry,
    spec: &OperationSpec,
    envelope: ResponseEnvelope<T>,
) -> Result<ResponseEnvelope<T>, CallError> {
    let (value, bodies) = handover::scoped(|| to_value(&envelope.data));
    let checked = value.and_then(|value| output::check_strictly(entry, &envelope.meta, &value, &bodies));
    match checked {
        Ok(()) => Ok(envelope),
        Err(error) => Err(named(error, spec)),
    }
}

impl<Op: Operation> Endpoint for TypedCall<Op> {
    fn call(&self, spec: &OperationSpec, input: Value, context: Context) -> PayloadFuture {
        self.run(spec, &Payload::Value(input), context, encode)
    }

    fn input_form(&self) -> InputForm {
        InputForm::Types
    }

    fn takes_bodies(&self, input: &Value, bodies: &Bodies) -> bool {
        let (read, has_all) = handover::resolving(bodies, || input::read_value::<Op::Input>(input));
        read.is_ok() && has_all
    }

    fn call_payload(&self, spec: &OperationSpec, input: Payload, context: Context) -> PayloadFuture {
        // The result has the form of the input.
        let encode = if matches!(input, Payload::Value(_)) { encode } else { encode_text };
        self.run(spec, &input, context, encode)
    }

    fn call_text(&self, spec: &OperationSpec, input: Payload, context: Context) -> PayloadFuture {
        self.run(spec, &input, context, encode_bytes)
    }
}

impl<Op: Operation> TypedCall<Op> {
    fn run(
        &self,
        spec: &OperationSpec,
        input: &Payload,
        context: Context,
        encode: Encode<Op::Output>,
    ) -> PayloadFuture {
        let read = || input::read::<Op::Input>(input);
        let bodies = context.extension::<Bodies>();
        let encode = if bodies.is_some_and(Bodies::wants_output) { encode_body } else { encode };
        let read = bodies.map_or_else(read, |bodies| handover::resolving(bodies, read).0);
        match read {
            Ok(input) => self.0.run_encoded(input, context, encode, spec.id.clone()),
            Err(error) => Box::pin(ready(Err(unfit(spec, input, &context, &error)))),
        }
    }
}

/// The error of an input that is not of the operation's type: a type is read up to the first fault, and the schema has all.
#[cold]
fn unfit(spec: &OperationSpec, input: &Payload, context: &Context, first: &DecodeError) -> CallError {
    let first = input::invalid(spec, first);
    let Some(entry) = context.registry.table().get(&spec.id).cloned() else { return first };
    let checked = input::value(spec, input.clone()).and_then(|input| entry.check_input(&input, context));
    // A schema may say less than the type.
    checked.err().unwrap_or(first)
}

/// The items of a typed subscription.
type ReplyStream<T> = BoxStream<'static, Result<Reply<T>, CallError>>;

type RunStream<Op> = Box<
    dyn Fn(
            <Op as Operation>::Input,
            Context,
        ) -> BoxFuture<'static, Result<ReplyStream<<Op as Operation>::Output>, CallError>>
        + Send
        + Sync,
>;

pub(super) struct TypedStream<Op: Operation>(pub(super) RunStream<Op>);

impl<Op: Operation> Endpoint for TypedStream<Op> {
    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        match input::read_value::<Op::Input>(&input) {
            Ok(input) => {
                let (future, id) = ((self.0)(input, context), spec.id.clone());
                Box::pin(async move {
                    Ok(future.await?.map(move |item| encode(item?, id.clone())).boxed() as PayloadStream)
                })
            }
            Err(error) => Box::pin(ready(Err(input::invalid(Op::SPEC, &error)))),
        }
    }

    fn input_form(&self) -> InputForm {
        InputForm::Types
    }
}

/// How a result is written as JSON.
type Encode<T> = fn(Reply<T>, Text) -> Result<ResponseEnvelope<Payload>, CallError>;

/// What a handler returned, as JSON in an envelope: the handler's own, if it returned one.
#[inline]
fn enveloped<T>(
    reply: Reply<T>,
    id: Text,
    write: impl FnOnce(&T) -> Result<Payload, CallError>,
) -> Result<ResponseEnvelope<Payload>, CallError> {
    let write = |data: T| write(&data).map_err(CallError::lasting);
    match reply {
        Reply::Value(data) => Ok(ResponseEnvelope::local(write(data)?, id)),
        Reply::Envelope(envelope) => envelope.try_map(write),
    }
}

/// A result as a JSON value.
fn encode<T: Serialize>(reply: Reply<T>, id: Text) -> Result<ResponseEnvelope<Payload>, CallError> {
    enveloped(reply, id, |data| Ok(Payload::Value(to_value(data)?)))
}

/// A result as JSON text.
fn encode_text<T: Serialize>(reply: Reply<T>, id: Text) -> Result<ResponseEnvelope<Payload>, CallError> {
    enveloped(reply, id, |data| Ok(Payload::Raw(to_text(data)?)))
}

/// A result as the bytes of JSON text, for a server that sends them.
fn encode_bytes<T: Serialize>(reply: Reply<T>, id: Text) -> Result<ResponseEnvelope<Payload>, CallError> {
    enveloped(reply, id, |data| Ok(Payload::Json(to_bytes(data)?)))
}

/// A result whose data are sent unchanged if they are a body, and otherwise as the bytes of JSON text.
fn encode_body<T: Serialize + 'static>(reply: Reply<T>, id: Text) -> Result<ResponseEnvelope<Payload>, CallError> {
    enveloped(reply, id, |data| match (data as &dyn Any).downcast_ref::<Body>() {
        Some(body) => Ok(Payload::Body(body.clone())),
        None => Ok(Payload::Json(to_bytes(data)?)),
    })
}
