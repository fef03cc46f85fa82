//! The response of a server that an error stands for, and its body as one of the types that the operation declares.

use std::collections::BTreeMap;

use serde_core::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{CallError, ErrorCode, status};
use crate::Operation;
use crate::model::retry::may_pass;

/// The headers in which servers name a request, the usual ones first.
const REQUEST_IDS: [&str; 7] = [
    "x-request-id",
    "request-id",
    "x-amzn-requestid",
    "x-amz-request-id",
    "x-ms-request-id",
    "x-github-request-id",
    "x-correlation-id",
];

/// The detail of an error that says if the same call may succeed later.
const RETRYABLE: &str = "retryable";

/// A response that is an error: its status, its headers and its body.
///
/// Two are equal if their status, their body and what is unfit in it are: headers, such as the date, do not count.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ErrorResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body: JSON, any other text as a string, `null` if there is none.
    pub body: Value,
    /// The headers by lower-case name, of a response that was received.
    pub headers: BTreeMap<String, String>,
    /// Why the body is not what the operation declares for the status; `None` if it declares nothing for it.
    pub unfit: Option<String>,
}

impl PartialEq for ErrorResponse {
    fn eq(&self, other: &Self) -> bool {
        (self.status, &self.body, &self.unfit) == (other.status, &other.body, &other.unfit)
    }
}

impl ErrorResponse {
    /// A response with this status and body.
    pub fn new(status: u16, body: impl Into<Value>) -> Self {
        Self { status, body: body.into(), headers: BTreeMap::new(), unfit: None }
    }

    /// The value of a header, by its name in any case.
    pub fn header(&self, name: &str) -> Option<&str> {
        crate::model::envelope::header(&self.headers, name)
    }
}

/// The error with which a handler answers by this response: an HTTP server sends its status and its body.
///
/// ```
/// use ops_runtime::{CallError, ErrorResponse};
/// use serde_json::json;
///
/// let error = CallError::from(ErrorResponse::new(409, json!({ "by": 7 })));
/// assert_eq!((error.status(), error.message()), (Some(409), "HTTP 409: Conflict"));
/// ```
impl From<ErrorResponse> for CallError {
    fn from(ErrorResponse { status, body, .. }: ErrorResponse) -> Self {
        let details = json!({ "statusCode": status, "body": body });
        let mut error = Self::execution(status::message(status.into())).with_details(details);
        error.0.own = true;
        error
    }
}

/// An operation whose declared errors have a type: an enum with a variant for each.
///
/// The generator writes it for operations whose document describes error responses.
#[diagnostic::on_unimplemented(
    message = "the errors of `{Self}` have no type",
    label = "only operations of a document that describes error responses have one",
    note = "of a function, `CallError::code` is the code that it declares: `error.code().as_str() == \"NotFound\"`",
    note = "`CallError::status` and `CallError::body` read any error response"
)]
pub trait DeclaresErrors: Operation {
    /// The errors that the operation declares, and the rest.
    type Error: DeclaredError;
}

/// The declared errors of an operation as an enum, with a last variant for responses that are not described.
pub trait DeclaredError: Sized {
    /// The variant for a response.
    fn of(response: ErrorResponse) -> Self;
}

impl CallError {
    /// The error response as one of those that the operation declares.
    ///
    /// A response of another status, or whose body is not as described, is the enum's last variant; [`ErrorResponse::unfit`]
    /// says where the body differs. `None` if this is not the error of a response: there was no connection, no answer in
    /// time, the input was refused.
    ///
    /// ```
    /// use ops_runtime::spec::OperationSpec;
    /// use ops_runtime::{CallError, Call, Operation};
    /// use serde_json::json;
    ///
    /// // As the generator writes it.
    /// #[derive(Debug, PartialEq)]
    /// enum ShowPetError {
    ///     NotFound(String),
    ///     ServerError,
    ///     Undeclared(ops_runtime::ErrorResponse),
    /// }
    /// ops_runtime::__generated::errors!(ShowPetError, Undeclared { 404 => NotFound(_), 500..=599 => ServerError });
    ///
    /// struct ShowPet;
    /// impl Operation for ShowPet {
    ///     type Input = u64;
    ///     type Output = String;
    ///     const SPEC: &'static OperationSpec = &OperationSpec::query("pets.show");
    /// }
    /// impl ops_runtime::DeclaresErrors for ShowPet {
    ///     type Error = ShowPetError;
    /// }
    ///
    /// let error = CallError::execution("HTTP 404").with_details(json!({ "statusCode": 404, "body": "gone" }));
    /// assert_eq!(error.declared::<ShowPet>(), Some(ShowPetError::NotFound("gone".to_owned())));
    /// let error = CallError::execution("HTTP 404").with_details(json!({ "statusCode": 404, "body": 1 }));
    /// let Some(ShowPetError::Undeclared(response)) = error.declared::<ShowPet>() else { panic!("it is no string") };
    /// assert_eq!((response.status, response.unfit.is_some()), (404, true));
    /// assert_eq!(CallError::execution("no connection").declared::<ShowPet>(), None);
    /// ```
    pub fn declared<Op: DeclaresErrors>(&self) -> Option<Op::Error> {
        self.response().map(Op::Error::of)
    }

