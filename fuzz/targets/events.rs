//! Server-sent events: however a stream is cut, its events are those of the standard.
#![no_main]

use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use ops_runtime::CallError;

// What the module below takes from the crate.
mod model {
    pub(crate) mod media {
        pub(crate) const EVENTS_END: &str = ": [DONE]";
    }
}

// The module itself, so that the target builds without the HTTP client.
#[allow(dead_code)]
#[path = "../../ops-runtime/src/http/sse.rs"]
mod sse;

use sse::{SseError, SseEvent, SseParser};

/// Limits that inputs of a few hundred bytes can reach.
const MAX_LINE: usize = 64;
const MAX_EVENT: usize = 128;

/// What a stream gave: its events, the id and time it set last, and why it ended before its end.
#[derive(Debug, PartialEq)]
struct Given {
    events: Vec<SseEvent>,
    id: String,
    retry: Option<Duration>,
    error: Option<SseError>,
}

fn parse<'a>(mut parser: SseParser, pieces: impl Iterator<Item = &'a [u8]>) -> Given {
    let mut events = Vec::new();
    let mut error = None;
    for piece in pieces {
        let result = parser.push(piece);
        events.extend(std::iter::from_fn(|| parser.next_event()));
        match (&error, result) {
            (None, Err(new)) => error = Some(new),
            (Some(old), result) => assert_eq!(result.as_ref().err(), Some(old), "an error stays"),
            (None, Ok(())) => {}
        }
    }
    let (id, retry) = (parser.last_event_id().to_owned(), parser.retry());
    Given { events, id, retry, error }
}

/// The algorithm of the standard, over the whole of the stream: its events as data, kind and id.
fn reference(stream: &[u8]) -> Vec<[String; 3]> {
    let text = String::from_utf8_lossy(stream);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut events = Vec::new();
    let (mut data, mut kind, mut id, mut last) = (String::new(), String::new(), String::new(), String::new());
    let mut lines: Vec<&str> = text.split('\n').collect();
    // What no line end completes is left out.
    lines.pop();
    for line in lines {
        if line.is_empty() {
            last.clone_from(&id);
            if !data.is_empty() {
                data.pop();
                let kind = if kind.is_empty() { "message".to_owned() } else { kind.clone() };
                events.push([data.clone(), kind, last.clone()]);
            }
            data.clear();
            kind.clear();
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => {
                data.push_str(value);
                data.push('\n');
            }
            "event" => value.clone_into(&mut kind),
            "id" if !value.contains('\0') => value.clone_into(&mut id),
            _ => {}
        }
    }
    events
}

fuzz_target!(|input: &[u8]| {
    let Some((&seed, stream)) = input.split_first() else { return };
    let whole = parse(SseParser::new(), std::iter::once(stream));
    assert_eq!(whole.error, None, "no input is that long");
    let found: Vec<_> = whole.events.iter().map(|e| [e.data.clone(), e.kind.clone(), e.id.clone()]).collect();
    assert_eq!(found, reference(stream));

    let small = || SseParser::new().with_max_line(MAX_LINE).with_max_event(MAX_EVENT);
    let limited = parse(small(), std::iter::once(stream));
    for piece in limited.events.iter().map(|event| event.data.len()) {
        assert!(piece <= MAX_EVENT + MAX_LINE);
    }
    // In single bytes, and in pieces whose lengths change.
    let mut rng = fastrand::Rng::with_seed(u64::from(seed));
    let mut rest = stream;
    let pieces: Vec<&[u8]> = std::iter::from_fn(|| {
        let (piece, after) = rest.split_at(rng.usize(..9).min(rest.len()));
        rest = after;
        (!piece.is_empty() || !rest.is_empty()).then_some(piece)
    })
    .collect();
    assert_eq!(parse(SseParser::new(), stream.chunks(1)), whole);
    assert_eq!(parse(SseParser::new(), pieces.iter().copied()), whole);
    assert_eq!(parse(small(), stream.chunks(1)), limited);
    assert_eq!(parse(small(), pieces.into_iter()), limited);
});
