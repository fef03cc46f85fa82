//! A registry over HTTP: its operations as endpoints, for any client.
//!
//! [`HttpServer::into_router`] gives an `axum` router, to be merged with a program's own routes or nested below a prefix;
//! [`HttpServer::serve`] listens itself.
//!
//! # Paths
//!
//! Every operation with a handler is at `POST /operations/{namespace}/{name}`, with its input as a JSON body. Queries
//! and subscriptions are there by GET, too, with the input as JSON in the parameter `input`. A name is escaped as one
//! segment.
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
//! prefers. With `Accept: application/vnd.ops.envelope+json` the response is the whole envelope.
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
//! A subscription is a stream of server-sent events. Each has its number as `id`, or the id that a handler sets with
//! [`HttpMeta`](crate::envelope::HttpMeta). An item that fails is an event `error` with a problem, and the stream goes
//! on. By id, the stream ends with `data: [DONE]`. `Accept: application/x-ndjson` requests lines, in which a failure is
//! `{"error": PROBLEM}`. `Last-Event-ID` is `lastEventId` in the metadata of the call, and numbers continue after it.
//!
//! The header `Prefer` (RFC 7240) is `prefer` in the metadata of the call.
//!
//! # Errors
//!
//! Every failure is a problem (RFC 9457, `application/problem+json`) with `code`, the number of the `request` in the
//! log, and for an invalid input all `violations`, each with a JSON pointer into the input.
//!
//! | failure | status |
//! |---|--:|
//! | the input breaks its schema (`VALIDATION_ERROR`) | 422 |
//! | the body is not JSON, or not text of its charset | 400 |
//! | missing or invalid credentials; missing scopes (`ACCESS_DENIED`) | 401; 403 |
//! | a host or origin that is not the server's (`with_hosts`, `with_origins`) | 403 |
//! | no operation is there (`OPERATION_NOT_FOUND`); not for this method | 404; 405 |
//! | the body comes too slowly; is too large; is of another type | 408; 413; 415 |
//! | a code of the handler's own | the status that the operation declares for it, else 400 |
//! | the operation is not implemented (`NOT_IMPLEMENTED`) | 501 |
//! | too many calls (`TOO_MANY_REQUESTS`; `retryAfter` in the details, in seconds, gives `Retry-After`) | 429 |
//! | a failure without a code of its own (`EXECUTION_ERROR`, `UNKNOWN_ERROR`), or a result that is not as promised | 500 |
//! | another server failed (`TOOL_ERROR`, the error of an HTTP response) | 502 |
//! | the server is full, or no worker serves the operation (with `Retry-After`); the call was cancelled (`ABORTED`) | 503 |
//! | the call took too long (`TIMEOUT`) | 504 |
//!
//! If a handler fails with an [`ErrorResponse`](crate::ErrorResponse), such as a declared error of generated code, the
//! response has its status and body. So it does for another server's error if the operation declares the status.
//! Failures without a code of their own are logged, and the caller gets the number of the request. If a function fails
//! with a code that it does not declare, that is logged once per code.
//!
//! A route of the program's own can fail with a [`CallError`](crate::CallError), too: as an axum response
//! (`IntoResponse`), it is logged, and its clients see the same as those of an operation, with the statuses above.
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
mod auth;
mod call;
#[cfg(feature = "http-server-compression")]
mod compress;
mod cors;
#[cfg(feature = "docs-page")]
mod docs;
mod document;
mod failed;
mod identity;
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
mod stream;
mod tag;
mod undeclared;
mod upload;

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::response::IntoResponse;
use axum::routing::Route;
use http::Request;
use tower_layer::Layer;
use tower_service::Service;

use self::document::About;
use self::layers::Around;
use self::routes::Filter;
use crate::{AccessControl, BoxFuture, CancelToken, OperationSpec, Registry};

pub use self::auth::{ApiKeys, BearerTokens};
#[cfg(feature = "jwt")]
pub use self::auth::{JwtAlgorithm, JwtAuthenticator};
pub use self::identity::Authenticator;
pub use self::options::HttpServerOptions;
pub use crate::model::unauthorized::Unauthorized;

/// A registry as an HTTP server.
///
#[cfg_attr(
    feature = "macros",
    doc = r#"
