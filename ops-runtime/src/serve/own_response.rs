//! Responses that handlers make themselves, with their own status, headers and cookies.

use std::borrow::Cow;

use axum::body::Body;
use http::header::{
    CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, HeaderName, SET_COOKIE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use serde_json::Value;

use super::problem::Problem;
use super::response::{empty, is_json_type, respond, text, value, written};
use super::status::status_of;
use crate::model::media::{Form, JSON, Media, essence, form};
use crate::{HttpBinding, HttpMeta, HttpResponse, Payload, ResponseMeta, StatusRange};

/// Headers that the server itself sets, about the connection and the body.
const FRAMING: [HeaderName; 8] = [
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HeaderName::from_static("keep-alive"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The response with a handler's own status and content type.
///
/// # Errors
/// If the content type cannot represent the data.
pub(super) fn response(
    operation: &str,
    binding: Option<&HttpBinding>,
    own: &HttpMeta,
    data: Payload,
) -> Result<Response<Body>, Problem> {
    let status = status_of(operation, own.status_code).unwrap_or(StatusCode::OK);
    let code = status.as_u16();
    let kind = own.content_type.trim();
    let is_null = match &data {
        Payload::Value(value) => *value == Value::Null,
        data => data.text().is_some_and(|text| text == b"null"),
    };
    // For example a redirect. The `null` of a success is its data, unless the operation gives none.
    if is_null && kind.is_empty() && (!status.is_success() || binding.is_some_and(gives_nothing)) {
        return Ok(empty(status));
    }
    // By its id, an operation returns JSON, whatever the response at its own path is: bytes are base64 here.
    let Some(binding) = binding else {
        return Ok(match text(data) {
            Ok(text) => respond(status, JSON, text),
            Err(data) => respond(status, JSON, value(data)?.to_string()),
        });
    };
    let is_told = |response: &&HttpResponse| {
        kind.is_empty() || response.content_type.as_deref().is_some_and(|own| essence(own) == essence(kind))
    };
    let described = match binding.response(code, kind).filter(is_told) {
        // The default is for errors, if there is a success: what is a success has its form.
        None | Some(HttpResponse { status: StatusRange::Default, .. }) if kind.is_empty() && status.is_success() => {
            usual(binding)
        }
        described => described,
    };
    let described = described.map_or_else(
        || {
            // Data are not bytes, unless the operation describes them so.
            let kind = if kind.is_empty() || form(kind) == Form::Bytes { JSON } else { kind };
            Cow::Owned(HttpResponse::owned(StatusRange::Exact(code), kind.to_owned()))
        },
        Cow::Borrowed,
    );
    match (described.content_type.as_deref(), text(data)) {
        (Some(kind), Ok(text)) if is_json_type(kind) => Ok(respond(status, kind.trim(), text)),
        (_, Ok(text)) => written(status, &described, value(Payload::Json(text))?),
        (_, Err(data)) => written(status, &described, value(data)?),
    }
}

/// The success that has a body, for a status of which nothing is described.
fn usual(binding: &HttpBinding) -> Option<&HttpResponse> {
    let is_result = |kind: &str| Media::of(kind) != Media::Events;
    let has_body = |own: &&HttpResponse| own.content_type.as_deref().is_some_and(is_result);
    let mut all = binding.responses.iter().filter(has_body);
    let default = || binding.responses.iter().find(|own| own.status == StatusRange::Default);
    all.find(|own| own.status.is_success()).or_else(default)
}

/// True if all successes that a binding describes are without a body.
fn gives_nothing(binding: &HttpBinding) -> bool {
    let mut successes = binding.responses.iter().filter(|own| own.status.is_success()).peekable();
    successes.peek().is_some() && successes.all(|own| own.content_type.is_none())
}

/// Gives an answer the status that its handler has set; 0 if it has set none.
pub(super) fn set_status(operation: &str, meta: &mut ResponseMeta, status: u16) {
    if status != 0 && status_of(operation, status).is_some() {
        let own = meta.as_own().cloned().unwrap_or_else(|| HttpMeta::new(status, ""));
        *meta = HttpMeta { status_code: status, ..own }.into();
    }
}

/// Adds the headers and the cookies that a handler has set, but for those of the connection and the body; and, if the body has
/// another form than the handler gave it, for those that describe its own form.
pub(super) fn add_headers(operation: &str, own: &HttpMeta, is_own_form: bool, headers: &mut HeaderMap) {
    let describes = |name: &HeaderName| *name == ETAG || name.as_str().starts_with("content-");
    let cookies = own.set_cookie.iter().map(|cookie| (SET_COOKIE.as_str(), cookie));
    for (name, value) in own.headers.iter().map(|(name, value)| (name.as_str(), value)).chain(cookies) {
        match (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value.as_bytes())) {
            (Ok(name), Ok(value)) if name == SET_COOKIE => {
                headers.append(name, value);
            }
            (Ok(name), Ok(_)) if FRAMING.contains(&name) || !is_own_form && describes(&name) => {}
            (Ok(name), Ok(value)) => {
                headers.insert(name, value);
            }
            _ => tracing::warn!(operation, header = name, "a header of a handler is not sent: it is not valid"),
        }
    }
}
