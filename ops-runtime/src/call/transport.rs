//! What a transport is: a way to whoever serves an operation.
//!
//! A transport has two halves. For callers it is a [`Transport`], which finds somebody who serves an operation: a
//! [`PendingRequests`] over a [`Link`]. For workers it opens a [`Session`](crate::call::Session) of their
//! [`CallHandler`](crate::call::CallHandler) for each peer, gives it the frames that arrive, and a [`Link`] for its
//! answers. Between the two it is free: a connection has one session and one table of requests at each end; a broker has
//! one link to itself, and finds by the request's id where an answer goes.
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
use std::time::Duration;

use crate::call::{Frame, PendingRequests, RequestId};
use crate::{BoxFuture, CallError, Identity, SpecRef};

/// A way to whoever serves an operation: the caller's half of a transport.
///
/// Answers are given to the [`PendingRequests`] that the request went through.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a transport",
    note = "implement `Transport` for it, or make one with `InProcess`, `WebSocketClient` or `Hub`"
)]
pub trait Transport: Send + Sync + 'static {
    /// Finds somebody who serves an operation.
    ///
    /// # Errors
    /// `OPERATION_NOT_FOUND` if nobody does, at once; `ABORTED` if there is no connection.
    fn route(&self, operation: &str) -> Result<Route, CallError>;

    /// The operation of that id, if somebody serves it.
    fn spec(&self, operation: &str) -> Option<SpecRef>;

    /// What is served now, in the order of the ids.
    fn list(&self) -> Vec<SpecRef>;

    /// How many requests are under way.
    fn pending_count(&self) -> usize;

    /// What the transport promises.
    fn info(&self) -> TransportInfo;
}

/// The way of a request.
#[non_exhaustive]
pub enum Route {
    /// To somebody who serves it.
    To(PendingRequests),
    /// Not now: ask again when the future is done.
    Wait(BoxFuture<'static, Result<(), CallError>>),
}

/// One direction of a transport: takes frames for the other side, in order.
pub trait Link: Send + Sync + 'static {
    /// Takes a frame to be sent; never waits.
    ///
    /// # Errors
    /// If the frame is not going to be sent. One that may have been sent is no error: when it turns out to be lost,
    /// the requests that are waiting have to be told ([`PendingRequests::close`]).
    fn send(&self, frame: Frame) -> Result<(), Unsent>;

    /// What to wait for before another item of a subscription, or another request, is sent; `None` if there is room.
    fn ready(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// The worker is done with a request: nothing more will be said about it.
    fn finished(&self, request_id: &RequestId) {
        let _ = request_id;
    }
}

/// Why a frame is not going to be sent.
#[derive(Debug)]
pub enum Unsent {
    /// The other side is gone or takes no more; the frame, for somebody else.
    Gone(Frame),
    /// The frame cannot be sent to anybody, such as one that is too large.
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

/// Who a peer is, as far as the transport knows.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PeerAuth {
    /// Whoever the transport authenticated.
    pub identity: Option<Arc<Identity>>,
    /// Whether the peer may say in whose name it calls, as a hub does that passes on the calls of others.
    pub may_name_identity: bool,
    /// Whether operations that the peer announces are called.
    pub may_serve: bool,
    /// Whether the peer is of this process, so that it may know whatever this process knows.
    pub(crate) in_process: bool,
}

impl PeerAuth {
    /// A peer of which nothing is known: whatever it says of itself does not count, nor what it announces.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// A peer that the transport has authenticated.
    pub fn authenticated(identity: impl Into<Arc<Identity>>) -> Self {
        Self { identity: Some(identity.into()), may_name_identity: false, may_serve: true, in_process: false }
    }

    /// A peer that may say in whose name it calls.
    pub fn trusted() -> Self {
        Self { identity: None, may_name_identity: true, may_serve: true, in_process: false }
    }

    /// Says whether operations that the peer announces are called.
    #[must_use]
    pub fn serving(mut self, may_serve: bool) -> Self {
        self.may_serve = may_serve;
        self
    }

    /// True if nothing is known of the peer, so that it may not speak for others either.
    #[cfg(feature = "websocket")]
    pub(crate) fn is_anonymous(&self) -> bool {
        self.identity.is_none() && !self.may_name_identity
    }

    /// In whose name a request is run.
    pub(crate) fn identify(&self, claimed: Option<Identity>) -> Option<Arc<Identity>> {
        match claimed {
            Some(claimed) if self.may_name_identity => Some(Arc::new(claimed)),
            Some(_) => {
                tracing::debug!("a peer said in whose name it calls, and may not");
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
    /// The largest message it carries, in bytes, with everything around the input or the output; none if there is no
    /// limit but memory.
    pub max_message: Option<usize>,
    /// For how long an answer survives that the caller cannot be reached; zero if its loss fails the call.
    pub answers_survive: Duration,
}

impl TransportInfo {
    /// The promises of a transport that carries anything, for as long as both sides are there.
    pub fn new(name: &'static str) -> Self {
        Self { name, max_message: None, answers_survive: Duration::ZERO }
    }

    /// Limits the size of a message.
    #[must_use]
    pub fn with_max_message(mut self, bytes: usize) -> Self {
        self.max_message = Some(bytes);
        self
    }

    /// Says for how long answers survive.
    #[must_use]
    pub fn with_answers_survive(mut self, time: Duration) -> Self {
        self.answers_survive = time;
        self
    }
}
