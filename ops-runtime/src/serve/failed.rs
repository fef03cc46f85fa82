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
use crate::{CallError, OperationSpec};

/// The spec for an error without an operation: it declares nothing, and no error is about its input.
const NO_OPERATION: &OperationSpec = &OperationSpec::query("");

/// The response of an axum handler that fails with the error of a call.
///
/// It is a problem (RFC 9457) with the [status](crate::serve#errors) of its code; an operation that is not found is a failure
/// of the route, with status 500. A failure without a code of its own,
/// and the texts of other servers, are only logged, with the number of the request that the client gets. An
/// [`ErrorResponse`](crate::ErrorResponse) is sent with its status and its body.
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
        let mut response = match Problem::of_result(&self, NO_OPERATION, &request) {
            Some(problem) => problem.into_response(id),
            None => shown(&redact::public(self, NO_OPERATION, &request, false), id),
        };
        if let Ok(id) = HeaderValue::from_str(id) {
            response.headers_mut().insert(REQUEST_ID, id);
        }
        response
    }
}

/// The response for an error, of which the caller may see everything.
fn shown(error: &CallError, id: &str) -> Response<Body> {
    let own = error.own_status().and_then(sendable);
    match (own, error.details().get("body")) {
        (Some(status), None | Some(serde_json::Value::Null)) => empty(status),
        (Some(status), Some(body)) => respond(status, JSON, body.to_string()),
        (None, _) => Problem::of_error(error, NO_OPERATION).into_response(id),
    }
}
