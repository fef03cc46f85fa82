//! Reading the JSON of a frame.

use std::fmt;

use serde_core::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::{Announced, Aside, Credit, Ended, Failed, Kind, MAX_VALUES, Responded, Running, Specs, values_in};
use crate::CallError;
use crate::call::event::WORDS;
use crate::call::{Announcement, CallEvent, Frame, Malformed, RequestId};
use crate::model::cut::cut;
use crate::model::json::fields;

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

/// A frame; `None` if its type is unknown.
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

/// Reads the payload, which is next.
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

/// A frame without a payload.
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
    fn from(Failed { request_id, code, message, details, more }: Failed) -> Self {
        let error =
            CallError::new(code, message).with_details(details.and_then(|Aside(details)| details).unwrap_or_default());
        match more {
            true => CallEvent::ItemError { request_id, error }.into(),
            false => CallEvent::Error { request_id, error }.into(),
        }
    }
}

impl From<Credit> for Frame {
    fn from(Credit { request_id, items }: Credit) -> Self {
        Self::Credit { request_id, items }
    }
}

impl From<Announced> for Frame {
    fn from(Announced { add: Specs { read: add, unread }, mut remove, more, max_message }: Announced) -> Self {
        // What was known of such an operation is no longer so.
        remove.extend(unread.ids);
        Self::Announce(Announcement { add, remove, more, max_message, unread: unread.why })
    }
}

/// True if the parts of a message beside its data have too many values to be read: unlike data, they do not stay text.
#[cold]
fn is_top_heavy(text: &str) -> bool {
    let mut values = 0;
    Within::Message.count(text, &mut values);
    values > MAX_VALUES
}

/// The objects of a message in which parts are read as values.
#[derive(Clone, Copy)]
enum Within {
    Message,
    Payload,
    Output,
}

impl Within {
    /// Counts the values in those parts of an object. A part that comes twice is read twice, so it counts twice. What comes
    /// after an error is not read, so it does not count.
    fn count(self, text: &str, values: &mut usize) {
        let _ = serde_json::Deserializer::from_str(text).deserialize_map(Count { within: self, values });
    }
}

struct Count<'c> {
    within: Within,
    values: &'c mut usize,
}

impl<'de> Visitor<'de> for Count<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match (self.within, &*name) {
                (Within::Message, "payload") => {
                    Within::Payload.count(map.next_value::<&RawValue>()?.get(), self.values)
                }
                (Within::Payload, "output") => Within::Output.count(map.next_value::<&RawValue>()?.get(), self.values),
                (Within::Payload, "metadata" | "identity" | "requestIds" | "remove")
                | (Within::Output, "meta" | "warnings") => {
                    let part = map.next_value::<&RawValue>()?;
                    *self.values = self.values.saturating_add(values_in(part.get()));
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(())
    }
}

impl Frame {
    /// Reads a frame; `None` if its type is unknown to this version.
    ///
    /// Unknown members are ignored.
    ///
    /// # Errors
    /// If the text is malformed; the error has the request that it is about, if that can be read.
    pub fn decode(text: &str) -> Result<Option<Self>, Malformed> {
        let read = if text.len() > MAX_VALUES && values_in(text) > MAX_VALUES && is_top_heavy(text) {
            Err(de::Error::custom(format_args!("more than {MAX_VALUES} values go with the data of the message")))
        } else {
            serde_json::from_str::<Message>(text)
        };
        match read {
            Ok(Message(frame)) => Ok(frame),
            Err(error) => {
                let malformed = malformed(text, &error);
                match malformed.kind.as_deref().map(Kind::named) {
                    // A newer version may give all other members another form.
                    Some(Kind::Unknown) => Ok(None),
                    _ => Err(malformed),
                }
            }
        }
    }
}

/// What can be read of a malformed message: enough to fail the request that it is about.
#[cold]
fn malformed(text: &str, error: &serde_json::Error) -> Malformed {
    /// The head of a frame whose payload may be anything, and so may its id.
    struct Head {
        kind: Option<String>,
        id: Option<Box<RawValue>>,
    }
    fields!(Head {
        "type" => kind: some,
        "id" => id: some,
    });
    let head = serde_json::from_str(text).unwrap_or(Head { kind: None, id: None });
    Malformed {
        kind: head.kind.map(|kind| cut(&kind, WORDS).into_owned()),
        // An id that is too long is not repeated.
        request_id: head.id.and_then(|id| serde_json::from_str(id.get()).ok()),
        message: cut(&error.to_string(), WORDS).into_owned(),
    }
}
