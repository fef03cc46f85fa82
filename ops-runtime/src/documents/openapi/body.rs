//! Request bodies: their schemas and content types.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::document::Node;
use super::media::{Content, Side, is_range};
use super::parameter::described;
use super::reader::{Names, Reader};
use super::short::short;
use super::text::{MAX_VALUE, depth};
use super::version::Version;
use crate::model::keywords::says_nothing;
use crate::model::media::{Media, essence};
use crate::{HttpBody, HttpField};

/// The types of values that have no parts.
const SCALARS: [&str; 4] = ["integer", "number", "boolean", "string"];

/// How many schemas are looked at to find out if a part is bytes, and how deep.
const MAX_LOOKED_AT: usize = 1_000;
const MAX_NESTED: usize = 16;

/// A request body.
pub(super) struct Body {
    pub(super) bodies: Vec<HttpBody>,
    pub(super) schema: Value,
    /// The schema of each of the bodies.
    pub(super) schemas: Vec<Value>,
    pub(super) required: bool,
    /// Schema of the property that selects a content type; `None` if the operation has only one.
    pub(super) choice: Option<Value>,
}

/// Why an operation cannot be bound, and the place of the reason.
pub(super) struct Unbound<'a> {
    pub(super) at: Node<'a>,
    pub(super) message: String,
}

