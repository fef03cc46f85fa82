//! Converts a result to a response: the inverse of the client's reading of responses.

use std::borrow::Cow;
use std::sync::OnceLock;

use axum::body::Body;
use bytes::Bytes;
use encoding_rs::{Encoding, UTF_8};
use futures_util::{StreamExt, stream};
use http::header::{CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, InvalidHeaderValue};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::accept::{Accept, ENVELOPE};
use super::limits::Taken;
use super::own_response;
use super::problem::Problem;
use super::status::{sendable, status_of};
use crate::model::body::measured::{Measured, asked};
use crate::model::media::{Form, JSON, Media, OCTETS, charset, essence, form, in_charset, is_range};
use crate::normalise::Validator;
use crate::run::redact;
use crate::{HttpBinding, HttpResponse, OperationSpec, Payload, ResponseEnvelope, ResponseMeta, Schema, StatusRange};

/// Validators that distinguish the successes of an operation, if there are several: compiled on first use.
#[derive(Default)]
pub(super) struct Variants(OnceLock<Vec<Option<Validator>>>);

impl Variants {
    /// True if data match the alternative of the output's `oneOf` at that position.
    fn is(&self, spec: &OperationSpec, variant: u16, data: &Value) -> bool {
        let variants = self.0.get_or_init(|| {
            let output = spec.output.to_value().map(Cow::into_owned).unwrap_or_default();
            let of = |schema: &Value| Schema::from(schema.clone()).self_contained(&spec.definitions).ok();
            let alternatives = output.get("oneOf").and_then(Value::as_array).into_iter().flatten();
            alternatives.map(|schema| of(schema).map(|schema| Validator::new(&schema))).collect()
        });
        variants.get(usize::from(variant)).and_then(Option::as_ref).is_none_or(|validator| validator.check(data))
    }
}

/// The response for a result: as its handler set it, as the binding describes it, or JSON.
///
/// # Errors
/// If the content type cannot represent the data.
pub(super) fn response(
    spec: &OperationSpec,
    binding: Option<(&HttpBinding, &Variants)>,
    accept: &Accept,
    in_envelope: bool,
    envelope: ResponseEnvelope<Payload>,
) -> Result<Response<Body>, Problem> {
    if in_envelope {
        let own = envelope.meta.as_own().cloned();
        let mut response = whole(envelope)?;
        if let Some(own) = own {
            own_response::add_headers(&spec.id, &own, false, response.headers_mut());
        }
        return Ok(response);
    }
    let Some(own) = envelope.meta.as_own().cloned() else {
        return unsuccessful(&envelope.meta).unwrap_or_else(|| described(spec, binding, accept, envelope));
    };
    let bound = binding.map(|(binding, _)| binding);
    let mut response = own_response::response(&spec.id, bound, &own, envelope.data)?;
    own_response::add_headers(&spec.id, &own, binding.is_some(), response.headers_mut());
    Ok(response)
}

/// The whole envelope as the response.
fn whole(envelope: ResponseEnvelope<Payload>) -> Result<Response<Body>, Problem> {
    let ResponseEnvelope { data, mut meta, warnings } = envelope;
    redact::meta(&mut meta);
    let mut envelope = ResponseEnvelope::new(data, meta);
    envelope.warnings = warnings;
    let text = serde_json::to_string(&envelope).map_err(|_| failed())?;
    Ok(respond(StatusCode::OK, ENVELOPE, text))
}

/// The response for a result from another process with a status that is no success: it has no data of the operation.
///
/// A function there may have set that status. Its headers are not known here, and a redirect needs them.
fn unsuccessful(meta: &ResponseMeta) -> Option<Result<Response<Body>, Problem>> {
    match meta.as_http()?.status_code {
        304 => Some(Ok(empty(StatusCode::NOT_MODIFIED))),
        status @ 300..600 => {
            let detail = format!("the operation failed: the process that runs it responded with the status {status}");
            Some(Err(Problem::new(StatusCode::BAD_GATEWAY, detail)))
        }
        _ => None,
    }
}

