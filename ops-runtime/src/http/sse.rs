//! Server-sent events: bytes in, events out (WHATWG HTML, section 9.2.6).
//!
//! The parser takes a stream in pieces of any size: a piece may end inside a character, a line ending or an event.
//!
//! ```
//! use ops_runtime::http::sse::SseParser;
//!
//! let mut parser = SseParser::new();
//! parser.push(b"event: price\nda")?;
//! assert_eq!(parser.next_event(), None);
//! parser.push(b"ta: 12\n\n")?;
//! let event = parser.next_event().unwrap();
//! assert_eq!((event.kind.as_str(), event.data.as_str()), ("price", "12"));
//! # Ok::<(), ops_runtime::http::sse::SseError>(())
//! ```

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, mem};

use crate::CallError;
use crate::model::media::EVENTS_END;

#[cfg(test)]
mod tests;

const MAX_LINE: usize = 1024 * 1024;
const MAX_EVENT: usize = 8 * 1024 * 1024;
/// Limit of the last event id and of the type of an event, in bytes; longer ones are ignored.
const MAX_NAME: usize = 64 * 1024;
const BOM: &[u8] = b"\xEF\xBB\xBF";

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SseEvent {
    /// The `data` fields, joined with line feeds.
    pub data: String,
    /// The event's type, `message` unless an `event` field names one.
    pub kind: String,
    /// The last event id that the stream has set, here or before; empty if it set none.
    pub id: String,
    /// The reconnection time in the event's own block.
    pub retry: Option<Duration>,
}

/// An incremental parser of a `text/event-stream`.
///
/// Pass every piece to [`push`](Self::push), and read the events that it completes with
/// [`next_event`](Self::next_event). Bytes that are not UTF-8 become U+FFFD, a byte order mark at the start is dropped,
/// and an event cut off by the stream's end is never returned.
///
/// It keeps only an unfinished line and an unfinished event, both limited, and the unread events. An id or a type of
/// more than 64 KiB is ignored.
#[derive(Debug, Clone)]
pub struct SseParser {
    max_line: usize,
    max_event: usize,
    /// The start of a line whose end has not arrived yet.
    line: Vec<u8>,
    first_line: bool,
    /// The last byte was a carriage return, which a line feed may complete.
    after_cr: bool,
    data: String,
    kind: String,
    block_id: Option<String>,
    block_retry: Option<Duration>,
    id: Arc<str>,
    retry: Option<Duration>,
    is_over: bool,
    ready: VecDeque<Ready>,
    failed: Option<SseError>,
}

/// An unread event. Many events share one id, which may be long.
#[derive(Debug, Clone)]
struct Ready {
    data: String,
    kind: String,
    id: Arc<str>,
    retry: Option<Duration>,
}

impl SseParser {
    /// A parser at the start of a stream, with limits of 1 MiB a line and 8 MiB an event.
    pub fn new() -> Self {
        Self {
            max_line: MAX_LINE,
            max_event: MAX_EVENT,
            line: Vec::new(),
            first_line: true,
            after_cr: false,
            data: String::new(),
            kind: String::new(),
            block_id: None,
            block_retry: None,
            id: Arc::from(""),
            retry: None,
            is_over: false,
            ready: VecDeque::new(),
            failed: None,
        }
    }

    /// Sets how many bytes a line may have.
    #[must_use]
    pub fn with_max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Sets how many bytes the data of an event may have.
    #[must_use]
    pub fn with_max_event(mut self, bytes: usize) -> Self {
        self.max_event = bytes;
        self
    }

    /// Continues after an earlier stream that had set this last event id.
    #[must_use]
    pub fn with_last_event_id(mut self, id: impl Into<String>) -> Self {
        self.id = Arc::from(id.into());
        self
    }

