//! The mock server: Prism, from npm at the version of `tests/peers`.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use tokio::process::{Child, Command};

use crate::corpus;
use crate::folder::target;

/// It may take this long to read a document.
const START: Duration = Duration::from_secs(300);

/// How many ports are tried.
const TRIES: usize = 3;

/// The heap that it may use, in MB.
const HEAP: usize = 3_000;

/// What its answers are made up from, so that it says the same in every run.
const SEED: &str = "operations";

/// A mock server of a document; it ends when this is dropped.
#[derive(Debug)]
pub struct Prism {
    // Killed when dropped.
    _child: Child,
    url: String,
    log: PathBuf,
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
        let folder = target(corpus::root()).join("wire");
        std::fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let log = folder.join(format!("prism-{}.log", std::process::id()));
        let mut tries = 0;
        loop {
            tries += 1;
            let launched = Self::launch(&program, document, &log).await;
            // Another program may take the port before the server does.
            if launched.is_ok() || tries == TRIES || !said(&log).contains("EADDRINUSE") {
                return launched;
            }
        }
    }

    /// Starts a server at a port that is free.
    async fn launch(program: &Path, document: &Path, log: &Path) -> Result<Self, String> {
        let out = File::create(log).map_err(|error| error.to_string())?;
        let errors = out.try_clone().map_err(|error| error.to_string())?;
        let port = free_port().map_err(|error| error.to_string())?;
        let mut child = Command::new(program)
            .args(["mock", "--dynamic", "--seed", SEED, "--host", "127.0.0.1", "--port", &port.to_string()])
            .arg(document.canonicalize().map_err(|error| error.to_string())?)
            .env("NODE_OPTIONS", format!("--max-old-space-size={HEAP}"))
            .env("NO_COLOR", "1")
            // In production it starts a process of its own, which would outlive the one that is killed here.
            .env("NODE_ENV", "development")
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(errors)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| error.to_string())?;
        let started = Instant::now();
        loop {
            let has_ended = child.try_wait().map_err(|error| error.to_string())?.is_some();
            let said = said(log);
            // A connection would not tell: somebody else may listen there.
            if !has_ended && said.contains("Prism is listening on") {
                return Ok(Self { _child: child, url: format!("http://127.0.0.1:{port}"), log: log.to_owned() });
            }
            if has_ended || started.elapsed() > START {
                let said = cause(&said);
                let what = if has_ended { "cannot load it" } else { "does not start in time" };
                return Err(format!("Prism {what}: {}", said.trim().chars().take(200).collect::<String>()));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// How much it has written into its log.
    pub(super) fn written(&self) -> u64 {
        std::fs::metadata(&self.log).map_or(0, |log| log.len())
    }

    /// What it has written into its log since it had written so much.
    pub(super) fn wrote(&self, since: u64) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let since = usize::try_from(since).unwrap_or(usize::MAX);
        String::from_utf8_lossy(log.get(since..).unwrap_or_default()).into_owned()
    }

    /// Where it listens.
    pub fn url(&self) -> &str {
        &self.url
    }
}

fn said(log: &Path) -> String {
    std::fs::read_to_string(log).unwrap_or_default()
}

/// The line of a log that says why the server ended: its last message, else its last error, else its last line.
pub(super) fn cause(log: &str) -> &str {
    let lines = || log.lines().rev().map(str::trim).filter(|line| line.len() > 2);
    let message = lines().find_map(|line| line.strip_prefix("message: "));
    let error = || lines().find(|line| line.contains("Error") || line.contains("error"));
    message.or_else(error).or_else(|| lines().next()).unwrap_or("(nothing)")
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
