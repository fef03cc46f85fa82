//! Handlers: the code that runs an operation, and its registration.
//!
//! `#[operation]` makes a [`Registration`] of a function. By hand:
//!
//! ```
//! use ops_runtime::Registry;
//! use ops_runtime::adapter::{Handler, Registration};
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::{Value, json};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! static ECHO: OperationSpec = OperationSpec::query("demo.echo");
//! registry.register(Registration::new(&ECHO, Handler::dynamic(|input: Value, _| async { Ok(input) })))?;
//! assert_eq!(registry.call("demo.echo", json!(1)).await?.into_data(), 1);
//! # Ok(()) }
//! ```

use std::any::{Any, TypeId, type_name};
use std::fmt;
use std::future::{Future, ready};
use std::sync::Arc;

use futures_core::Stream;
use futures_util::StreamExt;
use serde_json::Value;

use crate::model::body::handover::Bodies;
use crate::model::futures::{BoxFuture, BoxStream};
use crate::run::input;
use crate::run::payload::{Payload, PayloadFuture, PayloadStream, Reply};
use crate::{Call, CallError, Context, Operation, OperationSpec, ResponseEnvelope, SpecRef, Subscribe};

/// The code of an operation that the server does not implement.
pub(crate) const NOT_IMPLEMENTED: &str = "NOT_IMPLEMENTED";

/// The code of a call beyond its caller's limits. `retryAfter` in the details is the number of seconds to wait.
#[cfg(any(feature = "gateway", feature = "http-server"))]
pub(crate) const TOO_MANY_REQUESTS: &str = "TOO_MANY_REQUESTS";

/// How an endpoint treats an input that is a JSON value or JSON text.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputForm {
    /// As a value: text is parsed first.
    Value,
    /// By the operation's own types: then neither input nor output need be checked against the schemas.
    Types,
    /// In either form: it is passed on, and checked where the operation runs.
    Either,
}

/// A type that runs operations by their spec: an HTTP client, an MCP client, the remote side of a transport.
///
/// Dropping a future or stream must stop its work. Methods that an endpoint does not implement refuse the call.
pub trait Endpoint: Send + Sync + 'static {
    /// Runs a query or a mutation.
    fn call(&self, spec: &OperationSpec, input: Value, context: Context) -> PayloadFuture {
        let _ = (input, context);
        let message = format!("`{}` is a subscription: use `subscribe` or `stream`", spec.id);
        Box::pin(ready(Err(CallError::execution(message))))
    }

    /// Starts a subscription.
    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let _ = (input, context);
        let message = format!("`{}` gives one result: use `execute` or `call`", spec.id);
        Box::pin(ready(Err(CallError::execution(message))))
    }

    /// Checks an input without running the operation, for example for a member that has no place in a request. The
    /// default accepts every input.
    ///
    /// It is called before a user is asked to approve a call, by
    /// [`Registry::check_input`](crate::Registry::check_input), and for an input that does not match the operation's
    /// schema, to report all errors at once. So it must accept any input.
    ///
    /// # Errors
    /// The error that the call itself would fail with.
    fn check(&self, spec: &OperationSpec, input: &Value, context: &Context) -> Result<(), CallError> {
        let _ = (spec, input, context);
        Ok(())
    }

    /// Called for a call that is refused before it gets here: by access rules, with `null` as its input, or for its
    /// input.
    #[doc(hidden)]
    fn refused(&self, spec: &OperationSpec, input: &Value, context: &Context, error: &CallError) {
        let _ = (spec, input, context, error);
    }

    /// The endpoint that runs the calls, if this one only checks them and passes them on.
    #[doc(hidden)]
    fn passes_to(&self) -> Option<&dyn Any> {
        None
    }

    /// How [`call_payload`](Self::call_payload) treats the input.
    #[doc(hidden)]
    fn input_form(&self) -> InputForm {
        InputForm::Value
    }

    /// Runs a query or a mutation whose input is a JSON value or JSON text.
    #[doc(hidden)]
    fn call_payload(&self, spec: &OperationSpec, input: Payload, context: Context) -> PayloadFuture {
        match input::value(spec, input) {
            Ok(input) => self.call(spec, input, context),
            Err(error) => Box::pin(ready(Err(error))),
        }
    }

    /// Like [`call_payload`](Self::call_payload), for a caller that passes a result on as text, if it is text.
    #[doc(hidden)]
    fn call_text(&self, spec: &OperationSpec, input: Payload, context: Context) -> PayloadFuture {
        self.call_payload(spec, input, context)
    }

    /// True if calls with this input get each of these bodies unchanged, a stream as a stream.
    #[doc(hidden)]
    fn takes_bodies(&self, input: &Value, bodies: &Bodies) -> bool {
        let _ = (input, bodies);
        self.streams_bodies()
    }

    /// True if the endpoint sends and receives each [`Body`](crate::Body) as bytes, beside the JSON of input and
    /// output.
    ///
    /// Then the input of a typed call has a placeholder for each body, and the bodies are in
    /// [`Bodies`](crate::adapter::Bodies), an extension of the context. Otherwise a body in an input is a base64
    /// string. Calls by id have only JSON in either case.
    fn streams_bodies(&self) -> bool {
        false
    }
}

