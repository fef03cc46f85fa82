//! The limits of a server.

use std::time::Duration;

use crate::model::setters::setters;

/// The limits of a server, and the visibility of errors.
///
/// ```
/// use ops_runtime::serve::HttpServerOptions;
///
/// let options = HttpServerOptions::new().with_max_body(64 << 10);
/// assert_eq!(options.max_body, 64 << 10);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct HttpServerOptions {
    /// The longest body of a request, in bytes; 4 MiB by default. A longer one gets the status 413.
    pub max_body: usize,
    /// The longest body that a handler reads as a stream, in bytes; no limit by default, since such a body is not held
    /// in memory. A longer one gets the status 413, or ends the stream with an error.
    pub max_upload: Option<u64>,
    /// Memory limit for the bodies of all requests in flight, in bytes; 128 MiB by default. A JSON value counts for
    /// 256 bytes beside its text. Requests beyond it get the status 503.
    pub max_bodies: usize,
    /// Limit of requests in flight, not counting streams; 2,000 by default. Further ones get the status 503.
    pub max_requests: usize,
    /// Limit of open streams, of subscriptions and of bytes from handlers; 20,000 by default. Further ones get the
    /// status 503. A call whose response may be bytes counts as a stream from its beginning, and until its response also as
    /// a request in flight.
    pub max_streams: usize,
    /// Timeout for the body of a request, and for each piece of one that a handler reads as a stream; 30 seconds by
    /// default. A slower one gets the status 408, or ends the stream with an error.
    pub read_timeout: Duration,
    /// How long a call may take, and a subscription until its handler has opened it; a minute by default. A longer one is
    /// answered with 504. For a handler that reads the body as a stream, the time in which it waits for pieces does not count,
    /// and begins again with each: they have [`read_timeout`](Self::read_timeout).
    pub timeout: Option<Duration>,
    /// How long a stream may stay silent before a comment keeps its connection open; 15 seconds by default.
    pub keep_alive: Duration,
    /// Limit of connections of [`HttpServer::serve`](crate::serve::HttpServer::serve); 25,000 by default. Further ones
    /// wait to be accepted.
    pub max_connections: usize,
    /// How long [`HttpServer::serve`](crate::serve::HttpServer::serve) waits for the head of a request, and keeps an idle
    /// connection; 30 seconds by default.
    pub head_timeout: Duration,
    /// Limit of the head of a request at [`HttpServer::serve`](crate::serve::HttpServer::serve), in bytes; 64 KiB by
    /// default. It has at most 100 headers. A larger one gets the status 431.
    pub max_head: usize,
    /// How long a client of [`HttpServer::serve`](crate::serve::HttpServer::serve) may read nothing before its
    /// connection is closed; a minute by default.
    pub stall_timeout: Duration,
    /// How long requests in flight may take after a shutdown has begun; 30 seconds by default.
    pub shutdown_timeout: Duration,
    /// True if callers see the messages of failures without a code of their own, such as those of `io::Error`.
    pub expose_errors: bool,
}

impl HttpServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    setters! {
        /// Sets the longest body of a request, in bytes.
        with_max_body: max_body = usize;
        /// Sets the longest body that a handler reads as a stream, in bytes. `None` sets no limit.
        with_max_upload: max_upload = Option<u64>;
        /// Sets the memory limit for the bodies of all requests in flight, in bytes.
        with_max_bodies: max_bodies = usize;
        /// Sets the limit of requests in flight.
        with_max_requests: max_requests = usize;
        /// Sets the limit of open streams.
        with_max_streams: max_streams = usize;
        /// Sets the timeout for the body of a request.
        with_read_timeout: read_timeout = Duration;
        /// Sets the timeout of a call. `None` leaves it to the operations.
        with_timeout: timeout = Option<Duration>;
        /// Sets how long a stream may stay silent before a comment keeps its connection open.
        with_keep_alive: keep_alive = Duration;
        /// Sets the limit of connections.
        with_max_connections: max_connections = usize;
        /// Sets the timeout for the head of a request, after which an idle connection is closed, too.
        with_head_timeout: head_timeout = Duration;
        /// Sets the limit of the head of a request, in bytes; at least 8 KiB.
        with_max_head: max_head = usize;
        /// Sets how long a client may read nothing before its connection is closed.
        with_stall_timeout: stall_timeout = Duration;
        /// Sets how long requests in flight may take after a shutdown has begun.
        with_shutdown_timeout: shutdown_timeout = Duration;
    }

    /// Shows callers the messages of failures without a code of their own, such as those of `io::Error`.
    #[must_use]
    pub fn with_exposed_errors(mut self) -> Self {
        self.expose_errors = true;
        self
    }
}

impl Default for HttpServerOptions {
    fn default() -> Self {
        Self {
            max_body: 4 << 20,
            max_upload: None,
            max_bodies: 128 << 20,
            max_requests: 2_000,
            max_streams: 20_000,
            read_timeout: Duration::from_secs(30),
            timeout: Some(Duration::from_secs(60)),
            keep_alive: Duration::from_secs(15),
            max_connections: 25_000,
            head_timeout: Duration::from_secs(30),
            max_head: 64 << 10,
            stall_timeout: Duration::from_secs(60),
            shutdown_timeout: Duration::from_secs(30),
            expose_errors: false,
        }
    }
}
