//! The hub as a server of its own: connections that are no `WebSocket` yet are few, and have little time.

use std::collections::VecDeque;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::run::accept::accept;

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

/// Accepts connections until it is stopped, or until the listener is broken.
pub(super) async fn serve(listener: TcpListener, router: axum::Router, limits: Handshakes, stop: CancellationToken) {
    let mut begun: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener) => accepted,
            () = stop.cancelled() => return,
        };
        let stream = match accepted {
            Ok(stream) => stream,
            Err(error) => {
                tracing::warn!(%error, "the hub can accept no more connections: its listener is broken");
                return;
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

#[cfg(all(test, unix))]
mod tests {
    use std::os::fd::OwnedFd;

    use tokio::io::AsyncWriteExt;

    use super::*;

    /// The socket of a connection can accept none.
    #[tokio::test]
    async fn a_broken_listener_ends_the_server() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        // A socket that is ready to be read is asked for a connection.
        peer.write_all(b"GET").await.unwrap();
        let socket = OwnedFd::from(stream.into_std().unwrap());
        let broken = TcpListener::from_std(std::net::TcpListener::from(socket)).unwrap();
        let served = serve(broken, axum::Router::new(), Handshakes::default(), CancellationToken::new());
        tokio::time::timeout(Duration::from_secs(10), served).await.expect("the listener is polled for ever");
    }
}
