//! What a server says of itself, and its limits.

use std::time::Duration;

/// What a server says of itself, and its limits.
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
    /// How to use the server, for the model.
    pub instructions: Option<String>,
    /// How many tools a page of the list has; 1,000 by default, because not every client asks for more pages.
    pub page_size: usize,
    /// How long clients may cache the list of tools; a minute by default. Clients that listen for changes are told of
    /// each.
    pub list_ttl: Duration,
    /// How long a call may take; by default as long as the operation allows.
    pub timeout: Option<Duration>,
    /// How many items of a subscription are collected; 1,000 by default.
    pub max_items: usize,
    /// How long the JSON of the items of a subscription may be, in bytes; 1 MiB by default.
    pub max_bytes: usize,
    /// How long a client may take to answer a handler ([`McpPeer`](crate::mcp::McpPeer)), before 2026-07-28 and in tasks; 10 minutes
    /// by default.
    pub ask_timeout: Duration,
    /// How many sessions there may be over HTTP; 1,000 by default. A further one ends the least recently used.
    pub max_sessions: usize,
    /// How long a session over HTTP may be without a request in flight before it ends; 5 minutes by default. A stream of the
    /// server's own messages (GET) is no such request.
    pub session_idle: Duration,
    /// How many requests over HTTP may be in flight, streams not counted; 2,000 by default.
    pub max_requests: usize,
    /// How many streams of the server's own messages may be open over HTTP that clients ask for since 2026-07-28
    /// (`subscriptions/listen`); 10,000 by default. More are answered with 503. Before, a stream (GET) counts for its
    /// session.
    pub max_streams: usize,
    /// How many requests and streams a session over HTTP may have at a time; 200 by default.
    pub max_session_requests: usize,
    /// How many bytes the requests in flight over HTTP may take in memory together; 128 MiB by default. A JSON value
    /// counts for 256 bytes beside its text, so a request can have half a million of them.
    pub max_request_bytes: usize,
    /// How many bytes of results may wait for their clients to read them, before new requests over HTTP are refused; 64
    /// MiB by default.
    pub max_unread_bytes: usize,
    /// How long the body of a request over HTTP may take; 30 seconds by default.
    pub read_timeout: Duration,
    /// How many connections [`McpService::serve`](crate::mcp::McpService::serve) has at a time; 1,000 by default. More wait to be accepted.
    pub max_connections: usize,
    /// How long [`McpService::serve`](crate::mcp::McpService::serve) waits for the head of a request, and keeps an idle connection; 30 seconds by default.
    pub head_timeout: Duration,
    /// How long a client of [`McpService::serve`](crate::mcp::McpService::serve) may read nothing before its connection is ended; a minute by default.
    pub stall_timeout: Duration,
    /// True if callers see the messages of failures that have no code of their own, such as those of `io::Error`.
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

    /// Sets how many tools a page of the list has.
    #[must_use]
    pub fn with_page_size(mut self, tools: usize) -> Self {
        self.page_size = tools;
        self
    }

    /// Sets how long clients may cache the list of tools.
    #[must_use]
    pub fn with_list_ttl(mut self, ttl: Duration) -> Self {
        self.list_ttl = ttl;
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sets how many items of a subscription are collected.
    #[must_use]
    pub fn with_max_items(mut self, items: usize) -> Self {
        self.max_items = items;
        self
    }

    /// Sets how long the JSON of the items of a subscription may be, in bytes.
    #[must_use]
    pub fn with_max_bytes(mut self, bytes: usize) -> Self {
        self.max_bytes = bytes;
        self
    }

    /// Sets how long a client may take to answer a handler, before 2026-07-28 and in tasks.
    #[must_use]
    pub fn with_ask_timeout(mut self, timeout: Duration) -> Self {
        self.ask_timeout = timeout;
        self
    }

    /// Sets how many sessions there may be over HTTP.
    #[must_use]
    pub fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets how long a session over HTTP may be without a request in flight before it ends. A stream of the server's own
    /// messages (GET) is no such request.
    #[must_use]
    pub fn with_session_idle(mut self, idle: Duration) -> Self {
        self.session_idle = idle;
        self
    }

    /// Sets how many requests over HTTP may be in flight.
    #[must_use]
    pub fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets how many streams of the server's own messages may be open over HTTP since 2026-07-28.
    #[must_use]
    pub fn with_max_streams(mut self, streams: usize) -> Self {
        self.max_streams = streams;
        self
    }

    /// Sets how many requests and streams a session over HTTP may have at a time.
    #[must_use]
    pub fn with_max_session_requests(mut self, requests: usize) -> Self {
        self.max_session_requests = requests;
        self
    }

    /// Sets how many bytes the requests in flight over HTTP may take in memory together.
    #[must_use]
    pub fn with_max_request_bytes(mut self, bytes: usize) -> Self {
        self.max_request_bytes = bytes;
        self
    }

    /// Sets how many bytes of results may wait for their clients to read them, before new requests over HTTP are
    /// refused.
    #[must_use]
    pub fn with_max_unread_bytes(mut self, bytes: usize) -> Self {
        self.max_unread_bytes = bytes;
        self
    }

    /// Sets how long the body of a request over HTTP may take.
    #[must_use]
    pub fn with_read_timeout(mut self, timeout: Duration) -> Self {
        self.read_timeout = timeout;
        self
    }

    /// Sets how many connections [`McpService::serve`](crate::mcp::McpService::serve) has at a time.
    #[must_use]
    pub fn with_max_connections(mut self, connections: usize) -> Self {
        self.max_connections = connections;
        self
    }

    /// Sets how long [`McpService::serve`](crate::mcp::McpService::serve) waits for the head of a request, and keeps
    /// an idle connection.
    #[must_use]
    pub fn with_head_timeout(mut self, timeout: Duration) -> Self {
        self.head_timeout = timeout;
        self
    }

    /// Sets how long a client of [`McpService::serve`](crate::mcp::McpService::serve) may read nothing before its
    /// connection is ended.
    #[must_use]
    pub fn with_stall_timeout(mut self, timeout: Duration) -> Self {
        self.stall_timeout = timeout;
        self
    }

    /// Shows callers the messages of failures that have no code of their own, such as those of `io::Error`.
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
