//! From a request to the input of an operation, by the binding that the client writes requests by.
//!
//! For each part of the client that places a value there is one here that reads it back: `style` and `tree` for
//! parameters, `body`, `form` and `multipart` for bodies. A request has no types; the input's schema restores them
//! (`shape`).

mod body;
mod form;
mod multipart;
mod shape;
mod style;
mod text;
mod tree;

use std::borrow::Cow;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, COOKIE};
use http::request::Parts;
use memchr::{memchr, memmem};
use serde_json::{Map, Value};

use self::body::Unread;
use self::shape::Shape;
use self::style::Read;
use self::text::{Pairs, put};
use super::pattern::Pattern;
use crate::model::binding::is_reserved_header;
use crate::model::binding::template::parameter;
use crate::model::media::essence;
use crate::{HttpBinding, HttpBody, HttpParameter, OperationSpec, ParameterLocation};

pub(super) use self::body::Content;
pub(super) use self::text::{Escaping, Fault};

/// Why a request is no input of an operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// A body of this content type is not taken.
    Type(String),
    /// The body can't be read at all.
    Body(String),
    /// Values that say that another operation is meant.
    Other(Vec<Fault>),
    /// Parts of the request that can't be read, beside those that can.
    Faults(Vec<Fault>, Map<String, Value>),
}

/// The shapes of an operation's input, made once: of the whole, and of its bodies in the order of the binding.
pub(super) struct Shapes {
    input: Shape,
    bodies: Vec<Shape>,
}

impl Shapes {
    pub(super) fn new(spec: &OperationSpec, binding: &HttpBinding) -> Self {
        let input = Shape::of_input(spec);
        let rest = |body: &HttpBody| {
            let input = spec.input.to_value().ok()?;
            Some(Shape::of_value(&binding.schema_of_body(body, &input)?, &spec.definitions))
        };
        let of_body = |body: &HttpBody| match body.is_rest() {
            true => rest(body).unwrap_or_default(),
            false => input.property(&body.property),
        };
        let bodies = binding.bodies.iter().map(of_body).collect();
        Self { input, bodies }
    }

    fn of(&self, parameter: &HttpParameter) -> Shape {
        self.input.property(&parameter.property)
    }
}

/// A request for an operation, matched by its path.
pub(super) struct Request<'a> {
    pub(super) binding: &'a HttpBinding,
    pub(super) shapes: &'a Shapes,
    /// The texts in the path by the names of their parameters.
    pub(super) path: &'a [(String, String)],
    /// The pairs of the query that the template itself has.
    pub(super) query: &'a [Pattern],
    pub(super) parts: &'a Parts,
}

impl Request<'_> {
    /// The content type of a body that is bytes as a whole, so that it may be a stream.
    pub(super) fn streams(&self) -> Option<&str> {
        body::streams(self.binding, &self.shapes.bodies, &self.parts.headers)
    }
}

/// The input that a request holds.
///
/// # Errors
/// What can't be read, and what is wrong with it.
pub(super) async fn input(request: &Request<'_>, content: Content) -> Result<Map<String, Value>, Refused> {
    let Request { binding, shapes, parts, .. } = *request;
    let mut reading = Reading::of(request);
    let taken = body::read(binding, &shapes.bodies, &parts.headers, content).await;
    match taken {
        Ok(None) => {}
        Ok(Some(mut taken)) => {
            let property = taken.body.property.as_ref();
            match body::without_fixed(taken.body, &mut taken.value) {
                Err(faults) => reading.others.extend(faults),
                Ok(()) if taken.body.is_rest() => reading.rest(binding, std::mem::take(&mut taken.value)),
                Ok(()) => {
                    let is_empty = taken.value.as_object().is_some_and(Map::is_empty);
                    // A body that only says what the operation itself sets is none of the input.
                    if !is_empty || taken.body.fixed.is_empty() || shapes.input.requires(property) {
                        reading.members.insert(property.to_owned(), taken.value);
                    }
                }
            }
            if let Some(choice) = binding.content_type.as_deref() {
                reading.members.insert(choice.to_owned(), Value::String(named(taken.body, &taken.content_type)));
            }
        }
        Err(Unread::Type(message)) => return Err(Refused::Type(message)),
        Err(Unread::Text(message)) => return Err(Refused::Body(message)),
        Err(Unread::Faults(faults)) => reading.faults.extend(faults),
    }
    if !reading.others.is_empty() {
        return Err(Refused::Other(reading.others));
    }
    if reading.faults.is_empty() { Ok(reading.members) } else { Err(Refused::Faults(reading.faults, reading.members)) }
}

/// The longest body that is read as text, for it is searched for the names of parameters.
const MAX_TEXT: usize = 64 << 10;

