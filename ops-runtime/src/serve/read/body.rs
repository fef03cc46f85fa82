//! Reads request bodies by their content type: the inverse of `http/body.rs`.

use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::{Map, Value};

use super::form;
use super::multipart::{self, base64};
use super::room::Room;
use super::shape::{Shape, Types};
use super::text::{Fault, Unread};
use crate::model::media::{self, FORM, Form, Media, OCTETS, charset, covers, essence, is_range, is_utf8};
use crate::{HttpBinding, HttpBody};

/// The byte order mark in UTF-8, which readers skip (RFC 8259, section 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// A body that was read.
pub(super) struct Taken<'b> {
    pub(super) body: &'b HttpBody,
    pub(super) content_type: String,
    pub(super) value: Value,
}

/// The content of a body.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Bytes(Bytes),
    /// The placeholder of a stream.
    Stream(String),
}

/// Reads the body of a request, if there is one.
pub(super) async fn read<'b>(
    binding: &'b HttpBinding,
    shapes: &[Shape],
    headers: &HeaderMap,
    content: Content,
    room: &mut Room<'_>,
) -> Result<Option<Taken<'b>>, Unread> {
    let came = headers.get(CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default().trim().to_owned());
    // Headers that some clients always send are ignored if no body is described and there is none.
    let is_nothing = came.is_none() || binding.bodies.is_empty();
    if is_nothing && matches!(&content, Content::Bytes(bytes) if bytes.is_empty()) {
        return Ok(None);
    }
    let content_type = came.unwrap_or_default();
    let Some((at, body)) = chosen(&binding.bodies, &content_type) else {
        let known: Vec<_> = binding.bodies.iter().map(|body| body.content_type.as_ref()).collect();
        return Err(Unread::Type(match known.as_slice() {
            [] => "the operation takes no body".to_owned(),
            known => format!("the operation takes a body of type {}", known.join(" or ")),
        }));
    };
    let nothing = Shape::default();
    let shape = shapes.get(at).unwrap_or(&nothing);
    let value = match content {
        Content::Bytes(bytes) => value(body, shape, &content_type, bytes, room).await?,
        Content::Stream(placeholder) => Value::String(placeholder),
    };
    Ok(Some(Taken { body, content_type, value }))
}

/// The content type of a request whose body is bytes as a whole, so that it may be a stream.
pub(super) fn streams<'h>(binding: &HttpBinding, shapes: &[Shape], headers: &'h HeaderMap) -> Option<&'h str> {
    let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?.trim();
    if content_type == "application/json" {
        return None;
    }
    let (at, body) = chosen(&binding.bodies, content_type)?;
    let own = essence(content_type);
    let is_bytes = own != FORM && !own.starts_with("multipart/") && media::form(&own) == Form::Bytes;
    let is_whole = !body.is_rest() && shapes.get(at).is_some_and(|shape| shape.may_be(Types::STRING));
    (is_bytes && is_whole).then_some(content_type)
}

/// The described body for a content type: the exact one, with its parameters, or else one that covers it.
fn chosen<'b>(bodies: &'b [HttpBody], content_type: &str) -> Option<(usize, &'b HttpBody)> {
    let find = |fits: &dyn Fn(&HttpBody) -> bool| bodies.iter().enumerate().find(|(_, body)| fits(body));
    let same = find(&|body| body.content_type.trim().eq_ignore_ascii_case(content_type));
    let same = same.or_else(|| find(&|body| essence(&body.content_type) == essence(content_type)));
    let same = same.or_else(|| find(&|body| covers(&body.content_type, content_type)));
    // Clients send bytes of an unknown kind as `application/octet-stream`, whichever kinds are allowed.
    same.or_else(|| {
        let is_bytes = essence(content_type) == OCTETS;
        find(&|body| {
            is_bytes && (essence(&body.content_type).ends_with("/*") || is_range(&essence(&body.content_type)))
        })
    })
}

