//! Streams of JSON texts: one per line (JSON lines, NDJSON), or each after a record separator (RFC 7464).

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http_body_util::BodyExt;
use serde_core::de::IgnoredAny;
use serde_json::json;

use super::engine::{EngineResponse, ResponseBody, failure};
use super::problem::Codes;
use super::response::{meta, of_item};
use super::settings::Settings;
use crate::model::media::Media;
use crate::{CallError, HttpMeta, Payload, PayloadStream, ResponseEnvelope};

/// Default limit of the bytes of an item.
const MAX_ITEM: usize = 8 * 1024 * 1024;

/// The byte before each text of a sequence.
const RECORD_SEPARATOR: u8 = 0x1E;

/// How the texts of a stream are separated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// One per line.
    Lines,
    /// Each after a record separator.
    Sequence,
}

impl Framing {
    /// The framing of a content type; `None` if it is not a stream of JSON texts.
    pub(super) fn of(content_type: &str) -> Option<Self> {
        match Media::of(content_type) {
            Media::Lines => Some(Self::Lines),
            Media::Sequence => Some(Self::Sequence),
            _ => None,
        }
    }
}

/// An incremental parser that keeps only an unfinished text.
struct Splitter {
    framing: Framing,
    max: usize,
    text: Vec<u8>,
    /// What is open in the unfinished text of a sequence.
    open: Open,
    ready: VecDeque<Result<Bytes, CallError>>,
}

/// The position in a JSON text, as far as brackets and quotation marks tell. A text is parsed once they show that it
/// may be complete, and not with each piece that arrives, since there may be very many.
#[derive(Debug, Default)]
struct Open {
    brackets: usize,
    in_string: bool,
    is_escaped: bool,
    /// True if the text was parsed, and is invalid: nothing that follows can change that.
    is_broken: bool,
}

impl Open {
    fn read(&mut self, part: &[u8]) {
        for byte in part {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.in_string => self.is_escaped = true,
                b'"' => self.in_string = !self.in_string,
                _ if self.in_string => {}
                b'[' | b'{' => self.brackets = self.brackets.saturating_add(1),
                b']' | b'}' => self.brackets = self.brackets.saturating_sub(1),
                _ => {}
            }
        }
    }

    fn may_be_complete(&self) -> bool {
        self.brackets == 0 && !self.in_string && !self.is_broken
    }
}

impl Splitter {
    fn new(framing: Framing, max: usize) -> Self {
        Self { framing, max, text: Vec::new(), open: Open::default(), ready: VecDeque::new() }
    }

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
        if self.framing == Framing::Sequence && self.text.ends_with(b"\n") && self.open.may_be_complete() {
            if self.text.trim_ascii().is_empty() {
                self.text.clear();
            } else if serde_json::from_slice::<IgnoredAny>(&self.text).is_ok() {
                self.finish();
            } else {
                self.open.is_broken = true;
            }
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
        if self.framing == Framing::Sequence {
            self.open.read(part);
        }
        self.text.extend_from_slice(part);
        Ok(())
    }

    fn finish(&mut self) {
        self.open = Open::default();
        let text = std::mem::take(&mut self.text);
        let trimmed = text.trim_ascii();
        let trimmed = trimmed.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(trimmed);
        if trimmed.is_empty() {
            return;
        }
        let is_ended = text.last().is_some_and(u8::is_ascii_whitespace);
        self.ready.push_back(if self.framing == Framing::Sequence && !is_ended && has_no_end(trimmed) {
            let message = "a text of the sequence was cut off: no line feed ends it";
            Err(CallError::execution(message).with_details(json!({ "raw": String::from_utf8_lossy(trimmed) })))
        } else {
            Ok(Bytes::copy_from_slice(trimmed))
        });
    }
}

/// True for a text of JSON that does not show where it ends: a number, `true`, `false` or `null` (RFC 7464, section 2.4).
fn has_no_end(text: &[u8]) -> bool {
    matches!(text, [b'0'..=b'9' | b'-' | b't' | b'f' | b'n', ..])
}

struct Source {
    body: ResponseBody,
    splitter: Splitter,
    meta: HttpMeta,
    codes: Codes,
    error: Option<CallError>,
    ended: bool,
}

