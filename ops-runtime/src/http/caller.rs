//! The client as a caller on its own.

use super::HttpClient;
use crate::caller::{Target, impl_caller};
use crate::pipeline::Invocation;
use crate::{CallError, CallOptions, OperationSpec, RegistryError};

impl HttpClient {
    /// Adds an operation that is called by its type, unless the client has it already.
    fn admit(&self, spec: &'static OperationSpec) -> Result<(), CallError> {
        if self.registry.table().get(&spec.id).is_some() {
            return Ok(());
        }
        match self.registry.register_all(self.bind([spec])) {
            // Another call of the same operation was faster.
            Ok(()) | Err(RegistryError::Duplicate { .. }) => Ok(()),
            Err(error) => Err(CallError::from_error(&error)),
        }
    }

    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        if let Target::Type(spec) = target {
            self.admit(spec)?;
        }
        Ok(match options {
            None => Invocation::plain(&self.registry),
            Some(options) => Invocation::with(&self.registry, options),
        })
    }
}

impl_caller!(HttpClient, HttpClient::invoke);
