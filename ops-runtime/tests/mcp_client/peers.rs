//! Where the servers are that `tests/peers/install` installs.

use std::path::PathBuf;

use ops_runtime::mcp::McpServerConfig;

pub(crate) fn peers() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/peers"))
}

/// A server from npm.
pub(crate) fn npm(package: &str, entry: &str, args: &[&str]) -> McpServerConfig {
    let script = peers().join("node_modules/@modelcontextprotocol").join(package).join(entry);
    assert!(script.exists(), "{} is missing: run tests/peers/install", script.display());
    let args = [script.to_str().unwrap()].into_iter().chain(args.iter().copied());
    McpServerConfig::stdio("node", args)
}

/// A server from PyPI.
pub(crate) fn pypi(command: &str, args: &[&str]) -> McpServerConfig {
    let script = peers().join(".venv/bin").join(command);
    assert!(script.exists(), "{} is missing: run tests/peers/install", script.display());
    McpServerConfig::stdio(script.to_str().unwrap(), args.iter().copied())
}

pub(crate) fn everything() -> McpServerConfig {
    npm("server-everything", "dist/index.js", &["stdio"]).with_namespace("everything")
}
