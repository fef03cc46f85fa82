//! The server's information about itself, and its limits.

use std::time::Duration;

use crate::model::setters::options;

options! {
    /// The server's information about itself, and its limits.
    ///
    /// ```
    /// use ops_runtime::mcp::McpServerOptions;
    ///
    /// let options = McpServerOptions::new("calculator", "1.0.0").with_page_size(100).with_max_sessions(50);
    /// assert_eq!(options.max_sessions, 50);
    /// ```
    #[derive(Debug, Clone)]
    pub struct McpServerOptions {
        {
            /// The name of the server; `ops` by default.
            name: String = "ops".to_owned(),
            /// The version of the server; that of this crate by default.
            version: String = env!("CARGO_PKG_VERSION").to_owned(),
            /// Instructions for the model.
            instructions: Option<String> = None,
            /// Timeout of a call; by default only that of the operation. A task has the same, unless
            /// `McpTasks::with_timeout` sets another.
            timeout: Option<Duration> = None,
            /// True if callers see the messages of failures without a code of their own, such as those of `io::Error`.
            expose_errors: bool = false,
        }
        /// How many tools a page of the list has; 1,000 by default, because not every client asks for more pages.
        page_size, with_page_size: usize = 1_000,
        /// How long clients may cache the list of tools; a minute by default. Clients that listen for changes are notified
        /// of each.
        list_ttl, with_list_ttl: Duration = Duration::from_secs(60),
        /// How many items of a subscription are collected; 1,000 by default.
        max_items, with_max_items: usize = 1_000,
        /// Limit of the JSON of the items of a subscription, in bytes; 1 MiB by default.
        max_bytes, with_max_bytes: usize = 1 << 20,
        /// How long a client may take to answer a handler ([`McpPeer`](crate::mcp::McpPeer)), before 2026-07-28 and in
        /// tasks; 10 minutes by default.
        ask_timeout, with_ask_timeout: Duration = Duration::from_secs(600),
        /// Limit of sessions over HTTP; 1,000 by default. Beyond, a new one ends the least recently used.
        max_sessions, with_max_sessions: usize = 1_000,
        /// How long a session over HTTP may be without a request in flight before it ends; 5 minutes by default. A stream
        /// of the server's own messages (GET) does not count as such a request.
        session_idle, with_session_idle: Duration = Duration::from_secs(300),
        /// How many requests over HTTP may be in flight, streams not counted; 2,000 by default.
        max_requests, with_max_requests: usize = 2_000,
        /// How many streams of the server's own messages may be open over HTTP that clients ask for since 2026-07-28
        /// (`subscriptions/listen`); 10,000 by default. More are answered with 503. Before, a stream (GET) counts for its
        /// session.
        max_streams, with_max_streams: usize = 10_000,
        /// How many requests and streams a session over HTTP may have at a time; 200 by default.
        max_session_requests, with_max_session_requests: usize = 200,
        /// The longest body of an HTTP request, in bytes; 4 MiB by default. A longer one gets the status 413.
        max_body, with_max_body: usize = 4 << 20,
        /// Memory limit for the HTTP requests in flight, in bytes; 128 MiB by default. A JSON value counts for 256 bytes
        /// beside its text, so a request can have half a million of them.
        max_bodies, with_max_bodies: usize = 128 << 20,
        /// Limit of the bytes of unread results; beyond it, new HTTP requests are refused; 64 MiB by default.
        max_unread_bytes, with_max_unread_bytes: usize = 64 << 20,
        /// Timeout for the body of an HTTP request; 30 seconds by default.
        read_timeout, with_read_timeout: Duration = Duration::from_secs(30),
        /// Limit of connections of [`McpService::serve`](crate::mcp::McpService::serve); 1,000 by default. Further ones
        /// wait to be accepted.
        max_connections, with_max_connections: usize = 1_000,
        /// How long [`McpService::serve`](crate::mcp::McpService::serve) waits for the head of a request, and keeps an idle
        /// connection; 30 seconds by default.
        head_timeout, with_head_timeout: Duration = Duration::from_secs(30),
        /// How long a client of [`McpService::serve`](crate::mcp::McpService::serve) may read nothing before its connection
        /// is closed; a minute by default.
        stall_timeout, with_stall_timeout: Duration = Duration::from_secs(60),
    }
}

impl McpServerOptions {
    /// Default options with that name and version.
    pub fn new(name: impl Into<String>, version: impl Into<String>) -> Self {
        Self { name: name.into(), version: version.into(), ..Self::default() }
    }

    /// Sets the instructions for using the server, for the model.
    #[must_use]
    pub fn with_instructions(mut self, instructions: impl Into<String>) -> Self {
        self.instructions = Some(instructions.into());
        self
    }

    /// Sets the timeout of a call, and of a task that has none of its own. `None` leaves it to the operations.
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
