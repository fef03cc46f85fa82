//! The service as a server of its own.

use std::io;
use std::time::Duration;

use http::Request;
use tokio::net::{TcpListener, ToSocketAddrs};

use super::body::of_request;
use super::http::McpService;
use crate::BoxFuture;
use crate::run::listen::{self, Limits};

/// Limit of the head of a request, in bytes.
const MAX_HEAD: usize = 64 * 1024;

impl McpService {
    /// Listens on an address and serves it over HTTP/1.1, as long as the future is polled, or until the token of
    /// [`with_cancel`](Self::with_cancel) is cancelled. Then idle connections are closed, and the others after the
    /// response to their request.
    ///
    /// Use it for a server that serves nothing else; otherwise mount the service beside the rest. The server's options
    /// limit the number of connections, the time for the head of a request (an idle connection is closed after that,
    /// too), and how long a client may read nothing.
    ///
    /// ```no_run
    /// # async fn run() -> std::io::Result<()> {
    /// use ops_runtime::Registry;
    /// use ops_runtime::mcp::McpServer;
    ///
    /// McpServer::new(Registry::new()).into_service().serve("127.0.0.1:8080").await
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the address cannot be listened on, with the address in the text, or if connections cannot be accepted any more.
    pub async fn serve(self, address: impl ToSocketAddrs) -> io::Result<()> {
        self.serve_listener(listen::bind(address).await?).await
    }

    /// Serves a listener as [`serve`](Self::serve) does, such as one whose port the system has chosen.
    ///
    /// # Errors
    /// If the listener cannot accept connections any more.
    pub fn serve_listener(self, listener: TcpListener) -> BoxFuture<'static, io::Result<()>> {
        Box::pin(async move {
            let options = self.options();
            let limits = Limits {
                max_connections: options.max_connections,
                head_timeout: options.head_timeout,
                max_head: MAX_HEAD,
                stall_timeout: options.stall_timeout,
                // Sessions and streams end with the token.
                shutdown_timeout: Duration::ZERO,
            };
            let cancel = self.cancel();
            listen::serve(listener, limits, cancel, move |mut request: Request<_>, cost| {
                // A task of the session runs the request's call.
                request.extensions_mut().insert(cost.clone());
                let answered = self.clone().respond(request.map(of_request));
                async move { answered.await.unwrap_or_else(|never| match never {}) }
            })
            .await
        })
    }
}
