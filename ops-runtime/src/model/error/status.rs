//! The status of an HTTP response in an error, for callers who must not see more of the response.

#[cfg(feature = "registry")]
use serde_json::{Map, json};

#[cfg(feature = "registry")]
use crate::{CallError, ErrorDefinition};

#[cfg(feature = "registry")]
impl CallError {
    /// The status of an HTTP error, and the body if the operation of that id declares that status or answers with it itself.
    ///
    /// The response of another operation, which the handler called, is not what this one declares.
    pub(crate) fn of_status(&self, status: u64, id: &str, declared: &[ErrorDefinition]) -> Self {
        if self.own_status().is_some() {
            return self.clone();
        }
        let code = format!("HTTP_{status}");
        let mut declared = declared.iter();
        let is_declared = self.is_of(id)
            && declared.any(|e| e.code == code || e.http_status.is_some_and(|own| u64::from(own) == status));
        let mut details = Map::from_iter([("statusCode".to_owned(), json!(status))]);
        if let (true, Some(body)) = (is_declared, self.details().get("body")) {
            details.insert("body".to_owned(), body.clone());
        }
        // The words of the status alone, whatever the message says.
        Self::execution(message(status)).with_details(details)
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
