//! The five events of a call, and the frames that transports add to them.
//!
//! Every message is a [`Frame`]: a [`CallEvent`], or a frame of the transport, which is about the link and not about a
//! call. Their JSON is `{ "type", "id", "payload" }`; see [`wire`](crate::wire) for the schemas.
//!
//! ```
//! use ops_runtime::call::{CallEvent, CallRequest, Frame};
//! use serde_json::json;
//!
//! let frame = Frame::from(CallEvent::Requested(Box::new(CallRequest::new("math.add", json!({ "a": 1 })))));
//! let text = frame.encode().unwrap();
//! let read = Frame::decode(&text).unwrap().unwrap();
//! assert_eq!(read.encode().unwrap(), text);
//!
//! // What a newer version says is nobody's mistake.
//! assert_eq!(Frame::decode(r#"{ "type": "link.sing", "payload": {} }"#).unwrap(), None);
//! ```

mod json;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::model::clock::{millis, since_epoch};
use crate::model::request_id::{Number, RequestId};
use crate::run::context::{deadline_after, now};
use crate::{CallError, Identity, OperationSpec, Payload, ResponseEnvelope, Text};

/// An event of the call protocol.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum CallEvent {
    /// A caller requests an operation (`call.requested`).
    Requested(Box<CallRequest>),
    /// The result of a call, or one item of a subscription (`call.responded`).
    Responded {
        /// The request that the response is for.
        request_id: RequestId,
        /// The envelope, also that of a tool that reported an error.
        output: ResponseEnvelope<Payload>,
    },
    /// A subscription ended normally (`call.completed`).
    Completed {
        /// The request that has ended.
        request_id: RequestId,
    },
    /// Either side aborted the request (`call.aborted`).
    Aborted {
        /// The request that has ended.
        request_id: RequestId,
    },
    /// The call failed (`call.error`).
    Error {
        /// The request that has ended.
        request_id: RequestId,
        /// Why. The tool result that an error of MCP may carry is not sent.
        error: CallError,
    },
    /// One item of a subscription failed, and the subscription goes on (`call.error` with `more`).
    ItemError {
        /// The request of the subscription.
        request_id: RequestId,
        /// The error that stands for the item.
        error: CallError,
    },
}

impl CallEvent {
    /// The request that the event is about.
    pub fn request_id(&self) -> &RequestId {
        match self {
            Self::Requested(request) => &request.request_id,
            Self::Responded { request_id, .. }
            | Self::Completed { request_id }
            | Self::Aborted { request_id }
            | Self::Error { request_id, .. }
            | Self::ItemError { request_id, .. } => request_id,
        }
    }
}

/// The request of a caller: the payload of `call.requested`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct CallRequest {
    /// The id of the call in all of its events.
    pub request_id: RequestId,
    /// The id of the operation, `namespace.name`.
    pub operation_id: Text,
    /// The input of the operation, any JSON.
    pub input: Payload,
    /// The request whose handler makes this call.
    pub parent_request_id: Option<RequestId>,
    /// The deadline, in milliseconds since the Unix epoch, by the caller's clock.
    pub deadline: Option<u64>,
    /// The time from sending to the deadline, in milliseconds. It takes precedence over `deadline`, so that clocks may
    /// differ.
    pub time_left: Option<u64>,
    /// For a subscription: how many bytes of unread items the caller buffers. A worker sends no more than that, and one
    /// item, ahead of the credit.
    pub window_bytes: Option<u64>,
    /// True if the caller takes one result, so that a worker refuses to run a subscription.
    /// [`PendingRequests`](super::PendingRequests) sets it.
    pub one_result: bool,
    /// For a subscription: its idle timeout, in milliseconds.
    pub idle_timeout: Option<u64>,
    /// The identity that the caller claims; it counts only if the worker trusts the link to name the caller.
    pub identity: Option<Identity>,
    /// Metadata for the handler, such as `traceparent`.
    pub metadata: Map<String, Value>,
}

impl CallRequest {
    /// A request with a new id.
    pub fn new(operation_id: impl Into<Text>, input: Value) -> Self {
        Self::with_id(RequestId::of(Number::next()), operation_id.into(), Payload::Value(input))
    }

    pub(crate) fn with_id(request_id: RequestId, operation_id: Text, input: Payload) -> Self {
        Self {
            request_id,
            operation_id,
            input,
            parent_request_id: None,
            deadline: None,
            time_left: None,
            window_bytes: None,
            one_result: false,
            idle_timeout: None,
            identity: None,
            metadata: Map::new(),
        }
    }

