//! The limits of a server.

use std::time::Duration;

use crate::model::setters::options;

options! {
    /// The limits of a server, and the visibility of errors.
    ///
    /// ```
    /// use ops_runtime::serve::HttpServerOptions;
    ///
    /// let options = HttpServerOptions::new().with_max_body(64 << 10);
    /// assert_eq!(options.max_body, 64 << 10);
    /// ```
    #[derive(Debug, Clone)]
    pub struct HttpServerOptions {
        {
            /// How long a call may take, and a subscription until its handler has opened it; a minute by default. A longer
            /// one is answered with 504. For a handler that reads the body as a stream, the time in which it waits for pieces
            /// does not count, and begins again with each: they have [`read_timeout`](Self::read_timeout).
            timeout: Option<Duration> = Some(Duration::from_secs(60)),
            /// True if callers see the messages of failures without a code of their own, such as those of `io::Error`.
            expose_errors: bool = false,
        }
        /// The longest body of a request, in bytes; 4 MiB by default. A longer one gets the status 413.
        max_body, with_max_body: usize = 4 << 20,
        /// The longest body that a handler reads as a stream, in bytes; no limit by default, since such a body is not held
        /// in memory. A longer one gets the status 413, or ends the stream with an error.
        max_upload, with_max_upload: Option<u64> = None,
        /// Memory limit for the bodies of all requests in flight, in bytes; 128 MiB by default. A JSON value counts for
        /// 256 bytes beside its text. Requests beyond it get the status 503, and one that exceeds it alone gets 413: raise
        /// it together with [`max_body`](Self::max_body).
        max_bodies, with_max_bodies: usize = 128 << 20,
        /// Limit of requests in flight, not counting streams; 2,000 by default. Further ones get the status 503.
        max_requests, with_max_requests: usize = 2_000,
        /// Limit of open streams, of subscriptions and of bytes from handlers; 20,000 by default. Further ones get the
        /// status 503. A call whose response may be bytes counts as a stream from its beginning, and until its response also
        /// as a request in flight.
        max_streams, with_max_streams: usize = 20_000,
        /// Timeout for the body of a request, and for each piece of one that a handler reads as a stream; 30 seconds by
        /// default. A slower one gets the status 408, or ends the stream with an error.
        read_timeout, with_read_timeout: Duration = Duration::from_secs(30),
        /// How long a stream may stay silent before a comment, or an empty line, keeps its connection open; 15 seconds by
        /// default. With zero, nothing does, and a client that vanished from a silent stream may go unnoticed.
        keep_alive, with_keep_alive: Duration = Duration::from_secs(15),
        /// Limit of connections of [`HttpServer::serve`](crate::serve::HttpServer::serve); 25,000 by default. Further ones
        /// wait to be accepted.
        max_connections, with_max_connections: usize = 25_000,
        /// How long [`HttpServer::serve`](crate::serve::HttpServer::serve) waits for the head of a request, and keeps an idle
        /// connection; 30 seconds by default.
        head_timeout, with_head_timeout: Duration = Duration::from_secs(30),
        /// Limit of the head of a request at [`HttpServer::serve`](crate::serve::HttpServer::serve), in bytes; 64 KiB by
        /// default. It has at most 100 headers. A larger one gets the status 431.
        max_head, with_max_head: usize = 64 << 10,
        /// How long a client of [`HttpServer::serve`](crate::serve::HttpServer::serve) may read nothing before its
        /// connection is closed; a minute by default.
        stall_timeout, with_stall_timeout: Duration = Duration::from_secs(60),
        /// How long requests in flight may take after a shutdown has begun; 30 seconds by default.
        shutdown_timeout, with_shutdown_timeout: Duration = Duration::from_secs(30),
    }
}

impl HttpServerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the timeout of a call. `None` leaves it to the operations.
    #[must_use]
    pub fn with_timeout(mut self, timeout: impl Into<Option<Duration>>) -> Self {
        self.timeout = timeout.into();
        self
    }

    /// Shows callers the messages of failures without a code of their own, such as those of `io::Error`.
    #[must_use]
    pub fn with_exposed_errors(mut self) -> Self {
        self.expose_errors = true;
        self
    }
}
