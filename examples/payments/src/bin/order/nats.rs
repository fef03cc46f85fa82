//! Starts a NATS server that keeps its data in a folder and ends with this process.

use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// The server that `tests/peers/install` installs.
const INSTALLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/.venv/bin/nats-server");

/// Starts a server. Returns it with its URL.
pub async fn start(folder: &Path) -> std::io::Result<(Child, String)> {
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let program = if Path::new(INSTALLED).exists() { INSTALLED } else { "nats-server" };
    let mut command = Command::new(program);
    command.args(["--addr", "127.0.0.1", "--port", &address.port().to_string(), "--jetstream", "--store_dir"]);
    command.arg(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let missing = |error| {
        std::io::Error::other(format!("no NATS server ({error}): run tests/peers/install, or install nats-server"))
    };
    let mut child = command.spawn().map_err(missing)?;
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(address).await.is_err() {
        if let Some(status) = child.try_wait()? {
            return Err(std::io::Error::other(format!("the NATS server has ended ({status})")));
        }
        if Instant::now() > deadline {
            return Err(std::io::Error::other("the NATS server does not listen after 30 s"));
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok((child, format!("nats://{address}")))
}
