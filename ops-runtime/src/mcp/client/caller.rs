//! The client as a caller by itself.

use super::McpClient;
use crate::run::caller::{Target, impl_caller};
use crate::run::pipeline::Invocation;
use crate::{CallError, CallOptions, Registration};

impl McpClient {
    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        let registry = match target {
            Target::Type(own) => {
                // Uses the operation's own spec, even if the client has another with that id.
                self.typed.admit(&own, || {
                    self.remote.0.expect(&own.spec.into())?;
                    Ok(Registration::new(own.spec, self.handler.clone()))
                })?;
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

impl_caller!(McpClient, McpClient::invoke, execute_elsewhere);
