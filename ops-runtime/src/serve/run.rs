//! Running the server, as a router or with a listener of its own, and its shutdown.

use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::body::Body;
use futures_util::future::{Either, select};
use http::Request;
use tokio::net::{TcpListener, ToSocketAddrs};
use tower_service::Service;

use super::HttpServer;
use super::auth::Several;
use super::incoming::Shared;
use super::layers::Layers;
use super::limits::Limits;
use super::metrics::Metrics;
use super::routes::Cache;
use crate::run::host_check::{Door, local_hosts};
use crate::run::listen;
use crate::{BoxFuture, CancelToken};

impl HttpServer {
    /// Sets a token that begins the shutdown: no more connections are accepted, streams end, and other requests in
    /// flight are completed.
    #[must_use]
    pub fn with_cancel(mut self, cancel: CancelToken) -> Self {
        self.cancel = cancel;
        self
    }

    /// Begins the shutdown when the future completes, like [`with_cancel`](Self::with_cancel) when its token is
    /// cancelled.
    ///
    /// It is for [`serve`](Self::serve) and [`serve_listener`](Self::serve_listener), which return when the shutdown
    /// has completed; a [router](Self::into_router) is shut down by the server that uses it.
    ///
    /// ```no_run
    /// # async fn run(registry: ops_runtime::Registry) -> std::io::Result<()> {
    /// use ops_runtime::serve::HttpServer;
    ///
    /// let ctrl_c = async {
    ///     let _ = tokio::signal::ctrl_c().await;
    /// };
    /// HttpServer::new(registry).with_shutdown(ctrl_c).serve("127.0.0.1:8080").await
    /// # }
    /// ```
    #[must_use]
    pub fn with_shutdown(mut self, shutdown: impl Future<Output = ()> + Send + 'static) -> Self {
        self.shutdown = Some(Mutex::new(Box::pin(shutdown)));
        self
    }

    /// The server as a router, to be merged with others or nested below a prefix.
    ///
    /// The operations are its fallback, so that a program's own routes take precedence. A router that it is merged with
    /// must not have a fallback itself. Requests for any host are accepted, unless [`with_hosts`](Self::with_hosts)
    /// sets the hosts: without authentication, web pages could reach a server on a loopback address.
    ///
    /// ```no_run
    /// # async fn run() -> std::io::Result<()> {
    /// use axum::{Router, routing::get};
    /// use ops_runtime::Registry;
    /// use ops_runtime::serve::HttpServer;
    ///
    /// let own = Router::new().route("/hello", get(async || "hello"));
    /// let api = HttpServer::new(Registry::new()).with_hosts(["localhost", "127.0.0.1"]);
    /// let app = own.nest("/api", api.into_router());
    /// axum::serve(tokio::net::TcpListener::bind("127.0.0.1:8080").await?, app).await
    /// # }
    /// ```
    pub fn into_router(self) -> Router {
        let (shared, layers) = self.into_parts();
        layers.around(shared)
    }

    /// The server, and what is around it.
    fn into_parts(self) -> (Arc<Shared>, Layers) {
        #[cfg(feature = "http-server-compression")]
        let compresses = self.compresses;
        let metrics = self.metrics.clone().map(Metrics::new);
        #[cfg(feature = "durable")]
        let metrics = metrics.map(|metrics| metrics.with_jobs(self.jobs.clone()));
        let metrics = metrics.map(Arc::new);
        let Self { registry, options, filters, authenticators, hosts, origins, cancel, about, .. } = self;
        let authenticator = Several::of(authenticators);
        let schemes = authenticator.as_ref().map(|own| own.schemes()).unwrap_or_default();
        let mut door = Door::any();
        if let Some(hosts) = hosts {
            door.set_hosts(hosts);
        }
        origins.iter().for_each(|origin| door.add_origin(origin));
        let pages = door.has_origins().then(|| Arc::new(door.clone()));
        let (limits, cancel, cache) = (Limits::new(&options), cancel.own, Cache::default());
        let undeclared = Arc::default();
        let shared = Shared {
            registry,
            options,
            filters,
            authenticator,
            schemes,
            door,
            limits,
            metrics,
            cancel,
            cache,
            about,
            undeclared,
        };
        let layers = Layers {
            routes: self.routes,
            own: self.layers,
            pages,
            #[cfg(feature = "http-server-compression")]
            compresses,
        };
        (Arc::new(shared), layers)
    }

    /// Listens on an address, such as `127.0.0.1:8080`, and serves like [`serve_listener`](Self::serve_listener).
    ///
    /// # Errors
    /// If the address cannot be bound, with the address in the text, and those of
    /// [`serve_listener`](Self::serve_listener).
    pub async fn serve(self, address: impl ToSocketAddrs) -> io::Result<()> {
        self.serve_listener(listen::bind(address).await?).await
    }

    /// Serves a listener over HTTP/1.1 until [`with_shutdown`](Self::with_shutdown) or
    /// [`with_cancel`](Self::with_cancel) begins the shutdown. Returns when the requests in flight have completed, or
    /// after [`shutdown_timeout`](super::HttpServerOptions::shutdown_timeout).
    ///
    /// # Errors
    /// If the listener cannot accept connections any more.
    pub fn serve_listener(mut self, listener: TcpListener) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let local = listener.local_addr().ok().map(|address| address.ip()).filter(IpAddr::is_loopback);
            if let Some(address) = local.filter(|_| self.hosts.is_none()) {
                self = self.with_hosts(local_hosts(address));
            }
            let limits = listen::Limits {
                max_connections: self.options.max_connections,
                head_timeout: self.options.head_timeout,
                max_head: self.options.max_head,
                stall_timeout: self.options.stall_timeout,
                shutdown_timeout: self.options.shutdown_timeout,
            };
            // The program may use its token for more than this server.
            self.cancel = CancelToken::of(self.cancel.own.child_token());
            let cancel = self.cancel.own.clone();
            let shutdown = self.shutdown.take().map(|own| own.into_inner().unwrap_or_else(PoisonError::into_inner));
            let (shared, layers) = self.into_parts();
            // Errors in the routes are reported before the first request.
            shared.cache.get(&shared.registry, &shared.filters);
            // A router without layers would only cost time.
            let router = (!layers.is_nothing()).then(|| layers.around(shared.clone()));
            let serving = listen::serve(listener, limits, cancel.clone(), move |request: Request<_>, _| {
                // With layers and without, the body has the same type: the code that reads it is compiled for each type.
                let (shared, router, request) = (shared.clone(), router.clone(), request.map(Body::new));
                // Boxed, since a future of this size would be moved.
                let answered: BoxFuture<'static, _> = match router {
                    Some(mut router) => {
                        Box::pin(async move { router.call(request).await.unwrap_or_else(|never| match never {}) })
                    }
                    None => Box::pin(shared.respond(request)),
                };
                answered
            });
            let Some(shutdown) = shutdown else { return serving.await };
            match select(pin!(serving), shutdown).await {
                Either::Left((served, _)) => served,
                Either::Right(((), serving)) => {
                    cancel.cancel();
                    serving.await
                }
            }
        })
    }
}