```no_run
use ops_runtime::serve::HttpServer;
use ops_runtime::{Registry, operation};

/// Adds two numbers.
#[operation(namespace = "math", kind = query)]
async fn add(a: i64, b: i64) -> i64 {
    a + b
}

# #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
let registry = Registry::new();
registry.register(Add)?;
// curl localhost:8080/operations/math/add --json '{"a":40,"b":2}'
HttpServer::new(registry).serve("127.0.0.1:8080").await?;
# Ok(()) }
```
"#
)]
pub struct HttpServer {
    registry: Registry,
    options: HttpServerOptions,
    filters: Vec<Filter>,
    authenticators: Vec<Arc<dyn Authenticator>>,
    hosts: Option<Vec<String>>,
    origins: Vec<String>,
    metrics: Option<AccessControl>,
    #[cfg(feature = "durable")]
    jobs: Option<crate::durable::Jobs>,
    #[cfg(feature = "http-server-compression")]
    compresses: bool,
    cancel: CancelToken,
    // In a mutex, so that the server is `Sync` for any future.
    shutdown: Option<Mutex<BoxFuture<'static, ()>>>,
    about: Option<About>,
    routes: Option<Router>,
    layers: Vec<Around>,
}

impl HttpServer {
    /// A server for all operations that the registry has, now and later.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            options: HttpServerOptions::default(),
            filters: Vec::new(),
            authenticators: Vec::new(),
            hosts: None,
            origins: Vec::new(),
            metrics: None,
            #[cfg(feature = "durable")]
            jobs: None,
            #[cfg(feature = "http-server-compression")]
            compresses: false,
            cancel: CancelToken::new(),
            shutdown: None,
            about: Some(About::default()),
            routes: None,
            layers: Vec::new(),
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn with_options(mut self, options: HttpServerOptions) -> Self {
        self.options = options;
        self
    }

    /// Adds an authenticator, which determines the identity of the sender of a request.
    ///
    /// Several are tried in turn: the first that knows the sender counts. Credentials that one refuses stay refused,
    /// unless a later one accepts credentials in the same place, such as tokens of another kind.
    #[must_use]
    pub fn with_authenticator(mut self, authenticator: impl Authenticator) -> Self {
        self.authenticators.push(Arc::new(authenticator));
        self
    }

    /// Serves the operations of these namespaces only.
    #[must_use]
    pub fn with_namespaces<N: Into<String>>(self, namespaces: impl IntoIterator<Item = N>) -> Self {
        let namespaces: Vec<String> = namespaces.into_iter().map(Into::into).collect();
        self.with_filter(move |spec| namespaces.iter().any(|namespace| namespace == spec.namespace()))
    }

