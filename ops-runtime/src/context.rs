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
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use crate::body::handover::Parcels;
use crate::call::{CallRequest, RequestId};
use crate::{CallError, Env, Identity, Progress, ProgressSink, Registry};

/// What a caller may say about a call beside its input.
#[derive(Debug, Clone, Default)]
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

    /// Says where to report how far the call is: see [`Progress::channel`](crate::Progress::channel).
    #[must_use]
    pub fn with_progress(mut self, progress: ProgressSink) -> Self {
        self.progress = Some(progress);
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

/// What to do with a result that does not match its schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum OutputPolicy {
    /// Repair it, and say so in the envelope's warnings.
    #[default]
    Repair,
    /// Fail the call with a `VALIDATION_ERROR` that keeps the value.
    Strict,
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
    pub(crate) trusted: bool,
    /// The bodies of the input, for an endpoint that sends them as they are.
    pub(crate) bodies: Parcels,
    /// Whether the caller takes a body as it comes.
    pub(crate) streams_output: bool,
    /// The MCP client whose call this is part of.
    #[cfg(feature = "mcp-server")]
    pub(crate) mcp: Option<crate::mcp::McpPeer>,
}

/// The id of a request as a number of this process, turned into text only when somebody asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Number(pub(crate) u64);

impl Number {
    #[inline]
    pub(crate) fn next() -> Self {
        // Each thread takes a block of numbers at a time, so that calls do not wait for each other's counting.
        static NEXT: AtomicU64 = AtomicU64::new(1);
        const BLOCK: u64 = 1 << 16;
        thread_local!(static OWN: Cell<u64> = const { Cell::new(0) });
        let number = match OWN.get() {
            own if own % BLOCK != 0 => own,
            _ => NEXT.fetch_add(1, Ordering::Relaxed).wrapping_mul(BLOCK) + 1,
        };
        OWN.set(number + 1);
        Self(number)
    }

    /// The bytes that the longest has as text.
    pub(crate) const LENGTH: usize = 33;

    /// The number as text, without allocating: every call across processes has one.
    pub(crate) fn write(self, buffer: &mut [u8; Self::LENGTH]) -> &str {
        let Self(mut number) = self;
        let mut at = buffer.len();
        let mut put = |byte: u8| {
            at = at.saturating_sub(1);
            if let Some(slot) = buffer.get_mut(at) {
                *slot = byte;
            }
        };
        let digit = |n: u64| char::from_digit(u32::try_from(n & 15).unwrap_or(0), 16).map_or(b'0', |digit| digit as u8);
        loop {
            put(digit(number));
            number >>= 4;
            if number == 0 {
                break;
            }
        }
        put(b'-');
        let mut prefix = process_prefix();
        for _ in 0..16 {
            put(digit(prefix));
            prefix >>= 4;
        }
        buffer.get(at..).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }

    /// Reads what this process wrote.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (prefix, number) = text.split_once('-')?;
        let prefix = u64::from_str_radix(prefix, 16).ok()?;
        (prefix == process_prefix()).then_some(())?;
        u64::from_str_radix(number, 16).ok().map(Self)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Unlike in any other process: the prefix is made of the standard library's random hash keys.
        write!(f, "{:016x}-{:x}", process_prefix(), self.0)
    }
}

fn process_prefix() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    static PREFIX: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    *PREFIX.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

impl Context {
    /// The context of a call that says nothing beside its input.
    #[inline]
    pub(crate) fn plain(registry: Registry) -> Self {
        Self { registry, request: Number::next(), deadline: None, timeout: None, extra: None }
    }

    /// The same call with the bodies of its input, to an endpoint that streams them.
    pub(crate) fn with_bodies(mut self, bodies: Parcels, streams_output: bool) -> Self {
        if streams_output || !bodies.is_empty() {
            let extra = Arc::make_mut(self.extra.get_or_insert_default());
            (extra.bodies, extra.streams_output) = (bodies, streams_output);
        }
        self
    }