/// The code that runs an operation.
#[derive(Clone)]
pub struct Handler {
    pub(crate) erased: Arc<dyn Erased>,
    // The operation whose types the code takes, and whether it streams; `None` if it takes any JSON.
    pub(crate) operation: Option<Typed>,
    pub(crate) streams: Option<bool>,
    /// True if the code itself applies the operation's own timeout.
    pub(crate) keeps_time: bool,
    /// True if the code notes how each call ends for its caller.
    pub(crate) notes_end: bool,
    /// True if the code stands in for a remote operation, which checks its inputs itself.
    pub(crate) is_stand_in: bool,
    /// True if its results may contain what another server sent.
    pub(crate) is_foreign: bool,
}

/// An operation by its type.
#[derive(Clone, Copy)]
pub(crate) struct Typed {
    pub(crate) operation: TypeId,
    pub(crate) spec: &'static OperationSpec,
    pub(crate) name: &'static str,
}

impl Typed {
    #[inline(always)]
    pub(crate) fn of<Op: Operation>() -> Self {
        Self { operation: TypeId::of::<Op>(), spec: Op::SPEC, name: type_name::<Op>() }
    }
}

/// An endpoint, or one of the handlers of this process.
pub(crate) trait Erased: Endpoint + Any {}

impl<T: Endpoint + Any> Erased for T {}

