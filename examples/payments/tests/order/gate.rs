//! A proxy between a worker and its servers. It counts what the worker sends, and stops at one message, at which the test
//! kills the worker. It can also lose a response of the HTTP server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// The message at which the worker is killed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Point {
    /// Counted from 1, over all connections.
    pub(crate) message: u64,
    /// True if the message still arrives after the worker's death; otherwise it is lost.
    pub(crate) arrives: bool,
}

pub(crate) struct Gate {
    point: Point,
    sent: AtomicU64,
    /// How many responses of the HTTP server are still to be lost.
    losses: AtomicU64,
    reached: Semaphore,
    killed: Semaphore,
    passed: Semaphore,
}

impl Gate {
    pub(crate) fn new(point: Point, losses: u64) -> Self {
        let closed = || Semaphore::new(0);
        let (sent, losses) = (AtomicU64::new(0), AtomicU64::new(losses));
        Self { point, sent, losses, reached: closed(), killed: closed(), passed: closed() }
    }

    /// Listens for a server at `SCHEME://HOST:PORT`. Returns the URL of the proxy, of the same scheme.
    pub(crate) async fn open(self: &Arc<Self>, server: &str, scheme: &'static str) -> String {
        let server = server.split_once("://").unwrap().1.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let gate = self.clone();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else { continue };
                let ((requests, replies), (responses, send)) = (client.into_split(), server.into_split());
                tokio::spawn(gate.clone().respond(responses, replies, scheme == "http"));
                tokio::spawn(gate.clone().request(requests, send, scheme == "nats"));
            }
        });
        format!("{scheme}://{address}")
    }

    /// Waits until the worker has sent the message.
    pub(crate) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// To be called when the worker is dead: sends the message if it is to arrive, and waits until the server has it.
    pub(crate) async fn release(&self) {
        if self.sent.load(Ordering::SeqCst) >= self.point.message {
            self.killed.add_permits(1);
            self.passed.acquire().await.unwrap().forget();
        }
    }

    async fn respond(self: Arc<Self>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_http: bool) {
        if !is_http {
            let _ = copy(&mut from, &mut to).await;
            return;
        }
        let mut chunk = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = from.read(&mut chunk).await {
            let lose = |left: u64| left.checked_sub(1);
            // The connection ends in the place of the response.
            let is_lost = self.losses.fetch_update(Ordering::SeqCst, Ordering::SeqCst, lose).is_ok();
            if is_lost || to.write_all(&chunk[..read]).await.is_err() {
                return;
            }
        }
    }

    async fn request(self: Arc<Self>, mut from: OwnedReadHalf, mut to: OwnedWriteHalf, is_nats: bool) {
        let (mut buffer, mut chunk) = (Vec::new(), vec![0; 64 * 1024]);
        loop {
            let Ok(read @ 1..) = from.read(&mut chunk).await else { return };
            buffer.extend_from_slice(&chunk[..read]);
            while let Some((length, counts)) = first(&buffer, is_nats) {
                let message: Vec<u8> = buffer.drain(..length).collect();
                let number = if counts { self.sent.fetch_add(1, Ordering::SeqCst) + 1 } else { 0 };
                if self.sent.load(Ordering::SeqCst) >= self.point.message {
                    // Nothing else of this worker gets through.
                    if number != self.point.message {
                        return;
                    }
                    self.reached.add_permits(1);
                    self.killed.acquire().await.unwrap().forget();
                    if self.point.arrives {
                        let _ = to.write_all(&message).await;
                        let _ = to.flush().await;
                        let _ = to.shutdown().await;
                    }
                    self.passed.add_permits(1);
                    return;
                }
                if to.write_all(&message).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// The length of the first message of a buffer, and true if it can change anything. `None` if it is not complete yet.
fn first(buffer: &[u8], is_nats: bool) -> Option<(usize, bool)> {
    if buffer.is_empty() {
        return None;
    }
    if !is_nats {
        return Some((buffer.len(), true));
    }
    let line = buffer.windows(2).position(|end| end == b"\r\n")?;
    let words = String::from_utf8_lossy(&buffer[..line]).to_ascii_uppercase();
    let is_published = words.starts_with("PUB ") || words.starts_with("HPUB ");
    // The last word is the length of the payload, which ends with another line break.
    let body = if is_published { words.rsplit(' ').next()?.parse::<usize>().ok()? + 2 } else { 0 };
    let length = line + 2 + body;
    (buffer.len() >= length).then_some((length, is_published))
}
