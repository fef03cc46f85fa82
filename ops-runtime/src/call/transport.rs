//! The trait of transports. A transport finds a peer that serves an operation and carries its frames.
//!
//! A transport has two halves. For callers it is a [`Transport`], which finds a peer that serves an operation: a
//! [`PendingRequests`] over a [`Link`]. For workers it opens a [`Session`](crate::call::Session) of their
//! [`CallHandler`](crate::call::CallHandler) for each peer, passes it the frames that arrive, and gives it a [`Link`]
//! for its responses. A transport over a connection has one session and one table of requests at each end. A transport
//! over a broker has one link to the broker, and finds the caller of a response by the request's id.
//!
//! ```
//! use std::sync::Arc;
//! use ops_runtime::call::{CallEvent, Frame, Link, PeerAuth, PendingRequests, CallHandler, CallRequest, Session, Unsent};
//! use ops_runtime::Registry;
//! use ops_runtime::adapter::{Handler, Registration};
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::{Value, json};
//!
//! /// From the caller to the worker.
//! struct There(Session);
//! impl Link for There {
//!     fn send(&self, frame: Frame) -> Result<(), Unsent> {
//!         self.0.receive(frame).map_err(Unsent::Gone)
//!     }
//! }
//!
//! /// And back.
//! struct Back(std::sync::OnceLock<PendingRequests>);
//! impl Link for Back {
//!     fn send(&self, frame: Frame) -> Result<(), Unsent> {
//!         if let (Some(pending), Frame::Event(event)) = (self.0.get(), frame) {
//!             pending.receive(event);
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let registry = Registry::new();
//! static ECHO: OperationSpec = OperationSpec::query("demo.echo");
//! registry.register(Registration::new(&ECHO, Handler::dynamic(|input: Value, _| async { Ok(input) })))?;
//!
//! let back = Arc::new(Back(Default::default()));
//! let session = CallHandler::new(registry).session(PeerAuth::trusted(), back.clone());
//! let pending = PendingRequests::new(Arc::new(There(session)));
//! let _ = back.0.set(pending.clone());
//!
//! let envelope = pending.call(CallRequest::new("demo.echo", json!(7))).await?;
//! assert_eq!(serde_json::to_value(&envelope)?["data"], 7);
//! # Ok(()) }
//! ```

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::call::{Frame, PendingRequests, RequestId};
use crate::{BoxFuture, CallError, Identity, SpecRef};

/// Finds peers that serve operations: the caller's half of a transport.
///
/// Responses are passed to the [`PendingRequests`] that sent the request.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transport",
    note = "implement `Transport` for it, or make one with `InProcess`, `WebSocketClient` or `Hub`"
)]
pub trait Transport: Send + Sync + 'static {
    /// Finds a peer that serves an operation.
    ///
    /// # Errors
    /// `OPERATION_NOT_FOUND` at once if no peer serves it; `ABORTED` if there is no connection.
    fn route(&self, operation: &str) -> Result<Route, CallError>;

    /// The operation with this id, if a peer serves it.
    fn spec(&self, operation: &str) -> Option<SpecRef>;

    /// The served operations, in the order of their ids.
    fn list(&self) -> Vec<SpecRef>;

    /// Number of requests in flight.
    fn in_flight(&self) -> usize;

    /// What the transport promises.
    fn info(&self) -> TransportInfo;

    /// Identifies this transport within the process. `None` if its workers cannot be distinguished from those of others.
    #[doc(hidden)]
    fn id(&self) -> Option<TransportId> {
        None
    }
}

/// A transport that several remotes share.
impl<T: Transport + ?Sized> Transport for Arc<T> {
    fn route(&self, operation: &str) -> Result<Route, CallError> {
        (**self).route(operation)
    }

    fn spec(&self, operation: &str) -> Option<SpecRef> {
        (**self).spec(operation)
    }

    fn list(&self) -> Vec<SpecRef> {
        (**self).list()
    }

    fn in_flight(&self) -> usize {
        (**self).in_flight()
    }

    fn info(&self) -> TransportInfo {
        (**self).info()
    }

    fn id(&self) -> Option<TransportId> {
        (**self).id()
    }
}

/// Identifies a transport within the process. Its workers do not serve operations that they themselves call over it.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportId(usize);