impl Handler {
    /// A handler of a query or a mutation that takes and returns any JSON.
    ///
    /// A value that is an envelope ([`is_response_envelope`](crate::is_response_envelope)) is returned as an envelope.
    pub fn dynamic<F, Fut>(run: F) -> Self
    where
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Value, CallError>> + Send + 'static,
    {
        let run = Box::new(move |input, context| -> BoxFuture<'static, _> { Box::pin(run(input, context)) });
        Self::of(Arc::new(DynamicCall(run)), None, Some(false))
    }

    /// A handler of a subscription that takes and returns any JSON.
    pub fn dynamic_stream<F, Fut, S>(run: F) -> Self
    where
        F: Fn(Value, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, CallError>> + Send + 'static,
        S: Stream<Item = Result<Value, CallError>> + Send + 'static,
    {
        let run = Box::new(move |input, context| -> BoxFuture<'static, _> {
            let future = run(input, context);
            Box::pin(async move { Ok(Box::pin(future.await?) as BoxStream<'static, _>) })
        });
        Self::of(Arc::new(DynamicStream(run)), None, Some(true))
    }

    /// True if the operation is run by an endpoint, which decides itself what it accepts.
    pub(crate) fn is_remote(&self) -> bool {
        self.streams.is_none()
    }

    /// A handler that passes calls to an endpoint.
    pub fn endpoint(endpoint: impl Endpoint) -> Self {
        Self::foreign(Arc::new(endpoint))
    }

    /// A handler that passes calls to an endpoint that other handlers may share.
    pub(crate) fn foreign(endpoint: Arc<dyn Erased>) -> Self {
        Self { is_foreign: true, ..Self::of(endpoint, None, None) }
    }

    pub(crate) fn of(erased: Arc<dyn Erased>, operation: Option<Typed>, streams: Option<bool>) -> Self {
        Self { erased, operation, streams, keeps_time: false, notes_end: false, is_stand_in: false, is_foreign: false }
    }

    /// Lets the code apply the operation's own timeout, since it may have to wait before the operation begins.
    /// `is_foreign` says if its results may be another server's.
    #[cfg(feature = "gateway")]
    pub(crate) fn keeping_time(self, is_foreign: bool) -> Self {
        Self { keeps_time: true, is_foreign, ..self }
    }

    /// Gives the code an [`Ending`](crate::run::ending::Ending) with each call.
    #[cfg(feature = "gateway")]
    pub(crate) fn noting_end(self) -> Self {
        Self { notes_end: true, ..self }
    }
}

impl fmt::Debug for Handler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handler").field("operation", &self.operation.map(|own| &own.spec.id)).finish_non_exhaustive()
    }
}

/// An operation with its handler, ready to be registered.
#[derive(Clone)]
#[must_use = "a registration does nothing until it is given to `Registry::register`"]
pub struct Registration {
    pub(crate) spec: SpecRef,
    pub(crate) handler: Handler,
    pub(crate) requires: Vec<(TypeId, &'static str)>,
}

impl Registration {
    /// An operation with a handler.
    pub fn new(spec: impl Into<SpecRef>, handler: Handler) -> Self {
        Self { spec: spec.into(), handler, requires: Vec::new() }
    }

    /// A query or a mutation with a handler that takes and returns its types.
    pub fn call<Op, F, Fut>(run: F) -> Self
    where
        Op: Call,
        F: Fn(Op::Input, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
    {
        Self::typed::<Op>(Handler::typed::<Op, F, Fut>(run))
    }

    /// A query or a mutation with a handler that takes and returns its types, and needs no context. Calls by type are cheaper
    /// than those of [`call`](Self::call), as no context is made.
    pub fn function<Op, F, Fut>(run: F) -> Self
    where
        Op: Call,
        F: Fn(Op::Input) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<Reply<Op::Output>, CallError>> + Send + 'static,
    {
        Self::typed::<Op>(Handler::function::<Op, F, Fut>(run))
    }

    /// A subscription with a handler that takes and returns its types.
    pub fn subscription<Op, F, Fut, S>(run: F) -> Self
    where
        Op: Subscribe,
        F: Fn(Op::Input, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<S, CallError>> + Send + 'static,
        S: Stream<Item = Result<Reply<Op::Output>, CallError>> + Send + 'static,
    {
        Self::typed::<Op>(Handler::typed_stream::<Op, F, Fut, S>(run))
    }

    /// With the same spec object as the handler: a const may have several addresses, and specs with the same address
    /// need not be compared.
    fn typed<Op: Operation>(handler: Handler) -> Self {
        Self::new(handler.operation.map_or(Op::SPEC, |own| own.spec), handler)
    }

    /// Declares application state that the handler uses, so that a registry without it refuses the registration.
    pub fn requires<T: Send + Sync + 'static>(mut self) -> Self {
        self.requires.push((TypeId::of::<T>(), type_name::<T>()));
        self
    }

    /// The operation.
    pub fn spec(&self) -> &OperationSpec {
        &self.spec
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration").field("operation", &self.spec.id).finish_non_exhaustive()
    }
}

/// Types that can be registered: the type that `#[operation]` makes from a function, or a [`Registration`].
///
/// It is implemented for all types that convert into a [`Registration`] by `Into`.
// A trait of our own over `Into<Registration>`, for its message.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be registered",
    label = "this is not an operation with a handler",
    note = "register the type that `#[operation]` makes: `ShowPet` of a fn `show_pet`",
    note = "a unit struct has no handler: register a `Registration` of it, such as `Registration::call::<ShowPet, _, _>(..)`",
    note = "operations that a client calls, as those of a generated module, are bound to it first: `register_all(client.bind(shop::operations())?)`"
)]
pub trait IntoRegistration {
    /// The operation with its handler.
    fn into_registration(self) -> Registration;
}

#[diagnostic::do_not_recommend]
impl<T: Into<Registration>> IntoRegistration for T {
    fn into_registration(self) -> Registration {
        self.into()
    }
}

type Run<I, O> = Box<dyn Fn(I, Context) -> BoxFuture<'static, Result<O, CallError>> + Send + Sync>;

struct DynamicCall(Run<Value, Value>);

struct DynamicStream(Run<Value, BoxStream<'static, Result<Value, CallError>>>);

impl Endpoint for DynamicCall {
    fn call(&self, spec: &OperationSpec, input: Value, context: Context) -> PayloadFuture {
        let (future, id) = ((self.0)(input, context), spec.id.clone());
        Box::pin(async move { Ok(detect(future.await?, id)) })
    }
}

impl Endpoint for DynamicStream {
    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let (future, id) = ((self.0)(input, context), spec.id.clone());
        Box::pin(
            async move { Ok(future.await?.map(move |item| Ok(detect(item?, id.clone()))).boxed() as PayloadStream) },
        )
    }
}

/// Detects if a value is an envelope, or data to be wrapped.
fn detect(value: Value, id: crate::Text) -> ResponseEnvelope<Payload> {
    match crate::model::envelope::detect(value) {
        Ok(envelope) => envelope.map(Payload::Value),
        Err(data) => ResponseEnvelope::local(Payload::Value(data), id),
    }
}
