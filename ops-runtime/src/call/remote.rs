//! Calls operations of other processes.

use std::any::Any;
use std::fmt;
use std::future::ready;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use tracing::Instrument;

use super::budget::Reader;
use super::directory::{UNTOLD, gone, not_here, not_served, of_another_kind, unserved};
use super::meter::{FORWARDED, Meter, Metered};
use super::{
    CallEvent, CallRequest, Frame, PendingRequests, RequestId, Route, Transport, TransportId, TransportInfo, Unsent,
    WINDOW_BYTES, event, trace,
};
use crate::model::clock::millis;
use crate::model::futures::BoxFuture;
use crate::model::nearest::{nearest, question};
use crate::run::attempt::refuse_key;
use crate::run::caller::{Target, impl_caller};
use crate::run::context::Extra;
use crate::run::handler::InputForm;
use crate::run::pipeline::Invocation;
use crate::run::registry::check_served;
use crate::{
    Binding, CallError, CallOptions, Context, Endpoint, ErrorCode, Handler, Identity, OperationKind, OperationSpec,
    OutputPolicy, Payload, PayloadFuture, PayloadStream, Registration, Registry, RegistryError, SpecRef, Text,
};

/// How many called operations are kept before withdrawn ones are removed.
const REMEMBERED: usize = 1_000;

/// The place where operations run, for error messages.
const ELSEWHERE: &str = "in another process";

/// Redelivery limit for requests whose worker died before starting them.
const ATTEMPTS: usize = 8;

/// A caller for the operations of other processes.
///
/// It runs calls like a registry: with the types, the envelope and the pipeline of a local call. Results are repaired
/// here. Where the call runs, access is checked and input is validated again. A clone is the same caller.
///
/// ```
/// use ops_runtime::call::{CallHandler, InProcess};
/// use ops_runtime::{Registry, operation};
///
/// /// Adds two numbers.
/// #[operation(namespace = "math", kind = query)]
/// async fn add(a: i64, b: i64) -> i64 {
///     a + b
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let registry = Registry::new();
/// registry.register(Add)?;
/// let transport = InProcess::new();
/// let worker = transport.serve(CallHandler::new(registry));
///
/// let remote = transport.remote();
/// assert_eq!(remote.execute::<Add>(AddInput { a: 40, b: 2 }).await?.data, 42);
/// assert_eq!(remote.list()[0].id, "math.add");
/// worker.stop().await;
/// # Ok(()) }
/// ```
#[derive(Clone)]
#[doc(alias = "PendingRequestMap")]
pub struct Remote {
    far: Far,
    /// The handler of bound operations, by which registries know that they belong to one caller.
    handler: Handler,
    /// The called operations: by id with the announced spec, by type with the spec of the program.
    registry: Registry,
    /// The number of operations at which withdrawn ones are removed.
    remembered: Arc<AtomicUsize>,
}

impl Remote {
    /// A caller over a transport.
    pub fn new(transport: impl Transport) -> Self {
        let far = Far { transport: Arc::new(transport), window: WINDOW_BYTES, known: Known::Given };
        let handler = Handler::endpoint(far.clone());
        Self { far, handler, registry: Registry::new(), remembered: Arc::new(AtomicUsize::new(REMEMBERED)) }
    }

    /// Sets how many bytes of unread items each subscription buffers; 8 MiB by default ([`WINDOW_BYTES`]). A worker
    /// that sends more than twice as much, or 8 MiB more with the errors and the metadata of the items, fails the
    /// subscription.
    #[must_use]
    pub fn with_window(mut self, bytes: u64) -> Self {
        self.far.window = bytes;
        self.handler = Handler::endpoint(self.far.clone());
        // With a registry of its own: that of the clones has the handler with their window.
        let policy = self.registry.policy();
        self.with_policy(policy)
    }

    /// Sets what happens to results that do not match their schema.
    #[must_use]
    pub fn with_policy(self, policy: OutputPolicy) -> Self {
        let remembered = Arc::new(AtomicUsize::new(REMEMBERED));
        Self { registry: Registry::builder().with_policy(policy).build(), remembered, ..self }
    }

