//! The JSON of call events and transport frames.
//!
//! A frame is read in one go: `type` comes first in all that we write, so that the payload is read as what it is. Where it
//! comes later, the payload is kept as text until then. Data are never parsed on the way: they stay JSON text until
//! somebody gives them a type.

use std::fmt;
use std::sync::Arc;

use serde_core::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_core::ser::{Error, Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{fields, read_text};
use crate::call::{Announcement, CallEvent, CallRequest, Frame, Malformed, RequestId};
use crate::record::{put, put_some};
use crate::{CallError, ErrorCode, OperationSpec, Payload, ResponseEnvelope, Text};

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        read_text(d, "the id of a request", |id| Self::from(id))
    }
}

/// Text is passed on as it is, once it has turned out to be JSON.
impl Serialize for Payload {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Value(value) => value.serialize(s),
            Self::Json(text) => serde_json::from_slice::<&RawValue>(text).map_err(S::Error::custom)?.serialize(s),
            Self::Raw(text) => text.serialize(s),
            Self::Body(body) => body.serialize(s),
        }
    }
}

/// Reads any JSON as text, without parsing it.
impl<'de> Deserialize<'de> for Payload {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(d).map(Self::Raw)
    }
}

fields!(CallRequest {
    "requestId" => request_id: required,
    "operationId" => operation_id: required,
    "input" => input: required,
    "parentRequestId" => parent_request_id: some,
    "deadline" => deadline: some_number,
    "idleTimeout" => idle_timeout: some_number,
    "identity" => identity: some,
    "metadata" => metadata: filled,
});

struct Responded {
    request_id: RequestId,
    output: ResponseEnvelope<Payload>,
}

fields!(Responded {
    "requestId" => request_id: required,
    "output" => output: required,
});

/// Of `call.completed` and `call.aborted`.
struct Ended {
    request_id: RequestId,
}

fields!(Ended {
    "requestId" => request_id: required,
});

struct Failed {
    request_id: RequestId,
    code: ErrorCode,
    message: Text,
    details: Option<Value>,
}

fields!(Failed {
    "requestId" => request_id: required,
    "code" => code: required,
    "message" => message: required,
    "details" => details: some,
});

struct Credit {
    request_id: RequestId,
    items: u32,
}

fields!(Credit {
    "requestId" => request_id: required,
    "items" => items: number,
});

/// A spec that is shared.
struct Shared(Arc<OperationSpec>);

impl<'de> Deserialize<'de> for Shared {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        OperationSpec::deserialize(d).map(|spec| Self(Arc::new(spec)))
    }
}

/// As it is read; it is written from the announcement itself.
struct Announced {
    add: Vec<Shared>,
    remove: Vec<Text>,
    more: bool,
    max_message: Option<u64>,
}

fields!(Announced {
    "add" => add: filled,
    "remove" => remove: filled,
    "more" => more: flag,
    "maxMessage" => max_message: some_number,
});

impl Serialize for Shared {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

/// The requests that a worker runs.
struct Running {
    request_ids: Vec<RequestId>,
}

fields!(Running {
    "requestIds" => request_ids: required,
});

/// What `type` says.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Requested,
    Responded,
    Completed,
    Aborted,
    Error,
    Credit,
    Announce,
    Drain,
    Drained,
    Running,
    Unknown,
}

impl Kind {
    fn of(frame: &Frame) -> Self {
        match frame {
            Frame::Event(CallEvent::Requested(_)) => Self::Requested,
            Frame::Event(CallEvent::Responded { .. }) => Self::Responded,
            Frame::Event(CallEvent::Completed { .. }) => Self::Completed,
            Frame::Event(CallEvent::Aborted { .. }) => Self::Aborted,
            Frame::Event(CallEvent::Error { .. }) => Self::Error,
            Frame::Credit { .. } => Self::Credit,
            Frame::Announce(_) => Self::Announce,
            Frame::Drain => Self::Drain,
            Frame::Drained => Self::Drained,
            Frame::Running { .. } => Self::Running,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Requested => "call.requested",
            Self::Responded => "call.responded",
            Self::Completed => "call.completed",
            Self::Aborted => "call.aborted",
            Self::Error => "call.error",
            Self::Credit => "link.credit",
            Self::Announce => "link.announce",
            Self::Drain => "link.drain",
            Self::Drained => "link.drained",
            Self::Running => "link.running",
            Self::Unknown => "",
        }
    }