/// The response for a result without settings of its handler, or from another server.
fn described(
    spec: &OperationSpec,
    binding: Option<(&HttpBinding, &Variants)>,
    accept: &Accept,
    envelope: ResponseEnvelope<Payload>,
) -> Result<Response<Body>, Problem> {
    let ResponseEnvelope { data, meta, .. } = envelope;
    let data = match text(data) {
        // JSON text is sent unchanged.
        Ok(text) => match binding {
            None => return Ok(respond(StatusCode::OK, JSON, text)),
            Some((binding, _)) => match (as_text(binding, &meta), text) {
                (Some((status, described)), text) => return Ok(raw(status, described, text)),
                (None, text) => value(Payload::Json(text))?,
            },
        },
        Err(data) => value(data)?,
    };
    let Some((binding, variants)) = binding else {
        return Ok(respond(StatusCode::OK, JSON, data.to_string()));
    };
    let envelope = ResponseEnvelope::new(data, meta);
    // The status of another server's response counts.
    let said = envelope.meta.as_http().map(|meta| meta.status_code).filter(|status| status / 100 == 2);
    let described = match envelope.meta.as_http().filter(|_| said.is_some()) {
        Some(meta) => binding.response(meta.status_code, &meta.content_type),
        None => chosen(spec, binding, variants, accept, &envelope.data),
    };
    let by_range = described.map_or(200, |described| binding.first_status(described));
    let status = StatusCode::from_u16(said.unwrap_or(by_range)).unwrap_or(StatusCode::OK);
    match described {
        None => Ok(respond(status, JSON, envelope.data.to_string())),
        Some(described) => match envelope.data {
            // Bytes are held in base64, whatever their type.
            Value::String(text) if spec.gives_bytes([described]).contains(&true) => {
                let came = envelope.meta.as_http().map(|meta| meta.content_type.trim()).filter(|_| said.is_some());
                let own = described.content_type.as_deref().map(str::trim).filter(|kind| !kind.contains('*'));
                let kind = came.filter(|kind| !kind.is_empty()).or(own).filter(|kind| !kind.is_empty());
                Ok(respond(status, kind.unwrap_or(OCTETS), decoded(text)?))
            }
            data => written(status, described, data),
        },
    }
}

/// The bytes that a text holds in base64.
fn decoded(text: String) -> Result<Vec<u8>, Problem> {
    let body: crate::Body = serde_json::from_value(Value::String(text)).map_err(|_| failed())?;
    Ok(body.as_bytes().map(<[u8]>::to_vec).unwrap_or_default())
}

/// A result as a value.
pub(super) fn value(data: Payload) -> Result<Value, Problem> {
    match data {
        Payload::Value(value) => Ok(value),
        Payload::Raw(text) => serde_json::from_str(text.get()).map_err(|_| failed()),
        Payload::Json(text) => serde_json::from_slice(&text).map_err(|_| failed()),
        Payload::Body(body) => serde_json::to_value(body).map_err(|_| failed()),
    }
}

/// True if the responses are one JSON success.
fn is_json(response: &HttpResponse) -> bool {
    response.variant.is_none()
        && matches!(response.status, StatusRange::Exact(status) if status / 100 == 2)
        && response.content_type.as_deref().is_some_and(is_json_type)
}

/// True if a response of that type has JSON unchanged.
pub(super) fn is_json_type(kind: &str) -> bool {
    kind == JSON || form(kind) == Form::Json && !is_range(&essence(kind))
}

/// True if a response is bytes by its content type.
pub(super) fn is_bytes(response: &HttpResponse) -> bool {
    response.content_type.as_deref().is_some_and(|kind| !is_range(&essence(kind)) && form(kind) == Form::Bytes)
}

/// A result as text; the error is the result if it is not text.
pub(super) fn text(data: Payload) -> Result<Bytes, Payload> {
    match data {
        Payload::Raw(text) => Ok(String::from(Box::<str>::from(text)).into()),
        Payload::Json(text) => Ok(text),
        data => Err(data),
    }
}

/// The response for unchanged JSON text, with its status: the only one, or that of another server's response.
fn as_text<'a>(binding: &'a HttpBinding, meta: &ResponseMeta) -> Option<(u16, &'a HttpResponse)> {
    let Some(meta) = meta.as_http() else {
        let [only] = binding.responses.as_ref() else { return None };
        let StatusRange::Exact(status) = only.status else { return None };
        return is_json(only).then_some((status, only));
    };
    let described = binding.response(meta.status_code, &meta.content_type)?;
    (meta.status_code / 100 == 2 && is_json(described)).then_some((meta.status_code, described))
}

