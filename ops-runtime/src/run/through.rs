//! Calls by a caller that is not in the registry, on behalf of a handler's own call.

use std::fmt;

use serde_json::Value;

use crate::run::pipeline::EnvelopeStream;
use crate::{Call, CallError, CallOptions, Caller, Context, ResponseEnvelope, Subscribe};

/// A caller whose calls are made on behalf of a handler's own call: see [`Context::through`].
pub struct Through<'a, C> {
    context: &'a Context,
    caller: &'a C,
}

impl Context {
    /// Calls through a client, or another registry, on behalf of this call. As with [`env`](Self::env), the calls
    /// inherit the identity, the deadline, the cancellation and the metadata, and have this request as their parent.
    ///
    /// This is for a client that is not in the registry, such as that of another account of the same API.
    ///
    /// ```
    /// use ops_runtime::mock::MockCaller;
    /// use ops_runtime::{CallError, Context, Registry, operation};
    ///
    /// /// Adds two numbers.
    /// #[operation(namespace = "math", kind = query)]
    /// async fn add(a: i64, b: i64) -> i64 {
    ///     a + b
    /// }
    ///
    /// /// The calculator of somebody else, such as a client.
    /// struct Theirs(MockCaller);
    ///
    /// #[operation(namespace = "math", kind = query, state(Theirs))]
    /// async fn double_there(context: &Context, a: i64) -> Result<i64, CallError> {
    ///     let Theirs(calculator) = context.state()?;
    ///     Ok(context.through(calculator).execute::<Add>((a, a)).await?.data)
    /// }
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mock = MockCaller::new().on::<Add>(|input| Ok(10 * (input.a + input.b)));
    /// let registry = Registry::builder().with_state(Theirs(mock)).build();
    /// registry.register(DoubleThere)?;
    /// assert_eq!(registry.execute::<DoubleThere>(2).await?.data, 40);
    /// # Ok(()) }
    /// ```
    pub fn through<'a, C: Caller>(&'a self, caller: &'a C) -> Through<'a, C> {
        Through { context: self, caller }
    }
}

impl<C: Caller> Through<'_, C> {
    fn options(&self, options: CallOptions) -> CallOptions {
        options.on_behalf_of(self.context.clone())
    }

    /// Runs a query or a mutation by its type.
    ///
    /// # Errors
    /// Those of the caller.
    pub async fn execute<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
    ) -> Result<ResponseEnvelope<Op::Output>, CallError> {
        Caller::execute::<Op>(self, input).await
    }

    /// Starts a subscription by its type.
    ///
    /// # Errors
    /// Those of the caller.
    pub async fn subscribe<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
    ) -> Result<EnvelopeStream<Op::Output>, CallError> {
        Caller::subscribe::<Op>(self, input).await
    }

    /// Runs a query or a mutation by its id.
    ///
    /// # Errors
    /// Those of the caller.
    pub async fn call(&self, id: &str, input: Value) -> Result<ResponseEnvelope<Value>, CallError> {
        Caller::call(self, id, input).await
    }

    /// Starts a subscription by its id.
    ///
    /// # Errors
    /// Those of the caller.
    pub async fn stream(&self, id: &str, input: Value) -> Result<EnvelopeStream<Value>, CallError> {
        Caller::stream(self, id, input).await
    }
}

impl<C: Caller> Caller for Through<'_, C> {
    fn execute_with<Op: Call>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send {
        self.caller.execute_with::<Op>(input, self.options(options))
    }

    fn subscribe_with<Op: Subscribe>(
        &self,
        input: impl Into<Op::Input> + Send,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send {
        self.caller.subscribe_with::<Op>(input, self.options(options))
    }

    fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Value>, CallError>> + Send {
        self.caller.call_with(id, input, self.options(options))
    }

    fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Value>, CallError>> + Send {
        self.caller.stream_with(id, input, self.options(options))
    }
}

impl<C> fmt::Debug for Through<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Through").field("context", self.context).finish_non_exhaustive()
    }
}
