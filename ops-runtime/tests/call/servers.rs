//! Brokers of the tests' own: started on free ports with their data in a folder of their own, killed when dropped.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener as Listener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A running server.
pub(crate) struct Server {
    command: Box<dyn Fn(u16, &PathBuf) -> Command + Send + Sync>,
    child: Option<Child>,
    port: u16,
    folder: PathBuf,
}

impl Server {
    /// A `nats-server`.
    #[cfg(feature = "nats")]
    pub(crate) async fn nats(arguments: &'static [&'static str]) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
        Self::start(move |port, _| {
            let mut command = Command::new(program);
            command.args(["--addr", "127.0.0.1", "--port", &port.to_string()]).args(arguments);
            command
        })
        .await
    }

    /// A `redis-server`, which keeps nothing over a restart unless it is told to.
    #[cfg(feature = "redis")]
    pub(crate) async fn redis(arguments: &'static [&'static str]) -> Self {
        Self::start(move |port, folder| {
            let mut command = Command::new("redis-server");
            command.args(["--bind", "127.0.0.1", "--port", &port.to_string(), "--save", ""]);
            command.arg("--dir").arg(folder).args(arguments);
            command
        })
        .await
    }

    async fn start(command: impl Fn(u16, &PathBuf) -> Command + Send + Sync + 'static) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ops-broker-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let mut server = Self { command: Box::new(command), child: None, port: 0, folder };
        // Somebody may take the port before the server does.
        for _ in 0..5 {
            server.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if server.launch().await {
                return server;
            }
        }
        panic!("the server does not start");
    }

    async fn launch(&mut self) -> bool {
        let mut command = (self.command)(self.port, &self.folder);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap_or_else(|error| {
            panic!("{:?} can't be started ({error}): run tests/peers/install", command.get_program())
        });
        for _ in 0..3_000 {
            if TcpStream::connect(self.address()).await.is_ok() {
                self.child = Some(child);
                return true;
            }
            if child.try_wait().unwrap().is_some() {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the server does not listen");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Ends it as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Starts it again, at the same address.
    pub(crate) async fn restart(&mut self) {
        for _ in 0..50 {
            if self.launch().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the server does not come back");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What a proxy does with the bytes that pass it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Flow {
    Forward,
    /// Takes no more, and keeps the connections.
    Stall,
    /// Ends the connections, and takes no new ones.
    Cut,
}

/// A network between a client and a server, which can fail.
#[derive(Clone)]
pub(crate) struct Proxy {
    address: SocketAddr,
    flow: Arc<watch::Sender<Flow>>,
    _task: Arc<Abort>,
}

struct Abort(JoinHandle<()>);

impl Drop for Abort {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Proxy {
    pub(crate) async fn to(server: SocketAddr) -> Self {
        let listener = Listener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let flow = Arc::new(watch::Sender::new(Flow::Forward));
        let seen = flow.subscribe();
        let task = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connect(client, server, seen.clone()));
            }
        });
        Self { address, flow, _task: Arc::new(Abort(task)) }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Forwards nothing any more, without a word.
    pub(crate) fn stall(&self) {
        self.flow.send_replace(Flow::Stall);
    }

    /// Ends all connections.
    pub(crate) fn cut(&self) {
        self.flow.send_replace(Flow::Cut);
    }

    /// Forwards again.
    pub(crate) fn heal(&self) {
        self.flow.send_replace(Flow::Forward);
    }
}

async fn connect(client: TcpStream, server: SocketAddr, seen: watch::Receiver<Flow>) {
    let mut flow = seen.clone();
    if *flow.borrow() == Flow::Cut {
        return;
    }
    let Ok(server) = TcpStream::connect(server).await else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    tokio::select! {
        () = forward(client_in, server_out, seen.clone()) => {}
        () = forward(server_in, client_out, seen) => {}
        _ = flow.wait_for(|flow| *flow == Flow::Cut) => {}
    }
}

async fn forward(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut flow: watch::Receiver<Flow>,
) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        let Ok(read) = from.read(&mut buffer).await else { return };
        // Nothing is lost by a stall: it goes on where it stopped.
        if read == 0 || flow.wait_for(|flow| *flow == Flow::Forward).await.is_err() {
            return;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

/// A worker, and the network between it and the server.
pub(crate) struct Remotely<W> {
    pub(crate) worker: W,
    pub(crate) proxy: Proxy,
}
