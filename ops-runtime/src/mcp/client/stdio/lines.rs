//! Lines of what a server writes, each of limited length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, BufReader};

use crate::mcp::client::batch::TooMany;

/// Lines of a stream, each of limited length.
pub(super) struct Lines<R> {
    pub(super) inner: R,
    /// The start of a line whose end has not come yet.
    pub(super) line: Vec<u8>,
    pub(super) max: usize,
}

/// Why there is no next line.
pub(super) enum LineError {
    TooLong,
    End,
    /// The other side has stopped reading.
    Deaf,
    /// The other side does not read what is queued for it.
    Stalled,
    Batch(TooMany),
    Io(io::Error),
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// The next line without its end; bytes that are not UTF-8 become U+FFFD.
    ///
    /// Can be dropped while it waits: what was read stays in `line`.
    pub(super) async fn next(&mut self) -> Result<String, LineError> {
        loop {
            let chunk = self.inner.fill_buf().await.map_err(LineError::Io)?;
            if chunk.is_empty() && self.line.is_empty() {
                return Err(LineError::End);
            }
            let end = memchr::memchr(b'\n', chunk);
            let piece = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            if self.line.len() + piece.len() > self.max {
                self.line = Vec::new();
                let read = chunk.len();
                self.inner.consume(read);
                return Err(LineError::TooLong);
            }
            self.line.extend_from_slice(piece);
            let (at_end, read) = (chunk.is_empty(), end.map_or(chunk.len(), |end| end + 1));
            self.inner.consume(read);
            if at_end || end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(String::from_utf8(line)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()));
            }
        }
    }
}

impl<R: AsyncRead + Unpin> Lines<BufReader<R>> {
    /// Skips the lines that are in the buffer, all but the last `count`.
    pub(super) fn skip_to_last(&mut self, count: usize) {
        if let Some(end) = memchr::memrchr_iter(b'\n', self.inner.buffer()).nth(count) {
            self.line.clear();
            self.inner.consume(end + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(bytes: &[u8], max: usize) -> Vec<Option<String>> {
        let mut lines = Lines { inner: BufReader::with_capacity(3, bytes), line: Vec::new(), max };
        let mut read = Vec::new();
        loop {
            match lines.next().await {
                Ok(line) => read.push(Some(line)),
                Err(LineError::TooLong) => read.push(None),
                Err(_) => return read,
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_and_no_longer_than_they_may_be() {
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(read(b"", 10).await, []);
        assert_eq!(
            read(b"one\n\nthree is long\r\nlast", 20).await,
            [text("one"), text(""), text("three is long\r"), text("last")]
        );
        assert_eq!(read(b"\xff\xfe\n", 10).await, [text("\u{fffd}\u{fffd}")]);
        assert_eq!(read(b"12345", 5).await, [text("12345")]);
        assert!(read(b"123456789\nok\n", 5).await.contains(&None));
    }

    #[tokio::test]
    async fn all_but_the_last_lines_of_the_buffer_are_skipped() {
        let mut lines =
            Lines { inner: BufReader::with_capacity(8, &b"a\nb\nc\ndefg\nh"[..]), line: Vec::new(), max: 9 };
        assert_eq!(lines.next().await.ok().as_deref(), Some("a"));
        lines.skip_to_last(2);
        assert_eq!(lines.next().await.ok().as_deref(), Some("b"), "no more than two lines were whole");
        lines.skip_to_last(0);
        assert_eq!(lines.next().await.ok().as_deref(), Some("defg"), "a line goes on in the next piece");
        lines.line.push(b'x');
        assert_eq!(lines.next().await.ok().as_deref(), Some("xh"));
    }
}
