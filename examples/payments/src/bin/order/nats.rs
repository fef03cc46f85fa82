//! Starts a NATS server that keeps its data in a folder and ends with this process.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::time::{Instant, sleep};

/// The server that `tests/peers/install` installs.
const INSTALLED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/peers/.venv/bin/nats-server");

/// Starts a server. Returns it with its URL.
pub async fn start(folder: &Path) -> std::io::Result<(Child, String)> {
    std::fs::create_dir_all(folder)?;
    let program = if Path::new(INSTALLED).exists() { INSTALLED } else { "nats-server" };
    let mut command = Command::new(program);
    // It chooses a free port, and writes its address to a file.
    command.args(["--addr", "127.0.0.1", "--port", "-1", "--jetstream"]);
    command.arg("--store_dir").arg(folder).arg("--ports_file_dir").arg(folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let missing = |error| {
        std::io::Error::other(format!("no NATS server ({error}): run tests/peers/install, or install nats-server"))
    };
    let mut child = command.spawn().map_err(missing)?;
    let file = folder.join(format!("nats-server_{}.ports", child.id().unwrap_or_default()));
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        // Until all of the file is written, it is no JSON.
        let ports: Value =
            std::fs::read(&file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        if let Some(url) = ports["nats"][0].as_str() {
            return Ok((child, url.to_owned()));
        }
        if let Some(status) = child.try_wait()? {
            return Err(std::io::Error::other(format!("the NATS server has ended ({status})")));
        }
        if Instant::now() > deadline {
            return Err(std::io::Error::other("the NATS server does not listen after 30 s"));
        }
        sleep(Duration::from_millis(20)).await;
    }
}
