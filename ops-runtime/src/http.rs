//! The HTTP client: runs operations that are bound to HTTP endpoints.
//!
//! An [`HttpClient`] interprets the [`HttpBinding`](crate::HttpBinding) of a spec. Operations of generated code and of
//! documents loaded at run time send the same requests.
//!
//! ```
//! use ops_runtime::http::{Auth, HttpClient, HttpConfig};
//! use ops_runtime::Registry;
//! use ops_runtime::binding::{HttpBinding, HttpParameter};
//! use ops_runtime::spec::OperationSpec;
//! use serde_json::json;
//!
//! static SHOW: OperationSpec = OperationSpec::query("pets.show").with_http(
//!     HttpBinding::new("GET", "/pets/{id}").with_parameters(const { &[HttpParameter::path("id")] }),
//! );
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = HttpConfig::new().with_base_url("https://pets.example.com/v1").with_auth(Auth::bearer("t0k3n"));
//! let registry = Registry::new();
//! registry.register_all(HttpClient::new(config)?.bind([&SHOW])?)?;
//!
//! // Refused before anything is sent: the value would lead out of its place in the path.
//! let error = registry.call("pets.show", json!({ "id": ".." })).await.unwrap_err();
//! assert_eq!(error.code().as_str(), "VALIDATION_ERROR");
//! # Ok(()) }
//! ```
//!
//! # How a response is read
//!
//! - JSON is the data. Text is a string. Anything else is a string of base64. An empty body is `null`, unless the
//!   document describes text or bytes.
//! - The server's content type decides, with two exceptions. If the document describes only bytes, the body is bytes.
//!   If it describes JSON and the response has no specific type (none, `text/plain`, `application/octet-stream`), a
//!   body that is JSON is read as JSON. Where the output is text, that is done with a JSON string and with `null` only,
//!   and with neither if the document describes that very type. So a version such as `1.10` stays as it is.
//! - If a success has several content types, the output is what the first of them holds: JSON if there is any, else text
//!   before bytes. Only that kind is asked for. If the server sends described bytes in the place of text, that is a
//!   `VALIDATION_ERROR`, except under the policy `Cast`.
//! - An event stream that is not described is text, and is read to its end. If the document describes JSON alone, or if the
//!   output can be no text, only its beginning is read, for at most a second, and shown in the error.
//! - A status other than 2XX is an `EXECUTION_ERROR`, or an error with the code that the operation declares, if the response
//!   is a problem with that code. Its details are `{ statusCode, headers, contentType, body }`;
//!   [`CallError::declared`](crate::CallError::declared) reads it as the document describes it.
//! - A subscription gives an item for each server-sent event until one says `[DONE]`. Its data is JSON; where the
//!   output's schema allows text, data that is not JSON is a string. A server that answers with plain JSON gives one
//!   item; any other response is an error.
//!
//! - An operation whose output type is [`Body`](crate::Body) streams the bytes of a success, of any length. The call's
//!   deadline and the client's timeout then end with the response's headers.
//! - If successes differ by status, the status selects the alternative of the output's union.
//! - A stream of JSON texts (NDJSON, JSON lines, RFC 7464) gives an item for each.
//!
//! # Bodies
//!
//! The binding names the input property that holds the body. JSON is sent as it is, text is a string, and bytes are a
//! [`Body`](crate::Body) or a string of base64. The fields of a form and the parts of `multipart/form-data` are the
//! properties of an object: a list repeats the field or the part, and bytes are files. In a part, an object is JSON; a part
//! of a type that holds no JSON, such as XML, is written from a string. In a URL-encoded form, an object and a list of
//! objects have a field for each value, with brackets (`address[street]=x`), as most servers read them. There, OpenAPI's own
//! default is JSON: if a server expects it, its document should say
//! `encoding: { address: { contentType: application/json } }`.
//!
//! If an endpoint takes several content types, the binding names a property by which the caller chooses; by default the
//! first that fits is used. Files and streams are sent piece by piece, with a `Content-Length` if it is known: a stream of
//! another length, and a file that becomes shorter meanwhile, are errors.
//!
//! # Credentials
//!
//! [`HttpConfig::with_credentials`] sets credentials for a security scheme by name. Those of [`HttpConfig::with_auth`]
//! are sent with every operation that requires credentials, even of another kind, since documents are often wrong. They
//! are also sent with operations that do not describe any. With an operation that can be called anonymously, they
//! are sent only if they fit. Credentials are sent in the place that the operation sets. OAuth 2 tokens are fetched,
//! cached and renewed: see [`ClientCredentials`]. The token of a call's own caller is passed on by [`Auth::pass_on`], or
//! exchanged by [`Auth::exchange`].
//!
//! [`HttpConfig::with_credentials_from_env`] reads them from environment variables.
//!
//! Errors and the log contain none of them, even if the server repeats what it was sent with that call. Of other calls,
//! the configured credentials and the client's own tokens are hidden, too; the tokens of other callers are not. `***`
//! replaces credentials, tokens, values of configured headers and similar secrets: unchanged, percent-encoded, escaped
//! as in JSON or HTML, or as the base64 of user and password. A secret of less than 4 bytes is not replaced, since it
//! is part of too many words; nor is a header of less than 8 bytes whose name does not show that it is secret. The data
//! of a success are not changed.
//!
//! # Options of one call
//!
//! [`CallOptions`](crate::CallOptions) has headers, a base URL, retries and an idempotency key for one call:
//! [`with_header`](crate::CallOptions::with_header), [`with_base_url`](crate::CallOptions::with_base_url),
//! [`with_retries`](crate::CallOptions::with_retries) and
//! [`with_idempotency_key`](crate::CallOptions::with_idempotency_key). [`HttpConfig::with_idempotency_keys`] generates
//! a key for every call that can have one.
//!
//! # Redirects
//!
//! The client follows redirects itself. POST becomes GET after 301 and 302, and every method but HEAD does after 303.
//! Another scheme, host or port receives no credentials: no `Authorization`, no cookies, and no key in a header or in the
//! query. Any other header may hold a credential, too, so another origin receives only headers such as `Accept`,
//! `If-Match`, `Prefer`, `Last-Event-ID` and idempotency keys. A request that may change something and has others, or
//! cookies that are no credentials of the client's, is not sent on: that is an error. A request with a body is not sent to another origin unless
//! [`HttpConfig::with_bodies_to_other_origins`] allows it. From `http` to `https` on the same host, by the default ports,
//! the body and all headers but credentials are sent on. [`Destinations`] decides about private addresses.
//!
//! # Limits
//!
//! | what | default | option |
//! |---|---|---|
//! | connecting, TLS included | 30 s | [`HttpConfig::with_connect_timeout`] |
//! | a request for a token | 30 s | none |
//! | a whole call, retries included; for streams and downloads, until the headers arrive | 10 min | [`HttpConfig::with_timeout`], or [`CallOptions::with_timeout`](crate::CallOptions::with_timeout) of one call |
//! | an attempt of a call that may be retried, until the headers arrive | none | [`Retry::with_attempt_timeout`] |
//! | silence of a stream or a download | 5 min | [`HttpConfig::with_idle_timeout`] |
//! | the body of a response | 64 MiB | [`HttpConfig::with_max_response`] |
//! | a line of an event stream | 1 MiB | [`HttpConfig::with_max_line`] |
//! | an event, or an item of a stream of JSON texts | 8 MiB | [`HttpConfig::with_max_event`] |
//! | redirects | 10 | [`HttpConfig::with_redirects`] |
//! | between two connections of a subscription | at least 0.5 s | [`Reconnect::with_min_delay`] |
//!
//! The built-in engine limits the headers of a response: 100 of them and about 400 KB over HTTP/1.1, 16 KB over HTTP/2.
//! Responses are decompressed only if [`HttpConfig::with_compression`] asks for it (feature `compression`); limits then
//! count decoded bytes. One that is compressed all the same is an error, unless it is read as bytes, which stay as they are.
//! Every item of a stream carries the response's headers if they have at most 16 KiB; otherwise only the first item does.
//!
//! # When something fails
//!
//! Requests are repeated only as [`HttpConfig::with_retries`] and [`HttpConfig::with_reconnect`] say, except that a
//! request whose token was rejected is sent once more with a new one. What holds a stream or a pipe is sent once.
//! [`CallError::is_retryable`](crate::CallError::is_retryable) is false for a request that may have been carried out, and is not
//! safe to repeat.
//! [`HttpConfig::with_max_in_flight`] limits the requests in flight. Other policies wrap the built-in engine as a service:
//! see [`HttpEngine`]. [`HttpConfig::with_before`] and [`HttpConfig::with_after`] see every request and its response.
//!
//! Every request has a `tracing` span at the level `DEBUG`, with the fields of OpenTelemetry's conventions for HTTP
//! clients (`http.request.method`, `url.template`, `server.address`, `http.response.status_code`, ...). The URL is not
//! among them, nor is any value of the input.

