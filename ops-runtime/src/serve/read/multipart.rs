//! Multipart bodies read back: a part for each property of an object, or for each item of a list.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::stream;
use multer::{Constraints, Multipart, SizeLimit};
use percent_encoding::percent_decode_str;
use serde_json::{Map, Value};

use super::form::{below, styled};
use super::shape::{Shape, Types};
use super::style;
use super::text::{Escaping, Fault, Pair, Pairs};
use crate::model::media::{Form, form};
use crate::model::parameters::parameter;
use crate::{Body, HttpBody, HttpField};

/// How many parts a body may have.
const MAX_PARTS: usize = 10_000;

/// A part of a body.
struct Part {
    name: Option<String>,
    has_file_name: bool,
    content_type: Option<String>,
    bytes: Bytes,
}

/// The value of a multipart body.
///
/// # Errors
/// The faults of all parts, or the one of a body that can't be taken apart.
pub(super) async fn value(
    body: &HttpBody,
    shape: &Shape,
    content_type: &str,
    bytes: Bytes,
) -> Result<Value, Vec<Fault>> {
    let fault = |message| vec![Fault { pointer: body.pointer(), message }];
    let parts = parts(content_type, bytes).await.map_err(fault)?;
    let reader = Reader { body, shape };
    let is_object = shape.may_be(Types::OBJECT) || shape.types() == Types::NOTHING;
    if is_object && parts.iter().all(|part| part.name.is_some()) {
        return reader.object(parts).map(Value::Object);
    }
    reader.nameless(&parts).map_err(fault)
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
        let name = field.name().map(name);
        let has_file_name = field.file_name().is_some();
        let kind = field.headers().get(http::header::CONTENT_TYPE);
        let content_type = kind.and_then(|kind| kind.to_str().ok()).map(str::to_owned);
        let bytes = field.bytes().await.map_err(|error| format!("is not multipart: {error}"))?;
        parts.push(Part { name, has_file_name, content_type, bytes });
    }
}

/// A name without the escapes that browsers make (WHATWG HTML, section 4.10.21.8).
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
}

impl Reader<'_> {
    fn object(&self, parts: Vec<Part>) -> Result<Map<String, Value>, Vec<Fault>> {
        let at = self.body.pointer();
        let (mut members, mut faults) = (Map::new(), Vec::new());
        // Parts of a style of their own are read as the fields of a form are.
        let texts = parts.iter().filter_map(|part| {
            let value = String::from_utf8(part.bytes.to_vec()).ok()?;
            Some(Pair { name: part.name.clone()?, value, is_taken: false })
        });
        let mut pairs = Pairs { all: texts.collect(), escaping: Escaping::None };
        for field in self.body.fields.iter() {
            let Some(parameter) = styled(field) else { continue };
            let shape = self.shape.property(&field.name);
            let read = style::pairs(&parameter, &shape, &mut pairs).and_then(|value| match value {
                Some(value) => Ok(Some(value)),
                None => style::spread(&parameter, &shape, &mut pairs),
            });
            match read {
                Ok(value) => super::text::put(&mut members, &field.name, value),
                Err(message) => faults.push(below(&at, &field.name, message)),
            }
        }
        let styled: HashSet<&str> =
            pairs.all.iter().filter(|pair| pair.is_taken).map(|pair| pair.name.as_str()).collect();
        let mut groups: Vec<(&str, Vec<&Part>)> = Vec::new();
        let mut places: HashMap<&str, usize> = HashMap::new();
        for part in &parts {
            let Some(name) = part.name.as_deref().filter(|name| !styled.contains(name)) else { continue };
            let place = *places.entry(name).or_insert(groups.len());
            match groups.get_mut(place) {
                Some((_, own)) => own.push(part),
                None => groups.push((name, vec![part])),
            }
        }
        let (declared, others) = (self.shape.names(), self.shape.others());
        for (name, own) in groups {
            let field = self.body.fields.iter().find(|field| field.name == name);
            let read = match declared.binary_search(&name) {
                Ok(_) => several(&own, field, &self.shape.property(name)),
                Err(_) => several(&own, field, &others),
            };
            match read {
                Ok(value) => drop(members.insert(name.to_owned(), value)),
                Err(message) => faults.push(below(&at, name, message)),
            }
        }
        if faults.is_empty() { Ok(members) } else { Err(faults) }
    }

    /// A body that is itself the part, or the list of parts.
    fn nameless(&self, parts: &[Part]) -> Result<Value, String> {
        let field = match self.body.fields.as_ref() {
            [field] => Some(field),
            _ => None,
        };
        if self.shape.may_be(Types::ARRAY) {
            let item = self.shape.item();
            let items = parts.iter().map(|part| one(part, field, &item));
            return items.collect::<Result<_, _>>().map(Value::Array);
        }
        match parts {
            [part] => one(part, field, self.shape),
            _ => Err("is one part".to_owned()),
        }
    }
}

/// The parts of one name: a list if the schema allows one.
fn several(parts: &[&Part], field: Option<&HttpField>, shape: &Shape) -> Result<Value, String> {
    let single = shape.may_be(Types::SCALAR.or(Types::OBJECT)) || shape.types() == Types::NOTHING;
    match parts {
        [part] if single || !shape.may_be(Types::ARRAY) => one(part, field, shape),
        _ if shape.may_be(Types::ARRAY) || shape.types() == Types::NOTHING => {
            let item = shape.item();
            parts.iter().map(|part| one(part, field, &item)).collect::<Result<_, _>>().map(Value::Array)
        }
        _ => Err("is given more than once".to_owned()),
    }
}

fn one(part: &Part, field: Option<&HttpField>, shape: &Shape) -> Result<Value, String> {
    let described: Vec<&str> = field
        .and_then(|field| field.content_type.as_deref())
        .map_or_else(Vec::new, |types| types.split(',').map(str::trim).filter(|kind| !kind.is_empty()).collect());
    let is_json = described.iter().any(|kind| form(kind) == Form::Json);
    // A string stands for bytes by its content type, or by its schema.
    let is_bytes = !described.is_empty() && described.iter().all(|kind| form(kind) == Form::Bytes);
    if !is_json && (is_bytes || shape.is_binary()) {
        return base64(&part.bytes);
    }
    let says_json = part.content_type.as_deref().is_some_and(|kind| form(kind) == Form::Json);
    let may_be_json = is_json || shape.types() == Types::NOTHING || shape.may_be(Types::ARRAY.or(Types::OBJECT));
    if says_json && may_be_json {
        return serde_json::from_slice(&part.bytes).map_err(|error| format!("is not JSON: {error}"));
    }
    match std::str::from_utf8(&part.bytes) {
        Ok(text) => Ok(shape.scalar(text.to_owned())),
        // A file where text was expected: validation tells if it may be one.
        Err(_) if part.has_file_name => base64(&part.bytes),
        Err(_) => Err("is not UTF-8".to_owned()),
    }
}

/// Bytes as the JSON of a body holds them.
pub(super) fn base64(bytes: &Bytes) -> Result<Value, String> {
    serde_json::to_value(Body::from(bytes.clone())).map_err(|error| error.to_string())
}
