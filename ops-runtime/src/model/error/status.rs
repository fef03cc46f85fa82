//! The statuses of an error: that of an HTTP response, for callers who must not see more of the response, and the declared one.

#[cfg(feature = "registry")]
use serde_json::{Map, Value, json};

#[cfg(feature = "registry")]
use crate::CallError;

#[cfg(feature = "registry")]
impl CallError {
    /// The error of an HTTP status, with the body if callers may see it.
    pub(crate) fn of_status(status: u64, body: Option<Value>) -> Self {
        let mut details = Map::from_iter([("statusCode".to_owned(), json!(status))]);
        details.extend(body.map(|body| ("body".to_owned(), body)));
        // The message is about the status alone, whatever the response says.
        Self::execution(message(status)).with_details(details)
    }

    /// The same error, with the status that the operation which was called declares for the code.
    pub(crate) fn with_declared_status(mut self, status: Option<u16>) -> Self {
        self.0.declared = status;
        self
    }

    /// The HTTP status that the operation which was called declares for the code.
    #[cfg(feature = "http-server")]
    pub(crate) fn declared_status(&self) -> Option<u16> {
        self.0.declared
    }
}

/// The message of the error for a status.
pub(super) fn message(status: u64) -> String {
    reason(status).map_or_else(|| format!("HTTP {status}"), |reason| format!("HTTP {status}: {reason}"))
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
