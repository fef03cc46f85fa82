//! What callers in other processes are shown of answers and errors that came from yet other servers.
//!
//! The data of an answer are for whoever may call the operation. The headers, the cookies and the words of the server
//! that gave it are for whoever runs the operation: they go to the log. So it is over MCP and over the call protocol.

use serde_json::{Map, Value, json};

use crate::{Binding, CallError, ErrorCode, OperationSpec, ResponseMeta};

/// What is in the details of an error that another server has said.
const FOREIGN: [&str; 6] = ["headers", "contentType", "body", "raw", "truncated", "statusCode"];

/// The facts of an answer without what the server said beside it.
pub(crate) fn meta(meta: &mut ResponseMeta) {
    if let ResponseMeta::Http(http) = meta {
        http.headers.clear();
        http.set_cookie.clear();
    }
}

/// What a caller in another process may know of an error: all that the operation itself has to say.
///
/// Of the error of an HTTP response the status is told, and the body if the operation declares that status. An operation
/// that leads to another server has nothing of its own to say, so what failed on the way is in the log only.
pub(crate) fn error(error: CallError, spec: &OperationSpec, request: &str) -> CallError {
    let details = error.details();
    if let Some(status) = details.get("statusCode").and_then(Value::as_u64)
        && *error.code() == ErrorCode::ExecutionError
    {
        tracing::warn!(operation = spec.id.as_ref(), request, %error, "an operation was answered by an error");
        return http_error(&error, spec, status);
    }
    let failed = matches!(error.code(), ErrorCode::ExecutionError | ErrorCode::UnknownError);
    if failed && spec.binding != Binding::Local {
        tracing::warn!(operation = spec.id.as_ref(), request, %error, "an operation of another server failed");
        let message = format!("the operation failed; the worker's log says more of request {request}");
        return CallError::new(error.code().clone(), message);
    }
    // What has a code of the operation's own is meant for callers.
    let may_be_foreign = failed || *error.code() == ErrorCode::ValidationError;
    match details {
        Value::Object(members) if may_be_foreign && FOREIGN.iter().any(|name| members.contains_key(*name)) => {
            let own = members.iter().filter(|(name, _)| !FOREIGN.contains(&name.as_str()));
            let own: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
            error.with_details(if own.is_empty() { Value::Null } else { Value::Object(own) })
        }
        _ => error,
    }
}

/// The status of an HTTP error, and the body if the operation declares that status.
pub(crate) fn http_error(error: &CallError, spec: &OperationSpec, status: u64) -> CallError {
    let code = format!("HTTP_{status}");
    let declared =
        spec.errors.iter().any(|e| e.code == code || e.http_status.is_some_and(|own| u64::from(own) == status));
    let mut details = Map::from_iter([("statusCode".to_owned(), json!(status))]);
    if let (true, Some(body)) = (declared, error.details().get("body")) {
        details.insert("body".to_owned(), body.clone());
    }
    // The words of the status alone, whatever the message says.
    let message = reason(status).map_or_else(|| format!("HTTP {status}"), |reason| format!("HTTP {status}: {reason}"));
    CallError::execution(message).with_details(details)
}

/// The words of a status (RFC 9110, section 15, and RFC 6585).
fn reason(status: u64) -> Option<&'static str> {
    Some(match status {
        300 => "Multiple Choices",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        407 => "Proxy Authentication Required",
        408 => "Request Timeout",
        409 => "Conflict",
        410 => "Gone",
        411 => "Length Required",
        412 => "Precondition Failed",
        413 => "Payload Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        416 => "Range Not Satisfiable",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Entity",
        423 => "Locked",
        424 => "Failed Dependency",
        426 => "Upgrade Required",
        428 => "Precondition Required",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        451 => "Unavailable For Legal Reasons",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        507 => "Insufficient Storage",
        511 => "Network Authentication Required",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_keep_what_the_operation_says() {
        let spec = OperationSpec::query("a.b");
        let shown = |details: Value| error(CallError::execution("told").with_details(details), &spec, "1");
        assert_eq!(shown(json!({ "why": 7 })).details(), &json!({ "why": 7 }));
        assert_eq!(shown(json!({ "why": 7, "raw": "secret", "headers": {} })).details(), &json!({ "why": 7 }));
        let http = shown(json!({ "statusCode": 404, "body": "secret", "headers": { "x": "secret" } }));
        assert_eq!((http.message(), http.details()), ("HTTP 404: Not Found", &json!({ "statusCode": 404 })));
        let own = error(CallError::new("TAKEN", "told").with_details(json!({ "by": "ann" })), &spec, "1");
        assert_eq!((own.message(), own.details()), ("told", &json!({ "by": "ann" })));
    }
}
