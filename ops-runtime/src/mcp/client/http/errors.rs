//! The errors of requests: of this side, of HTTP, and of rmcp's transport.

use std::error::Error;
use std::io;

use http::header::{LOCATION, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use reqwest::Response;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Value, json};

use super::{Failure, content_type};
use crate::CallError;
use crate::http::field;
use crate::mcp::follow::loses_message;
use crate::model::parameters::{end_of_part, value_of};

/// The error of a request that got no response, or not all of one.
pub(super) fn broken(error: reqwest::Error) -> Failure {
    let error = error.without_url();
    let why = format!("the request failed: {}", CallError::of_error(&error).message());
    // The request did not reach the server, or was redirected.
    if error.is_builder() || error.is_connect() || error.is_redirect() {
        return StreamableHttpError::Client(CallError::execution(why));
    }
    broken_off(why)
}

/// The error of a redirect by which the message would be lost. It names the new place without credentials and a query.
/// `None` if the response is no such redirect.
pub(super) fn moved(response: &Response) -> Option<CallError> {
    let status = Some(response.status()).filter(|status| loses_message(*status))?;
    let place = response.url().join(response.headers().get(LOCATION)?.to_str().ok()?).ok()?;
    let (origin, path) = (place.origin().ascii_serialization(), place.path());
    Some(CallError::execution(format!(
        "it redirects to `{origin}{path}` with the status {}, by which a message would be lost: set that URL",
        status.as_u16()
    )))
}

/// The error of a request that may have reached the server.
pub(super) fn broken_off(why: String) -> Failure {
    StreamableHttpError::Io(io::Error::other(why))
}

/// True if the server may have carried out the request of this error: there is no response, or it cannot be read.
///
/// This includes the timeout for a new session. rmcp reports it for calls that were refused in the old session, and for those
/// that were still running there.
///
/// `Deserialize` and `UnexpectedServerResponse` are not among them. They come from rmcp, for a response that should begin a
/// session. The call that waits for the session was refused.
pub(in crate::mcp::client) fn may_be_done(error: &(dyn Error + Send + Sync + 'static)) -> bool {
    error.downcast_ref::<Failure>().is_some_and(|error| {
        matches!(
            error,
            StreamableHttpError::Io(_)
                | StreamableHttpError::ResponseBodyTooLarge { .. }
                | StreamableHttpError::SessionRecoveryTimeout
                | StreamableHttpError::UnexpectedContentType(_)
        )
    })
}

/// The error of a request that begins a session. The call that waits for the session was refused, so it was not carried out.
pub(super) fn not_begun(error: Failure) -> Failure {
    if !may_be_done(&error) {
        return error;
    }
    StreamableHttpError::Client(failure(&error).unwrap_or_else(|| CallError::of_error(&error)))
}

/// The error of a status, with the details of every HTTP error of this crate.
pub(super) fn status_error(status: StatusCode, headers: &HeaderMap, body: String) -> CallError {
    let mut message = format!("HTTP {}: {}", status.as_u16(), status.canonical_reason().unwrap_or("unknown status"));
    if let Some(retry) = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()) {
        message = format!("{message}; try again after {retry}");
    }
    let kind = content_type(headers);
    let headers: serde_json::Map<String, Value> = headers
        .keys()
        .filter(|name| **name != SET_COOKIE)
        .filter_map(|name| Some((name.as_str().to_owned(), Value::from(field(headers, name)?))))
        .collect();
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    CallError::execution(message)
        .with_details(json!({ "statusCode": status.as_u16(), "headers": headers, "contentType": kind, "body": body }))
}

/// A parameter of a challenge (RFC 9110, section 11.2).
fn parameter(challenge: &str, name: &str) -> Option<String> {
    // They are separated by commas, and the first stands behind the name of its scheme.
    let is = |found: &str| found.rsplit(' ').next().is_some_and(|found| found.eq_ignore_ascii_case(name));
    let mut rest = challenge.trim_start().split_once(' ')?.1;
    while !rest.is_empty() {
        let (part, after) = rest.split_at(end_of_part(rest, ','));
        if let Some((_, value)) = value_of(part).filter(|(found, _)| is(found)) {
            return Some(value.into_owned());
        }
        rest = after.strip_prefix(',').unwrap_or_default();
    }
    None
}

/// True if a challenge demands a scope that the token lacks (RFC 6750, section 3.1). The error may be missing.
pub(super) fn demands_scope(challenge: &str) -> bool {
    match parameter(challenge, "error") {
        Some(error) => error == "insufficient_scope",
        None => parameter(challenge, "scope").is_some(),
    }
}

/// The error that a failed transport stands for.
pub(in crate::mcp::client) fn failure(error: &(dyn Error + Send + Sync + 'static)) -> Option<CallError> {
    let challenged = |status: StatusCode, challenge: &str| {
        let value = HeaderValue::from_str(challenge).ok()?;
        let challenge = (!value.is_empty()).then_some((WWW_AUTHENTICATE, value));
        Some(status_error(status, &HeaderMap::from_iter(challenge), String::new()))
    };
    match error.downcast_ref::<Failure>()? {
        StreamableHttpError::Client(error) => Some(error.clone()),
        StreamableHttpError::Io(error) => Some(CallError::of_error(error)),
        StreamableHttpError::AuthRequired(error) => {
            challenged(StatusCode::UNAUTHORIZED, &error.www_authenticate_header)
        }
        StreamableHttpError::InsufficientScope(error) => {
            challenged(StatusCode::FORBIDDEN, &error.www_authenticate_header)
        }
        StreamableHttpError::SessionExpired => {
            Some(status_error(StatusCode::NOT_FOUND, &HeaderMap::new(), "the session has expired".to_owned()))
        }
        _ => None,
    }
}
