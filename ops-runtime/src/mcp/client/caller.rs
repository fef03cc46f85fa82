//! The client as a caller on its own.

use super::McpClient;
use crate::caller::{Target, impl_caller};
use crate::pipeline::Invocation;
use crate::{CallError, CallOptions, OperationSpec, RegistryError};

impl McpClient {
    /// Adds an operation that is called by its type, unless the client has it already.
    fn admit(&self, spec: &'static OperationSpec) -> Result<(), CallError> {
        if self.typed.table().get(&spec.id).is_some() {
            return Ok(());
        }
        match self.typed.register_all(self.bind([spec])?) {
            // Another call of the same operation was faster.
            Ok(()) | Err(RegistryError::Duplicate { .. }) => Ok(()),
            Err(error) => Err(CallError::from_error(&error)),
        }
    }

    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        let registry = match target {
            Target::Type(spec) => {
                self.admit(spec)?;
                &self.typed
            }
            Target::Id(_) => &self.dynamic,
        };
        Ok(match options {
            None => Invocation::plain(registry),
            Some(options) => Invocation::with(registry, options),
        })
    }
}

impl_caller!(McpClient, McpClient::invoke);
