//! Request bodies: the content type that is chosen and the bytes that are sent.

mod choose;
mod multipart;
pub(super) mod schema;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::{Alphabet, STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value};

use super::media::{Form, charset, form, is_range};
use super::style::{Escape, plain};
use super::{RequestBody, invalid, pointer, style};
use crate::model::media::{FORM, JSON, Media, OCTETS, covers, essence, in_charset, is_utf8};
use crate::model::parameters::parameter;
use crate::{Bodies, Body, CallError, HttpBinding, HttpBody, OperationSpec, ParameterStyle};

/// Base64 with or without padding.
const BASE64: GeneralPurpose = base64(&STANDARD);

/// The same in the alphabet for URLs and file names (RFC 4648, section 5).
const BASE64_URL: GeneralPurpose = base64(&URL_SAFE);

const fn base64(alphabet: &Alphabet) -> GeneralPurpose {
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(alphabet, config)
}

/// An encoded body.
#[derive(Debug)]
pub(super) struct Encoded {
    pub(super) content_type: HeaderValue,
    pub(super) body: RequestBody,
}

/// An input as JSON, with the bodies that its placeholders stand for.
#[derive(Clone, Copy)]
pub(super) struct Input<'a> {
    pub(super) spec: &'a OperationSpec,
    pub(super) members: &'a Map<String, Value>,
    pub(super) bodies: &'a Bodies,
}

impl Input<'_> {
    /// The body for a placeholder.
    fn body(&self, value: &Value) -> Option<&Body> {
        self.bodies.get(value)
    }

    /// A value of the input in which each body is JSON.
    ///
    /// # Errors
    /// A `VALIDATION_ERROR` with the place of a file or a stream in the input.
    pub(super) fn json<'v>(&self, value: &'v Value) -> Result<Cow<'v, Value>, CallError> {
        self.bodies.to_json_of(value, self.members)
    }

    /// True if it holds a value for a body.
    fn has(&self, body: &HttpBody) -> bool {
        self.members.get(body.property.as_ref()).is_some_and(|value| !value.is_null())
    }
}

/// Encodes the input's body in the content type that the input names, or else in the endpoint's first type that can
/// represent it and whose schema does not refuse it. A [`Body`] with a content type is sent with that type.
///
/// # Errors
/// If no content type can represent the body, if the endpoint does not accept the type that the input names or that of
/// a [`Body`], or if the input has several bodies.
pub(super) fn encode(binding: &HttpBinding, input: Input<'_>) -> Result<Option<Encoded>, CallError> {
    let mut set = binding.bodies.iter().filter(|body| input.has(body));
    if let Some(first) = set.next()
        && let Some(other) = set.find(|body| body.property != first.property)
    {
        let message = format!("a request has one body, and this one has `{}`, too", first.property);
        return Err(invalid(&other.pointer(), message));
    }
    if let Some(property) = binding.content_type.as_deref()
        && let Some(chosen) = input.members.get(property).filter(|value| !value.is_null())
    {
        return encode_as(binding, input, property, chosen);
    }
    let mut refused = None;
    let own = |body: &HttpBody| own_type(input.body(input.members.get(body.property.as_ref())?)?);
    let bodies = choose::by_value(input.spec, binding, input.members);
    // A body that knows its own type is sent with it.
    let fits = |body: &&HttpBody| own(body).is_some_and(|own| covers(&body.content_type, own));
    let (fitting, mut others): (Vec<_>, Vec<_>) = bodies.into_iter().partition(fits);
    // It is not sent as another type, except as bytes of any type.
    let named = |body: &HttpBody| own(body).filter(|own| !is_any_bytes(own));
    let is_other = |body: &&HttpBody| named(body).is_some() && takes_bytes(&essence(&body.content_type));
    if let Some(body) = others.iter().find(|body| is_other(body)) {
        let known = types(&binding.bodies);
        let message = format!("the endpoint takes no body of type `{}`, but {known}", named(body).unwrap_or_default());
        refused = Some(invalid(&body.pointer(), message));
        others.retain(|body| named(body).is_none() || matches!(essence(&body.content_type).as_str(), "" | OCTETS));
    }
    for body in fitting.into_iter().chain(others) {
        let Some(value) = value(binding, body, input)? else { continue };
        match write(body, None, &value, input) {
            Ok(Some(encoded)) => return Ok(Some(encoded)),
            Ok(None) => {}
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or(Ok(None), Err)
}

fn encode_as(
    binding: &HttpBinding,
    input: Input<'_>,
    property: &str,
    chosen: &Value,
) -> Result<Option<Encoded>, CallError> {
    let text = chosen.as_str().unwrap_or_default();
    let Some(body) = binding.body_as(text) else {
        let message = format!("the endpoint takes no body of that content type, but {}", types(&binding.bodies));
        return Err(invalid(&pointer(property), message));
    };
    let Some(value) = value(binding, body, input)? else {
        return match binding.bodies.iter().find(|other| input.has(other)) {
            Some(other) => Err(invalid(&other.pointer(), format!("`{}` is not sent as `{text}`", other.property))),
            None => Ok(None),
        };
    };
    write(body, Some(text), &value, input)
}

/// The content types of bodies, for a message.
fn types(bodies: &[HttpBody]) -> String {
    let types: Vec<_> = bodies.iter().map(|body| format!("`{}`", body.content_type)).collect();
    types.join(", ")
}

/// The content type that a body has of its own.
fn own_type(body: &Body) -> Option<&str> {
    body.content_type().filter(|own| !own.trim().is_empty())
}

/// True if a content type says only that a body is bytes, as in downloads and uploads whose sender does not know the
/// type: they may be of any type.
fn is_any_bytes(content_type: &str) -> bool {
    matches!(essence(content_type).as_str(), OCTETS | "binary/octet-stream")
}

/// True if a body of this type is sent unchanged, and not written from a value.
fn takes_bytes(essence: &str) -> bool {
    form(essence) != Form::Json && essence != FORM && !essence.starts_with("multipart/")
}

/// The value of a body: the input's, with the properties that the operation sets.
///
/// # Errors
/// If the input holds a property that the operation sets, or if properties must be set on a value that is no object.
fn value<'a>(binding: &HttpBinding, body: &HttpBody, input: Input<'a>) -> Result<Option<Cow<'a, Value>>, CallError> {
    let given = match body.is_rest() {
        true => binding.rest_of(input.members).map(|rest| Cow::Owned(Value::Object(rest))),
        false => input.members.get(body.property.as_ref()).map(Cow::Borrowed),
    };
    let members = given.as_deref().and_then(Value::as_object);
    for fixed in body.fixed.iter() {
        if members.is_some_and(|members| members.contains_key(fixed.name.as_ref())) {
            let does = match &fixed.value {
                Some(value) => format!("always sends `{}`", value.to_value()),
                None => "never sends it".to_owned(),
            };
            let message = format!("`{}` is not in the input of `{}`, which {does}", fixed.name, input.spec.id);
            return Err(invalid(&format!("{}{}", body.pointer(), pointer(&fixed.name)), message));
        }
    }
    let mut sent = body.fixed.iter().filter_map(|fixed| Some((&fixed.name, fixed.value.as_ref()?))).peekable();
    if sent.peek().is_none() {
        return Ok(given);
    }
    let mut members = match given.map(Cow::into_owned) {
        Some(Value::Object(members)) => members,
        None | Some(Value::Null) => Map::new(),
        Some(_) => return Err(invalid(&body.pointer(), "the body is not an object")),
    };
    members.extend(sent.map(|(name, value)| (name.clone().into_owned(), value.to_value())));
    Ok(Some(Cow::Owned(Value::Object(members))))
}

