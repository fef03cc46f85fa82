//! The JSON of call events and transport frames.
//!
//! A frame is read in one pass: we write `type` first, so the type of the payload is known when it is read. If `type`
//! comes later, the payload is kept as text until then. Data are not parsed here: they stay JSON text until they are
//! read into a type.

mod read;

use std::fmt;
use std::sync::Arc;

use serde_core::de::{self, Deserialize, Deserializer, Visitor};
use serde_core::ser::{Error, Serialize, SerializeMap, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::call::event::WORDS;
use crate::call::{Announcement, CallEvent, CallRequest, Frame, RequestId};
use crate::model::cut::cut;
use crate::model::json::{fields, read_text};
use crate::model::spec::reads;
use crate::record::{self, Record, put, put_some};
use crate::{AccessControl, ErrorCode, InvalidId, OperationKind, OperationSpec, Payload, ResponseEnvelope, Text};

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.serialize_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestId {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        // Checked before it is stored: an id is in tables, and in all messages about its request.
        let id = read_text(d, "the id of a request", |id| (id.len() <= Self::LONGEST).then(|| Self::from(id)))?;
        id.ok_or_else(|| de::Error::custom(format_args!("the id of a request has more than {} bytes", Self::LONGEST)))
    }
}

/// Text is written as it is, once it has been checked to be JSON.
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
    "timeLeft" => time_left: some_number,
    "windowBytes" => window_bytes: some_number,
    "oneResult" => one_result: flag,
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
    details: Option<Aside>,
    /// True if the subscription goes on.
    more: bool,
}

fields!(Failed {
    "requestId" => request_id: required,
    "code" => code: required,
    "message" => message: required,
    "details" => details: some,
    "more" => more: flag,
});

struct Credit {
    request_id: RequestId,
    items: u32,
}

fields!(Credit {
    "requestId" => request_id: required,
    "items" => items: number,
});

/// Limit of the values in the schemas of a message; beyond it, specs are read without their schemas.
const MAX_VALUES: usize = 400_000;

/// Specs that are shared. Those that can't be read are left out, such as one of a kind that a newer version knows.
#[derive(Default)]
struct Specs {
    read: Vec<Arc<OperationSpec>>,
    unread: Unread,
}

impl Specs {
    fn is_empty(&self) -> bool {
        self.read.is_empty()
    }
}

impl<'de> Deserialize<'de> for Specs {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Specs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of specs")
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, mut specs: A) -> Result<Specs, A::Error> {
                let (mut read, mut values, mut unread) = (Vec::new(), 0_usize, Unread::default());
                while let Some(text) = specs.next_element::<Box<RawValue>>()? {
                    let own = values_in(text.get());
                    let spec = if values.saturating_add(own) <= MAX_VALUES {
                        values += own;
                        serde_json::from_str::<OperationSpec>(text.get())
                    } else {
                        serde_json::from_str::<Bare>(text.get())
                            .and_then(|bare| bare.into_spec().map_err(de::Error::custom))
                    };
                    match spec {
                        Ok(spec) => read.push(Arc::new(spec)),
                        Err(error) => unread.add(text.get(), &error),
                    }
                }
                Ok(Specs { read, unread })
            }
        }
        d.deserialize_seq(Each)
    }
}

/// The specs of a message that can't be read.
#[derive(Default)]
struct Unread {
    /// Their ids, as far as those can be read.
    ids: Vec<Text>,
    /// What is wrong with the first.
    why: Option<String>,
}

impl Unread {
    #[cold]
    fn add(&mut self, text: &str, error: &serde_json::Error) {
        struct Id {
            name: Option<Text>,
            namespace: Option<Text>,
        }
        fields!(Id {
            "name" => name: some,
            "namespace" => namespace: some,
        });
        /// Limit of the ids: a peer has no more operations that are known.
        const MAX_IDS: usize = 20_000;
        if self.ids.len() >= MAX_IDS {
            return;
        }
        let id = match serde_json::from_str::<Id>(text) {
            Ok(Id { name: Some(name), namespace: Some(namespace) }) => Some(format!("{namespace}.{name}")),
            _ => None,
        };
        self.why.get_or_insert_with(|| {
            format!("{}: {}", cut(id.as_deref().unwrap_or("unknown"), WORDS), cut(&error.to_string(), WORDS))
        });
        self.ids.extend(id.map(Text::from));
    }
}

