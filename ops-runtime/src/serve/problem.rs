//! Failures as responses: RFC 9457, and the table of their statuses.

use std::borrow::Cow;
use std::collections::BTreeSet;

use axum::body::Body;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};

use super::access::Needs;
use super::read::Fault;
use super::status::sendable;
use crate::model::request_id::RequestId;
use crate::model::unauthorized::Unauthorized;
use crate::run::handler::{NOT_IMPLEMENTED, TOO_MANY_REQUESTS};
use crate::{CallError, ErrorCode, OperationSpec, StatusRange};

/// The content type of a failure.
pub(super) const PROBLEM: &str = "application/problem+json";

/// The status for each code, unless the operation declares another.
const STATUSES: [(ErrorCode, StatusCode); 10] = [
    (ErrorCode::OperationNotFound, StatusCode::NOT_FOUND),
    (ErrorCode::AccessDenied, StatusCode::FORBIDDEN),
    (ErrorCode::ValidationError, StatusCode::UNPROCESSABLE_ENTITY),
    (ErrorCode::Timeout, StatusCode::GATEWAY_TIMEOUT),
    (ErrorCode::Aborted, StatusCode::SERVICE_UNAVAILABLE),
    (ErrorCode::ExecutionError, StatusCode::INTERNAL_SERVER_ERROR),
    (ErrorCode::ToolError, StatusCode::BAD_GATEWAY),
    (ErrorCode::UnknownError, StatusCode::INTERNAL_SERVER_ERROR),
    (ErrorCode::Domain(Cow::Borrowed(NOT_IMPLEMENTED)), StatusCode::NOT_IMPLEMENTED),
    (ErrorCode::Domain(Cow::Borrowed(TOO_MANY_REQUESTS)), StatusCode::TOO_MANY_REQUESTS),
];

/// The statuses of failures of requests, which have no code or one of the table.
const OF_REQUESTS: [StatusCode; 6] = [
    StatusCode::BAD_REQUEST,
    StatusCode::UNAUTHORIZED,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
    StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
];

/// A failure, before it is a response.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    code: Option<String>,
    detail: String,
    members: Map<String, Value>,
    pub(super) headers: HeaderMap,
}

