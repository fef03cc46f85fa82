//! A pair of pipes, with support for tasks of 2025-11-25.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use memchr::memchr;
use rmcp::service::{RoleServer, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::{AsyncRwTransport, DEFAULT_MAX_LINE_LENGTH};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::wire;

/// How much is read at a time, in bytes.
const CHUNK: usize = 8 * 1024;

/// The transport of a pair of pipes.
pub(in crate::mcp::server) struct Pipe<R: AsyncRead + Unpin, W: AsyncWrite>(
    AsyncRwTransport<RoleServer, Renamed<R>, W>,
);

impl<R, W> Pipe<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(in crate::mcp::server) fn new(read: R, write: W) -> Self {
        Self(AsyncRwTransport::new(Renamed::new(read), write))
    }
}

impl<R, W> Transport<RoleServer> for Pipe<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        // Over a pipe there is one caller, who may list its tasks.
        self.0.send(wire::declared(message, true))
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.0.receive()
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.0.close()
    }
}

/// Renames requests line by line.
struct Renamed<R> {
    inner: R,
    /// A line that has not ended yet.
    line: Vec<u8>,
    /// Bytes to be read, from `at`.
    out: Vec<u8>,
    at: usize,
    /// True if the line is too long: the rest of it is passed on unchanged, and the SDK refuses it.
    passes: bool,
}

impl<R> Renamed<R> {
    fn new(inner: R) -> Self {
        Self { inner, line: Vec::new(), out: Vec::new(), at: 0, passes: false }
    }

    fn take(&mut self, mut chunk: &[u8]) {
        while let Some(end) = memchr(b'\n', chunk) {
            let (head, rest) = chunk.split_at(end.saturating_add(1));
            self.line.extend_from_slice(head);
            let line = std::mem::take(&mut self.line);
            match wire::renamed(&line).filter(|_| !self.passes) {
                Some(renamed) => {
                    self.out.extend_from_slice(&renamed);
                    self.out.push(b'\n');
                }
                None => self.out.extend_from_slice(&line),
            }
            self.passes = false;
            chunk = rest;
        }
        self.line.extend_from_slice(chunk);
        if self.passes || self.line.len() > DEFAULT_MAX_LINE_LENGTH {
            self.passes = true;
            self.out.append(&mut self.line);
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Renamed<R> {
    fn poll_read(self: Pin<&mut Self>, task: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        loop {
            let left = this.out.get(this.at..).unwrap_or_default();
            if !left.is_empty() {
                let part = left.get(..left.len().min(buffer.remaining())).unwrap_or(left);
                buffer.put_slice(part);
                this.at = this.at.saturating_add(part.len());
                return Poll::Ready(Ok(()));
            }
            this.out.clear();
            this.at = 0;
            let mut chunk = [0; CHUNK];
            let mut read = ReadBuf::new(&mut chunk);
            ready!(Pin::new(&mut this.inner).poll_read(task, &mut read))?;
            if read.filled().is_empty() {
                if this.line.is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.out.append(&mut this.line);
                continue;
            }
            this.take(read.filled());
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn lines_are_read_whole_however_they_come() {
        let long = format!("{{\"task\":\"{}\"}}", "x".repeat(3 * CHUNK));
        let list = r#"{"id":1,"method":"tools/list"}"#;
        let sent = format!("{list}\n\n{long}\n{list}\r\n{list}");
        for size in [1, 7, CHUNK, 1 << 20] {
            let (mut near, far) = tokio::io::duplex(size);
            let text = sent.clone();
            tokio::spawn(async move { near.write_all(text.as_bytes()).await.unwrap() });
            let mut read = String::new();
            Renamed::new(far).read_to_string(&mut read).await.unwrap();
            let lines: Vec<_> = read.lines().collect();
            assert_eq!(lines.len(), 5, "{size}");
            assert!(lines[0].contains("ops/2025-11-25/tools/list"), "{}", lines[0]);
            assert_eq!((lines[1], lines[2]), ("", long.as_str()));
            assert!(lines[3].contains("ops/2025-11-25/tools/list"), "{}", lines[3]);
            assert_eq!(lines[4], list, "a line that does not end is as it was");
        }
    }
}
