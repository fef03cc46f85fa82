//! The envelope of every result: the data, and its origin.
//!
//! ```
//! use ops_runtime::ResponseEnvelope;
//! use ops_runtime::envelope::ResponseMeta;
//!
//! let envelope = ResponseEnvelope::local(7, "math.double");
//! assert!(matches!(envelope.meta, ResponseMeta::Local(_)));
//! assert_eq!(envelope.into_data(), 7);
//! ```

mod json;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::model::clock::now;
use crate::model::secrets::Kept;
use crate::model::text::readable;
use crate::{ContentBlock, Text};

/// The maximum number of characters that each part of a warning shows.
const MAX_TOLD: usize = 2_000;

/// The result of every operation.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResponseEnvelope<T> {
    /// The operation's output.
    pub data: T,
    /// The origin, with the facts of the transport.
    pub meta: ResponseMeta,
    /// The places where the value did not match its schema, and was repaired or kept.
    pub warnings: Vec<Warning>,
}

impl<T> ResponseEnvelope<T> {
    /// Wraps data with the given facts.
    pub fn new(data: T, meta: impl Into<ResponseMeta>) -> Self {
        Self { data, meta: meta.into(), warnings: Vec::new() }
    }

    /// Wraps the result of a handler in this process, with the current time.
    #[doc(alias = "localEnvelope")]
    #[inline]
    pub fn local(data: T, operation_id: impl Into<Text>) -> Self {
        Self::new(data, LocalMeta { operation_id: operation_id.into(), timestamp: now() })
    }

    /// Wraps the body of an HTTP response, or what a handler answers with a status and headers of its own.
    ///
    /// An HTTP server sends the status, the headers and the cookies of an [`HttpMeta::new`], and no body with 204 and 304.
    ///
    /// ```
    /// use ops_runtime::ResponseEnvelope;
    /// use ops_runtime::envelope::HttpMeta;
    ///
    /// let created = HttpMeta::new(201, "application/json").with_header("location", "/pets/7");
    /// let answer = ResponseEnvelope::http("Rex", created);
    /// let unchanged: ResponseEnvelope<Option<String>> = ResponseEnvelope::http(None, HttpMeta::new(304, ""));
    /// # let _ = (answer, unchanged);
    /// ```
    #[doc(alias = "httpEnvelope")]
    pub fn http(data: T, meta: HttpMeta) -> Self {
        Self::new(data, meta)
    }

    /// Wraps the result of an MCP tool.
    #[doc(alias = "mcpEnvelope")]
    pub fn mcp(data: T, meta: McpMeta) -> Self {
        Self::new(data, meta)
    }

    /// The value of a header of the HTTP response, by its name in any case; `None` if it was no HTTP response.
    ///
    /// ```
    /// use ops_runtime::ResponseEnvelope;
    /// use ops_runtime::envelope::HttpMeta;
    ///
    /// let page = ResponseEnvelope::http((), HttpMeta::new(200, "").with_header("ETag", "\"7\""));
    /// assert_eq!((page.header("etag"), page.header("ETag")), (Some("\"7\""), Some("\"7\"")));
    /// ```
    pub fn header(&self, name: &str) -> Option<&str> {
        self.meta.as_http()?.header(name)
    }

    /// The data without the envelope.
    #[doc(alias = "unwrap")]
    pub fn into_data(self) -> T {
        self.data
    }

    /// Replaces the data by the result of a function.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> ResponseEnvelope<U> {
        ResponseEnvelope { data: f(self.data), meta: self.meta, warnings: self.warnings }
    }

    /// Replaces the data by the result of a function that may fail.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn try_map<U, E>(self, f: impl FnOnce(T) -> Result<U, E>) -> Result<ResponseEnvelope<U>, E> {
        Ok(ResponseEnvelope { data: f(self.data)?, meta: self.meta, warnings: self.warnings })
    }
}

/// The origin of a result, distinguished by `source` in JSON.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ResponseMeta {
    /// A handler in this process.
    Local(LocalMeta),
    /// An HTTP response.
    // Boxed like `Mcp`, so that a local call does not move what it doesn't use.
    Http(Box<HttpMeta>),
    /// The result of an MCP tool.
    Mcp(Box<McpMeta>),
}

