//! The context of a call: its caller, deadline, parent and metadata, and how its handler makes further calls.
//!
//! ```
//! use ops_runtime::{CallError, Context};
//!
//! async fn greet(context: &Context) -> Result<String, CallError> {
//!     let greeting = context.state::<String>()?;
//!     Ok(format!("{greeting}, {}", context.identity().map_or("stranger", |i| &i.id)))
//! }
//! ```

use std::any::type_name;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};

use crate::model::body::handover::Bodies;
use crate::model::request_id::{Number, RequestId};
use crate::model::trace_parent::{TRACEPARENT, TRACESTATE, TraceParent};
use crate::run::extensions::Extensions;
use crate::run::response::ResponseParts;
use crate::{CallError, CancelToken, Identity, OutputPolicy, Progress, ProgressSink, Registry};

/// The options of a call.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// The identity of the caller. If set, the operation's access rules are checked. A scoped registry keeps its own
    /// identity.
    pub identity: Option<Identity>,
    /// The deadline of the call.
    pub deadline: Option<Instant>,
    /// A token that cancels the call.
    pub cancel: Option<CancelToken>,
    /// What happens to a result that does not match its schema; `None` for the registry's policy.
    pub policy: Option<OutputPolicy>,
    /// For a subscription: how long a reader may wait for the next item.
    pub idle_timeout: Option<Duration>,
    /// Metadata for the handler.
    pub metadata: Map<String, Value>,
    /// The receiver of the handler's progress reports.
    pub progress: Option<ProgressSink>,
    /// Values of adapters, for the handler and the calls that it makes.
    pub extensions: Extensions,
}

impl CallOptions {
    /// The default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the identity of the caller, against which the operation's access rules are checked.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Sets the deadline.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Sets the timeout, from now. One that is longer than a hundred years is that long: it is the call's own all the same, and
    /// takes the place of a client's.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        let deadline = deadline_after(timeout.min(LONGEST));
        Self { deadline, ..self }
    }

    /// Sets a token that cancels the call. A call that a handler makes also ends when its own call is cancelled.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Sets how long a reader of a subscription may wait for the next item. After that, the subscription ends with a `TIMEOUT`.
    /// A message that only keeps the connection alive is no item.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Sets what happens to a result that does not match its schema.
    #[must_use]
    pub fn with_policy(mut self, policy: OutputPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Adds metadata for the handler under a key. A call that a handler makes inherits the rest.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Sets the receiver of progress reports: see [`Progress::channel`](crate::Progress::channel). Operations of other
    /// processes report none.
    #[must_use]
    pub fn with_progress(mut self, progress: ProgressSink) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Adds a value of an adapter, for the handler and the calls that it makes: see
    /// [`Context::extension`](Context::extension). There is at most one value of each type.
    ///
    /// ```
    /// use std::net::IpAddr;
    /// use ops_runtime::{CallOptions, Context, Registry};
    /// use ops_runtime::adapter::{Handler, Registration};
    /// use ops_runtime::spec::OperationSpec;
    /// use serde_json::{Value, json};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let registry = Registry::new();
    /// let from = |_: Value, context: Context| async move { Ok(json!(context.extension::<IpAddr>().map(|ip| ip.to_string()))) };
    /// registry.register(Registration::new(OperationSpec::query("caller.address"), Handler::dynamic(from)))?;
    /// let options = CallOptions::new().with_extension(IpAddr::from([127, 0, 0, 1]));
    /// assert_eq!(registry.call_with("caller.address", Value::Null, options).await?.data, "127.0.0.1");
    /// # Ok(()) }
    /// ```
    #[must_use]
    pub fn with_extension<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.extensions.insert(value);
        self
    }
}

/// The call on whose behalf another is made, by a caller that is not in its registry.
#[derive(Clone)]
struct Parent(Context);

impl CallOptions {
    /// Makes the call inherit what a nested one does.
    pub(crate) fn on_behalf_of(mut self, context: Context) -> Self {
        self.extensions.insert_own(Parent(context));
        self
    }
}

/// The longest timeout of a call, a hundred years: an instant after it can be represented everywhere.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The instant from which timeouts count, and with which deadlines are compared.
///
/// It is by tokio's clock, as the timers are: a test may have paused that, and it is then ahead of the system's.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The instant after that time; `None` if it is too far away to be represented.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    now().checked_add(timeout)
}

