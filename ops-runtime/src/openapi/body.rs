//! Request bodies: what they hold, and which content types they can have.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::Node;
use super::media::{Content, Side, is_range};
use super::parameter::described;
use super::reader::{Names, Reader};
use super::version::Version;
use crate::media::{Media, essence};
use crate::{HttpBody, HttpField};

/// A request body.
pub(super) struct Body {
    pub(super) bodies: Vec<HttpBody>,
    pub(super) schema: Value,
    pub(super) required: bool,
    /// The schema of the property by which the caller chooses a content type; none if there is no choice.
    pub(super) choice: Option<Value>,
}

/// Why an operation cannot be bound, and where that stands.
pub(super) struct Unbound<'a> {
    pub(super) at: Node<'a>,
    pub(super) message: String,
}

impl<'a> Reader<'a> {
    /// The request body of an operation, if it has one.
    pub(super) fn body(&mut self, item: &Node<'a>, operation: &Node<'a>) -> Option<Body> {
        if self.version == Version::V20 {
            return self.swagger_body(item, operation);
        }
        let node = operation.get("requestBody")?;
        let node = self.resolve(&node, "the request body")?;
        let contents = self.contents(&node);
        if contents.is_empty() {
            self.warn(&node, "a request body without content", "it was left out");
            return None;
        }
        Some(self.body_of(&node, &contents))
    }

    /// A body in one or several content types, the preferred one first.
    pub(super) fn body_of(&mut self, node: &Node<'a>, contents: &[Content<'a>]) -> Body {
        let mut bodies = Vec::new();
        let mut found: Vec<(&Content<'a>, Value)> = Vec::new();
        for content in contents {
            let mut body = HttpBody::new("");
            body.content_type = content.content_type.to_owned().into();
            if matches!(content.media, Media::Form | Media::Multipart) {
                body.fields = self.fields(content).into();
            }
            bodies.push(body);
            found.push((content, self.content_schema(content, Side::Request)));
        }
        let choice = choice(&found);
        let mut alternatives = Alternatives::default();
        for (content, schema) in found {
            alternatives.add(content.media.title(), schema);
        }
        let schema = alternatives.finish().unwrap_or(Value::Bool(true));
        Body { bodies, schema: described(schema, node), required: node.is("required"), choice }
    }

    /// The schema of a body of some content type; of a stream, of all of it.
    pub(super) fn content_schema(&mut self, content: &Content<'a>, side: Side) -> Value {
        match (content.media, side) {
            (Media::Json, _) | (Media::Form, Side::Request) => {
                content.node.get("schema").map_or(Value::Bool(true), |node| self.schema(&node))
            }
            (Media::Multipart, Side::Request) => self.multipart(content),
            (Media::Text | Media::Form | Media::Events | Media::Lines | Media::Sequence, _) => {
                json!({ "type": "string" })
            }
            (Media::Bytes | Media::Other | Media::Multipart, _) => bytes(),
        }
    }

    /// The schema of a multipart body: an object with a property for each part, or a list of parts.
    fn multipart(&mut self, content: &Content<'a>) -> Value {
        let Some(node) = content.node.get("schema") else {
            return match content.node.get("itemSchema") {
                Some(item) => json!({ "type": "array", "items": self.schema(&item) }),
                None => json!({ "type": "object" }),
            };
        };
        let schema = self.schema(&node);
        let Ok(resolved) = self.documents.resolve(node) else { return schema };
        // From 3.1 on a part of which nothing is said is a file (section 4.8.15).
        let files: Vec<&str> = resolved
            .get("properties")
            .iter()
            .flat_map(Node::members)
            .filter(|(_, part)| self.version >= Version::V31 && says_nothing(part.value))
            .map(|(name, _)| name)
            .collect();
        if files.is_empty() {
            return schema;
        }
        let mut schema = self.schema(&resolved);
        let properties = schema.get_mut("properties").and_then(Value::as_object_mut);
        for part in properties.into_iter().flatten().filter(|(name, _)| files.contains(&name.as_str())) {
            let description = part.1.get("description").cloned();
            *part.1 = bytes();
            if let (Some(part), Some(text)) = (part.1.as_object_mut(), description) {
                part.insert("description".into(), text);
            }
        }
        schema
    }

    /// The fields of a form, or the parts of a multipart body, that say how they are written.
    fn fields(&mut self, content: &Content<'a>) -> Vec<HttpField> {
        let mut fields = Vec::new();
        for (name, encoding) in self.map(&content.node, "encoding") {
            let field = self.field(name, &encoding);
            if encoding.get("headers").is_some_and(|headers| headers.value.as_object().is_some_and(|h| !h.is_empty())) {
                self.note(&encoding, format!("the part `{name}` has headers of its own"), "they are not sent");
            }
            fields.extend(Some(field).filter(|field| field.content_type.is_some() || field.style.is_some()));
        }
        for key in ["prefixEncoding", "itemEncoding"] {
            if let Some(node) = content.node.get(key) {
                self.note(&node, format!("`{key}` is not followed"), "parts without a name are written as by default");
            }
        }
        let schema = content.node.get("schema").and_then(|node| self.documents.resolve(node).ok());
        let parts = schema.as_ref().and_then(|schema| schema.get("properties"));
        let encoded: BTreeMap<String, usize> =
            fields.iter().enumerate().map(|(at, field)| (field.name.clone().into_owned(), at)).collect();
        for (name, part) in parts.iter().flat_map(Node::members).filter(|_| content.media == Media::Multipart) {
            let part = self.documents.resolve(part.clone()).unwrap_or(part);
            let described = part.text("contentMediaType").filter(|_| part.get("contentEncoding").is_none());
            let Some(media_type) = described else { continue };
            if let Some(field) = encoded.get(name).and_then(|at| fields.get_mut(*at)) {
                field.content_type.get_or_insert_with(|| media_type.to_owned().into());
                continue;
            }
            let mut field = HttpField::new("");
            field.name = name.to_owned().into();
            field.content_type = Some(media_type.to_owned().into());
            fields.push(field);
        }
        fields
    }
}

