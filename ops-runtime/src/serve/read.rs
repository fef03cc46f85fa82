//! From a request to the input of an operation, by the binding with which the client writes requests.
//!
//! For each part of the client that writes a value there is one here that reads it back: `style` and `tree` for
//! parameters, `body`, `form` and `multipart` for bodies. A request has no types; the input's schema restores them
//! (`shape`).

mod body;
mod flat;
mod form;
mod left_out;
mod multipart;
mod room;
mod shape;
mod shared;
mod style;
mod text;
mod tree;
mod wrapped;

use std::borrow::Cow;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use memchr::{memchr, memmem};
use serde_json::{Map, Value};

use self::flat::Plan;
use self::shape::Shape;
use self::style::Read;
use self::text::{Pairs, Unread, put};
use super::pattern::{Pattern, canonical, cut};
use crate::model::binding::is_reserved_header;
use crate::model::binding::template::parameter;
use crate::model::media::essence;
use crate::{HttpBinding, HttpBody, HttpParameter, OperationSpec, ParameterLocation, SecurityKind, SecurityScheme};

pub(super) use self::body::Content;
pub(super) use self::left_out::left_out;
pub(super) use self::room::Room;
pub(super) use self::text::{Escaping, Fault, nodes, nodes_of_json};
pub(super) use self::wrapped::wrapped;

/// The reason why a request is not an input of an operation.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// Parameters that show that another operation is meant, which may take the body.
    OtherParameters(Vec<Fault>),
    /// The content type of the body is not accepted.
    Type(String),
    /// The body cannot be read at all.
    Body(String),
    /// Values in the body that show that another operation is meant.
    OtherBody(Vec<Fault>),
    /// Unreadable parts of the request, and the members that could be read.
    Faults(Vec<Fault>, Map<String, Value>),
    /// There is no room for the values in a body.
    Full,
}

/// The shapes of an operation's input, made once: of the whole, and of its bodies in the order of the binding.
pub(super) struct Shapes {
    input: Shape,
    bodies: Vec<Shape>,
    /// The plan for reading the parameters as text, if possible.
    plan: Option<Plan>,
    /// The properties that are empty if a request has nothing of them.
    left_out: Vec<(String, Value)>,
}

impl Shapes {
    /// The shapes of an operation whose path has parameters of these names.
    pub(super) fn new(spec: &OperationSpec, binding: &HttpBinding, names: &[String]) -> Self {
        let input = Shape::of_input(spec);
        shared::tell_shared(spec, binding, &input);
        let rest = |body: &HttpBody| {
            let input = spec.input.to_value().ok()?;
            Some(Shape::of_value(&binding.schema_of_body(body, &input)?, &spec.definitions))
        };
        let of_body = |body: &HttpBody| match body.is_rest() {
            true => rest(body).unwrap_or_default(),
            // A property may be an integer in one content type, and a text in another.
            false => input.property(&body.property).alternative(body.variant),
        };
        let bodies = binding.bodies.iter().map(of_body).collect();
        let plan = Plan::of(binding, &input, names);
        let left_out = left_out::of(spec, binding, &input);
        Self { input, bodies, plan, left_out }
    }

    fn of(&self, parameter: &HttpParameter) -> Shape {
        self.input.property(&parameter.property)
    }
}

/// A request for an operation, matched by its path.
pub(super) struct Request<'a> {
    pub(super) binding: &'a HttpBinding,
    pub(super) shapes: &'a Shapes,
    /// The names of the parameters in the path, and their texts.
    pub(super) names: &'a [String],
    pub(super) path: &'a [Cow<'a, str>],
    /// The pairs of the query in the template: those that every request has, and those with parameters.
    pub(super) fixed: &'a [String],
    pub(super) query: &'a [Pattern],
    /// The schemes of the server's authenticator.
    pub(super) schemes: &'a [SecurityScheme],
    pub(super) parts: &'a Parts,
}

impl Request<'_> {
    /// The content type of a body that is bytes as a whole, so that it may be a stream.
    pub(super) fn streams(&self) -> Option<&str> {
        body::streams(self.binding, &self.shapes.bodies, &self.parts.headers)
    }
}