    /// Serves only operations that the filter accepts; with several filters, those that all accept.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&OperationSpec) -> bool + Send + Sync + 'static) -> Self {
        self.filters.push(Box::new(filter));
        self
    }

    /// Sets the hosts of the server, with or without a port, such as `api.example.com`. Requests for others are
    /// refused.
    #[must_use]
    pub fn with_hosts<H: Into<String>>(mut self, hosts: impl IntoIterator<Item = H>) -> Self {
        self.hosts = Some(hosts.into_iter().map(Into::into).collect());
        self
    }

    /// Lets pages of other origins send requests (CORS), such as `https://app.example.com`, or `http://localhost:*` for any
    /// port. Their scripts may send any header but cookies, and read all of the responses.
    #[must_use]
    pub fn with_origins<O: Into<String>>(mut self, origins: impl IntoIterator<Item = O>) -> Self {
        self.origins.extend(origins.into_iter().map(Into::into));
        self
    }

    /// Sets the title of the document; by default, the namespace if all operations have the same.
    #[must_use]
    pub fn with_title(mut self, title: impl Into<String>) -> Self {
        self.about.get_or_insert_default().title = Some(title.into());
        self
    }

    /// Sets the version of the API in the document; by default, that of the operations if all have the same, otherwise
    /// `1.0.0`.
    #[must_use]
    pub fn with_version(mut self, version: impl Into<String>) -> Self {
        self.about.get_or_insert_default().version = Some(version.into());
        self
    }

    /// Sets the description of the API in the document, in Markdown.
    #[must_use]
    pub fn with_description(mut self, description: impl Into<String>) -> Self {
        self.about.get_or_insert_default().description = Some(description.into());
        self
    }

    /// Turns off `/openapi.json` and `/openapi.yaml`, and with them the page `/docs`.
    #[must_use]
    pub fn without_document(mut self) -> Self {
        self.about = None;
        self
    }

    /// Serves the metrics at `GET /metrics`, for Prometheus, to callers that the rules allow. Off by default, since
    /// they show which operations exist and how often they fail.
    ///
    /// - `ops_http_requests_total`, a counter: `operation`, `status`
    /// - `ops_http_request_duration_seconds`, a histogram: `operation`
    /// - `ops_http_requests_in_flight` and `ops_http_streams_open`, gauges
    ///
    /// `operation` is the id of a served operation, or empty for a request to none. The duration ends with the head of
    /// the response. A client that disconnected before counts as status 499. With the feature `metrics`, the first
    /// three are also recorded for the facade `metrics`, with or without this setting.
    ///
    /// ```
    /// use ops_runtime::Registry;
    /// use ops_runtime::access::{AccessControl, Identity};
    /// use ops_runtime::serve::{BearerTokens, HttpServer};
    ///
    /// let tokens = BearerTokens::new().with_token("s3cret", Identity::new("prometheus").with_scope("metrics:read"));
    /// let server = HttpServer::new(Registry::new())
    ///     .with_authenticator(tokens)
    ///     .with_metrics(AccessControl::NONE.with_scopes(&["metrics:read"])); // `AccessControl::NONE` is for everybody
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn with_metrics(mut self, access: AccessControl) -> Self {
        self.metrics = Some(access);
        self
    }

    /// Adds the queues of these jobs to `GET /metrics` ([`with_metrics`](Self::with_metrics)).
    ///
    /// `ops_jobs_open`, `ops_jobs_dead` and `ops_jobs_oldest_age_seconds` are gauges with the label `queue`. The engine
    /// is asked at each request, for at most 2 seconds; a queue without a response is left out.
    #[cfg(feature = "durable")]
    #[must_use]
    pub fn with_jobs(mut self, jobs: crate::durable::Jobs) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Compresses responses of a kilobyte or more with gzip for clients that accept it. Streams are not compressed. Off
    /// by default.
    ///
    /// Do not compress responses that contain both a secret and text of the request: their length reveals the secret
    /// (BREACH). A strong `ETag` of a compressed response becomes a weak one, such as `W/"7"`, also if a handler set it
    /// (RFC 9110, section 8.8.3.3). A handler that compares it with `If-Match` should ignore the prefix `W/`.
    #[cfg(feature = "http-server-compression")]
    #[must_use]
    pub fn with_compression(mut self) -> Self {
        self.compresses = true;
        self
    }

    /// Adds the page `GET /docs`, which shows the document and calls its operations.
    ///
    /// The page is part of the program and loads nothing from other servers. Like the document, it needs no
    /// credentials. Credentials that a reader enters are sent only to this server, and are forgotten when the tab is
    /// closed.
    #[cfg(feature = "docs-page")]
    #[must_use]
    pub fn with_docs(mut self) -> Self {
        self.about.get_or_insert_default().has_page = true;
        self
    }

    /// Adds routes of the program's own, such as an MCP server at `/mcp`, which take precedence over the operations.
    /// They share the limits of connections, and handle everything else themselves. A `WebSocket` is not counted or
    /// waited for.
    ///
    /// They have no fallback, such as the files of a single-page application: what no route takes is for the operations. Such
    /// a program gives its fallback to the router in which it nests [`into_router`](Self::into_router).
    ///
    /// ```
    /// use axum::{Router, routing::get};
    /// use ops_runtime::Registry;
    /// use ops_runtime::serve::HttpServer;
    ///
    /// let own = Router::new().route("/hello", get(async || "hello"));
    /// let server = HttpServer::new(Registry::new()).with_routes(own);
    /// # let _ = server;
    /// ```
    ///
    /// # Panics
    /// If the router has a fallback, or a path that was added before.
    #[must_use]
    #[track_caller]
    pub fn with_routes(mut self, routes: Router) -> Self {
        // Where the program gives it, and not later, where the server begins.
        drop(Router::<()>::new().fallback(|| async {}).merge(routes.clone()));
        self.routes = Some(self.routes.unwrap_or_default().merge(routes));
        self
    }

    /// Adds a tower layer around all responses of the server, including [own routes](Self::with_routes), such as
    /// `TraceLayer` of the crate `tower-http`.
    ///
    /// The limits of connections stay, and a request that a layer refuses reaches no operation. Each layer is around
    /// those that were added before, as with [`Router::layer`].
    ///
    /// ```
    /// use axum::extract::Request;
    /// use axum::http::header::{HeaderValue, STRICT_TRANSPORT_SECURITY};
    /// use axum::middleware::{Next, from_fn};
    /// use ops_runtime::Registry;
    /// use ops_runtime::serve::HttpServer;
    ///
    /// let secure = from_fn(async |request: Request, next: Next| {
    ///     let mut response = next.run(request).await;
    ///     response.headers_mut().insert(STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    ///     response
    /// });
    /// let server = HttpServer::new(Registry::new()).with_layer(secure);
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn with_layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<Route> + Clone + Send + Sync + 'static,
        L::Service: Service<Request<Body>, Response: IntoResponse, Error: Into<Infallible>, Future: Send>
            + Clone
            + Send
            + Sync
            + 'static,
    {
        self.layers.push(Box::new(|router| router.layer(layer)));
        self
    }
}

impl fmt::Debug for HttpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpServer").field("options", &self.options).finish_non_exhaustive()
    }
}