/// The input as JSON text, if its body is the text of the rest, so that a type can be read from it at once.
///
/// `None` if the body is anything else, or if a parameter can't be read. Parameters come before the members of the body. The
/// body's text is not parsed here: if it is no object, reading the whole text fails.
pub(super) fn text(request: &Request<'_>, body: &Bytes) -> Option<Bytes> {
    let is_plain = |body: &HttpBody| body.is_rest() && body.fixed.is_empty();
    let [described] = request.binding.bodies.as_ref() else { return None };
    let came = request.parts.headers.get(CONTENT_TYPE)?;
    let is_json = came == "application/json" && described.content_type == "application/json";
    if !is_json || body.len() > MAX_TEXT || !is_plain(described) || request.binding.content_type.is_some() {
        return None;
    }
    let rest = body.strip_prefix(b"{")?;
    if request.binding.parameters.is_empty() && request.path.is_empty() {
        return Some(body.clone());
    }
    let reading = Reading::of(request);
    let mut names = request.binding.parameters.iter().map(|parameter| parameter.property.as_bytes());
    // A name that is escaped may be one of them, too.
    let may_repeat = memchr(b'\\', rest).is_some() || names.any(|name| memmem::find(rest, name).is_some());
    let is_empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    if may_repeat || is_empty || !reading.faults.is_empty() || !reading.others.is_empty() {
        return None;
    }
    if reading.members.is_empty() {
        return Some(body.clone());
    }
    let mut text = serde_json::to_vec(&reading.members).ok()?;
    text.pop();
    text.push(b',');
    text.extend_from_slice(rest);
    Some(text.into())
}

/// The content type of a body as a caller of the client would name it: as it is described, or as it came for a range.
fn named(body: &HttpBody, came: &str) -> String {
    let described = essence(&body.content_type);
    if !described.ends_with('*') && !described.is_empty() {
        return body.content_type.clone().into_owned();
    }
    let parts = came.split(';').map(str::trim);
    let parts = parts.filter(|part| !part.to_ascii_lowercase().starts_with("boundary="));
    parts.collect::<Vec<_>>().join("; ")
}

struct Reading {
    members: Map<String, Value>,
    faults: Vec<Fault>,
    /// Values that the operation itself would have set otherwise.
    others: Vec<Fault>,
}

impl Reading {
    /// What stands beside the body.
    fn of(request: &Request<'_>) -> Self {
        let mut reading = Self { members: Map::new(), faults: Vec::new(), others: Vec::new() };
        reading.path(request);
        reading.query(request);
        reading.headers(request);
        reading.cookies(request);
        reading
    }

    fn put(&mut self, parameter: &HttpParameter, read: Read<Option<Value>>) {
        match (read, &parameter.fixed) {
            (Ok(value), None) => put(&mut self.members, &parameter.property, value),
            (Ok(Some(value)), Some(fixed)) if value_is(&value, &fixed.to_value()) => {}
            (_, Some(fixed)) => {
                self.others.push(Fault::of(&parameter.property, format!("is always `{}`", fixed.to_value())));
            }
            (Err(message), None) => self.faults.push(Fault::of(&parameter.property, message)),
        }
    }

    /// Adds the members of a body that is the rest of the input to those of the parameters.
    fn rest(&mut self, binding: &HttpBinding, body: Value) {
        let Value::Object(members) = body else {
            let message = "the body is not an object".to_owned();
            return self.faults.push(Fault { pointer: String::new(), message });
        };
        for (name, value) in members {
            if binding.places(&name) {
                self.faults.push(Fault::of(&name, "is not in the body, but in another part of the request"));
            } else {
                self.members.insert(name, value);
            }
        }
    }

    fn path(&mut self, request: &Request<'_>) {
        for (name, text) in request.path {
            let parameter = parameter(request.binding, name, false);
            let read = style::path(&parameter, &request.shapes.of(&parameter), text);
            self.put(&parameter, read.map(Some));
        }
    }

    fn query(&mut self, request: &Request<'_>) {
        let binding = request.binding;
        let here = |location| binding.parameters.iter().filter(move |parameter| parameter.location == location);
        let raw = request.parts.uri.query().unwrap_or_default();
        if raw.is_empty() && !binding.parameters.iter().any(|parameter| parameter.fixed.is_some()) {
            return;
        }
        let template = |pair: &str| request.query.iter().find_map(|pattern| pattern.texts(pair).map(|t| (pattern, t)));
        let mut rest = Vec::new();
        let mut placed: Vec<String> = Vec::new();
        for pair in raw.split('&').filter(|_| !request.query.is_empty()) {
            let Some((pattern, texts)) = template(pair) else {
                rest.push(pair);
                continue;
            };
            for (name, text) in pattern.names().iter().zip(texts) {
                let parameter = parameter(binding, name, true);
                let read = style::path(&parameter, &request.shapes.of(&parameter), &text);
                placed.push(name.clone());
                self.put(&parameter, read.map(Some));
            }
        }
        let raw = if request.query.is_empty() { Cow::Borrowed(raw) } else { Cow::Owned(rest.join("&")) };
        for parameter in here(ParameterLocation::QueryString) {
            let read = query_string(parameter, &request.shapes.of(parameter), &raw);
            self.put(parameter, read);
        }
        let mut pairs = match Pairs::split(&raw, '&', Escaping::Form) {
            Ok(pairs) => pairs,
            Err(error) => {
                return self.faults.push(Fault { pointer: String::new(), message: format!("the query {error}") });
            }
        };
        let own: Vec<&HttpParameter> =
            here(ParameterLocation::Query).filter(|own| !placed.iter().any(|name| *name == own.name)).collect();
        self.pairs(request, &own, &mut pairs);
    }