    fn named(name: &str) -> Self {
        match name {
            "call.requested" => Self::Requested,
            "call.responded" => Self::Responded,
            "call.completed" => Self::Completed,
            "call.aborted" => Self::Aborted,
            "call.error" => Self::Error,
            "link.credit" => Self::Credit,
            "link.announce" => Self::Announce,
            "link.drain" => Self::Drain,
            "link.drained" => Self::Drained,
            "link.running" => Self::Running,
            _ => Self::Unknown,
        }
    }
}

impl<'de> Deserialize<'de> for Kind {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        read_text(d, "the type of a frame", Self::named)
    }
}

/// The payload of a frame as it is written.
struct Body<'a>(&'a Frame);

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if let Frame::Event(CallEvent::Requested(request)) = self.0 {
            return request.serialize(s);
        }
        let mut m = s.serialize_map(None)?;
        if let Some(id) = self.0.request_id() {
            put(&mut m, "requestId", id)?;
        }
        match self.0 {
            Frame::Event(CallEvent::Responded { output, .. }) => put(&mut m, "output", output)?,
            Frame::Event(CallEvent::Error { error, .. }) => {
                use crate::record::Record;
                error.write(&mut m)?;
            }
            Frame::Credit { items, .. } => put(&mut m, "items", items)?,
            Frame::Running { request_ids } => put(&mut m, "requestIds", request_ids)?,
            Frame::Announce(Announcement { add, remove, more, max_message }) => {
                if !add.is_empty() {
                    put(&mut m, "add", &add.iter().map(|spec| &**spec).collect::<Vec<_>>())?;
                }
                if !remove.is_empty() {
                    put(&mut m, "remove", remove)?;
                }
                if *more {
                    put(&mut m, "more", more)?;
                }
                put_some(&mut m, "maxMessage", max_message)?;
            }
            Frame::Event(_) | Frame::Drain | Frame::Drained => {}
        }
        m.end()
    }
}

impl Serialize for Frame {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut m = s.serialize_map(None)?;
        put(&mut m, "type", &Kind::of(self).as_str())?;
        if let Some(id) = self.request_id() {
            put(&mut m, "id", id)?;
        }
        put(&mut m, "payload", &Body(self))?;
        m.end()
    }
}

impl Serialize for CallEvent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A copy, where it is no frame already: nothing on the way of a call writes an event by itself.
        Frame::Event(self.clone()).serialize(s)
    }
}

impl<'de> Deserialize<'de> for Frame {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let Message(frame) = Message::deserialize(d)?;
        frame.ok_or_else(|| de::Error::custom("the `type` is not that of a frame"))
    }
}

impl<'de> Deserialize<'de> for CallEvent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match Frame::deserialize(d)? {
            Frame::Event(event) => Ok(event),
            _ => Err(de::Error::custom("the frame is no call event")),
        }
    }
}

/// A frame, or one of a type that is not known.
struct Message(Option<Frame>);

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(MessageVisitor)
    }
}

struct MessageVisitor;

impl<'de> Visitor<'de> for MessageVisitor {
    type Value = Message;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (Frame)")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Message, A::Error> {
        let (mut kind, mut id, mut payload) = (None, None::<RequestId>, None::<Result<Message, Box<RawValue>>>);
        while let Some(member) = map.next_key()? {
            match (member, kind) {
                (Member::Type, _) => kind = Some(map.next_value::<Kind>()?),
                (Member::Id, _) => id = map.next_value()?,
                (Member::Payload, Some(kind)) => payload = Some(Ok(Message(read(kind, &mut map)?))),
                (Member::Payload, None) => payload = Some(Err(map.next_value()?)),
                (Member::Unknown, _) => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        let missing = <A::Error as de::Error>::missing_field;
        let kind = kind.ok_or_else(|| missing("type"))?;
        let frame = match payload.ok_or_else(|| missing("payload"))? {
            Ok(Message(frame)) => frame,
            Err(text) => parse(kind, &text).map_err(de::Error::custom)?,
        };
        if let (Some(id), Some(own)) = (id, frame.as_ref().and_then(Frame::request_id))
            && id != *own
        {
            return Err(de::Error::custom("the `id` is not the payload's `requestId`"));
        }
        Ok(Message(frame))
    }
}

/// The members of a frame.
enum Member {
    Type,
    Id,
    Payload,
    Unknown,
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Name;
        impl Visitor<'_> for Name {
            type Value = Member;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a property name")
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<Member, E> {
                Ok(match name {
                    "type" => Member::Type,
                    "id" => Member::Id,
                    "payload" => Member::Payload,
                    _ => Member::Unknown,
                })
            }
        }
        d.deserialize_identifier(Name)
    }
}