    /// The served operations, in the order of their ids.
    pub fn list(&self) -> Vec<SpecRef> {
        self.far.transport.list()
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> usize {
        self.far.transport.in_flight()
    }

    /// What the transport promises.
    pub fn info(&self) -> TransportInfo {
        self.far.transport.info()
    }

    /// The operations with this caller as their handler, for `registry.register_all(..)`.
    ///
    /// # Errors
    /// None at present, since a worker may come later. All clients have the same signature.
    pub fn bind<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Result<Vec<Registration>, CallError> {
        Ok(self.registrations(specs))
    }

    fn registrations<S: Into<SpecRef>>(&self, specs: impl IntoIterator<Item = S>) -> Vec<Registration> {
        specs.into_iter().map(|spec| Registration::new(spec, self.handler.clone())).collect()
    }

    /// The transport of this caller, if it can be told from others.
    pub(super) fn transport(&self) -> Option<TransportId> {
        self.far.transport.id()
    }

    /// The transport over which a handler calls, if it belongs to a remote whose transport can be told from others.
    pub(super) fn transport_of(handler: &Handler) -> Option<TransportId> {
        let endpoint: &dyn Any = handler.erased.passes_to().unwrap_or(&*handler.erased);
        endpoint.downcast_ref::<Far>()?.transport.id()
    }

    /// The registry with an operation, as it is announced; `None` if it is not served.
    pub(super) fn registry_of(&self, id: &str) -> Option<Registry> {
        let served = self.far.transport.spec(id)?;
        self.learn(&served, Known::Announced).ok()?;
        Some(self.registry.clone())
    }

    /// Registers an operation that was called by its id, unless it is registered with the same spec.
    fn learn(&self, served: &SpecRef, from: Known) -> Result<(), RegistryError> {
        let known = match (self.registry.table().get(&served.id).map(|entry| entry.spec.clone()), served) {
            (Some(SpecRef::Static(known)), SpecRef::Static(served)) => std::ptr::eq(known, *served),
            (Some(SpecRef::Shared(known)), SpecRef::Shared(served)) => Arc::ptr_eq(&known, served),
            _ => false,
        };
        if known {
            return Ok(());
        }
        let handler = Handler::endpoint(self.far.knowing(from));
        self.registry.replace(Registration::new(served.clone(), handler))?;
        self.forget();
        Ok(())
    }

    /// Removes withdrawn operations. Otherwise, peers that come and go would fill the memory of a hub.
    fn forget(&self) {
        if self.registry.table().len() <= self.remembered.load(Ordering::Relaxed) {
            return;
        }
        let left = self.registry.retain(|spec| self.far.transport.spec(&spec.id).is_some());
        self.remembered.store(left.saturating_mul(2).max(REMEMBERED), Ordering::Relaxed);
    }

    /// Checks that an operation is served, or may be: the connection is still being made.
    fn expect(&self, id: &str) -> Result<(), CallError> {
        match (self.far.transport.route(id)?, id.split_once('.')) {
            (Route::Wait(_), Some((namespace, name))) => {
                let spec = OperationSpec::new(OperationKind::Mutation, namespace, name);
                let spec = spec.map_err(CallError::from_error)?;
                self.learn(&spec.into(), Known::Unknown).map_err(CallError::from_error)
            }
            _ => Err(not_served(id)),
        }
    }

    fn invoke(&self, options: Option<CallOptions>, target: Target<'_>) -> Result<Invocation, CallError> {
        match target {
            Target::Type(own) => {
                let spec = own.spec;
                self.registry.admit(&own, || Ok(Registration::new(spec, self.handler.clone())))?;
                if spec.binding != Binding::Local
                    && let Some(served) = self.far.transport.spec(&spec.id)
                {
                    check_served(&served, spec)?;
                }
            }
            Target::Id(id) => match self.far.transport.spec(id) {
                Some(served) => self.learn(&served, Known::Announced).map_err(CallError::from_error)?,
                // An operation that was announced before is still known; the call fails when it is sent if no peer
                // serves it any more.
                None if self.registry.table().get(id).is_none() => {
                    let identity = options.as_ref().and_then(|options| options.identity.as_ref());
                    let far = self.far.knowing(Known::Unknown);
                    self.expect(id).map_err(|error| far.explain(error, id, true, identity))?;
                }
                None => {}
            },
        }
        Ok(match options {
            None => Invocation::plain(&self.registry),
            // Access is checked where the call runs, since the caller is known there.
            Some(options) => Invocation { checked: false, ..Invocation::with(&self.registry, options) },
        })
    }
}

impl_caller!(Remote, Remote::invoke, execute_elsewhere);

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").field("transport", &self.info()).field("pending", &self.in_flight()).finish()
    }
}

