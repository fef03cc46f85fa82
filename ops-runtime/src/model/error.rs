//! The one error of a call: a code, a message and details.
//!
//! ```
//! use ops_runtime::{CallError, ErrorCode};
//!
//! let error = CallError::new("OUT_OF_STOCK", "no pets left");
//! assert_eq!(error.code(), &ErrorCode::Domain("OUT_OF_STOCK".into()));
//! assert_eq!(error.to_string(), "OUT_OF_STOCK: no pets left");
//!
//! // Every caller names the operation that failed.
//! let error = error.with_operation("shop.buyPet");
//! assert_eq!(error.to_string(), "shop.buyPet: OUT_OF_STOCK: no pets left");
//! ```
//!
//! The error of an HTTP response shows its status and what the server says:
//!
//! ```
//! use ops_runtime::CallError;
//! use serde_json::json;
//!
//! let problem = json!({ "title": "Unprocessable Entity", "detail": "ticketDate must be in the future" });
//! let error = CallError::execution("HTTP 422: Unprocessable Entity")
//!     .with_details(json!({ "statusCode": 422, "contentType": "application/problem+json", "body": problem }))
//!     .with_operation("museum.buyTickets");
//! assert_eq!(
//!     error.to_string(),
//!     "museum.buyTickets: HTTP 422: Unprocessable Entity: ticketDate must be in the future"
//! );
//! ```

#[cfg(feature = "registry")]
mod hidden;
mod json;
mod response;
mod status;
#[cfg(feature = "registry")]
mod violations;
mod words;

use std::borrow::Cow;
use std::error::Error;
use std::fmt;

use serde_json::Value;

use crate::model::text::readable;
use crate::{McpMeta, Text};

pub use response::{DeclaredError, DeclaresErrors, ErrorResponse};
#[cfg(feature = "registry")]
pub(crate) use violations::violation;

/// The maximum number of characters of an operation's id in an error.
pub(crate) const MAX_ID: usize = 200;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $code:literal,)*) => {
        /// The kind of failure of a [`CallError`].
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* $name,)*
            /// A code that the operation declares, such as `NOT_FOUND`.
            Domain(Text),
        }

        impl ErrorCode {
            /// The code in JSON, such as `TIMEOUT`.
            pub fn as_str(&self) -> &str {
                match self {
                    $(Self::$name => $code,)*
                    Self::Domain(code) => code,
                }
            }
        }

        impl From<Text> for ErrorCode {
            fn from(code: Text) -> Self {
                match code.as_ref() {
                    $($code => Self::$name,)*
                    _ => Self::Domain(code),
                }
            }
        }
    };
}

error_codes! {
    /// The operation, or a handler for it, is not registered, or no worker serves it.
    OperationNotFound = "OPERATION_NOT_FOUND",
    /// The caller's identity does not satisfy the operation's access rules.
    AccessDenied = "ACCESS_DENIED",
    /// The input does not match its schema, or the output does not and could not be made to.
    ValidationError = "VALIDATION_ERROR",
    /// The deadline passed, or a subscription was idle for too long.
    Timeout = "TIMEOUT",
    /// The call was cancelled, or its worker or the connection to it was lost.
    Aborted = "ABORTED",
    /// The handler or the transport failed.
    ExecutionError = "EXECUTION_ERROR",
    /// An MCP tool ran and reported a failure; the error has the whole result.
    ToolError = "TOOL_ERROR",
    /// A failure that is not an error value, such as a panic.
    UnknownError = "UNKNOWN_ERROR",
}

impl From<&'static str> for ErrorCode {
    fn from(code: &'static str) -> Self {
        Cow::Borrowed(code).into()
    }
}

impl From<String> for ErrorCode {
    fn from(code: String) -> Self {
        Text::Owned(code).into()
    }
}

impl PartialEq<str> for ErrorCode {
    fn eq(&self, code: &str) -> bool {
        self.as_str() == code
    }
}

