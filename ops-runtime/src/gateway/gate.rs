//! The gate: the registry as callers of a gateway see it, in which every call is checked against the gateway's rules.
//!
//! Each operation of the registry behind it has the same spec here, and a handler that checks the rules before it
//! forwards the call. So a rule holds whichever way a call arrives: by a tool of its own, by `call`, by a program, over
//! HTTP.

use std::any::Any;
use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use serde_json::Value;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::approval::Approved;
use super::rules::Rules;
use crate::adapter::Bodies;
use crate::mcp::McpClients;
use crate::model::lock::lock;
use crate::run::ending::Ending;
use crate::run::filter::Filters;
use crate::run::handler::{Erased, InputForm};
use crate::run::pipeline::{Guard, Limits, StreamGuard};
use crate::run::registry::Entry;
use crate::{
    BoxFuture, CallError, Context, Endpoint, Handler, OperationSpec, Payload, PayloadStream, Registry, ResponseEnvelope,
};

/// The operations of a registry that pass a filter, under rules.
///
/// Servers own only the gate's registry. It owns everything that its calls need, so calls work after the gateway is dropped.
pub(super) struct Gate {
    registry: Registry,
    source: Arc<Source>,
    is_following: AtomicBool,
    /// Cancelled when the last clone of the gate's registry is dropped.
    ended: CancellationToken,
}

/// The source of the gate's registry.
struct Source {
    behind: Registry,
    /// Kept to keep their connections open.
    _servers: Option<McpClients>,
    filters: Filters,
    rules: Arc<Rules>,
    made: Mutex<Made>,
}

/// The entries of the gate, each with the original entry.
#[derive(Default)]
struct Made {
    version: Option<u64>,
    entries: HashMap<String, (Arc<Entry>, Arc<Entry>)>,
}

impl Gate {
    /// The gate of a registry, in which the tools of these servers are registered.
    pub(super) fn new(behind: Registry, servers: Option<McpClients>, filters: Filters, rules: Arc<Rules>) -> Arc<Self> {
        let ended = CancellationToken::new();
        // The guard cancels `ended` when the registry is dropped. Handlers get the state of the registry behind, not this one.
        let registry = Registry::builder().with_policy(behind.policy()).with_state(ended.clone().drop_guard()).build();
        let source = Arc::new(Source { behind, _servers: servers, filters, rules, made: Mutex::default() });
        source.follow(&registry);
        Arc::new(Self { registry, source, is_following: AtomicBool::new(false), ended })
    }

    /// The present operations as callers see them.
    pub(super) fn registry(&self) -> &Registry {
        self.source.follow(&self.registry);
        &self.registry
    }

    /// The rules for calls.
    pub(super) fn rules(&self) -> &Rules {
        &self.source.rules
    }

    /// Keeps the gate's registry up to date with the registry behind it until the gate's registry is dropped. Servers need
    /// this, because they use only the gate's registry. Does nothing outside of a runtime.
    pub(super) fn keep_following(&self) {
        let Ok(runtime) = Handle::try_current() else { return };
        if self.is_following.swap(true, Ordering::Relaxed) {
            return;
        }
        let (source, registry, ended) = (self.source.clone(), self.registry.downgrade(), self.ended.clone());
        runtime.spawn(async move {
            loop {
                let version = source.behind.version();
                let Some(registry) = registry.upgrade() else { return };
                source.follow(&registry);
                drop(registry);
                let (ended, changed) = (pin!(ended.cancelled()), pin!(source.behind.changed(version)));
                if let Either::Left(_) = select(ended, changed).await {
                    return;
                }
            }
        });
    }
}

impl Source {
    /// Updates the gate's registry if the registry behind it has changed.
    fn follow(&self, registry: &Registry) {
        let mut made = lock(&self.made);
        let table = self.behind.table();
        if made.version == Some(table.version) {
            return;
        }
        let seen = table.iter().filter(|entry| self.filters.accept(&entry.spec));
        let entries: HashMap<String, (Arc<Entry>, Arc<Entry>)> = seen
            .filter_map(|behind| {
                let id = behind.spec.id.clone().into_owned();
                let kept = made.entries.get(&id).filter(|(of, _)| Arc::ptr_eq(of, behind));
                let gated = match kept {
                    Some((_, gated)) => gated.clone(),
                    None => self.gated(behind, registry)?,
                };
                Some((id, (behind.clone(), gated)))
            })
            .collect();
        registry.replace_all(entries.values().map(|(_, gated)| gated.clone()));
        *made = Made { version: Some(table.version), entries };
    }

