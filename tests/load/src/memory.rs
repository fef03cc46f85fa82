//! What the server takes in memory while requests come.

use std::time::Duration;

use crate::Peer;
use crate::client;
use crate::compare::REQUESTS;

const CONNECTIONS: usize = 64;

/// How often the memory is read.
const EVERY: u64 = 30;

/// How much more there may be at the end than at the first reading, in bytes.
const MOST: u64 = 1 << 20;

/// Sends each request in turn for so many seconds.
pub(crate) fn run(seconds: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let peer = Peer::start("ours");
    let (mut count, mut readings) = (0, Vec::new());
    for second in 1..=seconds {
        let (_, request) = REQUESTS[second as usize % REQUESTS.len()];
        let round = client::round(peer.address, request.as_bytes(), CONNECTIONS, Duration::from_secs(1));
        count += runtime.block_on(round).count;
        if second % EVERY == 0 || second == seconds {
            readings.push(peer.resident());
            println!("{second} s, {count} requests: {} KB", peer.resident() >> 10);
        }
    }
    let (first, last) = (readings[0], readings[readings.len() - 1]);
    assert!(last <= first + MOST, "that is more than {MOST} bytes above the first");
}
