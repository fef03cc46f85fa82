//! The transport over a pair of pipes. It supports tasks of 2025-11-25 if the server has tasks.

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
pub(in crate::mcp::server) struct Pipe<R: AsyncRead + Unpin, W: AsyncWrite> {
    inner: AsyncRwTransport<RoleServer, Renamed<R>, W>,
    /// If false, all messages pass unchanged.
    has_tasks: bool,
}

impl<R, W> Pipe<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(in crate::mcp::server) fn new(read: R, write: W, has_tasks: bool) -> Self {
        Self { inner: AsyncRwTransport::new(Renamed::new(read, has_tasks), write), has_tasks }
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
        self.inner.send(if self.has_tasks { wire::declared(message, true) } else { message })
    }

    fn receive(&mut self) -> impl Future<Output = Option<RxJsonRpcMessage<RoleServer>>> + Send {
        self.inner.receive()
    }

    fn close(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        self.inner.close()
    }
}

/// Renames requests line by line.
struct Renamed<R> {
    inner: R,
    /// If false, all bytes pass unchanged.
    renames: bool,
    /// A line that has not ended yet.
    line: Vec<u8>,
    /// Bytes to be read, from `at`.
    out: Vec<u8>,
    at: usize,
    /// True if the line is too long: the rest of it is passed on unchanged, and the SDK refuses it.
    passes: bool,
}

impl<R> Renamed<R> {
    fn new(inner: R, renames: bool) -> Self {
        Self { inner, renames, line: Vec::new(), out: Vec::new(), at: 0, passes: false }
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
        if !this.renames {
            return Pin::new(&mut this.inner).poll_read(task, buffer);
        }
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
            Renamed::new(far, true).read_to_string(&mut read).await.unwrap();
            let lines: Vec<_> = read.lines().collect();
            assert_eq!(lines.len(), 5, "{size}");
            assert!(lines[0].contains("ops/2025-11-25/tools/list"), "{}", lines[0]);
            assert_eq!((lines[1], lines[2]), ("", long.as_str()));
            assert!(lines[3].contains("ops/2025-11-25/tools/list"), "{}", lines[3]);
            assert_eq!(lines[4], list, "a line that does not end is as it was");
        }
    }

    #[tokio::test]
    async fn without_tasks_all_is_read_as_it_comes() {
        let list = r#"{"id":1,"method":"tools/list"}"#;
        let sent = format!("{list}\r\n\n{list}\n{list}");
        let (mut near, far) = tokio::io::duplex(CHUNK);
        let mut renamed = Renamed::new(far, false);
        let (begin, rest) = sent.split_at(5);
        near.write_all(begin.as_bytes()).await.unwrap();
        let mut first = [0; 5];
        // A part of a line is passed on, too.
        renamed.read_exact(&mut first).await.unwrap();
        near.write_all(rest.as_bytes()).await.unwrap();
        drop(near);
        let mut read = String::from_utf8(first.to_vec()).unwrap();
        renamed.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, sent);
    }
}