impl Problem {
    /// A failure of the request itself.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, code: None, detail: detail.into(), members: Map::new(), headers: HeaderMap::new() }
    }

    fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same failure, described otherwise.
    pub(super) fn described(self, detail: &str) -> Self {
        Self { detail: detail.to_owned(), ..self }
    }

    /// There is no room for the request now.
    pub(super) fn busy(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, detail).with(RETRY_AFTER, HeaderValue::from_static("1"))
    }

    /// The path exists for other methods. If it can be read, its head can be requested (RFC 9110, section 9.3.2).
    pub(super) fn methods<'a>(methods: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all: BTreeSet<&str> = methods.into_iter().collect();
        if all.contains("GET") {
            all.insert("HEAD");
        }
        let allowed = all.into_iter().collect::<Vec<_>>().join(", ");
        let problem = Self::new(StatusCode::METHOD_NOT_ALLOWED, format!("the path takes {allowed}"));
        match HeaderValue::from_str(&allowed) {
            Ok(allowed) => problem.with(ALLOW, allowed),
            Err(_) => problem,
        }
    }

    /// The sender is unknown.
    pub(super) fn unauthorized(Unauthorized { challenge, is_unavailable }: Unauthorized) -> Self {
        if is_unavailable {
            return Self::busy("credentials cannot be checked now");
        }
        Self::new(StatusCode::UNAUTHORIZED, "the request needs valid credentials").with(WWW_AUTHENTICATE, challenge)
    }

    /// The sender may not run the operation. With a challenge if another token would help.
    pub(super) fn forbidden(challenge: Option<HeaderValue>, needs: &Needs<'_>) -> Self {
        let mut told = Vec::new();
        let mut details = Map::new();
        for (scopes, how, name) in [(&needs.all, "all", "requiredScopes"), (&needs.any, "one", "requiredScopesAny")] {
            if !scopes.is_empty() {
                told.push(format!("{how} of the scopes {}", scopes.join(", ")));
                details.insert(name.to_owned(), json!(scopes));
            }
        }
        if let Some((action, kind)) = needs.right {
            told.push(format!("the right to {action} {kind}"));
        }
        let mut detail = "the credentials do not have what the operation asks for".to_owned();
        let mut members = Map::new();
        if !told.is_empty() {
            detail = format!("{detail}: it needs {}", told.join(", and "));
        }
        if !details.is_empty() {
            members.insert("details".to_owned(), details.into());
        }
        let code = Some(ErrorCode::AccessDenied.as_str().to_owned());
        let problem = Self { code, members, ..Self::new(StatusCode::FORBIDDEN, detail) };
        match challenge {
            Some(challenge) => problem.with(WWW_AUTHENTICATE, challenge),
            None => problem,
        }
    }

    /// The input does not match its schema, or cannot be read.
    pub(super) fn violations(violations: Vec<Value>) -> Self {
        let count = violations.len();
        let detail = format!("the input has {count} {}", if count == 1 { "violation" } else { "violations" });
        let members = Map::from_iter([("violations".to_owned(), violations.into())]);
        let code = Some(ErrorCode::ValidationError.as_str().to_owned());
        Self { code, members, ..Self::new(StatusCode::UNPROCESSABLE_ENTITY, detail) }
    }

    /// The unreadable parts of a request, as violations.
    pub(super) fn faults(faults: &[Fault]) -> Self {
        Self::violations(faults.iter().map(Fault::to_json).collect())
    }

    /// The failure of a call whose result or item is not what the operation promises; `None` for any other error.
    ///
    /// What differs is for the operator: it is logged, and callers do not see it.
    pub(super) fn of_result(error: &CallError, spec: &OperationSpec, request: &RequestId) -> Option<Self> {
        if *error.code() != ErrorCode::ValidationError || is_of_input(error, spec) {
            return None;
        }
        tracing::error!(operation = spec.id.as_ref(), %request, %error, "a result does not match its schema, or a call that the handler made was refused");
        Some(Self::of_error(error, spec))
    }

    /// The failure of a call, as far as callers may see it.
    pub(super) fn of_error(error: &CallError, spec: &OperationSpec) -> Self {
        let is_input = is_of_input(error, spec);
        if let (true, Some(Value::Array(violations))) = (is_input, error.details().get("violations")) {
            return Self::violations(violations.clone());
        }
        let mut status = status(error.code(), spec);
        if *error.code() == ErrorCode::ValidationError && !is_input {
            // The operation's result does not match its description.
            status = StatusCode::INTERNAL_SERVER_ERROR;
        }
        if error.details().get("statusCode").is_some() && *error.code() == ErrorCode::ExecutionError {
            status = StatusCode::BAD_GATEWAY;
        }
        if error.is_unserved() {
            status = StatusCode::SERVICE_UNAVAILABLE;
        }
        if let Some(own) = error.own_status() {
            status = sendable(own).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        }
        if status.is_server_error() && *error.code() == ErrorCode::ValidationError {
            // The caller knows nothing of calls that the handler made.
            let is_own = error.operation().is_none_or(|operation| operation == spec.id);
            let detail = match is_own {
                true => "the operation failed: its result does not match its schema",
                false => "the operation failed: a call that it makes was refused or gave what it should not",
            };
            return Self { code: Some(error.code().to_string()), ..Self::new(status, detail) };
        }
        let mut members = Map::new();
        if !error.details().is_null() {
            members.insert("details".to_owned(), error.details().clone());
        }
        let wait = error.details().get("retryAfter").and_then(Value::as_f64);
        let wait = wait.filter(|_| status == StatusCode::TOO_MANY_REQUESTS).or(error.is_unserved().then_some(1.0));
        // Whole seconds (RFC 9110, section 10.2.3). The cast saturates.
        let problem = Self { code: Some(error.code().to_string()), members, ..Self::new(status, error.message()) };
        match wait {
            Some(seconds) => problem.with(RETRY_AFTER, HeaderValue::from(seconds.ceil() as u64)),
            None => problem,
        }
    }

    /// The members of the problem, with the request id in the server's log.
    pub(super) fn to_json(&self, request: &str) -> Value {
        let title = self.status.canonical_reason().unwrap_or("Error");
        let mut json =
            json!({ "type": "about:blank", "title": title, "status": self.status.as_u16(), "detail": self.detail });
        if let Some(members) = json.as_object_mut() {
            members.extend(self.code.clone().map(|code| ("code".to_owned(), code.into())));
            members.insert("request".to_owned(), request.into());
            members.extend(self.members.clone());
        }
        json
    }

    pub(super) fn into_response(self, request: &str) -> Response<Body> {
        let mut response = Response::new(Body::from(self.to_json(request).to_string()));
        *response.status_mut() = self.status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM));
        response.headers_mut().extend(self.headers);
        response
    }
}

/// The status for a code: the one that the operation declares for it, or that of the table. A handler's own code that
/// is not declared is meant for callers, and is 400.
pub(super) fn status(code: &ErrorCode, spec: &OperationSpec) -> StatusCode {
    let declared = spec.errors.iter().find(|declared| declared.code == code.as_str());
    let of_status = |status: u16| StatusCode::from_u16(status).ok().filter(|status| status.as_u16() >= 400);
    let declared = declared.and_then(|declared| declared.http_status).and_then(of_status);
    declared.or_else(|| of_code(code)).unwrap_or(StatusCode::BAD_REQUEST)
}

/// The status of the table for a code.
pub(super) fn of_code(code: &ErrorCode) -> Option<StatusCode> {
    STATUSES.iter().find(|(own, _)| own == code).map(|(_, status)| *status)
}

/// True if the server itself fails with a status of this range, whatever an operation declares.
pub(super) fn is_own(range: StatusRange) -> bool {
    STATUSES.iter().map(|(_, own)| own).chain(&OF_REQUESTS).any(|own| range.contains(own.as_u16()))
}

/// True if an error is about the operation's own input, and not about its result or about a call that it made.
fn is_of_input(error: &CallError, spec: &OperationSpec) -> bool {
    let has = |name: &str| error.details().get(name).is_some();
    let is_own = error.operation().is_none_or(|id| id == spec.id);
    *error.code() == ErrorCode::ValidationError && is_own && !has("raw") && !has("value")
}
