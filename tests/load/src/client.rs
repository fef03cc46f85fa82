//! A client that sends one request over and over, on connections that it keeps.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// What a round of requests took.
pub(crate) struct Round {
    pub(crate) rate: f64,
    pub(crate) count: usize,
    /// In order.
    pub(crate) times: Vec<Duration>,
}

impl Round {
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let at = (self.times.len() as f64 * share) as usize;
        self.times[at.min(self.times.len() - 1)].as_secs_f64() * 1e6
    }
}

/// Sends a request on so many connections at a time, for so long.
pub(crate) async fn round(address: SocketAddr, request: &'static [u8], connections: usize, time: Duration) -> Round {
    let start = Instant::now();
    let tasks: Vec<_> = (0..connections).map(|_| tokio::spawn(repeat(address, request, start + time))).collect();
    let mut times = Vec::new();
    for task in tasks {
        times.extend(task.await.unwrap());
    }
    let seconds = start.elapsed().as_secs_f64();
    times.sort_unstable();
    Round { rate: times.len() as f64 / seconds, count: times.len(), times }
}

async fn repeat(address: SocketAddr, request: &[u8], until: Instant) -> Vec<Duration> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let (mut times, mut buffer) = (Vec::new(), vec![0; 16 << 10]);
    while Instant::now() < until {
        let sent = Instant::now();
        stream.write_all(request).await.unwrap();
        answer(&mut stream, &mut buffer).await;
        times.push(sent.elapsed());
    }
    times
}

/// Reads a response with a length, and checks that it is a success. It looks for no more than that: what a client takes for a
/// head is not the server's.
pub(crate) async fn answer(stream: &mut TcpStream, buffer: &mut [u8]) -> String {
    let mut read = 0;
    loop {
        let more = stream.read(&mut buffer[read..]).await.unwrap();
        assert!(more > 0, "the connection was closed: {}", String::from_utf8_lossy(&buffer[..read]));
        read += more;
        let text = &buffer[..read];
        let Some(end) = memmem::find(text, b"\r\n\r\n") else { continue };
        let head = &text[..end];
        assert!(head.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(text));
        let length = memmem::find(head, b"\r\ncontent-length: ").map_or(0, |at| {
            let digits = head[at + 18..].iter().take_while(|byte| byte.is_ascii_digit());
            digits.fold(0, |length, digit| length * 10 + usize::from(digit - b'0'))
        });
        if read >= end + 4 + length {
            return String::from_utf8_lossy(&text[end + 4..]).into_owned();
        }
    }
}
