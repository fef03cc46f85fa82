//! What a handler knows about its call: who calls, until when, on whose behalf, and how to call on.
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
use tokio_util::sync::CancellationToken;

use crate::model::body::handover::Bodies;
use crate::model::request_id::{Number, RequestId};
use crate::run::extensions::Extensions;
use crate::run::response::ResponseParts;
use crate::{CallError, Identity, OutputPolicy, Progress, ProgressSink, Registry};

/// What a caller may say about a call beside its input.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct CallOptions {
    /// Who calls; if set, the operation's access rules are checked. A scoped registry keeps its own identity.
    pub identity: Option<Identity>,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// A handle to give up earlier.
    pub cancel: Option<CancelToken>,
    /// What to do with a result that does not match its schema; the registry's policy if not set.
    pub policy: Option<OutputPolicy>,
    /// Of a subscription, how long it may stay silent while an item is waited for.
    pub idle_timeout: Option<Duration>,
    /// Anything that the handler should know.
    pub metadata: Map<String, Value>,
    /// Where the handler reports how far it is.
    pub progress: Option<ProgressSink>,
    /// Values of adapters' own, for the handler and those that it calls.
    pub extensions: Extensions,
}

impl CallOptions {
    /// Options that say nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says who calls, and has the operation's access rules checked.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Says when to give up.
    #[must_use]
    pub fn with_deadline(mut self, deadline: Instant) -> Self {
        self.deadline = Some(deadline);
        self
    }