impl PartialEq<&str> for ErrorCode {
    fn eq(&self, code: &&str) -> bool {
        self.as_str() == *code
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The error of a call.
///
/// Its JSON is `{ "code", "message", "details" }`, without `details` if there are none. `Display` also shows the
/// operation and, for the error of an HTTP response, the server's message in its body.
#[derive(Clone)]
pub struct CallError(Box<Inner>);

// Boxed, so that the `Result` of every call stays small.
#[derive(Clone)]
struct Inner {
    code: ErrorCode,
    message: Text,
    details: Value,
    mcp: Option<Box<McpMeta>>,
    operation: Option<Text>,
    /// True for a failure of the connection. Not part of the JSON.
    transient: bool,
    /// True if the request may have been carried out, and a repetition might do it again. Not part of the JSON, so it holds
    /// in the process of the client only.
    uncertain: bool,
    /// True for an error response that the handler itself answers with. Not part of the JSON.
    own: bool,
    /// True if credentials are refused that the program has chosen, and not those of its caller. Not part of the JSON.
    #[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "nothing refuses them"))]
    refuses_program: bool,
    /// True if this process itself has ended the call, or asked in vain if it may be made. Not part of the JSON.
    #[cfg_attr(
        not(any(feature = "durable", feature = "http-server", feature = "mcp-server")),
        allow(dead_code, reason = "only servers hide the texts of others, and only jobs keep it for them")
    )]
    by_this_process: bool,
    /// The HTTP status that the operation which was called declares for the code. Not part of the JSON.
    #[cfg_attr(not(feature = "http-server"), allow(dead_code, reason = "only an HTTP server sends it"))]
    declared: Option<u16>,
}