/// Upper bound of the number of values in a JSON text.
fn values_in(text: &str) -> usize {
    text.bytes().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count()
}

/// A spec without its schemas.
struct Bare {
    name: Text,
    namespace: Text,
    version: Text,
    kind: OperationKind,
    changes: Option<bool>,
    access: AccessControl,
    deprecated: bool,
    binding: Option<BareBinding>,
}

/// The part of a binding that tells if a subscription may change something.
struct BareBinding {
    method: Option<Text>,
}

fields!(BareBinding {
    "method" => method: some,
});

fields!(Bare {
    "name" => name: required,
    "namespace" => namespace: required,
    "version" => version: required,
    "type" => kind: required,
    "changes" => changes: some,
    "accessControl" => access: required,
    "deprecated" => deprecated: flag,
    "binding" => binding: some,
});

impl Bare {
    fn into_spec(self) -> Result<OperationSpec, InvalidId> {
        let mut spec = OperationSpec::new(self.kind, &self.namespace, &self.name)?;
        (spec.version, spec.access, spec.deprecated) = (self.version, self.access, self.deprecated);
        if self.kind == OperationKind::Subscription {
            let method = self.binding.and_then(|binding| binding.method);
            spec.changes = self.changes.or_else(|| method.map(|method| !reads(&method)));
        }
        Ok(spec)
    }
}

/// A value that is ignored if it is too large to be read: it accompanies the data of a message.
#[derive(Default)]
struct Aside(Option<Value>);

impl<'de> Deserialize<'de> for Aside {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = Box::<RawValue>::deserialize(d)?;
        if values_in(text.get()) > MAX_VALUES {
            return Ok(Self(None));
        }
        // Exact, like the data of a response.
        record::parse(text.get().as_bytes()).map(|value| Self(Some(value))).map_err(de::Error::custom)
    }
}

impl Serialize for Aside {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

/// An announcement as it is read; it is written from `Announcement` itself.
struct Announced {
    add: Specs,
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

impl Serialize for Specs {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(self.read.iter().map(|spec| &**spec))
    }
}

/// The requests that a worker runs.
struct Running {
    request_ids: Vec<RequestId>,
}

fields!(Running {
    "requestIds" => request_ids: required,
});

/// The values of `type`.
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
            Frame::Event(CallEvent::Error { .. } | CallEvent::ItemError { .. }) => Self::Error,
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
            Frame::Event(CallEvent::Error { error, .. }) => error.write(&mut m)?,
            Frame::Event(CallEvent::ItemError { error, .. }) => {
                error.write(&mut m)?;
                put(&mut m, "more", &true)?;
            }
            Frame::Credit { items, .. } => put(&mut m, "items", items)?,
            Frame::Running { request_ids } => put(&mut m, "requestIds", request_ids)?,
            Frame::Announce(Announcement { add, remove, more, max_message, .. }) => {
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
        // Copied only if it is not a frame already: calls themselves never write a bare event.
        Frame::Event(self.clone()).serialize(s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bare spec keeps only the method of its binding: it tells if a stream may change something.
    #[test]
    fn a_spec_without_schemas_says_what_it_may_change() {
        for (kind, more, expected) in [
            ("subscription", "", false),
            ("subscription", r#","binding":{"type":"http","method":"POST","path":"/runs","bodies":[{"x":1}]}"#, true),
            ("subscription", r#","binding":{"type":"http","method":"GET","path":"/pets"}"#, false),
            ("subscription", r#","changes":false,"binding":{"type":"http","method":"POST","path":"/ask"}"#, false),
            ("subscription", r#","changes":true"#, true),
            ("query", r#","binding":{"type":"http","method":"POST","path":"/find"}"#, false),
            ("mutation", "", true),
        ] {
            let text = format!(
                r#"{{"name":"b","namespace":"a","version":"1","type":"{kind}","accessControl":{{"requiredScopes":[]}}{more}}}"#
            );
            let bare: Bare = serde_json::from_str(&text).unwrap();
            let spec = bare.into_spec().unwrap();
            assert_eq!((spec.http(), spec.may_change()), (None, expected), "{text}");
        }
    }
}