impl TransportId {
    /// An id that no other transport has.
    pub(super) fn next() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The route of a request.
#[non_exhaustive]
pub enum Route {
    /// A peer that serves the operation.
    To(PendingRequests),
    /// None yet: ask again when the future is ready.
    Wait(BoxFuture<'static, Result<(), CallError>>),
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::To(pending) => f.debug_tuple("To").field(pending).finish(),
            Self::Wait(_) => f.debug_tuple("Wait").finish_non_exhaustive(),
        }
    }
}

/// One direction of a transport: sends frames to the other side, in order.
pub trait Link: Send + Sync + 'static {
    /// Sends a frame, without waiting.
    ///
    /// # Errors
    /// If the frame will not be sent. A frame that may have been sent is not an error: when it turns out to be lost,
    /// the transport fails the pending requests ([`PendingRequests::close`]).
    fn send(&self, frame: Frame) -> Result<(), Unsent>;

    /// What to await before sending the next item or request. `None` if there is capacity.
    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Called when the worker is done with a request: no more frames of it follow.
    fn finished(&self, request_id: &RequestId) {
        let _ = request_id;
    }
}

/// Why a frame will not be sent.
#[derive(Debug)]
pub enum Unsent {
    /// The other side is gone or accepts no more; the frame can be sent to another peer.
    Gone(Frame),
    /// The frame can be sent to no peer, for example because it is too large.
    Refused(CallError),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(_) => f.write_str("the other side is gone"),
            Self::Refused(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unsent {}

/// What the transport knows about a peer.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PeerAuth {
    /// The identity that the transport authenticated. `None` if unknown.
    pub identity: Option<Arc<Identity>>,
    /// True if the peer may name the caller of each request, as a forwarding hub does.
    pub may_name_identity: bool,
    /// True if operations that the peer announces may be called.
    pub may_serve: bool,
    /// True if the peer is in this process, so that it may see everything.
    pub(crate) in_process: bool,
}

impl PeerAuth {
    /// An unknown peer: the identities that it names and the operations that it announces are ignored.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// A peer that the transport has authenticated.
    pub fn authenticated(identity: impl Into<Arc<Identity>>) -> Self {
        Self { identity: Some(identity.into()), may_name_identity: false, may_serve: true, in_process: false }
    }

    /// A peer that may name the caller of each request.
    pub fn trusted() -> Self {
        Self { identity: None, may_name_identity: true, may_serve: true, in_process: false }
    }

    /// Sets whether operations that the peer announces may be called.
    #[must_use]
    pub fn serving(mut self, may_serve: bool) -> Self {
        self.may_serve = may_serve;
        self
    }

    /// True if the peer is unknown and may not name callers either.
    #[cfg(feature = "websocket")]
    pub(crate) fn is_anonymous(&self) -> bool {
        self.identity.is_none() && !self.may_name_identity
    }

    /// The identity with which a request runs. One that is ignored is logged, but only once as a warning.
    pub(crate) fn identify(&self, claimed: Option<Identity>, told: &AtomicBool) -> Option<Arc<Identity>> {
        match claimed {
            Some(claimed) if self.may_name_identity => Some(Arc::new(claimed)),
            Some(_) => {
                if told.swap(true, Ordering::Relaxed) {
                    tracing::debug!("a peer said in whose name it calls, and may not");
                } else {
                    tracing::warn!(
                        "a peer said in whose name it calls, which is ignored: this process does not trust the peer \
                         (`PeerAuth::trusted`, or `WebSocketConfig::trusting_hub` at a spoke)"
                    );
                }
                self.identity.clone()
            }
            None => self.identity.clone(),
        }
    }
}

/// What a transport promises.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportInfo {
    /// Its name, such as `websocket`.
    pub name: &'static str,
    /// The largest message, in bytes, with everything around the input or the output. `None` if only memory limits it.
    pub max_message: Option<usize>,
    /// How long a response is kept for a caller that cannot be reached; zero if a lost connection fails the call.
    pub response_retention: Duration,
}

impl TransportInfo {
    /// A transport with unlimited messages, whose responses are lost with the connection.
    pub fn new(name: &'static str) -> Self {
        Self { name, max_message: None, response_retention: Duration::ZERO }
    }

    /// Limits the size of a message.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = Some(bytes);
        self
    }

    /// Sets how long a response is kept for a caller that cannot be reached.
    #[must_use]
    pub fn with_response_retention(mut self, time: Duration) -> Self {
        self.response_retention = time;
        self
    }
}