/// The input in a request.
///
/// # Errors
/// The unreadable parts, and the reasons.
pub(super) async fn input(
    request: &Request<'_>,
    content: Content,
    room: &mut Room<'_>,
) -> Result<Map<String, Value>, Refused> {
    let Request { binding, shapes, parts, .. } = *request;
    let mut reading = Reading::of(request);
    if !reading.others.is_empty() {
        return Err(Refused::OtherParameters(reading.others));
    }
    let taken = body::read(binding, &shapes.bodies, &parts.headers, content, room).await;
    match taken {
        Ok(None) => {}
        Ok(Some(mut taken)) => {
            let property = taken.body.property.as_ref();
            match body::without_fixed(taken.body, &mut taken.value) {
                Err(faults) => return Err(Refused::OtherBody(faults)),
                Ok(()) if taken.body.is_rest() => reading.rest(binding, std::mem::take(&mut taken.value)),
                Ok(()) => {
                    let is_empty = taken.value.as_object().is_some_and(Map::is_empty);
                    // A body with only fixed values of the operation is not part of the input.
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
        Err(Unread::Full) => return Err(Refused::Full),
        Err(Unread::Faults(faults)) => reading.faults.extend(faults),
    }
    if reading.faults.is_empty() { Ok(reading.members) } else { Err(Refused::Faults(reading.faults, reading.members)) }
}

/// The longest body that is read as text, since it is searched for the names of parameters.
const MAX_TEXT: usize = 64 << 10;

/// The input as JSON text, so that a type can be read from it directly: the parameters if they are scalars, and a body
/// that is the rest of the input.
///
/// `None` if a part of the request is anything else, or cannot be read. Parameters come before the members of the body.
/// The body's text is not parsed here: if it is not an object, reading the whole text fails.
pub(super) fn text(request: &Request<'_>, body: &Bytes) -> Option<Bytes> {
    let Request { binding, shapes, names, path, fixed, query, parts, .. } = *request;
    let rest = match binding.bodies.as_ref() {
        [] if body.is_empty() => None,
        [described] => Some(rest(described, parts, body)?),
        _ => return None,
    };
    if binding.content_type.is_some() || !fixed.is_empty() || !query.is_empty() {
        return None;
    }
    if rest.is_some() && binding.parameters.is_empty() && names.is_empty() {
        return Some(body.clone());
    }
    let plan = shapes.plan.as_ref()?;
    if let Some(rest) = rest {
        // An escaped name may be one of them, too.
        let has = |name: &str| memmem::find(rest, name.as_bytes()).is_some();
        let is_empty = rest.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
        if memchr(b'\\', rest).is_some() || plan.names().any(has) || is_empty {
            return None;
        }
    }
    let mut text = plan.write(path, parts)?;
    match rest {
        None => text.push(b'}'),
        Some(_) if text.len() == 1 => return Some(body.clone()),
        Some(rest) => {
            text.push(b',');
            text.extend_from_slice(rest);
        }
    }
    Some(text.into())
}

/// The text after the first brace of a body that is the rest of the input as JSON.
fn rest<'b>(described: &HttpBody, parts: &Parts, body: &'b [u8]) -> Option<&'b [u8]> {
    let came = parts.headers.get(CONTENT_TYPE)?;
    let is_json = came == "application/json" && described.content_type == "application/json";
    let is_plain = described.is_rest() && described.fixed.is_empty() && body.len() <= MAX_TEXT;
    body.strip_prefix(b"{").filter(|_| is_json && is_plain)
}

/// JSON text in UTF-8 without a byte order mark, for any charset.
///
/// # Errors
/// If the charset is unknown, or the text is invalid in it.
pub(super) fn json_text(content_type: &str, bytes: Bytes) -> Result<Bytes, Refused> {
    body::json_text(content_type, bytes).map_err(|unread| match unread {
        Unread::Type(message) => Refused::Type(message),
        Unread::Text(message) => Refused::Body(message),
        Unread::Full => Refused::Full,
        Unread::Faults(faults) => Refused::Faults(faults, Map::new()),
    })
}

/// The content type of a body in the input: the described one, or the actual one for a range.
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
    /// Parameters that the operation itself would have set differently.
    others: Vec<Fault>,
}