/// Reads the payload that comes next.
fn read<'de, A: MapAccess<'de>>(kind: Kind, map: &mut A) -> Result<Option<Frame>, A::Error> {
    Ok(Some(match kind {
        Kind::Requested => CallEvent::Requested(Box::new(map.next_value()?)).into(),
        Kind::Responded => map.next_value::<Responded>()?.into(),
        Kind::Completed => CallEvent::Completed { request_id: map.next_value::<Ended>()?.request_id }.into(),
        Kind::Aborted => CallEvent::Aborted { request_id: map.next_value::<Ended>()?.request_id }.into(),
        Kind::Error => map.next_value::<Failed>()?.into(),
        Kind::Credit => map.next_value::<Credit>()?.into(),
        Kind::Announce => map.next_value::<Announced>()?.into(),
        Kind::Running => Frame::Running { request_ids: map.next_value::<Running>()?.request_ids },
        Kind::Drain | Kind::Drained | Kind::Unknown => {
            map.next_value::<IgnoredAny>()?;
            return Ok(empty(kind));
        }
    }))
}

/// Reads a payload that came before its type.
fn parse(kind: Kind, text: &RawValue) -> Result<Option<Frame>, serde_json::Error> {
    use serde_json::from_str;
    let text = text.get();
    Ok(Some(match kind {
        Kind::Requested => CallEvent::Requested(Box::new(from_str(text)?)).into(),
        Kind::Responded => from_str::<Responded>(text)?.into(),
        Kind::Completed => CallEvent::Completed { request_id: from_str::<Ended>(text)?.request_id }.into(),
        Kind::Aborted => CallEvent::Aborted { request_id: from_str::<Ended>(text)?.request_id }.into(),
        Kind::Error => from_str::<Failed>(text)?.into(),
        Kind::Credit => from_str::<Credit>(text)?.into(),
        Kind::Announce => from_str::<Announced>(text)?.into(),
        Kind::Running => Frame::Running { request_ids: from_str::<Running>(text)?.request_ids },
        Kind::Drain | Kind::Drained | Kind::Unknown => return Ok(empty(kind)),
    }))
}

/// A frame whose payload says nothing.
fn empty(kind: Kind) -> Option<Frame> {
    match kind {
        Kind::Drain => Some(Frame::Drain),
        Kind::Drained => Some(Frame::Drained),
        _ => None,
    }
}

impl From<Responded> for Frame {
    fn from(Responded { request_id, output }: Responded) -> Self {
        CallEvent::Responded { request_id, output }.into()
    }
}

impl From<Failed> for Frame {
    fn from(Failed { request_id, code, message, details }: Failed) -> Self {
        let error = CallError::new(code, message).with_details(details.unwrap_or_default());
        CallEvent::Error { request_id, error }.into()
    }
}

impl From<Credit> for Frame {
    fn from(Credit { request_id, items }: Credit) -> Self {
        Self::Credit { request_id, items }
    }
}

impl From<Announced> for Frame {
    fn from(Announced { add, remove, more, max_message }: Announced) -> Self {
        let add = add.into_iter().map(|Shared(spec)| spec).collect();
        Self::Announce(Announcement { add, remove, more, max_message })
    }
}

pub(crate) fn decode_frame(text: &str) -> Result<Option<Frame>, Malformed> {
    match serde_json::from_str(text) {
        Ok(Message(frame)) => Ok(frame),
        Err(error) => Err(malformed(text, &error)),
    }
}

/// What can be read of a message that is no frame: enough to tell whoever waits for it.
#[cold]
fn malformed(text: &str, error: &serde_json::Error) -> Malformed {
    /// The head of a frame whose payload may be anything.
    struct Head {
        kind: Option<String>,
        id: Option<RequestId>,
    }
    fields!(Head {
        "type" => kind: some,
        "id" => id: some,
    });
    let head = serde_json::from_str(text).unwrap_or(Head { kind: None, id: None });
    Malformed { kind: head.kind, request_id: head.id, message: error.to_string() }
}