/// The header for a content type.
fn header(content_type: &str) -> Result<HeaderValue, CallError> {
    HeaderValue::from_str(content_type.trim())
        .map_err(|_| CallError::execution(format!("`{}` is no content type", content_type.escape_debug())))
}

/// Encodes a body in the content type that the input names, or else in the described one.
fn write(body: &HttpBody, named: Option<&str>, value: &Value, input: Input<'_>) -> Result<Option<Encoded>, CallError> {
    let content_type = named.unwrap_or(&body.content_type);
    let ready = |content_type: &str, body: RequestBody| Ok(Some(Encoded { content_type: header(content_type)?, body }));
    let essence = essence(content_type);
    // A range says nothing of how a body is written, so one of a type in that range is ready to be sent.
    let is_in_range = |given: &Body| essence.contains('*') && own_type(given).is_some_and(|own| covers(&essence, own));
    if let Some(given) = input.body(value).filter(|given| takes_bytes(&essence) || is_in_range(given)) {
        let is_open = essence.contains('*') || essence.is_empty();
        let own = own_type(given).filter(|own| is_open || (named.is_none() && covers(&essence, own)));
        let fallback = if is_open { OCTETS } else { content_type };
        return ready(own.unwrap_or(fallback), given.clone().into());
    }
    if is_range(&essence) {
        return ready(JSON, json(&*input.json(value)?));
    }
    let unfit = |expected: &str| {
        let message = format!("a body of type `{content_type}` is written from {expected}");
        invalid(&body.pointer(), message)
    };
    let concrete = concrete(&essence, value).map(|kind| with_parameters(kind, content_type));
    let content_type = concrete.as_deref().unwrap_or(content_type);
    let essence = crate::model::media::essence(content_type);
    let text = |text: &str| in_charset(content_type, text).ok_or_else(|| unfit("text of that charset"));
    if form(&essence) == Form::Json {
        let json = input.json(value)?.to_string();
        let json = if charset(content_type).is_some() { text(&json)? } else { json.into() };
        return ready(content_type, json.into());
    }
    if value.is_null() {
        return Ok(None);
    }
    if essence.starts_with("multipart/") {
        let multipart::Encoded { boundary, first, body } =
            multipart::encode(body, &essence, value, input)?.ok_or_else(|| unfit("an object or a list"))?;
        // A boundary in a document is ignored: the encoder chooses one.
        let own = |parameter: &&str| !parameter.is_empty() && !parameter.to_ascii_lowercase().starts_with("boundary=");
        let parameters = content_type.split(';').skip(1).map(str::trim).filter(own).map(|p| format!("; {p}"));
        let mut kind = format!("{essence}{}", parameters.collect::<String>());
        // It has to name the type of its first part (RFC 2387, section 3.1).
        if let Some(first) =
            first.filter(|_| essence == "multipart/related" && parameter(content_type, "type").is_none())
        {
            kind.push_str(&format!("; type=\"{}\"", crate::model::media::essence(&first)));
        }
        return ready(&format!("{kind}; boundary={boundary}"), body);
    }
    match (form(&essence), value) {
        (Form::Text, value) if Media::of(&essence).is_lines() && !value.is_string() => {
            let lines = lines(&*input.json(value)?, Media::of(&essence));
            ready(content_type, text(&lines)?.into())
        }
        _ if essence == FORM => {
            let value = input.json(value)?;
            let fields = value.as_object().ok_or_else(|| unfit("an object"))?;
            // Other characters are escaped as UTF-8, which the content type must not contradict.
            if !is_utf8(content_type) && !value.to_string().is_ascii() {
                return Err(unfit("an object of ASCII text"));
            }
            ready(content_type, Bytes::from(form_fields(input.spec, body, fields)?).into())
        }
        (Form::Text, Value::String(own)) => ready(&text_type(content_type, own), text(own)?.into()),
        (Form::Text, Value::Bool(_) | Value::Number(_)) => ready(content_type, text(&plain(value))?.into()),
        (Form::Text, _) => Err(unfit("a string")),
        (_, Value::String(text)) => {
            let bytes = BASE64.decode(text).map_err(|_| unfit("a string of base64"))?;
            ready(content_type, Bytes::from(bytes).into())
        }
        _ => Err(unfit("a string of base64")),
    }
}

