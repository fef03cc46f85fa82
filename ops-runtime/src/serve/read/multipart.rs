//! Reads multipart bodies: a part for each property of an object, or for each item of a list.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use futures_util::stream;
use multer::{Constraints, Multipart, SizeLimit};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::form::{below, styled};
use super::room::Room;
use super::shape::{Shape, Types};
use super::style::{Read, TWICE};
use super::text::{Escaping, Fault, Pair, Pairs, Unread, nodes, nodes_of_json};
use crate::model::media::{Form, charset, form, is_utf8};
use crate::model::parameters::{file_name, parameter};
use crate::{Bodies, Body, HttpBody, HttpField};

/// How many parts a body may have.
const MAX_PARTS: usize = 10_000;

/// A part of a body.
struct Part {
    name: Option<String>,
    /// The file name; empty if the part is marked as a file without a name.
    file_name: Option<String>,
    content_type: Option<String>,
    bytes: Bytes,
}

/// The value of a multipart body.
///
/// # Errors
/// The errors of all parts, or that of a malformed body; or if there is no room for its values.
pub(super) async fn value(
    body: &HttpBody,
    shape: &Shape,
    content_type: &str,
    bytes: Bytes,
    room: &mut Room<'_>,
) -> Result<Value, Unread> {
    let fault = |message| vec![Fault { pointer: body.pointer(), message }];
    let parts = parts(content_type, bytes).await.map_err(fault)?;
    let mut reader = Reader { body, shape, files: &mut room.files };
    if !(room.hold)(parts.iter().map(|part| reader.values(part)).sum()) {
        return Err(Unread::Full);
    }
    let is_object = shape.may_be(Types::OBJECT) || shape.types() == Types::NOTHING;
    if is_object && parts.iter().all(|part| part.name.is_some()) {
        return Ok(Value::Object(reader.object(&parts)?));
    }
    Ok(reader.nameless(&parts).map_err(fault)?)
}

async fn parts(content_type: &str, bytes: Bytes) -> Result<Vec<Part>, String> {
    let boundary = parameter(content_type, "boundary").ok_or("has no boundary")?;
    let limits = Constraints::new().size_limit(SizeLimit::new().whole_stream(bytes.len() as u64));
    let pieces = stream::once(async move { Ok::<_, std::io::Error>(bytes) });
    let mut multipart = Multipart::with_constraints(pieces, boundary.into_owned(), limits);
    let mut parts = Vec::new();
    loop {
        let field = multipart.next_field().await.map_err(|error| format!("is not multipart: {error}"))?;
        let Some(field) = field else { return Ok(parts) };
        if parts.len() >= MAX_PARTS {
            return Err(format!("has more than {MAX_PARTS} parts"));
        }
        let (name, file_name) = (field.name().map(name), field.file_name().map(name));
        let kind = field.headers().get(http::header::CONTENT_TYPE);
        let content_type = kind.and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let bytes = field.bytes().await.map_err(|error| format!("is not multipart: {error}"))?;
        parts.push(Part { name, file_name, content_type, bytes });
    }
}

impl Part {
    /// The text of the part, in the charset of its content type.
    fn text(&self) -> Result<Cow<'_, str>, String> {
        let label = self.content_type.as_deref().and_then(charset);
        let encoding = match &label {
            None => UTF_8,
            Some(label) => Encoding::for_label(label.as_bytes())
                .ok_or_else(|| format!("is of the charset `{}`, which is not known", label.escape_debug()))?,
        };
        if encoding == UTF_8 {
            return std::str::from_utf8(&self.bytes).map(Cow::Borrowed).map_err(|_| "is not UTF-8".to_owned());
        }
        let (text, _, is_broken) = encoding.decode(&self.bytes);
        if is_broken { Err(format!("is not {}", encoding.name())) } else { Ok(text) }
    }

    /// True if its text may become many values: if it may be JSON.
    fn may_be_many(&self) -> bool {
        let starts = matches!(self.bytes.trim_ascii_start().first(), Some(b'[' | b'{' | 0xEF));
        starts || !self.is_utf8()
    }

    fn is_utf8(&self) -> bool {
        self.content_type.as_deref().is_none_or(is_utf8)
    }

    /// How many values its text may become, if it is JSON.
    fn nodes(&self) -> usize {
        if self.is_utf8() { nodes_of_json(&self.bytes) } else { nodes(&self.bytes) }
    }
}

