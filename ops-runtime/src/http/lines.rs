//! Streams of JSON texts: one a line (JSON lines, NDJSON), or each after a record separator (RFC 7464).

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_core::de::IgnoredAny;

use super::engine::{EngineResponse, ResponseBody, failure};
use super::response::{meta, of_item};
use crate::model::media::Media;
use crate::{CallError, HttpMeta, Payload, PayloadStream, ResponseEnvelope};

/// How many bytes an item may have by default.
const MAX_ITEM: usize = 8 * 1024 * 1024;

/// What stands before each text of a sequence.
const RECORD_SEPARATOR: u8 = 0x1E;

/// How the texts of a stream are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One a line.
    Lines,
    /// Each after a record separator.
    Sequence,
}

impl Framing {
    /// The framing of a content type; `None` if it is no stream of JSON texts.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        match Media::of(content_type) {
            Media::Lines => Some(Self::Lines),
            Media::Sequence => Some(Self::Sequence),
            _ => None,
        }
    }
}

/// An incremental parser that keeps no more than an unfinished text.
struct Splitter {
    framing: Framing,
    max: usize,
    text: Vec<u8>,
    ready: VecDeque<Bytes>,
}

impl Splitter {
    fn push(&mut self, mut chunk: &[u8]) -> Result<(), CallError> {
        let end = match self.framing {
            Framing::Lines => b'\n',
            Framing::Sequence => RECORD_SEPARATOR,
        };
        while let Some(at) = memchr::memchr(end, chunk) {
            let (part, rest) = chunk.split_at(at);
            self.add(part)?;
            self.finish();
            chunk = rest.get(1..).unwrap_or_default();
        }
        self.add(chunk)?;
        // A text of a sequence ends with a line feed: waiting for the next separator would delay it.
        let complete = self.framing == Framing::Sequence
            && self.text.ends_with(b"\n")
            && serde_json::from_slice::<IgnoredAny>(&self.text).is_ok();
        if complete {
            self.finish();
        }
        Ok(())
    }

    fn add(&mut self, part: &[u8]) -> Result<(), CallError> {
        if self.text.len().saturating_add(part.len()) > self.max {
            return Err(CallError::execution(format!(
                "an item of the stream is larger than {} bytes: raise `with_max_event`",
                self.max
            )));
        }
        self.text.extend_from_slice(part);
        Ok(())
    }

    fn finish(&mut self) {
        let text = std::mem::take(&mut self.text);
        let trimmed = text.trim_ascii();
        let trimmed = trimmed.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(trimmed);
        if !trimmed.is_empty() {
            self.ready.push_back(Bytes::copy_from_slice(trimmed));
        }
    }
}

struct Source {
    body: ResponseBody,
    splitter: Splitter,
    meta: HttpMeta,
    error: Option<CallError>,
    ended: bool,
}

/// The items of a stream of JSON texts; one that is not JSON becomes an `Err` item when it is decoded.
pub(super) fn items(
    response: EngineResponse,
    framing: Framing,
    max: Option<usize>,
    idle: Option<Duration>,
) -> PayloadStream {
    let (parts, body) = response.into_parts();
    let body = body.with_idle_timeout(idle);
    let splitter = Splitter { framing, max: max.unwrap_or(MAX_ITEM), text: Vec::new(), ready: VecDeque::new() };
    let source = Source { body, splitter, meta: meta(&parts), error: None, ended: false };
    stream::unfold(source, |mut source| async move { source.next().await.map(|item| (item, source)) }).boxed()
}

impl Source {
    async fn next(&mut self) -> Option<Result<ResponseEnvelope<Payload>, CallError>> {
        loop {
            if let Some(text) = self.splitter.ready.pop_front() {
                return Some(Ok(ResponseEnvelope::http(Payload::Json(text), of_item(&mut self.meta))));
            }
            if let Some(error) = self.error.take() {
                self.ended = true;
                return Some(Err(error));
            }
            if self.ended {
                return None;
            }
            match self.body.frame().await.map(|frame| frame.map(http_body::Frame::into_data)) {
                None => {
                    // The last line may have no line ending.
                    self.splitter.finish();
                    self.ended = true;
                }
                Some(Ok(Ok(data))) => self.error = self.splitter.push(&data).err(),
                Some(Ok(Err(_trailers))) => {}
                Some(Err(error)) => self.error = Some(failure("the stream broke off", &*error).transient()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(framing: Framing, text: &str, size: usize) -> Vec<String> {
        let mut splitter = Splitter { framing, max: 20, text: Vec::new(), ready: VecDeque::new() };
        text.as_bytes().chunks(size).for_each(|chunk| splitter.push(chunk).unwrap());
        splitter.finish();
        splitter.ready.iter().map(|text| String::from_utf8_lossy(text).into_owned()).collect()
    }

    #[test]
    fn texts_cut_anywhere() {
        let lines = "\u{feff}{\"a\":1}\r\n\n  \n2\n\"ü\"\n[3]";
        let sequence = "\u{1e}{\"a\":\n 1}\n\u{1e}2\n\u{1e}\u{1e}\"ü\"\n\u{1e}[3]\n";
        for size in [1, 2, 3, 7, 100] {
            assert_eq!(split(Framing::Lines, lines, size), ["{\"a\":1}", "2", "\"ü\"", "[3]"]);
            assert_eq!(split(Framing::Sequence, sequence, size), ["{\"a\":\n 1}", "2", "\"ü\"", "[3]"]);
        }
    }

    #[test]
    fn a_text_of_a_sequence_is_given_as_soon_as_it_is_complete() {
        let mut splitter = Splitter { framing: Framing::Sequence, max: 20, text: Vec::new(), ready: VecDeque::new() };
        splitter.push(b"\x1e{\"a\":1}\n").unwrap();
        assert_eq!(splitter.ready.len(), 1);
        assert!(splitter.push(&[b'1'; 21]).is_err());
    }
}