/// Each item of a list on a line of its own; in a sequence (RFC 7464), after a separator.
fn lines(value: &Value, media: Media) -> String {
    let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
    let mut text = String::new();
    for item in items {
        if media == Media::Sequence {
            text.push('\u{1e}');
        }
        text.push_str(&item.to_string());
        text.push('\n');
    }
    text
}

fn json(value: &Value) -> RequestBody {
    Bytes::from(value.to_string()).into()
}

/// The type in which a value is sent where a range of types is described, which no message has (RFC 9110, section 8.3).
/// `None` if one type is described.
fn concrete(essence: &str, value: &Value) -> Option<&'static str> {
    if !essence.contains('*') {
        return None;
    }
    Some(match form(essence) {
        Form::Json => JSON,
        Form::Text if essence.ends_with("+xml") => "application/xml",
        Form::Text if essence.ends_with("+yaml") => "application/yaml",
        Form::Text => "text/plain",
        Form::Bytes if !essence.starts_with("multipart/") => OCTETS,
        Form::Bytes if value.is_array() => "multipart/mixed",
        Form::Bytes => "multipart/form-data",
    })
}

/// A type with the parameters of the range that it stands for.
fn with_parameters(kind: &str, range: &str) -> String {
    range.split_once(';').map_or_else(|| kind.to_owned(), |(_, parameters)| format!("{kind};{parameters}"))
}

/// Names the charset of text that needs one.
fn text_type<'a>(content_type: &'a str, text: &str) -> Cow<'a, str> {
    if text.is_ascii() || charset(content_type).is_some() {
        Cow::Borrowed(content_type)
    } else {
        Cow::Owned(format!("{content_type}; charset=utf-8"))
    }
}

fn form_fields(spec: &OperationSpec, body: &HttpBody, fields: &Map<String, Value>) -> Result<String, CallError> {
    let mut pairs = Vec::new();
    for (name, value) in fields {
        let mut parameter = style::form_field(name, value);
        if let Some(field) = body.fields.iter().find(|field| field.name == *name) {
            let json = field.content_type.as_deref().is_some_and(super::media::is_json);
            match field.style {
                Some((style, explode)) => (parameter.style, parameter.explode) = (style, explode),
                None if json && (value.is_object() || value.is_array()) => parameter.style = ParameterStyle::Json,
                None => {}
            }
            parameter.allow_reserved = field.allow_reserved;
        }
        let at = format!("{}{}", body.pointer(), pointer(name));
        style::refuse_torn(&parameter, value, &at, Escape::in_query(&parameter))?;
        let own = style::query(&parameter, value);
        if own.is_empty() && !value.is_null() {
            schema::refuse_replaced(spec, &body.property, name, value)?;
        }
        pairs.extend(own);
    }
    Ok(pairs.join("&"))
}