/// A name without the escapes of browsers (WHATWG HTML, section 4.10.21.8).
fn name(quoted: &str) -> String {
    let mut text = String::with_capacity(quoted.len());
    let mut rest = quoted;
    while let Some(at) = rest.find('%') {
        let (before, escape) = rest.split_at(at);
        text.push_str(before);
        let code = escape.get(..3).unwrap_or_default();
        let one = percent_decode_str(code).decode_utf8().ok().and_then(|decoded| decoded.chars().next());
        match one.filter(|c| code.len() == 3 && (*c == '"' || c.is_ascii_control())) {
            Some(c) => text.push(c),
            None => text.push_str(escape.get(..1).unwrap_or_default()),
        }
        let length = if one.is_some_and(|c| code.len() == 3 && (c == '"' || c.is_ascii_control())) { 3 } else { 1 };
        rest = escape.get(length..).unwrap_or_default();
    }
    text.push_str(rest);
    text
}

struct Reader<'a> {
    body: &'a HttpBody,
    shape: &'a Shape,
    /// The destination of files; `None` if they are JSON.
    files: &'a mut Option<Bodies>,
}

impl Reader<'_> {
    fn field(&self, name: &str) -> Option<&HttpField> {
        self.body.fields.iter().find(|field| field.name == name)
    }

    /// How many values a part may become.
    fn values(&self, part: &Part) -> usize {
        let name = part.name.as_deref().unwrap_or_default();
        let field = self.field(name);
        let has_style = field.is_some_and(|field| field.style.is_some());
        if has_style && !self.is_file(part) {
            return nodes(&part.bytes) + 1;
        }
        let is_many = part.may_be_many() && !is_bytes(field, &self.shape.property(name));
        if is_many { part.nodes() + 1 } else { 1 }
    }

    /// True if a part is a file, which is read unchanged, whatever the style of its field.
    fn is_file(&self, part: &Part) -> bool {
        let name = part.name.as_deref().unwrap_or_default();
        part.file_name.is_some() || is_bytes(self.field(name), &self.shape.property(name))
    }

    /// The text of a part; `None` if it is a file, or no text.
    fn text<'p>(&self, part: &'p Part) -> Option<Cow<'p, str>> {
        if self.is_file(part) { None } else { part.text().ok() }
    }

    fn object(&mut self, parts: &[Part]) -> Result<Map<String, Value>, Vec<Fault>> {
        let (body, shape, at) = (self.body, self.shape, self.body.pointer());
        let (mut members, mut faults) = (Map::new(), Vec::new());
        // Parts with a style are read like the fields of a form, unless one of the name is a file, or no text.
        let has_styles = body.fields.iter().any(|field| field.style.is_some());
        let whole = parts.iter().filter(|part| has_styles && self.text(part).is_none());
        let whole: HashSet<&str> = whole.filter_map(|part| part.name.as_deref()).collect();
        let texts = parts.iter().filter(|_| has_styles).filter_map(|part| {
            let name = part.name.as_deref().filter(|name| !whole.contains(name))?;
            Some(Pair { name: name.to_owned(), value: self.text(part)?.into_owned(), is_taken: false })
        });
        let mut pairs = Pairs { all: texts.collect(), escaping: Escaping::None };
        let (declared, others) = (shape.names(), shape.others());
        let mut put = |name: &str, read: Read<Option<Value>>| match read {
            // The parts of a value with a style may have other names, beside a file with this name.
            Ok(Some(_)) if members.contains_key(name) => faults.push(below(&at, name, TWICE)),
            Ok(value) => super::text::put(&mut members, name, value),
            Err(message) => faults.push(below(&at, name, message)),
        };
        let is_other = |own: &str, name: &str| name != own && declared.binary_search(&name).is_ok();
        styled(&body.fields, shape, &mut pairs, is_other, &mut put);
        let styled: HashSet<&str> =
            pairs.all.iter().filter(|pair| pair.is_taken).map(|pair| pair.name.as_str()).collect();
        let mut groups: Vec<(&str, Vec<&Part>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for part in parts {
            let Some(name) = part.name.as_deref().filter(|name| !styled.contains(name)) else { continue };
            let place = *places.entry(name).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, own)) => own.push(part),
                None => groups.push((name, vec![part])),
            }
        }
        for (name, own) in groups {
            let field = body.fields.iter().find(|field| field.name == name);
            let read = match declared.binary_search(&name) {
                Ok(_) => self.several(&own, field, &shape.property(name)),
                Err(_) => self.several(&own, field, &others),
            };
            put(name, read.map(Some));
        }
        if faults.is_empty() { Ok(members) } else { Err(faults) }
    }

    /// A body that is itself the part, or the list of parts.
    fn nameless(&mut self, parts: &[Part]) -> Result<Value, String> {
        let field = match self.body.fields.as_ref() {
            [field] => Some(field),
            _ => None,
        };
        if self.shape.may_be(Types::ARRAY) {
            let item = self.shape.item();
            let items = parts.iter().map(|part| self.one(part, field, &item));
            return items.collect::<Result<_, _>>().map(Value::Array);
        }
        match parts {
            [part] => self.one(part, field, self.shape),
            _ => Err("is one part".to_owned()),
        }
    }

    /// The parts with the same name: a list if the schema allows one.
    fn several(&mut self, parts: &[&Part], field: Option<&HttpField>, shape: &Shape) -> Result<Value, String> {
        let single = shape.may_be(Types::SCALAR.or(Types::OBJECT)) || shape.types() == Types::NOTHING;
        match parts {
            [part] if single || !shape.may_be(Types::ARRAY) => self.one(part, field, shape),
            _ if shape.may_be(Types::ARRAY) || shape.types() == Types::NOTHING => {
                let item = shape.item();
                parts.iter().map(|part| self.one(part, field, &item)).collect::<Result<_, _>>().map(Value::Array)
            }
            _ => Err(TWICE.to_owned()),
        }
    }

    fn one(&mut self, part: &Part, field: Option<&HttpField>, shape: &Shape) -> Result<Value, String> {
        if is_bytes(field, shape) {
            return self.file(part);
        }
        let says_json = part.content_type.as_deref().is_some_and(|kind| form(kind) == Form::Json);
        let may_be_json =
            is_json(field) || shape.types() == Types::NOTHING || shape.may_be(Types::ARRAY.or(Types::OBJECT));
        let text = match part.text() {
            Ok(text) => text,
            // A file instead of text: validation decides if it is allowed.
            Err(_) if part.file_name.is_some() => return base64(&part.bytes),
            Err(message) => return Err(message),
        };
        if says_json && may_be_json {
            let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
            return serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"));
        }
        Ok(shape.scalar(text.into_owned()))
    }

    /// A part of bytes with its metadata, or as JSON.
    fn file(&mut self, part: &Part) -> Result<Value, String> {
        let Some(files) = self.files else { return base64(&part.bytes) };
        let mut body = Body::from(part.bytes.clone());
        if let Some(content_type) = &part.content_type {
            body = body.with_content_type(content_type.as_str());
        }
        if let Some(name) = part.file_name.as_deref().and_then(file_name) {
            body = body.with_file_name(name);
        }
        Ok(Value::String(files.put(body)))
    }
}

/// The content types that are described for a part.
fn described(field: Option<&HttpField>) -> impl Iterator<Item = &str> {
    let types = field.and_then(|field| field.content_type.as_deref()).unwrap_or_default();
    types.split(',').map(str::trim).filter(|kind| !kind.is_empty())
}

fn is_json(field: Option<&HttpField>) -> bool {
    described(field).any(|kind| form(kind) == Form::Json)
}

/// True if a part is bytes: by its content type, or by its schema.
fn is_bytes(field: Option<&HttpField>, shape: &Shape) -> bool {
    let is_of_type = described(field).next().is_some() && described(field).all(|kind| form(kind) == Form::Bytes);
    !is_json(field) && (is_of_type || shape.is_binary())
}

/// Bytes in the JSON form of a body.
pub(super) fn base64(bytes: &Bytes) -> Result<Value, String> {
    serde_json::to_value(Body::from(bytes.clone())).map_err(|error| error.to_string())
}