/// The endpoint in the other process.
#[derive(Clone)]
struct Far {
    transport: Arc<dyn Transport>,
    /// Window of each subscription, in bytes.
    window: u64,
    /// From where the operations that are called through it are known.
    known: Known,
}

/// From where an operation is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    /// From the program: it was called by its type, or its spec was bound.
    Given,
    /// From a worker that announced it.
    Announced,
    /// It is not: only its id was given, while there was no connection.
    Unknown,
}

impl Far {
    /// The same endpoint, for operations that are known from there.
    fn knowing(&self, known: Known) -> Self {
        Self { known, ..self.clone() }
    }

    /// The name of an operation in metrics. Peers name what they announce, so all calls that are forwarded between them
    /// have one name.
    fn label<'s>(&self, spec: &'s OperationSpec, context: &Context) -> &'s Text {
        let is_received = context.extra.as_deref().is_some_and(|extra| extra.given.is_some());
        if is_received && self.known == Known::Announced { &FORWARDED } else { &spec.id }
    }

    /// Refuses to call a subscription, or to subscribe to an operation with one result, if the announced spec has its
    /// kind.
    fn check_kind(&self, id: &str, streams: bool) -> Result<(), CallError> {
        match self.transport.spec(id) {
            Some(served) if (served.kind == OperationKind::Subscription) != streams => {
                Err(of_another_kind(id, served.kind))
            }
            _ => Ok(()),
        }
    }

    /// Completes the error of a call of an operation that is not served. A known one may be served again soon. Unless a
    /// worker has announced it, the id may be wrong: the program's own calls get similar ids of served operations, which
    /// the identity, if any, may run.
    fn explain(&self, error: CallError, id: &str, is_own: bool, caller: Option<&Identity>) -> CallError {
        match error.code() {
            ErrorCode::OperationNotFound => self.explained(error, id, is_own, caller),
            _ => error,
        }
    }

    #[cold]
    fn explained(&self, error: CallError, id: &str, is_own: bool, caller: Option<&Identity>) -> CallError {
        const PROPOSED: usize = 3;
        let unserved_now = [not_served(id), not_served(UNTOLD), not_here(id)];
        // Otherwise, it is an error of the worker, such as of a call that its handler makes.
        if unserved_now.iter().all(|own| own.message() != error.message()) {
            return error;
        }
        let error = if self.known == Known::Unknown { not_served(id) } else { unserved(id) };
        if !is_own || self.known == Known::Announced {
            return error;
        }
        let served = self.transport.list();
        let allowed = served.iter().filter(|spec| caller.is_none_or(|caller| spec.access.allows(caller)));
        let mut meant = nearest(id, allowed.map(|spec| spec.id.as_ref()), PROPOSED);
        // A worker may have come meanwhile.
        meant.retain(|similar| *similar != id);
        CallError::new(ErrorCode::OperationNotFound, format!("{}{}", error.message(), question(&meant)))
            .with_details(error.details().clone())
    }

    /// Sends a request to a peer that serves it, and to another if that peer is gone before.
    async fn send<T>(
        &self,
        mut request: Box<CallRequest>,
        streams: bool,
        start: impl Fn(&PendingRequests, Box<CallRequest>) -> Result<T, Unsent>,
    ) -> Result<T, CallError> {
        let mut attempts = 0;
        loop {
            let pending = match self.transport.route(&request.operation_id)? {
                Route::To(pending) => pending,
                Route::Wait(wait) => {
                    wait.await?;
                    // The kind may be known only now.
                    self.check_kind(&request.operation_id, streams)?;
                    continue;
                }
            };
            pending.ready().await;
            match start(&pending, request) {
                Ok(started) => return Ok(started),
                Err(Unsent::Refused(error)) => return Err(error),
                Err(Unsent::Gone(Frame::Event(CallEvent::Requested(unsent)))) if attempts < ATTEMPTS => {
                    attempts += 1;
                    request = unsent;
                    // A peer that is gone is removed soon.
                    tokio::task::yield_now().await;
                }
                Err(Unsent::Gone(_)) => return Err(gone("nobody took the request")),
            }
        }
    }
}

