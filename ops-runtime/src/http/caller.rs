//! The client as a caller on its own.

use super::HttpClient;
use crate::run::caller::{Target, impl_caller};
use crate::run::pipeline::Invocation;
use crate::{CallError, CallOptions, Handler, Registration};

impl HttpClient {
    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        if let Target::Type(own) = target {
            // Uses the operation's own spec, even if the client has another under that id.
            self.registry.admit(&own, || Ok(Registration::new(own.spec, Handler::endpoint(self.remote.clone()))))?;
        }
        Ok(match options {
            None => Invocation::plain(&self.registry),
            Some(options) => Invocation::with(&self.registry, options),
        })
    }
}

impl_caller!(HttpClient, HttpClient::invoke);
