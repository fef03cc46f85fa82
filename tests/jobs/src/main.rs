//! Durable calls on NATS `JetStream`: what they survive (`faults`), how many of them (`million`), and what they cost (`bench`,
//! `cost`).

mod bench;
mod disk;
mod faults;
mod million;
mod network;
#[path = "../../../ops-runtime/tests/call/proxy.rs"]
mod proxy;
#[path = "../../../ops-runtime/tests/jetstream/servers.rs"]
mod servers;

use tokio::signal::unix::{SignalKind, signal};

/// The server of the tests.
const NATS_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/.venv/bin/nats-server");

#[tokio::main]
async fn main() {
    let mut interrupted = signal(SignalKind::interrupt()).expect("signals");
    let mut terminated = signal(SignalKind::terminate()).expect("signals");
    tokio::select! {
        () = run() => return,
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    // What the run held is dropped by now: its processes have ended, and its disks are unmounted.
    std::process::exit(1);
}

async fn run() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["faults", fault, seconds] => faults::run(fault, seconds.parse().expect("seconds")).await,
        ["worker", url, folder] => faults::worker(url, folder).await,
        ["submitter", url, folder, first] => faults::submitter(url, folder, first.parse().expect("a number")).await,
        ["counter", url, jobs] => million::worker(url, jobs.parse().expect("a number")).await,
        ["million", jobs] => million::run(jobs.parse().expect("a number")).await,
        ["bench", servers, sync, rounds] => {
            let (servers, rounds) = (servers.parse().expect("servers"), rounds.parse().expect("rounds"));
            bench::run(servers, sync, rounds).await;
        }
        ["cost", engine, jobs] => bench::cost(engine, jobs.parse().expect("a number")).await,
        _ => panic!("faults FAULT SECONDS, million JOBS, bench SERVERS SYNC ROUNDS, or cost ENGINE JOBS"),
    }
}