impl ResponseMeta {
    /// The source of the data: `local`, `http` or `mcp`.
    pub fn source(&self) -> &'static str {
        match self {
            Self::Local(_) => "local",
            Self::Http(_) => "http",
            Self::Mcp(_) => "mcp",
        }
    }

    /// The facts of the HTTP response, if it was one.
    pub fn as_http(&self) -> Option<&HttpMeta> {
        match self {
            Self::Http(meta) => Some(meta),
            _ => None,
        }
    }

    /// True if the response may have had a body of any content type, and not JSON alone.
    #[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only the pipeline asks"))]
    pub(crate) fn has_content_type(&self) -> bool {
        matches!(self, Self::Http(_))
    }

    /// The result of the MCP tool. `None` if the data is from another source.
    pub fn as_mcp(&self) -> Option<&McpMeta> {
        match self {
            Self::Mcp(meta) => Some(meta),
            _ => None,
        }
    }
}

impl From<LocalMeta> for ResponseMeta {
    #[inline]
    fn from(meta: LocalMeta) -> Self {
        Self::Local(meta)
    }
}

impl From<HttpMeta> for ResponseMeta {
    fn from(meta: HttpMeta) -> Self {
        Self::Http(Box::new(meta))
    }
}

impl From<McpMeta> for ResponseMeta {
    fn from(meta: McpMeta) -> Self {
        Self::Mcp(Box::new(meta))
    }
}

/// The facts of a result from this process.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalMeta {
    /// The id of the operation, `namespace.name`.
    pub operation_id: Text,
    /// When the result was wrapped, in milliseconds since the Unix epoch. On Linux it may be some milliseconds earlier,
    /// as the system's coarse clock is read.
    pub timestamp: u64,
}

/// The facts of an HTTP response.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct HttpMeta {
    /// The status.
    pub status_code: u16,
    /// The headers by lower-case name, repeated ones joined with `, `; without `set-cookie`.
    pub headers: BTreeMap<String, String>,
    /// The content type as the server sent it; empty if there is none.
    pub content_type: String,
    /// For an item of a subscription, the server-sent event that carried it.
    pub event: Option<EventMeta>,
    /// The `set-cookie` headers, one each.
    pub set_cookie: Vec<String>,
    /// How often the request was sent again before this response came; `None` if it was sent once.
    pub retries: Option<u64>,
    /// What knows the secrets that the request held. Not part of the JSON.
    pub(crate) secrets: Kept,
    /// True if this process made the response. Not part of the JSON.
    pub(crate) own: Own,
}

impl HttpMeta {
    /// The facts of a response that this process makes, without headers.
    ///
    /// HTTP servers send its status, its headers and its cookies, if a function answers with them. What an adapter
    /// (`Endpoint`) answers is another server's, however it is made: its headers stay with the caller.
    pub fn new(status_code: u16, content_type: impl Into<String>) -> Self {
        Self { own: Own(true), ..Self::received(status_code, content_type) }
    }

    /// The facts of a response that another server sent.
    pub(crate) fn received(status_code: u16, content_type: impl Into<String>) -> Self {
        Self { status_code, content_type: content_type.into(), ..Self::default() }
    }

    /// Adds a header. The name may have any case.
    #[must_use]
    pub fn with_header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.headers.insert(name.into().to_ascii_lowercase(), value.into());
        self
    }

    /// The value of a header, by its name in any case. Cookies are in [`set_cookie`](Self::set_cookie).
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.headers, name)
    }
}

/// The value of a header, by its name in any case.
pub(crate) fn header<'h>(headers: &'h BTreeMap<String, String>, name: &str) -> Option<&'h str> {
    headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
}

/// Tells if this process made a response. It is no part of what holds it: any two are equal.
#[derive(Debug, Clone, Copy, Default)]
#[cfg_attr(not(feature = "registry"), allow(dead_code, reason = "only the pipeline and servers ask"))]
pub(crate) struct Own(pub(crate) bool);

impl PartialEq for Own {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Own {}

/// The fields of a server-sent event beside its data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct EventMeta {
    /// The event's type; `message` by default.
    pub kind: String,
    /// The last event id that the server sent; empty if there is none.
    pub id: String,
}

impl EventMeta {
    /// The fields of an event with this type and last event id.
    pub fn new(kind: impl Into<String>, id: impl Into<String>) -> Self {
        Self { kind: kind.into(), id: id.into() }
    }
}