impl CallError {
    /// An error with a code that the operation declares, or one of the standard codes by name.
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<Text>) -> Self {
        Self(Box::new(Inner {
            code: code.into(),
            message: message.into(),
            details: Value::Null,
            mcp: None,
            operation: None,
            transient: false,
            uncertain: false,
            own: false,
            refuses_program: false,
            by_this_process: false,
            declared: None,
        }))
    }

    /// The failure of a handler or a transport.
    pub fn execution(message: impl Into<Text>) -> Self {
        Self::new(ErrorCode::ExecutionError, message)
    }

    /// Adds details, any JSON; `null` stands for none.
    #[must_use]
    pub fn with_details(mut self, details: impl Into<Value>) -> Self {
        self.0.details = details.into();
        self
    }

    /// Adds the result of the MCP tool that failed.
    #[must_use]
    pub fn with_mcp_meta(mut self, meta: McpMeta) -> Self {
        self.0.mcp = Some(Box::new(meta));
        self
    }

    /// Sets the operation that failed, unless the error has one already.
    ///
    /// Every caller does this, so the error of a nested call names the operation that failed first. The name is not
    /// part of the JSON: a caller from another process sets it again.
    #[must_use]
    pub fn with_operation(mut self, id: impl Into<Text>) -> Self {
        self.0.operation.get_or_insert_with(|| id.into());
        self
    }

    /// The id of the operation that failed, if the error comes from a call.
    pub fn operation(&self) -> Option<&str> {
        self.0.operation.as_deref()
    }

    /// True if the operation of that id failed itself, and not one that its handler called. An operation that calls itself
    /// cannot be told apart from the one that it called: both have the same id.
    #[cfg(feature = "registry")]
    pub(crate) fn is_of(&self, id: &str) -> bool {
        self.operation().is_none_or(|failed| failed == id)
    }

    /// The kind of failure.
    pub fn code(&self) -> &ErrorCode {
        &self.0.code
    }

    /// The message for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The details for programs; `null` if there are none.
    pub fn details(&self) -> &Value {
        &self.0.details
    }

    /// The whole result of the MCP tool, for a `TOOL_ERROR`.
    pub fn mcp_meta(&self) -> Option<&McpMeta> {
        self.0.mcp.as_deref()
    }

    /// Replaces the code of an `EXECUTION_ERROR` by the declared code with which its message begins.
    ///
    /// A handler whose error type is only text may write `CODE` or `CODE: what happened`. The first declared code that
    /// fits is used. Callers see the text of such an error, so a foreign text should not stand at the start of one.
    #[must_use]
    pub fn with_declared_code(mut self, declared: &[crate::ErrorDefinition]) -> Self {
        if self.0.code == ErrorCode::ExecutionError {
            let message = self.0.message.as_ref();
            let names =
                |code: &str| message.strip_prefix(code).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'));
            if let Some(definition) = declared.iter().find(|d| names(&d.code)) {
                self.0.code = definition.code.clone().into();
            }
        }
        self
    }

    /// Code and message, without the operation and the server's message, for callers who must not see these.
    pub(crate) fn plain(&self) -> String {
        let Inner { code, message, .. } = &*self.0;
        // A handler with text errors begins its message with the code.
        match message.strip_prefix(code.as_str()) {
            Some(rest) if rest.is_empty() || rest.starts_with(':') => message.clone().into_owned(),
            _ if message.is_empty() => code.to_string(),
            _ => format!("{code}: {message}"),
        }
    }

    /// The message, and after that of an HTTP response the server's message in its body.
    pub(crate) fn told(&self) -> Cow<'_, str> {
        let Inner { message, details, .. } = &*self.0;
        let body = details.get("body").filter(|_| self.is_status());
        let said = body.and_then(|body| {
            let content_type = details.get("contentType").and_then(Value::as_str).unwrap_or_default();
            words::of_body(body, content_type, message)
        });
        match said {
            Some(said) => Cow::Owned(format!("{message}: {said}")),
            None => Cow::Borrowed(self.message()),
        }
    }

    /// True if this is the error of an HTTP response, whose message begins with the status.
    fn is_status(&self) -> bool {
        self.0.code == ErrorCode::ExecutionError
            && self.0.message.starts_with("HTTP ")
            && self.0.details.get("statusCode").is_some_and(Value::is_number)
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, operation, .. } = &*self.0;
        if let Some(id) = operation
            && !message.contains(&format!("`{id}`"))
        {
            write!(f, "{}: ", readable(id, MAX_ID))?;
        }
        if !self.is_status() {
            return f.write_str(&self.plain());
        }
        f.write_str(&self.told())
    }
}

impl fmt::Debug for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("CallError");
        if let Some(operation) = &self.0.operation {
            debug.field("operation", operation);
        }
        debug
            .field("code", &self.0.code.as_str())
            .field("message", &self.0.message)
            .field("details", &self.0.details)
            .finish_non_exhaustive()
    }
}

impl PartialEq for CallError {
    fn eq(&self, other: &Self) -> bool {
        self.0.code == other.0.code && self.0.message == other.0.message && self.0.details == other.0.details
    }
}

impl Error for CallError {}

impl From<&'static str> for CallError {
    fn from(message: &'static str) -> Self {
        Self::execution(message)
    }
}

impl From<String> for CallError {
    fn from(message: String) -> Self {
        Self::execution(message)
    }
}

/// A `CallError` in the box comes out as it went in; any other error as by [`CallError::from_error`].
impl From<Box<dyn Error>> for CallError {
    fn from(error: Box<dyn Error>) -> Self {
        error.downcast::<Self>().map_or_else(|other| Self::of_error(&*other), |own| *own)
    }
}

/// A `CallError` in the box comes out as it went in; any other error as by [`CallError::from_error`].
impl From<Box<dyn Error + Send + Sync>> for CallError {
    fn from(error: Box<dyn Error + Send + Sync>) -> Self {
        error.downcast::<Self>().map_or_else(|other| Self::of_error(&*other), |own| *own)
    }
}