impl Endpoint for Far {
    fn call(&self, spec: &OperationSpec, input: serde_json::Value, context: Context) -> PayloadFuture {
        self.call_payload(spec, Payload::Value(input), context)
    }

    fn input_form(&self) -> InputForm {
        InputForm::Either
    }

    fn call_payload(&self, spec: &OperationSpec, input: Payload, context: Context) -> PayloadFuture {
        // Regardless of the types of this program: the first item of a subscription is not its result.
        let allowed = self.check_kind(&spec.id, false).and_then(|()| refuse_key(spec, &context, ELSEWHERE));
        if let Err(error) = allowed {
            return Box::pin(ready(Err(error)));
        }
        let mut request = request(spec, input, &context);
        let span = trace::calling(&spec.id, &mut request);
        let (far, mut meter) = (self.clone(), Meter::start("caller", self.label(spec, &context)));
        let (id, is_own) = (spec.id.clone(), is_own(&context));
        let until = context.until();
        let call = async move {
            // The operation's own timeout counts from the first poll, which may be long after the call was made.
            request.deadline = until.start().map(event::to_epoch);
            let answer = match far.send(request, false, PendingRequests::start).await {
                Ok(pending) => pending.await,
                Err(error) => Err(error),
            };
            let Err(error) = answer else {
                meter.succeed();
                return answer;
            };
            meter.fail(error.code());
            Err(far.explain(error, &id, is_own, None))
        };
        Box::pin(call.instrument(span))
    }

    fn subscribe(
        &self,
        spec: &OperationSpec,
        input: serde_json::Value,
        context: Context,
    ) -> BoxFuture<'static, Result<PayloadStream, CallError>> {
        let kind = match spec.kind {
            OperationKind::Subscription => Ok(()),
            _ => self.check_kind(&spec.id, true),
        };
        if let Err(error) = kind.and_then(|()| refuse_key(spec, &context, ELSEWHERE)) {
            return Box::pin(ready(Err(error)));
        }
        let mut request = request(spec, Payload::Value(input), &context);
        // The operation's own timeout applies only to the first item.
        request.deadline = context.deadline.map(event::to_epoch);
        let reader = context.extension::<Reader>();
        request.window_bytes = Some(reader.map_or(self.window, |reader| reader.window.min(self.window)));
        let share = reader.map(|reader| reader.share.clone());
        let (id, is_own) = (spec.id.clone(), is_own(&context));
        let span = trace::calling(&spec.id, &mut request);
        let (far, mut meter) = (self.clone(), Meter::start("caller", self.label(spec, &context)));
        let may_change = spec.may_change();
        let open = async move {
            let open = |pending: &PendingRequests, request| {
                // Either the program's spec or the worker's may say so.
                let may_change = may_change || far.transport.spec(&id).is_some_and(|served| served.may_change());
                pending.open_for(request, share.clone(), !may_change)
            };
            let opened = far.send(request, true, open).await;
            let explain = move |error| far.explain(error, &id, is_own, None);
            match opened {
                // Over a broker, the error of an operation that is not served is an item.
                Ok(items) => Ok(Metered::new(items.map(move |item| item.map_err(&explain)), meter).boxed()),
                Err(error) => {
                    meter.fail(error.code());
                    Err(explain(error))
                }
            }
        };
        Box::pin(open.instrument(span))
    }
}

/// True if the call is made by this program itself: errors of forwarded calls name no other operations.
fn is_own(context: &Context) -> bool {
    let is_others = |extra: &Extra| extra.identity.is_some() || extra.given.is_some() || extra.parent.is_some();
    !context.extra.as_deref().is_some_and(is_others)
}

/// The request of a call, without its deadline.
fn request(spec: &OperationSpec, input: Payload, context: &Context) -> Box<CallRequest> {
    let extra = context.extra.as_deref();
    let mut request = Box::new(CallRequest::with_id(RequestId::of(context.request), spec.id.clone(), input));
    if let Some(extra) = extra {
        // A forwarded request has the received one as its parent.
        request.parent_request_id = extra.given.clone().or_else(|| extra.parent.clone());
        request.idle_timeout = extra.idle_timeout.map(millis);
        request.identity = extra.identity.as_deref().cloned();
        request.metadata = extra.metadata.clone();
    }
    request
}

#[cfg(test)]
mod tests;