    /// The error response that this stands for; `None` if it is no error of a response.
    pub fn response(&self) -> Option<ErrorResponse> {
        let body = self.details().get("body").cloned().unwrap_or(Value::Null);
        let headers = self.details().get("headers").and_then(Value::as_object).into_iter().flatten();
        let headers = headers.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        Some(ErrorResponse { headers: headers.collect(), ..ErrorResponse::new(self.status()?, body) })
    }

    /// The value of a header of the error response, by its name in any case.
    ///
    /// ```
    /// use ops_runtime::CallError;
    ///
    /// let busy = CallError::execution("HTTP 429: Too Many Requests").with_header("Retry-After", "30");
    /// assert_eq!(busy.header("RETRY-AFTER"), Some("30"));
    /// ```
    pub fn header(&self, name: &str) -> Option<&str> {
        let headers = self.details().get("headers")?.as_object()?;
        headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name))?.1.as_str()
    }

    /// Adds a header to the error of a response, for tests that answer as a server does. The name may have any case.
    ///
    /// Details that are no object stay as they are.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        if self.0.details.is_null() {
            self.0.details = Value::Object(Map::new());
        }
        if let Value::Object(details) = &mut self.0.details
            && let Value::Object(headers) = details.entry("headers").or_insert_with(|| Value::Object(Map::new()))
        {
            headers.insert(name.into().to_ascii_lowercase(), value.into().into());
        }
        self
    }

    /// The HTTP status of the error response that this stands for.
    ///
    /// ```
    /// use ops_runtime::CallError;
    /// use serde_json::json;
    ///
    /// let error = CallError::execution("HTTP 409: Conflict").with_details(json!({ "statusCode": 409 }));
    /// assert_eq!(error.status(), Some(409));
    /// assert_eq!(CallError::execution("no connection").status(), None);
    /// ```
    pub fn status(&self) -> Option<u16> {
        // A success that does not fit its type has a status, too, but none of the headers.
        let is_response = || self.details().get("headers").is_some_and(Value::is_object);
        (*self.code() == ErrorCode::ExecutionError || is_response())
            .then(|| self.details().get("statusCode")?.as_u64()?.try_into().ok())?
    }

    /// Reads the body of the error response as a type.
    ///
    /// ```
    /// use ops_runtime::CallError;
    /// use serde_json::{Value, json};
    ///
    /// let details = json!({ "statusCode": 409, "body": { "by": 7 } });
    /// let body: Value = CallError::execution("HTTP 409: Conflict").with_details(details).body()?;
    /// assert_eq!(body["by"], 7);
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the body is not of that type, or if this is no error of a response.
    pub fn body<E: DeserializeOwned>(&self) -> Result<E, serde_json::Error> {
        E::deserialize(self.details().get("body").unwrap_or(&Value::Null))
    }

    /// The name that the server gave the request, for its support: from the header `X-Request-Id` or one like it.
    ///
    /// ```
    /// use ops_runtime::CallError;
    /// use serde_json::json;
    ///
    /// let details = json!({ "statusCode": 500, "headers": { "x-request-id": "r-17" } });
    /// let error = CallError::execution("HTTP 500: Internal Server Error").with_details(details);
    /// assert_eq!(error.request_id(), Some("r-17"));
    /// ```
    pub fn request_id(&self) -> Option<&str> {
        REQUEST_IDS.iter().find_map(|name| self.header(name)).filter(|id| !id.is_empty())
    }

    /// True if the same call may succeed later: nothing answered, or the server is busy or out of order for now.
    ///
    /// That is a time-out, a connection that could not be made or broke, and the statuses 408, 425, 429 and all from 500 but
    /// 501 and 505. Over a transport to other processes, it is also an `ABORTED` whose worker or connection was lost, and an
    /// `OPERATION_NOT_FOUND` of a known operation that no worker serves now: their details have `retryable`. A call that was
    /// cancelled, and an unknown id, do not have it.
    ///
    /// An HTTP client knows if a request is safe to repeat: by its method, by an idempotency key that the caller has set, or
    /// because `Retry::with_idempotent` says so. For any other request that may have been carried out, such as a POST that timed
    /// out, the error is retryable only if no connection was made, or if the server refused the request for now, without a
    /// redirect: by the statuses 408, 425 and 429, and by 503 with `Retry-After`. This is known in the process of the client
    /// only: it is not part of the JSON. An open subscription by such a request is an exception: the `TIMEOUT` with which its
    /// own deadline or idle timeout ends it is retryable.
    ///
    /// Of other operations, it does not say that they were not carried out: whether to repeat them is another question.
    ///
    /// ```
    /// use ops_runtime::{CallError, ErrorCode};
    /// use serde_json::json;
    ///
    /// let of = |status| CallError::execution("HTTP").with_details(json!({ "statusCode": status }));
    /// assert!(of(503).is_retryable() && !of(404).is_retryable());
    /// assert!(CallError::new(ErrorCode::Timeout, "too late").is_retryable());
    /// assert!(!CallError::new(ErrorCode::ValidationError, "no").is_retryable());
    /// let cancelled = CallError::new(ErrorCode::Aborted, "the call was cancelled");
    /// assert!(!cancelled.is_retryable() && cancelled.with_details(json!({ "retryable": true })).is_retryable());
    /// ```
    pub fn is_retryable(&self) -> bool {
        let is_marked = || self.details().get(RETRYABLE) == Some(&Value::Bool(true));
        match (self.status(), self.code()) {
            _ if self.0.uncertain => false,
            (Some(status), _) => may_pass(status.into()),
            (None, ErrorCode::Timeout) => true,
            (None, ErrorCode::Aborted | ErrorCode::OperationNotFound) if is_marked() => true,
            (None, _) => self.0.transient,
        }
    }

    /// Marks the error of a worker or a connection that was lost, or that is not there now. The mark is in the details, so
    /// that it goes on to other processes.
    #[cfg(feature = "registry")]
    pub(crate) fn retryable(self) -> Self {
        self.marked(true)
    }

    /// Marks the error of a call that was carried out, and whose result cannot be passed on: a repetition would carry it out
    /// again, and fail in the same way. The mark is in the details, like that of [`retryable`](Self::retryable).
    #[cfg(feature = "registry")]
    pub(crate) fn lasting(self) -> Self {
        self.marked(false)
    }

    #[cfg(feature = "registry")]
    fn marked(mut self, is_retryable: bool) -> Self {
        match &mut self.0.details {
            Value::Object(details) => {
                details.insert(RETRYABLE.to_owned(), is_retryable.into());
            }
            details => *details = json!({ RETRYABLE: is_retryable }),
        }
        self
    }

    /// True if the details say that a repetition would fail in the same way.
    #[cfg(feature = "registry")]
    pub(crate) fn is_lasting(&self) -> bool {
        self.details().get(RETRYABLE) == Some(&Value::Bool(false))
    }

    /// The error with what is known only in the process in which it arose, as a recording has it.
    #[cfg(feature = "registry")]
    pub(crate) fn with_retryable(mut self, is_retryable: bool) -> Self {
        (self.0.transient, self.0.uncertain) = (is_retryable, !is_retryable);
        self
    }

    /// Marks the refusal of credentials that the program has chosen: it says nothing of those of its caller.
    #[cfg(feature = "registry")]
    pub(crate) fn refusing_program(mut self) -> Self {
        self.0.refuses_program = true;
        self
    }

    /// True if the error has the mark of [`refusing_program`](Self::refusing_program).
    #[cfg(feature = "registry")]
    pub(crate) fn refuses_program(&self) -> bool {
        self.0.refuses_program
    }

    /// Marks what this process itself says of the end of a call: the text is not that of another server.
    #[cfg(feature = "registry")]
    pub(crate) fn by_this_process(mut self) -> Self {
        self.0.by_this_process = true;
        self
    }

    /// True if the error has the mark of [`by_this_process`](Self::by_this_process).
    #[cfg(any(feature = "durable", feature = "http-server", feature = "mcp-server"))]
    pub(crate) fn is_by_this_process(&self) -> bool {
        self.0.by_this_process
    }

    /// True if the operation is known, and no worker serves it now.
    #[cfg(any(feature = "http-server", feature = "mcp-server"))]
    pub(crate) fn is_unserved(&self) -> bool {
        *self.code() == ErrorCode::OperationNotFound && self.is_retryable()
    }

    /// The status of an error response that the handler itself answers with: its words are meant for callers.
    #[cfg(feature = "registry")]
    pub(crate) fn own_status(&self) -> Option<u16> {
        self.status().filter(|_| self.0.own)
    }

    /// The error of a response with the code and the message that its server gave it.
    #[cfg(feature = "http")]
    pub(crate) fn renamed(mut self, code: String, message: String) -> Self {
        self.0.code = code.into();
        self.with_message(message)
    }

    /// The error with another message.
    #[cfg(feature = "registry")]
    pub(crate) fn with_message(mut self, message: String) -> Self {
        self.0.message = message.into();
        self
    }

    /// The error of a response that has a code of its own, without what the server said beside it.
    ///
    /// The details are those that the server meant for its callers.
    #[cfg(feature = "registry")]
    pub(crate) fn without_response(mut self) -> Self {
        if *self.code() != ErrorCode::ExecutionError && self.status().is_some() {
            let own = self.0.details.get_mut("body").and_then(|body| body.get_mut("details"));
            self.0.details = own.map(Value::take).unwrap_or_default();
        }
        self
    }

    /// Marks the failure of a request that may have been carried out, and that a repetition might carry out again.
    #[cfg(feature = "http")]
    pub(crate) fn uncertain(mut self) -> Self {
        self.0.uncertain = true;
        self
    }

    /// Takes the mark of [`uncertain`](Self::uncertain) away, where a repetition does no harm.
    #[cfg(feature = "http")]
    pub(crate) fn certain(mut self) -> Self {
        self.0.uncertain = false;
        self
    }

    /// Marks a failure of the connection.
    #[cfg(feature = "http")]
    pub(crate) fn transient(mut self) -> Self {
        self.0.transient = true;
        self
    }
}
