//! A network between two peers that can be disturbed.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes bytes on to a server, as long as it is told to.
pub(crate) struct Proxy {
    address: SocketAddr,
    /// Whether bytes are passed on, and how often connections have been cut.
    state: watch::Sender<(bool, u64)>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = watch::Sender::new((true, 0));
        let watching = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                // Nobody there: the connection is closed at once.
                let Ok(far) = TcpStream::connect(target).await else { continue };
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(pump(near_in, far_out, watching.subscribe()));
                tokio::spawn(pump(far_in, near_out, watching.subscribe()));
            }
        });
        Self { address, state, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes nothing on, and breaks nothing.
    pub(crate) fn stall(&self) {
        self.state.send_modify(|(passes, _)| *passes = false);
    }

    /// Passes on again what has piled up.
    pub(crate) fn resume(&self) {
        self.state.send_modify(|(passes, _)| *passes = true);
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|(_, cuts)| *cuts += 1);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<(bool, u64)>) {
    let (_, born) = *state.borrow_and_update();
    let mut cuts = state.clone();
    let pass = async {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let Ok(length) = from.read(&mut buffer).await else { return };
            if state.wait_for(|(passes, _)| *passes).await.is_err() || length == 0 {
                return;
            }
            if to.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = pass => {}
        _ = cuts.wait_for(|(_, cuts)| *cuts != born) => {}
    }
}