/// The result of an MCP tool (MCP specification, `CallToolResult`).
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct McpMeta {
    /// True if the tool ran and reported a failure.
    pub is_error: bool,
    /// All content blocks.
    pub content: Vec<ContentBlock>,
    /// The structured result as sent, any JSON.
    pub structured_content: Option<Value>,
    /// Extensions of the protocol (`_meta` in JSON).
    pub meta: Option<Map<String, Value>>,
    /// What knows the secrets that the server was given. Not part of the JSON.
    pub(crate) secrets: Kept,
}

impl McpMeta {
    /// The result of a tool with these content blocks.
    pub fn new(is_error: bool, content: Vec<ContentBlock>) -> Self {
        Self { is_error, content, ..Self::default() }
    }
}

/// A place where a result did not match its schema.
///
/// It never holds the value, so it can be logged. `Display` is one line: `/price: expected number, found string`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The place, as a JSON pointer into the data (RFC 6901).
    pub pointer: String,
    /// What the schema expects there.
    pub expected: String,
    /// The kind of value found there, such as `string` or `absent`.
    pub found: Text,
}

impl Warning {
    /// A warning about the value at a JSON pointer.
    pub fn new(pointer: impl Into<String>, expected: impl Into<String>, found: impl Into<Text>) -> Self {
        Self { pointer: pointer.into(), expected: expected.into(), found: found.into() }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pointer, expected, found } = self;
        // A warning of another process may hold any text.
        if !pointer.is_empty() {
            write!(f, "{}: ", readable(pointer, MAX_TOLD))?;
        }
        write!(f, "expected {}, found {}", readable(expected, MAX_TOLD), readable(found, MAX_TOLD))
    }
}

/// True if a JSON value is an envelope, and reading it would lose nothing.
///
/// It has `data`, and a `meta` with a known `source` and the facts of that source. Every other member must be an
/// envelope's, and be written as it was read. A value with a member that reading would drop or change is data.
///
/// Reading may add defaults. Numbers are compared by value, and an optional member that is null or an empty list counts
/// as absent.
///
/// ```
/// use ops_runtime::envelope::is_response_envelope;
/// use serde_json::json;
///
/// let meta = json!({ "source": "local", "operationId": "a.b", "timestamp": 1 });
/// assert!(is_response_envelope(&json!({ "data": null, "meta": meta })));
/// assert!(!is_response_envelope(&json!({ "data": 1, "meta": { "source": "local" } })));
/// // The page would be lost.
/// assert!(!is_response_envelope(&json!({ "data": [], "meta": meta, "page": 2 })));
/// ```
pub fn is_response_envelope(value: &Value) -> bool {
    looks_like_envelope(value) && json::read_whole(value).is_some()
}

/// Reads a value as an envelope; returns the value itself if it is none.
#[cfg(feature = "registry")]
pub(crate) fn detect(value: Value) -> Result<ResponseEnvelope<Value>, Value> {
    if !looks_like_envelope(&value) {
        return Err(value);
    }
    let Some((meta, warnings)) = json::read_whole(&value) else { return Err(value) };
    match value {
        Value::Object(mut members) => {
            let data = members.get_mut("data").map(Value::take).unwrap_or_default();
            Ok(ResponseEnvelope { data, meta, warnings })
        }
        value => Err(value),
    }
}

/// Checks the members that distinguish an envelope from data, before anything is read.
fn looks_like_envelope(value: &Value) -> bool {
    let Some(meta) = value.get("data").and_then(|_| value.get("meta")) else { return false };
    let is = |key: &str, test: fn(&Value) -> bool| meta.get(key).is_some_and(test);
    match meta.get("source").and_then(Value::as_str) {
        Some("local") => is("operationId", Value::is_string) && is("timestamp", Value::is_number),
        Some("http") => is("statusCode", Value::is_number),
        Some("mcp") => is("isError", Value::is_boolean) && is("content", Value::is_array),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warning_is_one_line() {
        for (warning, line) in [
            (Warning::new("/price", "number", "string"), "/price: expected number, found string"),
            (Warning::new("", "no property `x`", "object"), "expected no property `x`, found object"),
            (
                Warning::new("/a\nb", "one of\r\n`\u{1b}[31m`", "\u{202e}x"),
                "/a b: expected one of `\\u{1b}[31m`, found \\u{202e}x",
            ),
        ] {
            assert_eq!(warning.to_string(), line);
        }
        let long = Warning::new("/x".repeat(9_000), "y".repeat(9_000), "z".repeat(9_000)).to_string();
        assert_eq!(long.chars().count(), 3 * (MAX_TOLD + 3) + ": expected , found ".len());
    }
}
