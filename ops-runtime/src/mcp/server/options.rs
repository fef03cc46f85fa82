//! The server's information about itself, and its limits.

use std::time::Duration;

use crate::model::setters::setters;

/// The server's information about itself, and its limits.
///
/// ```
/// use ops_runtime::mcp::McpServerOptions;
///
/// let options = McpServerOptions::new("calculator", "1.0.0").with_page_size(100).with_max_sessions(50);
/// assert_eq!(options.max_sessions, 50);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct McpServerOptions {
    /// The name of the server; `ops` by default.
    pub name: String,
    /// The version of the server; that of this crate by default.
    pub version: String,
    /// Instructions for the model.
    pub instructions: Option<String>,
    /// How many tools a page of the list has; 1,000 by default, because not every client asks for more pages.
    pub page_size: usize,
    /// How long clients may cache the list of tools; a minute by default. Clients that listen for changes are notified
    /// of each.
    pub list_ttl: Duration,
    /// Timeout of a call; by default only that of the operation. A task has the same, unless
    /// `McpTasks::with_timeout` sets another.
    pub timeout: Option<Duration>,
    /// How many items of a subscription are collected; 1,000 by default.
    pub max_items: usize,
    /// Limit of the JSON of the items of a subscription, in bytes; 1 MiB by default.
    pub max_bytes: usize,
    /// How long a client may take to answer a handler ([`McpPeer`](crate::mcp::McpPeer)), before 2026-07-28 and in tasks; 10 minutes
    /// by default.
    pub ask_timeout: Duration,
    /// Limit of sessions over HTTP; 1,000 by default. Beyond, a new one ends the least recently used.
    pub max_sessions: usize,
    /// How long a session over HTTP may be without a request in flight before it ends; 5 minutes by default. A stream
    /// of the server's own messages (GET) does not count as such a request.
    pub session_idle: Duration,
    /// How many requests over HTTP may be in flight, streams not counted; 2,000 by default.
    pub max_requests: usize,
    /// How many streams of the server's own messages may be open over HTTP that clients ask for since 2026-07-28
    /// (`subscriptions/listen`); 10,000 by default. More are answered with 503. Before, a stream (GET) counts for its
    /// session.
    pub max_streams: usize,
    /// How many requests and streams a session over HTTP may have at a time; 200 by default.
    pub max_session_requests: usize,
    /// Memory limit for the HTTP requests in flight, in bytes; 128 MiB by default. A JSON value counts for 256 bytes
    /// beside its text, so a request can have half a million of them.
    pub max_request_bytes: usize,
    /// Limit of the bytes of unread results; beyond it, new HTTP requests are refused; 64 MiB by default.
    pub max_unread_bytes: usize,
    /// Timeout for the body of an HTTP request; 30 seconds by default.
    pub read_timeout: Duration,
    /// Limit of connections of [`McpService::serve`](crate::mcp::McpService::serve); 1,000 by default. Further ones
    /// wait to be accepted.
    pub max_connections: usize,
    /// How long [`McpService::serve`](crate::mcp::McpService::serve) waits for the head of a request, and keeps an idle connection; 30 seconds by default.
    pub head_timeout: Duration,
    /// How long a client of [`McpService::serve`](crate::mcp::McpService::serve) may read nothing before its connection
    /// is closed; a minute by default.
    pub stall_timeout: Duration,
    /// True if callers see the messages of failures without a code of their own, such as those of `io::Error`.
    pub expose_errors: bool,
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

    setters! {
        /// Sets how many tools a page of the list has.
        with_page_size: page_size = usize;
        /// Sets how long clients may cache the list of tools.
        with_list_ttl: list_ttl = Duration;
        /// Sets how many items of a subscription are collected.
        with_max_items: max_items = usize;
        /// Sets the limit of the JSON of the items of a subscription, in bytes.
        with_max_bytes: max_bytes = usize;
        /// Sets how long a client may take to answer a handler, before 2026-07-28 and in tasks.
        with_ask_timeout: ask_timeout = Duration;
        /// Sets the limit of sessions over HTTP.
        with_max_sessions: max_sessions = usize;
        /// Sets how long a session over HTTP may be without a request in flight before it ends. A stream of the server's
        /// own messages (GET) does not count as such a request.
        with_session_idle: session_idle = Duration;
        /// Sets the limit of HTTP requests in flight.
        with_max_requests: max_requests = usize;
        /// Sets how many streams of the server's own messages may be open over HTTP since 2026-07-28.
        with_max_streams: max_streams = usize;
        /// Sets how many requests and streams a session over HTTP may have at a time.
        with_max_session_requests: max_session_requests = usize;
        /// Sets the memory limit for the HTTP requests in flight, in bytes.
        with_max_request_bytes: max_request_bytes = usize;
        /// Sets the limit of the bytes of unread results; beyond it, new HTTP requests are refused.
        with_max_unread_bytes: max_unread_bytes = usize;
        /// Sets the timeout for the body of an HTTP request.
        with_read_timeout: read_timeout = Duration;
        /// Sets the limit of connections of [`McpService::serve`](crate::mcp::McpService::serve).
        with_max_connections: max_connections = usize;
        /// Sets how long [`McpService::serve`](crate::mcp::McpService::serve) waits for the head of a request, and keeps
        /// an idle connection.
        with_head_timeout: head_timeout = Duration;
        /// Sets how long a client of [`McpService::serve`](crate::mcp::McpService::serve) may read nothing before its
        /// connection is closed.
        with_stall_timeout: stall_timeout = Duration;
    }

    /// Sets the timeout of a call, and of a task that has none of its own.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Shows callers the messages of failures without a code of their own, such as those of `io::Error`.
    #[must_use]
    pub fn with_exposed_errors(mut self) -> Self {
        self.expose_errors = true;
        self
    }
}

impl Default for McpServerOptions {
    fn default() -> Self {
        Self {
            name: "ops".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: None,
            page_size: 1_000,
            list_ttl: Duration::from_secs(60),
            timeout: None,
            max_items: 1_000,
            max_bytes: 1 << 20,
            ask_timeout: Duration::from_secs(600),
            max_sessions: 1_000,
            session_idle: Duration::from_secs(300),
            max_requests: 2_000,
            max_streams: 10_000,
            max_session_requests: 200,
            max_request_bytes: 128 << 20,
            max_unread_bytes: 64 << 20,
            read_timeout: Duration::from_secs(30),
            max_connections: 1_000,
            head_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            expose_errors: false,
        }
    }
}