/// A `CallError` in the error, as a [`Body`](crate::Body) has it that was received, comes out as it went in; any other as by
/// [`CallError::from_error`].
impl From<std::io::Error> for CallError {
    fn from(error: std::io::Error) -> Self {
        error.downcast::<Self>().unwrap_or_else(Self::from_error)
    }
}

impl CallError {
    /// An `EXECUTION_ERROR` from any error, with the messages of its sources. A `CallError` comes out as it went in, also from
    /// an [`io::Error`](std::io::Error) that holds one.
    ///
    /// ```
    /// use ops_runtime::CallError;
    ///
    /// fn port(text: &str) -> Result<u16, CallError> {
    ///     text.parse().map_err(CallError::from_error)
    /// }
    ///
    /// assert_eq!(port("many").unwrap_err().message(), "invalid digit found in string");
    /// ```
    pub fn from_error(error: impl Error + 'static) -> Self {
        Self::of_error(&error)
    }

    /// Like [`from_error`](Self::from_error), for an error that is borrowed.
    pub(crate) fn of_error(error: &(dyn Error + 'static)) -> Self {
        if let Some(own) = Self::held(error) {
            return own.clone();
        }
        let mut message = error.to_string();
        let mut source = error.source();
        while let Some(error) = source {
            let text = error.to_string();
            // Many errors already print their source.
            if !message.ends_with(&text) {
                message.push_str(": ");
                message.push_str(&Self::held(error).map_or(text, Self::plain));
            }
            source = error.source();
        }
        Self::execution(message)
    }

    /// The text of an error, for the message of another one. A `CallError` in it keeps its code and its operation there:
    /// otherwise the failure of another server would read as that of the server which the message is about.
    #[cfg(any(feature = "http", feature = "mcp"))]
    pub(crate) fn words_of(error: &(dyn Error + 'static)) -> String {
        match Self::held(error).and_then(|held| Some((held.operation()?, held))) {
            Some((id, held)) => format!("{}: {}", readable(id, MAX_ID), held.plain()),
            None => Self::of_error(error).message().to_owned(),
        }
    }

    /// The `CallError` that an error is, or that an `io::Error` holds, which does not have it among its sources.
    fn held<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e Self> {
        let inside = || error.downcast_ref::<std::io::Error>()?.get_ref()?.downcast_ref::<Self>();
        error.downcast_ref::<Self>().or_else(inside)
    }
}

/// An error that an operation declares, so that callers can distinguish it from other failures.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ErrorDefinition {
    /// The code of the [`CallError`]. Errors of HTTP endpoints are declared as `HTTP_404` and the like, but come as
    /// `EXECUTION_ERROR` with the status in their details; see [`CallError::declared`].
    pub code: Text,
    /// Its meaning.
    pub description: Text,
    /// The schema of the error's details.
    pub schema: crate::Schema,
    /// The HTTP status for it.
    pub http_status: Option<u16>,
}

impl ErrorDefinition {
    /// A declared error without a schema for its details.
    pub const fn new(code: &'static str) -> Self {
        Self {
            code: Cow::Borrowed(code),
            description: Cow::Borrowed(""),
            schema: crate::Schema::ANY,
            http_status: None,
        }
    }

    /// A declared error whose code is loaded at run time.
    pub fn owned(code: impl Into<crate::model::text::Text>) -> Self {
        Self { code: code.into(), ..Self::new("") }
    }

    /// Sets the meaning of the error.
    #[must_use]
    pub const fn with_description(mut self, description: &'static str) -> Self {
        crate::model::text::set(&mut self.description, Cow::Borrowed(description));
        self
    }

    /// Sets the schema of the error's details.
    #[must_use]
    pub const fn with_schema(mut self, schema: crate::Schema) -> Self {
        crate::model::text::set(&mut self.schema, schema);
        self
    }

    /// Sets the HTTP status for the error.
    #[must_use]
    pub const fn with_http_status(mut self, status: u16) -> Self {
        self.http_status = Some(status);
        self
    }
}
