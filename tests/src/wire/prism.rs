//! The mock server: Prism, from npm at the version of `tests/peers`.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::net::TcpStream;
use tokio::process::{Child, Command};

use crate::corpus;

/// It may take this long to read a document.
const START: Duration = Duration::from_secs(240);

/// The heap that it may use, in MB.
const HEAP: usize = 6_000;

/// A mock server of a document; it ends when this is dropped.
#[derive(Debug)]
pub struct Prism {
    // Killed when dropped.
    _child: Child,
    url: String,
}

impl Prism {
    /// Starts a server.
    ///
    /// # Errors
    /// If it is not installed, or if it cannot read the document.
    pub async fn start(document: &Path) -> Result<Self, String> {
        let program = corpus::root().join("tests/peers/node_modules/.bin/prism");
        if !program.exists() {
            return Err(format!("{} is missing: run `tests/run`, which installs it", program.display()));
        }
        let folder = corpus::root().join("target/wire");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let log = folder.join(format!("prism-{}.log", std::process::id()));
        let out = File::create(&log).map_err(|error| error.to_string())?;
        let errors = out.try_clone().map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["mock", "--dynamic", "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(document.canonicalize().map_err(|error| error.to_string())?)
            .env("NODE_OPTIONS", format!("--max-old-space-size={HEAP}"))
            .env("NO_COLOR", "1")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let started = Instant::now();
        loop {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.is_ok() {
                return Ok(Self { _child: child, url: format!("http://127.0.0.1:{port}") });
            }
            let has_ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
            if has_ended || started.elapsed() > START {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                let said = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("(nothing)").to_owned();
                let what = if has_ended { "cannot load it" } else { "does not start in time" };
                return Err(format!("Prism {what}: {}", said.trim().chars().take(200).collect::<String>()));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