impl Reading {
    /// The parts beside the body.
    fn of(request: &Request<'_>) -> Self {
        let mut reading = Self { members: Map::new(), faults: Vec::new(), others: Vec::new() };
        reading.path(request);
        reading.query(request);
        reading.headers(request);
        reading.cookies(request);
        for (name, empty) in &request.shapes.left_out {
            if !reading.members.contains_key(name) {
                reading.members.insert(name.clone(), empty.clone());
            }
        }
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
        for (name, text) in request.names.iter().zip(request.path) {
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
        let has_template = !request.fixed.is_empty() || !request.query.is_empty();
        let mut fixed: Vec<&String> = request.fixed.iter().filter(|pair| !is_value(request, pair, raw)).collect();
        let mut rest = Vec::new();
        let mut placed: Vec<String> = Vec::new();
        for pair in raw.split('&').filter(|_| has_template) {
            // The client writes such a pair once, beside those of the input.
            if let Some(at) = fixed.iter().position(|own| canonical(pair) == **own) {
                fixed.swap_remove(at);
                continue;
            }
            let Some((pattern, texts)) = in_template(request.query, pair) else {
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
        let raw = if has_template { Cow::Owned(rest.join("&")) } else { Cow::Borrowed(raw) };
        for parameter in here(ParameterLocation::QueryString) {
            let read = query_string(parameter, &request.shapes.of(parameter), &without_keys(request, &raw));
            self.put(parameter, read);
        }
        let mut pairs = match Pairs::split(&raw, Escaping::Form) {
            Ok(pairs) => pairs,
            Err(error) => {
                return self.faults.push(Fault { pointer: String::new(), message: format!("the query {error}") });
            }
        };
        let own: Vec<&HttpParameter> =
            here(ParameterLocation::Query).filter(|own| !placed.iter().any(|name| *name == own.name)).collect();
        self.pairs(request, &own, &mut pairs);
    }

    /// Reads parameters that are pairs: first those with a name, then those whose properties are pairs.
    fn pairs(&mut self, request: &Request<'_>, own: &[&HttpParameter], pairs: &mut Pairs) {
        let mut absent = Vec::new();
        for parameter in own {
            let shape = request.shapes.of(parameter);
            match style::pairs(parameter, &shape, pairs) {
                Ok(None) if parameter.fixed.is_none() => absent.push((*parameter, shape)),
                read => self.put(parameter, read),
            }
        }
        // Not that of the sender's API key, which is not part of the input.
        for name in keys(request, own.first().map(|own| own.location)) {
            pairs.take(name);
        }
        style::spread(absent, pairs, |_, _| false, |parameter, read| self.put(parameter, read));
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
        // Clients send such a name as it is, if a cookie can have it.
        let is_whole = |name: &str| own.iter().any(|own| own.allow_reserved && own.name == name);
        self.pairs(request, &own, &mut Pairs::cookies(&request.parts.headers, is_whole));
    }
}

/// The names of API keys in a part of a request: for the server, or for the API of the operation.
fn keys<'a>(request: &Request<'a>, place: Option<ParameterLocation>) -> impl Iterator<Item = &'a str> {
    let of_api = request.binding.security.iter().flat_map(|way| way.schemes.iter());
    request.schemes.iter().chain(of_api).filter_map(move |scheme| match &scheme.kind {
        SecurityKind::ApiKey { location, name } if Some(*location) == place => Some(name.as_ref()),
        _ => None,
    })
}

/// A query without the sender's API key, which is not part of the input.
fn without_keys<'r>(request: &Request<'_>, raw: &'r str) -> Cow<'r, str> {
    let names: Vec<&str> = keys(request, Some(ParameterLocation::Query)).collect();
    if names.is_empty() {
        return Cow::Borrowed(raw);
    }
    let is_key = |pair: &&str| name(pair).is_some_and(|name| names.contains(&&*name));
    Cow::Owned(raw.split('&').filter(|pair| !is_key(pair)).collect::<Vec<_>>().join("&"))
}

/// True if a pair of the template is also the value of a parameter that no request may lack. Our client writes both, but a
/// caller who follows the document writes one pair.
fn is_value(request: &Request<'_>, pair: &str, raw: &str) -> bool {
    let own = name(pair);
    let is_demanded = |parameter: &HttpParameter| {
        let is_required = parameter.fixed.is_some() || request.shapes.input.requires(&parameter.property);
        parameter.location == ParameterLocation::Query && own.as_deref() == Some(&*parameter.name) && is_required
    };
    request.binding.parameters.iter().any(is_demanded) && raw.split('&').filter(|other| name(other) == own).count() == 1
}

/// The name of a pair of the query; `None` if it is not UTF-8.
fn name(pair: &str) -> Option<String> {
    Escaping::Form.undo(cut(pair, b'=').0).ok()
}

/// The pair of a template that matches a pair of a query, with the texts of its parameters.
fn in_template<'r, 'p>(template: &'r [Pattern], pair: &'p str) -> Option<(&'r Pattern, Vec<Cow<'p, str>>)> {
    let (pair, mut texts) = (canonical(pair), Vec::new());
    let found = template.iter().find(|pattern| pattern.texts(pair.clone(), &mut texts))?;
    Some((found, texts))
}

/// True if a value is one that the operation sets; types are not compared, since the value has no schema.
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

/// The text of a parameter in a query, if present.
///
/// # Errors
/// If it is not UTF-8, or present twice.
pub(super) fn parameter_text(query: &str, name: &str) -> Result<Option<String>, &'static str> {
    let mut pairs = Pairs::split(query, Escaping::Form)?;
    match pairs.take(name).as_slice() {
        [] => Ok(None),
        [text] => Escaping::Form.undo(text).map(Some),
        _ => Err("it is given more than once"),
    }
}

/// A part of a path, unescaped; `None` if it is not UTF-8.
pub(super) fn unescaped(text: &str) -> Option<String> {
    Escaping::Percent.undo(text).ok()
}

/// The input of a call without one.
pub(super) fn nothing(spec: &OperationSpec) -> Value {
    let shape = Shape::of_input(spec);
    let is_object = shape.may_be(shape::Types::OBJECT) || shape.types() == shape::Types::NOTHING;
    if is_object { Value::Object(Map::new()) } else { Value::Null }
}