/// The schema of bytes.
pub(super) fn bytes() -> Value {
    json!({ "type": "string", "format": "binary" })
}

/// Whether a schema accepts any value; it may have a description.
fn says_nothing(schema: &Value) -> bool {
    match schema {
        Value::Bool(accepts) => *accepts,
        Value::Object(schema) => schema.keys().all(|key| {
            matches!(key.as_str(), "title" | "description" | "example" | "examples" | "deprecated")
                || key.starts_with("x-")
        }),
        _ => false,
    }
}

/// The schema of the property by which a caller chooses a content type.
fn choice(found: &[(&Content<'_>, Value)]) -> Option<Value> {
    let mut names: Vec<&str> = Vec::new();
    for (content, schema) in found {
        // A range beside a type of its kind, and a type with other parameters, offer nothing new.
        let is_told = found.iter().any(|(other, like)| {
            is_range(content.content_type)
                && !is_range(other.content_type)
                && other.media == content.media
                && like == schema
        });
        let is_twice = names.iter().any(|name| essence(name) == essence(content.content_type));
        if !is_told && !is_twice {
            names.push(content.content_type);
        }
    }
    let is_open = names.iter().any(|name| is_range(name) && Media::of(name) != Media::Json);
    if names.len() < 2 && !is_open {
        return None;
    }
    let mut schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
    schema.insert("description".into(), "The content type of the body.".into());
    if !is_open {
        schema.insert("enum".into(), names.iter().copied().collect());
    }
    if let Some(preferred) = names.iter().find(|name| !is_range(name)).filter(|name| names.first() == Some(name)) {
        schema.insert("default".into(), (*preferred).into());
    }
    Some(Value::Object(schema))
}

/// Schemas of which a value follows one, each under a title.
#[derive(Default)]
pub(super) struct Alternatives {
    list: Vec<(String, Value)>,
    titles: Names,
}

impl Alternatives {
    /// Adds a schema, unless it is there already; gives its position.
    pub(super) fn add(&mut self, title: &str, schema: Value) -> usize {
        if let Some(at) = self.list.iter().position(|(_, known)| *known == schema) {
            return at;
        }
        let title = self.titles.allot(title);
        self.list.push((title, schema));
        self.list.len() - 1
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.list.len()
    }

    /// Whether none says more than that there is nothing.
    pub(super) fn are_empty(&self) -> bool {
        self.list.iter().all(|(_, schema)| *schema == null())
    }

    /// The schema that accepts what any of these accepts; none of none. Of several, each has its title.
    pub(super) fn finish(mut self) -> Option<Value> {
        if self.list.len() < 2 {
            return self.list.pop().map(|(_, schema)| schema);
        }
        let titled = |(title, schema): (String, Value)| match schema {
            Value::Object(schema) => {
                let mut titled = Map::from_iter([("title".to_owned(), Value::String(title))]);
                titled.extend(schema.into_iter().filter(|(key, _)| key != "title"));
                Value::Object(titled)
            }
            Value::Bool(true) => json!({ "title": title }),
            other => other,
        };
        Some(json!({ "oneOf": self.list.into_iter().map(titled).collect::<Vec<_>>() }))
    }
}

/// The schema of nothing.
pub(super) fn null() -> Value {
    json!({ "type": "null" })
}