async fn value(
    body: &HttpBody,
    shape: &Shape,
    content_type: &str,
    bytes: Bytes,
    room: &mut Room<'_>,
) -> Result<Value, Unread> {
    let own = essence(content_type);
    if own == FORM {
        let text = text(content_type, &bytes)?;
        return Ok(Value::Object(form::object(&text, &body.fields, shape, &body.pointer())?));
    }
    if own.starts_with("multipart/") {
        return multipart::value(body, shape, content_type, bytes, room).await;
    }
    // A range has no form; the actual type has.
    match media::form(&own) {
        Form::Json => json(content_type, &bytes),
        Form::Text if Media::of(&own).is_lines() && shape.may_be(Types::ARRAY) => lines(content_type, &bytes),
        Form::Text => Ok(shape.scalar(text(content_type, &bytes)?)),
        Form::Bytes => base64(&bytes).map_err(Unread::Text),
    }
}

/// JSON text in UTF-8 without a byte order mark, for any charset.
pub(super) fn json_text(content_type: &str, bytes: Bytes) -> Result<Bytes, Unread> {
    if !is_utf8(content_type) {
        return text(content_type, &bytes).map(Bytes::from);
    }
    Ok(if bytes.starts_with(BYTE_ORDER_MARK) { bytes.slice(BYTE_ORDER_MARK.len()..) } else { bytes })
}

fn json(content_type: &str, bytes: &[u8]) -> Result<Value, Unread> {
    let read = match is_utf8(content_type) {
        false => serde_json::from_str(&text(content_type, bytes)?),
        true => serde_json::from_slice(bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)),
    };
    read.map_err(|error| Unread::Text(format!("the body is not JSON: {error}")))
}

/// Each JSON text of a sequence: on a line of its own, or after a separator and on any number of lines (RFC 7464).
fn lines(content_type: &str, bytes: &[u8]) -> Result<Value, Unread> {
    let text = text(content_type, bytes)?;
    let separator = if text.contains('\u{1e}') { '\u{1e}' } else { '\n' };
    let texts = text.split(separator).map(str::trim).filter(|text| !text.is_empty());
    let items = texts.map(|text| {
        serde_json::from_str(text).map_err(|error| Unread::Text(format!("a line of the body is not JSON: {error}")))
    });
    items.collect::<Result<_, _>>().map(Value::Array)
}

/// The text of a body in its charset.
fn text(content_type: &str, bytes: &[u8]) -> Result<String, Unread> {
    let label = charset(content_type);
    let encoding = match &label {
        None => UTF_8,
        Some(label) => Encoding::for_label(label.as_bytes())
            .ok_or_else(|| Unread::Type(format!("the charset `{}` is not known", label.escape_debug())))?,
    };
    let (text, _, is_broken) = encoding.decode(bytes);
    if is_broken { Err(Unread::Text(format!("the body is not {}", encoding.name()))) } else { Ok(text.into_owned()) }
}

/// Removes the values that the operation itself sets from a body.
///
/// # Errors
/// If the body has other values: then the request is meant for another operation.
pub(super) fn without_fixed(body: &HttpBody, value: &mut Value) -> Result<(), Vec<Fault>> {
    let empty = Map::new();
    if body.fixed.is_empty() {
        return Ok(());
    }
    let members = value.as_object().unwrap_or(&empty);
    let mut faults = Vec::new();
    for fixed in body.fixed.iter() {
        let given = members.get(fixed.name.as_ref());
        let is_same = |wanted: &Value| given.is_some_and(|given| given == wanted || given == &text_of(wanted));
        match &fixed.value {
            Some(wanted) if !is_same(&wanted.to_value()) => {
                let message = format!("is always `{}`", wanted.to_value());
                faults.push(form::below(&body.pointer(), &fixed.name, message));
            }
            // A value that is left out by default may be switched off.
            None if given.is_some() && !is_same(&Value::Bool(false)) => {
                faults.push(form::below(&body.pointer(), &fixed.name, "is not part of this operation"));
            }
            _ => {}
        }
    }
    if let (true, Some(members)) = (faults.is_empty(), value.as_object_mut()) {
        members.retain(|name, _| !body.fixed.iter().any(|fixed| fixed.name == *name));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// A value in the form of a form field.
fn text_of(value: &Value) -> Value {
    Value::String(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}
