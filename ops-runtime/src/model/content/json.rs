//! The JSON of content blocks, which loses nothing.
//!
//! A block is read from a buffered object. Members that cannot be read stay in it and become the block's `extra`: an
//! optional member of a wrong type is kept there, too, and written back.

use serde_core::de::{Deserialize, Deserializer, Error};
use serde_core::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value};

use crate::record::put;
use crate::{Annotations, ContentBlock, EmbeddedResource, MediaContent, ResourceContent, ResourceLink, TextContent};

/// Reads a block from any value.
///
/// A required member that is absent or null becomes empty, a media type `application/octet-stream` or, for audio,
/// `audio/octet-stream`. An unreadable value, or one of an unknown kind, becomes a text block that holds its JSON.
impl From<Value> for ContentBlock {
    fn from(value: Value) -> Self {
        let block = match value {
            Value::Object(members) => known(members).map_err(Value::Object),
            other => Err(other),
        };
        block.unwrap_or_else(|unknown| Self::text(unknown.to_string()))
    }
}

impl<'de> Deserialize<'de> for ContentBlock {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Value::deserialize(d).map(Self::from)
    }
}

/// Reads a block of a known kind, or returns its members.
fn known(members: Map<String, Value>) -> Result<ContentBlock, Map<String, Value>> {
    let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
    let required: &[&str] = match kind {
        "text" => &["text"],
        "image" | "audio" => &["data", "mimeType"],
        "resource" if members.get("resource").is_some_and(is_resource) => &[],
        "resource_link" => &["uri", "name"],
        _ => return Err(members),
    };
    if !required.iter().all(|name| is_string(&members, name)) {
        return Err(members);
    }
    let kind = kind.to_owned();
    let mut members = Members::new(members);
    members.string("type");
    Ok(match kind.as_str() {
        "image" => ContentBlock::Image(media(members, "application/octet-stream")),
        "audio" => ContentBlock::Audio(media(members, "audio/octet-stream")),
        "resource" => ContentBlock::Resource(EmbeddedResource {
            resource: resource(members.object("resource").unwrap_or_default()),
            annotations: members.annotations(),
            extra: members.rest(),
        }),
        "resource_link" => ContentBlock::ResourceLink(ResourceLink {
            uri: members.string("uri").unwrap_or_default(),
            name: members.string("name").unwrap_or_default(),
            description: members.string("description"),
            mime_type: members.string("mimeType"),
            annotations: members.annotations(),
            extra: members.rest(),
        }),
        _ => ContentBlock::Text(TextContent {
            text: members.string("text").unwrap_or_default(),
            annotations: members.annotations(),
            extra: members.rest(),
        }),
    })
}

fn media(mut members: Members, unknown: &str) -> MediaContent {
    MediaContent {
        data: members.string("data").unwrap_or_default(),
        mime_type: members.string("mimeType").unwrap_or_else(|| unknown.to_owned()),
        annotations: members.annotations(),
        extra: members.rest(),
    }
}

fn resource(members: Map<String, Value>) -> ResourceContent {
    let mut members = Members::new(members);
    ResourceContent {
        uri: members.string("uri").unwrap_or_default(),
        mime_type: members.string("mimeType"),
        text: members.string("text"),
        blob: members.string("blob"),
        extra: members.rest(),
    }
}

fn annotations(members: Map<String, Value>) -> Annotations {
    let mut members = Members::new(members);
    Annotations {
        audience: members.take("audience", |value| match value {
            Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
            _ => None,
        }),
        priority: members.take("priority", |value| value.as_f64()),
        last_modified: members.string("lastModified"),
        extra: members.rest(),
    }
}

/// True if a required member can be read: it is a string, or absent.
fn is_string(members: &Map<String, Value>, name: &str) -> bool {
    members.get(name).is_none_or(|value| value.is_string() || value.is_null())
}

fn is_resource(value: &Value) -> bool {
    value.as_object().is_some_and(|members| is_string(members, "uri"))
}

/// The members of an object, to be taken one by one.
struct Members {
    left: Map<String, Value>,
    asked: Vec<&'static str>,
}

impl Members {
    fn new(members: Map<String, Value>) -> Self {
        Self { left: members, asked: Vec::new() }
    }