    /// The context of a call that comes from outside any handler.
    pub(crate) fn new(registry: Registry, mut options: CallOptions, identity: Option<Arc<Identity>>) -> Self {
        let identity = identity.or_else(|| options.identity.take().map(Arc::new));
        let CallOptions { cancel, idle_timeout, metadata, progress, .. } = options;
        let plain = identity.is_none()
            && cancel.is_none()
            && idle_timeout.is_none()
            && metadata.is_empty()
            && progress.is_none();
        let extra = (!plain)
            .then(|| Arc::new(Extra { identity, cancel, idle_timeout, metadata, progress, ..Extra::default() }));
        Self { registry, request: Number::next(), deadline: options.deadline, timeout: None, extra }
    }

    /// The context of a call that came from elsewhere, in the name of whoever the transport says it is.
    pub(crate) fn received(registry: Registry, request: &mut CallRequest, identity: Option<Arc<Identity>>) -> Self {
        let extra = Extra {
            identity,
            given: Some(request.request_id.clone()),
            parent: request.parent_request_id.take(),
            idle_timeout: request.idle_timeout(),
            metadata: std::mem::take(&mut request.metadata),
            ..Extra::default()
        };
        let deadline = request.deadline();
        Self { registry, request: Number::next(), deadline, timeout: None, extra: Some(Arc::new(extra)) }
    }

    /// The context of a call that a handler makes: trusted, with this request as its parent.
    pub(crate) fn nested(&self, options: CallOptions) -> Self {
        let named = options.identity.is_some();
        let inherited = self.extra.as_deref().cloned().unwrap_or_default();
        let deadline = earlier(self.deadline(), options.deadline);
        let extra = Extra {
            identity: options.identity.map(Arc::new).or(inherited.identity),
            given: None,
            parent: Some(self.id()),
            idle_timeout: options.idle_timeout,
            // A nested call that its parent awaits is dropped with it, so a token of its own replaces the parent's.
            cancel: options.cancel.or(inherited.cancel),
            metadata: if options.metadata.is_empty() { inherited.metadata } else { options.metadata },
            progress: options.progress,
            trusted: !named,
            bodies: Parcels::default(),
            streams_output: false,
            #[cfg(feature = "mcp-server")]
            mcp: inherited.mcp,
        };
        let (registry, request) = (self.registry.clone(), Number::next());
        Self { registry, request, deadline, timeout: None, extra: Some(Arc::new(extra)) }
    }

    /// The application state of that type.
    ///
    /// # Errors
    /// If the registry was built without it; an operation that declares it can't be registered then.
    pub fn state<T: Send + Sync + 'static>(&self) -> Result<&T, CallError> {
        self.registry
            .state::<T>()
            .ok_or_else(|| CallError::execution(format!("the registry has no state of type `{}`", type_name::<T>())))
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
    /// handler itself is stopped that long after it first waits.
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

    /// Whether the call was made by another handler of the same registry, so that access rules were not checked.
    pub fn is_trusted(&self) -> bool {
        self.extra.as_ref().is_some_and(|extra| extra.trusted)
    }

    /// The operations of the registry, to be called on behalf of this call.
    pub fn env(&self) -> Env {
        Env::new(self.clone(), None)
    }

    /// The operations of some namespaces of the registry, to be called on behalf of this call.
    pub fn env_of<N: Into<String>>(&self, namespaces: impl IntoIterator<Item = N>) -> Env {
        Env::new(self.clone(), Some(namespaces.into_iter().map(Into::into).collect()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_ids_are_unlike() {
        let mut buffer = [0; Number::LENGTH];
        for number in [Number(0), Number::next(), Number(u64::MAX)] {
            assert_eq!(number.write(&mut buffer), number.to_string());
            assert_eq!(Number::parse(&number.to_string()), Some(number));
        }
        let ids = || (0..70_000).map(|_| Number::next().to_string()).collect::<Vec<_>>();
        let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(ids)).collect();
        let mut all: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 140_000);
    }
}