    /// Sets the timeout, from now.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.deadline = deadline_after(timeout).map(to_epoch);
        self
    }

    /// Sets the idle timeout of a subscription.
    #[must_use]
    pub fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = Some(millis(timeout));
        self
    }

    /// Sets the identity of the caller.
    #[must_use]
    pub fn with_identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The deadline, by the clock of this process, which has set it.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        deadline_after(Duration::from_millis(self.until_deadline()?))
    }

    fn until_deadline(&self) -> Option<u64> {
        Some(self.deadline?.saturating_sub(millis(since_epoch())))
    }

    /// The deadline of a request that was just received: by `timeLeft` if it is there, else by `deadline`.
    pub(crate) fn deadline_of_received(&self) -> Option<Instant> {
        match self.time_left {
            Some(left) => deadline_after(Duration::from_millis(left)),
            None => self.deadline(),
        }
    }

    /// Sets `timeLeft`, when the request is sent.
    pub(crate) fn note_time_left(&mut self) {
        if self.deadline.is_some() {
            self.time_left = self.until_deadline();
        }
    }

    /// Subtracts the time for which the request was queued.
    #[cfg(any(feature = "nats", feature = "redis"))]
    pub(crate) fn has_waited(&mut self, time: Duration) {
        self.time_left = self.time_left.map(|left| left.saturating_sub(millis(time)));
    }

    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout.map(Duration::from_millis)
    }
}

/// An instant of this process as milliseconds since the Unix epoch, rounded up so that a short time does not become
/// zero.
pub(crate) fn to_epoch(instant: Instant) -> u64 {
    let left = instant.saturating_duration_since(now());
    let then = since_epoch().saturating_add(left);
    millis(then).saturating_add(u64::from(!then.subsec_nanos().is_multiple_of(1_000_000)))
}

/// A message: an event of a call, or a frame of the transport.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Frame {
    /// An event of a call (`call.*`).
    Event(CallEvent),
    /// The caller accepts more items of a subscription (`link.credit`).
    ///
    /// A worker sends at most [`WINDOW`](crate::call::WINDOW) items beyond the credit.
    Credit {
        /// The request of the subscription.
        request_id: RequestId,
        /// How many more items.
        items: u32,
    },
    /// The operations that the sender serves from now on (`link.announce`); both sides of a link begin with it.
    Announce(Announcement),
    /// The sender asks for no more requests (`link.drain`).
    Drain,
    /// The response to `link.drain`: the sender sends no requests after it (`link.drained`).
    Drained,
    /// The requests that the sender runs for this caller (`link.running`), sent regularly over brokers: a request that
    /// was not reported for too long counts as lost.
    Running {
        /// The running requests.
        request_ids: Vec<RequestId>,
    },
}

impl From<CallEvent> for Frame {
    fn from(event: CallEvent) -> Self {
        Self::Event(event)
    }
}

/// A change of the operations that a peer serves.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Announcement {
    /// New operations; one that was announced before is replaced.
    pub add: Vec<Arc<OperationSpec>>,
    /// The ids of operations that are no longer served.
    pub remove: Vec<Text>,
    /// True if this is one part of an announcement and more parts follow.
    pub more: bool,
    /// The largest message that the sender accepts, in bytes.
    pub max_message: Option<u64>,
    /// Why operations were left out when it was read, if any were. A peer may send any number of such announcements, so
    /// the transport decides how often it logs this.
    pub(crate) unread: Option<String>,
}

impl Announcement {
    /// An announcement without changes.
    pub fn new() -> Self {
        Self::default()
    }
}

/// How many bytes of a peer's text an error repeats.
pub(crate) const WORDS: usize = 200;

/// A malformed message, with what could be read of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Malformed {
    /// The `type`, if it could be read.
    pub kind: Option<String>,
    /// The request that it is about, if it could be read.
    pub request_id: Option<RequestId>,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "malformed {}: {}", self.kind.as_deref().unwrap_or("message"), self.message)
    }
}

impl std::error::Error for Malformed {}

impl Frame {
    /// The frame as JSON text.
    ///
    /// # Errors
    /// An `EXECUTION_ERROR` if a value in it cannot be written, such as a body that is a stream.
    pub fn encode(&self) -> Result<String, CallError> {
        // Allocated at once if the size is known: growing costs every call.
        let mut text = Vec::with_capacity(self.data_len() + 256);
        let written = serde_json::to_writer(&mut text, self).map_err(|error| error.to_string());
        written
            .and_then(|()| String::from_utf8(text).map_err(|error| error.to_string()))
            .map_err(|error| CallError::execution(format!("the message can't be written as JSON: {error}")))
    }

    /// The number of bytes of JSON text in it, as far as known.
    fn data_len(&self) -> usize {
        let data = match self {
            Self::Event(CallEvent::Requested(request)) => &request.input,
            Self::Event(CallEvent::Responded { output, .. }) => &output.data,
            _ => return 0,
        };
        data.text().map_or(0, <[u8]>::len)
    }

    /// The frame as JSON text, if the other side accepts its size.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode), and an `EXECUTION_ERROR` with the details `{ "size", "limit" }` in bytes.
    pub fn encode_within(&self, limit: usize) -> Result<String, CallError> {
        let text = self.encode()?;
        if text.len() > limit {
            let size = text.len();
            let message = format!("the message has {size} bytes, and the other side takes {limit}");
            return Err(CallError::execution(message).with_details(json!({ "size": size, "limit": limit })));
        }
        Ok(text)
    }

    /// The request that the frame is about, if it is about one.
    pub fn request_id(&self) -> Option<&RequestId> {
        match self {
            Self::Event(event) => Some(event.request_id()),
            Self::Credit { request_id, .. } => Some(request_id),
            Self::Announce(_) | Self::Drain | Self::Drained | Self::Running { .. } => None,
        }
    }
}
