//! What clients cost that wait for events.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Peer;

const CLIENTS: u64 = 10_000;
const MOST: u64 = 20_000;

pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let peer = Peer::start("ours");
    runtime.block_on(async {
        // The first ones make what all share.
        let mut clients = vec![client(&peer).await];
        let before = peer.resident();
        for _ in 0..CLIENTS {
            clients.push(client(&peer).await);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let each = peer.resident().saturating_sub(before) / CLIENTS;
        println!("{CLIENTS} idle clients: {each} bytes each");
        assert!(each < MOST, "that is more than {MOST}");
    });
}

async fn client(peer: &Peer) -> TcpStream {
    let mut stream = TcpStream::connect(peer.address).await.unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut head = [0; 512];
    let read = stream.read(&mut head).await.unwrap();
    assert!(head[..read].starts_with(b"HTTP/1.1 200"));
    stream
}
