//! The settings of a server.

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

use super::document::About;
use super::layers::Around;
use super::options::HttpServerOptions;
use crate::run::authenticator::Authenticator;
use crate::run::filter::Filters;
use crate::{AccessControl, BoxFuture, CancelToken, OperationSpec, Registry};

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
    pub(super) registry: Registry,
    pub(super) options: HttpServerOptions,
    pub(super) filters: Filters,
    pub(super) authenticators: Vec<Arc<dyn Authenticator>>,
    pub(super) hosts: Option<Vec<String>>,
    pub(super) origins: Vec<String>,
    pub(super) metrics: Option<AccessControl>,
    #[cfg(feature = "durable")]
    pub(super) jobs: Option<crate::durable::Jobs>,
    #[cfg(feature = "http-server-compression")]
    pub(super) compresses: bool,
    pub(super) cancel: CancelToken,
    // In a mutex, so that the server is `Sync` for any future.
    pub(super) shutdown: Option<Mutex<BoxFuture<'static, ()>>>,
    pub(super) about: Option<About>,
    pub(super) routes: Option<Router>,
    pub(super) layers: Vec<Around>,
}

impl HttpServer {
    /// A server for all operations that the registry has, now and later.
    pub fn new(registry: Registry) -> Self {
        Self {
            registry,
            options: HttpServerOptions::default(),
            filters: Filters::default(),
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
    pub fn with_namespaces<N: Into<String>>(mut self, namespaces: impl IntoIterator<Item = N>) -> Self {
        self.filters.add_namespaces(namespaces);
        self
    }

    /// Serves only operations that the filter accepts; with several filters, those that all accept.
    #[must_use]
    pub fn with_filter(mut self, filter: impl Fn(&OperationSpec) -> bool + Send + Sync + 'static) -> Self {
        self.filters.add(filter);
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
    /// (RFC 9110, section 8.8.3.3). A handler that compares it with `If-None-Match` or `If-Match` must ignore the
    /// prefix `W/`.
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
