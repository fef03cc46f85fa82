//! Durable calls on NATS `JetStream`: what they survive (`faults`), and what they cost (`bench`).

mod bench;
mod faults;
#[path = "../../../ops-runtime/tests/jetstream/servers.rs"]
mod servers;

/// The server of the tests.
const NATS_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../peers/.venv/bin/nats-server");

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["faults", seconds] => faults::run(seconds.parse().expect("seconds")).await,
        ["worker", url, folder] => faults::worker(url, folder).await,
        ["submitter", url, folder, first] => faults::submitter(url, folder, first.parse().expect("a number")).await,
        ["bench", servers, sync, rounds] => {
            let (servers, rounds) = (servers.parse().expect("servers"), rounds.parse().expect("rounds"));
            bench::run(servers, sync, rounds).await;
        }
        _ => panic!("faults SECONDS, or bench SERVERS SYNC ROUNDS"),
    }
}