    /// Reads the next piece of the stream, of any size.
    ///
    /// # Errors
    /// If a line or an event is longer than its limit. The events before it can still be read; the rest of the stream
    /// cannot be read, and every further call returns the same error.
    pub fn push(&mut self, chunk: &[u8]) -> Result<(), SseError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let result = self.read(chunk);
        if let Err(error) = &result {
            self.failed = Some(error.clone());
            self.line = Vec::new();
            self.data = String::new();
        }
        result
    }

    /// Returns the next completed event.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        let Ready { data, kind, id, retry } = self.ready.pop_front()?;
        let kind = if kind.is_empty() { "message".to_owned() } else { kind };
        Some(SseEvent { data, kind, id: (*id).to_owned(), retry })
    }

    /// The last event id that the stream has set; empty if it set none.
    ///
    /// A client that reconnects sends it as `Last-Event-ID`.
    pub fn last_event_id(&self) -> &str {
        &self.id
    }

    /// The reconnection time that the stream last requested.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// True if the stream has said in a comment that nothing follows: it need not be opened again.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over
    }

    fn read(&mut self, mut chunk: &[u8]) -> Result<(), SseError> {
        if self.after_cr && !chunk.is_empty() {
            self.after_cr = false;
            chunk = chunk.strip_prefix(b"\n").unwrap_or(chunk);
        }
        while let Some(end) = memchr::memchr2(b'\r', b'\n', chunk) {
            let (part, rest) = chunk.split_at(end);
            self.finish_line(part)?;
            chunk = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    // The line is already complete: waiting for the next piece would delay the event.
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.check_line(chunk)?;
        self.line.extend_from_slice(chunk);
        Ok(())
    }

    fn check_line(&self, part: &[u8]) -> Result<(), SseError> {
        let fits = self.line.len().saturating_add(part.len()) <= self.max_line;
        if fits { Ok(()) } else { Err(SseError::LineTooLong { limit: self.max_line }) }
    }

    fn finish_line(&mut self, part: &[u8]) -> Result<(), SseError> {
        self.check_line(part)?;
        if self.line.is_empty() {
            return self.process_line(part);
        }
        let mut line = mem::take(&mut self.line);
        line.extend_from_slice(part);
        let result = self.process_line(&line);
        line.clear();
        self.line = line;
        result
    }

    fn process_line(&mut self, mut line: &[u8]) -> Result<(), SseError> {
        if mem::take(&mut self.first_line) {
            line = line.strip_prefix(BOM).unwrap_or(line);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            _ if line.is_empty() => {
                self.dispatch();
                return Ok(());
            }
            Some(0) => {
                self.is_over |= line == EVENTS_END.as_bytes();
                return Ok(());
            }
            Some(colon) => {
                let (name, rest) = line.split_at(colon);
                let value = rest.strip_prefix(b":").unwrap_or(rest);
                (name, value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, [].as_slice()),
        };
        // Splitting before decoding is safe: no byte of a longer character is a line ending or a colon, and a decoder
        // that finds one inside a character starts again with it.
        match name {
            b"data" => self.add_data(&String::from_utf8_lossy(value))?,
            b"event" | b"id" if value.len() > MAX_NAME => {}
            b"event" => self.kind = String::from_utf8_lossy(value).into_owned(),
            b"id" if !value.contains(&0) => self.block_id = Some(String::from_utf8_lossy(value).into_owned()),
            b"retry" => {
                if let Some(retry) = milliseconds(value) {
                    self.block_retry = Some(retry);
                    self.retry = Some(retry);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a line of data, followed by a line feed that [`dispatch`](Self::dispatch) removes from the last one.
    fn add_data(&mut self, value: &str) -> Result<(), SseError> {
        // An empty line counts for its line feed.
        if self.data.len().saturating_add(value.len()) > self.max_event {
            return Err(SseError::EventTooLarge { limit: self.max_event });
        }
        self.data.push_str(value);
        self.data.push('\n');
        Ok(())
    }

    fn dispatch(&mut self) {
        if let Some(id) = self.block_id.take() {
            self.id = id.into();
        }
        let retry = self.block_retry.take();
        let kind = mem::take(&mut self.kind);
        let mut data = mem::take(&mut self.data);
        if data.pop().is_none() {
            return;
        }
        self.ready.push_back(Ready { data, kind, id: self.id.clone(), retry });
    }
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new()
    }
}

/// A time in milliseconds, if the text is only ASCII digits; the longest time if it overflows.
fn milliseconds(text: &[u8]) -> Option<Duration> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let value = text.iter().fold(0_u64, |sum, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')));
    Some(Duration::from_millis(value))
}

/// The reason why the rest of an event stream cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum SseError {
    /// A line is longer than the limit.
    LineTooLong {
        /// The limit in bytes.
        limit: usize,
    },
    /// The data of an event are larger than the limit.
    EventTooLarge {
        /// The limit in bytes.
        limit: usize,
    },
}

impl fmt::Display for SseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LineTooLong { limit } => write!(f, "a line of the event stream is longer than {limit} bytes"),
            Self::EventTooLarge { limit } => write!(f, "an event of the stream is larger than {limit} bytes"),
        }
    }
}

impl std::error::Error for SseError {}

impl From<SseError> for CallError {
    fn from(error: SseError) -> Self {
        let option = match error {
            SseError::LineTooLong { .. } => "with_max_line",
            SseError::EventTooLarge { .. } => "with_max_event",
        };
        Self::execution(format!("{error}: raise `{option}`"))
    }
}
