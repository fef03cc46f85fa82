//! The servers that `tests/peers/install` installs.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use ops_runtime::mcp::{McpClient, McpServerConfig};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// Longer than anything takes, for tests that would otherwise hang.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// A free port outside the range from which the system hands out ports, so that no other test gets it by chance.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let next = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 20_000 + u16::try_from((std::process::id() + next) % 10_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

fn peers() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers"))
}

fn script(package: &str) -> String {
    let script = peers().join("node_modules/@modelcontextprotocol").join(package).join("dist/index.js");
    assert!(script.exists(), "{} is missing: run tests/peers/install", script.display());
    script.to_str().unwrap().to_owned()
}

/// A server from npm.
pub(crate) fn npm(package: &str, args: &[&str]) -> McpServerConfig {
    McpServerConfig::stdio("node", [script(package).as_str()].iter().chain(args).copied())
}

/// A server from `PyPI`.
pub(crate) fn pypi(command: &str, args: &[&str]) -> McpServerConfig {
    let script = peers().join(".venv/bin").join(command);
    assert!(script.exists(), "{} is missing: run tests/peers/install", script.display());
    McpServerConfig::stdio(script.to_str().unwrap(), args.iter().copied())
}

pub(crate) async fn connect(config: McpServerConfig) -> McpClient {
    timeout(LONG, McpClient::connect(config)).await.expect("connects in time").expect("connects")
}

/// The server `everything` over streamable HTTP, for as long as the process is kept.
pub(crate) async fn everything_over_http() -> (Child, McpServerConfig) {
    // The server takes no other way to choose a port.
    let port = free_port();
    let mut command = Command::new("node");
    command.args([script("server-everything").as_str(), "streamableHttp"]).env("PORT", port.to_string());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let listening = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains("listening on port") {
                return;
            }
        }
        panic!("the server ended");
    };
    timeout(LONG, listening).await.expect("the server listens");
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, McpServerConfig::http(format!("http://127.0.0.1:{port}/mcp")))
}