    /// Says for how long to try, from now.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        let deadline = deadline_after(timeout);
        Self { deadline, ..self }
    }

    /// Gives a handle to give up earlier.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = Some(cancel);
        self
    }

    /// Says how long a subscription may stay silent while an item is waited for; then it ends with a `TIMEOUT`.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(timeout);
        self
    }

    /// Says what to do with a result that does not match its schema.
    #[must_use]
    pub fn with_policy(mut self, policy: OutputPolicy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Tells the handler something under a key.
    #[must_use]
    pub fn with_metadata(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        self.metadata.insert(key.into(), value.into());
        self
    }

    /// Says where to report how far the call is: see [`Progress::channel`](crate::Progress::channel).
    #[must_use]
    pub fn with_progress(mut self, progress: ProgressSink) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Gives the handler, and those that it calls, a value of an adapter's own: see
    /// [`Context::extension`](Context::extension). There is one of a type.
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

/// The call on whose behalf another is made, through a caller that is not in its registry.
#[derive(Clone)]
struct Parent(Context);

impl CallOptions {
    /// Has the call inherit what a nested one does.
    pub(crate) fn on_behalf_of(mut self, context: Context) -> Self {
        self.extensions.insert_own(Parent(context));
        self
    }
}

/// The instant after that time; none if it is too far away to be told.
pub(crate) fn deadline_after(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

/// The earlier of two deadlines that may not be there.
pub(crate) fn earlier(a: Option<Instant>, b: Option<Instant>) -> Option<Instant> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// A handle that cancels the calls it was given to.
#[derive(Debug, Clone, Default)]
pub struct CancelToken(pub(crate) CancellationToken);

impl CancelToken {
    /// A handle that is not cancelled yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels the calls: their handlers are dropped where they stand.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until it is cancelled.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }

    /// Cancels when the future ends, such as a signal to the process or another library's token.
    ///
    /// The future runs in a task, which ends with it or when the handle is cancelled. If it may outlive many calls, make one
    /// handle, and give each call a clone: a handle for each call would leave a task behind for each.
    ///
    /// ```
    /// use ops_runtime::registry::CancelToken;
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let other = tokio_util::sync::CancellationToken::new();
    /// let cancel = CancelToken::new();
    /// cancel.cancel_when(other.clone().cancelled_owned());
    /// other.cancel();
    /// cancel.cancelled().await;
    /// # }
    /// ```
    ///
    /// # Panics
    /// Outside of a tokio runtime.
    pub fn cancel_when(&self, end: impl Future<Output = ()> + Send + 'static) {
        let token = self.0.clone();
        tokio::spawn(async move {
            if token.run_until_cancelled(end).await.is_some() {
                token.cancel();
            }
        });
    }
}

/// What a handler knows about its call.
///
/// Cheap to make and to clone: a plain call allocates nothing for it.
#[derive(Clone)]
pub struct Context {
    pub(crate) registry: Registry,
    pub(crate) request: Number,
    pub(crate) deadline: Option<Instant>,
    // The operation's own timeout, which becomes a deadline when somebody asks: reading the clock costs every call.
    pub(crate) timeout: Option<Duration>,
    // The rest is absent in plain calls, and shared by nested ones.
    pub(crate) extra: Option<Arc<Extra>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Extra {
    pub(crate) identity: Option<Arc<Identity>>,
    /// The id that a caller elsewhere gave this request.
    pub(crate) given: Option<RequestId>,
    pub(crate) parent: Option<RequestId>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) cancel: Option<CancelToken>,
    pub(crate) metadata: Map<String, Value>,
    /// Where the call, and none of those that its handler makes, reports how far it is.
    pub(crate) progress: Option<ProgressSink>,
    /// Of the call that an HTTP server makes, and none of those that its handler makes.
    pub(crate) response: Option<ResponseParts>,
    pub(crate) trusted: bool,
    pub(crate) extensions: Extensions,
}

impl Context {
    /// The context of a call that says nothing beside its input.
    #[inline]
    pub(crate) fn plain(registry: Registry) -> Self {
        Self { registry, request: Number::next(), deadline: None, timeout: None, extra: None }
    }

    /// The same call with its bodies, to an endpoint that streams them, in the place of those that it was given.
    pub(crate) fn with_bodies(mut self, bodies: Bodies) -> Self {
        if bodies.wants_output() || !bodies.is_empty() {
            Arc::make_mut(self.extra.get_or_insert_default()).extensions.insert_own(bodies);
        } else if let Some(extra) = self.extra.as_mut().filter(|extra| extra.extensions.get::<Bodies>().is_some()) {
            Arc::make_mut(extra).extensions.remove::<Bodies>();
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
        Arc::make_mut(self.extra.get_or_insert_default()).extensions.insert_own(value);
        self
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

    /// As [`nested`](Self::nested), in another registry, where an identity of its own has the call checked.
    fn nested_in(&self, registry: Registry, mut options: CallOptions, identity: Option<Arc<Identity>>) -> Self {
        options.extensions.remove::<Parent>();
        let identity = identity.or_else(|| options.identity.take().map(Arc::new));
        let named = identity.is_some();
        let inherited = self.extra.as_deref().cloned().unwrap_or_default();
        let deadline = earlier(self.deadline(), options.deadline);
        let extra = Extra {
            identity: identity.or(inherited.identity),
            given: None,
            parent: Some(self.id()),
            idle_timeout: options.idle_timeout,
            // A nested call that its parent awaits is dropped with it, so a token of its own replaces the parent's.
            cancel: options.cancel.or(inherited.cancel),
            metadata: if options.metadata.is_empty() { inherited.metadata } else { options.metadata },
            progress: options.progress,
            response: None,
            trusted: !named,
            // Not the bodies, which are those of this call's own input.
            extensions: inherited.extensions.nested(options.extensions),
        };
        Self { registry, request: Number::next(), deadline, timeout: None, extra: Some(Arc::new(extra)) }
    }

    /// The application state of that type.
    ///
    /// # Errors
    /// If the registry was built without it; an operation that declares it can't be registered then.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, CallError> {
        self.registry.state::<T>().ok_or_else(|| {
            let state = type_name::<T>();
            let how = "build it with `.with_state(..)`, and declare the state to have it checked when the operation is \
                           registered: `state(..)` in `#[operation]`";
            CallError::execution(format!("the registry has no state of type `{state}`: {how}"))
        })
    }

    /// Who calls, if somebody said so.
    pub fn identity(&self) -> Option<&Identity> {
        self.extra.as_ref()?.identity.as_deref()
    }

    /// The id of this request: the one that its caller gave it, if that is elsewhere.
    pub fn request_id(&self) -> String {
        self.id().to_string()
    }

    pub(crate) fn id(&self) -> RequestId {
        let given = self.extra.as_ref().and_then(|extra| extra.given.clone());
        given.unwrap_or_else(|| RequestId::of(self.request))
    }

    /// The id of the request whose handler made this call, if one did.
    pub fn parent_request_id(&self) -> Option<String> {
        Some(self.extra.as_ref()?.parent.as_ref()?.to_string())
    }

    /// When the call is given up.
    ///
    /// The operation's own timeout is none that others know: it counts from now, each time that this is asked, while the
    /// handler itself is stopped that long after it first waits. A subscription's own timeout is not in it: it ends with the
    /// first item.
    pub fn deadline(&self) -> Option<Instant> {
        earlier(self.deadline, self.timeout.and_then(deadline_after))
    }

    /// The handle that cancels the call, if it was given one.
    #[inline]
    pub fn cancel_token(&self) -> Option<&CancelToken> {
        self.extra.as_ref()?.cancel.as_ref()
    }

    /// What the caller wants the handler to know.
    pub fn metadata(&self) -> Option<&Map<String, Value>> {
        Some(&self.extra.as_ref()?.metadata).filter(|m| !m.is_empty())
    }

    /// Where the caller wants to know how far the call is, if it does.
    pub fn progress(&self) -> Option<&ProgressSink> {
        self.extra.as_ref()?.progress.as_ref()
    }

    /// Says how far the call is, if its caller wants to know.
    pub fn report(&self, progress: Progress) {
        if let Some(sink) = self.progress() {
            sink.report(progress);
        }
    }

    /// The value of that type that an adapter, or a caller, gave this call or one that it is part of.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<&T> {
        self.extra.as_ref()?.extensions.get()
    }

    /// Whether the call was made by another handler of the same registry, so that access rules were not checked.
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