    fn gated(&self, operation: &Arc<Entry>, registry: &Registry) -> Option<Arc<Entry>> {
        let handler = operation.handler.as_ref().map(|handler| {
            let (operation, behind, rules) = (operation.clone(), self.behind.clone(), self.rules.clone());
            let inner = handler.erased.clone();
            let gated = Handler::endpoint(Gated { operation, behind, rules, inner }).keeping_time(handler.is_foreign);
            // Only the audit log asks how a call has ended.
            if self.rules.has_audit() { gated.noting_end() } else { gated }
        });
        // The registry behind has the same spec, so it can be registered.
        registry.make_entry(operation.spec.clone(), handler).ok()
    }
}

/// An operation behind the gate.
struct Gated {
    operation: Arc<Entry>,
    behind: Registry,
    rules: Arc<Rules>,
    inner: Arc<dyn Erased>,
}

/// How the operation behind the gate is run.
type Run = fn(
    &dyn Erased,
    &OperationSpec,
    Payload,
    Context,
) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>>;

impl Gated {
    /// The context for the handler behind the gate: it makes further calls in its own name, and not the caller's.
    fn context(&self, mut context: Context) -> Context {
        context.registry = self.behind.clone();
        // The user has agreed to what this gate asks about. Another gate behind it asks for itself.
        context.remove::<Approved>();
        // Time before the operation begins, such as for the user's answer, counts only for the caller's deadline.
        context.timeout = self.operation.timeout;
        context
    }

    fn run(
        &self,
        input: Payload,
        context: Context,
        run: Run,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        let (operation, rules, inner) = (self.operation.clone(), self.rules.clone(), self.inner.clone());
        let inside = self.context(context.clone());
        Box::pin(async move {
            if let Payload::Value(input) = &input {
                rules.check_members(&operation, input, &context)?;
            }
            let spec = &*operation.spec;
            let check = |input: &Value| operation.check_by_handler(input, &inside);
            let passed = rules.admit(&operation, &input, &context, check).await?;
            let answer = match Guard::start(Limits::of(&inside), &operation.spec, || run(&*inner, spec, input, inside))
            {
                Ok(running) => running.await,
                Err(error) => Err(error),
            };
            // With the code that the caller gets.
            let answer = answer.map_err(|error| error.with_declared_code(&spec.errors));
            passed.end(answer, context.extension::<Ending>())
        })
    }
}

impl Endpoint for Gated {
    fn call(
        &self,
        _: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        self.run(Payload::Value(input), context, |inner, spec, input, context| inner.call_payload(spec, input, context))
    }

    fn subscribe(
        &self,
        _: &OperationSpec,
        input: Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let (operation, rules, inner) = (self.operation.clone(), self.rules.clone(), self.inner.clone());
        let mut inside = self.context(context.clone());
        Box::pin(async move {
            rules.check_members(&operation, &input, &context)?;
            let input = Payload::Value(input);
            let spec = &*operation.spec;
            let check = |input: &Value| operation.check_by_handler(input, &inside);
            let passed = rules.admit(&operation, &input, &context, check).await?;
            let Payload::Value(input) = input else { return Err(CallError::execution("the input is no JSON value")) };
            let (first, rest) = Limits::of_subscription(&mut inside);
            let stream = match Guard::start(first, &operation.spec, || inner.subscribe(spec, input, inside)) {
                Ok(opening) => opening.await,
                Err(error) => Err(error),
            };
            let stream = stream.map_err(|error| error.with_declared_code(&spec.errors));
            let stream = stream.map(|stream| StreamGuard::new(stream, rest, operation.spec.clone()).boxed());
            passed.follow(stream, &context)
        })
    }

    fn check(&self, _: &OperationSpec, input: &Value, context: &Context) -> Result<(), CallError> {
        self.operation.check_by_handler(input, &self.context(context.clone()))
    }

    fn refused(&self, _: &OperationSpec, input: &Value, context: &Context, error: &CallError) {
        self.rules.refused(&self.operation, input, context, error);
    }

    fn passes_to(&self) -> Option<&dyn Any> {
        // The registry behind may be the gate of another gateway.
        Some(self.inner.passes_to().unwrap_or(&*self.inner))
    }

    fn input_form(&self) -> InputForm {
        self.inner.input_form()
    }

    fn call_payload(
        &self,
        _: &OperationSpec,
        input: Payload,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        self.run(input, context, |inner, spec, input, context| inner.call_payload(spec, input, context))
    }

    fn call_text(
        &self,
        _: &OperationSpec,
        input: Payload,
        context: Context,
    ) -> BoxFuture<'static, Result<ResponseEnvelope<Payload>, CallError>> {
        self.run(input, context, |inner, spec, input, context| inner.call_text(spec, input, context))
    }

    fn takes_bodies(&self, input: &Value, bodies: &Bodies) -> bool {
        self.inner.takes_bodies(input, bodies)
    }

    fn streams_bodies(&self) -> bool {
        self.inner.streams_bodies()
    }
}
