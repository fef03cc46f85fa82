//! Brokers of the tests' own: started on free ports with their data in a folder of their own, killed when dropped.

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::net::TcpStream;

use crate::proxy::Proxy;

/// What starts a server, on a port and with its data in a folder.
type Launch = dyn Fn(u16, &PathBuf) -> Command + Send + Sync;

/// A running server.
pub(crate) struct Server {
    command: Box<Launch>,
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

    /// A `nats-server` with the text of a configuration.
    #[cfg(feature = "nats")]
    pub(crate) async fn nats_of(configuration: String) -> Self {
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers/.venv/bin/nats-server");
        Self::start(move |port, folder| {
            let file = folder.join("server.conf");
            std::fs::write(&file, &configuration).unwrap();
            let mut command = Command::new(program);
            command.args(["--addr", "127.0.0.1", "--port", &port.to_string(), "--config"]).arg(file);
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

    /// A `redis-server` that takes encrypted connections only, by a certificate and its key.
    #[cfg(all(feature = "redis", feature = "tls", feature = "websocket"))]
    pub(crate) async fn encrypted_redis(certificate: PathBuf, key: PathBuf, password: &'static str) -> Self {
        Self::start(move |port, folder| {
            let mut command = Command::new("redis-server");
            command.args(["--bind", "127.0.0.1", "--port", "0", "--tls-port", &port.to_string(), "--save", ""]);
            command.args(["--tls-auth-clients", "no", "--requirepass", password]).arg("--dir").arg(folder);
            command.arg("--tls-cert-file").arg(&certificate).arg("--tls-key-file").arg(&key);
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

/// A worker, and the network between it and the server.
pub(crate) struct Remotely<W> {
    pub(crate) worker: W,
    pub(crate) proxy: Proxy,
}