/// The earlier of two optional deadlines.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The output of a future. `None` if the deadline passes before.
#[cfg(feature = "program")]
pub(crate) async fn until<T>(deadline: Option<Instant>, future: impl Future<Output = T>) -> Option<T> {
    match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline.into(), future).await.ok(),
        None => Some(future.await),
    }
}

/// When a call ends, before its operation's own timeout has begun to count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    deadline: Option<Instant>,
    timeout: Option<Duration>,
}

impl Until {
    /// The deadline, if the operation's own timeout counts from now.
    pub(crate) fn start(self) -> Option<Instant> {
        earlier(self.deadline, self.timeout.and_then(deadline_after))
    }
}

/// Until when a subscription has to be open, by its operation's own timeout, which the first item shares.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpeningUntil(
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only an HTTP client asks for it"))] pub(crate) Instant,
);

/// The mark of a call with an identity that a handler has chosen, and of the calls that it leads to. It is not the
/// identity of the handler's own caller.
pub(crate) struct Chosen;

/// The context of a call, for its handler.
///
/// Cheap to make and to clone: a plain call allocates nothing for it.
#[derive(Clone)]
pub struct Context {
    pub(crate) registry: Registry,
    pub(crate) request: Number,
    pub(crate) deadline: Option<Instant>,
    // The operation's own timeout, which becomes a deadline when it is asked for: reading the clock costs every call.
    pub(crate) timeout: Option<Duration>,
    // The rest is absent in plain calls, and shared by nested ones.
    pub(crate) extra: Option<Arc<Extra>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    pub(crate) identity: Option<Arc<Identity>>,
    /// The request id that a remote caller has set.
    pub(crate) given: Option<RequestId>,
    pub(crate) parent: Option<RequestId>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) metadata: Map<String, Value>,
    /// The receiver of progress reports of the call itself, not of calls that its handler makes.
    pub(crate) progress: Option<ProgressSink>,
    /// Of the call that an HTTP server makes, and none of those that its handler makes.
    pub(crate) response: Option<ResponseParts>,
    pub(crate) trusted: bool,
    pub(crate) extensions: Extensions,
}

impl Context {
    /// The context of a call with default options.
    #[inline]
    pub(crate) fn plain(registry: Registry) -> Self {
        Self { registry, request: Number::next(), deadline: None, timeout: None, extra: None }
    }

    /// The same call with its bodies, for an endpoint that streams them; they replace earlier ones.
    pub(crate) fn with_bodies(mut self, bodies: Bodies) -> Self {
        if bodies.wants_output() || !bodies.is_empty() {
            self.put_own(bodies);
        } else {
            self.remove::<Bodies>();
        }
        self
    }

    /// The same call, whose handler may say something of its HTTP response.
    #[cfg(feature = "http-server")]
    pub(crate) fn with_response(mut self, response: ResponseParts) -> Self {
        Arc::make_mut(self.extra.get_or_insert_default()).response = Some(response);
        self
    }