    /// Takes a member if `read` can read it; otherwise it stays.
    fn take<T>(&mut self, name: &'static str, read: impl FnOnce(&mut Value) -> Option<T>) -> Option<T> {
        self.asked.push(name);
        let member = self.left.get_mut(name)?;
        let read = read(member)?;
        // Not removed here: that would change the order of the rest.
        *member = Value::Null;
        Some(read)
    }

    fn string(&mut self, name: &'static str) -> Option<String> {
        self.take(name, |value| match value {
            Value::String(text) => Some(std::mem::take(text)),
            _ => None,
        })
    }

    fn object(&mut self, name: &'static str) -> Option<Map<String, Value>> {
        self.take(name, |value| value.as_object_mut().map(std::mem::take))
    }

    fn annotations(&mut self) -> Option<Annotations> {
        self.object("annotations").map(annotations)
    }

    /// The members that were not taken, without nulls in requested members.
    fn rest(mut self) -> Map<String, Value> {
        self.left.retain(|name, value| !value.is_null() || !self.asked.contains(&name.as_str()));
        self.left
    }
}

/// An object that is being written. It remembers the names, so that `extra` does not repeat one.
struct Writer<M> {
    map: M,
    written: Vec<&'static str>,
}

impl<M: SerializeMap> Writer<M> {
    fn put<V: Serialize>(&mut self, name: &'static str, value: V) -> Result<&mut Self, M::Error> {
        self.written.push(name);
        put(&mut self.map, name, &value)?;
        Ok(self)
    }

    fn put_some<V: Serialize>(&mut self, name: &'static str, value: &Option<V>) -> Result<&mut Self, M::Error> {
        match value {
            Some(value) => self.put(name, value),
            None => Ok(self),
        }
    }

    fn finish(mut self, extra: &Map<String, Value>) -> Result<M::Ok, M::Error> {
        for (name, value) in extra {
            if !self.written.contains(&name.as_str()) {
                self.map.serialize_entry(name, value)?;
            }
        }
        self.map.end()
    }
}

fn writer<S: Serializer>(s: S) -> Result<Writer<S::SerializeMap>, S::Error> {
    Ok(Writer { map: s.serialize_map(None)?, written: Vec::new() })
}

impl Serialize for ContentBlock {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut w = writer(s)?;
        let (annotations, extra) = match self {
            Self::Text(block) => {
                w.put("type", "text")?.put("text", &block.text)?;
                (&block.annotations, &block.extra)
            }
            Self::Image(block) => {
                w.put("type", "image")?.put("data", &block.data)?.put("mimeType", &block.mime_type)?;
                (&block.annotations, &block.extra)
            }
            Self::Audio(block) => {
                w.put("type", "audio")?.put("data", &block.data)?.put("mimeType", &block.mime_type)?;
                (&block.annotations, &block.extra)
            }
            Self::Resource(block) => {
                w.put("type", "resource")?.put("resource", &block.resource)?;
                (&block.annotations, &block.extra)
            }
            Self::ResourceLink(block) => {
                w.put("type", "resource_link")?.put("uri", &block.uri)?.put("name", &block.name)?;
                w.put_some("description", &block.description)?.put_some("mimeType", &block.mime_type)?;
                (&block.annotations, &block.extra)
            }
        };
        w.put_some("annotations", annotations)?;
        w.finish(extra)
    }
}

impl Serialize for ResourceContent {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut w = writer(s)?;
        w.put("uri", &self.uri)?.put_some("mimeType", &self.mime_type)?;
        w.put_some("text", &self.text)?.put_some("blob", &self.blob)?;
        w.finish(&self.extra)
    }
}

impl<'de> Deserialize<'de> for ResourceContent {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let members = Map::deserialize(d)?;
        if !is_string(&members, "uri") {
            return Err(D::Error::custom("the `uri` of a resource is a string"));
        }
        Ok(resource(members))
    }
}

impl Serialize for Annotations {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut w = writer(s)?;
        w.put_some("audience", &self.audience)?;
        match self.priority {
            // As JavaScript writes it, not `1.0`.
            Some(whole @ (0.0 | 1.0)) => w.put("priority", whole as u8)?,
            Some(priority) if priority.is_finite() => w.put("priority", priority)?,
            _ => &mut w,
        };
        w.put_some("lastModified", &self.last_modified)?;
        w.finish(&self.extra)
    }
}

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Map::deserialize(d).map(annotations)
    }
}
