//! The errors of requests: of this side, of HTTP, and of rmcp's transport.

use std::error::Error;

use http::header::{RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, StatusCode};
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::{Value, json};

use super::{Failure, content_type};
use crate::CallError;
use crate::model::parameters::{end_of_part, value_of};

/// The error of a request that got no response.
pub(super) fn broken(error: &dyn Error) -> Failure {
    StreamableHttpError::Client(CallError::execution(format!(
        "the request failed: {}",
        CallError::from_error(error).message()
    )))
}

/// The error of a status, with the details of every HTTP error of this crate.
pub(super) fn status_error(status: StatusCode, headers: &HeaderMap, body: String) -> CallError {
    let mut message = format!("HTTP {}: {}", status.as_u16(), status.canonical_reason().unwrap_or("unknown status"));
    if let Some(retry) = headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok()) {
        message = format!("{message}; try again after {retry}");
    }
    let kind = content_type(headers);
    let headers: serde_json::Map<String, Value> = headers
        .iter()
        .filter(|(name, _)| *name != SET_COOKIE)
        .map(|(name, value)| (name.as_str().to_owned(), Value::from(String::from_utf8_lossy(value.as_bytes()))))
        .collect();
    let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
    CallError::execution(message)
        .with_details(json!({ "statusCode": status.as_u16(), "headers": headers, "contentType": kind, "body": body }))
}

/// A parameter of a challenge (RFC 9110, section 11.2).
pub(super) fn parameter(challenge: &str, name: &str) -> Option<String> {
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

/// The error that a failed transport stands for.
pub(in crate::mcp::client) fn failure(error: &(dyn Error + Send + Sync + 'static)) -> Option<CallError> {
    let challenged = |status: StatusCode, challenge: &str| {
        let value = HeaderValue::from_str(challenge).ok()?;
        let challenge = (!value.is_empty()).then_some((WWW_AUTHENTICATE, value));
        Some(status_error(status, &HeaderMap::from_iter(challenge), String::new()))
    };
    match error.downcast_ref::<Failure>()? {
        StreamableHttpError::Client(error) => Some(error.clone()),
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