fn raw(status: u16, described: &HttpResponse, text: Bytes) -> Response<Body> {
    let content_type = described.content_type.as_deref().unwrap_or(JSON);
    respond(StatusCode::from_u16(status).unwrap_or(StatusCode::OK), content_type.trim(), text)
}

/// A response of bytes, which are read as the client accepts them; `permit` counts it as open.
///
/// A body that fails ends the connection, so that no client takes a part for the whole.
///
/// # Errors
/// If the body is a file that cannot be read, or a stream that states no bytes and has some.
pub(super) async fn bytes(
    spec: &OperationSpec,
    binding: Option<&HttpBinding>,
    meta: &ResponseMeta,
    body: crate::Body,
    permit: Taken,
) -> Result<Response<Body>, Problem> {
    if meta.as_own().is_none()
        && let Some(refused) = unsuccessful(meta)
    {
        return refused;
    }
    let unread = |error: std::io::Error| {
        tracing::error!(%error, "a body that is the result of an operation can't be read");
        failed()
    };
    let length = body.length().await.map_err(unread)?;
    let body = asked(body, length).await.map_err(unread)?;
    let own = meta.as_own();
    let said = own.or_else(|| meta.as_http().filter(|meta| meta.status_code / 100 == 2));
    let mut all = binding.into_iter().flat_map(|binding| binding.responses.iter());
    let by_type = all.clone().find(|response| response.status.is_success() && is_bytes(response));
    let described = by_type.or_else(|| all.find(|response| spec.gives_bytes([*response]).contains(&true)));
    let by_range = binding.zip(described).map_or(200, |(binding, described)| binding.first_status(described));
    let status = match said {
        Some(meta) => status_of(&spec.id, meta.status_code),
        None => sendable(by_range),
    };
    let status = status.unwrap_or(StatusCode::OK);
    let described =
        described.and_then(|described| described.content_type.as_deref()).filter(|kind| !kind.contains('*'));
    let described = described.map(str::trim).filter(|kind| !kind.is_empty());
    let told = own.map(|own| own.content_type.trim()).filter(|kind| !kind.is_empty());
    let content_type = body.content_type().or(told).or(described).unwrap_or(OCTETS).to_owned();
    let name = body.file_name().map(disposition);
    let pieces = stream::unfold((Measured::new(body, length), permit), |(mut pieces, permit)| async move {
        let piece = pieces.next().await?;
        if let Err(error) = &piece {
            tracing::error!(%error, "a response that is a stream of bytes broke off");
        }
        Some((piece, (pieces, permit)))
    });
    let mut response = respond(status, &content_type, Body::from_stream(pieces));
    if let Some(length) = length.filter(|_| !is_empty(status)) {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if let Some(Ok(name)) = name {
        response.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    if let Some(own) = own {
        own_response::add_headers(&spec.id, own, true, response.headers_mut());
    }
    Ok(response)
}

/// True if a browser might run a response: everything that is not known to be only data, such as a list of types, of
/// which browsers use the last.
pub(super) fn may_run(headers: &HeaderMap) -> bool {
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return false };
    // Most are JSON.
    content_type != JSON && !content_type.to_str().is_ok_and(is_data)
}

/// True if a browser treats that type only as data.
fn is_data(content_type: &str) -> bool {
    let essence = essence(content_type);
    let Some((kind, subtype)) = essence.split_once('/') else { return false };
    let is_plain = !content_type.contains(',') && !subtype.ends_with("xml");
    let is_known = match kind {
        "audio" | "font" | "image" | "video" => true,
        "text" => matches!(subtype, "plain" | "csv" | "event-stream" | "markdown"),
        "application" => {
            matches!(subtype, "json" | "octet-stream" | "pdf" | "x-ndjson" | "yaml" | "zip" | "gzip")
                || subtype.ends_with("+json")
        }
        _ => false,
    };
    is_plain && is_known
}

/// The header with the file name (RFC 6266).
fn disposition(name: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let escaped = utf8_percent_encode(name, NON_ALPHANUMERIC);
    HeaderValue::from_str(&format!("attachment; filename*=UTF-8''{escaped}"))
}

/// The success to be sent: of those that match the data, the one with the most accepted type.
fn chosen<'b>(
    spec: &OperationSpec,
    binding: &'b HttpBinding,
    variants: &Variants,
    accept: &Accept,
    data: &Value,
) -> Option<&'b HttpResponse> {
    let all = binding.responses.iter().filter(|response| response.status.is_success());
    let is_single = |response: &&HttpResponse| response.variant.is_none_or(|variant| variants.is(spec, variant, data));
    let fits = |response: &&HttpResponse| match response.content_type.as_deref() {
        None => data.is_null(),
        Some(kind) => Media::of(kind) != Media::Events && holds(kind, data),
    };
    let fitting: Vec<&HttpResponse> = all.clone().filter(|response| fits(response) && is_single(response)).collect();
    let weight = |response: &HttpResponse| {
        let json = response.content_type.as_deref().is_some_and(|kind| form(kind) == Form::Json);
        (response.content_type.as_deref().map_or(1_000, |kind| accept.weight(&essence(kind))), json)
    };
    // The first of the best.
    let best = fitting.iter().map(|response| weight(response)).max();
    let found = fitting.iter().find(|response| Some(weight(response)) == best).copied();
    let default = || binding.responses.iter().find(|response| response.status == StatusRange::Default);
    found.or_else(|| all.clone().next()).or_else(default)
}

