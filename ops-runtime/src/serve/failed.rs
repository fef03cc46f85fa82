//! Errors of calls as responses of a program's own routes.

use axum::body::Body;
use axum::response::IntoResponse;
use http::{HeaderValue, Response};

use super::problem::Problem;
use super::response::{empty, respond};
use super::service::REQUEST_ID;
use super::status::sendable;
use crate::model::media::JSON;
use crate::model::request_id::{Number, RequestId};
use crate::run::redact;
use crate::{CallError, ErrorDefinition, OperationSpec};

/// The spec of a route that fails with an error: no error is about its input. For the code, it declares the same status as the
/// operation that the route has called.
fn spec_of_route(error: &CallError) -> OperationSpec {
    let code = error.code().as_str();
    let declared =
        error.declared_status().map(|status| ErrorDefinition::owned(code.to_owned()).with_http_status(status));
    let mut spec = OperationSpec::query("");
    spec.errors = declared.into_iter().collect::<Vec<_>>().into();
    spec
}

/// The response of an axum handler that fails with the error of a call.
///
/// It is a problem (RFC 9457). Its status is the one that the called operation declares for the code, or else that of the
/// [table](crate::serve#errors). An operation that is not found, and the invalid input of a call, are failures of the route, with
/// status 500. A failure without a code of its own, and the texts of other servers, are only logged, with the request id that the
/// client gets. An [`ErrorResponse`](crate::ErrorResponse) is sent with its status and its body.
///
/// ```
/// use axum::response::IntoResponse;
/// use ops_runtime::CallError;
///
/// async fn page() -> Result<String, CallError> {
///     Err(CallError::execution("the database is at 10.0.0.7"))
/// }
/// let app: axum::Router = axum::Router::new().route("/", axum::routing::get(page));
/// # let _ = app;
/// let response = CallError::new("TIMEOUT", "too late").into_response();
/// assert_eq!(response.status(), 504);
/// ```
impl IntoResponse for CallError {
    fn into_response(self) -> Response<Body> {
        let number = Number::next();
        let mut buffer = [0; Number::LENGTH];
        let id = number.write(&mut buffer);
        let request = RequestId::of(number);
        let spec = &spec_of_route(&self);
        let mut response = match Problem::of_result(&self, spec, &request) {
            Some(problem) => problem.into_response(id),
            None => shown(&redact::public(self, spec, &request, false, false), spec, id),
        };
        if let Ok(id) = HeaderValue::from_str(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }
}

/// The response for an error, of which the caller may see everything.
fn shown(error: &CallError, spec: &OperationSpec, id: &str) -> Response<Body> {
    let own = error.own_status().and_then(sendable);
    match (own, error.details().get("body")) {
        (Some(status), None | Some(serde_json::Value::Null)) => empty(status),
        (Some(status), Some(body)) => respond(status, JSON, body.to_string()),
        (None, _) => Problem::of_error(error, spec).into_response(id),
    }
}