/// The items of a stream of JSON texts. One that is not JSON becomes an `Err` item when it is decoded; one with which a
/// server reports a failed item is an error at once.
pub(super) fn items(response: EngineResponse, framing: Framing, codes: Codes, settings: &Settings) -> PayloadStream {
    let (parts, body) = response.into_parts();
    let body = body.with_idle_timeout(settings.idle_timeout);
    let source = Source {
        body,
        splitter: Splitter::new(framing, settings.max_event.unwrap_or(MAX_ITEM)),
        meta: meta(&parts),
        codes,
        error: None,
        ended: false,
    };
    stream::unfold(source, |mut source| async move { source.next().await.map(|item| (item, source)) }).boxed()
}

impl Source {
    async fn next(&mut self) -> Option<Result<ResponseEnvelope<Payload>, CallError>> {
        loop {
            if let Some(text) = self.splitter.ready.pop_front() {
                return Some(text.and_then(|text| match self.codes.text(&text, &self.meta) {
                    Some(error) => Err(error),
                    None => Ok(ResponseEnvelope::http(Payload::Json(text), of_item(&mut self.meta))),
                }));
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
    use std::time::Duration;

    use super::*;

    fn split(framing: Framing, text: &str, size: usize) -> Vec<String> {
        let mut splitter = Splitter::new(framing, 20);
        text.as_bytes().chunks(size).for_each(|chunk| splitter.push(chunk).unwrap());
        splitter.finish();
        let told = |text: &Result<Bytes, CallError>| match text {
            Ok(text) => String::from_utf8_lossy(text).into_owned(),
            Err(error) => format!("cut off: {}", error.details()["raw"].as_str().unwrap()),
        };
        splitter.ready.iter().map(told).collect()
    }

    #[test]
    fn what_may_be_the_beginning_of_another_text_of_a_sequence_is_no_data() {
        let sequence = "\u{1e}12\u{1e}34\n\u{1e}{}\u{1e}tru\u{1e}\"a\"\u{1e}-1 \u{1e}5";
        let expected = ["cut off: 12", "34", "{}", "cut off: tru", "\"a\"", "-1", "cut off: 5"];
        for size in [1, 2, 3, 7, 100] {
            assert_eq!(split(Framing::Sequence, sequence, size), expected);
        }
        assert_eq!(split(Framing::Lines, "1\n2", 9), ["1", "2"]);
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
        let mut splitter = Splitter::new(Framing::Sequence, 20);
        splitter.push(b"\x1e{\"a\":1}\n").unwrap();
        assert_eq!(splitter.ready.len(), 1);
        assert!(splitter.push(&[b'1'; 21]).is_err());
        // Brackets in strings, and line feeds inside a text, are part of it.
        for (text, expected) in [
            ("\x1e[\"]\\\"\",\n", 0),
            ("\x1e[\"[\\\\\"\n]\n", 1),
            ("\x1e7\n", 1),
            ("\x1enul\n", 0),
            ("\x1e]\n", 0),
            ("\n \n\n", 0),
        ] {
            let mut splitter = Splitter::new(Framing::Sequence, 20);
            text.bytes().for_each(|byte| splitter.push(&[byte]).unwrap());
            assert_eq!(splitter.ready.len(), expected, "{text}");
        }
    }

    #[test]
    fn a_text_in_many_pieces_is_not_parsed_with_each() {
        const LENGTH: usize = 1 << 20;
        for (start, piece) in [("\x1e[", "\n"), ("\x1e", "\n"), ("\x1e[]]", "\n"), ("\x1e", "\"\"\n")] {
            let began = std::time::Instant::now();
            let mut splitter = Splitter::new(Framing::Sequence, 2 * LENGTH);
            splitter.push(start.as_bytes()).unwrap();
            (0..LENGTH / piece.len()).for_each(|_| splitter.push(piece.as_bytes()).unwrap());
            // Parsed each time, it takes minutes.
            assert!(began.elapsed() < Duration::from_secs(10), "{start} {piece}: {:?}", began.elapsed());
        }
    }
}