/// True if a body of a type can represent data.
fn holds(content_type: &str, data: &Value) -> bool {
    let is_text = data.is_string() || is_range(&essence(content_type));
    match form(content_type) {
        Form::Json => true,
        Form::Text => is_text || data.is_number() || data.is_boolean(),
        Form::Bytes => is_text,
    }
}

pub(super) fn written(status: StatusCode, described: &HttpResponse, data: Value) -> Result<Response<Body>, Problem> {
    let Some(content_type) = described.content_type.as_deref().map(str::trim) else {
        return Ok(empty(status));
    };
    let own = essence(content_type);
    if is_range(&own) {
        return Ok(respond(status, JSON, data.to_string()));
    }
    match (form(&own), data) {
        (Form::Json, data) => Ok(respond(status, content_type, data.to_string())),
        (Form::Text, Value::String(text)) => Ok(of_text(status, content_type, text)),
        (Form::Text, data @ (Value::Number(_) | Value::Bool(_))) => Ok(respond(status, content_type, data.to_string())),
        (Form::Bytes, Value::String(text)) => {
            Ok(respond(status, if own.ends_with("/*") { OCTETS } else { content_type }, decoded(text)?))
        }
        // Data that the type cannot represent are sent as JSON, with the content type of JSON.
        (_, data) => Ok(respond(status, JSON, data.to_string())),
    }
}

/// A text response, in the described charset if that has all of its characters.
pub(super) fn of_text(status: StatusCode, content_type: &str, text: String) -> Response<Body> {
    let content_type = if essence(content_type) == "text/*" { "text/plain" } else { content_type };
    if charset(content_type).is_none() {
        let named = if text.is_ascii() { "" } else { "; charset=utf-8" };
        return respond(status, &format!("{content_type}{named}"), text);
    }
    match in_charset(content_type, &text) {
        Some(bytes) => respond(status, content_type, bytes),
        None => respond(status, &format!("{}; charset=utf-8", essence(content_type)), text),
    }
}

/// The result does not match the description of the operation.
fn failed() -> Problem {
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the operation failed: its result can't be written")
}

/// The content type, without a charset that is wrong for JSON.
fn as_written(content_type: &str) -> Cow<'_, str> {
    let is_foreign = |label: Cow<'_, str>| Encoding::for_label(label.as_bytes()) != Some(UTF_8);
    let is_json = form(content_type) == Form::Json;
    if is_json && charset(content_type).is_some_and(is_foreign) {
        essence(content_type).into()
    } else {
        content_type.into()
    }
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// True if a response with that status has no content, whatever the result (RFC 9110, sections 15.3.5, 15.3.6 and
/// 15.4.5).
fn is_empty(status: StatusCode) -> bool {
    matches!(status, StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED)
}

pub(super) fn respond(status: StatusCode, content_type: &str, body: impl Into<Body>) -> Response<Body> {
    if is_empty(status) {
        return empty(status);
    }
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    let value = if content_type == JSON {
        Ok(HeaderValue::from_static(JSON))
    } else {
        HeaderValue::from_str(&as_written(content_type))
    };
    if let Ok(value) = value {
        response.headers_mut().insert(CONTENT_TYPE, value);
    }
    response
}
