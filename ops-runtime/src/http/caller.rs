//! The client as a caller by itself.

use super::HttpClient;
use crate::run::caller::{Target, impl_caller};
use crate::run::pipeline::{self, Invocation};
use crate::{CallError, CallOptions, Registration};

impl HttpClient {
    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        match target {
            // Uses the operation's own spec, even if the client has another with that id.
            Target::Type(own) => {
                self.registry.admit(&own, || Ok(Registration::new(own.spec, self.handler.clone())))?;
            }
            Target::Id(id) => self.knows_namespace(id)?,
        }
        Ok(match options {
            None => Invocation::plain(&self.registry),
            Some(options) => Invocation::with(&self.registry, options.noting_deadline()),
        })
    }

    /// Checks that the client was given operations of the id's namespace, so that another id of it is probably misspelt.
    fn knows_namespace(&self, id: &str) -> Result<(), CallError> {
        let namespace = id.split_once('.').map_or(id, |(namespace, _)| namespace);
        let table = self.registry.table();
        if table.get(id).is_some() || table.iter().any(|entry| entry.spec.namespace() == namespace) {
            return Ok(());
        }
        let message = format!(
            "operation not found: `{id}`: for calls by id, give the client its operations first, those of a generated module \
             by `client.add({namespace}::operations())`"
        );
        Err(pipeline::refused(id, message))
    }
}

impl_caller!(HttpClient, HttpClient::invoke, execute_elsewhere);
