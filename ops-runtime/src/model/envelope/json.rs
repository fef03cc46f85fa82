//! The JSON of envelopes and their metas.

use std::fmt;
use std::marker::PhantomData;

use serde_core::de::{self, Deserialize, DeserializeOwned, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_core::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::model::json::fields;
use crate::record::{Reader, Record, put};
use crate::{EventMeta, HttpMeta, LocalMeta, McpMeta, ResponseEnvelope, ResponseMeta, Warning};

impl<T: Serialize> Serialize for ResponseEnvelope<T> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut m = s.serialize_map(None)?;
        put(&mut m, "data", &self.data)?;
        put(&mut m, "meta", &self.meta)?;
        if !self.warnings.is_empty() {
            put(&mut m, "warnings", &self.warnings)?;
        }
        m.end()
    }
}

/// `data` must be present, `null` for unit: an object without it is no envelope.
impl<'de, T: Deserialize<'de>> Deserialize<'de> for ResponseEnvelope<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_map(EnvelopeVisitor(PhantomData))
    }
}

struct EnvelopeVisitor<T>(PhantomData<fn() -> T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for EnvelopeVisitor<T> {
    type Value = ResponseEnvelope<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object (ResponseEnvelope)")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut data, mut meta, mut warnings) = (None, None, None);
        while let Some(member) = map.next_key()? {
            match member {
                Member::Data => data = Some(map.next_value()?),
                Member::Meta => meta = Some(map.next_value()?),
                Member::Warnings => warnings = map.next_value()?,
                Member::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(ResponseEnvelope {
            data: data.ok_or_else(|| A::Error::missing_field("data"))?,
            meta: meta.ok_or_else(|| A::Error::missing_field("meta"))?,
            warnings: warnings.unwrap_or_default(),
        })
    }
}

/// The members of an envelope.
enum Member {
    Data,
    Meta,
    Warnings,
    Unknown,
}

impl<'de> Deserialize<'de> for Member {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_identifier(MemberVisitor)
    }
}

struct MemberVisitor;

impl Visitor<'_> for MemberVisitor {
    type Value = Member;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a property name")
    }

    fn visit_str<E: de::Error>(self, name: &str) -> Result<Member, E> {
        Ok(match name {
            "data" => Member::Data,
            "meta" => Member::Meta,
            "warnings" => Member::Warnings,
            _ => Member::Unknown,
        })
    }
}

/// Distinguished by `source`, which may stand anywhere but is written first.
impl Record for ResponseMeta {
    const NAME: &'static str = "ResponseMeta";
    const FIELDS: &'static [&'static str] = &["source"];
    crate::__opaque!();

    fn index(name: &str) -> usize {
        usize::from(name != "source")
    }

    fn read<'de, A: MapAccess<'de>>(m: &mut Reader<A, Self>) -> Result<Self, A::Error> {
        let object = m.tagged("source")?;
        if object.is("local") {
            object.read().map(Self::Local)
        } else if object.is("http") {
            object.read().map(Self::Http)
        } else if object.is("mcp") {
            object.read().map(Self::Mcp)
        } else {
            Err(A::Error::custom("missing or unknown `source` of ResponseMeta, expected `local`, `http` or `mcp`"))
        }
    }

    fn write<M: SerializeMap>(&self, m: &mut M) -> Result<(), M::Error> {
        put(m, "source", &self.source())?;
        match self {
            Self::Local(meta) => meta.write(m),
            Self::Http(meta) => meta.write(m),
            Self::Mcp(meta) => meta.write(m),
        }
    }
}
crate::__record!(ResponseMeta);

fields!(LocalMeta {
    "operationId" => operation_id: required,
    "timestamp" => timestamp: number,
});

// Only the status is required, because an envelope's meta of `source` `http` needs nothing else
// ([`is_response_envelope`](crate::is_response_envelope)).
fields!(HttpMeta {
    "statusCode" => status_code: number,
    "headers" => headers: default,
    "contentType" => content_type: default,
    "event" => event: some,
    "setCookie" => set_cookie: filled,
    "retries" => retries: some_number,
} without secrets, own);

fields!(EventMeta {
    "type" => kind: default,
    "id" => id: default,
});

// The two required members of an envelope's meta may be absent here, as they may be in a server's answer.
fields!(McpMeta {
    "isError" => is_error: default,
    "content" => content: default,
    "structuredContent" => structured_content: any,
    "_meta" => meta: some,
} without secrets);

fields!(Warning {
    "pointer" => pointer: required,
    "expected" => expected: required,
    "found" => found: required,
});

/// The rest of an envelope beside its data, if reading the value loses no member.
pub(crate) fn read_whole(value: &Value) -> Option<(ResponseMeta, Vec<Warning>)> {
    let members = value.as_object()?;
    if !has_only(members, &["data", "meta", "warnings"]) {
        return None;
    }
    let meta: ResponseMeta = whole(members.get("meta")?, |meta| {
        let fields = match meta.get("source").and_then(Value::as_str) {
            Some("local") => LocalMeta::FIELDS,
            Some("http") => HttpMeta::FIELDS,
            _ => McpMeta::FIELDS,
        };
        let mut own = meta.iter().filter(|(name, _)| *name != "source");
        let event = meta.get("event").and_then(Value::as_object);
        own.all(|(name, _)| fields.contains(&name.as_str()))
            && event.is_none_or(|event| has_only(event, EventMeta::FIELDS))
    })?;
    let warnings = match members.get("warnings") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(warnings)) => {
            let read = |warning| whole(warning, |warning| has_only(warning, Warning::FIELDS));
            warnings.iter().map(read).collect::<Option<_>>()?
        }
        Some(_) => return None,
    };
    Some((meta, warnings))
}

fn has_only(members: &Map<String, Value>, names: &[&str]) -> bool {
    members.keys().all(|name| names.contains(&name.as_str()))
}

/// Reads an object whose members are all `known`, and that is written as it was read.
fn whole<T: DeserializeOwned + Serialize>(value: &Value, known: impl Fn(&Map<String, Value>) -> bool) -> Option<T> {
    if !known(value.as_object()?) {
        return None;
    }
    let read: T = crate::record::from_value(value).ok()?;
    let written = serde_json::to_value(&read).ok()?;
    is_kept(value, &written).then_some(read)
}

/// True if a value is part of what was written of it, which may have more defaults.
fn is_kept(value: &Value, written: &Value) -> bool {
    match (value, written) {
        // An absent member has its default.
        (Value::Null, _) => true,
        (Value::Number(a), Value::Number(b)) => a == b || (a.is_f64() || b.is_f64()) && a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_kept(a, b)),
        (Value::Object(a), Value::Object(b)) => a.iter().all(|(name, value)| match b.get(name) {
            Some(written) => is_kept(value, written),
            None => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
        }),
        (a, b) => a == b,
    }
}