mod address;
mod auth;
mod body;
mod caller;
mod client;
mod coding;
mod config;
mod cookies;
mod data;
mod destinations;
mod engine;
mod events;
mod examples;
mod exchange;
#[cfg(test)]
mod fake;
#[cfg(any(feature = "jwt", feature = "openapi"))]
#[cfg_attr(not(feature = "openapi"), allow(dead_code, reason = "keys for tokens are fetched by reference only"))]
mod fetch;
mod hooks;
mod idempotency;
#[cfg(feature = "openapi")]
pub(crate) mod import;
mod lines;
mod media;
mod outgoing;
pub mod pages;
mod pairs;
mod path;
mod per_call;
mod problem;
mod reconnect;
mod redirect;
mod request;
mod response;
mod retry;
mod secrets;
mod send;
mod server;
mod settings;
pub mod sse;
mod style;
mod tls;
mod trace;

#[cfg(any(feature = "jwt", feature = "mcp-auth"))]
pub(crate) use address::is_safe;
pub use auth::{Auth, ClientCredentials, Secret, TokenExchange, TokenRequest, TokenSource};
pub use client::HttpClient;
pub use config::HttpConfig;
pub use destinations::Destinations;
#[cfg(feature = "mcp-auth")]
pub(crate) use destinations::{Home, Resolver};
#[cfg(feature = "compression")]
pub use engine::Compression;
#[cfg(feature = "mcp-http")]
pub(crate) use engine::builder;
pub use engine::{HttpEngine, ResponseBody};
pub use hooks::{RequestInfo, ResponseInfo};
pub use outgoing::RequestBody;
pub use per_call::RequestOptions;
pub use reconnect::Reconnect;
pub use response::error_of;
#[cfg(feature = "mcp-http")]
pub(crate) use response::field;
pub use retry::Retry;

use crate::CallError;
use crate::model::error::violation;

/// The error of a value that cannot be sent, at a JSON pointer into the input or the configuration.
fn invalid(pointer: &str, message: impl Into<String>) -> CallError {
    let message = message.into();
    let violations = vec![violation(pointer, &message)];
    CallError::invalid(message, violations)
}

/// The JSON pointer to a property of the input (RFC 6901).
fn pointer(property: &str) -> String {
    format!("/{}", crate::pointer::escaped(property))
}