    /// The same call with a value for its handler alone.
    pub(crate) fn with_own<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.put_own(value);
        self
    }

    /// Adds a value for the call's handler alone.
    pub(crate) fn put_own<T: Send + Sync + 'static>(&mut self, value: T) {
        Arc::make_mut(self.extra.get_or_insert_default()).extensions.insert_own(value);
    }

    /// Removes the value of that type.
    pub(crate) fn remove<T: Send + Sync + 'static>(&mut self) {
        if let Some(extra) = self.extra.as_mut().filter(|extra| extra.extensions.get::<T>().is_some()) {
            Arc::make_mut(extra).extensions.remove::<T>();
        }
    }

    /// The context of a call that comes from outside any handler.
    pub(crate) fn new(registry: Registry, mut options: CallOptions, identity: Option<Arc<Identity>>) -> Self {
        if let Some(Parent(parent)) = options.extensions.get::<Parent>().cloned() {
            return parent.nested_in(registry, options, identity);
        }
        let identity = identity.or_else(|| options.identity.take().map(Arc::new));
        let CallOptions { cancel, idle_timeout, metadata, progress, extensions, .. } = options;
        let plain = identity.is_none()
            && cancel.is_none()
            && idle_timeout.is_none()
            && metadata.is_empty()
            && progress.is_none()
            && extensions.is_empty();
        let extra = (!plain).then(|| {
            Arc::new(Extra { identity, cancel, idle_timeout, metadata, progress, extensions, ..Extra::default() })
        });
        Self { registry, request: Number::next(), deadline: options.deadline, timeout: None, extra }
    }

    /// The context of a call that a handler makes: trusted, with this request as its parent.
    pub(crate) fn nested(&self, options: CallOptions) -> Self {
        self.nested_in(self.registry.clone(), options, None)
    }

    /// Like [`nested`](Self::nested), in another registry. An identity has the call checked there.
    fn nested_in(&self, registry: Registry, mut options: CallOptions, identity: Option<Arc<Identity>>) -> Self {
        options.extensions.remove::<Parent>();
        let identity = identity.or_else(|| options.identity.take().map(Arc::new));
        let named = identity.is_some();
        let inherited = self.extra.as_deref().cloned().unwrap_or_default();
        if named && identity != inherited.identity {
            options.extensions.insert(Chosen);
        }
        let mut metadata = inherited.metadata;
        // What a tracing system has added belongs to the trace, and goes with it.
        let traces = TraceParent::of(&metadata).zip(TraceParent::of(&options.metadata));
        let goes_on = traces.is_some_and(|(inherited, own)| inherited.trace == own.trace);
        if options.metadata.contains_key(TRACEPARENT) && !goes_on {
            metadata.remove(TRACESTATE);
        }
        metadata.extend(options.metadata);
        let deadline = earlier(self.deadline(), options.deadline);
        let extra = Extra {
            identity: identity.or(inherited.identity),
            given: None,
            parent: Some(self.id()),
            idle_timeout: options.idle_timeout,
            cancel: match options.cancel {
                Some(own) => Some(own.within(inherited.cancel)),
                None => inherited.cancel,
            },
            metadata,
            progress: options.progress,
            response: None,
            trusted: !named,
            // Not the bodies, since they belong to this call's own input.
            extensions: inherited.extensions.nested(options.extensions),
        };
        Self { registry, request: Number::next(), deadline, timeout: None, extra: Some(Arc::new(extra)) }
    }

    /// The application state of that type.
    ///
    /// # Errors
    /// If the registry was built without it; an operation that declares it cannot be registered then.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, CallError> {
        self.registry.state::<T>().ok_or_else(|| {
            let state = type_name::<T>();
            let how = "build it with `.with_state(..)`, and declare the state to have it checked when the operation is \
                           registered: `state(..)` in `#[operation]`";
            CallError::execution(format!("the registry has no state of type `{state}`: {how}"))
        })
    }

    /// The identity of the caller. `None` if unknown.
    pub fn identity(&self) -> Option<&Identity> {
        self.extra.as_ref()?.identity.as_deref()
    }

    /// The id of this request. If the caller is remote, it is the caller's id.
    pub fn request_id(&self) -> String {
        self.id().to_string()
    }

    pub(crate) fn id(&self) -> RequestId {
        let given = self.extra.as_ref().and_then(|extra| extra.given.clone());
        given.unwrap_or_else(|| RequestId::of(self.request))
    }

    /// The id of the request whose handler made this call. `None` if no handler did.
    pub fn parent_request_id(&self) -> Option<String> {
        Some(self.extra.as_ref()?.parent.as_ref()?.to_string())
    }

    /// The deadline of the call.
    ///
    /// The operation's own timeout is counted from now, each time that this is called; the handler itself is stopped
    /// that long after it first waits. A subscription's own timeout is not included: it applies only to the first item.
    pub fn deadline(&self) -> Option<Instant> {
        self.until().start()
    }

    /// When the call ends, for an endpoint whose work begins later.
    pub(crate) fn until(&self) -> Until {
        Until { deadline: self.deadline, timeout: self.timeout }
    }

    /// The token that cancels the call. `None` if it was not given one.
    #[inline]
    pub fn cancel_token(&self) -> Option<&CancelToken> {
        self.extra.as_ref()?.cancel.as_ref()
    }

    /// The metadata that the caller has set.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        Some(&self.extra.as_ref()?.metadata).filter(|m| !m.is_empty())
    }

    /// The receiver of progress reports. `None` if the caller has set none.
    pub fn progress(&self) -> Option<&ProgressSink> {
        self.extra.as_ref()?.progress.as_ref()
    }

    /// Reports the progress of the call, if its caller has set a receiver.
    pub fn report(&self, progress: Progress) {
        if let Some(sink) = self.progress() {
            sink.report(progress);
        }
    }

    /// The value of that type that an adapter or a caller has added to this call or to one that it is part of.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extra.as_ref()?.extensions.get()
    }

    /// True if the call was made by another handler of the same registry, so that access rules were not checked.
    pub fn is_trusted(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.trusted)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("request", &self.request_id())
            .field("deadline", &self.deadline())
            .field("extra", &self.extra)
            .finish_non_exhaustive()
    }
}