    /// Reads parameters that are pairs: first those that have a name, then those whose properties are pairs.
    fn pairs(&mut self, request: &Request<'_>, own: &[&HttpParameter], pairs: &mut Pairs) {
        let mut absent = Vec::new();
        for parameter in own {
            let shape = request.shapes.of(parameter);
            match style::pairs(parameter, &shape, pairs) {
                Ok(None) if parameter.fixed.is_none() => absent.push((parameter, shape)),
                read => self.put(parameter, read),
            }
        }
        for (parameter, shape) in absent {
            let read = style::spread(parameter, &shape, pairs);
            self.put(parameter, read);
        }
    }

    fn headers(&mut self, request: &Request<'_>) {
        let headers = &request.parts.headers;
        let own = request.binding.parameters.iter().filter(|own| own.location == ParameterLocation::Header);
        for parameter in own.filter(|own| !is_reserved_header(&own.name)) {
            let mut texts =
                headers.get_all(parameter.name.as_ref()).iter().map(|value| std::str::from_utf8(value.as_bytes()));
            let Some(first) = texts.next() else {
                if parameter.fixed.is_some() {
                    self.put(parameter, Ok(None));
                }
                continue;
            };
            let whole = first
                .map(str::to_owned)
                .and_then(|first| texts.try_fold(first, |whole, text| text.map(|text| format!("{whole},{text}"))));
            let read = whole
                .map_err(|_| "is not UTF-8".to_owned())
                .and_then(|text| style::header(parameter, &request.shapes.of(parameter), &text));
            self.put(parameter, read.map(Some));
        }
    }

    fn cookies(&mut self, request: &Request<'_>) {
        let own = request.binding.parameters.iter().filter(|own| own.location == ParameterLocation::Cookie);
        let own: Vec<&HttpParameter> = own.collect();
        if own.is_empty() {
            return;
        }
        let texts = request.parts.headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let text = texts.collect::<Vec<_>>().join("; ");
        match Pairs::split(&text, ';', Escaping::Percent) {
            Ok(mut pairs) => self.pairs(request, &own, &mut pairs),
            Err(error) => self.faults.push(Fault { pointer: String::new(), message: format!("a cookie {error}") }),
        }
    }
}

/// True if a value that was read is one that the operation sets; types do not count, for no schema has it.
fn value_is(read: &Value, fixed: &Value) -> bool {
    read == fixed || read.as_str().is_some_and(|text| text == fixed.as_str().map_or(fixed.to_string(), str::to_owned))
}

/// The value of a parameter that is the whole query.
fn query_string(parameter: &HttpParameter, shape: &Shape, raw: &str) -> Read<Option<Value>> {
    use shape::Types;
    if raw.is_empty() {
        return Ok(None);
    }
    let json = |raw: &str| {
        let text = Escaping::Percent.undo(raw)?;
        serde_json::from_str(&text).map_err(|error| format!("is not JSON: {error}"))
    };
    if parameter.style == crate::ParameterStyle::Json {
        return json(raw).map(Some);
    }
    if shape.may_be(Types::OBJECT) {
        let read = form::object(raw, &[], shape, "");
        let first = |faults: Vec<Fault>| faults.into_iter().next().map_or_else(String::new, |fault| fault.message);
        return read.map(|members| Some(Value::Object(members))).map_err(first);
    }
    if shape.types() == Types::NOTHING || shape.may_be(Types::STRING) {
        return Ok(Some(Value::String(raw.to_owned())));
    }
    json(raw).map(Some)
}

/// The text of a parameter in a query, if it is there.
///
/// # Errors
/// If it is not UTF-8, or there twice.
pub(super) fn parameter_text(query: &str, name: &str) -> Result<Option<String>, &'static str> {
    let mut pairs = Pairs::split(query, '&', Escaping::Form)?;
    match pairs.take(name).as_slice() {
        [] => Ok(None),
        [text] => Escaping::Form.undo(text).map(Some),
        _ => Err("it is given more than once"),
    }
}

/// A part of a path without its escapes; `None` if it is not UTF-8.
pub(super) fn unescaped(text: &str) -> Option<String> {
    Escaping::Percent.undo(text).ok()
}

/// The input of a call that says nothing.
pub(super) fn nothing(spec: &OperationSpec) -> Value {
    let shape = Shape::of_input(spec);
    let is_object = shape.may_be(shape::Types::OBJECT) || shape.types() == shape::Types::NOTHING;
    if is_object { Value::Object(Map::new()) } else { Value::Null }
}
