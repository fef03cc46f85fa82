//! The HTTP client: runs operations that are bound to HTTP endpoints.
//!
//! An [`HttpClient`] interprets the [`HttpBinding`](crate::HttpBinding) of a spec; operations of generated code and
//! of documents met at run time send the same requests.
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
//! registry.register_all(HttpClient::new(config)?.bind([&SHOW]))?;
//!
//! // Refused before anything is sent: the value would lead out of its place in the path.
//! let error = registry.call("pets.show", json!({ "id": ".." })).await.unwrap_err();
//! assert_eq!(error.code().as_str(), "VALIDATION_ERROR");
//! # Ok(()) }
//! ```
//!
//! # What becomes of an answer
//!
//! - JSON is the data. Text is a string. Anything else is a string of base64. An empty body is `null`, unless the
//!   document describes text or bytes.
//! - The server's content type decides, but where the document describes nothing but bytes the body is bytes, and
//!   where it describes JSON a body without a type of its own (none, `text/plain`, `application/octet-stream`) that
//!   is JSON is taken as JSON.
//! - A status other than 2XX is an `EXECUTION_ERROR` whose details are `{ statusCode, headers, contentType, body }`;
//!   [`error_body`] reads the body as a type.
//! - A subscription gives an item for each server-sent event until one says `[DONE]`. Its data is JSON; where the
//!   output's schema allows text, data that is not JSON is a string. A server that answers with plain JSON gives one
//!   item; any other answer is an error.
//!
//! - An operation whose output type is [`Body`](crate::Body) gets the bytes of any success as they come, however many
//!   there are. The call's deadline and the client's timeout end with the response's headers then.
//! - Where successes differ by status, the status decides which alternative of the output's union a body is.
//! - A stream of JSON texts (NDJSON, JSON lines, RFC 7464) gives an item for each.
//!
//! # Bodies
//!
//! The input's property that the binding names holds the body, JSON for JSON. Text is a string. Bytes are a
//! [`Body`](crate::Body), or a string of base64. The fields of a form and the parts of `multipart/form-data` are the
//! properties of an object: a list repeats the part, objects are JSON, bytes are files. Where an endpoint takes several
//! content types, the caller names one in the property that the binding says, or else the first that fits is used. Files
//! and streams are sent piece by piece, with a `Content-Length` where it is known.
//!
//! # Credentials
//!
//! [`HttpConfig::with_credentials`] gives them by the names of the document's security schemes, [`HttpConfig::with_auth`]
//! for all that they fit. Each operation is sent what it asks for, where it asks for it; one that allows anonymous calls
//! first is sent none. Tokens of OAuth 2 servers are fetched, kept and renewed: see [`ClientCredentials`].
//!
//! # Redirects
//!
//! The client follows them itself: POST becomes GET after 301 and 302, and anything but HEAD after 303. To another
//! scheme, host or port it sends nothing but the body and harmless headers such as `Accept`; a key in the query is taken
//! out. A request with a body is not sent to another origin at all, unless
//! [`HttpConfig::with_bodies_to_other_origins`] allows it; from `http` to `https` of the same host counts as the same
//! origin there. [`Destinations`] decides about private addresses.
//!
//! # Limits
//!
//! | what | default | option |
//! |---|---|---|
//! | connecting, TLS included | 30 s | [`HttpConfig::with_connect_timeout`] |
//! | a call in all, retries included; of streams and downloads, until the headers are there | 10 min | [`HttpConfig::with_timeout`] |
//! | silence of a stream or a download | 5 min | [`HttpConfig::with_idle_timeout`] |
//! | the body of a response | 64 MiB | [`HttpConfig::with_max_response`] |
//! | a line of an event stream | 1 MiB | [`HttpConfig::with_max_line`] |
//! | an event, or an item of a stream of JSON texts | 8 MiB | [`HttpConfig::with_max_event`] |
//! | redirects | 10 | [`HttpConfig::with_redirects`] |
//! | between two connections of a subscription | at least 0.5 s | [`Reconnect::with_min_delay`] |
//!
//! The headers of a response are bounded by the built-in engine: 100 of them and about 400 KB over HTTP/1.1, 16 KB over
//! HTTP/2. Responses are not decompressed. Items of a stream carry the response's headers up to 16 KiB of them, and after
//! the first item none if there are more.
//!
//! # When something fails
//!
//! Nothing is repeated unless [`HttpConfig::with_retries`] and [`HttpConfig::with_reconnect`] say so, but for a request
//! whose token was refused, which is sent once more with a new one. [`HttpConfig::with_max_in_flight`] bounds how many
//! requests are under way. Anything else goes around the built-in engine as a service: see [`HttpEngine`].
//!
//! Every request has a `tracing` span at the level `DEBUG`, with the fields of OpenTelemetry's conventions for HTTP
//! clients (`http.request.method`, `url.template`, `server.address`, `http.response.status_code`, ...). The URL is not
//! among them, nor is any value of the input.

mod address;
mod auth;
mod body;
mod caller;
mod client;
mod config;
mod destinations;
mod engine;
mod events;
mod exchange;
#[cfg(test)]
mod fake;
#[cfg(feature = "openapi")]
mod fetch;
#[cfg(feature = "openapi")]
pub(crate) mod import;
mod lines;
mod media;
mod outgoing;
pub mod pages;
mod path;
mod redirect;
mod request;
mod response;
mod retry;
mod send;
mod server;
mod settings;
pub mod sse;
mod style;

use serde_json::json;

pub use auth::{Auth, ClientCredentials, Secret, TokenRequest, TokenSource};
pub use client::HttpClient;
pub use config::HttpConfig;
pub use destinations::Destinations;
#[cfg(feature = "mcp-auth")]
pub(crate) use destinations::{Home, Resolver, is_local};
#[cfg(feature = "mcp-http")]
pub(crate) use engine::builder;
pub use engine::{HttpEngine, ResponseBody};
pub use outgoing::RequestBody;
pub use response::{error_body, error_status};
pub use retry::{Reconnect, Retry};

use crate::{CallError, ErrorCode};

/// The error of a value that cannot be sent, at a JSON pointer into the input or the configuration.
fn invalid(pointer: &str, message: impl Into<String>) -> CallError {
    let message = message.into();
    let violation = json!({ "pointer": pointer, "message": message });
    CallError::new(ErrorCode::ValidationError, message).with_details(json!({ "violations": [violation] }))
}

/// The JSON pointer to a property of the input (RFC 6901).
fn pointer(property: &str) -> String {
    format!("/{}", property.replace('~', "~0").replace('/', "~1"))
}
