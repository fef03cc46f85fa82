//! The client as a caller on its own.

use serde_json::Value;

use super::HttpClient;
use crate::{
    Call, CallError, CallOptions, Caller, EnvelopeStream, Operation, Registry, RegistryError, ResponseEnvelope,
    Subscribe,
};

impl HttpClient {
    /// The client's operations, with this one among them.
    fn with<Op: Operation>(&self) -> Result<Registry, CallError> {
        let registry = &self.registry;
        if registry.table().get(&Op::SPEC.id).is_none() {
            match registry.register_all(self.bind([Op::SPEC])) {
                // Another call of the same operation was faster.
                Ok(()) | Err(RegistryError::Duplicate { .. }) => {}
                Err(error) => return Err(CallError::from_error(&error)),
            }
        }
        Ok(registry.clone())
    }

    /// Runs a query or a mutation by its type.
    ///
    /// # Errors
    /// If the input or the output does not match its schema, if the request fails or is answered with an error status,
    /// or if the call ends early.
    pub fn execute<Op: Call>(
        &self,
        input: Op::Input,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send + use<Op> {
        let registry = self.with::<Op>();
        async move { registry?.execute::<Op>(input).await }
    }

    /// Runs a query or a mutation by its type, with options.
    ///
    /// # Errors
    /// Those of [`execute`](Self::execute).
    pub fn execute_with<Op: Call>(
        &self,
        input: Op::Input,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send + use<Op> {
        let registry = self.with::<Op>();
        async move { registry?.execute_with::<Op>(input, options).await }
    }

    /// Starts a subscription by its type; dropping the stream closes the connection.
    ///
    /// # Errors
    /// Those of [`execute`](Self::execute); later ones are items of the stream.
    pub fn subscribe<Op: Subscribe>(
        &self,
        input: Op::Input,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send + use<Op> {
        let registry = self.with::<Op>();
        async move { registry?.subscribe::<Op>(input).await }
    }

    /// Starts a subscription by its type, with options.
    ///
    /// # Errors
    /// Those of [`subscribe`](Self::subscribe).
    pub fn subscribe_with<Op: Subscribe>(
        &self,
        input: Op::Input,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send + use<Op> {
        let registry = self.with::<Op>();
        async move { registry?.subscribe_with::<Op>(input, options).await }
    }

    /// Runs a query or a mutation by its id, one that the client was given ([`add`](Self::add)).
    ///
    /// # Errors
    /// Those of [`execute`](Self::execute).
    pub async fn call(&self, id: &str, input: Value) -> Result<ResponseEnvelope<Value>, CallError> {
        self.registry.call(id, input).await
    }

    /// Runs a query or a mutation by its id, with options.
    ///
    /// # Errors
    /// Those of [`execute`](Self::execute).
    pub async fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> Result<ResponseEnvelope<Value>, CallError> {
        self.registry.call_with(id, input, options).await
    }

    /// Starts a subscription by its id, one that the client was given ([`add`](Self::add)).
    ///
    /// # Errors
    /// Those of [`subscribe`](Self::subscribe).
    pub async fn stream(&self, id: &str, input: Value) -> Result<EnvelopeStream<Value>, CallError> {
        self.registry.stream(id, input).await
    }

    /// Starts a subscription by its id, with options.
    ///
    /// # Errors
    /// Those of [`subscribe`](Self::subscribe).
    pub async fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> Result<EnvelopeStream<Value>, CallError> {
        self.registry.stream_with(id, input, options).await
    }
}

impl Caller for HttpClient {
    fn execute_with<Op: Call>(
        &self,
        input: Op::Input,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Op::Output>, CallError>> + Send {
        Self::execute_with::<Op>(self, input, options)
    }

    fn subscribe_with<Op: Subscribe>(
        &self,
        input: Op::Input,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Op::Output>, CallError>> + Send {
        Self::subscribe_with::<Op>(self, input, options)
    }

    fn call_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<ResponseEnvelope<Value>, CallError>> + Send {
        Self::call_with(self, id, input, options)
    }

    fn stream_with(
        &self,
        id: &str,
        input: Value,
        options: CallOptions,
    ) -> impl Future<Output = Result<EnvelopeStream<Value>, CallError>> + Send {
        Self::stream_with(self, id, input, options)
    }
}
