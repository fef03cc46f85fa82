//! A network between two peers that can be disturbed.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Passes bytes on to a server, as long as it is told to.
pub(crate) struct Proxy {
    address: SocketAddr,
    state: watch::Sender<State>,
    task: JoinHandle<()>,
}

/// What becomes of bytes.
#[derive(Clone, Copy, Default)]
struct State {
    /// Whether they are held up, on their way to the server and back.
    stalled: [bool; 2],
    /// Whether new connections are refused.
    closed: bool,
    /// How much later they arrive.
    delay: Duration,
    /// How many pass in a second to the server, if there is a limit.
    pace: Option<u64>,
    /// The server that new connections reach, if it is another than at first.
    target: Option<SocketAddr>,
    /// How often connections have been cut.
    cuts: u64,
}

impl Proxy {
    pub(crate) async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = watch::Sender::new(State::default());
        let watching = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                if watching.borrow().closed {
                    continue;
                }
                let target = watching.borrow().target.unwrap_or(target);
                // Nobody there: the connection is closed at once.
                let Ok(far) = TcpStream::connect(target).await else { continue };
                let _ = (near.set_nodelay(true), far.set_nodelay(true));
                let ((near_in, near_out), (far_in, far_out)) = (near.into_split(), far.into_split());
                tokio::spawn(pump(near_in, far_out, watching.subscribe(), 0));
                tokio::spawn(pump(far_in, near_out, watching.subscribe(), 1));
            }
        });
        Self { address, state, task }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes nothing on, and breaks nothing.
    pub(crate) fn stall(&self) {
        self.state.send_modify(|state| state.stalled = [true; 2]);
    }

    /// Passes nothing back from the server, and breaks nothing.
    #[allow(dead_code)]
    pub(crate) fn mute(&self) {
        self.state.send_modify(|state| state.stalled = [false, true]);
    }

    /// Passes everything on that much later.
    #[allow(dead_code)]
    pub(crate) fn delay(&self, delay: Duration) {
        self.state.send_modify(|state| state.delay = delay);
    }

    /// Passes so many bytes a second on to the server.
    #[allow(dead_code)]
    pub(crate) fn slow(&self, bytes: u64) {
        self.state.send_modify(|state| state.pace = Some(bytes));
    }

    /// Passes on again what has piled up, and whatever comes.
    pub(crate) fn resume(&self) {
        self.state.send_modify(|state| *state = State { cuts: state.cuts, target: state.target, ..State::default() });
    }

    /// Passes new connections on to another server; those that there are stay as they are.
    #[allow(dead_code)]
    pub(crate) fn redirect(&self, target: SocketAddr) {
        self.state.send_modify(|state| state.target = Some(target));
    }

    /// Breaks every connection.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Breaks every connection, and refuses new ones.
    #[allow(dead_code)]
    pub(crate) fn close(&self) {
        self.state.send_modify(|state| (state.closed, state.cuts) = (true, state.cuts + 1));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
        self.task.abort();
    }
}

async fn pump(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<State>, way: usize) {
    let born = state.borrow_and_update().cuts;
    let mut cuts = state.clone();
    let pass = async {
        let mut buffer = vec![0; 16 << 10];
        loop {
            let Ok(length) = from.read(&mut buffer).await else { return };
            if state.wait_for(|state| !state.stalled[way]).await.is_err() || length == 0 {
                return;
            }
            let delay = state.borrow().delay;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            let pace = state.borrow().pace.filter(|_| way == 0);
            if let Some(pace) = pace {
                tokio::time::sleep(Duration::from_secs(1).mul_f64(length as f64 / pace as f64)).await;
            }
            if to.write_all(&buffer[..length]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = pass => {}
        _ = cuts.wait_for(|state| state.cuts != born) => {}
    }
}
