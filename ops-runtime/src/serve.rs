//! A registry over HTTP: its operations as endpoints, for any client.
//!
//! [`HttpServer::into_router`] gives an `axum` router, to be merged with a program's own routes or nested below a prefix;
//! [`HttpServer::serve`] listens itself.
//!
//! # Paths
//!
//! Every operation with a handler is at `POST /operations/{namespace}/{name}`, with its input as a JSON body. Those
//! that change nothing ([`may_change`](crate::spec::OperationSpec::may_change) is false) are there by GET, too, with the
//! input as JSON in the parameter `input`. A name is escaped as one segment.
//!
//! An operation that is bound to HTTP, by its document or by `#[operation(http = "..")]`, is also at the path of its
//! [binding](crate::binding::HttpBinding), and has the parameters and bodies of the binding: the server reads what
//! `HttpClient` writes. The input's schema restores types that a text lacks. Parameters in a query, a header or a
//! cookie that no schema declares are ignored. Such paths take precedence over the server's own, and those with more
//! literal text over others.
//!
//! `GET /healthz` reports that the server is running. `GET /metrics`, with [`HttpServer::with_metrics`], has its
//! metrics.
//!
//! `GET /openapi.json` and `GET /openapi.yaml` are the document of all operations (OpenAPI 3.1, or 3.2 if an operation
//! needs it). It needs no credentials, and has an `ETag`: a client with the present document gets 304.
//! [`HttpServer::without_document`] turns it off. `HttpServer::with_docs` (feature `docs-page`) adds `GET /docs`, a
//! page that shows it to people.
//!
//! # Responses
//!
//! The response has only the data: as JSON, or as the binding describes the success that the data match and `Accept`
//! prefers. With `Accept: application/vnd.ops.envelope+json` the response is the whole envelope, unless the client prefers
//! another type that the operation gives.
//!
//! A handler sets another status, from 200 to 599, headers and cookies by answering with a
//! [`ResponseEnvelope::http`](crate::ResponseEnvelope::http), or by its [`Context`](crate::Context). They are sent as they
//! are set, but for the headers of the connection and the length; 204, 205 and 304 have no body. The data and a
//! success status of another server's response are sent, but not its headers. To send a header to callers, set it in the
//! handler.
//!
//! If the response of an operation is bytes and its result is a [`Body`](crate::Body), it is sent piece by piece, as
//! the client reads it. If it fails on the way, the response is cut off. A request body that is bytes as a whole is
//! likewise a stream for a handler that takes a [`Body`](crate::Body); all other bodies, and the parts of a multipart
//! body, are held in memory.
//!
//! A subscription is a stream of server-sent events. Each has its number as `id`. Once a handler has set an id with
//! [`HttpMeta`](crate::envelope::HttpMeta), only the items for which it sets one have an `id`. An item that fails, or breaks
//! the output's schema, is an event `error` with a problem, and the stream goes on. By id, the stream ends with
//! `data: [DONE]`. At a path, it ends with the comment `: [DONE]`, unless its last item is an error that may pass. By id
//! and at the path of a function, `Accept: application/x-ndjson` requests lines, in which a failure is
//! `{"error": PROBLEM}`. A silent stream is kept open by comments or empty lines
//! ([`keep_alive`](HttpServerOptions::keep_alive)). One that a shutdown ends has such a failure as its last item, with the
//! code `ABORTED`.
//!
//! `Last-Event-ID` is `lastEventId` in the metadata of the call. Numbers continue after a number, which the server takes for
//! its own even if the handler has set it. After any other id, there are no numbers.
//!
//! The header `Prefer` (RFC 7240) is `prefer` in the metadata of the call.
//!
//! # Errors
//!
//! Every failure is a problem (RFC 9457, `application/problem+json`) with `code`, the id of the `request` in the
//! log, and for an invalid input all `violations`, each with a JSON pointer into the input.
//!
//! | failure | status |
//! |---|--:|
//! | the input breaks its schema (`VALIDATION_ERROR`) | 422 |
//! | the body is not JSON, or not text of its charset; the header `Host`, `Origin` or `Idempotency-Key` is invalid | 400 |
//! | missing or invalid credentials; missing scopes (`ACCESS_DENIED`) | 401; 403 |
//! | a host or origin that is not the server's (`with_hosts`, `with_origins`) | 403 |
//! | no operation is there (`OPERATION_NOT_FOUND`); not for this method | 404; 405 |
//! | the body comes too slowly; is too large; is of another type | 408; 413; 415 |
//! | the head is too large | 431 |
//! | a code of the handler's own | the status that the operation declares for it, else 400 |
//! | the operation is not implemented (`NOT_IMPLEMENTED`) | 501 |
//! | too many calls (`TOO_MANY_REQUESTS`; `retryAfter` in the details, in seconds, gives `Retry-After`) | 429 |
//! | a failure without a code of its own (`EXECUTION_ERROR`, `UNKNOWN_ERROR`), or a result that is not as promised | 500 |
//! | the error response of an API, at the path of an operation of that API that declares the status | this status |
//! | another failure of another server (`TOOL_ERROR`, any other error response) | 502 |
//! | the server is full, or no worker serves the operation (with `Retry-After`); the call was cancelled (`ABORTED`) | 503 |
//! | the call took too long (`TIMEOUT`) | 504 |
//!
//! If a handler fails with an [`ErrorResponse`](crate::ErrorResponse), such as a declared error of generated code, the
//! response has its status and body, by id as JSON. The same holds for the error response of an API, which keeps its
//! content type, if the client called an operation of that API at its HTTP path, and the operation declares the status.
//! If the client called it by id, the status is 502, and the details of the problem have the status and the body of the
//! response (`statusCode`, `body`). Of any other error response, clients see only the status, as `statusCode`: the
//! operation does not declare the status, or a function passes the error on. A range of statuses (`4XX`, `default`)
//! does not declare a redirect, 401 or 407, nor a text where it describes an object.
//!
//! Failures without a code of their own are logged, and the caller gets the request id. If a function fails
//! with a code that it does not declare, that is logged once per code.
//!
//! So is the text of a call that a function makes, if it is refused or ends too early. `TIMEOUT` and `ABORTED` keep their code, and so
//! does `ACCESS_DENIED`. But if the function makes the call with an identity of its own, and an access rule of this process refuses
//! it, the function has failed: the refusal says nothing of the function's caller. The texts of `TIMEOUT` and `ABORTED` of an
//! operation of another server or another process are only logged, too, unless this process has ended the call.
//!
//! A route of the program's own can fail with a [`CallError`](crate::CallError), too, as an axum response
//! (`IntoResponse`). It is logged, and clients see the same as those of an operation. The status is the one that the called
//! operation declares for the code, or else that of the table. The invalid input of a call, and an operation that is not there, are
//! failures of the route, with status 500.
//!
//! # Access
//!
//! An [`Authenticator`] determines the sender of a request: [`BearerTokens`], [`ApiKeys`], `JwtAuthenticator` (feature
//! `jwt`), or a closure. Several can be added. An operation requires what its access rules and the security of its
//! binding require; one without requirements accepts anonymous requests. A security scheme is satisfied by an identity
//! that has its scopes. Without an authenticator, only operations without requirements can be called.
//!
//! # Traces
//!
//! A valid `traceparent` of a request, with its `tracestate`, is in the metadata of the call, and so in the calls that
//! its handler makes: clients with `with_trace_context` send it on.
//!
//! # Versions
//!
//! Versions of an API are separate registries. Each is below a prefix, or a header selects it:
//!
//! ```
//! use axum::Router;
//! use axum::extract::Request;
//! use axum::http::{HeaderValue, StatusCode};
//! use axum::response::IntoResponse;
//! use ops_runtime::Registry;
//! use ops_runtime::serve::HttpServer;
//! use tower_service::Service;
//!
//! let (one, two) = (HttpServer::new(Registry::new()).into_router(), HttpServer::new(Registry::new()).into_router());
//! let by_prefix: Router = Router::new().nest("/v1", one.clone()).nest("/v2", two.clone());
//! let by_header: Router = Router::new().fallback(async move |request: Request| {
//!     let mut version = match request.headers().get("api-version").map(HeaderValue::as_bytes) {
//!         None | Some(b"1") => one.clone(),
//!         Some(b"2") => two.clone(),
//!         Some(_) => return StatusCode::BAD_REQUEST.into_response(),
//!     };
//!     version.call(request).await.into_response()
//! });
//! # let _ = (by_prefix, by_header);
//! ```
//!
//! # Limits
//!
//! [`HttpServerOptions`] has them, with safe defaults. Pages of other origins may not send requests unless
//! [`HttpServer::with_origins`] allows them. A server that listens on a loopback address accepts only the names of the
//! local host and that address, so that no page reaches it by DNS rebinding. [`HttpServer::with_hosts`] sets other
//! names. A [router](HttpServer::into_router) does not know where it listens, and accepts every host: set the hosts of
//! one on a loopback address, or web pages could reach it by DNS rebinding. Markup that an operation returns, such as
//! HTML, is shown without its scripts: serve pages of the program itself as routes beside the operations.

#![allow(clippy::result_large_err, reason = "an error is the response that is sent")]

mod accept;
mod access;
mod auth;
mod builder;
mod call;
#[cfg(feature = "http-server-compression")]
mod compress;
mod cors;
#[cfg(feature = "docs-page")]
mod docs;
mod document;
mod failed;
mod incoming;
mod input;
#[cfg(feature = "durable")]
mod jobs;
mod layers;
mod limits;
mod metrics;
mod options;
mod own_response;
mod pattern;
mod place;
mod problem;
mod read;
mod response;
mod routes;
mod run;
mod service;
mod status;
mod stream;
mod tag;
mod undeclared;
mod upload;

pub use self::auth::{ApiKeys, BearerTokens};
#[cfg(feature = "jwt")]
pub use self::auth::{JwtAlgorithm, JwtAuthenticator};
pub use self::builder::HttpServer;
pub use self::options::HttpServerOptions;
pub use crate::model::unauthorized::Unauthorized;
pub use crate::run::authenticator::Authenticator;
#[doc(hidden)]
pub use crate::run::host_check::local_hosts;
