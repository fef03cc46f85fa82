//! The HTTP server under load: `compare` measures it beside a handler written by hand with axum, which does the same work
//! without validation; `idle` says what clients cost that wait for events; `memory` prints what the server takes while requests
//! come. `tests/bench/serve` runs them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a program that measures"
)]

mod client;
mod compare;
mod idle;
mod memory;
mod server;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", kind] => server::run(kind),
        ["compare"] => compare::run(""),
        ["compare", first] => compare::run(first),
        ["idle"] => idle::run(),
        ["memory"] => memory::run(300),
        ["memory", seconds] => memory::run(seconds.parse().unwrap()),
        _ => eprintln!("usage: ops-tests-load compare [REQUEST]|idle|memory [SECONDS]"),
    }
}

/// A server in a process of its own, which ends with this value.
struct Peer {
    child: Child,
    address: SocketAddr,
}

impl Peer {
    fn start(kind: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["serve", kind])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self { child, address: line.trim().parse().unwrap() }
    }

    fn stat(&self, name: &str) -> String {
        std::fs::read_to_string(format!("/proc/{}/{name}", self.child.id())).unwrap()
    }

    /// The CPU time that the server has taken, in microseconds.
    fn cpu(&self) -> f64 {
        let stat = self.stat("stat");
        let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
        // Ticks of a hundredth of a second.
        (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) * 10_000.0
    }

    /// The memory that the server has in use, in bytes.
    fn resident(&self) -> u64 {
        self.stat("statm").split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
