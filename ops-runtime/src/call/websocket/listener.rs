//! The hub as a server of its own: connections that are no `WebSocket` yet are few, and have little time.

use std::collections::VecDeque;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

/// Limit of the bytes of a request head.
const MAX_HEAD: usize = 32 << 10;

/// The limits of a server of its own.
#[derive(Debug, Clone, Copy)]
pub(super) struct Handshakes {
    /// Limit of handshakes in progress.
    pub(super) most: usize,
    /// How long a handshake may take.
    pub(super) time: Duration,
}

impl Default for Handshakes {
    fn default() -> Self {
        Self { most: 256, time: Duration::from_secs(10) }
    }
}

/// Accepts connections until it is stopped.
pub(super) async fn serve(listener: TcpListener, router: axum::Router, limits: Handshakes, stop: CancellationToken) {
    let mut begun: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                // The limit of open files may be reached; connections that end make room.
                tracing::warn!(%error, "a connection can't be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if begun.len() >= limits.most {
            begun.retain(|handshake| !handshake.is_finished());
        }
        if begun.len() >= limits.most
            && let Some(oldest) = begun.pop_front()
        {
            // A valid handshake takes less time than so many connections need to arrive.
            oldest.abort();
        }
        begun.push_back(tokio::spawn(handshake(stream, router.clone(), limits.time)).abort_handle());
    }
}

/// Serves requests until one has become a WebSocket, or the time is up.
async fn handshake(stream: TcpStream, router: axum::Router, time: Duration) {
    // Writes are complete messages, so waiting for more gains nothing.
    let _ = stream.set_nodelay(true);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(time)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .with_upgrades();
    if let Ok(Err(error)) = tokio::time::timeout(time, connection).await {
        tracing::debug!(%error, "a connection ended before it was one of the hub's");
    }
}