impl<'a> Reader<'a> {
    /// The request body of an operation, if it has one.
    pub(super) fn body(&mut self, items: &[Node<'a>], operation: &Node<'a>) -> Option<Body> {
        if self.version == Version::V20 {
            let body = self.swagger_body(items, operation);
            if body.is_some() || !self.has_newer(operation, "requestBody") {
                return body;
            }
        }
        let own = operation.get("requestBody")?;
        let node = self.resolve(&own, "the request body")?;
        let contents = self.contents(&node);
        if contents.is_empty() {
            self.warn(&node, "a request body without content", "it was left out");
            return None;
        }
        let mut body = self.body_of(&node, &contents);
        body.schema = self.described_beside(body.schema, &own);
        Some(body)
    }

    /// A body in one or several content types, the preferred one first.
    pub(super) fn body_of(&mut self, node: &Node<'a>, contents: &[Content<'a>]) -> Body {
        let mut bodies = Vec::new();
        let mut found: Vec<(&Content<'a>, Value)> = Vec::new();
        for content in contents {
            let mut body = HttpBody::owned(content.content_type.to_owned());
            if matches!(content.media, Media::Form | Media::Multipart) {
                body.fields = self.fields(content).into();
            }
            let schema = match self.nameless(content) {
                Some((schema, name)) => {
                    let of_it = |field: &&HttpField| field.name == name;
                    let field = body.fields.iter().find(of_it).cloned();
                    body.fields = vec![field.unwrap_or_else(|| HttpField::owned(name))].into();
                    schema
                }
                None => self.content_schema(content, Side::Request),
            };
            bodies.push(body);
            found.push((content, schema));
        }
        let choice = choice(&found);
        let schemas = found.iter().map(|(_, schema)| schema.clone()).collect();
        let mut alternatives = Alternatives::default();
        for (body, (content, schema)) in bodies.iter_mut().zip(found) {
            let is_text = schema.get("type").is_some_and(|kind| kind == "string");
            let title = if content.is_of_texts() && !is_text { "Lines" } else { content.media.title() };
            body.variant = u16::try_from(alternatives.add(title, schema)).ok();
        }
        if alternatives.len() < 2 {
            bodies.iter_mut().for_each(|body| body.variant = None);
        }
        let schema = alternatives.finish().unwrap_or(Value::Bool(true));
        Body { bodies, schema: described(schema, node), schemas, required: node.is("required"), choice }
    }

    /// The schema of a body of some content type; for a stream, of the whole stream.
    pub(super) fn content_schema(&mut self, content: &Content<'a>, side: Side) -> Value {
        let schema = match (content.media, side) {
            (Media::Json, _) => content.node.get("schema").map_or(Value::Bool(true), |node| self.part(&node)),
            (Media::Form, Side::Request) => self.form_schema(content),
            (Media::Multipart, Side::Request) => self.multipart(content),
            (Media::Lines | Media::Sequence, Side::Request) => self.lines(content),
            (Media::Text, _) => self.text(content),
            (Media::Form | Media::Events | Media::Lines | Media::Sequence, _) => {
                json!({ "type": "string" })
            }
            (Media::Bytes | Media::Other | Media::Multipart, _) => bytes(),
        };
        let example = if matches!(side, Side::Response) { self.example(content) } else { None };
        match (example, schema) {
            (Some(example), Value::Object(mut schema)) => {
                schema.insert("examples".to_owned(), json!([example]));
                Value::Object(schema)
            }
            (Some(example), Value::Bool(true)) => json!({ "examples": [example] }),
            (_, schema) => schema,
        }
    }

    /// The schema of text: of plain text, the string that is described; of other text, such as XML, the text is not the value.
    fn text(&mut self, content: &Content<'a>) -> Value {
        let node = content.node.get("schema").filter(|_| essence(content.content_type) == "text/plain");
        let found = node.as_ref().and_then(|node| self.documents.resolve(node.clone()).ok());
        let (Some(node), Some(found)) = (node, found) else { return json!({ "type": "string" }) };
        let has = |keys: &[&str]| keys.iter().any(|key| found.get(key).is_some());
        let is_text = found.text("type") == Some("string") && !has(&["contentEncoding", "contentMediaType"]);
        let is_bytes = matches!(found.text("format"), Some("binary" | "byte"));
        let says = has(&["const", "enum", "format", "maxLength", "minLength", "pattern"]);
        if is_text && says && !is_bytes { self.part(&node) } else { json!({ "type": "string" }) }
    }

    /// The first example of a body, if examples are kept. It goes before those of the schema.
    fn example(&mut self, content: &Content<'a>) -> Option<&'a Value> {
        if !self.examples {
            return None;
        }
        let of_several = || {
            let examples = content.node.get("examples")?;
            if self.version == Version::V20 {
                // By content type, and as they are.
                let own = examples.get(content.content_type).or_else(|| examples.get(&essence(content.content_type)));
                return own.map(|node| node.value);
            }
            examples.members().find_map(|(_, example)| {
                let Ok(found) = self.documents.resolve(example.clone()) else {
                    let message =
                        format!("`{}` is no example in this document", short(example.text("$ref").unwrap_or("")));
                    self.warn(&example, message, "it was left out: examples in other files are not read");
                    return None;
                };
                Some(found.get("value").or_else(|| found.get("dataValue"))?.value)
            })
        };
        let found = content.node.get("example").map(|node| node.value).or_else(of_several);
        found.filter(|value| depth(value) <= MAX_VALUE)
    }

    /// The schema of a body of JSON texts: a list of them, or text.
    ///
    /// It is text if its schema is a string, or if there is none. A list is the list of the texts. Any other schema is
    /// that of one text, except that a union is taken as it is.
    fn lines(&mut self, content: &Content<'a>) -> Value {
        let list = |items: Value| json!({ "type": "array", "items": items });
        if let Some(item) = content.node.get("itemSchema") {
            return list(self.part(&item));
        }
        let text = json!({ "type": "string" });
        let Some(node) = content.node.get("schema") else { return text };
        let resolved = self.documents.resolve(node.clone()).unwrap_or_else(|_| node.clone());
        if says_nothing(resolved.value) || is_of(&resolved, "string") {
            return text;
        }
        let schema = self.part(&node);
        if is_list(&resolved) || resolved.get("anyOf").is_some() || resolved.get("oneOf").is_some() {
            return schema;
        }
        self.note(&node, "the schema of a body of lines of JSON is not a list", "it was taken for that of one line");
        list(schema)
    }

    /// The schema of a form, which is an object: any, if the document does not describe one.
    fn form_schema(&mut self, content: &Content<'a>) -> Value {
        let Some(node) = content.node.get("schema") else { return any_object() };
        let found = self.documents.resolve(node.clone()).ok();
        let is_other = |found: &Node<'a>| is_list(found) || SCALARS.iter().any(|kind| is_of(found, kind));
        if found.as_ref().is_some_and(is_other) {
            self.warn(&node, "the schema of a form is not an object", "any object is accepted");
            return any_object();
        }
        // This also warns of a reference that leads nowhere.
        let schema = self.part(&node);
        self.object(&node, schema)
    }

    /// The schema of a form. If neither the form nor its reference describes one, it is any object, with the form's annotations.
    fn object(&self, node: &Node<'a>, schema: Value) -> Value {
        let mut own = match schema {
            Value::Object(own) => own,
            Value::Bool(true) => Map::new(),
            other => return other,
        };
        if self.leads_nowhere(node) {
            own.shift_remove("$ref");
        }
        let mut schema = Value::Object(own);
        if says_nothing(&schema)
            && let Some(own) = schema.as_object_mut()
        {
            own.insert("type".into(), "object".into());
        }
        schema
    }

    /// True if the reference of a schema leads to nothing, or to a schema that says nothing.
    fn leads_nowhere(&self, node: &Node<'a>) -> bool {
        let Some(reference) = node.text("$ref") else { return false };
        let Ok(found) = self.target(node, reference) else { return true };
        let found = self.meant(found);
        says_nothing(found.value) || found.text("$ref").is_some() && !self.adds_to_its_reference(&found)
    }

    /// The schema of a form in parts that is not an object, and the name of its part, or of its parts if it is a list.
    fn nameless(&mut self, content: &Content<'a>) -> Option<(Value, String)> {
        // A field of Swagger's forms is no body.
        if essence(content.content_type) != "multipart/form-data" || content.node.text("in") == Some("formData") {
            return None;
        }
        let list = |items: Value| json!({ "type": "array", "items": items });
        let node = content.node.get("schema");
        let resolved = node.clone().and_then(|node| self.documents.resolve(node).ok());
        let schema = match (&node, &resolved, content.node.get("itemSchema")) {
            (None, _, Some(item)) => list(self.file_or_schema(&item)),
            (None, _, None) => bytes(),
            (_, Some(found), _) if says_nothing(found.value) || self.is_file(found) => bytes(),
            (_, Some(found), _) if is_list(found) => match found.get("items") {
                Some(item) => list(self.file_or_schema(&item)),
                None => list(bytes()),
            },
            (Some(node), Some(found), _) if SCALARS.iter().any(|kind| is_of(found, kind)) => self.part(node),
            _ => return None,
        };
        // If one part is described, it is meant.
        let encoding = content.node.get("encoding");
        let mut described = encoding.iter().flat_map(Node::members).map(|(name, _)| name);
        let name = match (described.next(), described.next()) {
            (Some(name), None) => name,
            _ => "file",
        };
        let is_list = schema.get("items").is_some();
        let help = if is_list { "each item is a part called" } else { "it is one part, called" };
        let help = format!("{help} `{}`", short(name));
        self.note(&content.node, "the schema of a multipart form is not an object", help);
        Some((schema, name.to_owned()))
    }

    fn file_or_schema(&mut self, node: &Node<'a>) -> Value {
        let resolved = self.documents.resolve(node.clone()).unwrap_or_else(|_| node.clone());
        if says_nothing(resolved.value) || self.is_file(&resolved) { bytes() } else { self.part(node) }
    }

    /// True if a part without a name is a file: a plain string, or a class of a server's framework.
    fn is_file(&self, node: &Node<'a>) -> bool {
        if is_of(node, "string") {
            let is_plain = matches!(node.text("format"), None | Some("binary"));
            return is_plain && node.get("enum").is_none() && node.get("contentEncoding").is_none();
        }
        let has = |name: &str| node.get("properties").is_some_and(|own| own.get(name).is_some());
        has("originalFilename") || has("inputStream") && has("bytes")
    }

    /// The schema of a multipart body: an object with a property for each part, or a list of parts.
    fn multipart(&mut self, content: &Content<'a>) -> Value {
        let Some(node) = content.node.get("schema") else {
            return match content.node.get("itemSchema") {
                Some(item) => json!({ "type": "array", "items": self.part(&item) }),
                None => any_object(),
            };
        };
        let schema = self.part(&node);
        let Ok(resolved) = self.documents.resolve(node.clone()) else { return self.object(&node, schema) };
        // From 3.1 on, a part without a description is a file (section 4.8.15).
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

    /// The fields of a form, or the parts of a multipart body, that specify how they are written.
    fn fields(&mut self, content: &Content<'a>) -> Vec<HttpField> {
        let mut fields = Vec::new();
        for (name, encoding) in self.map(&content.node, "encoding") {
            let field = self.field(name, &encoding, content.media);
            if encoding.get("headers").is_some_and(|headers| headers.value.as_object().is_some_and(|h| !h.is_empty())) {
                self.note(&encoding, format!("the part `{}` has headers of its own", short(name)), "they are not sent");
            }
            fields.push(field);
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
            let is_undescribed = self.version >= Version::V31 && says_nothing(part.value);
            // Each item of a list is a part.
            let item = part.get("items").filter(|_| is_list(&part) && part.get("contentMediaType").is_none());
            let part = item.and_then(|item| self.documents.resolve(item).ok()).unwrap_or(part);
            let described = part.text("contentMediaType").filter(|_| part.get("contentEncoding").is_none());
            let is_file = is_undescribed || described.is_some() || self.holds_bytes(&part, &mut { MAX_LOOKED_AT }, 0);
            let mut own = encoded.get(name).and_then(|at| fields.get_mut(*at));
            if let Some(field) = own.as_mut().filter(|_| is_file) {
                // A file is the bytes of its part, whatever its style.
                field.style = None;
            }
            let Some(media_type) = described else { continue };
            if let Some(field) = own {
                field.content_type.get_or_insert_with(|| media_type.to_owned().into());
                continue;
            }
            let mut field = HttpField::owned(name.to_owned());
            field.content_type = Some(media_type.to_owned().into());
            fields.push(field);
        }
        fields.retain(|field| field.content_type.is_some() || field.style.is_some());
        fields
    }

    /// True if a schema is one of bytes, or of a list of them, by itself or by one that it is made of: the client writes such
    /// a part as a file.
    fn holds_bytes(&self, schema: &Node<'a>, left: &mut usize, depth: usize) -> bool {
        let Some(rest) = left.checked_sub(1).filter(|_| depth < MAX_NESTED) else { return false };
        *left = rest;
        let Ok(schema) = self.documents.resolve(schema.clone()) else { return false };
        let lists = ["allOf", "anyOf", "oneOf"].into_iter().filter_map(|key| schema.get(key));
        let parts: Vec<Node<'a>> = lists.flat_map(|list| list.items().collect::<Vec<_>>()).collect();
        schema.text("format") == Some("binary")
            || parts.iter().chain(&schema.get("items")).any(|part| self.holds_bytes(part, left, depth + 1))
    }
}

/// True if a schema is of a type, or of that and null.
fn is_of(node: &Node<'_>, kind: &str) -> bool {
    match node.value.get("type") {
        Some(Value::String(own)) => own == kind,
        Some(Value::Array(kinds)) => {
            kinds.iter().any(|own| own == kind) && kinds.iter().all(|own| own == kind || own == "null" || own.is_null())
        }
        _ => false,
    }
}

fn is_list(node: &Node<'_>) -> bool {
    is_of(node, "array") || node.value.get("type").is_none() && node.get("items").is_some()
}

/// The schema of bytes.
pub(super) fn bytes() -> Value {
    json!({ "type": "string", "format": "binary" })
}

/// The schema of a form that is not described.
fn any_object() -> Value {
    json!({ "type": "object" })
}

/// Schema of the property that selects a content type.
fn choice(found: &[(&Content<'_>, Value)]) -> Option<Value> {
    let mut names: Vec<&str> = Vec::new();
    for (content, schema) in found {
        // A range beside a type of its kind, and a type that differs in parameters only, are no further choices.
        let is_told = found.iter().any(|(other, like)| {
            is_range(content.content_type)
                && !is_range(other.content_type)
                && other.media == content.media
                && is_same_but_title(like, schema)
        });
        let is_twice = names.iter().any(|name| essence(name) == essence(content.content_type));
        if !is_told && !is_twice {
            names.push(content.content_type);
        }
    }
    // A range of JSON alone is sent as JSON.
    if names.len() < 2 && names.iter().all(|name| !is_range(name) || Media::of(name) == Media::Json) {
        return None;
    }
    let mut schema = Map::from_iter([("type".to_owned(), Value::from("string"))]);
    schema.insert("description".into(), "The content type of the body.".into());
    // A type in a range is a choice, too.
    if !names.iter().any(|name| is_range(name)) {
        schema.insert("enum".into(), names.iter().copied().collect());
    }
    if let Some(preferred) = names.iter().find(|name| !is_range(name)).filter(|name| names.first() == Some(name)) {
        schema.insert("default".into(), (*preferred).into());
    }
    Some(Value::Object(schema))
}

/// True if two schemas are the same apart from their titles, which other titles replace in alternatives.
fn is_same_but_title(one: &Value, other: &Value) -> bool {
    let (Value::Object(one), Value::Object(other)) = (one, other) else { return one == other };
    let count = |schema: &Map<String, Value>| schema.keys().filter(|key| *key != "title").count();
    count(one) == count(other)
        && one.iter().filter(|(key, _)| *key != "title").all(|(key, value)| other.get(key) == Some(value))
}

/// Schemas of which a value matches one, each under a title.
#[derive(Default)]
pub(super) struct Alternatives {
    list: Vec<(String, Value)>,
    titles: Names,
}

impl Alternatives {
    /// Adds a schema, unless it is there already; returns its position.
    pub(super) fn add(&mut self, title: &str, schema: Value) -> usize {
        if let Some(at) = self.list.iter().position(|(_, known)| is_same_but_title(known, &schema)) {
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

    /// True if all are the schema of nothing.
    pub(super) fn are_empty(&self) -> bool {
        self.list.iter().all(|(_, schema)| *schema == null())
    }

    /// The schema that accepts what any of these accepts; `None` if there are none. Each of several has its title.
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
